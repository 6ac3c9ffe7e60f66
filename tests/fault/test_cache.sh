#!/bin/sh
# test_cache.sh: faults while the cache of vocabularies is written and read. The command prints the same ids, or fails
# for another reason with a message; the next run finds a cache that is whole. common.sh lists the checks.
. tests/fault/common.sh

unset TOKMAP_NO_CACHE
export XDG_CACHE_HOME="$work/cache"
cp "$TOP/tests/fuzz/corpus/fuzz_vocabulary/gpt2.json" tokenizer.json
printf 'the ab abc, then abcab\n' >text
"$TOKMAP" encode --no-cache -t tokenizer.json text >expected

# check_ids: what a command has printed, and what it has left in the cache.
check_ids() {
    [ $status != 0 ] || cmp -s expected out || problem "the ids are wrong"
    for left in cache/tokmap/*.partial; do
        [ ! -e "$left" ] || [ "$(cat report 2>/dev/null)" = unlink ] || problem "$left was left"
    done
    [ $kind != memory ] || return 0 # what is written does not depend on where memory ran out
    "$TOKMAP" encode -t tokenizer.json text >again 2>again.err || problem "the next run fails: $(cat again.err)"
    cmp -s expected again || problem "the next run prints other ids"
    "$TOKMAP" tokenizer tokenizer.json 2>/dev/null | grep -q 'cache  *read' || problem "the next run did not write it"
}

for kinds in system eintr short memory; do
    attempt() {
        rm -rf cache
        with_fault "$TOKMAP" encode -t tokenizer.json text
        check_ids
    }
    sweep "writing the cache" $kinds
    "$TOKMAP" encode -t tokenizer.json text >/dev/null
    attempt() {
        with_fault "$TOKMAP" encode -t tokenizer.json text
        check_ids
    }
    sweep "reading the cache" $kinds
done
