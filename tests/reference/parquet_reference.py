# SPDX-License-Identifier: MIT
"""Compares what tokmap reads from Parquet files with what pyarrow reads from them.

    parquet_reference.py PROGRAM FOLDER FILES SEED [FIRST]   generated files, from number FIRST (0)
    parquet_reference.py PROGRAM --files FOLDER              the files below a folder, as apache/parquet-testing has

PROGRAM is dump_documents. A generated file is a function of its seed and number: pyarrow, DuckDB, Polars, or
fastparquet writes a table of random shape with random options. Texts, lists of ids, masks, pairs of texts, fields of
structs, and kept columns are read from each file, and of every second file by ranges of a URL. A combination that its
writer or pyarrow refuses is counted and left out.
"""

import json
import math
import os
import random
import struct
import subprocess
import sys
import time
import urllib.parse

import duckdb
import fastparquet
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "remote"))
from object_server import ObjectServer  # noqa: E402

LIMIT = 1 << 32  # ids are below it


class Reader:
    """A process of dump_documents, which reads file after file."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _number(self):
        data = self.process.stdout.read(8)
        if len(data) < 8:
            raise EOFError("dump_documents ended")
        return struct.unpack("<Q", data)[0]

    def _bytes(self):
        return self.process.stdout.read(self._number())

    def read(self, path, content, field, second="", batch=65536, columns=()):
        """Returns {record: document or message}, whether the accounts add up, and the messages about the whole file."""
        line = "\t".join([path, content, field, second, str(batch), *columns]) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        records, about_file, last = {}, [], -1
        while True:
            kind = self.process.stdout.read(1)
            if kind == b"D":
                record = self._number()
                text, second_text, ids, mask = self._bytes(), self._bytes(), self._bytes(), self._bytes()
                values = [self._bytes() for _ in columns]
                if record <= last:
                    raise AssertionError(f"record {record} follows record {last}")
                last = record
                if content == "ids":
                    ids = list(struct.unpack(f"<{len(ids) // 4}I", ids))
                    records[record] = (ids, list(mask) or [1] * len(ids) if second else None, values)
                else:
                    records[record] = (text, second_text if content == "prompt" else None, values)
            elif kind == b"I":
                record = self._number()
                message = self._bytes().decode("utf-8", "replace")
                if record == (1 << 64) - 1:
                    about_file.append(message)
                else:
                    records[record] = message
            elif kind == b"E":
                status, sound = self._number(), self._number()
                return records, sound == 1 and status != 0, about_file
            else:
                raise EOFError(f"dump_documents ended while it read {path}")


# ---- what pyarrow reads ----

def plain(value):
    return value.encode() if isinstance(value, str) else value


def ids_of(value):
    """The list of ids as tokmap must deliver it, or None if it is not one."""
    if value is None or any(i is None or i is True or i is False or not 0 <= i < LIMIT for i in value):
        return None
    return list(value)


def mask_of(value, count):
    if value is None or len(value) != count or any(i is None or i not in (0, 1) for i in value):
        return None
    return [int(i) for i in value]


def is_text(value):
    if not isinstance(value, bytes):
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def expected(content, first, second):
    """first and second are values of one row. Returns the document, or None if there must be an issue."""
    if content == "ids":
        ids = ids_of(first)
        mask = mask_of(second, len(ids)) if ids is not None and second is not Ellipsis else None
        return None if ids is None or (second is not Ellipsis and mask is None) else (ids, mask)
    first, second = plain(first), None if second is Ellipsis else plain(second)
    return None if not is_text(first) or (content == "prompt" and not is_text(second)) else (first, second)


def same_value(json_text, value):
    """Whether the JSON text of a kept column is the value, which pyarrow read."""
    if value is None:
        return json_text in (b"", b"null")
    got = json.loads(json_text) if json_text else None
    if isinstance(value, float):
        return got is None if not math.isfinite(value) else got == value
    return got == value and isinstance(got, bool) == isinstance(value, bool)


def compare(reader, path, rows, content, first, second=None, columns=None, **options):
    """first, second: (name, values). columns: {name: values}. Returns None, or what differs."""
    columns = columns or {}
    records, sound, about_file = reader.read(path, content, first[0], second[0] if second else "",
                                             columns=list(columns), **options)
    if about_file:
        return f"refused: {about_file[0]}"
    if not sound:
        return "the accounts do not add up"
    if sorted(records) != list(range(rows)):
        missing = sorted(set(range(rows)) ^ set(records))[:5]
        return f"{len(records)} records, expected {rows}; differing numbers begin with {missing}"
    for row in range(rows):
        want = expected(content, first[1][row], second[1][row] if second else Ellipsis)
        got = records[row]
        if (want is None) != isinstance(got, str):
            return f"row {row}: got {str(got)[:300]}, expected {str(want or 'an issue')[:200]}"
        if want is None:
            continue
        if want != got[:2]:
            return f"row {row}: got {str(got[:2])[:200]}, expected {str(want)[:200]}"
        for value, (name, values) in zip(got[2], columns.items()):
            if not same_value(value, values[row]):
                return f"row {row}: column {name} is {value[:100]}, expected {values[row]!r}"
    return None


# ---- generated tables ----

def some_text(rng, shape):
    if shape == "tiny":
        return rng.choice(["", "a", "b", "xyz", "\n", "é"])
    if shape == "repeat":
        return f"value {rng.randrange(5)}"
    if shape == "prefix":
        return f"https://example.org/a/long/common/prefix/{rng.randrange(100000):07d}/page.html"
    if shape == "unicode":
        return "".join(rng.choice("aé√漢😀\u0301\u0000\t\"\\ \n") for _ in range(rng.randrange(40)))
    if shape == "huge":
        return rng.choice("xyzé") * rng.choice([0, 10, 70000, 300000])
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(60)))


WORDS = "the of and to in a is that it was for on are as with his they at be this from".split()
SHAPES = ["tiny", "repeat", "prefix", "unicode", "words", "words", "huge"]


def some_texts(rng, rows, nulls):
    shape = rng.choice(SHAPES)
    if shape == "huge":
        rows_of_it = max(1, min(rows, 8))
        values = [some_text(rng, "huge" if i % max(1, rows // rows_of_it) == 0 else "tiny") for i in range(rows)]
    else:
        values = [some_text(rng, shape) for _ in range(rows)]
    if shape == "prefix":
        values.sort()
    return [None if rng.random() < nulls else value for value in values]


def some_ids(rng, rows, nulls, inner_nulls, highest):
    """Lists of ids of one shape: all of one length, short, long, empty, or larger than a run of rows."""
    shape = rng.choice(["equal", "short", "long", "empty", "mixed", "large" if rows <= 100 else "long"])
    length = {"equal": lambda: 7, "short": lambda: rng.randrange(4), "long": lambda: rng.randrange(900),
              "empty": lambda: 0, "large": lambda: rng.choice([0, 3, 9000]),
              "mixed": lambda: rng.choice([0, 0, 1, 5, 200])}[shape]
    step = rng.choice([0, 1, 1000])  # ascending ids are what delta encodings are made for
    lists = []
    for _ in range(rows):
        if rng.random() < nulls:
            lists.append(None)
            continue
        start = rng.randrange(highest)
        ids = [(start + i * step) % highest if step else rng.randrange(highest) for i in range(length())]
        lists.append([None if rng.random() < inner_nulls else i for i in ids])
    return lists


class Table:
    """Random columns: text, completion, ids, mask, meta {url, site {name}}, score, flag, number."""

    def __init__(self, rng, lists=True, structs=True):
        self.rows = rng.choice([0, 1, 2, 7, 100, 100, 1000, 3000])
        nulls = rng.choice([0, 0, 0.02, 0.5, 1])
        rows = self.rows
        self.columns = {"text": some_texts(rng, rows, nulls), "completion": some_texts(rng, rows, rng.choice([0, 0.1])),
                        "score": [rng.choice([None, 0.5, -3.25, rng.random()]) for _ in range(rows)],
                        "flag": [rng.choice([True, False]) for _ in range(rows)],
                        "number": [rng.randrange(-10**12, 10**12) for _ in range(rows)]}
        self.types = {"text": pa.string(), "completion": pa.string(), "score": pa.float64(), "flag": pa.bool_(),
                      "number": pa.int64()}
        if lists:
            inner = rng.choice([0, 0, 0, 0.01])
            element = rng.choice([pa.int32(), pa.int64(), pa.int64(), pa.uint16(), pa.uint32(), pa.int16()])
            highest = {pa.int16(): 1 << 15, pa.uint16(): 1 << 16, pa.int32(): 1 << 31}.get(element, 1 << 32)
            highest = rng.choice([highest, min(highest, 50000), 100])
            self.columns["ids"] = some_ids(rng, rows, rng.choice([0, 0, 0.1]), inner, highest)
            mask = rng.choice([pa.int8(), pa.uint8(), pa.int64(), pa.bool_()])
            one = True if pa.types.is_boolean(mask) else 1
            self.columns["mask"] = [ids and [rng.choice([0 * one, one]) for _ in ids] for ids in self.columns["ids"]]
            if pa.types.is_boolean(mask):
                self.columns["mask"] = [row and [bool(i) for i in row] for row in self.columns["mask"]]
            if rows and rng.random() < 0.1:
                self.columns["mask"][rng.randrange(rows)] = [one] * 3
            kind = rng.choice([pa.list_, pa.list_, pa.large_list])
            self.types["ids"], self.types["mask"] = kind(element), kind(mask)
        if structs:
            self.columns["meta"] = [None if rng.random() < nulls / 4 else
                                    {"url": some_text(rng, "prefix") if rng.random() < 0.9 else None,
                                     "site": rng.choice([None, {"name": rng.choice(WORDS)}])} for _ in range(rows)]
            self.types["meta"] = pa.struct([("url", pa.string()), ("site", pa.struct([("name", pa.string())]))])

    def arrow(self, rng):
        fields, arrays = [], []
        for name, values in self.columns.items():
            kind = self.types[name]
            if kind == pa.string():
                kind = rng.choice([pa.string(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
                                   pa.dictionary(pa.int32(), pa.string())])
            array = pa.array([plain(v) for v in values] if kind == pa.binary() else values,
                             pa.string() if pa.types.is_dictionary(kind) else kind)
            if pa.types.is_dictionary(kind):
                array = array.dictionary_encode()
            required = array.null_count == 0 and rng.random() < 0.4
            fields.append(pa.field(name, array.type, nullable=not required))
            arrays.append(array)
        order = list(range(len(fields)))
        rng.shuffle(order)
        return pa.Table.from_arrays([arrays[i] for i in order], schema=pa.schema([fields[i] for i in order]))


# ---- writers: each returns a text that describes its options ----

def write_pyarrow(rng, path):
    table = Table(rng).arrow(rng)
    encodings = {}
    dictionary = rng.choice([True, False, ["text"], ["ids.list.element", "completion"]])
    if dictionary is False:
        for name in table.column_names:
            kind = table.schema.field(name).type
            if pa.types.is_list(kind) or pa.types.is_large_list(kind):
                if not pa.types.is_boolean(kind.value_type):
                    encodings[f"{name}.list.element"] = rng.choice(["PLAIN", "DELTA_BINARY_PACKED",
                                                                    "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
            elif name in ("text", "completion"):
                encodings[name] = rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
        encodings["meta.url"] = rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
        encodings["flag"] = rng.choice(["PLAIN", "RLE"])
    options = {
        "compression": rng.choice(["none", "snappy", "gzip", "brotli", "zstd", "lz4"]),
        "use_dictionary": dictionary,
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "data_page_size": rng.choice([1, 64, 1000, 20000, 1 << 20]),
        "write_batch_size": rng.choice([1, 10, 1024]),
        "row_group_size": rng.choice([1, 7, 100, 1000, 1 << 20]) if table.num_rows <= 100 else rng.choice([100, 1 << 20]),
        "dictionary_pagesize_limit": rng.choice([100, 10000, 1 << 20]),
        "write_page_checksum": rng.choice([True, False]),
        "write_page_index": rng.choice([True, False]),
        "write_statistics": rng.choice([True, False]),
        "store_schema": rng.choice([True, False]),
        "use_compliant_nested_type": rng.choice([True, True, False]),
    }
    if encodings:
        if not options["use_compliant_nested_type"]:
            encodings = {name.replace(".list.element", ".list.item"): value for name, value in encodings.items()}
        options["column_encoding"] = encodings
    pq.write_table(table, path, **options)
    return str(options)


def write_duckdb(rng, path):
    table = Table(rng)
    columns = {name: pa.array(values, table.types[name]) for name, values in table.columns.items()}
    codec = rng.choice(["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw"])
    options = f"FORMAT parquet, CODEC '{codec}', PARQUET_VERSION '{rng.choice(['V1', 'V2'])}', " \
              f"ROW_GROUP_SIZE {rng.choice([2048, 122880])}, DICTIONARY_SIZE_LIMIT {rng.choice([1, 20, 100000])}"
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("made", pa.table(columns))
    connection.execute(f"COPY made TO '{path}' ({options})")
    connection.close()
    return options


def write_polars(rng, path):
    table = Table(rng)
    frame = polars.from_arrow(pa.table({name: pa.array(values, table.types[name])
                                        for name, values in table.columns.items()}))
    options = {"compression": rng.choice(["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]),
               "statistics": rng.choice([True, False]), "row_group_size": rng.choice([None, 50, 1000]),
               "data_page_size": rng.choice([None, 100, 5000])}
    frame.write_parquet(path, **options)
    return str(options)


def write_fastparquet(rng, path):
    table = Table(rng, lists=False, structs=False)
    del table.columns["score"]
    for name in ("text", "completion"):
        if table.rows and all(value is None for value in table.columns[name]):
            table.columns[name][0] = "not null"
    frame = pandas.DataFrame({name: pandas.Series(values, dtype=object if name in ("text", "completion") else None)
                              for name, values in table.columns.items()})
    options = {"compression": rng.choice(["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW", "LZ4"]),
               "row_group_offsets": rng.choice([10, 500, 100000]),
               "has_nulls": True if frame["text"].isna().any() or frame["completion"].isna().any() else
               rng.choice([True, False])}
    fastparquet.writer.DATAPAGE_VERSION = rng.choice([1, 2])
    fastparquet.write(path, frame, object_encoding={"text": "utf8", "completion": "utf8"}, **options)
    return f"{options} page version {fastparquet.writer.DATAPAGE_VERSION}"


WRITERS = {"pyarrow": write_pyarrow, "DuckDB": write_duckdb, "Polars": write_polars, "fastparquet": write_fastparquet}


def check_generated(reader, rng, path, table):
    """Reads one file in several ways. Returns the number of columns that were compared, and what differs or None."""
    rows, values = table.num_rows, {name: table[name].to_pylist() for name in table.column_names}
    kept = {name: values[name] for name in ("score", "flag", "number") if name in values}
    batch = rng.choice([8192, 65536, 1 << 20])
    tasks = [("text", "text", None, {}), ("text", "text", None, kept), ("prompt", "text", "completion", {})]
    if "ids" in values:
        tasks += [("ids", "ids", None, {}), ("ids", "ids", "mask", {}), ("ids", "ids", "mask", {"number": values["number"]})]
    if "meta" in values:
        values["meta.url"] = [row and row["url"] for row in values["meta"]]
        values["meta.site.name"] = [row and row["site"] and row["site"]["name"] for row in values["meta"]]
        tasks += [("text", "meta.url", None, {}), ("text", "meta.site.name", None, {"text": values["text"]})]
    for content, first, second, columns in tasks:
        columns = {name: [v.decode() if isinstance(v, bytes) else v for v in column]
                   for name, column in columns.items()}
        fault = compare(reader, path, rows, content, (first, values[first]),
                        (second, values[second]) if second else None, columns, batch=batch)
        if fault:
            return 0, f"{content} {first} {second or ''} {list(columns)}: {fault}"
    return len(tasks), None


def generated(program, folder, files, seed, first):
    reader, top = Reader(program), os.path.abspath(folder)
    server = ObjectServer(os.path.dirname(top))
    seconds = float(os.environ.get("PARQUET_SECONDS", 0))
    stop_at = time.monotonic() + seconds if seconds else None
    counts = {name: {"files": 0, "columns": 0, "refused": 0, "faults": []} for name in WRITERS}
    for number in range(first, first + files):
        if stop_at and time.monotonic() > stop_at:
            print(f"# stopped before file {number} of seed {seed}, because the time is up")
            break
        rng = random.Random(seed * 1000003 + number)
        name = rng.choice(["pyarrow", "pyarrow", "pyarrow", "DuckDB", "Polars", "fastparquet"])
        count, path, label = counts[name], os.path.join(folder, f"{number}.parquet"), "?"
        try:
            label = WRITERS[name](rng, path)
            table = pq.ParquetFile(path).read()
        except Exception as why:  # the writers, and pyarrow, have exceptions of many kinds
            count["refused"] += 1
            count["why"] = f"{type(why).__name__}: {str(why)[:200]}"
            if os.path.exists(path):
                os.remove(path)
            continue
        url = f"{server.url}/{urllib.parse.quote(os.path.basename(top))}/{number}.parquet"
        columns, fault = check_generated(reader, rng, url if number % 2 else path, table)
        count["files"] += 1
        count["columns"] += columns
        if fault:
            count["faults"].append(f"file {number} of seed {seed}: {fault}\n#   {label}")
            if len(count["faults"]) <= 3:
                os.rename(path, path + ".kept")
        if os.path.exists(path):
            os.remove(path)
    server.stop()
    for name, count in counts.items():
        for fault in count["faults"][:10]:
            print(f"# {name}: {fault}")
        wrong = count["faults"] or count["refused"] > count["files"] // 4 + 1
        print(f"{'not ok' if wrong else 'ok'} - {name}: {count['files']} files read in {count['columns']} ways, "
              f"{len(count['faults'])} differ")
        if count["refused"]:
            print(f"# {name} refused {count['refused']} files, the last with {count['why']}")
    return 0


# ---- given files ----

def leaves(kind, name):
    """The fields of a struct that are texts or lists of integers, with dots."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type, f"{name}.{field.name}")
    elif (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
          or pa.types.is_large_binary(kind) or pa.types.is_string_view(kind)):
        yield name, "text"
    elif (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_integer(kind.value_type):
        yield name, "ids"


def reach(row, name):
    for part in name.split("."):
        row = row and row[part]
    return row


def given(program, folder):
    reader = Reader(program)
    for path in sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
                       if name.endswith((".parquet", ".parquet.encrypted"))):
        name = os.path.relpath(path, folder)
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True)
            columns = [leaf for field in file.schema_arrow for leaf in leaves(field.type, field.name)]
        except Exception as why:  # tokmap must refuse the file, too
            _, _, about_file = reader.read(path, "text", "text")
            print(f"{'ok' if about_file else 'not ok'} - {name}: pyarrow: {type(why).__name__}: "
                  f"{' '.join(str(why).split())[:100]}; tokmap: {about_file}")
            continue
        if not columns:
            print(f"ok - {name} # SKIP no column of texts or lists of integers")
        for field, content in columns:
            about = f"{name}: {content} {field}"
            try:
                rows = file.read(columns=[field.split(".")[0]]).to_pylist()
            except Exception as why:  # a damaged column: tokmap must refuse it, too, or read all of it
                records, sound, about_file = reader.read(path, content, field)
                refused = about_file or [text for text in records.values() if isinstance(text, str)]
                refused = refused or sorted(records) == list(range(file.metadata.num_rows))
                print(f"{'ok' if refused and sound else 'not ok'} - {about}, damaged: pyarrow: "
                      f"{' '.join(str(why).split())[:100]}; tokmap: {refused}")
                continue
            fault = compare(reader, path, len(rows), content, (field, [reach(row, field) for row in rows]))
            if fault and (" of the type " in fault or " of a type that " in fault):
                fault = None  # pyarrow gives bytes of annotations that it does not know
            print(f"{'not ok' if fault else 'ok'} - {about}, {len(rows)} rows{': ' + fault if fault else ''}")
    return 0


if __name__ == "__main__":
    if sys.argv[2] == "--files":
        sys.exit(given(sys.argv[1], sys.argv[3]))
    sys.exit(generated(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
                       int(sys.argv[5]) if len(sys.argv) > 5 else 0))
