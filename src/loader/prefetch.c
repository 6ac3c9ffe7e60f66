/*
 * prefetch.c - see prefetch.h.
 *
 * The order is arithmetic, so the rows to come are known as far ahead as one likes; each place is computed once, when it
 * enters the queue. Two states:
 *
 *   asking  the storage is asked for the exact pages of the next `window` rows, so that it works on as many requests at
 *           once. Every now and then, before a row is asked for, one looks whether it is in the page cache. If a look
 *           finds it, the next rows are looked at too; WARM_STREAK rows found in a row end this state.
 *   warm    nothing is asked, which costs nothing. The first row that turns out not to be in the page cache ends it; a
 *           mapping does not tell (a load simply waits), so there one looks now and then.
 *
 * A loader begins by asking, and looking at every row: a warm start costs it some microseconds, and a cold one has the
 * whole first batch under way before it waits for the first row of it. Beyond the batch at hand the asking goes in
 * groups (requests that touch are joined), and at most one group a row. The first groups are small, so that the first
 * batch does not wait until all of the window is asked for.
 *
 * Where tokens are read from a mapping, the cache lines of the rows to come are prefetched besides: a random window's
 * first lines come from memory, and the processor's own prefetchers stop at every page. Each row's lines are named twice,
 * two rows and one row before it is gathered: processors drop some of so many prefetches at once, and naming them again
 * costs next to nothing (8 rows of 2048 16-bit tokens took 3.0 to 4.5 us so, 4.7 to 6 when they were named once).
 *
 * Rows that the caller names come in no order that could be known ahead. Whether all is warm is seen by the reading itself.
 */
#include "prefetch.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "run/run.h"

#define WARM_STREAK 16
#define LOOK_EVERY 64
#define LINES_AHEAD 2 /* rows whose cache lines are prefetched */

enum tokmap_status prefetch_init(struct prefetch *prefetch, const struct tokmap_run *run, struct gather *const *gathers,
                                 uint64_t sources, uint64_t first, uint64_t rows, uint64_t rows_a_call,
                                 uint64_t first_step, uint32_t window, struct tokmap_error *error)
{
    uint64_t wanted = rows_a_call + window + LINES_AHEAD + 1, capacity = 16;
    while (capacity < wanted)
        capacity *= 2;
    *prefetch = (struct prefetch){
        .run = run,
        .gathers = gathers,
        .sources = sources,
        .first = first,
        .rows = rows,
        .step = first_step,
        .row = first,
        .capacity = capacity,
        .window = window,
    };
    run_walk_init(&prefetch->walk, run);
    prefetch->places = calloc(capacity, sizeof *prefetch->places);
    if (!prefetch->places)
        return error_set_memory(error, "the queue of rows", capacity * sizeof *prefetch->places);
    return TOKMAP_OK;
}

void prefetch_free(struct prefetch *prefetch)
{
    free(prefetch->places);
    prefetch->places = NULL;
}

static struct tokmap_place *place_of(const struct prefetch *prefetch, uint64_t number)
{
    return &prefetch->places[number & (prefetch->capacity - 1)];
}

/* Brings the queue to `end`, less if the run ends before. */
static void know(struct prefetch *prefetch, uint64_t end)
{
    while (prefetch->known < end && prefetch->step != TOKMAP_FOREVER) {
        run_walk_place(&prefetch->walk, prefetch->step, prefetch->row, place_of(prefetch, prefetch->known));
        prefetch->known++;
        if (++prefetch->row < prefetch->first + prefetch->rows)
            continue;
        prefetch->row = prefetch->first;
        prefetch->step = run_next_step(prefetch->run, prefetch->step + 1);
    }
}

static void expect_warm(struct prefetch *prefetch, bool warm)
{
    prefetch->warm = warm;
    for (uint64_t i = 0; i < prefetch->sources; i++)
        gather_expect_warm(prefetch->gathers[i], warm);
}

