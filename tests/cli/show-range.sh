# SPDX-License-Identifier: MIT
# ci: asan
# Windows and ranges equal that part of the stream of ids, and the documents that they touch are listed.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
tokmap show small -q --tokens 0..14761 --ids >all
equal "$(wc -w <all | tr -d ' ')" 14761
tr ' ' '\n' <all >lines
for window in 0 1 57 229; do
    tokmap show small -q -w $window --seq-len 64 --ids | tr ' ' '\n' >got
    sed -n "$((window * 64 + 1)),$((window * 64 + 65))p" lines >wanted
    same wanted got
done
tokmap show small -q -w 3 --seq-len 64 --lookahead 0 --ids | wc -w | tr -d ' '
# The text equals the bytes: without the tokens that end documents, it is the documents.
tokmap show small -q --tokens 0..14761 >text
for document in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
    tokmap show small -q -d $document
done >wanted
same wanted text
tokmap show small --tokens 13400..13460 >text 2>&1
cat text | tr -d '\033'
tokmap show small --tokens 5..5 --ids
tokmap show small -w 229 --seq-len 64 --json
exits 1 tokmap show small -w 230 --seq-len 64 2>err
cat err
exits 1 tokmap show small --tokens 14000..14762 2>err
cat err
exits 1 tokmap show small -d 18 2>err
printf 'seq_len 64\nbatch 8\nseed 3\nsource web small\n' >train.run
tokmap show train.run -q -w 57 --ids >a
tokmap show small -q -w 57 --seq-len 64 --ids >b
same a b
