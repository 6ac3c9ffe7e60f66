/* SPDX-License-Identifier: MIT */
/*
 * test_pairs.c - the table of pairs: it finds what was added, and pairs that collide cost no more than others. The test
 * counts slots that are passed over, and measures no time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "platform/table_key.h"

#define SIDE 128
#define FIRST 300 /* ids are from here on, and below LAST */
#define LAST (BPE_IDS / 4)
#define PAIRS ((uint64_t)SIDE * SIDE)

/* The ids whose product with the factor, shifted to the place that the side has in a key, is smallest: such ids select
 * neighboring slots, and so do their sums. */
struct choice {
    uint64_t product;
    uint32_t id;
};

static int by_product(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;
    return left->product < right->product ? -1 : left->product > right->product;
}

static void choose(uint32_t ids[SIDE], uint32_t shift, uint64_t factor)
{
    struct choice *choices = malloc((LAST - FIRST) * sizeof *choices);
    assert_non_null(choices);
    for (uint32_t id = FIRST; id < LAST; id++)
        choices[id - FIRST] = (struct choice){((uint64_t)id << shift) * factor, id};
    qsort(choices, LAST - FIRST, sizeof *choices, by_product);
    for (uint32_t i = 0; i < SIDE; i++)
        ids[i] = choices[i].id;
    free(choices);
}

/* A line says that pairs have passed on to the next one where there are such pairs, and only there. */
static void lines_say_what_has_passed(const struct bpe_model *model)
{
    const uint64_t slots = (uint64_t)1 << model->pair_bits;
    bool *passed = calloc(slots / BPE_PAIRS_LINE, sizeof *passed);
    assert_non_null(passed);
    for (uint64_t at = 0; at < slots; at++) {
        if (model->pairs[at] == UINT64_MAX)
            continue;
        uint64_t line = bpe_pair_place(bpe_pair_hash(model, model->pairs[at] >> 22)) / BPE_PAIRS_LINE;
        for (; line != at / BPE_PAIRS_LINE; line = (line + 1) % (slots / BPE_PAIRS_LINE))
            passed[line] = true;
    }
    for (uint64_t line = 0; line < slots / BPE_PAIRS_LINE; line++)
        assert_int_equal(bpe_pairs_passed(model->pairs + line * BPE_PAIRS_LINE), passed[line]);
    free(passed);
}

/* Adds all pairs of the ids, and finds them. Returns the slots that were passed over; *keys: how often a key was drawn
 * after the first. */
static uint64_t passed_over(const uint32_t left[SIDE], const uint32_t right[SIDE], uint32_t *keys)
{
    struct bpe_model model = {.pairs = NULL};
    assert_true(bpe_pairs_new(&model, 2 * PAIRS));
    uint64_t passed = 0, factor = model.pair_factor;
    *keys = 0;
    for (uint32_t i = 0; i < PAIRS; i++) {
        const uint64_t before = model.pair_passed;
        assert_true(bpe_pair_add(&model, left[i / SIDE], right[i % SIDE], i));
        if (factor == model.pair_factor) {
            passed += model.pair_passed - before;
        } else { /* what the additions before it had passed over is in the sum already */
            passed += model.pair_passed;
            factor = model.pair_factor;
            ++*keys;
        }
    }
    assert_int_equal(model.pair_count, PAIRS);
    for (uint32_t i = 0; i < PAIRS; i++) {
        assert_int_equal(bpe_pair_rank(&model, left[i / SIDE], right[i % SIDE]), i);
        assert_int_equal(bpe_pair_rank(&model, left[i / SIDE], i % FIRST), BPE_NONE);
    }
    assert_false(bpe_pair_add(&model, left[1], right[2], 7));
    assert_int_equal(bpe_pair_rank(&model, left[1], right[2]), 7);
    lines_say_what_has_passed(&model);
    bpe_pairs_free(&model);
    return passed;
}

/* An empty slot has the key of the pair of the largest number with itself. */
static void the_last_pair_is_not_an_empty_slot(void **unused)
{
    (void)unused;
    struct bpe_model model = {.pairs = NULL};
    assert_true(bpe_pairs_new(&model, 16));
    memset(model.pair_filter, 0xFF, ((size_t)4 << model.pair_bits) / 8);
    assert_int_equal(bpe_pair_rank(&model, BPE_IDS - 1, BPE_IDS - 1), BPE_NONE);
    assert_true(bpe_pair_add(&model, BPE_IDS - 1, BPE_IDS - 1, 5));
    assert_int_equal(bpe_pair_rank(&model, BPE_IDS - 1, BPE_IDS - 1), 5);
    bpe_pairs_free(&model);
}

