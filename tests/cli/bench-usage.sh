# SPDX-License-Identifier: MIT
# --list, --help and --version, and the messages for wrong command lines.
. "$TOKMAP_CLI/helpers.sh"

tokmap-bench --list >list
for case in check cost order loader open train pack verify gpu tokenize compare faults hostile; do
    grep -q "^$case  *[^ ]" list || { echo "FAULT: --list lacks $case" >&2; exit 1; }
done
tokmap-bench --help >help
holds help 'Usage: tokmap-bench'
tokmap-bench --version >/dev/null
# --child, with which the command starts copies of itself, is not an option, and no example is wrapped.
equal "$(grep -c -e '--child' help || :)" 0 '--child in the help'
exits 2 tokmap-bench train --child x 2>err
holds err "unknown option '--child'"
equal "$(grep -c "^  tokmap-bench " help)" "$(sed -n "/^Examples:/,/^$/p" help | grep -c "^  ")" "examples on one line"
equal "$(awk 'length > 80' help)" '' 'lines of more than 80 columns'
for heading in 'What is read' 'The training step' 'How it is measured' 'What is created' 'The case tokenize' General; do
    grep -q "^$heading.*:\$" help || { echo "FAULT: no heading $heading" >&2; exit 1; }
done

# With a case, --help has the options that the case takes.
tokmap-bench check --help >help
holds help '--step-ms'
holds help '--seq-len'
holds help '--help-all'
! grep -q -e '--faults\|--against\|--threads\|--batch-tokens\|--venv\|--output\|--cold' help
tokmap-bench check --help-all >all
holds all '--faults'
tokmap-bench faults --help >help
holds help '--faults'
holds help '--venv'
! grep -q -e '--step-ms\|--field\|--against' help
tokmap-bench compare --help | grep -q -e '--field NAME'
tokmap-bench pack --help >help
holds help '--tiny-documents'
holds help '--threads'
! grep -q -e '--figures' help

# A synthetic dataset has no files to read, which is said before anything is measured.
for case in loader open verify; do
    exits 2 tokmap-bench $case synthetic:vocab=50257 2>err
    holds err "the case $case measures reading from files, and 'synthetic:vocab=50257' has no files"
    equal "$(grep -c tokmap_ err || :)" 0 'a function in a message'
done
tokmap-bench train synthetic:vocab=50257 --repeats 1 --seconds 0.01 --step-ms 1 --json >synthetic.json
json synthetic.json

exits 2 tokmap-bench 2>err
holds err 'name a case'
exits 2 tokmap-bench nosuch 2>err
holds err nosuch
exits 2 tokmap-bench trian 2>err
holds err "there is no case 'trian'; did you mean 'train'?"
exits 2 tokmap-bench trian data/web --seq-len 5 2>err
holds err "did you mean 'train'?"
exits 2 tokmap-bench al 2>err
holds err "did you mean 'all'?"
exits 2 tokmap-bench order a b 2>err
holds err "not also 'b'"
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
exits 2 tokmap-bench loader --values teacher 2>err
holds err 'name the dataset that has these values'
for wrong in 0 65537 '16 --device 0'; do
    # shellcheck disable=SC2086
    exits 2 tokmap-bench loader --values $wrong 2>err
    holds err --values
done
seq 1000 >text
tokmap pack text -o data -t bytes 2>err
exits 2 tokmap-bench loader --values 16 data 2>err
holds err "give the name of values that 'data' has"
exits 1 tokmap-bench loader --values teacher data --json >out 2>err
holds err teacher
exits 2 tokmap-bench verify -j 0 2>err
holds err '--threads must be at least 1'
for wrong in '--batch 0' '--ranks 0' '--world 0' '--ranks 9 --world 3' '--require maybe' '--width 3' '--tokens 0' '--rows 0' '--seq-len 0' '--step-ms 0' '--seconds -1' '--wait never' '--nosuch'; do
    # shellcheck disable=SC2086
    exits 2 tokmap-bench order $wrong 2>err
done
for wrong in '--tiny-documents 0' '--tiny-documents 5G' '--text-bytes 0' '--require ok' list; do
    # shellcheck disable=SC2086
    exits 2 tokmap-bench pack --memory $wrong 2>err
done
holds err 'leave the file out'
exits 1 tokmap-bench verify --tokens 1000 --dir "$PWD/no such folder" >out 2>err
holds err 'no such folder'
