# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Tables of Delta Lake, Iceberg, and Hudi are refused however their files are named; beside tables, names that begin
# with an underscore are hidden; folders called NAME=VALUE are columns. The files are text, as names alone decide.
. "$TOKMAP_CLI/helpers.sh"
# packed ARGUMENT...: packs with one byte per token, prints the texts in their order, and writes the report.
packed()
{
    tokmap pack --json --force --no-eod -o d "$@" >report 2>err
    od -An -v -tu2 d.bin | awk '{for (i = 1; i <= NF; i++) printf "%c", $i} END {print ""}'
}
top=$(pwd -P)
# refused KIND FOLDER ARGUMENT...: the table is named, also with --on-error skip.
refused()
{
    refused_kind=$1 refused_folder=$2
    shift 2
    for refused_error in stop skip; do
        exits 1 tokmap pack -q --force -o "$top/r" --on-error $refused_error "$@" 2>"$top/err" </dev/null
        holds "$top/err" "$refused_folder: the folder is a table of $refused_kind, whose rows "
        holds "$top/err" 'or pack all files with --table-files'
        equal "$(ls "$top"/r.* 2>/dev/null | wc -l | tr -d ' ')" 0
    done
}
mkdir -p delta/_delta_log delta/lang=en/day=1 ice/n/t/data/p=1 ice/n/t/metadata hudi/.hoodie hudi/p
printf '{}' >delta/_delta_log/0.json
printf a >delta/lang=en/day=1/a.txt
printf b >delta/b.txt
printf c >ice/n/t/data/p=1/c.txt
printf '{}' >ice/n/t/metadata/00001-x.metadata.json
printf x >hudi/.hoodie/hoodie.properties
printf e >hudi/p/e.txt
refused 'Delta Lake' delta/ delta
refused 'Delta Lake' delta/ delta/
refused 'Delta Lake' delta/ --include '*.txt' delta
refused 'Delta Lake' delta/ delta/lang=en
refused 'Delta Lake' delta/ delta/lang=en/day=1/a.txt
refused 'Delta Lake' delta/ 'delta/*/*/*.txt'
refused 'Delta Lake' delta/ 'd*/**/a.txt'
refused 'Delta Lake' delta/ delta/_delta_log
refused 'Delta Lake' delta/ .
refused 'Delta Lake' ice/../delta/ ice/../delta/lang=en
refused 'Delta Lake' "$top/delta/" "$top/delta/b.txt"
refused Iceberg ice/n/t/ ice
# With write.data.path, the files of an Iceberg table are not in data/: its manifests are Avro files.
mkdir -p apart/rows apart/metadata
printf m >apart/rows/m.txt
printf '{}' >apart/metadata/v1.metadata.json
printf x >apart/metadata/snap-1-0-x.avro
refused Iceberg apart/ apart/rows/m.txt
refused Iceberg apart/ apart
rm apart/metadata/snap-1-0-x.avro
equal "$(packed apart/rows)" m
rm -r apart
refused Iceberg ice/n/t/ ice/n/t/data
refused Iceberg ice/n/t/ ice/n/t/data/p=1/
refused Iceberg ice/n/t/ 'ice/n/t/data/*'
refused Iceberg ice/n/t/ 'ice/n/t/**'
refused Iceberg ice/n/t/ ice/n/t/metadata
refused Hudi hudi/ hudi
refused Hudi hudi/ hudi/p/e.txt
# The path does not show the table: links, and the folder in which the command runs.
ln -s delta/lang=en/day=1 link
ln -s delta/b.txt file
mkdir moved && printf f >moved/f.txt && ln -s ../moved delta/linked
refused 'Delta Lake' "$top/delta/" link
refused 'Delta Lake' "$top/delta/" link/a.txt
refused 'Delta Lake' "$top/delta/" file
refused 'Delta Lake' delta/ delta/linked
refused 'Delta Lake' delta/ 'delta/linked/*'
(cd delta/lang=en && refused 'Delta Lake' "$top/delta/" day=1)
(cd delta && refused 'Delta Lake' ./ b.txt)
(cd ice/n/t/data && refused Iceberg "$top/ice/n/t/" .)
# Lists, and other commands and ways to pack.
echo delta/lang=en/day=1/a.txt >list
refused 'Delta Lake' delta/ --files-from list
exits 1 tokmap pack -q -o r --files-from - <list 2>err
holds err 'delta/: the folder is a table of Delta Lake'
refused 'Delta Lake' delta/ moved/f.txt --files-from list
refused 'Delta Lake' delta/ --shard-tokens 100 --unit-bytes 1k delta
refused 'Delta Lake' delta/ --dedup minhash delta
exits 1 tokmap encode delta/b.txt 2>err
holds err 'delta/: the folder is a table of Delta Lake'
exits 1 tokmap train-tokenizer -q -o r --vocab-size 260 delta 2>err
holds err 'delta/: the folder is a table of Delta Lake'
# What may be packed: all files on request, and what is beside tables.
equal "$(packed --table-files delta)" ba
tokmap pack --json --force --no-eod -o u --table-files --shard-tokens 100 --unit-bytes 1k delta >report
holds report '"documents": 2'
equal "$(packed --table-files ice/n/t/data hudi/p)" ce
equal "$(packed moved/f.txt)" f
equal "$(packed --exclude '*_log' --exclude delta --exclude ice --exclude hudi --include f.txt .)" f
# Signs of a table that lack a part of it.
mkdir -p not/_delta_log not/metadata more/data more/metadata
printf g >not/g.txt
printf '{}' >not/metadata/1.metadata.json
printf h >more/data/h.txt
printf '{}' >more/metadata/1.json
equal "$(packed not/g.txt more/data)" gh

