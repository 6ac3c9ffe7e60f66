/* SPDX-License-Identifier: MIT */
/*
 * test_mixture.c - the frozen values of mixtures, and their properties: every draw belongs to one leaf, the inverse is
 * exact, counts sum to the draws, and every leaf has its share. The golden values were computed by the Python program
 * in src/order/ORDER.md. If they fail, the code would reorder running jobs: correct the code, and never change the
 * values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "order/mixture.h"

typedef unsigned __int128 wide;

static const struct {
    uint64_t weights[39];
    uint64_t count;
    struct {
        uint64_t draw, leaf, k;
    } draws[7];
} golden[] = {
    {{1u},
     1,
     {{0u, 0u, 0u},
      {1u, 0u, 1u},
      {12345u, 0u, 12345u},
      {1000000007u, 0u, 1000000007u},
      {1099511627777u, 0u, 1099511627777u},
      {4611686018427400249u, 0u, 4611686018427400249u},
      {9223372036854775807u, 0u, 9223372036854775807u}}},
    {{1u, 1u},
     2,
     {{0u, 1u, 0u},
      {1u, 0u, 0u},
      {12345u, 0u, 6172u},
      {1000000007u, 0u, 500000003u},
      {1099511627777u, 0u, 549755813888u},
      {4611686018427400249u, 0u, 2305843009213700124u},
      {9223372036854775807u, 0u, 4611686018427387903u}}},
    {{5u, 3u, 2u},
     3,
     {{0u, 2u, 0u},
      {1u, 1u, 0u},
      {12345u, 2u, 2469u},
      {1000000007u, 1u, 300000002u},
      {1099511627777u, 1u, 329853488333u},
      {4611686018427400249u, 0u, 2305843009213700124u},
      {9223372036854775807u, 1u, 2767011611056432742u}}},
    {{80u, 10u, 10u},
     3,
     {{0u, 2u, 0u},
      {1u, 1u, 0u},
      {12345u, 0u, 9875u},
      {1000000007u, 0u, 800000005u},
      {1099511627777u, 0u, 879609302221u},
      {4611686018427400249u, 0u, 3689348814741920199u},
      {9223372036854775807u, 0u, 7378697629483820645u}}},
    {{1u, 1000000u},
     2,
     {{0u, 1u, 0u},
      {1u, 1u, 1u},
      {12345u, 1u, 12345u},
      {1000000007u, 1u, 999999008u},
      {1099511627777u, 1u, 1099510528267u},
      {4611686018427400249u, 1u, 4611681406745993504u},
      {9223372036854775807u, 1u, 9223362813491962316u}}},
    {{1000000u, 1u},
     2,
     {{0u, 1u, 0u},
      {1u, 0u, 0u},
      {12345u, 0u, 12344u},
      {1000000007u, 0u, 999999007u},
      {1099511627777u, 0u, 1099510528266u},
      {4611686018427400249u, 0u, 4611681406745993503u},
      {9223372036854775807u, 0u, 9223362813491962315u}}},
    {{7u, 1u, 1u, 1u, 1u},
     5,
     {{0u, 4u, 0u},
      {1u, 2u, 0u},
      {12345u, 0u, 7854u},
      {1000000007u, 0u, 636363639u},
      {1099511627777u, 1u, 99955602525u},
      {4611686018427400249u, 0u, 2934709284453800157u},
      {9223372036854775807u, 0u, 5869418568907584603u}}},
    {{1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u},
     8,
     {{0u, 7u, 0u},
      {1u, 7u, 1u},
      {12345u, 6u, 2400u},
      {1000000007u, 0u, 27777777u},
      {1099511627777u, 3u, 122167958642u},
      {4611686018427400249u, 7u, 1024819115206088945u},
      {9223372036854775807u, 3u, 1024819115206086201u}}},
    {{40u, 50u, 10u, 3u, 2u, 2u, 1u, 1u},
     8,
     {{0u, 7u, 0u},
      {1u, 3u, 0u},
      {12345u, 0u, 4529u},
      {1000000007u, 0u, 366972479u},
      {1099511627777u, 0u, 403490505605u},
      {4611686018427400249u, 1u, 2115452302030917545u},
      {9223372036854775807u, 0u, 3384723683249459011u}}},
    {{333333333u, 333333333u, 333333334u},
     3,
     {{0u, 2u, 0u},
      {1u, 1u, 0u},
      {12345u, 0u, 4114u},
      {1000000007u, 1u, 333333335u},
      {1099511627777u, 2u, 366503876659u},
      {4611686018427400249u, 2u, 1537228675883590762u},
      {9223372036854775807u, 0u, 3074457342543801256u}}},
    {{4611686018427387904u, 4611686018427387903u},
     2,
     {{0u, 1u, 0u},
      {1u, 0u, 0u},
      {12345u, 0u, 6172u},
      {1000000007u, 0u, 500000003u},
      {1099511627777u, 0u, 549755813888u},
      {4611686018427400249u, 0u, 2305843009213700124u},
      {9223372036854775807u, 1u, 4611686018427387903u}}},
    {{1u, 9223372036854775806u},
     2,
     {{0u, 1u, 0u},
      {1u, 1u, 1u},
      {12345u, 1u, 12345u},
      {1000000007u, 1u, 1000000007u},
      {1099511627777u, 1u, 1099511627777u},
      {4611686018427400249u, 1u, 4611686018427400249u},
      {9223372036854775807u, 1u, 9223372036854775806u}}},
    {{9223372036854775806u, 1u},
     2,
     {{0u, 1u, 0u},
      {1u, 0u, 0u},
      {12345u, 0u, 12344u},
      {1000000007u, 0u, 1000000006u},
      {1099511627777u, 0u, 1099511627776u},
      {4611686018427400249u, 0u, 4611686018427400248u},
      {9223372036854775807u, 1u, 1u}}},
    {{2305843009213693953u, 1152921504606846979u, 576460752303423493u, 288230376151711751u, 1u, 2u, 3u},
     7,
     {{0u, 6u, 0u},
      {1u, 3u, 0u},
      {12345u, 2u, 1645u},
      {1000000007u, 0u, 533333335u},
      {1099511627777u, 0u, 586406201479u},
      {4611686018427400249u, 1u, 1229782938247306730u},
      {9223372036854775807u, 0u, 4919131752989213740u}}},
    {{1u,
      3u,
      9u,
      27u,
      81u,
      243u,
      729u,
      2187u,
      6561u,
      19683u,
      59049u,
      177147u,
      531441u,
      1594323u,
      4782969u,
      14348907u,
      43046721u,
      129140163u,
      387420489u,
      1162261467u,
      3486784401u,
      10460353203u,
      31381059609u,
      94143178827u,
      282429536481u,
      847288609443u,
      2541865828329u,
      7625597484987u,
      22876792454961u,
      68630377364883u,
      205891132094649u,
      617673396283947u,
      1853020188851841u,
      5559060566555523u,
      16677181699666569u,
      50031545098999707u,
      150094635296999121u,
      450283905890997363u,
      1350851717672992089u},
     39,
     {{0u, 38u, 0u},
      {1u, 38u, 1u},
      {12345u, 37u, 2743u},
      {1000000007u, 38u, 666666673u},
      {1099511627777u, 31u, 335165867u},
      {4611686018427400249u, 38u, 3074457345618266835u},
      {9223372036854775807u, 36u, 683212743470724134u}}},
};

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t mixed = (random_state ^ random_state >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint64_t)((wide)(mixed ^ mixed >> 32) * limit >> 64);
}

/* A number below 2^bits whose order of magnitude is random. */
static uint64_t random_magnitude(unsigned bits)
{
    return random_below((uint64_t)1 << (1 + random_below(bits)));
}

