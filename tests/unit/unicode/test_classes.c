/* SPDX-License-Identifier: MIT */
/* test_classes.c - the table of classes, compared with the ranges that the engines of the references match. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference_data.h"
#include "unicode/classes.h"
#include "unicode/code_sets.h"

#define CHARACTERS 0x110000

static uint8_t class_of(uint32_t c)
{
    uint8_t bytes[4];
    if (c < 0x80)
        return bytes[0] = (uint8_t)c, character_class(bytes);
    if (c < 0x800) {
        bytes[0] = (uint8_t)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[0] = (uint8_t)(0xE0 | c >> 12);
        bytes[1] = (uint8_t)(0x80 | (c >> 6 & 63));
    } else {
        bytes[0] = (uint8_t)(0xF0 | c >> 18);
        bytes[1] = (uint8_t)(0x80 | (c >> 12 & 63));
        bytes[2] = (uint8_t)(0x80 | (c >> 6 & 63));
    }
    bytes[character_bytes(bytes[0]) - 1] = (uint8_t)(0x80 | (c & 63));
    return character_class(bytes);
}

/* Some characters that need no reference data. */
static void known_characters(void **state)
{
    /* clang-format off */
    static const struct {
        uint32_t c;
        uint8_t class;
    } known[] = {
        {'A', CLASS_UPPER}, {'z', CLASS_LOWER}, {'0', CLASS_NUMBER}, {' ', CLASS_SPACE}, {'\t', CLASS_SPACE},
        {'\n', CLASS_NEWLINE}, {'\r', CLASS_NEWLINE}, {0, CLASS_OTHER}, {'_', CLASS_PUNCTUATION},
        {'+', CLASS_SYMBOL},
        {0x85, CLASS_SPACE}, {0xA0, CLASS_SPACE}, {0x180E, CLASS_OTHER}, {0x200B, CLASS_OTHER},
        {0xFEFF, CLASS_OTHER},
        {0x2028, CLASS_SPACE}, {0x3000, CLASS_SPACE}, {0x1C5, CLASS_TITLE}, {0x2B0, CLASS_MODIFIER},
        {0x301, CLASS_MARK},
        {0x4E00, CLASS_LETTER | CLASS_HAN | CLASS_CJK}, {0x9FA6, CLASS_LETTER | CLASS_HAN},
        {0x3042, CLASS_LETTER | CLASS_CJK},             {0x3007, CLASS_NUMBER | CLASS_HAN},
        {0x20000, CLASS_LETTER | CLASS_HAN},            {0x1F600, CLASS_SYMBOL}, {0x10FFFF, CLASS_OTHER},
        {0x1C89, CLASS_UPPER},    {0x10D40, CLASS_NUMBER}, /* new in Unicode 16 */
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(class_of(known[i].c), known[i].class);
}

static char *reference(void)
{
    static const char name[] = "classes_unicode16_reference.json";
    const char *data = reference_data();
    char path[1024];
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", data ? data : ".", name);
    char *content = reference_read(path, &bytes);
    if (!content) {
        snprintf(path, sizeof path, "../shared/data/%s", name);
        content = reference_read(path, &bytes);
    }
    return content;
}

/* Sets a bit for all characters of a class: {"NAME": {"tik": [[first, last], ...], "hf": ...}, ...}. */
static void read_ranges(const char *json, const char *name, const char *engine, uint32_t *bits, uint32_t bit)
{
    char key[16];
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *at = strstr(json, key);
    assert_non_null(at);
    snprintf(key, sizeof key, "\"%s\"", engine);
    assert_non_null(at = strstr(at, key));
    at = strchr(at, '[') + 1;
    while (*at != ']') {
        char *end;
        at = strchr(at, '[') + 1;
        const unsigned long first = strtoul(at, &end, 10), last = strtoul(strchr(end, ',') + 1, &end, 10);
        assert_true(first <= last && last < CHARACTERS);
        for (unsigned long c = first; c <= last; c++)
            bits[c] |= 1u << bit;
        for (at = strchr(end, ']') + 1; *at == ',' || *at == ' ' || *at == '\n'; at++)
            ;
    }
}

static void all_characters(void **state)
{
    static const char *const names[] = {"Lu", "Lt", "Ll", "Lm", "Lo", "M", "N", "P", "S", "s", "Han"};
    static const uint8_t classes[] = {CLASS_UPPER, CLASS_TITLE,  CLASS_LOWER,       CLASS_MODIFIER, CLASS_LETTER,
                                      CLASS_MARK,  CLASS_NUMBER, CLASS_PUNCTUATION, CLASS_SYMBOL,   CLASS_SPACE};
    char *json = reference();
    if (!json) {
        print_message("classes_unicode16_reference.json is missing\n");
        skip();
    }
    for (int engine = 0; engine < 2; engine++) {
        uint32_t *bits = calloc(CHARACTERS, sizeof *bits);
        assert_non_null(bits);
        for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
            read_ranges(json, names[i], engine ? "hf" : "tik", bits, i);
        for (uint32_t c = 0; c < CHARACTERS; c++) {
            if (c >= 0xD800 && c < 0xE000)
                continue;
            const uint8_t found = class_of(c), kind = found & CLASS_KIND;
            uint32_t expected = found & CLASS_HAN ? 1u << 10 : 0;
            for (uint32_t i = 0; i < sizeof classes; i++)
                if (kind == classes[i] || (kind == CLASS_NEWLINE && classes[i] == CLASS_SPACE))
                    expected |= 1u << i;
            if (bits[c] != expected)
                fail_msg("U+%04X has the class 0x%02x, but in the reference it belongs to 0x%x", c, found, bits[c]);
            assert_int_equal((found & CLASS_CJK) != 0, (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF));
        }
        free(bits);
    }
    free(json);
}

/* The first and the last character of each range have its script, and those between ranges have none. */
static void scripts(void **state)
{
    for (uint32_t i = 0; i < SCRIPT_SPANS; i++) {
        const struct code_span *span = &script_spans[i];
        assert_int_equal(code_script(span->first), span->number);
        assert_int_equal(code_script(span->last), span->number);
        if (span->first && (!i || span[-1].last + 1 < span->first))
            assert_int_equal(code_script(span->first - 1), SCRIPT_ANY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_characters), cmocka_unit_test(all_characters),
                                       cmocka_unit_test(scripts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
