# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# Each line is answered before the next one is sent: a program can talk to encode and decode through pipes.
. "$TOKMAP_CLI/helpers.sh"
mkfifo to from
talk()
{
    "$@" <to >from &
    pid=$!
    exec 3>to 4<from
}
ask()
{
    printf '%s\n' "$1" >&3
    read -r answer <&4
    equal "$answer" "$2"
}
talk tokmap encode --input-format jsonl
ask '{"text": "a"}' '[97]'
ask '{"text": ""}' '[]'
ask '{"text": "b"}' '[98]'
exec 3>&- 4<&-
wait $pid
talk tokmap encode
ask '{"text": "a"}' '[97]'
exec 3>&- 4<&-
wait $pid
talk tokmap decode --input-format jsonl
ask '[97]' '{"text": "a"}'
ask '[]' '{"text": ""}'
exec 3>&- 4<&-
wait $pid
# A text where a file is expected.
exits 1 tokmap encode 'Hello world' 2>err
holds err 'to encode a text itself, write --text TEXT'
