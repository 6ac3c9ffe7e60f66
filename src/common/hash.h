/*
 * hash.h - XXH3 (xxHash's 64- and 128-bit hash, https://github.com/Cyan4973/xxHash), the one hash of the project.
 *
 * The widest instructions of the processor are chosen once, at the first use; every choice gives the same values.
 * Always seed 0 and the default secret, so any XXH3 implementation checks our files. Any thread.
 */
#ifndef TOKMAP_COMMON_HASH_H
#define TOKMAP_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t low, high;
};

uint64_t hash64(const void *bytes, size_t count);
struct hash128 hash128(const void *bytes, size_t count);

/* The 16 bytes by which a 128-bit hash is stored and printed: XXH128's canonical form, high half first, big-endian. */
void hash128_store(struct hash128 hash, uint8_t into[16]);
/* 32 lower-case hexadecimal digits and a zero. */
void hash128_hex(const uint8_t stored[16], char into[33]);

/* Streaming form. hash_state_new returns NULL without memory; free accepts NULL. One thread at a time. */
struct hash_state;
struct hash_state *hash_state_new(void);
void hash_state_free(struct hash_state *state);
void hash_state_reset(struct hash_state *state);
void hash_state_add(struct hash_state *state, const void *bytes, size_t count);
uint64_t hash_state_64(const struct hash_state *state);
struct hash128 hash_state_128(const struct hash_state *state);

/* Name of the variant in use: "avx512", "avx2", "sse2", "neon", "scalar". */
const char *hash_variant(void);

#endif
