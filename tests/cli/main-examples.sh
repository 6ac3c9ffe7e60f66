# SPDX-License-Identifier: MIT
# The examples that --help prints fit a terminal of 80 columns, can be copied from it, and do what they say.
. "$TOKMAP_CLI/helpers.sh"
need gzip zstd

# examples COMMAND...: prints the examples of the command's help, one per line, as a shell joins them.
examples()
{
    "$@" --help >help
    awk 'length($0) > 80 { print FILENAME ": longer than 80 columns: " $0 >"/dev/stderr"; exit 1 }' help
    awk '/^Examples:$/ { inside = 1; next }
        inside && /^$/ { inside = 0 }
        inside && !/^  / { print "not indented, or broken without a backslash: " $0 >"/dev/stderr"; exit 1 }
        /^  [a-z]/ && !/^  -/ { on = 1 }
        on { more = sub(/\\$/, ""); sub(/^ +/, ""); printf "%s%s", $0, more ? "" : "\n"; on = more }' help
}

# What the examples read.
mkdir -p books crawl data models moved vocab gpt2
i=0
while [ $i -lt 30 ]; do
    awk -v i=$i 'BEGIN { for (n = 0; n < 1200; n++) print "book " i ", line " n " of a text, " i * n }' >books/$i.txt
    i=$((i + 1))
done
awk 'BEGIN { for (n = 0; n < 99; n++) print "{\"id\": " n ", \"text\": \"record " n "\"}" }' >records.jsonl
zstd -q records.jsonl -o crawl/one.jsonl.zst
printf 'mail\n' | gzip >mail.gz
printf 'some text\n' >text
printf '{"input_ids": [5, 17, 2], "loss_mask": [0, 1, 1]}\n' >sft.jsonl
tokmap train-tokenizer -q -o tokenizer --vocab-size 300 --special-tokens '<|endoftext|>' books
# The ids of decode's example are those of the real gpt2.
sed 's/"vocab": {/&"Hello": 15496, "Ġworld": 995, /' tokenizer.json >gpt2/tokenizer.json
mkdir models/llama3
cp tokenizer.json models/llama3/
printf 'seq_len 64\nbatch 1024\nseed 1\nsource web data/web\nsteps 20000\n' >train.run
printf 'web 17\n' >takedown.txt
printf '{"step": 12345, "row": 17, "loss": 9.5}\n{"step": 12345, "row": 3, "loss": 2}\n' >losses.jsonl

# Files of other projects, of four tokens each, a shard with a file that says which of its tokens count, and a
# manifest.
foreign_files()
{
    mkdir -p fineweb
    {
        printf 'MMIDIDX\0\0\1\0\0\0\0\0\0\0\10\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\4\0\0\0'
        printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0'
    } >data/my_text_document.idx
    printf '\1\0\2\0\3\0\4\0' >data/my_text_document.bin
    {
        printf '\210\330\064\001\1\0\0\0\4\0\0\0'
        head -c 1012 /dev/zero
        printf '\120\304\1\0\2\0\3\0'
    } >fineweb/a_train_1.bin
    printf '\1\0\2\0\120\304\3\0' >train.bin
    printf '\1\0\0\0\2\0\0\0\3\0\0\0\241\207\1\0' >data/part-0.npy
    printf 'an answer' >chat.txt
    tokmap pack -q -t bytes --no-eod -o data/chat chat.txt
    tokmap merge -q -o data/all data/web data/books
    printf '000111111' | tr 01 '\000\001' >chat.mask
    head -c 36 /dev/zero >w.f32
}

# Traces of two ranks, which the loaders of the library write. Without Python there are none.
traces()
{
    command -v python3 >/dev/null 2>&1 || return 1
    printf 'seq_len 64\nbatch 4\nseed 1\nsource web data/web\nsteps 1000\n' >train.run
    PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 -c '
import tokmap
for rank in 0, 1:
    with tokmap.Run("train.run").loader(rank=rank, world=2, trace=f"rank{rank}.trace") as loader:
        for batch in loader:
            pass'
}

