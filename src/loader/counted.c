/* SPDX-License-Identifier: MIT */
/*
 * counted.c - see counted.h. Example: a row of 8 targets, and which of them count:
 *
 *     token             0   1   2   3   4   5   6   7   8
 *     document begins   x           x
 *     in the mask       1   1   0   1   1   1   1   1   1
 *     target                0   1   2   3   4   5   6   7       target t is token t + 1
 *     bits                  0   1   1   0   0   0   0   0       target 1 is masked, and target 2 begins a document
 *
 * Six targets count. Of labels, which have no column for target 7, five do. Of two ranks that share the columns, each
 * counts the zeros in its own.
 */
#include "counted.h"

#include <stdlib.h>

#include "common/bits.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_fetch.h"
#include "row_targets.h"
#include "run/exclusion.h"
#include "run/run.h"

#define ROWS_MOST ((uint64_t)1 << 24) /* of a step, as with options.balance */
#define ROWS_AT_ONCE 256
#define MASKS_AHEAD 4                    /* rows whose masks are prefetched */
#define FETCHED_MOST ((uint64_t)1 << 30) /* bytes of masks in object storage */

static const uint32_t of_targets = TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD | TOKMAP_LOSS_MASK;

/* ---- opening ---- */

/* Fetches the masks of a source in object storage, because rows of the step need all parts of them sooner or later. */
static enum tokmap_status fetch_masks(const struct loader_source *source, uint64_t *fetched, struct tokmap_error *error)
{
    uint8_t bits[4096];
    enum tokmap_status status = TOKMAP_OK;
    if (!dataset_cache(source->dataset) || !dataset_has_mask(source->dataset))
        return TOKMAP_OK;
    *fetched += div_ceil(source->tokens, 8);
    if (*fetched > FETCHED_MOST)
        return error_set_field(error, TOKMAP_ERROR_UNSUPPORTED, NULL, "counts",
                               " needs the masks of all rows on every rank, but those in object storage up to source "
                               "'%s' have %" PRIu64 " bytes, more than 1 GiB; copy the dataset to this machine with "
                               "`tokmap copy`, or set counts to 0 and add up the numbers of all ranks in the program",
                               source->name, *fetched);
    for (uint64_t at = 0, part; at < source->tokens && !status; at += part) {
        part = min64(source->tokens - at, sizeof bits * 8);
        status = dataset_mask_read(source->dataset, at, part, bits, NULL, error);
    }
    return status;
}

static enum tokmap_status check_source(const struct loader_source *source, uint64_t *fetched,
                                       struct tokmap_error *error)
{
    if (!source->plan && dataset_scans_documents(source->dataset))
        return error_set_field(error, TOKMAP_ERROR_UNSUPPORTED, NULL, "counts",
                               " needs to know where documents end, but source '%s' has no document index; make one "
                               "with `tokmap index`, or set counts to 0",
                               source->name);
    return fetch_masks(source, fetched, error);
}

static enum tokmap_status check(const struct tokmap_loader *loader, const struct counted *counted,
                                struct tokmap_error *error)
{
    uint64_t fetched = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (!(loader->options.fields & (of_targets | TOKMAP_LABELS)))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "counts",
                               " counts targets or labels, but fields has neither; add \"targets\", \"labels\", or "
                               "\"loss_mask\" to fields, or set counts to 0");
    for (uint64_t i = 0; i < info_of_run(loader->run).phases; i++) {
        const struct tokmap_phase_info phase = info_of_phase(loader->run, i);
        if (phase.batch > ROWS_MOST)
            return error_set_field(error, TOKMAP_ERROR_LIMIT, NULL, "counts",
                                   " works with at most 2^24 rows of a step, but the run has steps of %" PRIu64
                                   " rows; lower batch, or set counts to 0",
                                   phase.batch);
    }
    for (uint64_t i = 0; i < loader->sources && counted->masked && !status; i++)
        status = check_source(&loader->source[i], &fetched, error);
    return status;
}

enum tokmap_status counted_open(struct tokmap_loader *loader, struct tokmap_error *error)
{
    struct counted *counted = &loader->fill->counted;
    const uint32_t fields = loader->options.fields;
    const struct tokmap_run_info info = info_of_run(loader->run);
    uint64_t rows = 0;
    if (loader->options.counts > 1)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "counts", " is %" PRIu32 "; set it to 0 or 1",
                               loader->options.counts);
    if (!loader->options.counts)
        return TOKMAP_OK;
    *counted = (struct counted){.on = true, .labels = !(fields & of_targets)};
    counted->masked = counted->labels || (fields & TOKMAP_LOSS_MASK) || loader->options.mask_targets;
    const enum tokmap_status status = check(loader, counted, error);
    if (status)
        return status;
    for (uint64_t i = 0; i < info.phases; i++)
        rows = max64(rows, info_of_phase(loader->run, i).batch);
    run_walk_init(&counted->walk, loader->run);
    counted->rows = calloc(rows, sizeof *counted->rows);
    counted->places = calloc(ROWS_AT_ONCE, sizeof *counted->places);
    counted->marks = calloc(mark_words(info.seq_len_most + 1) + 1, sizeof *counted->marks);
    counted->bits = calloc(mark_words(info.seq_len_most), sizeof *counted->bits);
    if (!counted->rows || !counted->places || !counted->marks || !counted->bits)
        return error_set_memory(error, "the counts of targets", rows * sizeof *counted->rows);
    return run_walk_keep(&counted->walk, error);
}

void counted_close(struct counted *counted)
{
    run_walk_free(&counted->walk);
    free(counted->rows);
    free(counted->places);
    free(counted->marks);
    free(counted->bits);
}

/* ---- a row ---- */

