#!/bin/sh
# SPDX-License-Identifier: MIT
# changelog.sh FOLDER: joins the files of a changelog, whose README.md says how they are named, to one page.
set -eu
export LC_ALL=C
# entries FOLDER: prints what a version has added, changed, and fixed, in the order of the names of the files.
entries() {
    for kind in Added Changed Fixed; do
        prefix=$(echo "$kind" | tr '[:upper:]' '[:lower:]')
        set -- "$1" "$1/$prefix"-*.md
        [ -e "$2" ] || continue
        printf '\n### %s\n\n' "$kind"
        awk 'FNR == 1 { printf "- " } FNR > 1 { printf "  " } 1' "$1/$prefix"-*.md
    done
}
cat <<'HEAD'
<!-- SPDX-License-Identifier: MIT -->
# Changelog

What a user sees of each change. Versions follow [Semantic Versioning](https://semver.org/), and
[COMPATIBILITY.md](COMPATIBILITY.md) says what a version promises.

## Unreleased
HEAD
entries "$1"
for version in $(ls "$1" | grep '^[0-9.]*_[0-9-]*$' | sort -Vr); do
    printf '\n## %s - %s\n' "${version%_*}" "${version#*_}"
    entries "$1/$version"
done
