/* SPDX-License-Identifier: MIT */
/*
 * stream.h - the bytes of one input after decompression. The input is a regular file, a pipe, standard input, or a URL
 * (remote_url.h); it is plain, gzip, zstd, bzip2, xz, or LZ4, which is recognized by content. Several gzip members,
 * zstd frames, or the like in a row are one stream. A stream object is reused for file after file, so that many small
 * files cost no allocation.
 *
 * Thread rule: one thread at a time.
 */
#ifndef TOKMAP_CORPUS_STREAM_H
#define TOKMAP_CORPUS_STREAM_H

#include <stdbool.h>

#include "byte_source.h"

struct stream;

/* Creates a stream without an open file. stop(user) is called about every 0.1 s while a pipe has no bytes; true ends
 * the wait with ERROR_INTERRUPTED. stop may be NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status stream_new(struct stream **stream, bool (*stop)(void *user), void *user, struct tokmap_error *error);
void stream_free(struct stream *stream); /* closes the file; accepts NULL */

/* Sets who learns of URLs (remote_stream.h); called before the first stream_open(). */
void stream_watch(struct stream *stream, const struct remote_watch *watch);

/* From the next stream_open() on, "-" is a feed (byte_source.h) of the process `feeder`; 0: it is not. feed:
 * byte_source.feed_id. */
void stream_feed(struct stream *stream, uint32_t feeder, uint64_t feed);

/* Opens path; "-" is standard input. A file that was open is closed. path must stay valid until stream_close().
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_ARGUMENT (a folder), and for a URL those of remote_open(). */
enum tokmap_status stream_open(struct stream *stream, const char *path, struct tokmap_error *error);
void stream_close(struct stream *stream);

void stream_stand_for(struct stream *stream, uint64_t version, uint64_t bytes); /* byte_source_stand_for() */

/* Returns the name of an input for messages: the path, or "standard input" for "-". (For a URL: remote_shown().) */
const char *stream_name(const char *path);

/* Reads up to `capacity` bytes (at least 512) and sets *got to their number. *end is true if the stream ends behind
 * them; only then can *got be 0. A pipe delivers the bytes that it has. The first read refuses types of files that are
 * not text. Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT (damaged, or other data after the end),
 * ERROR_UNSUPPORTED (a type that this build cannot read), ERROR_LIMIT (more memory needed than allowed), ERROR_MISMATCH
 * (the file changed while it was read), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status stream_read(struct stream *stream, char *into, size_t capacity, size_t *got, bool *end,
                               struct tokmap_error *error);

/* After the first read: continues at byte `offset` of a plain regular file. Returns false, and changes nothing, if the
 * input is another one, or shorter. */
bool stream_seek(struct stream *stream, uint64_t offset);

/* Finds, in a compressed regular file, where a frame begins, at or before byte `offset` of the stream, as near to it as
 * is known. *stored: in the file; *begins: in the stream. Of another input, both are 0. */
void stream_frame_before(const struct stream *stream, uint64_t offset, uint64_t *stored, uint64_t *begins);
/* After the first read: continues where stream_frame_before() said that a frame begins. Returns false, and reads on
 * where it was, if the input is not a compressed regular file of at least `stored` bytes. */
bool stream_seek_frame(struct stream *stream, uint64_t stored, uint64_t begins);

/* Before the first read: the stream of a plain regular file ends at byte `end`, if the file is not shorter. */
void stream_end_at(struct stream *stream, uint64_t end);

/* Returns where the bytes of the open input come from, for what was known when it was opened: its kind, its stat, and
 * the version of a URL. Valid as long as the stream, and also after it was closed. */
const struct byte_source *stream_source(const struct stream *stream);
uint64_t stream_stored(const struct stream *stream); /* bytes read from the file, before decompression */
bool stream_is_regular(const struct stream *stream);
bool stream_is_feed(const struct stream *stream);       /* an error of it ends the work: nothing of it is left out */
bool stream_is_compressed(const struct stream *stream); /* known after the first read */
/* After the first read has failed: returns true if it is a regular file or a URL that begins like a Parquet file. */
bool stream_is_parquet(const struct stream *stream);

/* Sets the error for an open stream whose file is a Parquet file, or is to be read as one: what to do depends on
 * whether it is a pipe, a redirected standard input, or a file that was to be read in another format. Returns its
 * status. */
enum tokmap_status stream_parquet_refused(const struct stream *stream, struct tokmap_error *error);

/* Returns true if a read would have to wait until the writer of the pipe writes more. */
bool stream_would_wait(const struct stream *stream);

#endif
