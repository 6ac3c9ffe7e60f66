/* SPDX-License-Identifier: MIT */
/*
 * page_check.c - see page_check.h.
 *
 * An example. A row has the 4096 bytes of a file from byte 5000 on, so they are on pages 1 and 2. A loader reads bytes
 * 4096 to 12287, compares both pages with hashes 1 and 2 of the index, and copies the row's bytes out. Storage and page
 * cache work in whole pages, so this reads nothing that would not be read anyway. The hashes take a thousandth of the
 * tokens: a page of the index has those of 4 MiB.
 *
 * A system call for the two hashes of each row would be a fifth of the time of a first pass over tokens in the page
 * cache. So the hashes of 4 MiB are read at once and kept, in memory that is taken as it is used. Of datasets so large
 * that this could be much memory, no hashes are kept: such a dataset is seldom in the page cache as a whole.
 */
#include "page_check.h"

#include <assert.h>
#include <errno.h>

#include "common/bits.h"
#include "common/error.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "platform/os.h"

#define HASHES_AT_ONCE ((uint64_t)32)
#define KEPT_AT_ONCE ((uint64_t)1024)     /* hashes that are read at once to be kept */
#define KEPT_AT_MOST ((uint64_t)32 << 20) /* bytes of hashes: those of 32 GiB of tokens */

enum tokmap_status page_check_open(struct page_check *check, struct shard_views *views, struct tokmap_error *error)
{
    void *bits;
    *check = (struct page_check){.views = views};
    if (!views->views || !views->compared)
        return TOKMAP_OK;
    check->compared_bytes = (views->hashes + 63) / 64 * 8;
    if (os_memory_new(check->compared_bytes, false, &bits))
        return error_set_memory(error, "the table of pages", check->compared_bytes);
    check->compared = bits;
    check->hashes_bytes = views->hashes * sizeof *check->hashes;
    if (check->hashes_bytes <= KEPT_AT_MOST && !os_memory_new(check->hashes_bytes, false, &bits))
        check->hashes = bits;
    return TOKMAP_OK;
}

/* Returns whether pages of a file that were compared before count. */
static bool counts(const struct page_check *check, const struct shard_view *view)
{
    return !check->look || view->fetched || view->change_look == *check->look;
}

void page_check_close(struct page_check *check)
{
    os_memory_free(check->compared, check->compared_bytes);
    os_memory_free(check->hashes, check->hashes_bytes);
    *check = (struct page_check){.views = NULL};
}

static void pages_of(const struct stretch *stretch, uint64_t *first, uint64_t *end)
{
    const uint64_t bytes = stretch->count << stretch->view->element_shift;
    *first = stretch->offset / TOKEN_PAGE_BYTES;
    *end = (stretch->offset + bytes - 1) / TOKEN_PAGE_BYTES + 1;
}

bool page_check_done(const struct page_check *check, const struct stretch *stretch)
{
    uint64_t first, end;
    if (!stretch->view->hashed)
        return true;
    if (!counts(check, stretch->view))
        return false;
    pages_of(stretch, &first, &end);
    return bits_all(check->compared, stretch->view->first_hash + first, stretch->view->first_hash + end);
}

bool page_check_index(const struct page_check *check, struct shard_view *view)
{
    if (!view->index_looked) {
        view->index_looked = true;
        if (!dataset_page_hashes_open(check->views->dataset, view->shard, &view->index_fd, &view->hashes_at))
            view->index_fd = -1;
        else
            check->views->indexes_open = true;
    }
    return view->index_fd >= 0;
}

/* Reads hashes by the pool, which has a deadline or many reads under way, from the file of the index. */
static enum tokmap_status read_hashes(const struct page_check *check, const struct shard_view *view, uint64_t first,
                                      uint64_t count, uint32_t *hashes, struct tokmap_error *error)
{
    const uint64_t at = view->hashes_at + first * sizeof *hashes;
    size_t got = 0;
    const int system = read_pool_read(check->pool, view->index_fd, hashes, count * sizeof *hashes, at, &got);
    if (system == ETIMEDOUT)
        return error_set(error, TOKMAP_ERROR_TIMEOUT, view->file.path, first * TOKEN_PAGE_BYTES,
                         "reading the hashes of tokens from the index of this file took longer than "
                         "deadline_ns; check the storage that holds it, then call again or continue from the "
                         "last cursor");
    if (system)
        return error_set_system(error, system, view->file.path, first * TOKEN_PAGE_BYTES,
                                "cannot read the hashes of tokens from the index of this file; check the storage that "
                                "holds it, then continue from the last cursor");
    if (got < count * sizeof *hashes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, view->file.path, first * TOKEN_PAGE_BYTES,
                         "the index of this file ends at byte %" PRIu64 ", before the hashes of these tokens: it was "
                         "truncated while it was open; restore it",
                         at + got);
    return TOKMAP_OK;
}

/* Returns the number of pages that have hashes: pages [0, end) of a file. */
static uint64_t pages_end(const struct shard_view *view)
{
    return div_ceil(view->file.offset + ((view->end_token - view->file.first_token) << view->element_shift),
                    TOKEN_PAGE_BYTES);
}

/* Finds the pages whose hashes are read, to be kept, when those of pages [first, end) are needed. Pages before and
 * after those of the view, which may be a part of the file, have no place in the table. */
