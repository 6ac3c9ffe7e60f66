/* SPDX-License-Identifier: MIT */
/*
 * train_words.h - cuts documents into words for models whose pieces are made of characters, counts the words, and
 * chooses the characters that a model has pieces for.
 */
#ifndef TOKMAP_TRAIN_TRAIN_WORDS_H
#define TOKMAP_TRAIN_TRAIN_WORDS_H

#include "train_pieces.h"

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

/* Characters have numbers from 1, the required ones first, then the most frequent ones. */
struct train_characters {
    uint32_t *number_of; /* by code point; 0: it has none, so it is not covered */
    uint32_t *codes;     /* code points by number; element 0 is unused */
    uint64_t *times;     /* of each in the text, by number */
    uint32_t count;
    uint64_t room;                       /* elements of `codes` and `times` */
    uint64_t uncovered, uncovered_bytes; /* characters of the text, with repetitions, and the bytes of their UTF-8 */
    uint64_t all;                        /* characters of the text, with repetitions */
};

/* Chooses the required characters, then the most frequent ones until they are this share of the text. A space in the
 * words counts as U+2581. U+0000 is never covered. All counters of the words must be finished. Statuses: OK,
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_characters_choose(struct train_characters *characters, const struct train_pieces *pieces,
                                           double coverage, const uint32_t *required, uint32_t required_count,
                                           struct train_budget *budget, struct tokmap_error *error);
void train_characters_free(struct train_characters *characters, struct train_budget *budget);

/* The distinct words of a text as numbers of characters. */
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
