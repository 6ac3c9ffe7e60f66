/* SPDX-License-Identifier: MIT */
/* store_way.h: the way with the shorter times is found, and noise does not change it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "loader/store_way.h"

#define BYTES 32768
#define LAG 3 /* batches that wait in the ring */
#define SLOTS 8
#define TRIED (SLOTS + STORE_WAY_TIMED)
#define ROUND (STORE_WAY_SHARE * TRIED)

/* Stores a round of batches, which take `through` or `bypass` ns, the first that is timed and stored through them
 * `waits` ns more. The consumer takes each three batches later. Returns how many are stored around the caches. */
static uint32_t take_round(struct store_way *way, uint64_t through, uint64_t bypass, uint64_t waits)
{
    bool bypasses[ROUND], timed[ROUND];
    uint32_t bypassed = 0;
    bool waited = false;
    for (uint32_t i = 0; i < ROUND + LAG; i++) {
        if (i < ROUND) {
            bypasses[i] = store_way_begin(way, &timed[i]);
            bypassed += bypasses[i];
        }
        if (i < LAG || !timed[i - LAG])
            continue;
        const bool which = bypasses[i - LAG];
        store_way_taken(way, which, which ? bypass : through + (waited ? 0 : waits), BYTES);
        waited |= !which;
    }
    return bypassed;
}

/* The last batches before the other way is tried, and its last ones, when the ring has only batches of one way. */
static void batches_of_a_settled_ring_are_timed(void **unused)
{
    struct store_way way;
    (void)unused;
    store_way_init(&way, SLOTS);
    for (uint32_t i = 0; i < 3 * ROUND; i++) {
        const uint32_t place = i % ROUND, before = ROUND - TRIED - STORE_WAY_TIMED;
        bool timed;
        assert_int_equal(store_way_begin(&way, &timed), place >= ROUND - TRIED);
        assert_int_equal(timed,
                         place >= ROUND - STORE_WAY_TIMED || (place >= before && place < before + STORE_WAY_TIMED));
    }
}

static void the_faster_way_is_found(void **unused)
{
    struct store_way way;
    (void)unused;
    store_way_init(&way, SLOTS);
    for (int i = 0; i < 3 * STORE_WAY_WINS; i++) {
        assert_int_equal(take_round(&way, 1800, 4100, 0), TRIED);
        assert_int_equal(take_round(&way, 4000, 3600, 0), TRIED); /* not much faster: stays so */
    }
    for (int i = 0; i < STORE_WAY_WINS; i++)
        assert_int_equal(take_round(&way, 18000, 4100, 0), TRIED);
    for (int i = 0; i < 3 * STORE_WAY_WINS; i++)
        assert_int_equal(take_round(&way, 3600, 4000, 0), ROUND - TRIED);
    for (int i = 0; i < STORE_WAY_WINS; i++)
        assert_int_equal(take_round(&way, 3000, 4000, 0), ROUND - TRIED);
    assert_int_equal(take_round(&way, 3000, 4000, 0), TRIED);
}

/* Waits of a millisecond make one way look slow, but in fewer rounds in a row than it takes. */
static void noise_changes_nothing(void **unused)
{
    struct store_way way;
    (void)unused;
    store_way_init(&way, SLOTS);
    for (int i = 1; i <= 50; i++)
        assert_int_equal(take_round(&way, 4000, 4000, i % STORE_WAY_WINS ? 1000000 : 0), TRIED);
}

/* Batches without rows or times, numbers that no clock and no batch should have, and batches that never arrive. */
static void odd_times_are_harmless(void **unused)
{
    const uint64_t times[] = {0, 1, UINT64_MAX, UINT64_MAX >> 16, 1000};
    struct store_way way;
    bool timed;
    (void)unused;
    store_way_init(&way, SLOTS);
    for (uint32_t i = 0; i < 10 * ROUND; i++)
        (void)store_way_begin(&way, &timed);
    for (uint32_t i = 0; i < 10 * ROUND; i++)
        store_way_taken(&way, store_way_begin(&way, &timed), 0, BYTES);
    for (uint32_t i = 0; i < 10 * ROUND; i++)
        store_way_taken(&way, store_way_begin(&way, &timed), 1000, 0);
    assert_false(way.bypass);
    for (uint32_t i = 0; i < 10 * ROUND; i++)
        store_way_taken(&way, store_way_begin(&way, &timed), times[i % 5], i % 7 ? BYTES : UINT64_MAX);
    for (uint32_t i = 0; i < 100; i++)
        store_way_taken(&way, true, 1, BYTES);
    for (int i = 0; i < 2 * STORE_WAY_WINS; i++)
        (void)take_round(&way, 18000, 4100, 0);
    assert_true(way.bypass);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_a_settled_ring_are_timed), cmocka_unit_test(the_faster_way_is_found),
        cmocka_unit_test(noise_changes_nothing), cmocka_unit_test(odd_times_are_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
