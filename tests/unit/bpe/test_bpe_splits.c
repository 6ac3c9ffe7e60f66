/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_bpe_splits.c - the splits that bpe_splits_find() finds without merging are those that merging gives: small
 * alphabets, in which everything overlaps, tokens that several pairs make, and lists in order and out of order. Several
 * threads find the same as one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_splits.h"
#include "support/awkward_text.h"

#define MOST 400 /* tokens, and merges */
#define LONGEST 14
#define PAIR_BITS 12

struct list {
    char texts[MOST][LONGEST + 1];
    uint32_t count, letters;
    struct bpe_merge merges[MOST];
    uint32_t merge_count;
};

static uint32_t find(const struct list *list, const char *text)
{
    for (uint32_t id = 0; id < list->count; id++)
        if (!strcmp(list->texts[id], text))
            return id;
    return BPE_NONE;
}

static bool has_pair(const struct list *list, uint32_t left, uint32_t right)
{
    for (uint32_t i = 0; i < list->merge_count; i++)
        if (list->merges[i].left == left && list->merges[i].right == right)
            return true;
    return false;
}

/* moved: how many merges are swapped with others; 0: tokens are made in the order of ids. */
static void make(struct list *list, uint32_t tokens, uint32_t moved)
{
    memset(list, 0, sizeof *list);
    list->letters = list->count = 1 + awkward_below(4);
    for (uint32_t i = 0; i < list->letters; i++)
        list->texts[i][0] = (char)('a' + i);
    for (int tries = 0; tries < 4000 && list->count < tokens && list->merge_count < MOST; tries++) {
        char text[2 * LONGEST + 1];
        const uint32_t left = awkward_below(list->count), right = awkward_below(list->count);
        strcpy(text, list->texts[left]);
        strcat(text, list->texts[right]);
        if (strlen(text) > LONGEST || has_pair(list, left, right))
            continue;
        uint32_t result = find(list, text);
        if (result == BPE_NONE) {
            result = list->count++;
            strcpy(list->texts[result], text);
        }
        list->merges[list->merge_count++] = (struct bpe_merge){left, right, result};
    }
    for (uint32_t i = 0; i < moved && list->merge_count; i++) {
        const uint32_t a = awkward_below(list->merge_count), b = awkward_below(list->merge_count);
        const struct bpe_merge was = list->merges[a];
        list->merges[a] = list->merges[b];
        list->merges[b] = was;
    }
}

struct part {
    uint32_t id, rank; /* rank: of the merge that made it; BPE_NONE: it is a letter */
    bool rises;        /* the ranks of the merges that made it and its parts grow */
};

static uint32_t rank_of(const struct list *list, uint32_t left, uint32_t right)
{
    for (uint32_t i = 0; i < list->merge_count; i++)
        if (list->merges[i].left == left && list->merges[i].right == right)
            return i;
    return BPE_NONE;
}

/* The definition: while any neighbors merge, the pair of lowest rank does, of equals the leftmost. Returns how many
 * parts are left. */
static uint32_t merge(const struct list *list, const char *text, struct part *parts)
{
    uint32_t count = (uint32_t)strlen(text);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (struct part){(uint32_t)(text[i] - 'a'), BPE_NONE, true};
    for (;;) {
        uint32_t best = BPE_NONE, at = 0;
        for (uint32_t i = 0; i + 1 < count; i++) {
            const uint32_t rank = rank_of(list, parts[i].id, parts[i + 1].id);
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == BPE_NONE)
            return count;
        struct part *left = &parts[at], *right = left + 1;
        const bool above =
            (left->rank == BPE_NONE || left->rank < best) && (right->rank == BPE_NONE || right->rank < best);
        *left = (struct part){list->merges[best].result, best, left->rises && right->rises && above};
        count--;
        memmove(right, right + 1, (count - at - 1) * sizeof *parts);
    }
}

