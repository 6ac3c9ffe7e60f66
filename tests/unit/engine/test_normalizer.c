/* SPDX-License-Identifier: MIT */
/* test_normalizer.c - the steps of a normalizer: what each makes of a text, where it says that each byte of that comes
 * from, and that it says the same of any text as it makes without saying where. tests/reference/hf_variants.py compares
 * with the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/normalizer.h"
#include "support/awkward_text.h"
#include "text/code_point.h"

#define ACUTE "\xCC\x81" /* U+0301 */

static struct normalizer normalizer;
static struct normalizer_state state;
static struct text_edits trace[NORMALIZER_STEPS_MOST];

static void begin(struct normalizer_step step)
{
    memset(&normalizer, 0, sizeof normalizer);
    normalizer.steps[0] = step;
    normalizer.count = 1;
    assert_int_equal(normalizer_state_init(&state, &normalizer, NULL), TOKMAP_OK);
}

static void end(void)
{
    normalizer_state_free(&state);
    normalizer_free(&normalizer);
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        text_edits_free(&trace[i]);
}

/* Checks what a text becomes, and the parts of the text from which it comes: "0-1 1-4" for the bytes 0 and 1. */
static void check(const char *text, const char *expected, const char *origins)
{
    const uint8_t *made;
    size_t count, used = 0;
    char found[512] = "";
    for (int traced = 0; traced < 2; traced++) {
        state.trace = traced ? trace : NULL;
        assert_int_equal(normalizer_run(&state, (const uint8_t *)text, strlen(text), &made, &count, NULL), TOKMAP_OK);
        assert_int_equal(count, strlen(expected));
        assert_memory_equal(made, expected, count);
        assert_true(count <= normalizer_growth(&normalizer) * strlen(text));
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = i, to = i + 1;
        text_edits_map(&trace[0], &from, &to);
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%d-%d", i ? " " : "", (int)from, (int)to);
    }
    assert_string_equal(found, origins);
}

static void forms(void **unused)
{
    begin((struct normalizer_step){.kind = NORMALIZE_NFD});
    check("a\xC3\xA9!", "ae" ACUTE "!", "0-1 1-3 1-3 1-3 3-4");
    check("\xEA\xB0\x80\xEA\xB0\x80", "\xE1\x84\x80\xE1\x85\xA1\xE1\x84\x80\xE1\x85\xA1",
          "0-3 0-3 0-3 0-3 0-3 0-3 3-6 3-6 3-6 3-6 3-6 3-6"); /* each syllable by itself */
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_NFKC});
    check("\xEF\xAC\x81x\xEF\xBC\xA1\xEF\xBC\xA2", "fixAB", "0-3 0-3 3-4 4-7 7-10");
    check("q\xCD\x80", "q\xCC\x80", "0-1 1-3 1-3"); /* U+0340 and U+0300 end with the same byte */
    check("\xEF\xBD\xB6\xEF\xBE\x9E.", "\xE3\x82\xAC.", "0-6 0-6 0-6 6-7"); /* half-width ka, voiced: one character */
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_NFKD});
    check("\xC2\xBD",
          "1\xE2\x81\x84"
          "2",
          "0-2 0-2 0-2 0-2 0-2");
    end();
}

static void characters(void **unused)
{
    begin((struct normalizer_step){.kind = NORMALIZE_LOWER});
    check("", "", "");
    check("plain", "plain", "0-1 1-2 2-3 3-4 4-5");
    check("AbC@[Z`{z", "abc@[z`{z", "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9");
    check("\xC3\x89"
          "A",
          "\xC3\xA9"
          "a",
          "0-1 1-2 2-3");
    check("\xC4\xB0x", "i\xCC\x87x", "0-2 0-2 0-2 2-3");               /* U+0130 becomes two characters */
    check("\xC8\xBA\xE2\x84\xAA", "\xE2\xB1\xA5k", "0-2 0-2 0-2 2-5"); /* one becomes longer, one shorter */
    check("\xCE\x91\xCE\xA3", "\xCE\xB1\xCF\x83", "0-1 1-2 2-3 3-4");  /* a final sigma is not special */
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_MARKS});
    check("e" ACUTE "x" ACUTE, "ex", "0-1 3-4");
    check(ACUTE, "", "");
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_NMT});
    check("a\tb\x7F\x01"
          "c\xE2\x80\x8B",
          "a bc ", "0-1 1-2 2-3 5-6 6-9");
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_BYTES});
    check("a \xC3\xA9", "a\xC4\xA0\xC3\x83\xC2\xA9", "0-1 1-2 1-2 2-4 2-4 2-4 2-4");
    end();
}

