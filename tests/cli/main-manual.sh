# SPDX-License-Identifier: MIT
# Every manual page fits 80 columns, and its formatter has no warning about it. It is the groff of this machine, with
# the options of man-db for MANWIDTH=80. Version 1.22 (Debian 12) indents a page by 5 columns, and 1.23 (Debian 13) by
# 7, so a line is counted with the wider indent. A sign of East Asia takes two columns.
. "$TOKMAP_CLI/helpers.sh"
# The pages in which somebody looks for it say that pack writes to object storage.
packing=tokenize_tools/packer/pack
for page in README.md src/python/STORAGE.md $packing/PACKING.md $packing/CLUSTER.md; do
    holds "$TOKMAP_TREE/$page" "-o s3://"
done
need groff python3
cat >manual.py <<'END'
import re
import subprocess
import sys
import unicodedata

FORMAT = "groff -mandoc -Kutf8 -Tutf8 -P-c -rLL=78n -rLT=78n -wmac".split()
faults = []
for page in sys.argv[1:]:
    done = subprocess.run([*FORMAT, page], capture_output=True, encoding="utf-8", check=True)
    faults += [f"{page}: {line}" for line in done.stderr.splitlines()]
    lines = [re.sub(".\b", "", line) for line in done.stdout.splitlines()]
    indent = next(len(line) - len(line.lstrip()) for line in lines if line.startswith(" "))
    for line in lines:
        columns = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in line)
        columns += max(7 - indent, 0) if line.startswith(" ") else 0
        if columns > 80:
            faults.append(f"{page}: {columns} columns: {line}")
sys.exit("\n".join(faults) or 0)
END
PYTHONUTF8=1 python3 manual.py "$TOKMAP_TREE"/tokenize_tools/man/*.[1-9] "$TOKMAP_TREE"/bench/man/*.[1-9]
