#!/bin/sh
# SPDX-License-Identifier: MIT
# test_killed.sh: kill -9 in place of the calls at the end of a writer, and what the disk holds if the power fails after
# any call of a commit. A reader finds the old shard or the new one, complete; the next writer succeeds with the same
# command, and leaves only the files of the shard. The same for the files of `train-tokenizer`, of which there may be
# fewer after a kill, but never some of the old set beside some of the new one. common.sh prepares the inputs.
here=$PWD
. tests/fault/common.sh
writer=$BUILD_DIR/tests/fault_writer

# killed COMMAND...: runs the command until call `number`, and sets status. False if there are fewer calls.
killed() {
    rm -f report
    INJECT_KIND=kill INJECT_NUMBER=$number INJECT_REPORT=report LD_PRELOAD=$inject \
        timeout -k 2 120 "$@" >out 2>err </dev/null
    status=$?
    [ -e report ]
}
bad() {
    echo "  $scenario, killed at call $number ($(cat report 2>/dev/null)): $1"
    problems=$((problems + 1))
}
verdict() {
    [ $((number - first)) -gt 8 ] || bad "only $((number - first)) calls"
    if [ $problems = 0 ]; then
        echo "ok - $scenario: killed at each of $((number - first)) calls"
    else
        echo "not ok - $scenario"
    fi
}

# Checks every byte of a shard, and prints its content id, which depends on its tokens, documents, and mask.
content() {
    "$TOKMAP" verify -q "$1" >out 2>err && "$TOKMAP" info --json "$1" 2>err | grep -o '"content": "[0-9a-f]*"' | head -n 1
}
# first_call COMMAND...: sets number. The last 16 calls that change files are those of the commit, and some before it.
# FAULT_ALL=1 takes all calls.
first_call() {
    INJECT_KIND=kill INJECT_NUMBER=1000000000 INJECT_COUNT=count LD_PRELOAD=$inject "$@" >out 2>err || bad "it fails: $(cat err)"
    number=1
    [ -n "${FAULT_ALL:-}" ] || [ "$(cat count)" -lt 18 ] || number=$(($(cat count) - 15))
    first=$number
}

new_hash=
old_hash=$(content old)

# shard_sweep: `begin` prepares, `attempt` is the command, `again` what must succeed after it.
shard_sweep() {
    problems=0
    begin
    first_call $attempt
    begin
    while killed $attempt && [ $problems -lt 5 ]; do
        [ $status = 137 ] || bad "exit $status instead of the signal"
        if [ -n "$old" ] || [ -e new.tmx ]; then
            found=$(content new) || bad "cannot be read: $(cat err)"
            [ "$found" = "$new_hash" ] || [ -n "$old" -a "$found" = "$old_hash" ] || bad "neither old nor new"
        fi
        if [ ! -e new.tmx ] || [ -n "$old" ]; then
            $again >out 2>err || bad "the next writer fails: $(cat err)"
            [ "$(content new)" = "$new_hash" ] || bad "the next writer's shard is wrong"
            [ "$(echo new.*)" = "$files" ] || bad "files are left: $(echo new.*)"
        fi
        number=$((number + 1))
        begin
    done
    verdict
}
old=
files='new.bin new.tmx'
new_hash=$(content whole)
scenario="a first pack"
begin() { rm -f new.*; }
attempt="$TOKMAP pack -q --eod --threads 1 -o new in"
again=$attempt
shard_sweep

old=yes
scenario="pack --force"
begin() {
    rm -f new.*
    cp old.bin new.bin
    cp old.tmx new.tmx
}
attempt="$TOKMAP pack -q --eod --threads 1 --force -o new in"
again=$attempt
shard_sweep

# With a mask and columns: over a shard without, and over one with another mask.
"$writer" masked 0 2>err || echo "not ok - the writer"
new_hash=$(content masked)
files='new.bin new.mask new.tmx'
scenario="pack.h with a mask over a shard without"
attempt="$writer new 1"
again=$attempt
shard_sweep

new_hash=$(content whole)
old_hash=$(content masked)
files='new.bin new.tmx'
scenario="pack --force over a shard with a mask"
begin() {
    rm -f new.*
    for end in bin tmx mask; do cp masked.$end new.$end; done
}
attempt="$TOKMAP pack -q --eod --threads 1 --force -o new in"
again=$attempt
shard_sweep

scenario="index --mask over a shard with another mask"
tokens=$(($(wc -c <masked.bin) / 2))
head -c $tokens /dev/zero | tr '\0' '\1' >all.mask
begin
attempt="$TOKMAP index -q --force --mask all.mask new"
$attempt 2>err || { cat err; echo "not ok - index --mask"; }
new_hash=$(content new)
files='new.bin new.mask new.tmx'
again=$attempt
shard_sweep

# ---- seal and unseal: the plain shard or the sealed one, complete, with the same content ----
# Both have the content id of the old one, so only the files show whether the next writer has finished.
for end in bin tmx mask; do cp masked.$end sealed.$end; done
"$TOKMAP" seal -q sealed 2>err || { cat err; echo "not ok - seal"; }
new_hash=$(content masked)
old_hash=$new_hash
old=yes
scenario="seal"
begin() {
    rm -f new.*
    for end in bin tmx mask; do cp masked.$end new.$end; done
}
files='new.bin.zst new.mask new.tmx'
attempt="$TOKMAP seal -q -j 1 new"
again=$attempt
shard_sweep

