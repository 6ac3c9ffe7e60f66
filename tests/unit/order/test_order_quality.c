/* SPDX-License-Identifier: MIT */
/*
 * test_order_quality.c - no statistic that matters for training distinguishes the order from a true shuffle.
 *
 * Each statistic is converted to a standard normal variable z and judged by its absolute value. The test computes the
 * statistics of three shufflers:
 *   - the order, which must pass;
 *   - Fisher-Yates on another generator, which must pass, or else a statistic itself is wrong;
 *   - the linear order x * a + b mod n, which must fail, or else the statistics detect nothing.
 * The seeds are fixed, so the outcome is the same every time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/permutation.h"

#define LIMIT 4.4 /* a normal variable exceeds it once in 90,000 times; 437 values are judged */

/* ---- three shufflers ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

typedef void shuffler(uint32_t *windows, uint64_t n, uint64_t seed, uint64_t epoch);

static void shuffle_order(uint32_t *windows, uint64_t n, uint64_t seed, uint64_t epoch)
{
    struct tokmap_order order;
    assert_int_equal(tokmap_order_init(&order, n, seed, "data", epoch), TOKMAP_OK);
    for (uint64_t i = 0; i < n; i++)
        windows[i] = (uint32_t)tokmap_order_window(&order, i);
}

static void shuffle_fisher_yates(uint32_t *windows, uint64_t n, uint64_t seed, uint64_t epoch)
{
    uint64_t random = mix(seed * 0x9e3779b97f4a7c15u + mix(epoch + 77));
    for (uint64_t i = 0; i < n; i++)
        windows[i] = (uint32_t)i;
    for (uint64_t i = n - 1; i >= 1; i--) {
        uint64_t j = (uint64_t)((unsigned __int128)mix(random += 0x9e3779b97f4a7c15u) * (i + 1) >> 64);
        uint32_t moved = windows[i];
        windows[i] = windows[j];
        windows[j] = moved;
    }
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b ? gcd(b, a % b) : a;
}

static void shuffle_linear(uint32_t *windows, uint64_t n, uint64_t seed, uint64_t epoch)
{
    uint64_t a = mix(seed * 31 + epoch) % n, b = mix(seed + 99 * epoch) % n;
    while (gcd(a, n) != 1)
        a++;
    for (uint64_t i = 0; i < n; i++)
        windows[i] = (uint32_t)((i * a + b) % n);
}

/* ---- judging ---- */

static struct {
    double worst;
    char worst_name[64];
    unsigned count;
} judged;

static void judge(const char *name, uint64_t n, double z)
{
    judged.count++;
    if (!(fabs(z) <= judged.worst)) { /* a NaN counts as the worst */
        judged.worst = fabs(z);
        (void)snprintf(judged.worst_name, sizeof judged.worst_name, "%s n=%llu z=%.2f", name, (unsigned long long)n, z);
    }
    if (getenv("ORDER_QUALITY_VERBOSE"))
        fprintf(stderr, "%-28s n=%-8llu z=%+.2f\n", name, (unsigned long long)n, z);
}

/* Converts a chi-square value of k degrees of freedom to a normal variable (Wilson and Hilferty's approximation). */
static double chi_square_z(double value, double k)
{
    return (cbrt(value / k) - (1 - 2 / (9 * k))) / sqrt(2 / (9 * k));
}

/* Judges counts of equally likely cells after `total` throws. */
static double cells_z(const uint32_t *cells, uint64_t count, double total)
{
    double expected = total / (double)count, sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (cells[i] - expected) * (cells[i] - expected) / expected;
    return chi_square_z(sum, (double)count - 1);
}

static uint32_t *cells_new(uint64_t count)
{
    uint32_t *cells = calloc(count, sizeof *cells);
    assert_non_null(cells);
    return cells;
}

/* ---- small n, many seeds ---- */

/* Every permutation must appear equally often (n <= 6). */
static void all_permutations(shuffler *shuffle, uint64_t n, bool epochs)
{
    uint64_t factorial = 1;
    for (uint64_t i = 2; i <= n; i++)
        factorial *= i;
    uint32_t *cells = cells_new(factorial), windows[8];
    uint64_t throws = factorial * 100;
    for (uint64_t s = 0; s < throws; s++) {
        shuffle(windows, n, epochs ? 5 : s, epochs ? s : 0);
        uint64_t rank = 0;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t smaller = 0;
            for (uint64_t j = i + 1; j < n; j++)
                smaller += windows[j] < windows[i];
            rank = rank * (n - i) + smaller;
        }
        cells[rank]++;
    }
    judge(epochs ? "permutations by epoch" : "permutations", n, cells_z(cells, factorial, (double)throws));
    free(cells);
}

