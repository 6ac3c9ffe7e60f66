/* SPDX-License-Identifier: MIT */
/*
 * bench_data.h - what cases measure on: the run file or dataset that the command line names, the datasets that cases
 * make for themselves, and the files that they create.
 *
 * A function that fails ends the program with a message (harness.h).
 */
#ifndef TOKMAP_BENCH_HARNESS_BENCH_DATA_H
#define TOKMAP_BENCH_HARNESS_BENCH_DATA_H

#include "cli/cli.h"
#include "harness.h"

/* Returns the name of the dataset to measure on: the command's operand, or else a dataset that the first call creates
 * from the options --tokens and --width: random ids, in documents of about 1,000 tokens. The name stays valid as long
 * as bench. */
const char *dataset_name(struct bench *bench);

/* Creates another dataset like the one that dataset_name() creates, of the same tokens, with a mask: of consecutive
 * runs of 1 to 400 tokens, as in conversations, every second one counts. name: its prefix. */
void dataset_make_masked(struct bench *bench, char name[BENCH_PATH]);

/* A dataset that is open. first: its first shard, if it has any. */
struct opened {
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct tokmap_shard_info first;
};

/* Opens that dataset. The caller closes it. */
struct opened dataset_open(struct bench *bench, enum tokmap_reading reading);
/* Returns the name of the values that --values means, of the tokens of `dataset`. The first call creates those of a
 * dataset that dataset_name() has created. From then on, the name is in bench->options.values. */
const char *dataset_values_name(struct bench *bench, const struct tokmap_dataset *dataset);

/* Makes the run that cases read: that of the run file, or one of shuffled windows, as operand_resolve() found it.
 *   dataset  its name
 *   seed     1: the run's own order, which is that of seed 0 without a run file; other numbers: other orders
 *   steps    the length of the run, or TOKMAP_FOREVER
 * The caller closes it. */
struct tokmap_run *run_make(struct bench *bench, const char *dataset, enum tokmap_reading reading, uint64_t seed,
                            uint64_t steps);

/* Opens the run of a text of one source, called "data".
 *   dataset  its name
 *   numbers  the other lines of the text, such as "seq_len 128\nbatch 4\n"
 * The caller closes it. */
struct tokmap_run *run_of_dataset(struct bench *bench, const char *dataset, const char *numbers,
                                  enum tokmap_reading reading);

/* The only source of such a run, and its dataset, which belongs to the run. */
struct run_data {
    struct tokmap_source_info source;
    struct tokmap_dataset_info info;
};

struct run_data run_get_data(struct bench *bench, const struct tokmap_run *run);
/* ==== what the command line names ==== */

/*
 * What a case reads: the run file or the dataset that the command line names, and the geometry of its batches.
 *
 * A run file says everything: source, seq_len, lookahead, batch, seed, order. A dataset says nothing, so the options
 * say it, or their defaults. --ranks and --world cut the global batch into slices, and --rows cuts a slice into calls.
 */

/* Sets bench->options.dataset and, if `operand` names a run file, run_file and the values that the run file sets; then
 * batch, rows, ranks, and world for every kind of operand.
 *   operand  as the user typed it, or NULL
 * Prints the dataset's warning, if it has one. Returns -1 to go on, or the exit status after a message: the run file or
 * the dataset cannot be opened, an option contradicts the run file, or the batch cannot be cut that way. */
int operand_resolve(const struct cli_command *command, struct bench *bench, const char *operand);

/* Finds out what --values means, if it is given, and how many tokens the dataset that is created then has. Returns -1
 * to go on, or the exit status after a message. */
int values_resolve(const struct cli_command *command, struct bench *bench);

/* Sets the geometry of a dataset's batches to `rows` rows in each call of one loader, for a case that computes them
 * from another option. Does nothing with a run file. */
void operand_rows(struct bench *bench, uint64_t rows);

/* Returns the rows that bench->rank reads in each step. */
uint64_t operand_slice(const struct bench *bench);

/* ==== files that the command creates ==== */

/*
 * The files that the command creates. They are removed when the command ends, also if SIGINT, SIGTERM or SIGHUP ends
 * it, unless --keep was given.
 */

/* Writes FOLDER/tokmap-bench-ID-NAME into path. FOLDER is --dir; ID is this process's own, so two commands that run at
 * the same time use different files. The path leaves room for a suffix of up to 32 bytes. Does not create the file. */
void made_path(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* Registers a file for removal. The file need not exist, now or later. */
void made_add(struct bench *bench, const char *path);
/* Both of the above. */
void made_file(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* Does the same for a folder, which is created. It is removed with everything in it, also what other programs made.
 * There is at most one. */
void made_tree(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* Removes what that folder contains. */
void made_tree_empty(struct bench *bench);
/* Writes the prefix of a shard, and registers PREFIX.bin and PREFIX.tmx for removal. */
void made_shard(struct bench *bench, const char *name, char prefix[BENCH_PATH]);

/* Removes one registered file now, or all of them. made_files_remove() also releases the list: call it at the
 * end. */
void made_file_remove(struct bench *bench, const char *path);
void made_files_remove(struct bench *bench);

/* Writes a file. failed: the sentence of the message if that fails. */
void made_write(struct bench *bench, const char *path, const void *bytes, size_t count, const char *failed);
#endif
