#!/bin/sh
# SPDX-License-Identifier: MIT
# test_readme.sh: builds the complete programs of tests/examples with warnings as errors and runs them on a small
# dataset: from the start, on two ranks, and resumed from the printed cursor. Then compiles the C of README.md and runs
# its commands about packing.
set -u
[ -x "$TOKMAP" ] || { echo "skipped: the command tokmap is not built"; exit 77; }
check() {
    name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name: $*"; fi
}
sanitize=${SANITIZE:+-fsanitize=$SANITIZE}
build() { # build NAME: the complete program tests/examples/NAME.c
    $CC -std=c11 -pedantic -Wall -Wextra -Werror $CPPFLAGS $CFLAGS $sanitize -Iinclude "tests/examples/$1.c" \
        "$BUILD_DIR/lib/libtokmap.a" -lzstd -pthread $LDFLAGS $LIBS -ldl -o "$TMPDIR/$1"
}
check "train.c builds without a warning" build train

mkdir -p "$TMPDIR/texts"
for i in 1 2 3 4 5 6 7 8 9; do
    awk -v i=$i 'BEGIN { for (n = 0; n < 400; n++) print "text " i ", line " n }' >"$TMPDIR/texts/$i.txt"
done
check "pack" "$TOKMAP" pack --force --eod -o "$TMPDIR/data" "$TMPDIR/texts"
printf '%s\n' 'seq_len 64 # tokens' 'batch 6' 'seed 7' 'source web data' 'steps 40' >"$TMPDIR/train.run"
check "train runs to the end" sh -c "'$TMPDIR/train' '$TMPDIR/train.run' >'$TMPDIR/whole'"
check "train delivers 40 steps of 6 rows" test "$(grep -c '^6 rows: ' "$TMPDIR/whole")" = 40
check "a rank of two gets half of the rows" sh -c \
    "test \$('$TMPDIR/train' '$TMPDIR/train.run' 1 2 | grep -c '^3 rows: ') = 40"
cursor=$(sed -n 's/^after step 0: //p' "$TMPDIR/whole")
check "train prints a cursor" test -n "$cursor"
check "train resumes from the cursor" sh -c \
    "'$TMPDIR/train' '$TMPDIR/train.run' 0 1 '$cursor' >'$TMPDIR/rest'"
grep rows "$TMPDIR/whole" | tail -n +2 >"$TMPDIR/expected"
check "the resumed rows are the same" sh -c "grep rows '$TMPDIR/rest' | cmp - '$TMPDIR/expected'"