static void kept_pages(const struct shard_view *view, uint64_t first, uint64_t end, uint64_t *from, uint64_t *to)
{
    *from = max64(round_down(first, KEPT_AT_ONCE), view->file.offset / TOKEN_PAGE_BYTES);
    *to = min64(round_up(end, KEPT_AT_ONCE), pages_end(view));
}

/* Returns whether the hashes of pages [first, end) are kept. One that is 0, as one in 2^32 is, is read each time. */
static bool are_kept(const struct page_check *check, const struct shard_view *view, uint64_t first, uint64_t end)
{
    while (first < end && check->hashes[view->first_hash + first])
        first++;
    return first == end;
}

/* Finds the hashes of pages [first, end), at most HASHES_AT_ONCE: those that are kept, or, if none are, reads them to
 * `buffer`. */
static enum tokmap_status find_hashes(const struct page_check *check, struct shard_view *view, uint64_t first,
                                      uint64_t end, uint32_t *buffer, const uint32_t **hashes,
                                      struct tokmap_error *error)
{
    uint64_t from = first, to = end;
    uint32_t *into = buffer;
    *hashes = buffer;
    if (check->hashes) {
        *hashes = check->hashes + (view->first_hash + first);
        if (are_kept(check, view, first, end))
            return TOKMAP_OK;
        kept_pages(view, first, end, &from, &to);
        into = check->hashes + (view->first_hash + from);
        assert(view->first_hash + from < check->views->hashes && view->first_hash + to <= check->views->hashes);
    }
    return check->pool && page_check_index(check, view)
               ? read_hashes(check, view, from, to - from, into, error)
               : dataset_page_hashes(check->views->dataset, view->shard, from, to - from, into, error);
}

enum tokmap_status page_check_compare(struct page_check *check, struct shard_view *view, uint64_t first,
                                      const uint8_t *pages, uint64_t bytes, struct tokmap_error *error)
{
    const uint64_t end = first + div_ceil(bytes, TOKEN_PAGE_BYTES), base = view->first_hash;
    const uint32_t *hashes = NULL;
    const bool skip = counts(check, view);
    uint32_t buffer[HASHES_AT_ONCE];
    assert(view->hashed && bytes);
    for (uint64_t page = first, found = first; page < end; page++) {
        const uint64_t at = (page - first) * TOKEN_PAGE_BYTES, part = min64(bytes - at, TOKEN_PAGE_BYTES);
        if (skip && bits_all(check->compared, base + page, base + page + 1))
            continue;
        if (!hashes || page >= found + HASHES_AT_ONCE) {
            found = page;
            const enum tokmap_status status =
                find_hashes(check, view, page, min64(end, page + HASHES_AT_ONCE), buffer, &hashes, error);
            if (status)
                return status;
        }
        if (__builtin_expect((uint32_t)hash64(pages + at, (size_t)part) != hashes[page - found], 0)) {
            const uint64_t from = page * TOKEN_PAGE_BYTES;
            return error_set(error, TOKMAP_ERROR_CORRUPT, view->file.path, from,
                             "bytes %" PRIu64 "..%" PRIu64 " of the tokens do not match their hash in the index: the "
                             "file was damaged, changed, or exchanged; restore it from a good copy, or pack the shard "
                             "again",
                             from, from + part);
        }
        bits_set(check->compared, base + page, base + page + 1);
    }
    return TOKMAP_OK;
}

void page_check_prefetch(const struct page_check *check, const struct stretch *stretch, const uint8_t *file)
{
    const uint64_t base = stretch->view->first_hash;
    uint64_t first, end;
    if (!stretch->view->hashed)
        return;
    pages_of(stretch, &first, &end);
    if (check->hashes)
        __builtin_prefetch(check->hashes + (base + first), 0, 3);
    for (uint64_t page = first; page < end; page++)
        if (!bits_all(check->compared, base + page, base + page + 1))
            for (uint64_t line = 0; line < TOKEN_PAGE_BYTES / 64; line++)
                __builtin_prefetch(file + page * TOKEN_PAGE_BYTES + line * 64, 0, 2);
}

void page_check_ask(const struct page_check *check, const struct stretch *stretch)
{
    uint64_t first, end;
    if (!stretch->view->hashed)
        return;
    pages_of(stretch, &first, &end);
    if (check->hashes) {
        if (are_kept(check, stretch->view, first, end))
            return;
        /* All that will be read, or the first use would wait for the rest of it, page by page. */
        kept_pages(stretch->view, first, end, &first, &end);
    }
    if (!check->pool)
        dataset_page_hashes_ask(check->views->dataset, stretch->view->shard, first, end - first);
    else if (page_check_index(check, stretch->view)) /* asking can wait, too, where the storage hangs */
        read_pool_hint(check->pool, stretch->view->index_fd, stretch->view->hashes_at + first * sizeof(uint32_t),
                       (end - first) * sizeof(uint32_t));
}

void page_check_forget(struct page_check *check, const struct shard_view *view)
{
    if (view->hashed)
        bits_clear(check->compared, view->first_hash + view->file.offset / TOKEN_PAGE_BYTES,
                   view->first_hash + pages_end(view));
}
