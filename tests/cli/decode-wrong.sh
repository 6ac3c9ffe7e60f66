# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Invalid ids: the message names the line and the byte, and the text before them is printed.
. "$TOKMAP_CLI/helpers.sh"
wrong()
{
    printf "$1" >in
    exits 1 tokmap decode <in >out 2>err
    holds err "$2"
}
decoded()
{
    printf "$1" >in
    wanted=$2
    shift 2
    equal "$(tokmap decode "$@" <in)" "$wanted"
}
wrong '72 257\n' 'standard input:1: id 257 is not in the vocabulary'
wrong '72\n 99999999999999999999999\n' 'standard input:2: id '
wrong '72 x\n' 'standard input:1: this is not an id'
wrong '72 -1\n' 'standard input:1: this is not an id'
wrong '[72 105]\n' 'standard input:1: a number is out of place'
wrong '[72]\n[1,]\n' 'standard input:2: this is not an array of ids'
wrong '[72' 'standard input:1: the array is not closed'
wrong '[72\n' 'standard input:1: the array is not closed'
wrong '[72]\n[[1]]' 'standard input:2: this is not an array of ids'
wrong '[72] [73]\n' 'standard input:1: this is not an array of ids'
wrong '[7.5]\n' 'standard input:1: this is not an array of ids'
exits 1 tokmap decode 72 105 2>err
holds err "72: the input cannot be opened"
holds err "to decode ids themselves, write --ids '15496 995'"
exits 1 tokmap decode nowhere 2>err
exits 1 tokmap decode '' 2>err
holds err 'the input cannot be opened'
decoded '72 105' Hi
decoded '  72\t105 \r\n33' 'Hi!'
decoded '72 256 105' 'H<|endoftext|>i' --specials
decoded '72 256 105' Hi
decoded '[72,105]\n\n[ 33 ]\n[]' '{"text": "Hi"}
{"text": "!"}
{"text": ""}'
decoded '[72, 105]\n[33]' 'Hi!' --output-format text
decoded '72 105\n\n' '{"text": "Hi"}
{"text": ""}' --output-format jsonl
decoded '[255]' "$(printf '{"text": "\357\277\275"}')"
tokmap decode --output-format text <in | od -An -tu1 | tr -d ' \n' >out
equal "$(cat out)" 255