static struct mixture *mixture_of(const uint64_t *weights, uint64_t count)
{
    struct mixture *mixture = NULL;
    assert_int_equal(mixture_new(&mixture, weights, count, NULL), TOKMAP_OK);
    assert_int_equal(mixture_leaves(mixture), count);
    return mixture;
}

static uint64_t sum_of(const uint64_t *weights, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += weights[i];
    return sum;
}

/* Fills weights of one of several kinds, with a sum below 2^63. */
static void weights_pick(uint64_t *weights, uint64_t count)
{
    const uint64_t kind = random_below(6), most = (((uint64_t)1 << 63) - 1) / count;
    for (uint64_t i = 0; i < count; i++)
        weights[i] = kind == 0   ? 1 + random_below(5)
                     : kind == 1 ? 1 + random_below(most)
                     : kind == 2 ? 1 + random_below(1 + random_magnitude(62) % most)
                     : kind == 3 ? (uint64_t)1 << random_below(count < 64 ? 57 : 40)
                     : kind == 4 ? most - random_below(2)
                                 : 1;
    if (kind == 5)
        weights[random_below(count)] = ((uint64_t)1 << 63) - count;
}

/* ---- the definition, with divisions ---- */

static uint64_t plain_draw(const uint64_t *weights, uint64_t count, uint64_t p, uint64_t *k)
{
    uint64_t leaf = 0;
    while (count > 1) {
        const uint64_t left = (count + 1) / 2, w = sum_of(weights, left), all = sum_of(weights, count);
        const uint64_t sent = (uint64_t)((wide)p * w / all);
        if ((uint64_t)(((wide)p + 1) * w / all) > sent) {
            p = sent;
            count = left;
        } else {
            p -= sent;
            leaf += left;
            weights += left;
            count -= left;
        }
    }
    *k = p;
    return leaf;
}