/* Makes the bits of a row's targets that do not count. Its `extents` extents are in loader->fill->extents. */
static enum tokmap_status find_bits(struct tokmap_loader *loader, const struct tokmap_place *place, uint64_t extents,
                                    uint64_t targets, struct tokmap_error *error)
{
    struct counted *counted = &loader->fill->counted;
    struct exclusion_walk walk;
    uint64_t first, count;
    enum tokmap_status status =
        row_targets_bits(loader, place, loader->fill->extents, extents, targets, counted->bits, error);
    if (!status)
        status = row_targets_marks(loader, place, extents, targets + 1, counted->marks, error);
    if (status)
        return status;
    counted->marks[mark_words(targets + 1)].starts = 0;
    for (uint64_t i = 0; i < mark_words(targets); i++)
        counted->bits[i] |= counted->marks[i].starts >> 1 | counted->marks[i + 1].starts << 63;
    if (!loader->exclusions)
        return TOKMAP_OK;
    exclusion_walk_begin(&walk, loader->exclusions, place, loader->fill->extents, extents);
    while (exclusion_walk_next(&walk, &first, &count)) {
        const uint64_t from = max64(first, 1) - 1, end = min64(first + count, targets);
        if (from < end)
            bits_set(counted->bits, from, end);
    }
    return TOKMAP_OK;
}

/* Returns how many of the targets [first, end) count. */
static uint64_t count_zeros(const struct counted *counted, uint64_t first, uint64_t end)
{
    if (first >= end)
        return 0;
    return end - first - (counted->masked ? bits_ones(counted->bits, first, end) : 0);
}

/* Counts the targets of a row of seq_len columns: all of them, and those in this rank's columns. */
static enum tokmap_status count_row(struct tokmap_loader *loader, const struct tokmap_place *place, uint64_t seq_len,
                                    uint64_t *all, uint32_t *own, struct tokmap_error *error)
{
    struct counted *counted = &loader->fill->counted;
    struct context *context = &loader->fill->context;
    const uint64_t targets = seq_len - counted->labels;
    uint64_t extents;
    enum tokmap_status status = TOKMAP_OK;
    *all = *own = 0;
    if (place->source == TOKMAP_NO_SOURCE || !targets)
        return TOKMAP_OK;
    status =
        run_row_extents(loader->run, place, loader->fill->extents, loader->fill->queue.extents_most, &extents, error);
    if (!status && counted->masked)
        status = find_bits(loader, place, extents, targets, error);
    if (status)
        return status;
    const struct row_bounds bounds = row_targets_bounds(loader, seq_len, place, extents);
    const uint64_t from = counted->masked ? bounds.scored_from : 0;
    const uint64_t end = min64(targets, max64(bounds.tokens, 1) - 1);
    *all = count_zeros(counted, from, end);
    *own = (uint32_t)*all;
    if (!context_cuts(context))
        return TOKMAP_OK;
    *own = 0;
    const uint64_t chunks = columns_of_row(&context->columns, seq_len, loader->fill->extents, extents, context->chunks);
    for (uint64_t k = 0; k < chunks; k++) {
        const struct chunk chunk = context->chunks[k];
        const uint64_t first = counted->labels ? max64(chunk.first, 1) - 1 : chunk.first;
        *own +=
            (uint32_t)count_zeros(counted, max64(first, from), min64(chunk.first + chunk.count - counted->labels, end));
    }
    return TOKMAP_OK;
}

/* ---- a step ---- */

static void prefetch_mask(const struct tokmap_loader *loader, const struct tokmap_place *place)
{
    const struct tokmap_extent extent = {place->first_token, place->tokens};
    if (place->source != TOKMAP_NO_SOURCE)
        uncounted_prefetch(gather_uncounted(loader->fill->gathers[place->source]), &extent);
}

/* Counts the targets of all rows of a step. */
static enum tokmap_status count_step(struct tokmap_loader *loader, uint64_t step, struct tokmap_error *error)
{
    struct counted *counted = &loader->fill->counted;
    struct run_step phase;
    uint64_t rows[ROWS_AT_ONCE], count, of_row;
    enum tokmap_status status = TOKMAP_OK;
    run_phase_of(loader->run, step, &phase);
    counted->known = false;
    counted->step = step;
    counted->total = 0;
    for (uint64_t first = 0; first < phase.batch && !status; first += count) {
        count = min64(phase.batch - first, ROWS_AT_ONCE);
        for (uint64_t i = 0; i < count; i++)
            rows[i] = first + i;
        run_walk_rows(&counted->walk, step, rows, count, counted->places);
        for (uint64_t i = 0; i < count && !status; i++) {
            if (counted->masked && i + MASKS_AHEAD < count)
                prefetch_mask(loader, &counted->places[i + MASKS_AHEAD]);
            status = count_row(loader, &counted->places[i], phase.seq_len, &of_row, &counted->rows[first + i], error);
            counted->total += of_row;
        }
    }
    counted->known = !status;
    return status;
}

enum tokmap_status counted_fill(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct counted *counted = &loader->fill->counted;
    bool same = true;
    enum tokmap_status status = TOKMAP_OK;
    slot->counted = slot->counted_in_step = 0;
    if (!counted->on)
        return TOKMAP_OK;
    for (uint64_t i = 0; i < slot->count; i++)
        same &= slot->places[i].step == slot->step;
    if (same && !(counted->known && counted->step == slot->step))
        status = count_step(loader, slot->step, error);
    for (uint64_t i = 0; i < slot->count && !status; i++) {
        uint64_t of_row;
        uint32_t own = counted->rows[same ? slot->places[i].row : 0];
        if (!same)
            status = count_row(loader, &slot->places[i], slot->seq_len, &of_row, &own, error);
        slot->counted += own;
    }
    slot->counted_in_step = same ? counted->total : 0;
    return status;
}