scenario="unseal"
begin() {
    rm -f new.*
    for end in bin.zst tmx mask; do cp sealed.$end new.$end; done
}
files='new.bin new.mask new.tmx'
attempt="$TOKMAP unseal -q -j 1 new"
again=$attempt
shard_sweep

scenario="seal --force of a sealed shard"
files='new.bin.zst new.mask new.tmx'
attempt="$TOKMAP seal -q -j 1 --force --level 1 new"
again=$attempt
shard_sweep

new_hash=$(content whole)
scenario="pack --force over a sealed shard"
files='new.bin new.tmx'
attempt="$TOKMAP pack -q --eod --threads 1 --force -o new in"
again=$attempt
shard_sweep

# ---- two writers are killed, one after the other ----
# The second one is killed while it cleans up after the first one. The third leaves only the files of the shard.
scenario="two kills of pack --force"
# Each has other texts: a writer of the same ones takes the files over that have their id.
for text in first second third; do echo "the $text text" >$text.txt; done
"$TOKMAP" pack -q --eod -o small third.txt 2>err || cat err
new_hash=$(content small)
pack="$TOKMAP pack -q --eod --threads 1 --force -o new"
attempt="$pack first.txt"
files='new.bin new.tmx'
problems=0 pairs=0
begin() {
    rm -f new.*
    for end in bin tmx mask; do cp masked.$end new.$end; done
}
keep() {
    rm -rf kept
    mkdir kept
    cp -p new.* kept
}
begin
# A kill at any other call leaves the same files as one at the next rename.
number=1
while begin && killed env INJECT_ONLY=rename $attempt && [ $problems -lt 5 ]; do
    keep
    killed_first=$number
    # The same holds for these, of which a writer that cleans up makes more.
    for call in unlink rename open; do
        number=1
        while killed env INJECT_ONLY=$call $pack second.txt; do
            $pack third.txt >out 2>err || bad "the third writer fails: $(cat err)"
            [ "$(content new)" = "$new_hash" ] || bad "the third writer's shard is wrong"
            [ "$(echo new.*)" = "$files" ] || bad "files are left after a kill at $killed_first: $(echo new.*)"
            pairs=$((pairs + 1)) number=$((number + 1))
            rm -f new.*
            cp -p kept/* .
        done
    done
    number=$((killed_first + 1))
done
[ $pairs -gt 40 ] || bad "only $pairs pairs of kills"
[ $problems = 0 ] && echo "ok - $scenario: $pairs pairs" || echo "not ok - $scenario"

# ---- train: old set or new set, or fewer files, never both ----
train="$TOKMAP train-tokenizer -q --vocab-size 300 --threads 1 --force -o new"
mkdir sets
"$TOKMAP" train-tokenizer -q --vocab-size 300 --threads 1 --special-tokens '<|old|>' -o sets/old old.txt 2>err || cat err
"$TOKMAP" train-tokenizer -q --vocab-size 300 --threads 1 -o sets/new in/long.txt 2>err || cat err
train_sweep() {
    problems=0
    begin
    first_call $attempt
    begin
    while killed $attempt && [ $problems -lt 5 ]; do
        sets=
        for end in json tiktoken specials.json; do
            [ -e new.$end ] || continue
            if cmp -s new.$end sets/old.$end; then
                sets="${sets}o"
            elif cmp -s new.$end sets/new.$end; then
                sets="${sets}n"
            else
                bad "new.$end is neither old nor new"
            fi
        done
        case $sets in *o*n* | *n*o*) bad "files of both sets: $sets" ;; esac
        if [ ! -e new.json ] || [ -n "$old" ]; then
            $again >out 2>err || bad "the next train fails: $(cat err)"
            cmp -s new.json sets/new.json && cmp -s new.tiktoken sets/new.tiktoken || bad "the next train is wrong"
            [ "$(echo new.*)" = 'new.json new.tiktoken' ] || bad "files are left: $(echo new.*)"
        fi
        number=$((number + 1))
        begin
    done
    verdict
}
begin() {
    rm -f new.*
    for end in json tiktoken specials.json; do cp sets/old.$end new.$end; done
}
scenario="train --force without special tokens over a set with them"
attempt="$train in/long.txt"
again=$attempt
train_sweep
old=
begin() { rm -f new.*; }
scenario="a first train"
attempt="$TOKMAP train-tokenizer -q --vocab-size 300 --threads 1 -o new in/long.txt"
again=$attempt
train_sweep

# ---- the power fails ----
if ! python3 -c '' 2>/dev/null; then
    echo "ok - the power fails # SKIP there is no python3"
    exit 0
fi
"$TOKMAP" pack --eod -q -o before old.txt 2>/dev/null
for over in before masked; do
    for attempt in "$TOKMAP pack -q --eod --force -o new in" "$writer new 1" "$TOKMAP pack -q --eod --force -o new old.txt"; do
        rm -f new.* log
        for end in bin tmx mask; do [ ! -e $over.$end ] || cp $over.$end new.$end; done
        cp new.tmx first.tmx
        INJECT_LOG=log LD_PRELOAD=$inject $attempt >out 2>err || echo "not ok - $attempt"
        python3 "$here/tests/fault/power.py" log first.tmx new.tmx >found 2>&1 &&
            echo "ok - power fails: $over, ${attempt##*/}: $(cat found)" ||
            { cat found; echo "not ok - power fails: $over, ${attempt##*/}"; }
    done
done
rm -f new.*
