# SPDX-License-Identifier: MIT
# A model's folder: which files are used, what they contradict, the tokens around documents, and texts that are cut.
. "$TOKMAP_CLI/helpers.sh"
mkdir model
cat >model/tokenizer.json <<'END'
{"version": "1.0", "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "added_tokens": [
  {"id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
   "normalized": false, "special": true},
  {"id": 4, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
   "normalized": false, "special": true},
  {"id": 5, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
   "normalized": false, "special": true}],
 "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": true},
  {"type": "RobertaProcessing", "cls": ["<s>", 3], "sep": ["</s>", 4],
   "trim_offsets": true, "add_prefix_space": false}]},
 "decoder": null, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
END
tokmap tokenizer model >out
holds out 'ends a document    4  </s>'
holds out 'begins a document  3  <s>'
holds out 'post-processor     <s> before and </s> after a text; --bos and --eod choose what is written'
holds out 'used               tokenizer.json: the vocabulary'
echo '{"eos_token": "<end>"}' >model/tokenizer_config.json
echo '{"eos_token": "</s>"}' >model/special_tokens_map.json
echo 'not JSON' >model/added_tokens.json
printf '#version: 0.2\n' >model/merges.txt
tokmap tokenizer model >out 2>err
equal "$(cat err)" ''
holds out 'ends a document    5  <end>'
holds out 'tokenizer_config.json: eos_token <end>'
holds out 'not used           added_tokens.json: '
holds out 'merges.txt: tokenizer.json is the vocabulary'
holds out 'special_tokens_map.json: its eos_token is another one'
equal "$(grep -c '^warning' out)" 3
tokmap tokenizer --json model >json
json json
if command -v python3 >/dev/null; then
    equal "$(field json eod)" 5
    equal "$(field json post_processor)" '<s> before and </s> after'
    equal "$(field json files.3.name)" tokenizer.json
    equal "$(field json cut_as)" null
fi
# Other commands print the warnings, and pack what the post-processor would do.
echo ab >text
tokmap pack -t model -o data text >out 2>err
equal "$(grep -c 'warning: model: ' err)" 3
holds out 'end with   <end> (5)'
holds out "(the file's post-processor puts <s> before and </s> after a text; here --bos and --eod choose)"
tokmap pack -q --force -t model/tokenizer.json -o data text 2>err
equal "$(cat err)" ''
# What transformers 5 does otherwise: it takes the steps of the class.
mkdir class
cat >class/tokenizer.json <<'END'
{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
  "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "Hello": 1, "hello": 2, "World": 3}}}
END
echo '{"tokenizer_class": "BertTokenizer"}' >class/tokenizer_config.json
tokmap tokenizer class >out
holds out "by those of BertTokenizer, so it gives other ids than the file and tokmap, such as for 'Hello World'"
echo 'Hello World' >hello
equal "$(tokmap encode -t class hello)" '1 3'
tokmap pack -t class --no-eod -o class.data hello >/dev/null 2>err
holds err 'warning: class: AutoTokenizer of transformers 5 replaces steps of tokenizer.json'
# Tokens that are only named are not compared with each added token, which takes a minute here.
mkdir many
awk 'BEGIN {
    printf "{\"version\": \"1.0\", \"added_tokens\": ["
    for (i = 0; i < 150000; i++)
        printf "%s{\"id\": 0, \"content\": \"<%d>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false," \
               "\"normalized\": false, \"special\": true}", i ? "," : "", i
    printf "], \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"a\", \"continuing_subword_prefix\": \"##\","
    print "\"max_input_chars_per_word\": 100, \"vocab\": {\"a\": 0}}}"
}' >many/tokenizer.json
awk 'BEGIN {
    printf "{\"additional_special_tokens\": [\"<x>\""
    for (i = 150000; i-- > 85000;)
        printf ", \"<%d>\"", i
    print "]}"
}' >many/special_tokens_map.json
timeout 10 tokmap tokenizer many >out
holds out "'<x>' is named as a special token"
sed -i 's/"<x>"/"<7>"/' many/special_tokens_map.json
timeout 10 tokmap tokenizer many >out
! grep -q 'is named' out || { echo 'FAULT: a token that the vocabulary has is named' >&2 && exit 1; }
# A vocab.txt alone does not say whether text is made lower case. A dataset knows it by its fingerprint.
printf '%s\n' '[UNK]' Hello hello World '[SEP]' >vocab.txt
exits 1 tokmap encode -t vocab.txt hello 2>err
holds err "--lower-case must be 'yes' or 'no'"
equal "$(tokmap encode -t vocab.txt --lower-case no hello)" '1 3'
equal "$(tokmap encode -t vocab.txt --lower-case yes hello)" '2 0'
for case in yes no; do
    tokmap pack -q --no-eod -t vocab.txt --lower-case $case -o case.$case hello
    tokmap show case.$case --document 0 >$case.out
    tokmap show -t vocab.txt case.$case --document 0 >again.out
    same $case.out again.out
done
holds yes.out hello
holds no.out 'Hello World'
exits 1 tokmap show -t vocab.txt --lower-case yes case.no --document 0 2>err
holds err 'was not made with this tokenizer'
exits 1 tokmap encode -t model/tokenizer.json --lower-case no hello 2>err
holds err '--lower-case is for a vocab.txt only'
# A text of 25,001 characters is cut once. The pair at the cut is then two tokens.
(printf 'aabab' | tr -d '\n'; i=0; while [ $i -lt 12499 ]; do printf ab; i=$((i + 1)); done) >long
tokmap encode -t model/tokenizer.json long | tr ' ' '\n' >whole
tokmap encode -t model/tokenizer.json --cut-as kimi long | tr ' ' '\n' >cut
equal "$(grep -c 2 whole)" 12501
equal "$(grep -c 2 cut)" 12500
tokmap pack -t model/tokenizer.json --cut-as llama3 -o cut.data long >out
holds out 'cut        as by the code of llama3'
tokmap show cut.data --document 0 >/dev/null
tokmap info cut.data | grep -q 'llama3' || { echo 'FAULT: info does not name the cuts' >&2 && exit 1; }
exits 1 tokmap encode -t model/tokenizer.json --cut-as gpt text 2>err
holds err "--cut-as is 'gpt'"

data=${TOKMAP_DATA:-$TOKMAP_TREE/../shared/data}
if [ ! -d "$data/vocab" ] && [ -f "$data/vocab.tar.zst" ] && command -v zstd >/dev/null 2>&1; then
    mkdir data.d && zstd -qdc "$data/vocab.tar.zst" | tar -xf - -C data.d || exit 1
    data=data.d
fi
[ -d "$data/vocab" ] || exit 0
tokmap tokenizer "$data/vocab/llama3/tokenizer.model" >out
holds out 'long texts         encoded as a whole; --cut-as cuts them'
tokmap pack -t "$data/vocab/llama3/tokenizer.model" --force -o data long text >out
holds out '1 document of more than 25,000 bytes as a whole: the code of llama3 may cut such texts'
