#!/bin/sh
# SPDX-License-Identifier: MIT
# test_commands.sh: faults while commands look for inputs, list what they leave out, and write files that are not
# shards. common.sh lists the checks.
. tests/fault/common.sh

mkdir -p tree/sub/deeper
for name in a sub/b sub/deeper/c; do printf 'the text %s\n' $name >tree/$name.txt; done
printf '\377 is not UTF-8\n' >tree/sub/invalid.txt
"$TOKMAP" pack -q --on-error skip --skipped-list skipped -o tree_whole 'tree/**/*.txt' 2>/dev/null
"$TOKMAP" export -q -o exported old
"$TOKMAP" merge -q -o merged whole old
"$TOKMAP" plan -q --seq-len 64 -o planned old
cp old.bin foreign.bin
"$TOKMAP" index -q raw:foreign.bin,width=2,eod=256 && mv foreign.tmx indexed

# check_file NAME REFERENCE: a file that is written under another name first.
check_file() {
    call=$(cat report 2>/dev/null)
    for left in *.partial; do
        [ -e "$left" ] || continue
        case $call in
        unlink) ;;
        # Unless it is known to be its own, the file could belong to another writer, so it is kept.
        fstat | lstat) [ ! -s "$left" ] || problem "$left was left" ;;
        *) problem "$left was left" ;;
        esac
    done
    if [ $status = 0 ]; then
        cmp -s "$1" "$2" || [ "$1" = joined ] || problem "it exited with 0, but the file is wrong"
    elif [ -e "$1" ]; then
        # The folder is synced after the file has its name.
        [ "$1" = joined ] || cmp -s "$1" "$2" || problem "the file is not complete"
        grep -q 'cannot be synced\|indexes are written' err || problem "it failed, but the file is there"
    fi
    rm -f ./*.partial
}

for kinds in system eintr short memory; do
    attempt() {
        rm -f new.* list
        with_fault "$TOKMAP" pack -q --on-error skip --skipped-list list -o new 'tree/**/*.txt'
        # What cannot be read is left out, and then the list names it.
        if [ $status != 0 ]; then
            :
        elif cmp -s new.bin tree_whole.bin; then
            grep -qF tree/sub/invalid.txt list || problem "the list is not complete"
        elif cmp -s list skipped; then
            problem "something is missing that the list does not name"
        fi
    }
    sweep "pack of a pattern with a list" $kinds
    attempt() {
        rm -f text
        with_fault "$TOKMAP" export -q -j 2 -o text old
        check_file text exported
    }
    sweep "export" $kinds
    # If the names cannot be compared, the manifest has absolute ones.
    attempt() {
        rm -f joined
        with_fault "$TOKMAP" merge -q -o joined whole old
        check_file joined merged
        if [ $status = 0 ]; then
            "$TOKMAP" export -q joined | cmp -s - both || problem "the manifest means other shards"
        fi
    }
    "$TOKMAP" export -q merged >both
    sweep "merge" $kinds
    attempt() {
        rm -f new.plan
        with_fault "$TOKMAP" plan -q --seq-len 64 -o new.plan old
        check_file new.plan planned
    }
    sweep "plan" $kinds
    attempt() {
        rm -f foreign.tmx
        with_fault "$TOKMAP" index -q -j 2 raw:foreign.bin,width=2,eod=256
        check_file foreign.tmx indexed
    }
    sweep "index" $kinds
done
