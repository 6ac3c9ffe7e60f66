/*
 * sp_cut.h - the borders of characters that no token of a SentencePiece-style vocabulary crosses.
 *
 * Whether two characters stand side by side in a token is told by their first bytes, coarsely: first bytes on the right
 * of a border are put in up to 16 groups, and each first byte on the left has the groups that it joins. Two looks-up
 * and an AND tell it of 64 borders at once. What is then still open between two characters of three bytes (Han, kana,
 * Thai ...) is looked up by both characters in the joins of the bpe_model, a filter of bits.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_CUT_H
#define TOKMAP_SENTENCEPIECE_SP_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pretokenize/scanner.h"

struct bpe_model;

/* By the first byte of a character, groups 0 to 7 and 8 to 15. */
struct sp_cut_table {
    uint8_t left[2][256];
    uint8_t right[2][256];
    bool tall;  /* some tokens join characters of three bytes: look closer */
    bool marks; /* U+2581 is to be told of */
};

/* What tokens join: bit [left][right], by first bytes. */
struct sp_relation {
    uint64_t bits[256][4];
};

/* Makes groups of a relation, such that no border is cut that must not be. False: no memory. */
bool sp_cut_table_build(struct sp_cut_table *table, const struct sp_relation *relation);

/* Sets bit i of `starts` where text is cut before text[i], for `count` bytes; bit 0 is set. Text begins with a
 * character; `readable` bytes, at least count, may be read. The bits behind count up to the end of the word are 0.
 * Returns whether a U+2581 begins in the text, if table->marks: then the bits behind it do not count. */
typedef bool sp_cut_function(const struct sp_cut_table *table, const struct bpe_model *joins, const uint8_t *text,
                             size_t count, size_t readable, uint64_t *starts);
sp_cut_function sp_cut_scalar;
#if defined(__x86_64__)
sp_cut_function sp_cut_avx2;
sp_cut_function sp_cut_vbmi;
#endif
sp_cut_function *sp_cut_variant(enum cpu_variant variant);

/* Between the files: of the borders `open` in the block that begins at text[from], all between characters of three
 * bytes (the second may have four), those that no token joins. */
uint64_t sp_cut_tall(const struct bpe_model *joins, const uint8_t *text, size_t from, size_t readable, uint64_t open);

#endif
