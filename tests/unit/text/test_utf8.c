/* SPDX-License-Identifier: MIT */
/* Validation, steps, cuts, and replacement of UTF-8, compared with a second decoder that follows the Unicode standard's
 * table byte by byte, and with Python if it is installed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "support/awkward_text.h"
#include "text/utf8.h"

/* Table 3-7 of the standard, row by row: the range of the first byte, then those of the bytes that follow. */
static const uint8_t rows[][9] = {
    /* length; lowest and highest first byte, second byte, third byte, fourth byte */
    {1, 0x00, 0x7f, 0, 0, 0, 0, 0, 0},
    {2, 0xc2, 0xdf, 0x80, 0xbf, 0, 0, 0, 0},
    {3, 0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf, 0, 0},
    {3, 0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf, 0, 0},
    {3, 0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf, 0, 0},
    {3, 0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf, 0, 0},
    {4, 0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
    {4, 0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
    {4, 0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
};

static size_t naive_step(const uint8_t *at, size_t count, bool *valid)
{
    *valid = false;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        if (at[0] < rows[row][1] || at[0] > rows[row][2])
            continue;
        size_t good = 1;
        while (good < rows[row][0] && good < count && at[good] >= rows[row][1 + 2 * good] &&
               at[good] <= rows[row][2 + 2 * good])
            good++;
        *valid = good == rows[row][0];
        return good;
    }
    return 1;
}

static size_t naive_replace(char *into, const uint8_t *bytes, size_t count, size_t *replaced, size_t *first)
{
    size_t made = 0;
    *replaced = 0;
    *first = count;
    for (size_t at = 0; at < count;) {
        bool valid;
        const size_t length = naive_step(bytes + at, count - at, &valid);
        if (valid) {
            memcpy(into + made, bytes + at, length);
            made += length;
        } else {
            if (!(*replaced)++)
                *first = at;
            memcpy(into + made, "\xef\xbf\xbd", 3);
            made += 3;
        }
        at += length;
    }
    return made;
}

static void compare(const uint8_t *bytes, size_t count)
{
    /* Memory of exactly this size, so that a sanitizer finds a read past its end. */
    char *exact = malloc(count ? count : 1), *wanted = malloc(3 * count + 1), *got = malloc(3 * count + 1);
    size_t replaced, naive_replaced, first;
    assert_non_null(exact);
    assert_non_null(wanted);
    assert_non_null(got);
    if (count)
        memcpy(exact, bytes, count);
    const size_t wanted_bytes = naive_replace(wanted, bytes, count, &naive_replaced, &first);
    assert_int_equal(utf8_valid_prefix(exact, count), first);
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2))
        assert_int_equal(utf8_valid_avx2(exact, count), first == count);
#endif
    assert_int_equal(utf8_replaced_bytes(exact, count, &replaced), wanted_bytes);
    assert_int_equal(replaced, naive_replaced);
    utf8_replace(got, exact, count);
    assert_memory_equal(got, wanted, wanted_bytes);
    free(exact);
    free(wanted);
    free(got);
}

/* Every sequence of up to three bytes, and those of four bytes that begin in different ways. */
static void test_short_sequences(void **state)
{
    uint8_t bytes[4];
    for (uint32_t code = 0; code < 1u << 16; code++) {
        bytes[0] = (uint8_t)(code >> 8);
        bytes[1] = (uint8_t)code;
        compare(bytes, 2);
    }
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                    0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    const size_t n = sizeof edges;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            for (size_t c = 0; c < n; c++)
                for (size_t d = 0; d < n; d++) {
                    const uint8_t four[4] = {edges[a], edges[b], edges[c], edges[d]};
                    compare(four, 4);
                    compare(four, 3);
                }
}

/* Valid text with scattered faults, long enough for vector code, with the faults at every alignment. */
static size_t make_text(uint8_t *into, size_t capacity, uint32_t faults)
{
    size_t count = 0;
    while (count + 4 <= capacity) {
        const uint32_t kind = awkward_below(8);
        uint32_t code = awkward_below(kind < 5 ? 0x80 : kind == 5 ? 0x800 : kind == 6 ? 0x10000 : 0x110000);
        if (code >= 0xd800 && code < 0xe000)
            code = 'x';
        count += utf8_put((char *)into + count, code);
    }
    for (uint32_t i = 0; i < faults && count; i++)
        into[awkward_below((uint32_t)count)] = (uint8_t)awkward_below(256);
    return count;
}

static void test_long_texts(void **state)
{
    uint8_t bytes[700];
    for (int round = 0; round < 20000; round++)
        compare(bytes, make_text(bytes, 1 + awkward_below(sizeof bytes), (uint32_t)round % 4));
    for (int round = 0; round < 20000; round++) {
        const size_t count = awkward_below(sizeof bytes);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)(awkward_below(3) ? 0x80 + awkward_below(128) : awkward_below(128));
        compare(bytes, count);
    }
}

