# SPDX-License-Identifier: MIT
# Every member of the JSON objects that `tokmap pack` prints is in its manual pages: those that the sources name, and
# those of reports that are printed here.
. "$TOKMAP_CLI/helpers.sh"
need python3 awk
man=$TOKMAP_TREE/tokenize_tools/man
commands=$TOKMAP_TREE/tokenize_tools/commands
[ -f "$man/tokmap-pack.1" ] && [ -f "$commands/pack/pack_report.c" ] || skip "the sources are not here"
# The words of .Va: the names of members, and of nothing else.
sed -n -e 's/^\.Va //p' -e 's/^\.It Va //p' "$man/tokmap-pack.1" "$man/tokmap-tasks.7" |
    tr -s ' ,;.()' '\n' | sort -u >page
for file in pack/pack_report pack/task_pack pack/pack_arguments pack/also_arguments \
    report/skip_report report/document_lengths; do
    from=1
    [ $file != report/document_lengths ] || from='/^void lengths_members/' # other commands print the rest
    sed -n "$from"',$s/.*[a-z]*_[a-z]*(&\{0,1\}\(out\|report\), "\([a-z0-9_]*\)".*/\2/p' "$commands/$file.c" >of
    [ -s of ] || { echo "FAULT: no member in $file.c" >&2; exit 1; }
    cat of
done | sort -u >sources
sed -n 's/^    X([A-Z_]*, "\([a-z_]*\)", ".*/\1/p' "$TOKMAP_TREE/tokenize_tools/inputs/corpus/corpus_batch.h" >reasons
[ "$(wc -l <reasons)" -ge 17 ]
sed -n 's/.*{CORPUS_[A-Z]*, "\([a-z]*\)", ".*/\1/p' "$commands/pack/pack_report.c" >formats
[ "$(wc -l <formats)" -ge 8 ]

awk 'BEGIN { for (i = 0; i < 900; i++) printf "{\"text\": \"document %d with words\", \"n\": 1}\n", i % 500 }' >in.jsonl
echo 'document 7' >words.txt
{ echo '{bad'; cat in.jsonl; } >bad.jsonl
printf '{"ids": [1, 2, 3], "mask": [1, 1, 0]}\n' >ids.jsonl
set -- --shard-tokens 5k --dedup exact --exclude-ngrams words.txt --exclude-words 2
tokmap pack --json "$@" --columns n --split train=0.9,val=0.1 --on-error skip --seal --also llmc -o a bad.jsonl >1 2>err
tokmap pack --json --dry-run in.jsonl >2
tokmap pack --json --ids-field ids --mask-field mask --vocab-size 10 --no-eod -o c ids.jsonl >3
exits 3 tokmap pack --json "$@" --unit-bytes 9k --task 0/2 -o d in.jsonl >4
exits 3 env RANK=1 WORLD_SIZE=3 tokmap pack --json "$@" --unit-bytes 9k --task auto --wait 0 -o d in.jsonl >5
tokmap pack --json --status d >6
tokmap pack --json --shuffle 7 -o e in.jsonl >7
python3 - 1 2 3 4 5 6 7 <<'END' | sort -u >printed
import json, sys
def names(value):
    if isinstance(value, list):
        for one in value:
            names(one)
    elif isinstance(value, dict):
        for name, of in value.items():
            print(name)
            if name == "sets":  # which the user names, as columns
                of = list(of.values())
            if name != "columns":
                names(of)
for path in sys.argv[1:]:
    names(json.load(open(path, "rb")))
END
[ "$(wc -l <printed)" -gt 80 ]
sort -u sources reasons formats printed >members
comm -23 members page >absent
[ ! -s absent ] || { echo "FAULT: tokmap-pack.1 and tokmap-tasks.7 lack these members of reports:" >&2; cat absent >&2; exit 1; }
