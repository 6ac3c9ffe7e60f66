/*
 * document_feed.h - standard input that says itself where it ends.
 *
 * A pipe ends when nothing holds its other end open any more, whatever the reason: a program that is killed in the
 * middle of its documents ends it like one that has written all of them. The shard would then lack documents, and
 * nobody would know. And as long as a child of the program has inherited that end, the pipe does not end at all. A feed
 * has an end of its own instead:
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
 * bytes of a process that is gone. Nothing after the end is read, so nobody waits for the end of the pipe.
 *
 * The Python package writes feeds (class _Feed in pack.py) for a command that it starts itself. Bytes come from that
 * process alone: a size in a frame is no reason to allocate memory, and wrong numbers end the work with an error.
 *
 * Thread rule: one thread at a time.
 */
#ifndef TOKMAP_INPUTS_DOCUMENT_FEED_H
#define TOKMAP_INPUTS_DOCUMENT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

struct document_feed {
    uint32_t feeder; /* the process that writes it, which has started this one; 0: there is no feed */
    bool over;       /* the end has come */
    uint64_t left;   /* bytes of the frame that have not come yet */
    uint64_t lines;  /* that have come */
    uint8_t head[12];
    size_t head_bytes; /* of the head of the next frame, or of the end, that have come */
};

/* A feed of which nothing has come yet. */
void document_feed_begin(struct document_feed *feed, uint32_t feeder);

/* What comes next, unless the feed is over: if feed->left is 0, *bytes bytes of the head, to be read to the place that
 * is returned; otherwise NULL, and up to feed->left bytes of a frame. */
uint8_t *document_feed_head(struct document_feed *feed, size_t *bytes);

/* `bytes` bytes of the head, or of the frame, have come; bytes_of_frame is NULL for the head. path, offset: for the
 * message. Statuses: OK, ERROR_CORRUPT (the end names another number of lines than have come). */
enum tokmap_status document_feed_take(struct document_feed *feed, const char *bytes_of_frame, size_t bytes,
                                      const char *path, uint64_t offset, struct tokmap_error *error);

/* Whether the process that writes the feed is gone. What it has written can still be in the pipe. */
bool document_feed_is_left(const struct document_feed *feed);

/* Sets the error of a pipe that ended before its feed was over; returns ERROR_TRUNCATED. */
enum tokmap_status document_feed_cut_off(const struct document_feed *feed, const char *path, uint64_t offset,
                                         struct tokmap_error *error);

#endif
