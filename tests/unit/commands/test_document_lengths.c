/* Texts about the lengths of documents. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "commands/shared/document_lengths.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
