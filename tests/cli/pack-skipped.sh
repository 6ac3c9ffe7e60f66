# SPDX-License-Identifier: MIT
# ci: asan
# Input that is left out: a few lines on standard error and sums by reason, a list of all of it, and limits.
. "$TOKMAP_CLI/helpers.sh"
need python3
i=0
while [ $i -lt 3000 ]; do
    if [ $((i % 3)) -eq 0 ]; then echo '{"text": "kept"}'; else echo '{"txt": ""}'; fi
    i=$((i + 1))
done >most.jsonl
for i in 1 2 3 4 5 6 7 8 9; do
    head -n 30 most.jsonl >bad$i.jsonl
done
# Not a line for each of 2,180 records: 3 of a file, 20 in all.
tokmap pack --on-error skip -o d most.jsonl bad*.jsonl >out 2>err
equal "$(grep -c 'skipped: .*) has no field' err)" 20
equal "$(grep -c 'skipped: most.jsonl' err)" 3
holds err 'skipped: what follows is only counted'
holds err 'skipped: 2,160 more; list all with --skipped-list FILE'
holds out 'left out: 2,180 records ('
# Most of it was left out: which option may help.
holds err "warning: more records were left out because of the field than documents were kept; name the field"
printf '%%PDF-1.4' >a.pdf
cp a.pdf b.pdf
echo text >c.txt
tokmap pack -q --on-error skip -o e a.pdf b.pdf c.txt 2>err
holds err 'warning: more files were left out because they are not text than were used; '
holds err "'*.txt'"
# Advice about what is left out has no place where the work stops at the first fault, or where the reason is another.
exits 1 tokmap pack -q -o e2 nosuch 2>err
equal "$(cat err)" 'tokmap pack: nosuch: the input cannot be opened: No such file or directory'
printf '{"question": "q"}\n' >qa.jsonl
exits 1 tokmap pack -q -o e2 qa.jsonl 2>err
equal "$(wc -l <err | tr -d ' ')" 1
exits 1 tokmap pack -q --on-error skip -o e2 nosuch 2>err
equal "$(grep -c warning err)" 0
# At the first file of a folder that is not text: how to go on. A user who named the file needs no such advice.
mkdir mixed
cp a.pdf c.txt mixed
for command in 'pack -q' 'train-tokenizer -q --vocab-size 257'; do
    exits 1 tokmap $command -o e2 mixed 2>err
    holds err 'mixed/a.pdf: the input is a PDF document'
    holds err "choose files with --include, for example --include '*.txt', or leave out what is not text with"
    exits 1 tokmap $command -o e2 mixed/a.pdf 2>err
    equal "$(wc -l <err | tr -d ' ')" 1
done
tokmap pack -q -o e3 --include '*.txt' mixed
# The list has all of it, for every number of threads, and is no input.
tokmap pack -q --on-error skip --skipped-list list -o l1 -j 1 most.jsonl bad*.jsonl 2>err
holds err 'skipped: 2,160 more; all are listed in list'
tokmap pack -q --on-error skip --skipped-list list3 -o l3 -j 3 most.jsonl bad*.jsonl 2>err
same list list3
equal "$(wc -l <list | tr -d ' ')" 2180
json list
python3 - list <<'EOF'
import json, sys
items = [json.loads(line) for line in open(sys.argv[1])]
assert [x["line"] for x in items[:4]] == [2, 3, 5, 6]
assert {x["path"] for x in items} == {"most.jsonl"} | {"bad%d.jsonl" % i for i in range(1, 10)}
assert {(x["class"], x["left_out"], x["bytes"]) for x in items} == {("field", "record", 12)}
EOF
exits 1 tokmap pack -q --on-error skip --skipped-list list -o l4 most.jsonl 2>err
holds err 'list: the list cannot be created'
tokmap pack -q --force --on-error skip --skipped-list list -o l4 most.jsonl 2>err
equal "$(wc -l <list | tr -d ' ')" 2000
mkdir in
cp c.txt in
tokmap pack -q --on-error skip --skipped-list in/list.txt -o l5 in 2>err
holds err 'in/list.txt.partial: this input is an output of the same command'
# Nothing is left out: an empty list, except after a failure.
tokmap pack -q --on-error skip --skipped-list empty -o l6 c.txt
[ -f empty ] && [ ! -s empty ]
exits 1 tokmap pack -q --on-error skip --skipped-list none -o l6 c.txt 2>err
[ ! -e none ]
# A limit in numbers. The list remains, since it says what is wrong; the output does not.
limit()
{
    wanted=$1
    shift
    for threads in 1 4; do
        exits "$wanted" tokmap pack --force --on-error skip -j $threads -o lim "$@" >out 2>err
        if [ "$wanted" -eq 0 ]; then
            rm lim.bin lim.tmx
        else
            [ ! -e lim.bin ]
        fi
    done
}
limit 0 --max-skipped 2000 most.jsonl
limit 1 --max-skipped 1999 --skipped-list list most.jsonl
holds err 'files and records left out: 2000, documents kept: 1000; this is more than --max-skipped 1999 allows'
equal "$(wc -l <list | tr -d ' ')" 2000
limit 1 --max-skipped 0 most.jsonl
holds err 'files and records left out: 1, documents kept: 1;'
limit 0 --max-skipped 0 c.txt
# A limit as a share: exact at the end.
limit 0 --max-skipped 66.666667% most.jsonl
limit 1 --max-skipped 66.666666% most.jsonl
holds err 'files and records left out: 2000, documents kept: 1000; this is more than --max-skipped 66.666666% allows'
limit 0 --max-skipped 100% most.jsonl
limit 1 --max-skipped 0% most.jsonl
# On the way, it stops only after 10,000 items and at twice the limit: the command does not read what follows.
cat most.jsonl most.jsonl most.jsonl most.jsonl most.jsonl >many.jsonl
limit 1 --max-skipped 10% many.jsonl
holds err 'files and records left out: 6667, documents kept: 3334;'
limit 1 --max-skipped 40% many.jsonl
holds err 'files and records left out: 10000, documents kept: 5000;'
# invalid-utf8 skip leaves out, too.
printf 'a\377' >bad.txt
limit 1 --max-skipped 0 --invalid-utf8 skip bad.txt c.txt
# Misuse.
for wrong in '' 1.5 -1 % 101% 0.0000001% 1e3 5%% 1k; do
    exits 2 tokmap pack --on-error skip --max-skipped "$wrong" -o m c.txt 2>err
    holds err '--max-skipped must be a number'
