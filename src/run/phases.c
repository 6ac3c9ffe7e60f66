/* SPDX-License-Identifier: MIT */
/*
 * phases.c - see phases.h.
 *
 * Method. The phase lines are read once, in order. The state of a source between two stretches is two numbers: how many
 * draws it had since the span began, and the epoch in which the span began. A new stretch copies them into its leaves.
 * So nothing is ever enumerated: a run of 10^15 draws takes as long to open as one of ten.
 *
 * Then the end of the run is found by the inverse of the mixture: `passes P of X` ends with the draw that is X's draw
 * P * n - 1, and `epochs<=N` fails if X's draw N * n is below the end.
 */
#include "phases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

typedef unsigned __int128 wide;

#define ALL UINT64_MAX /* in place of a source: all sources of a natural mixture */

struct ranked {
    const char *name;
    uint64_t source, rank, amount;
};

/* A source between two stretches. */
struct state {
    uint64_t drawn;       /* in the run */
    uint64_t s;           /* in the span */
    uint64_t windows;     /* at the span's sequence length, if s > 0 */
    uint64_t epoch_first; /* of the span */
};

struct builder {
    struct phases *phases;
    const struct run_spec *spec;
    const struct phase_source *sources;
    const char *path;
    bool from_text;
    struct tokmap_error *error;
    struct ranked *by_name; /* all sources in byte order of name */
    uint64_t *rank;         /* of each source in by_name */
    struct ranked *chosen;  /* scratch: the sources of a line */
    uint64_t *weights;      /* scratch */
    struct state *states;
    uint64_t cost; /* leaves made and sources visited, against PHASES_LEAVES_MOST */
};

#define wrong_at(builder, status, line, ...)                                                                           \
    error_set_line((builder)->error, (status), (builder)->path, (builder)->from_text ? (line) : 0, __VA_ARGS__)

uint64_t windows_of_dataset(const struct run_spec *spec, uint64_t tokens, uint64_t seq_len)
{
    const uint64_t stride = spec->stride ? spec->stride : seq_len, window = seq_len + spec->lookahead;
    const uint64_t needed = seq_len + min64(spec->lookahead, 1); /* of a window, for each target to be in one */
    if (spec->tail_pad)
        return tokens == 0 ? 0 : tokens <= needed ? 1 : 1 + div_ceil(tokens - needed, stride);
    return tokens < window ? 0 : 1 + (tokens - window) / stride;
}

/* ---- draws of a stretch ---- */

const struct leaf *stretch_draw(const struct mixture_span *stretch, uint64_t draw, uint64_t *s)
{
    uint64_t k = draw - stretch->mixture_first_draw, leaf = 0;
    if (stretch->mixture)
        leaf = mixture_draw(stretch->mixture, k, &k);
    *s = k + stretch->leaves[leaf].offset;
    return &stretch->leaves[leaf];
}

uint64_t stretch_count(const struct mixture_span *stretch, uint64_t leaf, uint64_t draw)
{
    draw -= stretch->mixture_first_draw;
    return stretch->mixture ? mixture_count(stretch->mixture, leaf, draw) : draw;
}

uint64_t stretch_draw_of(const struct mixture_span *stretch, uint64_t leaf, uint64_t s)
{
    uint64_t draw = s - stretch->leaves[leaf].offset;
    if (stretch->mixture && (draw = mixture_draw_of(stretch->mixture, leaf, draw)) == MIXTURE_NONE)
        return UINT64_MAX;
    return draw > UINT64_MAX - stretch->mixture_first_draw ? UINT64_MAX : draw + stretch->mixture_first_draw;
}

/* ---- phases ---- */

/* Returns the last of the first `count` phases that begins at a draw or before it. */
static const struct phase *phase_of_draw(const struct phases *phases, uint64_t count, uint64_t draw)
{
    return phases->phases + last_at_most(&phases->phases->first_draw, sizeof *phases->phases, count, draw);
}

const struct phase *phases_of_step(const struct phases *phases, uint64_t step)
{
    return phases->phases + last_at_most(&phases->phases->first_step, sizeof *phases->phases, phases->count, step);
}

const struct phase *phases_of_draw(const struct phases *phases, uint64_t draw)
{
    return phase_of_draw(phases, phases->count, draw);
}

uint64_t phases_step_of_draw(const struct phases *phases, uint64_t draw)
{
    const struct phase *phase = phase_of_draw(phases, phases->count_all, draw);
    return phase->first_step + (draw - phase->first_draw) / phase->batch;
}

