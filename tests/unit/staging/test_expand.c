/* SPDX-License-Identifier: MIT */
/* expand.h: the kernels of every instruction set write the same as plain C, at every size and alignment, and write
 * nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "batch/mark.h"
#include "common/bytes.h"
#include "staging/expand.h"
#include "support/expand_case.h"
#include "support/expand_cu_host.h"
#include "support/guarded.h"

enum { MOST = 150 };

static uint64_t token_at(unsigned wide, uint64_t j)
{
    uint64_t mixed = (j + 3) * 0x9e3779b97f4a7c15u;
    return wide ? (uint32_t)(mixed >> 32) : (uint16_t)(mixed >> 48);
}

static bool output_is(const char *out, unsigned type, unsigned wide, uint64_t count, uint64_t shift)
{
    for (uint64_t j = 0; j < count; j++) {
        uint64_t expected = token_at(wide, j + shift);
        if (type ? load64(out + j * 8) != expected : load32(out + j * 4) != (uint32_t)expected)
            return false;
    }
    return true;
}

/* The input and the outputs end `skew` bytes before an unmapped page, so most accesses past their end fault. */
static void check_kernels(const struct expand_kernels *kernels, unsigned wide, unsigned type, uint64_t count,
                          unsigned skew)
{
    size_t in_bytes = (size_t)(count + 1) * (wide ? 4 : 2), out_bytes = (size_t)count * (type ? 8 : 4);
    struct guarded in = guarded_new(in_bytes + skew), left = guarded_new(out_bytes + skew),
                   right = guarded_new(out_bytes + skew);
    for (uint64_t j = 0; j < count + 1; j++) {
        if (wide)
            store32(in.at + j * 4, (uint32_t)token_at(wide, j));
        else
            store16(in.at + j * 2, (uint16_t)token_at(wide, j));
    }
    memset(left.at + out_bytes, 0x5a, skew);
    memset(right.at + out_bytes, 0x5a, skew);
    uint64_t largest = 0;
    for (uint64_t j = 0; j <= count; j++)
        largest = (uint64_t)token_at(wide, j) > largest ? (uint64_t)token_at(wide, j) : largest;
    assert_int_equal(kernels->pair[wide][type](in.at, count, count % 2 ? in.at : NULL, left.at, right.at),
                     count ? largest : 0);
    assert_true(output_is(left.at, type, wide, count, 0));
    assert_true(output_is(right.at, type, wide, count, 1));
    memset(left.at, 0, out_bytes);
    kernels->one[wide][type](in.at + (wide ? 4 : 2), count, left.at);
    assert_true(output_is(left.at, type, wide, count, 1));
    kernels->fill[type](0x87654321, count, right.at);
    for (uint64_t j = 0; j < count; j++)
        assert_int_equal(type ? load64(right.at + j * 8) : load32(right.at + j * 4), 0x87654321);
    kernels->count[type](0, count, left.at);
    for (uint64_t j = 0; j < count; j++)
        assert_int_equal(type ? load64(left.at + j * 8) : load32(left.at + j * 4), j);
    for (unsigned k = 0; k < skew; k++) {
        assert_int_equal(left.at[out_bytes + k], 0x5a);
        assert_int_equal(right.at[out_bytes + k], 0x5a);
    }
    guarded_free(in);
    guarded_free(left);
    guarded_free(right);
}

/* Bits of which about a quarter, none, or all are 1. Bits from `count` on are 1, which the kernels must ignore. */
static void bits_new(uint64_t *bits, uint64_t words, uint64_t count, unsigned kind)
{
    for (uint64_t i = 0; i < words; i++) {
        const uint64_t one = (i + 1) * 0xd1342543de82ef95u, other = (i + 7 + count) * 0x9e3779b97f4a7c15u;
        bits[i] = kind == 0 ? one & other : kind == 1 ? 0 : ~(uint64_t)0;
        if (count < (i + 1) * 64)
            bits[i] |= count > i * 64 ? ~(uint64_t)0 << (count - i * 64) : ~(uint64_t)0;
    }
}

static uint64_t element_of(const char *out, unsigned type, uint64_t j)
{
    return type ? load64(out + j * 8) : load32(out + j * 4);
}

