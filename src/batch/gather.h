/*
 * gather.h - windows of one dataset into rows: one copy, every id checked on the way, every failure a status.
 *
 * A window is taken modulo the dataset's tokens and may cross shards. One thread at a time may use a gather; it
 * allocates at its opening only (a mapping is made when a shard is touched first). It never decides what is cold: it
 * reports what it met, and asks the storage for what it is told to.
 */
#ifndef TOKMAP_BATCH_GATHER_H
#define TOKMAP_BATCH_GATHER_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct gather;

struct gather_options {
    uint64_t row_tokens;         /* of a window; 1 .. the dataset's tokens */
    enum tokmap_reading reading; /* TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    bool unchecked;              /* do not compare ids with the vocabulary */
    bool drop_behind;            /* pages that were read leave the page cache; TOKMAP_READ_PREAD only */
    bool in_order;               /* windows come in order of tokens: their last page is kept for the next */
};

/* Statuses: OK, ERROR_MEMORY. */
enum tokmap_status gather_open(struct gather **gather, const struct tokmap_dataset *dataset,
                               const struct gather_options *options, struct tokmap_error *error);
void gather_close(struct gather *gather); /* accepts NULL */

/* A new batch of so many windows begins: the sizes of the files it touches are compared with their indexes' again. */
void gather_begin(struct gather *gather, uint64_t windows);

/* Whether windows may be taken to be in the page cache. While they are, a mapping is populated bit by bit. */
void gather_expect_warm(struct gather *gather, bool warm);

/* Copies the window that begins at token `first` to row. *cold: set (never cleared) if some of it was not in the page
 * cache, as far as known.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_TOKEN, ERROR_MEMORY. */
enum tokmap_status gather_window(struct gather *gather, uint64_t first, void *row, bool *cold,
                                 struct tokmap_error *error);

/* Brings the cache lines of a window nearer, where that is possible without a fault. */
void gather_prefetch(const struct gather *gather, uint64_t first);

/* Whether a window is in the page cache, by its first and last page; false if the kernel cannot tell. */
bool gather_is_warm(struct gather *gather, uint64_t first);

bool gather_is_mapped(const struct gather *gather);
/* Pages that were populated may have left the page cache: none is taken to be there any more. */
void gather_forget(struct gather *gather);

/* Asks the storage for a window's pages, those that are known to be there left out. Requests that touch are joined;
 * the last one goes out with gather_flush(). */
void gather_ask(struct gather *gather, uint64_t first);
void gather_flush(struct gather *gather);

/* Bytes of tokens copied so far. Any thread. */
uint64_t gather_bytes(const struct gather *gather);

#endif
