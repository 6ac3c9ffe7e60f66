/* SPDX-License-Identifier: MIT */
/*
 * test_planner.c - the planner against a brute-force best fit, the properties of every plan, and the plans that it
 * writes, which are opened, searched in both directions, and verified.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/planner.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static const uint8_t dataset[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* Plans documents and writes FOLDER/NAME. */
static struct planner_result plan_make(const char *name, const uint64_t *documents, uint64_t count,
                                       struct planner_options options, struct plan_header *header)
{
    struct planner *planner;
    struct planner_result result;
    int fd;
    MUST(planner_new(&planner, &options, &error));
    for (uint64_t i = 0; i < count; i++)
        MUST(planner_add(planner, documents[i], &error));
    MUST(planner_pack(planner, NULL, NULL, &result, &error));
    (void)os_unlink(in_folder(folder, name));
    assert_int_equal(os_open(in_folder(folder, name), OS_WRITE_NEW, &fd), 0);
    assert_int_equal(planner_write(planner, fd, dataset, 1, header), 0);
    os_close(fd);
    planner_free(planner);
    return result;
}

struct item {
    uint64_t first, tokens, row;
};

static int longer_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->tokens != y->tokens)
        return x->tokens > y->tokens ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Best fit as planner.h describes it, by looking at every row for every item. Returns the number of items, in the order
 * in which they were placed. */
static uint64_t brute_force(const uint64_t *documents, uint64_t count, struct planner_options options,
                            struct item *items, uint64_t *rows)
{
    uint64_t used = 0, first = 0, opened = 0;
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t left = documents[i]; left;) {
            const uint64_t part = left < options.seq_len ? left : options.seq_len;
            items[used++] = (struct item){first, part, 0};
            first += part;
            left -= part;
        }
    qsort(items, used, sizeof *items, longer_first);
    uint64_t *room = calloc(used + 1, sizeof *room), *held = calloc(used + 1, sizeof *held);
    assert_true(room && held);
    for (uint64_t i = 0; i < used; i++) {
        uint64_t best = opened;
        for (uint64_t row = 0; row < opened; row++)
            if (room[row] >= items[i].tokens && (!options.documents_most || held[row] < options.documents_most) &&
                (best == opened || room[row] < room[best]))
                best = row;
        if (best == opened)
            room[opened++] = options.seq_len;
        items[i].row = best;
        room[best] -= items[i].tokens;
        held[best]++;
    }
    free(room);
    free(held);
    *rows = opened;
    return used;
}

/* The rows of the file are those of the brute force, with the same segments in the same order. */
static void compare(const struct plan *plan, const struct item *items, uint64_t count, uint64_t rows)
{
    assert_int_equal(plan->header.segments, count);
    assert_int_equal(plan->header.rows, rows);
    uint64_t *next = calloc(rows, sizeof *next);
    assert_non_null(next);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t first, held, row;
        struct plan_segment segment;
        MUST(plan_row(plan, items[i].row, &first, &held, &error));
        assert_true(next[items[i].row] < held);
        MUST(plan_segment(plan, first + next[items[i].row], &segment, &error));
        assert_int_equal(segment.first_token, items[i].first);
        assert_int_equal(segment.tokens, items[i].tokens);
        MUST(plan_row_of(plan, first + next[items[i].row]++, &row, &error));
        assert_int_equal(row, items[i].row);
    }
    free(next);
}

/* What every plan has, whatever the packing. */
static void properties(const struct plan *plan, const uint64_t *documents, uint64_t count)
{
    MUST(plan_verify(plan, NULL, NULL, &error));
    uint64_t token = 0, number, i;
    struct plan_segment segment;
    for (uint64_t d = 0; d < count; d++) {
        uint64_t left = documents[d];
        while (left) {
            MUST(plan_find(plan, token, &i, &error));
            MUST(plan_ordered(plan, i, &number, &segment, &error));
            assert_int_equal(segment.first_token, token);
            const uint64_t part = left < plan->header.seq_len ? left : plan->header.seq_len;
            assert_int_equal(segment.tokens, part); /* no document is cut that fits a row */
            MUST(plan_find(plan, token + part - 1, &number, &error));
            assert_int_equal(number, i);
            token += part;
            left -= part;
        }
    }
    assert_int_equal(plan->header.tokens, token);
}

static void rows_are_those_of_best_fit_decreasing(void **unused)
{
    (void)unused;
    uint64_t state = 7;
    for (int round = 0; round < 400; round++) {
        uint64_t documents[300], count = 1 + random_below(&state, 300), rows;
        static struct item items[20000];
        struct planner_options options = {.seq_len = 1 + random_below(&state, round % 3 ? 60 : 9000)};
        options.documents_most = round % 4 == 1 ? 1 + random_below(&state, 6) : 0;
        const uint64_t longest = 1 + random_below(&state, round % 5 ? options.seq_len : 3 * options.seq_len);
        for (uint64_t i = 0; i < count; i++)
            documents[i] = random_below(&state, 8) ? 1 + random_below(&state, longest) : (uint64_t)(round % 2);
        documents[0] += !documents[0];
        const uint64_t made = brute_force(documents, count, options, items, &rows);
        struct plan_header header;
        const struct planner_result result = plan_make("small.plan", documents, count, options, &header);
        struct plan plan;
        MUST(plan_open(&plan, in_folder(folder, "small.plan"), &error));
        compare(&plan, items, made, rows);
        properties(&plan, documents, count);
        assert_int_equal(result.row_segments, header.row_segments);
        assert_true(!options.documents_most || header.row_segments <= options.documents_most);
        plan_close(&plan);
    }
}

