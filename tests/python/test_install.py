# SPDX-License-Identifier: MIT
"""pip install ./src/python into a new environment without a package index, the wheel, and their contents."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile

import tokmap
from support import BUILD_DIR, TOP, WithData, importable, new_folder

MAKE = os.environ.get("MAKE", "make")


def clean():
    """The caller's environment without the variables that point to this tree."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "TOKMAP_LIBRARY", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def copy_of_the_tree():
    """What the package is built from, without git and without what was built."""
    tree = os.path.join(new_folder(), "tree")
    for name in ("bench", "include", "src", "tokenize_tools"):
        shutil.copytree(os.path.join(TOP, name), os.path.join(tree, name), ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "Makefile", "README.md"):
        shutil.copy(os.path.join(TOP, name), tree)
    return tree


# Compiles the files that `chosen` lists, and takes older objects of the others (check_includes).
COMPILER = """#!/bin/sh
object= source= before=
for word; do
    case $before in -o) object=$word ;; -c) source=$word ;; esac
    before=$word
done
done='{objects}'/$source.o
case $object in */linked/*) done='{objects}'/linked/$source.o ;; esac
if [ -z "$source" ] || [ ! -e "$done" ] || grep -qxF "$source" '{chosen}'; then exec {compiler} "$@"; fi
exec cp "$done" "$object"
"""


def compiled_objects():
    """The folder with what was compiled of this tree."""
    with open(os.path.join(BUILD_DIR, "linked_from")) as file:
        return os.path.join(BUILD_DIR, "obj", os.path.basename(file.readline().split()[0]))


