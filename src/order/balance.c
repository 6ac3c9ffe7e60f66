/* SPDX-License-Identifier: MIT */
/*
 * balance.c - see balance.h.
 *
 * To find the best assignment is NP-hard. This one, "longest processing time first" with a limit on the rows of a cell,
 * is close to it where a cell has several rows and no row costs much more than the others: the last rows, which are
 * cheap, fill the differences that the first ones leave. test_balance.c compares the two for small steps.
 *
 * Example: rows with the costs 9, 7, 6, 5, 4, 1 and three cells of two rows. The rows 9, 7, 6 open the cells; 5 joins
 * 6, which is the least, 4 joins 7, and 1 joins 9: the sums are 10, 11, 11. In their order, rows would give 16, 11, 5.
 *
 * The cells with room are a heap whose root is the one with the least cost; cells in the order of their numbers, all of
 * them with a cost of 0, are one. Two cells never compare equal, so the result does
 * not depend on how the heap is arranged.
 */
#include "balance.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

static int by_cost(const void *a, const void *b)
{
    const struct balance_row *one = a, *other = b;
    if (one->cost != other->cost)
        return one->cost > other->cost ? -1 : 1;
    return one->row < other->row ? -1 : one->row > other->row;
}

static bool is_less(const struct balance_cell *one, const struct balance_cell *other)
{
    return one->cost != other->cost ? one->cost < other->cost : one->number < other->number;
}

/* Restores the heap below cell i, which has grown. */
static void sift(struct balance_cell *heap, uint64_t count, uint64_t i)
{
    const struct balance_cell moved = heap[i];
    for (uint64_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && is_less(&heap[child + 1], &heap[child]);
        if (!is_less(&heap[child], &moved))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

void balance_rows(struct balance_row *rows, uint64_t count, struct balance_cell *cells, uint64_t cell_count)
{
    uint64_t open = 0;
    for (uint64_t i = 0; i < cell_count; i++)
        if (cells[i].room)
            cells[open++] = cells[i];
    qsort(rows, count, sizeof *rows, by_cost);
    for (uint64_t i = 0; i < count; i++) {
        assert(open);
        rows[i].cell = cells[0].number;
        cells[0].cost += rows[i].cost;
        if (!--cells[0].room)
            cells[0] = cells[--open];
        if (open)
            sift(cells, open, 0);
    }
}