static void try_list(const struct list *list, bool by_result)
{
    struct bpe_model listed = {.pairs = NULL};
    struct bpe_split splits[MOST] = {{0, 0, BPE_UNKNOWN}};
    struct part parts[LONGEST];
    uint32_t known = 0;
    assert_true(bpe_pairs_new(&listed, (uint64_t)1 << PAIR_BITS));
    for (uint32_t i = 0; i < list->merge_count; i++)
        assert_true(
            bpe_pair_add(&listed, list->merges[i].left, list->merges[i].right, by_result ? list->merges[i].result : i));
    for (uint32_t id = 0; id < list->letters; id++)
        splits[id].made = BPE_ATOM;
    const uint32_t found = bpe_splits_find(&listed, list->merges, list->merge_count, by_result, 1, splits);
    for (uint32_t id = list->letters; id < list->count; id++) {
        const uint32_t count = merge(list, list->texts[id], parts);
        if (count != 1 || parts[0].id != id || !parts[0].rises) {
            assert_int_equal(splits[id].made, BPE_UNKNOWN);
            continue;
        }
        const struct bpe_merge *last = &list->merges[parts[0].rank];
        assert_int_equal(splits[id].made, (by_result ? id : parts[0].rank) + BPE_BY_RANK);
        assert_int_equal(splits[id].left, last->left);
        assert_int_equal(splits[id].right, last->right);
        known++;
    }
    assert_int_equal(found, known);
    bpe_pairs_free(&listed);
}

static void as_merged(void **unused)
{
    static struct list list;
    awkward_seed(31);
    for (int round = 0; round < awkward_rounds(400); round++) {
        make(&list, 5 + awkward_below(MOST - 5), round % 4 * (round % 8 < 4 ? 1 : 20));
        try_list(&list, false);
    }
}

/* Lists with one merge for each token, in the order of ids: the ids serve as ranks. */
static void by_results(void **unused)
{
    static struct list list;
    awkward_seed(32);
    for (int round = 0; round < awkward_rounds(200); round++) {
        uint32_t kept = 0;
        make(&list, 5 + awkward_below(MOST - 5), 0);
        for (uint32_t i = 0; i < list.merge_count; i++)
            if (!kept || list.merges[i].result > list.merges[kept - 1].result)
                list.merges[kept++] = list.merges[i];
        list.merge_count = kept;
        try_list(&list, true);
    }
}

/* ---- several threads ---- */

#define LARGE 24000 /* tokens, and merges: enough for several threads */
#define LETTER_BITS 4
#define LETTERS (1 << LETTER_BITS)
#define LETTERS_MOST 15 /* of a text */
#define PLACES_BITS 16

/* A list that is large enough for several threads. */
struct large {
    struct {
        uint64_t letters; /* LETTER_BITS each, the last one lowest */
        uint32_t length;
    } texts[LARGE];
    uint32_t count, atoms;
    struct bpe_merge merges[LARGE];
    uint32_t merge_count;
    uint32_t places[1 << PLACES_BITS]; /* by text: id + 1, or 0 */
    struct bpe_model pairs;            /* those of the merges */
};

/* The place of a text, or the free place where it belongs. */
static uint32_t *large_place(struct large *list, uint64_t letters, uint32_t length)
{
    uint32_t at = (uint32_t)((letters * 31 + length) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - PLACES_BITS));
    for (; list->places[at]; at = (at + 1) % (1 << PLACES_BITS)) {
        const uint32_t id = list->places[at] - 1;
        if (list->texts[id].letters == letters && list->texts[id].length == length)
            break;
    }
    return &list->places[at];
}

/* The id of a text, which becomes a token unless it is one. */
static uint32_t large_id(struct large *list, uint64_t letters, uint32_t length)
{
    uint32_t *place = large_place(list, letters, length);
    if (!*place) {
        list->texts[list->count].letters = letters;
        list->texts[list->count].length = length;
        *place = ++list->count;
    }
    return *place - 1;
}

static uint32_t large_join(struct large *list, uint32_t left, uint32_t right)
{
    const uint32_t shift = LETTER_BITS * list->texts[right].length;
    return large_id(list, list->texts[left].letters << shift | list->texts[right].letters,
                    list->texts[left].length + list->texts[right].length);
}

/* Adds a merge unless its text is too long or the list has it. */
static void large_add(struct large *list, uint32_t left, uint32_t right)
{
    if (list->texts[left].length + list->texts[right].length <= LETTERS_MOST && list->merge_count < LARGE &&
        list->count < LARGE && bpe_pair_add(&list->pairs, left, right, 0))
        list->merges[list->merge_count++] = (struct bpe_merge){left, right, large_join(list, left, right)};
}

