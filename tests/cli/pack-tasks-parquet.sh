# SPDX-License-Identifier: MIT
# --task with Parquet files, which are cut at row groups: the bytes do not depend on the number of tasks, their order,
# and kills; record numbers are those of the file, also of duplicates and of what is left out; a file whose row groups
# are others than before is refused, and damaged footers are errors that name the file. TOKMAP_KILLS: how often tasks
# are killed in all (8).
. "$TOKMAP_CLI/helpers.sh"
need awk python3
kills=${TOKMAP_KILLS:-8}

# Texts of which many appear twice, in row groups of several sizes, with an empty one among them; a file of JSONL with
# some of them, and a large file of one row group, which is not cut.
awk 'BEGIN { for (i = 0; i < 2500; i++) { t = ""; s = i % 5 == 2 ? i % 400 : i
    for (k = s * 7 % 53 + 3; k > 0; k--)
        t = t sprintf("%c%c%c ", 97 + s * k % 26, 97 + int(s / 26) % 26, 97 + (s + k * k) % 26)
    printf "{\"text\": \"%s\", \"n\": %d}\n", t, i } }' >all.jsonl
sed -n 1000,1400p all.jsonl >b.jsonl
sed -n 300,900p all.jsonl >c.jsonl
groups()
{
    python3 "$TOKMAP_CLI/parquet_groups.py" "$@" >/dev/null
}
groups all.jsonl a.parquet 40,3,0,100
cp a.parquet unnamed # known by its first bytes
groups c.jsonl c.parquet 5000
inputs='b.jsonl a.parquet c.parquet unnamed'
plain='--shard-tokens 30k --columns n'
options="$plain --unit-bytes 40000"

# task FOLDER I/N [OPTION...]: runs one task, which may end because other tasks are missing.
task()
{
    task_folder=$1
    task_number=$2
    shift 2
    task_status=0
    tokmap pack -q $options --wait 0 --task $task_number -o $task_folder/d "$@" $inputs || task_status=$?
    [ $task_status -eq 0 ] || [ $task_status -eq 3 ] || exit $task_status
}
tasks()
{
    for tasks_round in 1 2 3 4 5; do
        tasks_i=0
        while [ $tasks_i -lt $1 ] && [ ! -e $2/d ]; do
            task $2 $tasks_i/$1 -j $((tasks_i % 2 + 1))
            tasks_i=$((tasks_i + 1))
        done
    done
    [ -e $2/d ]
}

# The units: each file is cut near every 40000 bytes, but not the one of one row group.
mkdir ref
tokmap pack --json $options -o ref/d $inputs >report
tokmap pack -q $options --task 0/3 -o units $inputs
tokmap pack --status units >out
units=$(ls units.work | grep -c 'packed-')
rm -r units.work
grep -q ' of 2[0-9] units' out || { cat out; exit 1; }
[ $units -ge 6 ]
[ "$(ls ref/d-*.bin | wc -l)" -ge 18 ]
tokmap verify -q ref/d

# The tokens, columns, and record numbers are those of one shard, and the report is that of whole files.
tokmap pack --json --columns n -o one $inputs >report.one
cat ref/d-*.bin >all
same all one.bin
for name in documents tokens files files_skipped input_bytes stored_bytes document_bytes structure_bytes text_bytes; do
    equal "$(grep -o "\"$name\": [0-9]*" report)" "$(grep -o "\"$name\": [0-9]*" report.one)" $name:
done
holds report '"files_by_format": {"jsonl": 1, "parquet": 3}'
tokmap export -o one.jsonl one >/dev/null
tokmap export -o ref.jsonl ref/d >/dev/null
same one.jsonl ref.jsonl
for document in 0 401 440 441 443 444 700 1400 2900 2901 3501 3502 3543 5000 6001; do
    tokmap show --json one --document $document | grep -o '"path": "[^"]*", "record": [0-9]*' >a
    tokmap show --json ref/d --document $document | grep -o '"path": "[^"]*", "record": [0-9]*' >b
    same a b
done

