# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# merge writes a manifest that names the shards of several datasets, from wherever the manifest is.
. "$TOKMAP_CLI/helpers.sh"
mkdir -p data/deep other/more work
for name in one two three; do
    printf 'the text %s' $name >$name.txt
done
tokmap pack -q -o data/one one.txt
tokmap pack -q -o data/deep/two two.txt
tokmap pack -q -o other/three three.txt
texts()
{
    tokmap export -q --text "$1" | sed 's/the text //' | tr '\n' ' '
}
# The names in a manifest; its lines go on with the sizes of the shards.
names()
{
    equal "$(head -n 1 "$1")" '# tokmap manifest 2'
    grep -v '^#' "$1" | cut -f 1
}
tokmap merge -o data/all data/one data/deep other/three >out
equal "$(cat out)" 'data/all: 41 tokens in 3 documents and 3 shards; nothing was copied, so keep them where they are'
equal "$(names data/all)" 'one
deep/two
../other/three'
equal "$(texts data/all)" 'one two three '
# The order is that of the operands; a manifest is an operand like others; cat is another name.
tokmap cat -q -o other/more/again other/three data/all
equal "$(texts other/more/again)" 'three one two three '
cd work
tokmap merge -q -o ../here ../data/one ../other
equal "$(names ../here)" 'data/one
other/three'
tokmap merge -q -o "$PWD/there" ../data/one
equal "$(names there)" '../data/one'
tokmap merge -q -o absolute --absolute ../data/one.tmx ../other/three.bin
equal "$(names absolute | head -n 1)" "${PWD%/work}/data/one"
mkdir below
mv absolute below
equal "$(texts below/absolute)" 'one three '
cd ..
tokmap merge -q -o given "$PWD/data/one"
equal "$(names given | head -n 1)" "$PWD/data/one"
# A shard that is named twice is seen twice: upsampling in whole numbers.
tokmap merge -o mix data/one other/three other/three >out
holds out '1 shard named again: a shard that is named N times is seen N times in each epoch'
equal "$(texts mix)" 'one three three '
tokmap merge -o mix --json --force data/one other/three other/three >report
json report
holds report '"output": "mix", "shards": 3, "repeated": 1, "tokens": 43, "documents": 3, '
printf 'seq_len 43\nlookahead 0\nbatch 1\nsource data mix\npasses 1\n' >train.run
tokmap show train.run --step 0 -q >row
equal "$(cat row)" 'the text onethe text threethe text three'
# Shards with a mask; parts that are whole shards.
printf '{"ids": [1, 2], "m": [0, 1]}\n{"ids": [3], "m": [1]}\n' >m.jsonl
tokmap pack -q --ids-field ids --mask-field m -t bytes -o data/masked m.jsonl
tokmap merge -q -o masked data/masked data/one data/masked
tokmap stats masked --json >report
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report targets)" 21
fi
tokmap merge -q -o single data/masked
tokmap merge -q -o second 'mix#docs=1..3'
equal "$(names second)" 'other/three
other/three'
# Through a symbolic link, the text of two paths does not say where one is from the other: the names become absolute.
mkdir -p far/away
ln -s far/away link
tokmap merge -q -o link/all data/one other
equal "$(texts link/all)" 'one three '
equal "$(names link/all | head -n 1)" "$PWD/data/one"
# Names that a manifest would read in another way.
mkdir odd
for name in '#a' ' b ' 'c.bin' 'd.tmx'; do
    cp data/one.bin "odd/$name.bin"
    cp data/one.tmx "odd/$name.tmx"
done
cd odd
tokmap merge -q -o all '#a' ' b ' c.bin.tmx d.tmx.bin
equal "$(texts all)" 'one one one one '
# A manifest of which no shard is there.
printf 'gone' >gone.txt
tokmap pack -q --force -o gone gone.txt
tokmap merge -q -o none gone
rm gone.*
exits 1 tokmap verify none 2>err
holds err "none:3: the shard gone.tmx or its .bin does not exist"
