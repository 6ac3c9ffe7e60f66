/* SPDX-License-Identifier: MIT */
/*
 * residency.c - see residency.h.
 *
 * The order is arithmetic, so the rows to come are known as far ahead as anyone wants. The residency is in one of
 * two states:
 *
 *   asking  The storage is asked for the exact pages of the next `window` rows, so that it works on many requests at
 *           once. Before a row is asked for, the residency looks from time to time whether it is already in the page
 *           cache. If a look finds it there, the next rows are looked at too. After WARM_STREAK rows in a row
 *           were found, the state becomes warm.
 *   warm    Nothing is asked for, which costs nothing. The first row that turns out not to be in the page cache ends
 *           the state. A load from a mapping does not report whether it had to wait for the storage, so with a mapping
 *           the residency looks at one row in LOOK_EVERY.
 *
 * A residency begins in the asking state and looks at every window. If everything is in the page cache, that costs some
 * microseconds. If nothing is, the storage works on the whole first batch before anyone waits for its first row.
 * Beyond the batch at hand, rows are asked for in groups, so that requests that touch each other can be joined, and
 * at most one group is sent before each window. The first groups are small, so that the first batch does not wait for
 * all requests to be sent.
 *
 * Windows that the caller names come in no order that could be known ahead. Reading them shows whether they are warm.
 *
 * Populated pages. A load from a page that the file no longer has raises a signal in the caller's program. So a page is
 * touched only after os_map_populate() has made it present, which reports such a failure as a status. One bit per page
 * remembers it; the bits are in memory that costs nothing until it is written. Populating takes microseconds, so it is
 * spread out. In the warm state, each batch populates a few of the ranges of 2 MiB that its rows and the next ones are
 * in, if the kernel reports all of a range in the page cache. Where the file is in huge pages, which large writes and
 * large reads make, a range takes 10 microseconds; else, up to 250. (MADV_HUGEPAGE would add nothing to that, and would
 * make each page that is read through the mapping by others 2 MiB of reads.) A row outside populated ranges is read
 * with pread. If its range was not in the page cache as a whole, its neighborhood is then populated. Mapped reading
 * thus starts as fast as pread, without a stall, and becomes faster. The pages of a populated range are not compared
 * with their hashes yet: a row compares its own ones in the mapping, and is then copied from lines that are in the
 * processor's cache. Windows that are not in the page cache are read only with pread: a page fault would read one page
 * at a time, with the readahead of the kernel around it. Populated pages can leave the page cache when memory is short.
 * The next look then finds one of them missing, and all are forgotten. A row that was not populated, and is not in the
 * page cache, says nothing of those that are: after a restart, most of a dataset is often still in the page cache, and
 * a few rows are not.
 */
#include "residency.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_fetch.h"
#include "platform/os.h"

#define WARM_STREAK 16
#define LOOK_EVERY 64
#define TELL_EVERY 16
#define LOOK_NS ((uint64_t)50000)          /* batches that begin within this time share a look at the sizes of files */
#define CHANGE_LOOK_NS ((uint64_t)1000000) /* the same for a look at whether files have changed */
#define UNLOOKED_LEAST 64                  /* see residency_look_on_thread() */
#define NEIGHBORHOOD ((uint64_t)64 << 10)  /* bytes populated at once: what the kernel maps for one fault */
#define ROWS_PER_NEIGHBORHOOD 4            /* a batch of this many rows populates one neighborhood */
#define ASK_AT_ONCE ((uint64_t)128 << 10)  /* the kernel may cut a longer request short */

/* ---- open and close ---- */

static uint64_t words_of(uint64_t bits)
{
    return (bits + 63) / 64;
}

/* Takes fresh memory, of zeros, for what is known of populated pages. Returns false, and changes nothing, without it.
 */
static bool renew_populated(struct residency_source *source)
{
    void *fresh;
    if (os_memory_new(source->populated_bytes, false, &fresh))
        return false;
    /* A child has none of the populated pages of its parent. */
    (void)os_memory_zero_on_fork(fresh, source->populated_bytes);
    os_memory_free(source->populated, source->populated_bytes);
    source->populated = fresh;
    source->whole = source->populated + words_of(source->views.pages);
    source->tried = source->whole + words_of(source->views.ranges);
    source->cleared = source->tried + words_of(source->views.ranges);
    *source->cleared = ++source->clearings;
    return true;
}

