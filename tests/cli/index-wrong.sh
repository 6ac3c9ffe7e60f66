# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Damaged and misnamed token files of other projects: one line each that names the file and what to do.
. "$TOKMAP_CLI/helpers.sh"
need python3
# make NAME HEX-OR-PYTHON: writes a file from a Python expression of bytes.
make()
{
    python3 -c 'import struct, sys; from array import array; open(sys.argv[1], "wb").write(eval(sys.argv[2]))' "$1" "$2"
}
refuses()
{
    exits 1 tokmap info "$1" 2>err
    holds err "$2"
}
make m.bin 'array("H", range(10)).tobytes()'
idx='b"MMIDIDX\\0\\0" + struct.pack("<QBQQ", 1, %s, len([%s]), %s) + array("i", [%s]).tobytes() + array("q", [%s]).tobytes() + array("q", [%s]).tobytes()'
# index TYPE STARTS LENGTHS POINTERS DOCUMENTS
index()
{
    make m.idx "$(printf "$idx" "$1" "$3" "$2" "$3" "$4" "$5")"
}
index 8 3 '4, 6' '0, 8' '0, 1, 2'
tokmap verify m
index 8 3 '4, 7' '0, 8' '0, 1, 2'
refuses m "m.bin: the file is 20 bytes long, but the sequences of its index (m.idx) end at byte 22"
index 8 3 '4, 6' '2, 8' '0, 1, 2'
refuses m "m.idx: the first sequence begins at byte 2 of the tokens instead of 0"
index 8 4 '4, 6' '0, 8' '0, 1, 2'
refuses m "which does not give its size of 82 bytes"
index 8 3 '4, 6' '0, 8' '0, 1, 1'
refuses m "m.idx: the last document ends at sequence 1, but the index counts 2"
index 6 3 '4, 6' '0, 8' '0, 1, 2'
refuses m "type 6 (float64), but token ids are integers"
# Every number of an index is compared where it is opened: Megatron reads other tokens by such an index than those of
# the .bin one after another.
index 8 3 '5, 6' '0, 8' '0, 1, 2'
refuses m "m.idx: sequence 1 begins at byte 8 of the tokens, but the lengths of the sequences before it give 10"
for command in "verify m" "index m" "show megatron:m --document 1 --ids" "show m.idx --tokens 0..2 --ids"; do
    exits 1 tokmap $command >err 2>&1
    holds err "m.idx: sequence 1 begins at byte 8"
done
index 8 4 '3, 4, 2' '0, 8, 16' '0, 1, 2, 3'
refuses m "sequence 1 begins at byte 8 of the tokens, but the lengths of the sequences before it give 6" # a gap
holds err "(byte 54)"
index 8 4 '4, 4, 4' '0, 4, 12' '0, 1, 2, 3'
refuses m "sequence 1 begins at byte 4 of the tokens, but the lengths of the sequences before it give 8" # an overlap
index 8 5 '0, 4, 2, 4' '0, 4, 0, 12' '0, 1, 2, 3, 4'
refuses m "sequence 1 begins at byte 4" # another order
index 8 4 '4, -1, 7' '0, 8, 6' '0, 1, 2, 3'
refuses m "sequence 1 has a negative number of tokens (-1)"
index 8 4 '4, 0, 6' '0, 8, 8' '0, 2, 1, 3'
refuses m "document 1 ends at sequence 1, but begins at sequence 2, and the index has 3"
index 8 4 '4, 0, 6' '0, 8, 8' '0, 4, 1, 3'
refuses m "document 0 ends at sequence 4, but begins at sequence 0, and the index has 3"
index 8 4 '4, 0, 6' '0, 8, 8' '1, 1, 2, 3'
refuses m "m.idx: the first document begins at sequence 1 instead of 0"
index 8 4 '4, 0, 6' '0, 8, 8' '0, 0, 2, 3' # sequences and documents without tokens are sound
tokmap verify m
# The fault may be anywhere in an index of many.
python3 - <<'PY'
import struct
from array import array
count = 30000
def write(name, lengths, starts, documents):
    with open(name, "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) + array("i", lengths).tobytes()
                   + array("q", starts).tobytes() + array("q", documents).tobytes())
