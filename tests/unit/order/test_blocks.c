/* SPDX-License-Identifier: MIT */
/*
 * test_blocks.c - `order blocks W SPAN`: the frozen values, the inverse, and what a span holds. The golden values were
 * computed by the Python program in src/order/ORDER.md. If they fail, the code would reorder running jobs: correct the
 * code, and never change the values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "order/blocks.h"
#include "order/permutation.h"

#define X8 "xxxxxxxx"
#define X32 X8 X8 X8 X8
#define X225 X32 X32 X32 X32 X32 X32 X32 "x"

static const struct {
    uint64_t n, width, span, seed;
    const char *source;
    uint64_t epoch;
    struct {
        uint64_t draw, window;
    } pairs[4];
} golden[] = {
    {1u, 1u, 1u, 1234u, "data", 0u, {{0u, 0u}, {0u, 0u}, {0u, 0u}, {0u, 0u}}},
    {10u, 4u, 2u, 1234u, "data", 0u, {{0u, 5u}, {1u, 9u}, {3u, 7u}, {9u, 0u}}},
    {10u, 4u, 1u, 1234u, "data", 0u, {{0u, 4u}, {1u, 7u}, {3u, 5u}, {9u, 0u}}},
    {10u, 1u, 1u, 1234u, "data", 0u, {{0u, 7u}, {1u, 3u}, {3u, 6u}, {9u, 0u}}},
    {10u, 1u, 3u, 1234u, "data", 0u, {{0u, 7u}, {1u, 5u}, {3u, 4u}, {9u, 0u}}},
    {10u, 100u, 7u, 1234u, "data", 0u, {{0u, 5u}, {1u, 2u}, {3u, 9u}, {9u, 4u}}},
    {100u, 7u, 4u, 1234u, "data", 1u, {{0u, 28u}, {1u, 39u}, {33u, 57u}, {99u, 67u}}},
    {1000u, 10u, 8u, 1234u, "web", 0u, {{0u, 725u}, {1u, 611u}, {333u, 957u}, {999u, 922u}}},
    {1000u, 10u, 8u, 0u, "web", 0u, {{0u, 430u}, {1u, 595u}, {333u, 174u}, {999u, 180u}}},
    {1000u, 10u, 8u, 1234u, "web", 1u, {{0u, 966u}, {1u, 930u}, {333u, 920u}, {999u, 638u}}},
    {1000u, 10u, 8u, 1234u, "web", 4294967296u, {{0u, 815u}, {1u, 531u}, {333u, 167u}, {999u, 492u}}},
    {1000u, 10u, 8u, 1234u, "web", 18446744073709551615u, {{0u, 694u}, {1u, 563u}, {333u, 837u}, {999u, 840u}}},
    {1000u, 10u, 8u, 1234u, X225, 3u, {{0u, 588u}, {1u, 814u}, {333u, 42u}, {999u, 253u}}},
    {997u, 64u, 3u, 18446744073709551615u, "web", 7u, {{0u, 271u}, {1u, 337u}, {332u, 823u}, {996u, 248u}}},
    {4096u, 64u, 16u, 1234u, "data", 2u, {{0u, 3098u}, {1u, 4062u}, {1365u, 534u}, {4095u, 3635u}}},
    {4097u, 64u, 16u, 1234u, "data", 2u, {{0u, 346u}, {1u, 734u}, {1365u, 2917u}, {4096u, 269u}}},
    {65537u, 1000u, 5u, 1234u, "code", 0u, {{0u, 35612u}, {1u, 55293u}, {21845u, 64802u}, {65536u, 65196u}}},
    {1000003u, 4096u, 64u, 1234u, "web", 0u, {{0u, 75905u}, {1u, 323088u}, {333334u, 473369u}, {1000002u, 4014u}}},
    {1000000000001u,
     1000000000u,
     9u,
     1234u,
     "web",
     1u,
     {{0u, 319256553899u}, {1u, 856707482983u}, {333333333333u, 813495134594u}, {1000000000000u, 976179768905u}}},
    {9223372036854775808u,
     144115188075855872u,
     7u,
     1234u,
     "web",
     0u,
     {{0u, 8452513206687432017u},
      {1u, 8334843607849419029u},
      {3074457345618258602u, 8611968616433339365u},
      {9223372036854775807u, 6982022381243173329u}}},
    {9223372036854775807u,
     144115188075855872u,
     64u,
     1234u,
     "web",
     5u,
     {{0u, 2388751520623449729u},
      {1u, 5521234950931277848u},
      {3074457345618258602u, 4441867692137272048u},
      {9223372036854775806u, 8968143840448025263u}}},
    {9223372036854775807u,
     4611686018427387905u,
     1u,
     1234u,
     "web",
     0u,
     {{0u, 2694812094601495640u},
      {1u, 4042335519077584679u},
      {3074457345618258602u, 2863714586122586916u},
      {9223372036854775806u, 6984922425467552674u}}},
    {9223372036854775808u,
     18446744073709551615u,
     18446744073709551615u,
     1234u,
     "web",
     1u,
     {{0u, 1447278321807753848u},
      {1u, 3032313073808209831u},
      {3074457345618258602u, 271985089426469313u},
      {9223372036854775807u, 1473185388756397601u}}},
};

static bool even; /* of order_of() */