/* Treats no page of a file as populated any more. */
static void populated_clear(struct residency_source *source, const struct shard_view *view)
{
    const uint64_t range = view->first_range + (view->page << source->views.page_shift) / RANGE_BYTES;
    const uint64_t range_end = view->first_range + div_ceil(view->end_page << source->views.page_shift, RANGE_BYTES);
    bits_clear(source->populated, view->first_page + view->page, view->first_page + view->end_page);
    bits_clear(source->whole, range, range_end);
    bits_clear(source->tried, range, range_end);
    *source->cleared = ++source->clearings;
}

/* Notes that a shard has another descriptor, and another mapping: no page of it is populated, and what was asked for
 * with this descriptor was of another file. */
static void shard_opened(void *user, struct shard_view *view, bool again, bool changed)
{
    struct residency_source *source = user;
    if (source->pool)
        read_pool_forget_file(source->pool, view->file.fd);
    if (changed)
        page_check_forget(&source->check, view);
    if (again && source->populated)
        populated_clear(source, view);
}

static enum tokmap_status open_source(struct residency_source *source, const struct tokmap_dataset *dataset,
                                      const struct residency_options *options, struct residency_shared *shared,
                                      struct tokmap_error *error)
{
    const bool mapped = !options->drop_behind && !options->unmapped && dataset_reading(dataset) == TOKMAP_READ_MAPPED;
    *source = (struct residency_source){
        .shared = shared,
        .drop_behind = options->drop_behind,
        .in_order = options->in_order,
        .remote = dataset_cache(dataset) != NULL,
        .kept_fd = -1,
        .ask_fd = -1,
    };
    enum tokmap_status status = shard_views_init(&source->views, dataset, mapped, !options->trust_files, error);
    shard_views_share(&source->views, &shared->pins, shard_opened, source);
    if (!status)
        status = page_check_open(&source->check, &source->views, error);
    if (!status && source->check.compared && !shared->span && !(shared->span = malloc(PAGE_CHECK_SPAN)))
        status = error_set_memory(error, "a loader", PAGE_CHECK_SPAN);
    if (!status && dataset_is_sealed(dataset) && !shared->sealed && !(shared->sealed = sealed_rows_new()))
        status = error_set_memory(error, "a loader", SEALED_ROWS_FRAMES * FRAME_BYTES);
    if (status || !source->views.mapped)
        return status;
    source->populated_bytes =
        (words_of(source->views.pages) + 2 * words_of(source->views.ranges) + 1) * sizeof(uint64_t);
    return renew_populated(source) ? TOKMAP_OK : error_set_memory(error, "the table of pages", source->populated_bytes);
}

enum tokmap_status residency_open(struct residency **made, const struct residency_options *options,
                                  struct tokmap_error *error)
{
    assert(options->sources && options->window);
    *made = NULL;
    struct residency *residency = calloc(1, sizeof *residency);
    if (!residency)
        return error_set_memory(error, "a loader", sizeof *residency);
    residency->sources = calloc(options->sources, sizeof *residency->sources);
    if (!residency->sources) {
        free(residency);
        return error_set_memory(error, "a loader", options->sources * sizeof *residency->sources);
    }
    residency->window = options->window;
    residency->order = options->order;
    residency->user = options->user;
    for (; residency->count < options->sources; residency->count++) {
        struct residency_source *source = &residency->sources[residency->count];
        enum tokmap_status status =
            open_source(source, options->datasets[residency->count], options, &residency->shared, error);
        if (status) {
            page_check_close(&source->check);
            shard_views_free(&source->views);
            residency_close(residency);
            return status;
        }
    }
    *made = residency;
    return TOKMAP_OK;
}

void residency_close(struct residency *residency)
{
    if (!residency)
        return;
    for (uint64_t i = 0; i < residency->count; i++) {
        os_memory_free(residency->sources[i].populated, residency->sources[i].populated_bytes);
        page_check_close(&residency->sources[i].check);
        shard_views_free(&residency->sources[i].views);
    }
    free(residency->shared.span);
    sealed_rows_free(residency->shared.sealed);
    free(residency->sources);
    free(residency);
}

