/* SPDX-License-Identifier: MIT */
/*
 * row_shelf.h - the rows that have room, by room: finds the one with the least room that is enough, and of several such
 * rows the one with the lowest number.
 *
 * Room is an integer below 2^32. It is divided into up to 2^22 bins of equal width (of width 1 while the largest room
 * is below 2^22). A tree of bitmaps, 64 bits a word, finds the next bin that is not empty in O(log bins). The rows of a
 * bin are a treap: a binary search tree by (room, number) whose shape depends on a hash of the row's number, so it is
 * balanced whatever the order in which rows come and go. Example: rows 4 and 7 have 10 tokens of room, and row 2 has
 * 12. A request for 9 tokens goes to bin 10, whose lowest row is 4.
 *
 * A list of rows per bin would be faster, but could not find the lowest row: rows reach the same room in any order.
 */
#ifndef TOKMAP_PLAN_ROW_SHELF_H
#define TOKMAP_PLAN_ROW_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#define SHELF_LEVELS 4
#define SHELF_NONE UINT32_MAX

struct shelf_row {
    uint32_t room;
    uint32_t left, right; /* rows below it in the treap of its bin, or SHELF_NONE */
    uint32_t segments;    /* for the caller */
};

struct row_shelf {
    struct shelf_row *rows; /* the caller's, which may move it between calls */
    uint32_t shift;         /* a bin holds 2^shift values of room */
    uint64_t bins;
    uint32_t *roots;              /* per bin, or SHELF_NONE */
    uint64_t *bits[SHELF_LEVELS]; /* level 0 has a bit per bin, each level above it a bit per word */
};

/* Makes an empty shelf for rooms up to `most`. Returns false without memory; there is then nothing to free. */
bool row_shelf_new(struct row_shelf *shelf, uint32_t most);
void row_shelf_free(struct row_shelf *shelf);

/* Adds a row that is not on the shelf, with the room that rows[row].room says. */
void row_shelf_put(struct row_shelf *shelf, uint32_t row);
/* Removes and returns the row with the least room that is at least `room`; SHELF_NONE if no row has it. */
uint32_t row_shelf_take(struct row_shelf *shelf, uint32_t room);

#endif
