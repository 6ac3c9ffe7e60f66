/* SPDX-License-Identifier: MIT */
/*
 * affinity.c - see affinity.h.
 *
 * The number of rows that a node takes is given, but how many rows of a step are at home there is not: with `order
 * blocks`, it varies as the square root of the number does. So some rows must go elsewhere, and each of them makes
 * another node read the part of the block that it is in. It is cheap if they are always rows of the same parts and go
 * to the same nodes. Therefore the rows that are last in their blocks are the ones that move, and each block has one
 * sequence of nodes for them.
 *
 * Example: two nodes of two rows, and rows 0 to 3 of the blocks 4, 4, 5, 4 at the places 7, 0, 3, 1. Block 4 is at home
 * on node 0 and block 5 on node 1. Node 0 takes rows 1 and 3 and is full; row 2 is at home on node 1, and row 0 follows
 * it there.
 *
 * No rule reaches one reader for each block. Of a node that takes g rows of each step, at most the share e of its
 * blocks can be its own, with e + z * sqrt(e / g) = 1, if the rows of these may exceed g as rarely as a normal number
 * exceeds z: 73% with 64 rows and z = 2.5, and 54% with 16 rows. All other blocks have two readers or more.
 */
#include "affinity.h"

#include <assert.h>
#include <stdlib.h>

static int by_place(const void *a, const void *b)
{
    const struct affinity_row *one = a, *other = b;
    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    return one->row < other->row ? -1 : one->row > other->row;
}

void affinity_rows(struct affinity_row *rows, uint64_t count, uint64_t *room, uint64_t nodes, uint64_t *node_of)
{
    qsort(rows, count, sizeof *rows, by_place);
    for (uint64_t round = 0; count; round++) {
        uint64_t left = 0;
        assert(round < nodes);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t after = nodes - rows[i].home; /* nodes from the home to the last one, itself included */
            const uint64_t node = round < after ? rows[i].home + round : round - after;
            if (!room[node]) {
                rows[left++] = rows[i];
                continue;
            }
            room[node]--;
            node_of[rows[i].row] = node;
        }
        count = left;
    }
}
