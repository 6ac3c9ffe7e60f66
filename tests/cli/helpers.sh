# SPDX-License-Identifier: MIT
# Functions for tests; see run.sh.

# skip REASON: ends the test as skipped, because this machine cannot run it.
skip()
{
    echo "$*"
    exit 77
}

# need COMMAND...: skips the test if one of the commands is not installed.
need()
{
    for needed; do
        command -v "$needed" >/dev/null 2>&1 || skip "no $needed on this machine"
    done
}

# need_terminals: skips the test if programs cannot make pseudo-terminals here, as in a root without /dev/pts.
need_terminals()
{
    need python3
    python3 -c 'import os; os.openpty()' 2>/dev/null || skip "no pseudo-terminals on this machine (is /dev/pts mounted?)"
}

# in_share NUMBER: whether this one of many similar cases is tested: always, or with TEST_SHARE=N for one of N numbers.
# The commit chooses which one; FAULT_COMMIT=NUMBER replaces it.
in_share()
{
    [ "${TEST_SHARE:-1}" -gt 1 ] || return 0
    : "${FAULT_COMMIT:=$((0x$(git -C "$TOKMAP_TREE" rev-parse --short=7 HEAD 2>/dev/null || echo 0)))}"
    [ $((($1 + FAULT_COMMIT) % TEST_SHARE)) -eq 0 ]
}

# exits STATUS COMMAND...: runs the command and fails the test unless it exits with that status.
exits()
{
    exits_wanted=$1
    shift
    exits_got=0
    "$@" || exits_got=$?
    [ "$exits_got" -eq "$exits_wanted" ] && return 0
    echo "FAULT: exit status $exits_got, expected $exits_wanted: $*" >&2
    exit 1
}

# same FILE FILE: fails the test unless both files contain the same bytes.
same()
{
    cmp -s "$1" "$2" && return 0
    echo "FAULT: $1 and $2 differ" >&2
    diff "$1" "$2" | head -n 10 >&2
    exit 1
}

# equal GOT WANTED [WHAT]: fails the test unless the two words are equal.
equal()
{
    [ "$1" = "$2" ] && return 0
    echo "FAULT: ${3:-} got '$1', expected '$2'" >&2
    exit 1
}

# holds FILE TEXT: fails the test unless a line of the file contains the text.
holds()
{
    grep -qF -e "$2" "$1" && return 0
    echo "FAULT: $1 does not hold: $2" >&2
    head -n 20 "$1" >&2
    exit 1
}

# milliseconds: prints the time; a constant where date knows no fractions of seconds.
milliseconds()
{
    case $(date +%s%N) in
    *[!0-9]* | ??????????) echo 0 ;;
    *) echo $(($(date +%s%N) / 1000000)) ;;
    esac
}

# packs_killed MOST OPTION...: packs `ref` with these options, and `k`, which is killed at most MOST times, at places
# that differ: after the journal is there, up to three quarters of the time that `ref` took, so that on a fast and on a
# slow machine most kills meet a pack at work. The last command ends, or says that the output was complete before the
# last kill. Fails the test unless all files are alike. `kills` is how often packs may still be killed; `continued`
# counts the commands whose work was kept.
packs_number=0
continued=0
packs_killed()
{
    packs_most=$1
    shift
    packs_begin=$(milliseconds)
    tokmap pack -q -o ref --checkpoint-seconds 0 "$@"
    packs_time=$(($(milliseconds) - packs_begin))
    [ $packs_time -gt 0 ] || packs_time=100
    packs_late=
    while [ "$packs_most" -gt 0 ] && [ "$kills" -gt 0 ]; do
        packs_most=$((packs_most - 1))
        packs_number=$((packs_number + 1))
        tokmap pack -q -o k --checkpoint-seconds 0.001 --threads $((packs_number % 3 + 1)) "$@" 2>err &
        packs_id=$!
        packs_waits=0
        while [ ! -e k.work/journal ] && [ $packs_waits -lt 100 ] && kill -0 $packs_id 2>/dev/null; do
            sleep 0.005
            packs_waits=$((packs_waits + 1))
        done
        packs_delay=$((packs_time * (packs_number * 37 % 100) / 133))
        sleep "$(printf %d.%03d $((packs_delay / 1000)) $((packs_delay % 1000)))"
        kill -s KILL $packs_id 2>/dev/null || true
        packs_status=0
        wait $packs_id 2>/dev/null || packs_status=$?
        kills=$((kills - 1))
        if [ -e k.work/journal ]; then
            continued=$((continued + 1))
        elif [ -e k.tmx ] || [ -e k ] || [ -e k.train ]; then
            packs_late=1
            break
        fi
        [ $packs_status -eq 137 ] || { cat err >&2; exit 1; }
    done
    packs_status=0
    tokmap pack -q -o k "$@" 2>err || packs_status=$?
    if [ "$packs_late" ]; then # it removes what the kill may have left beside the complete output
        equal $packs_status 1
        holds err 'already exists'
    elif [ $packs_status != 0 ]; then
        cat err >&2
        exit 1
    fi
    for packs_file in ref*; do
        case $packs_file in
        *.bin | *.tmx | *.mask | *.dropped) same "k${packs_file#ref}" "$packs_file" ;;
        *) sed 's/^ref/k/' "$packs_file" >wanted; same "k${packs_file#ref}" wanted ;;
        esac
    done
    [ ! -e k.work ] || { ls k.work >&2; exit 1; }
    equal "$(echo k*.partial)" 'k*.partial'
}

