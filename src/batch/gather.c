/*
 * gather.c - see gather.h.
 *
 * The idea. A window is a range of token addresses, and its tokens are already in memory, in the page cache of the
 * kernel. The gather brings them to their row with exactly one copy, and finds the largest id in the same pass, so that
 * the check against the vocabulary costs no second look at the bytes. There are two ways to make the copy:
 *
 *   from the mapping  The copy kernel loads from the mapping and stores to the row. No system call is made. It is used
 *                     only for pages that are known to be present, because a load from a missing page would raise a
 *                     signal in the caller's program. residency.c keeps one bit per page for that.
 *   pread             The kernel copies to the row, and the row is then searched for its largest id while it is in the
 *                     processor's cache. Every failure is an error number, which becomes a status. It is used for
 *                     everything else: pages that are not populated, file systems that should not be mapped, cold data.
 *
 * An example. A dataset has two shards of 1000 and 500 tokens of 2 bytes, and a window has 300 tokens. The window at
 * token 900 is cut into two stretches: tokens 900 to 999 of shard 0 (bytes 1800 to 1999 of its file) and tokens 0 to
 * 199 of shard 1. The window at token 1400 crosses the seam: tokens 400 to 499 of shard 1, and then tokens 0 to 199 of
 * shard 0, since the dataset begins again past its end. Each stretch is copied in the way that suits its pages, so
 * one row may be made in both ways.
 *
 * Why not the obvious ways. Copying from the mapping alone is shorter and just as fast when everything is in memory.
 * But a truncated file or a failing disk would then kill the training program with SIGBUS, and each page that is not in
 * memory would stop the copy for a page fault, one page at a time. Reading with pread alone costs a system call for
 * every row, which is a large part of the time where rows are short. So mapped reading begins as pread and moves to the
 * mapping as pages are populated.
 *
 * A file that is cut shorter while it is open loses its pages, also those that were populated. So the size of each file
 * is compared with its index once per batch before the mapping is used. What remains is a cut between that look and the
 * copy.
 */
#include "gather.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "format/store.h"
#include "platform/os.h"

#define PREFETCH_AT_MOST ((uint64_t)32 << 10) /* bytes of a window */
#define LINE 64
#define CONVERT_BYTES 16384 /* of a file that are read at once to be converted */

struct gather {
    struct residency_source *source;
    struct shard_views *views; /* the source's */
    const struct copy_kernels *kernels;
    uint64_t row_tokens;
    uint64_t vocabulary; /* ids must be below it; UINT64_MAX: not checked */
    uint32_t width, width_shift;
    bool synthetic; /* tokens are computed: there are no shards, files, or pages */
    uint64_t batch; /* number of the batch at hand */
    uint64_t bytes;
};

/* ---- opening ---- */

enum tokmap_status gather_open(struct gather **made, struct residency_source *source,
                               const struct gather_options *options, struct tokmap_error *error)
{
    assert(source && source->row_tokens);
    struct tokmap_dataset_info info;
    *made = NULL;
    dataset_describe(source->views.dataset, &info);
    struct gather *gather = calloc(1, sizeof *gather);
    if (!gather)
        return error_set_memory(error, "a loader", sizeof *gather);
    /* A vocabulary that every id of this width fits needs no check. */
    bool unchecked = options->unchecked || info.vocabulary > (info.width == 4 ? UINT32_MAX : UINT16_MAX);
    gather->source = source;
    gather->views = &source->views;
    gather->kernels = options->kernels ? options->kernels : copy_variant(0);
    gather->row_tokens = source->row_tokens;
    gather->width = info.width;
    gather->width_shift = source->views.width_shift;
    gather->vocabulary = unchecked ? UINT64_MAX : info.vocabulary;
    gather->synthetic = dataset_is_synthetic(source->views.dataset);
    *made = gather;
    return TOKMAP_OK;
}

void gather_close(struct gather *gather)
{
    free(gather);
}

void gather_begin(struct gather *gather)
{
    gather->batch++;
}

uint64_t gather_bytes(const struct gather *gather)
{
    return __atomic_load_n(&gather->bytes, __ATOMIC_RELAXED);
}

/* ---- faults ---- */

