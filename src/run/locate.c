/* SPDX-License-Identifier: MIT */
/*
 * locate.c - which window a row of a step shows, and which rows show a token.
 *
 * Forward. In a phase that begins with step t0 and draw p0, with G rows in a step; and for a source with n windows in
 * an epoch, S tokens in a sequence, and D tokens from window to window:
 *
 *     row j of step t takes draw p = p0 + (t - t0) * G + rows_t(j)
 *     draw p is draw s of a source                       (phases.h; with one source and one phase, s = p)
 *     draw s shows window i = windows_e(s mod n) of epoch e = s / n, counted from the epoch in which the span began
 *     window i begins at token (shift_e + i * D) mod T
 *
 * rows_t and windows_e are keyed permutations. Example: one source, G = 4, n = 10, S = D = 100. Row 1 of step 3 takes
 * draw 12 + rows_3(1), say 12 + 2 = 14. That is draw 4 of epoch 1. If windows_1(4) = 7, the row shows the 100 tokens
 * from shift_1 + 700 and the lookahead.
 *
 * Back. Each of the four mappings is a bijection that can be undone, so the inverse costs as much as the forward
 * direction. With a lookahead of L tokens, token x is, in epoch e and with d = (x - shift_e) mod T, in the windows
 *
 *     max(0, ceil((d - S - L + 1) / D)) to min(n - 1, floor(d / D))
 *
 * Measured in d, no window crosses the seam (d = 0), but a range of tokens can; it is then searched as two ranges of d.
 * The obvious alternative, a table of all rows, would need memory and a build pass in proportion to the run; this needs
 * neither.
 */
#include "locate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "order/permutation.h"
#include "run_state.h"

enum {
    BATCH_ROWS = 512,   /* of run_walk_rows(): rows at a time */
    BATCH_LEAVES = 256, /* more leaves have too few rows each for that */
};

static struct order_key source_key(const struct tokmap_run *run, const struct run_source *source, const char *tag,
                                   uint64_t epoch)
{
    return order_key(tag, run->spec.seed, source->name, source->name_bytes, epoch);
}

/* Returns the first token of the epoch's first window. */
static uint64_t epoch_shift(const struct tokmap_run *run, const struct mixture_span *stretch,
                            const struct run_source *source, uint64_t epoch)
{
    if (epoch == 0 || run->spec.order == TOKMAP_SEQUENTIAL || run->spec.tail_pad || source->plan_path ||
        stretch->stride < stretch->seq_len)
        return 0;
    return order_key_below(source_key(run, source, KEY_SHIFT, epoch), stretch->seq_len);
}

void run_epoch_init(struct walk_epoch *at, const struct tokmap_run *run, const struct mixture_span *stretch,
                    const struct leaf *leaf, uint64_t epoch)
{
    const struct run_source *source = &run->sources.of[leaf->source];
    at->known = true;
    at->source = leaf->source;
    at->span = stretch->span;
    at->epoch = epoch;
    at->first = (epoch - leaf->epoch_first) * leaf->windows;
    at->shift = epoch_shift(run, stretch, source, epoch);
    if (run->spec.order == TOKMAP_SHUFFLE)
        permutation_init(&at->order.shuffle, source_key(run, source, KEY_WINDOWS, epoch), leaf->windows);
    else if (run_spec_has_blocks(&run->spec))
        blocks_init(&at->order.blocks, leaf->windows, run->spec.blocks, run->spec.span, run->spec.order == TOKMAP_EVEN,
                    run->spec.seed, source->name, source->name_bytes, epoch);
}

/* Sets the first token and the tokens of a place whose source and window are set, and whose source has no plan. */
static void fill_window(const struct tokmap_run *run, const struct run_source *source,
                        const struct mixture_span *stretch, uint64_t shift, struct tokmap_place *place)
{
    const uint64_t window = stretch->seq_len + run->spec.lookahead;
    /* Below T: without padding, shift < S, and the last window starts at most at T - S - L. Only the end of a window
     * can wrap. With tail pad, the shift is 0, and the last window starts before T and does not wrap. */
    place->first_token = shift + place->window * stretch->stride;
    place->tokens = run->spec.tail_pad ? min64(window, source->tokens - place->first_token) : window;
}

