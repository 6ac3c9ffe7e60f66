/* SPDX-License-Identifier: MIT */
/*
 * dataset_make.h - the datasets that cases measure on, and runs over them.
 *
 * Functions that return an int return CLI_DONE, or CLI_FAILED after a message, unless their comment says otherwise.
 */
#ifndef TOKMAP_BENCH_HARNESS_DATASET_MAKE_H
#define TOKMAP_BENCH_HARNESS_DATASET_MAKE_H

#include "harness.h"

/* Sets *name to the dataset to measure on: the command's operand, or else a dataset that the first call creates from
 * the options --tokens and --width: random ids, in documents of about 1,000 tokens. The name stays valid as long as
 * bench. */
int dataset_name(struct bench *bench, const char **name);

/* Creates another dataset like the one that dataset_name() creates, of the same tokens, with a mask: of consecutive
 * runs of 1 to 400 tokens, as in conversations, every second one counts. name: its prefix. */
int dataset_make_masked(struct bench *bench, char name[BENCH_PATH]);

/* Opens that dataset. The caller closes it; *dataset is NULL after a failure. */
int dataset_open(struct bench *bench, enum tokmap_reading reading, struct tokmap_dataset **dataset);

/* Fills in *info and, unless it is NULL, *first, which describes the first shard. The pointers in *first are valid
 * until the dataset is closed. */
int dataset_get_info(struct bench *bench, const struct tokmap_dataset *dataset, struct tokmap_dataset_info *info,
                     struct tokmap_shard_info *first);

/* Creates a dataset of `shards` (1 to 16) shards with tokens_per_shard tokens each. Each shard is a sparse file of
 * zeros with a valid index and documents of 2^20 tokens, so it takes almost no space. name: its prefix, or a manifest
 * if it has several shards. If the file system cannot hold files of that size, sets *unsupported, prints a line, and
 * returns CLI_DONE; nothing may then be done with the name. */
int dataset_make_sparse(struct bench *bench, const char *label, uint64_t shards, uint64_t tokens_per_shard,
                        char name[BENCH_PATH], bool *unsupported);

/* Makes the run that cases read: that of the run file, or one of shuffled windows, as operand_resolve() found it.
 *   dataset  its name
 *   seed     1: the run's own order, which is that of seed 0 without a run file; other numbers: other orders
 *   steps    the length of the run, or TOKMAP_FOREVER
 * The caller closes *run, which is NULL after a failure. */
int run_make(struct bench *bench, const char *dataset, enum tokmap_reading reading, uint64_t seed, uint64_t steps,
             struct tokmap_run **run);

/* Fills in *source and *info, which describe the only source of such a run and its dataset. source->dataset belongs to
 * the run. */
int run_get_info(struct bench *bench, const struct tokmap_run *run, struct tokmap_source_info *source,
                 struct tokmap_dataset_info *info);

#endif
