/* SPDX-License-Identifier: MIT */
/*
 * row_queue.c - see row_queue.h.
 *
 * The order is arithmetic, so each place is computed once, when it enters the queue, as far ahead as anyone asks.
 *
 * Where tokens are read from a mapping, the cache lines of the next rows are prefetched: the first lines of a random
 * window come from memory, and the processor's own prefetchers stop at every page. The lines of a row are named three
 * times: four rows before it is gathered, into the second-level cache, and two rows and one row before, into the first.
 * A processor has few places for lines on their way to the first-level cache, and drops prefetches, or waits, when they
 * are taken. On their way to the second-level cache there are more, and naming a line that is there costs next to
 * nothing. (On Zen 4, 8 rows of 2048 16-bit tokens took 5.9 us this way, 7.2 us when they were only named for the
 * first-level cache, and 6.5 us when they were only named for the second. On Zen 5, 3.0 to 4.5 us when they were named
 * for the first-level cache two rows and one row before, and 4.7 to 6 us when they were named once.)
 *
 * A row of a plan is known only when the plan was read, which waits for memory twice: for the row's entry, which names
 * its segments, and for the segments. So the entry is prefetched ten rows ahead, as soon as the order names it, and
 * the segments seven rows ahead. (Rows of 2048 16-bit tokens with 2.9 segments each took 950 ns this way, and 1250 ns
 * when the plan was read at once.)
 */
#include "row_queue.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "run/run.h"

void slice_of_step(struct slice *slice, const struct tokmap_run *run, uint64_t rank, uint64_t world, uint64_t rows,
                   uint64_t step)
{
    struct run_step phase;
    assert(rank < world);
    if (step >= slice->from && step < slice->end)
        return;
    run_phase_of(run, step, &phase);
    run_rank_rows(phase.batch, rank, world, &slice->first, &slice->rows);
    slice->calls = run_calls(phase.batch, world, rows);
    slice->most = div_ceil(slice->rows, slice->calls);
    slice->seq_len = phase.seq_len;
    slice->from = step;
    slice->end = phase.same_end;
}

static void slice_next(struct schedule *schedule)
{
    if (schedule->step != TOKMAP_FOREVER)
        slice_of_step(&schedule->slice, schedule->run, schedule->rank, schedule->world, schedule->rows, schedule->step);
}

void schedule_init(struct schedule *schedule, const struct tokmap_run *run, uint64_t rank, uint64_t world,
                   uint64_t rows, uint64_t first_step)
{
    *schedule = (struct schedule){.run = run, .rank = rank, .world = world, .rows = rows};
    /* If the run is over already, the slice is that of the step before. */
    slice_of_step(&schedule->slice, run, rank, world, rows, first_step ? first_step - 1 : 0);
    schedule->step = run_next_step(run, first_step);
    slice_next(schedule);
}

bool schedule_call(const struct schedule *schedule, struct call *call)
{
    const struct slice *slice = &schedule->slice;
    if (schedule->step == TOKMAP_FOREVER)
        return false;
    run_call_rows(slice->rows, schedule->call, slice->calls, &call->first, &call->count);
    call->step = schedule->step;
    call->first += slice->first;
    call->seq_len = slice->seq_len;
    call->last_in_step = schedule->call + 1 == slice->calls;
    return true;
}

void schedule_advance(struct schedule *schedule)
{
    assert(schedule->step != TOKMAP_FOREVER);
    if (++schedule->call < schedule->slice.calls)
        return;
    schedule->call = 0;
    schedule->step = run_next_step(schedule->run, schedule->step + 1);
    slice_next(schedule);
}

#define PIECES_AHEAD 16
#define ROWS_AT_ONCE 16
#define SEGMENTS_AHEAD 7 /* rows of a plan whose segments are prefetched, */
#define ROWS_AHEAD 10    /* and those whose entries in the plan are */

