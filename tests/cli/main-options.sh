# SPDX-License-Identifier: MIT
# The parser accepts every option that --help-all lists, and the man pages document every option, command, and case.
. "$TOKMAP_CLI/helpers.sh"
man=$TOKMAP_TREE/tokenize_tools/man
tokmap --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' >commands
while read -r command; do
    page=$man/tokmap-$command.1
    [ -f "$page" ] || { echo "no page $page" >&2; exit 1; }
    holds "$man/tokmap.1" ".It Cm $command"
    options tokmap "$command" >options
    [ -s options ]
    while read -r option; do
        taken=
        case $option in
        help | help-all | version) continue ;;
        *=) for value in 1 1..2 shuffle text error stop auto exact bpe full tokmap; do
            tokmap "$command" "--${option%=}=$value" --help >out 2>err </dev/null && taken=1
        done ;;
        *) tokmap "$command" "--$option" --help >out 2>err </dev/null && taken=1 ;;
        esac
        [ "$taken" ] || { echo "tokmap $command --$option: not taken" >&2; cat err >&2; exit 1; }
        grep -q -e "Fl Fl ${option%=}\( \|\$\)" "$page" ||
            { echo "tokmap-$command.1 lacks --${option%=}" >&2; exit 1; }
    done <options
done <commands

# The options of tokmap-bench are in one of its pages.
cat "$TOKMAP_TREE"/bench/man/* >pages
tokmap-bench --list | sed 's/ .*//' >cases
[ "$(wc -l <cases)" -gt 15 ]
while read -r case; do
    grep -q "^\.S[hs] $case\( \|\$\)" pages || { echo "no section about the case $case" >&2; exit 1; }
    tokmap-bench "$case" --help | sed -n 's/^  \(-., \|    \)--\([a-z][a-z0-9-]*\).*/\2/p' >options
    [ "$(wc -l <options)" -gt 3 ]
    while read -r option; do
        grep -q -e "Fl -$option\( \|\$\)" pages || { echo "no page has --$option of $case" >&2; exit 1; }
    done <options
done <cases