static void long_rows_share_bins(void **unused)
{
    /* seq_len above 2^22, so that rows with different room are in one bin. */
    (void)unused;
    uint64_t state = 3, documents[400], rows;
    static struct item items[2000];
    const struct planner_options options = {.seq_len = (uint64_t)1 << 31};
    for (uint64_t i = 0; i < 400; i++)
        documents[i] = i % 4 == 3 ? 1 + random_below(&state, 300) : 1 + random_below(&state, (uint64_t)3 << 30);
    for (uint64_t i = 0; i < 40; i++)
        documents[i + 40] = documents[i] ^ 5; /* the same bin, other values */
    const uint64_t made = brute_force(documents, 400, options, items, &rows);
    struct plan_header header;
    (void)plan_make("long.plan", documents, 400, options, &header);
    struct plan plan;
    MUST(plan_open(&plan, in_folder(folder, "long.plan"), &error));
    compare(&plan, items, made, rows);
    properties(&plan, documents, 400);
    plan_close(&plan);
}

static void one_document_a_row(void **unused)
{
    (void)unused;
    const uint64_t documents[] = {5, 0, 23, 10, 1};
    struct plan_header header;
    const struct planner_result result =
        plan_make("one.plan", documents, 5, (struct planner_options){10, 1, 0}, &header);
    assert_true(result.rows == 6 && result.segments == 6 && result.row_segments == 1);
    assert_true(result.documents == 4 && result.cut == 1 && result.full_rows == 3 && result.tokens == 39);
    /* Rows of 10 consecutive tokens: 5 + 23 + 10 + 1 tokens, with cuts at 10, 20, and 30. */
    assert_int_equal(result.concatenation_cut, 2);
}

static void the_same_documents_make_the_same_bytes(void **unused)
{
    (void)unused;
    uint64_t state = 99;
    static uint64_t documents[20000];
    for (size_t i = 0; i < 20000; i++)
        documents[i] = random_below(&state, 3000);
    struct plan_header header;
    (void)plan_make("a.plan", documents, 20000, (struct planner_options){2048, 0, 0}, &header);
    (void)plan_make("b.plan", documents, 20000, (struct planner_options){2048, 0, 0}, &header);
    size_t a_bytes, b_bytes;
    uint8_t *a = file_read(in_folder(folder, "a.plan"), &a_bytes);
    uint8_t *b = file_read(in_folder(folder, "b.plan"), &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    free(a);
    free(b);
}

/* Web-like lengths: lognormal with a median of 400 tokens and a mean of 700. */
static uint64_t web_length(uint64_t *state)
{
    const double u = ((double)random_below(state, (uint64_t)1 << 52) + 0.5) / 0x1p52;
    const double v = (double)random_below(state, (uint64_t)1 << 52) / 0x1p52;
    return 1 + (uint64_t)(400 * exp(1.06 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v)));
}

static void rows_of_web_documents_are_full(void **unused)
{
    (void)unused;
    uint64_t state = 5;
    const uint64_t count = 200000;
    uint64_t *documents = malloc(count * sizeof *documents);
    assert_non_null(documents);
    for (uint64_t i = 0; i < count; i++)
        documents[i] = web_length(&state);
    struct plan_header header;
    const struct planner_result result =
        plan_make("web.plan", documents, count, (struct planner_options){8192, 0, 0}, &header);
    assert_true((double)result.tokens / ((double)result.rows * 8192) >= 0.995);
    struct plan plan;
    MUST(plan_open(&plan, in_folder(folder, "web.plan"), &error));
    properties(&plan, documents, count);
    plan_close(&plan);
    free(documents);
}

static int stops(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    *(uint64_t *)user = done;
    return 1;
}

static void wrong_use_is_refused(void **unused)
{
    (void)unused;
    struct planner *planner;
    struct planner_result result;
    struct planner_options options = {0};
    assert_int_equal(planner_new(&planner, &options, &error), TOKMAP_ERROR_ARGUMENT);
    options.seq_len = PLAN_SEQ_LEN_MOST + 1;
    assert_int_equal(planner_new(&planner, &options, &error), TOKMAP_ERROR_ARGUMENT);
    options.seq_len = 1;
    MUST(planner_new(&planner, &options, &error));
    assert_int_equal(planner_add(planner, (uint64_t)1 << 32, &error), TOKMAP_ERROR_LIMIT);
    assert_int_equal(planner_add(planner, UINT64_MAX, &error), TOKMAP_ERROR_LIMIT);
    MUST(planner_add(planner, 0, &error));
    assert_int_equal(planner_pack(planner, NULL, NULL, &result, &error), TOKMAP_ERROR_RANGE);
    planner_free(planner);
    uint64_t done = 1;
    MUST(planner_new(&planner, &options, &error));
    MUST(planner_add(planner, 3, &error));
    assert_int_equal(planner_pack(planner, stops, &done, &result, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(done, 0);
    planner_free(planner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_best_fit_decreasing),
        cmocka_unit_test(long_rows_share_bins),
        cmocka_unit_test(one_document_a_row),
        cmocka_unit_test(the_same_documents_make_the_same_bytes),
        cmocka_unit_test(rows_of_web_documents_are_full),
        cmocka_unit_test(wrong_use_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