void residency_set_pool(struct residency *residency, struct read_pool *pool, bool asks, bool deadline)
{
    const uint64_t *look = pool && deadline ? &residency->shared.change_look : NULL;
    for (uint64_t i = 0; i < residency->count; i++) {
        residency->sources[i].pool = pool;
        residency->sources[i].check.pool = pool;
        residency->sources[i].check.look = look;
        residency->sources[i].pool_asks = pool && asks;
    }
}

int residency_read(struct residency_source *source, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got)
{
    return source->pool ? read_pool_read(source->pool, fd, into, bytes, offset, got)
                        : os_pread(fd, into, bytes, offset, got);
}

enum tokmap_reading residency_reading(const struct residency *residency)
{
    return residency->sources[0].views.mapped ? TOKMAP_READ_MAPPED : TOKMAP_READ_PREAD;
}

void residency_begin(struct residency *residency, uint64_t rows)
{
    const uint64_t now = os_clock_ns();
    if (now - residency->shared.look_ns >= LOOK_NS) {
        residency->shared.look_ns = now;
        residency->shared.look_bytes = 0;
        residency->shared.look++;
    }
    if (now - residency->shared.change_ns >= CHANGE_LOOK_NS) {
        residency->shared.change_ns = now;
        residency->shared.change_look++;
    }
    residency->shared.populate_budget = div_ceil(rows, ROWS_PER_NEIGHBORHOOD);
}

/* ---- the page cache ---- */

/* Returns whether one page is in the page cache: 1, 0, or -1 if the kernel cannot report it. */
static int page_cached(struct residency_source *source, const struct shard_view *view, uint64_t page)
{
    const struct shard_views *views = &source->views;
    uint8_t byte;
    size_t got;
    if (view->in_memory)
        return 1;
    if (!source->cannot_tell) {
        int system = os_pread_cached(view->file.fd, &byte, 1, page << views->page_shift, &got);
        if (system != ENOTSUP)
            return system != EAGAIN; /* the read of the row meets and reports any other failure */
        source->cannot_tell = true;
    }
    return views->mapped ? os_map_resident(view->tokens + (page << views->page_shift), (uint64_t)1 << views->page_shift)
                         : -1;
}

/* Asks whether the first and the last of pages [first, end) are cached. */
static int pages_cached(struct residency_source *source, const struct shard_view *view, uint64_t first, uint64_t end)
{
    int cached = page_cached(source, view, first);
    return cached == 1 && end - first > 1 ? page_cached(source, view, end - 1) : cached;
}

bool residency_is_cached(struct residency_source *source, const struct tokmap_extent *extent)
{
    struct stretch stretch;
    if (!source->views.views)
        return true; /* synthetic */
    for (uint64_t done = 0; done < extent->tokens; done += stretch.count) {
        uint64_t from, to;
        if (shard_views_stretch(&source->views, extent->first_token + done, extent->tokens - done, &stretch, NULL) ||
            !sealed_rows_place(&source->check, &stretch, &from, &to))
            return false;
        const uint32_t shift = source->views.page_shift;
        if (pages_cached(source, stretch.view, from >> shift, ((to - 1) >> shift) + 1) != 1)
            return false;
    }
    return true;
}

/* Returns whether some page of an extent is populated. */
static bool extent_is_populated(struct residency_source *source, const struct tokmap_extent *extent)
{
    struct stretch stretch;
    for (uint64_t done = 0; source->populated && done < extent->tokens; done += stretch.count) {
        uint64_t first, end;
        if (shard_views_stretch(&source->views, extent->first_token + done, extent->tokens - done, &stretch, NULL))
            return false;
        if (residency_is_present(source, &stretch))
            return true;
        stretch_pages(&source->views, &stretch, &first, &end);
        for (uint64_t page = stretch.view->first_page + first; page < stretch.view->first_page + end; page++)
            if (bits_all(source->populated, page, page + 1))
                return true;
    }
    return false;
}

bool residency_read_cached(struct residency_source *source, int fd, uint64_t offset, size_t bytes, void *into,
                           size_t *got)
{
    *got = 0;
    if (source->cannot_tell && !source->pool_asks)
        return false;
    /* Asking costs a tenth of a read of 4 KiB. With a pool, this thread always asks, so it never waits for storage. */
    if (source->shared->warm && !source->populated && !source->pool && ++source->untold % TELL_EVERY)
        return false;
    if (source->pool_asks) {
        int system;
        if (read_pool_take(source->pool, fd, into, bytes, offset, got, &system) && !system)
            return true;
        *got = 0;
    }
    if (os_pread_cached(fd, into, bytes, offset, got) != ENOTSUP)
        return true;
    source->cannot_tell = true;
    *got = 0;
    return false;
}

