/*
 * storage.c - see storage.h.
 *
 * The probe reads one page of a row that is delivered soon and that is not in the page cache, and measures the time. If
 * all of the first rows are in the page cache, or the kernel does not say, the read tells little; then a file system
 * that is not local counts as slow.
 */
#include "storage.h"

#include "common/bytes.h"

#define PROBE_ROWS 16
#define PROBE_BYTES 4096
#define SLOW_NS 1000000
#define DEADLINE_THREADS 2 /* a read that hangs holds a thread, and another one may hang, too */

/* Finds a stretch to probe: the first one that is not in the page cache, or else the first one. Returns false if
 * the run has no stretch of a file, because its data is synthetic or padding. */
static bool find_stretch(struct tokmap_loader *loader, struct stretch *found, bool *cold)
{
    struct row_pieces row;
    bool any = false;
    *cold = false;
    for (uint64_t n = 0; n < PROBE_ROWS && n < loader->rows_most && !*cold; n++) {
        struct stretch stretch;
        if (!row_queue_window(&loader->queue, n, &row))
            break;
        if (!row.count)
            continue;
        struct residency_source *source = &loader->residency->sources[row.source];
        if (!source->views.views ||
            shard_views_stretch(&source->views, row.pieces[0].first_token, row.pieces[0].tokens, &stretch, NULL))
            continue;
        *cold = !residency_is_cached(source, &row.pieces[0]);
        if (!any || *cold)
            *found = stretch;
        any = true;
    }
    return any;
}

/* Returns whether the storage is slow. */
static bool probe(struct tokmap_loader *loader)
{
    struct stretch stretch;
    uint8_t page[PROBE_BYTES];
    bool cold;
    size_t got;
    if (!find_stretch(loader, &stretch, &cold))
        return false;
    const struct page_check *check = &loader->residency->sources[0].check; /* any: no pool is set yet */
    uint64_t offset, end;
    if (!sealed_rows_place(check, &stretch, &offset, &end))
        return false;
    const uint64_t bytes = min64(sizeof page, end - offset);
    const uint64_t from = os_clock_ns();
    int system = read_pool_read(loader->pool, stretch.view->fd, page, bytes, offset, &got);
    loader->probe_ns = max64(os_clock_ns() - from, 1);
    /* A read that fails is reported by the row that needs it. */
    return system || loader->probe_ns >= SLOW_NS || (!cold && !os_file_is_local(stretch.view->fd));
}

enum tokmap_status storage_open(struct tokmap_loader *loader, uint32_t window, uint64_t row_bytes,
                                struct tokmap_error *error)
{
    const uint32_t threads = loader->options.io_threads;
    const uint64_t deadline = loader->options.deadline_ns;
    if (!threads && !deadline)
        return TOKMAP_OK;
    const struct read_pool_options options = {
        .threads = deadline && threads < DEADLINE_THREADS ? DEADLINE_THREADS : threads,
        .buffers = threads ? window + threads : 2 * DEADLINE_THREADS,
        .buffer_bytes = row_bytes + 2 * TOKEN_PAGE_BYTES, /* a row has parts of two pages that are compared */
        .deadline_ns = deadline,
    };
    enum tokmap_status status = read_pool_open(&loader->pool, &options, error);
    if (status)
        return status;
    const bool slow = threads && probe(loader);
    if (!slow && !deadline) {
        read_pool_close(loader->pool);
        loader->pool = NULL;
    }
    residency_set_pool(loader->residency, loader->pool, slow);
    row_queue_restart(&loader->queue);
    return TOKMAP_OK;
}
