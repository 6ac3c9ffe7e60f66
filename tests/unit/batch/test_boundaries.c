/* SPDX-License-Identifier: MIT */
/* boundaries.h: the marks of any window are at the starts of documents, and cu_seqlens follow from them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "batch/boundaries.h"
#include "support/made.h"
#include "support/scratch_folder.h"

/* The marks of a window, which is a row of one extent. */
static enum tokmap_status boundaries_mark(const struct tokmap_dataset *dataset, uint64_t tokens, uint64_t first,
                                          uint64_t count, struct mark *marks, struct tokmap_error *error)
{
    const struct tokmap_extent extent = {first, count};
    const struct boundaries_row row = {.dataset = dataset, .dataset_tokens = tokens, .extents = &extent, .count = 1};
    return boundaries_mark_extents(&row, count, marks, error);
}

static void check_window(const struct made *made, const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                         struct mark *marks)
{
    uint32_t last = 0, before = 0;
    memset(marks, 0xff, mark_words(count) * sizeof *marks);
    assert_int_equal(boundaries_mark(dataset, made->tokens, first, count, marks, NULL), TOKMAP_OK);
    boundaries_sum(marks, mark_words(count));
    for (uint64_t j = 0; j < mark_words(count) * 64; j++) {
        bool expected = j < count && (j == 0 || made->starts[(first + j) % made->tokens]);
        if (j % 64 == 0) {
            assert_int_equal(marks[j / 64].last, last);
            assert_int_equal(marks[j / 64].before, before);
        }
        assert_int_equal(marks[j / 64].starts >> j % 64 & 1, expected);
        last = expected ? (uint32_t)j : last;
        before += expected;
    }
}

/* Compares cu_seqlens of `rows` rows of `count` tokens with the definition. */
static void check_cu(const struct made *made, const struct tokmap_dataset *dataset, uint64_t count, uint64_t rows)
{
    struct mark *marks = calloc(mark_words(count), sizeof *marks);
    int32_t *ends = calloc(rows * count + 4, sizeof *ends), *expected = calloc(rows * count + 4, sizeof *ends);
    struct boundaries_cu cu;
    uint64_t documents = 0, longest = 0, length = 0;
    boundaries_cu_begin(&cu, ends, rows * count + 4);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t first = (i * 911 + made->tokens - count / 2) % made->tokens;
        assert_int_equal(boundaries_mark(dataset, made->tokens, first, count, marks, NULL), TOKMAP_OK);
        assert_true(boundaries_cu_row(&cu, marks, count));
        for (uint64_t j = 1; j <= count; j++) {
            length++;
            if (j < count && !made->starts[(first + j) % made->tokens])
                continue;
            expected[++documents] = (int32_t)(i * count + j);
            longest = length > longest ? length : longest;
            length = 0;
        }
    }
    boundaries_cu_end(&cu);
    assert_int_equal(cu.documents, documents);
    assert_int_equal(cu.longest, longest);
    for (uint64_t i = documents + 1; i < rows * count + 4; i++)
        expected[i] = (int32_t)(rows * count);
    assert_memory_equal(ends, expected, (rows * count + 4) * sizeof *ends);
    /* Rows that do not fit: there is room for one document less than the last row has. */
    uint64_t last_row = 1;
    for (uint64_t word = 0; word < mark_words(count); word++)
        last_row += (uint64_t)__builtin_popcountll(marks[word].starts);
    boundaries_cu_begin(&cu, ends, last_row - 1);
    assert_false(boundaries_cu_row(&cu, marks, count));
    boundaries_cu_begin(&cu, ends, last_row);
    assert_true(boundaries_cu_row(&cu, marks, count));
    free(marks);
    free(ends);
    free(expected);
}

static void cu_seqlens_are_the_documents_of_the_rows(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {1, 900, 3, 1500, 64, 777};
    struct made made;
    struct tokmap_dataset *dataset;
    made_new(&made, folder, "cu", 2, 1000, sizes, 6);
    assert_int_equal(tokmap_dataset_open(&dataset, made.name, NULL, NULL), TOKMAP_OK);
    for (uint64_t count = 1; count < 300; count += count < 130 ? 1 : 29)
        for (uint64_t rows = 1; rows < 12; rows += 5)
            check_cu(&made, dataset, count, rows);
    check_cu(&made, dataset, made.tokens, 3);
    tokmap_dataset_close(dataset);
    made_free(&made);
}

static void bits_are_where_documents_start(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {1, 900, 3, 1500, 64, 777};
    struct made made;
    struct tokmap_dataset *dataset;
    made_new(&made, folder, "documents", 2, 1000, sizes, 6);
    assert_int_equal(tokmap_dataset_open(&dataset, made.name, NULL, NULL), TOKMAP_OK);
    struct mark *marks = calloc(mark_words(made.tokens), sizeof *marks);
    for (uint64_t first = 0; first < made.tokens; first++)
        check_window(&made, dataset, first, 130, marks);
    for (uint64_t count = 1; count <= made.tokens; count += count < 140 ? 1 : 61)
        for (uint64_t first = 0; first < made.tokens; first += 173)
            check_window(&made, dataset, first, count, marks);
    free(marks);
    tokmap_dataset_close(dataset);
    made_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_where_documents_start),
        cmocka_unit_test(cu_seqlens_are_the_documents_of_the_rows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
