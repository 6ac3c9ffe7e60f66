# SPDX-License-Identifier: MIT
# --task: a task that is run again after the output is complete has nothing to do, although some inputs gave no
# document; an input that was added, left out, moved in the order, or changed is refused, also if it gave no document.
. "$TOKMAP_CLI/helpers.sh"
need awk

awk 'BEGIN { for (i = 0; i < 400; i++) { t = "line " i; for (k = 0; k < 30; k++) t = t " word" (i * 31 + k)
    printf "{\"text\": \"%s\"}\n", t } }' >a.jsonl
cp a.jsonl same.jsonl
head -n 20 a.jsonl | tr -d '{}"' >excluded.txt
cp excluded.txt words.txt
: >empty.jsonl
printf '{"text": "tiny"}\n' >tiny.jsonl
printf '{"text": 5}\n' >wrong.jsonl

# again NAME INPUTS OPTION...: runs two tasks until all is done, and both of them and one process once more.
again()
{
    name=$1
    inputs=$2
    shift 2
    for round in 1 2 3; do
        for task in 0 1; do
            code=0
            tokmap pack -q --shard-tokens 9k --unit-bytes 30k --task $task/2 -o $name/o "$@" $inputs 2>err || code=$?
            [ $code = 0 ] || { [ $code = 3 ] && [ $round = 1 ]; } || { cat err >&2; exit 1; }
        done
    done
    [ ! -e $name/o.work ]
    tokmap pack --shard-tokens 9k --unit-bytes 30k --task 0/1 -o $name/o "$@" $inputs >out 2>err
    holds out "$name/o is complete"
    # The bytes are those of one process that was not told to be a task.
    tokmap pack -q --shard-tokens 9k --unit-bytes 30k -o $name/ref "$@" $inputs 2>err
    for file in $name/o*-0*; do
        same "$file" "$name/ref${file#"$name"/o}"
    done
}
again min 'a.jsonl tiny.jsonl empty.jsonl' --min-tokens 20
again exact 'a.jsonl same.jsonl' --dedup exact
again near 'a.jsonl same.jsonl' --dedup minhash
again ngrams 'a.jsonl excluded.txt' --exclude-ngrams words.txt
again skip 'a.jsonl wrong.jsonl' --on-error skip
again shuffle 'empty.jsonl a.jsonl same.jsonl' --shuffle 3 --dedup exact
again split 'a.jsonl empty.jsonl tiny.jsonl' --split train=0.9,val=0.1
again sealed 'empty.jsonl a.jsonl' --seal

# refused INPUT...: the output `min` is that of other inputs.
refused()
{
    exits 1 tokmap pack -q --shard-tokens 9k --unit-bytes 30k --task 0/1 -o min/o --min-tokens 20 "$@" 2>err
    holds err 'the output already exists'
}
: >other.jsonl
touch -r empty.jsonl other.jsonl
refused a.jsonl tiny.jsonl
refused a.jsonl tiny.jsonl empty.jsonl other.jsonl
refused a.jsonl tiny.jsonl other.jsonl
refused a.jsonl empty.jsonl tiny.jsonl
sleep 0.02
touch empty.jsonl
refused a.jsonl tiny.jsonl empty.jsonl
