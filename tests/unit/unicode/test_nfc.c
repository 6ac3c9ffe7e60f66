/* SPDX-License-Identifier: MIT */
/* test_nfc.c - NFC: what nfc_find skips, what it returns, and runs of marks of any length. The golden tests of
 * tokenizers with NFC (test_hf_golden.c) compare with the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/awkward_text.h"
#include "text/code_point.h"
#include "unicode/charsmap.h"
#include "unicode/nfc.h"

#define ACUTE "\xCC\x81"     /* U+0301, class 230 */
#define DOT_ABOVE "\xCC\x87" /* U+0307, class 230 */
#define DOT_BELOW "\xCC\xA3" /* U+0323, class 220 */

static struct nfc_scratch scratch;

static void check(const char *text, const char *expected)
{
    struct bytes_buffer made = {NULL, 0, 0};
    assert_true(nfc_append(&scratch, &made, (const uint8_t *)text, strlen(text)));
    assert_int_equal(made.count, strlen(expected));
    assert_memory_equal(made.bytes, expected, made.count);
    bytes_free(&made);
    /* NFC of NFC is the same, and nothing is found in it. */
    size_t end;
    assert_int_equal(nfc_find(&scratch, (const uint8_t *)expected, 0, strlen(expected), &end), strlen(expected));
}

static void texts(void **state)
{
    check("a", "a");
    check("cafe" ACUTE, "caf\xC3\xA9");
    check("caf\xC3\xA9", "caf\xC3\xA9");
    check("q" DOT_ABOVE DOT_BELOW, "q" DOT_BELOW DOT_ABOVE);
    check("q" DOT_BELOW DOT_ABOVE, "q" DOT_BELOW DOT_ABOVE);
    check(ACUTE "a", ACUTE "a");
    check("e" ACUTE ACUTE, "\xC3\xA9" ACUTE);
    check("e\xCC\x93" ACUTE, "e\xCC\x93" ACUTE);                   /* U+0313 is between, of the same class */
    check("\xD7\x90\xD6\xB1\xD6\xB0", "\xD7\x90\xD6\xB0\xD6\xB1"); /* points of the classes 11 and 10 */
    check("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"); /* Hangul: U+1100 U+1161 U+11A8 */
    check("\xEA\xB0\x80\xE1\x86\xA8", "\xEA\xB0\x81");             /* U+AC00 U+11A8 */
    check("\xE2\x84\xAB", "\xC3\x85");                             /* U+212B is replaced by U+00C5 */
    check("\xF0\x9D\x85\xA0", "\xF0\x9D\x85\x98\xF0\x9D\x85\xA5\xF0\x9D\x85\xAE"); /* U+1D160 stays decomposed */
}

