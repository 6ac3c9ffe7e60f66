#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh: the whole way from text found on this machine to batches in a program, with a check after each step. `make
# demo` runs it.
#
# DEMO_TOKMAP names another command, such as an installed one, and DEMO_CONSUMER another demo_consumer. The script works
# in build/demo, which it empties first. The dataset and the run stay there for inspection. The exit status is
# 0 only if every check succeeded.
set -u
LC_ALL=C
export LC_ALL
BUILD=${BUILD:-build}
case $BUILD in
/*) build=$BUILD ;;
*) build=$(pwd)/$BUILD ;;
esac
tokmap=${DEMO_TOKMAP:-$build/bin/tokmap}
consumer=${DEMO_CONSUMER:-$build/tests/consumer}
demo=$build/demo
top=$(pwd)
checks=0
began=$(date +%s)

title() { printf '\n%s\n' "$*"; }
say() { printf '  %s\n' "$*"; }
good() {
    checks=$((checks + 1))
    printf '  ok: %s\n' "$*"
}
bad() {
    printf '  WRONG: %s\n' "$*"
    [ ! -s "$demo/err" ] || sed 's/^/    /' "$demo/err" | head -n 20
    printf '\nmake demo failed; its files are in %s\n' "$demo"
    exit 1
}
# holds SENTENCE COMMAND...: checks that the command succeeds, and prints the sentence.
holds() {
    sentence=$1
    shift
    if "$@" 2>"$demo/err"; then good "$sentence"; else bad "$sentence"; fi
}
now_ns() { date +%s%N; }
# value NAME FILE: prints the value in a line "NAME value". field NAME FILE: prints a number or text of a flat JSON
# object.
value() { awk -v name="$1" '$1 == name { print $2; exit }' "$2"; }
field() { tr ',{}' '\n\n\n' <"$2" | sed -n "s/^ *\"$1\": *\"\{0,1\}\([^\"]*\)\"\{0,1\} *\$/\1/p" | head -n 1; }
rate() { awk -v bytes="$1" -v ns="$2" 'BEGIN { printf "%.0f", bytes / (ns / 1000) }'; } # MB/s

rm -rf "$demo"
mkdir -p "$demo/data" || exit 1
: >"$demo/err"

# ---- text ----
title "Text of this machine"
total_wanted=24000000
# collect FOLDER BYTES: lists regular files below a folder, ordered by path, up to a total size. Names that contain a
# newline are left out.
collect() {
    [ -d "$1" ] || return 0
    find "$1" -type f ! -name '*.pyc' ! -name '*.so*' ! -name '*.a' ! -name '*.o' ! -name '*.mo' ! -name '*.png' \
        ! -name '*.jpg' ! -name '*.gif' ! -name '*.pdf' ! -name '*
*' -size -4000k -size +0 -printf '%s %p\n' 2>/dev/null | sort -k 2 | awk -v most="$2" -v files=1500 '
            sum + $1 <= most && n < files { sum += $1; n++; print }'
}
gather() {
    for folder in /usr/share/common-licenses /usr/share/doc /usr/include /usr/share/perl /usr/lib/python3.[0-9]*; do
        collect "$folder" "$1"
    done >"$demo/files"
    collected=$(awk '{ s += $1 } END { print s + 0 }' "$demo/files")
}
gather 9000000
[ "$collected" -ge $total_wanted ] || gather 30000000
own=0
while [ "$collected" -lt $total_wanted ]; do # add copies of this tree until there is enough text
    own=$((own + 1))
    mkdir -p "$demo/own/$own"
    find "$top/src" "$top/include" "$top/tokenize_tools" "$top/bench" "$top/tests" -type f \
        \( -name '*.[ch]' -o -name '*.md' -o -name '*.sh' \) | while read -r file; do
        name=$(echo "${file#"$top"/}" | tr / _)
        cp "$file" "$demo/own/$own/$name" && echo "$(wc -c <"$file") $demo/own/$own/$name"
    done >>"$demo/files"
    collected=$(awk '{ s += $1 } END { print s + 0 }' "$demo/files")
    [ $own -lt 200 ] || break
done
for folder in /usr/share/common-licenses /usr/share/doc /usr/include /usr/share/perl /usr/lib/python "$demo/own"; do
    awk -v folder="$folder" 'index($0, " " folder) { s += $1; n++ }
        END { if (n) printf "  %-28s %6d files %8.1f MB\n", folder, n, s / 1e6 }' "$demo/files"
done
[ $own = 0 ] || say "the machine has too little text; the last line is $own copies of this project's own tree"
cut -d' ' -f2- "$demo/files" >"$demo/paths"
holds "at least 20 MB of text were found: $((collected / 1000000)) MB as stored" test "$collected" -ge 20000000

# ---- pack ----
title "Pack"
say '$ tokmap pack --eod --invalid-utf8 skip --on-error skip -o data/text FILE...'
before=$(now_ns)
tr '\n' '\0' <"$demo/paths" | xargs -0 -x "$tokmap" pack --eod --invalid-utf8 skip --on-error skip --json \
    -o "$demo/data/text" >"$demo/pack.json" 2>"$demo/err" || bad "pack"
pack_ns=$(($(now_ns) - before))
"$tokmap" info --json "$demo/data/text" >"$demo/info.json" 2>"$demo/err" || bad "info"
tokens=$(field tokens "$demo/info.json")
documents=$(field documents "$demo/info.json")
text_bytes=$((tokens - documents))
holds "the .bin contains nothing but the $tokens tokens of two bytes" \
    test "$(wc -c <"$demo/data/text.bin")" = $((tokens * 2))
holds "at least 20 MB of text went in: $((text_bytes / 1000000)) MB in $documents documents" test $text_bytes -ge 20000000
skipped=$(($(field files_skipped "$demo/pack.json") + $(field records_skipped "$demo/pack.json")))
holds "the report accounts for every file: $(wc -l <"$demo/paths") = $documents packed + $skipped that are not UTF-8" \
    test "$(wc -l <"$demo/paths")" = $((documents + skipped))
before=$(now_ns)
tr '\n' '\0' <"$demo/paths" | xargs -0 -x "$tokmap" pack --eod --invalid-utf8 skip --on-error skip --threads 1 \
    -o "$demo/again" >/dev/null 2>"$demo/err" || bad "pack again"
holds "packing again with one thread produces the same bytes" cmp "$demo/data/text.bin" "$demo/again.bin"
holds "and the same index" cmp "$demo/data/text.tmx" "$demo/again.tmx"
rm -f "$demo"/again.*

# ---- train ----
title "A vocabulary trained on this text, and the text packed with it"
mkdir -p "$demo/vocab"
say "\$ tokmap train-tokenizer --vocab-size 8192 --special-tokens '<|endoftext|>' -o vocab/tokenizer FILE..."
before=$(now_ns)
tr '\n' '\0' <"$demo/paths" | xargs -0 -x "$tokmap" train-tokenizer --vocab-size 8192 --special-tokens '<|endoftext|>' \
    --invalid-utf8 skip --on-error skip --json -o "$demo/vocab/tokenizer" >"$demo/train.json" 2>"$demo/err" || bad "train"
train_ns=$(($(now_ns) - before))
holds "vocab/tokenizer.json and .tiktoken contain 8192 tokens" test "$(field vocabulary "$demo/train.json")" = 8192
tr '\n' '\0' <"$demo/paths" | xargs -0 -x "$tokmap" train-tokenizer --vocab-size 8192 --special-tokens '<|endoftext|>' --threads 1 \
    --invalid-utf8 skip --on-error skip -q -o "$demo/again" 2>"$demo/err" || bad "train again"
holds "training again with one thread produces the same bytes" cmp "$demo/vocab/tokenizer.json" "$demo/again.json"
rm -f "$demo"/again.*
say '$ tokmap pack -t vocab --eod -o trained/text FILE...'
mkdir -p "$demo/trained"
before=$(now_ns)
tr '\n' '\0' <"$demo/paths" | xargs -0 -x "$tokmap" pack -t "$demo/vocab" --eod --invalid-utf8 skip --on-error skip \
    -o "$demo/trained/text" >/dev/null 2>"$demo/err" || bad "pack with the vocabulary"
trained_ns=$(($(now_ns) - before))
"$tokmap" info --json "$demo/trained/text" >"$demo/trained.json" 2>"$demo/err" || bad "info"
trained_tokens=$(field tokens "$demo/trained.json")
holds "as many documents as with the byte tokenizer: $documents" test "$(field documents "$demo/trained.json")" = "$documents"
holds "and as many tokens as training counted, plus one per document: $trained_tokens" \
    test "$trained_tokens" = $(($(field tokens "$demo/train.json") + documents))
bytes_each=$(awk -v b=$text_bytes -v t=$((trained_tokens - documents)) 'BEGIN { printf "%.2f", b / t }')
say "$bytes_each bytes per token"
holds "every byte is valid" "$tokmap" verify -q "$demo/trained/text"

# ---- verify ----
title "Verify"
say '$ tokmap verify data/text'
before=$(now_ns)
holds "every byte is valid" sh -c "'$tokmap' verify '$demo/data/text' >'$demo/verify.txt'"
verify_ns=$(($(now_ns) - before))
dataset_bytes=$(($(wc -c <"$demo/data/text.bin") + $(wc -c <"$demo/data/text.tmx")))

# ---- show ----
title "One document and where it came from"
number=$((documents / 2))
say "\$ tokmap show data/text --document $number"
"$tokmap" show "$demo/data/text" --document $number >"$demo/document.txt" 2>"$demo/provenance" || bad "show"
source=$("$tokmap" show "$demo/data/text" --document $number --json | sed -n 's/.*"path": *"\([^"]*\)".*/\1/p' | head -n 1)
head -n 6 "$demo/document.txt" | cut -c 1-100 | sed 's/^/  | /'
say "from $source"
case $source in
*.gz) gzip -dc "$source" >"$demo/source.txt" ;;
*) cp "$source" "$demo/source.txt" ;;
esac
holds "its text equals the file, byte for byte: $(wc -c <"$demo/source.txt") bytes" cmp "$demo/document.txt" "$demo/source.txt"
"$tokmap" show "$demo/trained/text" -t "$demo/vocab" --document $number >"$demo/document.txt" 2>"$demo/err" || bad "show"
holds "the text decoded with the trained vocabulary does, too" cmp "$demo/document.txt" "$demo/source.txt"

