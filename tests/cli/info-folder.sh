# SPDX-License-Identifier: MIT
# ci: asan
# A folder of datasets of several tokenizers is listed. One whose shards agree is a dataset.
. "$TOKMAP_CLI/helpers.sh"
ranks
mkdir -p data/more data/none data/mixed
printf 'hello hello\n' >a.txt
tokmap pack -q -o data/bytes a.txt
tokmap pack -q --no-eod -t v.tiktoken --pattern gpt2 -o data/ranks a.txt
cp data/ranks.* data/more/
cp data/bytes.bin data/mixed/b.bin
cp data/bytes.tmx data/mixed/b.tmx
cp data/ranks.* data/mixed/
printf 'tokmap-shards 1\nbytes\nbytes\n' >data/twice
echo text >data/notes.txt
tokmap info data
tokmap info data --json >json
json json
need python3
python3 - <<'END'
import json
found = json.load(open("json"))
assert found["folder"] == "data"
names = [one["dataset"] for one in found["datasets"]]
assert names == ["data/bytes", "data/mixed", "data/more", "data/ranks", "data/twice"], names
one = found["datasets"][4]
assert (one["tokens"], one["documents"], one["shards"], one["tokenizer_name"]) == (26, 2, 2, "bytes"), one
assert found["datasets"][0]["error"] is None and "differ" not in found["datasets"][0]
assert "tokenizer" in found["datasets"][1]["error"]
END
# Arguments of a run need one dataset, and a fault in one of the datasets is a fault.
exits 1 tokmap info data --seq-len 4 2>err
holds err "pack both with the same tokenizer"
: >data/ranks.bin
exits 1 tokmap info data >out 2>err
holds out "data/ranks                           cannot be opened"
holds out "data/twice "
holds err "data/ranks.bin: the file is 0 bytes long"
# Tokens without their index are an error, in the folder and below it, and no list without them.
mkdir -p short/below several/below
cp data/bytes.bin short/lost.bin
for folder in short short/below several several/below; do cp data/bytes.bin data/bytes.tmx "$folder/"; done
cp data/more/ranks.* several/
for options in '' --json; do
    exits 1 tokmap info short $options >out 2>err
    holds err "short/lost.bin: the folder has shards, and this file has the name of a shard's tokens"
    [ ! -s out ]
done
tokmap info several >out
holds out "several/below"
mv short/lost.bin several/below/
exits 1 tokmap info several >out 2>err
holds err "several/below/lost.bin: the folder has shards"
# Shards that agree.
tokmap info data/more >out
holds out "dataset           data/more"
