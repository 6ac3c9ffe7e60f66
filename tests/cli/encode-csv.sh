# SPDX-License-Identifier: MIT
# CSV and TSV: the documents are those of Python's csv module (strict=True), for random tables; and wrong tables.
. "$TOKMAP_CLI/helpers.sh"
# RFC 4180: quotes, doubled quotes, line breaks inside quotes, CRLF, a byte order mark, and blank lines.
printf '\357\273\277id,"the ""text""",z\r\n1,"a ""b"",\r\nc",x\r\n\r\n2,plain "x",\n3,"",""' >t.csv
exits 1 tokmap encode t.csv 2>err
holds err 't.csv: the name is that of a table, and would be read as one text; use --input-format csv if it contains'
holds err 'or --input-format text if it is text'
tokmap encode --input-format csv --field 'the "text"' t.csv | tokmap decode --output-format jsonl >got
printf '{"text": "a \\"b\\",\\r\\nc"}\n{"text": "plain \\"x\\""}\n{"text": ""}\n' >wanted
same got wanted
tokmap pack -q --input-format csv --field 'the "text"' -o d t.csv
tokmap show d --document 1 2>shown >/dev/null
holds shown 't.csv record 1 (counted from 0)'
tokmap show d --document 0 2>shown >/dev/null
holds shown 't.csv record 0 (counted from 0)'
printf 'id\ttext\n1\ta,b\n2\t"c\td"\n' | tokmap encode --input-format tsv - | tokmap decode --output-format jsonl >got
printf '{"text": "a,b"}\n{"text": "c\\td"}\n' >wanted
same got wanted

# wrong MESSAGE TABLE: the message names the line, the record, and the byte.
wrong()
{
    printf "$2" >w.csv
    exits 1 tokmap encode --input-format csv w.csv >out 2>err
    holds err "$1"
}
wrong 'w.csv:1: the header has only one column, with tabs in it; use --input-format tsv' 'id\ttext\n1\ta\n'
wrong "w.csv:1: the header has no column 'text'; it has: id, url, a b; name another column with --field (byte 0)" \
    'id,url,"a b"\n1,2,3\n'
wrong "w.csv:1: the header names the column 'text' twice" 'text,text\n1,2\n'
wrong 'w.csv:1: the header is not valid: a quoted field has no closing quote; correct the line (byte 5)' 'text,"b\n1,2\n'
wrong 'w.csv:3: the number of fields of line 3 (record 1) is 3, and the header has 2; correct the row' \
    'id,text\n1,a\n2,b,c\n'
wrong 'w.csv:4: line 4 (record 1) is not valid CSV: a quoted field has no closing quote; correct the record (byte 18)' \
    'id,text\n1,"a\nb"\n2,"c\n3,d\n'
wrong 'the closing quote of a field is followed by more text' 'id,text\n1,"a"b\n'
wrong 'a carriage return is neither inside quotes nor followed by a newline' 'id,text\n1,a\rb\n'
printf 'id,text\n1,a\n2\n\n3,b\n' >w.csv
tokmap pack --on-error skip --json --input-format csv -o w w.csv >report 2>err
holds err 'skipped: w.csv:3: the number of fields of line 3 (record 1) is 1'
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report documents)" 2
    equal "$(field report records_skipped)" 1
    equal "$(field report blank_lines)" 1
fi
command -v python3 >/dev/null 2>&1 || skip 'python3 is missing'
cat >compare.py <<'END'
import csv, io, json, random, subprocess
random.seed(3)

def table(separator):
    """Random bytes of a table, most of them valid."""
    alphabet = ['a', 'b', ' ', '"', '""', separator, ',', '\t', '\n', '\r\n', '\u00e9', '\U0001f600', 'x' * random.randrange(300)]
    if random.random() < 0.3: # anything
        rows = ''.join(random.choice(alphabet) for _ in range(random.randrange(60)))
        return 'id' + separator + 'text\n' + rows
    out = io.StringIO(newline='')
    writer = csv.writer(out, delimiter=separator, lineterminator=random.choice(['\n', '\r\n']),
                        quoting=random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer.writerow(['id', 'text', 'n'])
    for i in range(random.randrange(80)):
        writer.writerow([i, ''.join(random.choice(alphabet) for _ in range(random.randrange(12))), 'z'])
    text = out.getvalue()
    if random.random() < 0.3:
        text = text.rstrip('\r\n')
    return text

def expected(text, separator):
    """The texts, or None if the table is wrong."""
    try:
        rows = [r for r in csv.reader(io.StringIO(text, newline=''), delimiter=separator, strict=True) if r]
    except csv.Error:
        return None
    if not rows or 'text' not in rows[0] or any(len(r) != len(rows[0]) for r in rows):
        return None
    return [r[rows[0].index('text')] for r in rows[1:]]

good = bad = 0
for number in range(240):
    separator, name = random.choice([(',', 'csv'), ('\t', 'tsv')])
    text = table(separator)
    with open('t.bin', 'wb') as file:
        file.write(text.encode())
    wanted = expected(text, separator)
    run = subprocess.run(['tokmap', 'encode', '--input-format', name, '--output-format', 'jsonl', 't.bin'], capture_output=True)
    got = None if run.returncode else [bytes(json.loads(line)).decode() for line in run.stdout.splitlines()]
    assert run.returncode in (0, 1), run
    assert got == wanted, (number, text, wanted, got, run.stderr)
    good += got is not None
    bad += got is None
assert good > 100 and bad > 20, (good, bad)
END
python3 compare.py