# ---- two epochs ----
title "Two passes through the loader"
cat >"$demo/train.run" <<'RUN'
seq_len  512
batch    48          # rows of a global batch, over all ranks
seed     1234
source   text  data/text
passes   2
RUN
sed 's/^/  | /' "$demo/train.run"
holds "audit: each pass has every window once, and 6 ranks get disjoint rows" \
    sh -c "'$tokmap' audit '$demo/train.run' --ranks 6 >'$demo/audit.txt'"
"$consumer" stream "$demo/train.run" "$demo/data/text.bin" >"$demo/stream.txt" 2>"$demo/err" || bad "two passes"
good "$(value tokens "$demo/stream.txt") tokens in $(value steps "$demo/stream.txt") steps, each compared with the .bin;" \
    "each pass has every window once ($(value remainder "$demo/stream.txt") left over)"
holds "the second pass cuts the windows at other places: $(value shift "$demo/stream.txt") tokens further" \
    test "$(value shift "$demo/stream.txt")" -gt 0
"$consumer" first "$demo/train.run" >"$demo/first.txt" 2>"$demo/err" || bad "the first batch"

# ---- kill and resume ----
title "Killed at a random step, resumed on another number of ranks"
sed 's/^passes.*/steps 120/' "$demo/train.run" >"$demo/killed.run"
"$consumer" rows "$demo/killed.run" 0 1 "$demo/none" "$demo/undisturbed" 2>"$demo/err" || bad "the undisturbed run"
random=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
die=$((20 + random % 90))
for rank in 0 1 2 3; do
    # The subshell hides the shell's message about the killed process.
    (
        "$consumer" rows "$demo/killed.run" $rank 4 "$demo/checkpoint" "$demo/killed.$rank" $die
        echo $? >"$demo/status.$rank"
    ) >/dev/null 2>&1 &
