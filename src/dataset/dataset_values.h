/* SPDX-License-Identifier: MIT */
/*
 * dataset_values.h - the values beside the tokens of a dataset, opened as a dataset of their own, so that everything
 * that reads tokens reads values, too.
 *
 * Its tokens are the bytes of the values: with values of 64 bytes, those of token i of the dataset are its tokens 64 i
 * to 64 i + 63. It has as many shards as the dataset, no documents, and a vocabulary that every byte is in. If some
 * tokens have no values, it has a mask, with one bit for each token of the dataset: dataset_unit() says how many bytes
 * share it. It shows the part that the dataset shows.
 */
#ifndef TOKMAP_DATASET_DATASET_VALUES_H
#define TOKMAP_DATASET_DATASET_VALUES_H

#include "format/values_file.h"
#include "tokmap/tokmap.h"

struct shard;

/* Opens the values `what` of all shards of a dataset, which may be closed before them. All of them have one element and
 * shape: *array. Close them with tokmap_dataset_close(). Statuses: OK, those of values_file_open(), ERROR_UNSUPPORTED
 * (the dataset has no shards, or one without an index), ERROR_MISMATCH (shards differ), ERROR_LIMIT (there are more
 * shards than files that may be open). */
enum tokmap_status dataset_values_open(struct tokmap_dataset **values, struct values_array *array,
                                       const struct tokmap_dataset *of, const char *what, struct tokmap_error *error);

/* Opens the values `what` of one shard, which is held, and reads the hashes of its file, which the caller frees. In
 * object storage, os_pread() of the file fetches what the cache lacks. Statuses: those of values_file_open() and
 * values_ranges_load(). */
enum tokmap_status dataset_values_file(struct values_file *file, struct values_ranges **ranges,
                                       const struct tokmap_dataset *dataset, const struct shard *shard,
                                       const char *what, struct tokmap_error *error);

#endif
