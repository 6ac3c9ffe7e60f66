#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh dump FOLDER    writes the interface of the libraries in $BUILD/lib, as files of libabigail, to FOLDER
# abi.sh check FOLDER   compares the libraries in $BUILD/lib with these files; exit status 1 after an incompatible change
#
# Functions may be added. A struct that grows at its end is reported, and accepted if allowed.suppr names it. Two dumps are
# compared, because types that no header declares are left out of a dump, and abidiff would leave out changes with them.
set -eu
here=$(dirname "$0")
lib=${BUILD:-build}/lib
bad=0

# dump LIBRARY FILE
dump() {
    abidw --exported-interfaces-only --drop-private-types --headers-dir include --debug-info-dir "$lib/.debug" \
        --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --no-write-default-sizes --out-file "$2" "$1"
}

for name in libtokmap libtokmap_tokenize; do
    for file in "$lib/$name".so.[0-9]; do
        stored=$2/$(basename "$file").abi
        case $1 in
        dump) mkdir -p "$2" && dump "$file" "$stored" ;;
        check)
            mkdir -p "${BUILD:-build}/abi" && dump "$file" "${BUILD:-build}/abi/$name.abi"
            abidiff --suppressions "${ALLOWED:-$here/allowed.suppr}" --no-added-syms "$stored" \
                "${BUILD:-build}/abi/$name.abi" || bad=1 ;;
        esac
    done
done
exit $bad
