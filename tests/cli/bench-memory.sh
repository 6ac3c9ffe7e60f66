# SPDX-License-Identifier: MIT
# The peak memory of pack is what its manual page states, for a million tiny documents and for a document that is larger
# than the limit. Besides the limits, which a million documents are too few to reach, each way is within what it took
# when this test was written, and some 32 bytes for each document.
. "$TOKMAP_CLI/helpers.sh"
[ -z "${SANITIZE:-}" ] || skip 'sanitizers need additional memory'

export TMPDIR="$PWD"
tokmap-bench pack --memory --tiny-documents 1M --text-bytes 400M --require held --json >rows 2>err ||
    { cat rows err >&2; exit 1; }
# Each line: the row, its limit, and the most memory that it may have, in MiB.
while read -r name limit most; do
    grep "\"metric\": \"${name}_peak_mib\"" rows >row
    awk -v limit="$limit" -v most="$most" '
        function number(key, text) {
            text = $0
            return sub(".*\"" key "\": ", "", text) ? text + 0 : -1
        }
        { value = number("value")
          ok = value > 1 && value <= most && number("limit") >= limit && number("limit") < limit + 1 }
        END { exit !ok }' row && continue
    echo "FAULT: $name: not a peak of $most MiB with a limit of $limit MiB:" >&2
    cat row >&2
    exit 1
done <<END
tiny_plain 256 36
tiny_shuffle 256 150
tiny_dedup 296 110
tiny_minhash 259 110
large 256 36
END
equal "$(find . -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left behind'
