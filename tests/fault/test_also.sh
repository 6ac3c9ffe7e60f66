#!/bin/sh
# SPDX-License-Identifier: MIT
# test_also.sh: kill -9 in place of calls of `tokmap pack --also`, and calls failing once, while the shards get their
# names and the files of other projects are written. The next process with the same command ends with the bytes of
# undisturbed work, or finds that the output is complete. The end of tasks, whose shards are plain or sealed, and a
# command without tasks. A kill at most other calls leaves the same files as one at the next rename. Every third call is
# taken, and the commit chooses which third; FAULT_ALL=1 takes all of them, and more kinds. With --force, the files of
# an old output stay as long as that does, and none of them is ever beside tokens that it does not fit. common.sh
# prepares the inputs.
. tests/fault/common.sh

head -n 40 docs.jsonl >few.jsonl
options="-q --threads 1 --shard-tokens 700 --also megatron,olmo"
step=3
[ -z "${FAULT_ALL:-}" ] || step=1
mkdir units piece sealed
"$TOKMAP" pack $options --unit-bytes 1100 -o units/new few.jsonl 2>err || cat err
"$TOKMAP" pack $options -o piece/new few.jsonl 2>err || cat err
"$TOKMAP" pack $options --seal=1 --unit-bytes 1100 -o sealed/new few.jsonl 2>err || cat err
[ -e sealed/new-00001.megatron.bin ] && [ ! -e sealed/new-00001.bin ] || echo "not ok - other files than expected"
for whole in units piece sealed; do
    [ -e $whole/new-00001.npy ] && [ ! -e $whole/new-00002.npy ] || echo "not ok - other shards than expected"
done
# complete WHOLE [only]: whether d has the files of WHOLE, and no others.
complete() {
    [ -z "${2:-}" ] || [ "$(ls -A d)" = "$(ls -A $1)" ] || return 1
    for file in $1/*; do cmp -s "$file" "d/${file#*/}" || return 1; done
}

# States in which all units are finished: where the lock should be there is a folder, so no shard gets its name.
mkdir begun
for seal in '' --seal=1; do
    mkdir d d/new.partial
    "$TOKMAP" pack $options $seal --unit-bytes 1100 --task 0/1 -o d/new few.jsonl 2>err && echo "not ok - all units"
    rmdir d/new.partial
    mv d tasks$seal
done

# also_sweep SCENARIO KIND CALL BEGIN WHOLE COMMAND...
also_sweep() {
    scenario="$1, $3"
    kind=$2
    export INJECT_ONLY=$3
    begin=$4
    reference=$5
    shift 5
    attempt="$TOKMAP pack $options $*"
    problems=0
    count=0
    number=$((1 + commit % step))
    while [ $problems -lt 5 ]; do
        rm -rf d
        cp -rp $begin d
        attempt_fault || break
        count=$((count + 1))
        [ $status != 0 ] || complete $reference || bad "exit 0, but the output is wrong"
        again=0
        $attempt >out 2>err || again=$?
        case $again in
        0) ;;
        1) grep -q 'already exists\|there is no unfinished work' err || bad "the next process fails" ;;
        *) bad "the next process ends with $again" ;;
        esac
        complete $reference only || bad "the next process leaves another output: $(ls d | tr '\n' ' ')"
        number=$((number + step))
    done
    unset INJECT_ONLY
    [ $count -gt 2 ] || bad "only $count calls"
    [ $problems = 0 ] && echo "ok - $scenario, $kind: $count calls" || echo "not ok - $scenario, $kind"
}
finish='--unit-bytes 1100 --finish -o d/new few.jsonl'
piece='-o d/new few.jsonl'
also_sweep "the end of tasks" kill rename tasks units $finish
also_sweep "without tasks" kill rename begun piece $piece
also_sweep "the end of tasks" system fsync tasks units $finish
also_sweep "the end of tasks, sealed" kill rename tasks--seal=1 sealed --seal=1 $finish
if [ -n "${FAULT_ALL:-}" ]; then
    mkdir onesealed
    "$TOKMAP" pack $options --seal=1 -o onesealed/new few.jsonl 2>err || cat err
    also_sweep "the end of tasks" kill unlink tasks units $finish
    also_sweep "without tasks" kill unlink begun piece $piece
    also_sweep "the end of tasks" system rename tasks units $finish
    also_sweep "the end of tasks" system pwrite tasks units $finish
    also_sweep "the end of tasks, sealed" system fsync tasks--seal=1 sealed --seal=1 $finish
    also_sweep "the end of tasks, sealed" system write tasks--seal=1 sealed --seal=1 $finish
    also_sweep "without tasks, sealed" kill rename begun onesealed --seal=1 $piece