static wide plain_draw_of(const uint64_t *weights, uint64_t count, uint64_t leaf, uint64_t k)
{
    if (count == 1)
        return k;
    const uint64_t left = (count + 1) / 2, w = sum_of(weights, left), all = sum_of(weights, count);
    const wide below = leaf < left ? plain_draw_of(weights, left, leaf, k)
                                   : plain_draw_of(weights + left, count - left, leaf - left, k);
    if (below >> 63)
        return below;
    return leaf < left ? ((below + 1) * all + w - 1) / w - 1 : below * all / (all - w);
}

static uint64_t plain_count(const uint64_t *weights, uint64_t count, uint64_t leaf, uint64_t p)
{
    if (count == 1)
        return p;
    const uint64_t left = (count + 1) / 2;
    const uint64_t sent = (uint64_t)((wide)p * sum_of(weights, left) / sum_of(weights, count));
    return leaf < left ? plain_count(weights, left, leaf, sent)
                       : plain_count(weights + left, count - left, leaf - left, p - sent);
}

/* ---- tests ---- */

static void mixtures_have_the_golden_draws(void **state)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct mixture *mixture = mixture_of(golden[i].weights, golden[i].count);
        for (size_t j = 0; j < 7; j++) {
            uint64_t k;
            assert_int_equal(mixture_draw(mixture, golden[i].draws[j].draw, &k), golden[i].draws[j].leaf);
            assert_int_equal(k, golden[i].draws[j].k);
            assert_int_equal(mixture_draw_of(mixture, golden[i].draws[j].leaf, k), golden[i].draws[j].draw);
            assert_int_equal(mixture_count(mixture, golden[i].draws[j].leaf, golden[i].draws[j].draw), k);
        }
        mixture_free(mixture);
    }
}

/* All draws from 0 on: each leaf receives its draws 0, 1, 2, ..., each within the bound of its exact share. */
static void check_from_zero(const uint64_t *weights, uint64_t count, uint64_t draws)
{
    struct mixture *mixture = mixture_of(weights, count);
    uint64_t *next = calloc(count, sizeof *next);
    const double sum = (double)sum_of(weights, count), bound = ceil(log2((double)count));
    assert_non_null(next);
    for (uint64_t p = 0; p < draws; p++) {
        uint64_t k;
        const uint64_t leaf = mixture_draw(mixture, p, &k);
        if (leaf >= count || k != next[leaf] || mixture_draw_of(mixture, leaf, k) != p ||
            mixture_count(mixture, leaf, p) != k)
            fail_msg("%llu leaves: draw %llu is draw %llu of leaf %llu, which has had %llu", (unsigned long long)count,
                     (unsigned long long)p, (unsigned long long)k, (unsigned long long)leaf,
                     (unsigned long long)(leaf < count ? next[leaf] : 0));
        next[leaf]++;
        if (p % 997 && p + 1 < draws)
            continue;
        for (uint64_t i = 0; i < count; i++) {
            assert_int_equal(mixture_count(mixture, i, p + 1), next[i]);
            assert_true(fabs((double)next[i] - (double)(p + 1) * (double)weights[i] / sum) <= bound + 1e-6);
        }
    }
    free(next);
    mixture_free(mixture);
}

static void every_draw_is_the_next_of_one_leaf(void **state)
{
    static uint64_t weights[10000];
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 100, 257, 1000, 10000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int times = 0; times < (counts[i] < 100 ? 12 : 2); times++) {
            weights_pick(weights, counts[i]);
            check_from_zero(weights, counts[i], counts[i] < 100 ? 5000 : 40000);
        }
}

