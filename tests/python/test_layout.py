# SPDX-License-Identifier: MIT
"""The structs, constants, and statuses of _library.py and errors.py compared with the C headers by a C program, and the
imports between the package's modules."""
import ast
import ctypes
import os
import re
import shlex
import subprocess
import unittest

import tokmap
from tokmap import _library, _tokenize_library, errors
from support import TOP, new_folder

CONSTANTS = {
    "TOKMAP_CURSOR_TEXT": _library.CURSOR_TEXT, "TOKMAP_WAIT_BUCKETS": _library.WAIT_BUCKETS,
    "TOKMAP_FOREVER": _library.FOREVER, "TOKMAP_NO_ID": _library.NO_ID, "TOKMAP_DEFAULT": _library.DEFAULT,
    "TOKMAP_NO_OFFSET": _library.NO_OFFSET,
    "TOKMAP_ID_I32": _library.I32, "TOKMAP_ID_I64": _library.I64, "TOKMAP_SHUFFLE": _library.ORDERS.index("shuffle"),
    "TOKMAP_SEQUENTIAL": _library.ORDERS.index("sequential"),
    "TOKMAP_BLOCKS": _library.ORDERS.index("blocks"), "TOKMAP_EVEN": _library.ORDERS.index("even"),
    "TOKMAP_READ_AUTO": _library.READINGS.index("auto"),
    "TOKMAP_READ_MAPPED": _library.READINGS.index("mapped"), "TOKMAP_READ_PREAD": _library.READINGS.index("pread"),
    **{f"TOKMAP_SPECIAL_{name.upper()}": number for number, name in enumerate(_tokenize_library.SPECIALS)},
    **{f"TOKMAP_ID_{name.upper()}": number for number, name in enumerate(_library.ID_TYPES)},
    **{f"TOKMAP_{name.upper()}": bit for name, bit in _library.FIELDS.items()},
}


def structs():
    """The structs of the package by their names in C."""
    other = {"FoundValue": None,  # struct tokmap_value as a result
             "BatchInfo": "tokmap_tokenizer_batch_info", "BatchOut": "tokmap_tokenizer_batch_out"}
    found = {}
    for module in (_library, _tokenize_library):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind.__module__ == module.__name__:
                words = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
                found[other.get(kind.__name__, f"tokmap_{words}")] = kind
    del found[None]
    return found


STRUCTS = structs()
FUNCTIONS = {**_library._FUNCTIONS, **_tokenize_library.FUNCTIONS}


def headers():
    text = ""
    folder = os.path.join(TOP, "include", "tokmap")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text += file.read()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


@unittest.skipIf(subprocess.run(["sh", "-c", f"command -v {shlex.split(os.environ.get('CC', 'cc'))[0]}"],
                                stdout=subprocess.DEVNULL).returncode, "no C compiler")
class Layout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = ["#include <stdio.h>", "#include <tokmap/tokmap.h>", "#include <tokmap/cuda.h>",
                 "#include <tokmap/tokenizer.h>", "#include <tokmap/pack.h>", "int main(void) {"]
        for name, kind in STRUCTS.items():
            lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            for field, *_ in kind._fields_:
                member = re.sub(r"^(values\w*)(\d)$", r"\1[\2]", field)  # an element of an array
                lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {member}), '
                             f'sizeof(((struct {name} *)0)->{member}));')
        lines += [f'printf("{name} %llu\\n", (unsigned long long){name});' for name in CONSTANTS]
        lines.append('printf("TOKMAP_IGNORE %d\\n", TOKMAP_IGNORE);')
        lines += ["#define LINE(name, number, text) printf(\"status %d \" #name \"\\n\", number);",
                  "TOKMAP_STATUS_MAP(LINE)", "return 0; }"]
        folder = new_folder()
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-I", os.path.join(TOP, "include"), "-o", program, source],
                       check=True)
        said = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
        cls.said = {line.rsplit(" ", 1)[0] if line.startswith("status") else line.split(" ", 1)[0]: line.split(" ")[1:]
                    for line in said}
        cls.statuses = [line.split(" ")[1:] for line in said if line.startswith("status ")]

    def test_sizes_and_offsets(self):
        for name, kind in STRUCTS.items():
            self.assertEqual(int(self.said[name][0]), ctypes.sizeof(kind), name)
            for field, *_ in kind._fields_:
                found = getattr(kind, field)
                self.assertEqual([int(n) for n in self.said[f"{name}.{field}"]], [found.offset, found.size], f"{name}.{field}")

    def test_every_struct_of_the_headers(self):
        """The table has every struct that a header defines, so a new struct cannot be forgotten."""
        defined = set(re.findall(r"^struct (tokmap_\w+) \{", headers(), flags=re.M))
        self.assertEqual(defined - set(STRUCTS), {"tokmap_order"})
        self.assertEqual(set(STRUCTS) - defined, set())

    def test_every_field_of_the_structs(self):
        text = headers()
        for name, kind in STRUCTS.items():
            body = re.search(rf"^struct {name} \{{(.*?)^\}};", text, flags=re.S | re.M).group(1)
            found = []
            for member in body.split(";"):
                callback = re.search(r"\(\*(\w+)\)\(", member)
                if callback:
                    found.append(callback.group(1))
                    continue
                found += re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", member.strip())
            known = [field for field, *_ in kind._fields_]
            found = [part for field in found for part in ([f"{field}{k}" for k in range(8)] if f"{field}0" in known else
                                                          [field])]
            self.assertEqual(found, known, name)

    def test_constants(self):
        for name, value in CONSTANTS.items():
            self.assertEqual(int(self.said[name][0]), value, name)
        self.assertEqual(int(self.said["TOKMAP_IGNORE"][0]), tokmap.IGNORE)

    def test_statuses(self):
        self.assertEqual([int(number) for number, _ in self.statuses], list(range(len(self.statuses))))
        self.assertEqual(len(self.statuses), len(errors.STATUSES) - 1)  # one is this package's
        for (number, name), known in zip(self.statuses, errors.STATUSES):
            self.assertEqual(name, known)
            self.assertEqual(errors.class_of(name).status, name)
            self.assertEqual(_library.lib.tokmap_status_name(int(number)).decode(), name)

    def test_functions(self):
        """Every function in the table is declared in a header, with the same number of arguments, if it has them."""
        text = headers()
        for name, (_, arguments) in FUNCTIONS.items():
            found = re.search(rf"\b{name}\(((?:[^()]|\([^()]*\))*)\)", text)
            self.assertIsNotNone(found, name)
            plain = re.sub(r"\([^()]*\)", "", found.group(1))
            if arguments is not None:
                self.assertEqual(0 if plain.strip() == "void" else plain.count(",") + 1, len(arguments), name)

    def test_version(self):
        found = re.search(r'TOKMAP_VERSION_STRING "(.*)"', headers()).group(1)
        self.assertEqual(tokmap.__version__, found)