static enum tokmap_status fault_cut(const struct shard_view *view, uint64_t size, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, view->path, size,
                     "the file ends here, but its index says that it has %" PRIu64 " bytes: it was truncated while it "
                     "was open; restore it, or pack it again under another name",
                     view->bytes);
}

static enum tokmap_status fault_read(const struct shard_view *view, int system, uint64_t offset,
                                     struct tokmap_error *error)
{
    return error_set_system(error, system, view->path, offset,
                            "cannot read tokens; check the storage that holds the file, then continue from the last "
                            "cursor");
}

/* The copy met an id that is not in the vocabulary; `largest` is the largest that it met. The row is searched for it,
 * to report its position. If the row does not have it, the copy stored another value than it met: a token was loaded
 * twice while the file was being changed, or something else writes to the row. Nothing is certain about such a row, so
 * it is refused too, even if all ids that are now in it happen to be in the vocabulary. */
static __attribute__((cold, noinline)) enum tokmap_status fault_token(const struct gather *gather,
                                                                      const struct stretch *stretch, const uint8_t *row,
                                                                      uint32_t largest, struct tokmap_error *error)
{
    const char *path = stretch->view->path;
    for (uint64_t i = 0; i < stretch->count; i++) {
        uint32_t id = gather->width == 4 ? load32(row + i * 4) : load16(row + i * 2);
        if (id >= gather->vocabulary)
            return error_set(error, TOKMAP_ERROR_TOKEN, path, stretch->offset + (i << stretch->view->element_shift),
                             "id %" PRIu32 " is not in the vocabulary of %" PRIu64 " ids: the file was damaged or "
                             "changed; run `tokmap verify`, which names the damaged block",
                             id, gather->vocabulary);
    }
    return error_set(error, TOKMAP_ERROR_TOKEN, path, stretch->offset,
                     "id %" PRIu32 " is not in the vocabulary of %" PRIu64 " ids; it was read from one of the %" PRIu64
                     " tokens from here on, and a moment later it was gone: the file is being changed while it is "
                     "open; stop the program that writes it, then run `tokmap verify`",
                     largest, gather->vocabulary, stretch->count);
}

/* ---- a window ---- */

/* Compares the size of a shard's file with its index, once per batch. */
static enum tokmap_status compare_size(struct gather *gather, struct shard_view *view, struct tokmap_error *error)
{
    struct os_stat found;
    int system = os_fstat(view->fd, &found);
    if (system)
        return fault_read(view, system, TOKMAP_NO_OFFSET, error);
    if (found.bytes < view->bytes)
        return fault_cut(view, found.bytes, error);
    view->size_compared = gather->batch;
    return TOKMAP_OK;
}

static enum tokmap_status read_stretch(struct gather *gather, const struct stretch *stretch, uint8_t *into, bool *cold,
                                       struct tokmap_error *error)
{
    const struct shard_view *view = stretch->view;
    size_t bytes = (size_t)(stretch->count << view->element_shift), got, more = 0;
    if (residency_read_cached(gather->source, stretch, into, &got) && got < bytes)
        *cold = true;
    if (got < bytes) {
        int system = os_pread(view->fd, into + got, bytes - got, stretch->offset + got, &more);
        if (system)
            return fault_read(view, system, stretch->offset + got + more, error);
        if (got + more < bytes)
            return fault_cut(view, stretch->offset + got + more, error);
    }
    residency_was_read(gather->source, stretch, *cold);
    return TOKMAP_OK;
}

/* Reads a stretch whose tokens are stored in another size, in parts that fit in the processor's cache. */
static enum tokmap_status read_converted(struct gather *gather, const struct stretch *stretch, uint8_t *into,
                                         bool *cold, struct tokmap_error *error)
{
    const struct shard_view *view = stretch->view;
    const uint32_t shift = view->element_shift;
    uint8_t buffer[CONVERT_BYTES];
    struct stretch part = *stretch;
    for (uint64_t left = stretch->count; left; left -= part.count) {
        part.count = min64(left, CONVERT_BYTES >> shift);
        enum tokmap_status status = read_stretch(gather, &part, buffer, cold, error);
        if (status)
            return status;
        const uint64_t good = element_convert(view->element, buffer, part.count, gather->width, into);
        if (good < part.count)
            return store_bad_element(view->path, view->element, buffer + (good << shift), part.offset + (good << shift),
                                     error);
        into += part.count << gather->width_shift;
        part.offset += part.count << shift;
    }
    return TOKMAP_OK;
}