uint64_t phases_drawn(const struct phases *phases, uint64_t source, uint64_t step)
{
    const struct phase *phase = phases_of_step(phases, step);
    const uint64_t draw =
        step == phases->steps_most ? phases->end_draw : phase->first_draw + (step - phase->first_step) * phase->batch;
    uint64_t low = phases->appearances_of[source], high = phases->appearances_of[source + 1];
    if (low == high)
        return 0;
    while (high - low > 1) { /* the last appearance that begins at or before the draw, if any does */
        const uint64_t middle = low + (high - low) / 2;
        if (phases->stretches[phases->appearances[middle].stretch].first_draw <= draw)
            low = middle;
        else
            high = middle;
    }
    const struct appearance *appearance = &phases->appearances[low];
    const struct mixture_span *stretch = &phases->stretches[appearance->stretch];
    const struct leaf *leaf = &stretch->leaves[appearance->leaf];
    if (stretch->first_draw > draw)
        return 0;
    return leaf->drawn + stretch_count(stretch, appearance->leaf, min64(draw, stretch->end_draw)) - leaf->k_first;
}

/* ---- weights ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ranked *)a)->name, ((const struct ranked *)b)->name);
}

static int compare_ranks(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns the line that sets the sequence length of a phase. */
static uint64_t seq_len_line(const struct builder *builder, uint64_t seq_len, uint64_t phase_line)
{
    return seq_len == builder->spec->seq_len ? builder->spec->lines[RUN_SEQ_LEN] : phase_line;
}

/* Sets the windows of a source at a sequence length. */
static enum tokmap_status count_windows(const struct builder *builder, uint64_t source, uint64_t seq_len,
                                        uint64_t phase_line, uint64_t *windows)
{
    const struct run_spec *spec = builder->spec;
    const struct phase_source *of = &builder->sources[source];
    if (of->plan_rows) {
        *windows = of->plan_rows;
        if (of->plan_seq_len == seq_len)
            return TOKMAP_OK;
        return wrong_at(builder, TOKMAP_ERROR_MISMATCH, of->line,
                        "the plan of source '%s' has rows of %" PRIu64
                        " tokens, but the run draws it with seq_len %" PRIu64 "; make a plan of rows of %" PRIu64
                        " tokens, or change seq_len",
                        of->name, of->plan_seq_len, seq_len, seq_len);
    }
    *windows = windows_of_dataset(spec, of->tokens, seq_len);
    if (*windows)
        return TOKMAP_OK;
    const uint64_t line = seq_len_line(builder, seq_len, phase_line);
    if (spec->tail_pad)
        return wrong_at(builder, TOKMAP_ERROR_RANGE, of->line, "dataset '%s' has no tokens; use another dataset",
                        of->data);
    if (of->tokens > spec->lookahead)
        return wrong_at(builder, TOKMAP_ERROR_RANGE, line,
                        "a sequence of %" PRIu64 " tokens plus a lookahead of %" PRIu64 " is longer than "
                        "dataset '%s', which has %" PRIu64 " tokens; lower seq_len to %" PRIu64 " or less, or "
                        "use a larger dataset",
                        seq_len, spec->lookahead, of->data, of->tokens, of->tokens - spec->lookahead);
    return wrong_at(builder, TOKMAP_ERROR_RANGE, line,
                    "a sequence of %" PRIu64 " tokens plus a lookahead of %" PRIu64 " is longer than dataset "
                    "'%s', which has %" PRIu64 " tokens; use a larger dataset",
                    seq_len, spec->lookahead, of->data, of->tokens);
}

