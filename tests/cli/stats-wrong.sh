# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Misuse, ids outside the vocabulary, files that are cut, and signals.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
exits 2 tokmap stats 2>err
exits 2 tokmap stats small -j 0 2>err
holds err "--threads must be between 1 and"
exits 2 tokmap stats small --top 10001 2>err
exits 2 tokmap stats small --unused --no-ids 2>err
holds err "--unused needs the ids"
printf 'seq_len 64\nbatch 8\nsource web small\n' >train.run
exits 2 tokmap stats train.run 2>err
holds err "'train.run' is a run; name the datasets of its sources"
exits 2 tokmap info train.run --lengths 2>err
exits 2 tokmap info small --lengths --seq-len 8 2>err
holds err "--lengths is for a dataset"
exits 1 tokmap stats nothing 2>err
exits 1 tokmap stats small -t nothing.json 2>err
holds err nothing.json
[ -w /dev/full ] && exits 1 tokmap stats small >/dev/full 2>err

# The first wrong id is named, whichever thread finds one: at the end of the first piece that a thread takes, inside the
# table of counters, outside of it, and in a vocabulary that is larger than any table.
python3 - <<'PY'
from array import array
def write(name, code, wrong):
    ids = array(code, [1, 2, 3, 4]) * 3000000
    for at, id in wrong:
        ids[at] = id
    with open(name, "wb") as file:
        file.write(ids.tobytes())
write("w2.bin", "H", [(4194303, 300), (4194304, 65535), (11999999, 301)])
write("w4.bin", "I", [(8388607, 300), (8388608, 4294967295), (11999999, 4294967295)])
write("first.bin", "I", [(5, 4294967295), (6, 300)])
write("large.bin", "I", [(4194305, 4000000000), (11999999, 3000000000)])
PY
wrong()
{
    for threads in 1 2 5; do
        exits 1 tokmap stats -q -j $threads "$1" >out 2>err
        holds err "token $2 of the dataset is id $3, but ids must be below $4"
        [ ! -s out ]
    done
    exits 1 tokmap verify -q "$1" >out
}
wrong raw:w2.bin,width=2,vocab=300 4194303 300 300
wrong raw:w4.bin,width=4,vocab=300 8388607 300 300
wrong raw:first.bin,width=4,vocab=300 5 4294967295 300
wrong raw:large.bin,width=4,vocab=3000000000 4194305 4000000000 3000000000
# Two bytes that make other ids of the vocabulary: the tokens are compared with their hashes before they are counted.
head -c 3000 /dev/zero | tr '\0' a >a.txt
tokmap pack -q --no-eod -o a a.txt
python3 -c 'open("a.bin", "r+b").write(b"\xfa\0")'
exits 1 tokmap stats a >out 2>err
holds err "a.bin: block 0 of the tokens does not match its hash; restore the file"
[ ! -s out ]
tokmap stats -q --no-ids a >out # which reads the index alone
exits 1 tokmap verify -q a >out
# A file that was cut.
cp small.tmx cut.tmx
head -c 20000 small.bin >cut.bin
exits 1 tokmap stats cut >out 2>err
[ -s err ]
# A signal ends it without a result.
python3 - <<'PY'
with open("sparse.bin", "wb") as file:
    file.truncate(1 << 40)
PY
[ "$(wc -c <sparse.bin | tr -d ' ')" = 1099511627776 ] || skip "no large sparse files here"
tokmap stats -q raw:sparse.bin,width=2 >out 2>err &
child=$!
sleep 1
kill -TERM $child
status=0
wait $child || status=$?
equal $status 143 "exit status:"
[ ! -s out ]
