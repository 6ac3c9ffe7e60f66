#!/bin/sh
# SPDX-License-Identifier: MIT
# test_pack.sh: faults during `tokmap pack`, and renames at its end that fail. common.sh lists the checks.
. tests/fault/common.sh

for kinds in system eintr short memory; do
    for threads in 1 2; do
        attempt() {
            rm -f new.*
            with_fault "$TOKMAP" pack --eod --threads $threads -o new in
            check_pack whole ""
        }
        sweep "pack, $threads threads" $kinds
    done
    if [ -n "$jsonl" ]; then
        attempt() {
            rm -f new.*
            with_fault "$TOKMAP" pack --eod --threads 2 -o new docs.jsonl
            check_pack whole_jsonl ""
        }
        sweep "pack of JSONL" $kinds
    fi
    attempt() {
        rm -f new.*
        cp old.bin new.bin
        cp old.tmx new.tmx
        with_fault "$TOKMAP" pack --eod --threads 1 --force -o new in
        check_pack whole old
    }
    sweep "pack --force over an old shard" $kinds
done
rm -f new.*
[ -n "$jsonl" ] || { echo "ok - pack of JSONL # SKIP this build reads no JSONL"; exit 0; }

# A rename at the end that fails, or a kill in its place, takes nothing of the work that was saved: the same command
# continues it. A kill at any other call leaves the same files as one at the next rename.
for i in 1 2 3 4 5 6 7 8 9 10; do cat docs.jsonl; done >many.jsonl
common='--threads 1 --checkpoint-seconds 0.001'
export INJECT_ONLY=rename
# end_sweep KIND OVER [OPTION]...
end_sweep() {
    kind=$1
    over=$2
    shift 2
    "$TOKMAP" pack $common "$@" --force -o many many.jsonl >out 2>err || cat err
    attempt="$TOKMAP pack $common $* --force -o new many.jsonl"
    ends=bin
    [ ! -e many.bin.zst ] || ends=bin.zst
    scenario="pack${*:+ $*} over $over"
    problems=0
    seen=0
    number=1
    while
        rm -rf new.*
        [ "$over" = nothing ] || { cp old.bin new.bin && cp old.tmx new.tmx; }
        attempt_fault
    do
        number=$((number + 1))
        [ $status != 0 ] && [ -e new.work/journal ] && ! cmp -s new.tmx many.tmx || continue
        [ "$over" = nothing ] || is_shard new old || bad "the old shard has changed"
        [ $kind = kill ] || [ -s new.bin.partial ] || bad "the work that was saved is gone"
        INJECT_NUMBER=0 $attempt >out 2>err || bad "the next process fails"
        grep -q '^continued after' out || bad "the next process begins again"
        cmp -s new.$ends many.$ends && cmp -s new.tmx many.tmx || bad "the next process's shard is wrong"
        [ "$(echo new.*)" = "new.$ends new.tmx" ] || bad "files are left: $(echo new.*)"
        seen=$((seen + 1))
    done
    [ $seen -gt 1 ] || bad "only $seen renames at the end"
    if [ $problems = 0 ]; then echo "ok - a $kind in a rename at the end: $scenario, $seen renames"
    else echo "not ok - a $kind in a rename at the end: $scenario"; fi
    rm -rf many.bin* many.tmx
}
for kinds in system kill; do
    for overs in nothing 'an old shard'; do end_sweep $kinds "$overs"; done
done
end_sweep kill 'an old shard' --seal

# The user removes the partial files of killed work, and has files of the names that it would have. The command that
# continues refuses them, and changes none. `removed`: which partial files are gone.
scenario='files of the user' kind=kill problems=0
for seals in '' --seal; do
    for removed in 'new.*.partial' new.bin.partial; do
        rm -rf new.*
        attempt="$TOKMAP pack $common $seals -o new many.jsonl"
        for number in 2 3; do
            rm -rf new.*
            attempt_fault
            [ ! -e new.tmx.partial ] || break # the shard was finished, and then the process was killed
        done
        [ -s new.work/journal ] && [ -s new.tmx.partial ] || bad "there is no finished work"
        rm -f $removed
        for end in bin bin.zst mask; do echo "my own $end" >new.$end; done
        INJECT_NUMBER=0 $attempt >out 2>err && bad "the files of the user were accepted"
        grep -q 'already exists' err || bad "another message: $(cat err)"
        [ "$(cat new.bin new.bin.zst new.mask)" = "$(printf 'my own %s\n' bin bin.zst mask)" ] ||
            bad "a file of the user has changed"
    done
done
if [ $problems = 0 ]; then echo "ok - $scenario are not continued"; else echo "not ok - $scenario"; fi

# A sync that fails in a process that continues keeps the work that was saved, also that of the folder for it.
export INJECT_ONLY=fsync INJECT_GONE=new.work # the sync after it is removed is the only one that may fail
for shape in '' '--shard-tokens 1M'; do
    rm -rf killed new* many
    mkdir killed many
    "$TOKMAP" pack $common $shape -o many/new many.jsonl >out 2>err || cat err
    attempt="$TOKMAP pack $common $shape -o new many.jsonl"
    kind=kill number=7
    attempt_fault
    mv new* killed
    [ -s killed/new.work/journal ] || echo "not ok - there is no saved work"
    scenario="a process that continues${shape:+ with $shape}" kind=system problems=0 seen=0 number=1
    while
        rm -rf new*
        cp -rp killed/* .
        attempt_fault
    do
        number=$((number + 1))
        [ ! -e new.tmx ] && [ ! -e new ] && [ ! -e new.work/naming ] || continue
        [ $status = 1 ] || bad "the failure was ignored"
        INJECT_NUMBER=0 $attempt >out 2>err || bad "the next process fails"
        grep -q '^continued after' out || bad "the next process begins again"
        for file in many/*; do cmp -s $file ${file#many/} || bad "the next process's ${file#many/} is wrong"; done
        [ "$(echo new*)" = "$(cd many && echo new*)" ] || bad "files are left: $(echo new*)"
        seen=$((seen + 1))
    done
    [ $seen -gt 2 ] || bad "only $seen syncs"
    if [ $problems = 0 ]; then echo "ok - a failed sync: $scenario, $seen syncs"; else echo "not ok - a failed sync: $scenario"; fi
done
unset INJECT_ONLY INJECT_GONE
rm -rf new* many killed
