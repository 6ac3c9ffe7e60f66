/* SPDX-License-Identifier: MIT */
/* ci: nonroot */
/* token_find.h: every place of an id is found, at every alignment, start, and length, and nothing outside is read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "dataset/token_find.h"
#include "support/guarded.h"
#include "tokmap/tokmap.h"

enum { MOST = 150 };

/* The plain search. */
static uint64_t expected(const uint8_t *tokens, uint32_t width, uint64_t from, uint64_t count, uint64_t id)
{
    for (; from < count; from++)
        if ((width == 2 ? load16(tokens + 2 * from) : load32(tokens + 4 * from)) == id)
            break;
    return from;
}

/* Places of an id in arrays of all lengths to MOST that end at the end of a page. */
static void test_one_place(void **unused)
{
    (void)unused;
    for (uint32_t width = 2; width <= 4; width += 2) {
        const uint64_t id = width == 2 ? 0xABCD : 0x1234ABCD;
        for (uint64_t count = 0; count <= MOST; count++) {
            const struct guarded memory = guarded_new(count * width);
            uint8_t *tokens = (uint8_t *)memory.at;
            memset(tokens, 0xAA, count * width);
            assert_int_equal(token_find(tokens, width, 0, count, id), count);
            for (uint64_t at = 0; at < count; at++) {
                if (width == 2)
                    store16(tokens + 2 * at, (uint16_t)id);
                else
                    store32(tokens + 4 * at, (uint32_t)id);
                assert_int_equal(token_find(tokens, width, 0, count, id), at);
                assert_int_equal(token_find(tokens, width, at, count, id), at);
                assert_int_equal(token_find(tokens, width, at + 1, count, id), count);
                assert_int_equal(token_find(tokens, width, 0, at, id), at);
                memset(tokens + at * width, 0xAA, width);
            }
            guarded_free(memory);
        }
    }
}

/* Halves of ids, and their bytes in other places, are not the id. Every address is possible. */
static void test_like_a_plain_search(void **unused)
{
    (void)unused;
    static uint8_t memory[4 * MOST + 16];
    uint64_t state = 1;
    for (unsigned round = 0; round < 400; round++) {
        const uint32_t width = round % 2 ? 2 : 4;
        uint8_t *tokens = memory + round % 16;
        for (unsigned i = 0; i < 4 * MOST; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            tokens[i] = (uint8_t)(state >> 62); /* 0 to 3: many near misses */
        }
        const uint64_t id = width == 2 ? load16(tokens + 100) : load32(tokens + 100);
        for (uint64_t from = 0; from <= MOST; from++) {
            const uint64_t found = token_find(tokens, width, from, MOST, id);
            assert_int_equal(found, expected(tokens, width, from, MOST, id));
        }
    }
}

/* An id that the width cannot hold is nowhere, even if its low bits are. */
static void test_large_ids(void **unused)
{
    (void)unused;
    uint8_t tokens[64] = {0};
    assert_int_equal(token_find(tokens, 2, 0, 32, 0), 0);
    assert_int_equal(token_find(tokens, 2, 0, 32, 65536), 32);
    assert_int_equal(token_find(tokens, 4, 0, 16, (uint64_t)1 << 32), 16);
    assert_int_equal(token_find(tokens, 2, 0, 32, TOKMAP_NO_ID), 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_place),
        cmocka_unit_test(test_like_a_plain_search),
        cmocka_unit_test(test_large_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
