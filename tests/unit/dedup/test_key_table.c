/* SPDX-License-Identifier: MIT */
/* test_key_table.c - key_table: equal keys, the limit, and the memory for each key. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "dedup/document_key.h"
#include "support/shard_help.h"

/* The table of equal keys, of a limit, and its memory for each key. */
static void test_table(void **unused)
{
    (void)unused;
    struct key_table table;
    struct document_place place = {0}, kept;
    uint64_t seed = 5, refused = 0;
    key_table_init(&table, UINT64_MAX);
    for (uint64_t i = 0; i < 400000; i++) {
        const struct hash128 key = {random_next(&seed), i};
        place.record = i;
        assert_int_equal(key_table_find(&table, key, &place, &kept), KEY_ADDED);
        assert_int_equal(key_table_find(&table, key, &place, &kept), KEY_FOUND);
        assert_int_equal(kept.record, i);
    }
    assert_int_equal(table.count, 400000);
    assert_true(table.bytes <= 42 * table.count);
    key_table_free(&table);
    key_table_init(&table, (uint64_t)1 << 20);
    for (uint64_t i = 0; i < 100000; i++) {
        const struct hash128 key = {i, i << 32};
        const enum key_found found = key_table_find(&table, key, &place, &kept);
        assert_true(found == KEY_ADDED || found == KEY_NO_ROOM);
        assert_int_equal(key_table_find(&table, key, &place, &kept), found == KEY_ADDED ? KEY_FOUND : KEY_NO_ROOM);
        refused += found == KEY_NO_ROOM;
    }
    assert_true(refused && refused < 100000 && table.bytes <= (uint64_t)1 << 20);
    key_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
