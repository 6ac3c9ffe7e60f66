/* SPDX-License-Identifier: MIT */
/*
 * copy_check.h - compares bytes of a shard's files, wherever they are, with the shard's index.
 *
 * Plain tokens and masks are compared with the hashes of their blocks. Of sealed tokens, the frames that begin in a
 * range are unpacked and compared, so the range is read up to the end of the last of them (copy_check_end()), and the
 * seek table is compared with the one that the index demands. So each byte of a file is compared once if the ranges
 * follow each other.
 */
#ifndef TOKMAP_COPY_COPY_CHECK_H
#define TOKMAP_COPY_COPY_CHECK_H

#include "format/index_reader.h"
#include "format/sealed.h"
#include "format/shard_file.h"

#define COPY_ALIGN BLOCK_BYTES                  /* ranges begin at multiples of it */
#define COPY_BEYOND ((size_t)FRAME_STORED_MOST) /* bytes that are read after a range, at most */

/* Returns the size of a file of a shard, SHARD_MASK, SHARD_TOKENS, or SHARD_SEALED, as the index says it, and sets
 * *has to whether there is such a file. */
uint64_t copy_file_bytes(const struct index *index, enum shard_file file, bool *has);

/* Sets *end to the byte up to which range [at, end of the range) is read. Statuses: OK, ERROR_CORRUPT, ERROR_IO,
 * ERROR_TRUNCATED. */
enum tokmap_status copy_check_end(const struct index *index, enum shard_file file, uint64_t at, uint64_t range_end,
                                  uint64_t *end, struct tokmap_error *error);

/* Compares a range, read up to the end above. reader: for sealed tokens; name: of the file, for messages. Statuses: OK,
 * ERROR_CORRUPT, those above, ERROR_MEMORY. */
enum tokmap_status copy_check(const struct index *index, enum shard_file file, const char *name, uint64_t at,
                              uint64_t range_end, const uint8_t *bytes, struct sealed_reader *reader,
                              struct tokmap_error *error);

#endif
