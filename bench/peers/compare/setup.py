# SPDX-License-Identifier: MIT
"""The Python environments of the systems.

One environment holds the packages of all systems, except those whose VENV says that theirs conflict with others. The
packages of each system are installed by a pip of its own, so that what fails is one absent row with pip's reason. What
was installed is written down in the environment, so that a second run starts at once.
"""
import importlib
import os
import subprocess
import sys

from report import Absent

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST = ("tokmap", "tokmap_c", "tokmap_dataset", "memmap")  # the rows that come first; the others follow by name
CPU_TORCH = "https://download.pytorch.org/whl/cpu"


def names_in(folder):
    """The names of the modules in a folder of this package."""
    return sorted(name[:-3] for name in os.listdir(os.path.join(HERE, folder))
                  if name.endswith(".py") and not name.startswith("_"))


def systems(options):
    """The modules that the user asked for with --peers: all of them without it; tokmap always, and first."""
    known = names_in("systems")
    wanted = [name.strip() for name in options.peers.split(",") if name.strip()] if options.peers else known
    for name in wanted:
        if name not in known:
            raise SystemExit(f"--peers: there is no system '{name}'; there are {', '.join(known)}")
    order = sorted({*wanted, "tokmap"}, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return [importlib.import_module(f"systems.{name}") for name in order]


def default_venv():
    """build/peers-venv in the source tree, else $XDG_CACHE_HOME/tokmap/peers."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
    if os.path.exists(os.path.join(top, "Makefile")) and os.path.isdir(os.path.join(top, "src", "python")):
        return os.path.join(top, "build", "peers-venv")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "tokmap", "peers")


class Setup:
    """Finds and makes environments: python_of(system), python_with(packages). wanted: the systems that will be asked
    for, if that is known."""

    _announced = False  # in this process, which may make several objects

    def __init__(self, options, report, wanted=()):
        self._options, self._report, self._wanted = options, report, wanted
        self._folder = options.venv or default_venv()
        self._made = {}

    def python_of(self, system):
        """The Python in which the system runs, with its packages. Raises Absent with the reason."""
        folder = self._folder + "-" + system.NAME if getattr(system, "VENV", False) else self._folder
        try:
            return self.python_with(system.PACKAGES, system.NAME, folder)
        except Absent:
            if not getattr(system, "OPTIONAL", False):
                raise
        return self.python_with([], system.NAME, folder)

    def python_with(self, packages, name="packages", folder=None):
        """A Python that has these packages. name: what progress and messages call them."""
        folder = folder or self._folder
        python = os.path.join(folder, "bin", "python")
        if self._options.offline or not packages:
            return python if os.path.exists(python) else sys.executable
        wanted = "\n".join(packages)
        noted = os.path.join(folder, "tokmap-peers", name)
        if not self._same(noted, wanted):
            self._announce(name)
            self._make(folder, python)
            self._install(python, packages, name)
            os.makedirs(os.path.dirname(noted), exist_ok=True)
            with open(noted, "w", encoding="utf-8") as file:
                file.write(wanted)
        return python

    def _announce(self, name):
        """Says, before the first installation, what is installed, where, and how to have less."""
        if Setup._announced:
            return
        Setup._announced = True
        folders = [self._folder] + [f"{self._folder}-{system.NAME}" for system in self._wanted
                                    if getattr(system, "VENV", False)]
        names = [system.NAME for system in self._wanted if system.PACKAGES] or [name]
        self._report.say(
            f"what is missing will be downloaded and installed with pip into {', '.join(folders)}: the packages of "
            f"{', '.join(names)}. All systems take about 19 GB. --peers NAMES installs those of fewer systems, --venv "
            "FOLDER puts them elsewhere, and --offline installs nothing")

    @staticmethod
    def _same(path, text):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read() == text
        except OSError:
            return False

    def _make(self, folder, python):
        """Makes an environment, or completes one that has no pip: Debian's Python leaves that without python3-venv."""
        if os.path.exists(python) and subprocess.run([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                                                     stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return
        self._report.progress(0, 0, f"making the Python environment {folder}")
        os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
        self._call([sys.executable, "-m", "venv", folder], f"a Python environment cannot be made in {folder}")

    def _install(self, python, packages, name):
        self._report.progress(0, 0, f"installing {name}: {' '.join(packages)}")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        torch = [one for one in packages if one.split("=")[0].split(">")[0].split("<")[0].strip() == "torch"]
        if torch and not os.path.exists("/dev/nvidiactl"):
            # Without a GPU the build for processors does the same and is a tenth as large.
            subprocess.run([*pip, "--index-url", CPU_TORCH, *torch], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)
        self._call([*pip, *packages], f"pip cannot install {' '.join(packages)}")

    def _call(self, command, what):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              text=True, errors="replace", check=False)
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("ERROR:")] or lines
            if "ensurepip" in done.stdout:
                errors = ["this Python has no pip to put into it; install it (apt-get install python3-venv), and run "
                          "the command again"]
            raise Absent(f"{what}: {errors[-1] if errors else 'it said nothing'}")
