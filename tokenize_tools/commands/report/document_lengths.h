/* SPDX-License-Identifier: MIT */
/* document_lengths.h - the lengths of a dataset's documents, the files that they came from, and texts about both. */
#ifndef TOKMAP_COMMANDS_REPORT_DOCUMENT_LENGTHS_H
#define TOKMAP_COMMANDS_REPORT_DOCUMENT_LENGTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "encode/histogram.h"
#include "platform/table_key.h"

/* ---- input files ---- */

/* Numbers of documents and tokens that came from an input file. */
struct origin_share {
    const char *path; /* not zero-terminated; it belongs to what added it, usually the dataset */
    uint64_t path_bytes;
    uint64_t documents, tokens;
};

/* Begins as zeros. */
struct origin_shares {
    struct origin_share *files; /* in no order before origin_shares_sort() */
    uint64_t count, capacity;
    uint64_t *slots;      /* a hash table: 0, or the number of a file plus 1 */
    struct table_key key; /* of its hashes, because paths are a dataset's to choose */
    uint64_t slot_count;
    uint64_t last; /* the file that was added last: most documents come from that of the document before */
};

/* Adds documents and tokens to a file. Files are equal if their paths have the same bytes. Returns false without
 * memory.
 */
bool origin_shares_add(struct origin_shares *shares, const struct origin_share *more);
/* Sorts by tokens, then by documents, both descending, then by path. Nothing can be added afterward. */
void origin_shares_sort(struct origin_shares *shares);
void origin_shares_free(struct origin_shares *shares); /* accepts zeros */

/* ---- lengths ---- */

/* The documents of a synthetic dataset that are counted. It has very many, all of the same distribution. */
#define SYNTHETIC_DOCUMENTS ((uint64_t)1 << 20)

/* Bin 0 has the empty documents, bin b those of 2^(b - 1) to 2^b - 1 tokens. */
#define LENGTH_BINS 65
struct length_bin {
    uint64_t documents, tokens;
};
/* Returns the bin of a length, and the smallest and the largest length of a bin. */
unsigned length_bin_of(uint64_t tokens);
uint64_t length_bin_from(unsigned bin);
uint64_t length_bin_to(unsigned bin);

/* Result of one pass over the index of documents. */
struct document_report {
    struct histogram lengths;
    uint64_t smallest; /* length; 0 without documents */
    struct length_bin bins[LENGTH_BINS];
    uint64_t counted;           /* documents: of a synthetic dataset, the first SYNTHETIC_DOCUMENTS */
    struct origin_shares files; /* sorted; empty if origins were not asked for */
    struct length_bin unknown;  /* documents whose input file is not recorded */
};

/* Visits every document of a dataset through its index. document_report_free() must follow in any case.
 *   threads   0: one for each processor
 *   origins   also find the input file of each document
 *   progress  enum cli_progress_mode
 * A dataset whose documents are not recorded has none. Statuses: OK, ERROR_MEMORY, ERROR_CORRUPT, ERROR_INTERRUPTED. */
enum tokmap_status document_report_make(struct document_report *report, const struct tokmap_dataset *dataset,
                                        uint64_t threads, bool origins, int progress, struct tokmap_error *error);
void document_report_free(struct document_report *report);

/* Adds "document_tokens" and "lengths": for people percentiles, then a table of the bins with a picture of them, for
 * which the rows before must have been printed. documents: those of the dataset, of which the report may have counted
 * fewer. */
void document_report_add(const struct document_report *lengths, uint64_t documents, struct cli_report *report);

/* Computes only the figures of the lengths. Statuses: as document_report_make(). */
enum tokmap_status dataset_lengths(const struct tokmap_dataset *dataset, int progress, struct lengths *lengths,
                                   struct tokmap_error *error);

/* "p50 312, p90 1,204, p99 8,000, max 120,331, mean 401.2", or "none"; returns `text`. */
#define LENGTHS_TEXT 192
const char *lengths_text(const struct lengths *lengths, char text[LENGTHS_TEXT]);
/* Adds the member "document_tokens": an object with p50, p90, p99, max, and mean, or null. */
void lengths_members(const struct lengths *lengths, struct cli_report *report);

/* "4.37 bytes of text", for the row "a token stands for"; "unknown" without tokens. Returns `text`. */
const char *bytes_a_token_text(uint64_t text_bytes, uint64_t tokens, char text[64]);

#endif
