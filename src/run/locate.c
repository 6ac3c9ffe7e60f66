/*
 * locate.c - which window a row of a step shows, and which rows show a token.
 *
 * Forward. With G rows in a step, n windows in an epoch, S tokens in a sequence, and T tokens in the dataset:
 *
 *     row j of step t takes draw p = t * G + rows_t(j)
 *     draw p shows window i = windows_e(p mod n) of epoch e = p / n
 *     window i begins at token (shift_e + i * S) mod T
 *
 * rows_t and windows_e are keyed permutations. Example: G = 4, n = 10, S = 100. Row 1 of step 3 takes draw 12 +
 * rows_3(1), say 12 + 2 = 14. That is draw 4 of epoch 1. If windows_1(4) = 7, the row shows the 100 tokens from shift_1
 * + 700 and the lookahead.
 *
 * Back. Each of the three mappings is a bijection that can be undone, so the inverse costs as much as the forward
 * direction. With a lookahead of L tokens, token x is, in epoch e and with d = (x - shift_e) mod T, in the windows
 *
 *     max(0, ceil((d - S - L + 1) / S)) to min(n - 1, floor(d / S))
 *
 * Measured in d, no window crosses the seam (d = 0), but a range of tokens can; it is then searched as two ranges of d.
 * The obvious alternative, a table of all rows, would need memory and a build pass in proportion to the run; this needs
 * neither.
 */
#include "locate.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "order/permutation.h"
#include "run_state.h"

static struct order_key source_key(const struct tokmap_run *run, const char *tag, uint64_t epoch)
{
    return order_key(tag, run->spec.seed, run->spec.sources[0].name, strlen(run->spec.sources[0].name), epoch);
}

/* The first token of the epoch's first window. */
static uint64_t epoch_shift(const struct tokmap_run *run, uint64_t epoch)
{
    if (epoch == 0 || run->spec.ordering == TOKMAP_SEQUENTIAL)
        return 0;
    return order_key_below(source_key(run, KEY_SHIFT, epoch), run->spec.seq_len);
}

/* ---- forward ---- */

void run_walk_init(struct run_walk *walk, const struct tokmap_run *run)
{
    walk->run = run;
    walk->step_known = walk->epoch_known = false;
}

static void walk_to_step(struct run_walk *walk, uint64_t step)
{
    const struct tokmap_run *run = walk->run;
    walk->step = step;
    walk->step_known = true;
    walk->step_base = step * run->spec.batch;
    if (run->spec.ordering == TOKMAP_SHUFFLE)
        permutation_init(&walk->rows_order, order_key(KEY_ROWS, run->spec.seed, "", 0, step), run->spec.batch);
}

static void walk_to_epoch(struct run_walk *walk, uint64_t epoch)
{
    const struct tokmap_run *run = walk->run;
    walk->epoch = epoch;
    walk->epoch_known = true;
    walk->epoch_first = epoch * run->windows;
    walk->shift = epoch_shift(run, epoch);
    if (run->spec.ordering == TOKMAP_SHUFFLE)
        permutation_init(&walk->windows_order, source_key(run, KEY_WINDOWS, epoch), run->windows);
}

static void fill_place(const struct tokmap_run *run, struct tokmap_place *place, uint64_t step, uint64_t row,
                       uint64_t draw, uint64_t epoch, uint64_t window, uint64_t shift)
{
    place->step = step;
    place->row = row;
    place->draw = draw;
    place->source = 0;
    place->epoch = epoch;
    place->window = window;
    /* Below T: shift < S, and the last window starts at most at T - S - L. Only the end of a window can wrap. */
    place->first_token = shift + window * run->spec.seq_len;
    place->tokens = run->row_tokens;
}

void run_walk_place(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place)
{
    const struct tokmap_run *run = walk->run;
    bool shuffle = run->spec.ordering == TOKMAP_SHUFFLE;
    assert(step < run->steps_most && row < run->spec.batch);
    if (!walk->step_known || walk->step != step)
        walk_to_step(walk, step);
    uint64_t draw = walk->step_base + (shuffle ? permutation_forward(&walk->rows_order, row) : row);
    if (!walk->epoch_known || draw - walk->epoch_first >= run->windows)
        walk_to_epoch(walk, draw / run->windows);
    uint64_t window = draw - walk->epoch_first;
    if (shuffle)
        window = permutation_forward(&walk->windows_order, window);
    fill_place(run, place, step, row, draw, walk->epoch, window, walk->shift);
}

enum tokmap_status run_walk_locate(struct run_walk *walk, uint64_t step, uint64_t row, struct tokmap_place *place,
                                   struct tokmap_error *error)
{
    const struct tokmap_run *run = walk->run;
    if (step >= run->steps_most)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "step %" PRIu64 " does not exist: the run ends %s step %" PRIu64 "; ask for an earlier step",
                         step, run->steps == TOKMAP_FOREVER ? "at 2^63 rows, before" : "before", run->steps_most);
    if (row >= run->spec.batch)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "row %" PRIu64 " does not exist: a step of the run has %" PRIu64 " rows, counted from 0", row,
                         run->spec.batch);
    run_walk_place(walk, step, row, place);
    return TOKMAP_OK;
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

