/*
 * shard_save.h - the state of a shard writer at a checkpoint (append_file.h), so that another process continues the
 * shard after the first one was killed.
 *
 * NAME.bin.partial and NAME.mask.partial are cut to their lengths, and only their open blocks are read. The ends of
 * documents, hashes, origins, and columns are in files with names; of the ends these are copies, since the index with
 * the ends is also the lock, which is always a new file. What can be derived from these files is in no checkpoint.
 */
#ifndef TOKMAP_FORMAT_SHARD_SAVE_H
#define TOKMAP_FORMAT_SHARD_SAVE_H

#include "append_file.h"
#include "shard_writer.h"

/* Writes what is in memory, and passes on the state. stem: of the files, which are those of this shard alone. Statuses:
 * OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shard_writer_save(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem,
                                     struct tokmap_error *error);

/* Syncs the tokens and the mask, on which the last shard_writer_save() counts. Statuses: OK, ERROR_IO. */
enum tokmap_status shard_writer_sync(struct shard_writer *writer, struct tokmap_error *error);

/* Takes the state into a writer that was opened with options.resume, checks it and the files, and cuts the files.
 * Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shard_writer_restore(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem,
                                        struct tokmap_error *error);

#endif
