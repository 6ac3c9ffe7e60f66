/*
 * test_bpe_splits.c - the splits that bpe_splits_find() finds without merging are those that merging gives: small
 * alphabets, in which everything overlaps, tokens that several pairs make, and lists in order and out of order.
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
    const uint32_t found = bpe_splits_find(&listed, list->merges, list->merge_count, by_result, splits);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_merged), cmocka_unit_test(by_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
