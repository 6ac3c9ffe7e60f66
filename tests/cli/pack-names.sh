# SPDX-License-Identifier: MIT
# Names of outputs: with the ending of one of the files, and beside a folder of the same name.
. "$TOKMAP_CLI/helpers.sh"
mkdir data texts
printf 'some text' >texts/a.txt
tokmap pack -o data/q.bin texts >out
holds out 'data/q.bin ('
tokmap pack -o data/a.tmx texts >/dev/null
equal "$(ls data | tr '\n' ' ')" 'a.bin a.tmx q.bin q.tmx '
tokmap info data/q.bin >/dev/null
tokmap verify -q data/a
tokmap info data/a >out
holds out 'data/a'
tokmap pack -o data/v1.bin.tmx texts >/dev/null
[ -f data/v1.bin.bin ]
# A folder of that name.
exits 1 tokmap pack -o data texts 2>err
holds err "data: this is a folder"
holds err "write into it with '-o data/NAME', or choose another name than 'data'"
exits 1 tokmap pack --force -o data.bin texts 2>err
holds err "data: this is a folder"
for wrong in '' data/ . .. data/.bin .tmx data/..; do
    exits 2 tokmap pack -o "$wrong" texts 2>err
    holds err 'the name of the output is empty or names a folder'
done
holds err "'data/NAME'"
equal "$(ls data.* 2>/dev/null)" ''
# A manifest of that name, but no other file.
printf 'tokmap-shards 1\ndata/q\n' >all
exits 1 tokmap pack -o all texts 2>err
holds err 'all: this is a manifest'
tokmap info all >/dev/null
echo text >notes
tokmap pack -q -o notes notes
# Long names: while a shard is replaced, its files have longer names. What is too long for that is refused before the
# inputs are read, and the shard stays.
name=$(printf '%234s' | tr ' ' x)
for i in 1 2; do
    echo "$i" >one.txt
    tokmap pack -q --force -o "$name" one.txt
    tokmap verify -q "$name"
done
rm one.txt
equal "$(tokmap export -q "$name")" '{"text": "2\n"}'
tokmap pack -q -o "x$name" texts
exits 1 tokmap pack -q --force -o "x$name" no-such-input 2>err
holds err "the shard exists and cannot be replaced"
holds err "choose a shorter name, or remove this shard first"
tokmap verify -q "x$name"
equal "$(ls | grep -c 'xxxx')" 4
# The same for train.
mkdir vocab
tokmap train-tokenizer -o vocab/tokenizer.json --vocab-size 257 texts >out
holds out "wrote vocab/tokenizer.json, .tiktoken"
holds out "  tokmap tokenizer vocab/"
tokmap tokenizer vocab/ >/dev/null
tokmap train-tokenizer -q -o vocab/ranks.tiktoken --vocab-size 257 texts
equal "$(ls vocab | tr '\n' ' ')" 'ranks.json ranks.tiktoken tokenizer.json tokenizer.tiktoken tokenizer_config.json '
exits 1 tokmap train-tokenizer -q -o vocab --vocab-size 257 texts 2>err
holds err "write into it with '-o vocab/NAME'"
