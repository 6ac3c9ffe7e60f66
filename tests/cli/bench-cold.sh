# SPDX-License-Identifier: MIT
# --cold: results where the tokens can be dropped from the page cache, a refusal where they cannot.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
set -- --tokens 1m --repeats 2 --seconds 0.01 --json
case $(stat -f -c %T . 2>/dev/null || echo unknown) in
    tmpfs | ramfs) ;;
    *)
        tokmap-bench loader --cold "$@" >cold.json
        json cold.json
        results cold.json cold ratio amplification tokens_per_s
        tokmap-bench loader --cold --values 16 --save saved "$@" >values.json
        json values.json
        results values.json cold ratio amplification values_gb_s values_memory_mib
        [ -s saved/loader-values-cold.jsonl ]
        tokmap-bench train --cold --step-ms 0.5 "$@" >train.json
        json train.json
        holds train.json '"au_percent"'
        ;;
esac

# Every Linux has a memory file system here; it may not be writable.
memory=/dev/shm
[ "$(stat -f -c %T $memory 2>/dev/null)" = tmpfs ] && [ -w $memory ] || exit 0
own=$(mktemp -d "$memory/tokmap-cli.XXXXXX")
trap 'rm -rf "$own"' EXIT
for case in loader train; do
    exits 1 tokmap-bench $case --cold --dir "$own" --tokens 100k --json >out 2>err
    holds err tmpfs
done
equal "$(find "$own" -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left behind'