/* A table that is almost full, so that lines pass on pairs and the last slots pass them on to the first ones. */
static void another_key_keeps_all_pairs(void **unused)
{
    (void)unused;
    enum { SLOTS = 1024, COUNT = SLOTS - 5 };
    struct bpe_model model = {.pairs = NULL};
    assert_true(bpe_pairs_new(&model, SLOTS));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_true(bpe_pair_add(&model, 7 * i, i % 3, i));
    for (uint32_t key = 0; key < 300; key++) {
        const uint64_t factor = model.pair_factor;
        model.pair_passed = UINT64_MAX / 4;
        assert_false(bpe_pair_add(&model, 7 * key, key % 3, key));
        assert_int_not_equal(model.pair_factor, factor);
        assert_int_equal(model.pair_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_int_equal(bpe_pair_rank(&model, 7 * i, i % 3), i);
            assert_int_equal(bpe_pair_rank(&model, 7 * i, 3), BPE_NONE);
        }
        lines_say_what_has_passed(&model);
    }
    bpe_pairs_free(&model);
}

static void colliding_pairs_cost_no_more(void **unused)
{
    (void)unused;
    const uint64_t most = 64 * PAIRS; /* 2 to 5 for each pair, up to 16 before another key is drawn, and again */
    uint32_t left[SIDE], right[SIDE], keys;
    for (uint32_t i = 0; i < SIDE; i++) {
        left[i] = FIRST + i;
        right[i] = 2000 + i;
    }
    assert_in_range(passed_over(left, right, &keys), 0, most);
    /* The factor that all tables would have if it were not drawn. */
    choose(left, 21, 0x9E3779B97F4A7C15u);
    choose(right, 0, 0x9E3779B97F4A7C15u);
    assert_in_range(passed_over(left, right, &keys), 0, most);
    /* Even whoever knows the first factor gains little: the next one is another. */
    for (uint32_t seed = 1; seed <= 4; seed++) {
        table_key_fix(seed);
        const uint64_t factor = table_key_new().low | 1;
        choose(left, 21, factor);
        choose(right, 0, factor);
        table_key_fix(seed);
        assert_in_range(passed_over(left, right, &keys), 0, most);
        assert_in_range(keys, 1, 3);
    }
    table_key_fix(0);
}

/* ---- lists ---- */

#define LISTED 110000u /* two threads share them; 84% of the slots are used, so some searches leave a part */
#define AGAIN 1000u    /* of them are there a second time, at the end of the list */

/* The table of a list has what additions in order give, whatever part of it a thread has filled. */
static void lists_are_added_in_order(void **unused)
{
    (void)unused;
    struct bpe_merge *merges = malloc((LISTED + AGAIN) * sizeof *merges);
    assert_non_null(merges);
    for (uint32_t i = 0; i < LISTED; i++)
        merges[i] = (struct bpe_merge){i * 7 % LISTED, i / 3, LISTED - i};
    for (uint32_t i = 0; i < AGAIN; i++)
        merges[LISTED + i] = (struct bpe_merge){merges[i * 97].left, merges[i * 97].right, 2 * LISTED + i};
    for (uint32_t seed = 1; seed <= 6; seed++) {
        struct bpe_model model = {.pairs = NULL};
        const bool again = seed % 2, by_result = seed % 3;
        const uint32_t count = LISTED + (again ? AGAIN : 0);
        bool twice;
        table_key_fix(seed);
        assert_true(bpe_pairs_new_list(&model, count + count / 8, merges, count, by_result, &twice));
        assert_int_equal(twice, again);
        assert_int_equal(model.pair_count, LISTED);
        lines_say_what_has_passed(&model);
        for (uint32_t i = 0; i < count; i++)
            if (i >= LISTED || !again || i % 97 || i / 97 >= AGAIN)
                assert_int_equal(bpe_pair_rank(&model, merges[i].left, merges[i].right),
                                 by_result ? merges[i].result : i);
        assert_int_equal(bpe_pair_rank(&model, LISTED, LISTED), BPE_NONE);
        bpe_pairs_free(&model);
    }
    table_key_fix(0);
    free(merges);
}

/* A list that was made for the key of its table gets another key, and costs no more than single additions. */
static void colliding_lists_cost_no_more(void **unused)
{
    (void)unused;
    static struct bpe_merge merges[PAIRS];
    uint32_t left[SIDE], right[SIDE];
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct bpe_model model = {.pairs = NULL};
        bool twice;
        table_key_fix(seed);
        const uint64_t factor = table_key_new().low | 1;
        choose(left, 21, factor);
        choose(right, 0, factor);
        for (uint32_t i = 0; i < PAIRS; i++)
            merges[i] = (struct bpe_merge){left[i / SIDE], right[i % SIDE], i};
        table_key_fix(seed);
        assert_true(bpe_pairs_new_list(&model, 2 * PAIRS, merges, PAIRS, false, &twice));
        assert_false(twice);
        assert_true(model.pair_factor != factor);
        assert_in_range(model.pair_passed, 0, 32 * PAIRS);
        assert_int_equal(model.pair_count, PAIRS);
        for (uint32_t i = 0; i < PAIRS; i++)
            assert_int_equal(bpe_pair_rank(&model, merges[i].left, merges[i].right), i);
        bpe_pairs_free(&model);
    }
    table_key_fix(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_pair_is_not_an_empty_slot), cmocka_unit_test(another_key_keeps_all_pairs),
        cmocka_unit_test(colliding_pairs_cost_no_more), cmocka_unit_test(lists_are_added_in_order),
        cmocka_unit_test(colliding_lists_cost_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
