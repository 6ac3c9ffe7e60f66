/* SPDX-License-Identifier: MIT */
/* ci: nonroot */
/*
 * test_shard_stems.c - a table of stems finds what was added, and names that collide without a key cost no more than
 * others. The test counts places that are passed over, and measures no time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "dataset/shard_names.h"
#include "platform/table_key.h"

#define NAMES 4096 /* a table of 2^13 places */
#define FIRST 64   /* the places that colliding names select */
#define FOLDER "data/web"

typedef uint64_t hash_function(const char *name, size_t bytes);

/* With a key that somebody knows. */
static const struct table_key known = {0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u};
static uint64_t known_hash(const char *name, size_t bytes)
{
    const uint64_t folder = table_hash(known, (const uint8_t *)FOLDER, strlen(FOLDER));
    return table_mix(known, folder, table_hash(known, (const uint8_t *)name, bytes));
}

/* Without a key. */
static uint64_t plain_hash(const char *name, size_t bytes)
{
    return hash64_seeded(name, bytes, hash64(FOLDER, strlen(FOLDER)));
}

/* Adds NAMES names; if there is a hash function, those whose hash selects one of the first places. Returns how many
 * places are passed over. */
static uint64_t passed(struct table_key key, hash_function *hash)
{
    struct shard_stems stems = {.key = key}, some = {.key = key};
    char name[32];
    uint64_t last = 0;
    for (uint64_t number = 0; stems.count < NAMES; number++) {
        const size_t bytes = (size_t)snprintf(name, sizeof name, "%016llx", (unsigned long long)number);
        if (hash && (hash(name, bytes) & (2 * NAMES - 1)) >= FIRST)
            continue;
        assert_true(shard_stems_add(&stems, FOLDER, name, bytes));
        if (stems.count % 2)
            assert_true(shard_stems_add(&some, FOLDER, name, bytes));
        last = number;
    }
    assert_true(shard_stems_ready(&stems));
    const uint64_t result = stems.passed;
    (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)last);
    assert_true(shard_stems_has(&stems, FOLDER, name, 16));
    assert_false(shard_stems_has(&stems, FOLDER "2", name, 16));
    assert_false(shard_stems_has(&stems, FOLDER, name, 15));
    assert_true(shard_stems_within(&some, &stems));
    assert_true(shard_stems_add(&some, FOLDER, "other", 5));
    assert_false(shard_stems_within(&some, &stems));
    shard_stems_free(&some);
    shard_stems_free(&stems);
    return result;
}

static void colliding_names_cost_no_more(void **unused)
{
    (void)unused;
    table_key_fix(1); /* a random key in a hundred spreads so unevenly that the bound would need slack */
    const struct table_key key = table_key_new();
    table_key_fix(0);
    assert_in_range(passed(key, NULL), 0, NAMES);
    assert_in_range(passed(key, known_hash), 0, NAMES);
    assert_in_range(passed(key, plain_hash), 0, NAMES);
    assert_in_range(passed(known, known_hash), (uint64_t)NAMES * NAMES / 4, UINT64_MAX); /* they do collide */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colliding_names_cost_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
