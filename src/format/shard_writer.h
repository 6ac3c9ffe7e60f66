/*
 * shard_writer.h - writes NAME.bin and NAME.tmx as a stream, and makes them visible whole or not at all.
 *
 * Memory does not grow with tokens, documents or files: documents go straight into the index as its first section; what
 * comes after them is spilled to unnamed files in the target's folder and joined at the commit. Tokens are hashed as
 * they pass. Temporary names are NAME.bin.partial and NAME.tmx.partial; the lock on the second refuses a second writer on
 * one name. A killed writer leaves only these two.
 *
 * Commit: fsync both; with `replace` remove the old .tmx; rename the .bin; rename the .tmx last; fsync the folder. So at
 * every moment there is the old shard, none, or the whole new one.
 */
#ifndef TOKMAP_FORMAT_SHARD_WRITER_H
#define TOKMAP_FORMAT_SHARD_WRITER_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct shard_writer_options {
    uint32_t width;          /* 2 or 4 */
    uint64_t vocabulary;     /* ids must be below it */
    uint64_t eod_id, bos_id; /* or TOKMAP_NO_ID */
    uint8_t tokenizer[16];   /* fingerprint, zero: unknown */
    bool replace;            /* an existing shard of this name is replaced at the commit; else ERROR_EXISTS at once */
    bool sync;               /* fsync before the commit; false only for files that need not last (benchmarks' own) */
};

struct shard_writer; /* one thread at a time */

/* prefix: path without .bin/.tmx. Creates the partial files and takes the lock.
 * Statuses: OK, ERROR_EXISTS, ERROR_BUSY, ERROR_IO, ERROR_NOT_FOUND, ERROR_ARGUMENT, ERROR_MEMORY. */
enum tokmap_status shard_writer_open(struct shard_writer **writer, const char *prefix,
                                     const struct shard_writer_options *options, struct tokmap_error *error);

/* The documents added from now on come from this input file, the next one being its record `record`. path: any bytes.
 * Called for each file, and again where record numbers jump; calls that change nothing cost nothing.
 * Statuses: OK, ERROR_ARGUMENT (a document is open, or earlier documents have no origin), ERROR_MEMORY. */
enum tokmap_status shard_writer_origin(struct shard_writer *writer, const char *path, uint64_t path_bytes,
                                       uint64_t record, struct tokmap_error *error);

/* Appends `count` tokens of the shard's width, cut into documents by ends[0 .. documents), each a count of tokens from
 * the start of this call's tokens; ends never fall, the last is at most `count`. Tokens after the last end begin a
 * document, or go on with one (documents may be 0), that a later call ends: so a document of any size can pass in parts,
 * and the first end of a call ends what earlier calls left open. The documents that end are records record, record + 1,
 * .. of the current origin, which does not change while one is open. largest: the largest id among the tokens (the
 * caller knows it; checked against the vocabulary here, and against the data by verify).
 * Statuses: OK, ERROR_TOKEN, ERROR_IO, ERROR_LIMIT (2^63 bytes), ERROR_ARGUMENT. */
enum tokmap_status shard_writer_add(struct shard_writer *writer, const void *tokens, uint64_t count,
                                    const uint64_t *ends, uint64_t documents, uint64_t largest,
                                    struct tokmap_error *error);

/* Appends `count` tokens of id 0 as one document, without storing them: the .bin gets a hole there. Costs O(count bytes /
 * 1 MiB). For tests and benchmarks that need a sound shard of many TB. The same statuses. */
enum tokmap_status shard_writer_add_zeros(struct shard_writer *writer, uint64_t count, struct tokmap_error *error);

/* What has been added so far. */
uint64_t shard_writer_tokens(const struct shard_writer *writer);
uint64_t shard_writer_documents(const struct shard_writer *writer);

/* Joins, syncs and renames as above, and frees the writer, whatever the status; on failure the partial files are
 * removed and an old shard is as it was, unless the failure came after its .tmx was removed (the message says so).
 * about: JSON text. content: if not NULL, gets the content id.
 * Statuses: OK, ERROR_EXISTS (came into being meanwhile), ERROR_IO, ERROR_ARGUMENT (a document is still open). */
enum tokmap_status shard_writer_commit(struct shard_writer *writer, const char *about, uint64_t about_bytes,
                                       uint8_t content[16], struct tokmap_error *error);

/* Gives up: removes the partial files and frees. Accepts NULL. */
void shard_writer_abort(struct shard_writer *writer);

#endif
