/* SPDX-License-Identifier: MIT */
/* test_row_slices.c - slices of rows against a row that is laid out token by token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "run/columns.h"
#include "support/scratch.h"

#define EXTENTS_MOST 12
#define COLUMNS_MOST 4096
#define AHEAD_MOST 3

/* A row: its extents, whose lengths with the padding after each are multiples of `pad`, and the token of each column;
 * TOKMAP_NO_OFFSET in padding. */
struct row {
    uint64_t seq_len, dataset_tokens, count;
    struct tokmap_extent extents[EXTENTS_MOST];
    uint64_t tokens[COLUMNS_MOST + AHEAD_MOST];
};

static void add(struct row *row, uint64_t first_token, uint64_t tokens, uint64_t *at)
{
    row->extents[row->count++] = (struct tokmap_extent){first_token, tokens};
    for (uint64_t i = 0; i < tokens; i++)
        row->tokens[(*at)++] =
            first_token == TOKMAP_NO_OFFSET ? TOKMAP_NO_OFFSET : (first_token + i) % row->dataset_tokens;
}

static void row_random(struct row *row, uint64_t pad, uint64_t *state)
{
    uint64_t at = 0;
    *row = (struct row){.seq_len = pad * (1 + random_below(state, 40)), .dataset_tokens = COLUMNS_MOST};
    memset(row->tokens, 0xff, sizeof row->tokens);
    while (row->count + 2 <= EXTENTS_MOST && at < row->seq_len && random_below(state, 8)) {
        const uint64_t room = row->seq_len - at, tokens = 1 + random_below(state, room);
        add(row, random_below(state, row->dataset_tokens), tokens, &at);
        if (tokens % pad)
            add(row, TOKMAP_NO_OFFSET, pad - tokens % pad, &at);
    }
}

/* Compares the tokens of a chunk, and those after it, with those of the row. */
static void check_cut(const struct row *row, struct columns_cut *cut, const struct chunk *chunk, uint64_t ahead)
{
    struct tokmap_extent extents[EXTENTS_MOST + 1];
    const uint64_t count = columns_cut_next(cut, chunk->first, chunk->count + ahead, extents);
    uint64_t at = chunk->first;
    assert_true(count <= row->count);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < extents[i].tokens; k++, at++)
            assert_int_equal(row->tokens[at], extent_is_padding(&extents[i])
                                                  ? TOKMAP_NO_OFFSET
                                                  : (extents[i].first_token + k) % row->dataset_tokens);
    assert_true(at <= chunk->first + chunk->count + ahead);
    for (; at < chunk->first + chunk->count + ahead; at++)
        assert_int_equal(row->tokens[at], TOKMAP_NO_OFFSET);
}

static void slices_are_the_row(void **unused)
{
    (void)unused;
    uint64_t state = 11;
    static struct row row;
    static uint8_t owners[COLUMNS_MOST];
    for (unsigned round = 0; round < 3000; round++) {
        struct columns columns = {0, 1 + random_below(&state, 6), (enum tokmap_context_layout)(round % 3)};
        struct chunk chunks[2 * (EXTENTS_MOST + 1)];
        row_random(&row, 2 * columns.world * (1 + random_below(&state, 3)), &state);
        memset(owners, 0, sizeof owners);
        assert_int_equal(row.seq_len % columns_divisor(&columns), 0);
        for (columns.rank = 0; columns.rank < columns.world; columns.rank++) {
            const uint64_t count = columns_of_row(&columns, row.seq_len, row.extents, row.count, chunks);
            const uint64_t ahead = random_below(&state, AHEAD_MOST + 1);
            struct columns_cut cut = {row.extents, row.count, row.dataset_tokens, 0, 0};
            uint64_t end = 0, sum = 0;
            assert_true(count && count <= columns_chunks_most(&columns, row.count));
            for (uint64_t k = 0; k < count; end = chunks[k].first + chunks[k].count, k++) {
                assert_true(chunks[k].count && chunks[k].first >= end);
                for (uint64_t j = 0; j < chunks[k].count; j++)
                    owners[chunks[k].first + j]++;
                sum += chunks[k].count;
                check_cut(&row, &cut, &chunks[k], ahead);
            }
            assert_int_equal(sum, row.seq_len / columns.world);
        }
        for (uint64_t j = 0; j < row.seq_len; j++)
            assert_int_equal(owners[j], 1);
    }
}

static void documents_are_cut_one_by_one(void **unused)
{
    (void)unused;
    const struct tokmap_extent extents[] = {{100, 7}, {TOKMAP_NO_OFFSET, 1}, {20, 4}};
    const struct columns columns = {0, 2, TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS};
    struct chunk chunks[8];
    assert_int_equal(columns_of_row(&columns, 16, extents, 3, chunks), 6);
    const struct chunk expected[] = {{0, 2}, {6, 2}, {8, 1}, {11, 1}, {12, 1}, {15, 1}};
    assert_memory_equal(chunks, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_the_row),
        cmocka_unit_test(documents_are_cut_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
