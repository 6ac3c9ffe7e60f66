/* SPDX-License-Identifier: MIT */
/*
 * case_cost.c - what the loading of a whole run costs, by rows that `tokmap-bench compare loaders` has measured.
 *
 * Nothing is measured here, and there is no constant: a figure is a row times the tokens of the run. A row of 0.0046
 * seconds of processor time for a million tokens from storage makes, for 15 T tokens,
 *
 *     0.0046 s * 15,000,000 / 3600 = 19 core-hours
 *
 * A system's rows come from one run of the comparison: on this machine if there is one, with the length of the run's
 * rows if there is one, the newest. Each is printed with its machine and its date.
 *
 * With --cache, the first node's reads of object storage are simulated: its rows, step by step, use the blocks that
 * they are in, and from a full cache a block leaves that was not used lately (a loader knows its rows ahead, and keeps
 * what it needs again, so it reads less). Nodes are alike, so the sums are those of the node, for all nodes and steps.
 * They are too large where an epoch after those that were simulated finds in the cache what an earlier one fetched.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset_fetch.h"
#include "harness/machine.h"
#include "harness/result_rows.h"
#include "run/assignment.h"
#include "run/run.h"
#include "text/path.h"

/* ---- rows that were measured ---- */

enum measured {
    CPU_MEMORY,  /* seconds of processor time for a million tokens */
    CPU_STORAGE, /* the same from storage */
    BYTES,       /* read for each byte of tokens */
    REQUESTS,    /* of the block device for a million tokens */
    MEMORY_MIB,  /* of one loader */
    RATE,        /* tokens a second from storage */
    READAHEAD,   /* of the block device then */
    MEASURED
};

static const char *const metrics[MEASURED] = {"cpu_s_per_mtok",         "cold_cpu_s_per_mtok", "amplification",
                                              "cold_requests_per_mtok", "memory_mib",          "cold_tokens_per_s",
                                              "readahead_kib"};

static const char as_it_is[] = "the run"; /* in a line of JSON */

enum { SYSTEMS_MOST = 256, ROW_USUAL = 2048, ROWS_LOCATED = 1 << 23 };

struct priced {
    const struct result_row *any; /* one of its rows: the command, the machine, and the date are those of all */
    double of[MEASURED];          /* NAN: not measured */
    size_t source;                /* number of the footnote, from 1 */
};

struct cost {
    struct bench *bench;
    struct result_rows rows;
    struct priced systems[SYSTEMS_MOST];
    size_t count;
    char figures[BENCH_PATH]; /* the file or the folder of the rows */
    double tokens, seconds;   /* of the run */
    uint64_t steps, seq_len, width;
    uint64_t end; /* the number of steps, with those that are skipped */
    uint64_t sources;
    bool has_blocks;  /* the order has */
    double readahead; /* KiB; NAN: unknown */
    struct node_reads *reads[2];
    size_t reads_count;
};

/* Returns the tokens of a row in a comparison, which its command names if they are not the usual ones. */
static uint64_t row_tokens(const struct result_row *row)
{
    static const char option[] = " --seq-len";
    uint64_t tokens = ROW_USUAL;
    char word[32];
    const char *at = strstr(row->command, option);
    if (!at)
        return tokens;
    at += sizeof option - 1;
    at += strspn(at, " =");
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
    (void)cli_parse_size(word, &tokens);
    return tokens;
}

static bool same_run(const struct result_row *a, const struct result_row *b)
{
    return !strcmp(a->command, b->command) && !strcmp(a->machine, b->machine) && !strcmp(a->date, b->date);
}

/* Returns whether the rows of the run that has `a` are better for this cost than those of the run that has `b`. */
static bool preferred(const struct cost *cost, const struct result_row *a, const struct result_row *b)
{
    const bool here_a = !strcmp(a->machine, cost->bench->machine), here_b = !strcmp(b->machine, cost->bench->machine);
    const bool long_a = row_tokens(a) == cost->seq_len, long_b = row_tokens(b) == cost->seq_len;
    return here_a != here_b ? here_a : long_a != long_b ? long_a : strcmp(a->date, b->date) > 0;
}

static void priced_begin(struct priced *system, const struct result_row *row)
{
    system->any = row;
    for (size_t i = 0; i < MEASURED; i++)
        system->of[i] = (double)NAN;
}

