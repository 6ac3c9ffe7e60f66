/* SPDX-License-Identifier: MIT */
/* Texts about the lengths of documents. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/report/document_lengths.h"

static void test_texts(void **state)
{
    struct histogram histogram;
    struct lengths lengths;
    char text[LENGTHS_TEXT], bytes[64];
    assert_true(histogram_new(&histogram));
    lengths_of(&histogram, &lengths);
    assert_string_equal(lengths_text(&lengths, text), "none");
    for (uint64_t i = 1; i <= 1000; i++)
        histogram_add(&histogram, i * 10, 1);
    lengths_of(&histogram, &lengths);
    assert_string_equal(lengths_text(&lengths, text), "p50 5,000, p90 9,000, p99 9,900, max 10,000, mean 5,005.0");
    histogram_add(&histogram, UINT64_MAX, 1 << 20);
    lengths_of(&histogram, &lengths);
    (void)lengths_text(&lengths, text);
    assert_true(strlen(text) < LENGTHS_TEXT - 1);
    histogram_free(&histogram);
    assert_string_equal(bytes_a_token_text(437, 100, bytes), "4.37 bytes of text");
    assert_string_equal(bytes_a_token_text(UINT64_MAX, 1, bytes), "18446744073709551616.00 bytes of text");
    assert_string_equal(bytes_a_token_text(1, 0, bytes), "unknown");
    (void)state;
}

/* Each length is in the bin whose bounds say so, and the bins leave no length out. */
static void test_bins(void **state)
{
    assert_int_equal(length_bin_of(0), 0);
    assert_int_equal(length_bin_of(UINT64_MAX), LENGTH_BINS - 1);
    assert_true(length_bin_to(LENGTH_BINS - 1) == UINT64_MAX);
    for (unsigned bin = 0; bin < LENGTH_BINS; bin++) {
        assert_int_equal(length_bin_of(length_bin_from(bin)), bin);
        assert_int_equal(length_bin_of(length_bin_to(bin)), bin);
        if (bin)
            assert_true(length_bin_from(bin) == length_bin_to(bin - 1) + 1);
    }
    (void)state;
}

/* Files that are added in any order have the same sums as in a plain array, however the hash table grows. */
static void test_origin_shares(void **state)
{
    enum { FILES = 3000, ADDED = 40000 };
    static char paths[2][FILES][16];
    static uint64_t tokens[FILES], documents[FILES];
    struct origin_shares shares = {0};
    uint64_t random = 1;
    for (unsigned i = 0; i < FILES; i++)
        for (unsigned copy = 0; copy < 2; copy++)
            (void)snprintf(paths[copy][i], sizeof paths[copy][i], "%u.txt", i);
    for (unsigned i = 0; i < ADDED; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const unsigned file = (unsigned)((random >> 33) % FILES);
        const char *path = paths[random >> 63][file];
        assert_true(origin_shares_add(&shares, &(struct origin_share){path, strlen(path), 2, random >> 50 & 7}));
        documents[file] += 2;
        tokens[file] += random >> 50 & 7;
    }
    assert_true(origin_shares_add(&shares, &(struct origin_share){"", 0, 1, UINT64_MAX}));
    origin_shares_sort(&shares);
    assert_int_equal(shares.files[0].path_bytes, 0);
    uint64_t seen = 0;
    for (uint64_t i = 1; i < shares.count; i++) {
        const unsigned file = (unsigned)strtoul(shares.files[i].path, NULL, 10);
        assert_true(shares.files[i].tokens <= shares.files[i - 1].tokens);
        assert_int_equal(shares.files[i].tokens, tokens[file]);
        assert_int_equal(shares.files[i].documents, documents[file]);
        seen += documents[file];
    }
    assert_int_equal(seen, 2 * ADDED);
    origin_shares_free(&shares);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_origin_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
