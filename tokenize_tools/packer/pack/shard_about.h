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
#include "corpus/corpus.h"
#include "dedup/minhash.h"
#include "dedup/ngram_table.h"
#include "encode/fim.h"
#include "encode/shard_set.h"
#include "encode/split.h"
#include "engine/tokenizer.h"
#include "packing_options.h"

/* Facts that an about section states. */
struct shard_about {
    const struct tokenizer *tokenizer;                        /* NULL: ready-made ids, whose tokenizer is unknown */
    const struct tokmap_tokenizer_options *tokenizer_options; /* those it was opened with; NULL: the defaults */
    const char *tokenizer_path;                               /* as it was given; NULL: the tokenizer needs no file */
    const struct corpus_options *corpus;
    uint64_t eod_id, bos_id; /* or TOKMAP_NO_ID */
    const struct corpus_counts *counts;
    uint64_t tokens;
    /* Facts that other content than text, and other options, add. */
    const char *chat_template; /* NULL: no conversations */
    const struct chat_learn *learn;
    const char *const *ignored; /* ignored_count keys of conversations that count for nothing */
    size_t ignored_count;
    uint64_t min_tokens, max_tokens;       /* 0: no limit */
    bool dedup;                            /* true if duplicates were left out */
    const struct minhash_form *minhash;    /* near-duplicates were left out; NULL: they were not */
    const struct listed_documents *listed; /* documents that lists name were left out; NULL: none */
    const struct ngram_table *ngrams;      /* documents with one of them were left out; NULL: none */
    const struct fim *fim;                 /* texts were rearranged; NULL: none was */
    bool has_mask;
    uint64_t counted_tokens;
    const uint64_t *shuffle; /* the seed; NULL: the documents have the order of the inputs */
    /* Limit of tokens and figures of a shard of a set, whose totals these are. 0 and NULL for a single shard. */
    uint64_t shard_tokens;
    uint64_t unit_bytes; /* 0, or of input in each unit of the work */
    const struct shard_totals *shard;
    const char *inputs;        /* the hash of the names of all inputs; NULL: none is stated */
    const struct split *split; /* NULL: none */
    uint32_t set;              /* with a split: the number of the shard's set */
};

/* Returns the section's text, which the caller frees, and sets *bytes to its length. Returns NULL if there is not
 * enough memory. */
char *shard_about_text(const struct shard_about *about, uint64_t *bytes);

/* Adds the members of the object that describes a tokenizer. Its fingerprint identifies it; the paths only say where to
 * look for it, so a tokenizer without a file has none. tokenizer_options and path: as in struct shard_about. */
void shard_about_tokenizer(struct cli_report *report, const struct tokenizer *tokenizer,
                           const struct tokmap_tokenizer_options *options, const char *path);

#endif
