# A message of the rooms below the commands names a field of an options struct, and the commands print the option that sets it.
# So every field that such a message names is in the table of field_options.c, and no such message names an option itself.
. "$TOKMAP_CLI/helpers.sh"
tools=$TOKMAP_TREE/tokenize_tools
find "$tools" -name '*.c' ! -path '*/commands/*' ! -name tokmap.c >files
[ -s files ]
# Only inside a string: what a line has before the field holds an odd number of quotes.
xargs awk '{
    line = $0
    while (match(line, /options\.[a-z_0-9]+/)) {
        before = substr(line, 1, RSTART - 1)
        if (gsub(/"/, "\"", before) % 2) print substr(line, RSTART + 8, RLENGTH - 8)
        line = (gsub(/"/, "\"", before) % 2 ? "\"" : "") substr(line, RSTART + RLENGTH)
    }
}' <files | sort -u >fields
sed -n 's/^    {"\([a-z_0-9]*\)", "[a-z-]*", .*/\1/p' "$tools/commands/shared/field_options.c" >table
[ -s table ]
while read -r field; do
    grep -qx "$field" table || { echo "options.$field: not in the table of field_options.c" >&2; exit 1; }
done <fields
