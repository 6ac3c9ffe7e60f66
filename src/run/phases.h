/* SPDX-License-Identifier: MIT */
/*
 * phases.h - which source, epoch, and draw of the epoch each draw of a run shows.
 *
 * A run's steps are cut into phases by its phase lines; batch and sequence length are constant in a phase. Phases with
 * the same mixture and sequence length, one after another, are one stretch: a stretch is what turns a draw into a
 * source's draw. All stretches with the same sequence length, one after another, are one span: a source numbers its
 * draws from 0 in each span, so that a change of the sequence length starts it at draw 0 of its next epoch.
 *
 *     draw of the run              p' = p - stretch.mixture_first_draw
 *     -> leaf, its draw k          mixture_draw(stretch.mixture, p', &k)
 *     -> the source's draw         s = k + leaf.offset (modulo 2^64; an old mixture's draws are added, a new span's
 *                                  are subtracted)
 *     -> epoch, draw in it         leaf.epoch_first + s / leaf.windows, s mod leaf.windows
 *
 * Example: a source with 10 windows got 23 draws from a first mixture, and a second one began then. Its draw k = 4 in
 * the second mixture is its draw s = 4 + 23 = 27, which is draw 7 of epoch 2.
 *
 * Everything here is a pure function of the run's text and of the sizes of its datasets. The memory is in proportion to
 * the weights in the text, and the time of a draw is O(log phases + log sources).
 */
#ifndef TOKMAP_RUN_PHASES_H
#define TOKMAP_RUN_PHASES_H

#include <stdbool.h>

#include "order/mixture.h"
#include "run_spec.h"

/* The most leaves of all stretches of a run, together. */
#define PHASES_LEAVES_MOST ((uint64_t)1 << 24)

/* One source in one stretch. */
struct leaf {
    uint64_t source;      /* its number */
    uint64_t weight;      /* in lowest terms */
    uint64_t windows;     /* n, of an epoch at this sequence length */
    uint64_t k_first;     /* the mixture's k of the source's first draw in the stretch */
    uint64_t offset;      /* s = k + offset, modulo 2^64 */
    uint64_t epoch_first; /* the epoch of s = 0 */
    uint64_t drawn;       /* draws of the source in the run before the stretch */
};

struct mixture_span {
    uint64_t first_draw; /* of the run */
    uint64_t end_draw;   /* first draw of the next stretch, or of the run's end */
    uint64_t seq_len, stride;
    uint64_t span; /* number of its span */
    uint64_t mixture_first_draw, mixture_step;
    uint64_t mixture_line;   /* that states its weights; 0: none does */
    uint64_t mixture_tokens; /* of weights in tokens: their sum; otherwise 0 */
    bool natural;            /* its weights are */
    struct mixture *mixture; /* NULL: the stretch has one leaf, whose k is p' */
    bool owns_mixture;       /* and not an earlier stretch */
    uint64_t weights;        /* sum of the leaves' */
    struct leaf *leaves;     /* in byte order of the sources' names */
    uint64_t leaf_count;
};

struct phase {
    uint64_t first_step, first_draw;
    uint64_t batch, seq_len;
    uint64_t line;    /* 0: from no line */
    uint64_t stretch; /* its number */
};

/* The stretch and leaf of a source. */
struct appearance {
    uint32_t stretch, leaf;
};

/* Facts about a source that phases_make() needs. */
struct phase_source {
    const char *name;
    const char *data;   /* for messages */
    uint64_t tokens;    /* of its dataset */
    uint64_t plan_rows; /* rows of its plan; 0: it draws windows */
    uint64_t plan_seq_len;
    uint64_t epochs_most; /* 0: no limit */
    uint64_t line;
};

struct phases {
    struct phase *phases;
    uint64_t count;     /* those that begin before the run's end, at least 1 */
    uint64_t count_all; /* those of the text */
    struct mixture_span *stretches;
    uint64_t stretch_count, stretch_count_all; /* likewise */
    struct appearance *appearances;            /* by source, in order of stretches */
    uint64_t *appearances_of;                  /* source i has [appearances_of[i], appearances_of[i + 1]) */
    uint64_t batch_most, seq_len_most;
    uint64_t steps;      /* the end of the run, or TOKMAP_FOREVER */
    uint64_t steps_most; /* first step without rows: `steps`, or less if 2^63 draws end before it */
    uint64_t end_draw;   /* first draw that no step has; with a padded last step, the number of real rows in the run */
    uint64_t remainder;  /* with passes and without tail pad: draws that fill no whole step */
};

/* Computes the phases of a run. spec and the sources must outlive the call only. path, and whether the run was read
 * from text (so that errors name its lines), are for errors. Free *phases with phases_free(), after a failure too.
 * Statuses: OK, ERROR_RUN (a phase of the text that cannot be), ERROR_RANGE (a window is longer than a dataset; too
 * many rows; no step; a source runs out; tokens that do not sum up), ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status phases_make(struct phases *phases, const struct run_spec *spec, const struct phase_source *sources,
                               const char *path, bool from_text, struct tokmap_error *error);
void phases_free(struct phases *phases);

/* Returns the phase of a step, and of a draw. The last phase has every later step and draw. O(log phases). */
const struct phase *phases_of_step(const struct phases *phases, uint64_t step);
const struct phase *phases_of_draw(const struct phases *phases, uint64_t draw);

/* Returns the step that has a draw, as if the run had no end. O(log phases). */
uint64_t phases_step_of_draw(const struct phases *phases, uint64_t draw);

/* Returns the draws of a source in steps [0, step) of the run. step: at most steps_most. O(log phases + log
 * sources). */
uint64_t phases_drawn(const struct phases *phases, uint64_t source, uint64_t step);

/* Returns whether some step before the run's end draws a source. */
static inline bool phases_have(const struct phases *phases, uint64_t source)
{
    return phases->appearances_of[source] < phases->appearances_of[source + 1];
}

/* Returns the leaf of a draw of the stretch, and in *s the source's draw. */
const struct leaf *stretch_draw(const struct mixture_span *stretch, uint64_t draw, uint64_t *s);

/* Counts, of the draws of the run before `draw`, which is in [stretch->first_draw, stretch->end_draw], those that the
 * leaf got since its mixture began, which is the k of its next draw. */
uint64_t stretch_count(const struct mixture_span *stretch, uint64_t leaf, uint64_t draw);

/* Inverts stretch_draw(): returns the draw of the run that is the source's draw s. */
uint64_t stretch_draw_of(const struct mixture_span *stretch, uint64_t leaf, uint64_t s);

/* Returns the windows of an epoch of a dataset: see RUN.md. 0: it has none. */
uint64_t windows_of_dataset(const struct run_spec *spec, uint64_t tokens, uint64_t seq_len);

#endif