# 1, 2, 3, and 7 tasks: plain, without duplicates, shuffled, and split. With a shuffle, units change no byte.
sums()
{
    rm -rf ref t?
    mkdir ref
    tokmap pack -q $options -o ref/d $inputs
    for n; do
        mkdir t$n
        tasks $n t$n
        diff -r ref t$n
        [ ! -e t$n/d.work ]
    done
}
sums 1 2 3 7
options="$plain --unit-bytes 40000 --dedup exact"
sums 1 2 3 7
tokmap pack -q --columns n --dedup exact -o once $inputs
cat ref/d-*.bin >all
same all once.bin
tokmap show --dropped once >a
tokmap show --dropped ref/d >b
same a b
[ "$(wc -l <a)" -gt 3000 ]
options="$plain --unit-bytes 40000 --shuffle 9 --dedup exact"
sums 2 7
tokmap pack -q $plain --shuffle 9 --dedup exact -o s $inputs
for file in ref/d-*.bin; do same $file s${file#ref/d}; done
options="$plain --unit-bytes 40000 --dedup minhash"
sums 3

# Kills.
for options in "$plain --unit-bytes 40000" "$plain --unit-bytes 40000 --shuffle 9 --dedup exact"; do
    rm -rf ref
    mkdir ref
    tokmap pack -q $options -o ref/d $inputs
    rm -rf k
    mkdir k
    kill=0
    while [ $kill -lt $((kills / 2)) ]; do
        kill=$((kill + 1))
        pids=
        for i in 0 1 2; do
            tokmap pack -q $options --checkpoint-seconds 0.001 --wait 1 -j 1 --task $i/3 -o k/d $inputs 2>err.$i &
            pids="$pids $!"
        done
        sleep 0.0$((kill * 7 % 4))$((kill * 3 % 10))
        for pid in $pids; do kill -s KILL $pid 2>/dev/null || true; done
        for pid in $pids; do wait $pid 2>/dev/null || true; done
    done
    [ -e k/d ] || tasks 3 k
    diff -r ref k
done

# What is left out: a damaged page, and the rest of a part after a damaged header. Their rows are those of the file.
options="$plain --unit-bytes 40000"
groups all.jsonl page.parquet 100 page
groups all.jsonl header.parquet 100 header
inputs='page.parquet header.parquet'
groups all.jsonl utf8.parquet 100 utf8
exits 1 tokmap pack -q $options --task 0/1 -o w utf8.parquet 2>err
holds err "utf8.parquet: row 1250 (in row group 12) is not valid UTF-8"
rm -r w.work
exits 1 tokmap pack -q $options --task 0/1 -o w $inputs 2>err
holds err "page.parquet: row group 12, column 'text', page at byte"
rm -r w.work
for n in 1 3; do
    mkdir l$n
    for i in 2 1 0; do
        [ $i -ge $n ] || tokmap pack --json $options --on-error skip --skipped-list l$n/list --task $i/$n -o l$n/d \
            $inputs 2>/dev/null >report.$n
    done
done
tokmap pack --json $options --on-error skip --skipped-list lref -o l0 $inputs >report 2>/dev/null
diff -r l1 l3
same lref l1/list
for name in documents files files_skipped stored_bytes input_bytes skipped_bytes records_skipped; do
    equal "$(grep -o "\"$name\": [0-9]*" report)" "$(grep -o "\"$name\": [0-9]*" report.3)" $name:
done
holds report '"files": 1, "files_by_format": {"parquet": 1}, "files_skipped": 1, '
holds lref '"path": "header.parquet", '
tokmap export -o l.jsonl l1/d >/dev/null
[ "$(wc -l <l.jsonl)" -gt 4500 ]

# Damaged footers: the file is a unit of its own, whose task names it; it can be left out.
for fault in overlap outside rows groups; do
    groups all.jsonl $fault.parquet 100 $fault
    exits 1 tokmap pack -q $options --task 0/1 -o f b.jsonl $fault.parquet 2>err
    holds err "$fault.parquet: the footer of the Parquet file is damaged: "
    rm -r f.work
    tokmap pack --json $options --on-error skip --task 0/1 -o f b.jsonl $fault.parquet >out 2>err
    holds out '"files": 1, "files_by_format": {"jsonl": 1}, "files_skipped": 1, '
    rm f f-*
done
groups all.jsonl backwards.parquet 100 backwards
tokmap pack -q $options --task 0/1 -o f backwards.parquet
cat f-*.bin >all
tokmap pack -q --columns n -o g all.jsonl
same all g.bin

# A file with other row groups, of the same size, is named by every task, also by those that read others.
mkdir x
groups all.jsonl m.parquet 90
cp m.parquet saved
inputs='m.parquet unnamed'
tokmap pack -q $options -o x/ref $inputs
task x 0/7
groups all.jsonl m.parquet 91,89
equal "$(wc -c <m.parquet)" "$(wc -c <saved)"
for i in 0 6; do
    exits 1 tokmap pack -q $options --task $i/7 -o x/d $inputs 2>err
    holds err 'm.parquet: this input has other row groups than when this work began'
done
cp saved m.parquet
tasks 7 x
for file in x/ref-*.bin; do same $file x/d${file#x/ref}; done
