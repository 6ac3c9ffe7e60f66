/* SPDX-License-Identifier: MIT */
/*
 * assignment.h - which rank gets which row of a step, and in which call.
 *
 * A step of G rows has G positions, in the order of ranks and calls: rank r of R has the positions floor(r G / R) to
 * floor((r + 1) G / R) - 1, its slice, and its calls divide the slice in the same way (run_call_rows()). By default,
 * position i has row i. An assignment is a permutation of the step's rows, so each call keeps its number of rows, and
 * the global batch stays the same. It follows from the run, the data, and the ranks alone: every rank computes the same
 * one, for any step, without asking the others.
 *
 * Balanced rows (balance.h) differ little in the cost of each call. Where no assignment makes calls equal, the first
 * calls of all ranks get the rows that cost most, and so on, so that the ranks wait little for each other. The rows of
 * a call are in the order of their numbers, so padding comes last.
 *
 * With `order blocks` and several nodes, a node gets rows of the same blocks in all steps of a span, so that a block is
 * read by about one node and not by all of them. The blocks of an epoch have numbers in the order in which they are
 * used, and block k is at home on node k mod N. Rows are taken by their place in their block, those of equal places by
 * number. In the first round, each row goes to its home while that has room; in round i, each row that is left goes to
 * the node i * s after its home (modulo N), if that has room. s is the least number from ceil(0.618 * N) on that has no
 * divisor in common with N, so all nodes are tried. assignment.c says why.
 */
#ifndef TOKMAP_RUN_ASSIGNMENT_H
#define TOKMAP_RUN_ASSIGNMENT_H

#include "locate.h"
#include "order/balance.h"

struct affine_row;

/* What decides it, besides the run. */
struct assignment_rule {
    uint64_t world;
    uint64_t rows;  /* the most of a call; 0: a rank's whole slice */
    uint64_t scale; /* of row_cost.h: rows are balanced. 0: they are not */
    uint64_t nodes; /* rank r is on node r / (world / nodes), and nodes have rows by block; 0 and 1: they do not */
};

/* One thread at a time may use it. */
struct assignment {
    const struct tokmap_run *run;
    struct assignment_rule rule;
    bool known;         /* the members up to `cells` hold values of `step` */
    uint64_t step;      /* of the last assignment_step() */
    uint64_t *row_at;   /* by position; NULL: rows stay in their order */
    balance_cost *cost; /* by row */
    uint64_t cells;     /* calls of all ranks; call k of rank r has the number k * world + r */
    /* For computing it: */
    struct run_walk walk;
    struct affine_row *affine;
    struct balance_row *sorted;
    struct balance_cell *cell;
    uint64_t *cell_of; /* by row: its cell, or its node */
    uint64_t *reached; /* by cell or node: its next position */
    uint64_t *room;    /* by node: rows that it still takes */
    struct tokmap_place *places;
    struct tokmap_extent *extents; /* of one row */
};

/* Begins an assignment. Memory: about 80 bytes for each row of the largest step, none if rows stay in their order. Free
 * it with assignment_free(), after a failure too. rule->world is at most the rows of each step that is asked for.
 * Statuses: OK, ERROR_UNSUPPORTED (a source has no document index; with nodes, the run has no blocks, or rows are
 * balanced, too), ERROR_RANGE (nodes do not divide the world), ERROR_LIMIT (a step has too many rows), ERROR_MEMORY. */
enum tokmap_status assignment_init(struct assignment *assignment, const struct tokmap_run *run,
                                   const struct assignment_rule *rule, struct tokmap_error *error);
void assignment_free(struct assignment *assignment);

/* Computes the assignment of a step below the run's end, unless it is that of the last call. Statuses: OK, those of
 * row_cost(); assignment_row() is then undefined until it has succeeded. */
enum tokmap_status assignment_step(struct assignment *assignment, uint64_t step, struct tokmap_error *error);

/* Returns the number of the row at a position of the step. */
static inline uint64_t assignment_row(const struct assignment *assignment, uint64_t position)
{
    return assignment->row_at ? assignment->row_at[position] : position;
}

#endif
