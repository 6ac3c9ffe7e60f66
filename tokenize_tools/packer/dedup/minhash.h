/* SPDX-License-Identifier: MIT */
/*
 * minhash.h - the MinHash signatures of texts, and their bands, as datatrove computes them.
 *
 * Hash j of a shingle h is (a[j] h + b[j] mod 2^64) mod (2^61 - 1); the first sum wraps as numpy's does. The numbers a,
 * from 1 to 2^61 - 3, and b, from 0 to 2^61 - 2, are those of numpy.random.RandomState(1): MT19937, seeded with 1,
 * whose 64-bit numbers are cut to 61 bits and drawn again while they are too large. The signature of a text has the
 * least of hash j over all its shingles, for each j. Two texts whose sets of shingles have the Jaccard similarity s
 * agree in one place of their signatures with the chance s.
 *
 * A band is `rows` consecutive places. Two texts are near-duplicates if they agree in a whole band, with the chance
 * 1 - (1 - s^rows)^bands: with 14 bands of 8 rows 0.9 % at s = 0.4, 5 % at 0.5, 56 % at 0.7, 92 % at 0.8, and 99.96 %
 * at 0.9.
 */
#ifndef TOKMAP_DEDUP_MINHASH_H
#define TOKMAP_DEDUP_MINHASH_H

#include <stdint.h>

#include "common/hash.h"

#define MINHASH_SEED 1
#define MINHASH_HASHES_MOST 4096
#define MINHASH_BANDS_MOST 256

/* The options. The defaults are those of datatrove and FineWeb: 5, 14, 8. */
struct minhash_form {
    uint32_t words; /* of a shingle */
    uint32_t bands, rows;
};

struct minhash; /* immutable; any thread */

/* bands is 1 to MINHASH_BANDS_MOST, and bands * rows at most MINHASH_HASHES_MOST. Returns NULL if there is no memory.
 */
struct minhash *minhash_new(uint32_t bands, uint32_t rows);
void minhash_free(struct minhash *minhash); /* accepts NULL */

/* Returns the places of a signature, with those that round their number up for the kernels. */
uint32_t minhash_places(const struct minhash *minhash);

/* Begins a signature, and adds shingles to it, up to MINHASH_BLOCK. */
#define MINHASH_BLOCK 1024
void minhash_begin(const struct minhash *minhash, uint64_t *signature);
void minhash_add(const struct minhash *minhash, uint64_t *signature, const uint64_t *shingles, uint32_t count);

/* Returns what identifies a band of a signature: the XXH3-128 of the band's number and its places, all as u64. */
struct hash128 minhash_band(const struct minhash *minhash, const uint64_t *signature, uint32_t band);

#define MINHASH_LANES 8
#define MINHASH_PRIME (((uint64_t)1 << 61) - 1)

/* Numbers of `places` hashes, a multiple of MINHASH_LANES. */
struct minhash_numbers {
    const uint64_t *a, *b;
    uint32_t places;
};

/* Kernels for each instruction set. The first one lowers the numbers of `least` to the least of their hashes. */
typedef void minhash_kernel(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count,
                            uint64_t *least);
extern minhash_kernel minhash_plain;
/* The second one deals the shingles of a block to ways, shingle i to way i % MINHASH_WAYS, and gives for each place the
 * bits of some ways, of which one has the shingle with the least hash. */
#define MINHASH_WAYS 64
#define MINHASH_SHORT 6 /* 16 bits of a hash are less than this too small (minhash.c) */
typedef void minhash_ways_kernel(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count,
                                 uint64_t *ways);
#if defined(__x86_64__)
extern minhash_kernel minhash_avx2;   /* needs CPU_AVX2 */
extern minhash_kernel minhash_avx512; /* needs CPU_AVX512 */
extern minhash_ways_kernel minhash_ways_avx2, minhash_ways_avx512;
#endif

#endif