static void ends(void **unused)
{
    begin((struct normalizer_step){.kind = NORMALIZE_STRIP, .strip_left = true, .strip_right = true});
    check(" \xE3\x80\x80"
          "a b\n ",
          "a b", "4-5 5-6 6-7");
    check(" \n", "", "");
    check("", "", "");
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_STRIP, .strip_right = true});
    check(" a ", " a", "0-1 1-2");
    check("a\xE3\x80\x80", "a", "0-1");
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_STRIP, .strip_left = true});
    check(" a ", "a ", "1-2 2-3");
    end();
}

/* A map with the keys a and bb (become xy), bc and d (become nothing), and e (becomes a space): each node has a block
 * of 256 units. */
static struct charsmap *map_make(void)
{
    static const struct {
        uint32_t at, unit;
    } parts[] = {{0, 256u << 10},
                 {256 ^ 'a', 'a' | 256 | (256 ^ 'a' ^ 512) << 10},
                 {512, UINT32_C(1) << 31},
                 {256 ^ 'b', 'b' | (256 ^ 'b' ^ 768) << 10},
                 {768 ^ 'c', 'c' | 256 | (768 ^ 'c' ^ 1024) << 10},
                 {1024, UINT32_C(1) << 31 | 2},
                 {256 ^ 'd', 'd' | 256 | (256 ^ 'd' ^ 1280) << 10},
                 {1280, UINT32_C(1) << 31 | 2},
                 {256 ^ 'e', 'e' | 256 | (256 ^ 'e' ^ 1536) << 10},
                 {1536, UINT32_C(1) << 31 | 3},
                 {768 ^ 'b', 'b' | 256 | (768 ^ 'b' ^ 1792) << 10},
                 {1792, UINT32_C(1) << 31}};
    static uint32_t words[1 + 8 * 256 + 2];
    struct charsmap *map;
    words[0] = 8 * 256 * 4;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        words[1 + parts[i].at] = parts[i].unit;
    memcpy(&words[1 + 8 * 256], "xy\0 \0\0", 7);
    assert_int_equal(charsmap_new(&map, (const uint8_t *)words, sizeof words, NULL, "map", NULL), TOKMAP_OK);
    return map;
}

static void maps(void **unused)
{
    begin((struct normalizer_step){.kind = NORMALIZE_CHARSMAP, .map = map_make()});
    check("_a_bc_b", "_xy__b", "0-1 1-2 1-2 2-3 5-6 6-7");
    check("bb_", "xy_", "0-2 0-2 2-3"); /* two characters, although there are as many bytes */
    end();
    begin((struct normalizer_step){.kind = NORMALIZE_PRECOMPILED, .map = map_make()});
    check("_a" ACUTE "_bc", "_xy_bc", "0-1 1-4 1-4 4-5 5-6 6-7");
    end();
    /* What is left of a text is spaces: they become U+2581 if something was taken out. */
    begin((struct normalizer_step){.kind = NORMALIZE_CHARSMAP, .map = map_make(), .marks_blank = true});
    check("d", "\xE2\x96\x81", "0-1 0-1 0-1");
    check("d e", "\xE2\x96\x81", "0-3 0-3 0-3");
    check(" e", "  ", "0-1 1-2");
    check("da", "xy", "1-2 1-2");
    end();
    /* What begins with a symbol is not looked at, unless a key reaches into it. */
    static const struct match_text symbols[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"c!", 2}};
    struct match_table *table;
    assert_int_equal(match_table_new(&table, symbols, 2, NULL, NULL), TOKMAP_OK);
    begin((struct normalizer_step){.kind = NORMALIZE_CHARSMAP, .map = map_make(), .symbols = table});
    check("a_bc!a", "a_!a", "0-1 1-2 4-5 5-6");
    end();
    match_table_free(table);
}

/* Room is for all calls together. */
static void room(void **unused)
{
    const uint8_t *made;
    size_t count;
    struct tokmap_error error;
    begin((struct normalizer_step){.kind = NORMALIZE_CHARSMAP, .map = map_make()});
    state.room = 7;
    assert_int_equal(normalizer_run(&state, (const uint8_t *)"aa", 2, &made, &count, &error), TOKMAP_OK);
    assert_int_equal(normalizer_run(&state, (const uint8_t *)"aa", 2, &made, &count, &error), TOKMAP_ERROR_LIMIT);
    end();
}

/* No text is larger than the growth says. A growth that is too large for any text is reported. */
static void growth(void **unused)
{
    struct normalizer_step put = {.kind = NORMALIZE_PREPEND, .content_bytes = 70000};
    struct normalizer two = {.count = 1, .steps = {put, put}};
    assert_int_equal(normalizer_growth(&two), 70001);
    two.count = 2;
    assert_true(normalizer_growth(&two) == UINT64_MAX);
    struct regex *regex;
    if (regex_new(&regex, "x*", 2, REGEX_ONIGURUMA, NULL, "pattern", NULL))
        skip(); /* a build without PCRE2 */
    uint8_t *content = (uint8_t *)strdup("--");
    begin((struct normalizer_step){.kind = NORMALIZE_REPLACE, .regex = regex, .content = content, .content_bytes = 2});
    check("a", "--a--", "0-0 0-0 0-1 1-1 1-1");
    end();
}

