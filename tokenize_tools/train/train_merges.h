/* SPDX-License-Identifier: MIT */
/*
 * train_merges.h - makes a vocabulary from counted pieces: decides which pairs of tokens merge, the most frequent
 * first.
 *
 * This is byte-level BPE as Hugging Face's trainer defines it. At first every byte is a token. While the vocabulary is
 * not full, the pair of adjacent tokens that is most frequent over all pieces becomes a new token, and each of its
 * places is replaced by that token. Of equally frequent pairs, the one with the smaller left id wins, then the one with
 * the smaller right id. A run of n equal tokens counts as n - 1 pairs and merges from the left. So the result is a
 * function of the pieces' counts alone.
 *
 * Ids 0 to 255 are the bytes, in the order of the characters that represent them (train_byte_of()). Each merge adds the
 * next id.
 */
#ifndef TOKMAP_TRAIN_TRAIN_MERGES_H
#define TOKMAP_TRAIN_TRAIN_MERGES_H

#include "train_pieces.h"

struct train_text {
    const uint8_t *bytes;
    uint64_t count;
};

struct train_options {
    uint32_t tokens;                    /* the wanted size of the vocabulary, 256 to TRAIN_TOKENS_MOST */
    uint64_t min_frequency;             /* pairs that are less frequent never merge */
    const struct train_text *forbidden; /* the bytes of tokens that must not be made */
    uint32_t forbidden_count;
    void (*progress)(void *user, uint64_t tokens); /* called before each merge with the size so far; may be NULL */
    bool (*stop)(void *user);                      /* called before each merge: true ends the work; may be NULL */
    void *user;
};
#define TRAIN_TOKENS_MOST (1u << 20)

struct train_vocabulary {
    uint32_t count;            /* of tokens; less than was asked for if no pair is left */
    struct train_text *tokens; /* `count` of them, by id */
    struct bpe_merge *merges;  /* count - 256 of them, in the order in which they were made */
    uint8_t *bytes;            /* `tokens` points into this */
    uint64_t trained_tokens;   /* number of tokens of the text, encoded with this vocabulary */
};

/* Makes a vocabulary. The pieces are moved out of *pieces, which is empty afterwards. The trainer's own memory, which
 * is freed before the function returns, is reserved in the budget. Free *vocabulary with train_vocabulary_free() after
 * success. Statuses: OK, ERROR_LIMIT (the budget is too small, or there are more than 2^32 distinct pieces),
 * ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status train_merges(struct train_vocabulary *vocabulary, struct train_pieces *pieces,
                                struct train_budget *budget, const struct train_options *options,
                                struct tokmap_error *error);
void train_vocabulary_free(struct train_vocabulary *vocabulary);

uint8_t train_byte_of(uint32_t id); /* returns the byte whose token has this id, which is below 256 */
uint32_t train_id_of(uint8_t byte); /* returns the id of a byte's token, below 256 */

#endif
