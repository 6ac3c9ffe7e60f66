# SPDX-License-Identifier: MIT
# ci: nonroot asan
# What cannot be planned, and outputs that cannot be made. Nothing remains after a failure.
. "$TOKMAP_CLI/helpers.sh"
printf 'hello' >a.txt
tokmap pack -q -o data a.txt
printf '{"text": ""}' >none.jsonl
tokmap pack -q --no-eod -o empty none.jsonl
misused()
{
    exits 2 tokmap plan "$@" >out 2>err
    [ ! -s out ]
    equal "$(ls new* 2>/dev/null)" ''
}
misused
misused data
misused -o new data
holds err '--seq-len'
misused -o new --seq-len 8
misused -o new --seq-len 8 data data
misused -o new --seq-len 0 data
misused -o new --seq-len 3Gi data
misused -o new --seq-len 8 --max-documents 0 data
misused -o new --seq-len 8 --max-documents 2 --one-document data
misused -o new.tmx --seq-len 8 data
misused -o new.bin --seq-len 8 data
printf 'seq_len 1\nbatch 1\nsource web data\n' >train.run
misused -o new --seq-len 8 train.run
holds err 'run file'
failed()
{
    exits 1 tokmap plan "$@" >out 2>err
    [ ! -s out ]
    equal "$(ls new* 2>/dev/null)" ''
}
failed -o new --seq-len 8 nothing
holds err nothing
failed -o new --seq-len 8 empty
holds err 'the dataset has no tokens'
failed -o data.tmx/new --seq-len 8 data
holds err "data.tmx: the output folder is not a folder"
tokmap plan -q -o plan --seq-len 8 data
cp plan kept
exits 1 tokmap plan -o plan --seq-len 4 data 2>err
holds err 'use --force'
same plan kept
