/*
 * dataset_make.h - the datasets and texts that cases measure on, and their removal.
 *
 * What is made is removed when the command ends, by SIGINT, SIGTERM and SIGHUP too, unless --keep was given.
 */
#ifndef TOKMAP_BENCH_HARNESS_DATASET_MAKE_H
#define TOKMAP_BENCH_HARNESS_DATASET_MAKE_H

#include "harness.h"

/* A path in the folder that no other run of this command uses: FOLDER/tokmap-bench-ID-NAME. False if it is too long. */
bool made_path(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* The file is removed at the end. False if there are too many. */
bool made_add(struct bench *bench, const char *path);
/* Removes one now, or all that are left. */
void made_remove(struct bench *bench, const char *path);
void made_remove_all(struct bench *bench);

/* The dataset to measure on: the one that was given, else one that is made at the first call: --tokens random ids of
 * --width bytes in documents of about 1,000 tokens. CLI_DONE, or CLI_FAILED after a message. */
int dataset_get(struct bench *bench, const char **name);

/* Opens it. Talks about a failure. */
int dataset_open(struct bench *bench, enum tokmap_reading reading, struct tokmap_dataset **dataset);

/* A dataset of `shards` shards, each a sparse file of zeros with a sound index, documents of 2^20 tokens. *name: a
 * manifest if there are several. CLI_DONE, CLI_FAILED after a message; *unsupported is set instead of a failure where
 * the file system refuses files of that size. */
int dataset_make_sparse(struct bench *bench, const char *label, uint64_t shards, uint64_t tokens_a_shard,
                        char name[BENCH_PATH], bool *unsupported);

/* Drops a dataset's tokens from the page cache and looks whether they have gone. CLI_DONE, or CLI_FAILED after a
 * message: in memory file systems they cannot go. */
int dataset_drop(struct bench *bench, const struct tokmap_dataset *dataset);
/* Reads a dataset's tokens into the page cache anew, front to back: the kernel then keeps them in large folios. What
 * was read at random lies in single pages, and everything is slower on it by up to a third. */
int dataset_warm(struct bench *bench, const struct tokmap_dataset *dataset);

/* The run that the cases read: --seq-len, --rows, shuffled with the seed. */
int run_make(struct bench *bench, const char *data, enum tokmap_reading reading, uint64_t seed, uint64_t steps,
             struct tokmap_run **run);

#endif