for name in "good", "gap", "swapped":
    with open(name + ".bin", "wb") as file:
        file.write(bytes(6 * count))
starts, documents = [6 * i for i in range(count)], list(range(count + 1))
write("good.idx", [3] * count, starts, documents)
starts[20000] -= 2
write("gap.idx", [3] * count, starts, documents)
starts[20000] += 2
documents[25000] -= 2
write("swapped.idx", [3] * count, starts, documents)
PY
tokmap verify good
refuses gap "sequence 20000 begins at byte 119998 of the tokens, but the lengths of the sequences before it give 120000"
refuses swapped "document 24999 ends at sequence 24998, but begins at sequence 24999"
index 8 3 '4, 6' '0, 8' '0, 1, 2'
exits 1 tokmap index megatron:m,vocab=9 2>err
holds err "m.bin: the id at this byte is 9, but ids must be below 9"
holds err "(byte 18)"
[ ! -e m.tmx ] && [ ! -e m.tmx.partial ]
exits 1 tokmap verify megatron:m,vocab=9 >out
holds out "contains id 9, but ids must be below 9"

make n.bin 'array("i", [1, -2, 3]).tobytes()'
exits 1 tokmap index raw:n.bin,width=4 2>err
holds err "n.bin: the id at this byte is 4294967294"
make n.npy 'b"\x93NUMPY\1\0" + struct.pack("<H", 118) + b"{\"descr\": \"<i8\", \"fortran_order\": False, \"shape\": (2,)}".ljust(118) + array("q", [1, -2]).tobytes()'
exits 1 tokmap index n.npy 2>err
holds err "the element at this byte is not a token id"
make l.bin 'struct.pack("<3i", 20240520, 1, 5) + bytes(1012) + bytes(8)'
refuses l.bin "l.bin: the file is 1032 bytes long, but its header counts 5 tokens of 2 bytes, which is 1034 bytes"
make e.bin 'struct.pack("<3i", 20240522, 1, 5) + bytes(1012) + bytes(8)'
refuses llmc:e.bin "this is an evaluation file of llm.c"
make d.ds 'bytes(10)'
exits 1 tokmap info d.ds 2>err
holds err 'datatrove:PATH names a file of datatrove'
make o.npy 'bytes(10)'
exits 1 tokmap info o.npy 2>err
holds err 'olmo:PATH,width=2,eod=50256 names a file of OLMo-core'
refuses olmo:o.npy "olmo files have no header that says how wide their tokens are; add the word width"
refuses datatrove:d.ds "no .metadata beside it that says how wide its tokens are"
make d.ds.metadata 'b"gpt2|2\n6\n6 T"'
refuses datatrove:d.ds "the file has 5 tokens of 2 bytes, but its .metadata counts 6"
make d.ds.metadata 'b"gpt2|2\n5\n5 T"'
make d.ds.index 'struct.pack("<2Q", 3, 4)'
refuses datatrove:d.ds "the last document ends at token 4, but the file has 5 tokens"
make d.ds.index 'struct.pack("<3Q", 4, 3, 5)'
refuses datatrove:d.ds "d.ds.index: document 1 ends at token 3, but begins at token 4, and the file has 5 tokens"
make d.ds.index 'struct.pack("<3Q", 4, 6, 5)'
refuses datatrove:d.ds "d.ds.index: document 1 ends at token 6, but begins at token 4, and the file has 5 tokens"
make d.ds.index 'struct.pack("<3Q", 4, 4, 5)'
tokmap verify datatrove:d.ds