static struct blocks_order order_of(uint64_t n, uint64_t width, uint64_t span, uint64_t seed)
{
    struct blocks_order order;
    blocks_init(&order, n, width, span, even, seed, "data", 4, seed % 3);
    return order;
}

static void blocks_have_the_golden_windows(void **state)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct blocks_order order;
        blocks_init(&order, golden[i].n, golden[i].width, golden[i].span, false, golden[i].seed, golden[i].source,
                    strlen(golden[i].source), golden[i].epoch);
        for (size_t j = 0; j < 4; j++) {
            assert_int_equal(blocks_forward(&order, golden[i].pairs[j].draw), golden[i].pairs[j].window);
            assert_int_equal(blocks_inverse(&order, golden[i].pairs[j].window), golden[i].pairs[j].draw);
        }
    }
}

/* Every window is drawn once, and its inverse is its draw. The draws of a span are all windows of its blocks, which are
 * those that the order of the blocks has in the span's slots. */
static void check_all(uint64_t n, uint64_t width, uint64_t span, uint64_t seed)
{
    struct blocks_order order = order_of(n, width, span, seed), back = order;
    const uint64_t blocks = div_ceil(n, width);
    struct tokmap_order slots;
    permutation_init(&slots, order_key(KEY_BLOCKS, seed, "data", 4, seed % 3), blocks);
    uint64_t *span_of = calloc(blocks, sizeof *span_of), draw = 0;
    uint8_t *seen = calloc(n, 1);
    assert_non_null(span_of);
    assert_non_null(seen);
    for (uint64_t slot = 0; slot < blocks; slot++)
        span_of[permutation_forward(&slots, slot)] = slot / span;
    for (uint64_t s = 0; s * span < blocks; s++) {
        uint64_t held = 0;
        for (uint64_t slot = s * span; slot < min64((s + 1) * span, blocks); slot++) {
            const uint64_t block = permutation_forward(&slots, slot);
            held += min64(width, n - block * width);
        }
        for (uint64_t i = 0; i < held; i++, draw++) {
            const uint64_t window = blocks_forward(&order, draw);
            if (window >= n || seen[window]++ || span_of[window / width] != s || blocks_inverse(&back, window) != draw)
                fail_msg("n %llu, W %llu, SPAN %llu, seed %llu: draw %llu has window %llu, which is not of its span, "
                         "appeared before, or has another inverse",
                         (unsigned long long)n, (unsigned long long)width, (unsigned long long)span,
                         (unsigned long long)seed, (unsigned long long)draw, (unsigned long long)window);
        }
    }
    assert_int_equal(draw, n);
    free(span_of);
    free(seen);
}

static void every_small_order_is_a_bijection(void **state)
{
    for (uint64_t n = 1; n <= 40; n++)
        for (uint64_t width = 1; width <= n + 1; width++)
            for (uint64_t span = 1; span <= n / width + 2; span++)
                check_all(n, width, span, n + width + span);
}

