/* SPDX-License-Identifier: MIT */
/*
 * gather.h, boundaries.h, and uncounted.h for rows of any extents: random rows are compared with a model that looks up
 * each token on its own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "batch/boundaries.h"
#include "batch/copy.h"
#include "batch/gather.h"
#include "batch/uncounted.h"
#include "common/bytes.h"
#include "support/guarded.h"
#include "support/made.h"
#include "support/scratch_folder.h"

enum { MOST = 400, PIECES = 12, PAD = 60001 };

static uint64_t state = 1;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* A row, and what the model says about each of its tokens. */
struct row {
    struct tokmap_extent extents[PIECES];
    uint64_t count, tokens;
    uint64_t from[MOST]; /* the dataset's number of the token; UINT64_MAX: padding */
    bool starts[MOST];
};

/* Draws a row of `tokens` tokens: no extent, one, or several, and padding or none. */
static void draw_row(struct row *row, const struct made *made, uint64_t tokens, bool segments)
{
    uint64_t left = tokens, at = 0, extents = below(4) ? 1 + below(PIECES) : below(2);
    row->count = 0;
    row->tokens = tokens;
    for (uint64_t i = 0; i < extents && left; i++) {
        const uint64_t most = min64(left, made->tokens);
        struct tokmap_extent *extent = &row->extents[row->count++];
        extent->first_token = below(5) ? below(made->tokens) : made->tokens - 1 - below(min64(made->tokens, 3));
        extent->tokens = i + 1 == extents && below(2) ? most : 1 + below(most);
        for (uint64_t k = 0; k < extent->tokens; k++, at++) {
            row->from[at] = (extent->first_token + k) % made->tokens;
            row->starts[at] = !k || (!segments && made->starts[row->from[at]]);
        }
        left -= extent->tokens;
    }
    for (uint64_t k = 0; k < left; k++) {
        row->from[at + k] = UINT64_MAX;
        row->starts[at + k] = !k;
    }
    row->starts[0] = true;
}

static void check_tokens(const struct made *made, const struct row *row, const char *tokens, uint32_t width)
{
    for (uint64_t i = 0; i < row->tokens; i++) {
        uint32_t id = width == 4 ? load32(tokens + i * 4) : load16(tokens + i * 2);
        assert_int_equal(id, row->from[i] == UINT64_MAX ? PAD : made_token(made, row->from[i]));
    }
}

static void check_marks(const struct tokmap_dataset *dataset, const struct made *made, const struct row *row,
                        bool segments)
{
    struct mark marks[MOST / 64 + 2];
    const struct boundaries_row asked = {row->count ? dataset : NULL, made->tokens, row->extents, row->count, segments};
    const uint64_t marked = 1 + below(row->tokens);
    memset(marks, 0xff, sizeof marks);
    assert_int_equal(boundaries_mark_extents(&asked, marked, marks, NULL), TOKMAP_OK);
    for (uint64_t j = 0; j < mark_words(marked) * 64; j++)
        assert_int_equal(marks[j / 64].starts >> j % 64 & 1, j < marked && row->starts[j]);
    assert_true(marks[mark_words(marked)].starts == UINT64_MAX);
}

static void check_uncounted(struct gather *gather, const struct made *made, const struct row *row)
{
    uint64_t words[MOST / 64 + 2];
    const uint64_t targets = below(row->tokens);
    memset(words, 0xff, sizeof words);
    assert_int_equal(
        uncounted_fill(row->count ? gather_uncounted(gather) : NULL, row->extents, row->count, targets, words, NULL),
        TOKMAP_OK);
    for (uint64_t t = 0; t < mark_words(targets) * 64; t++) {
        const bool excluded =
            t < targets && made->mask && row->from[t + 1] != UINT64_MAX && !made->mask[row->from[t + 1]];
        assert_int_equal(words[t / 64] >> t % 64 & 1, excluded);
    }
    assert_true(words[mark_words(targets)] == UINT64_MAX);
}

/* Checks random rows of a dataset, with rows of `width` bytes a token, copied by one variant of the kernels. */
static void check_rows(const struct made *made, uint32_t width, enum tokmap_reading reading, bool warm,
                       const struct copy_kernels *kernels)
{
    struct tokmap_dataset *dataset;
    struct residency *residency;
    struct gather *gather;
    struct tokmap_dataset_options how = TOKMAP_DATASET_OPTIONS_INIT;
    how.reading = reading;
    assert_int_equal(tokmap_dataset_open(&dataset, made->name, &how, NULL), TOKMAP_OK);
    const struct tokmap_dataset *datasets[] = {dataset};
    const struct residency_options options = {.datasets = datasets, .sources = 1, .window = 8};
    const struct gather_options gathered = {
        .row_width = width, .pad_id = PAD, .kernels = kernels, .trust_files = width == 4 && warm && below(2)};
    assert_int_equal(residency_open(&residency, &options, NULL), TOKMAP_OK);
    assert_int_equal(gather_open(&gather, &residency->sources[0], &gathered, NULL), TOKMAP_OK);
    residency->shared.warm = warm;
    for (uint64_t i = 0; i < 700; i++) {
        struct row row;
        const bool segments = below(2);
        bool cold = false;
        draw_row(&row, made, 1 + below(i % 10 ? 80 : MOST - 1), segments);
        struct guarded memory = guarded_new((size_t)(row.tokens * width));
        const struct row_extents extents = {0, row.extents, row.count};
        if (i % 3 == 0)
            residency_begin(residency, 3);
        residency_ask(residency, &extents);
        if (row.count)
            gather_prefetch(gather, &row.extents[0]);
        assert_int_equal(gather_row(gather, row.extents, row.count, row.tokens, memory.at, &cold, NULL), TOKMAP_OK);
        check_tokens(made, &row, memory.at, width);
        check_marks(dataset, made, &row, segments);
        check_uncounted(gather, made, &row);
        guarded_free(memory);
    }
    gather_close(gather);
    residency_close(residency);
    tokmap_dataset_close(dataset);
}