/* Collects the sources of a phase line with their amounts in builder->chosen, in byte order of name. */
static enum tokmap_status choose(struct builder *builder, const struct phase_line *line, uint64_t seq_len,
                                 uint64_t *count)
{
    const bool natural = line->kind == WEIGHTS_NATURAL;
    struct ranked *chosen = builder->chosen;
    uint64_t n = 0;
    enum tokmap_status status;
    if (line->weight_count == 0) { /* all sources */
        for (n = 0; n < builder->spec->source_count; n++)
            chosen[n] = builder->by_name[n];
    }
    for (uint64_t i = 0; i < line->weight_count; i++)
        if (natural || line->weights[i].amount) {
            const uint64_t source = line->weights[i].source;
            if (n == builder->spec->source_count)
                return wrong_at(builder, TOKMAP_ERROR_RUN, line->line, "the line names a source twice; name it once");
            chosen[n] = builder->by_name[builder->rank[source]];
            chosen[n++].amount = line->weights[i].amount;
        }
    qsort(chosen, n, sizeof *chosen, compare_ranks);
    for (uint64_t i = 1; i < n; i++)
        if (chosen[i].rank == chosen[i - 1].rank)
            return wrong_at(builder, TOKMAP_ERROR_RUN, line->line, "the line names source '%s' twice; name it once",
                            chosen[i].name);
    for (uint64_t i = 0; natural && i < n; i++)
        if ((status = count_windows(builder, chosen[i].source, seq_len, line->line, &chosen[i].amount)))
            return status;
    if (n == 0)
        return wrong_at(builder, TOKMAP_ERROR_RUN, line->line,
                        "all weights of the phase are 0, so it has no data; give a source a weight above 0");
    *count = n;
    return TOKMAP_OK;
}

/* Makes the leaves and the mixture of a line with weights. */
static enum tokmap_status new_mixture(struct builder *builder, struct mixture_span *stretch,
                                      const struct phase_line *line)
{
    uint64_t count = 0, divisor = 0, sum = 0;
    enum tokmap_status status = choose(builder, line, stretch->seq_len, &count);
    if (status)
        return status;
    for (uint64_t i = 0; i < count; i++) {
        divisor = gcd(builder->chosen[i].amount, divisor);
        if (add_overflows(sum, builder->chosen[i].amount, &sum) || sum >= MIXTURE_DRAWS)
            return wrong_at(
                builder, TOKMAP_ERROR_RANGE, line->line,
                "the weights of the phase sum to 2^63 or more; use smaller weights in the same proportions");
    }
    if (!(stretch->leaves = calloc(count, sizeof *stretch->leaves)))
        return error_set_memory(builder->error, "the sources of a phase", count * sizeof *stretch->leaves);
    stretch->leaf_count = count;
    stretch->natural = line->kind == WEIGHTS_NATURAL;
    stretch->mixture_tokens = line->kind == WEIGHTS_TOKENS ? sum : 0;
    stretch->weights = sum / divisor;
    for (uint64_t i = 0; i < count; i++) {
        struct leaf *leaf = &stretch->leaves[i];
        leaf->source = builder->chosen[i].source;
        leaf->weight = builder->weights[i] = builder->chosen[i].amount / divisor;
    }
    if (count == 1)
        return TOKMAP_OK;
    stretch->owns_mixture = true;
    return mixture_new(&stretch->mixture, builder->weights, count, builder->error);
}

/* Continues the mixture of the stretch before, with another sequence length. */
static enum tokmap_status same_mixture(struct builder *builder, struct mixture_span *stretch,
                                       const struct mixture_span *before)
{
    const size_t bytes = before->leaf_count * sizeof *stretch->leaves;
    stretch->mixture_first_draw = before->mixture_first_draw;
    stretch->mixture_step = before->mixture_step;
    stretch->mixture_line = before->mixture_line;
    stretch->mixture_tokens = before->mixture_tokens;
    stretch->natural = before->natural;
    stretch->mixture = before->mixture;
    stretch->weights = before->weights;
    if (!(stretch->leaves = malloc(bytes)))
        return error_set_memory(builder->error, "the sources of a phase", bytes);
    memcpy(stretch->leaves, before->leaves, bytes);
    stretch->leaf_count = before->leaf_count;
    for (uint64_t i = 0; i < stretch->leaf_count; i++)
        stretch->leaves[i].k_first = stretch_count(before, i, stretch->first_draw);
    return TOKMAP_OK;
}

/* ---- stretches ---- */

/* Ends the last stretch, and brings the sources' states up to its end. */
static void end_stretch(struct builder *builder, uint64_t end_draw, bool span_ends)
{
    struct phases *phases = builder->phases;
    struct mixture_span *stretch = &phases->stretches[phases->stretch_count - 1];
    stretch->end_draw = end_draw;
    for (uint64_t i = 0; i < stretch->leaf_count; i++) {
        const struct leaf *leaf = &stretch->leaves[i];
        struct state *state = &builder->states[leaf->source];
        const uint64_t draws = stretch_count(stretch, i, end_draw) - leaf->k_first;
        state->s += draws;
        state->drawn += draws;
        state->windows = leaf->windows;
    }
    for (uint64_t i = 0; span_ends && i < builder->spec->source_count; i++) {
        struct state *state = &builder->states[i];
        if (state->s)
            state->epoch_first += div_ceil(state->s, state->windows);
        state->s = 0;
    }
}

