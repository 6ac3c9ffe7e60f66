/* SPDX-License-Identifier: MIT */
/*
 * wide.h - the tables of compare: a row for each system, a column for each metric.
 *
 * A value is the median of its repeats. Beside it are its ratio to that of the row `tokmap`, and a star if no other row
 * has a better one.
 */
#ifndef TOKMAP_BENCH_PEERS_WIDE_H
#define TOKMAP_BENCH_PEERS_WIDE_H

#include "harness/harness.h"
#include "scripts.h"

#define WIDE_ROWS 256    /* rows of all tables of a run */
#define WIDE_METRICS 128 /* metrics of all tables of a run */

struct wide;

struct wide *wide_new(struct bench *bench);
void wide_free(struct wide *wide);

/* Takes a line of a script: row, absent, equal, about, note, or answer. Returns CLI_DONE, or CLI_FAILED after a message
 * that shows what is wrong with the line. */
int wide_line(struct bench *bench, struct wide *wide, const struct script_line *line);

/* Prints everything: with --json an object for each result, else the tables, then the rows that are absent, what each
 * row delivered and is, and the notes. Sets bench->sentence to the answer. */
void wide_print(struct bench *bench, struct wide *wide);

/* Returns CLI_FAILED after a message for each row that delivered other tokens than the reference, else CLI_DONE. */
int wide_check(const struct bench *bench, const struct wide *wide);

#endif
