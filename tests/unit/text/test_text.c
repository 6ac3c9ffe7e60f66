/* SPDX-License-Identifier: MIT */
/* Decimal numbers, paths, edit distances, and what is in place of a file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/decimal.h"
#include "text/edit_distance.h"
#include "text/path.h"
#include "text/stand_in.h"

static void numbers_are_read_up_to_the_first_other_byte(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        bool good;
        uint64_t number;
        size_t used;
    } cases[] = {
        {"0", true, 0, 1},   {"007,", true, 7, 3}, {"18446744073709551615..", true, UINT64_MAX, 20},
        {"", false, 0, 0},   {"-1", false, 0, 0},  {"18446744073709551616", false, 0, 0},
        {" 1", false, 0, 0}, {"+1", false, 0, 0},  {"00000000000000000000000000000000001x", true, 1, 35},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = cases[i].text;
        uint64_t number = 12345;
        assert_int_equal(decimal_read(&at, NULL, &number), cases[i].good);
        assert_ptr_equal(at, cases[i].text + cases[i].used);
        assert_true(number == (cases[i].good ? cases[i].number : 12345));
        at = cases[i].text;
        assert_int_equal(decimal_read(&at, at + strlen(at), &number), cases[i].good);
    }
    /* The end is respected even if more digits follow it. */
    const char *text = "123456", *at = text;
    uint64_t number;
    assert_true(decimal_read(&at, text + 3, &number) && number == 123 && at == text + 3);
    at = text;
    assert_false(decimal_read(&at, text, &number));
}

static void pointers_and_pages_are_recognized(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        enum stand_in kind;
    } cases[] = {
        {"version https://git-lfs.github.com/spec/v1\n", STAND_IN_POINTER},
        {"version https://git-lfs.github.com/", STAND_IN_NONE},
        {"version https://example.org/", STAND_IN_NONE},
        {"<!DOCTYPE html>", STAND_IN_PAGE},
        {"\xef\xbb\xbf\r\n <HTML lang=en>", STAND_IN_PAGE},
        {"<htm", STAND_IN_NONE},
        {"<p>", STAND_IN_NONE},
        {"", STAND_IN_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(stand_in_of(cases[i].text, strlen(cases[i].text)), cases[i].kind);
}

static void a_number_must_fill_its_text(void **unused)
{
    (void)unused;
    uint64_t number = 12345;
    assert_false(decimal_parse("", 0, &number));
    assert_false(decimal_parse("12x", 3, &number));
    assert_false(decimal_parse("12\0", 3, &number));
    assert_false(decimal_parse("184467440737095516150", 21, &number));
    assert_true(number == 12345);
    assert_true(decimal_parse("12x", 2, &number) && number == 12);
}

/* Against printf, at every length and beside every power of ten and two. */
static void numbers_are_written_as_printf_writes_them(void **unused)
{
    (void)unused;
    uint64_t power = 1;
    for (int i = 0; i < 64; i++) {
        const uint64_t bases[] = {(uint64_t)1 << i, power, power * 7, UINT64_MAX - (uint64_t)i, (uint64_t)i};
        for (size_t j = 0; j < sizeof bases / sizeof bases[0]; j++)
            for (uint64_t number = bases[j] - 2; number != bases[j] + 3; number++) {
                char got[DECIMAL_DIGITS_MOST], wanted[32];
                const size_t length = decimal_write(number, got);
                snprintf(wanted, sizeof wanted, "%" PRIu64, number);
                assert_int_equal(length, strlen(wanted));
                assert_memory_equal(got, wanted, length);
            }
        power *= 10;
    }
}

static void path_is(char *path, const char *wanted)
{
    assert_non_null(path);
    assert_string_equal(path, wanted);
    free(path);
}

static char *relative(const char *from, const char *file)
{
    char *made;
    assert_true(path_relative(from, file, &made));
    return made;
}

static void paths_are_taken_apart_and_put_together(void **unused)
{
    (void)unused;
    assert_int_equal(path_folder_bytes("a/b/c"), 4);
    assert_int_equal(path_folder_bytes("c"), 0);
    assert_int_equal(path_folder_bytes("/c"), 1);
    assert_string_equal(path_name("a/b/c"), "c");
    assert_string_equal(path_name("c"), "c");
    assert_string_equal(path_name("a/"), "");
    assert_true(path_is_absolute("/a") && !path_is_absolute("a/b") && !path_is_absolute(""));
    path_is(relative("/a/runs", "/a/data/web"), "../data/web");
    path_is(relative("/a/runs", "/a/./runs//x/y"), "x/y");
    path_is(relative("/a/web", "/a/web"), "../web"); /* the last part is a name, and no folder in common */
    path_is(relative("/", "/a"), "a");
    char *none = (char[]){"set"};
    assert_false(path_relative("/a/../b", "/c/d", &none));
    assert_null(none);
    path_is(path_in("", "x"), "x");
    path_is(path_in("a", "x"), "a/x");
    path_is(path_in("a/", "x"), "a/x");
    path_is(path_in("/", "x"), "/x");
    path_is(path_beside("a/b", "x"), "a/x");
    path_is(path_beside("b", "x"), "x");
    path_is(path_beside("/b", "x"), "/x");
    path_is(path_join("abc", 2, "xyz", 1, ".tmx"), "ab/x.tmx");
    path_is(path_join(NULL, 0, "x", 1, ""), "x");
    path_is(path_ended("a/x", ".tmx"), "a/x.tmx");
    path_is(path_ended("", ""), "");
    path_is(path_folder("a/b/c"), "a/b");
    path_is(path_folder("c"), ".");
    path_is(path_folder("/c"), "/");
}

static void distances_count_single_edits(void **unused)
{
    (void)unused;
    assert_int_equal(edit_distance("", ""), 0);
    assert_int_equal(edit_distance("abc", ""), 3);
    assert_int_equal(edit_distance("", "abc"), 3);
    assert_int_equal(edit_distance("kitten", "sitting"), 3);
    assert_int_equal(edit_distance("seqlen", "seq_len"), 1);
    assert_int_equal(edit_distance("Seq_Len", "seq_len"), 0);
    assert_int_equal(edit_distance("inof", "info"), 2);
    char longest[EDIT_DISTANCE_BYTES_MOST + 2];
    memset(longest, 'a', sizeof longest - 1);
    longest[EDIT_DISTANCE_BYTES_MOST + 1] = '\0';
    assert_true(edit_distance(longest, "a") == SIZE_MAX && edit_distance("a", longest) == SIZE_MAX);
    longest[EDIT_DISTANCE_BYTES_MOST] = '\0';
    assert_int_equal(edit_distance(longest, "a"), EDIT_DISTANCE_BYTES_MOST - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_up_to_the_first_other_byte),
        cmocka_unit_test(pointers_and_pages_are_recognized),
        cmocka_unit_test(a_number_must_fill_its_text),
        cmocka_unit_test(numbers_are_written_as_printf_writes_them),
        cmocka_unit_test(paths_are_taken_apart_and_put_together),
        cmocka_unit_test(distances_count_single_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
