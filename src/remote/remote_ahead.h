/* SPDX-License-Identifier: MIT */
/*
 * remote_ahead.h - parts of objects and of files of web servers, fetched before a reader asks for them.
 *
 * A file that is read from its end and in places, such as Parquet, is opened by one request for its last AHEAD_TAIL
 * bytes, which also says its size and version. The reader then plans: it names the parts that it will read, in pieces
 * that are requests, in the order in which it will need them. Threads fetch the pieces in that order, AHEAD_HELD bytes
 * at most before the reader takes them. What was not planned is fetched when it is read. Example, of a file whose plan
 * has pieces of 4 MiB in the order A1 B1 A2 B2:
 *
 *     fetched, not read yet      reader
 *     A1 B1 A2 B2                reads A1 to its end: its memory becomes free, and the next piece is asked for
 *        B1 A2 B2 A3             waits for B3: it is fetched now, also if that is more than AHEAD_HELD
 *
 * Every answer must be of the version that the first one named (remote_version.h). A file of a server that does not
 * serve ranges, or names no version, is fetched whole, if it has at most AHEAD_WHOLE bytes.
 *
 * Files that are opened share the threads, whose connections are kept; the pieces of the file that was opened first
 * come first. Thread rule: a file belongs to one thread at a time. Several threads may open, read, and close files.
 */
#ifndef TOKMAP_REMOTE_REMOTE_AHEAD_H
#define TOKMAP_REMOTE_REMOTE_AHEAD_H

#include "remote_client.h"

#define AHEAD_TAIL ((uint64_t)64 << 10)
#define AHEAD_PIECE ((uint64_t)4 << 20) /* most bytes of a piece */
#define AHEAD_HELD ((uint64_t)32 << 20)
#define AHEAD_WHOLE ((uint64_t)64 << 20)

struct remote_ahead;
struct ahead_file;

/* A part of a file, in a piece. The bytes of a piece are those from its first part to its last. */
struct ahead_part {
    uint64_t offset, bytes; /* bytes: at least 1 */
    uint32_t piece;
    bool read; /* private; false */
};

/* Makes the threads' shared state. stop(user) is called from any thread; true ends all waits. watch: see remote_new().
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status remote_ahead_new(struct remote_ahead **ahead, bool (*stop)(void *user), void *user,
                                    const struct remote_watch *watch, struct tokmap_error *error);
void remote_ahead_stop(struct remote_ahead *ahead); /* ends all waits; what is read from now on may be an error */
void remote_ahead_free(struct remote_ahead *ahead); /* ends the threads; all files are closed; accepts NULL */

/* Opens a file. kept: what ahead_file_keep() made of it, which takes the place of the first request; or empty, or NULL:
 * then only the last bytes can be kept. Statuses: those of remote_open(). */
enum tokmap_status ahead_file_open(struct ahead_file **file, struct remote_ahead *ahead, const char *name,
                                   const struct bytes_buffer *kept, struct tokmap_error *error);
/* Appends the size, the version, and the end of the file, as far as it was read before ahead_file_plan(). Returns false
 * if they were known before, if the file was fetched whole, or without memory. */
bool ahead_file_keep(const struct ahead_file *file, struct bytes_buffer *into);
void ahead_file_close(struct ahead_file *file); /* accepts NULL */

void ahead_file_about(const struct ahead_file *file, uint64_t *bytes, uint64_t *version); /* remote_version_number() */

/* Names what will be read, once. parts: in the order of their offsets, without common bytes, and inside the file; the
 * file takes the memory. pieces: their number; the first is needed first. Without memory or threads for it, nothing is
 * fetched ahead. */
void ahead_file_plan(struct ahead_file *file, struct ahead_part *parts, uint64_t count, uint32_t pieces);

/* Reads `count` bytes, which the file has. Statuses: OK, ERROR_MISMATCH (the file has changed), those of
 * remote_open(). */
enum tokmap_status ahead_file_read(struct ahead_file *file, void *into, uint64_t offset, size_t count,
                                   struct tokmap_error *error);

#endif
