/* SPDX-License-Identifier: MIT */
/*
 * gram_hashes_avx512.c - XXH64 of eight grams at a time, one in each lane. Grams have different lengths, so each step
 * of XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) is done for the lanes that need it: stripes
 * of 32 bytes, words of 8 bytes, one of 4, and single bytes. Grams of five words have some 30 bytes; one after the
 * other, they cost twice the time, most of it for branches on the length that are predicted wrong.
 */
#include "shingles.h"

#include "common/hash.h"

#if defined(__x86_64__)
#define LANES_BYTES 64
#include "common/lanes.h"

#define P1 0x9E3779B185EBCA87
#define P2 0xC2B2AE3D27D4EB4F
#define P3 0x165667B19E3779F9
#define P4 0x85EBCA77C2B2AE63
#define P5 0x27D4EB2F165667C5

LANES_INLINE lanes64 rotated(lanes64 lanes, int bits)
{
    return lanes << bits | lanes >> (64 - bits);
}

LANES_INLINE lanes64 times(lanes64 lanes, uint64_t by)
{
    return lanes_multiply(lanes, lanes_all(by));
}

/* Returns `chosen` in the lanes of the mask, and `other` in the others. */
LANES_INLINE lanes64 choose(__mmask8 mask, lanes64 chosen, lanes64 other)
{
    return (lanes64)_mm512_mask_mov_epi64((__m512i)other, mask, (__m512i)chosen);
}

LANES_INLINE lanes64 word_mixed(lanes64 sum, lanes64 word)
{
    return times(rotated(sum + times(word, P2), 31), P1);
}

/* Grams without a stripe of 32 bytes, or with one, so that no lane waits for the stripes of others: `pack --dedup
 * minhash` took 7 to 9% more processor time without these lists. */
struct list {
    uint32_t count;
    uint64_t at[GRAM_BLOCK + 8], bytes[GRAM_BLOCK + 8];
};

/* The lanes' grams: what is not hashed yet. */
struct grams {
    const uint8_t *words;
    lanes64 at, left;
};

LANES_INLINE __mmask8 with_left(const struct grams *grams, uint64_t least)
{
    return _mm512_cmpge_epu64_mask((__m512i)grams->left, (__m512i)lanes_all(least));
}

LANES_INLINE lanes64 load(const struct grams *grams, __mmask8 mask, uint64_t skipped)
{
    return (lanes64)_mm512_mask_i64gather_epi64(_mm512_setzero_si512(), mask, (__m512i)(grams->at + skipped),
                                                grams->words, 1);
}

LANES_INLINE void skip(struct grams *grams, __mmask8 mask, uint64_t bytes)
{
    const lanes64 skipped = choose(mask, lanes_all(bytes), lanes_all(0));
    grams->at += skipped;
    grams->left -= skipped;
}

/* Hashes the stripes, if a gram has one. */
static inline lanes64 stripes(struct grams *grams, lanes64 hash, lanes64 bytes)
{
    static const int turns[] = {1, 7, 12, 18};
    const __mmask8 any = with_left(grams, 32);
    lanes64 sums[4] = {lanes_all(P1 + P2), lanes_all(P2), lanes_all(0), lanes_all(0 - P1)}, all = lanes_all(0);
    for (__mmask8 mask = any; mask; mask = with_left(grams, 32)) {
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++)
            sums[i] = choose(mask, word_mixed(sums[i], load(grams, mask, 8 * i)), sums[i]);
        skip(grams, mask, 32);
    }
    if (!any)
        return hash;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++)
        all += rotated(sums[i], turns[i]);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++)
        all = times(all ^ word_mixed(lanes_all(0), sums[i]), P1) + P4;
    return choose(any, all + bytes, hash);
}

static inline lanes64 hashes_of(struct grams grams)
{
    lanes64 hash = stripes(&grams, grams.left + P5, grams.left);
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) { /* no branch: the next grams are hashed while products of these are computed */
        const __mmask8 mask = with_left(&grams, 8);
        const lanes64 word = word_mixed(lanes_all(0), load(&grams, mask, 0));
        hash = choose(mask, times(rotated(hash ^ word, 27), P1) + P4, hash);
        skip(&grams, mask, 8);
    }
    lanes64 rest = load(&grams, with_left(&grams, 1), 0);
    const __mmask8 four = with_left(&grams, 4);
    hash = choose(four, times(rotated(hash ^ times(rest & 0xFFFFFFFF, P1), 23), P2) + P3, hash);
    rest = choose(four, rest >> 32, rest);
    skip(&grams, four, 4);
#pragma GCC unroll 3
    for (uint64_t i = 1; i <= 3; i++, rest >>= 8)
        hash = choose(with_left(&grams, i), times(rotated(hash ^ times(rest & 0xFF, P5), 11), P1), hash);
    hash = times(hash ^ hash >> 33, P2);
    hash = times(hash ^ hash >> 29, P3);
    return hash ^ hash >> 32;
}

/* Hashes of the grams of a list, which has room for seven more. */
static void list_hash(const uint8_t *words, const struct list *list, uint64_t *hashes)
{
    uint32_t i = 0;
    for (; i + 8 <= list->count; i += 8)
        lanes_store(hashes + i,
                    hashes_of((struct grams){words, lanes_load(list->at + i), lanes_load(list->bytes + i)}));
    for (; i < list->count; i++)
        hashes[i] = xxh64(words + list->at[i], (size_t)list->bytes[i]);
}

static inline void list_add(struct list *list, __mmask8 mask, lanes64 at, lanes64 bytes)
{
    lanes_store(list->at + list->count, (lanes64)_mm512_maskz_compress_epi64(mask, (__m512i)at));
    lanes_store(list->bytes + list->count, (lanes64)_mm512_maskz_compress_epi64(mask, (__m512i)bytes));
    list->count += (uint32_t)__builtin_popcount(mask);
}

void gram_hashes_avx512(const uint8_t *words, const uint64_t *begins, uint32_t each, uint32_t count, uint64_t *hashes)
{
    struct list brief = {.count = 0}, longer = {.count = 0};
    for (uint32_t i = 0; i < count; i += 8) {
        const __mmask8 there = (__mmask8)((1u << (count - i < 8 ? count - i : 8)) - 1);
        const lanes64 at = (lanes64)_mm512_maskz_loadu_epi64(there, begins + i);
        const lanes64 bytes = (lanes64)_mm512_maskz_loadu_epi64(there, begins + i + each) - 1 - at;
        const __mmask8 stripe = with_left(&(struct grams){words, at, bytes}, 32) & there;
        list_add(&brief, there & ~stripe, at, bytes);
        list_add(&longer, stripe, at, bytes);
    }
    list_hash(words, &brief, hashes);
    list_hash(words, &longer, hashes + brief.count);
}
#endif
