/* SPDX-License-Identifier: MIT */
#include "coverage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "order/blocks.h"
#include "order/permutation.h"
#include "platform/os.h"
#include "platform/process.h"
#include "run/locate.h"

#define CHUNK_ROWS ((uint64_t)1 << 16)  /* a thread takes steps with about this many rows at a time, */
#define CHUNK_SHARES 64u                /* and at least this many rows for each source of the phase */
#define THREAD_ROWS ((uint64_t)1 << 18) /* fewer rows do not pay for another thread */
#define SIGNAL_ROWS ((uint64_t)1 << 16) /* rows between two looks at signals */
#define SORTED_ROWS ((uint64_t)1 << 15) /* steps with at most this many rows are sorted by draw */
#define ROWS_AT_ONCE 1024u              /* rows that are located together */
#define WAITING 32u                     /* windows of a source whose draws are computed together */

static enum tokmap_status interrupted(struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
}

/* ---- by counting ---- */

/* State that all threads share. They take chunks of steps, each inside one phase. */
struct counting {
    const struct coverage *coverage;
    struct tokmap_run_info info;
    uint64_t steps, rows; /* to count */
    struct cli_progress progress;
    struct os_mutex *mutex;
    uint32_t stop; /* atomic: a thread found a fault or a failure, or a signal arrived */
    /* guarded by the mutex: */
    uint64_t next_step, rows_taken;
    char fault[COVERAGE_FAULT];
    enum tokmap_status status;
    struct tokmap_error error;
};

struct sorted;

struct chunk {
    uint64_t phase, first_step, end_step;
    struct tokmap_phase_info about;
};

/* The draw that a source must get next, and the order of its epoch. The windows that its last draws showed wait until
 * there are WAITING of them or the epoch ends, because their inverses cost less when they are computed together. */
struct expected {
    uint64_t source, windows;
    uint64_t epoch, draw;      /* draw: in the epoch, not counting those that wait */
    uint64_t waiting[WAITING]; /* windows of draws draw, draw + 1, ... */
    uint64_t waiting_rows[WAITING], waiting_steps[WAITING];
    uint64_t waiting_count;
    const char *name;
    bool order_known; /* of `epoch` */
    union {
        struct tokmap_order shuffle;
        struct blocks_order blocks;
    } order;
};

/* One thread. */
struct counter {
    struct counting *counting;
    struct run_walk walk;
    struct chunk chunk;
    struct expected *expected; /* by share of the phase */
    uint64_t expected_count, expected_room;
    uint64_t *share_of;    /* by source: the index of its share, which is the source's only where the share says so */
    struct sorted *sorted; /* by draw of the step; SORTED_ROWS of them */
    uint64_t rows[ROWS_AT_ONCE];
    struct tokmap_place places[ROWS_AT_ONCE]; /* of these rows */
};

/* The window that a row shows. */
struct sorted {
    uint64_t row, source, epoch, window;
};

static void counting_stop(struct counting *counting, enum tokmap_status status, const struct tokmap_error *error)
{
    os_mutex_lock(counting->mutex);
    if (status && !counting->status) {
        counting->status = status;
        counting->error = *error;
    }
    os_mutex_unlock(counting->mutex);
    __atomic_store_n(&counting->stop, 1, __ATOMIC_RELAXED);
}

__attribute__((format(printf, 2, 3))) static void counting_fault(struct counting *counting, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    os_mutex_lock(counting->mutex);
    if (!counting->fault[0])
        (void)vsnprintf(counting->fault, COVERAGE_FAULT, format, arguments);
    os_mutex_unlock(counting->mutex);
    va_end(arguments);
    __atomic_store_n(&counting->stop, 1, __ATOMIC_RELAXED);
}

/* Takes the next steps to count. Returns false if none are left. */
static bool chunk_take(struct counting *counting, struct chunk *chunk)
{
    const struct tokmap_run *run = counting->coverage->run;
    bool taken = false;
    os_mutex_lock(counting->mutex);
    if (counting->next_step < counting->steps) {
        taken = true;
        chunk->phase = tokmap_run_phase_at(run, counting->next_step);
        chunk->about = info_of_phase(run, chunk->phase);
        const uint64_t rows = max64(CHUNK_ROWS, CHUNK_SHARES * chunk->about.shares);
        chunk->first_step = counting->next_step;
        chunk->end_step = min64(min64(counting->steps, chunk->about.end_step),
                                chunk->first_step + max64(1, rows / chunk->about.batch));
        counting->next_step = chunk->end_step;
        counting->rows_taken += (chunk->end_step - chunk->first_step) * chunk->about.batch;
    }
    os_mutex_unlock(counting->mutex);
    return taken;
}