static void larger_orders_are_bijections(void **state)
{
    static const uint64_t sizes[][3] = {{1000, 64, 4},   {1024, 64, 16},   {4097, 64, 1},   {65537, 1000, 7},
                                        {100003, 17, 9}, {100000, 1, 100}, {50000, 100, 1}, {99999, 70000, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t seed = 0; seed < 4; seed++)
            check_all(sizes[i][0], sizes[i][1], sizes[i][2], seed);
}

/* For n too large to visit every window: both directions, from both ends, the seams of spans, and random numbers. */
static void inverse_holds_up_to_2_63(void **state)
{
    uint64_t random = 1;
    for (unsigned k = 20; k <= 63; k++)
        for (int64_t d = -1; d <= 1; d++)
            for (unsigned w = 0; w <= 64; w += 7) {
                const uint64_t n = ((uint64_t)1 << k) + (uint64_t)d, width = w == 63 ? UINT64_MAX : (uint64_t)1 << w;
                if (n > (uint64_t)1 << 63)
                    continue;
                struct blocks_order order = order_of(n, width, 1 + (random >> 55), k);
                for (int i = 0; i < 50; i++) {
                    random = random * 6364136223846793005u + 1442695040888963407u;
                    const uint64_t x = i == 0   ? 0
                                       : i == 1 ? n - 1
                                       : i == 2 ? n / 2
                                                : (uint64_t)((unsigned __int128)random * n >> 64);
                    const uint64_t window = blocks_forward(&order, x);
                    assert_true(window < n);
                    assert_int_equal(blocks_inverse(&order, window), x);
                    const uint64_t draw = blocks_inverse(&order, x);
                    assert_true(draw < n);
                    assert_int_equal(blocks_forward(&order, draw), x);
                }
            }
}

/* Returns the windows of the block in a slot: the last one may have fewer. */
static uint64_t slot_windows(const struct blocks_order *order, uint64_t n, uint64_t width, uint64_t slot)
{
    const uint64_t block = permutation_forward(&order->block_order, slot);
    return min64(width, n - block * width);
}

/* A window's block is in the slot that the draws of its span say, and its number in it is that of the dataset. */
static void slots_are_in_order_of_use(void **state)
{
    static const uint64_t sizes[][3] = {{10, 4, 2}, {1000, 64, 4}, {1003, 17, 9}, {50, 100, 1}, {64, 1, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint64_t n = sizes[i][0], width = sizes[i][1], span = sizes[i][2];
        struct blocks_order order = order_of(n, width, span, i);
        uint64_t of_slot[64], at, reached = 0;
        memset(of_slot, 0xff, sizeof of_slot);
        for (uint64_t draw = 0; draw < n; draw++) {
            const uint64_t window = blocks_forward(&order, draw), slot = blocks_slot(&order, window, &at);
            assert_int_equal(at, window % width);
            assert_true(slot < (n + width - 1) / width && slot / span >= reached);
            reached = slot / span;
            if (of_slot[slot] == UINT64_MAX)
                of_slot[slot] = window - at;
            assert_int_equal(of_slot[slot], window - at);
        }
    }
}

/* Each SPAN draws have one window of each block of the span, but the short block is missing when it has no more. */
static void even_blocks_take_turns(void **state)
{
    static const uint64_t sizes[][3] = {{10, 4, 2}, {1000, 64, 4}, {1003, 17, 9}, {50, 100, 1}, {64, 1, 5}, {61, 4, 3}};
    static const uint64_t golden_even[] = {7, 8, 4, 9, 5, 6, 2, 3, 0, 1}; /* of ORDER.md */
    struct blocks_order order;
    blocks_init(&order, 10, 4, 2, true, 1234, "data", 4, 0);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(blocks_forward(&order, i), golden_even[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint64_t n = sizes[i][0], width = sizes[i][1], span = sizes[i][2], blocks = div_ceil(n, width);
        uint64_t drawn[64] = {0}, at;
        blocks_init(&order, n, width, span, true, i, "web", 3, 2);
        for (uint64_t draw = 0; draw < n; draw++) {
            const uint64_t slot = blocks_slot(&order, blocks_forward(&order, draw), &at);
            for (uint64_t other = slot / span * span; other < min64((slot / span + 1) * span, blocks); other++) {
                const uint64_t has = slot_windows(&order, n, width, other);
                assert_true(drawn[other] == has || drawn[other] == drawn[slot] + (other < slot));
            }
            drawn[slot]++;
        }
    }
}

/* With one block, or with all blocks in one span, all windows change places: no draw is predictable from the last. */
static void windows_of_a_span_are_mixed(void **state)
{
    struct blocks_order order = order_of(10000, 100, 10, 5);
    uint64_t neighbors = 0;
    for (uint64_t i = 1; i < 10000; i++)
        neighbors += blocks_forward(&order, i) == blocks_forward(&order, i - 1) + 1;
    /* A window's successor is the next draw of the 1,000 of its span once in 1,000 times: 9.9 expected. */
    assert_in_range(neighbors, 1, 30);
    struct blocks_order other = order_of(10000, 100, 10, 8);
    uint64_t same = 0;
    for (uint64_t i = 0; i < 10000; i++)
        same += blocks_forward(&order, i) == blocks_forward(&other, i);
    assert_in_range(same, 0, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_the_golden_windows), cmocka_unit_test(every_small_order_is_a_bijection),
        cmocka_unit_test(larger_orders_are_bijections),   cmocka_unit_test(inverse_holds_up_to_2_63),
        cmocka_unit_test(windows_of_a_span_are_mixed),    cmocka_unit_test(slots_are_in_order_of_use),
        cmocka_unit_test(even_blocks_take_turns),
    };
    const struct CMUnitTest of_both[] = {
        cmocka_unit_test(every_small_order_is_a_bijection),
        cmocka_unit_test(larger_orders_are_bijections),
        cmocka_unit_test(inverse_holds_up_to_2_63),
        cmocka_unit_test(slots_are_in_order_of_use),
    };
    const int failed = cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
    even = true;
    return failed + cmocka_run_group_tests_name("even", of_both, NULL, NULL);
}
