/* SPDX-License-Identifier: MIT */
/*
 * page_check.h - compares pages of token files with the hashes that their indexes have, so that a damaged or exchanged
 * file is a status and never a row of wrong tokens.
 *
 * Each page is compared when a loader reads it for the first time. One bit per page remembers that, and a page whose
 * bit is set costs nothing more. If a file turns out to have changed, its bits are cleared. Shards without hashes of
 * pages (of other projects, with holes, or packed before format 1.3) have nothing to compare, and count as compared.
 *
 * Pages here are those of the format, TOKEN_PAGE_BYTES; the machine's may be larger. One thread at a time may use it.
 */
#ifndef TOKMAP_BATCH_PAGE_CHECK_H
#define TOKMAP_BATCH_PAGE_CHECK_H

#include <stdbool.h>

#include "format/layout.h"
#include "read_pool.h"
#include "shard_views.h"

/* A span, which is read at once to be compared, has at most so many bytes. */
#define PAGE_CHECK_SPAN ((uint64_t)128 << 10)

struct page_check {
    struct shard_views *views;
    struct read_pool *pool; /* reads hashes, too, so that a deadline holds for them; NULL: none */
    uint64_t *compared;     /* one bit per page; NULL: nothing is compared */
    uint64_t compared_bytes;
    const uint64_t *look; /* if the pool has a deadline, pages count as compared where this was the file's last look */
    uint32_t *hashes;     /* those that were read, and 0 for the other pages; NULL: they are not kept */
    uint64_t hashes_bytes;
};

/* Statuses: OK, ERROR_MEMORY. */
enum tokmap_status page_check_open(struct page_check *check, struct shard_views *views, struct tokmap_error *error);
void page_check_close(struct page_check *check);

/* Returns whether all pages of a stretch have been compared, or need not be. */
bool page_check_done(const struct page_check *check, const struct stretch *stretch);

/* Compares pages of a file, which are in memory: `bytes` bytes from page `first` on, all whole but the last one of the
 * file. Pages that count as compared are left out. Statuses: OK, ERROR_CORRUPT (the error has the first page that does
 * not match), ERROR_IO, ERROR_TRUNCATED, ERROR_TIMEOUT (of reading hashes). */
enum tokmap_status page_check_compare(struct page_check *check, struct shard_view *view, uint64_t first,
                                      const uint8_t *pages, uint64_t bytes, struct tokmap_error *error);

/* Opens the index of a file for the pool, the first time. Returns whether it is open. */
bool page_check_index(const struct page_check *check, struct shard_view *view);

/* Asks the storage for the hashes of a stretch. A hint. */
void page_check_ask(const struct page_check *check, const struct stretch *stretch);

/* Treats no page of a file as compared any more. */
void page_check_forget(struct page_check *check, const struct shard_view *view);

/* Prefetches the pages of a stretch that were not compared, whose file is at `file`, into the processor's second-level
 * cache. Never faults. */
void page_check_prefetch(const struct page_check *check, const struct stretch *stretch, const uint8_t *file);

/* Returns the span to read for the bytes of a stretch from offset `at` of the file on: whole pages. */
static inline struct stretch page_check_span(const struct stretch *stretch, uint64_t at)
{
    const struct shard_view *view = stretch->view;
    const uint64_t from = round_down(at, TOKEN_PAGE_BYTES);
    const uint64_t end = round_up(stretch->offset + (stretch->count << view->element_shift), TOKEN_PAGE_BYTES);
    const uint64_t to = min64(min64(end, from + PAGE_CHECK_SPAN), view->file.bytes);
    return (struct stretch){stretch->view, from, (to - from) >> view->element_shift};
}

#endif
