# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# export and pack are inverse: documents come back byte for byte, and pack makes the same tokens of them.
. "$TOKMAP_CLI/helpers.sh"
corpus
# Texts that need escapes, or that look as if they were not UTF-8.
cat >in/d.jsonl <<'END'
{"text": ""}
{"text": " \" \\ / \b \f \n \r \t \u0000 \u001f \u007f \u0080 \u2028 end "}
{"text": "\ufffd is a character, \ufffd\ufffd too"}
{"text": "\ud83d\ude00 \uffff \u20ac é 漢字"}
{"text": "<|endoftext|> is text"}
{"text": "\r\n"}
END
# again NAME [OPTION]...: exports a dataset, packs the result with the options, and compares the tokens.
again()
{
    name=$1
    shift
    tokmap export -q --check -o again.jsonl $name
    tokmap pack -q "$@" -o again again.jsonl
    same again.bin $name.bin
    rm again.*
}
tokmap pack -q -o bytes in
again bytes
tokmap pack -q --no-eod -o none in
again none --no-eod
tokmap pack -q --no-eod --bos=65 -o begun in
again begun --no-eod --bos=65
tokmap export -q bytes >lines
json lines
equal "$(wc -l <lines)" 24
holds lines '{"text": " \" \\ / \u0008 \u000c \n \r \t \u0000 \u001f'
# A single document, and parts that make the whole.
tokmap export -q --text --documents 1..2 bytes >text
{ cat in/b/long.txt; echo; } >wanted
same text wanted
for part in 0..3 3..3 3..24; do
    tokmap export -q --documents $part bytes
done >parts
same parts lines
# The output is the same for every number of threads.
i=0
while [ $i -lt 30000 ]; do
    printf '{"text": "number %d of many, with some words to fill a few batches"}\n' $i
    i=$((i + 1))
done >more.jsonl
tokmap pack -q -o more more.jsonl
for threads in 1 2 7; do
    tokmap export -q -j $threads more >by$threads
done
same by1 by2
same by1 by7
same by1 more.jsonl
# Where a document came from.
tokmap export -q --jsonl --origin --documents 0..5 bytes >out
json out
holds out '{"text": "alpha beta gamma\n", "path": "in/a.txt", "record": 0}'
holds out ', "path": "in/c.jsonl", "record": 1}'
# Special tokens that were recognized come back as text, and are recognized again. -t is found in the index.
ranks
printf 'hello <|end|> hello<|endoftext|>\n' >special.txt
for special in text recognize; do
    with="-t v.tiktoken --pattern gpt2 --special-tokens specials.json --special $special"
    tokmap pack -q $with -o with special.txt in/d.jsonl
    tokmap export -q --check with >out.jsonl
    holds out.jsonl '{"text": "hello <|end|> hello<|endoftext|>\n"}'
    tokmap pack -q $with -o back out.jsonl
    same with.bin back.bin
    rm with.* back.*
done
# A dataset of shards that end documents differently: each loses its own token.
mkdir shards
cp bytes.bin shards/a.bin
cp bytes.tmx shards/a.tmx
cp none.bin shards/b.bin
cp none.tmx shards/b.tmx
tokmap export -q shards >both 2>err
cat lines lines >wanted
same both wanted
holds err 'warning: shards: documents end differently'
# The report.
tokmap export -o out.json --json bytes >report
json report
holds report '{"dataset": "bytes", "output": "out.json", "documents": 24, "documents_replaced": 0, "documents_skipped": 0, "tokens": '
same out.json lines
tokmap export bytes >out 2>err
same out lines
holds err 'exported 24 documents, '
awk 'BEGIN { for (i = 0; i < 20000; i++) print "{\"text\": \"document " i " is not short, and there are many of it\"}" }' >big.jsonl
tokmap pack -q -o big big.jsonl
# A reader that has had enough ends the command as it ends any other, whichever thread was writing.
for turn in 1 2 3 4 5 6 7 8 9 10; do
    for threads in 1 4; do
        { ended=0; tokmap export -q -j "$threads" big 2>err || ended=$?; echo "$ended" >ended; } | head -c 1 >out
        [ "$(cat ended)" = 141 ] && [ ! -s err ] || { echo "turn $turn: $(cat ended) $(cat err)" >&2; exit 1; }
    done
done
