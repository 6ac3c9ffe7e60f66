/*
 * train_merges.h - pieces to a vocabulary: which pairs merge, the most frequent first.
 *
 * Byte-level BPE as Hugging Face's trainer has it: while the vocabulary is not full, the pair of neighbours that is
 * most frequent, over all pieces, becomes a token; of equals, the one with the smaller left id, then the smaller right
 * id. A run of n equal tokens holds n - 1 pairs, and merges from the left. So the result is a function of the counts
 * alone.
 *
 * Ids: 0 to 255 are the bytes, in the order of the characters that stand for them (train_byte_of); then a token a
 * merge.
 */
#ifndef TOKMAP_TRAIN_TRAIN_MERGES_H
#define TOKMAP_TRAIN_TRAIN_MERGES_H

#include "train_pieces.h"

struct train_text {
    const uint8_t *bytes;
    uint64_t count;
};

struct train_options {
    uint32_t tokens;                    /* that the vocabulary is to have, at least 256, at most TRAIN_TOKENS_MOST */
    uint64_t min_frequency;             /* pairs that are less frequent never merge */
    const struct train_text *forbidden; /* tokens that must not be made */
    uint32_t forbidden_count;
    void (*progress)(void *user, uint64_t tokens); /* called often; either may be NULL */
    bool (*stop)(void *user);
    void *user;
};
#define TRAIN_TOKENS_MOST (1u << 20)

struct train_vocabulary {
    uint32_t count;            /* 256 and the merges; fewer than were asked for where no pair is left */
    struct train_text *tokens; /* by id */
    struct bpe_merge *merges;  /* count - 256 */
    uint8_t *bytes;
    uint64_t trained_tokens; /* that the text has with this vocabulary */
};

/* Takes the pieces' contents. budget: what it uses at most, beside the pieces. train_vocabulary_free after success.
 * Statuses: OK, ERROR_LIMIT, ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status train_merges(struct train_vocabulary *vocabulary, struct train_pieces *pieces,
                                struct train_budget *budget, const struct train_options *options,
                                struct tokmap_error *error);
void train_vocabulary_free(struct train_vocabulary *vocabulary);

/* The byte that has this id; and the id of a byte. */
uint8_t train_byte_of(uint32_t id);
uint32_t train_id_of(uint8_t byte);

#endif
