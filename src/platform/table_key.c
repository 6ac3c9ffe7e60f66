/* SPDX-License-Identifier: MIT */
#include "table_key.h"

#include <stdatomic.h>

#include "common/hash.h"
#include "os.h"

static _Atomic uint64_t fixed; /* the seed of table_key_fix(); 0: keys are random */
static _Atomic uint64_t drawn; /* keys */

void table_key_fix(uint64_t seed)
{
    atomic_store(&drawn, 0);
    atomic_store(&fixed, seed);
}

struct table_key table_key_new(void)
{
    struct table_key key;
    const uint64_t seed = atomic_load(&fixed), number = atomic_fetch_add(&drawn, 1);
    if (seed || os_random(&key, sizeof key)) {
        key.low = hash64_seeded(&number, sizeof number, seed);
        key.high = hash64_seeded(&number, sizeof number, ~seed);
    }
    return key;
}

uint64_t table_hash_long(struct table_key key, const uint8_t *bytes, uint64_t count)
{
    return table_mix(key, hash64_seeded(bytes, (size_t)count, key.low + key.high), count);
}
