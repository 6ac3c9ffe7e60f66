/* SPDX-License-Identifier: MIT */
/* md5.c - see md5.h. */
#include "md5.h"

#include <string.h>

#include "common/bytes.h"

#define BLOCK 64

static inline uint32_t rotate(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

/* One step of round 1 to 4: a = b + rotate(a + f(b, c, d) + word + constant, by). */
#define F1(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define F2(b, c, d) ((c) ^ ((d) & ((b) ^ (c))))
#define F3(b, c, d) ((b) ^ (c) ^ (d))
#define F4(b, c, d) ((c) ^ ((b) | ~(d)))
#define STEP(f, a, b, c, d, word, constant, by)                                                                        \
    (a) = (b) + rotate((a) + f(b, c, d) + load32(block + 4 * (word)) + (constant), by)
#define FOUR(f, i, w0, w1, w2, w3, r0, r1, r2, r3)                                                                     \
    STEP(f, a, b, c, d, w0, constants[i], r0);                                                                         \
    STEP(f, d, a, b, c, w1, constants[(i) + 1], r1);                                                                   \
    STEP(f, c, d, a, b, w2, constants[(i) + 2], r2);                                                                   \
    STEP(f, b, c, d, a, w3, constants[(i) + 3], r3)

static void blocks_add(uint32_t words[4], const uint8_t *block, size_t blocks)
{
    static const uint32_t constants[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
        0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
        0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
        0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
        0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
        0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
        0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
    uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
    for (; blocks; blocks--, block += BLOCK) {
        FOUR(F1, 0, 0, 1, 2, 3, 7, 12, 17, 22);
        FOUR(F1, 4, 4, 5, 6, 7, 7, 12, 17, 22);
        FOUR(F1, 8, 8, 9, 10, 11, 7, 12, 17, 22);
        FOUR(F1, 12, 12, 13, 14, 15, 7, 12, 17, 22);
        FOUR(F2, 16, 1, 6, 11, 0, 5, 9, 14, 20);
        FOUR(F2, 20, 5, 10, 15, 4, 5, 9, 14, 20);
        FOUR(F2, 24, 9, 14, 3, 8, 5, 9, 14, 20);
        FOUR(F2, 28, 13, 2, 7, 12, 5, 9, 14, 20);
        FOUR(F3, 32, 5, 8, 11, 14, 4, 11, 16, 23);
        FOUR(F3, 36, 1, 4, 7, 10, 4, 11, 16, 23);
        FOUR(F3, 40, 13, 0, 3, 6, 4, 11, 16, 23);
        FOUR(F3, 44, 9, 12, 15, 2, 4, 11, 16, 23);
        FOUR(F4, 48, 0, 7, 14, 5, 6, 10, 15, 21);
        FOUR(F4, 52, 12, 3, 10, 1, 6, 10, 15, 21);
        FOUR(F4, 56, 8, 15, 6, 13, 6, 10, 15, 21);
        FOUR(F4, 60, 4, 11, 2, 9, 6, 10, 15, 21);
        a = words[0] += a;
        b = words[1] += b;
        c = words[2] += c;
        d = words[3] += d;
    }
}

void md5(const void *bytes, size_t count, uint8_t digest[MD5_BYTES])
{
    uint32_t words[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    uint8_t last[2 * BLOCK] = {0};
    const size_t whole = count / BLOCK, rest = count % BLOCK, end = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    if (whole)
        blocks_add(words, bytes, whole);
    if (rest)
        memcpy(last, (const uint8_t *)bytes + whole * BLOCK, rest);
    last[rest] = 0x80;
    store64(last + end - 8, (uint64_t)count * 8);
    blocks_add(words, last, end / BLOCK);
    memcpy(digest, words, MD5_BYTES);
}