/* Finds the tokens of a place. A plan that is corrupt there is not a failure. */
static enum tokmap_status place_tokens(const struct tokmap_run *run, struct tokmap_place *place,
                                       struct tokmap_error *error)
{
    struct tokmap_extent first;
    uint64_t count, tokens;
    if (place->source == TOKMAP_NO_SOURCE)
        return TOKMAP_OK;
    const struct run_source *source = &run->sources.of[place->source];
    if (!source->plan_path)
        return TOKMAP_OK;
    place->first_token = place->tokens = 0;
    const enum tokmap_status status = plan_row_extents(&source->plan, place->window, &first, 1, &count, &tokens, error);
    if (status)
        return status == TOKMAP_ERROR_CORRUPT ? TOKMAP_OK : status;
    place->first_token = first.first_token;
    place->tokens = tokens;
    return TOKMAP_OK;
}

void run_place_tokens(const struct tokmap_run *run, struct tokmap_place *place)
{
    (void)place_tokens(run, place, NULL);
}

void run_plan_prefetch(const struct tokmap_run *run, const struct tokmap_place *place)
{
    if (place->source != TOKMAP_NO_SOURCE && run->sources.of[place->source].plan_path)
        plan_prefetch_segments(&run->sources.of[place->source].plan, place->window);
}

bool run_has_plans(const struct tokmap_run *run)
{
    for (uint64_t i = 0; i < run->sources.count; i++)
        if (run->sources.of[i].plan_path)
            return true;
    return false;
}

enum tokmap_status run_fill_place(const struct tokmap_run *run, const struct walk_epoch *epoch,
                                  const struct mixture_span *stretch, struct tokmap_place *place,
                                  struct tokmap_error *error)
{
    const struct run_source *source = &run->sources.of[epoch->source];
    place->source = epoch->source;
    place->epoch = epoch->epoch;
    if (source->plan_path)
        return place_tokens(run, place, error);
    fill_window(run, source, stretch, epoch->shift, place);
    return TOKMAP_OK;
}

/* ---- forward ---- */

void run_walk_init(struct run_walk *walk, const struct tokmap_run *run)
{
    walk->run = run;
    walk->step_known = walk->one.known = false;
    walk->epochs = NULL;
}

enum tokmap_status run_walk_keep(struct run_walk *walk, struct tokmap_error *error)
{
    const uint64_t sources = walk->run->sources.count;
    if (sources > 1 && !walk->epochs && !(walk->epochs = calloc(sources, sizeof *walk->epochs)))
        return error_set_memory(error, "the orders of the sources", sources * sizeof *walk->epochs);
    return TOKMAP_OK;
}

void run_walk_free(struct run_walk *walk)
{
    free(walk->epochs);
    walk->epochs = NULL;
}

static void walk_to_step(struct run_walk *walk, uint64_t step)
{
    const struct tokmap_run *run = walk->run;
    const struct phases *phases = &run->phases;
    if (!walk->step_known || step < walk->phase->first_step || step >= walk->end_step) {
        walk->phase = phases_of_step(phases, step);
        walk->stretch = &phases->stretches[walk->phase->stretch];
        walk->rows = walk->phase->batch;
        walk->end_step = walk->phase + 1 < phases->phases + phases->count ? walk->phase[1].first_step : TOKMAP_FOREVER;
    }
    walk->step = step;
    walk->step_known = true;
    walk->step_base = walk->phase->first_draw + (step - walk->phase->first_step) * walk->rows;
    walk->valid = min64(walk->rows, phases->end_draw - walk->step_base);
    if (run->spec.order != TOKMAP_SEQUENTIAL)
        permutation_init(&walk->rows_order, order_key(KEY_ROWS, run->spec.seed, "", 0, step), walk->valid);
}

/* Returns where the order of an epoch of a leaf's source is kept. It may be the order of another epoch or source. */
static struct walk_epoch *walk_epoch_of(struct run_walk *walk, const struct leaf *leaf)
{
    return walk->epochs ? &walk->epochs[leaf->source] : &walk->one;
}

/* Returns true if the leaf's draw s is in that epoch. */
static bool epoch_has(const struct walk_epoch *at, const struct run_walk *walk, const struct leaf *leaf, uint64_t s)
{
    return at->known && at->source == leaf->source && at->span == walk->stretch->span && s - at->first < leaf->windows;
}

