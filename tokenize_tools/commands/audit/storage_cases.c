/* SPDX-License-Identifier: MIT */
/*
 * storage_cases.c - see storage_cases.h.
 *
 * The rows of a node are those of its ranks, step by step and, in a step, rank by rank. Each row uses the blocks that
 * it is in (dataset_fetch.h), and cache_model.c says which of these uses are fetched. Nodes are alike, so of many rows
 * some nodes are simulated, and if these still have too many, the first steps: up to ROWS_MOST rows are located and
 * USES_MOST uses are kept. The sums are then scaled to all nodes and steps. That is too much where a later epoch would
 * find in the cache what an earlier one fetched, and exact to some blocks for `order even` and `order blocks`, where a
 * block is used in one span of an epoch.
 */
#include "storage_cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache_model.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_fetch.h"
#include "platform/process.h"
#include "run/assignment.h"
#include "run/run.h"

#define ROWS_MOST ((uint64_t)1 << 23)
#define USES_MOST ((uint64_t)1 << 25)
#define NODES_MOST 64u
#define GROUP_STEPS 100u
#define ROWS_AT_ONCE 256
#define BLOCKS_OF_ORDER 16u /* of storage, in a block of an order that is proposed */
#define SPAN_OF_NODE 4u     /* blocks of a span of it for each node */

struct node_uses {
    uint64_t node;
    uint32_t *uses;
    uint64_t count, room;
    uint64_t *ends; /* uses before the end of each group of steps */
    uint64_t ends_room;
};

struct simulated_source {
    const struct tokmap_dataset *dataset;
    uint64_t tokens, width;
    uint64_t first; /* the number of its first block */
    uint64_t shard; /* used last */
};

struct simulation {
    const struct tokmap_run *run;
    const struct storage_options *options;
    struct storage_case *of;
    struct simulated_source *sources;
    uint64_t block, blocks; /* bytes of one; their numbers are below it */
    uint32_t *block_bytes;  /* of each that is used */
    struct assignment assignment;
    struct run_walk walk;
    struct tokmap_place places[ROWS_AT_ONCE];
    struct tokmap_extent *extents;
    uint64_t extents_most;
    struct node_uses *nodes;
    uint64_t kept, located; /* uses of all nodes; rows whose place was computed */
    uint64_t groups;
    double row_bytes; /* of the nodes' rows */
};

static enum tokmap_status use_add(struct node_uses *node, uint64_t block, struct tokmap_error *error)
{
    if (!list_room(&node->uses, node->count, &node->room, sizeof *node->uses))
        return error_set_memory(error, "the uses of blocks", node->count * sizeof *node->uses);
    node->uses[node->count++] = (uint32_t)block;
    return TOKMAP_OK;
}

static enum tokmap_status row_add(struct simulation *of, struct node_uses *node, const struct tokmap_place *place,
                                  struct tokmap_error *error)
{
    struct simulated_source *source = &of->sources[place->source];
    uint64_t count;
    enum tokmap_status status = run_row_extents(of->run, place, of->extents, of->extents_most, &count, error);
    for (uint64_t i = 0; i < count && !status; i++) {
        if (extent_is_padding(&of->extents[i]))
            continue;
        uint64_t token = of->extents[i].first_token, left = of->extents[i].tokens;
        of->row_bytes += (double)(left * source->width);
        for (uint64_t part; left && !status; left -= part, token = (token + part) % source->tokens) {
            const struct fetch_cell block = dataset_fetch_cell(source->dataset, of->block, token, &source->shard);
            of->block_bytes[source->first + block.number] = (uint32_t)((block.end - block.first) * source->width);
            part = min64(left, block.end - token);
            status = use_add(node, source->first + block.number, error);
        }
    }
    return status;
}

/* Adds the rows of a node in a step. */
static enum tokmap_status node_step(struct simulation *of, struct node_uses *node, uint64_t step,
                                    struct tokmap_error *error)
{
    const uint64_t batch = tokmap_run_rows(of->run, step), ranks = of->options->ranks;
    const uint64_t per_node = ranks / of->options->nodes;
    uint64_t rows[ROWS_AT_ONCE], at, count, last, last_count;
    enum tokmap_status status = TOKMAP_OK;
    run_rank_rows(batch, node->node * per_node, ranks, &at, &count);
    run_rank_rows(batch, (node->node + 1) * per_node - 1, ranks, &last, &last_count);
    for (const uint64_t end = last + last_count; at < end && !status; at += count) {
        count = min64(end - at, ROWS_AT_ONCE);
        for (uint64_t i = 0; i < count; i++)
            rows[i] = assignment_row(&of->assignment, at + i);
        run_walk_rows(&of->walk, step, rows, count, of->places);
        for (uint64_t i = 0; i < count && !status; i++)
            status = row_add(of, node, &of->places[i], error);
        of->of->rows += count;
        of->located += count;
    }
    return status;
}

