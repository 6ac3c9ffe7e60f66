/* SPDX-License-Identifier: MIT */
/*
 * loader_state.h - struct tokmap_loader: a loader that is open, and who may touch which part of it.
 */
#ifndef TOKMAP_LOADER_LOADER_STATE_H
#define TOKMAP_LOADER_LOADER_STATE_H

#include <stdbool.h>

#include "batch/boundaries.h"
#include "batch/gather.h"
#include "batch/read_pool.h"
#include "batch/residency.h"
#include "common/bytes.h"
#include "context.h"
#include "format/values_file.h"
#include "platform/os.h"
#include "row_queue.h"
#include "run/locate.h"
#include "staging/backend.h"
#include "staging/ring.h"
#include "trace.h"

struct exclusions;

#define FORM_ALIGN 64 /* where the tokens of a chunk of a list begin: see expand_arguments.h */
#define FORM_CU (TOKMAP_CU_SEQLENS | TOKMAP_CU_SEQLENS_SLICE)

/* What a batch needs of a slot that is constant for a loader. */
struct form_needs {
    uint64_t lookahead;
    uint64_t cu_elements; /* 0 if cu_seqlens is not requested */
    uint32_t width;       /* bytes of a token in a row */
    uint32_t fields;
    bool mask_targets;
    bool masked;          /* some tokens are no targets: a source has a mask stream, or padding between documents */
    bool bounds;          /* some rows have padding, or count only their last targets */
    uint64_t slices;      /* ranks that share the columns of each row; 1: each has all of them */
    uint64_t chunks;      /* of equal size in which a rank has its columns */
    uint64_t chunks_most; /* of a row, where their sizes differ; else 0 */
    const struct row_values *values;
};

/* What a batch needs of a slot that follows from its rows and its sequence length, which differ between the phases of a
 * run. To the backend, each chunk is a row, if all have one size: of `columns` columns and the tokens after them,
 * row_tokens in all. If their sizes differ, `columns` are all of the rank's, and as many tokens follow each chunk. */
struct form {
    uint64_t seq_len; /* of the run */
    uint64_t columns, row_tokens;
    struct ring_shape shape;
    struct ring_layout layout;
};

/* Returns the tokens of a row that are kept after those of a chunk. */
static inline uint64_t form_ahead(const struct form_needs *needs)
{
    const bool all = needs->slices == 1 || (needs->fields & TOKMAP_TARGETS_AHEAD);
    return all ? needs->lookahead : needs->lookahead > 0;
}

/* Returns whether rows have a bit for the label of a chunk's first column: see expand_arguments.h. */
static inline bool form_first_labels(const struct form_needs *needs)
{
    return needs->slices > 1 && (needs->fields & TOKMAP_LABELS);
}

/* Returns the element of a slot's cu_seqlens at which that of the slice begins. */
static inline uint64_t form_cu_slice_at(const struct form_needs *needs)
{
    return round_up(needs->cu_elements, 16);
}

/* Tokens of a row for which some field needs marks. A target counts too, because a document may begin with it. */
static inline uint64_t form_marked_tokens(const struct form_needs *needs, uint64_t seq_len)
{
    const uint64_t ahead = needs->fields & TOKMAP_TARGETS_AHEAD ? needs->lookahead : needs->lookahead > 0;
    return seq_len + ahead;
}

/* Targets of a row for which some field needs the bits of a mask. */
static inline uint64_t form_masked_targets(const struct form_needs *needs, uint64_t seq_len)
{
    return form_marked_tokens(needs, seq_len) - 1;
}

/* Returns whether all outputs follow from the tokens of a row alone, so that a row need not be stored to write them.
 * Rows of padding have bounds. */
static inline bool form_is_direct(const struct form_needs *needs)
{
    const uint32_t others = TOKMAP_TARGETS | TOKMAP_SOURCE_IDS;
    return (needs->fields | others) == (TOKMAP_INPUTS | others) && !needs->mask_targets && !needs->bounds;
}

/* Facts about one source of the run that a loader needs. */
struct loader_source {
    const struct tokmap_dataset *dataset;
    const char *name; /* the run's */
    uint64_t tokens;  /* of the dataset */
    uint32_t width;   /* of its tokens, in bytes */
    bool plan;        /* its rows are those of a plan */
};

