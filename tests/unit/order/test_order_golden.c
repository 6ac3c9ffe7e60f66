/* SPDX-License-Identifier: MIT */
/*
 * test_order_golden.c - the frozen values of the order. If this test fails, the code would reorder running jobs:
 * correct the code, and never change the values. The Python program in src/order/ORDER.md made them, not the code under
 * test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "order/permutation.h"

#define X8 "xxxxxxxx"
#define X32 X8 X8 X8 X8
#define X224 X32 X32 X32 X32 X32 X32 X32
#define X225 X224 "x"

static const struct {
    uint64_t n, seed;
    const char *source;
    uint64_t epoch;
    struct {
        uint64_t draw, window;
    } pairs[4];
} golden[] = {
    {1u, 1234u, "data", 0u, {{0u, 0u}, {0u, 0u}, {0u, 0u}, {0u, 0u}}},
    {2u, 1234u, "data", 0u, {{0u, 1u}, {1u, 0u}, {0u, 1u}, {0u, 1u}}},
    {3u, 1234u, "data", 0u, {{0u, 1u}, {1u, 2u}, {2u, 0u}, {0u, 1u}}},
    {5u, 1234u, "data", 0u, {{0u, 3u}, {1u, 2u}, {4u, 1u}, {0u, 3u}}},
    {6u, 1234u, "data", 0u, {{0u, 2u}, {1u, 4u}, {2u, 3u}, {5u, 1u}}},
    {10u, 1234u, "data", 0u, {{0u, 7u}, {1u, 8u}, {3u, 3u}, {9u, 2u}}},
    {16u, 1234u, "data", 0u, {{0u, 14u}, {1u, 6u}, {5u, 8u}, {15u, 4u}}},
    {63u, 1234u, "data", 0u, {{0u, 23u}, {1u, 37u}, {21u, 27u}, {62u, 18u}}},
    {64u, 1234u, "data", 0u, {{0u, 24u}, {1u, 10u}, {21u, 2u}, {63u, 18u}}},
    {65u, 1234u, "data", 0u, {{0u, 56u}, {1u, 55u}, {21u, 19u}, {64u, 32u}}},
    {66u, 1234u, "data", 0u, {{0u, 56u}, {1u, 55u}, {22u, 42u}, {65u, 22u}}},
    {100u, 1234u, "data", 0u, {{0u, 66u}, {1u, 82u}, {33u, 45u}, {99u, 15u}}},
    {127u, 1234u, "data", 0u, {{0u, 59u}, {1u, 16u}, {42u, 68u}, {126u, 54u}}},
    {128u, 1234u, "data", 0u, {{0u, 59u}, {1u, 16u}, {42u, 68u}, {127u, 31u}}},
    {129u, 1234u, "data", 0u, {{0u, 124u}, {1u, 43u}, {43u, 29u}, {128u, 89u}}},
    {1000u, 1234u, "data", 0u, {{0u, 677u}, {1u, 601u}, {333u, 637u}, {999u, 157u}}},
    {4096u, 1234u, "data", 0u, {{0u, 16u}, {1u, 2467u}, {1365u, 1483u}, {4095u, 3578u}}},
    {65535u, 1234u, "data", 0u, {{0u, 37819u}, {1u, 10997u}, {21845u, 42326u}, {65534u, 25971u}}},
    {65537u, 1234u, "data", 0u, {{0u, 37819u}, {1u, 3772u}, {21845u, 9733u}, {65536u, 30941u}}},
    {1048576u, 1234u, "data", 0u, {{0u, 959389u}, {1u, 659534u}, {349525u, 403099u}, {1048575u, 388513u}}},
    {1048577u, 1234u, "data", 0u, {{0u, 386553u}, {1u, 661165u}, {349525u, 724207u}, {1048576u, 463858u}}},
    {1000000000u,
     1234u,
     "data",
     0u,
     {{0u, 696416399u}, {1u, 578924274u}, {333333333u, 78875868u}, {999999999u, 15449196u}}},
    {4294967295u,
     1234u,
     "data",
     0u,
     {{0u, 2731798230u}, {1u, 2117412027u}, {1431655765u, 2005910507u}, {4294967294u, 1858675250u}}},
    {4294967296u,
     1234u,
     "data",
     0u,
     {{0u, 2731798230u}, {1u, 2117412027u}, {1431655765u, 2005910507u}, {4294967295u, 2629200660u}}},
    {4294967297u,
     1234u,
     "data",
     0u,
     {{0u, 924697453u}, {1u, 2117412027u}, {1431655765u, 1553141639u}, {4294967296u, 4218712284u}}},
    {1000000000000u,
     1234u,
     "data",
     0u,
     {{0u, 168319122129u}, {1u, 37322201027u}, {333333333333u, 748702752362u}, {999999999999u, 676570812316u}}},
    {1099511627777u,
     1234u,
     "data",
     0u,
     {{0u, 11088460614u}, {1u, 535408087418u}, {366503875925u, 486395862109u}, {1099511627776u, 688244454487u}}},
    {4611686018427387905u,
     1234u,
     "data",
     0u,
     {{0u, 162706420516769311u},
      {1u, 2179153760828999617u},
      {1537228672809129301u, 3175742556600542078u},
      {4611686018427387904u, 4513293071522415289u}}},
    {9223372036854775807u,
     1234u,
     "data",
     0u,
     {{0u, 274671968606380018u},
      {1u, 4833253281169625267u},
      {3074457345618258602u, 6840458106291062218u},
      {9223372036854775806u, 772833414033353599u}}},
    {9223372036854775808u,
     1234u,
     "data",
     0u,
     {{0u, 274671968606380018u},
      {1u, 4833253281169625267u},
      {3074457345618258602u, 6840458106291062218u},
      {9223372036854775807u, 2565742248544102685u}}},
    {1000u, 0u, "data", 0u, {{0u, 103u}, {1u, 681u}, {333u, 806u}, {999u, 815u}}},
    {1000u, 18446744073709551615u, "data", 0u, {{0u, 831u}, {1u, 519u}, {333u, 754u}, {999u, 997u}}},
    {1000u, 1234u, "data", 1u, {{0u, 524u}, {1u, 588u}, {333u, 668u}, {999u, 779u}}},
    {1000u, 1234u, "data", 18446744073709551615u, {{0u, 259u}, {1u, 269u}, {333u, 720u}, {999u, 91u}}},
    {1000u, 1234u, "web", 0u, {{0u, 836u}, {1u, 177u}, {333u, 535u}, {999u, 770u}}},
    {1000u, 1234u, "", 0u, {{0u, 371u}, {1u, 78u}, {333u, 899u}, {999u, 866u}}},
    {1000u, 1234u, X224, 0u, {{0u, 322u}, {1u, 693u}, {333u, 935u}, {999u, 362u}}},
    {1000u, 1234u, X225, 0u, {{0u, 484u}, {1u, 896u}, {333u, 728u}, {999u, 420u}}},
    {10u, 1234u, "web", 7u, {{0u, 0u}, {1u, 9u}, {3u, 2u}, {9u, 8u}}},
};

static const struct {
    const char *tag;
    uint64_t seed;
    const char *name;
    uint64_t number, low, high;
} golden_keys[] = {
    {"windows", 1234u, "data", 0u, 0xd96cdf1fb228e90bu, 0x27fef1b937a73681u},
    {"shift", 1234u, "data", 1u, 0xa0b2c95c7edf0810u, 0xa41a329c0c9e243cu},
    {"rows", 1234u, "", 179200u, 0xa8c87cee4f1e560bu, 0x3c14fbbcee7465f6u},
};

/* The shifts of seed 1234, source "data", seq_len 8192, and epochs 1 to 5. */
static const uint64_t golden_shifts[] = {5142u, 3618u, 467u, 3449u, 6405u};
/* Rows 0 to 7 of a run with seed 1234: of step 179200 with 1024 rows, and of step 0 with 8 rows. */
static const uint64_t golden_rows[] = {687u, 772u, 448u, 917u, 592u, 330u, 122u, 583u};
static const uint64_t golden_rows_of_8[] = {1u, 5u, 7u, 6u, 4u, 0u, 3u, 2u};