/* Keeps a row, if it is of the run of the comparison that its system is taken from. */
static void row_take(struct cost *cost, const struct result_row *row)
{
    struct priced *system = cost->systems;
    size_t metric = 0;
    while (metric < MEASURED && strcmp(row->metric, metrics[metric]) != 0)
        metric++;
    if (metric == MEASURED || !isfinite(row->value) || strcmp(row->case_name, "compare") != 0 ||
        strcmp(row->table, "loaders") != 0)
        return;
    while (system < cost->systems + cost->count && strcmp(system->any->row, row->row) != 0)
        system++;
    if (system == cost->systems + SYSTEMS_MOST)
        return;
    if (system == cost->systems + cost->count) {
        cost->count++;
        priced_begin(system, row);
    } else if (!same_run(system->any, row)) {
        if (!preferred(cost, row, system->any))
            return;
        priced_begin(system, row);
    }
    system->of[metric] = row->value;
}

/* Orders systems by what they cost from storage, and those of which that is unknown by what they cost from memory. */
static int by_cost(const void *a, const void *b)
{
    const struct priced *one = a, *two = b;
    const size_t metric = isnan(one->of[CPU_STORAGE]) || isnan(two->of[CPU_STORAGE]) ? CPU_MEMORY : CPU_STORAGE;
    if (isnan(one->of[CPU_STORAGE]) != isnan(two->of[CPU_STORAGE]))
        return isnan(one->of[CPU_STORAGE]) ? 1 : -1;
    return one->of[metric] < two->of[metric] ? -1 : one->of[metric] > two->of[metric];
}

/* Reads the rows. Ends the program with a message that names the command that measures them if there are none. */
static void rows_find(struct cost *cost)
{
    struct bench *bench = cost->bench;
    const char *named = bench->options.figures;
    if (named)
        (void)snprintf(cost->figures, sizeof cost->figures, "%s", named);
    else
        (void)snprintf(cost->figures, sizeof cost->figures, "%.*s../../bench/results",
                       (int)path_folder_bytes(bench->self), bench->self);
    const enum tokmap_status status = result_rows_read(&cost->rows, cost->figures, &bench->error);
    if (named || status != TOKMAP_ERROR_NOT_FOUND)
        bench_check(bench, status);
    for (size_t i = 0; i < cost->rows.count; i++)
        row_take(cost, &cost->rows.rows[i]);
    qsort(cost->systems, cost->count, sizeof *cost->systems, by_cost);
    if (cost->count)
        return;
    cli_say(bench->program,
            "no loader was measured%s%s; measure with `tokmap-bench compare loaders --seq-len %" PRIu64
            " --json >FILE`, and name FILE with --figures",
            named ? " in " : "", named ? named : "", cost->seq_len);
    bench_end(bench, CLI_FAILED);
}

/* ---- the run ---- */

/* Finds how far the block device below the run's tokens reads ahead; below --dir if the tokens are computed. */
static double readahead_of(const struct bench *bench, const struct tokmap_run *run)
{
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    const bool stored = !tokmap_run_source(run, 0, &source) && source.dataset &&
                        !tokmap_dataset_shard(source.dataset, 0, &shard, NULL) && shard.tokens_path;
    return machine_readahead(stored ? shard.tokens_path : bench->options.folder);
}

static void run_measured(struct cost *cost, const struct tokmap_run *run)
{
    struct bench *bench = cost->bench;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct tokmap_cursor end;
    bench_check(bench, tokmap_run_info(run, &info));
    if (info.steps == TOKMAP_FOREVER) {
        cli_say(bench->program, "%s: the run has no end, and so no cost; set its steps or passes",
                bench->options.run_file);
        bench_end(bench, CLI_FAILED);
    }
    bench_check(bench, tokmap_run_cursor(run, info.steps, &end, &bench->error));
    if (bench->options.gpus > info.batch) {
        cli_say(bench->program, "%s: %" PRIu64 " GPUs cannot share a global batch of %" PRIu64 " rows; lower --gpus",
                bench->options.run_file, bench->options.gpus, info.batch);
        bench_end(bench, CLI_MISUSED);
    }
    cost->tokens = (double)end.tokens;
    cost->end = info.steps;
    cost->sources = info.sources;
    cost->has_blocks = info.span != 0;
    cost->steps = info.delivered;
    cost->seconds = (double)cost->steps * bench->options.step_ms / 1e3;
    cost->seq_len = info.seq_len;
    cost->width = info.width;
    cost->readahead = readahead_of(bench, run);
}

