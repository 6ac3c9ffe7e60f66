#!/bin/sh
# SPDX-License-Identifier: MIT
# test_versions.sh: every file that names the version of this tree names the same one.
. tests/release/release_common.sh
header=$(cat include/tokmap/*.h)
part() { printf '%s\n' "$header" | sed -n "s/^#define TOKMAP_VERSION_$1 //p"; }
check "the parts of the version in the header" test "$(part MAJOR).$(part MINOR).$(part PATCH)" = "$version"
# names FILE SED-EXPRESSION: compares what sed prints with the version.
names() { check "$1" test "$(sed -n "$2" "$1" | head -n 1)" = "$version"; }
names src/python/tokmap/_version.py 's/^__version__ = "\(.*\)"/\1/p'
[ -d .github/packaging ] || exit 0 # a source distribution of Python has no .github
# The folder of the newest version that is released, if any is.
released=$(ls .github/changelog | grep '^[0-9.]*_[0-9-]*$' | sort -V | tail -n 1)
check "the changelog" test "${released%_*}" = "${released:+$version}"
names .github/CITATION.cff 's/^version: //p'
names .github/packaging/debian/changelog 's/^tokmap (\(.*\)-[0-9]*).*/\1/p'
names .github/packaging/conda/recipe.yaml 's/^  version: "\(.*\)"/\1/p'
check "the date of the changelog, if it has one, is that of CITATION.cff" test \
    "${released#*_}" = "$(sed -n 's/^date-released: //p' .github/CITATION.cff)"
