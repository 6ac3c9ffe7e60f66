/* SPDX-License-Identifier: MIT */
/*
 * pack.h - makes a shard, or a set of shards, from a corpus. Batches are read one after the other, encoded in parallel,
 * and written in the order of the input (ordered_workers.h). The shards are a function of the inputs and options alone:
 * the number of threads changes no byte.
 */
#ifndef TOKMAP_PACK_PACK_H
#define TOKMAP_PACK_PACK_H

#include "packing_options.h"

#define PACK_THREADS_MOST 256
#define PACK_SHUFFLE_LEAST ((uint64_t)4096)
#define PACK_SHUFFLE_MOST ((uint64_t)1 << 40)

/* Packs the operands (see inputs.h). After an error no output file is left, unless result->kept, and an older shard of
 * the same name is unchanged. Statuses: OK, ERROR_INPUT, ERROR_ENCODING, ERROR_LIMIT, ERROR_UNSUPPORTED, ERROR_CORRUPT,
 * ERROR_TRUNCATED, ERROR_MISMATCH (inputs; or they, or the options, are not those of the work that would be continued);
 * ERROR_EXISTS, ERROR_BUSY (output); ERROR_NOT_FOUND, ERROR_IO, ERROR_ARGUMENT (either); ERROR_INTERRUPTED,
 * ERROR_MEMORY, ERROR_INTERNAL (the accounts do not add up). */
enum tokmap_status pack_run(const struct pack_options *options, const char *const *operands, size_t count,
                            struct pack_result *result, struct tokmap_error *error);

#endif