/* One fault, or an incomplete sequence of each length, at every position of a text that is longer than a vector. */
static void test_places(void **state)
{
    static const char *const pieces[] = {
        "\xff",         "\xc3",         "\xe2\x82",         "\xf0\x9f\x98",     "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xe0\x9f\xbf", "\xc0\x80",     "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\x80",         "\xc3\xa9\x80",
        "\xc3\xa9",     "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    uint8_t bytes[200];
    for (size_t piece = 0; piece < sizeof pieces / sizeof pieces[0]; piece++)
        for (size_t at = 0; at < 140; at++)
            for (int tail = 0; tail < 2; tail++) {
                const size_t length = strlen(pieces[piece]);
                for (size_t i = 0; i + 1 < sizeof bytes; i += 2)
                    memcpy(bytes + i, tail ? "\xc3\xa9" : "ab", 2);
                const size_t even = tail ? at & ~(size_t)1 : at;
                memcpy(bytes + even, pieces[piece], length);
                compare(bytes, even + length);
                memset(bytes + even + length, 'z', sizeof bytes - even - length);
                compare(bytes, sizeof bytes);
            }
}

/* Wherever a text is cut, replacing its parts one by one gives the same result as replacing all of it: no character is
 * divided. */
static void test_cuts(void **state)
{
    uint8_t bytes[200];
    char whole[700], parts[700];
    for (int round = 0; round < 20000; round++) {
        const size_t count = make_text(bytes, sizeof bytes, awkward_below(30));
        size_t replaced, first, made = 0, wanted = naive_replace(whole, bytes, count, &replaced, &first);
        for (size_t at = 0; at < count;) {
            size_t part = 4 + awkward_below(60);
            part = part >= count - at ? count - at : utf8_cut((char *)bytes + at, part);
            assert_true(part > 0);
            made += naive_replace(parts + made, bytes + at, part, &replaced, &first);
            at += part;
        }
        assert_int_equal(made, wanted);
        assert_memory_equal(parts, whole, wanted);
    }
}

static void test_known(void **state)
{
    /* Examples of the Unicode standard, section 3.9. */
    static const struct {
        const char *bytes;
        size_t count;
        const char *wanted;
    } cases[] = {
        {"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", 13,
         "a\u00ff\u00ff\u00ff"
         "b\u00ff"
         "c\u00ff\u00ff"
         "d"},
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", 9,
         "\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff"
         "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", 9,
         "\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff"
         "A"},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", 9,
         "\u00ff\u00ff\u00ff\u00ff\u00ff"
         "A\u00ff\u00ff"
         "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 9,
         "\u00ff\u00ff\u00ff\u00ff"
         "A"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char got[64];
        size_t replaced;
        const size_t made = utf8_replaced_bytes(cases[i].bytes, cases[i].count, &replaced);
        utf8_replace(got, cases[i].bytes, cases[i].count);
        size_t at = 0;
        for (const char *wanted = cases[i].wanted; *wanted;) {
            /* U+00FF stands for U+FFFD in the table above. */
            if ((uint8_t)*wanted == 0xc3) {
                assert_memory_equal(got + at, "\xef\xbf\xbd", 3);
                wanted += 2;
                at += 3;
            } else {
                assert_int_equal(got[at++], *wanted++);
            }
        }
        assert_int_equal(at, made);
    }
}

static void test_python(void **state)
{
    uint8_t bytes[3000];
    const char *folder = getenv("TMPDIR");
    char path[600], command[900];
    FILE *file = NULL;
    if (system("python3 -c '' 2>/dev/null")) {
        print_message("python3 is not installed\n");
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/utf8-%d", folder ? folder : "/tmp", (int)awkward_below(1u << 30));
    char *wanted = malloc(3 * sizeof bytes);
    assert_non_null(wanted);
    for (int round = 0; round < 5; round++) {
        size_t count = make_text(bytes, sizeof bytes, 300), replaced;
        file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, count, file), count);
        assert_int_equal(fclose(file), 0);
        (void)snprintf(command, sizeof command,
                       "python3 -c 'import sys; b = open(sys.argv[1], \"rb\").read(); "
                       "open(sys.argv[1], \"wb\").write(b.decode(\"utf-8\", \"replace\").encode())' '%s'",
                       path);
        assert_int_equal(system(command), 0);
        file = fopen(path, "rb");
        assert_non_null(file);
        const size_t python = fread(wanted, 1, 3 * sizeof bytes, file);
        (void)fclose(file);
        char *got = malloc(3 * sizeof bytes);
        assert_non_null(got);
        assert_int_equal(utf8_replaced_bytes((char *)bytes, count, &replaced), python);
        utf8_replace(got, (char *)bytes, count);
        assert_memory_equal(got, wanted, python);
        free(got);
    }
    free(wanted);
    (void)remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known), cmocka_unit_test(test_short_sequences), cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_cuts),  cmocka_unit_test(test_places),          cmocka_unit_test(test_python),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