/* Drops the pages of bytes [first, bytes_end) of a file. In order, its last page is kept, because the source's next row
 * begins there; if that row turns out to be elsewhere (a gap between the rows of a rank, a segment of a plan, another
 * epoch), the page is dropped then, so at most one page of each source stays. */
static void drop_behind(struct residency_source *source, int fd, uint64_t first, uint64_t bytes_end)
{
    const uint64_t page = (uint64_t)1 << source->views.page_shift;
    uint64_t from = round_down(first, page), end = round_up(bytes_end, page);
    if (source->kept_fd >= 0 && (source->kept_fd != fd || source->kept_at < from || source->kept_at >= end))
        os_advise_drop(source->kept_fd, source->kept_at, page);
    source->kept_fd = -1;
    if (source->in_order && bytes_end % page) {
        end -= page;
        source->kept_fd = fd;
        source->kept_at = end;
    }
    if (end > from)
        os_advise_drop(fd, from, end - from);
}

/* ---- populated pages ---- */

/* Returns whether the kernel reports all of pages [first, end) in the page cache. Where it reports that only to who may
 * write the file, samples must do: the first page of each neighborhood, and the last page. */
static bool range_is_cached(struct residency_source *source, const struct shard_view *view, uint64_t first,
                            uint64_t end)
{
    const uint32_t shift = source->views.page_shift;
    const uint64_t step = max64(NEIGHBORHOOD >> shift, 1);
    uint64_t cached = 0;
    if (view->in_memory)
        return true;
    const int system = os_file_cached(view->file.fd, first << shift, (end - first) << shift, &cached);
    if (!system && cached)
        return cached >= end - first;
    if (!os_map_resident(view->tokens + (first << shift), (end - first) << shift))
        return false;
    for (uint64_t page = first; page < end; page += step)
        if (page_cached(source, view, page) != 1)
            return false;
    return page_cached(source, view, end - 1) == 1;
}

/* Populates a range of a file if all its pages that have tokens of the shard are in the page cache. */
static void populate_range(struct residency_source *source, const struct shard_view *view, uint64_t range)
{
    const uint32_t shift = source->views.page_shift;
    const uint64_t first = max64(range * RANGE_BYTES >> shift, view->page), number = view->first_range + range;
    const uint64_t end = min64((range + 1) * RANGE_BYTES >> shift, view->end_page);
    bits_set(source->tried, number, number + 1);
    if (!range_is_cached(source, view, first, end))
        return;
    source->shared->populate_budget--;
    const int system = os_map_populate(view->tokens + (first << shift), (end - first) << shift);
    source->cannot_populate = system == ENOTSUP;
    if (!system)
        bits_set(source->whole, number, number + 1);
    if (!system && !view->hashed)
        bits_set(source->populated, view->first_page + first, view->first_page + end);
}

void residency_populate_ahead(struct residency_source *source, const struct stretch *stretch)
{
    uint64_t range, end;
    stretch_ranges(stretch, &range, &end);
    for (; range < end; range++) {
        const uint64_t number = stretch->view->first_range + range;
        if (!source->shared->warm || !source->shared->populate_budget || source->cannot_populate)
            return;
        if (!bits_all(source->tried, number, number + 1))
            populate_range(source, stretch->view, range);
    }
}

enum tokmap_status residency_compare(struct residency_source *source, const struct stretch *stretch,
                                     struct tokmap_error *error)
{
    const struct shard_views *views = &source->views;
    struct shard_view *view = stretch->view;
    uint64_t first, end;
    for (uint64_t at = stretch->offset, to = at + (stretch->count << view->element_shift); at < to;) {
        const struct stretch span = page_check_span(stretch, at);
        const uint64_t bytes = span.count << view->element_shift;
        const enum tokmap_status status = page_check_done(&source->check, &span)
                                              ? TOKMAP_OK
                                              : page_check_compare(&source->check, view, span.offset / TOKEN_PAGE_BYTES,
                                                                   view->tokens + span.offset, bytes, error);
        if (status)
            return status;
        at = span.offset + bytes;
    }
    /* Of a page of the machine that is larger, other parts may not be compared yet. */
    for (stretch_pages(views, stretch, &first, &end); first < end; first++) {
        const uint64_t from = first << views->page_shift,
                       to = min64((first + 1) << views->page_shift, view->file.bytes);
        const struct stretch page = {view, from, (to - from) >> view->element_shift};
        if (page_check_done(&source->check, &page))
            bits_set(source->populated, view->first_page + first, view->first_page + first + 1);
    }
    return TOKMAP_OK;
}

