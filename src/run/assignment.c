/* SPDX-License-Identifier: MIT */
/* assignment.c - see assignment.h. */
#include "assignment.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "row_cost.h"
#include "run.h"
#include "run_state.h"

#define BALANCED_ROWS_MOST ((uint64_t)1 << 24) /* of a step: their costs sum up to less than 2^127 */
#define ROWS_AT_ONCE 256

static enum tokmap_status check(const struct tokmap_run *run, struct tokmap_error *error)
{
    for (uint64_t i = 0; i < run->sources.count; i++) {
        const struct run_source *source = &run->sources.of[i];
        if (!source->plan_path && dataset_scans_documents(source->dataset))
            return error_set_field(error, TOKMAP_ERROR_UNSUPPORTED, source->data, "balance",
                                   " needs to know where documents end, but source '%s' has no document index; make "
                                   "one with `tokmap index`, or set balance to 0",
                                   source->name);
    }
    if (run->phases.batch_most > BALANCED_ROWS_MOST)
        return error_set_field(error, TOKMAP_ERROR_LIMIT, NULL, "balance",
                               " works with at most 2^24 rows of a step, but the run has steps of %" PRIu64
                               " rows; lower batch, or set balance to 0",
                               run->phases.batch_most);
    return TOKMAP_OK;
}

enum tokmap_status assignment_init(struct assignment *assignment, const struct tokmap_run *run,
                                   const struct assignment_rule *rule, struct tokmap_error *error)
{
    *assignment = (struct assignment){.run = run, .rule = *rule};
    if (!rule->scale)
        return TOKMAP_OK;
    enum tokmap_status status = check(run, error);
    if (status)
        return status;
    uint64_t cells = 0;
    const uint64_t rows = run->phases.batch_most;
    for (uint64_t i = 0; i < run->phases.count; i++)
        cells = max64(cells, rule->world * run_calls(run->phases.phases[i].batch, rule->world, rule->rows));
    run_walk_init(&assignment->walk, run);
    assignment->row_at = calloc(rows, sizeof *assignment->row_at);
    assignment->cost = calloc(rows, sizeof *assignment->cost);
    assignment->sorted = calloc(rows, sizeof *assignment->sorted);
    assignment->cell_of = calloc(rows, sizeof *assignment->cell_of);
    assignment->cell = calloc(cells, sizeof *assignment->cell);
    assignment->reached = calloc(cells, sizeof *assignment->reached);
    assignment->places = calloc(ROWS_AT_ONCE, sizeof *assignment->places);
    assignment->extents = calloc(run_extents_most(run), sizeof *assignment->extents);
    if (!assignment->row_at || !assignment->cost || !assignment->sorted || !assignment->cell_of || !assignment->cell ||
        !assignment->reached || !assignment->places || !assignment->extents)
        return error_set_memory(error, "the costs of rows", rows * 80);
    return run_walk_keep(&assignment->walk, error);
}

void assignment_free(struct assignment *assignment)
{
    run_walk_free(&assignment->walk);
    free(assignment->row_at);
    free(assignment->cost);
    free(assignment->sorted);
    free(assignment->cell_of);
    free(assignment->cell);
    free(assignment->reached);
    free(assignment->places);
    free(assignment->extents);
    *assignment = (struct assignment){0};
}

/* Computes the costs of the rows of a step. */
static enum tokmap_status find_costs(struct assignment *assignment, const struct run_step *phase,
                                     struct tokmap_error *error)
{
    const uint64_t extents_most = run_extents_most(assignment->run);
    uint64_t rows[ROWS_AT_ONCE], count;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t first = 0; first < phase->batch && !status; first += count) {
        count = min64(phase->batch - first, ROWS_AT_ONCE);
        for (uint64_t i = 0; i < count; i++)
            rows[i] = first + i;
        run_walk_rows(&assignment->walk, assignment->step, rows, count, assignment->places);
        for (uint64_t i = 0; i < count && !status; i++)
            status = row_cost(assignment->run, &assignment->places[i], phase->seq_len, assignment->rule.scale,
                              assignment->extents, extents_most, &assignment->cost[first + i], error);
    }
    return status;
}

/* Lists the cells, and sets reached[] to the first position of each. */
static void find_cells(struct assignment *assignment, uint64_t batch)
{
    const struct assignment_rule *rule = &assignment->rule;
    const uint64_t calls = run_calls(batch, rule->world, rule->rows);
    assignment->cells = calls * rule->world;
    for (uint64_t i = 0; i < assignment->cells; i++) {
        struct balance_cell *cell = &assignment->cell[i];
        uint64_t first, count;
        run_rank_rows(batch, i % rule->world, rule->world, &first, &count);
        *cell = (struct balance_cell){.number = i};
        run_call_rows(count, i / rule->world, calls, &assignment->reached[i], &cell->room);
        assignment->reached[i] += first;
    }
}

static void balance(struct assignment *assignment, uint64_t batch)
{
    find_cells(assignment, batch);
    for (uint64_t row = 0; row < batch; row++)
        assignment->sorted[row] = (struct balance_row){.cost = assignment->cost[row], .row = row};
    balance_rows(assignment->sorted, batch, assignment->cell, assignment->cells);
    for (uint64_t i = 0; i < batch; i++)
        assignment->cell_of[assignment->sorted[i].row] = assignment->sorted[i].cell;
    for (uint64_t row = 0; row < batch; row++)
        assignment->row_at[assignment->reached[assignment->cell_of[row]]++] = row;
}

enum tokmap_status assignment_step(struct assignment *assignment, uint64_t step, struct tokmap_error *error)
{
    struct run_step phase;
    if (!assignment->row_at || (assignment->known && assignment->step == step))
        return TOKMAP_OK;
    assert(step < assignment->run->phases.steps_most);
    assignment->known = false;
    assignment->step = step;
    run_phase_of(assignment->run, step, &phase);
    assert(assignment->rule.world <= phase.batch);
    const enum tokmap_status status = find_costs(assignment, &phase, error);
    if (status)
        return status;
    balance(assignment, phase.batch);
    assignment->known = true;
    return TOKMAP_OK;
}
