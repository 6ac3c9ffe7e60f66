#!/bin/sh
# SPDX-License-Identifier: MIT
# test_writer.sh: faults while a program writes a shard through pack.h. common.sh lists the checks.
. tests/fault/common.sh
writer=$BUILD_DIR/tests/fault_writer

"$writer" written 0 2>err || { cat err; echo "not ok - writing without faults"; exit 1; }
"$TOKMAP" verify -q written >/dev/null 2>err || { cat err; echo "not ok - the shard without faults is sound"; exit 1; }
for kinds in system eintr short memory; do
    attempt() {
        rm -f new.*
        with_fault "$writer" new 0
        check_pack written ""
        [ $status != 0 ] || cmp -s new.mask written.mask || problem "the mask is wrong"
    }
    sweep "pack.h" $kinds
    attempt() {
        rm -f new.*
        cp old.bin new.bin
        cp old.tmx new.tmx
        with_fault "$writer" new 1
        check_pack written old
    }
    sweep "pack.h over an old shard" $kinds
done