static enum tokmap_status group_end(struct simulation *of, struct tokmap_error *error)
{
    for (uint64_t i = 0; i < of->of->nodes; i++) {
        struct node_uses *node = &of->nodes[i];
        if (!list_room(&node->ends, of->groups, &node->ends_room, sizeof *node->ends))
            return error_set_memory(error, "the groups of steps", of->groups * sizeof *node->ends);
        node->ends[of->groups] = node->count;
    }
    of->groups++;
    return TOKMAP_OK;
}

/* Lists the uses of the nodes in the steps below `steps`, or in as many of the first of them as the limits allow. */
static enum tokmap_status uses_list(struct simulation *of, uint64_t steps, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t step = run_next_step(of->run, 0);
    for (; step < steps && !status; step = run_next_step(of->run, step + 1)) {
        if (of->of->steps && (of->located > ROWS_MOST || of->kept > USES_MOST))
            break;
        status = assignment_step(&of->assignment, step, error);
        of->located += of->of->affine ? tokmap_run_rows(of->run, step) : 0;
        of->kept = 0;
        for (uint64_t i = 0; i < of->of->nodes && !status; i++) {
            status = node_step(of, &of->nodes[i], step, error);
            of->kept += of->nodes[i].count;
        }
        if (!status && os_signal_caught())
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
        if (!status && ++of->of->steps % GROUP_STEPS == 0)
            status = group_end(of, error);
    }
    of->of->whole = step >= steps;
    return status || of->of->steps % GROUP_STEPS == 0 ? status : group_end(of, error);
}

/* Sums up the fetches of a node, group by group of steps. */
static void fetches_count(struct simulation *of, const struct node_uses *node)
{
    struct storage_case *sums = of->of;
    for (uint64_t group = 0, i = 0; group < of->groups; group++) {
        double bytes = 0, requests = 0;
        const uint64_t steps = min64(GROUP_STEPS, sums->steps - group * GROUP_STEPS);
        for (; i < node->ends[group]; i++)
            if (node->uses[i] & CACHE_FETCHED) {
                bytes += (double)of->block_bytes[node->uses[i] & ~CACHE_FETCHED];
                requests++;
            }
        sums->bytes += bytes;
        sums->requests += requests;
        /* A group of fewer steps is not the busiest of many. */
        if (steps == GROUP_STEPS || !group) {
            sums->most_bytes = bytes / (double)steps > sums->most_bytes ? bytes / (double)steps : sums->most_bytes;
            sums->most_requests =
                requests / (double)steps > sums->most_requests ? requests / (double)steps : sums->most_requests;
        }
    }
    sums->uses += (double)node->count;
}

static void scale(struct simulation *of, uint64_t steps)
{
    struct storage_case *sums = of->of;
    const double node_steps = (double)sums->steps * (double)sums->nodes;
    const double all = (double)run_delivered_before(of->run, steps) * (double)of->options->nodes;
    sums->factor = of->row_bytes > 0 ? sums->bytes / of->row_bytes : 0;
    sums->step_bytes = sums->bytes / node_steps;
    sums->step_requests = sums->requests / node_steps;
    sums->uses *= all / node_steps;
    sums->requests *= all / node_steps;
    sums->bytes *= all / node_steps;
}

/* Numbers the blocks of all sources. */
static enum tokmap_status blocks_number(struct simulation *of, uint64_t sources, uint64_t *data_bytes,
                                        struct tokmap_error *error)
{
    of->block = round_down(of->options->block, sizeof(uint32_t)); /* whole tokens */
    of->sources = calloc(sources, sizeof *of->sources);
    if (!of->sources)
        return error_set_memory(error, "the sources", sources * sizeof *of->sources);
    for (uint64_t i = 0; i < sources; i++) {
        struct tokmap_source_info source;
        struct tokmap_dataset_info info;
        run_describe_source(of->run, i, &source);
        dataset_describe(source.dataset, &info);
        of->sources[i] = (struct simulated_source){source.dataset, info.tokens, info.width, of->blocks, 0};
        of->blocks += dataset_fetch_cells(source.dataset, of->block);
        *data_bytes += info.tokens * info.width;
    }
    if (of->blocks >> 31 || of->options->cache / of->block < 2)
        return error_set_field(error, TOKMAP_ERROR_LIMIT, NULL, of->blocks >> 31 ? "block" : "cache",
                               of->blocks >> 31 ? " cuts the data into 2^31 blocks or more; make it larger"
                                                : " holds less than two blocks; make it larger");
    of->block_bytes = calloc(of->blocks, sizeof *of->block_bytes);
    return of->block_bytes ? TOKMAP_OK : error_set_memory(error, "the blocks", of->blocks * sizeof *of->block_bytes);
}