static enum tokmap_status gather_stretch(struct gather *gather, const struct stretch *stretch, uint8_t *into,
                                         bool *cold, struct tokmap_error *error)
{
    enum tokmap_status status;
    bool checked = gather->vocabulary != UINT64_MAX, wide = gather->width == 4;
    const struct copy_kernels *kernels = gather->kernels;
    uint32_t largest = 0;
    if (gather->views->mapped && residency_is_populated(gather->source, stretch)) {
        if (stretch->view->size_compared != gather->batch) {
            status = compare_size(gather, stretch->view, error);
            if (status)
                return status;
        }
        const uint8_t *from = stretch->view->tokens + stretch->offset;
        if (checked)
            largest = wide ? kernels->copy32(into, from, stretch->count) : kernels->copy16(into, from, stretch->count);
        else
            memcpy(into, from, (size_t)(stretch->count << gather->width_shift));
    } else {
        status = stretch->view->converted ? read_converted(gather, stretch, into, cold, error)
                                          : read_stretch(gather, stretch, into, cold, error);
        if (status)
            return status;
        if (checked)
            largest = wide ? kernels->largest32(into, stretch->count) : kernels->largest16(into, stretch->count);
    }
    if (__builtin_expect(largest >= gather->vocabulary, 0))
        return fault_token(gather, stretch, into, largest, error);
    return TOKMAP_OK;
}

static enum tokmap_status compute_window(struct gather *gather, uint64_t first, uint8_t *into,
                                         struct tokmap_error *error)
{
    const struct tokmap_dataset *dataset = gather->views->dataset;
    const uint64_t before_seam = min64(gather->row_tokens, gather->views->tokens - first);
    enum tokmap_status status = tokmap_dataset_copy(dataset, first, before_seam, into, error);
    return status ? status
                  : tokmap_dataset_copy(dataset, 0, gather->row_tokens - before_seam,
                                        into + (before_seam << gather->width_shift), error);
}

static enum tokmap_status read_window(struct gather *gather, uint64_t first, uint8_t *into, bool *cold,
                                      struct tokmap_error *error)
{
    struct stretch stretch;
    for (uint64_t done = 0; done < gather->row_tokens; done += stretch.count) {
        enum tokmap_status status =
            shard_views_stretch(gather->views, first + done, gather->row_tokens - done, &stretch, error);
        if (!status)
            status = gather_stretch(gather, &stretch, into + (done << gather->width_shift), cold, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

enum tokmap_status gather_window(struct gather *gather, uint64_t first, void *row, bool *cold,
                                 struct tokmap_error *error)
{
    assert(first < gather->views->tokens);
    enum tokmap_status status =
        gather->synthetic ? compute_window(gather, first, row, error) : read_window(gather, first, row, cold, error);
    if (status)
        return status;
    __atomic_store_n(&gather->bytes, gather->bytes + (gather->row_tokens << gather->width_shift), __ATOMIC_RELAXED);
    return TOKMAP_OK;
}

void gather_prefetch(const struct gather *gather, uint64_t first)
{
    const struct shard_views *views = gather->views;
    if (!views->mapped)
        return;
    struct shard_view *view = &views->views[views->current];
    if (first < view->first_token || first >= view->end_token)
        view = &views->views[dataset_shard_of(views->dataset, first, views->current)];
    if (!view->known || first + gather->row_tokens > view->end_token)
        return;
    const struct stretch stretch = {view, view->offset + ((first - view->first_token) << gather->width_shift),
                                    gather->row_tokens};
    if (!residency_is_populated(gather->source, &stretch))
        return; /* walking the page table for a missing page costs more than the prefetch saves */
    const uint8_t *from = view->tokens + round_down(stretch.offset, LINE);
    const uint8_t *to =
        view->tokens + stretch.offset + min64(gather->row_tokens << gather->width_shift, PREFETCH_AT_MOST);
    for (; from < to; from += LINE)
        __builtin_prefetch(from, 0, 3);
}
