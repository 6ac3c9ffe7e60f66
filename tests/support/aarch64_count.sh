#!/bin/sh
# SPDX-License-Identifier: MIT
# aarch64_count.sh: counts the instructions that the aarch64 build executes for each byte, so that a regression shows
# although nothing can be timed under emulation. tests/support/aarch64.sh calls it with BUILD_DIR, the folder of the
# aarch64 build, and QEMU_LD_PREFIX. It prints a line of TAP for each kind of work.
#
# The work is done on N and on 2 N bytes; the difference, divided by N, is free of what a process does once. A bound is
# a quarter above what gcc 12 needed when it was written down, because other compilers choose other instructions.
set -u
folder=$BUILD_DIR/count
rm -rf "$folder" && mkdir -p "$folder" || exit 1
skip() { echo "ok - instructions a byte # SKIP $1"; exit 0; }

qemu-aarch64 "$BUILD_DIR/bin/tokmap" --version >"$folder/log" 2>&1 ||
    { echo "not ok - instructions a byte: $(head -n 1 "$folder/log")"; exit 1; }
for api in 1 2 3 4 5; do
    ${HOST_CC:-cc} -std=gnu11 -O2 -Wall -Wextra -DCOUNT_API=$api -fPIC -shared -o "$folder/count.so" \
        tests/support/qemu/count_instructions.c 2>"$folder/log" ||
        skip "the plugin for qemu cannot be compiled: $(head -n 1 "$folder/log")"
    qemu-aarch64 -plugin "$folder/count.so,into=$folder/count" "$BUILD_DIR/bin/tokmap" --version >"$folder/log" 2>&1 &&
        [ -s "$folder/count" ] && break
    rm -f "$folder/count"
done
[ -s "$folder/count" ] || skip "this qemu loads no plugin: $(head -n 1 "$folder/log")"

# count COMMAND...: prints the number of instructions of the command.
count() {
    rm -f "$folder/count"
    qemu-aarch64 -plugin "$folder/count.so,into=$folder/count" "$@" >"$folder/log" 2>&1 </dev/null ||
        { head -n 5 "$folder/log" >&2; echo 0; return; }
    cat "$folder/count"
}
# report NAME BYTES FEW MANY BOUND: FEW instructions for some input, MANY for BYTES bytes more.
report() {
    awk -v name="$1" -v bytes="$2" -v few="$3" -v many="$4" -v bound="$5" 'BEGIN {
        each = (many - few) / bytes
        good = few > 0 && many > few && each <= bound
        printf("%s - %s: %.2f instructions (at most %.2f)\n", good ? "ok" : "not ok", name, each, bound)
    }'
}

# Words with the frequencies of a natural language: the k-th has a share of about 1 / k.
awk 'BEGIN { srand(5); for (k = 0; k < 20000; k++) { w = ""; n = 2 + int(rand() * 8)
        for (i = 0; i < n; i++) w = w substr("etaoinshrdlucmfwypvbgkjqxz", 1 + int(rand() * rand() * 26), 1)
        word[k] = w }
    for (i = 0; i < 200000; i++) { w = word[int(exp(rand() * log(20000))) - 1]
        printf "%s%s", w, i % 17 == 16 ? ".\n" : i % 9 == 8 ? ", " : " " } }' >"$folder/all.txt"
bytes=400000
head -c $bytes "$folder/all.txt" >"$folder/few.txt"
head -c $((2 * bytes)) "$folder/all.txt" >"$folder/many.txt"
tokmap=$BUILD_DIR/bin/tokmap
qemu-aarch64 "$tokmap" train-tokenizer -q --vocab-size 4000 -o "$folder/vocabulary" "$folder/few.txt" >"$folder/log" 2>&1 ||
    { head -n 5 "$folder/log"; echo "not ok - instructions a byte: tokmap train-tokenizer"; exit 1; }

# pack_count TOKENIZER TEXT: the instructions of packing a text.
pack_count() {
    count "$tokmap" pack -q --force --threads 1 --checkpoint-seconds 0 -t "$1" --no-eod -o "$folder/$2" "$folder/$2.txt"
}
few=$(pack_count "$folder/vocabulary.json" few)
many=$(pack_count "$folder/vocabulary.json" many)
report "tokenizing and packing prose" $bytes "$few" "$many" 53.4
few=$(pack_count bytes few)
many=$(pack_count bytes many)
report "packing bytes" $bytes "$few" "$many" 6.9
few=$(count "$tokmap" verify -q "$folder/few")
many=$(count "$tokmap" verify -q "$folder/many")
report "verifying, a byte of text" $bytes "$few" "$many" 13.9

# load_count NAME SEQ_LEN: the instructions of a program that loads a dataset twice in random order and compares each
# token. Short rows show what a row costs besides its tokens.
load_count() {
    printf 'seq_len %s\nbatch 64\nseed 1\nsource s "%s"\npasses 2\n' "$2" "$folder/$1" >"$folder/$1.run"
    count "$BUILD_DIR/tests/consumer" stream "$folder/$1.run" "$folder/$1.bin"
}
few=$(load_count few 256)
many=$(load_count many 256)
report "loading rows and comparing each token, a token" $((2 * bytes)) "$few" "$many" 56.4
few=$(load_count few 8)
many=$(load_count many 8)
report "loading rows of 8 tokens, a row" $((2 * bytes / 8)) "$few" "$many" 2460
