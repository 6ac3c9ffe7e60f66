# SPDX-License-Identifier: MIT
# ci: nonroot
# Messages name options as commands have them, and members of options structs without a prefix (error.field).
. "$TOKMAP_CLI/helpers.sh"
find "$TOKMAP_TREE/tokenize_tools" -name '*.c' ! -path "$TOKMAP_TREE/tokenize_tools/commands/*" ! -name tokmap.c -print0 >files
[ -s files ]
# Every option that a message names, in a string with spaces, is an option of a command, or of zstd.
xargs -0 grep -hv '^ *\(/\*\|\*\|#include\)' <files | grep -v "'zstd " | grep -oE '"[^"]*[ (]--[a-z][a-z0-9-]+[^"]*"' |
    grep -oE '[ (]--[a-z][a-z0-9-]*[a-z0-9]' | tr -d ' (' | sort -u >named
[ -s named ]
for command in $(tokmap --help | sed -n 's/^  \([a-z-][a-z-]*\) .*/\1/p'); do
    tokmap "$command" --help-all
done >help
while read -r option; do
    grep -qE -- "(^|[^a-z-])$option([^a-z-]|\$)" help || { echo "no command has $option, which a message names" >&2; exit 1; }
done <named
find "$TOKMAP_TREE/tokenize_tools" "$TOKMAP_TREE/src" -name '*.c' -print0 >files
if xargs -0 grep -nE '^[^"]*"[^"]*\b(options|out)\.[a-z%]' <files; then
    echo "a message names a struct: name the member, with error_set_field()" >&2
    exit 1
fi
