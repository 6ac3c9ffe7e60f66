/* SPDX-License-Identifier: MIT */
/* sha256.c - see sha256.h. */
#include "sha256.h"

#include <string.h>

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static uint32_t big_load(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

#define STEP(a, b, c, d, e, f, g, h, i)                                                                                \
    (h) += (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((g) ^ ((e) & ((f) ^ (g)))) + constants[i] + w[i];         \
    (d) += (h);                                                                                                        \
    (h) += (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + (((a) & (b)) ^ ((c) & ((a) ^ (b))))

static void block_add(uint32_t words[8], const uint8_t *block)
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
        w[i] = w[i - 16] + (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) + w[i - 7] +
               (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
    for (unsigned i = 0; i < 64; i += 8) { /* after 8 steps, each word is in its variable again */
        STEP(a, b, c, d, e, f, g, h, i);
        STEP(h, a, b, c, d, e, f, g, i + 1);
        STEP(g, h, a, b, c, d, e, f, i + 2);
        STEP(f, g, h, a, b, c, d, e, i + 3);
        STEP(e, f, g, h, a, b, c, d, i + 4);
        STEP(d, e, f, g, h, a, b, c, i + 5);
        STEP(c, d, e, f, g, h, a, b, i + 6);
        STEP(b, c, d, e, f, g, h, a, i + 7);
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
            block_add(hash->words, hash->block);
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