/* Populates the pages of a stretch that has just been read, and the pages around it if all of them are in the page
 * cache too. A single one that is not would be read from storage, and the kernel would read many more around it: where
 * some windows of a neighborhood are cached, a storage that is slow would be asked for several times the bytes of the
 * run. A failure does no harm; the pages are tried again later. */
static void populate(struct residency_source *source, const struct stretch *stretch)
{
    const struct shard_views *views = &source->views;
    struct shard_view *view = stretch->view;
    uint64_t first, end;
    stretch_pages(views, stretch, &first, &end);
    uint64_t around = NEIGHBORHOOD >> views->page_shift;
    if (around > 1) {
        /* Pages of the file that hold no tokens of the shard have no numbers. */
        uint64_t low = max64(round_down(first, around), view->page);
        uint64_t high = min64(round_up(end, around), view->end_page);
        if (pages_cached(source, view, low, high) == 1 &&
            os_map_resident(view->tokens + (low << views->page_shift), (high - low) << views->page_shift)) {
            first = low;
            end = high;
        }
    }
    int system = os_map_populate(view->tokens + (first << views->page_shift), (end - first) << views->page_shift);
    source->cannot_populate = system == ENOTSUP;
    const uint64_t from = first << views->page_shift, to = min64(end << views->page_shift, view->file.bytes);
    const struct stretch populated = {view, from, (to - from) >> view->element_shift};
    if (!system && !page_check_done(&source->check, &populated)) {
        /* The row that needs a page which does not match reads it with pread, and reports it. */
        if (page_check_compare(&source->check, view, from / TOKEN_PAGE_BYTES, view->tokens + from, to - from, NULL))
            return;
    }
    if (!system)
        bits_set(source->populated, view->first_page + first, view->first_page + end);
}

void residency_look_on_thread(struct residency_source *source, struct shard_view *view)
{
    const uint64_t now = source->shared->change_look;
    struct os_stat found;
    view->unlooked++;
    if (!view->asked_look && view->unlooked >= UNLOOKED_LEAST && view->change_look != now) {
        view->asked_look = now;
        read_pool_ask_stat(source->pool, view->file.fd);
    }
    const int system = view->asked_look ? read_pool_take_stat(source->pool, view->file.fd, &found) : EAGAIN;
    if (system == EAGAIN)
        return;
    if (!system) {
        if (found.changed_ns != view->changed_ns) /* or this is the first look: pages were compared before it */
            page_check_forget(&source->check, view);
        view->changed_ns = found.changed_ns;
        view->change_look = view->asked_look;
    }
    view->asked_look = view->unlooked = 0;
}

enum tokmap_status residency_look(struct residency_source *source, struct shard_view *view, uint64_t *bytes,
                                  int *system)
{
    const bool changes = view->hashed && !view->fetched && view->change_look != source->shared->change_look;
    struct os_stat found = {.bytes = 0};
    *system = changes ? os_fstat(view->file.fd, &found) : os_file_bytes(view->file.fd, &found.bytes);
    *bytes = found.bytes;
    if (*system)
        return TOKMAP_ERROR_IO;
    if (*bytes < view->file.bytes)
        return TOKMAP_ERROR_TRUNCATED;
    view->look = source->shared->look;
    if (!changes)
        return TOKMAP_OK;
    view->change_look = source->shared->change_look;
    if (view->changed_ns && view->changed_ns != found.changed_ns) {
        page_check_forget(&source->check, view);
        if (source->populated)
            populated_clear(source, view);
    }
    view->changed_ns = found.changed_ns;
    return TOKMAP_OK;
}

void residency_was_read(struct residency_source *source, const struct stretch *stretch, bool cold)
{
    if (source->drop_behind) {
        drop_behind(source, stretch->view->file.fd, stretch->offset,
                    stretch->offset + (stretch->count << stretch->view->element_shift));
    } else if (source->populated && source->shared->warm && !cold && source->shared->populate_budget &&
               !source->cannot_populate) {
        residency_populate_ahead(source, stretch);
        if (residency_is_present(source, stretch)) {
            (void)residency_compare(source, stretch, NULL); /* it was compared when it was read */
        } else if (source->shared->populate_budget) {
            source->shared->populate_budget--;
            populate(source, stretch);
        }
    }
}