/* Sets the tokens of a place whose window is set, and what it shares with its epoch. */
static void walk_fill(const struct run_walk *walk, const struct walk_epoch *at, struct tokmap_place *place)
{
    const struct run_source *source = &walk->run->sources.of[at->source];
    place->source = at->source;
    place->epoch = at->epoch;
    if (source->plan_path)
        plan_prefetch_row(&source->plan, place->window);
    else
        fill_window(walk->run, source, walk->stretch, at->shift, place);
}

/* Completes a place that shows the leaf's draw s. */
static void walk_draw(struct run_walk *walk, const struct leaf *leaf, uint64_t s, struct tokmap_place *place)
{
    const struct tokmap_run *run = walk->run;
    struct walk_epoch *at = walk_epoch_of(walk, leaf);
    if (!epoch_has(at, walk, leaf, s))
        run_epoch_init(at, run, walk->stretch, leaf, leaf->epoch_first + s / leaf->windows);
    place->window = s - at->first;
    if (run->spec.order == TOKMAP_SHUFFLE)
        place->window = permutation_forward(&at->order.shuffle, place->window);
    else if (run_spec_has_blocks(&run->spec))
        place->window = blocks_forward(&at->order.blocks, place->window);
    walk_fill(walk, at, place);
}

void run_walk_window(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place)
{
    const struct tokmap_run *run = walk->run;
    if (!walk->step_known || walk->step != step) {
        assert(step < run->phases.steps_most);
        walk_to_step(walk, step);
    }
    assert(row < walk->rows);
    place->step = step;
    place->row = row;
    if (row >= walk->valid) {
        *place =
            (struct tokmap_place){.step = step, .row = row, .draw = walk->step_base + row, .source = TOKMAP_NO_SOURCE};
        return;
    }
    place->draw =
        walk->step_base + (run->spec.order == TOKMAP_SEQUENTIAL ? row : permutation_forward(&walk->rows_order, row));
    uint64_t s;
    const struct leaf *leaf = stretch_draw(walk->stretch, place->draw, &s);
    walk_draw(walk, leaf, s, place);
}

void run_walk_place(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place)
{
    run_walk_window(walk, step, row, place);
    run_place_tokens(walk->run, place);
}

/* ---- many rows at once ---- */

/* Rows of a step, in groups: all rows of a group show draws of one leaf. */
struct rows_batch {
    struct tokmap_place *places;
    uint64_t count;
    uint64_t draws[BATCH_ROWS];      /* of the leaf, by row */
    uint32_t leaves[BATCH_ROWS];     /* by row */
    uint16_t in_groups[BATCH_ROWS];  /* the rows of group 0, of group 1, ... */
    uint16_t ends[BATCH_LEAVES + 1]; /* group i is in_groups[ends[i]] up to, not including, in_groups[ends[i + 1]] */
};

/* Sorts the rows by their leaves, of which there are at most BATCH_LEAVES. Rows of a leaf keep their order. */
static void batch_group(struct rows_batch *batch, uint64_t leaves)
{
    memset(batch->ends, 0, (leaves + 1) * sizeof batch->ends[0]);
    for (uint64_t i = 0; i < batch->count; i++)
        batch->ends[batch->leaves[i]]++;
    for (uint64_t leaf = 0, sum = 0; leaf <= leaves; leaf++) {
        const uint16_t here = batch->ends[leaf];
        batch->ends[leaf] = (uint16_t)sum;
        sum += here;
    }
    /* Each ends[i] is the next place of group i, and afterwards the first place of group i + 1. */
    for (uint64_t i = 0; i < batch->count; i++)
        batch->in_groups[batch->ends[batch->leaves[i]]++] = (uint16_t)i;
    memmove(batch->ends + 1, batch->ends, leaves * sizeof batch->ends[0]);
    batch->ends[0] = 0;
}

/* Completes the places of a group (NULL: all rows). Its rows are permuted at once if all are of the epoch at hand,
 * which is so but for a few steps of a run. */
