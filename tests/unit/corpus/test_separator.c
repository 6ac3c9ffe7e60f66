/* SPDX-License-Identifier: MIT */
/* The scanner of texts between separators, against a search of the whole text, whatever the pieces in which it gets the
 * bytes; and the count of lines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "corpus/record_scan.h"
#include "support/scratch.h"

#define TEXT_MOST 200
#define ENDS_MOST (TEXT_MOST + 1)

struct segments {
    uint64_t count, ends[ENDS_MOST];
    enum record_kind kinds[ENDS_MOST];
};

/* Finds the segments by a search for the whole separator from the end of the last one. */
static void search(const char *text, uint64_t count, const char *separator, uint64_t bytes, struct segments *out)
{
    uint64_t from = 0;
    out->count = 0;
    for (uint64_t at = 0; at + bytes <= count;) {
        if (memcmp(text + at, separator, bytes) != 0) {
            at++;
            continue;
        }
        out->kinds[out->count] = at == from ? RECORD_BLANK : RECORD_WHOLE;
        at += bytes;
        out->ends[out->count++] = from = at;
    }
}

/* Scans the text in random pieces, which are copied so that nothing outside of a piece can be read unnoticed. */
static void scan_pieces(const char *text, uint64_t count, const char *separator, uint64_t bytes, uint64_t *random,
                        struct segments *out)
{
    struct record_scan scan;
    record_scan_begin_separated(&scan, separator, bytes);
    out->count = 0;
    for (uint64_t at = 0; at < count;) {
        const uint64_t piece = 1 + random_below(random, random_below(random, 2) ? 3 : count - at);
        const uint64_t size = piece < count - at ? piece : count - at;
        char copy[TEXT_MOST];
        memcpy(copy, text + at, size);
        for (uint64_t taken = 0; taken < size;) {
            enum record_kind kind;
            const uint64_t record = scan.record;
            const uint64_t got = record_scan_take(&scan, copy + taken, size - taken, &kind);
            assert_in_range(got, 1, size - taken);
            taken += got;
            assert_int_equal(scan.record, record + (kind == RECORD_WHOLE));
            if (kind == RECORD_UNFINISHED) {
                assert_int_equal(taken, size);
                continue;
            }
            assert_true(out->count < ENDS_MOST);
            out->kinds[out->count] = kind;
            out->ends[out->count++] = at + taken;
        }
        at += size;
    }
}

static void pieces_do_not_matter(void **state)
{
    uint64_t random = 20261121;
    uint64_t found = 0;
    for (int i = 0; i < 20000; i++) {
        char text[TEXT_MOST], separator[12];
        struct segments wanted, got;
        const uint64_t letters = 1 + random_below(&random, 3), bytes = 1 + random_below(&random, sizeof separator);
        const uint64_t count = random_below(&random, TEXT_MOST);
        for (uint64_t k = 0; k < bytes; k++)
            separator[k] = (char)('a' + random_below(&random, letters));
        for (uint64_t k = 0; k < count; k++)
            text[k] = (char)('a' + random_below(&random, letters + (i % 2)));
        for (int copies = 0; copies < i % 4 && count >= bytes; copies++)
            memcpy(text + random_below(&random, count - bytes + 1), separator, bytes);
        search(text, count, separator, bytes, &wanted);
        scan_pieces(text, count, separator, bytes, &random, &got);
        assert_int_equal(got.count, wanted.count);
        for (uint64_t k = 0; k < got.count; k++) {
            assert_int_equal(got.ends[k], wanted.ends[k]);
            assert_int_equal(got.kinds[k], wanted.kinds[k]);
        }
        found += got.count;
    }
    assert_true(found > 20000); /* the texts do have separators */
}

/* The newlines of texts of any length, few of them or nothing else, of which more than 255 would overflow a byte. */
static void lines_are_counted(void **state)
{
    static const uint64_t around[] = {0, 1024, 63 * 64, 2 * 63 * 64, 1 << 16};
    uint64_t random = 5;
    (void)state;
    for (size_t length = 0; length < sizeof around / sizeof around[0]; length++)
        for (uint64_t more = 0; more < 140; more++) {
            const uint64_t count = around[length] + more, each = more % 3 ? 1 + random_below(&random, 90) : 1;
            char *text = malloc(count + 1);
            uint64_t wanted = 0;
            assert_non_null(text);
            for (uint64_t i = 0; i < count; i++) {
                text[i] = random_below(&random, each) ? 'x' : '\n';
                wanted += text[i] == '\n';
            }
            char *exact = realloc(text, count ? count : 1); /* nothing after the text can be read unnoticed */
            assert_non_null(exact);
            assert_int_equal(record_scan_lines(exact, count), wanted);
            free(exact);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_do_not_matter), cmocka_unit_test(lines_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
