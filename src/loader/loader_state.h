/*
 * loader_state.h - struct tokmap_loader: a loader that is open, and who may touch which part of it.
 */
#ifndef TOKMAP_LOADER_LOADER_STATE_H
#define TOKMAP_LOADER_LOADER_STATE_H

#include <stdbool.h>

#include "batch/gather.h"
#include "batch/residency.h"
#include "platform/os.h"
#include "row_queue.h"
#include "run/locate.h"
#include "schedule.h"
#include "staging/backend.h"
#include "staging/ring.h"
#include "statistics.h"
#include "tokmap/tokmap.h"

struct tokmap_loader {
    /* Constant once the loader is open. */
    const struct tokmap_run *run;
    struct tokmap_loader_options options; /* without its pointers, which are the caller's memory */
    uint64_t seq_len, row_tokens;         /* row_tokens: seq_len + lookahead */
    uint64_t vocabulary;                  /* the largest of the sources */
    uint32_t width;                       /* bytes of a token */
    bool on_host;                         /* outputs are in this machine's memory */
    uint64_t sources;
    uint64_t *source_tokens; /* tokens of each source's dataset */
    struct ring_shape shape;
    struct ring_layout layout;
    uint64_t ring_bytes;
    struct backend *backend;
    struct ring *ring;
    struct os_thread *producer; /* NULL: next() fills slots itself */
    struct {
        struct schedule schedule;
        struct tokmap_cursor cursor;
    } start;           /* where the loader was opened, and where tokmap_loader_rewind() returns to */
    void *fork_canary; /* a byte that is 1, and 0 in a child after fork(); NULL if a child may use the loader */

    /* Used by the thread that fills slots: the producer, or the caller of next() if there is no producer. */
    struct schedule schedule;
    struct row_queue queue;
    struct residency *residency;
    struct gather **gathers;     /* one for each source */
    struct tokmap_cursor cursor; /* at the start of the step that is being filled */
    uint64_t cold_reads;         /* read by any thread */
    struct {
        struct schedule schedule;
        struct tokmap_cursor cursor;
        uint64_t count;
    } before_last; /* state before the last batch was filled, for producer_undo() */

    /* Shared by both threads, for the first batch: see producer_claim_first(). */
    uint32_t first_claimed, first_done;
    enum tokmap_status first_status;

    /* Shared by both threads: the producer works in turns, see producer_pause(). */
    uint32_t turns_begun; /* turns that the caller's thread has asked for, less the first one */
    uint32_t turns_done;  /* turns that the producer has ended */
    bool closing;         /* the producer thread ends instead of beginning another turn */

    /* Used by the thread that calls next(). */
    struct slot *held;     /* the slot that the last next() took */
    bool again;            /* the rows of `held` did not reach the caller, so next() delivers them again */
    bool ended;            /* next() has reported the end of the run */
    uint64_t waited_ns;    /* by tokmap_loader_wait(); the next call of next() counts it */
    struct run_walk named; /* for the rows of tokmap_loader_read() */
    struct statistics statistics;
};

/* Tokens of a row for which some field needs marks. The token after the last input counts too, because it is the last
 * target, and a document may begin with it; so do all that follow it if they are targets. */
static inline uint64_t loader_marked_tokens(const struct tokmap_loader *loader)
{
    if (loader->options.fields & TOKMAP_TARGETS_AHEAD)
        return loader->row_tokens;
    return loader->seq_len + (loader->row_tokens > loader->seq_len);
}

/* Returns whether this process is a child that was forked after the loader was opened, and that may not use it: it has
 * neither the producer thread nor the GPU of its parent. */
static inline bool loader_is_forked(const struct tokmap_loader *loader)
{
    return loader->fork_canary && !*(const volatile char *)loader->fork_canary;
}

#endif