/* ---- what caches read ---- */

/* Writes a number with three digits: "19.4", "1.89 G". Returns text. */
static const char *short_number(double value, char text[32])
{
    static const char *const scales[] = {"", " k", " M", " G", " T", " P", " E"};
    size_t scale = 0;
    for (; value >= 999.5 && scale < 6; scale++)
        value /= 1000;
    (void)snprintf(text, 32, "%.3g%s", value, scales[scale]);
    return text;
}

#define SHORT(value) short_number((value), (char[32]){0})

/* The blocks in a cache. From a full one leaves the next block of the ring that was not used since the hand passed it.
 */
struct held_blocks {
    uint8_t *state; /* by block */
    uint32_t *ring;
    uint64_t blocks, count, room, hand;
};
enum { ABSENT, HELD, USED };

/* Returns whether the block had to be fetched. */
static bool block_use(struct held_blocks *held, uint64_t block)
{
    const bool fetched = held->state[block] == ABSENT;
    held->state[block] = fetched ? HELD : USED;
    if (!fetched)
        return false;
    if (held->count < held->room) {
        held->ring[held->count++] = (uint32_t)block;
        return true;
    }
    for (; held->state[held->ring[held->hand]] == USED; held->hand = (held->hand + 1) % held->room)
        held->state[held->ring[held->hand]] = HELD;
    held->state[held->ring[held->hand]] = ABSENT;
    held->ring[held->hand] = (uint32_t)block;
    held->hand = (held->hand + 1) % held->room;
    return true;
}

/* What the first node reads; `bytes` and `requests` become the sums of all nodes and steps. */
struct node_reads {
    const char *row; /* in a line of JSON */
    const struct tokmap_run *run;
    uint64_t block; /* bytes of a request */
    struct held_blocks held;
    uint64_t *first;               /* by source: the number of its first block */
    struct tokmap_extent *extents; /* of a row */
    double bytes, requests, row_bytes;
    double times;   /* that each byte of the rows is read */
    uint64_t steps; /* that were simulated */
};

static void row_read(struct bench *bench, struct node_reads *node, const struct tokmap_place *place)
{
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    uint64_t count = 0, shard = 0;
    if (place->source == TOKMAP_NO_SOURCE)
        return;
    bench_check(bench, tokmap_run_source(node->run, place->source, &source));
    bench_check(bench, tokmap_dataset_info(source.dataset, &info));
    bench_check(
        bench, tokmap_run_extents(node->run, place, node->extents, run_extents_most(node->run), &count, &bench->error));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t token = node->extents[i].first_token, part;
        for (uint64_t left = token == UINT64_MAX ? 0 : node->extents[i].tokens; left; left -= part) {
            const struct fetch_cell block = dataset_fetch_cell(source.dataset, node->block, token, &shard);
            part = min64(left, block.end - token);
            token = (token + part) % info.tokens;
            node->row_bytes += (double)(part * info.width);
            if (!block_use(&node->held, node->first[place->source] + block.number))
                continue;
            node->bytes += (double)((block.end - block.first) * info.width);
            node->requests++;
        }
    }
}

/* Walks through the rows of the first node. nodes: of the loaders' option, or 0. */
static void node_read(const struct cost *cost, struct node_reads *node, uint64_t nodes)
{
    struct bench *bench = cost->bench;
    const uint64_t all_nodes = bench->options.nodes;
    const struct assignment_rule rule = {.world = bench->options.gpus, .nodes = nodes};
    struct assignment assignment;
    struct tokmap_place place;
    bench_check(bench, assignment_init(&assignment, node->run, &rule, &bench->error));
    uint64_t step = run_next_step(node->run, 0);
    for (uint64_t located = 0; step < cost->end && located < ROWS_LOCATED; step = run_next_step(node->run, step + 1)) {
        const uint64_t batch = tokmap_run_rows(node->run, step), rows = batch / all_nodes;
        bench_check(bench, assignment_step(&assignment, step, &bench->error));
        for (uint64_t i = 0; i < rows; i++) {
            bench_check(bench,
                        tokmap_run_locate(node->run, step, assignment_row(&assignment, i), &place, &bench->error));
            row_read(bench, node, &place);
        }
        located += nodes ? batch : rows;
        node->steps++;
        bench_stop_check(bench);
    }
    assignment_free(&assignment);
    const double all = (double)all_nodes * (double)cost->steps / (double)max64(1, node->steps);
    node->times = node->row_bytes > 0 ? node->bytes / node->row_bytes : 0;
    node->bytes *= all;
    node->requests *= all;
}