/* Any text: with a trace and without it, a step makes the same; the parts between edits are those of the text. */
static void any_text(void **unused)
{
    static const enum normalizer_kind kinds[] = {NORMALIZE_NFC,  NORMALIZE_NFD,   NORMALIZE_NFKC,
                                                 NORMALIZE_NFKD, NORMALIZE_LOWER, NORMALIZE_MARKS,
                                                 NORMALIZE_NMT,  NORMALIZE_STRIP, NORMALIZE_BYTES};
    uint8_t *text = malloc((size_t)AWKWARD_CODES * 4);
    assert_non_null(text);
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (uint32_t step = 1; step < 0x20000; step += 0x10006) {
            const size_t count = awkward_every_character(text, step, step);
            const uint8_t *made;
            size_t made_count;
            begin((struct normalizer_step){.kind = kinds[kind], .strip_left = true, .strip_right = true});
            assert_int_equal(normalizer_run(&state, text, count, &made, &made_count, NULL), TOKMAP_OK);
            uint8_t *first = malloc(made_count + 1);
            assert_non_null(first);
            memcpy(first, made, made_count);
            const size_t first_count = made_count;
            state.trace = trace;
            assert_int_equal(normalizer_run(&state, text, count, &made, &made_count, NULL), TOKMAP_OK);
            assert_int_equal(made_count, first_count);
            assert_memory_equal(made, first, made_count);
            uint64_t at = 0, old = 0;
            for (uint64_t i = 0; i <= trace[0].count; i++) {
                const struct text_edit edit =
                    i < trace[0].count ? trace[0].edits[i] : (struct text_edit){made_count, made_count, count, count};
                assert_int_equal(edit.from - at, edit.old_from - old);
                if (kinds[kind] != NORMALIZE_LOWER && kinds[kind] != NORMALIZE_NMT) /* these note other lengths only */
                    assert_memory_equal(made + at, text + old, edit.from - at);
                at = edit.to;
                old = edit.old_to;
            }
            free(first);
            end();
        }
    free(text);
}

/* What was decomposed once is not decomposed again, even if letters became small, so it does not grow. */
static void decomposed(void **unused)
{
    const struct normalizer_step form = {.kind = NORMALIZE_NFKD}, lower = {.kind = NORMALIZE_LOWER};
    struct normalizer some = {.count = 2, .steps = {form, lower}};
    const struct normalizer all = {
        .count = 6, .steps = {form, {.kind = NORMALIZE_MARKS}, lower, {.kind = NORMALIZE_NFD}, form, lower}};
    struct normalizer_state states[2];
    assert_int_equal(normalizer_growth(&all), 11 * 2 * 2);
    assert_int_equal(normalizer_state_init(&states[0], &some, NULL), TOKMAP_OK);
    struct normalizer again = some;
    again.steps[again.count++] = form;
    assert_int_equal(normalizer_growth(&again), 11 * 2);
    assert_int_equal(normalizer_state_init(&states[1], &again, NULL), TOKMAP_OK);
    for (uint32_t code = 1; code < 0x110000; code++) {
        const uint8_t *made[2];
        size_t counts[2];
        uint8_t text[4];
        if (code >= 0xD800 && code < 0xE000)
            continue;
        const size_t bytes = code_point_put(text, code);
        for (int i = 0; i < 2; i++)
            assert_int_equal(normalizer_run(&states[i], text, bytes, &made[i], &counts[i], NULL), TOKMAP_OK);
        assert_int_equal(counts[0], counts[1]);
        assert_memory_equal(made[0], made[1], counts[0]);
    }
    normalizer_state_free(&states[0]);
    normalizer_state_free(&states[1]);
    uint8_t e_acute[] = {0xC3, 0xA9}; /* it can be decomposed */
    again.steps[1] = (struct normalizer_step){
        .kind = NORMALIZE_REPLACE, .pattern = e_acute, .pattern_bytes = 2, .content = e_acute, .content_bytes = 2};
    assert_int_equal(normalizer_growth(&again), 11 * 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms),    cmocka_unit_test(characters),
                                       cmocka_unit_test(ends),     cmocka_unit_test(maps),
                                       cmocka_unit_test(room),     cmocka_unit_test(growth),
                                       cmocka_unit_test(any_text), cmocka_unit_test(decomposed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