tokmap --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' >commands
while read -r command; do
    examples tokmap "$command" >list
    [ -s list ] || { echo "tokmap $command --help has no example" >&2; exit 1; }
    # pack's examples write into data/; the other commands read data/web.
    if [ "$command" != pack ]; then
        rm -rf data/* moved/*
        tokmap pack -q -o data/web -t gpt2/tokenizer.json books
        tokmap pack -q -o data/val -t gpt2/tokenizer.json text
        cp data/web.* moved/
        for name in data/books data/code data/wiki web wiki code; do
            cp data/web.bin $name.bin
            cp data/web.tmx $name.tmx
        done
    fi
    if [ "$command" = audit ]; then # which would count 20 million draws
        sed -i 's/^steps .*/steps 100/' train.run
    fi
    case $command in index | convert) foreign_files ;; esac
    [ "$command" != replay ] || traces || continue
    while IFS= read -r line; do
        shell=sh
        case $line in *"tokmap completion "*) # runs in the shell that it names
            shell=$(echo "$line" | sed 's/.*tokmap completion \([a-z]*\).*/\1/')
            command -v "$shell" >/dev/null 2>&1 || continue
            ;;
        *s3://*) line="$line --help" ;; # needs a server
        esac
        $shell -c "$line" >out 2>err </dev/null || { echo "FAULT: $line" >&2; cat err >&2; exit 1; }
    done <list
done <commands
equal "$(tokmap decode -t gpt2/ --ids '15496 995')" 'Hello world'

# Those of tokmap-bench measure for minutes, so only their options and cases are looked at.
examples tokmap-bench >list
grep -q '^tokmap-bench all ' list
tokmap-bench --list | sed 's/ .*//' >cases
printf "all\nreport\n" >>cases
while IFS= read -r line; do
    sh -euc "$line --list" >out 2>err || { echo "FAULT: $line" >&2; cat err >&2; exit 1; }
    # shellcheck disable=SC2086 # the words of the example
    set -- $line
    grep -qxF -e "$2" cases || { echo "FAULT: no case '$2': $line" >&2; exit 1; }
done <list

# The examples of the manual pages fit there, too (the pages indent them by 11 columns and leave 2 free), and their
# options exist.
find "$TOKMAP_TREE/tokenize_tools/man" "$TOKMAP_TREE/bench/man" -name '*.[157]' | sort >pages
[ "$(wc -l <pages)" -gt 10 ]
while IFS= read -r page; do
    awk -v page="$page" '
        /^\.Sh/ { inside = /EXAMPLES/ }
        /^\.Bd -literal/ { literal = 1; next }
        /^\.Ed/ { literal = 0 }
        !inside || (!/^\.Dl / && !literal) { next }
        { sub(/^\.Dl /, ""); gsub(/\\e/, "\\"); gsub(/\\&/, "") }
        /^\$ / { on = 1 }
        on && length($0) > 67 { print page ": longer than 80 columns: " $0 >"/dev/stderr"; exit 1 }
        on { sub(/^\$ /, ""); more = sub(/\\$/, "") || /\|$/; sub(/^ +/, ""); printf "%s%s", $0, more ? "" : "\n"; on = more }
        ' "$page" >list || exit 1
    while IFS= read -r line; do
        case $line in
        *"tokmap completion "*) continue ;;                                         # the same as those of --help
        "sbatch "*) line=$(echo "$line" | sed 's/^sbatch .*--wrap "\(.*\)"$/\1/') ;; # what a task of Slurm runs
        esac
        sh -euc "$line --help" >out 2>err </dev/null || { echo "FAULT: $page: $line" >&2; cat err >&2; exit 1; }
    done <list
done <pages

# In a narrower terminal they are still one command each.
need_terminals
python3 - <<'PYTHON'
import fcntl, os, pty, struct, subprocess, sys, termios
for command in ["audit"], ["train-tokenizer"]:
    texts = {}
    for columns in 60, 100:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        child = subprocess.Popen(["tokmap", *command, "--help"], stdout=theirs)
        os.close(theirs)
        got = b""
        try:
            while block := os.read(ours, 65536):
                got += block
        except OSError:  # the end of a pseudo-terminal
            pass
        child.wait()
        lines = got.decode().replace("\r", "").split("\n")
        lines = lines[lines.index("Examples:"):]
        long = [line for line in lines if len(line) > columns]
        assert not long, long
        joined = "\n".join(lines).replace(" \\\n    ", " ")
        assert all(line.startswith("  ") for line in joined.split("\n")[1:] if line), joined
        texts[columns] = joined
    assert texts[60] == texts[100] and "\\" not in texts[60], texts
PYTHON