def imported_modules(source, names, package="tokmap"):
    """The modules of a package that a source text imports anywhere: at the top, inside functions, and under
    TYPE_CHECKING. Importing a name from the package itself counts as importing "__init__"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top, _, rest = alias.name.partition(".")
                if top == package:
                    found.add(rest.split(".")[0] or "__init__")
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 0:
                top, _, module = module.partition(".")
                if top != package:
                    continue
            if module:
                found.add(module.split(".")[0])
            else:
                found.update(alias.name if alias.name in names else "__init__" for alias in node.names)
    return found


def circle(imports):
    """The modules of an import circle in {module: imported modules}, in order, with the first repeated at the end; []
    if there is no circle."""
    finished = set()

    def visit(module, path):
        if module in path:
            return [*path[path.index(module):], module]
        if module in finished:
            return []
        for other in sorted(imports.get(module, ())):
            found = visit(other, [*path, module])
            if found:
                return found
        finished.add(module)
        return []

    for module in sorted(imports):
        found = visit(module, [])
        if found:
            return found
    return []


class Imports(unittest.TestCase):
    def test_nothing_of_the_package_is_imported_by_a_function(self):
        """A child of fork() would wait forever for the import lock of a module that another thread of its parent was
        importing. So each module is imported with the package; functions import only what lies outside of it, and
        hints, which needs the module typing and which pack() alone imports."""
        folder = os.path.dirname(tokmap.__file__)
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".py")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                functions = [node for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.FunctionDef)]
            self.assertEqual([], [f"{name}:{node.lineno}" for function in functions for node in ast.walk(function)
                                  if isinstance(node, ast.ImportFrom) and node.level and node.module != "hints"])

    def test_no_circle(self):
        """No module of the package imports itself through others. Imports inside functions count."""
        folder = os.path.dirname(tokmap.__file__)
        names = {name[:-3] for name in os.listdir(folder) if name.endswith(".py")}
        imports = {}
        for name in names:
            with open(os.path.join(folder, f"{name}.py"), encoding="utf-8") as file:
                imports[name] = imported_modules(file.read(), names)
        self.assertIn("loader", imports["run"])  # the scan finds imports
        self.assertEqual(" imports ".join(circle(imports)), "")

    def test_the_check_can_fail(self):
        names = {"a", "b", "c"}
        for source in ("from .b import x", "from . import b", "def f():\n    from .b import x", "import tokmap.b",
                       "from tokmap.b import x", "from tokmap import b", "if TYPE_CHECKING:\n    from .b import x"):
            self.assertEqual(imported_modules(source, names), {"b"}, source)
        self.assertEqual(imported_modules("import os, numpy\nfrom ctypes import byref\nfrom . import __version__", names),
                         {"__init__"})
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), ["a", "b", "c", "a"])
        self.assertEqual(circle({"a": {"b"}, "b": {"a"}}), ["a", "b", "a"])
        self.assertEqual(circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}), [])


if __name__ == "__main__":
    unittest.main()
