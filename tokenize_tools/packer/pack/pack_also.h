/* SPDX-License-Identifier: MIT */
/*
 * pack_also.h - the files of other projects beside the shards, which are written once the shards have their names.
 *
 * There is one *file* for each shard and format, numbered shard by shard. Two files of stages (stage_file.h) in
 * NAME.work say where the work is: also-000000 that it has begun, with the report of the whole, and also-000001, which
 * is replaced before each file, which file is next. So the same command continues where a process was killed, and
 * replaces only a file that the killed process may have written. That file has the same bytes. If it does not, it
 * belongs to the user, and the command stops.
 *
 * Example: 2 shards and the formats megatron and olmo. The process is killed when also-000001 says that file 2 is next.
 * So web-00000 has the files of both formats, web-00001.idx may be there, and web-00001.npy is not. The next process
 * writes web-00001.idx again, also if an equal one exists, and then web-00001.npy, which must not exist.
 *
 * If also-000001 is lost, because it could not be synced, the next process begins with file 0 and replaces all files
 * that are equal. Where work is done in units, also-000000 is there before the shards get their names: by it the
 * next process knows that shards with their names are not all of the output.
 */
#ifndef TOKMAP_PACK_PACK_ALSO_H
#define TOKMAP_PACK_PACK_ALSO_H

#include "packing_options.h"

/* Returns true if files may be missing of shards that have their names, or are about to get them. */
bool pack_also_begun(const char *prefix);

/* Records that no file is written yet, with the report of the whole. Statuses: OK, ERROR_IO, ERROR_BUSY,
 * ERROR_MEMORY. */
enum tokmap_status pack_also_begin(const struct pack_options *options, const char *folder,
                                   const struct pack_result *result, struct tokmap_error *error);

/* Reads the report that pack_also_begin() recorded. Statuses: OK, ERROR_NOT_FOUND (all files are written, or none is
 * needed), ERROR_CORRUPT, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status pack_also_read(const struct pack_options *options, const char *folder, struct pack_result *result,
                                  struct tokmap_error *error);

/* Removes both files of stages, when all files are written, before anything else of the folder is removed. Statuses:
 * OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status pack_also_end(const struct pack_options *options, const char *folder, struct tokmap_error *error);

/* Writes the missing files of all shards, and sets result->also. folder: NAME.work; NULL: there is no folder, and no
 * progress is recorded. again: another process gave the shards their names, and may have written files. The caller
 * holds the lock of the output. Statuses: those of options->also->write(), ERROR_INTERRUPTED, and those of
 * pack_also_begin(). */
enum tokmap_status pack_also_write(const struct pack_options *options, const char *folder, bool again,
                                   struct pack_result *result, struct tokmap_error *error);

#endif
