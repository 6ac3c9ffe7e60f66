/* SPDX-License-Identifier: MIT */
/*
 * scanner_words.h - the second half of the fast scanner: turns masks of classes into starts of pieces, with arithmetic
 * on whole words. There is one implementation per instruction set; all of them write the same bits.
 *
 * scanner.c and scanner_words*.c share rows of bits while they scan one chunk. The bits of a row run from the lowest
 * bit of word 0 upward, in the order of the text. A shift to the left therefore moves a bit to the next byte of the
 * text, and an addition carries along the text.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_WORDS_H
#define TOKMAP_PRETOKENIZE_SCANNER_WORDS_H

#include <stdint.h>

#include "common/cpu.h"
#include "scanner_classify.h"

/* The rows come first: they begin at multiples of 64 bytes if the struct does, and then no store of eight words writes
 * to two cache lines. */
struct scan_work {
    struct scan_row letters, symbols, spaces, tail; /* the chunk by the rules; spaces without those in tails */
    struct scan_row swallowed;                      /* LETTERS_CASED: marks that belong to a run of symbols */
    struct scan_row ends;       /* last bytes of runs of spaces, if another piece follows directly */
    struct scan_row after_line; /* first spaces after newlines */
    struct scan_row line_ends;  /* newlines that only spaces separate from the previous newline */
    struct scan_row uncertain;  /* upper-case letters that follow letters without case */
    const struct split_rules *rules;
    const uint8_t *text;
    size_t count, words;            /* of the chunk */
    bool by_piece;                  /* the chunk needs scan_piece */
    bool any_line_ends;             /* line_ends is not empty */
    bool wide_spaces, wide_numbers; /* there are spaces, numbers of more than one byte */
    uint64_t *starts;               /* the result: starts of pieces */
};

#define KIND(name) SCAN_ROW(masks->kind[__builtin_ctz(SCAN_##name)])
#define ANY(name) (masks->any[__builtin_ctz(SCAN_##name)] != 0)

/* Bit i of the result is the row's bit for the byte before byte i of this word. */
static inline uint64_t previous(const uint64_t *word)
{
    return word[0] << 1 | word[-1] >> 63;
}

/* Bit i of the result is the row's bit for the byte after byte i of this word. */
static inline uint64_t next_bits(const uint64_t *word)
{
    return word[0] >> 1 | word[1] << 63;
}

/* a + b + *carry, where *carry is 0 or 1; sets *carry to the carry out of bit 63. */
static inline uint64_t add_carry(uint64_t a, uint64_t b, uint32_t *carry)
{
    uint64_t sum;
    const bool over = __builtin_add_overflow(a, b, &sum);
    *carry = (uint32_t)(over | __builtin_add_overflow(sum, (uint64_t)*carry, &sum));
    return sum;
}

static inline bool bit(const uint64_t *words, size_t at)
{
    return words[at / 64] >> (at % 64) & 1;
}

static inline void set_bit(uint64_t *words, size_t at)
{
    words[at / 64] |= (uint64_t)1 << (at % 64);
}

static inline void clear_bit(uint64_t *words, size_t at)
{
    words[at / 64] &= ~((uint64_t)1 << (at % 64));
}

/* Fills all rows of the work except `swallowed`, which the caller has filled if the rules need it, and the starts of
 * pieces, except those that scanner.c corrects afterwards. Bit i of `valid` is 1 if byte i of the last word belongs to
 * the text. */
typedef void scan_words_function(struct scan_work *work, const struct scan_masks *masks, uint64_t valid);
scan_words_function scan_words_scalar;
#if defined(__x86_64__)
scan_words_function scan_words_avx2;
scan_words_function scan_words_vbmi;
#endif
/* Returns the implementation for a variant that the processor has. */
scan_words_function *scan_words_choose(enum cpu_variant variant);

#endif
