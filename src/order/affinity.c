/* SPDX-License-Identifier: MIT */
/*
 * affinity.c - see affinity.h.
 *
 * The number of rows that a node takes is given, but how many rows of a step are at home there is not. So some rows
 * must go elsewhere, and each of them makes another node read the part of the block that it is in. It is cheap if these
 * are always rows of the same parts, and go to the same nodes. Therefore the rows that are last in their blocks are the
 * ones that move, and each block has one sequence of nodes for them. Nodes that have too many rows are neighbors where
 * the sources of a mixture have drawn unequally, so the sequence leads far away.
 *
 * With `order even` and one source, nodes have too many rows by at most one, and in a mixture by some. With 64 nodes of
 * 16 rows a step, and blocks of 64 MiB that are read in parts of 4 MiB, each byte was read 1.07 times with one source,
 * and 1.5 times with weights of 80, 10, and 10; of 64 rows, 1.07 and 1.2 times.
 *
 * With `order blocks`, the number of rows at home varies as its square root does, and no rule comes near one reader for
 * each block. Of a node that takes g rows of each step, at most the share e of its blocks can be its own, with
 * e + z * sqrt(e / g) = 1, if the rows of these may exceed g as rarely as a normal number exceeds z: 54% with 16 rows
 * and z = 2.5, and 73% with 64 rows. All other blocks have two readers or more; these rules gave 5.5 with 16 rows.
 *
 * Example: two nodes of two rows, and rows 0 to 3 of the blocks 4, 4, 5, 4 at the places 7, 0, 3, 1. Block 4 is at home
 * on node 0 and block 5 on node 1. Node 0 takes rows 1 and 3 and is full; row 2 is at home on node 1, and row 0 follows
 * it there.
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

/* Returns s. Below 2^54 nodes nothing overflows. */
static uint64_t stride_of(uint64_t nodes)
{
    for (uint64_t s = (nodes * 618 + 999) / 1000;; s++) {
        uint64_t a = s, b = nodes;
        while (b) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return s;
    }
}

void affinity_rows(struct affinity_row *rows, uint64_t count, uint64_t *room, uint64_t nodes, uint64_t *node_of)
{
    qsort(rows, count, sizeof *rows, by_place);
    const uint64_t step = stride_of(nodes) % nodes;
    for (uint64_t round = 0, away = 0; count; round++, away = (away + step) % nodes) {
        uint64_t left = 0;
        assert(round < nodes);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t node = (rows[i].home + away) % nodes;
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