static void group_places(struct run_walk *walk, const struct rows_batch *batch, const struct leaf *leaf,
                         const uint16_t *group, uint64_t count)
{
    uint64_t windows[BATCH_ROWS];
    struct walk_epoch *at = walk_epoch_of(walk, leaf);
    bool same = at->known;
    for (uint64_t i = 0; same && i < count; i++) {
        const uint64_t s = batch->draws[group ? group[i] : i];
        windows[i] = s - at->first;
        same = epoch_has(at, walk, leaf, s);
    }
    if (!same || walk->run->spec.order != TOKMAP_SHUFFLE) {
        for (uint64_t i = 0; i < count; i++)
            walk_draw(walk, leaf, batch->draws[group ? group[i] : i], &batch->places[group ? group[i] : i]);
        return;
    }
    permutation_forward_many(&at->order.shuffle, windows, count, windows);
    for (uint64_t i = 0; i < count; i++) {
        struct tokmap_place *place = &batch->places[group ? group[i] : i];
        place->window = windows[i];
        walk_fill(walk, at, place);
    }
}

/* Completes places whose step, row, and draw are set, and none of which is padding. */
static void batch_places(struct run_walk *walk, struct rows_batch *batch)
{
    const struct mixture_span *stretch = walk->stretch;
    for (uint64_t i = 0; i < batch->count; i++)
        batch->leaves[i] = (uint32_t)(stretch_draw(stretch, batch->places[i].draw, &batch->draws[i]) - stretch->leaves);
    if (stretch->leaf_count == 1) {
        group_places(walk, batch, stretch->leaves, NULL, batch->count);
        return;
    }
    if (stretch->leaf_count > BATCH_LEAVES) {
        for (uint64_t i = 0; i < batch->count; i++)
            walk_draw(walk, &stretch->leaves[batch->leaves[i]], batch->draws[i], &batch->places[i]);
        return;
    }
    batch_group(batch, stretch->leaf_count);
    for (uint64_t leaf = 0; leaf < stretch->leaf_count; leaf++)
        group_places(walk, batch, &stretch->leaves[leaf], batch->in_groups + batch->ends[leaf],
                     (uint64_t)(batch->ends[leaf + 1] - batch->ends[leaf]));
}

uint64_t run_walk_block(struct run_walk *walk, const struct tokmap_place *place, uint64_t *at)
{
    const struct leaf *leaf = walk->stretch->leaves;
    assert(run_spec_has_blocks(&walk->run->spec) && walk->step == place->step);
    while (leaf->source != place->source)
        leaf++;
    struct walk_epoch *epoch = walk_epoch_of(walk, leaf);
    if (!epoch->known || epoch->source != place->source || epoch->span != walk->stretch->span ||
        epoch->epoch != place->epoch)
        run_epoch_init(epoch, walk->run, walk->stretch, leaf, place->epoch);
    return blocks_slot(&epoch->order.blocks, place->window, at);
}

void run_walk_rows(struct run_walk *walk, uint64_t step, const uint64_t *rows, uint64_t count,
                   struct tokmap_place *places)
{
    struct rows_batch batch;
    uint64_t draws[BATCH_ROWS], done = 0;
    bool padding = false;
    if (count && (!walk->step_known || walk->step != step))
        walk_to_step(walk, step);
    for (uint64_t i = 0; i < count; i++)
        padding = padding || rows[i] >= walk->valid;
    for (; !padding && done < count; done += batch.count) {
        batch.count = min64(count - done, BATCH_ROWS);
        batch.places = places + done;
        if (walk->run->spec.order == TOKMAP_SEQUENTIAL)
            memcpy(draws, rows + done, batch.count * sizeof draws[0]);
        else
            permutation_forward_many(&walk->rows_order, rows + done, batch.count, draws);
        for (uint64_t i = 0; i < batch.count; i++) {
            batch.places[i].step = step;
            batch.places[i].row = rows[done + i];
            batch.places[i].draw = walk->step_base + draws[i];
        }
        batch_places(walk, &batch);
    }
    for (uint64_t i = done; i < count; i++)
        run_walk_window(walk, step, rows[i], &places[i]);
    for (uint64_t i = 0; i < count && run_has_plans(walk->run); i++)
        run_place_tokens(walk->run, &places[i]);
}

