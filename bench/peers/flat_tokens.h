/* SPDX-License-Identifier: MIT */
/* flat_tokens.h - a dataset's tokens in one flat file, which is what other systems read. */
#ifndef TOKMAP_BENCH_PEERS_FLAT_TOKENS_H
#define TOKMAP_BENCH_PEERS_FLAT_TOKENS_H

#include "harness/harness.h"

struct flat_tokens {
    char path[BENCH_PATH];  /* little-endian tokens of `width` bytes, without a header */
    char files[BENCH_PATH]; /* a text with the paths of the dataset's own files of tokens, a line each */
    uint64_t width, tokens;
    uint64_t eod; /* or TOKMAP_NO_ID */
};

/* Finds or makes that file of the dataset that dataset_name() returns. It is the dataset's own file of tokens if that
 * is flat and the only one: of a native shard, sealed or not, and of a file of another project without a header.
 * Otherwise, for several shards, a header, or tokens of another width, it is a copy in --dir, which is removed at the
 * end. */
void flat_tokens_open(struct bench *bench, struct flat_tokens *flat);

#endif
