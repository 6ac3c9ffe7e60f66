#!/bin/sh
# SPDX-License-Identifier: MIT
# zstandard-skippable-frame.sh: read_to_iter() gives nothing, without an error, if a file begins with a skippable frame.
#
# zstandard 0.25.0. A Zstandard file may begin with a skippable frame, which a decompressor leaves out; pzstd writes one
# before each frame, with the size of the next. ZstdDecompressor has several ways to read a stream. One would expect
# that all of them give the same bytes. read_to_iter() and decompressobj() end at the end of the first frame, and do not
# say so: a file that begins with a skippable frame is empty for them, and of two frames they give the first.
# stream_reader() and copy_stream() give everything. decompress() raises an error for the skippable frame, but gives the
# first of two frames without one. So a program that counts the documents of a corpus may count none. Output seen, for a
# skippable frame and the frame "one", and for the frames "one" and "two":
#
#   call                skippable, one    one, two
#   read_to_iter        nothing           one
#   decompressobj       nothing           one
#   decompress          ZstdError         one
#   stream_reader       one               onetwo
#   copy_stream         one               onetwo
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check zstandard==0.25.0

cat >"$work/try.py" <<'END'
import io
import sys

import zstandard

reader = zstandard.ZstdDecompressor()
SKIPPABLE = bytes.fromhex("502a4d18 04000000") + b"size"
one, two = zstandard.compress(b"one"), zstandard.compress(b"two")


def copied(content):
    output = io.BytesIO()
    reader.copy_stream(io.BytesIO(content), output)
    return output.getvalue()


calls = {
    "read_to_iter": lambda content: b"".join(reader.read_to_iter(io.BytesIO(content))),
    "decompressobj": lambda content: reader.decompressobj().decompress(content),
    "decompress": reader.decompress,
    "stream_reader": lambda content: reader.stream_reader(io.BytesIO(content)).read(),
    "copy_stream": copied,
}


def seen(call, content):
    try:
        return call(content).decode() or "nothing"
    except zstandard.ZstdError:
        return "ZstdError"


print("call                skippable, one    one, two")
found = []
for name, call in calls.items():
    found.append((seen(call, SKIPPABLE + one), seen(call, one + two)))
    print(f"{name:19} {found[-1][0]:17} {found[-1][1]}")
first, whole = ("nothing", "one"), ("one", "onetwo")
sys.exit(found != [first, first, ("ZstdError", "one"), whole, whole])
END
"$work/venv/bin/python" "$work/try.py"
