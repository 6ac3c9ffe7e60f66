/*
 * scanner.h - the pre-tokenizer: cuts text into pieces by split_rules.
 *
 * Two scanners for the same rules: scan_piece reads characters one at a time as the regular expression would, and is
 * plainly right; scan_chunk finds the starts of many pieces at once as a bitmap, with the widest instructions there are.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_H
#define TOKMAP_PRETOKENIZE_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cpu.h"
#include "unicode/classes.h"
#include "split_rules.h"

/* Where the piece that starts at text[at] ends; at < count, text is UTF-8 and `at` is the end of the piece before. */
size_t scan_piece(const struct split_rules *rules, const uint8_t *text, size_t at, size_t count);

/* ---- the fast scanner ---- */

#define SCAN_WORDS 128
#define SCAN_BYTES (64 * SCAN_WORDS)

/* What the scanner wants to know of each byte of text: all bytes of a character have the bits of the character. */
enum {
    SCAN_UPPER = 1,    /* letters with case: upper and title; DeepSeek's rules: what is set apart by its script */
    SCAN_LOWER = 2,    /* letters with case: lower; DeepSeek's rules: of what is set apart all but letters and marks */
    SCAN_LETTER = 4,   /* all other letters (without case in the rules: all letters) */
    SCAN_NUMBER = 8,
    SCAN_SPACE = 16,   /* newlines too */
    SCAN_NEWLINE = 32,
    SCAN_EXTRA = 64,   /* cased letters: marks; DeepSeek's rules: punctuation and symbols */
    SCAN_SLASH = 128,  /* where it may be in the tail of symbols */
    SCAN_KINDS = 8
};

/* One bit a byte of text, with a word before the first and one behind the last that are 0. */
struct scan_row {
    uint64_t padded[SCAN_WORDS + 2];
};
#define SCAN_ROW(row) ((row).padded + 1)

struct scan_masks {
    struct scan_row kind[SCAN_KINDS]; /* by the number of the bit */
    struct scan_row start;            /* first bytes of characters */
    struct scan_row blank;            /* 0x20 */
    struct scan_row quote;            /* the apostrophe */
    struct scan_row tall;             /* first bytes of characters of three and four bytes */
    uint64_t wide_words[SCAN_WORDS / 64 + 1]; /* words with characters of more than one byte */
    uint64_t any[SCAN_KINDS];         /* of each kind, all words of the chunk together */
    uint64_t any_quote;
};

struct scan_tables {
    uint8_t ascii[128];
    uint8_t leads[64]; /* by first byte & 63: 128 | bits where all characters that begin with it have the same, else 0 */
    uint8_t blocks[CLASS_BLOCKS][64];
};

/* Fills the masks of `count` bytes (at most SCAN_BYTES). `readable` bytes from text on may be read, at least count. */
typedef void scan_classify_function(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text,
                                    size_t count, size_t readable);
scan_classify_function scan_classify_scalar;
#if defined(__x86_64__)
scan_classify_function scan_classify_avx2;
scan_classify_function scan_classify_vbmi;
#elif defined(__aarch64__)
scan_classify_function scan_classify_neon;
#endif
/* Class bits of the characters of more than one byte that start in a block of 64 bytes, at the bits of `leads`: into all
 * their bytes, up to bits[66]. Four bytes from each lead on must be readable. */
static inline void scan_wide_bits(uint8_t bits[68], const struct scan_tables *tables, const uint8_t *block,
                                  uint64_t leads)
{
    for (; leads; leads &= leads - 1) {
        const uint32_t p = (uint32_t)__builtin_ctzll(leads);
        const uint8_t *at = block + p;
        uint32_t entry = class_first[(at[0] & 63u) << 6 | (at[1] & 63u)], last = at[2] & 63u;
        if (at[0] >= 0xF0) {
            entry = class_middle[entry][last];
            last = at[3] & 63u;
        }
        const uint32_t value = tables->blocks[entry][last] * 0x01010101u;
        __builtin_memcpy(bits + p, &value, 4);
    }
}

struct scan_work;
/* Fills all rows of the work, and its starts but for what is done bit by bit. valid: what of the last word is text. */
typedef void scan_words_function(struct scan_work *work, const struct scan_masks *masks, uint64_t valid);
scan_words_function scan_words_scalar;
#if defined(__x86_64__)
scan_words_function scan_words_vbmi;
#endif

struct scanner {
    struct split_rules rules;
    scan_classify_function *classify;
    scan_words_function *words;
    struct scan_tables tables;
};

void scanner_init(struct scanner *scanner, const struct split_rules *rules, enum cpu_variant variant);

/* The starts of pieces in a chunk: bit i of the bitmap is text[i]. */
struct scan_chunk {
    uint64_t starts[SCAN_WORDS + 1];
    struct scan_masks masks;
};

/* Scans from text[0], where a piece starts, up to SCAN_BYTES. Returns how many bytes are done: always all bytes of the
 * pieces found, at least one piece; the end of the last is no bit. Bits beyond are 0 up to the end of their word. A piece
 * longer than a chunk is found alone: then the result is greater than SCAN_BYTES and only bit 0 is set. */
size_t scan_chunk(const struct scanner *scanner, struct scan_chunk *chunk, const uint8_t *text, size_t count);

#endif
