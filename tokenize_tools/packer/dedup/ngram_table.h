/* SPDX-License-Identifier: MIT */
/*
 * ngram_table.h - finds texts that contain an n-gram of a list: N consecutive words of a line or record of the files of
 * `pack --exclude-ngrams`, such as evaluation sets.
 *
 * A word is what is between two places with white space (that of Unicode, and the bytes 0x1c to 0x1f, as Python's
 * str.split() has it), with ASCII letters in lower case and without ASCII punctuation
 * (!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~); if nothing remains, it does not count. This is the normalization of the
 * decontamination of lm-evaluation-harness, and N is 13 there and in the GPT-3 paper.
 *
 * Example, with N = 3: "It's a dog-house, NOT a cat." has the words its a doghouse not a cat and four 3-grams.
 *
 * The search is exact: an n-gram is found by the sum of the hashes of its words, and then compared. Its time is
 * proportional to the text, because the sum moves from word to word, and the hash of a word depends on a random key, so
 * that no text can be made whose sums are often those of other n-grams.
 */
#ifndef TOKMAP_DEDUP_NGRAM_TABLE_H
#define TOKMAP_DEDUP_NGRAM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "minhash.h"
#include "tokmap/tokmap.h"
#include "word_grams.h"

#define NGRAM_WORDS_MOST 1000
#define NGRAM_NONE UINT64_MAX

struct ngram_table; /* immutable after ngram_table_finish(): any thread may search */

/* Figures of a list. */
struct ngram_counts {
    uint64_t files, texts; /* texts: lines of text files, and records */
    uint64_t short_texts;  /* with fewer than N words: they have no n-gram and exclude nothing */
    uint64_t ngrams;       /* different ones */
    uint64_t listed;       /* all; their numbers are below it */
};

struct ngram_origin {
    const char *path;
    uint64_t record;  /* number of the line or record, from 0 */
    const char *text; /* the words, separated by blanks; not terminated */
    uint64_t bytes;
};

/* words: N, 1 to NGRAM_WORDS_MOST. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status ngram_table_new(struct ngram_table **table, uint32_t words, struct tokmap_error *error);
void ngram_table_free(struct ngram_table *table); /* accepts NULL */

/* Adds the n-grams of a text; not after ngram_table_finish(). A path that is the last one's is the same file. Statuses:
 * OK, ERROR_LIMIT (2^32 - 1 n-grams), ERROR_MEMORY. */
enum tokmap_status ngram_table_add(struct ngram_table *table, const char *text, uint64_t bytes, const char *path,
                                   uint64_t record, struct tokmap_error *error);

/* Adds the texts of files: each line of a text file, or the field of each record (JSONL, JSON, Parquet; also
 * compressed), as the packer reads its inputs. The first error ends the work. Statuses: those of the corpus. */
enum tokmap_status ngram_table_load(struct ngram_table *table, const char *const *files, size_t count,
                                    const char *field, bool (*stop)(void *user), void *user,
                                    struct tokmap_error *error);

/* Prepares for searching. Statuses: OK, ERROR_INPUT (there is no n-gram), ERROR_MEMORY. */
enum tokmap_status ngram_table_finish(struct ngram_table *table, struct tokmap_error *error);

void ngram_table_counts(const struct ngram_table *table, struct ngram_counts *counts);
uint32_t ngram_table_words(const struct ngram_table *table);
/* 128 bits that depend on N and on all different n-grams, in the order in which they were added. */
void ngram_table_identity(const struct ngram_table *table, uint8_t identity[16]);

/* State of one thread that searches. Begins as zero bytes. */
struct ngram_search {
    struct word_grams grams;
    uint64_t *hashes; /* of the words of a block */
};
void ngram_search_free(struct ngram_search *search);

/* Finds the first n-gram of the list in two texts, one after the other; the second one may be NULL. *found: its number,
 * or NGRAM_NONE. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status ngram_table_find(const struct ngram_table *table, struct ngram_search *search, const char *text,
                                    uint64_t bytes, const char *second, uint64_t second_bytes, uint64_t *found,
                                    struct tokmap_error *error);

/* Describes an n-gram: where it was listed first. Valid until ngram_table_free(). */
void ngram_table_origin(const struct ngram_table *table, uint64_t ngram, struct ngram_origin *origin);

/* Which documents are left out (drop_filter.h). */
struct drop_options {
    bool duplicates;
    const struct minhash_form *minhash; /* near-duplicates are dropped; NULL: they are kept */
    uint64_t memory;                    /* for their keys */
    const struct ngram_table *ngrams;   /* NULL: none are excluded */
};

/* How the stages work that find them (dedup_stages.h). */
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
