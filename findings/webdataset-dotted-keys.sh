#!/bin/sh
# SPDX-License-Identifier: MIT
# webdataset-dotted-keys.sh: members whose names differ only after their first dot are one sample.
#
# webdataset 1.0.2, numpy 2.4.6. A sample is the members of a tar with the same key, and the key of a member is its name
# without its extension. One would expect that "doc-1.5.npy" has the key "doc-1.5" and the extension "npy", as Python's
# os.path.splitext() and every shell see it. The extension begins at the first dot of the file's name: the key is
# "doc-1" and the extension "5.npy". Rows whose names have a version or a decimal number are therefore joined to samples
# of several rows, none of which has a member "npy". TarWriter writes such keys without a word. A dot in the name of a
# folder is part of the key. Output seen, for ten rows that were written in each case:
#
#   keys written          rows   samples read   with a member "npy"
#   doc-0, doc-1, ...     10     10             10
#   doc-1.0, doc-1.1, ... 10     1              0
#   v1.0/0, v1.0/1, ...   10     10             10
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check webdataset==1.0.2 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import numpy
import webdataset

path = str(Path(sys.argv[1]) / "rows.tar")
cases = {"doc-0, doc-1, ...": "doc-{}", "doc-1.0, doc-1.1, ...": "doc-1.{}", "v1.0/0, v1.0/1, ...": "v1.0/{}"}
found = []
print('keys written          rows   samples read   with a member "npy"')
for name, key in cases.items():
    with webdataset.TarWriter(path) as writer:
        for i in range(10):
            writer.write({"__key__": key.format(i), "npy": numpy.arange(i + 1)})
    samples = list(webdataset.WebDataset(path, shardshuffle=False))
    found.append((len(samples), sum("npy" in sample for sample in samples)))
    print(f"{name:<21} {10:<6} {found[-1][0]:<14} {found[-1][1]}")
sys.exit(found != [(10, 10), (1, 0), (10, 10)])
END
"$work/venv/bin/python" "$work/try.py" "$work"
