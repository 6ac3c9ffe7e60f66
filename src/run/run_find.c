/* SPDX-License-Identifier: MIT */
/*
 * run_find.c - the inverse of locate.c: which rows show a range of tokens. locate.c explains the arithmetic.
 *
 * A source's draws are searched span by span, because in a span its epochs and windows are regular, whatever the
 * mixtures are. For each epoch, the windows that hold a token of the range are computed; each window gives the source's
 * draw, and the stretch that has that draw gives the draw of the run, the step, and the row.
 */
#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "locate.h"
#include "order/permutation.h"
#include "run.h"
#include "run_state.h"

struct search {
    const struct tokmap_run *run;
    uint64_t source;
    uint64_t first_token, count;
    uint64_t first_draw, end_draw; /* of the steps searched */
    int (*found)(void *user, const struct tokmap_place *place);
    void *user;
    struct tokmap_error *error;

    /* The current span. */
    const struct appearance *appearances; /* of the source */
    uint64_t appearance_count;
    const struct mixture_span *stretch; /* any of the span */
    const struct leaf *leaf;            /* of the source in it */
    uint64_t first_s, end_s;            /* the source's draws in the steps searched */
    struct walk_epoch epoch;

    /* The row of a plan. */
    uint64_t *rows; /* that hold a token of the range, sorted */
    uint64_t row_count;
};

static enum tokmap_status interrupted(const struct search *search)
{
    return error_set(search->error, TOKMAP_ERROR_INTERRUPTED, search->run->path, TOKMAP_NO_OFFSET,
                     "the caller ended the search");
}

/* Returns the last appearance of the span whose first draw is at most s. */
static const struct appearance *appearance_of(const struct search *search, uint64_t s)
{
    uint64_t low = 0, high = search->appearance_count;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const struct appearance *appearance = &search->appearances[middle];
        const struct leaf *leaf = &search->run->phases.stretches[appearance->stretch].leaves[appearance->leaf];
        if (leaf->k_first + leaf->offset <= s)
            low = middle;
        else
            high = middle;
    }
    return &search->appearances[low];
}

/* Calls found() if the window of the epoch is drawn in the steps searched. */
static enum tokmap_status search_window(struct search *search, uint64_t window)
{
    const struct tokmap_run *run = search->run;
    const struct phases *phases = &run->phases;
    uint64_t s = window;
    if (run->spec.order == TOKMAP_SHUFFLE)
        s = permutation_inverse(&search->epoch.order.shuffle, window);
    else if (run_spec_has_blocks(&run->spec))
        s = blocks_inverse(&search->epoch.order.blocks, window);
    s += search->epoch.first;
    if (s < search->first_s || s >= search->end_s)
        return TOKMAP_OK;
    const struct appearance *appearance = appearance_of(search, s);
    const uint64_t draw = stretch_draw_of(&phases->stretches[appearance->stretch], appearance->leaf, s);
    assert(draw >= search->first_draw && draw < search->end_draw);
    const struct phase *phase = phases_of_draw(phases, draw);
    const uint64_t steps = (draw - phase->first_draw) / phase->batch, step = phase->first_step + steps;
    const uint64_t base = phase->first_draw + steps * phase->batch;
    uint64_t row = draw - base;
    if (run_next_step(run, step) != step)
        return TOKMAP_OK;
    if (run->spec.order != TOKMAP_SEQUENTIAL) {
        struct tokmap_order rows;
        permutation_init(&rows, order_key(KEY_ROWS, run->spec.seed, "", 0, step),
                         min64(phase->batch, phases->end_draw - base));
        row = permutation_inverse(&rows, row);
    }
    struct tokmap_place place = {.step = step, .row = row, .draw = draw, .window = window};
    const enum tokmap_status status = run_fill_place(run, &search->epoch, search->stretch, &place, search->error);
    if (status)
        return status;
    return search->found(search->user, &place) ? interrupted(search) : TOKMAP_OK;
}

/* Reports the windows [*first, *end) that contain any d in [from, to). */
static void windows_of(const struct search *search, uint64_t from, uint64_t to, uint64_t *first, uint64_t *end)
{
    const uint64_t stride = search->stretch->stride, window = search->stretch->seq_len + search->run->spec.lookahead;
    *first = from < window ? 0 : (from - window) / stride + 1;
    *end = from < to ? min64((to - 1) / stride + 1, search->leaf->windows) : 0;
}

static enum tokmap_status search_windows(struct search *search)
{
    const uint64_t tokens = search->run->sources.of[search->source].tokens, shift = search->epoch.shift;
    enum tokmap_status status = TOKMAP_OK;
    assert(shift <= tokens);
    const uint64_t from =
        search->first_token >= shift ? search->first_token - shift : search->first_token + (tokens - shift);
    const uint64_t to = from + search->count, past_seam = to > tokens ? to - tokens : 0;
    uint64_t first, end, early_end = 0;
    if (past_seam) {
        windows_of(search, 0, past_seam, &first, &early_end);
        for (uint64_t window = first; !status && window < early_end; window++)
            status = search_window(search, window);
    }
    windows_of(search, from, min64(to, tokens), &first, &end);
    for (uint64_t window = max64(first, early_end); !status && window < end; window++)
        status = search_window(search, window);
    return status;
}

