/* SPDX-License-Identifier: MIT */
/*
 * dataset.h - functions on datasets for the rooms above, in addition to the public header: the files and mappings of
 * shards, and the ends of documents in a range. All of them may be called by any thread.
 */
#ifndef TOKMAP_DATASET_DATASET_H
#define TOKMAP_DATASET_DATASET_H

#include <stdbool.h>

#include "format/element.h"
#include "format/index_reader.h"
#include "mask_file.h"

/* Does what tokmap_dataset_open() does, for a place and a name that are there. *dataset is NULL after a failure only if
 * it was before. */
enum tokmap_status dataset_open_as(struct tokmap_dataset **dataset, const char *name, enum tokmap_reading reading,
                                   struct tokmap_error *error);

/* Returns true for a synthetic dataset. It has no shards, files, or mappings. */
bool dataset_is_synthetic(const struct tokmap_dataset *dataset);

/* Computes the tokens [first, first + count) of a synthetic dataset, which has them. */
void dataset_synthetic_copy(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, void *out);

/* Returns true if documents have no numbers, because files of another project do not say where they are. dataset_ends()
 * then reads the tokens and looks for the EOD or BOS, and the other functions on documents are ERROR_UNSUPPORTED. */
bool dataset_scans_documents(const struct tokmap_dataset *dataset);

/* Returns true if some shard has a mask, so that some tokens may not count as targets. */
bool dataset_has_mask(const struct tokmap_dataset *dataset);

/* Returns true if some shard is sealed: see shard_tokens.sealed. */
bool dataset_is_sealed(const struct tokmap_dataset *dataset);

/* Hold a shard, so that it is open: see open_shards.h. The functions below on one shard are for those who hold it.
 * Statuses: OK, those of opening a dataset. */
enum tokmap_status dataset_shard_hold(const struct tokmap_dataset *dataset, uint64_t shard, struct tokmap_error *error);
void dataset_shard_release(const struct tokmap_dataset *dataset, uint64_t shard);

/* Returns 0 if all shards stay open as long as the dataset. Otherwise returns how many of them a loader may hold at the
 * same time. */
uint32_t dataset_held_most(const struct tokmap_dataset *dataset);

/* The mask of one shard, open for reading. Lives as long as the shard is held. */
struct dataset_mask {
    int fd;             /* -1: the shard has no mask */
    uint64_t bytes;     /* the size that the file must have */
    uint64_t first_bit; /* of the shard's first token in the file; if wide, its byte */
    bool wide;          /* one byte for each token instead of one bit */
};

void dataset_shard_mask(const struct tokmap_dataset *dataset, uint64_t shard, struct dataset_mask *out);

/* Does what tokmap_dataset_mask() does, through a reader of the caller's (NULL: os_pread()). Of values, tokens are
 * those of the dataset that they belong to. Statuses: those of tokmap_dataset_mask(), and ERROR_TIMEOUT if the reader
 * returns ETIMEDOUT. */
enum tokmap_status dataset_mask_read(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                     uint8_t *bits, const struct mask_reader *reader, struct tokmap_error *error);

/* Returns what tokmap_dataset_info() fills in, for callers of this build: it sets the size itself and cannot fail. */
struct tokmap_dataset_info info_of_dataset(const struct tokmap_dataset *dataset);

/* The tokens of one shard (of the part of it that the dataset holds), in a file that is open for reading. Lives as long
 * as the shard is held. Token i of the shard is element i of those that begin at byte `offset`. */
struct shard_tokens {
    int fd;
    const char *path;
    uint64_t first_token; /* the dataset's token number of the shard's first token */
    uint64_t tokens;
    uint64_t bytes;             /* the size that the file must have */
    uint64_t offset;            /* of the shard's first token in the file, in bytes */
    enum element element;       /* form of a token in the file */
    bool page_hashes;           /* the index has the hashes of the file's pages: see dataset_page_hashes() */
    uint64_t opening;           /* another number after the shard was closed and opened again */
    bool converted;             /* tokens have to be converted to the dataset's width, so there is no view of them */
    const struct index *sealed; /* not NULL: the file has frames (format/sealed.h); `offset` counts bytes of tokens, and
                                   `bytes` those of the file */
};

void dataset_shard_tokens(const struct tokmap_dataset *dataset, uint64_t shard, struct shard_tokens *out);

/* Copies the hashes of pages [first, first + count), of TOKEN_PAGE_BYTES bytes each (format/layout.h), of a shard's
 * file, which has page_hashes. Statuses: OK, ERROR_IO, ERROR_TRUNCATED (the index was cut). */
enum tokmap_status dataset_page_hashes(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first,
                                       uint64_t count, uint32_t *hashes, struct tokmap_error *error);

/* Asks the storage for them. A hint. */
void dataset_page_hashes_ask(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first, uint64_t count);

/* Opens the file of the index that has these hashes, so that they can be read with a deadline: the hash of page p has 4
 * bytes from *at + 4 * p on. Of a sealed shard, the entry of frame f has 16 bytes from *at + 16 * f on. Returns false
 * if the hashes are in memory, or if the file has another name by now. */
bool dataset_page_hashes_open(const struct tokmap_dataset *dataset, uint64_t shard, int *fd, uint64_t *at);

/* Returns the mapping of the file with a shard's tokens, which the first call makes, from byte 0 of the file: the first
 * token is at byte shard_tokens.offset. The call does not read any page of it. The mapping lives as long as the
 * shard is held. Statuses: OK, ERROR_UNSUPPORTED (tokens are converted, or fetched), ERROR_RANGE (the shard has no
 * tokens), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status dataset_shard_map(const struct tokmap_dataset *dataset, uint64_t shard, const uint8_t **file,
                                     struct tokmap_error *error);
/* Maps a file that is fetched, too: os_fetched_set() says how it is loaded from. */
enum tokmap_status dataset_shard_map_any(const struct tokmap_dataset *dataset, uint64_t shard, const uint8_t **file,
                                         struct tokmap_error *error);

/* Returns how many of its tokens share a bit of the mask: of a dataset of values, the bytes of a token's
 * (dataset_values.h); otherwise 1. */
uint64_t dataset_unit(const struct tokmap_dataset *dataset);

/* Returns how loaders read the dataset; never TOKMAP_READ_AUTO. */
enum tokmap_reading dataset_reading(const struct tokmap_dataset *dataset);

#endif
