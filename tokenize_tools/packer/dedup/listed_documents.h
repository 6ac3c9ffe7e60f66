/* SPDX-License-Identifier: MIT */
/*
 * listed_documents.h - the documents that the lists of `pack --drop` name. They are left out as if the inputs did not
 * have them: nothing that follows, such as the search for duplicates, sees them.
 *
 * A list is a NAME.dropped (work/dropped_file.h), or a text, perhaps compressed, whose first line is its kind:
 *
 *     tokmap-drop records          a line `PATH<tab>RECORD` for each document: the path of its input, as the inputs are
 *                                  named, and its number in it, from 0, as in NAME.dropped
 *     tokmap-drop texts            a line of 32 hexadecimal digits for each text: its XXH3-128 (document_key.h)
 *
 * Lines may have any order, and may be repeated. In memory each different one has 24 bytes, up to 72 while the list is
 * read, and a bit for each pass over the inputs.
 */
#ifndef TOKMAP_DEDUP_LISTED_DOCUMENTS_H
#define TOKMAP_DEDUP_LISTED_DOCUMENTS_H

#include "common/bytes_buffer.h"
#include "encode/ordered_workers.h"
#include "format/index_writer.h"

#define LISTED_MOST 16 /* lists */

struct listed_documents; /* immutable: any thread may search */

/* Reads lists, whose paths must stay valid. reading: how this command reads its inputs (dropped_reading()). Statuses:
 * OK, those of dropped_open(), dropped_next(), and stream_read(), ERROR_FORMAT (not a list), ERROR_INPUT (a line is
 * wrong), ERROR_MISMATCH (the list is of inputs that were read in another way), ERROR_UNSUPPORTED (it has two inputs of
 * one path), ERROR_LIMIT, ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status listed_documents_open(struct listed_documents **listed, const char *const *paths, size_t count,
                                         const char *reading, bool (*stop)(void *user), void *user,
                                         struct tokmap_error *error);
void listed_documents_close(struct listed_documents *listed); /* accepts NULL */

/* A list: its path, and how many different documents or texts it names. */
struct listed_list {
    const char *path;
    uint64_t entries;
};
size_t listed_documents_count(const struct listed_documents *listed);
struct listed_list listed_documents_list(const struct listed_documents *listed, size_t number);
/* Returns whether a list has numbers of records, which are those of whole files. */
bool listed_documents_by_record(const struct listed_documents *listed);
/* 128 bits that depend on all that the lists name. */
void listed_documents_identity(const struct listed_documents *listed, uint8_t identity[16]);

/* Removes the listed documents from a batch. */
void listed_documents_remove(const struct listed_documents *listed, struct corpus_batch *batch);

/* Numbers of the closing report. */
struct listed_counts {
    uint64_t documents;            /* that were read, listed or not */
    uint64_t dropped[LISTED_MOST]; /* by the first list that names them */
    uint64_t missing[LISTED_MOST]; /* entries of the list that are in no input */
};

/* One pass over the inputs, or what several passes have found. */
struct listed_search;

/* items: ordered_workers_item_count(). counts: of committed batches. saves: listed_search_save() will be called.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status listed_search_new(struct listed_search **search, const struct listed_documents *listed,
                                     uint32_t items, struct listed_counts *counts, bool saves,
                                     struct tokmap_error *error);
void listed_search_free(struct listed_search *search); /* accepts NULL */

/* Removes the listed documents from a batch, in any thread, and counts that when it is committed. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status listed_search_batch(struct listed_search *search, struct work_item *item,
                                       struct tokmap_error *error);
enum tokmap_status listed_search_committed(struct listed_search *search, const struct work_item *item,
                                           struct tokmap_error *error);

/* Pass on which entries were found since the last call, or list those of all batches; listed_search_load() takes
 * them. Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
void listed_search_save(struct listed_search *search, struct state_sink *sink);
enum tokmap_status listed_search_found(const struct listed_search *search, struct bytes_buffer *found,
                                       struct tokmap_error *error);
enum tokmap_status listed_search_load(struct listed_search *search, const uint8_t *bytes, size_t count,
                                      struct tokmap_error *error);

/* At the end of all inputs: counts the entries that are in no input, and refuses them unless `skips`. Statuses: OK,
 * ERROR_INPUT, ERROR_MISMATCH (a list is of other inputs). */
enum tokmap_status listed_search_check(struct listed_search *search, bool skips, struct tokmap_error *error);

#endif
