# SPDX-License-Identifier: MIT
# ci: nonroot asan
# A folder that holds a data set and its README: the report counts files by format, and a warning names the README once.
. "$TOKMAP_CLI/helpers.sh"
mkdir -p hf/data plain
printf '# A data set\n' >hf/README.md
printf '{"text": "one"}\n{"text": "two"}\n' >hf/data/a.jsonl
printf '{"text": "three"}\n' >hf/data/b.jsonl
printf 'only text' >plain/a.txt
cp hf/data/b.jsonl plain.jsonl
tokmap pack -o d hf/ >out 2>err
holds err "tokmap pack: warning: 'hf/' has files of records and of text; 'hf/README.md' is read as text, one document per"
holds err "leave such files out with --exclude '*.md', or choose the files with --include '*.jsonl'"
equal "$(grep -c warning err)" 1
equal "$(grep -A 3 '^read:' out | tail -n 3 | tr -s ' ')" ' files 3 of which:
 text 1 one document per file
 JSONL 2'
tokmap pack --json --force -o d hf >report 2>err
json report
equal "$(field report files) $(field report files_by_format.text) $(field report files_by_format.jsonl)" '3 1 2'
holds err "'hf/README.md' is read as text"
# What it advises is done: neither a warning nor the file. The command with -q, and a pattern, warn, too.
for choice in --exclude=*.md --include=*.jsonl; do
    tokmap pack --force -o d "$choice" hf >out 2>err
    equal "$(cat err)" ''
    equal "$(grep -m 1 '^  files ' out | tr -s ' ')" ' files 2 JSONL'
done
tokmap pack -q --force -o d hf 'hf/**' 2>err
equal "$(grep -c 'warning: .* has files of records' err)" 1
# Who names the files, or the format, or has one kind of file, is not warned.
tokmap pack --force -o d hf/README.md hf/data >out 2>err
equal "$(cat err)" ''
tokmap pack --force -o d --input-format text hf >out 2>err
equal "$(cat err)" ''
equal "$(grep -m 1 '^  files ' out | tr -s ' ')" ' files 3 text, one document per file'
tokmap pack --force -o d plain hf/data plain.jsonl >out 2>err
equal "$(cat err)" ''
find hf -type f | tokmap pack --force -o d --files-from - >out 2>err
equal "$(cat err)" ''
# The other commands that read texts warn, too, once.
tokmap encode hf >out 2>err
holds err "tokmap encode: warning: 'hf' has files of records and of text; 'hf/README.md' is read as text"
equal "$(grep -c warning err)" 1
tokmap encode --exclude '*.md' hf >out 2>err
equal "$(cat err)" ''
tokmap train-tokenizer -q -o v.json --vocab-size 258 hf 2>err
holds err "tokmap train-tokenizer: warning: 'hf' has files of records and of text; 'hf/README.md' is read as text"
equal "$(grep -c warning err)" 1
# Each task sees all inputs, whichever are its own. A file that is cut into units counts once.
for i in $(seq 200); do printf '{"text": "number %d"}\n' "$i"; done >hf/data/c.jsonl
for i in 0 1 2; do
    tokmap pack --task $i/3 --shard-tokens 2000 --unit-bytes 1k -o tasks --json hf >report 2>err
    equal "$(grep -c "warning: 'hf' has files of records" err)" 1
done
equal "$(field report files) $(field report files_by_format.text) $(field report files_by_format.jsonl)" '4 1 3'
# Work that is continued says it again.
tokmap pack -q --shard-tokens 2000 --unit-bytes 1k -o whole hf 2>err
equal "$(grep -c warning err)" 1
same whole-00000.bin tasks-00000.bin

# The bytes of Parquet, of which no part is decompressed before it is read, have words of their own in the report.
mkdir table
base64 -d >table/p.parquet <<'END'
UEFSMRUAFToVOiwVBhUAFQYVBhwAAAACAAAABgEDAAAAb25lAwAAAHR3bwUAAAB0aHJlZRUCGSw1ABgGc2NoZW1hFQIAFQwlAhgEdGV4dCUATB
wAAAAWBhkcGRwmABwVDBklBgAZGAR0ZXh0FQAWBhZgFmAmCEkcFQAVABUCADwWFhkGGSYABgAAABZgFgYmCBZgACggcGFycXVldC1jcHAtYXJy
b3cgdmVyc2lvbiAyNi4wLjEZHBwAAACIAAAAUEFSMQ==
END
tokmap pack -o p table >out
equal "$(grep '^  input bytes' out | tr -s ' ')" ' input bytes 196 as stored, of which:'
holds out '  compressed pages of the texts'
holds out 'dictionaries, which can have the texts, other columns, headers'
tokmap pack -o pq table hf/data/b.jsonl >out
holds out 'after decompression, but Parquet as stored, of which:'
holds out 'around the texts, and line ends; dictionaries and other columns of Parquet'
equal "$(grep '^  tokens ' out)" '  tokens       20, a token is 1.00 bytes of text'

# An input that is named twice is read twice, and a warning says so once.
mkdir many
i=0
while [ $i -lt 300 ]; do
    echo $i >many/$i.txt
    i=$((i + 1))
done
twice()
{
    tokmap pack --force -o d "$@" >out 2>err
    equal "$(grep -c warning err)" 1 "$*:"
    holds err 'tokmap pack: warning: some inputs are named more than once, and are read each time; the first is '
}
twice many many/299.txt
holds err "'many/299.txt'"
holds out 'documents    301'
twice many/1.txt many ./many//./1.txt
twice 'many/*9.txt' 'many/29*'
holds err "'many/29.txt'"
printf 'many/7.txt\nmany/8.txt\nmany/7.txt\n' >list
twice --files-from list
tokmap encode many/5.txt many/5.txt 2>err | cat >out
holds err "tokmap encode: warning: some inputs are named more than once"
equal "$(wc -l <out | tr -d ' ')" 2
tokmap train-tokenizer -q --force -o v.json --vocab-size 258 many many/5.txt 2>err
holds err "tokmap train-tokenizer: warning: some inputs are named more than once"
for i in 0 1; do
    tokmap pack --task $i/2 --shard-tokens 200 --unit-bytes 100 -o halves many many/3.txt >out 2>err
    equal "$(grep -c 'named more than once' err)" 1
done
tokmap pack --force -o d many hf/data plain.jsonl many.txt/../many/nothing 2>err >out || true
! grep -q 'more than once' err
tokmap pack --force -o d many hf/data plain.jsonl >out 2>err
equal "$(cat err)" ''
# A URL is named without its secrets.
url='https://127.0.0.1:1/a.jsonl?X-Amz-Signature=SECRET'
exits 1 tokmap pack --shard-tokens 1M --unit-bytes 1M --task 0/1 -o urls "$url" "$url" 2>err
! grep -q SECRET err
! grep -q 'more than once' err || holds err "the first is 'https://127.0.0.1:1/a.jsonl'"
