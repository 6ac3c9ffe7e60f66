# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# What stats prints about documents, input files, masks, texts of ids, and bytes of text.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
tokmap stats small >out
holds out "tokens              14,761"
holds out "a token stands for  1.00 bytes of text"
holds out "end of document     id 256, 18 times (0.12% of the tokens)"
holds out "p50 58"
equal "$(sed -n '/^lengths of/,/^  mean/p' out | wc -l)" 4 # the percentiles are two lines
holds out "  mean 820.1"
holds out "     16 to 31          5  27.78         0.82  ##############################"
holds out "input files: 4 files, the largest first"
holds out "in/b/long.txt          1  13,391  90.72"
holds out "in/c.jsonl            15   1,351   9.15"
holds out "ids: 36 of the vocabulary's 257 occur (14.01%), 221 do not"
holds out '   32  4,048  27.42  " "'
holds out '   10    301   2.04  "\n"'
! grep -q 'as ranges' out
for option in --unused -v; do
    tokmap stats small $option >out
    holds out "ids that do not occur, as ranges A..B that exclude B"
    holds out "  196..256"
    holds out "  113"
done
tokmap stats small --top 0 >out
! grep -q '" "' out
# Without the ids: nothing of the tokens is read, not even from a file that is wrong.
cp small.bin wrong.bin
cp small.tmx wrong.tmx
head -c 29522 /dev/zero | tr '\0' '\377' >wrong.bin
tokmap stats wrong --no-ids >out
holds out "end of document     id 256"
! grep -q '^ids' out
# The histogram alone, the same from info.
tokmap info small --lengths >lengths
sed -n '/^lengths of/,/^$/p' out | sed '/^$/d' >got
same lengths got
tokmap info small --lengths --json >one
json one
tokmap stats small --json >two
json two
equal "$(field one lengths)" "$(field two lengths)"
equal "$(field one document_tokens)" "$(field two document_tokens)"
equal "$(field two files.1.path)" in/c.jsonl
equal "$(field two ids.eod)" 18
equal "$(field two ids.frequent.0.text)" " "
equal "$(field two text_from)" index
tokmap stats small --no-ids --json >two
equal "$(field two ids)" null
# Many files: the rest is one row, in which nothing is lost. A file of two shards is one file.
mkdir many
i=0
while [ $i -lt 30 ]; do
    printf '%*s' $((i + 1)) x >many/$i.txt
    i=$((i + 1))
done
tokmap pack -q -o a many
tokmap pack -q -o b many
tokmap merge -q -o both a b
tokmap stats both >out
holds out "input files: 30 files, the largest first"
holds out "many/29.txt                              2      62   6.26"
holds out "(10 other files; -v lists them)         20     130  13.13"
tokmap stats both -v >out
holds out "many/0.txt           2       4  0.40"
tokmap stats a small --no-ids --json >out
equal "$(wc -l <out | tr -d ' ')" 2
json out
tokmap stats a 'small#docs=0..1' >out
equal "$(grep -c '^dataset ' out)" 2
holds out "small#docs=0..1"
# The index says nothing about the text of a part, but the tokenizer does: 1,336 of 1,351 tokens are bytes of text.
tokmap stats 'small#docs=3..18' --json >part
equal "$(field part text_from)" tokenizer
equal "$(field part text_bytes_a_token)" 0.988897113249
equal "$(field part tokens)" 1351
tokmap stats 'small#docs=3..18' --no-ids >out
holds out "unknown; the index does not say, and --no-ids leaves the tokens out"
# Masks.
printf 'question answer' >q.txt
tokmap pack -q -t bytes --no-eod -o chat q.txt
{ head -c 9 /dev/zero; head -c 6 /dev/zero | tr '\0' '\001'; } >bytes
tokmap index -q --mask bytes chat
tokmap stats chat >out
holds out "9 tokens are masked (60.00%), 6 count as targets"
holds out "end of document     no id, or shards differ"
# Files of others do not say what text they had: their tokenizer does.
ranks
printf 'hello hello' >h.txt
tokmap pack -q -t v.tiktoken --pattern gpt2 --special-tokens specials.json --eod='<|end|>' -o hello h.txt
cp hello.bin raw.bin
raw=raw:raw.bin,width=2,vocab=302,eod=300
tokmap stats $raw >out
holds out "unknown; the index does not say, and the tokenizer is needed (-t FILE)"
holds out "the texts of ids need the tokenizer (-t FILE)"
holds out "not recorded; \`tokmap index\` finds them"
tokmap stats $raw -t v.tiktoken --pattern gpt2 --special-tokens specials.json >out
holds out "a token stands for  3.67 bytes of text, as its tokenizer decodes them"
holds out '260      1  33.33  " hello"'
exits 1 tokmap stats $raw -t bytes 2>err
holds err "id 259 occurs, but the tokenizer 'bytes' does not have it"
exits 1 tokmap stats hello -t bytes 2>err
holds err "was not made with this tokenizer"
tokmap stats hello -t v.tiktoken --pattern gpt2 --special-tokens specials.json >out
holds out "a token stands for  3.67 bytes of text"
# Nothing to count.
printf '{"text": ""}\n' >empty.jsonl
tokmap pack -q --no-eod -o none empty.jsonl
tokmap stats none >out
holds out "ids: 0 of the vocabulary's"
tokmap stats none --json >out
json out
holds out '"document_tokens": {"documents": 1, "min": 0,'
tokmap stats synthetic:vocab=100,tokens=1000,document=10 >out
holds out "a synthetic dataset has no text"
holds out "ids: 100 of the vocabulary's 100 occur"
