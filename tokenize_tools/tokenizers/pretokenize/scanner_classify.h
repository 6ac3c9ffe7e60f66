/* SPDX-License-Identifier: MIT */
/*
 * scanner_classify.h - the first half of the fast scanner: turns the bytes of a text into bit masks, one mask per
 * class.
 *
 * Bit i of a mask describes byte i of the text. All bytes of a character get the class of the character. There is one
 * implementation per instruction set; all of them write the same bits.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_CLASSIFY_H
#define TOKMAP_PRETOKENIZE_SCANNER_CLASSIFY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/cpu.h"
#include "split_rules.h"
#include "unicode/classes.h"

/* A chunk, the text that is scanned in one call, has up to SCAN_WORDS words of 64 bytes. */
#define SCAN_WORDS 128
#define SCAN_BYTES (64 * SCAN_WORDS)

/* The classes, one bit each. The rules decide which characters a class holds (scanner_classify.c, class_bits). */
enum {
    SCAN_UPPER = 1,  /* LETTERS_CASED: upper and title case. DeepSeek: all characters of CLASS_CJK */
    SCAN_LOWER = 2,  /* LETTERS_CASED: lower case. DeepSeek: characters of CLASS_CJK except letters and marks */
    SCAN_LETTER = 4, /* LETTERS_CASED: letters without case. Otherwise all letters */
    SCAN_NUMBER = 8,
    SCAN_SPACE = 16, /* includes newlines */
    SCAN_NEWLINE = 32,
    SCAN_EXTRA = 64,  /* LETTERS_CASED: marks. DeepSeek: punctuation and symbols */
    SCAN_SLASH = 128, /* the slash, if the rules have TAIL_NEWLINES_SLASH */
    SCAN_KINDS = 8
};

/* One bit per byte of a chunk. The word before the first and the word after the last one are 0, so that code may shift
 * bits in from a neighbor without a test. There is room for more words on both sides: the first one is at a multiple of
 * 64 bytes in the row, and eight words can be loaded or stored from each on. */
struct scan_row {
    uint64_t padded[8 + SCAN_WORDS + 8];
};
#define SCAN_ROW(row) ((row).padded + 8)

struct scan_masks {
    struct scan_row kind[SCAN_KINDS];     /* kind[k]: the class 1 << k */
    struct scan_row start;                /* first bytes of characters */
    struct scan_row blank;                /* the space U+0020 */
    struct scan_row quote;                /* the apostrophe */
    struct scan_row tall;                 /* first bytes of characters that have three or four bytes */
    uint64_t wide_words[SCAN_WORDS / 64]; /* bit i: word i contains a byte above 127 */
    uint64_t any[SCAN_KINDS];             /* any[k]: not 0 if a character of the chunk has the class 1 << k */
    uint64_t any_quote;                   /* not 0 if the chunk contains an apostrophe */
};

#define SCAN_PAIRS 4 /* rows of struct scan_tables for first bytes of Chinese and Korean characters */
#define SCAN_ROWS 6  /* and for beginnings of most other characters of such text */

/* The first byte of hiragana, katakana, and the punctuation of Chinese and Japanese text (second bytes 0x80 to 0x83).
 */
#define SCAN_KANA 0xE3

/* Two runs of characters of one class each, for 16 beginnings of characters. Run r of beginning i has the next bytes
 * for which (byte & 63) - from[r][i] <= more[r][i], modulo 256. */
struct scan_runs {
    uint8_t classes[2][16]; /* 128 | classes; 0: there is no run */
    uint8_t from[2][16], more[2][16];
};

/* Lookup tables that map characters to classes under certain rules. */
struct scan_tables {
    uint8_t ascii[128];
    uint8_t leads[64]; /* by first byte & 63: 128 | classes if all characters with this first byte agree; otherwise 0 */
    uint8_t two[32][64];              /* classes of characters of two bytes, by first byte & 31 and second byte & 63 */
    uint8_t blocks[CLASS_BLOCKS][64]; /* indexed like class_blocks of classes.h */
    /* For scanner_classify_vbmi.c, of scripts that are written without spaces: */
    uint8_t pairs[SCAN_PAIRS][64]; /* by second byte & 63: 128 | classes if all characters with the first byte
                                      E4, E9, EA, or ED and this second byte agree; otherwise 0 */
    uint8_t rows[SCAN_ROWS][64];   /* by third byte & 63: classes of the characters that begin with E2 80, E3 80
                                      to E3 83, or EF BC */
    /* For scanner_classify_avx2.c: */
    uint8_t ascii_kinds, wide_kinds;    /* the classes that characters of one byte, and of more, have */
    uint8_t ascii_rows[SCAN_KINDS][16]; /* by class and the lower half of a byte: bit r is set if byte 16 * r + that
                                           half has the class */
    struct scan_runs by_lead[3];        /* first bytes from 0xC0, 0xD0, and 0xE0 on; runs of second bytes */
    struct scan_runs by_kana;           /* second bytes from 0x80 on after SCAN_KANA; runs of third bytes */
};

/* Fills the tables for these rules. */
void scan_tables_init(struct scan_tables *tables, const struct split_rules *rules);

/* Fills the masks for `count` bytes of text, 1 <= count <= SCAN_BYTES. The function may read up to `readable` bytes
 * from `text` on, readable >= count. The caller has set `wide_words`, `any`, and `any_quote` to 0. Words of the rows
 * after the last one may become 0. */
typedef void scan_classify_function(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text,
                                    size_t count, size_t readable);
scan_classify_function scan_classify_scalar;
#if defined(__x86_64__)
scan_classify_function scan_classify_avx2;
scan_classify_function scan_classify_vbmi;
#elif defined(__aarch64__)
scan_classify_function scan_classify_neon;
#endif
/* Returns the implementation for a variant that the processor has. */
scan_classify_function *scan_classify_choose(enum cpu_variant variant);

#define SCAN_BLOCK (64 + 4) /* bytes: the last character of a block of 64 may go on after it */

/* For the implementations: returns a block of text, or where fewer bytes are readable, a copy that ends with zeros. */
static inline __attribute__((always_inline)) const uint8_t *scan_block_at(const uint8_t *text, size_t readable,
                                                                          uint8_t padded[SCAN_BLOCK])
{
    if (__builtin_expect(readable >= SCAN_BLOCK, 1))
        return text;
    memset(padded, 0, SCAN_BLOCK);
    memcpy(padded, text, readable);
    return padded;
}

/* For the implementations: the classes of the character of more than one byte at `at`. Four bytes must be readable. */
static inline uint8_t scan_class_at(const struct scan_tables *tables, const uint8_t *at)
{
    uint32_t entry = class_first[(at[0] & 63u) << 6 | (at[1] & 63u)], last = at[2] & 63u;
    if (at[0] >= 0xF0) {
        entry = class_middle[entry][last];
        last = at[3] & 63u;
    }
    return tables->blocks[entry][last];
}

/* For the implementations: looks up the characters of more than one byte whose first bytes are at the set bits of
 * `leads`, in a block of 64 bytes, and writes their classes to the entries of `bits` that belong to them, up to
 * bits[66]. The four bytes from each first byte on must be readable. */
static inline void scan_wide_bits(uint8_t bits[68], const struct scan_tables *tables, const uint8_t *block,
                                  uint64_t leads)
{
    for (; leads; leads &= leads - 1) {
        const uint32_t p = (uint32_t)__builtin_ctzll(leads), value = scan_class_at(tables, block + p) * 0x01010101u;
        memcpy(bits + p, &value, 4);
    }
}

#endif
