/* SPDX-License-Identifier: MIT */
/* Numbers, sizes, and ranges as users type them, and numbers as people read them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cli/cli.h"

static void test_number(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t number;
    } cases[] = {
        {"0", true, 0},     {"7", true, 7},    {"007", true, 7},    {"18446744073709551615", true, UINT64_MAX},
        {"", false, 0},     {"-1", false, 0},  {"+1", false, 0},    {"18446744073709551616", false, 0},
        {"1 ", false, 0},   {" 1", false, 0},  {"1k", false, 0},    {"99999999999999999999999999", false, 0},
        {"0x10", false, 0}, {"1.0", false, 0}, {"1_000", false, 0}, {"184467440737095516150", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 12345;
        assert_int_equal(cli_parse_number(cases[i].text, &number), cases[i].good);
        assert_true(number == (cases[i].good ? cases[i].number : 12345));
    }
    (void)state;
}

static void test_size(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t size;
    } cases[] = {
        {"0", true, 0},
        {"512", true, 512},
        {"512B", true, 512},
        {"1k", true, 1000},
        {"1K", true, 1000},
        {"1kB", true, 1000},
        {"1Ki", true, 1024},
        {"1KiB", true, 1024},
        {"3m", true, 3000000},
        {"3Mi", true, 3145728},
        {"2G", true, 2000000000},
        {"2Gi", true, 2147483648},
        {"5t", true, 5000000000000},
        {"5TiB", true, 5497558138880},
        {"16777215Ti", true, 18446742974197923840u},
        {"16777216Ti", false, 0},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551615k", false, 0},
        {"k", false, 0},
        {"1b", false, 0},
        {"1ki ", false, 0},
        {"1kk", false, 0},
        {"1iB", false, 0},
        {"1.5k", false, 0},
        {"-1k", false, 0},
        {"1p", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t size = 12345;
        if (cli_parse_size(cases[i].text, &size) != cases[i].good)
            fail_msg("%s", cases[i].text);
        assert_true(size == (cases[i].good ? cases[i].size : 12345));
    }
    (void)state;
}

static void test_range(void **state)
{
    struct cli_range range = {0};
    assert_true(cli_parse_range("3..10", &range));
    assert_true(range.given && range.first == 3 && range.end == 10);
    assert_true(cli_parse_range("5..5", &range));
    assert_true(cli_parse_range("0..18446744073709551615", &range) && range.end == UINT64_MAX);
    static const char *const bad[] = {"",
                                      "3",
                                      "..",
                                      "3..",
                                      "..3",
                                      "10..3",
                                      "3.10",
                                      "3...10",
                                      "3..1 0",
                                      "a..b",
                                      "-1..3",
                                      "3..4k",
                                      "0..18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        range.first = 77;
        if (cli_parse_range(bad[i], &range))
            fail_msg("%s", bad[i]);
        assert_true(range.first == 77);
    }
    (void)state;
}

static void test_people(void **state)
{
    char text[32];
    assert_string_equal(cli_bytes(0, text), "0 B");
    assert_string_equal(cli_bytes(999, text), "999 B");
    assert_string_equal(cli_bytes(1000, text), "1.00 kB");
    assert_string_equal(cli_bytes(1234567, text), "1.23 MB");
    assert_string_equal(cli_bytes(9999, text), "10.0 kB");
    assert_string_equal(cli_bytes(99999, text), "100 kB");
    assert_string_equal(cli_bytes(999499, text), "999 kB");
    assert_string_equal(cli_bytes(999999, text), "1.00 MB");
    assert_string_equal(cli_bytes(UINT64_MAX, text), "18.4 EB");
    assert_string_equal(cli_count(0, text), "0");
    assert_string_equal(cli_count(999, text), "999");
    assert_string_equal(cli_count(1000, text), "1,000");
    assert_string_equal(cli_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
    char counted[64];
    assert_string_equal(cli_counted(0, "row", counted), "0 rows");
    assert_string_equal(cli_counted(1, "row", counted), "1 row");
    assert_string_equal(cli_counted(1, "batch", counted), "1 batch");
    assert_string_equal(cli_counted(2000, "batch", counted), "2,000 batches");
    assert_string_equal(cli_counted(UINT64_MAX, "full epoch", counted), "18,446,744,073,709,551,615 full epochs");
    assert_string_equal(cli_seconds(0, text), "0.00 ns");
    assert_string_equal(cli_seconds(31.2e-9, text), "31.2 ns");
    assert_string_equal(cli_seconds(1.5e-6, text), "1.50 us");
    assert_string_equal(cli_seconds(1.23e-3, text), "1.23 ms");
    assert_string_equal(cli_seconds(0.9999, text), "1.00 s");
    assert_string_equal(cli_seconds(59.4, text), "59.4 s");
    assert_string_equal(cli_seconds(59.9, text), "1 min 00 s");
    assert_string_equal(cli_seconds(245, text), "4 min 05 s");
    assert_string_equal(cli_seconds(7325, text), "2 h 02 min");
    assert_string_equal(cli_seconds(-1, text), "?");
    assert_string_equal(cli_seconds((double)NAN, text), "?");
    assert_true(strlen(cli_seconds(1e300, text)) < 32);
    assert_string_equal(cli_duration(0, text), "less than 1 s");
    assert_string_equal(cli_duration(0.0053, text), "less than 1 s");
    assert_string_equal(cli_duration(1, text), "1 s");
    assert_string_equal(cli_duration(59.4, text), "59 s");
    assert_string_equal(cli_duration(59.6, text), "1 min 00 s");
    assert_string_equal(cli_duration(7325, text), "2 h 02 min");
    assert_string_equal(cli_duration(86400 + 3 * 3600, text), "1 d 03 h");
    assert_string_equal(cli_duration(-1, text), "?");
    assert_string_equal(cli_duration(1e300, text), "?");
    assert_string_equal(cli_duration((double)NAN, text), "?");
    (void)state;
}

static void test_nearest(void **state)
{
    static const char *const words[] = {"pack", "info", "verify", "show", "audit", "order"};
    assert_string_equal(cli_nearest("verfy", words, 6), "verify");
    assert_string_equal(cli_nearest("inof", words, 6), "info");
    assert_string_equal(cli_nearest("aud", words, 6), "audit");
    assert_null(cli_nearest("", words, 6));
    assert_null(cli_nearest("zzzzzzz", words, 6));
    assert_null(cli_nearest("aVeryLongWordThatIsLongerThanAnyCommandThatThereCouldEverBeInThisProgram", words, 6));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number), cmocka_unit_test(test_size),    cmocka_unit_test(test_range),
        cmocka_unit_test(test_people), cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