enum tokmap_status row_queue_init(struct row_queue *queue, const struct schedule *schedule,
                                  const struct assignment_rule *rule, uint64_t largest, uint32_t window,
                                  const struct context *context, struct tokmap_error *error)
{
    uint64_t wanted = largest + window + ROWS_AHEAD + 1, capacity = 16;
    while (capacity < wanted)
        capacity *= 2;
    *queue = (struct row_queue){
        .run = schedule->run,
        .rank = schedule->rank,
        .world = schedule->world,
        .rows = schedule->rows,
        .first_step = schedule->step,
        .capacity = capacity,
        .extents_most = run_extents_most(schedule->run),
        .plans = run_has_plans(schedule->run),
        .context = context,
    };
    run_walk_init(&queue->walk, queue->run);
    row_queue_restart(queue);
    queue->places = calloc(capacity, sizeof *queue->places);
    queue->extents = calloc(context_extents_most(context, queue->extents_most), sizeof *queue->extents);
    if (!queue->places || !queue->extents)
        return error_set_memory(error, "the queue of rows", capacity * sizeof *queue->places);
    const enum tokmap_status status = run_walk_keep(&queue->walk, error);
    return status ? status : assignment_init(&queue->assignment, queue->run, rule, error);
}

void row_queue_free(struct row_queue *queue)
{
    run_walk_free(&queue->walk);
    assignment_free(&queue->assignment);
    free(queue->places);
    free(queue->extents);
    queue->places = NULL;
    queue->extents = NULL;
}

static void enter_step(struct row_queue *queue, uint64_t step)
{
    queue->step = step;
    if (step == TOKMAP_FOREVER)
        return;
    slice_of_step(&queue->slice, queue->run, queue->rank, queue->world, queue->rows, step);
    queue->position = queue->slice.first;
}

void row_queue_restart(struct row_queue *queue)
{
    enter_step(queue, queue->first_step);
    queue->taken = queue->known = queue->prefetched = queue->complete = 0;
    queue->fault = TOKMAP_OK;
}

static struct tokmap_place *place_of(const struct row_queue *queue, uint64_t number)
{
    return &queue->places[number & (queue->capacity - 1)];
}

/* Extends the queue to the rows below `end` and maybe a few more, or to the end of the run, or to the step whose
 * assignment fails. The permutation of a row waits for itself all the time, so those of many rows are computed at once.
 * The parts of a plan are read later. */
static void extend(struct row_queue *queue, uint64_t end)
{
    uint64_t rows[ROWS_AT_ONCE], count;
    while (queue->known < end && queue->step != TOKMAP_FOREVER && !queue->fault &&
           !(queue->fault = assignment_step(&queue->assignment, queue->step, &queue->error))) {
        assert(queue->known - queue->taken < queue->capacity);
        const uint64_t slice_end = queue->slice.first + queue->slice.rows;
        struct tokmap_place *places = place_of(queue, queue->known);
        const uint64_t vacant = min64(queue->capacity - (queue->known - queue->taken),
                                      (uint64_t)(queue->places + queue->capacity - places));
        count = queue->plans ? 1 : min64(min64(slice_end - queue->position, vacant), ROWS_AT_ONCE);
        for (uint64_t i = 0; i < count; i++)
            rows[i] = assignment_row(&queue->assignment, queue->position + i);
        if (queue->plans)
            run_walk_window(&queue->walk, queue->step, rows[0], places);
        else
            run_walk_rows(&queue->walk, queue->step, rows, count, places);
        queue->known += count;
        queue->position += count;
        if (queue->position == slice_end)
            enter_step(queue, run_next_step(queue->run, queue->step + 1));
    }
}

/* Reads the plans of rows `number` on, as far ahead as each part of them is wanted. The parts come one after another,
 * and none of them is waited for. */
static void read_plans(struct row_queue *queue, uint64_t number)
{
    extend(queue, number + 1 + ROWS_AHEAD);
    for (uint64_t end = min64(number + 1 + SEGMENTS_AHEAD, queue->known); queue->prefetched < end; queue->prefetched++)
        run_plan_prefetch(queue->run, place_of(queue, queue->prefetched));
    for (uint64_t end = min64(number + 2, queue->known); queue->complete < end; queue->complete++)
        run_place_tokens(queue->run, place_of(queue, queue->complete));
}

