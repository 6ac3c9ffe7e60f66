# SPDX-License-Identifier: MIT
# What tokmap-bench compare does with the lines of a script: tables, JSON, and scripts that die, hang, or print rubbish.
. "$TOKMAP_CLI/helpers.sh"
need python3

corpus
tokmap pack -q -o one in
mkdir -p made peers/compare/tables
for table in good differs dies killed rubbish wrong half hangs waits; do
    : >peers/compare/tables/$table.py
done
cat >peers/compare/__main__.py <<'SCRIPT'
import os, signal, subprocess, sys, time
table = sys.argv[1]
work = sys.argv[sys.argv.index("--work") + 1]
def say(*fields):
    print("\t".join(fields), flush=True)
os.makedirs(os.path.join(work, "a folder", "below"))
with open(os.path.join(work, "a folder", "below", "file"), "w") as file:
    file.write("text")
os.symlink("/", os.path.join(work, "root"))
say("progress", "1", "2", "half")
say("say", "a message")
say("about", "tokmap", "version 1")
say("row", "good", "tokmap", "rate", "tokens/s", "more", "4e9,1e9,2e9")
say("row", "good", "a \033[31mpeer", "rate", "tokens/s", "more", "5e8")
say("row", "good", "tokmap", "wait", "us", "less", "10.5")
say("row", "good", "a \033[31mpeer", "wait", "us", "less", "2.1")
say("row", "good", "tokmap", "setting", "bytes", "-", "7")
say("absent", "good", "gone", "pip cannot install it")
say("equal", "good", "tokmap", "no" if table == "differs" else "yes", "batch 3, row 1: other inputs")
say("equal", "good", "a \033[31mpeer", "undefined", "its own order")
say("note", "a note")
say("answer", "the answer")
print("one\ntwo\nthe last words", file=sys.stderr, flush=True)
if table == "dies":
    sys.exit(7)
if table == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if table == "rubbish":
    print("Downloading model...", flush=True)
if table == "wrong":
    say("row", "good", "tokmap", "other", "us", "less", "1,nan")
if table == "half":
    sys.stdout.write("row\tgood")
if table in ("hangs", "waits"):
    child = subprocess.Popen(["sleep", "1000"])
    with open("pids", "w") as file:
        file.write(f"{os.getpid()} {child.pid}\n")
    def end(number, frame):
        child.kill()
        child.wait()
        sys.exit(1)
    signal.signal(signal.SIGTERM, end if table == "waits" else signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.rename("pids", "ready")
    time.sleep(1000)
SCRIPT
compare="tokmap-bench compare --peers-folder peers --dir made"

# shellcheck disable=SC2086
{
    # Medians beside one another, the ratio to tokmap, and a star at the best of several.
    $compare good one >table 2>err || { cat err >&2; exit 1; }
    grep -q '^good  *rate  *wait' table
    grep -q '^tokmap  *2.00G  \*  *10.50 ' table || { cat table >&2; exit 1; }
    grep -q 'peer  *500.0M  0.25x  *2.100  \*0.20x' table || { cat table >&2; exit 1; }
    equal "$(grep -c 'compare: a message$' err)" 1
    holds table 'gone is absent: pip cannot install it'
    holds table 'tokmap: delivered the tokens of the reference: batch 3'
    holds table 'has no defined order: its own order'
    holds table 'tokmap: version 1'
    equal "$(tail -n 1 table)" 'the answer'
    equal "$(grep -c "$(printf '\033')" table || :)" 0 'an escape in the table'
    $compare good one --json >good.json
    json good.json
    grep -q '"table": "good", "row": "tokmap", "metric": "rate", "value": 2000000000, "unit": "tokens/s", "better": "more", "min": 1000000000, "max": 4000000000, "n": 3, "values": \[4000000000, 1000000000, 2000000000\]' good.json ||
        { cat good.json >&2; exit 1; }
    grep -q '"metric": "wait", "value": 2.1, .*"ratio": 0.2,' good.json
    grep -q '"metric": "setting", .*"better": null' good.json
    grep -q '"row": "gone", "metric": "absent", .*"text": "pip cannot install it"' good.json
    grep -q '"metric": "equal", "value": null, .*"verdict": "undefined"' good.json
    grep -q '"metric": "answer", .*"text": "the answer"' good.json

    # Nothing is left if nobody reads the table.
    $compare good one 2>/dev/null | true
    equal "$(ls made)" '' 'files that were left'

    # Tokens that differ are a failure that names who delivered them and where.
    exits 1 $compare differs one >table 2>err
    holds err 'tokmap delivered other tokens than the reference: batch 3, row 1: other inputs'
    holds table 'DELIVERED OTHER TOKENS'

    # A script that fails is named, with its last lines, and what it printed until then is not lost.
    exits 1 $compare dies one >table 2>err
    holds err 'the script of the table dies ended with exit status 7'
    holds err '  the last words'
    holds table 'the answer'
    exits 1 $compare killed one >table 2>err
    holds err 'was ended by signal 9'
    holds err '  the last words'
    exits 1 $compare rubbish one >table 2>err
    holds err 'a line that is not a result: Downloading model...'
    exits 1 $compare wrong one >table 2>err
    holds err "its values are not numbers"
    exits 1 $compare half one >table 2>err
    holds err 'ended in the middle of a line'
    equal "$(ls made)" '' 'files that were left'

    # One that hangs is ended, even if it does not want to.
    exits 1 $compare hangs one --patience 2 >table 2>err
    holds err 'printed nothing for too long and was ended'
    holds err '  the last words'
    read -r script child <ready
    kill "$child"
    exits 1 kill -0 "$script" 2>/dev/null
    equal "$(ls made)" '' 'files that were left'

    # An interrupt ends the script and its children, and removes what was made.
    rm ready
    $compare waits one >table 2>err &
    await test -e ready
    read -r script child <ready
    kill -TERM $!
    status=0
    wait $! || status=$?
    equal $status 143 'status of an interrupted command'
    exits 1 kill -0 "$script" 2>/dev/null
    exits 1 kill -0 "$child" 2>/dev/null
    equal "$(ls made)" '' 'files that were left'
}
