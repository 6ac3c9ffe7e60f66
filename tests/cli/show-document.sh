# SPDX-License-Identifier: MIT
# ci: asan
# Each document comes back byte for byte, with its origin.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
tokmap show small -d 0 2>err | cat >text
same in/a.txt text
tokmap show small -d 1 -q >text
same in/b/long.txt text
tokmap show small -d 2 >text 2>none
[ ! -s text ]
tokmap show small -d 7 >text 2>c
printf 'record 4 h\303\251llo\033[31m %16s' x >wanted
same wanted text
cat err none c
tokmap show small -d 7 --specials -q | od -An -c | tail -n 1 | tr -d ' '
tokmap show small -d 0 --ids -q
tokmap show small -d 2 --ids -q
tokmap show small -d 0 --json
tokmap show small -d 2 --json --ids
for number in 0 1 2 7 17; do
    tokmap show small -d $number --json >out
    json out
done
tokmap show small -q -d 0 2>err
[ ! -s err ]
echo '{"text": ""}' >nothing.jsonl
tokmap pack -q --no-eod -o none nothing.jsonl
tokmap show none -d 0 --ids
tokmap show none -d 0 --json
tokmap show none --tokens 0..0 --json
# Standard input has no name, and the only document of a file needs no number.
printf 'a text\n' | tokmap pack -q -o piped -
tokmap show piped -d 0 2>shown >/dev/null
grep -q ', piped.bin, standard input$' shown
