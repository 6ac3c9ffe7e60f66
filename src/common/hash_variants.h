/* SPDX-License-Identifier: MIT */
/* hash_variants.h - the variants of the hash, each compiled for one instruction set. hash.c chooses among them. */
#ifndef TOKMAP_COMMON_HASH_VARIANTS_H
#define TOKMAP_COMMON_HASH_VARIANTS_H

#include "hash.h"

/* `state` points to an XXH3_state_t, whose layout is the same in all variants. */
struct hash_functions {
    const char *name;
    uint64_t (*hash64)(const void *bytes, size_t count);
    uint64_t (*hash64_seeded)(const void *bytes, size_t count, uint64_t seed);
    struct hash128 (*hash128)(const void *bytes, size_t count);
    void (*add)(void *state, const void *bytes, size_t count);
    uint64_t (*digest64)(const void *state);
    struct hash128 (*digest128)(const void *state);
};

/* Returns the variant with one of the names that hash_variant() returns; NULL if this build or this processor does not
 * have it. */
const struct hash_functions *hash_functions_named(const char *name);

extern const struct hash_functions hash_functions_base;
#if defined(__x86_64__)
extern const struct hash_functions hash_functions_avx2;
extern const struct hash_functions hash_functions_avx512;
#endif

/* The body of a variant's file. Before it, the file defines XXH_INLINE_ALL and its own XXH_VECTOR and includes
 * <xxhash.h>. */
#define HASH_VARIANT(table, variant_name)                                                                              \
    static uint64_t variant_hash64(const void *bytes, size_t count)                                                    \
    {                                                                                                                  \
        return XXH3_64bits(bytes, count);                                                                              \
    }                                                                                                                  \
    static uint64_t variant_hash64_seeded(const void *bytes, size_t count, uint64_t seed)                              \
    {                                                                                                                  \
        return XXH3_64bits_withSeed(bytes, count, seed);                                                               \
    }                                                                                                                  \
    static struct hash128 variant_hash128(const void *bytes, size_t count)                                             \
    {                                                                                                                  \
        XXH128_hash_t hash = XXH3_128bits(bytes, count);                                                               \
        return (struct hash128){hash.low64, hash.high64};                                                              \
    }                                                                                                                  \
    static void variant_add(void *state, const void *bytes, size_t count)                                              \
    {                                                                                                                  \
        XXH3_128bits_update(state, bytes, count);                                                                      \
    }                                                                                                                  \
    static uint64_t variant_digest64(const void *state)                                                                \
    {                                                                                                                  \
        return XXH3_64bits_digest(state);                                                                              \
    }                                                                                                                  \
    static struct hash128 variant_digest128(const void *state)                                                         \
    {                                                                                                                  \
        XXH128_hash_t hash = XXH3_128bits_digest(state);                                                               \
        return (struct hash128){hash.low64, hash.high64};                                                              \
    }                                                                                                                  \
    const struct hash_functions table = {variant_name, variant_hash64,   variant_hash64_seeded, variant_hash128,       \
                                         variant_add,  variant_digest64, variant_digest128}

#endif