static void decomposed(void **state)
{
    for (int form = FORM_NFD; form <= FORM_NFKD; form++) {
        if (form == FORM_NFKC)
            continue;
        nfc_scratch_free(&scratch);
        scratch = (struct nfc_scratch){.form = (enum normal_form)form};
        check("q" DOT_ABOVE DOT_BELOW, "q" DOT_BELOW DOT_ABOVE);
        check("\xC3\xA9" DOT_BELOW, "e" DOT_BELOW ACUTE); /* a mark before one that comes from its letter */
        check("\xEA\xB0\x81", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8");
        check("\xEF\xAC\x81", form == FORM_NFD ? "\xEF\xAC\x81" : "fi");
    }
    nfc_scratch_free(&scratch);
    scratch = (struct nfc_scratch){.form = FORM_NFC};
}

/* The example at the head of nfc.c. */
static void parts(void **state)
{
    static const char text[] = "cafe" ACUTE " xq" DOT_ABOVE DOT_BELOW;
    const size_t count = sizeof text - 1;
    size_t end;
    assert_int_equal(nfc_find(&scratch, (const uint8_t *)text, 0, count, &end), 3);
    assert_int_equal(end, 6);
    assert_int_equal(scratch.made.count, 2);
    assert_memory_equal(scratch.made.bytes, "\xC3\xA9", 2);
    assert_int_equal(nfc_find(&scratch, (const uint8_t *)text, end, count, &end), 8);
    assert_int_equal(end, count);
    assert_int_equal(nfc_find(&scratch, (const uint8_t *)text, end, count, &end), count);
}

/* Runs of marks in the wrong order, short ones that are sorted by insertion and a long one that must not take quadratic
 * time. */
static void long_runs(void **state)
{
    static const size_t lengths[] = {1, 15, 16, 17, 40, 500000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const size_t pairs = lengths[i], count = 1 + 4 * pairs;
        char *text = malloc(count + 1), *expected = malloc(count + 1);
        assert_true(text && expected);
        text[0] = expected[0] = 'q';
        for (size_t k = 0; k < pairs; k++) {
            memcpy(text + 1 + 4 * k, DOT_ABOVE DOT_BELOW, 4);
            memcpy(expected + 1 + 2 * k, DOT_BELOW, 2);
            memcpy(expected + 1 + 2 * pairs + 2 * k, DOT_ABOVE, 2);
        }
        text[count] = expected[count] = 0;
        check(text, expected);
        free(text);
        free(expected);
    }
    nfc_scratch_trim(&scratch);
    assert_true(scratch.codes.capacity <= BYTES_BUFFER_KEPT && scratch.sorted.capacity <= BYTES_BUFFER_KEPT);
}

/* ---- the search of code_search.h ---- */

/* Every character, beside its neighbors in Unicode and beside distant ones, is found if and only if it is in the set.
 */
static void quick_set(const struct code_bits *set)
{
    uint8_t *text = malloc((size_t)AWKWARD_CODES * 4);
    assert_non_null(text);
    for (int variant = CPU_SCALAR; variant <= (int)cpu_variant_best(); variant++) {
        struct code_search quick;
        code_search_init(&quick, set, (enum cpu_variant)variant);
        for (uint32_t step = 1; quick.find && step < 0x20000; step += 0x10006) {
            const size_t count = awkward_every_character(text, step, step);
            size_t at = 0, seen = 0, unstable = 0;
            while (count - at >= CODE_SEARCH_BYTES) {
                const uint64_t found = quick.find(&quick, text, &at, count);
                for (; seen < at; seen++)
                    assert_true((text[seen] & 0xC0) == 0x80 || !code_bits_have(set, text + seen));
                for (; found && seen < at + 64; seen++) {
                    assert_int_equal(found >> (seen - at) & 1,
                                     (text[seen] & 0xC0) != 0x80 && code_bits_have(set, text + seen));
                    unstable += found >> (seen - at) & 1;
                }
                at += found ? 64 : 0;
            }
            assert_true(unstable > 30);
        }
    }
    free(text);
}

static void quick_all(void **state)
{
    for (int form = 0; form < NORMAL_FORMS; form++)
        quick_set(nfc_unstable(form));
    for (int map = 0; map < CHAR_MAPS; map++) /* sets with characters of ASCII */
        quick_set(char_map_set(map));
}

/* Texts of characters that NFC changes, of any length and with any text between them: the result is the same with the
 * quick search and without it. */
static void quick_texts(void **state)
{
    static const char *const parts[] = {"a",
                                        "word ",
                                        "caf\xC3\xA9",
                                        ACUTE,
                                        DOT_ABOVE,
                                        DOT_BELOW,
                                        "\xE2\x80\x99",
                                        "\xE3\x82\x99",
                                        "\xE3\x81\x8B",
                                        "\xE0\xA4\xBC",
                                        "\xE0\xA4\x95",
                                        "\xEA\xB0\x80",
                                        "\xE1\x86\xA8",
                                        "\xF0\x9F\x98\x80",
                                        "\xF0\x9D\x85\xA0",
                                        "\xD0\x99",
                                        "twenty plain letters",
                                        "\xE2\x84\xAB"};
    struct nfc_scratch plain = {.ready = true};
    code_search_init(&plain.search, nfc_unstable(FORM_NFC), CPU_SCALAR);
    struct bytes_buffer text = {NULL, 0, 0}, made = {NULL, 0, 0}, expected = {NULL, 0, 0};
    uint64_t random = 1;
    for (int round = 0; round < 4000; round++) {
        text.count = made.count = expected.count = 0;
        for (uint32_t i = 0; i < (uint32_t)round % 97; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const char *part = parts[(random >> 33) % (sizeof parts / sizeof parts[0])];
            assert_true(bytes_append(&text, part, strlen(part)));
        }
        assert_true(nfc_append(&scratch, &made, text.bytes, text.count));
        assert_true(nfc_append(&plain, &expected, text.bytes, text.count));
        assert_int_equal(made.count, expected.count);
        if (made.count)
            assert_memory_equal(made.bytes, expected.bytes, made.count);
    }
    nfc_scratch_free(&plain);
    bytes_free(&text);
    bytes_free(&made);
    bytes_free(&expected);
}

static int teardown(void **state)
{
    nfc_scratch_free(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts),     cmocka_unit_test(decomposed),
                                       cmocka_unit_test(parts),     cmocka_unit_test(long_runs),
                                       cmocka_unit_test(quick_all), cmocka_unit_test(quick_texts)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
