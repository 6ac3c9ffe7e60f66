/* SPDX-License-Identifier: MIT */
/*
 * bpe_key_x86.h - keys and their hashes (step 3 of bpe_encode.c) for processors with AVX2 and AES.
 */
#ifndef TOKMAP_BPE_BPE_KEY_X86_H
#define TOKMAP_BPE_BPE_KEY_X86_H

#include <immintrin.h>
#include <stdint.h>

#include "platform/table_key.h"

/* One row of 32 bytes for each length, and row 16 for all pieces longer than a key: a mask of the bytes that belong to
 * the key, then the key's last byte, the length. Longer pieces get 255 there, which no entry has. */
#define ROW(n)                                                                                                         \
    {                                                                                                                  \
        n > 0 ? -1 : 0, n > 1 ? -1 : 0, n > 2 ? -1 : 0, n > 3 ? -1 : 0, n > 4 ? -1 : 0, n > 5 ? -1 : 0,                \
            n > 6 ? -1 : 0, n > 7 ? -1 : 0, n > 8 ? -1 : 0, n > 9 ? -1 : 0, n > 10 ? -1 : 0, n > 11 ? -1 : 0,          \
            n > 12 ? -1 : 0, n > 13 ? -1 : 0, n > 14 ? -1 : 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,         \
            n > 15 ? -1 : n                                                                                            \
    }
#define KEY_ROW_BITS 5
static const int8_t key_rows[17][1 << KEY_ROW_BITS]
    __attribute__((aligned(64))) = {ROW(0), ROW(1),  ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7), ROW(8),
                                    ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14), ROW(15), ROW(16)};

/* Hashes a key. Three rounds of AES mix every byte of the key into every byte of the hash without leaving the vector
 * register. (Two are not enough: then each of the first four bytes depends on only four sums of 8 bits, and words that
 * differ in the same two places collide too often.) */
static inline uint32_t key_hash(__m128i salt, __m128i key)
{
    return (uint32_t)_mm_cvtsi128_si32(_mm_aesenc_si128(_mm_aesenc_si128(_mm_aesenc_si128(key, salt), salt), salt));
}

static inline __m128i salt_of(struct table_key seed)
{
    return _mm_set_epi64x((long long)seed.high, (long long)seed.low);
}

#endif
