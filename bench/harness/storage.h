/* SPDX-License-Identifier: MIT */
/*
 * storage.h - the page cache: bringing a dataset's tokens into it, and removing them from it.
 */
#ifndef TOKMAP_BENCH_HARNESS_STORAGE_H
#define TOKMAP_BENCH_HARNESS_STORAGE_H

#include "harness.h"

/* Drops the tokens of all shards from the page cache, and the values that --values names once they are open, and checks
 * with a sample of pages that they are gone. Fails on a file system that keeps its files in memory (tmpfs), and if
 * another process keeps the pages by mapping the files. A kernel that cannot report which pages are cached is trusted.
 * Shards in object storage are left as they are, here and below. */
void page_cache_drop(struct bench *bench, const struct tokmap_dataset *dataset);
/* Does the same for tokens without a message, for a case that can go on if the tokens cannot be dropped. Statuses: OK,
 * ERROR_UNSUPPORTED (the files are in memory), ERROR_BUSY (another process has them mapped), ERROR_IO, and others of
 * opening files. */
enum tokmap_status page_cache_try_drop(const struct tokmap_dataset *dataset, struct tokmap_error *error);

/* Drops the tokens and those values, then reads them from front to back, so that the kernel caches them in large
 * folios. Pages that were cached one by one, by random reads, are up to a third slower to read, and the results would
 * depend on what the machine did before. A dataset of more than half of the memory is left as it is, with a message.
 * Call this before the files are mapped: mapped pages cannot be dropped. */
void page_cache_warm(struct bench *bench, const struct tokmap_dataset *dataset);
/* Reads a file from front to back, so that it is in the page cache. Some systems drop what was not used for a while. */
void page_cache_read(struct bench *bench, const char *path);

#endif
