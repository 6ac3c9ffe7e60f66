/* SPDX-License-Identifier: MIT */
/*
 * byte_source.h - the stored bytes of an input, before decompression: of a file, a pipe, a feed, or a URL. All kinds
 * have one interface, so the reader above (stream.h) asks for bytes, and never where they come from.
 *
 * A pipe ends when nothing holds its other end open any more, whatever the reason: a program that is killed in the
 * middle of its documents ends it like one that has written all of them. The shard would then lack documents,
 * unnoticed. And as long as a child of the program has inherited that end, the pipe does not end at all. A feed
 * is standard input that says itself where it ends:
 *
 *     feed    frame... end
 *     frame   u32 number of bytes, not 0; the bytes
 *     end     u32 0; u64 number of lines in all frames
 *
 * Numbers are little-endian. Frames divide lines anywhere. Example: {"a":1} and {"a":2}, each with its newline, are
 *
 *     08 00 00 00 {"a":1}\n   08 00 00 00 {"a":2}\n   00 00 00 00  02 00 00 00 00 00 00 00
 *
 * A pipe that ends before the end of its feed is an error, and never the end of the documents, and so is a wait for
 * bytes of a process that is gone. Nothing after the end is read, so no reader waits for the end of the pipe.
 *
 * A program that can write the same documents again, from the first one on, gives its feed a number that it makes of
 * the first documents. Work that was cut off is then kept, and continues with a feed of the same number: the documents
 * that were packed are read again and left out.
 *
 * The Python package writes feeds (class _Feed in pack.py) for a command that it starts itself. Bytes come from that
 * process alone: a size in a frame is no reason to allocate memory, and wrong numbers end the work with an error.
 *
 * Thread rule: one thread at a time.
 */
#ifndef TOKMAP_CORPUS_BYTE_SOURCE_H
#define TOKMAP_CORPUS_BYTE_SOURCE_H

#include <stdbool.h>

#include "platform/os.h"
#include "remote/remote_stream.h"

struct byte_source;

/* A kind of input. */
struct byte_source_kind {
    /* Reads up to `capacity` bytes from source->stored on, and adds their number to it. Sets source->ended behind the
     * last byte; only then can *got be 0. */
    enum tokmap_status (*read)(struct byte_source *source, char *into, size_t capacity, size_t *got,
                               struct tokmap_error *error);
    void (*close)(struct byte_source *source);
    bool seekable; /* any byte can be read again: a caller may change source->stored */
    bool ranges;   /* another reader (remote_ahead.h) can read any byte */
    bool is_feed;
    const char *parquet; /* advice for a Parquet file, which is read from its end, */
    const char *page;    /* if a name says that it is compressed, but it is a web page, */
    const char *plain;   /* or something else */
};

/* One struct for all kinds of input, which is opened again for each: most members are those of any kind. Begins as
 * zeros, with the members of the caller. */
struct byte_source {
    /* Members of the caller. stop() is called about every 0.1 s while a pipe has no bytes; true ends the wait. */
    bool (*stop)(void *user);
    void *user;
    const struct remote_watch *watch; /* or NULL */
    uint32_t feeder;                  /* the process of which standard input is a feed, or 0 */
    uint64_t feed_id;                 /* the number by which a feed that can be repeated is known, or 0 */

    const struct byte_source_kind *kind; /* of the input that was opened last, or NULL */
    bool open, ended;
    int fd;                /* of a file or pipe */
    const char *name;      /* for messages */
    struct os_stat stat;   /* when it was opened; a URL looks like a file with the size that the server says, or 0 */
    uint64_t stored;       /* bytes that have been read; of a feed, those in frames */
    uint64_t end;          /* place where the caller ends the reading of a file; 0: its end */
    uint64_t version;      /* of a URL: remote_version(), of a feed: feed_id; of another kind 0 */
    uint64_t bytes;        /* of a URL: its size, or UINT64_MAX; of another kind 0 */
    struct remote *remote; /* the reader of URLs, or NULL before the first one */
    struct feed_state {
        uint64_t left;  /* bytes of the frame that have not come yet */
        uint64_t lines; /* that have come */
        uint8_t head[12];
        size_t head_bytes; /* of the head of the next frame, or of the end, that have come */
    } feed;
};

/* Opens path; "-" is standard input. name: for messages, must stay valid; a URL has one of its own. Statuses: OK,
 * ERROR_NOT_FOUND, ERROR_IO, ERROR_ARGUMENT (a folder), and for a URL those of remote_open(). */
enum tokmap_status byte_source_open(struct byte_source *source, const char *path, const char *name,
                                    struct tokmap_error *error);
/* Closes it, and has it stand for a URL that another reader has open, of a version (remote_version_number()) and size.
 */
void byte_source_stand_for(struct byte_source *source, uint64_t version, uint64_t bytes);
void byte_source_close(struct byte_source *source); /* does nothing if none is open */
void byte_source_free(struct byte_source *source);  /* closes it, too */

/* Reads the next bytes, as kind->read() does; none at the end. Statuses: OK, ERROR_IO, ERROR_MISMATCH (a file or URL
 * changed while it was read), ERROR_INTERRUPTED; of a feed, ERROR_TRUNCATED and ERROR_CORRUPT. */
enum tokmap_status byte_source_read(struct byte_source *source, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error);

/* Returns true if a read would have to wait until the writer of a pipe writes more. */
bool byte_source_waits(const struct byte_source *source);

/* Returns true if another process can read the same bytes again, or fails. Known after the source is closed, too. */
bool byte_source_is_resumable(const struct byte_source *source);

#endif