fi

# Two processes are killed: one when it removes its unfinished work, which may lose the note of the next file, and one
# when it writes the files again. The third one replaces them.
attempt="$TOKMAP pack $options $piece"
scenario='without tasks, two kills' kind=kill problems=0 count=0
rm -rf d
cp -rp begun d
count_calls env INJECT_ONLY=unlink $attempt
for number in $((calls - 3)) $((calls - 2)) $((calls - 1)) $calls; do
    rm -rf d
    cp -rp begun d
    export INJECT_ONLY=unlink
    attempt_fault || continue
    INJECT_KIND=kill INJECT_ONLY=rename INJECT_NUMBER=3 LD_PRELOAD=$inject $attempt >out 2>err
    again=0
    INJECT_NUMBER=0 $attempt >out 2>err || again=$?
    [ $again = 0 ] || grep -q 'already exists; choose' err || bad "the third process ends with $again"
    complete piece only || bad "the third process leaves another output: $(ls -A d | tr '\n' ' ')"
    count=$((count + 1))
done
unset INJECT_ONLY
[ $count -gt 1 ] || bad "only $count kills"
[ $problems = 0 ] && echo "ok - $scenario: $count pairs" || echo "not ok - $scenario"

# A file that the user makes after a kill is not replaced, whatever the killed process has noted. Without it the next
# process ends well.
user_sweep() {
    scenario="$1, a file of the user after the kill"
    kind=kill
    export INJECT_ONLY=rename
    begin=$2
    reference=$3
    shift 3
    attempt="$TOKMAP pack $options $*"
    problems=0 count=0 number=1
    while [ $problems -lt 5 ]; do
        rm -rf d
        cp -rp $begin d
        attempt_fault || break
        number=$((number + 1))
        [ ! -e d/new-00001.npy ] || continue
        count=$((count + 1))
        echo 'my array' >d/new-00001.npy
        again=0
        INJECT_NUMBER=0 $attempt >out 2>err || again=$?
        [ $again = 1 ] && grep -q 'd/new-00001.npy: th' err || bad "the next process ends with $again"
        [ "$(cat d/new-00001.npy)" = 'my array' ] || bad "the file is gone"
        rm -f d/new-00001.npy
        again=0
        INJECT_NUMBER=0 $attempt >out 2>err || again=$?
        [ $again = 0 ] || bad "the last process ends with $again"
        complete $reference only || bad "the last process leaves another output: $(ls d | tr '\n' ' ')"
    done
    unset INJECT_ONLY
    [ $count -gt 2 ] || bad "only $count calls"
    [ $problems = 0 ] && echo "ok - $scenario: $count calls" || echo "not ok - $scenario"
}
user_sweep "the end of tasks" tasks units $finish
user_sweep "without tasks" begun piece $piece

# The output replaces one of other sets in the folder of its inputs, whose files are no inputs before and after a kill.
scenario='over an older output among the inputs' kind=kill problems=0 count=0 number=1
mkdir older
cp few.jsonl older
"$TOKMAP" pack -q --shard-tokens 300 --also datatrove,olmo,nanogpt -o older/new few.jsonl 2>err || cat err
attempt="$TOKMAP pack -q --threads 1 --checkpoint-seconds 0.001 --force --shard-tokens 900 --shuffle 3
    --also megatron,datatrove --input-format text --invalid-utf8 replace --on-error skip -o d/new d"
rm -rf d
cp -rp older d
$attempt 2>err || cat err
mv d replaced
export INJECT_ONLY=rename
while [ $problems -lt 5 ]; do
    rm -rf d
    cp -rp older d
    attempt_fault || break
    count=$((count + 1))
    again=0
    INJECT_NUMBER=0 $attempt >out 2>err || again=$?
    [ $again = 0 ] || bad "the next process ends with $again"
    complete replaced only || bad "the next process leaves another output: $(ls d | tr '\n' ' ')"
    number=$((number + 1))
done
unset INJECT_ONLY
[ $count -gt 2 ] || bad "only $count calls"
[ $problems = 0 ] && echo "ok - $scenario: $count calls" || echo "not ok - $scenario"
rm -rf older replaced

