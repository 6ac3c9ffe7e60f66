/* SPDX-License-Identifier: MIT */
/*
 * assignment.c - see assignment.h. Why nodes get rows by block as they do:
 *
 * The number of rows that a node takes is given, but how many rows of a step are at home there is not. So some rows
 * must go elsewhere, and each of them makes another node read the part of the block that it is in. It is cheap if these
 * are always rows of the same parts, and go to the same nodes. Therefore the rows that are last in their blocks are the
 * ones that move, and each block has one sequence of nodes for them. Nodes that have too many rows are neighbors where
 * the sources of a mixture have drawn unequally, so the sequence leads far away.
 *
 * With `order even` and one source, nodes have too many rows by at most one, and in a mixture by some. With 64 nodes of
 * 16 rows a step, and blocks of 64 MiB that are read in parts of 4 MiB, each byte was read 1.07 times with one source,
 * and 1.5 times with weights of 80, 10, and 10; of 64 rows, 1.07 and 1.2 times.
 *
 * With `order blocks`, the number of rows at home varies as its square root does, and no rule comes near one reader for
 * each block. Of a node that takes g rows of each step, at most the share e of its blocks can be its own, with
 * e + z * sqrt(e / g) = 1, if the rows of these may exceed g as rarely as a normal number exceeds z: 54% with 16 rows
 * and z = 2.5, and 73% with 64 rows. All other blocks have two readers or more; these rules gave 5.5 with 16 rows.
 *
 * Example: two nodes of two rows, and rows 0 to 3 of the blocks 4, 4, 5, 4 at the places 7, 0, 3, 1. Block 4 is at home
 * on node 0 and block 5 on node 1. Node 0 takes rows 1 and 3 and is full; row 2 is at home on node 1, and row 0 follows
 * it there.
 */
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

struct affine_row {
    uint64_t row;  /* its number in the step */
    uint64_t at;   /* its place in its block */
    uint64_t home; /* below the number of nodes */
};

/* Checks that nodes can have rows by block. */
static enum tokmap_status check_nodes(const struct tokmap_run *run, const struct assignment_rule *rule,
                                      struct tokmap_error *error)
{
    if (rule->world % rule->nodes)
        return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "nodes",
                               " is %" PRIu64 ", which does not divide the %" PRIu64
                               " ranks; each node must have the same number of ranks",
                               rule->nodes, rule->world);
    if (rule->scale)
        return error_set_field(error, TOKMAP_ERROR_UNSUPPORTED, NULL, "nodes",
                               " and balance both say which rank gets which row; set one of them to 0");
    if (!run_spec_has_blocks(&run->spec))
        return error_set_field(
            error, TOKMAP_ERROR_UNSUPPORTED, run->path, "nodes",
            " needs a run with 'order even W SPAN' or 'order blocks W SPAN': with another order, a "
            "step has rows of all blocks, or of one; set nodes to 0, or write such a line before the "
            "run starts");
    return TOKMAP_OK;
}

static enum tokmap_status check(const struct tokmap_run *run, const struct assignment_rule *rule,
                                struct tokmap_error *error)
{
    const bool by_node = rule->nodes > 1;
    const enum tokmap_status status = by_node ? check_nodes(run, rule, error) : TOKMAP_OK;
    if (status)
        return status;
    for (uint64_t i = 0; i < run->sources.count && !by_node; i++) {
        const struct run_source *source = &run->sources.of[i];
        if (!source->plan_path && dataset_scans_documents(source->dataset))
            return error_set_field(error, TOKMAP_ERROR_UNSUPPORTED, source->data, "balance",
                                   " needs to know where documents end, but source '%s' has no document index; make "
                                   "one with `tokmap index`, or set balance to 0",
                                   source->name);
    }
    if (run->phases.batch_most > BALANCED_ROWS_MOST)
        return error_set_field(error, TOKMAP_ERROR_LIMIT, NULL, by_node ? "nodes" : "balance",
                               " works with at most 2^24 rows of a step, but the run has steps of %" PRIu64
                               " rows; lower batch, or set %s to 0",
                               run->phases.batch_most, by_node ? "nodes" : "balance");
    return TOKMAP_OK;
}

