/* SPDX-License-Identifier: MIT */
/* test_scanner.c - every variant of the fast scanner finds the pieces that scan_piece finds, on awkward texts of all
 * lengths, at all alignments and edges of chunks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pretokenize/scanner.h"
#include "pretokenize/scanner_piece.h"
#include "support/awkward_text.h"

static struct scan_chunk chunk;
static struct scanner scanners[16][CPU_VARIANTS];

static void show_failure(const char *name, int variant, const uint8_t *text, size_t count, size_t at)
{
    const size_t from = at > 40 ? at - 40 : 0, to = at + 40 < count ? at + 40 : count;
    print_error("%s, variant %d: byte %zu of %zu:\n", name, variant, at, count);
    for (size_t i = from; i < to; i++)
        print_error(i == at ? " >%02x" : " %02x", text[i]);
    print_error("\n");
    for (size_t i = from; i < to; i++)
        print_error("%c", text[i] < 0x20 ? '.' : text[i]);
    print_error("\n");
    fail();
}

static void check_text(const char *name, const struct scanner *scanner, int variant, const uint8_t *text, size_t count)
{
    size_t base = 0, expected = 0;
    while (base < count) {
        const size_t done = scan_chunk(scanner, &chunk, text + base, count - base);
        if (!done || done > count - base)
            show_failure(name, variant, text, count, base);
        if (done > SCAN_BYTES) {
            if (expected != base || scan_piece(&scanner->rules, text, base, count) != base + done)
                show_failure(name, variant, text, count, base);
            expected = base + done;
        }
        for (size_t i = 0; i < done && done <= SCAN_BYTES; i++) {
            const bool start = chunk.starts[i / 64] >> (i % 64) & 1;
            if (start != (base + i == expected))
                show_failure(name, variant, text, count, base + i);
            if (start)
                expected = scan_piece(&scanner->rules, text, base + i, count);
        }
        base += done;
        if (expected != base)
            show_failure(name, variant, text, count, base);
    }
}

/* Returns whether name `i` has other rules than the names before it, which are sorted by their rules. */
static bool has_new_rules(int i)
{
    const char *const *names = split_rules_names();
    return !i || split_rules_named(names[i]) != split_rules_named(names[i - 1]);
}

static void fast_equals_slow(void **state)
{
    const char *const *names = split_rules_names();
    const size_t room = 3 * SCAN_BYTES + 100;
    awkward_seed(1);
    for (int i = 0; names[i]; i++)
        for (int variant = 0; variant <= (int)cpu_variant_best(); variant++)
            scanner_init(&scanners[i][variant], split_rules_named(names[i]), (enum cpu_variant)variant);
    for (int round = 0; round < awkward_rounds(6000); round++) {
        /* Exactly as large as the text, so that a sanitizer reports a read past its end. */
        const size_t count = 1 + (awkward_below(10) ? awkward_below(300) : awkward_below((uint32_t)room));
        uint8_t *text = malloc(count);
        assert_non_null(text);
        awkward_text(text, count);
        for (int i = 0; names[i]; i++)
            for (int variant = 0; variant <= (int)cpu_variant_best() && has_new_rules(i); variant++)
                check_text(names[i], &scanners[i][variant], variant, text, count);
        free(text);
    }
}

/* Invalid UTF-8 may be split in any way, but all bytes must be in pieces, and all variants must agree. */
static void any_bytes(void **state)
{
    awkward_seed(2);
    for (int round = 0; round < awkward_rounds(2000); round++) {
        const size_t count = 1 + awkward_below(1000);
        uint8_t *text = malloc(count);
        uint64_t first[SCAN_WORDS + 1];
        assert_non_null(text);
        for (size_t i = 0; i < count; i++)
            text[i] = (uint8_t)(awkward_below(2) ? awkward_below(256) : 0xF0 | awkward_below(16));
        for (int i = 0; split_rules_names()[i]; i++)
            for (int variant = 0; variant <= (int)cpu_variant_best() && has_new_rules(i); variant++) {
                const size_t done = scan_chunk(&scanners[i][variant], &chunk, text, count);
                assert_true(done == count && (chunk.starts[0] & 1));
                if (variant)
                    assert_memory_equal(first, chunk.starts, (count + 63) / 64 * 8);
                memcpy(first, chunk.starts, sizeof first);
            }
        free(text);
    }
}

/* Pieces of a million characters, of every class; fewer with TEST_SHARE, because none is looked at as a whole. */
static void long_pieces(void **state)
{
    const size_t count = (size_t)awkward_rounds(1000000) + 3;
    uint8_t *text = malloc(count);
    assert_non_null(text);
    for (size_t a = 0; a < awkward_atom_count; a++) {
        const size_t bytes = strlen(awkward_atoms[a]);
        for (size_t at = 0; at < count; at++)
            text[at] = at + bytes <= count - count % bytes ? (uint8_t)awkward_atoms[a][at % bytes] : 'x';
        for (size_t at = count - count % bytes - bytes; at < count; at++)
            text[at] = 'x';
        for (int i = 0; split_rules_names()[i]; i++) {
            const struct scanner *scanner = &scanners[i][cpu_variant_best()];
            for (size_t at = 0; at < count && has_new_rules(i);)
                at += scan_chunk(scanner, &chunk, text + at, count - at);
        }
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_equals_slow),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(long_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
