/* SPDX-License-Identifier: MIT */
/* test_parquet_types.c - what each pair of a physical type and an annotation means, and decimals, UUIDs and FLOAT16 as
 * texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "parquet/parquet_types.h"

/* What the pairs mean: a letter for each physical type, in the order of their numbers. t: text, i: integer, b: bool,
 * f: float, h: FLOAT16, d: decimal, u: UUID, 0: null, -: nothing that is read. */
static const char letters[] = "-tibfhdu0";

static void meanings_are(enum parquet_annotation annotation, uint32_t type_bytes, const char *expected)
{
    char found[9] = "";
    for (int type = PARQUET_BOOLEAN; type <= PARQUET_FIXED; type++) {
        const struct parquet_kind kind = {.type = (enum parquet_type)type,
                                          .type_bytes = type == PARQUET_FIXED ? type_bytes : 0,
                                          .annotation = annotation,
                                          .precision = 9};
        found[type] = letters[parquet_meaning(&kind)];
    }
    assert_string_equal(found, expected);
}

/* The numbers are those of parquet.thrift: ConvertedType, and the fields of LogicalType. */
static void test_pairs(void **state)
{
    static const char *const old[] = {[0] = "------tt",  [4] = "------tt",  [5] = "-dd---dd",  [11] = "-ii-----",
                                      [12] = "-ii-----", [13] = "-ii-----", [14] = "-ii-----", [15] = "-ii-----",
                                      [16] = "-ii-----", [17] = "-ii-----", [18] = "-ii-----", [19] = "------tt"};
    static const char *const new[] = {[1] = "------tt",  [4] = "------tt",  [5] = "-dd---dd",  [10] = "-ii-----",
                                      [11] = "000-0000", [12] = "------tt", [14] = "-------u", [15] = NULL};
    for (int64_t number = -1; number < 40; number++) {
        const bool has_old = number >= 0 && number < 20 && old[number];
        const bool has_new = number >= 0 && number < 16 && new[number];
        meanings_are(parquet_annotation_old(number), 16, has_old ? old[number] : "--------");
        meanings_are(parquet_annotation_new(number), 16, has_new ? new[number] : "--------");
    }
    meanings_are(PARQUET_NOT_ANNOTATED, 16, "bii-fft-");
    meanings_are(PARQUET_FLOAT16, 2, "-------h");
    meanings_are(PARQUET_UUID, 15, "--------");
    meanings_are(PARQUET_DECIMAL, 32, "-dd---dd");
    meanings_are(PARQUET_DECIMAL, 33, "-dd---d-");
    assert_int_equal(parquet_annotation_new(INT64_MAX), PARQUET_UNKNOWN);
    assert_int_equal(parquet_annotation_old(INT64_MIN), PARQUET_UNKNOWN);
}

static void test_digits_of_decimals(void **state)
{
    static const struct {
        int64_t precision, scale;
        enum parquet_meaning meaning;
    } cases[] = {{1, 0, PARQUET_IS_DECIMAL},      {76, 76, PARQUET_IS_DECIMAL}, {0, 0, PARQUET_IS_OTHER},
                 {77, 0, PARQUET_IS_OTHER},       {4, 5, PARQUET_IS_OTHER},     {4, -1, PARQUET_IS_OTHER},
                 {INT64_MIN, 0, PARQUET_IS_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct parquet_kind kind = {.type = PARQUET_INT64,
                                          .annotation = PARQUET_DECIMAL,
                                          .precision = cases[i].precision,
                                          .scale = cases[i].scale};
        assert_int_equal(parquet_meaning(&kind), cases[i].meaning);
    }
}

static void test_decimals(void **state)
{
    static const struct {
        const char *bytes;
        uint64_t count;
        int64_t scale;
        const char *text;
    } cases[] = {
        {"\x32", 1, 2, "0.50"},
        {"\x7f", 1, 2, "1.27"},
        {"\0", 1, 0, "0"},
        {"\0", 1, 2, "0.00"},
        {"\xff", 1, 0, "-1"},
        {"\xff", 1, 3, "-0.001"},
        {"\x80", 1, 1, "-12.8"},
        {"\xff\xff\xff\x80", 4, 1, "-12.8"},
        {"\x80\0\0\0\0\0\0\0", 8, 0, "-9223372036854775808"},
        {"\1\0\0\0\0\0\0\0\0", 9, 0, "18446744073709551616"},
        {"\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32, 76,
         "-5.7896044618658097711785492504343953926634992332820282019728792003956564819968"},
        {"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
         "\xff\xff\xff\xff\xff",
         32, 0, "57896044618658097711785492504343953926634992332820282019728792003956564819967"},
    };
    char text[PARQUET_VALUE_TEXT], many[33] = "";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(parquet_decimal_text(text, (const uint8_t *)cases[i].bytes, cases[i].count, cases[i].scale));
        assert_string_equal(text, cases[i].text);
    }
    assert_false(parquet_decimal_text(text, (const uint8_t *)many, 0, 0));
    assert_false(parquet_decimal_text(text, (const uint8_t *)many, 33, 0));
}

static void test_uuids(void **state)
{
    char text[PARQUET_VALUE_TEXT];
    parquet_uuid_text(text, (const uint8_t *)"\x12\x3e\x45\x67\xe8\x9b\x12\xd3\xa4\x56\x42\x66\x14\x17\x40\x00");
    assert_string_equal(text, "123e4567-e89b-12d3-a456-426614174000");
}

static void test_halves(void **state)
{
    static const struct {
        const char *bytes;
        double value;
    } cases[] = {{"\0\0", 0},
                 {"\0\x3c", 1},
                 {"\0\xbe", -1.5},
                 {"\xff\x7b", 65504},
                 {"\1\0", 0x1p-24},
                 {"\xff\3", 0x3ffp-24},
                 {"\0\4", 0x1p-14},
                 {"\x66\x2e", 0.0999755859375},
                 {"\0\x7c", (double)INFINITY},
                 {"\0\xfc", -(double)INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(parquet_float16((const uint8_t *)cases[i].bytes) == cases[i].value);
    assert_true(isnan(parquet_float16((const uint8_t *)"\1\x7c")));
    assert_true(signbit(parquet_float16((const uint8_t *)"\0\x80")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),    cmocka_unit_test(test_digits_of_decimals),
        cmocka_unit_test(test_decimals), cmocka_unit_test(test_uuids),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests_name("parquet_types", tests, NULL, NULL);
}