static enum tokmap_status simulate(struct simulation *of, uint64_t steps, uint64_t *data_bytes,
                                   struct tokmap_error *error)
{
    const struct storage_options *options = of->options;
    const struct assignment_rule rule = {options->ranks, 0, 0, of->of->affine ? options->nodes : 0};
    struct tokmap_run_info info;
    run_describe(of->run, &info);
    const uint64_t node_rows = max64(1, run_delivered_before(of->run, steps) / options->nodes * info.batch_most);
    of->of->nodes = max64(1, min64(min64(options->nodes, NODES_MOST), ROWS_MOST / node_rows));
    of->extents_most = run_extents_most(of->run);
    of->extents = malloc(of->extents_most * sizeof *of->extents);
    of->nodes = calloc(of->of->nodes, sizeof *of->nodes);
    enum tokmap_status status =
        of->extents && of->nodes ? TOKMAP_OK : error_set_memory(error, "the nodes", of->of->nodes * sizeof *of->nodes);
    for (uint64_t i = 0; i < of->of->nodes && !status; i++)
        of->nodes[i].node = mul_div(i, options->nodes, of->of->nodes);
    run_walk_init(&of->walk, of->run);
    if (!status)
        status = run_walk_keep(&of->walk, error);
    if (!status)
        status = blocks_number(of, info.sources, data_bytes, error);
    if (!status)
        status = assignment_init(&of->assignment, of->run, &rule, error);
    if (!status)
        status = uses_list(of, steps, error);
    const uint64_t per_step = of->of->steps ? of->kept / of->of->nodes / of->of->steps : 0;
    const uint64_t node_step_rows = max64(1, info.batch / options->nodes);
    /* In uses: a row has some, and a node has the rows of all its ranks. */
    const uint64_t horizon =
        options->horizon > ((uint64_t)1 << 31) / max64(1, options->ranks / options->nodes)
            ? (uint64_t)1 << 31
            : options->horizon * (options->ranks / options->nodes) * max64(1, per_step / node_step_rows);
    for (uint64_t i = 0; i < of->of->nodes && !status; i++) {
        struct node_uses *node = &of->nodes[i];
        status = cache_model_run(node->uses, node->count, of->blocks, options->cache / of->block, horizon, error);
        if (!status)
            fetches_count(of, node);
    }
    if (!status && of->of->steps)
        scale(of, steps);
    return status;
}

static enum tokmap_status case_take(struct storage_cases *cases, const struct tokmap_run *run, uint64_t steps,
                                    const struct storage_options *options, const struct storage_case *how,
                                    struct tokmap_error *error)
{
    struct storage_case *of = &cases->of[cases->count++];
    struct simulation *simulation = calloc(1, sizeof *simulation);
    if (!simulation)
        return error_set_memory(error, "a simulation", sizeof *simulation);
    *of = *how;
    simulation->run = run;
    simulation->options = options;
    simulation->of = of;
    cases->data_bytes = 0;
    const enum tokmap_status status = simulate(simulation, steps, &cases->data_bytes, error);
    for (uint64_t i = 0; i < of->nodes && simulation->nodes; i++) {
        free(simulation->nodes[i].uses);
        free(simulation->nodes[i].ends);
    }
    free(simulation->nodes);
    free(simulation->extents);
    run_walk_free(&simulation->walk);
    assignment_free(&simulation->assignment);
    free(simulation->sources);
    free(simulation->block_bytes);
    free(simulation);
    return status;
}

/* Opens a run, which has the order that needs no line, with `order even`. */
static enum tokmap_status even_open(struct tokmap_run **even, const struct tokmap_run *run, uint64_t blocks,
                                    uint64_t span, struct tokmap_error *error)
{
    char *text;
    if (asprintf(&text, "%sorder even %" PRIu64 " %" PRIu64 "\n", tokmap_run_text(run), blocks, span) < 0)
        return error_set_memory(error, "the text of a run", 0);
    const enum tokmap_status status = tokmap_run_parse(even, text, NULL, error);
    free(text);
    return status;
}

enum tokmap_status storage_cases_take(struct storage_cases *cases, const struct tokmap_run *run, uint64_t steps,
                                      const struct storage_options *options, struct tokmap_error *error)
{
    struct tokmap_run_info info;
    struct tokmap_run *even = NULL;
    run_describe(run, &info);
    struct storage_case how = {.as_is = true, .blocks = info.blocks, .span = info.span};
    enum tokmap_status status;
    *cases = (struct storage_cases){.count = 0};
    if (!run_delivered_before(run, steps))
        return TOKMAP_OK;
    status = case_take(cases, run, steps, options, &how, error);
    if (!status && info.order == TOKMAP_SHUFFLE) {
        how.as_is = false;
        how.blocks = max64(1, BLOCKS_OF_ORDER * options->block / (info.seq_len * info.width));
        how.span = max64(SPAN_OF_NODE * options->nodes, 16);
        status = even_open(&even, run, how.blocks, how.span, error);
        if (!status)
            status = case_take(cases, even, steps, options, &how, error);
    }
    how.affine = true;
    if (!status && options->nodes > 1 && info.order != TOKMAP_SEQUENTIAL)
        status = case_take(cases, even ? even : run, steps, options, &how, error);
    tokmap_run_close(even);
    return status;
}
