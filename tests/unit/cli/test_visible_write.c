/* SPDX-License-Identifier: MIT */
/* Control characters become visible wherever the text is split between two calls. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/messages.h"

/* Writes the text in parts of `part` bytes and compares the result. */
static void becomes(const char *text, size_t bytes, size_t part, const char *wanted)
{
    char *written = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&written, &length);
    assert_non_null(file);
    struct visible visible = {.file = file};
    for (size_t at = 0; at < bytes; at += part)
        visible_write(&visible, text + at, bytes - at < part ? bytes - at : part);
    visible_end(&visible);
    fclose(file);
    assert_string_equal(written, wanted);
    free(written);
}

static void test_visible(void **state)
{
    static const struct {
        const char *text, *wanted;
        size_t bytes;
    } cases[] = {
        {"", "", 0},
        {"plain ~", "plain ~", 7},
        {"a\nb\tc", "a\nb\tc", 5},
        {"\x1b[31m", "^[[31m", 5},
        {"\0\x01\x1f\x7f\r", "^@^A^_^?^M", 5},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 11},
        /* C1 controls: U+009B begins a terminal sequence, as escape and a bracket do. U+00A0 is not a control. */
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m", 5},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0", 6},
        {"\x9b\xff\xc0\xaf", "\\x9b\\xff\\xc0\\xaf", 4},
        {"\xe2\x82", "\\xe2\\x82", 2},
        {"\xe2\x82(", "\\xe2\\x82(", 3},
        {"\xe2\x82\xc3\xa9", "\\xe2\\x82\xc3\xa9", 4},
        {"\xf0\x9f\x98\x1b", "\\xf0\\x9f\\x98^[", 4},
        {"\xc3\x1b", "\\xc3^[", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t part = 1; part <= 5; part++)
            becomes(cases[i].text, cases[i].bytes, part, cases[i].wanted);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_visible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
