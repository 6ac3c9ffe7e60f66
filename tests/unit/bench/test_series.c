/* SPDX-License-Identifier: MIT */
/* The statistics of the benchmark: medians, extremes, percentiles, and the worst of several series. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "harness/series.c" /* programs of tests are not linked with the objects of bench */

static void test_series(void **unused)
{
    (void)unused;
    static struct series series;
    assert_true(isnan(series_median(&series)) && isnan(series_smallest(&series)) && isnan(series_last(&series)));
    const double values[] = {5, -1, 3, 100};
    for (size_t i = 0; i < 3; i++)
        series_add(&series, values[i]);
    assert_true(series_median(&series) == 3);
    series_add(&series, values[3]);
    assert_true(series_median(&series) == 4); /* the mean of the middle two */
    assert_true(series_smallest(&series) == -1 && series_largest(&series) == 100 && series_last(&series) == 100);
    assert_true(series.values[0] == 5); /* the median does not sort the series itself */
    for (size_t i = 0; i < 2 * SERIES_MOST; i++)
        series_add(&series, 7);
    assert_int_equal(series.count, SERIES_MOST);
}

static void test_worst(void **unused)
{
    (void)unused;
    static struct series list[4];
    assert_ptr_equal(series_worst(list, 4), &list[0]);
    series_add(&list[1], 2);
    assert_ptr_equal(series_worst(list, 4), &list[1]); /* empty series do not count */
    series_add(&list[3], 3);
    assert_ptr_equal(series_worst(list, 4), &list[3]);
    series_add(&list[0], 1);
    assert_ptr_equal(series_worst(list, 4), &list[3]);
}

static void test_samples(void **unused)
{
    (void)unused;
    struct samples samples;
    assert_true(samples_new(&samples, 1000));
    assert_true(samples_at(&samples, 0.5) == 0);
    for (uint64_t i = 1000; i > 0; i--)
        samples_add(&samples, i);
    samples_add(&samples, 5); /* beyond the capacity */
    assert_int_equal(samples.count, 1000);
    assert_true(samples_at(&samples, 0) == 1);
    assert_true(samples_at(&samples, 0.5) == 500);
    assert_true(samples_at(&samples, 0.999) == 999);
    assert_true(samples_at(&samples, 1) == 1000);
    samples_clear(&samples);
    samples_add(&samples, UINT64_MAX);
    samples_add(&samples, 2);
    assert_true(samples_at(&samples, 0.5) == 2); /* sorted again after being cleared */
    assert_true(samples_at(&samples, 1) == UINT32_MAX);

    static struct spread spread;
    spread_add(&spread, &samples, 1000);
    assert_true(spread.p50.values[0] == 0.002 && spread.largest.count == 1);
    samples_free(&samples);
    samples_free(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_worst),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
