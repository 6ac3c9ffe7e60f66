/* SPDX-License-Identifier: MIT */
/*
 * shard_about.h - the about section of a packed shard: a JSON text that says how the shard was made.
 *
 * It contains what decides the bytes of the shard, the totals, and the paths of the tokenizer's files as they were
 * given, so that a command that shows text can find the tokenizer again. It contains no time, host, number of threads,
 * working folder, or output name, so that the same input and options give the same bytes. Its keys and words are part
 * of existing shards: they must not change.
 */
#ifndef TOKMAP_PACK_SHARD_ABOUT_H
#define TOKMAP_PACK_SHARD_ABOUT_H

#include "cli/cli.h"
#include "packing_options.h"

/* Makes the about section of a shard, which the caller frees, and sets *bytes to its length; NULL without memory. set:
 * with a split, the number of the shard's set. shard: what a shard of a set has; NULL for a single shard, whose totals
 * are those of the result. */
char *shard_about_text(const struct pack_options *options, const struct pack_result *result, uint32_t set,
                       const struct shard_totals *shard, uint64_t *bytes);

/* Adds the members of the object that describes a tokenizer. Its fingerprint identifies it; the paths only say where to
 * look for it, so a tokenizer without a file has none. options and path: as in struct pack_options. */
void shard_about_tokenizer(struct cli_report *report, const struct tokenizer *tokenizer,
                           const struct tokmap_tokenizer_options *options, const char *path);

#endif