static void rows_are_their_extents(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {1, 900, 3, 1500, 64, 777, 20};
    for (uint32_t form = 0; form < 4; form++) {
        const uint32_t width = form & 1 ? 4 : 2;
        char name[] = {'r', (char)('0' + form), 0};
        struct made made;
        (form & 2 ? made_new_masked : made_new)(&made, folder, name, width, width == 2 ? 50257 : 1u << 20, sizes, 7);
        for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
            for (uint32_t row = width; row <= 4; row += 2)
                for (unsigned variant = 0; copy_variant(variant); variant++)
                    check_rows(&made, row, (enum tokmap_reading)reading, variant % 2 == 0, copy_variant(variant));
        made_free(&made);
    }
}

/* A dataset of fewer tokens than most rows. */
static void a_small_dataset(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {7, 4};
    struct made made;
    made_new_masked(&made, folder, "small", 2, 300, sizes, 2);
    check_rows(&made, 2, TOKMAP_READ_MAPPED, true, NULL);
    check_rows(&made, 4, TOKMAP_READ_PREAD, false, NULL);
    made_free(&made);
}

static void rows_of_computed_tokens_are_widened(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset;
    struct residency *residency;
    struct gather *gather;
    assert_int_equal(tokmap_dataset_open(&dataset, "synthetic:vocab=1000,tokens=5000", NULL, NULL), TOKMAP_OK);
    const struct tokmap_dataset *datasets[] = {dataset};
    const struct residency_options options = {.datasets = datasets, .sources = 1, .window = 8};
    const struct gather_options gathered = {.row_width = 4, .pad_id = 70000};
    assert_int_equal(residency_open(&residency, &options, NULL), TOKMAP_OK);
    assert_int_equal(gather_open(&gather, &residency->sources[0], &gathered, NULL), TOKMAP_OK);
    const struct tokmap_extent extents[] = {{4990, 30}, {17, 100}};
    uint16_t expected[130];
    uint32_t row[140];
    bool cold = false;
    assert_int_equal(tokmap_dataset_copy(dataset, 4990, 10, expected, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_copy(dataset, 0, 20, expected + 10, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_copy(dataset, 17, 100, expected + 30, NULL), TOKMAP_OK);
    assert_int_equal(gather_row(gather, extents, 2, 140, row, &cold, NULL), TOKMAP_OK);
    for (uint64_t i = 0; i < 140; i++)
        assert_int_equal(row[i], i < 130 ? expected[i] : 70000);
    assert_int_equal(gather_bytes(gather), 260);
    gather_close(gather);
    residency_close(residency);
    tokmap_dataset_close(dataset);
}

static void padding_fills_rows_of_both_widths(void **unused)
{
    (void)unused;
    for (uint32_t width = 2; width <= 4; width += 2)
        for (uint64_t tokens = 0; tokens < 70; tokens++) {
            struct guarded row = guarded_new((size_t)(tokens * width));
            gather_padding(width == 2 ? 65535 : 4000000000u, width, tokens, row.at);
            for (uint64_t i = 0; i < tokens; i++)
                assert_int_equal(width == 2 ? load16(row.at + i * 2) : load32(row.at + i * 4),
                                 width == 2 ? 65535 : 4000000000u);
            guarded_free(row);
        }
}

/* Widening within a row: the tokens are in the second half of the place that they will take. */
static void widening_may_overlap(void **unused)
{
    (void)unused;
    const struct copy_kernels *kernels;
    for (unsigned variant = 0; (kernels = copy_variant(variant)); variant++)
        for (uint64_t count = 0; count <= 200; count++) {
            struct guarded row = guarded_new((size_t)count * 4);
            uint32_t largest = 0;
            for (uint64_t i = 0; i < count; i++) {
                const uint16_t id = (uint16_t)((i + 3) * 40503u);
                store16(row.at + count * 2 + i * 2, id);
                largest = id > largest ? id : largest;
            }
            assert_int_equal(kernels->widen16(row.at, row.at + count * 2, count), largest);
            for (uint64_t i = 0; i < count; i++)
                assert_int_equal(load32(row.at + i * 4), (uint16_t)((i + 3) * 40503u));
            guarded_free(row);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_their_extents),
        cmocka_unit_test(a_small_dataset),
        cmocka_unit_test(rows_of_computed_tokens_are_widened),
        cmocka_unit_test(padding_fills_rows_of_both_widths),
        cmocka_unit_test(widening_may_overlap),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
