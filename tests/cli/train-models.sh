# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# Unigram and WordPiece vocabularies are trained from the same inputs as others, whatever the threads and the order of
# the inputs, and bad options and inputs leave no files.
. "$TOKMAP_CLI/helpers.sh"
corpus
tokmap train-tokenizer -o u --model unigram --vocab-size 600 --special-tokens '<s>,</s>' in >out
holds out 'wrote u.json, .model'
holds out 'characters'
tokmap train-tokenizer -q -j 3 -o v --model unigram --vocab-size 600 --special-tokens '<s>,</s>' in/c.jsonl in/b in/a.txt
same u.json v.json
same u.model v.model
[ ! -e u.tiktoken ]
holds u.json '"type": "Unigram"'
tokmap train-tokenizer -o w --model wordpiece --vocab-size 300 --special-tokens '[PAD]' in >out
holds out 'wrote w.json, .vocab.txt'
tokmap train-tokenizer -q -j 3 -o x --model wordpiece --vocab-size 300 --special-tokens '[PAD]' in/c.jsonl in/b in/a.txt
same w.json x.json
same w.vocab.txt x.vocab.txt
equal "$(head -n 1 w.vocab.txt)" '[UNK]'
equal "$(tail -n 1 w.vocab.txt)" '[PAD]'
tokmap encode -t w.json in/a.txt >ids
[ -s ids ]
for model in unigram wordpiece; do
    tokmap train-tokenizer -o "j-$model" --model $model --vocab-size 1m --json in >report
    json report
    equal "$(field report model)" $model
    [ "$(field report vocabulary)" -lt 1000000 ]
    [ "$(field report characters)" -gt 0 ]
done
misused()
{
    wanted=$1
    shift
    exits 2 tokmap train-tokenizer -o bad "$@" in 2>err
    holds err "$wanted"
}
misused 'has no option --pattern' --model unigram --vocab-size 500 --pattern gpt2
misused 'has no option --max-piece' --vocab-size 500 --max-piece 4
misused 'has no option --lowercase' --model unigram --vocab-size 500 --lowercase
misused 'between 0.98 and 1' --model unigram --vocab-size 500 --character-coverage 0.5
misused 'between 1 and 64' --model unigram --vocab-size 500 --max-piece 65
misused 'must be between 258' --model unigram --vocab-size 257
misused 'must be between 3' --model wordpiece --vocab-size 2 --special-tokens '[PAD]'
misused "'a' is a piece already" --model unigram --vocab-size 500 --special-tokens a
misused "'<unk>' is a piece already" --model unigram --vocab-size 500 --special-tokens '<unk>'
misused "'##a' is a piece already" --model wordpiece --vocab-size 500 --special-tokens '##a'
misused '--model' --model word --vocab-size 500
misused 'UTF-8' --model unigram --vocab-size 500 --required-characters "$(printf 'a\377')"
failed()
{
    wanted=$1
    shift
    exits 1 tokmap train-tokenizer -o bad "$@" >/dev/null 2>err
    holds err "$wanted"
}
for model in unigram wordpiece; do
    [ $model = unigram ] && few=260 || few=10
    failed 'raise --vocab-size' --model $model --vocab-size $few in
    : >empty
    failed 'no text' --model $model --vocab-size 1000 empty
    failed 'max-memory' --model $model --vocab-size 1000 --max-memory 1Mi in
    printf 'a\377b' >broken
    failed 'UTF-8' --model $model --vocab-size 1000 broken in
    # One huge word, and control characters.
    head -c 300000 /dev/zero | tr '\0' 'a' >huge
    printf 'x\001\002\033 y\ty' >controls
    tokmap train-tokenizer -q -o "h-$model" --model $model --vocab-size 500 --character-coverage 1 --input-format text huge controls
done
[ -z "$(ls bad* ./*.partial 2>/dev/null)" ]
printf '\0' >zero
failed 'no character' --model wordpiece --vocab-size 1000 --input-format text zero
failed 'no character' --model unigram --no-dummy-prefix --vocab-size 1000 --input-format text zero
failed '--force' --model unigram --vocab-size 600 in -o u
# A required character is a piece, and rare ones are not.
printf 'ab ab ab ab' >few
tokmap train-tokenizer -q -o r --model unigram --vocab-size 300 --required-characters 'q' few
holds r.json '"q"'
# No piece has the text of another token.
for i in 1 2 3 4 5 6 7 8; do printf '<unk> <0x41> <s> '; done >names
tokmap train-tokenizer -q -o n --model unigram --mixed-scripts --no-dummy-prefix --vocab-size 400 --special-tokens '<s>' names
equal "$(grep -c '"<unk>"\|"<0x41>"' n.json)" 2
equal "$(grep -c '"<s>"' n.json)" 1
