/* SPDX-License-Identifier: MIT */
/*
 * hash.h - XXH3, the hash function of the project (xxHash, https://github.com/Cyan4973/xxHash), with 64 or 128 bits,
 * and XXH64 for one use.
 *
 * Hashes are part of file formats, so they always use the default secret, and seed 0 unless a function takes a seed:
 * any implementation of XXH3 can check our files. The variant for the widest vector instructions that the processor has
 * (see cpu.h) is chosen at the first use; all variants return the same values. Any thread may call these functions.
 */
#ifndef TOKMAP_COMMON_HASH_H
#define TOKMAP_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t low, high;
};

uint64_t hash64(const void *bytes, size_t count);
uint64_t hash64_seeded(const void *bytes, size_t count, uint64_t seed);
struct hash128 hash128(const void *bytes, size_t count);

struct hash_part {
    const void *bytes;
    size_t count;
};
/* Returns hash128() of what the parts are one after another. */
struct hash128 hash128_parts(const struct hash_part *parts, size_t count);

/* Stores a 128-bit hash in the 16 bytes that files and printed ids use: XXH128's canonical form, which has the high
 * half first, each half big-endian. */
void hash128_store(struct hash128 hash, uint8_t into[16]);
/* Writes stored bytes as 32 lowercase hexadecimal digits and a zero byte. */
const char *hash128_hex(const uint8_t stored[16], char into[33]);
/* The same, written into memory that lasts until the end of the block around the call. */
#define HASH128_HEX(stored) hash128_hex((stored), (char[33]){0})

/* Hashes data that arrives in parts; the values equal those of hash64() and hash128() over all parts in order. One
 * thread at a time uses a state. hash_state_new() returns NULL if there is no memory; hash_state_free() accepts NULL.
 */
struct hash_state;
struct hash_state *hash_state_new(void);
void hash_state_free(struct hash_state *state);
void hash_state_reset(struct hash_state *state); /* as if no part had been added */
void hash_state_add(struct hash_state *state, const void *bytes, size_t count);
uint64_t hash_state_64(const struct hash_state *state); /* of the parts so far; more can be added after it */
struct hash128 hash_state_128(const struct hash_state *state);

/* Returns the name of the variant in use: "avx512", "avx2", "sse2", "neon", or "scalar". */
const char *hash_variant(void);

/* XXH64, the older hash of xxHash, with seed 0. datatrove hashes the n-grams of words with it, and `pack --dedup
 * minhash` reproduces its results. */
uint64_t xxh64(const void *bytes, size_t count);

#endif
