# SPDX-License-Identifier: MIT
"""Damages Parquet files where it matters, and compares what tokmap reads from them with what pyarrow reads.

    parquet_mutations.py PROGRAM FOLDER FILES SEED

PROGRAM is dump_documents. A file is a function of its seed and number: pyarrow writes a table of random shape with
random options, which is read unchanged, and then some damaged copies of it are. The file is taken apart into the
structs of its footer, the headers of its pages, and the bytes of the pages. Damage changes these parts, and the file is
put together again, so that the damage is not found by what surrounds it: lengths and places are right unless they are
damaged.

A copy must be refused, whole or from some row on, or in some rows; or the values are those that pyarrow reads. Rows
that follow a refused one count, too: they must be the rows that pyarrow reads there. What pyarrow refuses is not
compared.
"""

import copy
import datetime
import decimal
import os
import random
import struct
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_reference import Reader, expected, same_value

COPIES = 12  # damaged ones of each file
LARGEST = 1 << 24


# ---- Thrift's compact protocol: a struct is a list of [id, type, value], a list is [type of elements, values] ----

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)


class Bytes:
    """A place in bytes, from which values are taken."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        if count > len(self.data) - self.at:
            raise ValueError("the bytes end")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def value(self, kind):
        if kind in INTEGERS:
            return self.zigzag()
        if kind == BYTE:
            return self.take(1)[0]
        if kind == DOUBLE:
            return self.take(8)
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (LIST, SET):
            head = self.take(1)[0]
            count = head >> 4 if head >> 4 < 15 else self.varint()
            element = head & 15
            return [element, [self.take(1) == b"\1" if element in (TRUE, FALSE) else self.value(element)
                              for _ in range(count)]]
        if kind == STRUCT:
            fields, last = [], 0
            while (head := self.take(1)[0]) != 0:
                last = last + (head >> 4) if head >> 4 else self.zigzag()
                kind = head & 15
                fields.append([last, kind, kind == TRUE if kind in (TRUE, FALSE) else self.value(kind)])
            return fields
        raise ValueError(f"type {kind}")


def varint(value):
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes(made) + bytes([value])


def zigzag(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def encoded(kind, value):
    if kind in INTEGERS:
        return zigzag(value)
    if kind == BYTE:
        return bytes([value & 255])
    if kind == DOUBLE:
        return value
    if kind == BINARY:
        return varint(len(value)) + value
    if kind in (LIST, SET):
        element, values = value
        count = len(values)
        head = bytes([count << 4 | element]) if count < 15 else bytes([0xf0 | element]) + varint(count)
        return head + b"".join(b"\1" if v is True else b"\2" if v is False else encoded(element, v) for v in values)
    return b"".join(bytes([(TRUE if v else FALSE) if k in (TRUE, FALSE) else k]) + zigzag(i) +
                    (b"" if k in (TRUE, FALSE) else encoded(k, v)) for i, k, v in value) + b"\0"


def field(fields, number):
    return next((entry for entry in fields if entry[0] == number), None)


def get(fields, number, other=None):
    entry = field(fields, number)
    return entry[2] if entry else other


def put(fields, number, value):
    entry = field(fields, number)
    if entry:
        entry[2] = value


# ---- a file in parts ----

class File:
    """The footer, and for each chunk, in the order of the footer, its description and its pages: [header, bytes]."""

    def __init__(self, data):
        size = struct.unpack("<I", data[-8:-4])[0]
        self.footer = Bytes(data[-8 - size:-8]).value(STRUCT)
        self.chunks = []
        for group in get(self.footer, 4)[1]:
            for chunk in get(group, 1)[1]:
                about = get(chunk, 3)
                begin = min(get(about, 9), get(about, 11) or get(about, 9))
                at, pages = Bytes(data, begin), []
                while at.at < begin + get(about, 7):
                    header = at.value(STRUCT)
                    pages.append([header, at.take(get(header, 3))])
                self.chunks.append([about, pages])

    def page(self, rng):
        """A page, more often one of the columns that are compared; None if there is none."""
        compared = [pages for about, pages in self.chunks if get(about, 3)[1][0] in (b"text", b"ids")]
        lists = compared if rng.random() < 0.7 else [pages for _, pages in self.chunks]
        pages = [page for pages in lists for page in pages]
        return rng.choice(pages) if pages else None

    def bytes(self, moves, lies):
        """moves: the chunks are stored in another order. lies: changes descriptions whose places and lengths are set."""
        made = bytearray(b"PAR1")
        order = list(range(len(self.chunks)))
        moves(order)
        for i in order:
            about, pages = self.chunks[i]
            begin, data = len(made), None
            for header, body in pages:
                if get(header, 1) != 2 and data is None:
                    data = len(made)
                made += encoded(STRUCT, header) + body
            put(about, 7, len(made) - begin)
            put(about, 9, begin if data is None else data)
            put(about, 11, begin)
        lies()
        footer = encoded(STRUCT, self.footer)
        return bytes(made) + footer + struct.pack("<I", len(footer)) + b"PAR1"


# ---- damage ----

ODD = (0, 1, -1, 2, 3, 4, 5, 7, 8, 20, 100, 127, 128, 255, 256, 65535, 2**31 - 1, -2**31, 2**31, 2**32, 2**62, -2**63)


def some_number(rng, value):
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(ODD)
    return max(-2**63, min(2**63 - 1, value + rng.choice([-100, -8, -2, -1, 1, 1, 2, 8, 100])))


def places(kind, value, found):
    """Lists (container, index) of everything in a struct or list."""
    if kind == STRUCT:
        for i, (_, inner, child) in enumerate(value):
            found.append((value, i))
            places(inner, child, found)
    elif kind in (LIST, SET):
        for i, child in enumerate(value[1]):
            found.append((value[1], i))
            places(value[0], child, found)


def damage_struct(rng, tree):
    found = []
    places(STRUCT, tree, found)
    container, i = rng.choice(found)
    entry = container[i]
    if isinstance(entry, int):
        container[i] = some_number(rng, entry)
    elif not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], int) and isinstance(entry[1], int)):
        rng.choice([lambda: container.pop(i), lambda: container.insert(i, copy.deepcopy(entry))])()
    elif entry[1] in INTEGERS and rng.random() < 0.85:
        entry[2] = some_number(rng, entry[2])
    elif entry[1] in (TRUE, FALSE):
        entry[2] = not entry[2]
    elif entry[1] == BINARY:
        entry[2] = rng.choice([b"", b"text", b"email", entry[2] + b"x", entry[2][:-1], bytes(rng.randbytes(5))])
    elif rng.random() < 0.5:
        container.pop(i)
    else:
        entry[0] += rng.choice([1, 2, 5, 30])


def damage_bytes(rng, body):
    made = bytearray(body)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.choice([0, rng.randrange(len(made) + 1), rng.randrange(min(len(made), 20) + 1)])
        kind = rng.randrange(5)
        if kind == 0:
            made[at:at + 1] = bytes([rng.choice([0, 1, 2, 3, 4, 8, 31, 32, 63, 64, 127, 128, 129, 254, 255])])
        elif kind == 1:
            made[at:at] = rng.choice([b"\0", b"\xff" * 9 + b"\1", b"\x80\1", b"\3", rng.randbytes(3)])
        elif kind == 2:
            del made[at:at + rng.choice([1, 2, 9])]
        elif kind == 3:
            made[at:at + 4] = struct.pack("<I", rng.choice([0, 1, 4, len(made), 2**31 - 1, 2**31, 2**32 - 1]))
        elif at < len(made):
            made[at] ^= 1 << rng.randrange(8)
    return bytes(made)


def damage_page(rng, page):
    header, body = page
    damaged = damage_bytes(rng, body)
    if rng.random() < 0.8:
        more = len(damaged) - len(body)
        put(header, 2, get(header, 2) + more)
        put(header, 3, get(header, 3) + more)
    page[1] = damaged
    if rng.random() < 0.9:
        header[:] = [entry for entry in header if entry[0] != 4]  # its checksum


def damage_order(rng, file):
    """Pages that are lost, come twice, or are exchanged, also between columns."""
    lists = [pages for _, pages in file.chunks if pages]
    one, other = rng.choice(lists), rng.choice(lists)
    i, k = rng.randrange(len(one)), rng.randrange(len(other))
    kind = rng.randrange(4)
    if kind == 0:
        one[i], other[k] = other[k], one[i]
    elif kind == 1:
        one.insert(i, copy.deepcopy(other[k]))
    elif kind == 2:
        one.pop(i)
    else:
        put(one[i][0], 1, rng.choice([0, 1, 1, 2, 3, 4, 8, 100, 127, 2**31 - 1, -1]))


def damage_places(rng, file):
    """Where chunks are and how long."""
    about, _ = rng.choice(file.chunks)
    other, pages = rng.choice(file.chunks)
    number = rng.choice([5, 7, 7, 9, 9, 11])
    if rng.random() < 0.5 and get(other, number) is not None:
        inner = sum(len(encoded(STRUCT, header)) + len(body) for header, body in pages[:rng.randrange(len(pages) + 1)])
        put(about, number, get(other, number) + (inner if number != 5 else 0))
    elif rng.random() < 0.2:
        file.footer[:] = [entry for entry in file.footer if entry[0] != 6]
    else:
        put(about, number, some_number(rng, get(about, number, 0)))


def damaged(rng, original):
    file = copy.deepcopy(original)
    lies, what = [], []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind = rng.random()
        page = file.page(rng)
        if kind < 0.2 or page is None:
            lies.append(lambda: damage_struct(rng, file.footer))
        elif kind < 0.35:
            lies.append(lambda: damage_places(rng, file))
        elif kind < 0.6:
            damage_struct(rng, page[0])
        elif kind < 0.75:
            damage_order(rng, file)
        else:
            damage_page(rng, page)
        what.append(round(kind, 2))
    # Only chunks that lie one behind the other are found by the pages before them.
    moves = rng.shuffle if rng.random() < 0.3 else lambda order: None
    return file.bytes(moves, lambda: [lie() for lie in lies]), what


# ---- tables ----

def some_text(rng):
    return rng.choice(["", "a", "é", "x" * 300, "a quick brown fox", "\n", '"', "\\", "\0"]) + str(
        rng.randrange(10 ** rng.randrange(1, 12)))


def some_column(rng, rows, nulls):
    """A type that columns are kept of, and values, as Python has them after they are read."""
    half = struct.Struct("<e")
    precision = rng.randrange(1, 77)
    scale, few = rng.randrange(precision + 1), min(38, precision)
    kind, value = rng.choice([
        (pa.int8(), lambda: rng.randrange(-128, 128)),
        (pa.uint8(), lambda: rng.randrange(256)),
        (pa.int32(), lambda: rng.choice([-2**31, 2**31 - 1, rng.randrange(100)])),
        (pa.uint32(), lambda: rng.choice([0, 2**32 - 1])),
        (pa.int64(), lambda: rng.choice([-2**63, 2**63 - 1, rng.randrange(100)])),
        (pa.uint64(), lambda: rng.choice([0, 2**64 - 1])),
        (pa.float16(), lambda: half.unpack(rng.randbytes(2))[0]),
        (pa.float64(), lambda: rng.choice([0.5, 1e300, float("nan"), float("-inf"), rng.random()])),
        (pa.bool_(), lambda: rng.random() < 0.5),
        (pa.uuid(), lambda: uuid.UUID(bytes=rng.randbytes(16))),
        (pa.decimal128(few, min(few, scale)), lambda: some_decimal(rng, few, min(few, scale))),
        (pa.decimal256(precision, scale), lambda: some_decimal(rng, precision, scale)),
        (pa.string(), lambda: some_text(rng)),
        (pa.null(), lambda: None),
    ])
    values = [None if rng.random() < nulls else value() for _ in range(rows)]
    stored = [v and v.bytes for v in values] if kind == pa.uuid() else values
    return pa.array(stored, kind)


def some_decimal(rng, precision, scale):
    with decimal.localcontext(prec=100):
        return decimal.Decimal(rng.randrange(-10**precision + 1, 10**precision)).scaleb(-scale)


def refused_column(rng, rows):
    """One that is not kept."""
    day = datetime.date(2020, 2, 29)
    return rng.choice([pa.array([day] * rows, pa.date32()), pa.array([5] * rows, pa.timestamp("us")),
                       pa.array([7] * rows, pa.time64("us")), pa.array([b"abcd"] * rows, pa.binary(4))])


def some_table(rng):
    rows = rng.choice([1, 2, 7, 8, 9, 50, 300])
    nulls = rng.choice([0, 0, 0.1, 0.9])
    pool = [some_text(rng) for _ in range(rng.choice([1, 2, 5, 40]))]
    text = lambda: None if rng.random() < nulls else rng.choice([rng.choice(pool), some_text(rng)])
    texts = lambda: [text() for _ in range(rows)]
    ids = [None if rng.random() < nulls else [rng.randrange(1000) for _ in range(rng.choice([0, 1, 3, 3, 30]))]
           for _ in range(rows)]
    columns = {"text": pa.array(texts(), rng.choice([pa.string(), pa.large_string(), pa.string_view()])),
               "email": pa.array(texts(), pa.string()),
               "ids": pa.array(ids, pa.list_(rng.choice([pa.int32(), pa.int64()]))),
               "refused": refused_column(rng, rows)}
    for i in range(rng.randrange(3)):
        columns[f"kept{i}"] = some_column(rng, rows, nulls)
    names = list(columns)
    rng.shuffle(names)
    return pa.table({name: columns[name] for name in names})


def write(rng, table, path):
    rows = table.num_rows
    options = dict(compression=rng.choice(["NONE", "NONE", "NONE", "SNAPPY", "ZSTD"]),
                   data_page_version=rng.choice(["1.0", "2.0"]), row_group_size=rng.choice([1 + rows // 3, 100]),
                   data_page_size=rng.choice([10, 100, 10**6]), max_rows_per_page=rng.choice([1, 7, 20000]),
                   write_batch_size=rng.choice([1, 3, 1024]), write_page_index=rng.random() < 0.3,
                   write_page_checksum=rng.random() < 0.3, write_statistics=rng.random() < 0.5,
                   use_dictionary=rng.random() < 0.5, dictionary_pagesize_limit=rng.choice([10, 10**6]),
                   store_schema=rng.random() < 0.3, store_decimal_as_integer=rng.random() < 0.5)
    if not options["use_dictionary"] and rng.random() < 0.7:
        options["column_encoding"] = {
            "text": rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]),
            "ids.list.element": rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])}
    pq.write_table(table, path, **options)
    return options


# ---- comparison ----

def kept_value(value):
    """A value that pyarrow read, as same_value() compares it: decimals as they are, UUIDs as texts."""
    return str(value) if isinstance(value, uuid.UUID) else value


def same_kept(text, value):
    if isinstance(value, decimal.Decimal):
        return decimal.Decimal(text.decode()).compare_total(value) == 0 if text else False
    return same_value(text, value)


def read_by_pyarrow(path, names):
    try:
        table = pq.ParquetFile(path).read(columns=names)
        return {name: table[name].to_pylist() for name in names}
    except Exception:  # of many kinds
        return None


def different(content, records, about_file, rows, first, kept):
    """What tokmap delivers that pyarrow does not, or None. kept: values by column."""
    for row, got in records.items():
        if isinstance(got, str):
            continue
        if row >= rows:
            return f"row {row} of {rows}: {str(got)[:200]}"
        want = expected(content, first[row], Ellipsis)
        if want != got[:2]:
            return f"row {row}: got {str(got[:2])[:200]}, expected {str(want)[:200]}"
        for text, (name, values) in zip(got[2], kept.items()):
            if not same_kept(text, kept_value(values[row])):
                return f"row {row}: column {name} is {text[:100]}, expected {values[row]!r}"
    refused = False  # an issue is about a row, or about it and some that follow
    for row in range(0 if about_file else rows):
        refused = isinstance(records[row], str) if row in records else refused
        if row not in records and not refused:
            return f"row {row} of {rows} is missing, without a word"
    return None


def check_original(reader, path, table):
    """The file as it was written: everything must be read."""
    kept = {name: table[name].to_pylist() for name in table.column_names if name.startswith("kept")}
    for content, name, columns in (("text", "text", kept), ("text", "email", {}), ("ids", "ids", kept)):
        values = table[name].to_pylist()
        records, sound, about_file = reader.read(path, content, name, columns=list(columns))
        fault = different(content, records, about_file, table.num_rows, values, columns)
        lost = sum(isinstance(got, str) for got in records.values()) - values.count(None)
        if fault or about_file or lost or not sound:
            return f"{content} {name}: {fault or about_file or lost or 'the accounts do not add up'}"
    for columns, name in (([], "refused"), (["refused"], "text")):
        records, _, about_file = reader.read(path, "text", name, columns=columns)
        if records or len(about_file) != 1 or "the column 'refused' of the Parquet file has" not in about_file[0]:
            return f"the column 'refused' of the type {table['refused'].type} is not refused: {about_file}"
    return None


def main(program, folder, files, seed):
    reader = Reader(program)
    counts = {"equal": 0, "refused": 0, "refused in part": 0, "refused by pyarrow": 0}
    faults = []
    for number in range(files):
        rng = random.Random(seed * 1000003 + number)
        path = os.path.join(folder, f"{number}.parquet")
        table = some_table(rng)
        options = write(rng, table, path)
        fault = check_original(reader, path, table)
        if fault:
            faults.append(f"file {number} of seed {seed}, {options}: {fault}")
        if fault or any(read_by_pyarrow(path, [name]) != {name: table[name].to_pylist()} for name in ("text", "ids")):
            continue  # pyarrow 26 reads no row of some lists that it writes
        with open(path, "rb") as file:
            original = File(file.read())
        for copy_number in range(COPIES):
            try:
                data, what = damaged(rng, original)
            except (IndexError, TypeError, struct.error, OverflowError):
                continue  # damage that makes no file
            if len(data) > LARGEST:
                continue
            with open(path, "wb") as file:
                file.write(data)
            for content, name in (("text", "text"), ("ids", "ids")):
                records, sound, about_file = reader.read(path, content, name)
                values = read_by_pyarrow(path, [name])
                if not sound:
                    faults.append(f"copy {copy_number} of file {number} of seed {seed}: the accounts do not add up")
                if values is None:
                    counts["refused by pyarrow"] += 1
                    continue
                fault = different(content, records, about_file, len(values[name]), values[name], {})
                if fault:
                    faults.append(f"copy {copy_number} of file {number} of seed {seed}, {what}, {content}: {fault}")
                    os.replace(path, os.path.join(folder, f"wrong-{seed}-{number}-{copy_number}-{content}.parquet"))
                    break
                counts["equal" if not about_file else "refused in part" if records else "refused"] += 1
        if os.path.exists(path):
            os.remove(path)
    for fault in faults[:20]:
        print(f"# {fault}")
    print(f"{'not ok' if faults or not counts['equal'] else 'ok'} - {files} files, "
          f"{', '.join(f'{count} {name}' for name, count in counts.items())}, {len(faults)} differ")
    print("1..1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
