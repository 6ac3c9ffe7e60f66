# SPDX-License-Identifier: MIT
# ci: asan
# Records under another name would become one document of raw JSON or CSV without a word: they are refused, and the
# message names both ways on. Each command is what a user would type. With TEST_SHARE=N only one of N texts that begin
# like a record is tried.
. "$TOKMAP_CLI/helpers.sh"
i=0
while [ $i -lt 12 ]; do
    printf '{"id": %d, "url": "u", "text": "text %d"}\n' $i $i
    i=$((i + 1))
done >w.jsonl

# refused FORMAT FILE: packing the file is refused; as FORMAT it has 3 documents, as text one.
refused()
{
    exits 1 tokmap pack -o q "$2" 2>err
    holds err "$2: "
    holds err "use --input-format $1 if it contains records, or --input-format text if it is text"
    equal "$(ls q.* 2>/dev/null | wc -l | tr -d ' ')" 0
    equal "$(tokmap encode --input-format "$1" "$2" | wc -l | tr -d ' ')" 3 "$2 as $1:"
    equal "$(tokmap encode --input-format text "$2" | wc -l | tr -d ' ')" 1 "$2 as text:"
    exits 1 tokmap encode "$2" 2>err
    exits 1 tokmap train-tokenizer -q -o q --vocab-size 260 "$2" 2>err
    holds err "--input-format $1"
}
head -3 w.jsonl >part-00000
refused jsonl part-00000
head -3 w.jsonl >x.txt
refused jsonl x.txt
(printf '['; head -3 w.jsonl | sed '1!s/^/,/'; printf ']') >x
refused json x
head -3 w.jsonl | sed 's/, "/,\n  "/g; s/^{/{\n  /; s/}$/\n}/' >pretty.txt
refused json pretty.txt
cp pretty.txt pretty.json
refused json pretty.json
printf 'id,text\n1,a\n2,"b\nc"\n3,d\n' >x.csv
refused csv x.csv
cp x.csv part-00001
refused csv part-00001
printf 'id\ttext\n1\ta\n2\tb\n3\tc\n' >part-00002
refused tsv part-00002
if command -v zstd >/dev/null 2>&1; then
    for file in part-00000 x x.csv; do zstd -q "$file" -o "$file.zst"; done
    refused jsonl part-00000.zst
    refused json x.zst
    refused csv x.csv.zst
fi
if tokmap --version | grep -q 'reads .gz: yes' && command -v gzip >/dev/null 2>&1; then
    gzip -c x.txt >x.txt.gz
    refused jsonl x.txt.gz
fi
# Standard input: JSONL and arrays of objects are read as records, everything else that looks like records is refused.
equal "$(tokmap encode <part-00000 | wc -l | tr -d ' ')" 3
equal "$(tokmap encode <x | wc -l | tr -d ' ')" 3
cp x x.json
equal "$(tokmap encode x.json | wc -l | tr -d ' ')" 3
exits 1 tokmap encode <pretty.txt 2>err
holds err 'standard input: the file begins with a JSON object'
exits 1 tokmap encode <part-00001 2>err
holds err 'standard input: the first lines look like a CSV table'
# With --on-error skip they are left out, listed, and counted.
printf 'a text\n' >text
tokmap pack --on-error skip -o s part-00000 x pretty.txt x.csv text >report 2>err
equal "$(grep -c 'skipped: ' err)" 4
holds report '4 files'
holds report 'looks like records'
# A JSON object on one line of a .json file is a record, and the message says how to read it as text.
printf '{"name": "x", "version": 2}\n' >package.json
exits 1 tokmap pack -q -o q package.json 2>err
holds err "package.json:1: line 1 (record 0) has no field 'text'; it has: name, version; name another field with --field, or read the file as text with --input-format text"

# An array of strings is not one text, either, and no format reads it: the message says what to do.
printf '["one", "two"]\n' >strings.json
cp strings.json strings.txt
for name in strings.json strings.txt; do
    exits 1 tokmap pack -q --field body -o q $name 2>err
    holds err "$name: the file is a JSON array of strings, and would be read as one text;"
    holds err 'an object, such as {"body": ...}; if the file is one text, use --input-format text'
    equal "$(tokmap encode --input-format text $name | wc -l | tr -d ' ')" 1
done

