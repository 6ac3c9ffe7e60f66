/* SPDX-License-Identifier: MIT */
/*
 * balance.h - which cell gets which row, so that the sums of the rows' costs differ little: a function of integers, the
 * same on every machine. A cell is a call of a rank, and its number of rows is given.
 *
 * Rows are taken by falling cost, those of equal cost by number. Each is put into the cell that has the least cost so
 * far, of those that still have room; of cells with equal cost, into the one with the lowest number. balance.c says how
 * good that is.
 */
#ifndef TOKMAP_ORDER_BALANCE_H
#define TOKMAP_ORDER_BALANCE_H

#include "tokmap/tokmap.h"

/* Sums of costs must fit in it. */
typedef unsigned __int128 balance_cost;

struct balance_row {
    balance_cost cost;
    uint64_t row;  /* its number, 0 to count - 1 */
    uint64_t cell; /* the number of its cell */
};

struct balance_cell {
    balance_cost cost;
    uint64_t number;
    uint64_t room; /* rows that it still takes */
};

/* Sets the cell of each row, and sorts the rows by falling cost. The cells are then in no order.
 *   rows   `count` of them, with cost and row
 *   cells  `cell_count` of them, in the order of their numbers, with their room and a cost of 0; they have room for
 * `count` rows together O(count * log(count)). */
void balance_rows(struct balance_row *rows, uint64_t count, struct balance_cell *cells, uint64_t cell_count);

#endif
