/* SPDX-License-Identifier: MIT */
/* test_classify.c - every variant of scanner_classify.h writes the same masks: for all characters of Unicode, beside
 * neighbors and beside distant ones, and for bytes that are not UTF-8. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pretokenize/scanner_classify.h"
#include "support/awkward_text.h"

static struct scan_tables tables;

/* Rows that no variant has written keep their former bits, so that a row that is left out differs. */
static void classify(struct scan_masks *masks, int variant, const uint8_t *text, size_t count, size_t readable)
{
    memset(masks->wide_words, 0, sizeof masks->wide_words);
    memset(masks->any, 0, sizeof masks->any);
    masks->any_quote = 0;
    for (int kind = 0; kind < SCAN_KINDS; kind++)
        SCAN_ROW(masks->kind[kind])[(count + 63) / 64] = 0;
    scan_classify_choose((enum cpu_variant)variant)(masks, &tables, text, count, readable);
}

static void same_row(const char *rules, int variant, const char *what, const struct scan_row *expected,
                     const struct scan_row *got, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (SCAN_ROW(*expected)[i] != SCAN_ROW(*got)[i])
            fail_msg("%s, variant %d, %s: word %zu is %016llx, not %016llx", rules, variant, what, i,
                     (unsigned long long)SCAN_ROW(*got)[i], (unsigned long long)SCAN_ROW(*expected)[i]);
}

static void same_masks(const char *rules, const uint8_t *text, size_t count, size_t readable)
{
    static struct scan_masks expected, got;
    const size_t words = (count + 63) / 64;
    classify(&expected, CPU_SCALAR, text, count, readable);
    for (int variant = CPU_SCALAR + 1; variant <= (int)cpu_variant_best(); variant++) {
        memset(&got, 0x5A, sizeof got);
        classify(&got, variant, text, count, readable);
        for (int kind = 0; kind < SCAN_KINDS; kind++) {
            same_row(rules, variant, "a class", &expected.kind[kind], &got.kind[kind], words + 1); /* that one is 0 */
            assert_int_equal(expected.any[kind] != 0, got.any[kind] != 0);
        }
        same_row(rules, variant, "start", &expected.start, &got.start, words);
        same_row(rules, variant, "blank", &expected.blank, &got.blank, words);
        same_row(rules, variant, "quote", &expected.quote, &got.quote, words);
        same_row(rules, variant, "tall", &expected.tall, &got.tall, words);
        assert_memory_equal(expected.wide_words, got.wide_words, sizeof got.wide_words);
        assert_int_equal(expected.any_quote != 0, got.any_quote != 0);
    }
}

static void all_characters(void **state)
{
    uint8_t *text = malloc((size_t)AWKWARD_CODES * 4);
    assert_non_null(text);
    for (int r = 0; split_rules_names()[r]; r++) {
        const char *rules = split_rules_names()[r];
        scan_tables_init(&tables, split_rules_named(rules));
        for (uint32_t step = 1; step < 0x20000; step += 0x10006) {
            const size_t count = awkward_every_character(text, 0, step);
            for (size_t at = 0; at < count;
                 at += SCAN_BYTES) /* pieces of text, of which some begin inside characters */
                same_masks(rules, text + at, count - at < SCAN_BYTES ? count - at : SCAN_BYTES, count - at);
        }
    }
    free(text);
}

/* A variant reads no byte after the last: the text is exactly as large as its memory. */
static void any_bytes(void **state)
{
    awkward_seed(3);
    for (int round = 0; round < awkward_rounds(3000); round++) {
        const size_t count = 1 + awkward_below(500);
        uint8_t *text = malloc(count);
        assert_non_null(text);
        for (size_t i = 0; i < count; i++)
            text[i] = (uint8_t)(awkward_below(3) ? 0x80 | awkward_below(128) : awkward_below(256));
        const char *rules = split_rules_names()[round % 4];
        scan_tables_init(&tables, split_rules_named(rules));
        same_masks(rules, text, count, count);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_characters), cmocka_unit_test(any_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
