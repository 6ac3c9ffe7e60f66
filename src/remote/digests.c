/* SPDX-License-Identifier: MIT */
#include "digests.h"

#include <string.h>

#include "common/bytes.h"

#define MD5_BLOCK 64

/* ---- SHA-256 ---- */

static uint32_t rotate_right(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static uint32_t big_load(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

#define SHA256_STEP(a, b, c, d, e, f, g, h, i)                                                                         \
    (h) += (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) + ((g) ^ ((e) & ((f) ^ (g)))) +            \
           constants[i] + w[i];                                                                                        \
    (d) += (h);                                                                                                        \
    (h) += (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) + (((a) & (b)) ^ ((c) & ((a) ^ (b))))

static void sha256_block(uint32_t words[8], const uint8_t *block)
{
    static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], a = words[0], b = words[1], c = words[2], d = words[3];
    uint32_t e = words[4], f = words[5], g = words[6], h = words[7];
    for (unsigned i = 0; i < 16; i++)
        w[i] = big_load(block + 4 * (size_t)i);
    for (unsigned i = 16; i < 64; i++) {
        const uint32_t early = w[i - 15], late = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(early, 7) ^ rotate_right(early, 18) ^ early >> 3) + w[i - 7] +
               (rotate_right(late, 17) ^ rotate_right(late, 19) ^ late >> 10);
    }
    for (unsigned i = 0; i < 64; i += 8) { /* after 8 steps, each word is in its variable again */
        SHA256_STEP(a, b, c, d, e, f, g, h, i);
        SHA256_STEP(h, a, b, c, d, e, f, g, i + 1);
        SHA256_STEP(g, h, a, b, c, d, e, f, i + 2);
        SHA256_STEP(f, g, h, a, b, c, d, e, i + 3);
        SHA256_STEP(e, f, g, h, a, b, c, d, i + 4);
        SHA256_STEP(d, e, f, g, h, a, b, c, i + 5);
        SHA256_STEP(c, d, e, f, g, h, a, b, i + 6);
        SHA256_STEP(b, c, d, e, f, g, h, a, i + 7);
    }
    words[0] += a;
    words[1] += b;
    words[2] += c;
    words[3] += d;
    words[4] += e;
    words[5] += f;
    words[6] += g;
    words[7] += h;
    explicit_bzero(w, sizeof w);
}

void sha256_begin(struct sha256 *hash)
{
    *hash = (struct sha256){
        .words = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *from, size_t count)
{
    const uint8_t *at = from;
    while (count) {
        const size_t filled = (size_t)(hash->bytes % SHA256_BLOCK);
        const size_t take = count < SHA256_BLOCK - filled ? count : SHA256_BLOCK - filled;
        memcpy(hash->block + filled, at, take);
        hash->bytes += take;
        at += take;
        count -= take;
        if (filled + take == SHA256_BLOCK)
            sha256_block(hash->words, hash->block);
    }
}

void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES])
{
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    const uint64_t bits = hash->bytes * 8;
    uint8_t length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    /* One to 64 bytes of padding, so that the length ends a block. */
    sha256_add(hash, padding, SHA256_BLOCK - (size_t)((hash->bytes + sizeof length) % SHA256_BLOCK));
    sha256_add(hash, length, sizeof length);
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        digest[i] = (uint8_t)(hash->words[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hmac(const void *key, size_t key_bytes, const void *text, size_t bytes, uint8_t digest[SHA256_BYTES])
{
    uint8_t inner[SHA256_BLOCK] = {0}, outer[SHA256_BLOCK];
    struct sha256 hash;
    if (key_bytes > SHA256_BLOCK) {
        sha256_begin(&hash);
        sha256_add(&hash, key, key_bytes);
        sha256_end(&hash, inner);
    } else if (key_bytes) {
        memcpy(inner, key, key_bytes);
    }
    for (unsigned i = 0; i < SHA256_BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha256_begin(&hash);
    sha256_add(&hash, inner, sizeof inner);
    sha256_add(&hash, text, bytes);
    sha256_end(&hash, digest);
    sha256_begin(&hash);
    sha256_add(&hash, outer, sizeof outer);
    sha256_add(&hash, digest, SHA256_BYTES);
    sha256_end(&hash, digest);
    explicit_bzero(inner, sizeof inner);
    explicit_bzero(outer, sizeof outer);
    explicit_bzero(&hash, sizeof hash);
}

/* ---- MD5 ---- */

static inline uint32_t rotate_left(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

/* One step of round 1 to 4: a = b + rotate_left(a + f(b, c, d) + word + constant, by). */
#define F1(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define F2(b, c, d) ((c) ^ ((d) & ((b) ^ (c))))
#define F3(b, c, d) ((b) ^ (c) ^ (d))
#define F4(b, c, d) ((c) ^ ((b) | ~(d)))
#define MD5_STEP(f, a, b, c, d, word, constant, by)                                                                    \
    (a) = (b) + rotate_left((a) + f(b, c, d) + load32(block + 4 * (word)) + (constant), by)
#define FOUR(f, i, w0, w1, w2, w3, r0, r1, r2, r3)                                                                     \
    MD5_STEP(f, a, b, c, d, w0, constants[i], r0);                                                                     \
    MD5_STEP(f, d, a, b, c, w1, constants[(i) + 1], r1);                                                               \
    MD5_STEP(f, c, d, a, b, w2, constants[(i) + 2], r2);                                                               \
    MD5_STEP(f, b, c, d, a, w3, constants[(i) + 3], r3)

static void md5_blocks(uint32_t words[4], const uint8_t *block, size_t blocks)
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
    for (; blocks; blocks--, block += MD5_BLOCK) {
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
    uint8_t last[2 * MD5_BLOCK] = {0};
    const size_t whole = count / MD5_BLOCK, rest = count % MD5_BLOCK,
                 end = rest < MD5_BLOCK - 8 ? MD5_BLOCK : 2 * MD5_BLOCK;
    if (whole)
        md5_blocks(words, bytes, whole);
    if (rest)
        memcpy(last, (const uint8_t *)bytes + whole * MD5_BLOCK, rest);
    last[rest] = 0x80;
    store64(last + end - 8, (uint64_t)count * 8);
    md5_blocks(words, last, end / MD5_BLOCK);
    memcpy(digest, words, MD5_BYTES);
}