/* The kernels that take bits. The bits end at an unmapped page, and so do the outputs, `skew` bytes before it. */
static void check_bits(const struct expand_kernels *kernels, unsigned wide, unsigned type, uint64_t count,
                       unsigned skew, unsigned kind)
{
    const uint64_t words = mark_words(count), all = type ? ~(uint64_t)0 : UINT32_MAX;
    const uint64_t ignore = (uint64_t)(int64_t)TOKMAP_IGNORE & all;
    size_t in_bytes = (size_t)(count + 1) * (wide ? 4 : 2), out_bytes = (size_t)count * (type ? 8 : 4);
    struct guarded in = guarded_new(in_bytes), bits = guarded_new((size_t)words * 8),
                   left = guarded_new(out_bytes + skew), right = guarded_new(out_bytes + skew);
    for (uint64_t j = 0; j < count + 1; j++) {
        if (wide)
            store32(in.at + j * 4, (uint32_t)token_at(wide, j));
        else
            store16(in.at + j * 2, (uint16_t)token_at(wide, j));
    }
    uint64_t *word = (uint64_t *)(void *)bits.at;
    bits_new(word, words, count, kind);
    memset(left.at, 0x5a, out_bytes + skew);
    memset(right.at, 0x5a, out_bytes + skew);
    kernels->pair_except[wide][type](in.at, word, count, left.at, right.at);
    assert_true(output_is(left.at, type, wide, count, 0));
    for (uint64_t j = 0; j < count; j++)
        assert_int_equal(element_of(right.at, type, j),
                         word[j / 64] >> (j % 64) & 1 ? ignore : token_at(wide, j + 1) & all);
    kernels->zeros[type](word, count, left.at);
    kernels->put[type](word, 0x1234567, count, right.at);
    for (uint64_t j = 0; j < count; j++) {
        const bool is = word[j / 64] >> (j % 64) & 1;
        assert_int_equal(element_of(left.at, type, j), !is);
        assert_int_equal(element_of(right.at, type, j), is ? 0x1234567 : token_at(wide, j + 1) & all);
    }
    for (unsigned k = 0; k < skew; k++) {
        assert_int_equal(left.at[out_bytes + k], 0x5a);
        assert_int_equal(right.at[out_bytes + k], 0x5a);
    }
    guarded_free(in);
    guarded_free(bits);
    guarded_free(left);
    guarded_free(right);
}

static void variants_choose_by_bits(void **unused)
{
    (void)unused;
    const struct expand_kernels *kernels;
    for (unsigned variant = 0; (kernels = expand_variant(variant)); variant++)
        for (unsigned form = 0; form < 4; form++)
            for (uint64_t count = 0; count <= MOST; count++)
                for (unsigned kind = 0; kind < 3; kind++)
                    check_bits(kernels, form & 1, form >> 1, count, (unsigned)(count % 5) * (count % 3 ? 1 : 16), kind);
}

static void variants_agree_at_every_size(void **unused)
{
    (void)unused;
    const struct expand_kernels *kernels;
    for (unsigned variant = 0; (kernels = expand_variant(variant)); variant++)
        for (unsigned wide = 0; wide < 2; wide++)
            for (unsigned type = 0; type < 2; type++)
                for (uint64_t count = 0; count <= MOST; count++)
                    check_kernels(kernels, wide, type, count, (unsigned)(count % 5) * (count % 3 ? 1 : 16));
}

static void the_last_variant_is_plain_c(void **unused)
{
    (void)unused;
    unsigned last = 0;
    while (expand_variant(last + 1))
        last++;
    assert_string_equal(expand_variant(last)->name, "plain");
}