# What begins like a record is not text, also if it is not strict JSON or is cut off, whatever its name is. Under the
# name of its format, the message has the place.
never()
{
    for name in never.txt never never.json never.JSON - never.csv never.warc never.arrow never.txt.gz; do
        case $name in
        *.gz)
            tokmap --version | grep -q 'reads .gz: yes' && command -v gzip >/dev/null 2>&1 || continue
            gzip -c never >$name ;;
        never | -) ;;
        *) cp never $name ;;
        esac
        exits 1 tokmap pack -q -o q $name <never 2>err
        holds err '--input-format text'
        exits 1 tokmap encode $name <never >out 2>err
        exits 1 tokmap train-tokenizer -q -o q --vocab-size 260 $name <never 2>err
        exits 1 tokmap pack -q --dry-run $name <never 2>err
        equal "$(ls q.* 2>/dev/null | wc -l | tr -d ' ')" 0
    done
    equal "$(tokmap encode --input-format text never | wc -l | tr -d ' ')" 1 "$(head -c 40 never):"
}
cat >cases <<'END'
[{"text": "a",}]
{"text": "a",}
{'text': 'a', 'n': None}
[{'text': 'a'}, {'text': 'b'}]
{text: "a"}
// a comment <newline>{"text": "a",}
{"title": "front matter"} # A text in Markdown
[{"text": "a"}, {"text": "b"}
[{"te
{"text": "a
[[{"text": "a"}]]
{"text": "a\x"}
['one', 'two']
["one", "two"
END
number=0
while IFS= read -r line; do
    number=$((number + 1))
    in_share $number || continue
    printf '%s\n' "$line" | sed 's/<newline>/\n/' >never
    never
done <cases
printf '{"text": "a", "x": %s%s}\n' "$(printf '[%.0s' $(seq 1100))" "$(printf ']%.0s' $(seq 1100))" >never
never
# Valid arrays, after long blanks and a byte order mark: refused under a name that does not say so, otherwise read.
printf '\357\273\277%70000s\n[%70000s{"text": "a"}, {"text": "b"}]' '' '' >far.json
cp far.json far.txt
equal "$(tokmap encode far.json | wc -l | tr -d ' ')" 2
equal "$(tokmap encode - <far.json | wc -l | tr -d ' ')" 2
equal "$(cat far.json | tokmap encode - | wc -l | tr -d ' ')" 2
refused=$(cat far.txt | exits 1 tokmap encode /dev/stdin far.txt 2>&1 >out) || exit 1
case $refused in *'far.txt: the file begins with a JSON array of objects'*) ;; *) echo "$refused"; exit 1 ;; esac
printf '[{"text": "a"},\n{"text": "b",}]' >place.json
exits 1 tokmap pack -q -o q place.json 2>err
holds err "place.json:2: line 2 (record 1) is not valid JSON: the name of a field is not a string; correct the record, or \
read the file as text with --input-format text, or skip it with --on-error skip (byte 29)"
printf '{"text": "a",}\n' >place.json
exits 1 tokmap pack -q -o q place.json 2>err
holds err "but is not valid JSON: the name of a field is not a string; use --input-format jsonl if it contains records"

# Names of records are never those of a text. In a folder, the message also says how to leave such files out.
mkdir -p code
printf '// comments\n{\n  // more\n  "compilerOptions": {},\n}\n' >code/tsconfig.json
printf 'int main() { return 0; }\n' >code/main.c
exits 1 tokmap pack -q -o q code 2>err
holds err 'code/tsconfig.json: '
holds err '--input-format text'
tokmap pack -q --input-format text -o code.packed code
tokmap pack -q --on-error skip -o skipped.code code 2>err
holds err 'skipped: code/tsconfig.json'
for name in a.json a.JSONL a.ndjson.zst a.Csv a.tsv a.parquet a.warc a.wet a.ARROW a.feather a.parquet.gz a.json.gz; do
    printf 'a text\n' >$name
    exits 1 tokmap encode $name 2>err
done
for name in a.csv a.json a.warc; do
    : >$name
    equal "$(tokmap encode $name | wc -l | tr -d ' ')" 0 $name
done

# NaN and Infinity, as Python writes them, are accepted and counted in fields that are not read, and nowhere else.
printf '[{"text": "a", "n": NaN}, {"text": "b", "n": [-Infinity, {"m": Infinity}]}]' >nan.json
printf '{"text": "a", "n": NaN}\n{"text": "b", "n": -Infinity}\n{"text": "c", "n": 1}\n' >nan.jsonl
tokmap pack -o nan nan.json nan.jsonl >report
holds report 'NaN, Infinity                           5  values that JSON does not have'
tokmap pack --json --force -o nan nan.json nan.jsonl >report
json report
holds report '"not_finite_values": 5,'
sed 's/, "n": [^}]*//' nan.jsonl >none.jsonl
equal "$(tokmap encode nan.jsonl)" "$(tokmap encode none.jsonl)"
exits 1 tokmap pack -q --columns n -o q nan.jsonl 2>err
holds err "nan.jsonl:1: the field 'n' of line 1 (record 0) has a value that is not JSON: NaN or Infinity; write null in \
place of it"
holds err '(byte 19)'
exits 1 tokmap pack -q --field n -o q nan.jsonl 2>err
holds err "nan.jsonl:1: the field 'n' of line 1 (record 0) is not a string"
printf '{"ids": [1, NaN], "mask": [1, 1], "n": NaN}\n' >ids.jsonl
exits 1 tokmap pack -q --ids-field ids --vocab-size 9 --no-eod -o q ids.jsonl 2>err
holds err "the field 'ids' of line 1 (record 0) has a value that is not JSON"
printf '{"ids": [1, 2], "mask": [1, Infinity], "n": NaN}\n' >ids.jsonl
exits 1 tokmap pack -q --ids-field ids --mask-field mask --vocab-size 9 --no-eod -o q ids.jsonl 2>err
holds err "the field 'mask' of line 1 (record 0) has a value that is not JSON"
printf '{"text": "a", "m": {"n": NaN, "k": 1}}\n' >deep.jsonl
tokmap pack -q --columns m.k -o deep deep.jsonl
exits 1 tokmap pack -q --columns m.n -o q deep.jsonl 2>err
holds err "the field 'm.n' of line 1"
exits 1 tokmap pack -q --columns m -o q deep.jsonl 2>err
holds err "the field 'm' of line 1"
printf '{"p": "a", "c": NaN, "n": NaN}\n' >prompt.jsonl
exits 1 tokmap pack -q --prompt-field p --completion-field c -o q prompt.jsonl 2>err
holds err "the field 'c' of line 1"

# What git leaves where Git LFS has not fetched a file would become a document, or an error that does not help.
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n' >pointer.txt
cp pointer.txt pointer
cp pointer.txt pointer.json
cp pointer.txt pointer.txt.gz
cp pointer.txt pointer.parquet
cp pointer.txt pointer.jsonl
for name in pointer.txt pointer pointer.json pointer.txt.gz pointer.parquet pointer.jsonl; do
    exits 1 tokmap pack -q -o q $name 2>err
    holds err "fetch the data that it stands for with 'git lfs pull'"
done
equal "$(tokmap encode --input-format text pointer.txt | wc -l | tr -d ' ')" 1

# A name that says that the file is compressed, and a file that is not: as often as not what a server said in its place.
for ending in gz zst bz2 xz lz4; do
    printf 'a\033\tb' >plain.txt.$ending
    exits 1 tokmap pack -q -o q plain.txt.$ending 2>err
    equal "$(cat err)" "tokmap pack: plain.txt.$ending: the name ends in .$ending, but the input is not compressed: it \
begins with 'a^[^Ib'; rename it if it is plain text; otherwise download it again"
done
printf '<!DOCTYPE html>\n<p>Not found, and so on\n' >page.txt.gz
cp page.txt.gz page.jsonl.zst
cp page.txt.gz page.csv.xz
cp page.txt.gz page.warc.bz2
for name in page.txt.gz page.jsonl.zst page.csv.xz page.warc.bz2; do
    for format in auto text jsonl csv; do
        exits 1 tokmap pack -q --input-format $format -o q $name 2>err
        holds err "$name: the name ends in .${name##*.}, but the input is not compressed: it begins with '<!DOCTYPE html>^J"
        holds err 'it is a web page: download the file itself (on huggingface.co its URL has /resolve/, not /blob/)'
    done
done
exits 1 tokmap encode page.txt.gz 2>err
exits 1 tokmap train-tokenizer -q -o q --vocab-size 260 page.txt.gz 2>err
printf '\037' >cut.gz
exits 1 tokmap pack -q -o q cut.gz 2>err
holds err "cut.gz: the name ends in .gz, but the input is not compressed: it begins with '^_'"
equal "$(ls q.* 2>/dev/null | wc -l | tr -d ' ')" 0
tokmap pack -q --on-error skip -o skipped page.txt.gz text 2>err
holds err 'skipped: page.txt.gz: the name ends in .gz'
# Standard input has no name, an empty file has no bytes, and another compression than that of the name is read.
equal "$(tokmap encode - <page.txt.gz | wc -l | tr -d ' ')" 1
: >none.txt.gz
equal "$(tokmap encode none.txt.gz | wc -l | tr -d ' ')" 1
if command -v zstd >/dev/null 2>&1; then
    zstd -q text -o other.txt.gz
    equal "$(tokmap encode other.txt.gz)" "$(tokmap encode text)"
fi

# Ordinary text is text: prose with commas, source code, logs, JSON inside a text, an INI file, a table of numbers.
accepted()
{
    cat >ordinary
    equal "$(tokmap encode ordinary | wc -l | tr -d ' ')" 1 "$(head -1 ordinary):"
}
accepted <<'END'
Hello, world
Apples, pears
Salt, pepper
END
accepted <<'END'
{ "not json" }
END
accepted <<'END'
{% block title %}
END
accepted <<'END'
{\bf Theorem 1} [link] {name}: 1
END
accepted <<'END'
[link](https://example.org) and { "a", "b" }
END
accepted <<'END'
[ ] to do
END
accepted <<'END'
import os,sys
a,b
c,d
e,f
END
accepted <<'END'
1,2,3
4,5,6
7,8,9
END
accepted <<'END'
<!DOCTYPE html>
<p>A page that somebody has saved
END
accepted <<'END'
version https://example.org/
END
accepted <<'END'
[section]
name=value
END
# Only empty files are not a corpus.
: >empty
exits 1 tokmap pack -q -o q empty empty 2>err
holds err 'the inputs are empty: no file has a byte'
equal "$(ls q.* 2>/dev/null | wc -l | tr -d ' ')" 0
tokmap pack -o with text empty >report
holds report 'of which empty: 1'
