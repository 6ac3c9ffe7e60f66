/* SPDX-License-Identifier: MIT */
/* test_json.c - the JSON scanner and json_field: cases with the position of their fault, and records that are
 * mutated at random and compared with a recursive parser that builds the value. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/json_field.h"
#include "support/awkward_text.h"
#include "support/guarded.h"
#include "text/json_fast.h"
#include "text/utf8.h"

/* ---- the oracle ---- */

struct oracle {
    const char *at, *end;
    const char *field;
    int found; /* how many members of the outermost object have the name */
    bool is_string;
    char value[4096];
    size_t value_bytes, lone;
};

static void space(struct oracle *o)
{
    while (o->at < o->end && (*o->at == ' ' || *o->at == '\t' || *o->at == '\n' || *o->at == '\r'))
        o->at++;
}

static bool take(struct oracle *o, const char *word)
{
    const size_t bytes = strlen(word);
    if ((size_t)(o->end - o->at) < bytes || memcmp(o->at, word, bytes))
        return false;
    o->at += bytes;
    return true;
}

static bool unit(struct oracle *o, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, o->at++) {
        if (o->at == o->end || !isxdigit((unsigned char)*o->at))
            return false;
        const char digit[2] = {*o->at, 0};
        *code = *code * 16 + (unsigned)strtoul(digit, NULL, 16);
    }
    return true;
}

/* Parses a string and decodes it, as far as the result fits. */
static bool string(struct oracle *o, char *into, size_t *bytes, size_t *lone)
{
    *bytes = *lone = 0;
    if (!take(o, "\""))
        return false;
    while (o->at < o->end && *o->at != '"') {
        unsigned code;
        if ((unsigned char)*o->at < 0x20)
            return false;
        if (*o->at != '\\') {
            into[(*bytes)++] = *o->at++;
            continue;
        }
        if (++o->at == o->end)
            return false;
        const char kind = *o->at++;
        const char *simple = "\"\\/bfnrt", *means = "\"\\/\b\f\n\r\t", *which = kind ? strchr(simple, kind) : NULL;
        if (which) {
            into[(*bytes)++] = means[which - simple];
            continue;
        }
        if (kind != 'u' || !unit(o, &code))
            return false;
        if (code >= 0xd800 && code < 0xe000) {
            const char *back = o->at;
            unsigned low;
            if (code < 0xdc00 && take(o, "\\u") && unit(o, &low) && low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
            } else {
                o->at = back;
                code = 0xfffd;
                ++*lone;
            }
        }
        *bytes += utf8_put(into + *bytes, code);
    }
    return take(o, "\"");
}

static bool number(struct oracle *o)
{
    (void)take(o, "-");
    if (o->at == o->end || !isdigit((unsigned char)*o->at))
        return false;
    if (*o->at == '0')
        o->at++;
    else
        while (o->at < o->end && isdigit((unsigned char)*o->at))
            o->at++;
    if (take(o, ".")) {
        if (o->at == o->end || !isdigit((unsigned char)*o->at))
            return false;
        while (o->at < o->end && isdigit((unsigned char)*o->at))
            o->at++;
    }
    if (take(o, "e") || take(o, "E")) {
        if (!take(o, "+"))
            (void)take(o, "-");
        if (o->at == o->end || !isdigit((unsigned char)*o->at))
            return false;
        while (o->at < o->end && isdigit((unsigned char)*o->at))
            o->at++;
    }
    return true;
}

static bool value(struct oracle *o, int depth)
{
    static char text[4096];
    size_t bytes, lone;
    space(o);
    if (depth > JSON_DEPTH || o->at == o->end)
        return false;
    if (*o->at == '"')
        return string(o, text, &bytes, &lone);
    if (take(o, "{")) {
        space(o);
        if (take(o, "}"))
            return true;
        do {
            space(o);
            if (!string(o, text, &bytes, &lone))
                return false;
            const bool is_field = depth == 0 && bytes == strlen(o->field) && !memcmp(text, o->field, bytes);
            space(o);
            if (!take(o, ":"))
                return false;
            space(o);
            if (is_field) {
                o->found++;
                o->is_string = o->at < o->end && *o->at == '"';
            }
            if (is_field && o->is_string) {
                if (!string(o, o->value, &o->value_bytes, &o->lone))
                    return false;
            } else if (!value(o, depth + 1)) {
                return false;
            }
            space(o);
        } while (take(o, ","));
        return take(o, "}");
    }
    if (take(o, "[")) {
        space(o);
        if (take(o, "]"))
            return true;
        do {
            if (!value(o, depth + 1))
                return false;
            space(o);
        } while (take(o, ","));
        return take(o, "]");
    }
    return take(o, "true") || take(o, "false") || take(o, "null") || number(o);
}

