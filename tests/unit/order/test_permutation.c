/* SPDX-License-Identifier: MIT */
/* test_permutation.c - the order is a bijection for every n, and tokmap_order_draw() is its inverse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "order/permutation.h"
#include "support/awkward_text.h"

static struct tokmap_order order_of(uint64_t n, uint64_t seed)
{
    struct tokmap_order order;
    permutation_init(&order, order_key(KEY_WINDOWS, seed, "data", 4, 0), n);
    return order;
}

/* Checks that every window appears exactly once and that the inverse of each is its draw. */
static void check_bijection(uint64_t n, uint64_t seed, uint8_t *seen)
{
    struct tokmap_order order = order_of(n, seed);
    memset(seen, 0, n / 8 + 1);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t window = tokmap_order_window(&order, i);
        if (window >= n || (seen[window / 8] >> (window % 8) & 1))
            fail_msg("n %llu seed %llu: the window of draw %llu is %llu, which appeared before or is not below n",
                     (unsigned long long)n, (unsigned long long)seed, (unsigned long long)i,
                     (unsigned long long)window);
        seen[window / 8] |= (uint8_t)(1u << (window % 8));
        if (tokmap_order_draw(&order, window) != i)
            fail_msg("n %llu seed %llu: draw %llu has window %llu, whose draw is another", (unsigned long long)n,
                     (unsigned long long)seed, (unsigned long long)i, (unsigned long long)window);
    }
}

static void every_small_n_is_a_bijection(void **state)
{
    uint8_t seen[2000 / 8 + 1];
    for (uint64_t n = 1; n <= 2000; n++)
        for (uint64_t seed = 0; seed < 3; seed++)
            check_bijection(n, seed, seen);
}

/* With TEST_SHARE, up to 2^22. */
static void n_near_powers_of_two_are_bijections(void **state)
{
    const unsigned most = awkward_share() > 1 ? 22 : 24;
    uint8_t *seen = malloc((1u << 24) / 8 + 2);
    assert_non_null(seen);
    for (unsigned k = 11; k <= most; k++)
        for (int64_t d = -1; d <= 1; d++)
            check_bijection((uint64_t)((int64_t)1 << k) + (uint64_t)d, k, seen);
    free(seen);
}

/* For n too large to visit every window: both directions from random numbers, both ends, and the middle. */
static void inverse_holds_up_to_2_63(void **state)
{
    uint64_t random = 1;
    for (unsigned k = 7; k <= 63; k++)
        for (int64_t d = -1; d <= 1; d++) {
            uint64_t n = ((uint64_t)1 << k) + (uint64_t)d;
            if (n > (uint64_t)1 << 63)
                continue;
            struct tokmap_order order = order_of(n, k);
            for (int i = 0; i < 2000; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                uint64_t x = i == 0   ? 0
                             : i == 1 ? n - 1
                             : i == 2 ? n / 2
                                      : (uint64_t)((unsigned __int128)random * n >> 64);
                uint64_t window = tokmap_order_window(&order, x);
                assert_true(window < n);
                assert_int_equal(tokmap_order_draw(&order, window), x);
                uint64_t draw = tokmap_order_draw(&order, x);
                assert_true(draw < n);
                assert_int_equal(tokmap_order_window(&order, draw), x);
            }
        }
}

/* Values of n that are neither small nor near a power of two. */
static void inverse_holds_for_random_n(void **state)
{
    uint64_t random = 7;
    for (int i = 0; i < 4000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t n = (random >> (random >> 58)) % ((uint64_t)1 << 63) + 1;
        struct tokmap_order order = order_of(n, random);
        for (uint64_t j = 0; j < 20; j++) {
            uint64_t x = (uint64_t)((unsigned __int128)(random * (2 * j + 1)) * n >> 64);
            uint64_t window = tokmap_order_window(&order, x);
            assert_true(window < n);
            assert_int_equal(tokmap_order_draw(&order, window), x);
        }
    }
}

static void arguments_out_of_range_are_refused(void **state)
{
    struct tokmap_order order;
    assert_int_equal(tokmap_order_init(NULL, 5, 0, "data", 0), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_order_init(&order, 0, 0, "data", 0), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_order_init(&order, 5, 0, NULL, 0), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_order_init(&order, ((uint64_t)1 << 63) + 1, 0, "data", 0), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_order_init(&order, (uint64_t)1 << 63, UINT64_MAX, "data", UINT64_MAX), TOKMAP_OK);
    assert_int_equal(tokmap_order_window(&order, (uint64_t)1 << 63), UINT64_MAX);
    for (uint64_t n = 1; n < 200; n++) {
        assert_int_equal(tokmap_order_init(&order, n, 3, "data", 0), TOKMAP_OK);
        assert_int_equal(tokmap_order_window(&order, n), UINT64_MAX);
        assert_int_equal(tokmap_order_draw(&order, n), UINT64_MAX);
        assert_int_equal(tokmap_order_draw(&order, UINT64_MAX), UINT64_MAX);
    }
    assert_int_equal(tokmap_order_window(NULL, 0), UINT64_MAX);
    assert_int_equal(tokmap_order_draw(NULL, 0), UINT64_MAX);
}