/* Computes which draw each source of the phase must get first from `step` on. */
static enum tokmap_status expected_compute(const struct counter *counter, uint64_t step, uint64_t share,
                                           struct expected *expected)
{
    const struct tokmap_run *run = counter->counting->coverage->run;
    struct tokmap_share_info info = TOKMAP_SHARE_INFO_INIT;
    uint64_t before, now;
    enum tokmap_status status = tokmap_run_share(run, counter->chunk.phase, share, &info);
    if (!status)
        status = tokmap_run_drawn(run, info.source, counter->chunk.about.first_step, &before);
    if (!status)
        status = tokmap_run_drawn(run, info.source, step, &now);
    if (status)
        return status;
    const uint64_t draw = info.first_draw + (now - before);
    expected->source = info.source;
    expected->windows = info.windows;
    expected->epoch = info.first_epoch + draw / info.windows;
    expected->draw = draw % info.windows;
    expected->order_known = false;
    expected->waiting_count = 0;
    return TOKMAP_OK;
}

static bool chunk_prepare(struct counter *counter)
{
    struct counting *counting = counter->counting;
    struct tokmap_error error;
    const uint64_t count = counter->chunk.about.shares;
    if (count > counter->expected_room) {
        struct expected *grown = realloc(counter->expected, count * sizeof *grown);
        if (!grown) {
            counting_stop(counting, error_set_memory(&error, "the sources", count * sizeof *grown), &error);
            return false;
        }
        counter->expected = grown;
        counter->expected_room = count;
    }
    counter->expected_count = count;
    for (uint64_t i = 0; i < count; i++) {
        struct expected *expected = &counter->expected[i];
        const enum tokmap_status status = expected_compute(counter, counter->chunk.first_step, i, expected);
        if (status) {
            counting_stop(counting, error_set(&error, status, NULL, TOKMAP_NO_OFFSET, "the run cannot be described"),
                          &error);
            return false;
        }
        expected->name = info_of_source(counting->coverage->run, expected->source).name;
        counter->share_of[expected->source] = i;
    }
    return true;
}

/* Writes the draws of the epoch that show `count` windows, each below expected->windows. */
static void window_draws(const struct counting *counting, struct expected *expected, const uint64_t *windows,
                         uint64_t count, uint64_t *draws)
{
    const enum tokmap_order_kind order = counting->info.order;
    const uint64_t name_bytes = expected->order_known ? 0 : strlen(expected->name);
    if (order == TOKMAP_SEQUENTIAL) {
        memcpy(draws, windows, count * sizeof draws[0]);
    } else if (order == TOKMAP_BLOCKS || order == TOKMAP_EVEN) {
        if (!expected->order_known)
            blocks_init(&expected->order.blocks, expected->windows, counting->info.blocks, counting->info.span,
                        order == TOKMAP_EVEN, counting->info.seed, expected->name, name_bytes, expected->epoch);
        for (uint64_t i = 0; i < count; i++)
            draws[i] = blocks_inverse(&expected->order.blocks, windows[i]);
    } else {
        if (!expected->order_known)
            permutation_init(&expected->order.shuffle,
                             order_key(KEY_WINDOWS, counting->info.seed, expected->name, name_bytes, expected->epoch),
                             expected->windows);
        permutation_inverse_many(&expected->order.shuffle, windows, count, draws);
    }
    expected->order_known = true;
}

static void window_fault(struct counting *counting, const struct expected *expected, uint64_t step, uint64_t row,
                         uint64_t window, uint64_t epoch)
{
    counting_fault(counting,
                   "row %" PRIu64 " of step %" PRIu64 " shows window %" PRIu64 " of epoch %" PRIu64
                   " of source %s, but draw %" PRIu64 " of epoch %" PRIu64 " is its next",
                   row, step, window, epoch, expected->name, expected->draw, expected->epoch);
}

