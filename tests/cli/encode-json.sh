# SPDX-License-Identifier: MIT
# JSON arrays and JSON values one after another: the documents are those of Python's json module, whatever the layout.
. "$TOKMAP_CLI/helpers.sh"
printf '\357\273\277 [\n  {"id": 1, "text": "a, [b] \\"}"},\n\n  {"text": "c", "n": {"text": ["x", "]"]}}\n]\n \n' >a.json
printf '{"text": "a, [b] \\"}"}\n{"text": "c"}\n' >wanted
tokmap encode a.json | tokmap decode --output-format jsonl >got
same got wanted
tokmap encode <a.json | tokmap decode --output-format jsonl >got
same got wanted
printf '{\n  "text": "a, [b] \\"}"\n}\n{ "id": 2,\n  "text": "c"\n}' >objects
tokmap encode --input-format json objects | tokmap decode --output-format jsonl >got
same got wanted
tokmap pack -q -o d a.json
tokmap show d --document 1 2>shown >/dev/null
holds shown 'a.json record 1 (counted from 0)'
# A file named .json is text only if that is said.
printf '[1, 2]\n' >numbers.json
exits 1 tokmap encode numbers.json 2>err
holds err 'the name is that of JSON, but the file does not begin with an object or an array of objects'
tokmap encode --input-format text numbers.json | tokmap decode | cmp - numbers.json
printf '[]' >none.json
equal "$(tokmap encode none.json | wc -l | tr -d ' ')" 0
equal "$(tokmap encode --input-format json none.json | wc -l | tr -d ' ')" 0

# wrong MESSAGE CONTENT
wrong()
{
    printf "$2" >w.json
    exits 1 tokmap encode --input-format json w.json >out 2>err
    holds err "$1"
}
wrong "w.json:3: line 3 (record 1) has no field 'text'; it has: id, url; name another field with --field (byte 19)" \
    '[{"text": "a"},\n\n  {"id": 1,\n   "url": "x"}]'
wrong "w.json:4: the field 'text' of line 4 (record 1) is not a string" '[{"text": "a"},\n\n  {"id": 1,\n   "text": 3}]'
wrong 'line 2 (record 1) is not valid JSON: the text ends where a value is expected' '[{"text": "a"},\n]'
wrong 'line 1 (record 1) is not valid JSON: the text ends where a value is expected' '[{"text": "a"},,{"text": "b"}]'
wrong 'w.json:2: line 2 (record 1) is not valid JSON: the file ends inside the array' '[{"text": "a"},\n{"text": "b"}'
wrong 'w.json:2: line 2 (record 1) is not valid JSON: the array is followed by more text; correct the record (byte 17)' \
    '[{"text": "a"}]\n [1]'
wrong 'line 1 (record 1) is not a JSON object' '[{"text": "a"}, "b"]'
wrong 'a comma or the end of an object or array is missing' '{"text": "a" "b"}'
wrong 'line 2 (record 1) is not valid JSON: this is not a JSON value' '{"text": "a"}\nxyz\n{"text": "b"}'
printf '{"text": "a"}\nxyz [\n{"text": "b"}' >w.json
tokmap pack -q --on-error skip --input-format json -o w w.json 2>err
equal "$(od -An -v -tu2 w.bin | tr -s ' \n' ' ')" ' 97 256 98 256 '
command -v python3 >/dev/null 2>&1 || skip 'python3 is missing'
cat >compare.py <<'END'
import json, random, subprocess
random.seed(4)

def value(depth):
    kind = random.randrange(7 if depth < 4 else 4)
    if kind < 3:
        return ''.join(random.choice('ab"\\[]{},:\n\u00e9\U0001f600 ') for _ in range(random.randrange(30)))
    if kind == 3:
        return random.choice([None, True, 1.5, -3])
    if kind == 4:
        return [value(depth + 1) for _ in range(random.randrange(4))]
    return {f'k{i}': value(depth + 1) for i in range(random.randrange(4))}

for number in range(150):
    records = []
    for i in range(random.randrange(1, 60)):
        record = {f'f{k}': value(1) for k in range(random.randrange(3))}
        record['text'] = ''.join(random.choice('ab"\\[]{},\n\u00e9') for _ in range(random.randrange(400)))
        records.append(record)
    dump = lambda r: json.dumps(r, indent=random.choice([None, 1, '\t']), ensure_ascii=random.random() < 0.5)
    if number % 2:
        text, name = dump(records), 'auto'
    else:
        text, name = random.choice(['', ' ', '\n\n']).join(dump(r) for r in records), 'json'
    with open('t.json', 'wb') as file:
        file.write(text.encode())
    run = subprocess.run(['tokmap', 'encode', '--input-format', name, '--output-format', 'jsonl', 't.json'], capture_output=True)
    assert run.returncode == 0, run.stderr
    got = [bytes(json.loads(line)).decode() for line in run.stdout.splitlines()]
    assert got == [r['text'] for r in records], (number, text, got)
END
python3 compare.py