/* ---- inverse ---- */

struct search {
    const struct tokmap_run *run;
    uint64_t first_step, end_step;
    uint64_t first_draw, end_draw; /* draws of these steps */
    int (*found)(void *user, const struct tokmap_place *place);
    void *user;
    uint64_t shift;            /* of the epoch at hand */
    struct tokmap_order order; /* likewise */
};

/* Calls found() if the window of the epoch is drawn in the steps searched. Returns false if found() ended the
 * search. */
static bool search_window(struct search *search, uint64_t epoch, uint64_t window)
{
    const struct tokmap_run *run = search->run;
    bool shuffle = run->spec.ordering == TOKMAP_SHUFFLE;
    uint64_t draw = epoch * run->windows + (shuffle ? permutation_inverse(&search->order, window) : window);
    if (draw < search->first_draw || draw >= search->end_draw)
        return true;
    uint64_t step = draw / run->spec.batch, row = draw % run->spec.batch;
    if (!tokmap_run_delivers(run, step))
        return true;
    if (shuffle) {
        struct tokmap_order rows;
        permutation_init(&rows, order_key(KEY_ROWS, run->spec.seed, "", 0, step), run->spec.batch);
        row = permutation_inverse(&rows, row);
    }
    struct tokmap_place place;
    fill_place(run, &place, step, row, draw, epoch, window, search->shift);
    return search->found(search->user, &place) == 0;
}

/* Reports the windows [*first, *end) that contain any d in [from, to). */
static void windows_of(const struct tokmap_run *run, uint64_t from, uint64_t to, uint64_t *first, uint64_t *end)
{
    *first = from < run->row_tokens ? 0 : (from - run->row_tokens) / run->spec.seq_len + 1;
    *end = from < to ? min64((to - 1) / run->spec.seq_len + 1, run->windows) : 0;
}

static bool search_epoch(struct search *search, uint64_t epoch, uint64_t first_token, uint64_t count)
{
    const struct tokmap_run *run = search->run;
    search->shift = epoch_shift(run, epoch);
    if (run->spec.ordering == TOKMAP_SHUFFLE)
        permutation_init(&search->order, source_key(run, KEY_WINDOWS, epoch), run->windows);
    assert(search->shift <= run->tokens);
    uint64_t from =
        first_token >= search->shift ? first_token - search->shift : first_token + (run->tokens - search->shift);
    uint64_t to = from + count, past_seam = to > run->tokens ? to - run->tokens : 0;
    uint64_t first, end, early_end = 0;
    if (past_seam) {
        windows_of(run, 0, past_seam, &first, &early_end);
        for (uint64_t window = first; window < early_end; window++)
            if (!search_window(search, epoch, window))
                return false;
    }
    windows_of(run, from, min64(to, run->tokens), &first, &end);
    for (uint64_t window = max64(first, early_end); window < end; window++)
        if (!search_window(search, epoch, window))
            return false;
    return true;
}

enum tokmap_status tokmap_run_find(const struct tokmap_run *run, uint64_t source, uint64_t first_token, uint64_t count,
                                   uint64_t first_step, uint64_t end_step,
                                   int (*found)(void *user, const struct tokmap_place *place), void *user,
                                   struct tokmap_error *error)
{
    if (!run || !found)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or found is NULL; pass both");
    if (source > 0)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "source %" PRIu64 " does not exist: the run has one source, number 0", source);
    if (first_token > run->tokens || count > run->tokens - first_token)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " tokens from token %" PRIu64
                         " on are more than dataset '%s' has, which is %" PRIu64,
                         count, first_token, run->spec.sources[0].data, run->tokens);
    if (end_step == TOKMAP_FOREVER && run->steps == TOKMAP_FOREVER)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "the run has no end, so the search needs one; set end_step to the step before which it ends");
    if (first_step > end_step)
        return error_set(error, TOKMAP_ERROR_RANGE, run->path, TOKMAP_NO_OFFSET,
                         "the search would begin at step %" PRIu64 " and end before step %" PRIu64 "; swap the two",
                         first_step, end_step);
    struct search search = {
        .run = run,
        .first_step = first_step,
        .end_step = min64(end_step, run->steps_most),
        .found = found,
        .user = user,
    };
    if (count == 0 || search.first_step >= search.end_step)
        return TOKMAP_OK;
    search.first_draw = search.first_step * run->spec.batch;
    search.end_draw = search.end_step * run->spec.batch;
    uint64_t last_epoch = (search.end_draw - 1) / run->windows;
    for (uint64_t epoch = search.first_draw / run->windows; epoch <= last_epoch; epoch++)
        if (!search_epoch(&search, epoch, first_token, count))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, run->path, TOKMAP_NO_OFFSET,
                             "the caller ended the search");
    return TOKMAP_OK;
}