/* Compares the windows that wait with the draws that must show them. Returns false after a fault. */
static bool waiting_check(struct counting *counting, struct expected *expected)
{
    uint64_t draws[WAITING];
    window_draws(counting, expected, expected->waiting, expected->waiting_count, draws);
    for (uint64_t i = 0; i < expected->waiting_count; i++) {
        if (draws[i] != expected->draw) {
            window_fault(counting, expected, expected->waiting_steps[i], expected->waiting_rows[i],
                         expected->waiting[i], expected->epoch);
            return false;
        }
        expected->draw++;
    }
    expected->waiting_count = 0;
    if (expected->draw == expected->windows) {
        expected->draw = 0;
        expected->epoch++;
        expected->order_known = false;
    }
    return true;
}

/* Compares the place of draw `draw` with what its source must get next, except for what waits. Returns false after a
 * fault. */
static bool place_check(struct counter *counter, uint64_t step, const struct sorted *place, uint64_t draw)
{
    struct counting *counting = counter->counting;
    const bool known = place->source < counting->info.sources;
    const uint64_t share = known ? counter->share_of[place->source] : 0;
    struct expected *expected = share < counter->expected_count ? &counter->expected[share] : NULL;
    if (!known || !expected || expected->source != place->source) {
        counting_fault(counting,
                       "row %" PRIu64 " of step %" PRIu64 " takes draw %" PRIu64 " of source %" PRIu64
                       ", which is not of the phase",
                       place->row, step, draw, place->source);
        return false;
    }
    if (place->epoch != expected->epoch || place->window >= expected->windows) {
        if (waiting_check(counting, expected))
            window_fault(counting, expected, step, place->row, place->window, place->epoch);
        return false;
    }
    const uint64_t i = expected->waiting_count++;
    expected->waiting[i] = place->window;
    expected->waiting_steps[i] = step;
    expected->waiting_rows[i] = place->row;
    if (i + 1 < WAITING && expected->draw + i + 1 < expected->windows)
        return true;
    return waiting_check(counting, expected);
}

/* Checks the first `valid` rows of a step in the order of their draws, which the inverse of the permutation of rows
 * gives. */
static bool rows_count(struct counter *counter, uint64_t step, uint64_t valid, uint64_t first_draw)
{
    struct counting *counting = counter->counting;
    struct tokmap_order order;
    permutation_init(&order, order_key(KEY_ROWS, counting->info.seed, "", 0, step), valid);
    for (uint64_t i = 0; i < valid;) {
        const uint64_t count = min64(valid - i, ROWS_AT_ONCE);
        for (uint64_t j = 0; j < count; j++)
            counter->rows[j] = i + j;
        if (counting->info.order != TOKMAP_SEQUENTIAL)
            permutation_inverse_many(&order, counter->rows, count, counter->rows);
        run_walk_rows(&counter->walk, step, counter->rows, count, counter->places);
        for (uint64_t j = 0; j < count; j++, i++) {
            const struct tokmap_place *place = &counter->places[j];
            const struct sorted row = {place->row, place->source, place->epoch, place->window};
            if (place->draw != first_draw + i) {
                counting_fault(counting,
                               "row %" PRIu64 " of step %" PRIu64 " takes draw %" PRIu64 ", which is not draw %" PRIu64,
                               place->row, step, place->draw, first_draw + i);
                return false;
            }
            if (!place_check(counter, step, &row, first_draw + i))
                return false;
        }
        if (i / SIGNAL_ROWS != (i - count) / SIGNAL_ROWS &&
            (__atomic_load_n(&counting->stop, __ATOMIC_RELAXED) || os_signal_caught()))
            return false;
    }
    return true;
}

/* Does the same for a step of few rows, faster: the rows are located in their own order and sorted by their draws. */
static bool rows_sort_and_count(struct counter *counter, uint64_t step, uint64_t valid, uint64_t first_draw)
{
    struct sorted *sorted = counter->sorted;
    for (uint64_t i = 0; i < valid; i++)
        sorted[i].row = UINT64_MAX;
    for (uint64_t row = 0; row < valid;) {
        const uint64_t count = min64(valid - row, ROWS_AT_ONCE);
        for (uint64_t j = 0; j < count; j++)
            counter->rows[j] = row + j;
        run_walk_rows(&counter->walk, step, counter->rows, count, counter->places);
        for (uint64_t j = 0; j < count; j++, row++) {
            const struct tokmap_place *place = &counter->places[j];
            const uint64_t i = place->draw - first_draw;
            if (i >= valid || sorted[i].row != UINT64_MAX) {
                counting_fault(counter->counting,
                               "row %" PRIu64 " of step %" PRIu64 " takes draw %" PRIu64
                               ", which is another row's or another step's",
                               row, step, place->draw);
                return false;
            }
            sorted[i] = (struct sorted){row, place->source, place->epoch, place->window};
        }
    }
    for (uint64_t i = 0; i < valid; i++)
        if (!place_check(counter, step, &sorted[i], first_draw + i))
            return false;
    return true;
}