/* Counts over `seeds` orders of n: the window of each draw, the windows of pairs of draws (the first two, the middle
 * two, the first and the last), parity, fixed points, neighbors, and descents. Also counts windows in common with the
 * order of another seed, of a seed that differs in one high bit, and of the next epoch. */
static void many_seeds(shuffler *shuffle, uint64_t n, uint64_t seeds)
{
    uint32_t *position = cells_new(n * n), *first = cells_new(n * n), *middle = cells_new(n * n);
    uint32_t *far = cells_new(n * n), *windows = cells_new(n), *other = cells_new(n);
    uint8_t *seen = calloc(n, 1);
    assert_non_null(seen);
    double even = 0, fixed = 0, follows = 0, precedes = 0, inversions = 0, same[3] = {0}, near[3] = {0};
    for (uint64_t s = 0; s < seeds; s++) {
        shuffle(windows, n, s, 0);
        memset(seen, 0, n);
        uint64_t cycles = 0;
        for (uint64_t i = 0; i < n; i++) {
            position[i * n + windows[i]]++;
            fixed += windows[i] == i;
            if (i + 1 < n) {
                follows += windows[i + 1] == windows[i] + 1;
                precedes += windows[i] == windows[i + 1] + 1;
                inversions += windows[i] > windows[i + 1];
            }
            if (!seen[i]) {
                cycles++;
                for (uint64_t j = i; !seen[j]; j = windows[j])
                    seen[j] = 1;
            }
        }
        even += (n - cycles) % 2 == 0;
        first[windows[0] * n + windows[1]]++;
        middle[windows[n / 2 - 1] * n + windows[n / 2]]++;
        far[windows[0] * n + windows[n - 1]]++;
        for (int which = 0; which < 3; which++) {
            if (which == 0)
                shuffle(other, n, s + seeds, 0);
            else if (which == 1)
                shuffle(other, n, s ^ (uint64_t)1 << (63 - s % 40), 0);
            else
                shuffle(other, n, s, 1);
            for (uint64_t i = 0; i < n; i++) {
                same[which] += other[i] == windows[i];
                near[which] += other[(i + 1) % n] == windows[i];
            }
        }
    }
    double m = (double)seeds, size = (double)n, sum = 0;
    for (uint64_t i = 0; i < n * n; i++)
        sum += (position[i] - m / size) * (position[i] - m / size) / (m / size);
    judge("positions", n, chi_square_z(sum * (size - 1) / size, (size - 1) * (size - 1)));
    uint32_t *pairs[3] = {first, middle, far};
    static const char *const pair_names[3] = {"first pair", "middle pair", "ends"};
    for (int which = 0; which < 3; which++) {
        uint64_t used = 0;
        for (uint64_t i = 0; i < n * n; i++) /* two draws never have the same window, so the diagonal is empty */
            if (i / n != i % n)
                pairs[which][used++] = pairs[which][i];
        if (used > 1)
            judge(pair_names[which], n, cells_z(pairs[which], used, m));
    }
    judge("parity", n, (even - m / 2) / sqrt(m / 4));
    /* The number of fixed points has mean 1 and variance 1. */
    judge("fixed points", n, (fixed - m) / sqrt(m));
    /* The number of windows that directly follow their neighbor has mean (n - 1) / n and, unless n is very small, a
     * variance of about 1. */
    if (n >= 10) {
        double variance = (size - 1) / size * (1 + 1 / size - 2 / (size * size)); /* an upper bound near 1 */
        judge("adjacent up", n, (follows - m * (size - 1) / size) / sqrt(m * variance));
        judge("adjacent down", n, (precedes - m * (size - 1) / size) / sqrt(m * variance));
    }
    if (n >= 3)
        judge("descents", n, (inversions - m * (size - 1) / 2) / sqrt(m * (size + 1) / 12));
    static const char *const same_names[3] = {"same as other seed", "same as seed bit", "same as next epoch"};
    for (int which = 0; which < 3; which++) {
        judge(same_names[which], n, (same[which] - m) / sqrt(m));
        judge(same_names[which], n, (near[which] - m) / sqrt(m));
    }
    free(position);
    free(first);
    free(middle);
    free(far);
    free(windows);
    free(other);
    free(seen);
}

/* ---- large n, one order at a time ---- */

static double correlation_z(const uint32_t *a, const uint32_t *b, uint64_t count, double n)
{
    double mean = (n - 1) / 2, variance = (n * n - 1) / 12, sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (a[i] - mean) * (b[i] - mean);
    return sum / variance / sqrt((double)count);
}

