# A dataset that is named is measured and not changed. A dataset that the command creates is removed at the end and
# after a signal; with --keep it stays and is valid.
. "$TOKMAP_CLI/helpers.sh"

export TMPDIR="$PWD"
tokmap-bench limits --tokens 1m --width 4 --repeats 1 --seconds 0.01 --keep >table 2>talk
holds table limits.memcpy_ram_gb_s
made=$(find . -name 'tokmap-bench-*.tmx')
tokmap verify "$made"
equal "$(find . -name 'tokmap-bench-*.bin' -size 4000000c | wc -l | tr -d ' ')" 1 'tokens of four bytes'
before=$(cksum <"$made")
tokmap-bench verify --repeats 1 --json "${made%.tmx}" >verify.json
tokmap-bench slice --repeats 1 --seconds 0.01 --json "${made%.tmx}" >slice.json
equal "$(cksum <"$made")" "$before" 'the index'
rm "$made" "${made%.tmx}.bin"

# `all` runs every case, on one dataset.
tokmap-bench all --tokens 1m --repeats 1 --seconds 0.01 --text-bytes 1m --json >all.json 2>/dev/null
json all.json
for case in limits order slice loader open train pack verify; do
    holds all.json "\"case\": \"$case\"" 2>/dev/null || holds all.json "\"case\":\"$case\""
done

# A signal while the dataset is being created, and while it is being measured.
for wait in 0.1 1.5 1; do
    case=slice
    [ $wait = 1 ] && case=all
    tokmap-bench $case --tokens 20m --repeats 1000 --json >/dev/null 2>&1 &
    child=$!
    sleep $wait
    kill -TERM $child
    status=0
    wait $child || status=$?
    equal $status 143 'status after SIGTERM'
    equal "$(find . -name 'tokmap-bench-*' | wc -l | tr -d ' ')" 0 'files left after a signal'
done

exits 1 tokmap-bench slice "$PWD/nothing" >/dev/null 2>err
holds err nothing
