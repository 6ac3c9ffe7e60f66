/* SPDX-License-Identifier: MIT */
/*
 * residency.h - which rows are in memory: the one place that decides whether tokens are expected in the page cache,
 * which pages of a mapping are populated, what the storage is asked to read ahead, and what leaves the page cache after
 * use.
 *
 * A residency serves all sources of a loader. It learns of rows in two ways: rows that come in an order known ahead are
 * announced with residency_next(), and rows that the caller names are announced with residency_named() and
 * residency_named_was(). gather.h, which copies the rows, asks it how to read them and reports what it met.
 *
 * One thread at a time may use a residency. It allocates memory when it is opened and when it forgets populated pages
 * (which may fail without harm). After fork() the child starts without populated pages.
 */
#ifndef TOKMAP_BATCH_RESIDENCY_H
#define TOKMAP_BATCH_RESIDENCY_H

#include <stdbool.h>

#include "common/bits.h"
#include "dataset/row_extents.h"
#include "page_check.h"
#include "read_pool.h"
#include "sealed_rows.h"
#include "shard_views.h"

/* State that all sources of a residency share. */
struct residency_shared {
    uint64_t change_look;       /* the same for changes of files, which cost three times as much to look for */
    uint64_t change_ns;         /* when that began */
    struct shard_pins pins;     /* the shards that are held */
    struct sealed_rows *sealed; /* NULL: no source has a sealed shard */
    uint8_t *span;       /* PAGE_CHECK_SPAN bytes, in which pages are compared; NULL: no source has hashes of them */
    uint64_t look;       /* the sizes of files that were compared in an earlier look are compared again */
    uint64_t look_ns;    /* when it began */
    uint64_t look_bytes; /* bytes that were loaded from mappings since it began */
    uint64_t populate_budget; /* ranges and neighborhoods that may still be populated during this batch */
    uint64_t forgotten;       /* times that the warm state ended: pages populated before may have left the page cache */
    bool warm;                /* nothing is asked for: recent rows were in the page cache */
};

/* The pages of one source. Read its members through the functions below. */
struct residency_source {
    struct shard_views views;
    struct residency_shared *shared; /* the residency's */
    struct read_pool *pool;          /* reads and asks on its threads; NULL: this thread does */
    bool pool_asks;                  /* true if the pool reads ahead; else the kernel is asked to */
    bool remote;                     /* the dataset is in object storage */
    bool drop_behind, in_order;
    bool cannot_tell;     /* the kernel cannot report what is in the page cache */
    uint32_t untold;      /* reads in the warm state since the last one whose pages the kernel was asked about */
    bool cannot_populate; /* the kernel cannot populate a mapping */
    struct page_check check;
    uint64_t *populated; /* one bit per page: 1 if it was populated, and compared if it has hashes. NULL unless the
                            source is mapped */
    uint64_t *whole; /* one bit per range (RANGE_BYTES): 1 if all of it was populated. Its pages may not be compared */
    uint64_t *tried; /* one bit per range: 1 if it was looked at whether it could be populated */
    uint64_t *cleared;        /* changes when pages cease to be populated, and is 0 in a child after fork() */
    uint64_t clearings;       /* the value that it had last */
    uint64_t populated_bytes; /* of all four */
    int kept_fd;      /* file whose page is kept behind a row, because the next row in order needs it; -1: none */
    uint64_t kept_at; /* offset of that page */
    int ask_fd;       /* file of the read-ahead request that is being joined together; -1: none */
    uint64_t ask_from, ask_to;
};

struct residency {
    struct residency_source *sources;
    uint64_t count;
    uint32_t window; /* rows to ask for ahead */
    bool (*order)(void *user, uint64_t number, struct row_extents *row);
    void *user;
    struct residency_shared shared;
    struct residency_source *asking; /* the source whose last request is not sent yet; NULL: none */
    uint32_t streak;                 /* looks in a row that found a row in the page cache */
    uint32_t until_look;             /* rows until the next look */
    uint64_t asked;                  /* rows below this number were asked for, or passed while the state was warm */
};

struct residency_options {
    const struct tokmap_dataset *const *datasets; /* of the sources; they must outlive the residency */
    uint64_t sources;                             /* at least 1 */
    uint32_t window;                              /* rows to ask for ahead, at least 1 */
    bool drop_behind;                             /* pages that were read leave the page cache; implies pread */
    bool trust_files;                             /* rows are not compared with the hashes of pages */
    bool unmapped;                                /* tokens are not read through a mapping */
    bool in_order;                                /* rows come mostly in order of tokens: a row's last page is kept for
                                                   the next row of the source, and dropped if that row is elsewhere */
    /* Reports row `number` of the order, whose extents are used until the next call; false if the order ends before it.
     * It is called for the row that is gathered next and for the `window` rows after it. NULL: all rows are named. */
    bool (*order)(void *user, uint64_t number, struct row_extents *row);
    void *user;
};

/* Opens a residency in the asking state. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status residency_open(struct residency **residency, const struct residency_options *options,
                                  struct tokmap_error *error);
void residency_close(struct residency *residency); /* accepts NULL */

/* From now on, tokens are read by a pool (which may be NULL) that outlives the residency. asks: it reads rows ahead,
 * too, because the storage is slow; otherwise only the kernel is asked to. deadline: it has one. Rows must not be
 * larger than its buffers. */
void residency_set_pool(struct residency *residency, struct read_pool *pool, bool asks, bool deadline);

/* Returns how tokens of source 0 are read: TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD. */
enum tokmap_reading residency_reading(const struct residency *residency);

/* ---- for the loader ---- */

/* Begins a batch of `rows` rows. The size of each file that the batch touches is compared with its index again, unless
 * that was done for a batch that began less than 50 microseconds ago. See also residency_loaded(). */