/* How many targets count: see counted.h. */
struct counted {
    bool on;     /* options.counts */
    bool masked; /* documents, masks, and what the run excludes decide which targets count; if not, padding alone */
    bool labels; /* of labels, which have no column for the target of the row's last token */
    bool known;  /* the next two members are those of `step` */
    uint64_t step, total;
    uint32_t *rows; /* by the row's number in the step: what counts in the columns of this rank */
    struct run_walk walk;
    struct tokmap_place *places; /* of some rows of the step */
    struct mark *marks;          /* of the row at hand, */
    uint64_t *bits;              /* and its targets that do not count */
};

/* The values of targets: see row_values.h. An array: */
struct row_values_array {
    struct values_array type;
    struct tokmap_dataset **datasets; /* of its values, one for each source */
    struct residency *residency;
    struct gather **gathers;    /* one for each source */
    struct fetch_plan *fetches; /* NULL: no source is in object storage */
    uint64_t before;            /* bytes of a column in the arrays before it */
    struct loader_fill *loader;
    const struct tokmap_run *run;
};
struct row_values {
    uint32_t count;
    bool present;          /* options.values_present */
    uint64_t column_bytes; /* of all arrays */
    struct row_values_array arrays[VALUES_ARRAYS_MOST];
    struct tokmap_extent *extents, *read; /* of the row at hand, and what is read of its values */
    uint64_t *bits;                       /* its targets that have none */
    const struct tokmap_out *out;         /* arrays that are written while rows are filled; NULL: the slot is */
};

/* Returns where a part of the values of `columns` columns begins in a slot, from layout.values_at on: an array; from
 * part `count` on, which columns of it are present; and the end of all parts. */
static inline uint64_t row_values_part_at(const struct row_values *values, uint64_t columns, uint32_t part)
{
    const uint64_t before =
        part < values->count ? values->arrays[part].before : values->column_bytes + (uint64_t)(part - values->count);
    return round_up(columns * before, FORM_ALIGN) + (uint64_t)part * FORM_ALIGN;
}

/* How soon the consumer returns: see consumer.c. */
struct pace {
    bool alone;           /* the producer is paused, and next() fills slots itself */
    bool late;            /* this call came late, or the one before it was cold */
    bool wanted;          /* two calls in a row were late: the producer is wanted again */
    uint32_t waits;       /* calls that came at once and had to wait, less those that did not */
    uint32_t returns;     /* times that the producer was wanted again */
    uint64_t returned_ns; /* when the last call returned */
    uint64_t cold_reads;  /* of all calls before */
};

/* Counted by the thread that calls next(), and read by any thread, which may see counters of different moments, but
 * never half a number. */
struct statistics {
    struct tokmap_stats all; /* counts of batches, and those of parts that were closed when the loader moved */
    struct tokmap_source_stats *sources; /* one for each source of the run; bytes: by gathers that are closed */
    uint64_t step;                       /* of the loader's cursor */
};

/* When options.alarm is called: calls of next() are counted in groups of alarm_calls. A group in which
 * alarm_percent percent or more had to wait raises the alarm, unless the group before it did, too. */
struct stalls {
    bool opened;                      /* the first call, which finds an empty ring, was passed */
    bool above;                       /* the last group was above the threshold */
    uint64_t calls, stalled, wait_ns; /* of the group at hand */
};

/* Used by the thread that fills slots: the producer, or the caller of next() if there is no producer. Its parts have
 * the addresses of others (the residency and the plan of what is fetched, for example), so it never moves in memory. */
struct loader_fill {
    struct schedule schedule;
    struct form form; /* of the slot that is being filled */
    struct row_queue queue;
    struct tokmap_extent *extents; /* of the row that is being filled */
    const struct tokmap_out *out;  /* outputs that are written while rows are filled; NULL: the slot's rows are */
    const void *after;             /* with outputs: the tokens of the row after the one that is being filled */
    struct context context;        /* the cut of rows, and the chunks of the row that is being filled */
    struct boundaries_cu cu;       /* of the batch that is being filled */
    struct counted counted;        /* of the step of that batch */
    struct row_values values;
    struct fetch_plan *fetches; /* NULL: no dataset is in object storage */
    struct residency *residency;
    struct gather **gathers; /* one for each source */
    struct read_pool *pool;  /* NULL: no other threads read */
    uint64_t probe_ns;
    struct tokmap_cursor cursor; /* at the start of the step that is being filled */
    uint64_t cold_reads;         /* read by any thread */
    struct {
        struct schedule schedule;
        struct tokmap_cursor cursor;
        uint64_t count;
    } before_last; /* state before the last batch was filled, for producer_undo() */
};

