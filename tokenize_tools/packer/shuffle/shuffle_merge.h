/* SPDX-License-Identifier: MIT */
/*
 * shuffle_merge.h - the second pass of the shuffle: reads the sorted chunks (shuffle_chunks.h) side by side and gives
 * their records in the order of all of them.
 *
 * Memory: as much as a chunk had, divided among the chunks, but at least 4 KiB for each: with chunks of 96 MiB, more
 * from 24,576 chunks on, which have 2.25 TiB, or half of that if a second thread has written them.
 *
 * Each record is checked by its hash, and its place must follow that of the record before it, so what a disk returns
 * wrong, or twice, is an error and never a token.
 */
#ifndef TOKMAP_SHUFFLE_SHUFFLE_MERGE_H
#define TOKMAP_SHUFFLE_SHUFFLE_MERGE_H

#include "common/bytes_buffer.h"
#include "format/index_writer.h"
#include "shuffle_chunks.h"

struct shuffle_merge; /* for one thread at a time */

/* chunks: after shuffle_chunks_end(); must outlive the merge. Statuses: OK, ERROR_MEMORY, ERROR_IO, ERROR_CORRUPT. */
enum tokmap_status shuffle_merge_open(struct shuffle_merge **merge, const struct shuffle_chunks *chunks,
                                      struct tokmap_error *error);
void shuffle_merge_close(struct shuffle_merge *merge); /* accepts NULL */

/* Sets *record to the next record, whose head is *head, until the next call. Statuses: OK, END, ERROR_IO,
 * ERROR_CORRUPT. */
enum tokmap_status shuffle_merge_next(struct shuffle_merge *merge, struct shuffle_head *head, const uint8_t **record,
                                      struct tokmap_error *error);

/* Returns the chunk of the record that was returned last, which is in a file. */
const struct shuffle_chunk *shuffle_merge_from(const struct shuffle_merge *merge);

/* Passes on where the merge is in each chunk, as increments of this kind: u64 number of a chunk, and of this chunk and
 * those after it u64 where the next record begins. */
void shuffle_merge_save(const struct shuffle_merge *merge, uint32_t kind, struct state_sink *sink);
/* Takes such an increment: `places` becomes those of all chunks. A later increment replaces what an earlier one has
 * said. Returns 0, EINVAL (it is damaged), or ENOMEM. */
int shuffle_places_load(struct bytes_buffer *places, const uint8_t *bytes, size_t count);
/* Moves the beginnings of the chunks to these places. Returns false if they cannot be those of the chunks. */
bool shuffle_places_restore(const struct bytes_buffer *places, struct shuffle_chunks *chunks);

/* Reads bytes of a temporary file. Statuses: OK, ERROR_IO, ERROR_CORRUPT (the file is shorter). */
enum tokmap_status shuffle_file_read(const char *folder, int fd, void *into, uint64_t bytes, uint64_t offset,
                                     struct tokmap_error *error);
/* Returns the status of a record that is not what was written. */
enum tokmap_status shuffle_file_damaged(const char *folder, uint64_t offset, struct tokmap_error *error);

#endif
