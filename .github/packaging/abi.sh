#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh dump FOLDER    writes the interface of the libraries in $BUILD/lib, as files of libabigail, to FOLDER
# abi.sh check FOLDER   compares the libraries in $BUILD/lib with these files; exit status 1 after an incompatible change
#
# What may change is a list in allowed.suppr: functions are added, and structs grow at their end.
set -eu
here=$(dirname "$0")
case $2 in */*) folder=$2 ;; *) folder=./$2 ;; esac
lib=${BUILD:-build}/lib
bad=0
for name in libtokmap libtokmap_tokenize; do
    for file in "$lib/$name".so.[0-9]; do
        dump=$folder/$(basename "$file").abi
        case $1 in
        dump)
            mkdir -p "$folder"
            abidw --exported-interfaces-only --drop-private-types --headers-dir include --debug-info-dir "$lib/.debug" \
                --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --no-write-default-sizes \
                --out-file "$dump" "$file" ;;
        check)
            abidiff --suppressions "$here/allowed.suppr" --no-added-syms --drop-private-types --headers-dir2 include \
                --debug-info-dir2 "$lib/.debug" "$dump" "$file" || bad=1 ;;
        esac
    done
done
exit $bad
