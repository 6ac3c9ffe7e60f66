/* SPDX-License-Identifier: MIT */
/* minhash.c - see minhash.h. */
#include "minhash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"

#define NOTHING (MINHASH_PRIME) /* of a place without a shingle; above all hashes */

struct minhash {
    struct minhash_numbers numbers;
    minhash_kernel *kernel;
    uint32_t bands, rows;
    uint64_t values[]; /* a, then b */
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
    if (cpu_has(CPU_AVX2))
        made->kernel = minhash_avx2;
    if (cpu_has(CPU_AVX512))
        made->kernel = minhash_avx512;
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

void minhash_add(const struct minhash *minhash, uint64_t *signature, const uint64_t *shingles, uint32_t count)
{
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
    for (uint32_t j = 0; j < numbers->places; j++) {
        const uint64_t a = numbers->a[j], b = numbers->b[j];
        uint64_t lowest = least[j];
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t sum = a * shingles[i] + b;
            uint64_t hash = (sum & MINHASH_PRIME) + (sum >> 61);
            hash -= hash >= MINHASH_PRIME ? MINHASH_PRIME : 0;
            lowest = min64(lowest, hash);
        }
        least[j] = lowest;
    }
}
