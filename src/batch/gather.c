/* SPDX-License-Identifier: MIT */
/*
 * gather.c - see gather.h.
 *
 * The idea. An extent is a range of token addresses, and its tokens are already in memory, in the page cache of the
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
 * An example. A dataset has two shards of 1000 and 500 tokens of 2 bytes, and a window (a row of one extent) has 300
 * tokens. The window at token 900 is cut into two stretches: tokens 900 to 999 of shard 0 (bytes 1800 to 1999 of its
 * file) and tokens 0 to 199 of shard 1. The window at token 1400 crosses the seam: tokens 400 to 499 of shard 1, and
 * then tokens 0 to 199 of shard 0, since the dataset begins again past its end. Each stretch is copied in the way that
 * suits its pages, so one row may be made in both ways.
 *
 * Outputs on the host that follow from the tokens of a row alone need no row: where the consumer's thread fills them, a
 * row that is one stretch of populated pages is widened from the mapping straight to inputs and targets
 * (gather_direct()), and its ids are checked by the loop that stores them. That is one pass in place of two, and a row
 * takes no room in the caches. Rows that are not populated yet, or that cross a seam, are copied first, as above.
 *
 * A sealed shard is read frame by frame, each unpacked and compared in memory of the loader (sealed_rows.c), and its
 * tokens are copied from there as they are from a mapping.
 *
 * A run whose sources have tokens of 2 and of 4 bytes delivers rows of 4. The tokens of 2 bytes are widened by the same
 * pass that copies them from the mapping. What pread delivers is read to the second half of its place in the row, and
 * widened there from the front: the last bytes are read before anything is written over them.
 *
 * Why not the obvious ways. Copying from the mapping alone is shorter and just as fast when everything is in memory.
 * But a truncated file or a failing disk would then kill the training program with SIGBUS, and each page that is not in
 * memory would stop the copy for a page fault, one page at a time. Reading with pread alone costs a system call for
 * every row, which is a large part of the time where rows are short. So mapped reading begins as pread and moves to the
 * mapping as pages are populated.
 *
 * What is read with pread for the first time is read in whole pages, which are compared with the hashes of the index
 * before a token of them leaves this room (page_check.c); pages that are populated are compared then. After that, a
 * page costs nothing more, unless a look at its file shows that it has changed.
 *
 * A file that is cut shorter while it is open loses its pages, also those that were populated. So the size of each file
 * is compared with its index once per batch before the mapping is used, except that batches which begin within 50
 * microseconds share the look: one system call for each file and batch would be a fifth of the time of a mixture whose
 * batches are small. Within a batch, the look is repeated after every 128 KiB of tokens. A look for each row would cost
 * a third of the rate for rows of 4 KiB. What remains is a cut between a look and the copies that follow it.
 */
#include "gather.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache_attach.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "format/store.h"
#include "platform/os.h"

#define LINE 64
#define CONVERT_BYTES 16384 /* of a file that are read at once to be converted */

/* Bytes of a row that are prefetched while the row before it is prepared. More of them wait for the few lines that a
 * core can have under way, while the processor's own prefetcher, once it has seen the first lines, has a queue of its
 * own. Rows of 2,048 tokens of 16 bits at random places of 2 GB in the page cache, G tokens/s of inputs and targets:
 *
 *     lines             none    2     4     8     16    32    64
 *     Emerald Rapids    2.83   4.03  4.05  3.99  3.59                AVX-512
 *     Zen 3             2.30   3.04  2.87  3.01  2.90  2.80  2.55    expand_avx2.c prefetches more, between its stores
 */
#define PREFETCH_BYTES (8 * LINE)
/* The same of its second page, where the processor's prefetcher begins again, behind a walk of the page table. Emerald
 * Rapids, next() beside a batch of a plain loop: without, 1.20 of its time; 1 line 0.96, 2 lines 0.97, 4 lines 1.17. */
#define PAGE_BYTES 4096
#define PREFETCH_PAGE_BYTES (2 * LINE)

