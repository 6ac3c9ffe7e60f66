/*
 * dataset.h - what the rooms above need of a dataset beyond the public header: where its bytes lie, its mapping, and the
 * ends of documents in a range.
 */
#ifndef TOKMAP_DATASET_DATASET_H
#define TOKMAP_DATASET_DATASET_H

#include <stdbool.h>

#include "format/index.h"
#include "tokmap/tokmap.h"

/* Whether a dataset is synthetic: it has no shards, no files and no mapping, and tokmap_dataset_copy() cannot fail. */
bool dataset_is_synthetic(const struct tokmap_dataset *dataset);

/* Fills *info as tokmap_dataset_info() does, for callers of this build: it sets the size itself, so it cannot fail. */
void dataset_describe(const struct tokmap_dataset *dataset, struct tokmap_dataset_info *info);

/* The .bin of one shard, open for reading. Lives as long as the dataset. */
struct shard_tokens {
    int fd;
    const char *path;
    uint64_t first_token; /* in the dataset */
    uint64_t tokens;
    uint64_t bytes;       /* what the file's size must be */
};

uint64_t dataset_shards(const struct tokmap_dataset *dataset);
void dataset_shard_tokens(const struct tokmap_dataset *dataset, uint64_t shard, struct shard_tokens *out);

/* The shard that holds a token (token < tokens). O(log shards); `hint` (a shard number) is tried first. */
uint64_t dataset_shard_of(const struct tokmap_dataset *dataset, uint64_t token, uint64_t hint);

/* The mapping of a shard's tokens, made at the first call (any thread), never populated by it.
 * Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status dataset_shard_map(const struct tokmap_dataset *dataset, uint64_t shard, const uint8_t **tokens,
                                     struct tokmap_error *error);

/* How loaders should read it: never AUTO. */
enum tokmap_reading dataset_reading(const struct tokmap_dataset *dataset);

/* Ends of documents inside (first, first + count], as distances from `first`: the ends of the documents that end in that
 * range, in order, empty documents' left out (each distance appears once). first + count <= tokens. *start: the start of
 * the document that holds token `first`. Fills at most `capacity`; *used says how many there are.
 * Statuses: OK, ERROR_LIMIT (more than capacity: the first `capacity` are filled, *used is a number that would do),
 * ERROR_RANGE, ERROR_CORRUPT. */
enum tokmap_status dataset_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, uint64_t *ends,
                                uint64_t capacity, uint64_t *used, uint64_t *start, struct tokmap_error *error);

/* A number of documents that no `tokens` consecutive tokens of a synthetic dataset, taken modulo its tokens, can exceed:
 * what the index of a dataset in files has to be searched for. */
uint64_t dataset_synthetic_most_documents(const struct tokmap_dataset *dataset, uint64_t tokens);

/* Goes through the ends of all documents in order. All zero: at the first. */
struct dataset_walk {
    uint64_t shard;
    struct index_walk place; /* in it */
};

/* The next distinct ends, at most `capacity` (>= 1) of them, as addresses; the last of all is the number of tokens, and
 * after it there are none: *used 0. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status dataset_walk_ends(const struct tokmap_dataset *dataset, struct dataset_walk *walk, uint64_t *ends,
                                     uint64_t capacity, uint64_t *used, struct tokmap_error *error);

#endif
