#!/bin/sh
# SPDX-License-Identifier: MIT
# test_full.sh: a disk that fills and stays full while `tokmap pack` works: from one call on, everything that needs room
# for data or a name fails with ENOSPC. The command says so and what to do, or had all it needs; of an old shard, the
# old one or the new one is there; and the next process with the same command ends with the bytes of undisturbed work.
# Each sweep takes about 12 calls, and the commit chooses which ones; FAULT_ALL=1 takes all. common.sh prepares the
# inputs.
. tests/fault/common.sh

kind=full
head -n 60 docs.jsonl | awk '{ print; if (NR % 5 == 0) print }' >few.jsonl
base='-q --threads 1 --shard-tokens 700'
spare='*/task-*.status' # advice for --status

# full_sweep NAME OLD OPTIONS...: OLD is the name of a shard to be replaced, or empty.
full_sweep() {
    scenario=$1 old=$2
    shift 2
    rm -rf ref d
    mkdir ref d
    "$TOKMAP" pack "$@" -o ref/new few.jsonl 2>err || cat err
    case " $* " in *' --unit-bytes '*) set -- "$@" --task 0/1 ;; esac
    attempt="$TOKMAP pack $* ${old:+--force} -o d/new few.jsonl"
    INJECT_KIND=full INJECT_NUMBER=1000000000 INJECT_COUNT=count LD_PRELOAD=$inject $attempt >out 2>err </dev/null ||
        echo "not ok - $scenario: fails without a fault"
    calls=$(cat count)
    stride=$((calls / 12 + 1))
    [ -z "${FAULT_ALL:-}" ] || stride=1
    number=$((1 + commit % stride))
    problems=0
    failed=0
    taken=0
    while [ $problems -lt 5 ]; do
        rm -rf d
        mkdir d
        [ -z "$old" ] || for end in bin tmx; do cp $old.$end d/new.$end; done
        attempt_fault || break
        taken=$((taken + 1))
        check_full
        number=$((number + stride))
    done
    [ $((failed * 2)) -gt $taken ] && [ $taken -ge 5 ] || bad "only $failed of $taken attempts failed"
    [ $problems = 0 ] && echo "ok - $scenario, $kind: $taken of $calls calls" || echo "not ok - $scenario, $kind"
}

# whole [only]: whether d has the files of undisturbed work, and no others.
whole() {
    [ -z "${1:-}" ] || [ "$(ls -A d)" = "$(ls -A ref)" ] || return 1
    for file in ref/*; do cmp -s "$file" "d/${file#ref/}" || return 1; done
}

# What the attempt has left, and what the next process makes of it.
check_full() {
    if [ $status = 0 ]; then
        whole || bad "exit 0, but the output is wrong"
    else
        failed=$((failed + 1))
        grep -q 'No space left on device' err || bad "the message does not say why"
        grep -q 'free space' err || bad "the message does not say what to do"
    fi
    [ -z "$old" ] || is_shard d/new "$old" || is_shard d/new ref/new || bad "neither the old nor the new shard"
    next_process
    whole only || bad "the next process leaves another output: $(ls -A d | tr '\n' ' ')"
}

full_sweep 'one shard' old -q --threads 1
full_sweep 'exact duplicates' '' $base --dedup exact --checkpoint-seconds 0.001
full_sweep 'near-duplicates' '' $base --dedup minhash --minhash-ngram 2 --minhash-bands 2
full_sweep 'shuffle' '' $base --shuffle 5 --shuffle-memory 4096 --checkpoint-seconds 0.001
full_sweep 'other projects' '' $base --also megatron,olmo,datatrove
full_sweep 'a task' '' $base --unit-bytes 1100
full_sweep 'a task with duplicates and other projects' '' $base --unit-bytes 1100 --dedup exact --also megatron
full_sweep 'a task that shuffles' '' $base --unit-bytes 1100 --shuffle 5
rm -rf d ref