done
wait
for rank in 0 1 2 3; do
    holds "rank $rank of 4 died by SIGKILL in step $die" test "$(cat "$demo/status.$rank")" = 137
done
saved=$(sed -n 's/^tokmap1 step=\([0-9]*\) .*/\1/p' "$demo/checkpoint")
say "the checkpoint is one line: $(cut -d" " -f 1-3 "$demo/checkpoint") ..."
holds "the checkpoint is at most five steps older" test $((die - saved)) -ge 0 -a $((die - saved)) -le 5
for rank in 0 1 2; do
    "$consumer" rows "$demo/killed.run" $rank 3 "$demo/checkpoint" "$demo/resumed.$rank" 2>"$demo/err" ||
        bad "rank $rank of 3"
done
good "resumed on 3 ranks from step $saved to the end"
# The steps of the killed ranks before the checkpoint, and all steps of the resumed ranks.
{
    awk -v saved="$saved" '$1 + 0 < saved' "$demo"/killed.[0-3]
    cat "$demo"/resumed.[0-2]
} | sort >"$demo/together"
sort "$demo/undisturbed" >"$demo/expected"
holds "together these are the same $(wc -l <"$demo/expected") rows as without the kill" cmp "$demo/together" "$demo/expected"
sed 's/^seed .*/seed 4321/' "$demo/killed.run" >"$demo/edited.run"
if "$consumer" rows "$demo/edited.run" 0 1 "$demo/checkpoint" "$demo/nothing" 2>"$demo/edited"; then
    bad "a run with an edited seed was resumed"