static bool step_count(struct counter *counter, uint64_t step)
{
    const struct tokmap_phase_info *about = &counter->chunk.about;
    const uint64_t first_draw = about->first_draw + (step - about->first_step) * about->batch;
    const uint64_t valid = tokmap_run_real_rows(counter->counting->coverage->run, step);
    struct tokmap_place place;
    if (valid && !(valid <= SORTED_ROWS ? rows_sort_and_count : rows_count)(counter, step, valid, first_draw))
        return false;
    for (uint64_t row = valid; row < about->batch; row++) {
        run_walk_place(&counter->walk, step, row, &place);
        if (place.source != TOKMAP_NO_SOURCE) {
            counting_fault(counter->counting,
                           "row %" PRIu64 " of step %" PRIu64 " is not padding, but the data ends at row %" PRIu64, row,
                           step, valid);
            return false;
        }
    }
    return true;
}

/* Counts the steps of a chunk, after which each source must be where the next chunk expects it. */
static bool chunk_count(struct counter *counter)
{
    if (!chunk_prepare(counter))
        return false;
    for (uint64_t step = counter->chunk.first_step; step < counter->chunk.end_step; step++)
        if (!step_count(counter, step))
            return false;
    for (uint64_t i = 0; i < counter->expected_count; i++) {
        struct expected *reached = &counter->expected[i];
        struct expected end;
        if (reached->waiting_count && !waiting_check(counter->counting, reached))
            return false;
        if (expected_compute(counter, counter->chunk.end_step, i, &end) == TOKMAP_OK && end.epoch == reached->epoch &&
            end.draw == reached->draw)
            continue;
        counting_fault(counter->counting,
                       "before step %" PRIu64 ", source %s has come to draw %" PRIu64 " of epoch %" PRIu64
                       ", and not to where the run's arithmetic has it",
                       counter->chunk.end_step, reached->name, reached->draw, reached->epoch);
        return false;
    }
    return true;
}

static bool counter_begin(struct counter *counter, struct counting *counting)
{
    struct tokmap_error error;
    *counter = (struct counter){.counting = counting};
    run_walk_init(&counter->walk, counting->coverage->run);
    if (run_walk_keep(&counter->walk, &error)) {
        counting_stop(counting, TOKMAP_ERROR_MEMORY, &error);
        return false;
    }
    counter->share_of = calloc(counting->info.sources, sizeof *counter->share_of);
    counter->sorted = malloc(SORTED_ROWS * sizeof *counter->sorted);
    if (!counter->share_of || !counter->sorted)
        counting_stop(counting, error_set_memory(&error, "counting", SORTED_ROWS * sizeof *counter->sorted), &error);
    return counter->share_of && counter->sorted;
}

static void counter_end(struct counter *counter)
{
    run_walk_free(&counter->walk);
    free(counter->expected);
    free(counter->share_of);
    free(counter->sorted);
}

/* Counts. The first thread is the calling one, which also shows progress and notices signals. */
static void counting_work(void *user, uint32_t number)
{
    struct counting *counting = user;
    struct counter counter;
    const bool begun = counter_begin(&counter, counting);
    while (begun && !__atomic_load_n(&counting->stop, __ATOMIC_RELAXED) && chunk_take(counting, &counter.chunk) &&
           chunk_count(&counter)) {
        if (number)
            continue;
        os_mutex_lock(counting->mutex);
        const uint64_t taken = counting->rows_taken;
        os_mutex_unlock(counting->mutex);
        cli_progress_update(&counting->progress, taken);
        if (os_signal_caught())
            __atomic_store_n(&counting->stop, 1, __ATOMIC_RELAXED);
    }
    counter_end(&counter);
}