/* Begins a stretch with a phase. weights: NULL: the mixture continues. */
static enum tokmap_status begin_stretch(struct builder *builder, const struct phase *phase,
                                        const struct phase_line *weights)
{
    struct phases *phases = builder->phases;
    const struct mixture_span *before = phases->stretch_count ? &phases->stretches[phases->stretch_count - 1] : NULL;
    const bool span_ends = before && before->seq_len != phase->seq_len;
    struct mixture_span *stretch = &phases->stretches[phases->stretch_count];
    if (before)
        end_stretch(builder, phase->first_draw, span_ends);
    phases->stretch_count++;
    stretch->first_draw = stretch->mixture_first_draw = phase->first_draw;
    stretch->mixture_step = phase->first_step;
    stretch->mixture_line = phase->line;
    stretch->seq_len = phase->seq_len;
    stretch->stride = builder->spec->stride ? builder->spec->stride : phase->seq_len;
    stretch->span = before ? before->span + span_ends : 0;
    if (stretch->stride > stretch->seq_len)
        return wrong_at(builder, TOKMAP_ERROR_RANGE, builder->spec->lines[RUN_STRIDE],
                        "a stride of %" PRIu64 " is longer than a sequence of %" PRIu64
                        " tokens, so it would leave out "
                        "tokens; lower stride",
                        stretch->stride, stretch->seq_len);
    enum tokmap_status status =
        weights ? new_mixture(builder, stretch, weights) : same_mixture(builder, stretch, before);
    if (status)
        return status;
    builder->cost += stretch->leaf_count + (span_ends ? builder->spec->source_count : 0);
    if (builder->cost > PHASES_LEAVES_MOST)
        return wrong_at(builder, TOKMAP_ERROR_LIMIT, phase->line,
                        "the phases up to this one have more than %" PRIu64
                        " sources, counted again in each phase; use "
                        "fewer phases or sources",
                        PHASES_LEAVES_MOST);
    for (uint64_t i = 0; i < stretch->leaf_count; i++) {
        struct leaf *leaf = &stretch->leaves[i];
        const struct state *state = &builder->states[leaf->source];
        if ((status = count_windows(builder, leaf->source, phase->seq_len, phase->line, &leaf->windows)))
            return status;
        leaf->offset = state->s - leaf->k_first;
        leaf->epoch_first = state->epoch_first;
        leaf->drawn = state->drawn;
    }
    return TOKMAP_OK;
}

/* Adds a phase. *reached becomes false if the run has no row at its first step. */
static enum tokmap_status add_phase(struct builder *builder, const struct phase_line *line, bool *reached)
{
    struct phases *phases = builder->phases;
    const struct phase *before = phases->count ? &phases->phases[phases->count - 1] : NULL;
    struct phase *phase = &phases->phases[phases->count];
    *phase = (struct phase){.first_step = line->step, .line = line->line};
    phase->batch = line->batch ? line->batch : before ? before->batch : builder->spec->batch;
    phase->seq_len = line->seq_len ? line->seq_len : before ? before->seq_len : builder->spec->seq_len;
    if (before) {
        if (line->step <= before->first_step)
            return wrong_at(builder, TOKMAP_ERROR_RUN, line->line,
                            "the phase begins at step %" PRIu64 ", but the phase of line %" PRIu64 " begins at step "
                            "%" PRIu64 "; write the phases in order of their steps, each step once",
                            line->step, before->line, before->first_step);
        const wide draw = before->first_draw + (wide)(line->step - before->first_step) * before->batch;
        *reached = draw < RUN_DRAWS_MOST;
        if (!*reached)
            return TOKMAP_OK;
        phase->first_draw = (uint64_t)draw;
    }
    const bool weights = line->kind != WEIGHTS_NONE || !before;
    phases->count++;
    if (weights || phase->seq_len != before->seq_len) {
        const enum tokmap_status status = begin_stretch(builder, phase, weights ? line : NULL);
        if (status)
            return status;
    }
    phase->stretch = phases->stretch_count - 1;
    return TOKMAP_OK;
}

