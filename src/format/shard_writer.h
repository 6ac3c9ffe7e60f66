/* SPDX-License-Identifier: MIT */
/*
 * shard_writer.h - writes NAME.bin and NAME.tmx as a stream, and makes them visible either complete or not at all.
 *
 * The memory of a writer does not grow with tokens, documents, or files; each column takes up to 18 MiB. The documents
 * section is the first of the
 * index, so document ends are written to it directly. Later sections are spilled to unnamed files in the target's
 * folder and appended at the commit. Tokens are hashed while they are written. The files under construction are
 * NAME.bin.partial and NAME.tmx.partial. A lock on the second one keeps a second writer from using the same name. A
 * writer that is killed leaves only these two files.
 *
 * The commit syncs all files and gives them their names as shard_commit.h describes. At every moment a reader finds
 * the old shard or the complete new one, or, if there was none before, no shard.
 */
#ifndef TOKMAP_FORMAT_SHARD_WRITER_H
#define TOKMAP_FORMAT_SHARD_WRITER_H

#include "writer_options.h"

struct shard_writer; /* for one thread at a time */

/* Creates the partial files and takes the lock. prefix: the path of the shard without .bin or .tmx.
 * Statuses: OK, ERROR_EXISTS, ERROR_BUSY, ERROR_IO, ERROR_NOT_FOUND, ERROR_ARGUMENT, ERROR_MEMORY. */
enum tokmap_status shard_writer_open(struct shard_writer **writer, const char *prefix,
                                     const struct shard_writer_options *options, struct tokmap_error *error);

/* States where the documents that are added next come from: the next one is record `record` of this input file.
 * path: any bytes. To be called for each file, and again where record numbers jump. A call that changes nothing
 * costs nothing. Statuses: OK, ERROR_ARGUMENT (a document is open, or earlier documents have no origin),
 * ERROR_MEMORY. */
enum tokmap_status shard_writer_origin(struct shard_writer *writer, const char *path, uint64_t path_bytes,
                                       uint64_t record, struct tokmap_error *error);

/* Appends `count` tokens of the shard's width. ends[0 .. documents) cut them into documents; each end is a number of
 * tokens from the start of this call's tokens. Ends never decrease, and the last one is at most `count`. Tokens
 * after the last end belong to a document that a later call ends, so a document of any size can be added in parts
 * (with documents == 0), and the first end of a call ends the document that earlier calls left open. The documents
 * that end are records `record`, `record` + 1, and so on of the current origin, which cannot change while a document
 * is open. largest: the largest id among the tokens; this function checks it against the vocabulary, and verify
 * checks it against the data. Statuses: OK, ERROR_TOKEN, ERROR_IO, ERROR_LIMIT (2^63 bytes), ERROR_ARGUMENT. */
enum tokmap_status shard_writer_add(struct shard_writer *writer, const void *tokens, uint64_t count,
                                    const uint64_t *ends, uint64_t documents, uint64_t largest,
                                    struct tokmap_error *error);

/* Appends `count` tokens of id 0 as one document without storing them: the .bin has a hole there. The cost is
 * proportional to the number of 1 MiB blocks. For tests and benchmarks that need a valid shard of many TB. Statuses:
 * those of shard_writer_add(). */
enum tokmap_status shard_writer_add_zeros(struct shard_writer *writer, uint64_t count, struct tokmap_error *error);

/* States which of the next `count` tokens that have no bits yet count as targets: token i of this call does if bit
 * (first + i) mod 8 of byte (first + i) / 8 is 1. Only with options.mask, which makes NAME.mask. Bits may be added
 * before or after their tokens, but before the commit each token must have one. Statuses: OK, ERROR_IO, ERROR_ARGUMENT.
 */
enum tokmap_status shard_writer_mask(struct shard_writer *writer, const uint8_t *bits, uint64_t first, uint64_t count,
                                     struct tokmap_error *error);

/* States the values of the columns for the next `documents` documents that have no values yet: values[d * column_count
 * + c] is that of column c. Values may be added before or after the tokens of their documents, but before the commit
 * each document must have its values. They are copied. Each one must be sound (see shard_value_is_sound()); a call with
 * one that is not stores nothing. Statuses: OK, ERROR_INPUT (a value is not sound; *error names its document and
 * column), ERROR_IO, ERROR_MEMORY, ERROR_LIMIT, ERROR_ARGUMENT (the shard has no columns). */
enum tokmap_status shard_writer_values(struct shard_writer *writer, const struct shard_value *values,
                                       uint64_t documents, struct tokmap_error *error);

/* Return the tokens and documents that have been added so far. */
uint64_t shard_writer_tokens(const struct shard_writer *writer);
uint64_t shard_writer_documents(const struct shard_writer *writer);

/* Does everything of shard_writer_commit() but the names, once: readers find the old shard until that is called, then
 * without `about` and `content`. After a failure the writer can only be freed. Arguments and statuses: as there. */
enum tokmap_status shard_writer_finish(struct shard_writer *writer, const char *about, uint64_t about_bytes,
                                       uint8_t content[16], struct tokmap_error *error);

/* Appends the spilled sections, syncs, and renames as described above. Frees the writer with every status. On
 * failure the partial files are removed, unless shard_save.h has saved the state, and an old shard remains unchanged,
 * unless the message says something else. With options.seal and options.waits, the tokens of a state that was saved
 * stay under their partial name, because options.resume needs them until a later state is saved. about: JSON text.
 * content: if not NULL, receives the content id. Statuses: OK, ERROR_EXISTS (another process created the shard in the
 * meantime), ERROR_IO, ERROR_MEMORY, ERROR_INTERRUPTED, ERROR_LIMIT, ERROR_CORRUPT (with options.seal: see
 * shard_seal()), ERROR_ARGUMENT (a document is still open, the mask has fewer or more bits than there are tokens, or
 * fewer or more documents have values of columns than there are documents). */
enum tokmap_status shard_writer_commit(struct shard_writer *writer, const char *about, uint64_t about_bytes,
                                       uint8_t content[16], struct tokmap_error *error);

/* Removes the partial files and frees the writer. NULL is ignored. */
void shard_writer_abort(struct shard_writer *writer);

/* Frees the writer and leaves what options.resume needs. NULL is ignored. */
void shard_writer_leave(struct shard_writer *writer);

#endif
