# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Hostile traces, one fault each: the message names the file and says what is wrong, and nothing is called the same.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
printf 'seq_len 32\nbatch 6\nseed 3\nsource web small\nsteps 6\n' >train.run
PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 -c '
import tokmap
for rank in range(2):
    for name, q in ("good", 0), ("even", 0.01):
        with tokmap.Run("train.run").loader(rank=rank, world=2, balance=q, trace=f"{name}{rank}.trace") as loader:
            for batch in loader:
                pass' 2>err || skip "Python cannot load this build: $(tail -n 1 err)"

# make FAULT: writes bad.trace, rank 1's trace with a fault. The header keeps its hashes, XXH3-64 of 56 and of 88 bytes,
# which are computed here as its specification says.
cat >make.py <<'END'
import struct, sys
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8")
MASK = 2 ** 64 - 1

def xxh3(data):
    total = len(data) * 0x9E3779B185EBCA87
    for at, key in ((0, 0), (len(data) - 16, 16), (16, 32), (len(data) - 32, 48), (32, 64), (len(data) - 48, 80)):
        if key >= 64 and len(data) <= 64:
            break
        a, b = struct.unpack_from("<QQ", data, at)
        c, d = struct.unpack_from("<QQ", SECRET, key)
        product = (a ^ c) * (b ^ d)
        total += (product & MASK) ^ (product >> 64)
    total &= MASK
    total ^= total >> 37
    total = total * 0x165667919E3779F9 & MASK
    return total ^ total >> 32

even = len(sys.argv) > 2
good, size = open("even1.trace" if even else "good1.trace", "rb").read(), 96 if even else 64
for end in (56, 88)[:1 + even]:
    assert struct.unpack_from("<Q", good, end)[0] == xxh3(good[:end])
header, records = bytearray(good[:size]), [list(struct.unpack_from("<QQ", good, at)) for at in range(size, len(good), 16)]
fault, tail = sys.argv[1], b""
FIELDS = {"version": ("<I", 8), "width": ("<I", 12), "rank": ("<Q", 16), "world": ("<Q", 24), "first": ("<Q", 32),
          "past": ("<Q", 40), "balance": ("<Q", 64), "rows": ("<Q", 72)}
if "=" in fault:
    name, value = fault.split("=")
    struct.pack_into(FIELDS[name][0], header, FIELDS[name][1], int(value))
elif fault == "magic":
    header[0] ^= 1
elif fault == "jump":
    del records[2]
elif fault == "repeat":
    records.insert(2, records[2])
elif fault == "back":
    records[2], records[3] = records[3], records[2]
elif fault == "far":
    records[-1][0] = 2 ** 63 - 1
elif fault == "beyond":
    records.append([6, 1])
elif fault == "zeros":
    records[2] = [0, 0]
elif fault == "short":
    tail = b"1234567"
for end in (56, 88)[:1 + even]:
    struct.pack_into("<Q", header, end, xxh3(bytes(header[:end])))
if fault == "end":
    header[-1] ^= 1
if fault == "hash":
    header[60] ^= 1
data = bytes(header) + b"".join(struct.pack("<QQ", *record) for record in records) + tail
open("bad.trace", "wb").write(b"" if fault == "empty" else data[:size - 24] if fault == "cut" else data)
END

# refused OTHER TEXT [NAME]: replay of bad.trace beside that of the other rank fails, says TEXT, and names NAME, which
# is bad.trace if it is not given.
refused()
{
    exits 1 tokmap replay train.run --trace "$1" bad.trace >out 2>err
    cat out err >said
    holds said "$2"
    holds said "${3:-bad.trace}"
}
# wrong FAULT TEXT [NAME]: the same of a trace with this fault; even: of one with balanced rows.
wrong() { python3 make.py "$1"; shift; refused good0.trace "$@"; }
even() { python3 make.py "$1" even; shift; refused even0.trace "$@"; }

