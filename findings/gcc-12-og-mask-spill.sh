#!/bin/sh
# SPDX-License-Identifier: MIT
# gcc-12-og-mask-spill.sh: with -Og, gcc 12 stores 2 bytes of an AVX-512 mask and reads 4 or 8 back.
#
# gcc 12.2.0-14+deb12u1 (Debian 12) and 14.2.0-19 (Debian 13). A comparison of vectors gives a mask of 8 or 16 bits, and
# C says that `uint32_t bits = mask;` has zeros above them. Where such a number has to wait in memory, gcc 12 with -Og
# stores it by kmovw, which writes 2 bytes, and loads 4: the rest is what the stack had there. It happens only with -Og,
# the level that is meant for debugging; -O1 to -O3 load 2 bytes with zeros, and so does gcc 14 with any level. So code
# that loops over the bits of a mask reads beyond its arrays in a debug build, or with sanitizers, which need more
# registers, and the sanitizer accuses the code. A cure is -O1. Each line has what two functions returned of a mask whose
# eight high bits are set (ff00) while the stack is full of 5a. Output seen:
#
#   compiler                 -Og              -O1    -O2
#   gcc 12, 16 bits to 32    5a5aff00         ff00   ff00
#   gcc 12, 16 bits to 64    5a5a5a5a5a5aff00 ff00   ff00
#   gcc 14, both             ff00             ff00   ff00
#
# It needs mmdebstrap (apt-get install mmdebstrap), and a processor with AVX-512.
set -eu

grep -q avx512vl /proc/cpuinfo || { echo "this processor has no AVX-512" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/try.c" <<'END'
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
/* Returns a mask that has waited in memory, since no register was free. */
#define WAITING(type)                                                                                                  \
    const __m512i numbers = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);                    \
    type bits = _mm512_cmpgt_epi32_mask(numbers, _mm512_set1_epi32(7));                                                \
    __asm__ volatile("" ::: "memory", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",       \
                     "r13", "r14", "r15", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7");                             \
    return bits
__attribute__((noinline)) static uint32_t to_32(void) { WAITING(uint32_t); }
__attribute__((noinline)) static uint64_t to_64(void) { WAITING(uint64_t); }
__attribute__((noinline)) static void fill_stack(void)
{
    volatile char bytes[512];
    for (int i = 0; i < 512; i++)
        bytes[i] = 0x5a;
}

int main(void)
{
    fill_stack();
    printf("%x ", (unsigned)to_32());
    fill_stack();
    printf("%llx\n", (unsigned long long)to_64());
    return 0;
}
END

# Prints what the program of a release's compiler prints with each level.
try() {
    cat >"$work/hook" <<END
#!/bin/sh
cp '$work/try.c' "\$1/try.c"
for level in -Og -O1 -O2; do
    chroot "\$1" sh -c "$2 \$level -mavx512f -mavx512bw -mavx512vl -o /try /try.c && /try"
done >'$work/seen'
END
    chmod +x "$work/hook"
    mmdebstrap --quiet --variant=minbase --include="$2=$3,libc6-dev" --customize-hook="$work/hook" "$1" /dev/null
    echo "$2 $3: 32 and 64 bits with -Og, -O1, -O2" >&2
    cat "$work/seen" >&2
    cat "$work/seen"
}
old=$(try bookworm gcc-12 12.2.0-14+deb12u1)
new=$(try trixie gcc-14 14.2.0-19)
right='ff00 ff00'
[ "$new" = "$right
$right
$right" ] && [ "$old" = "5a5aff00 5a5a5a5a5a5aff00
$right
$right" ]
