/* SPDX-License-Identifier: MIT */
/*
 * train_unigram.h - makes a Unigram vocabulary from counted words, by expectation maximization and pruning, as
 * SentencePiece's trainer does:
 *
 *     1. Take the most useful texts of the words as seeds (unigram_seeds.h), and all characters.
 *     2. Twice: compute how often each piece is expected in the text if every word is written in all ways, each as
 * often as it is probable; drop pieces that are expected less than half a time; and take new probabilities from these
 *        numbers, with a prior that favors few pieces (the digamma function).
 *     3. If there are more than 1.1 times as many pieces as wanted: keep those 75% whose loss would make the text least
 *        probable, and return to step 2.
 *     4. Keep the characters and the most probable pieces.
 *
 * Expected numbers are sums of integers (LATTICE_UNIT), so the result depends neither on the number of threads nor on
 * the order of the words.
 */
#ifndef TOKMAP_TRAIN_TRAIN_UNIGRAM_H
#define TOKMAP_TRAIN_TRAIN_UNIGRAM_H

#include "train_merges.h"
#include "train_words.h"

struct unigram_options {
    uint32_t pieces;  /* the wanted number, at least that of the characters */
    uint32_t longest; /* characters of a piece, at most */
    uint64_t seeds;   /* at most; 0: UNIGRAM_SEEDS, or 10 times the pieces if that is more */
    uint32_t threads;
    const struct train_text *forbidden; /* texts that must not become pieces, unless they are single characters */
    uint32_t forbidden_count;
    void (*progress)(void *user, uint64_t pieces); /* how many pieces there are; may be NULL */
    bool (*stop)(void *user);                      /* called often, by any thread: true ends the work; may be NULL */
    void *user;
};
#define UNIGRAM_SEEDS 1000000
#define UNIGRAM_LONGEST 16
#define UNIGRAM_LONGEST_MOST 64

struct unigram_vocabulary {
    uint32_t count;
    struct train_text *pieces; /* UTF-8, in descending order of scores */
    float *scores;             /* natural logarithms of probabilities */
    uint8_t *bytes;            /* `pieces` points into this */
    uint64_t tokens;           /* of the text, without characters that are not covered */
};

/* Trains. Free *vocabulary with unigram_vocabulary_free() after success. Statuses: OK, ERROR_LIMIT (the budget is too
 * small, or the text is too large), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status train_unigram(struct unigram_vocabulary *vocabulary, const struct unigram_words *words,
                                 struct train_budget *budget, const struct unigram_options *options,
                                 struct tokmap_error *error);
void unigram_vocabulary_free(struct unigram_vocabulary *vocabulary);

#endif
