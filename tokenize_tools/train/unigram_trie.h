/* SPDX-License-Identifier: MIT */
/*
 * unigram_trie.h - the pieces of a Unigram model in a trie over the numbers of characters, with their probabilities: a
 * double array, in which the child of a node for character c is the node base + c if that node names it as its parent.
 */
#ifndef TOKMAP_TRAIN_UNIGRAM_TRIE_H
#define TOKMAP_TRAIN_UNIGRAM_TRIE_H

#include "train_memory.h"

#define TRIE_NO_PIECE UINT32_MAX

struct trie_node {
    uint32_t base, parent;
    uint32_t piece;    /* its number, or TRIE_NO_PIECE */
    float probability; /* of the piece */
};

struct unigram_trie {
    struct trie_node *nodes; /* the root is number 0 */
    uint32_t *node_of;       /* the node of each piece */
    uint64_t count, bytes;   /* nodes; reserved in the budget */
    uint32_t piece_count;
};

/* A piece: characters by their numbers, which are 1 or more. */
struct unigram_piece {
    const uint32_t *codes;
    uint32_t count;
};

/* Builds the trie of distinct pieces in ascending order. largest: the largest number of a character. All probabilities
 * are 0. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_trie_make(struct unigram_trie *trie, const struct unigram_piece *pieces, uint32_t count,
                                     uint32_t largest, struct train_budget *budget, struct tokmap_error *error);
void unigram_trie_free(struct unigram_trie *trie, struct train_budget *budget);

static inline const struct trie_node *trie_step(const struct unigram_trie *trie, const struct trie_node *from,
                                                uint32_t code)
{
    const struct trie_node *to = &trie->nodes[from->base + code];
    return to->parent == (uint32_t)(from - trie->nodes) ? to : NULL;
}

#endif
