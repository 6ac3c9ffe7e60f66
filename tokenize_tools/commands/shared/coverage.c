/* coverage.c - see coverage.h. */
#include "coverage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"

#define CHUNK 8192u                     /* rows that a thread takes at a time */
#define THREAD_ROWS ((uint64_t)1 << 18) /* fewer rows do not pay for another thread */
#define WAVE_ROWS ((uint64_t)1 << 26)   /* a wave is about this long if the epoch is longer */

/* Keeps the first fault. */
static void fault_set(char fault[COVERAGE_FAULT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault_set(char fault[COVERAGE_FAULT], const char *format, ...)
{
    va_list arguments;
    if (fault[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(fault, COVERAGE_FAULT, format, arguments);
    va_end(arguments);
}

static enum tokmap_status interrupted(struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
}

/* ---- by counting ---- */

/*
 * Rows are numbered over the whole run: row j of step t has the number t * batch + j. The draw of that row has another
 * number, but one of the same step. The rows are processed in waves. Within a wave, threads take chunks of rows.
 * Between waves, a single thread compares the epochs whose draws are over with what they should contain, and clears
 * their bitmaps for reuse.
 */
struct counting {
    const struct coverage *coverage;
    uint64_t *bits;   /* `maps` bitmaps of `words` words; epoch e uses map e % maps */
    uint64_t *marked; /* for each map, the number of its marked windows */
    uint64_t maps, words;
    uint64_t oldest;    /* the epochs [oldest, oldest + maps) have a bitmap */
    uint64_t next, end; /* rows of the wave that are left; the threads advance `next` atomically */
    uint32_t stop;      /* atomic: a thread found a fault or a failure */
    struct os_mutex *mutex;
    /* guarded by the mutex: */
    char fault[COVERAGE_FAULT];
    enum tokmap_status status;
    struct tokmap_error error;
};

static uint64_t maps_needed(const struct coverage *coverage)
{
    /* A wave ends at the latest with the step in which its first epoch ends, and that step of `batch` draws can
     * reach this many epochs. */
    return (coverage->batch - 1) / coverage->windows + 2;
}

uint64_t coverage_bytes(const struct coverage *coverage)
{
    return maps_needed(coverage) * (div_ceil(coverage->windows, 64) + 1) * 8;
}

/* Marks the window of a row and sets *fresh to whether it was unmarked before. Returns false if the place
 * contradicts itself or names an epoch that has no bitmap. */
static bool window_mark(struct counting *counting, const struct tokmap_place *place, bool *fresh)
{
    const uint64_t windows = counting->coverage->windows;
    if (place->source != 0 || place->window >= windows || place->epoch != place->draw / windows ||
        place->draw / counting->coverage->batch != place->step || place->epoch < counting->oldest ||
        place->epoch - counting->oldest >= counting->maps)
        return false;
    uint64_t *word = counting->bits + place->epoch % counting->maps * counting->words + place->window / 64;
    const uint64_t bit = (uint64_t)1 << place->window % 64;
    *fresh = !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
    return true;
}

/* Records what was wrong with a row and stops all threads. marked: the place was valid, so the window was marked
 * twice. */
static void wave_stop(struct counting *counting, const struct tokmap_place *place, bool marked,
                      enum tokmap_status status, const struct tokmap_error *error)
{
    os_mutex_lock(counting->mutex);
    if (status && !counting->status) {
        counting->status = status;
        counting->error = *error;
    } else if (!status && marked) {
        fault_set(counting->fault,
                  "window %" PRIu64 " is shown twice in epoch %" PRIu64 "; one of the two is step %" PRIu64
                  " row %" PRIu64,
                  place->window, place->epoch, place->step, place->row);
    } else if (!status) {
        fault_set(counting->fault,
                  "row %" PRIu64 " of step %" PRIu64 " takes draw %" PRIu64 ", window %" PRIu64 " of epoch %" PRIu64
                  ", which does not belong to that step",
                  place->row, place->step, place->draw, place->window, place->epoch);
    }
    os_mutex_unlock(counting->mutex);
    __atomic_store_n(&counting->stop, 1, __ATOMIC_RELAXED);
}

static void chunk_count(struct counting *counting, uint64_t first, uint64_t end)
{
    const uint64_t batch = counting->coverage->batch;
    struct tokmap_error error;
    /* The windows marked in one epoch are added to the shared count when the epoch changes, not one by one. */
    uint64_t epoch = 0, fresh_count = 0;
    for (uint64_t i = first; i < end; i++) {
        struct tokmap_place place;
        bool fresh = false;
        const enum tokmap_status status =
            tokmap_run_locate(counting->coverage->run, i / batch, i % batch, &place, &error);
        const bool marked = !status && window_mark(counting, &place, &fresh);
        if (!marked || !fresh) {
            wave_stop(counting, &place, marked, status, &error);
            return;
        }
        if (place.epoch != epoch) {
            if (fresh_count)
                __atomic_fetch_add(&counting->marked[epoch % counting->maps], fresh_count, __ATOMIC_RELAXED);
            epoch = place.epoch;
            fresh_count = 0;
        }
        fresh_count++;
    }
    __atomic_fetch_add(&counting->marked[epoch % counting->maps], fresh_count, __ATOMIC_RELAXED);
}

static void wave_work(void *user)
{
    struct counting *counting = user;
    while (!__atomic_load_n(&counting->stop, __ATOMIC_RELAXED)) {
        const uint64_t first = __atomic_fetch_add(&counting->next, CHUNK, __ATOMIC_RELAXED);
        if (first >= counting->end)
            break;
        chunk_count(counting, first, min64(first + CHUNK, counting->end));
    }
}

/* Counts the wave [next, end) with all threads. The calling thread takes chunks too, shows progress, and notices
 * signals. */
static void wave_count(struct counting *counting, struct cli_progress *progress)
{
    struct os_thread *threads[COVERAGE_THREADS_MOST] = {0};
    const uint64_t draws = counting->end - counting->next;
    const uint64_t wanted = min64(counting->coverage->threads, draws / THREAD_ROWS + 1);
    for (uint64_t i = 1; i < wanted; i++)
        if (os_thread_start(&threads[i], "tokmap-audit", wave_work, counting))
            threads[i] = NULL; /* the other threads take its chunks */
    while (!__atomic_load_n(&counting->stop, __ATOMIC_RELAXED)) {
        const uint64_t first = __atomic_fetch_add(&counting->next, CHUNK, __ATOMIC_RELAXED);
        if (first >= counting->end)
            break;
        chunk_count(counting, first, min64(first + CHUNK, counting->end));
        cli_progress_update(progress, first);
        if (os_signal_caught())
            __atomic_store_n(&counting->stop, 1, __ATOMIC_RELAXED);
    }
    for (uint64_t i = 1; i < wanted; i++)
        os_thread_join(threads[i]);
}

/* Checks the epochs before `epoch`, whose draws are over, and clears their bitmaps. */
static void epochs_retire(struct counting *counting, uint64_t epoch)
{
    const uint64_t windows = counting->coverage->windows;
    for (; counting->oldest < epoch; counting->oldest++) {
        const uint64_t map = counting->oldest % counting->maps;
        if (counting->marked[map] != windows)
            fault_set(counting->fault, "epoch %" PRIu64 " shows %" PRIu64 " of its %" PRIu64 " windows",
                      counting->oldest, counting->marked[map], windows);
        memset(counting->bits + map * counting->words, 0, counting->words * 8);
        counting->marked[map] = 0;
    }
}

static enum tokmap_status waves_count(struct counting *counting, uint64_t steps, struct tokmap_error *error)
{
    const struct coverage *coverage = counting->coverage;
    const uint64_t batch = coverage->batch, windows = coverage->windows, all = steps * batch;
    struct cli_progress progress;
    cli_progress_start(&progress, "counting", all, coverage->progress);
    progress.unit = "draws";
    for (uint64_t first = 0; first < all && !counting->stop && !counting->fault[0]; first = counting->end) {
        epochs_retire(counting, first / windows);
        /* The wave ends with the step in which the oldest epoch ends, or after WAVE_ROWS rows and the rest of their
         * step. */
        const uint64_t epoch_end = div_ceil((first / windows + 1) * windows, batch) * batch;
        const uint64_t most = first + div_ceil(WAVE_ROWS, batch) * batch;
        counting->next = first;
        counting->end = min64(min64(epoch_end, most), all);
        wave_count(counting, &progress);
    }
    cli_progress_end(&progress);
    if (os_signal_caught())
        return interrupted(error);
    if (counting->status || counting->fault[0]) {
        if (counting->status && error)
            *error = counting->error;
        return counting->status;
    }
    /* The epochs that end with the last draw, then the one that the run does not finish. */
    epochs_retire(counting, all / windows);
    if (counting->marked[counting->oldest % counting->maps] != all % windows)
        fault_set(counting->fault,
                  "the number of windows that epoch %" PRIu64 " shows differs from the number of its draws",
                  counting->oldest);
    return TOKMAP_OK;
}

enum tokmap_status coverage_count(const struct coverage *coverage, uint64_t steps, char fault[COVERAGE_FAULT],
                                  struct tokmap_error *error)
{
    struct counting counting = {.coverage = coverage};
    assert(coverage->batch && coverage->windows);
    assert(!steps || coverage->batch <= (uint64_t)INT64_MAX / steps);
    counting.maps = maps_needed(coverage);
    counting.words = div_ceil(coverage->windows, 64);
    counting.bits = calloc(counting.maps * counting.words, 8);
    counting.marked = calloc(counting.maps, 8);
    enum tokmap_status status = TOKMAP_OK;
    if (!counting.bits || !counting.marked || os_mutex_new(&counting.mutex))
        status = error_set_memory(error, "counting windows", coverage_bytes(coverage));
    else
        status = waves_count(&counting, steps, error);
    memcpy(fault, counting.fault, COVERAGE_FAULT);
    if (counting.mutex)
        os_mutex_free(counting.mutex);
    free(counting.marked);
    free(counting.bits);
    return status;
}

/* ---- by sampling ---- */

/* SplitMix64: the same seed gives the same samples on every machine. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns a number in [0, limit). */
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)random_next(state) * limit >> 64);
}

/* What tokmap_run_find() reports for the window of a sampled row. */
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
        status = tokmap_run_find(coverage->run, 0, place.first_token, 1, step, step + 1, inverse_found, &inverse,
                                 error);
    if (!status && (place.draw / coverage->batch != step || place.draw / coverage->windows != place.epoch ||
                    place.window >= coverage->windows || inverse.same != 1 || inverse.others))
        fault_set(fault,
                  "step %" PRIu64 " row %" PRIu64 " takes window %" PRIu64 " of epoch %" PRIu64
                  ", but the search for that window finds the row %u times and other rows %u times",
                  step, row, place.window, place.epoch, inverse.same, inverse.others);
    return status;
}

enum tokmap_status coverage_sample(const struct coverage *coverage, uint64_t first, uint64_t end, uint64_t tries,
                                   uint64_t *samples, char fault[COVERAGE_FAULT], struct tokmap_error *error)
{
    uint64_t state = coverage->seed ^ end;
    assert(first < end && coverage->batch && coverage->windows);
    assert(fault[0] == '\0');
    enum tokmap_status status = TOKMAP_OK;
    struct cli_progress progress;
    cli_progress_start(&progress, "sampling", tries, coverage->progress);
    progress.unit = "draws";
    *samples = 0;
    for (uint64_t i = 0; i < tries && !status && !fault[0]; i++) {
        const uint64_t step = first + random_below(&state, end - first);
        const uint64_t row = random_below(&state, coverage->batch);
        if (!tokmap_run_delivers(coverage->run, step))
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
