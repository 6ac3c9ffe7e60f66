# SPDX-License-Identifier: MIT
# ci: nonroot asan
# JSONL: escapes, other fields, line ends, and compression; the closing report accounts for every byte.
. "$TOKMAP_CLI/helpers.sh"
printf '\357\273\277{"text": "a\\u00e9\\n"}\r\n\n{"n": [1, {"text": 2}], "text": "", "m": null}\n{"body": "x", "text": "\\ud83d\\ude00"}' >l.jsonl
tokmap pack --json -o d l.jsonl >report
equal "$(od -An -v -tu2 d.bin | tr -s ' \n' ' ')" ' 97 195 169 10 256 256 240 159 152 128 256 '
json report
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report documents)" 3
    equal "$(field report blank_lines)" 1
    equal "$(field report input_bytes)" "$(wc -c <l.jsonl | tr -d ' ')"
    equal $(($(field report document_bytes) + $(field report structure_bytes) + $(field report skipped_bytes))) \
        "$(field report input_bytes)"
    equal "$(field report text_bytes)" 8
    equal "$(field report tokens)" 11
fi
tokmap pack -q --field body --on-error skip -o e l.jsonl 2>err
equal "$(od -An -v -tu2 e.bin | tr -s ' \n' ' ')" ' 120 256 '
equal "$(grep -c 'skipped: ' err)" 2
holds err "l.jsonl:1: line 1 (record 0) has no field 'body'; it has: text; name"
holds err "l.jsonl:3: line 3 (record 2) has no field 'body'; it has: n, text, m; name"
# Read as text, the same file is one document.
tokmap pack -q --input-format text --no-eod -o t l.jsonl
equal "$(wc -c <t.bin | tr -d ' ')" $((2 * $(wc -c <l.jsonl)))
cat l.jsonl | tokmap pack -q -o p -
same d.bin p.bin
if command -v zstd >/dev/null 2>&1; then
    zstd -q l.jsonl -o l.jsonl.zst
    tokmap pack -q -o z l.jsonl.zst
    same d.bin z.bin
fi
if tokmap --version | grep -q 'reads .gz: yes' && command -v gzip >/dev/null 2>&1; then
    gzip -c l.jsonl >no-name
    tokmap pack -q --input-format jsonl -o y no-name
    same d.bin y.bin
    tokmap pack -q -o x - <no-name
    same d.bin x.bin
fi
for pair in bz2:bzip2 xz:xz lz4:lz4; do
    ending=${pair%%:*} program=${pair#*:}
    if tokmap --version | grep -q "reads .$ending: yes" && command -v "$program" >/dev/null 2>&1; then
        "$program" -c <l.jsonl >"l.jsonl.$ending"
        tokmap pack -q -o "$ending" "l.jsonl.$ending"
        same d.bin "$ending.bin"
        cp "l.jsonl.$ending" no-name
        tokmap pack -q --force -o again - <no-name
        same d.bin again.bin
        # The end of the name is left out when JSONL is recognized by it, and in what show prints.
        tokmap show --document 1 "$ending" >out 2>&1
        holds out "l.jsonl.$ending line "
    fi
done
# The message about a document that --invalid-utf8 skip left out does not suggest that option.
printf '{"text": "\\ud800"}\n{"text": "k"}\n' >lone.jsonl
exits 0 tokmap pack -q --invalid-utf8 skip -o lone lone.jsonl 2>err
holds err 'or use --invalid-utf8 replace'
if grep -q 'or skip' err; then
    echo 'FAULT: skip is proposed where it was chosen' >&2
    exit 1
fi
# A field that is null says so, and how such records are left out.
printf '{"text": "one"}\n{"text": null}\n' >null.jsonl
exits 1 tokmap pack -q -o null null.jsonl 2>err
holds err "null.jsonl:2: the field 'text' of line 2 (record 1) is null, so the record has no text; name another field with"
holds err "--field, or skip it with --on-error skip"
tokmap pack --json --on-error skip -o null null.jsonl >report 2>err
equal "$(field report left_out.field.records)" 1