static uint64_t rows_before(const struct tokmap_run *run, uint64_t step)
{
    const struct tokmap_phase_info phase = info_of_phase(run, tokmap_run_phase_at(run, step));
    return phase.first_draw + (step - phase.first_step) * phase.batch;
}

enum tokmap_status coverage_count(const struct coverage *coverage, uint64_t steps, char fault[COVERAGE_FAULT],
                                  struct tokmap_error *error)
{
    struct counting counting = {.coverage = coverage, .info = info_of_run(coverage->run), .steps = steps};
    assert(steps <= counting.info.steps);
    counting.rows = rows_before(coverage->run, steps);
    if (os_mutex_new(&counting.mutex))
        return error_set_memory(error, "counting windows", 64);
    cli_progress_start(&counting.progress, "counting", "draws", counting.rows, coverage->progress);
    os_threads_share("tokmap-audit", (uint32_t)min64(coverage->threads, counting.rows / THREAD_ROWS + 1), counting_work,
                     &counting);
    cli_progress_end(&counting.progress);
    os_mutex_free(counting.mutex);
    memcpy(fault, counting.fault, COVERAGE_FAULT);
    if (os_signal_caught())
        return interrupted(error);
    if (counting.status && error)
        *error = counting.error;
    return counting.status;
}

/* ---- by sampling ---- */

uint64_t coverage_random(uint64_t *state, uint64_t limit)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint64_t)((unsigned __int128)(z ^ z >> 31) * limit >> 64);
}

/* Result of tokmap_run_find() for the window of a sampled row. */
struct inverse {
    const struct tokmap_place *sampled;
    unsigned same, others; /* times it leads to the sampled row, and to other rows of the step */
};

static int inverse_found(void *user, const struct tokmap_place *place)
{
    struct inverse *inverse = user;
    const struct tokmap_place *sampled = inverse->sampled;
    /* A token also appears in the lookahead of the window before, which is another window. */
    if (place->epoch != sampled->epoch || place->window != sampled->window)
        return 0;
    const bool same = place->step == sampled->step && place->row == sampled->row && place->draw == sampled->draw;
    inverse->same += same;
    inverse->others += !same;
    return 0;
}

static enum tokmap_status row_sample(const struct coverage *coverage, uint64_t step, uint64_t row,
                                     char fault[COVERAGE_FAULT], struct tokmap_error *error)
{
    struct tokmap_place place;
    struct inverse inverse = {&place, 0, 0};
    enum tokmap_status status = tokmap_run_locate(coverage->run, step, row, &place, error);
    if (!status)
        status = tokmap_run_find(coverage->run, place.source, place.first_token, 1, step, step + 1, inverse_found,
                                 &inverse, error);
    const uint64_t first_draw = rows_before(coverage->run, step);
    if (!status && (place.draw < first_draw || place.draw - first_draw >= tokmap_run_rows(coverage->run, step) ||
                    inverse.same != 1 || inverse.others))
        (void)snprintf(fault, COVERAGE_FAULT,
                       "step %" PRIu64 " row %" PRIu64 " takes window %" PRIu64 " of epoch %" PRIu64
                       ", but the search for that window finds the row %u times and other rows %u times",
                       step, row, place.window, place.epoch, inverse.same, inverse.others);
    return status;
}

enum tokmap_status coverage_sample(const struct coverage *coverage, uint64_t first, uint64_t end, uint64_t tries,
                                   uint64_t *samples, char fault[COVERAGE_FAULT], struct tokmap_error *error)
{
    uint64_t state = coverage->seed ^ end;
    assert(first < end);
    assert(fault[0] == '\0');
    enum tokmap_status status = TOKMAP_OK;
    struct cli_progress progress;
    cli_progress_start(&progress, "sampling", "draws", tries, coverage->progress);
    *samples = 0;
    for (uint64_t i = 0; i < tries && !status && !fault[0]; i++) {
        const uint64_t step = first + coverage_random(&state, end - first);
        const uint64_t valid = tokmap_run_real_rows(coverage->run, step);
        const uint64_t row = coverage_random(&state, valid);
        if (!valid || !tokmap_run_delivers(coverage->run, step))
            continue;
        status = row_sample(coverage, step, row, fault, error);
        ++*samples;
        cli_progress_update(&progress, i);
        if (os_signal_caught())
            status = interrupted(error);
    }
    cli_progress_end(&progress);
    return status;
}