void residency_frame_was_read(struct residency_source *source, const struct shard_view *view,
                              const struct sealed_frame *frame)
{
    if (source->drop_behind)
        drop_behind(source, view->file.fd, frame->at, frame->at + frame->stored);
}

void residency_forget(struct residency_source *source)
{
    if (source->populated)
        (void)renew_populated(source);
}

/* ---- reading ahead ---- */

static void flush(struct residency_source *source)
{
    for (uint64_t from = source->ask_from; source->ask_fd >= 0 && from < source->ask_to; from += ASK_AT_ONCE)
        if (source->pool)
            read_pool_hint(source->pool, source->ask_fd, from, min64(source->ask_to - from, ASK_AT_ONCE));
        else
            os_read_ahead(source->ask_fd, from, min64(source->ask_to - from, ASK_AT_ONCE));
    source->ask_fd = -1;
}

void residency_flush(struct residency *residency)
{
    if (residency->asking)
        flush(residency->asking);
    residency->asking = NULL;
}

/* Asks for the reads that gather makes of a stretch: spans of whole pages if they are compared. */
static void ask_pool(struct residency_source *source, const struct stretch *stretch)
{
    const uint32_t shift = stretch->view->element_shift;
    const uint64_t end = stretch->offset + (stretch->count << shift);
    if (!stretch->view->hashed) {
        read_pool_ask(source->pool, stretch->view->file.fd, stretch->offset, stretch->count << shift);
        return;
    }
    for (uint64_t at = stretch->offset; at < end;) {
        const struct stretch span = page_check_span(stretch, at);
        read_pool_ask(source->pool, span.view->file.fd, span.offset, span.count << shift);
        at = span.offset + (span.count << shift);
    }
}

/* planned: what has to be fetched was asked for before, farther ahead. */
static void ask_extent(struct residency_source *source, const struct tokmap_extent *extent, bool planned)
{
    struct shard_views *views = &source->views;
    struct stretch stretch;
    for (uint64_t done = 0; done < extent->tokens; done += stretch.count) {
        uint64_t first, end, state;
        if (shard_views_stretch(views, extent->first_token + done, extent->tokens - done, &stretch, NULL))
            return; /* gathering the row will report it */
        if (residency_is_populated(source, &stretch))
            continue;
        if (!page_check_done(&source->check, &stretch))
            page_check_ask(&source->check, &stretch);
        const bool placed = sealed_rows_place(&source->check, &stretch, &first, &end);
        if (placed && planned && !file_present(stretch.view, first, end - first, &state))
            continue;
        if (source->pool_asks && !stretch.view->file.converted) {
            ask_pool(source, &stretch);
            continue;
        }
        if (!placed)
            return; /* the same */
        first = round_down(first, (uint64_t)1 << views->page_shift);
        end = round_up(end, (uint64_t)1 << views->page_shift);
        if (source->ask_fd == stretch.view->file.fd && first <= source->ask_to && end >= source->ask_from) {
            source->ask_from = min64(source->ask_from, first);
            source->ask_to = max64(source->ask_to, end);
            continue;
        }
        flush(source);
        source->ask_fd = stretch.view->file.fd;
        source->ask_from = first;
        source->ask_to = end;
    }
}

static void ask_row(struct residency *residency, const struct row_extents *row, bool planned)
{
    if (!row->count)
        return;
    assert(row->source < residency->count);
    struct residency_source *source = &residency->sources[row->source];
    if (!source->views.views)
        return; /* synthetic */
    if (residency->asking != source)
        residency_flush(residency);
    residency->asking = source;
    for (uint64_t i = 0; i < row->count; i++)
        ask_extent(source, &row->extents[i], planned);
}

void residency_ask(struct residency *residency, const struct row_extents *row)
{
    ask_row(residency, row, false);
}

/* ---- the two states ---- */

/* Leaves the warm state. next: the number of the next row of the order. */
static void begin_asking(struct residency *residency, uint64_t next)
{
    residency->shared.warm = false;
    residency->asked = next;
    residency->streak = 0;
    residency->until_look = LOOK_EVERY;
}