/* Searches the epochs of the source's draws [first_s, end_s) of the span. */
static enum tokmap_status search_span(struct search *search)
{
    const struct leaf *leaf = search->leaf;
    enum tokmap_status status = TOKMAP_OK;
    const uint64_t last = leaf->epoch_first + (search->end_s - 1) / leaf->windows;
    for (uint64_t epoch = leaf->epoch_first + search->first_s / leaf->windows; !status && epoch <= last; epoch++) {
        run_epoch_init(&search->epoch, search->run, search->stretch, leaf, epoch);
        if (!search->run->sources.of[search->source].plan_path)
            status = search_windows(search);
        for (uint64_t i = 0; !status && i < search->row_count; i++)
            status = search_window(search, search->rows[i]);
    }
    return status;
}

/* Searches all spans in which the source is drawn. */
static enum tokmap_status search_spans(struct search *search)
{
    const struct phases *phases = &search->run->phases;
    enum tokmap_status status = TOKMAP_OK;
    const uint64_t end = phases->appearances_of[search->source + 1];
    for (uint64_t i = phases->appearances_of[search->source], next; !status && i < end; i = next) {
        const uint64_t span = phases->stretches[phases->appearances[i].stretch].span;
        uint64_t first_s = 0, end_s = 0;
        for (next = i; next < end; next++) {
            const struct appearance *appearance = &phases->appearances[next];
            const struct mixture_span *stretch = &phases->stretches[appearance->stretch];
            if (stretch->span != span)
                break;
            const uint64_t from = max64(search->first_draw, stretch->first_draw);
            const uint64_t to = min64(search->end_draw, stretch->end_draw);
            search->stretch = stretch;
            search->leaf = &stretch->leaves[appearance->leaf];
            if (from >= to)
                continue;
            const uint64_t first = stretch_count(stretch, appearance->leaf, from) + search->leaf->offset;
            first_s = first_s < end_s ? first_s : first;
            end_s = stretch_count(stretch, appearance->leaf, to) + search->leaf->offset;
        }
        search->appearances = &phases->appearances[i];
        search->appearance_count = next - i;
        search->first_s = first_s;
        search->end_s = end_s;
        if (first_s < end_s)
            status = search_span(search);
    }
    return status;
}

/* ---- plans ---- */

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Lists the rows of the source's plan that hold a token of the range. */
static enum tokmap_status list_rows(struct search *search)
{
    const struct plan *plan = &search->run->sources.of[search->source].plan;
    uint64_t at, number, capacity = 0, count = 0;
    enum tokmap_status status = plan_find(plan, search->first_token, &at, search->error);
    for (; !status && at < plan->header.segments; at++) {
        struct plan_segment segment;
        if ((status = plan_ordered(plan, at, &number, &segment, search->error)) ||
            segment.first_token >= search->first_token + search->count)
            break;
        if (!list_room(&search->rows, count, &capacity, sizeof *search->rows))
            return error_set_memory(search->error, "the rows of a plan", capacity * sizeof *search->rows);
        status = plan_row_of(plan, number, &search->rows[count++], search->error);
    }
    if (status || count == 0)
        return status;
    qsort(search->rows, count, sizeof *search->rows, compare_numbers);
    search->row_count = 1;
    for (uint64_t i = 1; i < count; i++)
        if (search->rows[i] != search->rows[search->row_count - 1])
            search->rows[search->row_count++] = search->rows[i];
    return TOKMAP_OK;
}

/* ---- all ---- */

static enum tokmap_status check_search(const struct tokmap_run *run, uint64_t source, uint64_t first_token,
                                       uint64_t count, uint64_t first_step, uint64_t end_step,
                                       struct tokmap_error *error)
{
    const uint64_t sources = run->sources.count;
    if (source >= sources && sources == 1)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "source %" PRIu64 " does not exist: the run has one source, number 0", source);
    if (source >= sources)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "source %" PRIu64 " does not exist: the run has %" PRIu64 " sources, counted from 0", source,
                         sources);
    const uint64_t tokens = run->sources.of[source].tokens;
    if (first_token > tokens || count > tokens - first_token)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " tokens from token %" PRIu64
                         " on are more than dataset '%s' has, which is %" PRIu64,
                         count, first_token, run->spec.sources[source].data, tokens);
    if (end_step == TOKMAP_FOREVER && run->phases.steps == TOKMAP_FOREVER)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "the run has no end, so the search needs one; set end_step to the step before which it ends");
    if (first_step > end_step)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "the search would begin at step %" PRIu64 " and end before step %" PRIu64 "; swap the two",
                         first_step, end_step);
    return TOKMAP_OK;
}

/* Returns the first draw of a step, which is at most the run's end; from there on, the end of all draws. */
static uint64_t step_draw(const struct phases *phases, uint64_t step)
{
    const struct phase *phase = phases_of_step(phases, step);
    return step >= phases->steps_most ? phases->end_draw
                                      : phase->first_draw + (step - phase->first_step) * phase->batch;
}

enum tokmap_status tokmap_run_find(const struct tokmap_run *run, uint64_t source, uint64_t first_token, uint64_t count,
                                   uint64_t first_step, uint64_t end_step,
                                   int (*found)(void *user, const struct tokmap_place *place), void *user,
                                   struct tokmap_error *error)
{
    if (!run || !found)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or found is NULL; pass both");
    enum tokmap_status status = check_search(run, source, first_token, count, first_step, end_step, error);
    if (status || count == 0 || first_step >= end_step)
        return status;
    struct search search = {
        .run = run,
        .source = source,
        .first_token = first_token,
        .count = count,
        .first_draw = step_draw(&run->phases, first_step),
        .end_draw = step_draw(&run->phases, end_step),
        .found = found,
        .user = user,
        .error = error,
    };
    if (run->sources.of[source].plan_path)
        status = list_rows(&search);
    if (!status)
        status = search_spans(&search);
    free(search.rows);
    return status;
}