/* Simulates the cache of a node, for the run as it is or with the loaders' option nodes. */
static void cache_simulate(struct cost *cost, const struct tokmap_run *run, uint64_t nodes)
{
    struct bench *bench = cost->bench;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct node_reads *node = bench_new(bench, 1, sizeof *node);
    struct held_blocks *held = &node->held;
    node->row = nodes ? "the run, with nodes" : as_it_is;
    node->run = run;
    node->block = round_down(bench->options.block, sizeof(uint32_t));
    node->first = bench_new(bench, cost->sources, sizeof *node->first);
    node->extents = bench_new(bench, run_extents_most(run), sizeof *node->extents);
    for (uint64_t i = 0; i < cost->sources; i++) {
        bench_check(bench, tokmap_run_source(run, i, &source));
        node->first[i] = held->blocks;
        held->blocks += dataset_fetch_cells(source.dataset, node->block);
    }
    held->room = min64(bench->options.cache / node->block, held->blocks);
    if (held->blocks >> 32 || !held->room) {
        cli_say(bench->program, "%s; choose another --block",
                held->room ? "the data has 2^32 blocks or more" : "--cache holds no block");
        bench_end(bench, CLI_FAILED);
    }
    held->state = bench_new(bench, held->blocks, sizeof *held->state);
    held->ring = bench_new(bench, held->room, sizeof *held->ring);
    node_read(cost, node, nodes);
    cost->reads[cost->reads_count++] = node; /* until the end of the program */
}

static void caches_print(const struct cost *cost)
{
    const struct bench_options *o = &cost->bench->options;
    for (size_t i = 0; i < cost->reads_count; i++) {
        const struct node_reads *reads = cost->reads[i];
        cli_print("%s, on %s with a cache of %s each: simulated %s, each byte is read %.2f times; %s in %s requests, "
                  "%s/s for a node\n",
                  reads->row, CLI_COUNTED(o->nodes, "node"), CLI_BYTES(o->cache), CLI_COUNTED(reads->steps, "step"),
                  reads->times, CLI_BYTES((uint64_t)reads->bytes), SHORT(reads->requests),
                  CLI_BYTES((uint64_t)(reads->bytes / (double)o->nodes / cost->seconds)));
    }
}

/* ---- what it costs ---- */

enum price { MEMORY_HOURS, STORAGE_HOURS, STORAGE_BYTES, STORAGE_REQUESTS, LOADERS_BYTES, WAIT_HOURS, PRICES };
static const char *const price_names[PRICES] = {"memory_core_hours", "storage_core_hours", "storage_bytes",
                                                "storage_requests",  "loaders_bytes",      "storage_wait_gpu_hours"};
static const char *const price_units[PRICES] = {"core-hours", "core-hours", "bytes", "requests", "bytes", "GPU-hours"};

/* Computes what a system costs. NAN: a row that it needs was not measured. */
static void prices_of(const struct cost *cost, const struct priced *system, double prices[PRICES])
{
    const double millions = cost->tokens / 1e6, gpus = (double)cost->bench->options.gpus;
    prices[MEMORY_HOURS] = system->of[CPU_MEMORY] * millions / 3600;
    prices[STORAGE_HOURS] = system->of[CPU_STORAGE] * millions / 3600;
    prices[STORAGE_BYTES] = system->of[BYTES] * cost->tokens * (double)cost->width;
    prices[STORAGE_REQUESTS] = system->of[REQUESTS] * millions;
    prices[LOADERS_BYTES] = system->of[MEMORY_MIB] * 1048576 * gpus;
    /* Each GPU has a loader. Even if all of its work happens during the steps, what takes longer is waited for. */
    const double seconds = cost->tokens / gpus / system->of[RATE];
    prices[WAIT_HOURS] = seconds < cost->seconds ? 0 : (seconds - cost->seconds) * gpus / 3600;
}

static void run_line(const struct cost *cost, const char *row, const char *metric, double value, const char *unit)
{
    struct cli_json json;
    bench_json_begin(cost->bench, &json);
    cli_json_text(&json, "row", row);
    cli_json_text(&json, "metric", metric);
    cli_json_real(&json, "value", value);
    cli_json_text(&json, "unit", unit);
    cli_json_null(&json, "better");
    bench_json_end(cost->bench, &json);
}

