/* SPDX-License-Identifier: MIT */
/* What is not plain is written in its visible form, and fits where it has to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/error.h"
#include "common/visible.h"

static void copies(const char *text, const char *kept, const char *wanted)
{
    char into[256];
    assert_int_equal(visible_copy(into, sizeof into, text, strlen(text), kept), strlen(wanted));
    assert_string_equal(into, wanted);
}

static void test_copy(void **state)
{
    copies("", "", "");
    copies("plain \xC3\xA9 \xE2\x96\x81 \xF0\x9F\x98\x80", "", "plain \xC3\xA9 \xE2\x96\x81 \xF0\x9F\x98\x80");
    copies("\x1b[31m\x7f\x01", "", "^[[31m^?^A");
    copies("a\nb\tc\r", "\n\t", "a\nb\tc^M");
    copies("a\nb\tc\r", "", "a^Jb^Ic^M");
    /* U+0080, U+009B, U+009F are controls, and U+00A0 is not. */
    copies("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0", "", "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f\xC2\xA0");
    /* Bytes that are not UTF-8, among them overlong forms, surrogates, and what is above U+10FFFF. */
    copies("\x9B"
           "1m\xE9t\xE9\xC2",
           "", "\\x9b1m\\xe9t\\xe9\\xc2");
    copies("\xE2\x9B", "", "\\xe2\\x9b");
    copies("\xE0\x82\x9B\xC0\x9B", "", "\\xe0\\x82\\x9b\\xc0\\x9b");
    copies("\xED\xA0\x80\xF4\x90\x80\x80", "", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
    /* Line separators and directions, and their neighbors. */
    copies("\xE2\x80\xA7\xE2\x80\xA8\xE2\x80\xAE\xE2\x80\xAF", "",
           "\xE2\x80\xA7\\xe2\\x80\\xa8\\xe2\\x80\\xae\xE2\x80\xAF");
    copies("\xE2\x81\xA5\xE2\x81\xA6\xE2\x81\xA9\xE2\x81\xAA", "",
           "\xE2\x81\xA5\\xe2\\x81\\xa6\\xe2\\x81\\xa9\xE2\x81\xAA");
    assert_true(visible_all("\xC3\xA9", 2));
    assert_false(visible_all("a\0b", 3));
    (void)state;
}

static void test_room(void **state)
{
    static const char text[] = "ab\x1b\xC3\xA9\xC2\x9B";
    static const char *const wanted[] = {"", "", "a", "ab", "ab", "ab^[", "ab^[", "ab^[\xC3\xA9"};
    char into[32];
    for (size_t capacity = 1; capacity < 8; capacity++) {
        memset(into, '#', sizeof into);
        (void)visible_copy(into, capacity, text, sizeof text - 1, "");
        assert_string_equal(into, wanted[capacity]);
        assert_int_equal(into[capacity], '#');
    }
    (void)state;
}

/* Errors of the library are one plain line, whatever they quote. The path in the error is the path as it is. */
static void test_errors(void **state)
{
    struct tokmap_error error;
    char text[1500], path[600];
    (void)error_set(&error, TOKMAP_ERROR_INPUT, "a\nb\xC2\x9B", 7, "the name '%s' is wrong", "x\x1b[2J\nok");
    assert_string_equal(error.path, "a\nb\xC2\x9B");
    assert_string_equal(error.message, "the name 'x^[[2J^Jok' is wrong");
    assert_string_equal(tokmap_error_print(&error, text, sizeof text),
                        "a^Jb\\xc2\\x9b: the name 'x^[[2J^Jok' is wrong (byte 7)");
    /* A path that has no room in its visible form keeps its end, in whole characters. */
    memset(path, '\x1b', sizeof path);
    memcpy(path + sizeof path - 4, "\xC3\xA9z", 4);
    (void)error_set(&error, TOKMAP_ERROR_INPUT, path, TOKMAP_NO_OFFSET, "wrong");
    assert_int_equal(strlen(tokmap_error_print(&error, text, sizeof text)), sizeof error.path - 1 + strlen(": wrong"));
    assert_memory_equal(text, "...", 3);
    assert_string_equal(text + strlen(text) - 14, "^[^[\xC3\xA9z: wrong");
    assert_true(visible_all(text, strlen(text)));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy), cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
