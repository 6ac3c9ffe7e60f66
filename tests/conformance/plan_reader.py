#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plan_reader.py FILE - reads a plan and prints its content as JSON.

It was written from src/format/FORMAT.md alone, as an independent check of that page, and needs only the standard
library. It checks hashes if the module xxhash can be imported."""
import json, struct, sys
try:
    from xxhash import xxh3_64_intdigest as xxh3
except ImportError: xxh3 = None

def need(truth, what):
    truth or sys.exit("plan_reader.py: the plan is not valid: check of the " + what + " failed")

def read(path):
    data = open(path, "rb").read()
    need(len(data) >= 128 and data[:8] == b"\x89TPL\r\n\x1a\n", "magic")
    (major, minor, header_bytes, dataset, identity, pad, tokens, seq_len, rows, segments, row_segments, most,
     documents, cut, size, body_hash, header_hash) = struct.unpack_from("<HHI16sII11Q", data, 8)
    need((major, header_bytes) == (1, 128) and identity in (1, 2), "header")
    need(pad != 1 and not (pad and seq_len % pad), "padding of segments")
    need(not xxh3 or (xxh3(data[:120]), xxh3(data[128:])) == (header_hash, body_hash), "header or body hash")
    offset = (128 + 4 * rows + 15) // 16 * 16
    need(1 <= rows <= segments < 2**32 and 1 <= seq_len <= 2**31, "counts")
    need(size == len(data) == offset + 16 * segments and not any(data[128 + 4 * rows:offset]), "length")
    first = struct.unpack_from("<%dI" % rows, data, 128) + (segments,)
    entries = list(struct.iter_unpack("<QII", data[offset:]))
    need(first[0] == 0 and all(a < b for a, b in zip(first, first[1:])), "rows")
    made = [[list(entry[:2]) for entry in entries[a:b]] for a, b in zip(first, first[1:])]
    multiple = pad or 1
    need(all(sum(-(-count // multiple) * multiple for _, count in row) <= seq_len for row in made), "tokens of a row")
    need(max(map(len, made)) == row_segments and (not most or row_segments <= most), "segments of a row")
    need(0 <= cut <= documents <= segments, "documents")
    at, numbers = 0, [entry[2] for entry in entries]
    need(sorted(numbers) == list(range(segments)), "inverse")
    for number in numbers:
        need(entries[number][0] == at and entries[number][1] > 0, "order of the segments")
        at += entries[number][1]
    need(at == tokens, "sum of the segments")
    return {"dataset": dataset.hex(), "identity": identity, "tokens": tokens, "seq_len": seq_len, "rows": made,
            "documents_most": most, **({"pad": pad} if pad else {}), "documents": documents, "cut": cut, "hashes_checked": bool(xxh3)}

if __name__ == "__main__":
    len(sys.argv) == 2 or sys.exit("usage: plan_reader.py FILE (of a plan)")
    print(json.dumps(read(sys.argv[1])))