# The output is in the folder of its inputs, and its files have names that inputs may have.
many=$options
for shape in '' '--shard-tokens 700' '--shard-tokens 700 --unit-bytes 1100 --split train=0.6,val=0.4' \
    '--seal=1 --split train=0.6,val=0.4'; do
    options="-q --threads 1 --also megatron,olmo --include=*.jsonl --include=*.gz --include=*.idx $shape"
    rm -rf d inside among
    mkdir d among
    cp few.jsonl d
    cp few.jsonl among
    "$TOKMAP" pack $options -o d/new d 2>err || cat err
    mv d inside
    also_sweep "in the folder of the inputs${shape:+ with $shape}" kill rename among inside -o d/new d
    # A complete output there is refused as an input.
    rm -rf d
    cp -rp inside d
    case $shape in *unit* | '')
        "$TOKMAP" pack $options --force -o d/new d >out 2>err && echo "not ok - an output is an input"
        grep -q 'new.*csv.gz: this input is an output of the same command' err || { cat err; echo "not ok - the message"; } ;;
    esac
done
options=$many
rm -rf inside among

# ---- over an old output that has such files ----
head -n 55 docs.jsonl | tail -n 40 >other.jsonl
# pairs_fit: whether each index of Megatron is beside the tokens that it was made for, or beside none.
pairs_fit() {
    for index in d/*.idx; do
        pair=${index#d/}
        [ -e "$index" ] && [ -e "${index%idx}bin" ] || continue
        for made in before $reference; do
            cmp -s "$index" "$made/$pair" && cmp -s "${index%idx}bin" "$made/${pair%idx}bin" && continue 2
        done
        return 1
    done
}
# is_old: whether the shards are the old ones.
is_old() {
    for file in before/*.tmx before/new; do
        [ ! -e "$file" ] || cmp -s "$file" "d/${file#*/}" || return 1
    done
}
# over_sweep SCENARIO KIND CALL OPTIONS: the last 30 of these calls, and with FAULT_ALL=1 all.
over_sweep() {
    scenario="$1 over an old output, $3"
    kind=$2
    export INJECT_ONLY=$3
    rm -rf before after
    mkdir before after
    "$TOKMAP" pack $4 -o before/new other.jsonl 2>err || cat err
    "$TOKMAP" pack $4 -o after/new few.jsonl 2>err || cat err
    reference=after
    attempt="$TOKMAP pack $4 --force -o d/new few.jsonl"
    rm -rf d
    cp -rp before d
    problems=0 count=0 seen=0
    count_calls $attempt
    [ -n "${FAULT_ALL:-}" ] || [ $calls -lt 31 ] || number=$((calls - 30))
    while [ $problems -lt 5 ]; do
        rm -rf d
        cp -rp before d
        attempt_fault || break
        count=$((count + 1))
        pairs_fit || bad "an index of Megatron is beside other tokens: $(ls d | tr '\n' ' ')"
        if is_old && [ $kind = system ]; then
            seen=$((seen + 1))
            complete before || grep -q 'beside the old shards of d/new have been removed' err ||
                bad "files of the old output are gone: $(ls d | tr '\n' ' ')"
        fi
        [ $status != 0 ] || complete after || bad "exit 0, but the output is wrong"
        again=0
        INJECT_NUMBER=0 $attempt >out 2>err || again=$?
        [ $again = 0 ] || bad "the next process ends with $again"
        pairs_fit || bad "an index of Megatron is beside other tokens after the next process"
        complete after only || bad "the next process leaves another output: $(ls d | tr '\n' ' ')"
        next_call
    done
    unset INJECT_ONLY
    [ $count -gt 2 ] || bad "only $count calls"
    [ $problems = 0 ] && echo "ok - $scenario, $kind: $count calls, $seen with the old output" || echo "not ok - $scenario, $kind"
}
single='-q --threads 1 --also megatron,olmo'
export INJECT_GONE=d/new.work # nothing depends on the sync after it is removed
for ways in "$single" "$options"; do
    name='a shard'
    [ "$ways" = "$single" ] || name='shards'
    over_sweep "$name" system rename "$ways"
    over_sweep "$name" system fsync "$ways"
    over_sweep "$name" kill rename "$ways"
    [ -z "${FAULT_ALL:-}" ] || for call in pwrite unlink open; do
        over_sweep "$name" system $call "$ways"
        over_sweep "$name" kill $call "$ways"
    done
done
rm -rf before after
rm -rf d tasks tasks--seal=1 begun units piece sealed onesealed
