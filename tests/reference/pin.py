# SPDX-License-Identifier: MIT
"""pin.py FILE...: writes the hashes of the packages that requirement files name, as the index PyPI gives them.

A line NAME==VERSION [; MARKER] gets a hash for each wheel that an x86_64 or aarch64 Linux with CPython 3.10 to 3.13 can
install. To take a newer version: change the line, run this script, and run the tests.
"""
import json, re, sys, urllib.request

wanted = re.compile(r"-(?:cp31[0-3]-cp31[0-3]|cp3[0-9]+-abi3|py3|py31[0-3]|py2\.py3)-"
                    r"(?:none|abi3|any|(?:none-)?[a-z0-9_.]*manylinux[a-z0-9_.]*_(?:x86_64|aarch64)(?:\..*)?"
                    r"|none-any)\.whl$")

def hashes(name, version):
    with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=60) as answer:
        files = json.load(answer)["releases"].get(version, [])
    found = sorted({file["digests"]["sha256"] for file in files if wanted.search(file["filename"])})
    if not found:
        sys.exit(f"{name} {version} has no wheel for Linux: " + ", ".join(file["filename"] for file in files))
    return found

for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    made = []
    for line in lines:
        asked = re.match(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)\s*(;[^\\]*)?", line)
        if asked:
            words = [line.split("\\")[0].strip()] + [f"--hash=sha256:{one}" for one in hashes(*asked.group(1, 2))]
            made.append(" \\\n    ".join(words))
        elif not line.strip().startswith("--hash="):
            made.append(line)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(made) + "\n")
