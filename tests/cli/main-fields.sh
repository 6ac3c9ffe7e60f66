# SPDX-License-Identifier: MIT
# ci: nonroot
# Messages of the rooms below the commands name fields of options structs, and the commands print the options that set
# them. So the table in field_options.c must have every field that such a message names.
. "$TOKMAP_CLI/helpers.sh"
tools=$TOKMAP_TREE/tokenize_tools
src=$TOKMAP_TREE/src
find "$tools" "$src/format" "$src/dataset" "$src/run" "$src/batch" "$src/staging" "$src/cuda" "$src/loader" -name '*.c' ! -path "$tools/commands/*" ! -name tokmap.c -print0 >files
[ -s files ]
# Only fields inside a string count: an odd number of quotes comes before them on their line.
xargs -0 awk '/^#include/ { next }
{
    line = $0
    while (match(line, /options\.[a-z_0-9]+/)) {
        before = substr(line, 1, RSTART - 1)
        rest = substr(line, RSTART + RLENGTH)
        field = substr(line, RSTART + 8, RLENGTH - 8)
        odd = gsub(/"/, "", before) % 2
        if (odd) print field
        line = (odd ? "\"" : "") rest
    }
}' <files | sort -u >fields
[ -s fields ]
sed -n 's/^    {"\([a-z_0-9]*\)", \(NULL\|"[a-z0-9-]*"\), .*/\1/p' "$tools/commands/options/field_options.c" >table
[ -s table ]
while read -r field; do
    grep -qx "$field" table || { echo "options.$field: not in the table of field_options.c" >&2; exit 1; }
done <fields
# No message of these rooms names an option itself.
sed -n 's/^    {"[a-z_0-9]*", "\([a-z0-9-]*\)", .*/\1/p' "$tools/commands/options/field_options.c" | while read -r option; do
    if xargs -0 grep -nE "\"[^\"]*--$option([^a-z-]|\$)" <files; then
        echo "a message names --$option: name the field instead" >&2
        exit 1
    fi
done
