# SPDX-License-Identifier: MIT
# ci: nonroot
# Options and commands by the names that other projects give them, by one dash, and misspelled: the message says what
# to type.
. "$TOKMAP_CLI/helpers.sh"
# says COMMAND OPTION TEXT: the message about an unknown option.
says()
{
    exits 2 tokmap "$1" "$2" 2>err
    equal "$(sed -n 1p err)" "tokmap $1: unknown option '${2%=*}'; $3" "$1 $2:"
}
while read -r option ours; do
    says pack "$option" "did you mean '$ours'?"
done <<'END'
--workers --threads
--num_workers --threads
--preprocessing_num_workers --threads
--text-field --field
--text-key --field
--json-key --field
--json-keys --field
--text_column_name --field
--append-eod --eod
--eos_token --eod
--output-prefix --output
--messages-key --messages-field
--overwrite --force
--threds --threads
--progess --progress
--quite --quiet
-tokenizer --tokenizer
-split --split
-output=x --output
END
says pack --shard-size=1G "give the size of a shard in tokens with --shard-tokens, such as 1G"
says pack --max_tokens_per_file "give the size of a shard in tokens with --shard-tokens, such as 1G"
says pack --seed "--shuffle SEED puts the documents in a random order, and --split-seed chooses the sets of --split"
says pack --parquet "the format is found by name and content; otherwise name it with --input-format"
says pack --tokenizer-model "name the tokenizer's file, or the folder that holds it, with --tokenizer"
says pack --tokenizer_name_or_path "name the tokenizer's file, or the folder that holds it, with --tokenizer"
says pack --tokenizer-type "the type is found in the tokenizer's file, which --tokenizer names"
says pack --input "inputs have no option: write their names at the end"
says pack --seq_length "documents stay whole; a run file says with seq_len how long the rows of training are"
says pack --val_split_fraction "name the sets and their shares: --split train=0.99,val=0.01"
# A row of the table is about the commands that have its option.
says mix --seq_length "did you mean '--seq-len'?"
says mix --random-seed "did you mean '--seed'?"
says audit --world-size "did you mean '--ranks'?"
says train-tokenizer --workers "did you mean '--threads'?"
exits 2 tokmap encode --workers 2>err
equal "$(sed -n 1p err)" "tokmap encode: unknown option '--workers'"
# Every option that a row suggests exists.
tr -d '\n' <"$TOKMAP_TREE/src/cli/arguments.c" | sed 's/ {"/\n&/g' |
    sed -n 's/^ {"[^,]*, *"\([a-z-]*\)",.*/\1/p' | sort -u >named
[ "$(wc -l <named)" -gt 10 ]
tokmap --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | while read -r command; do
    options tokmap "$command"
done | sed 's/=$//' | sort -u >known
equal "$(comm -23 named known)" "" "unknown options in the table:"
while read -r command ours; do
    exits 2 tokmap "$command" 2>err
    equal "$(sed -n 1p err)" "tokmap: unknown command '$command'; did you mean '$ours'?"
done <<'END'
tokenize pack
preprocess pack
validate verify
inspect info
tokenizr tokenizer
bench tokmap-bench
END
# A letter with its value in the same word is still taken.
printf text >-o
tokmap pack -q -output2 ./-o
[ -f utput2.bin ]
# A word is not a seed.
exits 2 tokmap pack --shuffle e/ -o x 2>err
holds err "tokmap pack: --shuffle takes a seed, such as 7 (a decimal number below 2^64), not 'e/'"
exits 2 tokmap order --seed=x 2>err
holds err "--seed takes a seed, such as 7 (a decimal number below 2^64), not 'x'"
# A dataset at a URL, by itself, and in a run file: it is looked for there, and here nobody answers.
unset http_proxy all_proxy AWS_PROFILE || true
export AWS_ENDPOINT_URL=http://127.0.0.1:1 AWS_MAX_ATTEMPTS=1 TOKMAP_CACHE="$PWD/cache"
printf 'seq_len 4\nbatch 1\nseed 1\nsource web s3://bucket/web\n' >u.run
for name in s3://bucket/web http://127.0.0.1:1/web.bin; do
    exits 1 tokmap info $name 2>err
    grep -q "${name%.bin}.tmx: .*127.0.0.1\|without libcurl\|cannot be loaded" err
done
exits 1 tokmap info "s3://bucket/web?cache=c&size=1M" 2>err
holds err "'size=1M': a cache has at least 64M bytes"
exits 1 tokmap index s3://bucket/web 2>err
holds err "s3://bucket/web: files of other projects are not read from object storage or web servers; copy them to a disk of this machine"
exits 1 tokmap encode -t https://example.com/tokenizer.json u.run 2>err
holds err "a folder that contains one, or 'bytes'; download the file of this URL first"
exits 1 tokmap audit --ranks 1 u.run 2>err
grep -q "s3://bucket/web.tmx: .*127.0.0.1\|without libcurl\|cannot be loaded" err
