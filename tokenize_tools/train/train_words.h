/* SPDX-License-Identifier: MIT */
/*
 * train_words.h - cuts documents into words for models whose pieces are made of characters, and counts the words.
 */
#ifndef TOKMAP_TRAIN_TRAIN_WORDS_H
#define TOKMAP_TRAIN_TRAIN_WORDS_H

#include "train_memory.h"

#define TRAIN_SPACE 0x2581u /* what stands for a space in pieces */

/* What a piece of a Unigram model may be, as in SentencePiece's trainer. A word begins with its space, if it has one.
 * Where no piece can cross from one character to the next, the words are cut, too: this changes nothing, and the
 * distinct words are far fewer. Line feeds are cut off from other characters. */
struct train_word_rules {
    bool scripts;      /* no piece has letters of several scripts */
    bool numbers;      /* ASCII and fullwidth digits are characters of the script Common; false: of any */
    bool digits;       /* ASCII and fullwidth digits are pieces of their own */
    bool dummy_prefix; /* a document begins with a space that it does not have */
};

struct train_cutter;

/* Creates a cutter, which several threads may use. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_cutter_new(struct train_cutter **cutter, const struct train_word_rules *rules,
                                    struct train_budget *budget, struct tokmap_error *error);
void train_cutter_free(struct train_cutter *cutter, struct train_budget *budget); /* accepts NULL */

/* Counts the words of one whole document, which is valid UTF-8. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_words_count(const struct train_cutter *cutter, struct train_counter *counter,
                                     const uint8_t *text, uint64_t count, struct tokmap_error *error);

#endif