static void check_case(const struct expand_shape *shape)
{
    static const uint32_t launches[][2] = {{1, 1}, {1, 32}, {3, 7}, {2, 256}};
    struct expand_case made;
    char text[200];
    const char *wrong;
    expand_case_new(&made, shape);
    for (unsigned variant = 0; expand_variant(variant); variant++) {
        expand_case_reset(&made);
        expand_batch(expand_variant(variant), &made.work);
        wrong = expand_case_check(&made, text);
        if (wrong)
            fail_msg("%s: %s", expand_variant(variant)->name, wrong);
    }
    /* A device does not accept outputs that are not aligned to their elements; only the host does. */
    for (unsigned i = 0; shape->skew % shape->element == 0 && shape->skew_more % shape->element == 0 && i < 5; i++) {
        uint32_t blocks = i < 4 ? launches[i][0] : expand_blocks(&made.work, 8);
        uint32_t threads = i < 4 ? launches[i][1] : EXPAND_BLOCK;
        expand_case_reset(&made);
        expand_cu_host(&made.work, blocks, threads);
        wrong = expand_case_check(&made, text);
        if (wrong)
            fail_msg("the kernel, %u x %u threads: %s", blocks, threads, wrong);
    }
    expand_case_free(&made);
}

/* All fields with each width, element size, alignment, and kind of documents, at sizes around those of words, vectors,
 * and pieces. */
static void a_batch_is_what_the_header_says(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 191, 200, 256};
    static const uint32_t skews[][2] = {{0, 0}, {4, 0}, {8, 0}, {8, 8}, {0, 4}, {1, 1}};
    uint64_t number = 0;
    for (unsigned size = 0; size < sizeof sizes / sizeof sizes[0]; size++)
        for (unsigned kind = 0; kind <= EXPAND_KINDS; kind++)
            for (unsigned form = 0; form < 4; form++, number++) {
                const uint32_t *skew = skews[number % 6];
                struct expand_shape shape = {
                    .rows = kind == EXPAND_KINDS ? 13 : 1 + number % 3,
                    .seq_len = sizes[size],
                    .lookahead = number % 4,
                    .width = form & 1 ? 4 : 2,
                    .element = form & 2 ? 8 : 4,
                    .fields = EXPAND_FIELDS_ALL,
                    .mask_targets = number / 4 % 2,
                    .skew = skew[0],
                    .skew_more = skew[1],
                    .cu_spare = number % 9,
                    .documents = (enum expand_documents)kind,
                    .bits = number / 3 % EXPAND_BITS_KINDS,
                    .bounds = number / 7 % EXPAND_EXTENTS_KINDS,
                    .seed = number,
                };
                check_case(&shape);
            }
}

/* Every length from 1 to 300 and lookahead from 0 to 4 and some larger, with masks of every kind. */
static void masks_of_every_kind(void **unused)
{
    (void)unused;
    static const uint64_t aheads[] = {0, 1, 2, 3, 4, 1, 2, 3, 4, 7, 8, 15, 16, 40};
    uint64_t number = 1;
    for (uint64_t seq_len = 1; seq_len <= 300; seq_len++)
        for (unsigned i = 0; i < 6; i++, number++) {
            uint64_t drawn = number * 0x9e3779b97f4a7c15u >> 20;
            struct expand_shape shape = {
                .rows = 1 + drawn % 4,
                .seq_len = seq_len,
                .lookahead = aheads[number % 14],
                .width = drawn / 4 % 2 ? 4 : 2,
                .element = drawn / 8 % 2 ? 8 : 4,
                .fields = drawn / 16 % 3 ? EXPAND_FIELDS_ALL : (uint32_t)(drawn / 64) & EXPAND_FIELDS_ALL,
                .mask_targets = drawn / 16384 % 3 > 0,
                .skew = drawn / 65536 % 3 ? 0 : 8,
                .cu_spare = 3,
                .documents = (enum expand_documents)(drawn / 262144 % (EXPAND_KINDS + 1)),
                .bits = (enum expand_bits)(number % EXPAND_BITS_KINDS),
                .bounds = (enum expand_bounds)(number / 5 % EXPAND_EXTENTS_KINDS),
                .seed = number,
            };
            check_case(&shape);
        }
}

