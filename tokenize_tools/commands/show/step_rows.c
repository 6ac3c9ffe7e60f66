/* SPDX-License-Identifier: MIT */
/* step_rows.c - see step_rows.h. */
#include "step_rows.h"

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "run/row_cost.h"
#include "run/run.h"

static enum tokmap_status no_step(const struct tokmap_run *run, const char *name, uint64_t step,
                                  struct tokmap_error *error)
{
    struct tokmap_run_info info;
    run_describe(run, &info);
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