struct tokmap_loader {
    /* Constant once the loader is open, until it moves (loader_open.c). */
    const struct tokmap_run *run;
    struct tokmap_loader_options options; /* without its pointers to the caller's texts */
    struct form_needs needs;
    const struct expand_kernels *kernels; /* for outputs on the host */
    uint64_t vocabulary;                  /* the largest of the sources */
    uint64_t stride;                      /* of windows; 0: seq_len */
    uint64_t balance;                     /* options.balance, as row_cost_scale() has it; 0: off */
    uint32_t pad_id;
    const struct exclusions *exclusions; /* of the run; NULL: it excludes nothing */
    bool on_host;                        /* outputs are in this machine's memory */
    uint64_t sources;
    struct loader_source *source;
    uint64_t rows_most, elements_most; /* of any call: rows, and elements of a field */
    struct form widest;                /* the form with the most outputs */
    uint64_t ring_bytes;
    struct backend *backend;
    struct ring *ring;
    struct {
        struct schedule schedule;
        struct tokmap_cursor cursor;
    } start; /* the place where the loader was opened, and to which tokmap_loader_rewind() returns */
    struct loader_fill *fill;

    /* Shared by both threads, for the first batch: see producer_claim_first(). */
    struct {
        uint32_t claimed, done;
        enum tokmap_status status;
    } first;

    /* Used by the thread that calls next(). */
    struct {
        struct slot *held;             /* the slot that the last next() took */
        bool again;                    /* the rows of `held` did not reach the caller, so next() delivers them again */
        bool ended;                    /* next() has reported the end of the run */
        uint64_t waited_ns;            /* by tokmap_loader_wait(); the next call of next() counts it */
        struct schedule taken;         /* of the batches that next() has delivered */
        struct tokmap_cursor position; /* after them */
        struct run_walk named;         /* for the rows of tokmap_loader_read() */
        struct pace pace;
    } next;

    /* A move exchanges the bytes of all members before this one, so nothing may keep an address of any of them. From
     * here on, members stay with the handle. The producer thread reads the turns while it is paused, so a move may not
     * write them even for a moment. */
    struct {
        struct os_thread *producer; /* NULL: next() fills slots itself. For the thread that calls next() */
        uint32_t process;           /* that opened the loader; 0 if a child after fork() may use it */

        /* Shared by both threads: the producer works in turns, see producer_pause(). */
        uint32_t turns_begun; /* turns that the caller's thread has asked for, less the first one */
        uint32_t turns_done;  /* turns that the producer has ended */
        bool closing;         /* the producer thread ends instead of beginning another turn */
    } thread;

    /* Shared by both threads, with a lock of its own. */
    struct trace *trace; /* NULL: none is written */

    /* Used by the thread that calls next(). */
    struct statistics statistics;
    struct stalls stalls;
};

/* Returns what the header of a trace says of the loader from `cursor` on. */
static inline struct trace_header loader_trace_header(const struct tokmap_loader *loader,
                                                      const struct tokmap_cursor *cursor)
{
    return (struct trace_header){
        .width = loader->needs.width,
        .rank = loader->options.rank,
        .world = loader->options.world,
        .context_rank = loader->options.context_rank,
        .context_world = loader->options.context_world,
        .context_layout = loader->options.context_layout,
        .first_step = cursor->step,
        .past = {cursor->past[0], cursor->past[1]},
        .balance = loader->balance,
        .rows = loader->balance ? loader->options.rows : 0,
        .nodes = loader->options.nodes > 1 ? loader->options.nodes : 0,
    };
}

/* Returns the source of a place, or NULL for a row of padding. */
static inline const struct loader_source *loader_source_of(const struct tokmap_loader *loader,
                                                           const struct tokmap_place *place)
{
    return place->source == TOKMAP_NO_SOURCE ? NULL : &loader->source[place->source];
}

/* Returns whether this process is a child that was forked after the loader was opened, and that may not use it: it has
 * neither the producer thread nor the GPU of its parent. */
static inline bool loader_is_forked(const struct tokmap_loader *loader)
{
    return loader->thread.process && loader->thread.process != os_process_id();
}

/* Reports to options.event that something begins, or ends. */
static inline void loader_event(const struct tokmap_loader *loader, const char *name, bool begin)
{
    if (loader->options.event)
        loader->options.event(loader->options.event_user, name, begin);
}

#endif