# json FILE: fails the test unless each line of the file is JSON. Checks nothing if python3 is not installed.
json()
{
    command -v python3 >/dev/null 2>&1 || return 0
    python3 -c 'import json, sys
for line in open(sys.argv[1], "rb"):
    json.loads(line)' "$1" && return 0
    echo "FAULT: not JSON: $1" >&2
    head -n 5 "$1" >&2
    exit 1
}

# field FILE NAME: prints a field of the JSON object in FILE, as text; "a.b.0" means element 0 of member b of member a.
field()
{
    python3 -c 'import json, sys
value = json.load(open(sys.argv[1], "rb"))
for key in sys.argv[2].split("."):
    value = value[int(key)] if isinstance(value, list) else value[key]
print(json.dumps(value) if isinstance(value, (dict, list, bool)) or value is None else value)' "$1" "$2"
}

# await COMMAND...: repeats the command until it succeeds. If it never does, the test's time limit ends the wait.
await()
{
    until "$@"; do
        sleep 0.02
    done
}

# flip FILE OFFSET: changes one bit of one byte.
flip()
{
    flip_byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\$(printf %o $((flip_byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# options COMMAND...: prints the options that the command's --help-all lists, one per line, with "=" after those with a
# value.
options()
{
    "$@" --help-all | sed -n 's/^  \(-., \|    \)--\([a-z][a-z0-9-]*\)\( [A-Z].*\)\{0,1\}.*$/\2\3/p' | sed 's/ .*/=/'
}

# corpus: makes the folder in: text files, one of them empty, and a JSONL file. `pack` reads 18 documents in this order:
# in/a.txt, in/b/long.txt, in/b/none.txt, in/c.jsonl records 0 to 14.
corpus()
{
    mkdir -p in/b
    printf 'alpha beta gamma\n' >in/a.txt
    i=0
    while [ $i -lt 300 ]; do
        echo "line $i of a text that is longer than a row"
        i=$((i + 1))
    done >in/b/long.txt
    : >in/b/none.txt
    i=0
    while [ $i -lt 15 ]; do
        printf '{"id": %d, "text": "record %d h\\u00e9llo\\u001b[31m %*s"}\n' $i $i $((i * i)) x
        i=$((i + 1))
    done >in/c.jsonl
}

# pack_corpus: packs the corpus as the dataset `small`: 14,761 tokens, 18 documents, one token per byte, 256 after each.
pack_corpus()
{
    corpus
    tokmap pack -q -o small in
}

# rank_file FILE TOKEN...: makes a rank file of the 256 bytes and then the tokens.
rank_file()
{
    rank_path=$1
    shift
    awk 'BEGIN {
        digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (i = 0; i < 256; i++)
            print substr(digits, int(i / 4) + 1, 1) substr(digits, i % 4 * 16 + 1, 1) "== " i
    }' >"$rank_path"
    rank_id=256
    for rank_token; do
        printf '%s %d\n' "$(printf '%s' "$rank_token" | base64)" $rank_id >>"$rank_path"
        rank_id=$((rank_id + 1))
    done
}

# ranks: makes the rank file v.tiktoken (hello is 259, with a space before it 260) and specials.json beside it.
ranks()
{
    rank_file v.tiktoken he ll hell hello ' hello'
    printf '{"<|end|>": 300, "<|endoftext|>": 301}' >specials.json
}

# results FILE CASE METRIC...: checks that a JSON file of tokmap-bench has exactly one result for each metric of the
# case.
results()
{
    results_file=$1
    results_case=$2
    shift 2
    for results_metric; do
        equal "$(grep -c "\"case\": *\"$results_case\", *\"metric\": *\"$results_metric\"," "$results_file")" 1 \
            "$results_case.$results_metric"
    done
}

# completes SHELL: types command lines into the interactive shell, with its script of `tokmap completion` read at its
# start and then with the script installed, and compares what Tab makes of them; see completion_type.py.
completes()
{
    need "$1"
    need_terminals
    mkdir -p data home 'new folder' site-functions vendor bash-completion/completions
    printf text >text
    printf text >'two words'
    tokmap pack -q -o data/web text
    tokmap pack -q -o 'data/with blank' text
    printf 'seq_len 4\nbatch 1\nseed 1\nsource web data/web\n' >train.run
    tokmap completion "$1" >"script.$1"
    cp "script.$1" site-functions/_tokmap
    for completes_name in tokmap tokmap-bench; do
        cp "script.$1" vendor/$completes_name.fish
        cp "script.$1" bash-completion/completions/$completes_name
    done
    HOME=$PWD/home python3 "$TOKMAP_CLI/completion_type.py" "$1"
    [ "$1" != bash ] || [ -f /usr/share/bash-completion/bash_completion ] ||
        skip "the script was tested, but not where it is installed: the package bash-completion is missing"
    HOME=$PWD/home python3 "$TOKMAP_CLI/completion_type.py" "$1-installed"
}
