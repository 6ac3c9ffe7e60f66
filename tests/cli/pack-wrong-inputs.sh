# SPDX-License-Identifier: MIT
# ci: nonroot asan
# For each bad input, the message names the file, the place, and what to do; the exit status is 1, and no file is left.
. "$TOKMAP_CLI/helpers.sh"
mkdir in hollow
printf 'good' >in/a
wrong()
{
    message=$1
    shift
    exits 1 tokmap pack -o out "$@" >got 2>err
    holds err "$message"
    [ ! -s got ]
    for left in out.*; do
        [ ! -e "$left" ] || { echo "left behind: $left" >&2; exit 1; }
    done
}
printf 'caf\351' >latin
printf '{"text": "a"}\n{"text": 5}\n' >type.jsonl
printf '{"text": "a"}\nno json\n' >no.jsonl
printf '{"n": "a"}\n' >field.jsonl
printf '{"text": "a", "text": "b"}\n' >twice.jsonl
printf '{"text": "\\udc00"}\n' >lone.jsonl
printf '{"text": "%0100d"}\n' 0 >long.jsonl
printf 'PK\003\004zip' >zip
printf '\n' >blank.jsonl
wrong 'latin: the text is not valid UTF-8; convert the file, or use --invalid-utf8 replace or skip (byte 3)' in latin
wrong "type.jsonl:2: the field 'text' of line 2 (record 1) is not a string" in type.jsonl
wrong 'no.jsonl:2: line 2 (record 1) is not valid JSON: this is not a JSON value; correct the record, or skip it with --on-error skip' in no.jsonl
wrong "field.jsonl:1: line 1 (record 0) has no field 'text'; it has: n; name another field with --field" in field.jsonl
wrong "twice.jsonl:1: the field 'text' appears twice in line 1 (record 0)" in twice.jsonl
wrong 'lone.jsonl:1: line 1 (record 0) is not valid UTF-8: a surrogate escape has no second half' in lone.jsonl
wrong 'long.jsonl:1: line 1 (record 0) is longer than the limit of 99 bytes' --max-record 99 in long.jsonl
wrong 'zip: the input is a zip archive, which tokmap cannot read' in zip
# A Parquet file is not read from a pipe, a redirected file, or a compressed copy, and each message says what to do.
printf 'PAR1\025\000........PAR1' >table.parquet
cp table.parquet table.txt
parquet='the input is a Parquet file; it is read from its end'
cat table.parquet | wrong "standard input: $parquet, which a pipe does not allow: save it to a file, and name that" -
wrong "standard input: $parquet: name the file instead of redirecting standard input" - <table.parquet
equal "$(grep -c -- '--include' err)" 0 'a remedy that does not fit'
wrong "standard input: $parquet: name the file instead of redirecting standard input" --input-format parquet - <table.parquet
wrong 'table.txt: the input is a Parquet file; read it as what it is, with --input-format parquet or auto' \
    --input-format text table.txt
if tokmap --version | grep -q 'reads .gz: yes' && command -v gzip >/dev/null 2>&1; then
    gzip -k table.parquet
    decompress='a Parquet file is read from its end: decompress it to a file, and name that'
    wrong "table.parquet.gz: the compressed file contains a Parquet file, which is read from its end: decompress it" \
        table.parquet.gz
    wrong "table.parquet.gz: the file is compressed, and $decompress" --input-format parquet table.parquet.gz
fi
wrong 'hollow: the folder contains no regular files' in hollow
wrong 'nowhere: the input cannot be opened: No such file' in nowhere
wrong "if '9' is the value of --seal, write --seal=9" --seal 9 in
wrong "if 'x' is the value of --eod, write --eod=x" in --eod x
! grep -q 'write --bos' err
wrong 'none*: no file matches this pattern' in 'none*'
wrong 'the inputs contain no documents' blank.jsonl
wrong "ftp://a/b/c.jsonl: URLs begin with https://, http://, s3://, gs://, or hf://" ftp://a/b/c.jsonl
wrong "gpt2.json: there is no file or folder of this name; name a vocabulary file" -t gpt2.json in
printf '{"text": 1}\n' >in/piped
wrong "standard input:1: the field 'text' of line 1 (record 0) is not a string" --input-format jsonl - <in/piped
if command -v zstd >/dev/null 2>&1; then
    zstd -q -c in/a latin | head -c 20 >cut.zst
    wrong 'cut.zst: the zstd file is truncated' in/a cut.zst
    { zstd -q -c in/a; echo more; } >behind.zst
    wrong 'behind.zst: the zstd data ends at byte' in/a behind.zst
fi
if tokmap --version | grep -q 'reads .gz: yes' && command -v gzip >/dev/null 2>&1; then
    gzip -c in/a | head -c 15 >cut.gz
    wrong 'cut.gz: the gzip file is truncated' in/a cut.gz
    { gzip -c in/a; echo more; } >behind.gz
    wrong 'behind.gz: the gzip data ends at byte' in/a behind.gz
    holds err 'remove them, or copy the file again'
fi
for triple in bz2:bzip2:bzip2 xz:xz:xz lz4:lz4:LZ4; do
    ending=${triple%%:*} name=${triple##*:} program=${triple#*:} program=${program%:*}
    if tokmap --version | grep -q "reads .$ending: yes" && command -v "$program" >/dev/null 2>&1; then
        "$program" -c <in/a | head -c 13 >"cut.$ending"
        wrong "cut.$ending: the $name file is truncated: it ends in the middle of its data, at byte 13" \
            in/a "cut.$ending"
        { "$program" -c <in/a; echo more; } >"behind.$ending"
        wrong "behind.$ending: the $name data ends at byte" in/a "behind.$ending"
    fi
done
if [ "$(id -u)" -ne 0 ]; then
    cp in/a secret
    chmod 000 secret
    wrong 'secret: the input cannot be opened: Permission denied' in/a secret
fi
# With --on-error skip, all of them are left out and the good one is packed.
rm in/piped
tokmap pack -q --on-error skip -o out in latin type.jsonl no.jsonl field.jsonl zip hollow nowhere 'none*' lone.jsonl 2>err
equal "$(od -An -v -tu2 out.bin | tr -s ' \n' ' ')" ' 103 111 111 100 256 97 256 97 256 '
equal "$(grep -c '^tokmap pack: skipped: ' err)" 9
