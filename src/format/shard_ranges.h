/* SPDX-License-Identifier: MIT */
/*
 * shard_ranges.h - the ranges of a shard's files that have a hash in the index: where they are, and whether bytes,
 * wherever they come from, are theirs.
 *
 * A range is a MiB of tokens or of a mask (BLOCK_BYTES), or a frame of sealed tokens; what follows the last frame, the
 * seek table, belongs to it. Example: a shard of 2,500,000 tokens of 2 bytes, with a mask. NAME.bin has 5 ranges, the
 * last of which has 805,696 bytes; NAME.bin.zst would have 77; and NAME.mask has one, of 312,500 bytes.
 *
 * `file` is SHARD_TOKENS, SHARD_SEALED, or SHARD_MASK, and the shard has such a file. Any thread. Statuses: OK,
 * ERROR_CORRUPT, and ERROR_IO, ERROR_TRUNCATED (of the index).
 */
#ifndef TOKMAP_FORMAT_SHARD_RANGES_H
#define TOKMAP_FORMAT_SHARD_RANGES_H

#include "index_reader.h"
#include "sealed.h"
#include "shard_file.h"

/* Returns whether a shard has a file of its own, and how many bytes it has then. */
bool shard_has_file(const struct index *index, enum shard_file file);
uint64_t shard_file_size(const struct index *index, enum shard_file file);

/* Returns the number of ranges. */
uint64_t shard_ranges(const struct index *index, enum shard_file file);

/* Finds the ranges that bytes [at, at + count) of the file are in: [*first, *end). */
enum tokmap_status shard_ranges_find(const struct index *index, enum shard_file file, uint64_t at, uint64_t count,
                                     uint64_t *first, uint64_t *end, struct tokmap_error *error);

/* Finds where ranges [first, end) are in the file; there is at least one. */
enum tokmap_status shard_ranges_place(const struct index *index, enum shard_file file, uint64_t first, uint64_t end,
                                      uint64_t *from, uint64_t *bytes, struct tokmap_error *error);

/* Compares the bytes of ranges [first, end), which shard_ranges_place() has found. reader: for sealed tokens; made when
 * it is NULL. name: of the file, for messages. Statuses: also ERROR_MEMORY, ERROR_UNSUPPORTED (there is no libzstd). */
enum tokmap_status shard_ranges_check(const struct index *index, enum shard_file file, uint64_t first, uint64_t end,
                                      const char *name, const uint8_t *bytes, struct sealed_reader **reader,
                                      struct tokmap_error *error);

#endif
