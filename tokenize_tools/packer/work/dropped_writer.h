/* SPDX-License-Identifier: MIT */
/*
 * dropped_writer.h - writes NAME.dropped (dropped_file.h) as NAME.dropped.partial, which gets its name when it is
 * complete. One thread at a time uses a writer.
 */
#ifndef TOKMAP_WORK_DROPPED_WRITER_H
#define TOKMAP_WORK_DROPPED_WRITER_H

#include <stdbool.h>

#include "dropped_file.h"
#include "format/name_files.h"

struct dropped_writer;

/* Creates the partial file of the dataset or shard `name`. An existing list is replaced by dropped_writer_commit(); any
 * other file of its name is refused. Statuses: OK, ERROR_EXISTS, ERROR_BUSY (another process writes it), ERROR_IO,
 * ERROR_NOT_FOUND, ERROR_MEMORY. */
enum tokmap_status dropped_writer_open(struct dropped_writer **writer, const char *name, struct tokmap_error *error);

/* Says how the inputs are read (dropped_reading()), before any entry. Statuses: OK, ERROR_IO. */
enum tokmap_status dropped_writer_reading(struct dropped_writer *writer, const char *reading,
                                          struct tokmap_error *error);

/* Add an entry, before dropped_writer_finish(). The first two give it the next number, from 0; a longer n-gram is cut
 * at DROPPED_NGRAM_MOST bytes, or before, between two characters. `near`: the duplicate is a near-duplicate. After a
 * failure the writer can only be abandoned. Statuses: OK, ERROR_IO. */
#define DROPPED_NGRAM_MOST 4096
enum tokmap_status dropped_writer_input(struct dropped_writer *writer, const char *path, struct tokmap_error *error);
enum tokmap_status dropped_writer_ngram(struct dropped_writer *writer, const char *text, uint64_t bytes,
                                        const char *path, uint64_t record, struct tokmap_error *error);
enum tokmap_status dropped_writer_duplicate(struct dropped_writer *writer, bool near, uint32_t input, uint64_t record,
                                            uint32_t kept_input, uint64_t kept_record, struct tokmap_error *error);
enum tokmap_status dropped_writer_excluded(struct dropped_writer *writer, uint32_t input, uint64_t record,
                                           uint64_t ngram, struct tokmap_error *error);

/* State of a list, beside the bytes in its file. */
struct dropped_state {
    uint64_t stored; /* bytes of the file */
    uint64_t inputs, ngrams, duplicates, excluded, minor;
    uint64_t hash; /* XXH3-64 of the entries so far */
};

/* Writes all entries, and describes the file, so that dropped_writer_reopen() can continue it in another process;
 * dropped_writer_sync() brings it to storage. Statuses: OK, ERROR_IO. */
enum tokmap_status dropped_writer_save(struct dropped_writer *writer, struct dropped_state *state,
                                       struct tokmap_error *error);
enum tokmap_status dropped_writer_sync(struct dropped_writer *writer, struct tokmap_error *error);

/* Opens the partial file that a killed process has left, and cuts it to the entries of *state. If that process has
 * already given the complete list with these entries its name, dropped_writer_finish() and dropped_writer_commit() have
 * nothing to do. Statuses: OK, ERROR_NOT_FOUND (there is neither), ERROR_CORRUPT (its entries are others), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status dropped_writer_reopen(struct dropped_writer **writer, const char *name,
                                         const struct dropped_state *state, struct tokmap_error *error);

/* Frees the writer, and leaves its partial file for dropped_writer_reopen(). NULL is ignored. */
void dropped_writer_leave(struct dropped_writer *writer);

/* Completes the file, once, and, with `sync`, brings it to storage. documents: how many were read. Statuses: OK,
 * ERROR_IO. */
enum tokmap_status dropped_writer_finish(struct dropped_writer *writer, uint64_t documents, bool sync,
                                         struct tokmap_error *error);

/* Returns the header, whose counts are those of the entries so far. */
const struct dropped_header *dropped_writer_header(const struct dropped_writer *writer);

/* Gives the complete file its name and, with the `sync` of dropped_writer_finish(), brings that to storage, too. An
 * older list of this name is replaced. Statuses: OK, ERROR_IO. */
enum tokmap_status dropped_writer_commit(struct dropped_writer *writer, struct tokmap_error *error);

/* Notes that the complete file gets its name with the shard (shard_commit.h) or as one of a group (name_files.h), by
 * this process or another: it stays. */
void dropped_writer_given(struct dropped_writer *writer);

/* Removes the partial file, unless it was committed, and frees the writer. NULL is ignored. */
void dropped_writer_free(struct dropped_writer *writer);

/* At the end of a pack, makes NAME.dropped the list of the output: adds it to the group of set_work_group(), or, if the
 * output has none, the removal of an old or unfinished one. group: NULL for one shard, which is replaced together with
 * its list (format/shard_commit.h); then only an unfinished one is removed. */
void drop_names_add(struct name_files *group, const char *name, bool listed);

#endif
