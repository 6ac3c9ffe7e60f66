/* SPDX-License-Identifier: MIT */
/*
 * index_verify.h - checks of an open index whose cost grows with the index, and checks that its file has not changed
 * since it was opened. Any thread may call these functions.
 */
#ifndef TOKMAP_FORMAT_INDEX_VERIFY_H
#define TOKMAP_FORMAT_INDEX_VERIFY_H

#include "index_reader.h"

/* Reads the pages that hold the hashes of blocks [first, last), so that reading the hashes cannot raise SIGBUS
 * afterwards. Statuses: OK, ERROR_TRUNCATED (the file has become shorter), ERROR_IO (the storage reports an error). */
enum tokmap_status index_blocks_check(const struct index *index, uint64_t first, uint64_t last,
                                      struct tokmap_error *error);
/* Does the same for any range of bytes of the index. */
enum tokmap_status index_bytes_check(const struct index *index, uint64_t at, uint64_t bytes,
                                     struct tokmap_error *error);
/* Returns true if the length of the file has changed since it was opened. */
bool index_was_cut(const struct index *index);

/* Reads every byte of the index and checks every rule of FORMAT.md that index_open() does not check. Calls fault()
 * for each fault; if it returns a value other than 0, the search ends. Returns that value, or 0. */
int index_verify(const struct index *index, int (*fault)(void *user, const struct tokmap_error *error), void *user);

#endif
