#!/bin/sh
# SPDX-License-Identifier: MIT
# polars-lone-surrogate.sh: the first half of a surrogate pair in JSON becomes the character NUL in polars.
#
# polars 2.1.0. JSON of the web has texts that were cut in the middle of an emoji, so that the escape \ud83d stands
# without its second half. Such an escape has no character. One would expect an error, as polars gives for a second half
# alone, or U+FFFD. polars makes it U+0000, without a message, in read_ndjson() as in str.json_decode(). A text with NUL
# is valid UTF-8, so nothing later objects, but a program in C may end the text there, and a tokenizer gives a token
# that the corpus did not have. A complete pair is read correctly. Output seen:
#
#   JSON             read_ndjson()      json_decode()
#   "a\ud83db"       a U+0000 b         a U+0000 b
#   "a\ude00b"       ComputeError       ComputeError
#   "a\ud83d\ude00b" a U+1F600 b        a U+1F600 b
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check polars==2.1.0

cat >"$work/try.py" <<'END'
import io
import sys

import polars

texts = [r'"a\ud83db"', r'"a\ude00b"', r'"a\ud83d\ude00b"']


def lines(text):
    return polars.read_ndjson(io.BytesIO(b'{"text":%s}\n' % text.encode()))["text"][0]


def decoded(text):
    return polars.Series([text]).str.json_decode(polars.String)[0]


def shown(read, text):
    try:
        return " ".join(sign if sign.isalpha() else f"U+{ord(sign):04X}" for sign in read(text))
    except polars.exceptions.ComputeError:
        return "ComputeError"


print("JSON             read_ndjson()      json_decode()")
found = []
for text in texts:
    found.append([shown(read, text) for read in (lines, decoded)])
    print(f"{text:16} {found[-1][0]:18} {found[-1][1]}")
sys.exit(found != [[seen] * 2 for seen in ("a U+0000 b", "ComputeError", "a U+1F600 b")])
END
"$work/venv/bin/python" "$work/try.py"
