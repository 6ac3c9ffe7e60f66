# SPDX-License-Identifier: MIT
"""parquet_groups.py JSONL PARQUET ROWS [LIE] - writes the fields "text" and "n" of a JSONL file as the columns of an
uncompressed Parquet file whose row groups have ROWS rows each and whose pages have at most 50. ROWS may be a list with
commas, which repeats. LIE damages the file:

    header      the header of the second page of texts in the row group in the middle
    page        the length of the first text in that page
    utf8        the first text in that page, which is not UTF-8
    overlap     the footer says that the last row group has the pages of the one before
    outside     ... that the last row group begins behind the file
    rows        ... that each row group has 2^62 rows
    groups      ... that there are 2^31 row groups
    backwards   the row groups are stored in the opposite order
"""
import json
import struct
import sys

I32, I64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
PAGE_ROWS = 50


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number):
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def text(value):
    return varint(len(value)) + value


def listed(kind, items, count=None):
    count = len(items) if count is None else count
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return head + b"".join(items)


def thrift(*fields):
    """A struct of (number, type, encoded value), in ascending order."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([number - last << 4 | kind]) + value
        last = number
    return out + b"\0"


def page(values):
    body = b"".join(values)
    header = thrift((1, I32, zigzag(0)), (2, I32, zigzag(len(body))), (3, I32, zigzag(len(body))),
                    (5, STRUCT, thrift((1, I32, zigzag(len(values))), (2, I32, zigzag(0)), (3, I32, zigzag(3)),
                                       (4, I32, zigzag(3)))))
    return header, body


def chunk_of(name, kind, values, lie):
    """The pages of a column, and what the footer says of them as a function of where they are."""
    pages, claimed = b"", 1 << 62 if lie == "rows" else len(values)
    for first in range(0, len(values), PAGE_ROWS):
        header, body = page(values[first:first + PAGE_ROWS])
        if lie == "header" and first == PAGE_ROWS:
            header = b"\xff" * len(header)
        if lie == "page" and first == PAGE_ROWS:
            body = b"\xff\xff\xff\x7f" + body[4:]
        if lie == "utf8" and first == PAGE_ROWS:
            body = body[:4] + b"\xff" + body[5:]
        pages += header + body

    def meta(offset):
        return thrift((2, I64, zigzag(offset)),
                      (3, STRUCT, thrift((1, I32, zigzag(kind)), (2, LIST, listed(I32, [zigzag(0)])),
                                         (3, LIST, listed(TEXT, [text(name)])), (4, I32, zigzag(0)),
                                         (5, I64, zigzag(claimed)), (6, I64, zigzag(len(pages))),
                                         (7, I64, zigzag(len(pages))), (9, I64, zigzag(offset)))))
    return pages, meta


def main(source, target, sizes, lie=""):
    records = [json.loads(line) for line in open(source, encoding="utf-8") if line.strip()]
    sizes = [int(size) for size in sizes.split(",")]
    groups, first = [], 0
    while first < len(records):
        rows = records[first:first + sizes[len(groups) % len(sizes)]]
        groups.append(rows)
        first += len(rows)
    chunks = []
    for index, rows in enumerate(groups):
        texts = [record["text"].encode() for record in rows]
        own = lie if index == len(groups) // 2 or lie == "rows" else ""
        chunks.append([chunk_of(b"text", 6, [struct.pack("<I", len(value)) + value for value in texts], own),
                       chunk_of(b"n", 2, [struct.pack("<q", record["n"]) for record in rows], lie * (lie == "rows"))])
    data, places = bytearray(b"PAR1"), {}
    for index in reversed(range(len(groups))) if lie == "backwards" else range(len(groups)):
        places[index] = []
        for pages, _ in chunks[index]:
            places[index].append(len(data))
            data += pages
    if lie == "overlap":
        places[len(groups) - 1] = places[len(groups) - 2]
    if lie == "outside":
        places[len(groups) - 1] = [1 << 40] * 2
    listed_groups = []
    for index, rows in enumerate(groups):
        columns = [meta(place) for place, (_, meta) in zip(places[index], chunks[index])]
        listed_groups.append(thrift((1, LIST, listed(STRUCT, columns)), (2, I64, zigzag(1)),
                                    (3, I64, zigzag(1 << 62 if lie == "rows" else len(rows)))))
    schema = [thrift((4, TEXT, text(b"schema")), (5, I32, zigzag(2))),
              thrift((1, I32, zigzag(6)), (3, I32, zigzag(0)), (4, TEXT, text(b"text")), (6, I32, zigzag(0))),
              thrift((1, I32, zigzag(2)), (3, I32, zigzag(0)), (4, TEXT, text(b"n")))]
    footer = thrift((1, I32, zigzag(1)), (2, LIST, listed(STRUCT, schema)), (3, I64, zigzag(len(records))),
                    (4, LIST, listed(STRUCT, listed_groups, 1 << 31 if lie == "groups" else None)))
    with open(target, "wb") as out:
        out.write(data + footer + struct.pack("<I", len(footer)) + b"PAR1")
    print(len(groups), "row groups of", len(data) + len(footer) + 8, "bytes")


main(*sys.argv[1:])
