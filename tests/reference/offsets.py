# SPDX-License-Identifier: MIT
"""offsets.py: where tokmap finds the tokens of texts, for comparisons with other programs."""
import os
import struct
import subprocess


def found(tokmap, path, texts, recognize=False):
    """For each text None, if it cannot be encoded, or its ids and for each of them where it is, in characters: from the
    one in which the token begins up to, not including, the one before which it ends. A string says what is wrong. That
    offsets ascend within the text is asserted in the program (tokenizer_offsets)."""
    program = os.path.join(os.path.dirname(tokmap), "../tests/dump_offsets")
    given = b"".join(struct.pack("<Q", len(text)) + text for text in (text.encode() for text in texts))
    run = subprocess.run([program, path, "recognize" if recognize else "text"], input=given, capture_output=True)
    if run.returncode:
        return "dump_offsets ended with %d: %s" % (run.returncode, run.stderr.decode())
    made, at = [], 0
    for text in texts:
        status, count = struct.unpack_from("<QQ", run.stdout, at)
        ids, begins, ends = (struct.unpack_from("<%dQ" % count, run.stdout, at + 16 + part * 8 * count) for part in range(3))
        at += 16 + 24 * count
        inside = [number for number, c in enumerate(text) for _ in c.encode()] + [len(text)]
        made.append(None if status else (list(ids), [(inside[b], inside[e - 1] + 1 if e > b else inside[b])
                                                     for b, e in zip(begins, ends)]))
    return made


def nested(one, other):
    """Whether one of two places is within the other one, or at its border."""
    return one[0] <= other[0] and other[1] <= one[1] or other[0] <= one[0] and one[1] <= other[1]


def meet(one, other):
    """Whether two places overlap, or one begins where the other one ends."""
    return one[0] <= other[1] and other[0] <= one[1]
