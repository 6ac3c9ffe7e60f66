/* SPDX-License-Identifier: MIT */
/*
 * minhash.c - see minhash.h.
 *
 * Nearly all time goes into the hashes of all shingles for all places. A hash is y = l + c, where x = a h + b mod 2^64,
 * l = x mod 2^61, and c = floor(x / 2^61) is at most 7; or y - P, if that is not negative. To find the least one, few
 * bits of a hash are enough most of the time, and 16 bits take a third of the instructions. So shingles are dealt to 64
 * ways, and a kernel computes the 16 highest bits of 8 l = 8 a h + 8 b mod 2^64 for all of them: with the numbers in
 * parts of 16 bits, a3 h0 + a2 h1 + a1 h2 + a0 h3, the high halves of a2 h0 + a1 h1 + a0 h2, and b3. What is left out
 * is less than 6 times 2^48, so that the sum s is at most 5 too small. Then the hashes of those ways are computed that
 * can have the least one:
 *   - Let some shingle have the sum m. Its 16 bits are at most m + 5, and those of the shingle with the least y at most
 *     m + 6, as y can be larger than l by 7; so can be its sum.
 *   - A sum that is too small may wrap around, to 2^16 - 5 or more. If y - P is not negative, the 16 bits are ones, and
 *     the sum is 2^16 - 6 or more. All ways with such sums count.
 * The kernel adds 6 to each sum, so that those which may have wrapped around are the least ones, 0 to 5; they do not
 * count for m. So a way counts if its least sum with these 6 is at most m + 12.
 *
 * Example: of 640 shingles, the least sum m is 90, in way 7; way 30 has 95, and all others have more than 96. Of the 20
 * shingles of these two ways the hashes are computed. Most often it is one way.
 */
#include "minhash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"

#define NOTHING (MINHASH_PRIME) /* of a place without a shingle; above all hashes */

#define WAYS_LEAST 96 /* shingles of a block, with fewer of which all hashes take less time */

struct minhash {
    struct minhash_numbers numbers;
    minhash_kernel *kernel;
    minhash_ways_kernel *ways_kernel; /* NULL where there is none */
    uint32_t bands, rows;
    uint64_t values[];
};

/* ---- the numbers a and b ---- */

#define STATE 624

struct twister {
    uint32_t state[STATE];
    uint32_t next;
};

static void twister_seed(struct twister *twister, uint32_t seed)
{
    twister->state[0] = seed;
    for (uint32_t i = 1; i < STATE; i++)
        twister->state[i] = 1812433253U * (twister->state[i - 1] ^ (twister->state[i - 1] >> 30)) + i;
    twister->next = STATE;
}

static uint32_t twister_next(struct twister *twister)
{
    uint32_t *state = twister->state;
    if (twister->next == STATE) {
        for (uint32_t i = 0; i < STATE; i++) {
            const uint32_t y = (state[i] & 0x80000000U) | (state[(i + 1) % STATE] & 0x7fffffffU);
            state[i] = state[(i + 397) % STATE] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfU : 0);
        }
        twister->next = 0;
    }
    uint32_t y = state[twister->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680U;
    y ^= y << 15 & 0xefc60000U;
    return y ^ y >> 18;
}

/* Returns a number from 0 to `most`, which needs 61 bits. */
static uint64_t twister_below(struct twister *twister, uint64_t most)
{
    uint64_t value;
    do {
        const uint64_t high = twister_next(twister);
        value = (high << 32 | twister_next(twister)) & MINHASH_PRIME;
    } while (value > most);
    return value;
}

struct minhash *minhash_new(uint32_t bands, uint32_t rows)
{
    const uint32_t hashes = bands * rows;
    assert(bands && rows && bands <= MINHASH_BANDS_MOST && hashes <= MINHASH_HASHES_MOST);
    const uint32_t places = (uint32_t)round_up(hashes, MINHASH_LANES);
    struct twister twister;
    struct minhash *made = calloc(1, sizeof *made + 2 * places * sizeof made->values[0]);
    if (!made)
        return NULL;
    made->numbers = (struct minhash_numbers){made->values, made->values + places, places};
    made->bands = bands;
    made->rows = rows;
    made->kernel = minhash_plain;
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2)) {
        made->kernel = minhash_avx2;
        made->ways_kernel = minhash_ways_avx2;
    }
    if (cpu_has(CPU_AVX512)) {
        made->kernel = minhash_avx512;
        made->ways_kernel = minhash_ways_avx512;
    }
#endif
    twister_seed(&twister, MINHASH_SEED);
    for (uint32_t i = 0; i < hashes; i++)
        made->values[i] = 1 + twister_below(&twister, MINHASH_PRIME - 2);
    for (uint32_t i = 0; i < hashes; i++)
        made->values[places + i] = twister_below(&twister, MINHASH_PRIME - 1);
    return made;
}

void minhash_free(struct minhash *minhash)
{
    free(minhash);
}

/* ---- signatures ---- */

uint32_t minhash_places(const struct minhash *minhash)
{
    return minhash->numbers.places;
}

void minhash_begin(const struct minhash *minhash, uint64_t *signature)
{
    for (uint32_t i = 0; i < minhash->numbers.places; i++)
        signature[i] = NOTHING;
}

static inline uint64_t hash_of(uint64_t a, uint64_t b, uint64_t shingle)
{
    const uint64_t sum = a * shingle + b, hash = (sum & MINHASH_PRIME) + (sum >> 61);
    return hash - (hash >= MINHASH_PRIME ? MINHASH_PRIME : 0);
}

/* Lowers a signature by the hashes of those shingles of a block that can have the least one. */
static void ways_add(const struct minhash *minhash, uint64_t *signature, const uint64_t *shingles, uint32_t count)
{
    uint64_t ways[MINHASH_HASHES_MOST];
    minhash->ways_kernel(&minhash->numbers, shingles, count, ways);
    for (uint32_t j = 0; j < minhash->numbers.places; j++)
        for (uint64_t left = ways[j]; left; left &= left - 1)
            for (uint32_t i = (uint32_t)__builtin_ctzll(left); i < count; i += MINHASH_WAYS)
                signature[j] = min64(signature[j], hash_of(minhash->numbers.a[j], minhash->numbers.b[j], shingles[i]));
}

void minhash_add(const struct minhash *minhash, uint64_t *signature, const uint64_t *shingles, uint32_t count)
{
    assert(count <= MINHASH_BLOCK);
    if (minhash->ways_kernel && count >= WAYS_LEAST)
        ways_add(minhash, signature, shingles, count);
    else
        minhash->kernel(&minhash->numbers, shingles, count, signature);
}

struct hash128 minhash_band(const struct minhash *minhash, const uint64_t *signature, uint32_t band)
{
    uint64_t bytes[1 + MINHASH_HASHES_MOST];
    assert(band < minhash->bands);
    bytes[0] = band;
    memcpy(bytes + 1, signature + (size_t)band * minhash->rows, minhash->rows * sizeof *bytes);
    return hash128(bytes, (1 + minhash->rows) * sizeof *bytes);
}

void minhash_plain(const struct minhash_numbers *numbers, const uint64_t *shingles, uint32_t count, uint64_t *least)
{
    for (uint32_t j = 0; j < numbers->places; j++)
        for (uint32_t i = 0; i < count; i++)
            least[j] = min64(least[j], hash_of(numbers->a[j], numbers->b[j], shingles[i]));
}