static void compare(const char *record, size_t count, const char *field)
{
    struct oracle o = {.at = record, .end = record + count, .field = field};
    space(&o);
    const bool object = o.at < o.end && *o.at == '{';
    bool wanted = value(&o, 0);
    space(&o);
    wanted = wanted && o.at == o.end && object && o.found == 1 && o.is_string;
    char *exact = malloc(count ? count : 1);
    assert_non_null(exact);
    if (count)
        memcpy(exact, record, count);
    struct json_field found;
    struct json_fault fault = {SIZE_MAX, NULL};
    const bool got = json_field_find(exact, count, field, strlen(field), &found, &fault);
    if (got != wanted)
        print_error("record: %.*s\n", (int)count, record);
    assert_int_equal(got, wanted);
    if (got) {
        size_t lone = 0, first = 0, bytes = found.count;
        assert_true(found.offset + found.count < count);
        assert_int_equal(found.escaped, memchr(exact + found.offset, '\\', found.count) != NULL);
        if (found.escaped)
            bytes = json_unescape(exact + found.offset, found.count, &lone, &first);
        assert_int_equal(bytes, o.value_bytes);
        assert_memory_equal(exact + found.offset, o.value, bytes);
        assert_int_equal(lone, o.lone);
        assert_true(!lone || record[found.offset + first] == '\\');
    } else {
        assert_true(fault.offset <= count);
        assert_non_null(fault.reason);
    }
    free(exact);
}

/* ---- tests ---- */

static void test_mutations(void **state)
{
    static const char *const seeds[] = {
        "{\"text\":\"plain\"}",
        ("{ \"id\" : 12, \"text\" : \"a \\n \\u00e9 \\ud83d\\ude00 \\\"q\\\" \\\\ \\/\", \"m\": {\"text\": 1, \"l\": "
         "[1, -0.5e+3, {}, []]} }"),
        "{\"a\":[[[{\"b\":null}]],true,false],\"te\\u0078t\":\"\\ud800 \\udc00\\ud800\\u0041\"}",
        "{\"text\":\"one\",\"text\":\"two\"}",
        "{\"text\":[\"x\"],\"y\":{\"text\":\"inner\"}}",
        "[{\"text\":\"x\"}]",
        "  {\"x\": 0, \"long\": \"0123456789abcdef0123456789abcdef\", \"text\": \"0123456789abcdef\\t0123456789\"}\r",
    };
    static const char marks[] = "{}[]\":,\\ \t\r\n/ntfu0123456789.eE+-x";
    for (int round = 0; round < 400000; round++) {
        char record[400];
        const char *seed = seeds[awkward_below(sizeof seeds / sizeof seeds[0])];
        size_t count = strlen(seed);
        memcpy(record, seed, count);
        for (uint32_t faults = awkward_below(4); faults; faults--) {
            const size_t at = awkward_below((uint32_t)count + 1);
            const char mark = awkward_below(10) ? marks[awkward_below(sizeof marks - 1)] : (char)awkward_below(256);
            switch (awkward_below(4)) {
            case 0:
                count = at;
                break;
            case 1:
                memmove(record + at + 1, record + at, count - at);
                record[at] = mark;
                count++;
                break;
            case 2:
                if (at < count) {
                    memmove(record + at, record + at + 1, count - at - 1);
                    count--;
                }
                break;
            default:
                if (at < count)
                    record[at] = mark;
            }
        }
        compare(record, count, "text");
    }
}

static void test_fields(void **state)
{
    static const char *const fields[] = {"text", "", "a\"b", "\\", "caf\u00e9", "\U0001F600", "tex", "texts"};
    static const char *const records[] = {
        "{\"\":\"empty\"}",         "{\"a\\\"b\":\"quote\"}",
        "{\"\\\\\":\"backslash\"}", "{\"caf\\u00e9\":\"x\",\"tex\":\"y\"}",
        "{\"caf\u00e9\":\"x\"}",    "{\"\\ud83d\\ude00\":\"smile\"}",
        "{\"text\":\"x\"}",         "{\"\\u0074ext\":\"x\"}",
    };
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
        for (size_t r = 0; r < sizeof records / sizeof records[0]; r++)
            compare(records[r], strlen(records[r]), fields[f]);
}