struct gather {
    struct residency_source *source;
    struct shard_views *views; /* the source's */
    struct uncounted *uncounted;
    const struct copy_kernels *kernels;
    uint64_t vocabulary;         /* ids must be below it; UINT64_MAX: not checked */
    uint32_t width, width_shift; /* of tokens in the dataset */
    uint32_t row_shift;          /* a token in a row has 1 << row_shift bytes */
    uint32_t pad_id;
    bool synthetic; /* tokens are computed: there are no shards, files, or pages */
    uint64_t bytes;
    /* What gather_prefetch() has found of the last two extents, so that gather_direct() need not look it up again: a
     * row is copied after the row behind it was prefetched. */
    struct found {
        struct tokmap_extent extent; /* no tokens: it is not populated */
        struct stretch stretch;      /* all of it; its file is open for good */
        uint64_t cleared;            /* that of the source at that time */
    } found[2];
    uint32_t latest; /* found[latest] is of the last one */
};

/* ---- opening ---- */

enum tokmap_status gather_open(struct gather **made, struct residency_source *source,
                               const struct gather_options *options, struct tokmap_error *error)
{
    assert(source && (options->row_width == 0 || options->row_width == 2 || options->row_width == 4));
    *made = NULL;
    const struct tokmap_dataset_info info = info_of_dataset(source->views.dataset);
    struct gather *gather = calloc(1, sizeof *gather);
    if (!gather)
        return error_set_memory(error, "a loader", sizeof *gather);
    /* A vocabulary that every id of this width fits needs no check. */
    bool unchecked = options->trust_files || info.vocabulary > (info.width == 4 ? UINT32_MAX : UINT16_MAX);
    gather->source = source;
    gather->views = &source->views;
    gather->kernels = options->kernels ? options->kernels : copy_variant(0);
    gather->width = info.width;
    gather->width_shift = source->views.width_shift;
    gather->row_shift = options->row_width ? options->row_width / 2 : gather->width_shift;
    gather->pad_id = options->pad_id;
    assert(gather->row_shift >= gather->width_shift && (gather->row_shift == 2 || gather->pad_id <= UINT16_MAX));
    gather->vocabulary = unchecked ? UINT64_MAX : info.vocabulary;
    gather->synthetic = dataset_is_synthetic(source->views.dataset);
    enum tokmap_status status = uncounted_open(&gather->uncounted, source, error);
    if (status) {
        free(gather);
        return status;
    }
    *made = gather;
    return TOKMAP_OK;
}

void gather_close(struct gather *gather)
{
    if (gather)
        uncounted_close(gather->uncounted);
    free(gather);
}

struct uncounted *gather_uncounted(const struct gather *gather)
{
    return gather->uncounted;
}

uint64_t gather_tokens(const struct gather *gather)
{
    return gather->views->tokens;
}

uint64_t gather_bytes(const struct gather *gather)
{
    return __atomic_load_n(&gather->bytes, __ATOMIC_RELAXED);
}

/* ---- faults ---- */

static enum tokmap_status fault_cut(const struct shard_view *view, uint64_t size, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, view->file.path, size,
                     "the file ends here, but its index says that it has %" PRIu64 " bytes: it was truncated while it "
                     "was open; restore it, or pack it again under another name",
                     view->file.bytes);
}

static enum tokmap_status fault_read(const struct shard_view *view, int system, uint64_t offset,
                                     struct tokmap_error *error)
{
    if (system == ETIMEDOUT)
        return error_set(error, TOKMAP_ERROR_TIMEOUT, view->file.path, offset,
                         "reading tokens took longer than deadline_ns; check the storage that holds the file, "
                         "then call again or continue from the last cursor");
    return error_set_system(error, system, view->file.path, offset,
                            "cannot read tokens; check the storage that holds the file, then continue from the last "
                            "cursor");
}

/* Reports a read that ended at a byte, or found nothing there: the end of the file may be before it. */
static enum tokmap_status fault_short(const struct shard_view *view, uint64_t end, struct tokmap_error *error)
{
    uint64_t bytes;
    return fault_cut(view, os_file_bytes(view->file.fd, &bytes) ? end : min64(end, bytes), error);
}

/* Reports that the copy met an id that is not in the vocabulary; `largest` is the largest that it met. The row is
 * searched for it, to report its position. If the row does not have it, the copy stored another value than it met: a
 * token was loaded twice while the file was being changed, or something else writes to the row. Nothing is certain
 * about such a row, so it is refused too, even if all ids that are now in it happen to be in the vocabulary. */