void residency_begin(struct residency *residency, uint64_t rows);

/* Does the work of residency_next() when there is any. */
void residency_advance(struct residency *residency, uint64_t number, uint64_t batch_end);

/* Announces that row `number` of the order is gathered next. batch_end: the first number of the next batch. Asks the
 * storage for the rows that follow, unless they are expected in the page cache. */
static inline void residency_next(struct residency *residency, uint64_t number, uint64_t batch_end)
{
    if (residency->shared.warm && residency->until_look)
        residency->until_look--;
    else
        residency_advance(residency, number, batch_end);
}

/* Restarts the order at its row 0. */
void residency_restart(struct residency *residency);

/* Reports that a row was not in the page cache. next: the number of the next row of the order. */
void residency_was_cold(struct residency *residency, uint64_t next);

/* Announces that a row outside the order is gathered next. next: the number of the next row of the order. */
void residency_named(struct residency *residency, const struct row_extents *row, uint64_t next);
/* Reports whether that row was in the page cache, after it was gathered. */
void residency_named_was(struct residency *residency, const struct row_extents *row, bool cold, uint64_t next);

/* Asks the storage for the pages of a row, except those that are populated. Requests that touch each other are
 * joined; the last one is sent by residency_flush(). */
void residency_ask(struct residency *residency, const struct row_extents *row);
void residency_flush(struct residency *residency);

/* ---- for gather ---- */

/* Returns whether all pages of a stretch are populated, so that its tokens can be loaded from view->tokens. */
static inline bool residency_is_populated(const struct residency_source *source, const struct stretch *stretch)
{
    uint64_t first, end, base = stretch->view->first_page;
    stretch_pages(&source->views, stretch, &first, &end);
    return source->populated && bits_all(source->populated, base + first, base + end);
}

/* Returns whether all pages of a stretch are populated, but those that have hashes may not be compared. */
static inline bool residency_is_present(const struct residency_source *source, const struct stretch *stretch)
{
    uint64_t first, end, base = stretch->view->first_range;
    stretch_ranges(stretch, &first, &end);
    return source->whole && bits_all(source->whole, base + first, base + end);
}

/* Compares such pages in the mapping, so that they are populated. Statuses: those of page_check_compare(). */
enum tokmap_status residency_compare(struct residency_source *source, const struct stretch *stretch,
                                     struct tokmap_error *error);

/* Populates the ranges of a stretch that is read later, if they are in the page cache and the budget of the batch
 * allows it. Otherwise it is read through its file descriptor. */
void residency_populate_ahead(struct residency_source *source, const struct stretch *stretch);

/* Compares the size of a stretch's file with its index, once per look, and finds out whether the file has changed: its
 * pages are then compared with their hashes again, before more of its tokens are used. Statuses: OK, ERROR_TRUNCATED
 * (*bytes: the size), ERROR_IO (*system: the errno). */
enum tokmap_status residency_look(struct residency_source *source, struct shard_view *view, uint64_t *bytes,
                                  int *system);
/* Returns whether it is time for that. populated: the stretch is to be loaded from the mapping, where a file that was
 * cut raises a signal; otherwise the read reports a cut, and only a change matters. */
static inline bool residency_must_look(const struct residency_source *source, const struct shard_view *view,
                                       bool populated)
{
    if (populated)
        return view->look != source->shared->look;
    return view->hashed && !view->fetched && !source->check.look && view->change_look != source->shared->change_look;
}

/* Asks the pool for a look, if a stretch is read under a deadline, which a look could outlast, and takes note of it
 * when it is there. Until then, pages are compared each time that they are read. So are those of a file of which few
 * stretches are read: a look costs as much as comparing some 100 pages. */
void residency_look_on_thread(struct residency_source *source, struct shard_view *view);

/* Reports that bytes were loaded from a mapping. After RESIDENCY_LOOK_BYTES of them, the sizes of files are compared
 * again: a large batch takes longer than 50 microseconds, and a file may be cut meanwhile. */
#define RESIDENCY_LOOK_BYTES ((uint64_t)128 << 10)
static inline void residency_loaded(struct residency_source *source, uint64_t bytes)
{
    struct residency_shared *shared = source->shared;
    shared->look_bytes += bytes;
    if (shared->look_bytes >= RESIDENCY_LOOK_BYTES) {
        shared->look_bytes = 0;
        shared->look++;
    }
}

/* Copies bytes of a file of the source to `into` as far as they are in the page cache: *got of them, from the first on.
 * Returns false (and *got is 0) if the kernel cannot report what is in the page cache, or need not: in the warm state a
 * source that is not mapped asks for one read in 16. Failures of the storage are left for the read that follows. */
bool residency_read_cached(struct residency_source *source, int fd, uint64_t offset, size_t bytes, void *into,
                           size_t *got);

/* Reads `bytes` bytes from a file of the source into `into`, like os_pread(), by the pool if there is one. Returns 0,
 * an errno, or ETIMEDOUT. */
int residency_read(struct residency_source *source, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got);

/* Reports that a stretch was read through its file descriptor. cold: some of it was not in the page cache. Populates
 * pages of the mapping, or drops pages from the page cache, as the options say. */
void residency_was_read(struct residency_source *source, const struct stretch *stretch, bool cold);

/* Reports the same of a frame of a sealed file. */
void residency_frame_was_read(struct residency_source *source, const struct shard_view *view,
                              const struct sealed_frame *frame);

/* Returns whether an extent is in the page cache, judged by the first and the last page of each of its stretches.
 * Returns false if the kernel cannot report it. */
bool residency_is_cached(struct residency_source *source, const struct tokmap_extent *extent);

/* Treats no page as populated any more, because populated pages may have left the page cache. */
void residency_forget(struct residency_source *source);

#endif
