/* SPDX-License-Identifier: MIT */
/*
 * operand.h - what a case reads: the run file or the dataset that the command line names, and the geometry of its
 * batches.
 *
 * A run file says everything: source, seq_len, lookahead, batch, seed, order. A dataset says nothing, so the options
 * say it, or their defaults. --ranks and --world cut the global batch into slices, and --rows cuts a slice into calls.
 */
#ifndef TOKMAP_BENCH_HARNESS_OPERAND_H
#define TOKMAP_BENCH_HARNESS_OPERAND_H

#include "cli/cli.h"
#include "harness.h"

/* Sets bench->options.dataset and, if `operand` names a run file, run_file and the values that the run file sets; then
 * batch, rows, ranks, and world for every kind of operand.
 *   operand  as the user typed it, or NULL
 * Prints the dataset's warning, if it has one. Returns -1 to go on, or the exit status after a message: the run file or
 * the dataset cannot be opened, an option contradicts the run file, or the batch cannot be cut that way. */
int operand_resolve(const struct cli_command *command, struct bench *bench, const char *operand);

/* Sets the geometry of a dataset's batches to `rows` rows in each call of one loader, for a case that computes them
 * from another option. Does nothing with a run file. */
void operand_rows(struct bench *bench, uint64_t rows);

/* Returns the rows that bench->rank reads in each step. */
uint64_t operand_slice(const struct bench *bench);

#endif
