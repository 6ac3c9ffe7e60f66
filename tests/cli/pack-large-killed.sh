# SPDX-License-Identifier: MIT
# A pack that was killed after a document of 4 MB continues, whatever the format is: those whose beginning is read again
# to find the place, and those that are continued by a seek. A batch that grows waits for its turn among the threads,
# and there are none while the place is looked for.
. "$TOKMAP_CLI/helpers.sh"
need python3
python3 - "$TOKMAP_CLI" <<'EOF'
import bz2, csv, gzip, json, lzma, subprocess, sys

line = "Call me Ishmael. Some years ago, never mind how long precisely. "
small = [line * (1 + i % 7) + str(i) for i in range(15000)]
large = line * 65536  # 4 MiB


def write(name, content, compress=bytes):
    with open(name, "wb") as file:
        file.write(compress(content.encode()))


def table(documents, comma):
    return "n" + comma + "text\n" + "".join('%d%s"%s"\n' % (i, comma, text) for i, text in enumerate(documents))


def warc(documents):
    return "".join("WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
                   % (len(text), text) for text in documents)


documents = [large] + small
write("json.json", json.dumps([{"text": text} for text in documents]))
write("csv.csv.gz", table(documents, ","), lambda content: gzip.compress(content, 1))
write("tsv.tsv.bz2", table(documents, "\t"), bz2.compress)
write("separated.txt.xz", "\n\n".join(documents), lambda content: lzma.compress(content, preset=0))
write("warc.warc", warc(documents))
lines = "".join(json.dumps({"text": text}) + "\n" for text in documents)
write("jsonl.jsonl.gz", lines, lambda content: gzip.compress(content, 1))
# A page of more than 32 MiB: the one document in it is the first row group.
with open("rows.jsonl", "w") as file:
    file.writelines(json.dumps({"text": text, "n": i}) + "\n" for i, text in enumerate([large * 8 + large] + small))
subprocess.run([sys.executable, sys.argv[1] + "/parquet_groups.py", "rows.jsonl", "parquet.parquet", "1,500"], check=True)
EOF
for name in json.json csv.csv.gz tsv.tsv.bz2 separated.txt.xz warc.warc jsonl.jsonl.gz parquet.parquet; do
    case $name in
    separated*) options='--input-format text --separator \n\n' ;;
    *) options="--input-format ${name%%.*}" ;;
    esac
    kills=3
    before=$continued
    packs_killed 3 $options $name
    [ $continued -gt $before ] || echo "$name: no pack was continued"
    rm ref* k*
done
[ $continued -gt 0 ]
# The same of a file that is in the middle of several, with more work that goes through the inputs. Of 15,000 keys of
# documents, the journal has more than one piece holds.
kills=4
packs_killed 2 --dedup exact jsonl.jsonl.gz json.json warc.warc
rm ref* k*
packs_killed 2 --shuffle 3 --split train=0.9,val=0.1 jsonl.jsonl.gz json.json warc.warc
