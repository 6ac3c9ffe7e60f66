# SPDX-License-Identifier: MIT
# ci: nonroot
# A pipe whose last bytes and end arrive just as pack asks for more: the input is still one document.
. "$TOKMAP_CLI/helpers.sh"
tries=0
while [ $tries -lt 40 ]; do
    rm -f pipe
    mkfifo pipe
    tokmap pack -q --force -o d pipe &
    first=$!
    exec 3>pipe
    printf 'first' >&3
    waits=0
    while [ ! -e d.tmx.partial ] && [ $waits -lt 10000 ]; do
        waits=$((waits + 1))
    done
    exec 3>&-
    wait $first
    equal "$(wc -c <d.bin | tr -d ' ')" 12
    tries=$((tries + 1))
done
tokmap verify -q d