static void test_faults(void **state)
{
    static const char SINGLE_QUOTES[] = "strings have double quotes; Python's json.dumps() writes them so, and str() "
                                        "does not",
                      POINTER[] = "the file is only a pointer of Git LFS; fetch the data that it stands for with "
                                  "'git lfs pull'";
    static const struct {
        const char *record;
        size_t offset;
        const char *reason;
    } cases[] = {
        {"", 0, "the text ends where a value is expected"},
        {"text", 0, "this is not a JSON value"},
        {"\"text\"", 0, JSON_FIELD_NOT_OBJECT},
        {"[]", 0, JSON_FIELD_NOT_OBJECT},
        {"{}", 0, JSON_FIELD_MISSING},
        {"{\"x\":1}", 0, JSON_FIELD_MISSING},
        {"{\"text\":null}", 8, JSON_FIELD_NULL},
        {"{\"text\": 12}", 9, JSON_FIELD_NOT_STRING},
        {"{\"text\":\"a\",\"text\":\"b\"}", 19, JSON_FIELD_TWICE},
        {"{\"text\":\"a\"} x", 13, "there is text after the value"},
        {"{\"text\":\"a\"", 11, "a comma or the end of an object or array is missing"},
        {"{\"text\":\"a\",}", 12, "the name of a field is not a string"},
        {"{\"text\":\"a", 10, "a string has no closing quote"},
        {"{\"text\":\"a\\", 10, "a string has no closing quote"},
        {"{\"text\":\"a\tb\"}", 10, "a string contains a control character that is not escaped"},
        {"{\"text\":\"a\\x\"}", 10, "a string contains an escape that JSON does not have"},
        {"{\"text\":\"a\\u00g0\"}", 10, "\\u is not followed by four hexadecimal digits"},
        {"{\"x\":01,\"text\":\"a\"}", 6, "a number has a leading zero"},
        {"{\"x\":-,\"text\":\"a\"}", 6, "a number lacks digits"},
        {"{\"x\":1.,\"text\":\"a\"}", 7, "a number lacks digits"},
        {"{\"x\":tru,\"text\":\"a\"}", 5, "this is not a JSON value"},
        {"{\"text\":NaN}", 8, JSON_FIELD_NOT_STRING},
        {"{\"x\":[1,-Infinity]}", 0, JSON_FIELD_MISSING},
        {"{\"x\":-NaN}", 6, "a number lacks digits"},
        {"{\"x\":NaNs}", 8, "a comma or the end of an object or array is missing"},
        {"{\"x\":nan}", 5, "this is not a JSON value"},
        {"{\"x\":Na", 5, "this is not a JSON value"},
        {"{'text': 'a'}", 1, SINGLE_QUOTES},
        {"{\"text\": 'a'}", 9, SINGLE_QUOTES},
        {"version https://git-lfs.github.com/spec/v1", 0, POINTER},
        {"version https://git-lf", 0, "this is not a JSON value"},
        {"{\"x\" 1}", 5, "the name of a field is not followed by a colon"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json_field found;
        struct json_fault fault;
        assert_false(json_field_find(cases[i].record, strlen(cases[i].record), "text", 4, &found, &fault));
        assert_string_equal(fault.reason, cases[i].reason);
        assert_int_equal(fault.offset, cases[i].offset);
    }
}

/* NaN and Infinity are values only where the reader allows it, and are counted. */
static void test_not_finite(void **state)
{
    static const char record[] = "{\"x\": NaN, \"y\": [Infinity, {\"z\": -Infinity}, -1], \"text\": \"a\"}";
    static const char list[] = "[1, -Infinity, NaN]";
    struct json_wanted wanted = {.name = "y", .name_bytes = 1};
    struct json_field found;
    struct json_fault fault;
    struct json_scan scan;
    uint64_t count = 0;
    size_t wrong = 7;
    assert_true(json_field_find(record, strlen(record), "text", 4, &found, &fault));
    assert_int_equal(found.not_finite, 3);
    assert_false(json_fields_find(record, strlen(record), &wanted, 1, false, &count, &fault, &wrong));
    assert_string_equal(fault.reason, JSON_NOT_FINITE);
    assert_int_equal(fault.offset, 17);
    assert_int_equal(wrong, 0);
    wanted = (struct json_wanted){.name = "text", .name_bytes = 4};
    assert_true(json_fields_find(record, strlen(record), &wanted, 1, false, &count, &fault, &wrong));
    assert_int_equal(count, 3);
    assert_false(json_is_valid(list, strlen(list), JSON_DEPTH));
    json_begin(&scan, list, strlen(list));
    assert_false(json_skip(&scan));
    assert_string_equal(scan.fault.reason, JSON_NOT_FINITE);
    json_begin(&scan, list + 1, strlen(list) - 1);
    scan.not_finite_allowed = true;
    assert_int_equal(json_kind(&scan), JSON_NUMBER);
    json_begin(&scan, list + 4, strlen(list) - 4);
    assert_int_equal(json_kind(&scan), JSON_NUMBER); /* it begins like one */
    scan.not_finite_allowed = true;
    assert_int_equal(json_kind(&scan), JSON_NAN);
    assert_true(json_skip(&scan));
    assert_int_equal(scan.not_finite, 1);
    (void)state;
}

/* Records in UTF-16 without a byte order mark, in memory of exactly their size. */
static void test_utf16(void **state)
{
    static const char little[] = "{\0\"\0x\0\"\0:\0001\0}", big[] = "\0{\0\"\0x";
    for (int i = 0; i < 2; i++) {
        const size_t count = i ? sizeof big - 1 : sizeof little;
        const struct guarded record = guarded_new(count);
        struct json_field found;
        struct json_fault fault;
        memcpy(record.at, i ? big : little, count);
        assert_false(json_field_find(record.at, count, "x", 1, &found, &fault));
        assert_non_null(strstr(fault.reason, "there is a zero byte, as UTF-16 has them"));
        assert_int_equal(fault.offset, i ? 0 : 1);
        guarded_free(record);
    }
}

/* Objects and arrays, nested as deep as is allowed and one level deeper. */
static void test_depth(void **state)
{
    char record[2 * 8 * JSON_DEPTH + 64];
    for (int object = 0; object < 2; object++)
        for (int extra = 0; extra < 2; extra++) {
            const int levels = JSON_DEPTH - 1 + extra;
            size_t count = 0;
            struct json_field found;
            struct json_fault fault;
            count += (size_t)sprintf(record, "{\"text\":\"x\",\"y\":");
            for (int i = 0; i < levels; i++)
                count += (size_t)sprintf(record + count, object ? "{\"a\":" : "[");
            count += (size_t)sprintf(record + count, "1");
            for (int i = 0; i < levels; i++)
                count += (size_t)sprintf(record + count, object ? "}" : "]");
            count += (size_t)sprintf(record + count, "}");
            assert_int_equal(json_field_find(record, count, "text", 4, &found, &fault), !extra);
        }
}

/* A number can be valid JSON although it does not fit in any machine type. */
static void test_numbers(void **state)
{
    static const char *const numbers[] = {"123456789012345678901234567890", "1e999", "-0", "-0.0e-0", "1E+400", "0.1"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char record[100];
        const int count = sprintf(record, "{\"n\":%s,\"text\":\"x\"}", numbers[i]);
        compare(record, (size_t)count, "text");
        struct json_field found;
        struct json_fault fault;
        assert_true(json_field_find(record, (size_t)count, "text", 4, &found, &fault));
    }
}

/* Strings of many times 64 bytes, with every kind of escape at every position, and sometimes an invalid one. */
static void test_long_strings(void **state)
{
    static const char *const atoms[] = {"a",
                                        "b ",
                                        "plain text, ",
                                        "\xc3\xa9",
                                        "\xe6\x97\xa5\xe6\x9c\xac",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\\\\\\\",
                                        "\\/\\b\\f\\r\\t",
                                        "\\u0041",
                                        "\\u00e9\\u65e5",
                                        "u",
                                        "n",
                                        "\\ud83d\\ude00",
                                        "\\ud83d",
                                        "\\u0022\\\\"};
    static const char *const wrong[] = {"\\x", "\\u00g0", "\n", "\x01", "\"", "\\", "\\\x80"};
    char record[1400];
    for (int round = 0; round < 20000; round++) {
        const uint32_t length = awkward_below(1000), kinds = 1 + awkward_below(17), first = awkward_below(17);
        size_t count = (size_t)sprintf(record, "{\"text\":\"");
        while (count < 10 + length) {
            const char *atom = awkward_below(4) ? atoms[awkward_below(2)] : atoms[(first + awkward_below(kinds)) % 17];
            memcpy(record + count, atom, strlen(atom));
            count += strlen(atom);
            if (!awkward_below(2000)) {
                atom = wrong[awkward_below(7)];
                memcpy(record + count, atom, strlen(atom));
                count += strlen(atom);
            }
        }
        count += (size_t)sprintf(record + count, "\"}");
        compare(record, count, "text");
    }
}

/* Texts that have been written with nothing but ASCII: escapes of six bytes in a row, or with a few bytes between them,
 * halves of surrogates among them, and what only looks like an escape. */
static void test_units(void **state)
{
    static const char *const atoms[] = {
        "\\u0416",        "\\u4E2d", "\\u0041", "\\u00e9",   "\\uFFFF", " ",    "ab", "\xc3\xa9",
        "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\\\\u0041", "\\n",     "\\\\", "u",
    };
    static const char *const wrong[] = {"\\u041", "\\u04g6", "\\u 416", "\\u041\xe9", "\\U0416", "\\u"};
    char record[1400];
    for (int round = 0; round < 20000; round++) {
        const uint32_t length = awkward_below(900), kinds = 1 + awkward_below(15);
        size_t count = (size_t)sprintf(record, "{\"text\":\"");
        while (count < 10 + length) {
            const char *atom = atoms[awkward_below(3) ? awkward_below(6) : awkward_below(kinds)];
            if (!awkward_below(3000))
                atom = wrong[awkward_below(6)];
            memcpy(record + count, atom, strlen(atom));
            count += strlen(atom);
        }
        count += (size_t)sprintf(record + count, "\"}");
        compare(record, count, "text");
    }
    (void)state;
}

/* Every escape, and what looks like one, at every position of the blocks in which long strings are read: between
 * letters that mean something else after a backslash, and twice, so that the bytes before may have moved. */
static void test_positions(void **state)
{
    static const char *const atoms[] = {"\\n",   "\\\"",    "\\\\",    "\\/", "\\b", "\\f", "\\r",  "\\t", "\\n\\n",
                                        "\\\\n", "\\\\\\n", "\\u00e9", "\\x", "\n",  "\"",  "\xe9", "\\"};
    static const char letters[] = "bfnrtu/x";
    char record[400];
    for (size_t a = 0; a < sizeof atoms / sizeof atoms[0]; a++)
        for (size_t at = 0; at < 140; at++)
            for (size_t before = 0; before <= at; before += 1 + at / 3) {
                size_t count = (size_t)sprintf(record, "{\"text\":\"");
                for (size_t i = 0; i < 230; i++) {
                    if (i == at || i == before) {
                        memcpy(record + count, atoms[a], strlen(atoms[a]));
                        count += strlen(atoms[a]);
                    }
                    record[count++] = letters[(i * 5 + at) % 8];
                }
                count += (size_t)sprintf(record + count, "\"}");
                compare(record, count, "text");
            }
    (void)state;
}

#if defined(__x86_64__)
/* Bytes of what begins at `at` if the functions for long strings handle it, else 0. */
static size_t plain_bytes(const char *at, const char *end)
{
    if (*at == '\\')
        return end - at >= 2 && json_escape_values[(uint8_t)at[1]] ? 2 : 0;
    return *at != '"' && (uint8_t)*at >= 0x20;
}

/* Compares what a variant skips and decodes with a loop over the bytes. The memory ends with the string, so that the
 * address sanitizer sees a variant that reads beyond it. */
static void compare_variant(enum cpu_variant variant, const char *string, size_t count)
{
    char *exact = malloc(count), *decoded = malloc(count), *into = exact;
    const char *end = exact + count, *at = exact;
    size_t walked = 0, bytes = 0;
    bool escaped = false, any = false;
    assert_true(exact && decoded);
    memcpy(exact, string, count);
    const char *stop = (variant == CPU_AVX2 ? json_skip_plain_avx2 : json_skip_plain_vbmi)(exact, end, &escaped);
    const size_t skipped = (size_t)(stop - exact);
    for (size_t step; walked < skipped; walked += step) {
        step = plain_bytes(string + walked, string + count);
        assert_int_not_equal(step, 0);
        any |= step == 2;
    }
    assert_int_equal(walked, skipped);
    assert_int_equal(escaped, any);
    assert_true(count - skipped <= 64 || !plain_bytes(string + skipped, string + count));

    /* Decoded is only what has been skipped: the rest may be wrong. */
    (variant == CPU_AVX2 ? json_unescape_plain_avx2 : json_unescape_plain_vbmi)(&into, &at, stop);
    const size_t taken = (size_t)(at - exact);
    assert_true(taken <= skipped);
    for (walked = 0; walked < taken; walked += 1 + (string[walked] == '\\'))
        decoded[bytes++] = string[walked] == '\\' ? json_escape_values[(uint8_t)string[walked + 1]] : string[walked];
    assert_int_equal(walked, taken);
    assert_int_equal(into - exact, bytes);
    assert_memory_equal(exact, decoded, bytes);
    assert_memory_equal(at, string + taken, count - taken);
    free(decoded);
    free(exact);
}

/* Each variant that this processor has, at any distance of the string's parts from the blocks of 64 bytes. */
static void test_variants(void **state)
{
    static const char *const atoms[] = {"a",        "plain text, ",    "\xc3\xa9", "\\n",     "\\\"", "\\\\",
                                        "\\\\\\\\", "\\/\\b\\f\\r\\t", "n",        "\\u00e9", "\\x",  "\x01",
                                        "\"",       "\\\xee",          "\\"};
    char string[700];
    for (int round = 0; round < 60000; round++) {
        /* Mostly text, then what is handled, and rarely what is not. */
        const uint32_t length = 1 + awkward_below(600), dense = 1 + awkward_below(40);
        size_t count = 0;
        while (count < length) {
            const char *atom = atoms[awkward_below(dense) ? awkward_below(3) : 3 + awkward_below(6)];
            if (!awkward_below(300))
                atom = atoms[9 + awkward_below(6)];
            memcpy(string + count, atom, strlen(atom));
            count += strlen(atom);
        }
        for (enum cpu_variant variant = CPU_AVX2; variant <= cpu_variant_best(); variant++)
            if (variant != CPU_AVX512)
                compare_variant(variant, string, count);
    }
    (void)state;
}
#else
static void test_variants(void **state)
{
    (void)state;
}
#endif

static void test_whole_values(void **state)
{
    static const char *const good[] = {"{}",       " [ ] ",          "0",
                                       "-0.5e+10", "\"\\u00e9\\n\"", "{\"a\": [1, {\"b\": null}]}",
                                       "true",     "[1,2,3]\n",      "\"\xff\""};
    static const char *const bad[] = {"",    "{",      "[1,]",    "{\"a\"}",     "{\"a\":}", "01",    "1.",   "-",
                                      "nul", "\"\n\"", "\"\\x\"", "\"\\u12g4\"", "[1 2]",    "{} {}", "\"a",  "+1",
                                      "'a'", "{a: 1}", "[1]]",    "1e",          ".5",       "\\",    "[\"\\"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!json_is_valid(good[i], strlen(good[i]), 64))
            fail_msg("valid JSON was refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (json_is_valid(bad[i], strlen(bad[i]), 64))
            fail_msg("invalid JSON was accepted: %s", bad[i]);
    assert_false(json_is_valid("{}\0", 3, 64));
    /* Nesting is bounded. */
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    assert_false(json_is_valid(deep, 1000000, JSON_DEPTH));
    for (unsigned depth = 1; depth <= 65; depth++) {
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        assert_int_equal(json_is_valid(deep, (size_t)2 * depth, 64), depth <= 64);
    }
    free(deep);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_faults),       cmocka_unit_test(test_utf16),
        cmocka_unit_test(test_fields),     cmocka_unit_test(test_depth),        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_mutations),  cmocka_unit_test(test_long_strings), cmocka_unit_test(test_whole_values),
        cmocka_unit_test(test_positions),  cmocka_unit_test(test_variants),     cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
