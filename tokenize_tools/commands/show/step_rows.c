/* SPDX-License-Identifier: MIT */
#include "step_rows.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/row_cost.h"
#include "run/run.h"

static enum tokmap_status no_step(const struct tokmap_run *run, const char *name, uint64_t step,
                                  struct tokmap_error *error)
{
    const struct tokmap_run_info info = info_of_run(run);
    if (info.steps == TOKMAP_FOREVER)
        return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                         "step %" PRIu64 " does not exist: the steps before it have the 2^63 rows of the longest "
                         "run; name an earlier one",
                         step);
    return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                     "step %" PRIu64 " is past the end of the run, whose steps are 0 to %" PRIu64, step,
                     info.steps - 1);
}

/* Assigns the rows of the step, if that is chosen. */
static enum tokmap_status assign(struct step_rows *rows, const struct tokmap_run *run, const struct step_choice *choice,
                                 struct tokmap_error *error)
{
    struct assignment_rule rule = {choice->rank_given ? choice->ranks : 1, choice->rows, 0, choice->nodes};
    enum tokmap_status status = TOKMAP_OK;
    if (choice->balance != 0)
        status = row_cost_scale(choice->balance, &rule.scale, error);
    if (!status)
        status = assignment_init(&rows->assignment, run, &rule, error);
    return status ? status : assignment_step(&rows->assignment, choice->step, error);
}

enum tokmap_status step_rows_slice(struct step_rows *rows, const struct tokmap_run *run, const char *name,
                                   const struct step_choice *choice, struct tokmap_error *error)
{
    const uint64_t batch = tokmap_run_rows(run, choice->step);
    *rows = (struct step_rows){.count = batch};
    if (!batch)
        return no_step(run, name, choice->step, error);
    if (choice->rank_given && choice->rank >= choice->ranks)
        return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                         "rank %" PRIu64 " does not exist; with --ranks %" PRIu64 " ranks are below %" PRIu64,
                         choice->rank, choice->ranks, choice->ranks);
    if (choice->rank_given && choice->ranks > batch)
        return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " ranks cannot share a global batch of %s", choice->ranks,
                         CLI_COUNTED(batch, "row"));
    if (choice->rank_given)
        run_rank_rows(batch, choice->rank, choice->ranks, &rows->first, &rows->count);
    if (choice->call_given) {
        const uint64_t calls = run_calls(batch, choice->ranks, choice->rows);
        uint64_t first;
        if (choice->call >= calls)
            return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                             "call %" PRIu64 " does not exist; each rank gets its rows of step %" PRIu64
                             " in %s, numbered from 0; --rows is the most rows of a call, as the loaders had it",
                             choice->call, choice->step, CLI_COUNTED(calls, "call"));
        run_call_rows(rows->count, choice->call, calls, &first, &rows->count);
        rows->first += first;
    }
    if (choice->row_given && choice->row >= rows->count)
        return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                         "row %" PRIu64 " does not exist; %s %s, numbered from 0", choice->row,
                         choice->rank_given ? "the slice of the rank has" : "the step has",
                         CLI_COUNTED(rows->count, "row"));
    if (choice->row_given) {
        rows->first += choice->row;
        rows->count = 1;
    }
    return TOKMAP_OK;
}

enum tokmap_status step_rows_find(struct step_rows *rows, const struct tokmap_run *run, const char *name,
                                  const struct step_choice *choice, struct tokmap_error *error)
{
    const enum tokmap_status status = step_rows_slice(rows, run, name, choice, error);
    return status ? status : assign(rows, run, choice, error);
}

void step_rows_free(struct step_rows *rows)
{
    assignment_free(&rows->assignment);
}

/* ---- tokens of rows ---- */

static enum tokmap_status add(struct row_pieces *pieces, uint64_t first, uint64_t tokens, bool excluded,
                              struct tokmap_error *error)
{
    uint64_t room = pieces->capacity;
    if (!list_room(&pieces->extents, pieces->count, &room, sizeof *pieces->extents) ||
        !list_room(&pieces->excluded, pieces->count, &pieces->capacity, sizeof *pieces->excluded))
        return error_set_memory(error, "the pieces of a row", pieces->count * sizeof *pieces->extents);
    pieces->extents[pieces->count] = (struct tokmap_extent){first, tokens};
    pieces->excluded[pieces->count++] = excluded;
    return TOKMAP_OK;
}

