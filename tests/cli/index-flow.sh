# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# Token files of other projects: opened in place, indexed, and then the same dataset as a packed copy.
. "$TOKMAP_CLI/helpers.sh"
need python3
cat >make.py <<'PY'
import gzip, struct
from array import array
documents = [[(i * 7919 + j * 104729) % 50000 for j in range(1 + i * 37 % 400)] + [50256] for i in range(300)]
ends, flat = [], []
for document in documents:
    flat += document
    ends.append(len(flat))
def tokens(code, ids=flat):
    return array(code, ids).tobytes()
def write(name, data):
    with open(name, "wb") as file:
        file.write(data)
def megatron(name, dtype, code, size):
    lengths = [len(d) for d in documents]
    starts = [(e - n) * size for e, n in zip(ends, lengths)]
    write(name + ".bin", tokens(code))
    write(name + ".idx", b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, dtype, len(lengths), len(lengths) + 1)
          + array("i", lengths).tobytes() + array("q", starts).tobytes() + array("q", range(len(lengths) + 1)).tobytes())
megatron("m16", 8, "H", 2)
megatron("m32", 4, "i", 4)
megatron("m64", 5, "q", 8)
moved = [50256] + flat[:-1]
write("l_2.bin", struct.pack("<3i", 20240520, 1, len(flat) - 9000) + bytes(1012) + tokens("H", moved[9000:]))
write("l_1.bin", struct.pack("<3i", 20240520, 1, 9000) + bytes(1012) + tokens("H", moved[:9000]))
head = b"{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % len(flat)
write("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117) + b"\n" + tokens("i"))
write("train.bin", tokens("H"))
write("x.ds", tokens("H"))
write("x.ds.index", array("Q", ends).tobytes())
write("x.ds.metadata", b"gpt2|2\n%d\n1 T" % len(flat))
write("x.ds.loss", bytes(i % 3 > 0 for i in range(len(flat))))
write("o.npy", tokens("H"))
with gzip.open("o.csv.gz", "wt") as file:
    for start, end in zip([0] + ends, ends):
        file.write(f"{start},{end},id,source,1\n")
PY
python3 make.py
content()
{
    tokmap info "$1" --json >info.json
    python3 -c 'import json; f = json.load(open("info.json")); print(f["content"], f["documents"], f["identity"])'
}
raw=raw:train.bin,width=2,eod=50256

# In place.
tokmap info m16 >out
holds out '65,536 ids at most; the files do not record it'
holds out "files of          megatron"
holds out "(of a sample;"
tokmap info 'l_*.bin' >out
holds out "shards            2"
holds out 'documents         not recorded; `tokmap index` finds them'
tokmap verify m16 2>err >out
holds out "m16: sound: 60,050 tokens"
tokmap show m32 --ids --document 2 >out 2>err
holds err "document 2, whole (76 tokens)"
tokmap show $raw --ids --tokens 5..9 >out 2>err
tokmap show m64 --ids --tokens 5..9 >out2 2>err
same out out2
for name in m16 m64 'l_*.bin' a.npy,eod=50256 datatrove:x.ds olmo:o.npy,width=2,eod=50256 $raw; do
    printf 'seq_len 128\nbatch 8\nsteps 40\nsource web %s\n' "$name" >in.run
    tokmap audit in.run --ranks 4 >out
    holds out "ok     coverage"
    holds out "places and tokens are as computed"
done
exits 1 tokmap show $raw --ids --document 0 2>err
holds err 'run `tokmap index` on it once'

# Indexed: the five that have the same tokens in the same width are the same dataset.
set -- $(content m16)
equal "$2 $3" "300 sampled"
for name in m16 datatrove:x.ds olmo:o.npy,width=2 $raw; do
    tokmap index "$name" 2>err
    holds err "/s"
    set -- $(content "$name")
    [ "$name" != m16 ] || whole=$1
    [ "$name" = datatrove:x.ds ] || equal "$1 $2 $3" "$whole 300 full" "$name"
    tokmap verify "$name"
done
[ -s x.ds.mask ]
equal "$(content train)" "$whole 300 full"
tokmap index -q -j 1 m32
tokmap index -q --threads 3 m64
tokmap index -q a.npy,eod=50256
equal "$(content m32)" "$(content m64)" m64
equal "$(content m32)" "$(content a.npy)" a.npy
tokmap index 'llmc:l_*.bin' --json >out 2>err
json out
holds out '"files": 2, "tokens": 60050'
holds out '"documents": 301'
tokmap verify l_1
tokmap verify 'l_*.bin'
tokmap show $raw --ids --document 2 >out 2>err
holds err "document 2, whole (76 tokens)"

# Indexing again needs --force, gives the same bytes, and cannot contradict the name.
cp m16.tmx before.tmx_
exits 1 tokmap index m16 2>err
holds err "m16.tmx: the index already exists; use --force"
tokmap index -q --force m16
same m16.tmx before.tmx_
exits 1 tokmap info raw:train.bin,width=2,eod=7 2>err
holds err "the name says eod=7, but the file was indexed with eod=50256"

# A changed file is found.
flip m16.bin 100
exits 1 tokmap verify m16 >out
holds out "m16.bin: block 0 of the tokens"
flip l_1.bin 1100
exits 1 tokmap verify l_1 >out
holds out "l_1.bin: block 0 of the tokens (bytes 1024..19024) does not match its hash"
