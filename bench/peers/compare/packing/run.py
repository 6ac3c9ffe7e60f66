# SPDX-License-Identifier: MIT
"""Runs one packer or pipeline once: run.py PACKER REQUEST, in the Python that has its packages.

REQUEST is a JSON file: what to read ("inputs", "field"), the vocabulary ("json", "ranks", "pattern", "eod",
"width"), the number of processors ("workers"), and where to write ("output"). The process ends when the output is on
storage. The times of its parts are written to OUTPUT.times. A packer that cannot be had here ends with status 3 and
its reason in OUTPUT.absent.
"""
import json
import os
import sys
import time

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from packing import lake, packers, pipelines  # noqa: E402


def main(name, path):
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    started = time.monotonic()
    packer = {**packers.PACKERS, **pipelines.PIPELINES, **lake.LAKES}[name]
    try:
        packer.load(request)
        loaded = time.monotonic()
        packer.pack(request)
    except (ImportError, packers.Unsuitable) as problem:
        with open(request["output"] + ".absent", "w", encoding="utf-8") as file:
            file.write(str(problem) if isinstance(problem, packers.Unsuitable) else f"it cannot be imported: {problem}")
        return 3
    with open(request["output"] + ".times", "w", encoding="utf-8") as file:
        json.dump({"load_s": loaded - started, "about": packer.about()}, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