static void lines_print(const struct cost *cost)
{
    if (!bench_json_wanted(cost->bench))
        return;
    run_line(cost, as_it_is, "tokens", cost->tokens, "tokens");
    run_line(cost, as_it_is, "steps", (double)cost->steps, "steps");
    run_line(cost, as_it_is, "hours", cost->seconds / 3600, "hours");
    run_line(cost, as_it_is, "needed_tokens_per_s", cost->tokens / cost->seconds, "tokens/s");
    run_line(cost, as_it_is, "device_readahead_kib", cost->readahead, "KiB");
    for (size_t i = 0; i < cost->reads_count; i++) {
        const struct node_reads *reads = cost->reads[i];
        run_line(cost, reads->row, "cache_reads", reads->times, "of each byte");
        run_line(cost, reads->row, "cache_bytes", reads->bytes, "bytes");
        run_line(cost, reads->row, "cache_requests", reads->requests, "requests");
        run_line(cost, reads->row, "cache_steps_simulated", (double)reads->steps, "steps");
    }
    for (const struct priced *system = cost->systems; system < cost->systems + cost->count; system++) {
        double prices[PRICES];
        prices_of(cost, system, prices);
        for (size_t i = 0; i < PRICES; i++) {
            struct cli_json json;
            if (isnan(prices[i]))
                continue;
            bench_json_begin(cost->bench, &json);
            cli_json_text(&json, "row", system->any->row);
            cli_json_text(&json, "metric", price_names[i]);
            cli_json_real(&json, "value", prices[i]);
            cli_json_text(&json, "unit", price_units[i]);
            cli_json_text(&json, "better", "less");
            cli_json_text(&json, "measured_command", system->any->command);
            cli_json_text(&json, "measured_machine", system->any->machine);
            cli_json_text(&json, "measured_date", system->any->date);
            cli_json_number(&json, "measured_seq_len", row_tokens(system->any));
            cli_json_real(&json, "measured_readahead_kib", system->of[READAHEAD]);
            bench_json_end(cost->bench, &json);
        }
    }
}

/* Writes hours: "0.52", "19.4", "2,360". Returns text. */
static const char *hours(double value, char text[32])
{
    if (value >= 999.5)
        return cli_count((uint64_t)(value + 0.5), text);
    (void)snprintf(text, 32, "%.3g", value);
    return text;
}

#define HOURS(value) hours((value), (char[32]){0})

/* Writes a cell of the table. */
static void cell_write(char cell[48], enum price price, double value)
{
    if (isnan(value))
        (void)snprintf(cell, 48, "?");
    else if (price == STORAGE_REQUESTS)
        (void)snprintf(cell, 48, "%s", SHORT(value));
    else if (price == STORAGE_BYTES || price == LOADERS_BYTES)
        (void)snprintf(cell, 48, "%s", cli_bytes((uint64_t)value, (char[32]){0}));
    else
        (void)snprintf(cell, 48, "%s %s", HOURS(value), price == WAIT_HOURS ? "GPU-h" : "core-h");
}

/* Numbers the runs of the comparison, and prints each below the table. */
static void sources_number(struct cost *cost)
{
    size_t sources = 0;
    for (size_t i = 0; i < cost->count; i++) {
        struct priced *system = &cost->systems[i];
        for (size_t j = 0; j < i && !system->source; j++)
            system->source = same_run(cost->systems[j].any, system->any) ? cost->systems[j].source : 0;
        system->source = system->source ? system->source : ++sources;
    }
}

static void sources_print(const struct cost *cost)
{
    size_t printed = 0;
    for (const struct priced *system = cost->systems; system < cost->systems + cost->count; system++) {
        char ahead[64] = "";
        if (system->source <= printed)
            continue;
        printed = system->source;
        if (!isnan(system->of[READAHEAD]))
            (void)snprintf(ahead, sizeof ahead, ", readahead %g KiB", system->of[READAHEAD]);
        cli_print("[%zu] %.10s, rows of %s tokens%s, %s: %s\n", system->source, system->any->date,
                  CLI_COUNT(row_tokens(system->any)), ahead, system->any->machine, system->any->command);
    }
}

