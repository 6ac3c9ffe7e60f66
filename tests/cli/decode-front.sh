# SPDX-License-Identifier: MIT
# ci: asan
# A tokenizer that puts a space before each document: decoding removes that space once per document, however long the
# document is, and removes no space of the text.
. "$TOKMAP_CLI/helpers.sh"
{
    printf '{"version": "1.0", "truncation": null, "padding": null, "added_tokens": ['
    printf '{"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, '
    printf '"special": true}, {"id": 1, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, '
    printf '"normalized": false, "special": true}], "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", '
    printf '"prepend": "\\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\\u2581"}]}, '
    printf '"pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", '
    printf '"pattern": {"String": "\\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": '
    printf '"Strip", "content": " ", "start": 1, "stop": 0}]}, "model": {"type": "BPE", "dropout": null, "unk_token": '
    printf '"<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, '
    printf '"vocab": {"<unk>": 0, "</s>": 1, '
    i=0
    while [ $i -lt 256 ]; do
        printf '"<0x%02X>": %d, ' $i $((i + 2))
        i=$((i + 1))
    done
    printf '"\\u2581": 258, "a": 259, "b": 260, "\\u2581a": 261}, "merges": ["\\u2581 a"]}}'
} >tokenizer.json
json tokenizer.json
# back WANTED: encodes the text in the file `in`, compares the ids, and decodes them again.
back()
{
    equal "$(tokmap encode -t tokenizer.json in)" "$1"
    tokmap encode -t tokenizer.json in | tokmap decode -t tokenizer.json | cmp - in
}
printf 'a' >in
back 261
printf ' a' >in
back '258 261'
printf '  ' >in
back '258 258 258'
printf 'ab a\n' >in
back '261 260 261 12'
: >in
back ''
printf 'a' >in
equal "$(tokmap encode -t tokenizer.json --eod --bos='<unk>' in)" '0 261 1'
equal "$(echo 0 261 1 | tokmap decode -t tokenizer.json)" a
# More ids than are decoded at a time; those at the border have spaces before them.
i=0
while [ $i -lt 3000 ]; do
    printf ' a b  a'
    i=$((i + 1))
done >in
tokmap encode -t tokenizer.json in | tokmap decode -t tokenizer.json | cmp - in
tokmap encode -t tokenizer.json --output-format jsonl in |
    tokmap decode -t tokenizer.json --output-format text | cmp - in
# Documents of a shard come out unchanged.
printf '{"text": "a"}\n{"text": " a b"}\n{"text": ""}\n' >in.jsonl
tokmap pack -q -o d -t tokenizer.json in.jsonl in
tokmap show -q d -d 1 -t tokenizer.json >out
equal "$(cat out)" ' a b'
equal "$(tokmap show -q d -d 0 -t tokenizer.json --specials)" 'a</s>'
tokmap show -q d -d 3 -t tokenizer.json | cmp - in
