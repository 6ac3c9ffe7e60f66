/* SPDX-License-Identifier: MIT */
#include "bytes.h"
#include "cpu.h"
#include "hash_variants.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The instructions that every processor of this architecture has, so that the compiler may use them without asking. */
#if XXH_VECTOR == XXH_NEON
#define BASE_NAME "neon"
#elif XXH_VECTOR == XXH_SSE2
#define BASE_NAME "sse2"
#elif XXH_VECTOR == XXH_AVX2
#define BASE_NAME "avx2"
#elif XXH_VECTOR == XXH_AVX512
#define BASE_NAME "avx512"
#else
#define BASE_NAME "scalar"
#endif

HASH_VARIANT(hash_functions_base, BASE_NAME);

struct hash_state {
    XXH3_state_t state;
};

static const struct hash_functions *chosen; /* accessed atomically; every thread would store the same value */

static const struct hash_functions *choose(void)
{
    const struct hash_functions *best = &hash_functions_base;
#if defined(__x86_64__)
    if (hash_functions_named("avx512"))
        best = &hash_functions_avx512;
    else if (hash_functions_named("avx2"))
        best = &hash_functions_avx2;
#endif
    __atomic_store_n(&chosen, best, __ATOMIC_RELAXED);
    return best;
}

static inline const struct hash_functions *functions(void)
{
    const struct hash_functions *found = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    return found ? found : choose();
}

const struct hash_functions *hash_functions_named(const char *name)
{
    if (!strcmp(name, hash_functions_base.name))
        return &hash_functions_base;
#if defined(__x86_64__)
    if (!strcmp(name, "avx2") && cpu_has(CPU_AVX2))
        return &hash_functions_avx2;
    if (!strcmp(name, "avx512") && cpu_has(CPU_AVX512))
        return &hash_functions_avx512;
#endif
    return NULL;
}

uint64_t hash64(const void *bytes, size_t count)
{
    return functions()->hash64(bytes, count);
}

uint64_t hash64_seeded(const void *bytes, size_t count, uint64_t seed)
{
    return functions()->hash64_seeded(bytes, count, seed);
}

struct hash128 hash128(const void *bytes, size_t count)
{
    return functions()->hash128(bytes, count);
}

void hash128_store(struct hash128 hash, uint8_t into[16])
{
    store64(into, __builtin_bswap64(hash.high));
    store64(into + 8, __builtin_bswap64(hash.low));
}

const char *hash128_hex(const uint8_t stored[16], char into[33])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        into[2 * i] = digits[stored[i] >> 4];
        into[2 * i + 1] = digits[stored[i] & 15];
    }
    into[32] = '\0';
    return into;
}

struct hash_state *hash_state_new(void)
{
    /* The accumulators are loaded as whole vectors, so the state must be aligned to 64 bytes. */
    struct hash_state *state = aligned_alloc(64, (sizeof *state + 63) / 64 * 64);
    if (!state)
        return NULL;
    XXH3_INITSTATE(&state->state);
    hash_state_reset(state);
    return state;
}

void hash_state_free(struct hash_state *state)
{
    free(state);
}

void hash_state_reset(struct hash_state *state)
{
    XXH3_128bits_reset(&state->state);
}

void hash_state_add(struct hash_state *state, const void *bytes, size_t count)
{
    assert(state && (bytes || !count));
    /* Both hashes accumulate in the same way; only their digests differ. */
    functions()->add(&state->state, bytes, count);
}

uint64_t hash_state_64(const struct hash_state *state)
{
    return functions()->digest64(&state->state);
}

struct hash128 hash_state_128(const struct hash_state *state)
{
    return functions()->digest128(&state->state);
}

struct hash128 hash128_parts(const struct hash_part *parts, size_t count)
{
    struct hash_state state;
    XXH3_INITSTATE(&state.state);
    hash_state_reset(&state);
    for (size_t i = 0; i < count; i++)
        hash_state_add(&state, parts[i].bytes, parts[i].count);
    return hash_state_128(&state);
}

const char *hash_variant(void)
{
    return functions()->name;
}

uint64_t xxh64(const void *bytes, size_t count)
{
    return XXH64(bytes, count, 0);
}
