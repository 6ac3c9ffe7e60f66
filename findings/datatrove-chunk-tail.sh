#!/bin/sh
# SPDX-License-Identifier: MIT
# datatrove-chunk-tail.sh: with shuffle_chunk_size, each task of datatrove leaves out its last tokens, or all of them.
#
# datatrove 0.10.1, tokenizers 0.23.3, NumPy 2.4.6. DocumentTokenizer(shuffle_chunk_size=n) cuts the tokens of a task
# into chunks of n and shuffles these, so that windows can be read in order. One would expect that the last chunk is
# merely shorter. It is left out; a comment in the source says so, its documentation string does not. That is up to n -
# 1 tokens of each task, so with many tasks, or a chunk of several windows, it is no longer a rounding. A task that has
# fewer tokens than a chunk writes an empty file, and its metadata say 0 tokens. No warning is given, and the statistics
# of the run still count every token. Output seen, for 100 documents of 10 tokens:
#
#   chunk   tokens in the file   tokens in the statistics
#   none    1000                 1000
#   100     1000                 1000
#   64      960                  1000
#   900     900                  1000
#   1001    0                    1000
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datatrove==0.10.1 tokenizers==0.23.3 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import numpy as np
from datatrove.data import Document
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.utils.logging import logger
from tokenizers import Tokenizer, models, pre_tokenizers

logger.remove()
work = Path(sys.argv[1])
tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "word": 1, "<end>": 2}, unk_token="<unk>"))
tokenizer.add_special_tokens(["<end>"])
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer.save(str(work / "tokenizer.json"))


def tokens(chunk):
    """Returns the number of tokens in the file of a task, and in the statistics of the step."""
    folder = work / f"chunk {chunk}"
    step = DocumentTokenizer(output_folder=str(folder), tokenizer_name_or_path=str(work / "tokenizer.json"),
                             eos_token="<end>", shuffle_documents=False, shuffle_chunk_size=chunk, seed=1)
    step.run((Document(text=" ".join(["word"] * 9), id=str(i)) for i in range(100)), 0, 1)
    file, = folder.glob("*.ds")
    stored = np.fromfile(file, "<u2")
    assert len(stored) == int(Path(f"{file}.metadata").read_text().split("\n")[1])
    return len(stored), int(step.stats["tokens"].total)


print("chunk   tokens in the file   tokens in the statistics")
found = {}
for chunk in (None, 100, 64, 900, 1001):
    found[chunk] = tokens(chunk)
    print(f"{chunk or 'none'!s:7} {found[chunk][0]:<20} {found[chunk][1]}")
stored = {None: 1000, 100: 1000, 64: 960, 900: 900, 1001: 0}
sys.exit(found != {chunk: (count, 1000) for chunk, count in stored.items()})
END
"$work/venv/bin/python" "$work/try.py" "$work"