enum tokmap_status assignment_init(struct assignment *assignment, const struct tokmap_run *run,
                                   const struct assignment_rule *rule, struct tokmap_error *error)
{
    *assignment = (struct assignment){.run = run, .rule = *rule};
    const bool by_node = rule->nodes > 1;
    if (!rule->scale && !by_node)
        return TOKMAP_OK;
    enum tokmap_status status = check(run, rule, error);
    if (status)
        return status;
    uint64_t cells = by_node ? rule->nodes : 0;
    const uint64_t rows = run->phases.batch_most;
    for (uint64_t i = 0; i < run->phases.count && !by_node; i++)
        cells = max64(cells, rule->world * run_calls(run->phases.phases[i].batch, rule->world, rule->rows));
    run_walk_init(&assignment->walk, run);
    assignment->row_at = calloc(rows, sizeof *assignment->row_at);
    assignment->affine = calloc(by_node ? rows : 1, sizeof *assignment->affine);
    assignment->cost = calloc(by_node ? 1 : rows, sizeof *assignment->cost);
    assignment->sorted = calloc(by_node ? 1 : rows, sizeof *assignment->sorted);
    assignment->cell_of = calloc(rows, sizeof *assignment->cell_of);
    assignment->cell = calloc(cells, sizeof *assignment->cell);
    assignment->reached = calloc(cells, sizeof *assignment->reached);
    assignment->room = calloc(cells, sizeof *assignment->room);
    assignment->places = calloc(ROWS_AT_ONCE, sizeof *assignment->places);
    assignment->extents = calloc(run_extents_most(run), sizeof *assignment->extents);
    if (!assignment->row_at || !assignment->cost || !assignment->sorted || !assignment->cell_of || !assignment->cell ||
        !assignment->reached || !assignment->places || !assignment->extents || !assignment->affine || !assignment->room)
        return error_set_memory(error, "the assignment of rows", rows * 80);
    return run_walk_keep(&assignment->walk, error);
}

void assignment_free(struct assignment *assignment)
{
    run_walk_free(&assignment->walk);
    free(assignment->row_at);
    free(assignment->cost);
    free(assignment->affine);
    free(assignment->room);
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

static int by_place(const void *a, const void *b)
{
    const struct affine_row *one = a, *other = b;
    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    return one->row < other->row ? -1 : one->row > other->row;
}

/* Returns s. Below 2^54 nodes nothing overflows. */
static uint64_t stride_of(uint64_t nodes)
{
    for (uint64_t s = (nodes * 618 + 999) / 1000;; s++) {
        uint64_t a = s, b = nodes;
        while (b) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return s;
    }
}

/* Writes the node of each row to node_of[row]. The rows are then in no order, and room[], `count` together, is used
 * up. */
static void find_nodes(struct affine_row *rows, uint64_t count, uint64_t *room, uint64_t nodes, uint64_t *node_of)
{
    qsort(rows, count, sizeof *rows, by_place);
    const uint64_t step = stride_of(nodes) % nodes;
    for (uint64_t round = 0, away = 0; count; round++, away = (away + step) % nodes) {
        uint64_t left = 0;
        assert(round < nodes);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t node = (rows[i].home + away) % nodes;
            if (!room[node]) {
                rows[left++] = rows[i];
                continue;
            }
            room[node]--;
            node_of[rows[i].row] = node;
        }
        count = left;
    }
}

/* Gives the rows to nodes, and puts those of each node, by number, at the positions of its ranks. */
static void bring_home(struct assignment *assignment, uint64_t batch)
{
    const struct assignment_rule *rule = &assignment->rule;
    const uint64_t per_node = rule->world / rule->nodes;
    uint64_t rows[ROWS_AT_ONCE], count, last;
    for (uint64_t first = 0; first < batch; first += count) {
        count = min64(batch - first, ROWS_AT_ONCE);
        for (uint64_t i = 0; i < count; i++)
            rows[i] = first + i;
        run_walk_rows(&assignment->walk, assignment->step, rows, count, assignment->places);
        for (uint64_t i = 0; i < count; i++) {
            struct affine_row *row = &assignment->affine[first + i];
            *row = (struct affine_row){first + i, UINT64_MAX, 0}; /* of padding, which has no block and is last */
            if (assignment->places[i].source != TOKMAP_NO_SOURCE)
                row->home = run_walk_block(&assignment->walk, &assignment->places[i], &row->at) % rule->nodes;
        }
    }
    for (uint64_t node = 0; node < rule->nodes; node++) {
        run_rank_rows(batch, node * per_node, rule->world, &assignment->reached[node], &count);
        run_rank_rows(batch, (node + 1) * per_node - 1, rule->world, &last, &count);
        assignment->room[node] = last + count - assignment->reached[node];
    }
    find_nodes(assignment->affine, batch, assignment->room, rule->nodes, assignment->cell_of);
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
    const bool by_node = assignment->rule.nodes > 1;
    const enum tokmap_status status = by_node ? TOKMAP_OK : find_costs(assignment, &phase, error);
    if (status)
        return status;
    (by_node ? bring_home : balance)(assignment, phase.batch);
    assignment->known = true;
    return TOKMAP_OK;
}