static void order_has_the_golden_windows(void **state)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct tokmap_order order;
        assert_int_equal(tokmap_order_init(&order, golden[i].n, golden[i].seed, golden[i].source, golden[i].epoch),
                         TOKMAP_OK);
        for (size_t j = 0; j < 4; j++) {
            assert_int_equal(tokmap_order_window(&order, golden[i].pairs[j].draw), golden[i].pairs[j].window);
            assert_int_equal(tokmap_order_draw(&order, golden[i].pairs[j].window), golden[i].pairs[j].draw);
        }
    }
}

static void keys_have_the_golden_values(void **state)
{
    for (size_t i = 0; i < sizeof golden_keys / sizeof golden_keys[0]; i++) {
        struct order_key key = order_key(golden_keys[i].tag, golden_keys[i].seed, golden_keys[i].name,
                                         strlen(golden_keys[i].name), golden_keys[i].number);
        assert_true(key.low == golden_keys[i].low && key.high == golden_keys[i].high);
    }
}

static void shifts_have_the_golden_values(void **state)
{
    for (uint64_t e = 1; e <= sizeof golden_shifts / sizeof golden_shifts[0]; e++)
        assert_int_equal(order_key_below(order_key(KEY_SHIFT, 1234, "data", 4, e), 8192), golden_shifts[e - 1]);
}

static void rows_have_the_golden_values(void **state)
{
    struct tokmap_order order;
    permutation_init(&order, order_key(KEY_ROWS, 1234, "", 0, 179200), 1024);
    for (uint64_t j = 0; j < 8; j++)
        assert_int_equal(permutation_forward(&order, j), golden_rows[j]);
    permutation_init(&order, order_key(KEY_ROWS, 1234, "", 0, 0), 8);
    for (uint64_t j = 0; j < 8; j++)
        assert_int_equal(permutation_forward(&order, j), golden_rows_of_8[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_has_the_golden_windows),
        cmocka_unit_test(keys_have_the_golden_values),
        cmocka_unit_test(shifts_have_the_golden_values),
        cmocka_unit_test(rows_have_the_golden_values),
    };
    return cmocka_run_group_tests_name("order_golden", tests, NULL, NULL);
}
