# SPDX-License-Identifier: MIT
# ci: asan
# Values beside shards, from .npy and raw files: made, shown, verified, replaced, refused, and left out with a warning.
. "$TOKMAP_CLI/helpers.sh"
need python3
printf 'question answer' >a.txt
printf 'another text' >b.txt
tokmap pack -q -t bytes --no-eod -o one a.txt b.txt
mkdir set
tokmap pack -q -t bytes --no-eod -o set/web --shard-tokens 16 a.txt b.txt
python3 - <<'END'
import struct
def npy(name, descr, shape, data, order=False):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %r, }" % (descr, order, shape)
    head += " " * (53 - len(head) % 64 if len(head) % 64 < 53 else 117 - len(head) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + data)
weights = struct.pack("<27f", *range(27))
npy("w.npy", "<f4", (27,), weights)
npy("t.npy", "<f2", (27, 2, 3), struct.pack("<162e", *range(162)))
npy("bf.npy", "|V2", (27,), bytes(54))
npy("big.npy", ">f4", (27,), weights)
npy("object.npy", "|O", (27,), bytes(300))
npy("order.npy", "<f4", (27, 3), bytes(324), True)
npy("short.npy", "<f4", (26,), weights[:-4])
npy("none.npy", "<f4", (), bytes(4))
npy("cut.npy", "<f4", (27,), weights[:-1])
npy("nan.npy", "<f4", (27,), weights[:40] + struct.pack("<f", float("nan")) + weights[44:])
open("raw", "wb").write(weights)
END
tokmap index --values weights=w.npy one >out
holds out "one: values 'weights', f32, of 27 tokens in 1 file"
equal "$(wc -c <one.weights.values | tr -d ' ')" 8208
tokmap index --values weights:f32=raw set >out
holds out "set: values 'weights', f32, of 27 tokens in 2 files"
[ -e set/web-00000.weights.values ] && [ -e set/web-00001.weights.values ]
[ ! -e set/weights.values.notes ]
equal "$(tokmap index --values t=t.npy one --json)" '{"dataset": "one", "values": "t", "tokens": 27, "files": 1}'
tokmap index -q --values b:bf16=bf.npy one
tokmap info one >out
holds out "values            b, bf16, of 27 tokens (100.00%) in 1 file"
holds out "values            t, f16[2,3], of 27 tokens (100.00%) in 1 file"
tokmap info set --json >out
holds out '"values": [{"name": "weights", "element": "f32", "shape": [], "tokens": 27, "files": 2, "file": "set/web-00000.weights.values"}]'
tokmap verify one >out
holds out "sound"
# The values of tokens, after their text or ids.
equal "$(tokmap show one --tokens 5..7 --ids -q --values weights)" "105 111
5 5
6 6"
tokmap show one -d 1 -q --values t >out
equal "$(sed -n 2p out)" "15 90 91 92 93 94 95"
tokmap show set --tokens 15..17 -q --json --values weights >out
holds out '"values": [15, 16]}'
tokmap show one --tokens 0..2 -q --json --values t >out
holds out '"values": [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]}'
exits 1 tokmap show one --tokens 0..2 -q --values else 2>err
holds err "the values 'else' of the shard cannot be opened"
# The index and the content id stay.
cp one.tmx before.tmx
exits 1 tokmap index --values weights=w.npy one 2>err
holds err "the shard has finished values 'weights'; choose another name, or use --force"
cp one.weights.values before
tokmap index --values weights=w.npy one --force -q
cmp -s one.weights.values before && echo "the number of the work is another one" && exit 1
tail -c +4097 before >old
tail -c +4097 one.weights.values >new
same old new
same one.tmx before.tmx
# What does not fit.
for wrong in "big.npy:the array has type '>f4'" "object.npy:the array has type '|O'" "order.npy:and Fortran order" \
    "short.npy:the first dimension of the array is 26, but the dataset has 27 tokens" "none.npy:0 dimensions" \
    "cut.npy:27 tokens with f32 need 108 bytes" "raw:this is not a .npy file, so say what it has" "gone:cannot be opened"; do
    exits 1 tokmap index --values "x=${wrong%%:*}" one 2>err
    holds err "${wrong#*:}"
done
exits 1 tokmap index --values "x:f16=raw" one 2>err
holds err "27 tokens with f16 need 54 bytes from byte 0 on, but the file has 108 bytes"
exits 1 tokmap index --values x one 2>err
holds err "must be WHAT=FILE.npy or WHAT:f16[32]=FILE"
exits 1 tokmap index --values mask=w.npy one 2>err
holds err "other files of a shard have"
exits 2 tokmap index --values x=w.npy --mask a.txt one 2>err
holds err "excludes --mask"
[ -z "$(ls | grep notes)" ]
exits 1 tokmap index --values x=nan.npy one 2>err
holds err "a value 'x' of token 10 of the shard (10 of the dataset) is NaN"
[ -z "$(ls | grep 'partial\|notes')" ] # nothing of a refused file is left to be finished
exits 1 tokmap index --values x:u16=nan.npy one 2>err
holds err "the array is f32, but u16 is asked for"
exits 2 tokmap index --values x=nan.npy --values y=nan.npy one 2>err
holds err "run the command for each of them"
tokmap index -q --values x=w.npy one
tokmap verify one >out
holds out "sound"
# Every changed byte is found, and values of other tokens are refused.
cp one.x.values sound
for at in 0 8 30 70 90 2000 4090 4100 4203 4400 8190 8195 8197 8200 8207; do
    cp sound one.x.values
    printf '\377' | dd of=one.x.values bs=1 seek=$at conv=notrunc 2>/dev/null
    exits 1 tokmap verify one >out 2>&1
    holds out "one.x.values: "
done
head -c 8000 sound >one.x.values
exits 1 tokmap verify one >out 2>&1
holds out "the values are 8000 bytes long, but their header says 8208"
cp sound one.x.values
tokmap pack -q -t bytes --no-eod -o two b.txt a.txt
cp one.x.values two.x.values
tokmap info two >out 2>err
holds err "warning: two.x.values: these values belong to the tokens with content id"
exits 1 tokmap verify two >out
holds out "it was packed again or exchanged since then"
tokmap pack -q -t bytes --no-eod --force -o one b.txt a.txt
exits 1 tokmap verify one >out
holds out "one.t.values: these values belong to the tokens"
# Sealing keeps them, copies have them, and conversions say that they are left out.
tokmap seal -q set
tokmap verify set >out
holds out "sound"
tokmap copy -q set copied
for file in set/*.values; do
    cmp "$file" "copied/${file#set/}"
done
tokmap verify copied >out
holds out "sound"
tokmap convert -q --to tokmap -o single set 2>err
holds err "the values 'weights' beside the shards are left out"
