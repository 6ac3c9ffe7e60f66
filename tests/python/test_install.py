"""pip install ./src/python into a new environment without a package index, the wheel, and their contents."""
import glob
import os
import shutil
import subprocess
import sys
import tarfile
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


def needed(library):
    said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True)
    return None if said.returncode else [line.split("[")[1][:-1] for line in said.stdout.splitlines() if "(NEEDED)" in line]


@unittest.skipIf(importable("ensurepip"), "this Python cannot make an environment with pip (apt-get install python3-venv)")
class Install(WithData):
    def environment(self):
        folder = os.path.join(new_folder(), "venv")
        venv.create(folder, with_pip=True)
        return os.path.join(folder, "bin", "python")

    def pip(self, python, *arguments):
        ran = subprocess.run([python, "-m", "pip", "install", "--no-index", "--quiet", *arguments], cwd=TOP, env=clean(),
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, f"{ran.stdout}\n{ran.stderr}")

    def try_it(self, python):
        code = ("import tokmap, sys; run = tokmap.Run(data=sys.argv[1], seq_len=8, batch=2, passes=1); "
                "print(tokmap.library_path()); print(len(list(run.loader(framework='dlpack'))) == run.info.steps)")
        ran = subprocess.run([python, "-c", code, self.prefix], cwd=self.folder, env=clean(), capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        library, right = ran.stdout.splitlines()
        self.assertEqual(right, "True")
        return library

    def test_from_the_tree(self):
        python = self.environment()
        self.pip(python, os.path.join(TOP, "src", "python"))
        library = self.try_it(python)
        self.assertIn("site-packages", library)
        self.assertNotIn(TOP + os.sep + "src", library)
        self.assertEqual(subprocess.run(["git", "-C", TOP, "status", "--porcelain", "--", "src/python"], capture_output=True,
                                        text=True).stdout.count("??"), 0)

    def test_from_a_source_distribution(self):
        """It is built from a copy of the tree that is not a git checkout, and installed without the tree."""
        tree, into = os.path.join(new_folder(), "tree"), new_folder()
        for name in ("include", "src"):
            shutil.copytree(os.path.join(TOP, name), os.path.join(tree, name))
        for name in ("LICENSE", "Makefile", "README.md"):
            shutil.copy(os.path.join(TOP, name), tree)
        code = "import sys; sys.path.insert(0, sys.argv[1]); import build_backend; print(build_backend.build_sdist(sys.argv[2]))"
        names = []
        for source in (tree, TOP):
            ran = subprocess.run([sys.executable, "-c", code, os.path.join(source, "src", "python"), into], env=clean(),
                                 capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), (0, f"tokmap-{tokmap.__version__}.tar.gz\n"), ran.stderr)
            with tarfile.open(os.path.join(into, ran.stdout.strip())) as tar:
                names.append(set(tar.getnames()))
        self.assertEqual(*names)
        self.assertEqual({name for name in names[0] if name.endswith((".pyc", ".o", ".so.0"))}, set())
        shutil.rmtree(tree)
        python = self.environment()
        self.pip(python, os.path.join(into, ran.stdout.strip()))
        self.assertIn("site-packages", self.try_it(python))

    @unittest.skipIf(os.path.realpath(BUILD_DIR) != os.path.realpath(os.path.join(TOP, "build")),
                     "an editable package uses the library in build/lib, and this is another folder's test")
    def test_editable(self):
        python = self.environment()
        self.pip(python, "--editable", os.path.join(TOP, "src", "python"))
        self.assertTrue(os.path.samefile(self.try_it(python), os.path.join(TOP, "build", "lib", os.path.basename(
            tokmap.library_path()))))


class Wheel(WithData):
    def test_wheel(self):
        ran = subprocess.run([*MAKE.split(), "--no-print-directory", "-s", "-C", TOP, "wheel",
                              *(f"{name}={os.environ[name]}" for name in ("CC", "CFLAGS", "BUILD") if os.environ.get(name))],
                             env={**clean(), "PYTHON": sys.executable}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        wheels = glob.glob(os.path.join(glob.escape(BUILD_DIR), "wheel", "*.whl"))
        self.assertEqual([os.path.basename(wheel) for wheel in wheels],
                         [f"tokmap-{tokmap.__version__}-py3-none-linux_{os.uname().machine}.whl"])
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
        # An unpacked wheel works without installation.
        code = "import tokmap, sys; print(tokmap.library_path(), tokmap.Run(data=sys.argv[1], seq_len=8))"
        ran = subprocess.run([sys.executable, "-c", code, self.prefix], env={**clean(), "PYTHONPATH": folder},
                             capture_output=True, text=True, cwd=self.folder)
        self.assertTrue(ran.stdout.startswith(library), ran.stdout + ran.stderr)

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