done
exits 2 tokmap pack --max-skipped 5 -o m c.txt 2>err
holds err '--max-skipped needs --on-error skip'
exits 2 tokmap pack --skipped-list m -o m c.txt 2>err
holds err '--skipped-list needs --on-error skip'
# The same for train.
tokmap train-tokenizer -q --vocab-size 260 --on-error skip --max-skipped 2000 --skipped-list list --force -o v \
    most.jsonl 2>err
equal "$(wc -l <list | tr -d ' ')" 2000
exits 1 tokmap train-tokenizer -q --vocab-size 260 --on-error skip --max-skipped 60% -o w most.jsonl 2>err
holds err 'this is more than --max-skipped 60% allows'
tokmap train-tokenizer --vocab-size 260 --on-error skip -o x most.jsonl >out 2>err
holds out 'left out: 2,000 records ('
# The list cannot be written to its end.
if [ -e /dev/full ]; then
    ln -s /dev/full full
    exits 1 tokmap pack -q --on-error skip --skipped-list full -o f most.jsonl 2>err
fi
# A killed command leaves no list that would keep the same one from running again, with or without a checkpoint.
mkfifo pipe
sed 's/kept/kept, too/' most.jsonl >more.jsonl
for killed in 'pack -o' 'train-tokenizer --vocab-size 260 -o'; do
    tokmap $killed whole -q --on-error skip --skipped-list whole.list most.jsonl more.jsonl 2>err
    tokmap $killed k -q --on-error skip --skipped-list k.list most.jsonl pipe 2>err &
    pid=$!
    await [ -s k.list.partial ]
    kill -s KILL $pid
    wait $pid 2>err || true
    [ ! -e k.list ]
    tokmap $killed k -q --on-error skip --skipped-list k.list most.jsonl more.jsonl 2>err
    same k.list whole.list
    [ ! -e k.list.partial ]
    rm -f k.* whole.*
done
cat most.jsonl most.jsonl most.jsonl most.jsonl most.jsonl most.jsonl >mostly.jsonl
tokmap pack -q --on-error skip --skipped-list whole.list -o whole mostly.jsonl more.jsonl 2>err
i=0
while [ $i -lt 6 ]; do
    i=$((i + 1))
    tokmap pack -q --on-error skip --skipped-list k.list --checkpoint-seconds 0.001 -o k mostly.jsonl more.jsonl 2>err &
    pid=$!
    sleep 0.0$i
    kill -s KILL $pid 2>err || true
    wait $pid 2>err || true
    [ ! -e k.tmx ] || break
done
# What is refused before the list is continued leaves it as it is. A journal of its head alone, of 1 to 2 KB, has
# nothing to continue, and is replaced.
if [ -e k.work/journal ] && [ "$(wc -c <k.work/journal)" -gt 10000 ]; then
    exits 1 tokmap pack -q --on-error skip --skipped-list k.list -o k mostly.jsonl most.jsonl 2>err
    [ -e k.work/journal ]
fi
[ -e k.tmx ] || tokmap pack -q --on-error skip --skipped-list k.list -o k mostly.jsonl more.jsonl 2>err
same k.list whole.list
same k.bin whole.bin
[ ! -e k.list.partial ]
# Two commands do not write one list, and a file that does not begin as a list is not replaced.
echo mine >mine.list.partial
exits 1 tokmap pack -q --on-error skip --skipped-list mine.list -o m most.jsonl 2>err
holds err 'mine.list: the list cannot be created'
equal "$(cat mine.list.partial)" mine
# Where FILE was forgotten, the next word is an input. --force does not destroy it.
printf '{"text": "one"}\n' >one.jsonl
cp one.jsonl kept
exits 1 tokmap pack -q --force --on-error skip -o f --skipped-list one.jsonl most.jsonl 2>err
holds err 'one.jsonl: the list cannot be created; choose another name (--force replaces only a list'
same one.jsonl kept
