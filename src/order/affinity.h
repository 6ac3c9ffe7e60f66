/* SPDX-License-Identifier: MIT */
/*
 * affinity.h - which node gets which row of a step, so that the rows of a block of storage go to few nodes: a function
 * of integers, the same on every machine.
 *
 * The blocks of an epoch have numbers in the order in which they are used, and block k is at home on node k mod N. Rows
 * are taken by their place in their block, those of equal places by number. In the first round, each row goes to its
 * home while that has room; in round i, each row that is left goes to the node i * s after its home (modulo N), if that
 * has room. s is the least number from ceil(0.618 * N) on that has no divisor in common with N, so all nodes are tried.
 * affinity.c says why.
 */
#ifndef TOKMAP_ORDER_AFFINITY_H
#define TOKMAP_ORDER_AFFINITY_H

#include "tokmap/tokmap.h"

struct affinity_row {
    uint64_t row;  /* its number, 0 to count - 1 */
    uint64_t at;   /* its place in its block */
    uint64_t home; /* below the number of nodes */
};

/* Writes the node of each row to node_of[row]. The rows are then in no order, and room[] is used up.
 *   rows   `count` of them
 *   room   by node, `nodes` of them: `count` together */
void affinity_rows(struct affinity_row *rows, uint64_t count, uint64_t *room, uint64_t nodes, uint64_t *node_of);

#endif