enum tokmap_status row_pieces_cut(struct row_pieces *pieces, const struct tokmap_run *run,
                                  const struct tokmap_place *place, const struct tokmap_extent *extents, uint64_t count,
                                  struct tokmap_error *error)
{
    const struct exclusions *exclusions = run_exclusions(run);
    enum tokmap_status status = TOKMAP_OK;
    struct exclusion_walk walk;
    uint64_t from, hidden, row = 0; /* the extent's first token in the row */
    pieces->count = 0;
    exclusion_walk_begin(&walk, exclusions, place, extents, count);
    bool more = exclusion_walk_next(&walk, &from, &hidden);
    if (!more)
        return TOKMAP_OK;
    const uint64_t tokens = exclusions->sources->of[place->source].tokens;
    for (uint64_t i = 0; i < count && !status; row += extents[i++].tokens)
        for (uint64_t done = 0, part; done < extents[i].tokens && !status; done += part) {
            const bool excluded = more && from == row + done;
            part = excluded ? hidden : min64(extents[i].tokens - done, more ? from - row - done : UINT64_MAX);
            const uint64_t first = extents[i].first_token + done;
            status = add(pieces, extent_is_padding(&extents[i]) ? first : first % tokens, part, excluded, error);
            if (excluded)
                more = exclusion_walk_next(&walk, &from, &hidden);
        }
    return status;
}

enum tokmap_status row_pieces_add(struct row_pieces *pieces, const struct tokmap_extent *extent,
                                  struct tokmap_error *error)
{
    return add(pieces, extent->first_token, extent->tokens, false, error);
}

void row_pieces_free(struct row_pieces *pieces)
{
    free(pieces->extents);
    free(pieces->excluded);
    *pieces = (struct row_pieces){0};
}

/* ---- rows that show tokens ---- */

/* Returns how many of the tokens are in an extent, which is at most two spans of the dataset. One that is longer than
 * the dataset, which has `all` tokens, counts each token once. */
static uint64_t tokens_shared(const struct sharing *sharing, const struct tokmap_extent *extent, uint64_t all)
{
    const uint64_t start = extent->first_token, reach = min64(extent->tokens, all), head = min64(reach, all - start);
    const uint64_t spans[2][2] = {{start, start + head}, {0, reach - head}};
    uint64_t shared = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t from = max64(sharing->first, spans[i][0]);
        const uint64_t to = min64(sharing->first + sharing->tokens, spans[i][1]);
        shared += to > from ? to - from : 0;
    }
    return shared;
}

static int row_found(void *user, const struct tokmap_place *place)
{
    struct sharing *sharing = user;
    const uint64_t all = run_exclusions(sharing->run)->sources->of[place->source].tokens;
    uint64_t count, shared = 0;
    if (!sharing->left-- || !list_room(&sharing->rows, sharing->count, &sharing->capacity, sizeof *sharing->rows))
        return 1;
    if (run_row_extents(sharing->run, place, sharing->extents, run_extents_most(sharing->run), &count, NULL))
        count = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!extent_is_padding(&sharing->extents[i]))
            shared += tokens_shared(sharing, &sharing->extents[i], all);
    sharing->rows[sharing->count++] = (struct sharing_row){*place, shared};
    return 0;
}

static int by_row(const void *one, const void *other)
{
    const struct tokmap_place *a = &((const struct sharing_row *)one)->place;
    const struct tokmap_place *b = &((const struct sharing_row *)other)->place;
    return a->step != b->step ? (a->step < b->step ? -1 : 1) : a->row < b->row ? -1 : a->row > b->row;
}

enum tokmap_status sharing_find(struct sharing *sharing, uint64_t source, uint64_t first, uint64_t tokens,
                                uint64_t from, uint64_t end, uint64_t most, struct tokmap_error *error)
{
    sharing->first = first;
    sharing->tokens = tokens;
    sharing->left = most;
    if (!sharing->extents && !(sharing->extents = calloc(run_extents_most(sharing->run), sizeof *sharing->extents)))
        return error_set_memory(error, "the extents of a row", sizeof *sharing->extents);
    enum tokmap_status status =
        tokmap_run_find(sharing->run, source, first, tokens, from, end, row_found, sharing, error);
    if (status == TOKMAP_ERROR_INTERRUPTED) /* one row more than `most` was found */
        status = sharing->left == UINT64_MAX ? TOKMAP_OK
                                             : error_set_memory(error, "the rows that show tokens", sharing->count);
    if (sharing->count)
        qsort(sharing->rows, sharing->count, sizeof *sharing->rows, by_row);
    return status;
}

void sharing_free(struct sharing *sharing)
{
    free(sharing->extents);
    free(sharing->rows);
    *sharing = (struct sharing){.run = NULL};
}
