# --list, --help and --version, and the messages for wrong command lines.
. "$TOKMAP_CLI/helpers.sh"

tokmap-bench --list >list
for case in limits order slice loader open train pack verify tokenize; do
    grep -q "^$case  *[^ ]" list || { echo "FAULT: --list lacks $case" >&2; exit 1; }
done
tokmap-bench --help >help
holds help 'Usage: tokmap-bench'
tokmap-bench --version >/dev/null

exits 2 tokmap-bench 2>err
holds err 'name a case'
exits 2 tokmap-bench nosuch 2>err
holds err nosuch
exits 2 tokmap-bench order a b 2>err
exits 2 tokmap-bench tokenize 2>err
holds err 'name a text and a tokenizer'
exits 2 tokmap-bench tokenize list 2>err
exits 1 tokmap-bench tokenize nowhere -t bytes 2>err
holds err nowhere
exits 1 tokmap-bench tokenize list -t nowhere 2>err
printf 'a\377' >wrong
exits 1 tokmap-bench tokenize wrong -t bytes 2>err
holds err 'not valid UTF-8'
exits 2 tokmap-bench tokenize list -t bytes --against gigatoken,nothing --venv . 2>err
holds err "but not 'nothing'"
exits 2 tokmap-bench tokenize list -t bytes --against gigatoken 2>err
holds err '--venv'
for wrong in '--width 3' '--tokens 0' '--rows 0' '--seq-len 0' '--step-ms 0' '--seconds -1' '--wait never' '--nosuch'; do
    # shellcheck disable=SC2086
    exits 2 tokmap-bench order $wrong 2>err
done
exits 1 tokmap-bench limits --tokens 1000 --dir "$PWD/no such folder" >out 2>err
holds err 'no such folder'