fi
good "resuming with an edited seed is refused:$(cut -d: -f3- "$demo/edited" | cut -d";" -f1)"

# ---- a flipped bit ----
title "One bit flipped in a copy"
mkdir -p "$demo/flipped"
cp "$demo/data/text.bin" "$demo/data/text.tmx" "$demo/flipped/"
random=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
at=$((random % (tokens * 2)))
byte=$(od -An -j $at -N1 -tu1 "$demo/flipped/text.bin" | tr -d ' ')
printf "\\$(printf %03o $((byte ^ (1 << random % 8))))" |
    dd of="$demo/flipped/text.bin" bs=1 seek=$at conv=notrunc 2>/dev/null
block=$((at / 1048576))
"$tokmap" verify "$demo/flipped/text" >"$demo/flipped.txt" 2>&1
status=$?
say "bit $((random % 8)) of byte $at, in block $block"
say "\$ tokmap verify flipped/text"
sed 's/^/  | /' "$demo/flipped.txt"
holds "verify exits with status 1" test $status = 1
holds "names block $block" grep -qE "block $block([^0-9]|\$)" "$demo/flipped.txt"
holds "and its first byte, $((block * 1048576))" grep -qE "(^|[^0-9])$((block * 1048576))([^0-9]|\$)" "$demo/flipped.txt"
rm -rf "$demo/flipped" "$demo/own"

# ---- measurements ----
"$consumer" copy >"$demo/copy.txt" 2>"$demo/err" || bad "copy bandwidth"
copy=$(value copy_mb_s "$demo/copy.txt")
stream_bytes=$(($(value tokens "$demo/stream.txt") * 2))
stream_ns=$(awk '$1 == "next_seconds" { printf "%.0f", $2 * 1e9 }' "$demo/stream.txt")
title "Measurements"
line() { printf '  %-34s %14s %10s %s\n' "$@"; }
line "" "" "of copy" ""
line "memory copy, one thread" "$copy MB/s" "100%" ""
share() { awk -v a="$1" -v b="$copy" 'BEGIN { printf "%.1f%%", 100 * a / b }'; }
pack_rate=$(rate $text_bytes $pack_ns)
verify_rate=$(rate $dataset_bytes $verify_ns)
stream_rate=$(rate $stream_bytes $stream_ns)
line "pack, text, synced to disk" "$pack_rate MB/s" "$(share $pack_rate)" "$((text_bytes / 1000000)) MB of text"
line "train, 8192 tokens" "$(rate $text_bytes $train_ns) MB/s" "" "of text, counted and merged"
line "pack with that vocabulary" "$(rate $text_bytes $trained_ns) MB/s" "" "$trained_tokens tokens, $bytes_each bytes each"
line "verify" "$verify_rate MB/s" "$(share $verify_rate)" "$((dataset_bytes / 1000000)) MB"
line "next(), two passes" "$stream_rate MB/s" "$(share $stream_rate)" \
    "$(awk -v b=$stream_bytes -v n=$stream_ns 'BEGIN { printf "%.0f M tokens/s", b / 2 / (n / 1000) }')"
line "run opened to first batch" "$(value first_batch_ms "$demo/first.txt") ms" "" ""
line "stalls" "$(value waits "$demo/stream.txt")" "" \
    "calls that waited for a batch, $(value wait_ms "$demo/stream.txt") ms in all, the longest $(value largest_wait_ms "$demo/stream.txt") ms"
line "packed" "$documents" "" "documents, $tokens tokens, $skipped files skipped"
printf '\nAll %d checks succeeded in %d s. make test runs the tests; README.md describes the next steps.\n' \
    $checks $(($(date +%s) - began))
