#!/bin/sh
# test_also.sh: kill -9 in place of calls of `tokmap pack --also`, and calls failing once, while the shards get their
# names and the files of other projects are written. The next process with the same command ends with the bytes of
# undisturbed work, or finds that the output is complete. The end of tasks, and a command without tasks. A kill at most
# other calls leaves the same files as one at the next rename. Every third call is taken, and the commit chooses which
# third; FAULT_ALL=1 takes all of them, and more kinds. common.sh prepares the inputs.
. tests/fault/common.sh

head -n 40 docs.jsonl >few.jsonl
options="-q --threads 1 --shard-tokens 700 --also megatron,olmo"
step=3
[ -z "${FAULT_ALL:-}" ] || step=1
mkdir units piece
"$TOKMAP" pack $options --unit-bytes 1100 -o units/new few.jsonl 2>err || cat err
"$TOKMAP" pack $options -o piece/new few.jsonl 2>err || cat err
for whole in units piece; do
    [ -e $whole/new-00001.npy ] && [ ! -e $whole/new-00002.npy ] || echo "not ok - other shards than expected"
done
# complete WHOLE [only]: whether d has the files of WHOLE, and no others.
complete() {
    [ -z "${2:-}" ] || [ "$(ls -A d)" = "$(ls -A $1)" ] || return 1
    for file in $1/*; do cmp -s "$file" "d/${file#*/}" || return 1; done
}

# A state in which all units are finished: where the lock should be there is a folder, so no shard gets its name.
mkdir d begun d/new.partial
"$TOKMAP" pack $options --unit-bytes 1100 --task 0/1 -o d/new few.jsonl 2>err && echo "not ok - all units"
rmdir d/new.partial
mv d tasks

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
    [ $count -gt 3 ] || bad "only $count calls"
    [ $problems = 0 ] && echo "ok - $scenario, $kind: $count calls" || echo "not ok - $scenario, $kind"
}
finish='--unit-bytes 1100 --finish -o d/new few.jsonl'
piece='-o d/new few.jsonl'
also_sweep "the end of tasks" kill rename tasks units $finish
also_sweep "without tasks" kill rename begun piece $piece
also_sweep "the end of tasks" system fsync tasks units $finish
if [ -n "${FAULT_ALL:-}" ]; then
    also_sweep "the end of tasks" kill unlink tasks units $finish
    also_sweep "without tasks" kill unlink begun piece $piece
    also_sweep "the end of tasks" system rename tasks units $finish
    also_sweep "the end of tasks" system pwrite tasks units $finish
fi
rm -rf d tasks begun units piece
