/* SPDX-License-Identifier: MIT */
/* Percentiles of a histogram against those of the sorted numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "encode/histogram.h"

#define NUMBERS 4000

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The smallest number with at least `per_thousand` of the numbers at or below it. */
static uint64_t sorted_percentile(const uint64_t *numbers, size_t count, uint64_t per_thousand)
{
    size_t index = (size_t)((count * per_thousand + 999) / 1000);
    return numbers[index ? index - 1 : 0];
}

static void agrees(unsigned bits_most, size_t count)
{
    static uint64_t numbers[NUMBERS];
    static const uint64_t asked[] = {0, 1, 10, 500, 900, 990, 999, 1000};
    struct histogram histogram, more;
    uint64_t state = 88172645463325252u + bits_most, sum = 0;
    assert_true(histogram_new(&histogram));
    assert_true(histogram_new(&more));
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        numbers[i] = (state >> 6) >> (64 - 6 - bits_most + (state & 7) % (bits_most < 8 ? bits_most : 8));
        sum += numbers[i];
        histogram_add(i % 3 ? &histogram : &more, numbers[i], 1);
    }
    histogram_merge(&histogram, &more);
    histogram_free(&more);
    qsort(numbers, count, sizeof *numbers, compare);
    assert_int_equal(histogram.count, count);
    assert_int_equal((uint64_t)histogram.sum, sum);
    assert_int_equal(histogram.largest, numbers[count - 1]);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const uint64_t wanted = sorted_percentile(numbers, count, asked[i]);
        const uint64_t got = histogram_percentile(&histogram, asked[i]);
        if (wanted < 65536)
            assert_int_equal(got, wanted);
        assert_true(got >= wanted && got - wanted <= wanted / 500);
    }
    histogram_free(&histogram);
}

static void test_percentiles(void **state)
{
    for (unsigned bits = 1; bits <= 50; bits++)
        for (size_t count = 1; count <= NUMBERS; count = count * 3 + 1)
            agrees(bits, count);
    (void)state;
}

static void test_steps(void **state)
{
    static const uint64_t ends[] = {5, 5, 12, 80012};
    struct histogram histogram;
    assert_true(histogram_new(&histogram));
    histogram_add_steps(&histogram, 3, ends, 0);
    assert_int_equal(histogram.count, 0);
    histogram_add_steps(&histogram, 2, ends, 4); /* 3, 0, 7, 80000 */
    assert_int_equal(histogram.count, 4);
    assert_int_equal((uint64_t)histogram.sum, 80010);
    assert_int_equal(histogram.largest, 80000);
    assert_int_equal(histogram_percentile(&histogram, 250), 0);
    assert_int_equal(histogram_percentile(&histogram, 500), 3);
    assert_int_equal(histogram_percentile(&histogram, 750), 7);
    histogram_add_steps(&histogram, 0, ends, 1);
    assert_int_equal(histogram.largest, 80000);
    histogram_free(&histogram);
    (void)state;
}

static void test_times(void **state)
{
    struct histogram histogram;
    assert_true(histogram_new(&histogram));
    assert_int_equal(histogram_percentile(&histogram, 500), 0);
    histogram_add(&histogram, 7, 0);
    assert_int_equal(histogram.count, 0);
    histogram_add(&histogram, 3, 99);
    histogram_add(&histogram, UINT64_MAX, 1);
    assert_int_equal(histogram_percentile(&histogram, 990), 3);
    assert_int_equal(histogram_percentile(&histogram, 991), UINT64_MAX);
    assert_int_equal(histogram.largest, UINT64_MAX);
    histogram_free(&histogram);
    histogram_free(&histogram);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
