# SPDX-License-Identifier: MIT
# What stats counts is what a plain program counts in the .bin, for every number of threads and kind of dataset.
. "$TOKMAP_CLI/helpers.sh"
need python3
cat >make.py <<'PY'
import random, struct
from array import array
random.seed(11)
def write(name, data):
    with open(name, "wb") as file:
        file.write(data)
def megatron(name, dtype, code, size, documents):
    flat = [id for document in documents for id in document]
    lengths = [len(d) for d in documents]
    starts = [0]
    for length in lengths[:-1]:
        starts.append(starts[-1] + length * size)
    write(name + ".bin", array(code, flat).tobytes())
    write(name + ".idx", b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, dtype, len(lengths), len(lengths) + 1)
          + array("i", lengths).tobytes() + array("q", starts).tobytes()
          + array("q", range(len(lengths) + 1)).tobytes())
def some(vocabulary):
    return int(vocabulary ** random.random()) % vocabulary
def documents(vocabulary, eod):
    lengths = [int(2 ** random.uniform(0, 11)) for i in range(700)] + [0, 1, 2, 3, 4, 65535, 65536, 65537]
    return [[some(vocabulary) for i in range(length)] + [eod] for length in lengths]
megatron("two", 8, "H", 2, documents(50000, 50256))
megatron("four", 4, "i", 4, documents(120000, 128000))
# A run of one id, more than a thread takes at a time, and the largest id of 2 bytes.
write("same.bin", array("H", [7]).tobytes() * 9000001 + array("H", [65535, 0, 0]).tobytes())
# Ids that are far apart, of a vocabulary that is larger than any table of counters.
write("far.bin", array("I", [0, 4095, 4096, 2 ** 31, 2 ** 31 - 1, 0, 3000000000, 4095, 0]).tobytes() * 5)
PY
cat >check.py <<'PY'
import json, struct, sys
from array import array
from collections import Counter
name, code, vocabulary, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
first, end = (int(word) for word in sys.argv[5:7]) if len(sys.argv) > 5 else (0, None)
tokens = array(code)
with open(path, "rb") as file:
    tokens.frombytes(file.read())
tokens = tokens[first:end]
counts = Counter(tokens)
stats = json.load(open("stats.json"))
assert stats["dataset"] == name and stats["tokens"] == len(tokens), stats
assert stats["vocabulary"] == vocabulary, stats["vocabulary"]
ids = stats["ids"]
assert ids["tokens"] == len(tokens) and ids["used"] == len(counts) and ids["unused"] == vocabulary - len(counts)
top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:50]
assert [(one["id"], one["count"]) for one in ids["frequent"]] == top, (ids["frequent"][:5], top[:5])
used, ranges, at = sorted(counts) + [vocabulary], [], 0
for id in used:
    if id > at:
        ranges.append([at, id])
    at = id + 1
assert ids["unused_ranges"] == ranges
if stats["eod_id"] is not None:
    assert ids["eod"] == counts[stats["eod_id"]]
lengths = stats["document_tokens"]
if lengths:
    assert lengths["documents"] == stats["documents"] == sum(bin["documents"] for bin in stats["lengths"])
    assert sum(bin["tokens"] for bin in stats["lengths"]) == len(tokens)
if name in ("two", "four"):
    with open(name + ".idx", "rb") as file:
        data = file.read()
    sizes = array("i")
    sizes.frombytes(data[34:34 + 4 * struct.unpack_from("<Q", data, 18)[0]])
    sizes = sorted(sizes)
    def percentile(thousandths): # the smallest that is at least as large as this part of all
        return sizes[max(1, -(-len(sizes) * thousandths // 1000)) - 1]
    for key, thousandths in (("p1", 10), ("p5", 50), ("p10", 100), ("p25", 250), ("p50", 500), ("p75", 750),
                             ("p90", 900), ("p95", 950), ("min", 0)):
        assert lengths[key] == percentile(thousandths), (key, lengths[key], percentile(thousandths))
    assert lengths["max"] == sizes[-1]
    assert abs(lengths["mean"] - sum(sizes) / len(sizes)) < 1e-6
    bins = Counter(size.bit_length() for size in sizes)
    assert [(bin["from"].bit_length(), bin["documents"]) for bin in stats["lengths"]] == sorted(bins.items())
PY
python3 make.py
# counted NAME CODE VOCABULARY FILE [FIRST END]: checks the statistics of a dataset with 1, 2, and 7 threads.
counted()
{
    tokmap stats -q --json --top 50 -j 1 "$1" >stats.json
    python3 check.py "$@"
    for threads in 2 7; do
        tokmap stats -q --json --top 50 -j $threads "$1" >more.json
        same stats.json more.json
    done
    tokmap stats -q -v --top 50 -j 1 "$1" >one
    tokmap stats -q -v --top 50 -j 7 "$1" >seven
    same one seven
}
counted two H 65536 two.bin
counted four I 2147483648 four.bin
counted raw:four.bin,width=4,vocab=128001,eod=128000 I 128001 four.bin
counted 'two#tokens=1000..90001' H 65536 two.bin 1000 90001
counted raw:same.bin,width=2 H 65536 same.bin
counted raw:far.bin,width=4,vocab=3000000001 I 3000000001 far.bin
