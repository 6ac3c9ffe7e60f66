# SPDX-License-Identifier: MIT
# A dataset that is named is measured and not changed. A dataset that the command creates is removed at the end and
# after a signal; with --keep it stays and is valid.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
tokmap-bench verify --tokens 1m --width 4 --repeats 1 --keep >table 2>talk
holds table verify.gb_s
made=$(find . -name 'tokmap-bench-*.tmx')
tokmap verify "$made"
equal "$(find . -name 'tokmap-bench-*.bin' -size 4000000c | wc -l | tr -d ' ')" 1 'tokens of four bytes'
before=$(cksum <"$made")
tokmap-bench verify --repeats 1 --json "${made%.tmx}" >verify.json
tokmap-bench loader --repeats 1 --seconds 0.01 --json "${made%.tmx}" >loader.json
equal "$(cksum <"$made")" "$before" 'the index'
rm "$made" "${made%.tmx}.bin"

# `all` runs every case, on one dataset.
tokmap-bench all --tokens 1m --repeats 1 --seconds 0.01 --text-bytes 500k --batches 1000 \
    --copy-bytes 1Mi --json >all.json 2>/dev/null
json all.json
equal "$(grep -c '"quick":' all.json || :)" 0 'quick results of a usual run'
for case in order loader open train pack plan verify hostile; do
    holds all.json "\"case\": \"$case\"" 2>/dev/null || holds all.json "\"case\":\"$case\""
done

# Each result of a quick run says so, in JSON and in the table, and cold results have files of their own.
tokmap-bench all --quick --tokens 1m --repeats 1 --seconds 0.01 --text-bytes 500k --json --save quick >quick.json \
    2>err || { cat err >&2; exit 1; }
equal "$(grep -vc '"quick": true' quick.json || :)" 0 'results of a quick run that do not say so'
if ! grep -q 'nothing is measured with --cold' err; then
    holds quick/loader-cold.jsonl '"metric": "amplification"'
    holds quick/train-cold.jsonl "--save quick --cold "
    holds quick/train-cold-2.5.jsonl "--save quick --cold --step-ms 2.5 "
fi
holds quick/loader.jsonl '"metric": "tokens_per_s"'
tokmap-bench order --quick --seconds 0.01 >table
grep -qE '^order\.draw_ns \(quick\) .* 3$' table
tokmap-bench order --seconds 0.01 >table
grep -qE '^order\.draw_ns  .* 11$' table
# A text and a tokenizer are what tokenize needs, too.
echo 'some text, and more of it' >text
tokmap-bench all --quick --tokens 1m --repeats 1 --seconds 0.01 --text-bytes 500k -t bytes --text text >table 2>err ||
    { cat err >&2; exit 1; }
holds table 'tokmap-bench tokenize --worst'
holds table 'tokenize.cold_mb_s (quick)'

# A signal while the dataset is being created, and while it is being measured.
for wait in 0.1 1.5 1; do
    case=loader
    [ $wait = 1 ] && case=all
    tokmap-bench $case --tokens 20m --repeats 1000 --json >/dev/null 2>&1 &
    child=$!
    sleep $wait
    kill -TERM $child
    status=0
    wait $child || status=$?
    equal $status 143 'status after SIGTERM'
    equal "$(find . -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left after a signal'
done

# The warning about a dataset is that of the other commands, for a dataset as for a run file.
mkdir differ
i=0; while [ $i -lt 400 ]; do echo 'some text, and more of it'; i=$((i + 1)); done >text
tokmap pack -q -o differ/a text
tokmap pack -q --no-eod -o differ/b text
printf 'seq_len 8\nbatch 2\nsource web differ\n' >differ.run
tokmap info differ 2>wanted >/dev/null
for operand in differ differ.run; do
    tokmap-bench verify --repeats 1 $operand >/dev/null 2>err
    grep 'documents end' err >warned
    sed "s/^tokmap info: warning: differ:/tokmap-bench: warning: $operand:/" wanted >line
    same line warned
done
exits 1 tokmap-bench verify "$PWD/nothing" >/dev/null 2>err
holds err nothing
