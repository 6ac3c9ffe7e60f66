/* SPDX-License-Identifier: MIT */
/*
 * unigram_lattice.h - all ways to write a run of characters as pieces of a Unigram model. The probability of a way is
 * the product of those of its pieces.
 *
 * Where no piece is a single character, that character stands for itself, with the probability `unknown`. So every run
 * can be written. Probabilities are products of plain numbers, not sums of logarithms: when they get too small, those
 * of the characters ahead are scaled by a power of two.
 */
#ifndef TOKMAP_TRAIN_UNIGRAM_LATTICE_H
#define TOKMAP_TRAIN_UNIGRAM_LATTICE_H

#include "train_pieces.h"

#define TRIE_NO_PIECE UINT32_MAX

struct trie_node {
    uint32_t base, parent;
    uint32_t piece;    /* its number, or TRIE_NO_PIECE */
    float probability; /* of the piece */
};

/* The pieces of a Unigram model over the numbers of characters, with their probabilities: a double array, in which the
 * child of a node for character c is the node base + c if that node names it as its parent. */
struct unigram_trie {
    struct trie_node *nodes; /* the root is number 0 */
    uint32_t *node_of;       /* the node of each piece */
    uint64_t count;          /* of nodes */
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

#define LATTICE_RUN 2048 /* characters of a run, at most */

/* The state of one thread. */
struct unigram_lattice {
    const struct unigram_trie *trie;
    double unknown;
    uint32_t longest;           /* characters of a piece, at most */
    double *forward, *backward; /* `forward` begins the memory of all that follow */
    int32_t *shifts;            /* of forward[i]: it is that many times scaled */
    struct lattice_edge *edges;
    uint64_t memory; /* bytes */
    struct lattice_step {
        uint32_t piece, length; /* the piece that ends here in the best way, and its characters */
    } * best;
};

/* Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_lattice_make(struct unigram_lattice *lattice, uint32_t longest, struct train_budget *budget,
                                        struct tokmap_error *error);
void unigram_lattice_free(struct unigram_lattice *lattice, struct train_budget *budget);

/* Expected numbers of pieces are integers in this unit, so that their sums do not depend on their order. */
#define LATTICE_UNIT ((double)(1 << 20))

/* Adds to expected[piece] how often each piece is expected in `times` runs of these characters, in LATTICE_UNITs. count
 * is 1 to LATTICE_RUN. */
void unigram_lattice_expect(struct unigram_lattice *lattice, const uint32_t *codes, uint32_t count, uint64_t times,
                            uint64_t *expected);

/* Finds the most probable way, of equal ones that whose last piece is longest. Writes its pieces (TRIE_NO_PIECE: a
 * character that stands for itself) from the last one to the first, at most `count`, and their number, and returns its
 * probability, which is only exact if it is above 2^-900. but: a piece that must not be used, or TRIE_NO_PIECE. */
double unigram_lattice_best(struct unigram_lattice *lattice, const uint32_t *codes, uint32_t count, uint32_t but,
                            uint32_t *pieces, uint32_t *piece_count);

#endif