# hidden COUNT: so many files were hidden.
hidden()
{
    equal "$(sed -n 's/.*"hidden_files": \([0-9]*\).*/\1/p' report)" "$1" "hidden files:"
}
mkdir -p spark/_temporary src/pkg
for name in part-0.json part-1.json _temporary/x.json; do printf '{"text": "%s"}\n' "${name%.json}" >spark/$name; done
: >spark/_SUCCESS
: >spark/_committed_1
for way in spark spark/ 'spark/*' 'spark/**' 's*k/*'; do
    equal "$(packed --input-format jsonl "$way")" part-0part-1 "$way:"
    case $way in spark*/) hidden 2 ;; esac
done
packed --input-format jsonl spark >/dev/null
hidden 2
equal "$(sed -n 's/.*"hidden_folders": \([0-9]*\).*/\1/p' report)" 1
equal "$(packed --input-format jsonl 'spark/**/*.json')" part-0part-1
# A shell's pattern, and a list, name _SUCCESS itself. Other hidden files that are named are read.
equal "$(packed --input-format jsonl spark/_SUCCESS spark/part-0.json)" part-0
hidden 1
printf 'spark/_SUCCESS\nspark/part-1.json\n' >list
equal "$(packed --input-format jsonl --files-from list)" part-1
hidden 1
equal "$(packed --input-format jsonl 'spark/_t*/*')" _temporary/x
equal "$(packed --input-format jsonl spark/_temporary)" _temporary/x
equal "$(packed --input-format jsonl --hidden spark | wc -c | tr -d ' ')" 25
mkdir only && : >only/_SUCCESS
exits 1 tokmap pack -q --force -o d only 2>err
holds err 'only: the folder contains nothing but 1 hidden files and folders'
# Elsewhere such names are usual ones; a folder that is called .parquet is not a file of a table.
printf 1 >src/pkg/__init__.py
printf 2 >src/pkg/_a.py
mkdir src/pkg/x.parquet && printf 3 >src/pkg/x.parquet/y.txt
equal "$(packed src)" 123
equal "$(packed 'src/*/_*')" 12
equal "$(packed 'src/**/*.py')" 12
hidden 0
for name in a.parquet _metadata _common_metadata _spark_metadata; do
    : >src/pkg/$name
    equal "$(packed --exclude '*.parquet' 'src/pkg/_a*' src/pkg)" 2 "$name:"
    rm src/pkg/$name
done

# Columns that folders name. The record's own field comes first, in the order of the path the outer folder.
row()
{
    tokmap show d --document "$1" 2>&1 | sed -n 's/^    \(lang: .*\)/\1/p'
}
mkdir -p 'hive/lang=e%20n%2F%zz' hive/lang=__HIVE_DEFAULT_PARTITION__ hive/lang=x/lang=y hive/lang= hive/Lang=z
printf '{"text": "1"}\n{"text": "2", "lang": "own"}\n' >'hive/lang=e%20n%2F%zz/a.jsonl'
printf '{"text": "3"}\n' >hive/lang=__HIVE_DEFAULT_PARTITION__/a.jsonl
printf '{"text": "4", "lang": null}\n{"text": "5"}\n' >hive/lang=x/lang=y/a.jsonl
printf 'a plain text' >hive/lang=/b.txt
printf 'another' >hive/Lang=z/c.txt
for files in 'hive/lang=e%20n%2F%zz' hive/lang=__HIVE_DEFAULT_PARTITION__ hive/lang=x hive/lang= hive/Lang=z; do
    tokmap pack -q --force -o d --columns lang "$files" 2>/dev/null
    for i in 0 1; do [ $i = 0 ] || case $files in *zz | *=x) ;; *) continue ;; esac; echo "$i:$(row $i)"; done
done >got
cat >wanted <<'END'
0:lang: "e n/%zz"
1:lang: "own"
0:
0:lang: null
1:lang: "x"
0:lang: ""
0:
END
same got wanted
