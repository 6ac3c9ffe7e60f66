/* SPDX-License-Identifier: MIT */
/*
 * test_text_places.c - a table of texts finds what was added, and texts that collide without a key cost no more than
 * others. The test counts places that are passed over, and measures no time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/text_places.h"
#include "platform/table_key.h"

#define TEXTS 8192 /* a table of 2^14 places */
#define BYTES 8

struct texts {
    uint8_t bytes[TEXTS * BYTES];
    uint32_t offsets[TEXTS + 1];
};

/* A key that somebody knows. */
static const struct table_key known = {0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u};

/* Fills distinct texts. colliding: those whose hash with the known key selects one of the first 64 places. */
static void make_texts(struct texts *texts, bool colliding)
{
    uint32_t made = 0;
    for (uint64_t number = 1; made < TEXTS; number++)
        if (!colliding || (table_hash(known, (const uint8_t *)&number, BYTES) & (2 * TEXTS - 1)) < 64)
            memcpy(texts->bytes + BYTES * made++, &number, BYTES);
    for (uint32_t i = 0; i <= TEXTS; i++)
        texts->offsets[i] = BYTES * i;
}

static void check(const struct texts *texts, bool keyed, uint64_t least, uint64_t most)
{
    struct text_places table;
    assert_true(text_places_new(&table, TEXTS));
    if (!keyed)
        table.key = known;
    for (uint32_t id = 0; id < TEXTS; id++)
        assert_int_equal(text_places_add(&table, texts->bytes, texts->offsets, id), NO_TEXT);
    assert_in_range(table.passed, least, most);
    for (uint32_t id = 0; id < TEXTS; id++) {
        const uint8_t *text = texts->bytes + texts->offsets[id];
        uint8_t other[BYTES];
        assert_int_equal(text_places_find(&table, texts->bytes, texts->offsets, text, BYTES), id);
        memcpy(other, text, BYTES);
        other[BYTES - 1] = 1; /* no text has it */
        assert_int_equal(text_places_find(&table, texts->bytes, texts->offsets, other, BYTES), NO_TEXT);
        assert_int_equal(text_places_find(&table, texts->bytes, texts->offsets, text, BYTES - 1), NO_TEXT);
    }
    text_places_free(&table);
}

static void colliding_texts_cost_no_more(void **unused)
{
    (void)unused;
    struct texts *texts = malloc(sizeof *texts);
    assert_non_null(texts);
    table_key_fix(1); /* a random key in a hundred spreads so unevenly that the bound would need slack */
    make_texts(texts, false);
    check(texts, true, 0, TEXTS);
    make_texts(texts, true);
    check(texts, true, 0, TEXTS);
    check(texts, false, (uint64_t)TEXTS * TEXTS / 4, UINT64_MAX); /* they do collide */
    table_key_fix(0);
    free(texts);
}

static void the_first_of_equal_texts_is_kept(void **unused)
{
    (void)unused;
    static const uint8_t bytes[] = "abcabab";
    static const uint32_t offsets[] = {0, 3, 3, 5, 7};
    struct text_places table = {.places = NULL};
    assert_int_equal(text_places_find(&table, bytes, offsets, bytes, 3), NO_TEXT);
    assert_true(text_places_new(&table, 4));
    for (uint32_t id = 0; id < 3; id++)
        assert_int_equal(text_places_add(&table, bytes, offsets, id), NO_TEXT);
    assert_int_equal(text_places_add(&table, bytes, offsets, 3), 2);
    assert_int_equal(text_places_find(&table, bytes, offsets, bytes, 2), 2);
    assert_int_equal(text_places_find(&table, bytes, offsets, bytes, 0), 1);
    text_places_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colliding_texts_cost_no_more),
        cmocka_unit_test(the_first_of_equal_texts_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
