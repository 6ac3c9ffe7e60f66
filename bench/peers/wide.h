/* SPDX-License-Identifier: MIT */
/*
 * wide.h - the table of compare or faults: a row for each system, a column for each metric or fault.
 *
 * A value is the median of its repeats. Beside it are its ratio to that of the row `tokmap`, and a star if no other row
 * has a better one. The cell of a fault is a word, such as crash, and a sentence with counts.
 */
#ifndef TOKMAP_BENCH_PEERS_WIDE_H
#define TOKMAP_BENCH_PEERS_WIDE_H

#include "harness/harness.h"
#include "scripts.h"

/* Takes a line of a script: row, cell, absent, equal, about, note, or answer. Returns CLI_DONE, or CLI_FAILED after a
 * message that shows what is wrong with the line. A script_line_fn. */
int wide_line(struct bench *bench, const struct script_line *line);

/* Prints everything: with --json an object for each result, else the table, then the rows that are absent, what each
 * row delivered and is, and the notes. Sets bench->sentence to the answer. */
void wide_print(struct bench *bench);

/* Returns CLI_FAILED after a message for each row that delivered other tokens than the reference, each cell that is
 * empty, and each of tokmap that is not what it promises; else CLI_DONE. */
int wide_check(const struct bench *bench);

#endif