static enum tokmap_status add_phases(struct builder *builder)
{
    const struct run_spec *spec = builder->spec;
    bool reached = true;
    enum tokmap_status status = TOKMAP_OK;
    struct phase_weight only = {.source = 0, .amount = 1};
    struct phase_line first = {.kind = WEIGHTS_SHARES, .weights = &only, .weight_count = 1};
    size_t next = 0;
    if (spec->phase_count && spec->phases[0].step == 0) {
        first.line = spec->phases[0].line;
        first.batch = spec->phases[0].batch;
        first.seq_len = spec->phases[0].seq_len;
        if (spec->phases[0].kind != WEIGHTS_NONE)
            first = spec->phases[0];
        next = 1;
    }
    assert(spec->source_count == 1 || (next && spec->phases[0].kind != WEIGHTS_NONE));
    for (status = add_phase(builder, &first, &reached); !status && reached && next < spec->phase_count; next++)
        status = add_phase(builder, &spec->phases[next], &reached);
    if (!status)
        end_stretch(builder, RUN_DRAWS_MOST, false);
    return status;
}

/* ---- the end ---- */

/* Returns the number of the stretch's leaf of a source; leaf_count if there is none. */
static uint64_t leaf_of(const struct builder *builder, const struct mixture_span *stretch, uint64_t source)
{
    const uint64_t rank = builder->rank[source];
    uint64_t low = 0, high = stretch->leaf_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (builder->rank[stretch->leaves[middle].source] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stretch->leaf_count && stretch->leaves[low].source == source ? low : stretch->leaf_count;
}

/* Finds which source `passes` counts, or ALL. */
static enum tokmap_status passes_source(const struct builder *builder, uint64_t *source)
{
    const struct run_spec *spec = builder->spec;
    const struct phases *phases = builder->phases;
    const struct mixture_span *first = &phases->stretches[0];
    if (spec->passes_of != SIZE_MAX) {
        *source = spec->passes_of;
        return TOKMAP_OK;
    }
    *source = first->leaf_count == 1 ? first->leaves[0].source : ALL;
    bool good = true;
    for (uint64_t i = 0; i < phases->stretch_count; i++) {
        const struct mixture_span *stretch = &phases->stretches[i];
        good = good && (*source == ALL ? stretch->natural && stretch->mixture == first->mixture
                                       : stretch->leaf_count == 1 && stretch->leaves[0].source == *source);
    }
    if (good)
        return TOKMAP_OK;
    return wrong_at(
        builder, TOKMAP_ERROR_RUN, spec->lines[RUN_PASSES],
        "'passes' alone needs one mixture in the proportions of the data, 'phase 0 natural'; name the source "
        "whose passes count, 'passes %" PRIu64 " of %s', or write 'steps' instead",
        spec->passes, builder->sources[first->leaves[0].source].name);
}

/* Finds, for `passes`, the windows of a pass in a stretch, and the draws that count in it. Returns false if none
 * does. */
static bool pass_of_stretch(const struct builder *builder, const struct mixture_span *stretch, uint64_t source,
                            uint64_t *windows, uint64_t *draws, uint64_t *leaf)
{
    *windows = 0;
    *draws = stretch->end_draw - stretch->first_draw;
    if (source == ALL) {
        for (uint64_t i = 0; i < stretch->leaf_count && *windows != UINT64_MAX; i++)
            if (add_overflows(*windows, stretch->leaves[i].windows, windows))
                *windows = UINT64_MAX;
        return true;
    }
    *leaf = leaf_of(builder, stretch, source);
    if (*leaf == stretch->leaf_count)
        return false;
    *windows = stretch->leaves[*leaf].windows;
    *draws = stretch_count(stretch, *leaf, stretch->end_draw) - stretch->leaves[*leaf].k_first;
    return true;
}

static enum tokmap_status too_many_passes(const struct builder *builder, uint64_t windows)
{
    return wrong_at(builder, TOKMAP_ERROR_RANGE, builder->spec->lines[RUN_PASSES],
                    "%" PRIu64 " passes over %" PRIu64 " window%s have more than 2^63 rows; lower passes",
                    builder->spec->passes, windows, windows == 1 ? "" : "s");
}

/* Sets *draws to the draws of a run that ends with `passes`. Where the sequence length changes, the windows that remain
 * are converted to the same part of a pass, rounded down. */
static enum tokmap_status draws_of_passes(const struct builder *builder, uint64_t *draws, uint64_t *pass)
{
    uint64_t source, unit = 0, left = 0;
    const enum tokmap_status status = passes_source(builder, &source);
    if (status)
        return status;
    for (uint64_t i = 0; i < builder->phases->stretch_count; i++) {
        const struct mixture_span *stretch = &builder->phases->stretches[i];
        uint64_t windows, here, leaf = 0;
        if (!pass_of_stretch(builder, stretch, source, &windows, &here, &leaf))
            continue;
        const wide most = unit ? (wide)left * windows / unit : (wide)builder->spec->passes * windows;
        if (most > RUN_DRAWS_MOST)
            return too_many_passes(builder, windows);
        left = (uint64_t)most;
        unit = *pass = windows;
        if (left <= here) {
            const struct leaf *of = &stretch->leaves[leaf];
            if (left == 0 || source == ALL)
                *draws = stretch->first_draw + left;
            else
                *draws = stretch_draw_of(stretch, leaf, of->k_first + left - 1 + of->offset) + 1;
            return TOKMAP_OK;
        }
        left -= here;
    }
    const struct mixture_span *last = &builder->phases->stretches[builder->phases->stretch_count - 1];
    if (source == ALL || leaf_of(builder, last, source) < last->leaf_count)
        return too_many_passes(builder, unit);
    return wrong_at(builder, TOKMAP_ERROR_RANGE, builder->spec->lines[RUN_PASSES],
                    "source '%s' has no weight from step %" PRIu64 " on (line %" PRIu64 "), before its %" PRIu64
                    " passes are over; write 'steps' instead, or name another source",
                    builder->sources[source].name, last->mixture_step, last->mixture_line, builder->spec->passes);
}

static enum tokmap_status end_by_passes(struct builder *builder)
{
    struct phases *phases = builder->phases;
    const struct run_spec *spec = builder->spec;
    uint64_t draws = 0, pass = 0;
    const enum tokmap_status status = draws_of_passes(builder, &draws, &pass);
    if (status)
        return status;
    const struct phase *last = phases_of_draw(phases, draws);
    phases->steps = last->first_step + (draws - last->first_draw) / last->batch;
    phases->remainder = (draws - last->first_draw) % last->batch;
    phases->end_draw = draws - phases->remainder;
    if (phases->remainder && spec->tail_pad) {
        phases->steps++;
        phases->remainder = 0;
        phases->end_draw = draws;
    }
    const bool one = spec->passes == 1;
    if (phases->steps == 0)
        return wrong_at(builder, TOKMAP_ERROR_RANGE, spec->lines[RUN_BATCH],
                        "%" PRIu64 " pass%s over %" PRIu64 " window%s do%s not fill a global batch of %" PRIu64 " "
                        "rows; lower batch or seq_len, or raise passes",
                        spec->passes, one ? "" : "es", pass, pass == 1 ? "" : "s", one ? "es" : "", last->batch);
    phases->steps_most = phases->steps;
    return TOKMAP_OK;
}

static enum tokmap_status end_by_steps(struct builder *builder)
{
    struct phases *phases = builder->phases;
    const struct run_spec *spec = builder->spec;
    const struct phase *last = &phases->phases[phases->count - 1];
    const uint64_t most = last->first_step + (RUN_DRAWS_MOST - last->first_draw) / last->batch;
    if (spec->steps != TOKMAP_FOREVER && spec->steps > most)
        return wrong_at(builder, TOKMAP_ERROR_RANGE, spec->lines[RUN_STEPS],
                        "%" PRIu64 " steps of %" PRIu64 " rows have more than 2^63 rows; lower steps to %" PRIu64
                        " or less",
                        spec->steps, last->batch, most);
    phases->steps = spec->steps;
    phases->steps_most = min64(spec->steps, most);
    last = phases_of_step(phases, phases->steps_most - 1); /* a run has at least one step */
    phases->end_draw = last->first_draw + (phases->steps_most - last->first_step) * last->batch;
    return TOKMAP_OK;
}

static void stretch_free(struct mixture_span *stretch)
{
    if (stretch->owns_mixture)
        mixture_free(stretch->mixture);
    free(stretch->leaves);
}

/* Leaves out the phases and stretches that begin at the run's end or later. */
static void cut_at_end(struct phases *phases)
{
    phases->count_all = phases->count;
    phases->stretch_count_all = phases->stretch_count;
    while (phases->count > 1 && phases->phases[phases->count - 1].first_step >= phases->steps_most)
        phases->count--;
    phases->stretch_count = phases->phases[phases->count - 1].stretch + 1;
    phases->stretches[phases->stretch_count - 1].end_draw = phases->end_draw;
    for (uint64_t i = 0; i < phases->count; i++) {
        phases->batch_most = max64(phases->batch_most, phases->phases[i].batch);
        phases->seq_len_most = max64(phases->seq_len_most, phases->phases[i].seq_len);
    }
}

/* ---- checks against the end ---- */

/* Fails if a source needs more epochs than its line allows. */
static enum tokmap_status check_epochs(const struct builder *builder)
{
    const struct phases *phases = builder->phases;
    for (uint64_t i = 0; i < phases->stretch_count; i++) {
        const struct mixture_span *stretch = &phases->stretches[i];
        uint64_t first = stretch->end_draw, source = 0;
        for (uint64_t j = 0; j < stretch->leaf_count; j++) {
            const struct leaf *leaf = &stretch->leaves[j];
            const uint64_t most = builder->sources[leaf->source].epochs_most;
            const uint64_t from = leaf->k_first + leaf->offset;
            const wide end = most > leaf->epoch_first ? (wide)(most - leaf->epoch_first) * leaf->windows : 0;
            if (most == 0 || end >= RUN_DRAWS_MOST)
                continue;
            const uint64_t draw = stretch_draw_of(stretch, j, max64((uint64_t)end, from));
            if (draw < first) {
                first = draw;
                source = leaf->source;
            }
        }
        if (first < stretch->end_draw) {
            const struct phase_source *of = &builder->sources[source];
            const uint64_t step = phases_step_of_draw(phases, first);
            return wrong_at(
                builder, TOKMAP_ERROR_RANGE, of->line,
                "source '%s' runs out in step %" PRIu64 ": there its %" PRIu64
                "%s, and the run %s; lower its weight, raise 'epochs<=', or end the run or its phase before that step",
                of->name, step, of->epochs_most, of->epochs_most == 1 ? " epoch is over" : " epochs are over",
                phases->steps == TOKMAP_FOREVER ? "has no end" : "continues to draw it");
        }
    }
    return TOKMAP_OK;
}

/* Returns the tokens in the steps of the mixture that began with a stretch, without the lookahead. *one: of its last
 * step. */
static wide mixture_tokens(const struct phases *phases, uint64_t stretch, wide *one)
{
    const struct mixture_span *of = &phases->stretches[stretch];
    wide tokens = 0;
    for (uint64_t i = 0; i < phases->count; i++) {
        const struct phase *phase = &phases->phases[i];
        if (phases->stretches[phase->stretch].mixture_step != of->mixture_step)
            continue;
        const uint64_t end = i + 1 < phases->count ? phase[1].first_step : phases->steps_most;
        *one = (wide)phase->batch * phase->seq_len;
        tokens += (end - phase->first_step) * *one;
    }
    return tokens;
}

/* Fails if weights in tokens are not the tokens of the mixture's steps, to within one step. */
static enum tokmap_status check_tokens(const struct builder *builder)
{
    const struct phases *phases = builder->phases;
    for (uint64_t i = 0; i < phases->stretch_count; i++) {
        const struct mixture_span *stretch = &phases->stretches[i];
        const bool last = stretch->mixture_step == phases->stretches[phases->stretch_count - 1].mixture_step;
        if (stretch->mixture_tokens == 0 || (i && stretch[-1].mixture_step == stretch->mixture_step))
            continue;
        const struct phase *phase = phases_of_draw(phases, stretch->first_draw);
        const wide step_tokens = (wide)phase->batch * phase->seq_len;
        const uint64_t fits =
            phase->first_step + (uint64_t)(((wide)stretch->mixture_tokens + step_tokens / 2) / step_tokens);
        assert(!last || phases->steps != TOKMAP_FOREVER); /* the text says where such a mixture ends */
        wide one = 0;
        const wide tokens = mixture_tokens(phases, i, &one);
        const wide apart =
            tokens > stretch->mixture_tokens ? tokens - stretch->mixture_tokens : stretch->mixture_tokens - tokens;
        if (apart > one)
            return wrong_at(builder, TOKMAP_ERROR_RANGE, stretch->mixture_line,
                            "the weights sum to %" PRIu64 " tokens, but the steps that they are for, from step %" PRIu64
                            " on, have %" PRIu64 "; the two must agree to within a step. End them before step %" PRIu64
                            ", or change the weights",
                            stretch->mixture_tokens, stretch->mixture_step,
                            tokens > UINT64_MAX ? UINT64_MAX : (uint64_t)tokens, fits);
    }
    return TOKMAP_OK;
}

/* ---- making ---- */

static enum tokmap_status list_appearances(struct builder *builder)
{
    struct phases *phases = builder->phases;
    const uint64_t sources = builder->spec->source_count;
    uint64_t leaves = 0;
    for (uint64_t i = 0; i < phases->stretch_count; i++)
        leaves += phases->stretches[i].leaf_count;
    uint64_t *of = phases->appearances_of = calloc(sources + 2, sizeof *of);
    phases->appearances = malloc(leaves * sizeof *phases->appearances);
    if (!of || !phases->appearances)
        return error_set_memory(builder->error, "the sources of the phases",
                                leaves * sizeof *phases->appearances + (sources + 2) * sizeof *of);
    /* of[i + 2] counts source i; then of[i + 1] is where it begins, and, after the second loop, where it ends. */
    for (uint64_t i = 0; i < phases->stretch_count; i++)
        for (uint64_t j = 0; j < phases->stretches[i].leaf_count; j++)
            of[phases->stretches[i].leaves[j].source + 2]++;
    for (uint64_t i = 2; i < sources + 2; i++)
        of[i] += of[i - 1];
    for (uint64_t i = 0; i < phases->stretch_count; i++)
        for (uint64_t j = 0; j < phases->stretches[i].leaf_count; j++)
            phases->appearances[of[phases->stretches[i].leaves[j].source + 1]++] =
                (struct appearance){.stretch = (uint32_t)i, .leaf = (uint32_t)j};
    return TOKMAP_OK;
}

static enum tokmap_status builder_init(struct builder *builder)
{
    struct phases *phases = builder->phases;
    const uint64_t sources = builder->spec->source_count, lines = builder->spec->phase_count + 1;
    *phases = (struct phases){.steps = TOKMAP_FOREVER};
    builder->by_name = calloc(sources, sizeof *builder->by_name);
    builder->rank = calloc(sources, sizeof *builder->rank);
    builder->chosen = calloc(sources, sizeof *builder->chosen);
    builder->weights = calloc(sources, sizeof *builder->weights);
    builder->states = calloc(sources, sizeof *builder->states);
    phases->phases = calloc(lines, sizeof *phases->phases);
    phases->stretches = calloc(lines, sizeof *phases->stretches);
    if (!builder->by_name || !builder->rank || !builder->chosen || !builder->weights || !builder->states ||
        !phases->phases || !phases->stretches)
        return error_set_memory(builder->error, "the run's phases",
                                sources * (2 * sizeof *builder->by_name + sizeof *builder->states) +
                                    lines * (sizeof *phases->phases + sizeof *phases->stretches));
    for (uint64_t i = 0; i < sources; i++)
        builder->by_name[i] = (struct ranked){.name = builder->sources[i].name, .source = i};
    qsort(builder->by_name, sources, sizeof *builder->by_name, compare_names);
    for (uint64_t i = 0; i < sources; i++) {
        builder->by_name[i].rank = i;
        builder->rank[builder->by_name[i].source] = i;
    }
    return TOKMAP_OK;
}

enum tokmap_status phases_make(struct phases *phases, const struct run_spec *spec, const struct phase_source *sources,
                               const char *path, bool from_text, struct tokmap_error *error)
{
    assert(spec->source_count > 0);
    struct builder builder = {
        .phases = phases,
        .spec = spec,
        .sources = sources,
        .path = path,
        .from_text = from_text,
        .error = error,
    };
    enum tokmap_status status = builder_init(&builder);
    if (!status)
        status = add_phases(&builder);
    if (!status)
        status = spec->passes != TOKMAP_FOREVER ? end_by_passes(&builder) : end_by_steps(&builder);
    if (!status) {
        cut_at_end(phases);
        if (!(status = check_tokens(&builder)) && !(status = check_epochs(&builder)))
            status = list_appearances(&builder);
    }
    free(builder.by_name);
    free(builder.rank);
    free(builder.chosen);
    free(builder.weights);
    free(builder.states);
    return status;
}

void phases_free(struct phases *phases)
{
    for (uint64_t i = 0; i < max64(phases->stretch_count, phases->stretch_count_all); i++)
        stretch_free(&phases->stretches[i]);
    free(phases->phases);
    free(phases->stretches);
    free(phases->appearances);
    free(phases->appearances_of);
    *phases = (struct phases){0};
}
