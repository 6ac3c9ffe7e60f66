# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Misuse and failures leave no files behind.
. "$TOKMAP_CLI/helpers.sh"
corpus
misused()
{
    wanted=$1
    shift
    exits 2 tokmap train-tokenizer "$@" 2>err
    holds err "$wanted"
}
failed()
{
    wanted=$1
    shift
    exits 1 tokmap train-tokenizer "$@" >/dev/null 2>err
    holds err "$wanted"
}
misused 'no output' --vocab-size 300 in
misused 'no size' -o x in
misused 'must be between 256 (one id per byte) and' -o x --vocab-size 255 in
misused 'must be between 257 (one id per byte and per special token) and' -o x --vocab-size 256 --special-tokens '<x>' in
misused 'and 1048576' -o x --vocab-size 2m in
misused "did you mean 'cl100k_base'" -o x --vocab-size 300 --pattern cl100_base in
misused 'an empty name' -o x --vocab-size 300 --special-tokens 'a1,,b1' in
misused "names 'a1' twice" -o x --vocab-size 300 --special-tokens 'a1,a1' in
misused 'writes a single byte' -o x --vocab-size 300 --special-tokens 'A' in
misused 'UTF-8' -o x --vocab-size 300 --special-tokens "$(printf 'a\377')" in
misused '--threads' -o x --vocab-size 300 --threads 0 in
misused 'only once' -o x --vocab-size 300 - -
failed 'no text' -o x --vocab-size 300 in/b/none.txt
misused 'the name of the output is empty' -o '' --vocab-size 300 in
misused "give a prefix, such as 'in/NAME'" -o in/ --vocab-size 300 in
failed 'in/a' -o in/a/x --vocab-size 300 in
rmdir in/a # a missing folder of an output is made, and stays
failed 'max-memory' -o x --vocab-size 300 --max-memory 1Mi in
failed 'absent' -o x --vocab-size 300 absent
printf 'a\377b' >bad
failed 'UTF-8' -o x --vocab-size 300 bad in
tokmap train-tokenizer -o y --vocab-size 300 --invalid-utf8 skip --json bad in >report 2>err
json report
equal "$(field report skipped_items)" 1
holds err 'bad'
tokmap train-tokenizer -q -o z --vocab-size 300 --invalid-utf8 replace bad in
equal "$(ls x* 2>/dev/null | wc -l | tr -d ' ')" 0 'files left'
equal "$(ls ./*.partial 2>/dev/null | wc -l | tr -d ' ')" 0 'files left'
# Existing outputs stay as they are, or --force replaces all of them; an old list of special tokens is removed.
tokmap train-tokenizer -q -o o --vocab-size 300 --special-tokens '<x>' in
cp o.json was
failed '--force' -o o --vocab-size 310 in
same o.json was
failed 'output of the same command' -o in/a --vocab-size 300 in
tokmap train-tokenizer -q -o o --force --vocab-size 310 in
[ ! -e o.specials.json ]
equal "$(wc -l <o.tiktoken | tr -d ' ')" 310
# The files that a killed command left are replaced.
echo old >k.json.partial
echo old >k.tiktoken.partial
tokmap train-tokenizer -q -o k --vocab-size 310 in
same k.json o.json
[ ! -e k.json.partial ]
# A partial file that cannot be used is not mistaken for one that another process is writing.
mkfifo f.tiktoken.partial
failed 'f.tiktoken.partial: the output cannot be created' -o f --vocab-size 300 in
# An interrupted command leaves no files. This one waits for the pipe.
mkfifo pipe
tokmap train-tokenizer -q -o i --vocab-size 300 --threads 2 pipe 2>err &
exec 3>pipe
echo 'some text' >&3
await [ -e i.json.partial ]
kill -TERM $!
status=0
wait $! || status=$?
exec 3>&-
equal $status 143
[ ! -e i.json.partial ]
