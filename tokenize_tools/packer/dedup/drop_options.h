/* SPDX-License-Identifier: MIT */
/* drop_options.h - which documents are left out (drop_filter.h), and how the stages work that find them
 * (dedup_stages.h). */
#ifndef TOKMAP_DEDUP_DROP_OPTIONS_H
#define TOKMAP_DEDUP_DROP_OPTIONS_H

#include "minhash.h"
#include "ngram_table.h"

struct drop_options {
    bool duplicates;
    const struct minhash_form *minhash; /* near-duplicates are dropped; NULL: they are kept */
    uint64_t memory;                    /* for their keys */
    const struct ngram_table *ngrams;   /* NULL: none are excluded */
};

struct drop_stage {
    const struct drop_options *drop;
    bool in_units; /* True for work in units, whose stages several processes share */
    bool sync;     /* as in shard_writer.h */
    /* Interval between parts that are committed, which is the work that a kill can lose; 0: no parts. */
    uint64_t checkpoint_ns;
    /* Called often: true ends the work with ERROR_INTERRUPTED. May be NULL. */
    bool (*stop)(void *user);
    void *user;
};

#endif
