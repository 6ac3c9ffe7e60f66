/* SPDX-License-Identifier: MIT */
/*
 * code_search.h - finds the characters of a set in a text, 64 bytes at once. Texts are valid UTF-8.
 */
#ifndef TOKMAP_UNICODE_CODE_SEARCH_H
#define TOKMAP_UNICODE_CODE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code_sets.h"
#include "common/cpu.h"

/* A set of characters that is asked about each character of a text. Initialize with zeros. */
struct code_bits {
    uint64_t words[CODES / 64]; /* one bit per character */
};

static inline void code_bits_add(struct code_bits *set, uint32_t code)
{
    set->words[code >> 6] |= UINT64_C(1) << (code & 63);
}

/* Adds the code points for which run(which, code, &end) returns true. It reduces *end: those before it
 * are like this one. */
void code_bits_add_runs(struct code_bits *set, bool (*run)(int which, uint32_t code, uint32_t *end), int which);

/* Bytes of text after the first that code_search_function reads: 64, and the rest of a character that begins there. */
#define CODE_SEARCH_BYTES 67

struct code_search;
/* Passes over text from *at on while no character that begins in a block of 64 bytes is in the set, as long as
 * CODE_SEARCH_BYTES bytes are left before `count`. Returns the bits of the first bytes of characters of the set among
 * text[*at, *at + 64), or 0 if fewer bytes are left; *at may be inside a character then. */
typedef uint64_t code_search_function(const struct code_search *search, const uint8_t *text, size_t *at, size_t count);

/* Tables for the function: which characters may be in the set, by their first bytes. Initialize with zeros: no table is
 * filled. */
struct code_search {
    const struct code_bits *set;
    code_search_function *find; /* NULL: this processor has none */
    /* The bit of the second byte & 63 in the row of the first byte & 15: a character that begins with these two bytes
     * may be in the set. Rows of 8 bytes. */
    uint8_t three[128];
    uint8_t four[64];   /* the same for the first byte 0xF0, repeated for each 8 bytes */
    uint8_t two[64];    /* 255 at a first byte & 63 if such a character of two bytes may be in the set */
    uint8_t ascii[128]; /* 255 at the characters that are in the set */
    /* The bit (byte >> 4) of the row (byte & 15): the same, in 16 bytes. */
    uint8_t ascii_rows[16];
    bool any_ascii;
};

/* Fills the tables for a set, which must outlive them, and for a variant that the processor has. */
void code_search_init(struct code_search *search, const struct code_bits *set, enum cpu_variant variant);

/* Returns whether the character that begins here is in the set. */
bool code_bits_have(const struct code_bits *set, const uint8_t *text);

/* A block of 64 bytes whose characters are known. Begin with CODE_BLOCK_NONE at each text. */
struct code_block {
    size_t at;
    uint64_t found;    /* bits of the first bytes of characters of the set */
    size_t from, next; /* the last answer: from `from` on, the first character of the set is at `next` */
};
#define CODE_BLOCK_NONE ((struct code_block){(size_t)0 - 64, 0, 1, 0})
/* Returns the offset of the first character of the set from `at` on, where a character begins, or `count`. *block: what
 * the last call for this text has found. */
size_t code_search_next(const struct code_search *search, const uint8_t *text, size_t at, size_t count,
                        struct code_block *block);

#if defined(__x86_64__)
code_search_function code_search_avx2;
code_search_function code_search_vbmi;

/* For these: returns those of the characters of more than one byte at these bits that are in the set. */
uint64_t code_search_each(const struct code_bits *set, const uint8_t *text, uint64_t doubtful);
#endif

#endif