# A bare file is never taken for tokens.
refuses n.bin "raw:PATH,width=2,eod=50256"
refuses raw:n.bin "add the word width, for example raw:PATH,width=2,eod=50256"
refuses raw:n.bin,width=8 "which is not a multiple of 8"
refuses raw:l.bin,width=2 "this is a token file of llm.c, which is named llmc:PATH"
refuses olmo:n.npy,width=2 "this is a NumPy array, which is named npy:PATH"
refuses npy:n.bin "this is not a NumPy file"
refuses raw:n.bin,width=3 "the word width must be 1, 2, 4, or 8"
refuses raw:n.bin,width=2,width=2 "the word width is given twice"
refuses raw:n.bin,width=2,eod=70000 "correct the word eod or bos"
refuses llmc:l.bin,width=2 "a llmc file says itself how wide its tokens are"
refuses 'raw:q*.bin,width=2' "no file matches this pattern"
refuses 'raw:none.bin,width=2' "none.bin: the file of tokens cannot be opened"

# OLMo's list of documents.
need gzip
make o.npy 'bytes(20)'
printf '0,4\n5,10\n' | gzip >o.csv.gz
exits 1 tokmap index olmo:o.npy,width=2 2>err
holds err "o.csv.gz:2: the document begins at token 5, but the one before it ends at token 4"
printf '0,4\n4,11\n' | gzip >o.csv.gz
exits 1 tokmap index olmo:o.npy,width=2 2>err
holds err "the document ends at token 11, but begins at token 4, and the file has 10 tokens"
# A list that ends before the tokens has lost its last lines: no document is made of the rest.
printf '0,4\n4,8,name\n' | gzip >o.csv.gz
exits 1 tokmap index olmo:o.npy,width=2 2>err
holds err "o.csv.gz:2: the list of documents ends here, at token 8, but the file has 10 tokens"
exits 1 tokmap convert -o copy olmo:o.npy,width=2 2>err
printf '' | gzip >o.csv.gz
exits 1 tokmap index olmo:o.npy,width=2,eod=0 2>err
holds err "the list of documents ends here, at token 0, but the file has 10 tokens"
[ ! -e o.tmx ] && [ ! -e o.npy.tmx ]
printf '0,4\n4,4,name\n4,10\n\n' | gzip >o.csv.gz
tokmap index olmo:o.npy,width=2 >out 2>err
holds out "indexed 10 tokens and 3 documents in 1 file"

# The index of a packed shard stays.
pack_corpus
cp small.tmx kept
exits 1 tokmap index --force raw:small.bin,width=2 2>err
holds err "this is the index of a packed shard, which is not replaced"
same small.tmx kept
exits 2 tokmap index 2>err
exits 1 tokmap index nothing 2>err
holds err "name other files by their kind"

# A shard has its index already; a folder that cannot be written; a .bin of which the prefix was typed.
for name in small small.bin small.tmx; do
    exits 1 tokmap index $name 2>err
    holds err "this is a dataset that has its indexes already, such as \`tokmap pack\` makes"
done
exits 1 tokmap info n 2>err
holds err "n: the shard has no index"
holds err "or, if it has tokens of another program without a header, name it raw:PATH,width=2,eod=50256"
exits 1 tokmap info nowhere 2>err
holds err "there is no run file and no dataset of this name"
# As a user who may not write there.
user=
if [ "$(id -u)" = 0 ]; then
    chmod a+rx .
    user='setpriv --reuid 65534 --clear-groups'
    $user tokmap info small >out 2>&1 || exit 0 # this machine has no such user, or a folder above is closed to it
fi
mkdir theirs
cp small.bin small.tmx n.bin theirs
tokens=$(tokmap info small --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens"])')
head -c "$tokens" /dev/zero >theirs/mask
chmod a+r theirs/*
chmod 555 theirs
exits 1 $user tokmap seal theirs/small 2>err
holds err "its folder, that of the shard, may not be writable for you"
exits 1 $user tokmap index --mask theirs/mask theirs/small 2>err
holds err "run the command as the owner of the shard, or copy it with \`tokmap convert\`"
exits 1 $user tokmap index raw:theirs/n.bin,width=4,vocab=10 2>err
holds err "link the files into a folder of your own, and name the links"
chmod 755 theirs