/* Returns whether the shards of a row are open, or can be opened without waiting for objects. */
static bool is_at_hand(const struct residency_source *source, const struct row_extents *row)
{
    for (uint64_t i = 0; i < row->count && source->remote; i++)
        if (!dataset_fetch_is_open(source->views.dataset, row->extents[i].first_token, row->extents[i].tokens))
            return false;
    return true;
}

static bool is_cached(struct residency *residency, const struct row_extents *row)
{
    assert(!row->count || row->source < residency->count);
    for (uint64_t i = 0; i < row->count; i++)
        if (!residency_is_cached(&residency->sources[row->source], &row->extents[i]))
            return false;
    return true;
}

/* Notes that a look did not find a row in the page cache. If it was populated, other populated pages have left, too. */
static void forget_if_populated(struct residency *residency, const struct row_extents *row)
{
    bool populated = false;
    for (uint64_t i = 0; i < row->count && !populated; i++)
        populated = extent_is_populated(&residency->sources[row->source], &row->extents[i]);
    if (!populated)
        return;
    residency->shared.forgotten++;
    for (uint64_t i = 0; i < residency->count; i++)
        residency_forget(&residency->sources[i]);
}

/* In the warm state, looks from time to time whether a mapping is still in the page cache, by a row that is gathered
 * next. */
static void look_while_warm(struct residency *residency, const struct row_extents *row, uint64_t next)
{
    if (residency->until_look) {
        residency->until_look--;
        return;
    }
    residency->until_look = LOOK_EVERY;
    if (row->count && residency->sources[row->source].views.mapped && !is_cached(residency, row)) {
        forget_if_populated(residency, row);
        begin_asking(residency, next);
    }
}

/* In the asking state, looks from time to time at a row that is about to be asked for. Returns true if that ended
 * the state. */
static bool look_while_asking(struct residency *residency, const struct row_extents *row)
{
    if (residency->until_look) {
        residency->until_look--;
        return false;
    }
    if (!is_cached(residency, row)) {
        forget_if_populated(residency, row);
        residency->streak = 0;
        residency->until_look = LOOK_EVERY;
        return false;
    }
    if (++residency->streak < WARM_STREAK)
        return false;
    residency->shared.warm = true;
    return true;
}

/* Asks for all rows below `end` that were not asked for. */
static void ask_until(struct residency *residency, uint64_t end)
{
    struct row_extents row;
    for (; residency->asked < end && residency->order(residency->user, residency->asked, &row); residency->asked++) {
        if (row.count && !is_at_hand(&residency->sources[row.source], &row))
            continue; /* the loader asks for it, farther ahead */
        if (look_while_asking(residency, &row))
            break;
        ask_row(residency, &row, true);
    }
    residency_flush(residency);
}

void residency_advance(struct residency *residency, uint64_t number, uint64_t batch_end)
{
    assert(residency->order && number < batch_end);
    struct row_extents row;
    if (residency->shared.warm && residency->order(residency->user, number, &row))
        look_while_warm(residency, &row, number);
    if (residency->shared.warm)
        return;
    const uint64_t group = min64(residency->window / 8, number / 4) + 1, goal = number + 1 + residency->window;
    residency->asked = max64(residency->asked, number);
    batch_end = min64(batch_end, goal);
    if (residency->asked < batch_end)
        ask_until(residency, batch_end);
    else if (residency->asked + group <= goal)
        ask_until(residency, residency->asked + group);
}

void residency_restart(struct residency *residency)
{
    residency->asked = 0;
}

void residency_was_cold(struct residency *residency, uint64_t next)
{
    if (residency->shared.warm)
        begin_asking(residency, next);
}

void residency_named(struct residency *residency, const struct row_extents *row, uint64_t next)
{
    if (residency->shared.warm)
        look_while_warm(residency, row, next);
}

void residency_named_was(struct residency *residency, const struct row_extents *row, bool cold, uint64_t next)
{
    if (cold) {
        residency->streak = 0;
        residency_was_cold(residency, next);
    } else if (!residency->shared.warm && ++residency->streak >= WARM_STREAK) {
        /* A row also counts as not cold if the kernel cannot report it. So look before the state changes. */
        residency->streak = 0;
        if (is_cached(residency, row))
            residency->shared.warm = true;
    }
}