/* Weights and draws up to 2^63, against the definition with divisions. */
static void large_numbers_equal_the_definition(void **state)
{
    static uint64_t weights[130];
    const uint64_t end = (uint64_t)1 << 63;
    for (int times = 0; times < 3000; times++) {
        const uint64_t count = 1 + random_below(1 + random_below(130));
        weights_pick(weights, count);
        struct mixture *mixture = mixture_of(weights, count);
        for (int i = 0; i < 20; i++) {
            const uint64_t p = i == 0 ? end - 1 : i == 1 ? end - 2 : i < 8 ? random_magnitude(63) : random_below(end);
            uint64_t k, plain_k;
            const uint64_t leaf = mixture_draw(mixture, p, &k);
            assert_int_equal(leaf, plain_draw(weights, count, p, &plain_k));
            assert_int_equal(k, plain_k);
            assert_int_equal(mixture_draw_of(mixture, leaf, k), p);
            const uint64_t other = random_below(count), has = mixture_count(mixture, other, end);
            assert_int_equal(mixture_count(mixture, other, p), plain_count(weights, count, other, p));
            assert_int_equal(has, plain_count(weights, count, other, end));
            /* The last draw that the leaf has below 2^63, the first that it does not have, and any. */
            const uint64_t at = i % 3 == 0 ? has - (has > 0) : i % 3 == 1 ? has : random_magnitude(63);
            const wide plain = plain_draw_of(weights, count, other, at);
            assert_true(mixture_draw_of(mixture, other, at) == (plain >> 63 ? MIXTURE_NONE : (uint64_t)plain));
            assert_int_equal(mixture_draw_of(mixture, other, at) == MIXTURE_NONE, at >= has);
        }
        assert_true(mixture_draw_of(mixture, 0, end) == MIXTURE_NONE);
        assert_true(mixture_draw_of(mixture, count - 1, UINT64_MAX) == MIXTURE_NONE);
        mixture_free(mixture);
    }
}

/* The bound on the error, in exact integers: |count * sum - p * weight| < ceil(log2 m) * sum. */
static void shares_are_exact_for_large_numbers(void **state)
{
    static uint64_t weights[10000];
    for (int times = 0; times < 60; times++) {
        const uint64_t count = 2 + random_below(times < 50 ? 300 : 9999);
        weights_pick(weights, count);
        struct mixture *mixture = mixture_of(weights, count);
        const wide sum = sum_of(weights, count);
        uint64_t levels = 0;
        while ((uint64_t)1 << levels < count)
            levels++;
        for (int i = 0; i < 20; i++) {
            const uint64_t p = i ? random_below((uint64_t)1 << 63) : (uint64_t)1 << 63;
            wide total = 0;
            for (uint64_t leaf = 0; leaf < count; leaf++) {
                const uint64_t held = mixture_count(mixture, leaf, p);
                const wide has = held * sum, exact = (wide)p * weights[leaf];
                assert_true((has > exact ? has - exact : exact - has) <= levels * sum);
                total += held;
            }
            assert_true(total == p);
        }
        mixture_free(mixture);
    }
}

static void only_ratios_matter(void **state)
{
    static const uint64_t small[] = {5, 3, 2}, large[] = {5000000000000000u, 3000000000000000u, 2000000000000000u};
    struct mixture *a = mixture_of(small, 3), *b = mixture_of(large, 3);
    for (int i = 0; i < 10000; i++) {
        const uint64_t p = random_magnitude(63);
        uint64_t j, k;
        assert_int_equal(mixture_draw(a, p, &j), mixture_draw(b, p, &k));
        assert_int_equal(j, k);
    }
    mixture_free(a);
    mixture_free(b);
}

static void impossible_weights_are_refused(void **state)
{
    static const uint64_t zero[] = {1, 0, 1}, large[] = {(uint64_t)1 << 62, (uint64_t)1 << 62},
                          wraps[] = {((uint64_t)1 << 63) - 1, UINT64_MAX - 5};
    struct tokmap_error error = {0};
    struct mixture *mixture = NULL;
    assert_int_equal(mixture_new(&mixture, zero, 3, &error), TOKMAP_ERROR_RANGE);
    assert_null(mixture);
    assert_int_equal(mixture_new(&mixture, zero, 0, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(mixture_new(&mixture, large, 2, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(mixture_new(&mixture, wraps, 2, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(mixture_new(&mixture, large, UINT64_MAX / 8, NULL), TOKMAP_ERROR_RANGE);
    mixture_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixtures_have_the_golden_draws),
        cmocka_unit_test(every_draw_is_the_next_of_one_leaf),
        cmocka_unit_test(large_numbers_equal_the_definition),
        cmocka_unit_test(shares_are_exact_for_large_numbers),
        cmocka_unit_test(only_ratios_matter),
        cmocka_unit_test(impossible_weights_are_refused),
    };
    return cmocka_run_group_tests_name("mixture", tests, NULL, NULL);
}