/* Tokens of any two tokens, mostly of the newest `window`. Small windows make merges wait for the ones just before. */
static void large_make(struct large *list, uint32_t window)
{
    memset(list, 0, sizeof *list);
    list->atoms = LETTERS;
    assert_true(bpe_pairs_new(&list->pairs, 2 * LARGE));
    for (uint32_t i = 0; i < LETTERS; i++)
        (void)large_id(list, i, 1);
    for (int tries = 0; tries < 4 * LARGE; tries++) {
        const uint32_t few = window < list->count && tries % 4 ? window : list->count;
        const uint32_t newest = list->count - 1 - awkward_below(few),
                       other = awkward_below(list->count < 64 || tries % 16 == 15 ? list->count : 64);
        large_add(list, tries % 2 ? newest : other, tries % 2 ? other : newest);
    }
    bpe_pairs_free(&list->pairs);
}

/* Replaces the merges: the pairs of each token side by side, all that its text can be divided into. */
static void large_divide(struct large *list)
{
    list->merge_count = 0;
    for (uint32_t id = list->atoms; id < list->count; id++)
        for (uint32_t right = 1; right < list->texts[id].length && list->merge_count < LARGE; right++) {
            const uint32_t bits = LETTER_BITS * right;
            const uint64_t letters = list->texts[id].letters, mask = ((uint64_t)1 << bits) - 1;
            const uint32_t a = *large_place(list, letters >> bits, list->texts[id].length - right),
                           b = *large_place(list, letters & mask, right);
            if (a && b)
                list->merges[list->merge_count++] = (struct bpe_merge){a - 1, b - 1, id};
        }
}

/* Each token is made of the one before: all merges of a block wait. */
static void large_chain(struct large *list)
{
    memset(list, 0, sizeof *list);
    list->atoms = LARGE / 2;
    list->count = LARGE;
    for (uint32_t i = 0; i + 1 < LARGE / 2; i++)
        list->merges[list->merge_count++] = (struct bpe_merge){i ? LARGE / 2 + i - 1 : 0, i + 1, LARGE / 2 + i};
}

static void swap_some(struct large *list, uint32_t swaps)
{
    for (uint32_t i = 0; i < swaps; i++) {
        const uint32_t a = awkward_below(list->merge_count), b = awkward_below(list->merge_count);
        const struct bpe_merge was = list->merges[a];
        list->merges[a] = list->merges[b];
        list->merges[b] = was;
    }
}

/* Returns how many splits are found. */
static uint32_t try_threads(const struct large *list)
{
    struct bpe_model listed = {.pairs = NULL};
    static struct bpe_split alone[LARGE], shared[LARGE];
    bool twice;
    uint32_t found = 0;
    assert_true(list->merge_count > LARGE / 3);
    assert_true(bpe_pairs_new_list(&listed, 2 * LARGE, list->merges, list->merge_count, false, &twice));
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        struct bpe_split *splits = threads == 1 ? alone : shared;
        memset(splits, 0, sizeof alone);
        for (uint32_t id = 0; id < list->atoms; id++)
            splits[id].made = BPE_ATOM;
        const uint32_t now = bpe_splits_find(&listed, list->merges, list->merge_count, false, threads, splits);
        if (threads == 1)
            found = now;
        assert_int_equal(now, found);
        assert_memory_equal(splits, alone, sizeof alone);
    }
    bpe_pairs_free(&listed);
    return found;
}

static void several_threads(void **unused)
{
    static struct large list;
    static const uint32_t windows[] = {4, 300, LARGE};
    awkward_seed(33);
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        large_make(&list, windows[i]);
        assert_true(try_threads(&list) > 100);
        swap_some(&list, 50);
        (void)try_threads(&list);
        large_make(&list, windows[i]);
        large_divide(&list);
        assert_true(try_threads(&list) > 100);
        swap_some(&list, LARGE);
        (void)try_threads(&list);
    }
    large_chain(&list);
    assert_int_equal(try_threads(&list), list.merge_count);
    swap_some(&list, 3);
    (void)try_threads(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_merged), cmocka_unit_test(by_results),
                                       cmocka_unit_test(several_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
