/* SPDX-License-Identifier: MIT */
/*
 * shuffle_hand.h - the end of the shuffle: makes documents of records (shuffle_chunks.h), and adds them to shard sets
 * in the order in which the records come. The payload of a long document is copied from its file in slabs, unless it
 * has a mask.
 */
#ifndef TOKMAP_SHUFFLE_SHUFFLE_HAND_H
#define TOKMAP_SHUFFLE_SHUFFLE_HAND_H

#include "encode/shard_set.h"
#include "shuffle_chunks.h"

/* Whose records they are. */
struct shuffle_source {
    const char *const *paths; /* of the inputs */
    uint64_t inputs;          /* their number */
    uint64_t records_before;  /* is added to each record number */
    int long_fd;              /* of the long documents; -1: without any, or `long_path` is opened when it is read */
    const char *long_path;    /* or NULL */
    uint64_t long_bytes;
};

struct shuffle_hand_options {
    uint32_t width;   /* of a token in bytes */
    uint32_t columns; /* values of a document */
    bool mask;
    const char *folder; /* of the files, for messages */
    /* Bound for files of another process: what is held of a long document, with a mask all of it and else its values,
     * has at most so many bytes. 0: any number. */
    uint64_t whole_most;
    uint64_t largest; /* as in struct document_run */
    uint64_t tokens;  /* of all documents, for progress() */
    /* Either may be NULL. */
    bool (*stop)(void *user);
    void (*progress)(void *user, uint64_t tokens, uint64_t all);
    void *user;
};

struct shuffle_hand; /* for one thread at a time */

/* done: tokens of documents that were handed over before. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status shuffle_hand_new(struct shuffle_hand **hand, const struct shuffle_hand_options *options,
                                    uint64_t done, struct tokmap_error *error);
void shuffle_hand_free(struct shuffle_hand *hand); /* accepts NULL */

/* Calls stop() and progress(), if it is time for it, which *due says. Statuses: OK, ERROR_INTERRUPTED. */
enum tokmap_status shuffle_hand_check(struct shuffle_hand *hand, bool *due, struct tokmap_error *error);

/* Adds the document of a record, whose hash is right, to a set. Statuses: OK, ERROR_CORRUPT (of what it says, or a file
 * is not what was written), ERROR_IO, ERROR_MEMORY, ERROR_INTERRUPTED, those of shard_set_add(). */
enum tokmap_status shuffle_hand_record(struct shuffle_hand *hand, struct shard_set *set,
                                       const struct shuffle_source *source, const struct shuffle_head *head,
                                       const uint8_t *record, struct tokmap_error *error);

/* Tokens of all documents that were handed over. */
uint64_t shuffle_hand_done(const struct shuffle_hand *hand);

#endif
