/* SPDX-License-Identifier: MIT */
/*
 * test_element.c - tokens of every element are converted to ids: every value, count, alignment, and width; the first
 * element that is negative or too large ends the conversion, wherever it is.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "format/element.h"

enum { COUNT = 200 }; /* more than three groups of the conversion */

static const enum element all[] = {ELEMENT_U8,  ELEMENT_I8,  ELEMENT_I16, ELEMENT_I32,
                                   ELEMENT_I64, ELEMENT_U16, ELEMENT_U32};

/* Stores a value as a little-endian element at any address. */
static void put(uint8_t *bytes, enum element element, uint64_t index, uint64_t value)
{
    memcpy(bytes + (index << element_shift(element)), &value, (size_t)1 << element_shift(element));
}

static uint64_t id_at(const uint8_t *ids, uint32_t width, uint64_t index)
{
    uint64_t id = 0;
    memcpy(&id, ids + index * width, width);
    return id;
}

/* Ids that spread over everything that the element and the width can hold, both ends included. */
static uint64_t value_of(enum element element, uint64_t i)
{
    const uint64_t range = element_vocabulary(element);
    return i == 0 ? 0 : i == 1 ? range - 1 : i * 0x9e3779b97f4a7c15u % range;
}

static void every_value_fits(void **unused)
{
    uint8_t from[COUNT * 8 + 8], into[COUNT * 4 + 8];
    (void)unused;
    for (size_t e = 0; e < sizeof all / sizeof all[0]; e++)
        for (uint32_t width = element_width(all[e]); width <= 4; width *= 2)
            for (uint64_t count = 0; count <= COUNT; count += count < 70 ? 1 : 43)
                for (uint64_t skew = 0; skew < 3; skew++) {
                    memset(into, 0xaa, sizeof into);
                    for (uint64_t i = 0; i < count; i++)
                        put(from + skew, all[e], i, value_of(all[e], i));
                    assert_int_equal(element_convert(all[e], from + skew, count, width, into + skew), count);
                    for (uint64_t i = 0; i < count; i++)
                        assert_int_equal(id_at(into + skew, width, i), value_of(all[e], i));
                    assert_int_equal(into[skew + count * width], 0xaa); /* nothing is written after the last id */
                }
}

/* Element number `at` of COUNT is bad, and so is the last one: the first of them is reported. */
static void bad_element(enum element element, uint64_t bad, int64_t value)
{
    uint8_t from[COUNT * 8], into[COUNT * 4];
    for (uint64_t at = 0; at < COUNT; at++) {
        memset(into, 0xaa, sizeof into);
        for (uint64_t i = 0; i < COUNT; i++)
            put(from, element, i, value_of(element, i));
        put(from, element, COUNT - 1, bad);
        put(from, element, at, bad);
        assert_int_equal(element_convert(element, from, COUNT, 4, into), at);
        assert_int_equal(element_value(element, from + (at << element_shift(element))), value);
        for (uint64_t i = 0; i < at; i++)
            assert_int_equal(id_at(into, 4, i), value_of(element, i));
        assert_int_equal(into[at * 4], 0xaa);
    }
}

static void negative_and_too_large(void **unused)
{
    (void)unused;
    bad_element(ELEMENT_I8, 0xff, -1);
    bad_element(ELEMENT_I8, 0x80, -128);
    bad_element(ELEMENT_I16, 0xfffe, -2);
    bad_element(ELEMENT_I16, 0x8000, -32768);
    bad_element(ELEMENT_I32, 0xffffffff, -1);
    bad_element(ELEMENT_I32, 0x80000000, INT32_MIN);
    bad_element(ELEMENT_I64, UINT64_MAX, -1);
    bad_element(ELEMENT_I64, (uint64_t)1 << 63, INT64_MIN);
    bad_element(ELEMENT_I64, (uint64_t)1 << 32, (int64_t)1 << 32);
    bad_element(ELEMENT_I64, 0x7fffffff00000001, 0x7fffffff00000001);
}

static void codes(void **unused)
{
    (void)unused;
    for (uint64_t code = 0; code < 300; code++) {
        int known = 0;
        for (size_t e = 0; e < sizeof all / sizeof all[0]; e++)
            known |= code == all[e];
        assert_int_equal(element_is_known(code), known);
    }
    assert_false(element_is_known(UINT64_MAX));
    assert_false(element_is_known(((uint64_t)1 << 32) + ELEMENT_U8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_fits),
        cmocka_unit_test(negative_and_too_large),
        cmocka_unit_test(codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