def compiler_of_a_share(tree):
    """A compiler that compiles every eighth file of a tree. The commit chooses which ones, so that eight commits may
    compile all of them; FAULT_COMMIT=NUMBER replaces it, and with FAULT_ALL=1 the compiler compiles all files."""
    usual, folder = os.environ.get("CC") or "cc", tempfile.mkdtemp(prefix="compiler-")
    if os.environ.get("FAULT_ALL") or re.search(r"[\s']", folder):  # make cannot handle a blank
        return usual
    said = subprocess.run(["git", "-C", TOP, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout
    commit = int(os.environ.get("FAULT_COMMIT") or int(said.strip() or "0", 16))
    sources = sorted(os.path.relpath(path, tree) for path in glob.glob(glob.escape(tree) + "/**/*.c", recursive=True))
    with open(os.path.join(folder, "chosen"), "w") as file:
        file.writelines(f"{source}\n" for source in sources[commit % 8::8])
    path = os.path.join(folder, "compiler")
    with open(path, "w") as file:
        file.write(COMPILER.format(objects=compiled_objects(), chosen=os.path.join(folder, "chosen"),
                                   compiler=usual))
    os.chmod(path, 0o755)
    return path


WINGS = [os.path.join("tokenize_tools", wing) for wing in ("tokenizers", "inputs", "packer")]


def check_includes(tree):
    """What any file of the tree includes in quotes is in the tree."""
    for path in glob.glob(glob.escape(tree) + "/**/*.[ch]", recursive=True):
        with open(path, encoding="utf-8") as file:
            for name in re.findall(r'^#include "(.*)"', file.read(), re.MULTILINE):
                if not any(os.path.exists(os.path.join(tree, folder, name))
                           for folder in (os.path.dirname(path), "include", "src", "bench", "tokenize_tools", *WINGS)):
                    raise AssertionError(f"{path}: {name} is not in the tree")


def everything(tree):
    """The files below a folder, with the times at which they were changed, and the folders."""
    return sorted((path, os.stat(path).st_mtime_ns if path != folder else 0) for folder, folders, names in os.walk(tree)
                  for path in (folder, *(os.path.join(folder, name) for name in names)))


def versions(path):
    """The versions of glibc's functions that a program or library calls, as objdump shows them."""
    said = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
    return {tuple(map(int, found.split("."))) for found in re.findall(r"\*UND\*.*\(?GLIBC_([0-9.]+)\)?", said)}


def needed(library):
    said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True)
    return None if said.returncode else [line.split("[")[1][:-1] for line in said.stdout.splitlines() if "(NEEDED)" in line]


@unittest.skipIf(importable("ensurepip"), "this Python cannot make an environment with pip (apt-get install python3-venv)")
class Install(WithData):
    @classmethod
    def setUpClass(cls):
        """Makes one environment with pip, which the tests lend to their own: to install pip takes long."""
        super().setUpClass()
        folder = os.path.join(new_folder(), "pip")
        venv.create(folder, with_pip=True)
        cls.modules = glob.glob(os.path.join(glob.escape(folder), "lib", "python3*", "site-packages"))[0]

    def environment(self):
        folder = os.path.join(new_folder(), "venv")
        venv.create(folder)
        return os.path.join(folder, "bin", "python")

    def pip(self, python, *arguments, **variables):
        environment = {name: value for name, value in clean().items()
                       if name not in ("BUILD", "PYTHONDONTWRITEBYTECODE")}
        environment["PYTHONPATH"] = self.modules
        ran = subprocess.run([python, "-m", "pip", "install", "--no-index", "--quiet", *arguments], cwd=TOP,
                             env={**environment, **variables}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, f"{ran.stdout}\n{ran.stderr}")

    def try_it(self, python):
        code = ("import tokmap, sys; run = tokmap.Run(data=sys.argv[1], seq_len=8, batch=2, passes=1); "
                "print(tokmap.library_path()); print(len(list(run.loader(framework='dlpack'))) == run.info.steps)")
        ran = subprocess.run([python, "-c", code, self.prefix], cwd=self.folder, env=clean(), capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        library, right = ran.stdout.splitlines()
        self.assertEqual(right, "True")
        return library

    def try_commands(self, python):
        """The commands are beside python and in `python -m tokmap`, and show that they belong to this version."""
        folder, into = os.path.dirname(python), new_folder()
        with open(os.path.join(into, "a.txt"), "w", encoding="utf-8") as file:
            file.write("a text\n")
        for number, command in enumerate(([os.path.join(folder, "tokmap")], [python, "-m", "tokmap"])):
            packed = os.path.join(into, str(number))
            said = self.check([*command, "pack", "--eod", "-o", packed, os.path.join(into, "a.txt")])
            with open(packed + ".bin", "rb") as file:
                self.assertEqual(file.read(), b"".join(bytes([byte, 0]) for byte in b"a text\n") + b"\0\1", said)
            self.check([*command, "verify", packed])
            self.assertIn(tokmap.__version__, self.check([*command, "--version"]).splitlines()[0])
            # The exit status and the messages are the command's own.
            ran = subprocess.run([*command, "pakc"], env=clean(), capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stderr.splitlines()[0].split(":")[0]), (2, "tokmap"), ran.stderr)
        self.assertIn("tokmap-bench", self.check([os.path.join(folder, "tokmap-bench"), "--version"]))
        self.check([os.path.join(folder, "tokmap-bench"), "order", "--seconds", "0.01"])

    def check(self, command):
        ran = subprocess.run(command, env=clean(), capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout}\n{ran.stderr}")
        return ran.stdout

    def test_from_the_tree(self):
        """The tree is a copy that nothing may be written into, in a folder whose name has a blank.

        It is compiled here, without optimization, as compiler_of_a_share() says. The other tests install what the
        caller's flags make.
        """
        tree = copy_of_the_tree()
        check_includes(tree)
        files = everything(tree)
        if os.getuid():
            subprocess.run(["chmod", "-R", "a-w", tree], check=True)
        compiler = compiler_of_a_share(tree)
        try:
            python = self.environment()
            self.pip(python, os.path.join(tree, "src", "python"), CFLAGS="-O0", CC=compiler)
            self.assertEqual(everything(tree), files)
        finally:
            subprocess.run(["chmod", "-R", "u+w", tree], check=True)
        shutil.rmtree(tree)
        library = self.try_it(python)
        self.assertIn("site-packages", library)
        self.try_commands(python)
        share = os.path.join(os.path.dirname(os.path.dirname(python)), "share")
        for name in ("man/man1/tokmap-pack.1", "man/man1/tokmap-bench.1", "man/man5/tokmap-run.5", "man/man7/tokmap-chat.7"):
            self.assertTrue(os.path.isfile(os.path.join(share, name)), name)

    def test_from_a_source_distribution(self):
        """It is built from a copy of the tree that is not a git checkout, and installed without the tree.

        Its files are those of the tree, byte for byte. So make gets a copy of what was compiled of the tree. It
        must not use the build folder itself: because the distribution has no tests, make would link again there what
        other tests run.
        """
        tree, into = copy_of_the_tree(), new_folder()
        code = "import sys; sys.path.insert(0, sys.argv[1]); import build_backend; print(build_backend.build_sdist(sys.argv[2]))"
        names = []
        for source in (tree, TOP):
            ran = subprocess.run([sys.executable, "-c", code, os.path.join(source, "src", "python"), into], env=clean(),
                                 capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), (0, f"tokmap-{tokmap.__version__}.tar.gz\n"), ran.stderr)
            with tarfile.open(os.path.join(into, ran.stdout.strip())) as tar:
                names.append(set(tar.getnames()))
                for member in filter(tarfile.TarInfo.isfile, tar.getmembers()):
                    inside = member.name.split("/", 1)[1]
                    if inside not in ("PKG-INFO", "pyproject.toml"):
                        with open(os.path.join(source, inside), "rb") as file:
                            self.assertEqual(tar.extractfile(member).read(), file.read(), member.name)
        self.assertEqual(*names)
        self.assertEqual({name for name in names[0] if name.endswith((".pyc", ".o", ".so.0"))}, set())
        shutil.rmtree(tree)
        python = self.environment()
        build = os.path.join(BUILD_DIR, "from_source_distribution")
        objects = compiled_objects()
        shutil.rmtree(build, ignore_errors=True)
        self.addCleanup(shutil.rmtree, build)
        shutil.copytree(objects, os.path.join(build, "obj", os.path.basename(objects)))
        self.pip(python, os.path.join(into, ran.stdout.strip()), BUILD=build)
        self.assertIn("site-packages", self.try_it(python))
        self.try_commands(python)

    @unittest.skipIf(os.path.realpath(BUILD_DIR) != os.path.realpath(os.path.join(TOP, "build")),
                     "an editable package uses the library in build/lib, and this is another folder's test")
    def test_editable(self):
        python = self.environment()
        self.pip(python, "--editable", os.path.join(TOP, "src", "python"))
        self.assertTrue(os.path.samefile(self.try_it(python), os.path.join(TOP, "build", "lib", os.path.basename(
            tokmap.library_path()))))
        self.try_commands(python)