static void long_order(shuffler *shuffle, uint64_t n, uint64_t seed)
{
    uint32_t *windows = cells_new(n), *other = cells_new(n), *cells = cells_new(4096);
    shuffle(windows, n, seed, 0);
    double size = (double)n;
    static const uint64_t lags[] = {1, 2, 3, 4, 7, 8, 16, 64, 100, 256, 1000, 1024};
    for (size_t l = 0; l < sizeof lags / sizeof lags[0]; l++)
        judge("serial correlation", n, correlation_z(windows, windows + lags[l], n - lags[l], size));
    /* Distances between the windows of draws that are `steps` apart, modulo n, in 256 classes. */
    static const uint64_t steps[] = {1, 2, 8, 256};
    for (size_t l = 0; l < sizeof steps / sizeof steps[0]; l++) {
        memset(cells, 0, 4096 * sizeof *cells);
        uint64_t count = n - steps[l];
        for (uint64_t i = 0; i < count; i++) {
            uint64_t distance = (windows[i + steps[l]] + n - windows[i]) % n;
            cells[(uint64_t)((unsigned __int128)distance * 256 / n)]++;
        }
        judge("distances", n, cells_z(cells, 256, (double)count));
    }
    /* Blocks of draws against blocks of windows, 64 x 64. The margins are fixed, so there are 63 * 63 degrees of
     * freedom. */
    memset(cells, 0, 4096 * sizeof *cells);
    for (uint64_t i = 0; i < n; i++)
        cells[i * 64 / n * 64 + (uint64_t)windows[i] * 64 / n]++;
    double sum = 0;
    for (int i = 0; i < 4096; i++)
        sum += (cells[i] - size / 4096) * (cells[i] - size / 4096) / (size / 4096);
    judge("blocks", n, chi_square_z(sum, 63 * 63));
    /* Low bits: the draw modulo 16 against the window modulo 16. */
    memset(cells, 0, 4096 * sizeof *cells);
    for (uint64_t i = 0; i < n; i++)
        cells[i % 16 * 16 + windows[i] % 16]++;
    sum = 0;
    for (uint64_t i = 0; i < 256; i++) {
        double expected = (double)(n / 16 + (n % 16 > i / 16)) * (double)(n / 16 + (n % 16 > i % 16)) / size;
        sum += (cells[i] - expected) * (cells[i] - expected) / expected;
    }
    judge("low bits", n, chi_square_z(sum, 225));
    /* Windows within 8 of their neighbor: 16 of n - 1 choices. */
    double near = 0;
    for (uint64_t i = 0; i + 1 < n; i++)
        near += llabs((long long)windows[i] - windows[i + 1]) <= 8;
    judge("near neighbors", n, (near - 16) / 4);
    static const uint64_t bits[] = {0, 1, 17, 40, 63};
    for (size_t l = 0; l < sizeof bits / sizeof bits[0]; l++) {
        shuffle(other, n, seed ^ (uint64_t)1 << bits[l], 0);
        judge("correlation with seed bit", n, correlation_z(windows, other, n, size));
    }
    for (uint64_t epoch = 1; epoch <= 4; epoch++) {
        shuffle(other, n, seed, epoch);
        judge("correlation with epoch", n, correlation_z(windows, other, n, size));
    }
    free(windows);
    free(other);
    free(cells);
}

static void judge_all(shuffler *shuffle)
{
    memset(&judged, 0, sizeof judged);
    for (uint64_t n = 2; n <= 6; n++) {
        all_permutations(shuffle, n, false);
        all_permutations(shuffle, n, true);
    }
    static const uint64_t small[] = {2, 3, 5, 6, 7, 8, 10, 16, 33, 64, 65, 66, 72, 81, 100, 127, 128, 129};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        many_seeds(shuffle, small[i], small[i] <= 16 ? 20000 : 60000 * 16 / small[i]);
    many_seeds(shuffle, 257, 3000);
    many_seeds(shuffle, 1000, 500);
    static const uint64_t large[] = {65536, 65537, 100003, 1000000, 1048577};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        long_order(shuffle, large[i], 1234 + i);
}

static void fisher_yates_passes(void **state)
{
    judge_all(shuffle_fisher_yates);
    print_message("Fisher-Yates: %u statistics; the worst is %s\n", judged.count, judged.worst_name);
    assert_true(judged.worst < LIMIT);
}

static void the_order_passes(void **state)
{
    judge_all(shuffle_order);
    print_message("order: %u statistics; the worst is %s\n", judged.count, judged.worst_name);
    assert_true(judged.worst < LIMIT);
}

static void a_linear_order_fails(void **state)
{
    judge_all(shuffle_linear);
    assert_true(judged.worst > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fisher_yates_passes),
        cmocka_unit_test(the_order_passes),
        cmocka_unit_test(a_linear_order_fails),
    };
    return cmocka_run_group_tests_name("order_quality", tests, NULL, NULL);
}
