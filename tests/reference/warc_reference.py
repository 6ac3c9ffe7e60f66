# SPDX-License-Identifier: MIT
"""Compares the documents of WARC files with those that warcio reads. Arguments: dump_documents, a folder, how many files,
and a seed."""

import io
import json
import os
import random
import struct
import subprocess
import sys

from warcio.archiveiterator import ArchiveIterator
from warcio.warcwriter import WARCWriter

COLUMNS = ("WARC-Target-URI", "warc-date", "X-Note", "WARC-Type", "X-Absent")
LETTERS = "aB 1\n\r\t\u00e9\u4e2d\U0001f600:/WARC/1.0\r\n\r\n\"\\"
TYPES = ("conversion",) * 5 + ("resource", "metadata", "response", "request", "revisit", "continuation")


def text_make(rng):
    count = rng.choice((0, 1, 5, 300, 300, 20000))
    return "".join(rng.choices(LETTERS, k=rng.randint(0, count))).encode()


def written_by_warcio(rng, path):
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=path.endswith(".gz"), warc_version=rng.choice(("WARC/1.0", "WARC/1.1")))
        writer.write_record(writer.create_warcinfo_record("x", {"software": "test"}))
        for number in range(rng.randint(1, 80)):
            kind = "conversion" if not number else rng.choice(TYPES)
            body = text_make(rng)
            if kind in ("response", "request", "revisit"):
                body = b"HTTP/1.1 200 OK\r\n\r\n" + body if kind != "request" else b"GET / HTTP/1.1\r\n\r\n"
            record = writer.create_warc_record(
                "http://host/%d" % number,
                kind,
                payload=io.BytesIO(body),
                length=len(body),
                warc_content_type=rng.choice(("text/plain", "text/plain; charset=utf-8", "text/html")),
                warc_headers_dict={"X-Note": rng.choice(("a", 'with "quotes"', "\u00e9 and \u4e2d"))},
            )
            writer.write_record(record)


def written_freely(rng, path):
    """Headers as warcio accepts them: newlines alone, any case, blanks around colons, lines without one or continued."""
    with open(path, "wb") as file:
        for number in range(rng.randint(1, 40)):
            body = text_make(rng)
            lines = [
                rng.choice(("WARC-Type", "warc-type", "Warc-Type ")) + ":" + rng.choice(("", " ", "\t ")) + "conversion",
                rng.choice(("Content-Length", "CONTENT-LENGTH")) + ": %d" % len(body),
                "WARC-Target-URI: http://host/%d" % number,
                rng.choice(("WARC-Target-URI: again", "no colon", "X-Note: one\n two\n\tthree", "X-Note : \u00e9 ")),
                rng.choice(("X-Other:", ": nameless", "X-Long: " + "y" * rng.randint(0, 3000))),
            ]
            rng.shuffle(lines)
            end = rng.choice(("\r\n", "\n"))
            header = end.join(["WARC/1." + rng.choice("01")] + [line.replace("\n", end) for line in lines])
            file.write(header.encode() + end.encode() * 2 + body + rng.choice((b"\r\n\r\n", b"\n\n", b"\r\n")))


def expected(path):
    with open(path, "rb") as file:
        for number, record in enumerate(ArchiveIterator(file, no_record_parse=True)):
            kind = (record.content_type or "text/plain").split(";")[0].strip().lower()
            if record.rec_type == "conversion" and kind == "text/plain":
                values = [record.rec_headers.get_header(name) for name in COLUMNS]
                yield number, record.raw_stream.read(), values


def bytes_take(data, at):
    (count,) = struct.unpack_from("<Q", data, at)
    return data[at + 8 : at + 8 + count], at + 8 + count


def found(data, at):
    """The documents of one file, its issues, and where its output ends."""
    documents, issues = [], []
    while data[at : at + 1] != b"E":
        (record,) = struct.unpack_from("<Q", data, at + 1)
        fields, kind = [], data[at : at + 1]
        at += 9
        for _ in range(1 if kind == b"I" else 4 + len(COLUMNS)):
            field, at = bytes_take(data, at)
            fields.append(field)
        if kind == b"I":
            issues.append(fields[0].decode())
        else:
            documents.append((record, fields[0], [json.loads(value) if value else None for value in fields[4:]]))
    sound = struct.unpack_from("<Q", data, at + 9)[0] == 1
    return documents, issues, sound, at + 17


def main():
    program, folder, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    rng = random.Random(seed)
    paths, requests = [], []
    for number in range(count):
        path = os.path.join(folder, "%d.warc%s" % (number, rng.choice(("", ".gz")) if number % 2 else ""))
        (written_by_warcio if number % 2 else written_freely)(rng, path)
        for batch in ("8192", "1048576"):
            paths.append(path)
            requests.append("\t".join((path, "text", "text", "", batch) + COLUMNS))
    output = subprocess.run([program], input="\n".join(requests).encode() + b"\n", stdout=subprocess.PIPE, check=True)
    at = total = 0
    wrong = []
    for path in paths:
        documents, issues, sound, at = found(output.stdout, at)
        wanted = list(expected(path))
        total += len(wanted)
        # A file that has no text at all is an issue.
        if documents != wanted or not sound or bool(issues) != (not wanted):
            first = next((pair for pair in zip(documents, wanted) if pair[0] != pair[1]), None)
            wrong.append("# %s: %d documents, expected %d; %s; %r" % (path, len(documents), len(wanted), issues, first))
    print("1..2")
    print("%s 1 - the documents are those that warcio reads" % ("not ok" if wrong else "ok"))
    print("\n".join(wrong[:10]))
    print("%s 2 - %d documents were compared" % ("ok" if total > count else "not ok", total))
    return 1 if wrong or total <= count else 0


if __name__ == "__main__":
    sys.exit(main())
