/* store_way.h: the way with the shorter times is found, and noise does not change it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "loader/store_way.h"

#define BYTES 32768

/* Stores a round of batches, of which a quarter is the producer's time and the rest the consumer's, in all
 * `through` or `past` ns, or longer. The consumer reads three batches later.
 * Returns how many are stored past the caches. */
static uint32_t take_round(struct store_way *way, uint64_t through, uint64_t past)
{
    bool is_past[STORE_WAY_ROUND], timed[STORE_WAY_ROUND];
    uint32_t stored_past = 0, timed_ways[2] = {0};
    for (uint32_t i = 0; i < STORE_WAY_ROUND; i++) {
        const uint64_t waits = i % 5 == 2 ? 1000000 : i % 3 * 100;
        is_past[i] = store_way_begin(way, &timed[i]);
        stored_past += is_past[i];
        timed_ways[is_past[i]] += timed[i];
        if (timed[i])
            store_way_filled(way, is_past[i], (is_past[i] ? past : through) / 4 + waits, BYTES);
        if (i >= 3 && timed[i - 3])
            store_way_read(way, is_past[i - 3], (is_past[i - 3] ? past : through) * 3 / 4 + waits, BYTES);
    }
    assert_int_equal(timed_ways[0], STORE_WAY_ROUND / STORE_WAY_TRIED);
    assert_int_equal(timed_ways[1], STORE_WAY_ROUND / STORE_WAY_TRIED);
    return stored_past;
}

static void the_faster_way_is_found(void **unused)
{
    const uint32_t tried = STORE_WAY_ROUND / STORE_WAY_TRIED;
    struct store_way way = {.past = false};
    (void)unused;
    assert_int_equal(take_round(&way, 1800, 4100), tried);
    assert_int_equal(take_round(&way, 4000, 3500), tried); /* not much faster: stays as it is */
    assert_int_equal(take_round(&way, 18000, 4100), tried);
    assert_int_equal(take_round(&way, 18000, 4100), STORE_WAY_ROUND - tried);
    assert_int_equal(take_round(&way, 3500, 4000), STORE_WAY_ROUND - tried);
    assert_int_equal(take_round(&way, 1800, 4100), STORE_WAY_ROUND - tried);
    assert_int_equal(take_round(&way, 1800, 4100), tried);
}

/* A consumer that measures nothing, or one way only, and numbers that no clock and no batch should have. */
static void odd_times_are_harmless(void **unused)
{
    const uint64_t times[] = {0, 1, UINT64_MAX, UINT64_MAX >> 16, 1000};
    struct store_way way = {.past = false};
    bool timed;
    (void)unused;
    for (uint32_t i = 0; i < 10 * STORE_WAY_ROUND; i++)
        (void)store_way_begin(&way, &timed);
    assert_false(way.past);
    for (uint32_t i = 0; i < 10 * STORE_WAY_ROUND; i++) {
        store_way_filled(&way, store_way_begin(&way, &timed), 1000, BYTES);
        store_way_read(&way, true, 1, BYTES);
    }
    assert_false(way.past);
    for (uint32_t i = 0; i < 10 * STORE_WAY_ROUND; i++) {
        const bool past = store_way_begin(&way, &timed);
        store_way_filled(&way, past, times[i % 5], i % 7 ? BYTES : 0);
        store_way_read(&way, past, times[i % 4], i % 9 ? BYTES : 0);
    }
    for (int i = 0; i < 3; i++)
        (void)take_round(&way, 18000, 4100);
    assert_true(way.past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_faster_way_is_found),
                                       cmocka_unit_test(odd_times_are_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
