# --help and help print the same text; the message about an unknown command suggests the nearest name.
. "$TOKMAP_CLI/helpers.sh"
tokmap --help >one
tokmap help >two
same one two
tokmap -h >two
same one two
sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' one >commands
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
exits 2 tokmap 2>err
holds err "Usage: tokmap COMMAND"
exits 2 tokmap verfy 2>err
holds err "did you mean 'verify'?"
exits 2 tokmap help verfy 2>err
exits 2 tokmap --hlep 2>err
holds err "unknown option '--hlep'"