static __attribute__((cold, noinline)) enum tokmap_status fault_token(const struct gather *gather,
                                                                      const struct stretch *stretch, const uint8_t *row,
                                                                      uint32_t row_shift, uint32_t largest,
                                                                      struct tokmap_error *error)
{
    const char *path = stretch->view->file.path;
    for (uint64_t i = 0; i < stretch->count; i++) {
        uint32_t id = row_shift == 2 ? load32(row + i * 4) : load16(row + i * 2);
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

/* ---- a row ---- */

/* Compares the size of a shard's file with its index, and finds out whether the file has changed. */
static enum tokmap_status look(struct gather *gather, struct shard_view *view, struct tokmap_error *error)
{
    uint64_t bytes;
    int system;
    enum tokmap_status status = residency_look(gather->source, view, &bytes, &system);
    if (status == TOKMAP_ERROR_TRUNCATED)
        return fault_cut(view, bytes, error);
    return status ? fault_read(view, system, TOKMAP_NO_OFFSET, error) : TOKMAP_OK;
}

/* Reads bytes of a file, without saying so to the residency. */
static enum tokmap_status read_file(struct gather *gather, const struct shard_view *view, uint64_t offset, size_t bytes,
                                    uint8_t *into, bool *cold, struct tokmap_error *error)
{
    size_t got, more = 0;
    if (residency_read_cached(gather->source, view->file.fd, offset, bytes, into, &got) && got < bytes)
        *cold = true;
    if (got < bytes) {
        int system = residency_read(gather->source, view->file.fd, into + got, bytes - got, offset + got, &more);
        if (system)
            return fault_read(view, system, offset + got + more, error);
        if (got + more < bytes)
            return fault_short(view, offset + got + more, error);
    }
    return TOKMAP_OK;
}

/* Reads a stretch, or a span, in the same way. */
static enum tokmap_status read_bytes(struct gather *gather, const struct stretch *stretch, uint8_t *into, bool *cold,
                                     struct tokmap_error *error)
{
    return read_file(gather, stretch->view, stretch->offset, (size_t)(stretch->count << stretch->view->element_shift),
                     into, cold, error);
}

/* Reads a stretch by spans of whole pages, and compares those that were not compared before. */
static enum tokmap_status read_compared(struct gather *gather, const struct stretch *stretch, uint8_t *into, bool *cold,
                                        struct tokmap_error *error)
{
    struct page_check *check = &gather->source->check;
    uint8_t *pages = gather->source->shared->span;
    struct shard_view *view = stretch->view;
    const uint64_t end = stretch->offset + (stretch->count << view->element_shift);
    for (uint64_t at = stretch->offset, to; at < end; at = to) {
        const struct stretch span = page_check_span(stretch, at);
        const uint64_t bytes = span.count << view->element_shift;
        enum tokmap_status status = read_bytes(gather, &span, pages, cold, error);
        if (!status && !page_check_done(check, &span))
            status = page_check_compare(check, view, span.offset / TOKEN_PAGE_BYTES, pages, bytes, error);
        to = at;
        if (status == TOKMAP_ERROR_CORRUPT && cache_distrust(view->file.fd, span.offset, bytes))
            continue; /* the copy in the cache was damaged, and is fetched again */
        if (status)
            return status;
        to = min64(end, span.offset + bytes);
        memcpy(into + (at - stretch->offset), pages + (at - span.offset), (size_t)(to - at));
    }
    return TOKMAP_OK;
}

/* Reads a stretch in the file's elements. What the pool has been asked for are spans. */
static enum tokmap_status read_stretch(struct gather *gather, const struct stretch *stretch, uint8_t *into, bool *cold,
                                       struct tokmap_error *error)
{
    struct residency_source *source = gather->source;
    const bool spans = source->pool_asks ? stretch->view->hashed : !page_check_done(&source->check, stretch);
    const enum tokmap_status status =
        spans ? read_compared(gather, stretch, into, cold, error) : read_bytes(gather, stretch, into, cold, error);
    if (!status)
        residency_was_read(source, stretch, *cold);
    return status;
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
        const uint64_t good = element_convert(view->file.element, buffer, part.count, gather->width, into);
        if (good < part.count)
            return store_bad_element(view->file.path, view->file.element, buffer + (good << shift),
                                     part.offset + (good << shift), error);
        into += part.count << gather->width_shift;
        part.offset += part.count << shift;
    }
    return TOKMAP_OK;
}

static bool is_widened(const struct gather *gather)
{
    return gather->row_shift != gather->width_shift;
}

/* Returns where `count` tokens that belong at `into` are read to, in the dataset's width: there, or, if they are to be
 * widened, in the second half of the place that they will take. */
static uint8_t *read_to(const struct gather *gather, uint8_t *into, uint64_t count)
{
    return is_widened(gather) ? into + (count << gather->width_shift) : into;
}

/* Copies tokens that are in memory to a row, and raises *largest to the largest of them. */
static void copy_tokens(const struct gather *gather, const uint8_t *from, uint64_t count, uint8_t *into,
                        uint32_t *largest)
{
    const struct copy_kernels *kernels = gather->kernels;
    uint32_t found = 0;
    if (is_widened(gather))
        found = kernels->widen16(into, from, count);
    else if (gather->vocabulary == UINT64_MAX)
        memcpy(into, from, (size_t)(count << gather->width_shift));
    else
        found = gather->width == 4 ? kernels->copy32(into, from, count) : kernels->copy16(into, from, count);
    *largest = found > *largest ? found : *largest;
}

/* Finds the tokens of a frame, which is read and unpacked unless that was done for one of the last rows. */
static enum tokmap_status frame_tokens(struct gather *gather, struct shard_view *view, uint64_t number,
                                       const uint8_t **tokens, bool *cold, struct tokmap_error *error)
{
    struct residency_source *source = gather->source;
    struct sealed_rows *rows = source->shared->sealed;
    struct sealed_frame frame;
    *tokens = sealed_rows_kept(rows, view, number);
    if (*tokens)
        return TOKMAP_OK;
    enum tokmap_status status;
    do {
        status = sealed_rows_find(&source->check, view, number, &frame, error);
        if (!status)
            status = read_file(gather, view, frame.at, frame.stored, rows->stored, cold, error);
        if (!status)
            status = sealed_rows_unpack(rows, view, &frame, tokens, error);
    } while (status == TOKMAP_ERROR_CORRUPT && cache_distrust(view->file.fd, frame.at, frame.stored));
    if (!status)
        residency_frame_was_read(source, view, &frame);
    return status;
}

/* Copies a stretch of a sealed shard, frame by frame. */
static enum tokmap_status read_sealed(struct gather *gather, const struct stretch *stretch, uint8_t *into, bool *cold,
                                      uint32_t *largest, struct tokmap_error *error)
{
    const uint32_t shift = stretch->view->element_shift;
    uint64_t at = stretch->offset;
    for (uint64_t left = stretch->count, part; left; left -= part, at += part << shift) {
        const uint64_t skip = at % FRAME_BYTES;
        const uint8_t *tokens;
        part = min64(left, (FRAME_BYTES - skip) >> shift);
        const enum tokmap_status status = frame_tokens(gather, stretch->view, at / FRAME_BYTES, &tokens, cold, error);
        if (status)
            return status;
        copy_tokens(gather, tokens + skip, part, into, largest);
        into += part << gather->row_shift;
    }
    return TOKMAP_OK;
}

/* Finds out whether all pages of a stretch can be loaded from the mapping. Looks at its file if it is time, and
 * compares pages that are present and were not compared. */
static enum tokmap_status find_populated(struct gather *gather, const struct stretch *stretch, bool *populated,
                                         uint64_t *state, struct tokmap_error *error)
{
    struct residency_source *source = gather->source;
    const bool mapped = gather->views->mapped && stretch_present(stretch, state);
    *populated = mapped && residency_is_populated(source, stretch);
    const bool present = mapped && !*populated && residency_is_present(source, stretch);
    if (residency_must_look(source, stretch->view, *populated || present)) {
        const enum tokmap_status status = look(gather, stretch->view, error);
        if (status)
            return status;
        *populated = *populated && residency_is_populated(source, stretch); /* not if the file has changed */
    }
    if (source->check.look && stretch->view->hashed && !stretch->view->fetched)
        residency_look_on_thread(source, stretch->view);
    if (present && residency_is_present(source, stretch)) {
        const enum tokmap_status status = residency_compare(source, stretch, error);
        if (status && !stretch->view->fetched) /* otherwise it may have been given up, or is fetched again */
            return status;
        *populated = !status;
    }
    return TOKMAP_OK;
}

static enum tokmap_status gather_stretch(struct gather *gather, const struct stretch *stretch, uint8_t *into,
                                         bool *cold, struct tokmap_error *error)
{
    bool checked = gather->vocabulary != UINT64_MAX, wide = gather->width == 4, widen = is_widened(gather), populated;
    const struct copy_kernels *kernels = gather->kernels;
    uint32_t largest = 0;
    uint64_t state;
    enum tokmap_status status = find_populated(gather, stretch, &populated, &state, error);
    if (status)
        return status;
    if (populated) {
        const uint8_t *from = stretch->view->tokens + stretch->offset;
        copy_tokens(gather, from, stretch->count, into, &largest);
        residency_loaded(gather->source, stretch->count << gather->width_shift);
        populated = stretch_kept(stretch, state);
    }
    if (populated) {
        /* The row is there. */
    } else if (stretch->view->file.sealed) {
        status = read_sealed(gather, stretch, into, cold, &largest, error);
        if (status)
            return status;
    } else {
        uint8_t *to = read_to(gather, into, stretch->count);
        status = stretch->view->file.converted ? read_converted(gather, stretch, to, cold, error)
                                               : read_stretch(gather, stretch, to, cold, error);
        if (status)
            return status;
        if (widen)
            largest = kernels->widen16(into, to, stretch->count);
        else if (checked)
            largest = wide ? kernels->largest32(into, stretch->count) : kernels->largest16(into, stretch->count);
    }
    if (__builtin_expect(largest >= gather->vocabulary, 0))
        return fault_token(gather, stretch, into, gather->row_shift, largest, error);
    return TOKMAP_OK;
}

static void compute_extent(const struct gather *gather, const struct tokmap_extent *extent, uint8_t *into)
{
    assert(extent->first_token < gather->views->tokens && extent->tokens <= gather->views->tokens);
    const struct tokmap_dataset *dataset = gather->views->dataset;
    const uint64_t before_seam = min64(extent->tokens, gather->views->tokens - extent->first_token);
    uint8_t *to = read_to(gather, into, extent->tokens);
    dataset_synthetic_copy(dataset, extent->first_token, before_seam, to);
    dataset_synthetic_copy(dataset, 0, extent->tokens - before_seam, to + (before_seam << gather->width_shift));
    if (is_widened(gather))
        (void)gather->kernels->widen16(into, to, extent->tokens);
}

static enum tokmap_status read_extent(struct gather *gather, const struct tokmap_extent *extent, uint8_t *into,
                                      bool *cold, struct tokmap_error *error)
{
    struct stretch stretch;
    assert(extent->first_token < gather->views->tokens && extent->tokens <= gather->views->tokens);
    for (uint64_t done = 0; done < extent->tokens; done += stretch.count) {
        enum tokmap_status status =
            shard_views_stretch(gather->views, extent->first_token + done, extent->tokens - done, &stretch, error);
        if (!status)
            status = gather_stretch(gather, &stretch, into + (done << gather->row_shift), cold, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

void gather_padding(uint32_t pad_id, uint32_t width, uint64_t row_tokens, void *row)
{
    assert(width == 4 || pad_id <= UINT16_MAX);
    if (width == 1) /* values, which are zeros there */
        memset(row, 0, (size_t)row_tokens);
    for (uint64_t i = 0; i < row_tokens && width > 1; i++)
        if (width == 4)
            store32((uint8_t *)row + i * 4, pad_id);
        else
            store16((uint8_t *)row + i * 2, (uint16_t)pad_id);
}

static void count_bytes(struct gather *gather, uint64_t tokens)
{
    __atomic_store_n(&gather->bytes, gather->bytes + (tokens << gather->width_shift), __ATOMIC_RELAXED);
}

enum tokmap_status gather_row(struct gather *gather, const struct tokmap_extent *extents, uint64_t count,
                              uint64_t row_tokens, void *row, bool *cold, struct tokmap_error *error)
{
    uint64_t done = 0, copied = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct tokmap_extent *extent = &extents[i];
        uint8_t *into = (uint8_t *)row + (done << gather->row_shift);
        assert(extent->tokens <= row_tokens - done);
        enum tokmap_status status = TOKMAP_OK;
        if (extent_is_padding(extent))
            gather_padding(gather->pad_id, 1u << gather->row_shift, extent->tokens, into);
        else if (gather->synthetic)
            compute_extent(gather, extent, into);
        else
            status = read_extent(gather, extent, into, cold, error);
        if (status)
            return status;
        done += extent->tokens;
        copied += extent_is_padding(extent) ? 0 : extent->tokens;
    }
    if (done < row_tokens)
        gather_padding(gather->pad_id, 1u << gather->row_shift, row_tokens - done,
                       (uint8_t *)row + (done << gather->row_shift));
    count_bytes(gather, copied);
    return TOKMAP_OK;
}

/* Returns whether an extent was found, its pages are still populated, and no look at its file is due. */
static bool is_found(const struct gather *gather, const struct found *found, const struct tokmap_extent *extent)
{
    return extent->tokens == found->extent.tokens && extent->first_token == found->extent.first_token &&
           found->cleared == *gather->source->cleared &&
           !residency_must_look(gather->source, found->stretch.view, true);
}

enum tokmap_status gather_direct(struct gather *gather, const struct tokmap_extent *extents, uint64_t count,
                                 const struct gather_outputs *outputs, bool *done, struct tokmap_error *error)
{
    const uint64_t seq_len = outputs->seq_len;
    struct stretch stretch;
    uint64_t state = 0;
    *done = false;
    if (count != 1 || !gather->views->mapped || extents->tokens < seq_len + (outputs->targets != NULL))
        return TOKMAP_OK;
    const struct found *found = &gather->found[!gather->latest];
    if (is_found(gather, found, extents)) {
        stretch = found->stretch;
    } else {
        enum tokmap_status status =
            shard_views_stretch(gather->views, extents->first_token, extents->tokens, &stretch, error);
        if (status || stretch.count < extents->tokens)
            return status;
        status = find_populated(gather, &stretch, done, &state, error);
        if (status || !*done)
            return status;
    }
    const uint8_t *tokens = stretch.view->tokens + stretch.offset;
    const uint32_t largest = outputs->targets
                                 ? outputs->pair(tokens, seq_len, outputs->after, outputs->inputs, outputs->targets)
                                 : outputs->one(tokens, seq_len, outputs->inputs);
    residency_loaded(gather->source, stretch.count << gather->width_shift);
    *done = stretch_kept(&stretch, state);
    if (!*done)
        return TOKMAP_OK;
    if (__builtin_expect(largest >= gather->vocabulary, 0))
        return fault_token(gather, &stretch, tokens, gather->width_shift, largest, error);
    count_bytes(gather, extents->tokens);
    return TOKMAP_OK;
}

/* Returns the tokens of an extent in the mapping, if all of them are in one shard and populated; else NULL. */
static const uint8_t *populated_tokens(struct gather *gather, const struct tokmap_extent *extent)
{
    const struct shard_views *views = gather->views;
    const uint64_t first = extent->first_token;
    struct found *found = &gather->found[gather->latest ^= 1];
    found->extent.tokens = 0;
    if (!views->mapped)
        return NULL;
    struct shard_view *view = &views->views[views->current];
    if (first < view->file.first_token || first >= view->end_token)
        view = &views->views[dataset_shard_of(views->dataset, first, views->current)];
    if (!shard_views_holds(views, view) || first + extent->tokens > view->end_token)
        return NULL;
    const struct stretch stretch = {view, view->file.offset + ((first - view->file.first_token) << gather->width_shift),
                                    extent->tokens};
    if (!residency_is_populated(gather->source, &stretch)) {
        residency_populate_ahead(gather->source, &stretch);
        if (!residency_is_present(gather->source, &stretch))
            return NULL; /* walking the page table for a missing page costs more than the prefetch saves */
        page_check_prefetch(&gather->source->check, &stretch, view->tokens);
        return NULL; /* all of its lines were named */
    }
    if (!views->pins && !view->fetched)
        *found = (struct found){*extent, stretch, *gather->source->cleared};
    return view->tokens + stretch.offset;
}

const void *gather_prefetch(struct gather *gather, const struct tokmap_extent *extent)
{
    uncounted_prefetch(gather->uncounted, extent);
    const uint8_t *tokens = populated_tokens(gather, extent);
    const uint64_t bytes = extent->tokens << gather->width_shift, page = -(uintptr_t)tokens % PAGE_BYTES;
    for (uint64_t at = 0; tokens && at < bytes && at < PREFETCH_BYTES; at += LINE)
        __builtin_prefetch(tokens + at, 0, 2);
    for (uint64_t at = page; tokens && at < bytes && at < page + PREFETCH_PAGE_BYTES; at += LINE)
        __builtin_prefetch(tokens + at, 0, 2);
    return tokens;
}