tokmap replay train.run --trace good0.trace good1.trace >out 2>err
holds out "the same: 6 steps"

wrong magic "is not a trace"
wrong hash "does not have its hash"
wrong version=0 "has version 0"
wrong version=5 "has version 5"
wrong version=4294967295 "has version 4294967295"
wrong width=3 "which no loader has"
wrong width=0 "which no loader has"
wrong width=4 "step 0, rank 1"
wrong rank=2 "which no loader has"
wrong rank=18446744073709551615 "which no loader has"
wrong world=0 "which no loader has"
wrong world=18446744073709551615 "which no loader has"
wrong world=9223372036854775808 "was delivered to 9223372036854775808 ranks"
wrong world=7 "was delivered to 7 ranks"
wrong world=3 "step 0, rank 1: has no record" train.run
wrong first=18446744073709551615 "which no loader has"
wrong first=9223372036854775808 "follows where a step"
wrong first=3 "follows where a step"
wrong past=1 "another past"
wrong jump "step 2, rank 1: has no record" train.run
wrong repeat "follows where a step"
wrong back "follows where a step"
wrong zeros "follows where a step"
wrong far "step 5, rank 1: has no record" train.run
wrong beyond "but the run ends before"
wrong cut "has no record" train.run
wrong empty "has no record" train.run

# An incomplete record at the end is what a killed program leaves.
python3 make.py short
tokmap replay train.run --trace good0.trace bad.trace >out 2>err
holds out "the same: 6 steps"
holds err "bad.trace: the last 7 bytes are incomplete"

# Only traces without a step, or a folder.
python3 make.py empty
exits 1 tokmap replay train.run --trace bad.trace >out 2>err
holds err "bad.trace"
holds err "have no step"
mkdir folder
exits 1 tokmap replay train.run --trace folder >out 2>err
holds err "folder"

# Two files of one rank, as after a resume, agree or are compared each; the file of a rank given twice is fine, too.
tokmap replay train.run --trace good0.trace good1.trace good1.trace >out 2>err
holds out "the same: 6 steps"
cp good1.trace other.trace
python3 -c '
data = bytearray(open("other.trace", "rb").read())
data[64 + 3 * 16 + 8] ^= 1
open("other.trace", "wb").write(data)'
exits 1 tokmap replay train.run --trace good0.trace good1.trace other.trace >out 2>err
holds out "step 3, rank 1: other.trace"

# Rows that were balanced: which rank has which is in the header.
tokmap replay train.run --trace even0.trace even1.trace >out 2>err
holds out "the same: 6 steps, 36 rows"
tokmap replay train.run --trace good0.trace even0.trace good1.trace even1.trace >out 2>err
holds out "the same: 6 steps, 36 rows"
exits 1 tokmap replay train.run --trace good0.trace even1.trace >out 2>err
holds out "has no record"
even hash "does not have its hash"
even end "does not have its hash"
even version=1 "follows where a step"
even version=5 "has version 5"
even version=4 "which no loader has"                        # without nodes
even balance=0 "which no loader has"
even balance=1099511627777 "which no loader has"
even rows=18446744073709551615 "which no loader has"
even world=9223372036854775808 "which no loader has"        # context_world 2^31, world 0
even world=8589934591 "was delivered to 4294967295 ranks"   # context_world 1
even world=18446744069414584322 "was delivered in slices to 4294967295 ranks"
even world=1 "which no loader has"                          # context_world 0
even rank=4294967297 "which no loader has"                  # context_rank 1 of 1
even width=770 "which no loader has"                        # an unknown layout
even past=1 "another past"
even cut "has no record" train.run
python3 - <<'END'
data = bytearray(open("even1.trace", "rb").read())
data[-1] ^= 1
open("bad.trace", "wb").write(data)
END
exits 1 tokmap replay train.run --trace even0.trace bad.trace >out 2>err
holds out "step 5, rank 1: bad.trace delivered 3 assigned rows with the sum"
