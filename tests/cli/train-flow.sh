# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# A vocabulary is trained, described, and used. Its files do not depend on the threads or the order of the inputs, and
# the numbers of the reports agree.
. "$TOKMAP_CLI/helpers.sh"
corpus
mkdir vocab
tokmap train-tokenizer -o vocab/tokenizer --vocab-size 400 --special-tokens '<|endoftext|>,<pad>' in >out
holds out 'trained'
equal "$(ls vocab | tr '\n' ' ')" 'tokenizer.json tokenizer.specials.json tokenizer.tiktoken tokenizer_config.json '
# What AutoTokenizer of transformers needs; tests/python/test_tokenizer.py opens it.
equal "$(tr -s '\n ' ' ' <vocab/tokenizer_config.json)" '{ "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false, "eos_token": "<|endoftext|>", "pad_token": "<pad>", "additional_special_tokens": ["<|endoftext|>", "<pad>"] } '
tokmap tokenizer vocab >out 2>err
holds out 'ends a document    398  <|endoftext|>'
[ ! -s err ]
exits 1 tokmap train-tokenizer -q -o vocab/tokenizer --vocab-size 400 in 2>err
holds err 'the output already exists'
json_whole()
{
    command -v python3 >/dev/null 2>&1 || return 0
    python3 -c 'import json, sys; json.load(open(sys.argv[1], "rb"))' "$1"
}
json_whole vocab/tokenizer.json
json_whole vocab/tokenizer.specials.json
equal "$(wc -l <vocab/tokenizer.tiktoken | tr -d ' ')" 398
equal "$(head -n 1 vocab/tokenizer.tiktoken)" 'IQ== 0'
holds vocab/tokenizer.specials.json '"<|endoftext|>": 398'
# Another number of threads and another order of inputs.
tokmap train-tokenizer -q --threads 5 -o other --vocab-size 400 --special-tokens '<|endoftext|>,<pad>' in/c.jsonl in/b in/a.txt
same vocab/tokenizer.json other.json
same vocab/tokenizer.tiktoken other.tiktoken
same vocab/tokenizer.specials.json other.specials.json
# From a pipe, with a JSON report.
cat in/a.txt in/b/long.txt | tokmap train-tokenizer -o pipe --vocab-size 300 --json >report
json report
equal "$(field report vocabulary)" 300
equal "$(field report merges)" 44
equal "$(field report documents)" 1
equal "$(field report text_bytes)" "$(cat in/a.txt in/b/long.txt | wc -c | tr -d ' ')"
[ ! -e pipe.specials.json ]
# The report's number of tokens equals that of packing the text, and the text comes back unchanged.
tokmap pack -q --no-eod -t pipe.json -o packed in/a.txt in/b/long.txt
tokmap train-tokenizer -o again --vocab-size 300 --json in/a.txt in/b/long.txt >report
equal "$(field report tokens)" "$(tokmap info --json packed | sed -n 's/.*"tokens": *\([0-9]*\).*/\1/p')"
tokmap encode -t vocab --eod in/b/long.txt | tokmap decode -t vocab >back
same back in/b/long.txt
tokmap tokenizer vocab/tokenizer.json >out
holds out '<|endoftext|>'
# What a killed train with special tokens has left is removed also by a train without them.
for left in killed.tiktoken.partial killed.json.partial killed.specials.json.partial; do echo '{' >$left; done
tokmap train-tokenizer -q -o killed --vocab-size 260 in
equal "$(echo killed.*)" 'killed.json killed.tiktoken'
# The file contains the pattern.
tokmap train-tokenizer -q -o gpt2 --vocab-size 256 --pattern gpt2 in
holds gpt2.json '"use_regex": true}'
tokmap train-tokenizer -q -o deepseek --vocab-size 300 --pattern deepseek_v3 in
tokmap encode -t deepseek.json in/a.txt >ids
tokmap decode -t deepseek.json <ids >back
same back in/a.txt
# Fewer pairs than requested are reported. Rare pairs are not merged.
printf 'ab' | tokmap train-tokenizer -o small --vocab-size 1000 - >out
holds out 'fewer than requested'
equal "$(wc -l <small.tiktoken | tr -d ' ')" 257
printf 'ab ab ab cd' | tokmap train-tokenizer -q -o rare --pattern gpt2 --min-frequency 2 --vocab-size 1000 -
equal "$(wc -l <rare.tiktoken | tr -d ' ')" 258
