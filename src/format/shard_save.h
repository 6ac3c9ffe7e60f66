/* SPDX-License-Identifier: MIT */
/*
 * shard_save.h - saves the state of a shard writer, so that another process continues the shard after the first one was
 * killed.
 *
 * What the tokens file and the mask file have is not saved again: the continuing writer cuts them to their lengths, and
 * reads only the open block. All else is passed on in increments, each time only what was added since the last time:
 * the ends of documents, hashes of blocks and pages, origins, and columns. With the increments of all savings up to
 * one, in order, a writer that was opened with options.resume has the state of that one.
 */
#ifndef TOKMAP_FORMAT_SHARD_SAVE_H
#define TOKMAP_FORMAT_SHARD_SAVE_H

#include "index_writer.h"
#include "shard_writer.h"

#define SHARD_SAVE_KINDS 1024U /* kinds of increments are below this */

/* Writes the buffered tokens and mask, and passes on the increments. Statuses: OK, ERROR_IO, ERROR_MEMORY; a failure
 * of the sink becomes ERROR_IO. */
enum tokmap_status shard_writer_save(struct shard_writer *writer, struct state_sink *sink, struct tokmap_error *error);

/* Syncs the files whose bytes the last shard_writer_save() counts on. Statuses: OK, ERROR_IO. */
enum tokmap_status shard_writer_sync(struct shard_writer *writer, struct tokmap_error *error);

/* Takes an increment, with options.resume, before shard_writer_restored(). Statuses: OK, ERROR_CORRUPT, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status shard_writer_load(struct shard_writer *writer, uint32_t kind, const uint8_t *bytes, size_t count,
                                     struct tokmap_error *error);

/* Ends a restoration, when all increments have been taken: checks them and the files, and cuts the files. Statuses: OK,
 * ERROR_CORRUPT, ERROR_IO. */
enum tokmap_status shard_writer_restored(struct shard_writer *writer, struct tokmap_error *error);

#endif
