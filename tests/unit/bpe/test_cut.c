/* SPDX-License-Identifier: MIT */
/*
 * test_cut.c - every variant of bpe_cut.h adds the cuts that bpe_may_join() allows, and no others: texts of characters
 * of one to four bytes, starts anywhere, all lengths, all ends of the part to cut, and filters from empty to full. The
 * text is between two pages that must not be touched.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bpe/bpe_cut.h"
#include "common/cpu.h"
#include "platform/os.h"
#include "support/awkward_text.h"
#include "support/guarded.h"

#define JOIN_WORDS (((size_t)1 << BPE_JOIN_BITS) / 64)

static struct bpe_model model;
static struct scan_chunk chunk;
static uint64_t cuts[SCAN_WORDS + 1];

static uint64_t random_word(void)
{
    uint64_t word = 0;
    for (int i = 0; i < 4; i++)
        word = word << 16 | awkward_below(65536);
    return word;
}

/* ands: how many random words are combined for each word of the filter; 0: all bits are set. */
static void make_filters(uint32_t ands, bool edges)
{
    uint8_t *edge = &model.edge_joins[0][0];
    for (size_t i = 0; i < JOIN_WORDS; i++) {
        model.joins[i] = ~(uint64_t)0;
        for (uint32_t k = 0; k < ands; k++)
            model.joins[i] &= random_word();
    }
    for (size_t i = 0; i < sizeof model.edge_joins; i++)
        edge[i] = edges ? (uint8_t)(random_word() & random_word()) : 0;
}

/* any: bytes that are not UTF-8, as in a text whose characters the scanner has not checked. */
static void make_text(uint8_t *text, size_t count, bool any)
{
    size_t at = 0;
    const uint32_t tall = awkward_below(8); /* of 8 characters, how many have three bytes or more */
    while (at < count) {
        const uint32_t bytes = awkward_below(8) > tall ? 1 + awkward_below(2) : 3 + !awkward_below(8);
        if (any || at + bytes > count) {
            text[at++] = any ? (uint8_t)(awkward_below(2) ? 0xE0 | awkward_below(32) : random_word()) : 'x';
            continue;
        }
        static const uint8_t leads[5] = {0, 'a', 0xC3, 0xE0, 0xF0};
        text[at] = (uint8_t)(leads[bytes] + awkward_below(bytes == 3 ? 16 : bytes == 4 ? 5 : 2));
        for (uint32_t i = 1; i < bytes; i++)
            text[at + i] = (uint8_t)(0x80 + awkward_below(64));
        at += bytes;
    }
}

static void make_chunk(const uint8_t *text, size_t count, size_t done)
{
    const uint32_t sparse = awkward_below(4);
    memset(&chunk, 0, sizeof chunk);
    memset(cuts, 0xFF, sizeof cuts);
    for (size_t i = 0; i < count; i++)
        SCAN_ROW(chunk.masks.tall)[i / 64] |= (uint64_t)(text[i] >= 0xE0) << (i % 64);
    for (size_t i = 0; i < done; i++)
        chunk.starts[i / 64] |= (uint64_t)(!i || (sparse && !awkward_below(4 * sparse * sparse))) << (i % 64);
}

/* The cuts by the definition. */
static void expected_cuts(const uint8_t *text, size_t done, const uint8_t *end, uint64_t *expected)
{
    memset(expected, 0, sizeof cuts);
    for (size_t at = 3; at < done; at++) {
        uint64_t six = 0;
        for (size_t i = 0; i < 6 && text + at - 3 + i < end; i++)
            six |= (uint64_t)text[at - 3 + i] << 8 * i;
        if (text[at] >= 0xE0 && text[at - 3] >= 0xE0 && !(chunk.starts[at / 64] >> (at % 64) & 1) &&
            !bpe_may_join(&model, six))
            expected[at / 64] |= (uint64_t)1 << (at % 64);
    }
}

static void check(const uint8_t *text, size_t count, size_t done, const uint8_t *end)
{
    static const struct {
        bpe_cut_function *cut;
        enum cpu_variant variant;
    } variants[] = {
        {bpe_cut_scalar, CPU_SCALAR},
#if defined(__x86_64__)
        {bpe_cut_avx2, CPU_AVX2},
        {bpe_cut_vbmi, CPU_VBMI},
#endif
    };
    uint64_t expected[SCAN_WORDS + 1], starts[SCAN_WORDS + 1];
    const size_t words = (done + 63) / 64;
    make_chunk(text, count, done);
    memcpy(starts, chunk.starts, sizeof starts);
    expected_cuts(text, done, end, expected);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        if (!cpu_has(variants[v].variant))
            continue;
        memcpy(chunk.starts, starts, sizeof starts);
        memset(cuts, 0xFF, sizeof cuts);
        variants[v].cut(&(struct bpe_cutting){&model, &chunk, cuts, end}, text, done);
        assert_memory_equal(cuts, expected, (words + 1) * sizeof *cuts);
        for (size_t i = 0; i <= words; i++)
            assert_true(chunk.starts[i] == (starts[i] | expected[i]));
    }
}

static void all_variants_cut_alike(void **state)
{
    const size_t page = os_page_bytes(), room = (SCAN_BYTES / page + 1) * page;
    const struct guarded memory = guarded_new(page + room);
    uint8_t *text = (uint8_t *)memory.at + page;
    assert_int_equal(mprotect(memory.at, page, PROT_NONE), 0);
    model.joins = malloc(JOIN_WORDS * sizeof *model.joins);
    assert_non_null(model.joins);
    awkward_seed(16);
    for (int round = 0; round < awkward_rounds(20000); round++) {
        if (round % 2000 == 0)
            make_filters((uint32_t)round / 2000 % 5, round / 2000 % 2);
        const bool whole = !awkward_below(20), first = !awkward_below(2);
        const size_t count = 1 + awkward_below(whole ? (uint32_t)room : 200);
        const size_t most = count < SCAN_BYTES ? count : SCAN_BYTES;
        const size_t done = awkward_below(2) ? most : 1 + awkward_below((uint32_t)most);
        uint8_t *at = first ? text : text + room - count; /* at either page that must not be touched */
        make_text(at, count, !awkward_below(8));
        check(at, count < SCAN_BYTES ? count : SCAN_BYTES, done, at + count);
    }
    free(model.joins);
    guarded_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_variants_cut_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