/* Replaces the extents of a row of a place by those of its slice. */
static uint64_t cut(const struct row_queue *queue, const struct tokmap_place *place, struct tokmap_extent *extents,
                    uint64_t count)
{
    struct run_step phase;
    if (!count || !context_cuts(queue->context))
        return count;
    run_phase_of(queue->run, place->step, &phase);
    return context_cut_row(queue->context, phase.seq_len, gather_tokens(queue->gathers[place->source]), extents, count);
}

struct row_extents row_queue_extents(struct row_queue *queue, const struct tokmap_place *place)
{
    struct row_extents row = {place->source, queue->extents, 0};
    uint64_t count;
    if (run_row_extents(queue->run, place, queue->extents, queue->extents_most, &count, NULL))
        return row;
    count = cut(queue, place, queue->extents, count);
    for (uint64_t i = 0; i < count; i++)
        if (!extent_is_padding(&queue->extents[i]))
            queue->extents[row.count++] = queue->extents[i];
    return row;
}

const struct tokmap_place *row_queue_ahead(struct row_queue *queue, uint64_t number)
{
    extend(queue, number + 1);
    return number < queue->known ? place_of(queue, number) : NULL;
}

bool row_queue_window(void *user, uint64_t number, struct row_extents *row)
{
    struct row_queue *queue = user;
    const struct tokmap_place *place = row_queue_ahead(queue, number);
    if (place)
        *row = row_queue_extents(queue, place);
    return place;
}

/* Prefetches the first lines of a row, and reports its tokens: see row_queue_next(). Most rows are one extent. Of a row
 * of a plan, only the first extents are prefetched: later ones have time to come. Of a slice of it, none. */
static void prefetch(const struct row_queue *queue, const struct tokmap_place *place, const void **after)
{
    struct tokmap_extent extents[PIECES_AHEAD];
    const bool cuts = context_cuts(queue->context);
    uint64_t count = place->source != TOKMAP_NO_SOURCE;
    extents[0] = (struct tokmap_extent){place->first_token, place->tokens};
    if (queue->plans)
        count = cuts ? 0 : run_first_extents(queue->run, place, extents, PIECES_AHEAD);
    else if (cuts)
        count = cut(queue, place, extents, count);
    for (uint64_t i = 0; i < count; i++) {
        const void *tokens = gather_prefetch(queue->gathers[place->source], &extents[i]);
        if (after && count == 1)
            *after = tokens;
    }
}

const struct tokmap_place *row_queue_next(struct row_queue *queue, uint64_t i, uint64_t count, const void **after,
                                          struct tokmap_error *error)
{
    uint64_t number = queue->taken + i;
    if (number >= queue->known)
        queue->fault = TOKMAP_OK; /* the row is needed, so its assignment is tried again */
    if (queue->plans)
        read_plans(queue, number);
    else if (number + 2 > queue->known)
        extend(queue, number + 2);
    assert(i < count && (number < queue->known || queue->fault));
    if (number >= queue->known) {
        *error = queue->error;
        return NULL;
    }
    residency_next(queue->residency, number, queue->taken + count);
    if (number + 1 < queue->known)
        prefetch(queue, place_of(queue, number + 1), after);
    return place_of(queue, number);
}

void row_queue_take(struct row_queue *queue, uint64_t count)
{
    queue->taken += count;
}

void row_queue_untake(struct row_queue *queue, uint64_t count)
{
    assert(count <= queue->taken && queue->known - (queue->taken - count) <= queue->capacity);
    queue->taken -= count;
}

void row_queue_after_named(const struct row_queue *queue, const struct tokmap_place *places, uint64_t i, uint64_t count,
                           const void **after)
{
    if (i + 1 < count)
        prefetch(queue, &places[i + 1], after);
}
