/*
 * scanner_work.h - what the parts of the fast scanner hand to each other: scanner.c goes from classes to starts of pieces,
 * scan_words*.c do of it what is arithmetic on whole words.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_WORK_H
#define TOKMAP_PRETOKENIZE_SCANNER_WORK_H

#include "scanner.h"

struct scan_work {
    const struct scanner *scanner;
    const uint8_t *text;
    size_t count, words;
    bool odd;                       /* scan_piece must do it */
    bool any_line_ends;
    bool wide_spaces, wide_numbers; /* there are such of more than one byte */
    struct scan_row letters, symbols, spaces, tail, swallowed;
    struct scan_row ends;       /* last bytes of runs of spaces that something follows */
    struct scan_row after_line; /* first spaces behind newlines */
    struct scan_row line_ends;  /* newlines that only spaces part from the one before */
    struct scan_row uncertain;  /* upper-case letters behind letters without case */
    uint64_t *starts;
};

#define KIND(name) SCAN_ROW(masks->kind[__builtin_ctz(SCAN_##name)])
#define ANY(name) (masks->any[__builtin_ctz(SCAN_##name)] != 0)

static inline uint64_t previous(const uint64_t *word)
{
    return word[0] << 1 | word[-1] >> 63;
}

static inline uint64_t next(const uint64_t *word)
{
    return word[0] >> 1 | word[1] << 63;
}

static inline uint64_t add(uint64_t a, uint64_t b, uint64_t *carry)
{
    uint64_t sum;
    const uint64_t over = __builtin_add_overflow(a, b, &sum);
    const uint64_t again = __builtin_add_overflow(sum, *carry, &sum);
    *carry = over | again;
    return sum;
}

/* All bits of `run` from those of `from` on (themselves included where they are in it) up to the end of each run. */
static inline uint64_t along(uint64_t run, uint64_t from, uint64_t *carry)
{
    const uint64_t entered = *carry & run; /* bit 0 */
    return ((add(run & from, run, carry) ^ run) | from | entered) & run;
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

#endif
