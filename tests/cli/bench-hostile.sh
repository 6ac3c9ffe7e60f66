# SPDX-License-Identifier: MIT
# The case hostile: counted work for each byte of hostile input is linear, and each row says so.
. "$TOKMAP_CLI/helpers.sh"

tokmap-bench hostile --json >rows 2>err || { cat err >&2; exit 1; }
json rows
set -- train_words text_table text_places pairs added_long added_letters added_spaces
case $(tokmap --version --json) in
*'"pcre2": true'*) set -- "$@" pattern_usual pattern_quadratic ;;
*) holds err 'pattern_usual_work_per_byte is skipped, because this build has no PCRE2' ;;
esac
for row; do
    results rows hostile "${row}_work_per_byte"
    grep "\"${row}_work_per_byte\"" rows >row
    holds row '"unit": "steps/byte", "better": "less"'
    # Work is counted, and the ratio is that of the two sizes.
    awk -v row="$row" '
        function number(key, text) {
            text = $0
            if (!sub(".*\"" key "\": ", "", text)) text = "0"
            return text + 0
        }
        {
            value = number("value"); limit = number("limit"); ratio = number("ratio")
            if (!(value > 0 && limit > 0 && ratio > 0 && ratio <= 2)) bad = 1
            if (ratio - value / limit > 1e-6 || value / limit - ratio > 1e-6) bad = 1
        }
        END { if (bad) { print "FAULT: " row ": work is missing, or grows faster than the input"; exit 1 } }' row >&2
done
equal "$(grep -c '_work_per_byte"' rows)" $# 'rows of work'
