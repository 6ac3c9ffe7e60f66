/* SPDX-License-Identifier: MIT */
/*
 * unigram_seeds.h - the pieces that training of a Unigram model begins with: of all texts of two characters or more
 * that occur at least twice and continue in at least two ways, or end a word, those with the most characters times
 * occurrences.
 *
 * These are the inner nodes of the tree of all suffixes, as in SentencePiece. The suffixes of the distinct words are
 * sorted by quicksort on one character after another, as deep as pieces are long, so a word counts once, however often
 * it occurs. Suffixes that begin with the same character are sorted by one thread.
 */
#ifndef TOKMAP_TRAIN_UNIGRAM_SEEDS_H
#define TOKMAP_TRAIN_UNIGRAM_SEEDS_H

#include "train_words.h"

struct unigram_seed {
    uint64_t score; /* characters times occurrences */
    uint32_t at;    /* one of its places in words->codes */
    uint32_t count; /* characters */
};

struct unigram_seeds {
    struct unigram_seed *seeds; /* in descending order of score, then in ascending order of their characters */
    uint64_t count, room;
};

/* Finds at most `most` seeds of at most `longest` characters. Statuses: OK, ERROR_LIMIT, ERROR_INTERRUPTED,
 * ERROR_MEMORY. */
enum tokmap_status unigram_seeds_find(struct unigram_seeds *seeds, const struct unigram_words *words, uint64_t most,
                                      uint32_t longest, uint32_t threads, bool (*stop)(void *user), void *user,
                                      struct train_budget *budget, struct tokmap_error *error);
void unigram_seeds_free(struct unigram_seeds *seeds, struct train_budget *budget);

#endif