static void table_print(struct cost *cost)
{
    static const bool right[] = {false, true, true, true, true, true, true, true};
    const char *const heads[] = {"",         "from memory", "from storage", "bytes read",
                                 "requests", "loaders use", "GPUs wait",    "measured"};
    const struct bench_options *o = &cost->bench->options;
    struct cli_table *table = cli_table_new(8);
    cli_print("%s: %s tokens in rows of %s, %s of %g ms on %s: %s hours, %s tokens/s for each GPU\n", o->run_file,
              SHORT(cost->tokens), CLI_COUNT(cost->seq_len), CLI_COUNTED(cost->steps, "step"), o->step_ms,
              CLI_COUNTED(o->gpus, "GPU"), HOURS(cost->seconds / 3600),
              SHORT(cost->tokens / cost->seconds / (double)o->gpus));
    if (isnan(cost->readahead))
        cli_print("no block device with a readahead is below the tokens\n\n");
    else
        cli_print("readahead of the block device below the tokens: %g KiB\n\n", cost->readahead);
    caches_print(cost);
    if (cost->reads_count)
        cli_print("\n");
    sources_number(cost);
    cli_table_row(table, heads);
    for (const struct priced *system = cost->systems; system < cost->systems + cost->count; system++) {
        double prices[PRICES];
        char cells[PRICES][48], source[16];
        prices_of(cost, system, prices);
        for (size_t i = 0; i < PRICES; i++)
            cell_write(cells[i], (enum price)i, prices[i]);
        (void)snprintf(source, sizeof source, "[%zu]", system->source);
        cli_table_row(table, (const char *[]){system->any->row, cells[0], cells[1], cells[2], cells[3], cells[4],
                                              cells[5], source});
    }
    cli_table_print(table, right, stdout);
    cli_table_free(table);
    cli_print("\n");
    sources_print(cost);
}

/* Sets the sentence below the table: tokmap, and the system of others that costs least from storage. */
static void answer(struct cost *cost)
{
    const struct priced *ours = NULL, *other = NULL;
    double of_ours[PRICES], of_other[PRICES];
    for (const struct priced *system = cost->systems + cost->count; system-- > cost->systems;) {
        if (!strcmp(system->any->row, "tokmap"))
            ours = system;
        else if (strncmp(system->any->row, "tokmap", 6) != 0)
            other = system;
    }
    if (!ours || !other || isnan(ours->of[CPU_STORAGE]) || isnan(other->of[CPU_STORAGE]))
        return;
    prices_of(cost, ours, of_ours);
    prices_of(cost, other, of_other);
    bench_answer(cost->bench,
                 "Loading the run takes tokmap %s core-hours from storage and %s from memory; the cheapest other "
                 "loader, %s, takes %s and %s.",
                 HOURS(of_ours[STORAGE_HOURS]), HOURS(of_ours[MEMORY_HOURS]), other->any->row,
                 HOURS(of_other[STORAGE_HOURS]), HOURS(of_other[MEMORY_HOURS]));
}

static int cost_run(struct bench *bench)
{
    static struct cost cost;
    struct tokmap_run *run = NULL;
    const struct bench_options *o = &bench->options;
    const char *missing =
        !o->run_file                     ? "name a run file, whose end says how many tokens are loaded"
        : !o->gpus                       ? "--gpus must be at least 1: the GPUs that train, each with a loader"
        : !o->step_ms_given              ? "--step-ms is missing: the time of a step says how long the run takes"
        : o->cache && o->gpus % o->nodes ? "--nodes, the machines with a cache each, must divide --gpus"
        : o->cache && (o->block < 1 << 16 || o->block > 1 << 30) ? "--block must be between 64Ki and 1Gi"
                                                                 : NULL;
    if (missing)
        return bench_misused(bench, missing);
    cost.bench = bench;
    bench_check(bench, tokmap_run_open(&run, o->run_file, NULL, &bench->error));
    run_measured(&cost, run);
    if (o->cache)
        cache_simulate(&cost, run, 0);
    if (o->cache && o->nodes > 1 && cost.has_blocks)
        cache_simulate(&cost, run, o->nodes);
    tokmap_run_close(run);
    rows_find(&cost);
    lines_print(&cost);
    answer(&cost);
    if (!o->json)
        table_print(&cost);
    result_rows_free(&cost.rows);
    return CLI_DONE;
}

const struct bench_case case_cost = {"cost", "what loading a whole run costs, by rows that were measured",
                                     .run = cost_run};
