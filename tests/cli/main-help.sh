# SPDX-License-Identifier: MIT
# ci: nonroot
# --help and help print the same text; the message about an unknown command suggests the nearest name.
. "$TOKMAP_CLI/helpers.sh"
tokmap --help >one
tokmap help >two
same one two
tokmap -h >two
same one two
sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' one >commands
[ -s commands ]
while read -r command; do
    tokmap help "$command" >one
    tokmap "$command" --help >two
    same one two
    tokmap "$command" -h >two
    same one two
    holds one "Usage: tokmap $command"
    awk 'length($0) > 80 { print FILENAME ": line too long: " $0; exit 1 }' one
    equal "$(tokmap "$command" --version)" "tokmap $(tokmap --version | sed -n '1s/tokmap //p')" "$command --version:"
    exits 2 tokmap "$command" --no-such-option 2>err
    holds err "tokmap $command: unknown option '--no-such-option'"
    holds err "Try 'tokmap $command --help'."
done <commands
# Without arguments it says in five lines what to type first.
exits 2 tokmap >out 2>err
equal "$(wc -l <err)" 5
[ ! -s out ]
holds err "tokmap pack -t tokenizer.json -o web texts/"
# What it says works as typed, in an empty folder.
mkdir texts
printf 'a text' >texts/a.txt
tokmap train-tokenizer -q -o tokenizer --vocab-size 257 --special-tokens '<|endoftext|>' texts
sed -n 's/^  \(tokmap .*[^ ]\)   *[a-z ]*$/\1/p' err >lines
equal "$(wc -l <lines)" 3
while IFS= read -r line; do
    sh -euc "$line" >out 2>warnings
done <lines
equal "$(cat out)" "a text"
holds err "tokmap --help"
awk 'length($0) > 80 { print "line too long: " $0; exit 1 }' err
# The help groups the commands, and that of a command its options; every group has one row or more.
for command in '' pack encode decode info show audit order tokenizer train-tokenizer; do
    # shellcheck disable=SC2086 # no word or one
    tokmap $command --help${command:+-all} >one
    [ "$(grep -c '^[A-Z][a-z ]*:$' one)" -ge 3 ] || { cat one; exit 1; }
    awk '/^[A-Z][A-Za-z ]*:$/ { if (heading) { print heading " is empty"; exit 1 } heading = $0; next }
        /^  / { heading = "" }' one
done
# Where the index records the tokenizer, that one is the default, and not bytes.
for command in show export; do
    tokmap $command --help-all >one
    holds one "'tokmap pack' was given, if it is still there"
    ! grep -q "'bytes' (default)" one
done
tokmap pack --help-all >one
awk '/^[^ ].*:$/ { rows = 0 } /^  (-|    --)/ { if (++rows > 20) { print "a group has more than 20 options"; exit 1 } }' one
# Where a command has many options, --help has one screen, and --help-all has all.
for command in pack encode train-tokenizer; do
    tokmap $command --help >one
    [ "$(wc -l <one)" -le 45 ] || { echo "FAULT: tokmap $command --help has $(wc -l <one) lines" >&2; exit 1; }
    holds one "--help-all"
    tokmap $command --help-all >two
    sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p' one >few
    while read -r option; do
        holds two "$option"
    done <few
    [ "$(grep -c '^  \(-., \|    \)--' two)" -gt "$(grep -c '^  \(-., \|    \)--' one)" ]
done
for option in -o -t --field --input-format --split --shuffle --shard-tokens --dedup --separator --columns \
    --messages-field --chat-template --include --on-error --force -j; do
    tokmap pack --help | grep -q "^ *$option[, ]" || { echo "FAULT: pack --help lacks $option" >&2; exit 1; }
done
# What the message about a file that is not text names is in the help that it names.
printf '\177ELF\0' >texts/b
for command in 'pack -o x' 'train-tokenizer -o x --vocab-size 257'; do
    # shellcheck disable=SC2086 # words
    exits 1 tokmap $command texts 2>err >/dev/null
    holds err "--include"
    tokmap ${command%% *} --help >one
    holds one "--include"
done
rm texts/b
exits 2 tokmap verfy 2>err
holds err "did you mean 'verify'?"
exits 2 tokmap help verfy 2>err
exits 2 tokmap verison 2>err
holds err "unknown command 'verison'; did you mean '--version'?"
exits 2 tokmap version 2>err
holds err "unknown command 'version'; did you mean '--version'?"
exits 2 tokmap -version 2>err
holds err "unknown option '-version'; did you mean '--version'?"
exits 2 tokmap hlep 2>err
holds err "did you mean 'help'?"
tokmap help help >two
tokmap help >one
same one two
exits 2 tokmap --hlep 2>err
holds err "unknown option '--hlep'; did you mean '--help'?"
# Subjects have manual pages: in a tree, man gets the file of this version.
mkdir -p bin tree/build/bin tree/tokenize_tools
cp "$TOKMAP_BIN/tokmap" tree/build/bin/
printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' >bin/man
chmod +x bin/man
tokmap --help | sed -n 's/^Subjects.*: //p' | tr -d , | tr ' ' '\n' >subjects
while read -r subject; do
    section=7
    [ "$subject" != run ] || section=5
    [ -f "$TOKMAP_TREE/tokenize_tools/man/tokmap-$subject.$section" ]
    equal "$(PATH=$PWD/bin:$PATH tree/build/bin/tokmap help "$subject")" "<$section><tokmap-$subject>"
    PATH=/none exits 1 "$TOKMAP_BIN/tokmap" help "$subject" 2>err
    holds err "the manual page tokmap-$subject($section) needs the command man"
done <subjects
equal "$(ls "$TOKMAP_TREE"/tokenize_tools/man/tokmap-*.[57] | wc -l)" "$(wc -l <subjects)" "pages of section 5 and 7:"
cp -R "$TOKMAP_TREE/tokenize_tools/man" tree/tokenize_tools/
PATH=$PWD/bin:$PATH tree/build/bin/tokmap help chat >out
holds out "/tokenize_tools/man/tokmap-chat.7>"
exits 2 tokmap help chta 2>err
holds err "unknown command or subject 'chta'; did you mean 'chat'?"
exits 2 tokmap help fim 2>err
holds err "did you mean 'help documents'?"
exits 2 tokmap chat 2>err
holds err "unknown command 'chat'; did you mean 'help chat'?"
exits 2 tokmap task 2>err
! grep -q "'tasks'" err
# A bad environment variable is not an error in the options of the command.
TOKMAP_CPU=none exits 2 tokmap info x 2>err
equal "$(cat err)" "$(sed -n 1p err)"
# Messages list the documented spelling of a choice only.
exits 2 tokmap encode --special foo 2>err
holds err "--special takes one of text|recognize|error, not 'foo'"
exits 2 tokmap encode --special= 2>err