# The program in Python, with the library of this build, prints the same rows and the same cursor.
if [ -z "${SANITIZE:-}" ] && command -v "${PYTHON:-python3}" >/dev/null 2>&1; then
    python() { TOKMAP_LIBRARY=$BUILD_DIR/lib/libtokmap.so.0 PYTHONPATH=src/python PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" "$@"; }
    check "train.py runs to the end" eval 'python tests/examples/train.py "$TMPDIR/train.run" >"$TMPDIR/python"'
    check "train.py prints what train.c prints" cmp "$TMPDIR/python" "$TMPDIR/whole"
    check "train.py resumes from the cursor" eval \
        'python tests/examples/train.py "$TMPDIR/train.run" 0 1 "$cursor" | grep rows | cmp - "$TMPDIR/expected"'
else
    echo "ok - train.py # SKIP no python3 that can load this build"
fi

# The programs that write a dataset from their own ids make the dataset that the command makes.
check "write_shard.c builds without a warning" build write_shard
awk 'BEGIN { for (n = 0; n < 300; n++) print "line " n }' >"$TMPDIR/lines.txt"
awk 'BEGIN { for (n = 0; n < 300; n++) print "{\"text\": \"line " n "\"}" }' >"$TMPDIR/lines.jsonl"
check "write_shard writes a dataset" sh -c \
    "'$TMPDIR/write_shard' '$TMPDIR/lines' <'$TMPDIR/lines.txt' >'$TMPDIR/content'"
check "the dataset is sound" "$TOKMAP" verify -q "$TMPDIR/lines"
check "pack the same documents" "$TOKMAP" pack -q -t bytes -o "$TMPDIR/packed" "$TMPDIR/lines.jsonl"
check "the tokens are those of the command" cmp "$TMPDIR/lines.bin" "$TMPDIR/packed.bin"
check "the content id is that of the command" sh -c \
    "'$TOKMAP' info --json '$TMPDIR/packed' | grep -q \$(cat '$TMPDIR/content')"
"$TMPDIR/write_shard" "$TMPDIR/lines" <"$TMPDIR/lines.txt" 2>"$TMPDIR/err"
status=$?
check "a dataset that exists is not overwritten" test $status = 1
check "and the message says so" grep -q 'already exists' "$TMPDIR/err"
if [ -z "${SANITIZE:-}" ] && command -v "${PYTHON:-python3}" >/dev/null 2>&1; then
    check "write_shard.py writes the same dataset" eval \
        'python tests/examples/write_shard.py "$TMPDIR/lines-py" <"$TMPDIR/lines.txt" | cmp - "$TMPDIR/content"'
fi

# The program for a GPU, on the emulated driver, must print the same rows.
check "train_device.c builds without a warning" build train_device
check "train_device runs to the end" sh -c \
    "TOKMAP_CUDA_DRIVER='$BUILD_DIR/tests/cuda_software/libcuda.so.1' '$TMPDIR/train_device' '$TMPDIR/train.run' \
        >'$TMPDIR/device'"
grep rows "$TMPDIR/whole" >"$TMPDIR/expected"
check "train_device prints the same rows" cmp "$TMPDIR/device" "$TMPDIR/expected"
TOKMAP_CUDA_DRIVER=/nowhere/libcuda.so.1 "$TMPDIR/train_device" "$TMPDIR/train.run" 2>"$TMPDIR/err"
status=$?
check "without a driver train_device exits with 1" test $status = 1
check "and the message names the driver" grep -q '/nowhere/libcuda.so.1' "$TMPDIR/err"
"$TMPDIR/train" "$TMPDIR/no such.run" 2>"$TMPDIR/err"
status=$?
check "with a missing run file train exits with 1" test $status = 1
check "and the message names the file" grep -q 'no such.run' "$TMPDIR/err"

# The program with profiler ranges needs the headers of NVTX, which the CUDA toolkit has.
nvtx=
for folder in /usr/include /usr/local/cuda/include; do
    [ ! -f "$folder/nvtx3/nvToolsExt.h" ] || nvtx=$folder
done
if [ -n "$nvtx" ]; then
    check "train_nvtx.c builds without a warning" $CC -std=gnu11 -Wall -Wextra -Werror $CPPFLAGS $CFLAGS $sanitize \
        -Iinclude -isystem "$nvtx" tests/examples/train_nvtx.c "$BUILD_DIR/lib/libtokmap.a" -lzstd -pthread $LDFLAGS \
        $LIBS -ldl -o "$TMPDIR/train_nvtx"
    check "train_nvtx delivers all rows" sh -c "'$TMPDIR/train_nvtx' '$TMPDIR/train.run' | grep -qx '240 rows'"
else
    echo "ok - train_nvtx.c # SKIP the headers of NVTX are not installed"
fi

# The C of README.md and of the page about packing from Python is compiled inside a function that declares what they
# leave to the reader.
for part in host writer; do
    {
        cat <<'C'
#include <stdlib.h>
#include <tokmap/pack.h>
#include <tokmap/tokmap.h>
static void fatal(const struct tokmap_error *e) { exit(e->status != TOKMAP_OK); }
static void train_step(const int32_t *x, const int32_t *y, uint64_t rows) { (void)x, (void)y, (void)rows; }
static int next_document(int32_t *ids, uint64_t *count) { return (int)(*count = 0, ids[0] = 0); }
int sketch(uint64_t dp_rank, uint64_t dp_world, const char *saved_cursor, int32_t *x, int32_t *y);
int sketch(uint64_t dp_rank, uint64_t dp_world, const char *saved_cursor, int32_t *x, int32_t *y)
{
    int32_t ids[4];
    uint64_t count;
C
        [ $part = host ] || echo "    struct tokmap_error e = {0};"
        cat README.md src/python/PACK.md | awk -v part=$part '$0 == "<!-- sketch: " part " -->" { wanted = 1; next }
            wanted && /^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside'
        echo "    return (void)next_document, (void)ids, (void)count, (void)train_step, (void)dp_rank, (void)dp_world,"
        echo "           (void)saved_cursor, (void)x, (void)y, 0;"
        echo "}"
    } >"$TMPDIR/sketch.c"
    check "there is C for the $part" grep -qE 'tokmap_(loader|writer)_open' "$TMPDIR/sketch.c"
    check "the C for the $part compiles" $CC -std=c11 -Wall -Wextra -Werror -Wno-misleading-indentation $CPPFLAGS \
        -Iinclude -fsyntax-only "$TMPDIR/sketch.c"
done

# The commands of README's section about packing run unchanged, with texts of a few MB, and a tokenizer trained here
# instead of the one that README downloads. tests/python/test_readme.py types the others.
quick=$TMPDIR/quick
mkdir -p "$quick/texts" "$quick/more"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    awk -v i=$i 'BEGIN { for (n = 0; n < 8000; n++) print "text " i ", line " n " of a few words" }' >"$quick/texts/$i.txt"
done
awk 'BEGIN { for (n = 0; n < 20000; n++) print "{\"text\": \"document " n " is a note of a few words\"}" }' \
    >"$quick/more/records.jsonl"
if command -v zstd >/dev/null 2>&1; then
    zstd -q --rm "$quick/more/records.jsonl"
    "$TOKMAP" train-tokenizer -q -o "$quick/tokenizer" --vocab-size 262 --special-tokens '<|endoftext|>' "$quick/texts"
    sed -n '/^## Pack, /,/^## The run/p' README.md | grep '^tokmap ' >"$quick/lines"
    check "README has a quick start" test "$(wc -l <"$quick/lines")" -ge 5
    while read -r line; do
        if (cd "$quick" && PATH=$BUILD_DIR/bin:$PATH sh -c "$line" >out 2>err </dev/null); then
            echo "ok - $line"
        else
            cat "$quick/err"
            echo "not ok - $line"
        fi
    done <"$quick/lines"
else
    echo "ok - the quick start # SKIP the command zstd is missing"
fi

# Every command and every target of make that README and the pages name exists.
pages="README.md .github/INSTALL.md $(grep -l '^<!-- example: ' src/*/*.md tokenize_tools/*/*/*.md)"
for name in $(awk '/^```/ { code = !code } !code { sub(/^tokmap /, "") } 1' $pages | grep -oE '(^|`)tokmap [a-z-]+' |
    sed 's/.*tokmap //' | sort -u); do
    check "tokmap $name" sh -c "'$TOKMAP' $name --help >/dev/null"
done
for name in $(cat $pages | grep -oE '(^|`)make [a-z]+' | sed 's/.*make //' | sort -u); do
    check "make $name" grep -q "^$name:.*##" Makefile src/make/*.mk tests/tests.mk
done
