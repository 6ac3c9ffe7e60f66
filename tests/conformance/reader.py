#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""reader.py PREFIX - reads a shard and prints its content as JSON.

It was written from src/format/FORMAT.md alone, as an independent check of that page, and needs only the standard
library. It checks hashes if the module xxhash can be imported."""
import json, struct, subprocess, sys
try:
    from xxhash import xxh3_64_intdigest as xxh3, xxh3_128_digest
except ImportError: xxh3 = None
MAGIC, NONE, BLOCK = b"\x89TMX\r\n\x1a\n", 2**64 - 1, 1 << 20

def need(truth, what):
    truth or sys.exit("reader.py: the shard is not valid: check of the " + what + " failed")

def sealed(prefix, sections):
    """Restores the tokens of a sealed shard. The standard library has no zstd, so the command of this name is used."""
    need(8 not in sections and 10 not in sections, "sections of a sealed shard")
    frame_bytes, file_bytes = struct.unpack_from("<2Q", sections[6])
    entries = list(struct.iter_unpack("<2Q", sections[6][16:]))
    data = open(prefix + ".bin.zst", "rb").read()
    need(frame_bytes == 65536 and file_bytes == len(data), "head of the frames")
    tokens, first = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout, 0
    need(len(entries) == -(-len(tokens) // 65536), "number of frames")
    table = struct.pack("<II", 0x184D2A5E, 8 * len(entries) + 9)
    for i, (end, digest) in enumerate(entries):
        frame = tokens[65536 * i:65536 * (i + 1)]
        alone = subprocess.run(["zstd", "-dc"], input=data[first:end], stdout=subprocess.PIPE, check=True).stdout
        need(alone == frame and (not xxh3 or xxh3(frame) == digest), "frame %d" % i)
        table += struct.pack("<II", end - first, len(frame))
        first = end
    table += struct.pack("<IBI", len(entries), 0, 0x8F92EAB1)
    need(data[first:] == table, "seek table")
    return tokens

def read(prefix):
    data = open(prefix + ".tmx", "rb").read()
    need(len(data) >= 64 and data[:8] == MAGIC, "magic")
    (major, minor, header_bytes, entry_bytes, count, table, size, table_hash, zero, header_hash) = struct.unpack_from(
        "<HHIIIQQQQQ", data, 8)
    need((major, header_bytes, entry_bytes, zero) == (1, 64, 40, 0), "header")
    need(size == len(data) == table + 40 * count, "header's sizes")
    need(not xxh3 or (xxh3(data[:56]), xxh3(data[table:])) == (header_hash, table_hash), "header or table hash")
    sections, hashes, at = {}, {}, 64
    for kind, flags, offset, length, digest, zero in struct.iter_unpack("<IIQQQQ", data[table:]):
        need(offset == at and offset + length <= table and zero == 0 and kind not in sections, "table")
        need(kind != 8, "section store, which this reader does not know")
        need(flags == (kind in (5, 6)), "required flag of a section")
        sections[kind], hashes[kind] = data[offset:offset + length], digest
        at = (offset + length + 63) // 64 * 64
        need(not any(data[offset + length:at]) and (not xxh3 or xxh3(sections[kind]) == digest), "section %d" % kind)
    need(at == table, "end of the sections")
    known = [kind for kind in sections if kind <= 10]
    lowest = max({5: 1, 8: 1, 9: 2, 10: 3, 6: 4}.get(kind, 0) for kind in known)
    need(minor == lowest or (minor > lowest and (minor > 4 or len(known) < len(sections))), "minor version")
    7 in sections and json.loads(sections[7].decode())
    (tokens, documents, width, block_bytes, vocabulary, largest, eod, bos, content, tokenizer, zeros) = struct.unpack(
        "<QQIIQQQQ16s16s32s", sections[1])
    identity = struct.pack("<5Q", width, tokens, documents, hashes[3], hashes[2])
    need(width in (2, 4) and block_bytes == BLOCK and not any(zeros), "shard section")
    need(not xxh3 or xxh3_128_digest(identity) == content, "content id")
    lows = struct.unpack_from("<%dI" % documents, sections[2])
    carries = struct.unpack_from("<%dQ" % (tokens >> 32), sections[2], (4 * documents + 7) // 8 * 8)
    ends = [(sum(c <= i for c in carries) << 32) + low for i, low in enumerate(lows)]
    need(ends == sorted(ends) and (ends[-1:] or [0]) == [tokens], "ends of documents")
    data = sealed(prefix, sections) if 6 in sections else open(prefix + ".bin", "rb").read()
    need(len(data) == tokens * width, "length of the .bin")
    blocks = [data[first:first + BLOCK] for first in range(0, len(data), BLOCK)]
    need(not xxh3 or sections[3] == b"".join(struct.pack("<Q", xxh3(block)) for block in blocks), "hash of a block")
    if 10 in sections:
        need(8 not in sections, "sections of an index with hashes of pages")
        pages = [data[first:first + 4096] for first in range(0, len(data), 4096)]
        hashes = [struct.pack("<I", xxh3(page) & 0xffffffff) for page in pages] if xxh3 else None
        need(len(sections[10]) == 4 * len(pages) and (not xxh3 or sections[10] == b"".join(hashes)), "hash of a page")
    ids = struct.unpack("<%d%s" % (tokens, "HI"[width // 4]), data)
    need(max(ids, default=0) == largest and largest < max(vocabulary, 1), "largest id")
    origins = []
    if 4 in sections:
        runs, files, path_bytes, zero = struct.unpack_from("<4Q", sections[4])
        run = list(struct.iter_unpack("<3Q", sections[4][32:32 + 24 * runs])) + [(documents, 0, 0)]
        stops = (0,) + struct.unpack_from("<%dQ" % files, sections[4], 32 + 24 * runs)
        paths = sections[4][32 + 24 * runs + 8 * files:]
        need(len(paths) == path_bytes == stops[-1] and zero == 0, "origin section")
        need(run[0][0] == 0 and run == sorted(run), "runs of the origin section")
        names = [paths[first:stop].decode("utf-8", "backslashreplace") for first, stop in zip(stops, stops[1:])]
        origins = [[names[number], record + i] for (first, record, number), (stop, _, _) in zip(run, run[1:])
                   for i in range(stop - first)]
    mask = None
    if 5 in sections:
        number, name, bits, file_bytes = struct.unpack_from("<Q16sQQ", sections[5])
        need((number, name.rstrip(b"\0"), bits, file_bytes) == (1, b"mask", 1, (tokens + 7) // 8), "streams section")
        data = open(prefix + ".mask", "rb").read()
        parts = [data[first:first + BLOCK] for first in range(0, len(data), BLOCK)]
        need(len(data) == file_bytes and len(sections[5]) == 40 + 8 * len(parts), "length of the .mask")
        need(not xxh3 or sections[5][40:] == b"".join(struct.pack("<Q", xxh3(part)) for part in parts), "hash of a mask")
        mask = int.from_bytes(data, "little")
        need(mask >> tokens == 0, "spare bits of the mask")
        places = [token for token in range(tokens) if data[token // 8] >> token % 8 & 1]
        mask = [len(places), sum(places)]
    columns = {}
    if 9 in sections:
        section, up = sections[9], lambda size: (size + 7) // 8 * 8
        number, = struct.unpack_from("<Q", section)
        at = 8 + 40 * number
        need(1 <= number <= 64 and at <= len(section), "number of columns")
        for code_bytes, name_bytes, values, value_bytes, offset in struct.iter_unpack("<5Q", section[8:at]):
            need(offset == at and 1 <= name_bytes <= 1024, "head of a column")
            parts = [name_bytes + 1, code_bytes * documents, 4 * values, 8 * (value_bytes >> 32), value_bytes]
            for i, size in enumerate(parts):
                parts[i], padding, at = section[at:at + size], section[at + size:at + up(size)], at + up(size)
                need(len(parts[i]) == size and not any(padding), "parts of a column")
            name = parts[0].decode()
            need(name[-1] == "\0" and "\0" not in name[:-1] and name[:-1] not in columns, "name of a column")
            codes = struct.unpack("<%d%s" % (documents, " BH"[code_bytes]), parts[1]) if code_bytes else range(documents)
            low, carry = struct.unpack("<%dI" % values, parts[2]), [n for n, in struct.iter_unpack("<Q", parts[3])]
            stops = [0] + [(sum(c <= v for c in carry) << 32) + end for v, end in enumerate(low)]
            need(stops == sorted(stops) and stops[-1] == value_bytes, "ends of values")
            texts = [parts[4][first:stop].decode() for first, stop in zip(stops, stops[1:])]
            [json.loads(text) for text in texts if text]
            plain = len(set(texts)) > 65536 or sum(len(text.encode()) for text in set(texts)) > 1 << 24
            need(code_bytes == (0 if plain else 1 if values <= 256 else 2), "kind of a column")
            texts_of = [texts[code] for code in codes]
            need(values == documents if plain else texts == list(dict.fromkeys(texts_of)), "dictionary of a column")
            columns[name[:-1]] = texts_of
        need(at == len(section), "end of the columns")
    return {"tokens": tokens, "documents": documents, "width": width, "vocabulary": vocabulary, "largest_id": largest,
            "eod_id": None if eod == NONE else eod, "bos_id": None if bos == NONE else bos, "content": content.hex(),
            "tokenizer": tokenizer.hex(), "blocks": len(blocks), "first": ids[:8], "last": ids[-8:], "sum": sum(ids),
            "ends": ends, "origins": origins, "mask": mask,
            "columns": columns, "about": sections.get(7, b"").decode(), "hashes_checked": bool(xxh3)}

if __name__ == "__main__":
    len(sys.argv) == 2 or sys.exit("usage: reader.py PREFIX (of one shard, without .tmx)")
    print(json.dumps(read(sys.argv[1])))
