# SPDX-License-Identifier: MIT
# A shard made with a vocabulary: the token that ends a document must be chosen, any number of threads writes the same
# bytes, and the index records the tokenizer, which is needed to print text.
. "$TOKMAP_CLI/helpers.sh"
need base64
ranks
corpus
mkdir more
i=0
while [ $i -lt 20000 ]; do
    printf '{"text": "hello %d hello help <|end|> \\u00e9 line %d of some, and more hello"}\n' $i $i
    i=$((i + 1))
done >more/d.jsonl
pack()
{
    tokmap pack -q -t v.tiktoken --pattern gpt2 "$@"
}
exits 2 pack -o none in 2>err
holds err --eod
holds err --no-eod
equal "$(ls none.* 2>/dev/null | wc -l | tr -d ' ')" 0
pack -o plain --no-eod in
pack -o seven --eod=7 in
for threads in 1 2 5; do
    pack -o by$threads --special-tokens specials.json --special recognize --threads $threads in more
    tokmap verify -q by$threads
done
same by1.bin by2.bin
same by1.bin by5.bin
same by1.tmx by2.tmx
same by1.tmx by5.tmx
# The tokens equal those of encode.
printf 'hello hello help' >small.txt
pack -o small --special-tokens specials.json small.txt
equal "$(od -An -v -tu2 small.bin | tr -s ' \n' ' ')" ' 259 260 32 256 108 112 301 '
equal "$(tokmap show small -d 0 -q --ids)" '259 260 32 256 108 112 301'
# Printing text needs the same tokenizer; whether special tokens were recognized is found automatically.
show()
{
    tokmap show -q -t v.tiktoken --pattern gpt2 --special-tokens specials.json "$@"
}
equal "$(show small -d 0)" 'hello hello help'
equal "$(show small -d 0 --specials)" 'hello hello help<|endoftext|>'
show by2 -d 1 >out
same out in/b/long.txt
equal "$(show by1 -d 18 --specials)" 'hello 0 hello help <|end|> é line 0 of some, and more hello<|endoftext|>'
equal "$(tokmap show -q by1 -d 18 --specials)" 'hello 0 hello help <|end|> é line 0 of some, and more hello<|endoftext|>'
mv v.tiktoken away
exits 1 tokmap show by1 -d 18 2>err
holds err "--tokenizer"
mv away v.tiktoken
exits 1 tokmap show by1 -d 18 -t v.tiktoken --pattern gpt2 2>err
holds err 'was not made with this tokenizer'
exits 1 tokmap show by1 -d 18 -t v.tiktoken --pattern cl100k_base --special-tokens specials.json 2>err
holds err 'was not made with this tokenizer'
exits 2 tokmap show by1 -d 18 --pattern gpt2 2>err
tokmap show by1 -d 18 --ids -q >out
# Ids that need more than 16 bits.
printf '{"<|far|>": 70000}' >far.json
pack -o far --special-tokens far.json --eod=far small.txt
equal "$(od -An -v -tu4 far.bin | tr -s ' \n' ' ')" ' 259 260 32 256 108 112 70000 '
tokmap verify -q far
equal "$(tokmap show -q far -d 0 -t v.tiktoken --pattern gpt2 --special-tokens far.json --specials)" \
    'hello hello help<|far|>'
need python3
tokmap info --json by1 >info
json info
equal "$(field info shards.0.about.tokenizer.special)" recognise # kept spelling
equal "$(field info shards.0.about.tokenizer.pattern)" gpt2
equal "$(field info tokenizer)" "$(field info shards.0.about.tokenizer.fingerprint)"
equal "$(field info tokenizer_name)" "$(field info shards.0.about.tokenizer.name)"
equal "$(field info eod_id)" 301
equal "$(field info width)" 2
# The index records the tokenizer's files as they were given. They are not part of the identity of the data.
equal "$(field info shards.0.about.tokenizer.path)" v.tiktoken
equal "$(field info shards.0.about.tokenizer.special_tokens)" specials.json
mkdir 'vocabularies of mine'
cp v.tiktoken specials.json 'vocabularies of mine'
tokmap pack -q -t 'vocabularies of mine/v.tiktoken' --pattern gpt2 \
    --special-tokens "$PWD/vocabularies of mine/specials.json" --special recognize -o elsewhere in more
tokmap info --json elsewhere >other
equal "$(field other shards.0.about.tokenizer.path)" 'vocabularies of mine/v.tiktoken'
equal "$(field other shards.0.about.tokenizer.special_tokens)" "$PWD/vocabularies of mine/specials.json"
equal "$(field other content)" "$(field info content)"
same elsewhere.bin by1.bin
# The built-in tokenizer has no file.
tokmap pack -q -o bytes small.txt
tokmap info --json bytes >other
equal "$(python3 -c 'import json
print(sorted(json.load(open("other"))["shards"][0]["about"]["tokenizer"]))')" \
    "['fingerprint', 'name', 'pattern', 'pattern_regex', 'special']"