/* Rows of which the bits that exclude targets are made in more than one part, at lengths around those of parts. */
static void long_rows(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = {4032, 4095, 4096, 4097, 4159, 4160, 8191, 8192, 8193, 12289};
    static const uint32_t fields[] = {EXPAND_FIELDS_ALL,
                                      TOKMAP_TARGETS,
                                      TOKMAP_LOSS_MASK,
                                      TOKMAP_INPUTS | TOKMAP_TARGETS,
                                      TOKMAP_TARGETS | TOKMAP_LOSS_MASK,
                                      TOKMAP_INPUTS | TOKMAP_LABELS};
    uint64_t number = 0;
    for (unsigned size = 0; size < sizeof sizes / sizeof sizes[0]; size++)
        for (unsigned bits = 0; bits < EXPAND_BITS_KINDS; bits++)
            for (unsigned bounds = 0; bounds < EXPAND_EXTENTS_KINDS; bounds++, number++) {
                struct expand_shape shape = {
                    .rows = 1 + number % 2,
                    .seq_len = sizes[size],
                    .lookahead = 1 + number % 3 / 2,
                    .width = number % 2 ? 4 : 2,
                    .element = number / 2 % 2 ? 8 : 4,
                    .fields = fields[number % 6],
                    .mask_targets = number % 4 > 0,
                    .skew = number % 3 ? 0 : 8,
                    .cu_spare = 3,
                    .documents = (enum expand_documents)(number % (EXPAND_KINDS + 1)),
                    .bits = (enum expand_bits)bits,
                    .bounds = (enum expand_bounds)bounds,
                    .seed = number,
                };
                check_case(&shape);
            }
}

/* Every set of fields, and a batch without rows. */
static void any_fields(void **unused)
{
    (void)unused;
    for (uint32_t fields = 0; fields <= EXPAND_FIELDS_ALL; fields++)
        for (uint64_t rows = 0; rows < 8; rows += 7) {
            struct expand_shape shape = {
                .rows = rows,
                .seq_len = 68 + fields % 2,
                .lookahead = fields % 3 ? 1 : 2,
                .width = fields % 4 < 2 ? 2 : 4,
                .element = fields % 8 < 4 ? 4 : 8,
                .fields = fields,
                .mask_targets = fields % 16 < 8,
                .cu_spare = 5,
                .documents = EXPAND_KINDS,
                .bits = fields / 2 % EXPAND_BITS_KINDS,
                .bounds = fields / 3 % EXPAND_EXTENTS_KINDS,
                .seed = fields,
            };
            if (!rows)
                shape.fields &= TOKMAP_CU_SEQLENS; /* an empty output has no byte to compare */
            check_case(&shape);
        }
}

/* The number of blocks where there are fewer pieces than threads, and more: at least 1, and at most what a device can
 * hold at once. */
static void the_launch_fits_the_work(void **unused)
{
    (void)unused;
    struct expand_arguments work = {.count = 16, .seq_len = 2048, .row_tokens = 2049, .width = 2, .element = 4};
    assert_int_equal(expand_blocks(&work, 528), 16 * 513 / EXPAND_BLOCK + 1);
    work.count = 0;
    assert_int_equal(expand_blocks(&work, 528), 1);
    assert_int_equal(expand_blocks(&work, 0), 1);
    work.cu_seqlens = 1;
    work.cu_elements = 1 << 18;
    assert_int_equal(expand_blocks(&work, 528), (1 << 16) / EXPAND_BLOCK + 1);
    work.count = (uint64_t)1 << 31;
    work.seq_len = (uint64_t)1 << 31;
    work.row_tokens = (uint64_t)1 << 32;
    work.rows = 1;
    assert_int_equal(expand_blocks(&work, 132 * 5), 132 * 5);
    assert_int_equal(expand_blocks(&work, 1), 1);
}

/* The struct is the parameter of a kernel, so its layout must not depend on the compiler. */
static void the_arguments_have_no_gaps(void **unused)
{
    (void)unused;
    assert_int_equal(sizeof(struct expand_arguments), 28 * 8 + 6 * 4);
    assert_int_equal(offsetof(struct expand_arguments, width), 28 * 8);
    assert_int_equal(sizeof(struct mark), 16);
    assert_int_equal(TOKMAP_IGNORE, -100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_agree_at_every_size),
        cmocka_unit_test(variants_choose_by_bits),
        cmocka_unit_test(the_last_variant_is_plain_c),
        cmocka_unit_test(a_batch_is_what_the_header_says),
        cmocka_unit_test(masks_of_every_kind),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(any_fields),
        cmocka_unit_test(the_launch_fits_the_work),
        cmocka_unit_test(the_arguments_have_no_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
