/* SPDX-License-Identifier: MIT */
/*
 * sp_cut.h - where a text can be cut into pieces, because no merge of a SentencePiece-style vocabulary crosses the
 * place.
 *
 * The idea. A merge can cross the border of two characters only if some token holds the two side by side. Of all the
 * pairs of characters only few are held so, for example hardly any letter followed by a space. The obvious way is to
 * look up each pair of characters in a table, one lookup for each character of the text, and a table of all pairs would
 * not fit any cache. So the question is answered in two steps:
 *
 *   1. By first bytes, for 64 borders at once. The first bytes of characters on the right of a border are put in up
 *      to 16 groups (sp_cut.c chooses them). Each first byte has 16 bits for its use on the left (the groups that some
 *      token joins it to) and 16 for its use on the right (one bit, its own group). If left AND right is 0, no token
 *      crosses the border.
 *   2. Between two characters of three bytes (Chinese, Japanese, Thai, ...), where first bytes say little, what step 1
 *      leaves open is looked up by both characters, in the joins of the bpe_model, a filter of bits.
 *
 * Both steps may miss a place to cut, which only makes a piece longer, but never cut where a merge could cross.
 *
 * Example: in "cat sat" some token holds "ca", some "at", but none "t" followed by a space: at that border left AND
 * right is 0. At all others they have a common bit. So the pieces are "cat" and " sat".
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_CUT_H
#define TOKMAP_SENTENCEPIECE_SP_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pretokenize/scanner.h"

struct bpe_model;

/* By the first byte of a character: bits of groups 0 to 7, and 8 to 15. */
struct sp_cut_table {
    uint8_t left[2][256];  /* the groups that the character is joined to when it is on the left */
    uint8_t right[2][256]; /* its group when it is on the right; 0: nothing is joined to it */
    bool tall;             /* some tokens join characters of three bytes, so step 2 is needed */
    bool marks;            /* an sp_cut_function reports U+2581 */
};

/* First bytes that are side by side in tokens: bit [left][right]. */
struct sp_relation {
    uint64_t bits[256][4];
};

/* Fills left and right of a table, so that no border is cut whose bit is set in the relation. Returns false if memory
 * ran out. */
bool sp_cut_table_build(struct sp_cut_table *table, const struct sp_relation *relation);

/* Sets bit i of `starts` where the text is cut before text[i], for `count` bytes (at least 1); bit 0 is always set, and
 * the bits from `count` up to the end of their word are 0. The text begins with a character; `readable` bytes of it, at
 * least `count`, may be read. If table->marks, returns whether a U+2581 begins in the text; the bits after it are then
 * not meaningful. Otherwise returns false. */
typedef bool sp_cut_function(const struct sp_cut_table *table, const struct bpe_model *joins, const uint8_t *text,
                             size_t count, size_t readable, uint64_t *starts);
sp_cut_function sp_cut_scalar;
#if defined(__x86_64__)
sp_cut_function sp_cut_avx2;
sp_cut_function sp_cut_vbmi;
#endif

/* Returns where the piece that begins at text[0] ends; there is no cut before `from`. count: it ends with the text.
 * starts: room for SCAN_BYTES. Returns 0 and sets *marked if a U+2581 was found. */
size_t sp_cut_end(sp_cut_function *cut, const struct sp_cut_table *table, const struct bpe_model *joins,
                  const uint8_t *text, size_t from, size_t count, uint64_t *starts, bool *marked);

/* Returns the function for a CPU variant. */
sp_cut_function *sp_cut_variant(enum cpu_variant variant);

/* Step 2, for sp_cut.c and its CPU variants. open: borders in the block of 64 bytes at text[from], all between
 * characters of three bytes (the second may have four). Returns those that no token crosses. */
uint64_t sp_cut_tall(const struct bpe_model *joins, const uint8_t *text, size_t from, size_t readable, uint64_t open);

#endif
