/*
 * stream.h - the bytes of one input after decompression: a file, a named pipe, standard input; plain, gzip or zstd,
 * told by content. Several gzip members or zstd frames follow each other as one stream. A stream object is used again
 * and again, so that many small files cost no allocation.
 */
#ifndef TOKMAP_CORPUS_STREAM_H
#define TOKMAP_CORPUS_STREAM_H

#include <stdbool.h>

#include "platform/os.h"
#include "tokmap/tokmap.h"

struct stream;

/* stop: asked while a pipe has nothing to read; true ends the wait with ERROR_INTERRUPTED. May be NULL.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status stream_new(struct stream **stream, bool (*stop)(void *user), void *user, struct tokmap_error *error);
void stream_free(struct stream *stream); /* closes it; accepts NULL */

/* Opens path, "-" being standard input. path must live until stream_close.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_ARGUMENT (a folder). */
enum tokmap_status stream_open(struct stream *stream, const char *path, struct tokmap_error *error);
void stream_close(struct stream *stream);

/* The input's name in messages. */
const char *stream_name(const char *path);

/* Reads up to `capacity` bytes (at least 512), at least one unless the input ends: *got is 0 then and *end true. *end
 * may be true with the last bytes already. A pipe gives what it has. The first read refuses forms that are no text.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT (damaged, or garbage after the end), ERROR_UNSUPPORTED (a form
 * that this build cannot read), ERROR_LIMIT (a zstd window too large), ERROR_MISMATCH (changed while it was read),
 * ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status stream_read(struct stream *stream, char *into, size_t capacity, size_t *got, bool *end,
                               struct tokmap_error *error);

const struct os_stat *stream_stat(const struct stream *stream); /* as it was when it was opened */
uint64_t stream_stored(const struct stream *stream);            /* bytes read of the file as it is stored */
bool stream_is_regular(const struct stream *stream);
bool stream_is_compressed(const struct stream *stream); /* known after the first read */
/* True if a read would have to wait for whoever writes the pipe. */
bool stream_would_wait(const struct stream *stream);

#endif
