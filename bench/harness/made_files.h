/* SPDX-License-Identifier: MIT */
/*
 * made_files.h - the files that the command creates.
 *
 * They are removed when the command ends, also if SIGINT, SIGTERM or SIGHUP ends it, unless --keep was given. Functions
 * that return an int return CLI_DONE, or CLI_FAILED after a message.
 */
#ifndef TOKMAP_BENCH_HARNESS_MADE_FILES_H
#define TOKMAP_BENCH_HARNESS_MADE_FILES_H

#include "harness.h"

/* Writes FOLDER/tokmap-bench-ID-NAME into path. FOLDER is --dir; ID is this process's own, so two commands that run at
 * the same time use different files. The path leaves room for a suffix of up to 32 bytes. Does not create the file. */
int made_path(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* Registers a file for removal. The file need not exist, now or later. */
int made_add(struct bench *bench, const char *path);
/* Both of the above. */
int made_file(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* The same for a folder, which is created. Its files are registered after it. */
int made_folder(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* The same for a folder that is removed with everything in it, whoever made that. There is at most one. */
int made_tree(struct bench *bench, const char *name, char path[BENCH_PATH]);
/* Removes what that folder contains. */
void made_tree_empty(struct bench *bench);
/* Writes the prefix of a shard, and registers PREFIX.bin and PREFIX.tmx for removal. */
int made_shard(struct bench *bench, const char *name, char prefix[BENCH_PATH]);

/* Removes one registered file now, or all of them. made_files_remove() also releases the list: call it at the
 * end. */
void made_file_remove(struct bench *bench, const char *path);
void made_files_remove(struct bench *bench);

#endif
