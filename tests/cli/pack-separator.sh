# SPDX-License-Identifier: MIT
# ci: asan
# --separator: a text file with many documents, in batches of any size, with its accounts, record numbers, and faults.
. "$TOKMAP_CLI/helpers.sh"
printf 'one<|end|>two\n<|end|><|end|><|en<|end|>\n' >in.txt
tokmap pack --json --separator '<|end|>' -o d in.txt >report
equal "$(od -An -v -tu2 d.bin | tr -s ' \n' ' ')" ' 111 110 101 256 116 119 111 10 256 60 124 101 110 256 10 256 '
for wanted in '"input_bytes": 40' '"document_bytes": 12' '"structure_bytes": 28' '"skipped_bytes": 0' '"documents": 4'; do
    holds report "$wanted"
done
tokmap show d --document 2 >shown 2>place
equal "$(cat shown)" '<|en'
holds place 'in.txt record 2'
# Escapes, and a file that ends with a separator.
printf 'a\\b\tc\\b\t' >tabs.txt
tokmap pack -q --separator '\\b\t' --no-eod -o e tabs.txt
equal "$(od -An -v -tu2 e.bin | tr -s ' \n' ' ')" ' 97 99 '
printf 'a\n\nb\n\n\n\nc' >lines.txt
tokmap pack -q --separator '\n\x0a' -o f lines.txt
equal "$(od -An -v -tu2 f.bin | tr -s ' \n' ' ')" ' 97 256 98 256 99 256 '
# Large documents and many threads; the bytes are those of one file for each document.
seq 1 200000 >part1
seq 200001 500000 >part2
: >all.txt
for part in part1 part2 in.txt part1; do
    cat "$part" >>all.txt
    printf '==' >>all.txt
done
tokmap pack -q -o g --separator '==' --threads 3 all.txt
tokmap pack -q -o h --input-format text part1 part2 in.txt part1
same g.bin h.bin
gzip -k all.txt
cat all.txt.gz | tokmap pack -q -o i --separator '==' --threads 2 -
same g.bin i.bin
# The index says what separated the documents; without the option it does not mention one.
holds f.tmx '"separator": "\n\n"'
! grep -qF separator h.tmx || exit 1
# A document that is not UTF-8, and one that is too long, are left out alone.
printf 'good==b\377d==good' >bad.txt
exits 1 tokmap pack -q --separator '==' -o j bad.txt 2>err
holds err 'bad.txt'
holds err 'document 1 (at line 1) is not valid UTF-8'
tokmap pack --separator '==' --invalid-utf8 skip --no-eod -o j bad.txt >report
equal "$(od -An -v -tu2 j.bin | tr -s ' \n' ' ')" ' 103 111 111 100 103 111 111 100 '
exits 1 tokmap pack -q --separator '==' --max-record 1000000 -o k all.txt 2>err
holds err 'document 0 (at line 1) is longer than the limit'
tokmap pack -q --separator '==' --max-record 1400000 --on-error skip -o k all.txt 2>err
holds err 'document 1 (at line 200001) is longer than the limit'
tokmap pack -q --input-format text -o l part1 in.txt part1
same k.bin l.bin
# Files in which the separator does not occur are counted, and a warning names the first one of each kind.
printf 'one\r\n\r\ntwo\r\n' >crlf.txt
printf 'one\n\ntwo\n' >lf.txt
printf 'one paragraph\n' >single.txt
: >empty.txt
printf '\n\n' >begin.txt
ends="warning: the separator does not occur in 'crlf.txt', which has CRLF line ends; it is one document; use --separator \
'\r\n\r\n' for such files"
tokmap pack --separator '\n\n' -o u crlf.txt lf.txt single.txt empty.txt begin.txt >report 2>err
equal "$(grep -c 'the separator does not occur in' err)" 2
holds err "tokmap pack: $ends"
holds err "warning: the separator does not occur in 'single.txt', which is one document; check --separator"
holds report 'files undivided                         2  the separator does not occur in them'
tokmap pack --json --separator '\r\n\r\n' -o v crlf.txt lf.txt >report 2>err
holds report '"documents": 3,'
holds report '"files_undivided": 1,'
holds err "does not occur in 'lf.txt', which has LF line ends; it is one document; use --separator '\n\n' for such files"
tokmap pack -q --dry-run --separator '\n\n' - <crlf.txt 2>err
holds err "does not occur in 'standard input', which has CRLF line ends"
tokmap encode --separator '\n\n' crlf.txt 2>err >out
equal "$(cat err)" "tokmap encode: $ends"
tokmap train-tokenizer -q --vocab-size 260 --separator '\n\n' -o vocabulary crlf.txt 2>err
holds err "$ends"
printf 'one\r\ntrennt\\\r\ntwo\r\n' >letters.txt
tokmap pack -q --dry-run --separator 'trennt\\\n' letters.txt 2>err
holds err "use --separator 'trennt\\\\\r\n' for such files"
tokmap pack -q --separator '\n\n' -o w lf.txt 2>err
equal "$(cat err)" ''
exits 1 tokmap pack -q --separator '\n\n' --max-record 5 -o x crlf.txt 2>err
holds err 'document 0 (at line 1) is longer than the limit of 5 bytes, perhaps because --separator does not occur'

# A byte order mark is kept, and counted.
printf '\357\273\277one\n\n\357\273\277two' >mark.txt
for option in --input-format=text '--separator=\n\n'; do
    tokmap pack --no-eod --force "$option" -o mark mark.txt >report
    equal "$(head -c 6 mark.bin | od -An -v -tu2 | tr -s ' \n' ' ')" ' 239 187 191 '
    holds report 'byte order marks                        1  kept, since texts begin with them'
done
# Options that are wrong.
exits 2 tokmap pack --separator '' -o m in.txt 2>err
holds err '--separator needs at least one character'
exits 2 tokmap pack --separator '\q' -o m in.txt 2>err
holds err "--separator '\\q' has an unknown escape"
exits 2 tokmap pack --separator '\x4' -o m in.txt 2>err
holds err 'unknown escape'
exits 2 tokmap pack --separator x --input-format jsonl -o m in.txt 2>err
holds err '--separator is about text files'
