/* SPDX-License-Identifier: MIT */
/*
 * pack_output.h - what decides the bytes of a packed shard beside its documents, in one place for its writers,
 * pack.c and shard_merge.c. And the accounts at the end: what was read is what was written.
 */
#ifndef TOKMAP_PACK_PACK_OUTPUT_H
#define TOKMAP_PACK_PACK_OUTPUT_H

#include "packing_options.h"

/* Describes the tokenizer of an output; without one, the vocabulary and the width of ready-made ids. */
struct tokenizer_info pack_tokenizer(const struct tokenizer *tokenizer, uint64_t vocabulary);

/* Returns how many sets the output has. */
uint32_t pack_output_sets(const struct pack_options *options);

/* Writes what follows the name in the name of set `set`: "", or ".train". */
void pack_set_ending(const struct pack_options *options, uint32_t set, char ending[SPLIT_NAME_MOST + 2]);

/* Returns the name of set `set`, which the caller frees; NULL without memory. */
char *pack_set_name(const struct pack_options *options, uint32_t set);

/* Returns how its shards are written. The result points into the options. */
struct shard_writer_options pack_output_shard(const struct pack_options *options);

/* Removes what a killed process that has given one shard its names would have removed next: the files of the old
 * shard, an unfinished list of dropped documents, and the plain tokens of a sealed shard. */
void pack_output_settle(const struct pack_options *options);

/* Checks what must be true at the end, whatever the input was. sets: those that were written. Statuses: OK,
 * ERROR_INTERNAL (bytes or documents are not accounted for), ERROR_INPUT (there are no documents; not of a unit). */
enum tokmap_status pack_accounts_check(const struct pack_options *options, struct shard_set *const *sets,
                                       uint32_t set_count, const struct pack_result *result,
                                       struct tokmap_error *error);

/* Checks that there are documents, that not all of them are empty, and that something is learned where the options say
 * what. Statuses: OK, ERROR_INPUT. */
enum tokmap_status pack_documents_check(const struct pack_options *options, const struct pack_result *result,
                                        struct tokmap_error *error);

/* Counts the documents of a batch that have a value in each column. */
void pack_values_count(struct pack_result *result, size_t columns, const struct corpus_batch *batch);

#endif