/* A look at a row that is about to be asked for. True if that ended the asking. */
static bool look(struct prefetch *prefetch, const struct tokmap_place *place)
{
    if (prefetch->until_look) {
        prefetch->until_look--;
        return false;
    }
    if (!gather_is_warm(prefetch->gathers[place->source], place->first_token)) {
        prefetch->streak = 0;
        prefetch->until_look = LOOK_EVERY;
        return false;
    }
    if (++prefetch->streak < WARM_STREAK)
        return false;
    expect_warm(prefetch, true);
    return true;
}

/* The warm state ends at row `number`. */
static void begin_asking(struct prefetch *prefetch, uint64_t number)
{
    expect_warm(prefetch, false);
    for (uint64_t i = 0; i < prefetch->sources; i++)
        gather_forget(prefetch->gathers[i]);
    prefetch->asked = number;
    prefetch->streak = 0;
    prefetch->until_look = LOOK_EVERY;
}

/* Whether a mapping that is taken to be in the page cache is, by the row `place`; the next to be asked for is `number`. */
static void look_again(struct prefetch *prefetch, const struct tokmap_place *place, uint64_t number)
{
    if (prefetch->until_look) {
        prefetch->until_look--;
        return;
    }
    struct gather *gather = prefetch->gathers[place->source];
    prefetch->until_look = LOOK_EVERY;
    if (gather_is_mapped(gather) && !gather_is_warm(gather, place->first_token))
        begin_asking(prefetch, number);
}

static void ask(struct prefetch *prefetch, uint64_t end)
{
    know(prefetch, end);
    end = min64(end, prefetch->known);
    for (; prefetch->asked < end; prefetch->asked++) {
        const struct tokmap_place *place = place_of(prefetch, prefetch->asked);
        if (look(prefetch, place))
            break;
        gather_ask(prefetch->gathers[place->source], place->first_token);
    }
    for (uint64_t i = 0; i < prefetch->sources; i++)
        gather_flush(prefetch->gathers[i]);
}

const struct tokmap_place *prefetch_row(struct prefetch *prefetch, uint64_t i, uint64_t count)
{
    uint64_t number = prefetch->taken + i;
    know(prefetch, number + 1 + LINES_AHEAD);
    if (prefetch->warm)
        look_again(prefetch, place_of(prefetch, number), number);
    if (!prefetch->warm) {
        uint64_t group = min64(prefetch->window / 8, number / 4) + 1, goal = number + 1 + prefetch->window;
        prefetch->asked = max64(prefetch->asked, number);
        uint64_t batch_end = min64(prefetch->taken + count, goal);
        if (prefetch->asked < batch_end)
            ask(prefetch, batch_end);
        else if (prefetch->asked + group <= goal)
            ask(prefetch, prefetch->asked + group);
    }
    for (uint64_t ahead = number + 1; ahead <= number + LINES_AHEAD && ahead < prefetch->known; ahead++) {
        const struct tokmap_place *next = place_of(prefetch, ahead);
        gather_prefetch(prefetch->gathers[next->source], next->first_token);
    }
    return place_of(prefetch, number);
}

void prefetch_named(struct prefetch *prefetch, const struct tokmap_place *places, uint64_t i, uint64_t count)
{
    if (prefetch->warm)
        look_again(prefetch, &places[i], prefetch->taken);
    for (uint64_t ahead = i + 1; ahead <= i + LINES_AHEAD && ahead < count; ahead++)
        gather_prefetch(prefetch->gathers[places[ahead].source], places[ahead].first_token);
}

void prefetch_named_was(struct prefetch *prefetch, const struct tokmap_place *place, bool cold)
{
    if (cold && prefetch->warm)
        begin_asking(prefetch, prefetch->taken);
    else if (cold)
        prefetch->streak = 0;
    else if (!prefetch->warm && ++prefetch->streak >= WARM_STREAK) {
        /* Where the kernel does not tell while it reads, a row is not cold for want of knowledge. */
        prefetch->streak = 0;
        if (gather_is_warm(prefetch->gathers[place->source], place->first_token))
            expect_warm(prefetch, true);
    }
}

void prefetch_was_cold(struct prefetch *prefetch, uint64_t i)
{
    if (prefetch->warm)
        begin_asking(prefetch, prefetch->taken + i + 1);
}

void prefetch_done(struct prefetch *prefetch, uint64_t count)
{
    prefetch->taken += count;
}
