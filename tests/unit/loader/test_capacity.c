/* SPDX-License-Identifier: MIT */
/* capacity.h: the capacity of cu_seqlens is exactly the number of documents in the fullest window. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "loader/capacity.h"
#include "support/made.h"
#include "support/scratch_folder.h"

/* Compares the capacity with a search through all windows. */
static void check_most(const struct made *made, const struct tokmap_dataset *dataset, uint64_t seq_len)
{
    uint64_t expected = 0, most, shown = 1;
    for (uint64_t j = 1; j < seq_len; j++)
        shown += made->starts[j];
    for (uint64_t first = 0; first < made->tokens; first++) { /* shown: documents in the window at `first` */
        expected = shown > expected ? shown : expected;
        shown += made->starts[(first + seq_len) % made->tokens] && seq_len > 1;
        shown -= made->starts[(first + 1) % made->tokens] && seq_len > 1;
    }
    assert_int_equal(capacity_documents_most(dataset, seq_len, &most, NULL), TOKMAP_OK);
    assert_int_equal(most, expected);
}

static void capacity_is_that_of_the_fullest_window(void **unused)
{
    (void)unused;
    const uint64_t many[] = {1, 900, 3, 1500, 64, 777}, one[] = {1}, ones[] = {1, 1, 1, 1, 1, 1, 1},
                   odd[] = {2, 301, 1};
    const uint64_t *const sets[] = {many, one, ones, odd};
    const uint64_t counts[] = {6, 1, 7, 3};
    for (unsigned i = 0; i < 4; i++) {
        struct made made;
        struct tokmap_dataset *dataset;
        char name[20] = {'m', 'o', 's', 't', (char)('0' + i)};
        made_new(&made, folder, name, 2, 1000, sets[i], counts[i]);
        assert_int_equal(tokmap_dataset_open(&dataset, made.name, NULL, NULL), TOKMAP_OK);
        for (uint64_t seq_len = 1; seq_len <= made.tokens;
             seq_len += seq_len < 200 || seq_len > made.tokens - 5 ? 1 : 97)
            check_most(&made, dataset, seq_len);
        check_most(&made, dataset, made.tokens);
        tokmap_dataset_close(dataset);
        made_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacity_is_that_of_the_fullest_window),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
