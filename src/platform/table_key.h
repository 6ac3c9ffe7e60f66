/* SPDX-License-Identifier: MIT */
/*
 * table_key.h - keys of hash tables, so that no input can be made whose entries all collide.
 *
 * Files and texts come from strangers. One who knows a table's hash function can choose texts with equal hashes, and
 * then each search passes over all of them: n entries cost n^2 steps. A hash that depends on a secret number has no
 * such inputs. Each table that is filled with what a file or a text says draws a key when it is made, from the kernel's
 * random numbers. What is written and printed must not depend on the key; where entries leave a table in the order of
 * its slots, they are sorted, or their order makes no difference.
 *
 * Hashes that are stored in files have no key: see common/hash.h.
 */
#ifndef TOKMAP_PLATFORM_TABLE_KEY_H
#define TOKMAP_PLATFORM_TABLE_KEY_H

#include <stdint.h>

#include "common/bytes.h"

struct table_key {
    uint64_t low, high;
};

/* Draws a key. If the kernel gives no random numbers, the key follows from how many were drawn before. Any thread. */
struct table_key table_key_new(void);

/* From now on keys follow from the seed and from how many are drawn after this call. For tests that compare what
 * different keys give; 0: keys are random again. */
void table_key_fix(uint64_t seed);

/* Returns the hash of two numbers: both halves of a product. All bits are good. */
static inline uint64_t table_mix(struct table_key key, uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)(a ^ key.low) * (b ^ key.high);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define TABLE_LONG 128 /* bytes; longer texts are hashed by table_hash_long() */
uint64_t table_hash_long(struct table_key key, const uint8_t *bytes, uint64_t count);

/* Returns the hash of bytes. Short texts are products of eight bytes and the hash of those before them, which is
 * quicker for them than XXH3 with a seed, the hash of long texts. */
static inline uint64_t table_hash(struct table_key key, const uint8_t *bytes, uint64_t count)
{
    uint64_t hash = count, last = 0;
    if (count > TABLE_LONG)
        return table_hash_long(key, bytes, count);
    for (; count > 8; bytes += 8, count -= 8)
        hash = table_mix(key, load64(bytes), hash);
    if (count >= 4)
        last = load32(bytes) | (uint64_t)load32(bytes + count - 4) << 32;
    else if (count)
        last = bytes[0] | (uint64_t)bytes[count / 2] << 8 | (uint64_t)bytes[count - 1] << 16;
    return table_mix(key, last, hash);
}

#endif