enum tokmap_status run_walk_locate(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place,
                                   struct tokmap_error *error)
{
    const struct tokmap_run *run = walk->run;
    const struct phases *phases = &run->phases;
    if (step >= phases->steps_most)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "step %" PRIu64 " does not exist: the run ends %s step %" PRIu64 "; ask for an earlier step",
                         step, phases->steps == TOKMAP_FOREVER ? "at 2^63 rows, before" : "before", phases->steps_most);
    const uint64_t rows = phases_of_step(phases, step)->batch;
    if (row >= rows)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "row %" PRIu64 " does not exist: %s has %" PRIu64 " rows, counted from 0", row,
                         phases->count == 1 ? "a step of the run" : "that step", rows);
    run_walk_window(walk, step, row, place);
    return place_tokens(run, place, error);
}

enum tokmap_status tokmap_run_locate(const struct tokmap_run *run, uint64_t step, uint64_t row,
                                     struct tokmap_place *place, struct tokmap_error *error)
{
    if (!run || !place)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or place is NULL; pass both");
    struct run_walk walk;
    run_walk_init(&walk, run);
    return run_walk_locate(&walk, step, row, place, error);
}

/* ---- extents ---- */

uint64_t run_source_pad(const struct tokmap_run *run, uint64_t source)
{
    const struct run_source *of = &run->sources.of[source];
    return of->plan_path && of->plan.header.pad ? of->plan.header.pad : 1;
}

uint64_t run_segments_most(const struct tokmap_run *run)
{
    return run->sources.segments_most;
}

uint64_t run_extents_most(const struct tokmap_run *run)
{
    return run->sources.extents_most;
}

enum tokmap_status run_row_extents(const struct tokmap_run *run, const struct tokmap_place *place,
                                   struct tokmap_extent *extents, uint64_t capacity, uint64_t *count,
                                   struct tokmap_error *error)
{
    *count = 0;
    if (place->source == TOKMAP_NO_SOURCE)
        return TOKMAP_OK;
    assert(place->source < run->sources.count);
    const struct run_source *source = &run->sources.of[place->source];
    uint64_t segments = 0, tokens;
    if (!source->plan_path) {
        if (capacity)
            extents[0] = (struct tokmap_extent){place->first_token, place->tokens};
        *count = 1;
        return TOKMAP_OK;
    }
    const enum tokmap_status status =
        plan_row_extents(&source->plan, place->window, extents, capacity, &segments, &tokens, error);
    if (!status)
        *count = segments;
    return status;
}

uint64_t run_first_extents(const struct tokmap_run *run, const struct tokmap_place *place,
                           struct tokmap_extent *extents, uint64_t capacity)
{
    const bool padding = place->source == TOKMAP_NO_SOURCE;
    assert(capacity && (padding || place->source < run->sources.count));
    const struct run_source *source = padding ? NULL : &run->sources.of[place->source];
    uint64_t first, count = 0;
    struct plan_segment segment;
    if (padding)
        return 0;
    if (!source->plan_path) {
        extents[0] = (struct tokmap_extent){.first_token = place->first_token, .tokens = place->tokens};
        return 1;
    }
    if (!source->plan.bytes || plan_row(&source->plan, place->window, &first, &count, NULL))
        return 0;
    count = min64(count, capacity);
    for (uint64_t i = 0; i < count; i++) {
        if (plan_segment(&source->plan, first + i, &segment, NULL))
            return i;
        extents[i] = (struct tokmap_extent){.first_token = segment.first_token, .tokens = segment.tokens};
    }
    return count;
}

enum tokmap_status tokmap_run_extents(const struct tokmap_run *run, const struct tokmap_place *place,
                                      struct tokmap_extent *extents, uint64_t capacity, uint64_t *used,
                                      struct tokmap_error *error)
{
    if (!run || !place || !used || (capacity && !extents))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "run, place, used, or extents is NULL; pass all of them");
    *used = 0;
    if (place->source != TOKMAP_NO_SOURCE && place->source >= run->sources.count)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "place.source is %" PRIu64 ", but the run has no such source; pass a place of this run",
                         place->source);
    if (place->source != TOKMAP_NO_SOURCE && run->sources.of[place->source].plan_path &&
        place->window >= run->sources.of[place->source].plan.header.rows)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "place.window is %" PRIu64 ", but the plan has no such row; pass a place of this run",
                         place->window);
    enum tokmap_status status = run_row_extents(run, place, extents, capacity, used, error);
    if (!status && *used > capacity)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the row has %" PRIu64 " extents, but there is room for only %" PRIu64, *used, capacity);
    return status;
}
