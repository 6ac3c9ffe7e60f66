/* SPDX-License-Identifier: MIT */
/* unigram_words.h - the distinct words of a text as numbers of characters (train_characters.h). */
#ifndef TOKMAP_TRAIN_UNIGRAM_WORDS_H
#define TOKMAP_TRAIN_UNIGRAM_WORDS_H

#include "train_characters.h"

struct unigram_word {
    uint64_t begin; /* of its characters in `codes`; a 0 follows them */
    uint64_t times;
};

struct unigram_words {
    const struct train_characters *characters;
    uint32_t *codes;            /* 0: a character that is not covered, or the end of a word */
    struct unigram_word *words; /* one more than `count`, whose begin is the end */
    uint64_t count, code_count;
    uint64_t code_room, word_room; /* of the arrays */
};

/* Moves the words out of *pieces, which is empty afterwards. In them a space stands for U+2581. The characters must
 * outlive *words. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_words_make(struct unigram_words *words, struct train_pieces *pieces,
                                      const struct train_characters *characters, struct train_budget *budget,
                                      struct tokmap_error *error);
void unigram_words_free(struct unigram_words *words, struct train_budget *budget);

#endif
