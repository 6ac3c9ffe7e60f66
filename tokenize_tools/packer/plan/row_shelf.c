/* SPDX-License-Identifier: MIT */
/* row_shelf.c - see row_shelf.h. */
#include "row_shelf.h"

#include <stdlib.h>
#include <string.h>

#define BINS_MOST ((uint64_t)1 << 22)

bool row_shelf_new(struct row_shelf *shelf, uint32_t most)
{
    *shelf = (struct row_shelf){0};
    while ((most >> shelf->shift) >= BINS_MOST)
        shelf->shift++;
    shelf->bins = ((uint64_t)most >> shelf->shift) + 1;
    shelf->roots = malloc(shelf->bins * sizeof *shelf->roots);
    bool complete = shelf->roots != NULL;
    uint64_t count = shelf->bins;
    for (int level = 0; level < SHELF_LEVELS; level++) {
        count = (count + 63) / 64;
        complete = (shelf->bits[level] = calloc(count, sizeof(uint64_t))) && complete;
    }
    if (!complete) {
        row_shelf_free(shelf);
        return false;
    }
    memset(shelf->roots, 0xff, shelf->bins * sizeof *shelf->roots);
    return true;
}

void row_shelf_free(struct row_shelf *shelf)
{
    free(shelf->roots);
    for (int level = 0; level < SHELF_LEVELS; level++)
        free(shelf->bits[level]);
    *shelf = (struct row_shelf){0};
}

/* ---- bins ---- */

static void bin_mark(struct row_shelf *shelf, uint64_t bin)
{
    for (int level = 0; level < SHELF_LEVELS; level++, bin /= 64)
        shelf->bits[level][bin / 64] |= (uint64_t)1 << bin % 64;
}

static void bin_clear(struct row_shelf *shelf, uint64_t bin)
{
    for (int level = 0; level < SHELF_LEVELS; level++, bin /= 64) {
        shelf->bits[level][bin / 64] &= ~((uint64_t)1 << bin % 64);
        if (shelf->bits[level][bin / 64])
            return;
    }
}

/* Returns the first bin from `bin` on that is not empty, or UINT64_MAX. */
static uint64_t bin_next(const struct row_shelf *shelf, uint64_t bin)
{
    uint64_t at = bin, words = (shelf->bins + 63) / 64;
    for (int level = 0; level < SHELF_LEVELS; level++) {
        const uint64_t word = at / 64;
        const uint64_t left = word < words ? shelf->bits[level][word] >> at % 64 : 0;
        if (left) {
            at += (uint64_t)__builtin_ctzll(left);
            while (level--)
                at = at * 64 + (uint64_t)__builtin_ctzll(shelf->bits[level][at]);
            return at;
        }
        at = word + 1;
        words = (words + 63) / 64;
    }
    return UINT64_MAX;
}

/* ---- treaps ---- */

/* Returns a row's place in the heap order of a treap. Multiplication by an odd number is a bijection, so no two are
 * equal. */
static uint32_t priority(uint32_t row)
{
    return row * 0x9e3779b1u ^ (row * 0x9e3779b1u) >> 15;
}

static bool before(const struct row_shelf *shelf, uint32_t a, uint32_t room, uint32_t row)
{
    const uint32_t of_a = shelf->rows[a].room;
    return of_a != room ? of_a < room : a < row;
}

void row_shelf_put(struct row_shelf *shelf, uint32_t row)
{
    struct shelf_row *rows = shelf->rows;
    const uint32_t room = rows[row].room, own = priority(row);
    const uint64_t bin = room >> shelf->shift;
    uint32_t *link = &shelf->roots[bin];
    if (*link == SHELF_NONE)
        bin_mark(shelf, bin);
    while (*link != SHELF_NONE && priority(*link) > own)
        link = before(shelf, *link, room, row) ? &rows[*link].right : &rows[*link].left;
    /* The treap at *link is split into the rows before and after this one. */
    uint32_t rest = *link, *less = &rows[row].left, *more = &rows[row].right;
    *link = row;
    while (rest != SHELF_NONE) {
        if (before(shelf, rest, room, row)) {
            *less = rest;
            less = &rows[rest].right;
            rest = *less;
        } else {
            *more = rest;
            more = &rows[rest].left;
            rest = *more;
        }
    }
    *less = *more = SHELF_NONE;
}

/* Removes the row at *link: the treaps below it are merged. */
static void unlink_row(struct row_shelf *shelf, uint32_t *link)
{
    struct shelf_row *rows = shelf->rows;
    uint32_t left = rows[*link].left, right = rows[*link].right;
    while (left != SHELF_NONE && right != SHELF_NONE) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &rows[left].right;
            left = *link;
        } else {
            *link = right;
            link = &rows[right].left;
            right = *link;
        }
    }
    *link = left != SHELF_NONE ? left : right;
}

/* Returns the link to the first row of a bin with at least `room`, or NULL. */
static uint32_t *link_find(struct row_shelf *shelf, uint64_t bin, uint32_t room)
{
    uint32_t *link = &shelf->roots[bin], *found = NULL;
    while (*link != SHELF_NONE) {
        struct shelf_row *at = &shelf->rows[*link];
        if (at->room >= room) {
            found = link;
            link = &at->left;
        } else {
            link = &at->right;
        }
    }
    return found;
}

uint32_t row_shelf_take(struct row_shelf *shelf, uint32_t room)
{
    uint64_t bin = bin_next(shelf, room >> shelf->shift);
    uint32_t *link = bin == UINT64_MAX ? NULL : link_find(shelf, bin, room);
    /* The rows of the bin that `room` itself is in may all have less. */
    if (!link && bin != UINT64_MAX && (bin = bin_next(shelf, bin + 1)) != UINT64_MAX)
        link = link_find(shelf, bin, room);
    if (!link)
        return SHELF_NONE;
    const uint32_t row = *link;
    unlink_row(shelf, link);
    if (shelf->roots[bin] == SHELF_NONE)
        bin_clear(shelf, bin);
    return row;
}