/* Every part of the key matters, and the bytes of a name cannot be confused with those of the parts beside it. */
static void every_part_of_a_key_matters(void **state)
{
    struct order_key base = order_key(KEY_WINDOWS, 1, "ab", 2, 3);
    struct order_key other[] = {
        order_key(KEY_SHIFT, 1, "ab", 2, 3),     order_key(KEY_ROWS, 1, "ab", 2, 3),
        order_key(KEY_WINDOWS, 2, "ab", 2, 3),   order_key(KEY_WINDOWS, 1, "ab", 1, 3),
        order_key(KEY_WINDOWS, 1, "ac", 2, 3),   order_key(KEY_WINDOWS, 1, "ab", 2, 4),
        order_key(KEY_WINDOWS, 1, "ab\0", 3, 3), order_key(KEY_WINDOWS, 1, "", 0, 3),
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        assert_true(other[i].low != base.low && other[i].high != base.high);
    char name[1000];
    memset(name, 'x', sizeof name);
    uint64_t seen[1000];
    for (uint64_t length = 0; length < 1000; length++) {
        seen[length] = order_key(KEY_WINDOWS, 1, name, length, 0).low;
        for (uint64_t shorter = 0; shorter < length; shorter++)
            assert_true(seen[shorter] != seen[length]);
    }
    name[998] = 'y';
    assert_true(order_key(KEY_WINDOWS, 1, name, 999, 0).low != seen[999]);
}

static void below_stays_below_its_limit(void **state)
{
    for (uint64_t limit = 1; limit < 50; limit++)
        for (uint64_t number = 0; number < 50; number++)
            assert_true(order_key_below(order_key(KEY_SHIFT, 1, "a", 1, number), limit) < limit);
    assert_int_equal(order_key_below((struct order_key){UINT64_MAX, 0}, 10), 9);
    assert_int_equal(order_key_below((struct order_key){(uint64_t)1 << 63, 0}, 10), 5);
}

/* Compares every variant with the functions for one number, and both directions with each other. Every count has a
 * group of vectors, single vectors, and single numbers of its own. */
static void check_many(uint64_t n, uint64_t seed, const uint64_t *in, uint64_t count)
{
    const struct tokmap_order order = order_of(n, seed);
    uint64_t out[300], back[300];
    assert_true(count < 300);
    for (unsigned v = 0; n > 64 && permutation_variant(v); v++) {
        const struct permutation_kernels *kernels = permutation_variant(v);
        out[count] = back[count] = 77;
        kernels->forward(order.state, in, count, out);
        kernels->inverse(order.state, in, count, back);
        for (uint64_t i = 0; i < count; i++)
            if (out[i] != permutation_forward(&order, in[i]) || back[i] != permutation_inverse(&order, in[i]))
                fail_msg("%s, n %llu: number %llu of %llu differs", kernels->name, (unsigned long long)n,
                         (unsigned long long)i, (unsigned long long)count);
        assert_true(out[count] == 77 && back[count] == 77);
    }
    memcpy(out, in, count * 8);
    permutation_forward_many(&order, out, count, out);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(out[i], permutation_forward(&order, in[i]));
    permutation_inverse_many(&order, out, count, out);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(out[i], in[i]);
}

static void many_at_once_are_the_same(void **state)
{
    uint64_t in[300], random = 5;
    for (uint64_t n = 1; n <= 300; n++) {
        for (uint64_t i = 0; i < 300; i++)
            in[i] = (i + n / 2) % n;
        check_many(n, n, in, n % 77);
        check_many(n, n, in, 299);
    }
    for (uint64_t count = 0; count < 300; count++) {
        for (uint64_t i = 0; i < count; i++)
            in[i] = (i * 37 + count) % 1025;
        check_many(1025, count, in, count);
    }
    for (unsigned k = 9; k <= 63; k++)
        for (int64_t d = -1; d <= 1; d++) {
            const uint64_t n = ((uint64_t)1 << k) + (uint64_t)d;
            if (n > (uint64_t)1 << 63)
                continue;
            for (uint64_t i = 0; i < 299; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                in[i] = i < 3 ? i : i == 3 ? n - 1 : (uint64_t)((unsigned __int128)random * n >> 64);
            }
            check_many(n, k, in, 299);
        }
    /* a is 2^32 - 1, 2^32 - 1, and 2^32, for which vectors need a step of their own. */
    const uint64_t last = (uint64_t)UINT32_MAX << 31;
    const uint64_t edges[] = {last - 1, last, last + 1};
    for (size_t e = 0; e < 3; e++) {
        for (uint64_t i = 0; i < 299; i++)
            in[i] = edges[e] - 1 - i * 12345678901;
        check_many(edges[e], e, in, 299);
    }
}

/* Where many numbers walk, 11% of them, and the exchange of 0 and 1 takes part. */
static void many_at_once_is_a_bijection(void **state)
{
    static const uint64_t sizes[] = {65, 72, 129, 513, 2049, 100003};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            const uint64_t n = sizes[s];
            const struct tokmap_order order = order_of(n, seed);
            uint64_t *numbers = malloc(n * 8);
            uint8_t *seen = calloc(n, 1);
            assert_true(numbers && seen);
            for (uint64_t i = 0; i < n; i++)
                numbers[i] = i;
            permutation_forward_many(&order, numbers, n, numbers);
            for (uint64_t i = 0; i < n; i++) {
                assert_true(numbers[i] < n && !seen[numbers[i]]);
                seen[numbers[i]] = 1;
            }
            permutation_inverse_many(&order, numbers, n, numbers);
            for (uint64_t i = 0; i < n; i++)
                assert_int_equal(numbers[i], i);
            free(numbers);
            free(seen);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_n_is_a_bijection),       cmocka_unit_test(n_near_powers_of_two_are_bijections),
        cmocka_unit_test(inverse_holds_up_to_2_63),           cmocka_unit_test(inverse_holds_for_random_n),
        cmocka_unit_test(arguments_out_of_range_are_refused), cmocka_unit_test(every_part_of_a_key_matters),
        cmocka_unit_test(below_stays_below_its_limit),        cmocka_unit_test(many_at_once_are_the_same),
        cmocka_unit_test(many_at_once_is_a_bijection),
    };
    return cmocka_run_group_tests_name("permutation", tests, NULL, NULL);
}
