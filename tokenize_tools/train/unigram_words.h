/* SPDX-License-Identifier: MIT */
/*
 * unigram_words.h - the distinct words of a text as numbers of characters, and the characters that a model must have.
 */
#ifndef TOKMAP_TRAIN_UNIGRAM_WORDS_H
#define TOKMAP_TRAIN_UNIGRAM_WORDS_H

#include "train_memory.h"

struct unigram_word {
    uint64_t begin; /* of its characters in `codes`; a 0 follows them */
    uint64_t times;
};

/* Characters have numbers from 1, the most frequent first. Those that are not covered have 0. */
struct unigram_words {
    uint32_t *codes;
    struct unigram_word *words; /* one more than `count`, whose begin is the end */
    uint64_t count, code_count;
    uint64_t code_room, word_room, character_room; /* of the arrays */
    uint32_t *characters;          /* code points by number; element 0 is unused */
    uint64_t *character_times;
    uint32_t character_count;
    uint64_t uncovered, uncovered_bytes; /* characters of the text, with repetitions, and the bytes of their UTF-8 */
    uint64_t all;                        /* characters of the text */
};

/* Moves the words out of *pieces, which is empty afterwards. In them a space stands for U+2581. The characters that are
 * covered are the required ones, then the most frequent ones until they are this share of the text. Statuses: OK,
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_words_make(struct unigram_words *words, struct train_pieces *pieces, double coverage,
                                      const uint32_t *required, uint32_t required_count, struct train_budget *budget,
                                      struct tokmap_error *error);
void unigram_words_free(struct unigram_words *words, struct train_budget *budget);

#endif