class Wheel(WithData):
    def test_wheel(self):
        ran = subprocess.run([*MAKE.split(), "--no-print-directory", "-s", "-C", TOP, "wheel",
                              *(f"{name}={os.environ[name]}" for name in ("CC", "CFLAGS", "BUILD") if os.environ.get(name))],
                             env={**clean(), "PYTHON": sys.executable}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        wheels = glob.glob(os.path.join(glob.escape(BUILD_DIR), "wheel", "*.whl"))
        self.assertEqual([os.path.basename(wheel) for wheel in wheels],
                         [f"tokmap-{tokmap.__version__}-py3-none-manylinux_2_28_{os.uname().machine}.whl"])
        self.assertEqual(ran.stdout.splitlines()[-1], wheels[0])
        folder = os.path.join(new_folder(), "unpacked")
        with zipfile.ZipFile(wheels[0]) as wheel:
            self.assertIsNone(wheel.testzip())
            wheel.extractall(folder)
            names = set(wheel.namelist())
        record = {line.split(",")[0] for line in open(glob.glob(glob.escape(folder) + "/*.dist-info/RECORD")[0])}
        self.assertEqual(record, names)
        library = os.path.join(folder, "tokmap", os.path.basename(tokmap.library_path()))
        if needed(library) is not None:
            self.assertEqual([name for name in needed(library) if "zstd" in name], [])
        self.check_what_the_tag_promises(folder, wheels[0])
        # An unpacked wheel works without installation.
        code = "import tokmap, sys; print(tokmap.library_path(), tokmap.Run(data=sys.argv[1], seq_len=8))"
        ran = subprocess.run([sys.executable, "-c", code, self.prefix], env={**clean(), "PYTHONPATH": folder},
                             capture_output=True, text=True, cwd=self.folder)
        self.assertTrue(ran.stdout.startswith(library), ran.stdout + ran.stderr)

    def check_what_the_tag_promises(self, folder, wheel):
        """No file calls a function of a glibc newer than 2.28, or needs a library that is not glibc's nor inside."""
        inside = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2",
                  "ld-linux-aarch64.so.1",
                  *os.listdir(os.path.join(folder, "tokmap"))}
        programs = [path for path in glob.glob(glob.escape(folder) + "/tokmap/**", recursive=True)
                    if ".so" in path or os.path.dirname(path).endswith("/bin")]
        self.assertGreaterEqual(len(programs), 4)
        sys.path.insert(0, os.path.join(TOP, "tests", "support"))
        import elf_hardening
        flags = os.environ.get("CFLAGS") or "-O2"
        for path in programs:
            with open(path, "rb") as file:
                # ISA-L, where it has no archive and its library is inside, calls no function that could be checked.
                fortified = "-O" in flags and "-O0" not in flags and not os.path.basename(path).startswith("libisal")
                self.assertEqual(elf_hardening.lacks(file.read(), fortified), [], path)
        if shutil.which("objdump") is None:
            self.skipTest("objdump is not installed")
        for path in programs:
            found = versions(path)
            self.assertIn((2, 14), found)  # memcpy: objdump's lines were understood
            self.assertLessEqual(max(found), (2, 28), path)
            self.assertLessEqual(set(needed(path)), inside, path)
        if importable("auditwheel") is None:
            said = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True,
                                  text=True).stdout
            self.assertIn(f'"manylinux_2_28_{os.uname().machine}"', " ".join(said.split()))
        old = os.environ.get("TOKMAP_TEST_OLD_SYSTEM")
        if old is None:
            return
        # An older system is in this folder, for example that of `mmdebstrap --variant=extract
        # --include=libc6,dash,coreutils,python3 bullseye FOLDER`: the commands pack and verify in it, and its Python
        # loads the library.
        into = tempfile.mkdtemp(dir=old)
        shutil.copytree(os.path.join(folder, "tokmap"), os.path.join(into, "tokmap"))
        shutil.copy(os.path.join(TOP, "README.md"), into)
        for path in glob.glob(os.path.join(glob.escape(into), "tokmap", "bin", "*")):
            os.chmod(path, 0o755)
        script = ("set -e; cd /$1; tokmap/bin/tokmap pack --eod -o d README.md; tokmap/bin/tokmap verify d; "
                  "tokmap/bin/tokmap-bench --version; python3 -c 'import os, tokmap; run = tokmap.Run(data=\"d\", "
                  "seq_len=64); print(run.loader().next().count, os.confstr(\"CS_GNU_LIBC_VERSION\"))'")
        # $ORIGIN, by which the commands find the libraries beside them, needs /proc.
        enter = 'mkdir -p "$1/proc" && mount --bind /proc "$1/proc" && exec chroot "$1" /bin/sh -c "$2" sh "$3"'
        ran = subprocess.run(["unshare", "--mount", "sh", "-c", enter, "sh", old, script, os.path.basename(into)],
                             capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        shutil.rmtree(into)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        print(f"# ran with {ran.stdout.splitlines()[-1]}")

    def test_wheels_are_equal(self):
        """The same sources make the same bytes."""
        ran = []
        for _ in range(2):
            folder = new_folder()
            made = subprocess.run([sys.executable, os.path.join(TOP, "src", "python", "build_backend.py"), folder],
                                  env={**clean(), "BUILD": os.environ.get("BUILD", "build")}, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            with open(made.stdout.strip(), "rb") as file:
                ran.append(file.read())
        self.assertEqual(ran[0], ran[1])


if __name__ == "__main__":
    unittest.main()
