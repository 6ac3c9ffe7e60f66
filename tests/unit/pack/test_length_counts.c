/* Counts of lengths: percentiles are compared with those of a sorted list. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "pack/length_counts.h"

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Counts the lengths in two parts, adds them up, and checks each percentile. */
static void check(uint64_t *lengths, uint64_t count)
{
    struct length_counts *counts = length_counts_new(), *more = length_counts_new();
    assert_non_null(counts);
    assert_non_null(more);
    for (uint64_t i = 0; i < count; i++)
        length_counts_add(i % 3 ? counts : more, lengths[i]);
    length_counts_merge(counts, more);
    qsort(lengths, count, sizeof *lengths, compare);
    assert_true(length_counts_most(counts) == lengths[count - 1]);
    for (uint32_t percent = 0; percent <= 100; percent++) {
        const uint64_t rank = (count * percent + 99) / 100, exact = lengths[rank ? rank - 1 : 0];
        const uint64_t got = length_counts_percentile(counts, percent);
        assert_true(got <= exact && exact - got <= exact / 2048);
        assert_true(exact >= 4096 || got == exact);
    }
    length_counts_free(counts);
    length_counts_free(more);
}

static void test_percentiles(void **state)
{
    uint64_t few[] = {7}, two[] = {3, UINT64_MAX}, borders[] = {0, 4095, 4096, 4097, 8191, 8192, 8193, 5001};
    check(few, 1);
    check(two, 2);
    check(borders, sizeof borders / sizeof borders[0]);
    uint64_t many[2000], random = 1;
    for (uint64_t round = 0; round < 64; round++) {
        for (uint64_t i = 0; i < 2000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            many[i] = random >> round;
        }
        check(many, 2000);
    }
    (void)state;
}

static void test_nothing(void **state)
{
    struct length_counts *counts = length_counts_new(), *more = length_counts_new();
    assert_non_null(counts);
    assert_non_null(more);
    length_counts_merge(counts, more);
    assert_true(length_counts_percentile(counts, 50) == 0 && length_counts_most(counts) == 0);
    length_counts_free(counts);
    length_counts_free(more);
    length_counts_free(NULL);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
