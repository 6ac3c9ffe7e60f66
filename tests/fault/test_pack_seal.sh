#!/bin/sh
# SPDX-License-Identifier: MIT
# test_pack_seal.sh: kill -9 in place of each call of `tokmap pack --seal` from the first one that has to do with
# sealing, and each call, and each allocation, failing once. The name means the old shard, which is plain, the new one,
# or nothing; the next command succeeds, and leaves only the files of the sealed shards. FAULT_ALL=1 takes all calls of
# all scenarios. common.sh prepares the inputs.
. tests/fault/common.sh

# The content id of a dataset that is sound, and whether it is sealed.
content() {
    "$TOKMAP" verify -q "$1" >out2 2>err2 &&
        "$TOKMAP" info --json "$1" 2>err2 | grep -o -e '"content": "[0-9a-f]*"' -e '"sealed_shards": [0-9]*' | head -n 2
}
head -n 1500 docs.jsonl >few.jsonl
head -n 400 old.txt | sed 's/.*/{"text": "&"}/' >others.jsonl
mkdir d
begin() {
    rm -rf d
    mkdir d
    [ -n "$old" ] || return 0
    for file in old_$shape*; do cp "$file" "d/new${file#old_$shape}"; done
    [ ! -e old_$shape ] || sed "s/old_$shape/new/" old_$shape >d/new
}
check() {
    found=
    if found=$(content d/new); then
        [ "$found" = "$new_content" ] || [ -n "$old" -a "$found" = "$old_content" ] || bad "neither old nor new"
    elif [ -n "$old" ] && [ ! -e d/new.work/naming ]; then
        bad "the old one is gone, and there is no new one: $(cat err2)"
    fi
    # Without --force the output must not exist yet, and the files of a killed writer must not look as if it did.
    if [ -n "$force" ] || [ "${found:-}" != "$new_content" ]; then
        $attempt >out 2>err || bad "the next writer fails: $(cat err)"
    fi
    [ "$(content d/new)" = "$new_content" ] || bad "the next writer's output is wrong"
    [ "$(ls d)" = "$wanted" ] || bad "files are left: $(ls d | tr '\n' ' ')"
}
for shape in one set; do
    options=
    [ $shape = one ] || options='--shard-tokens 20000'
    "$TOKMAP" pack -q --seal $options -o made_$shape few.jsonl 2>err || cat err
    "$TOKMAP" pack -q $options -o old_$shape others.jsonl 2>err || cat err
    new_content=$(content made_$shape)
    old_content=$(content old_$shape)
    wanted=$(ls | grep "^made_$shape" | sed "s/^made_$shape/new/")
    for old in '' yes; do
        force=--force
        [ $shape = set ] || [ -n "$old" ] || force=
        attempt="$TOKMAP pack -q --threads 1 $force --seal $options -o d/new few.jsonl"
        for kind in kill system memory short; do
            case ${FAULT_ALL:+all}:$shape:${old:-none}:$kind in
            all:* | :one:none:* | :one:yes:kill | :set:none:kill) ;;
            *) continue ;;
            esac
            scenario="$shape${old:+ over an old one}"
            problems=0
            begin
            INJECT_KIND=$kind INJECT_NUMBER=1000000000 INJECT_COUNT=count LD_PRELOAD=$inject $attempt >out 2>err
            number=1
            case ${FAULT_ALL:+all}:$shape:$kind in
            all:*) ;;
            *:one:kill) number=$(($(cat count) - 20)) ;; # these calls are those that change files
            *:set:kill) number=$(($(cat count) - 30)) ;;
            *) number=$(($(cat count) - 40)) ;;
            esac
            [ $number -gt 0 ] || number=1
            first=$number
            while [ $problems -lt 5 ]; do
                begin
                attempt_fault || break
                if [ $status = 0 ] && [ "$(content d/new)" != "$new_content" ]; then
                    bad "exit 0, but the output is wrong"
                fi
                check
                number=$((number + 1))
            done
            [ $((number - first)) -gt 5 ] || [ $kind = short ] || bad "only $((number - first)) calls"
            [ $problems = 0 ] && echo "ok - $scenario, $kind: $((number - first)) calls" ||
                echo "not ok - $scenario, $kind"
        done
    done
done
rm -rf d
