/*
 * case_compare.c - tokmap beside other systems, on the same tokens, in the same minutes.
 *
 * The scripts in bench/peers/compare run the systems and print what they measured, line by line. This case finds or
 * makes the tokens, starts the script of a table, and prints the table.
 */
#include "case_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "case_compare_child.h"
#include "cases.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/made_files.h"
#include "peers/flat_tokens.h"
#include "peers/scripts.h"
#include "peers/wide.h"

/* What a table reads; one that is not listed here reads a dataset. */
enum reads { READS_DATASET, READS_RUN, READS_TEXT, READS_SPARSE, READS_NOTHING };
static const struct {
    const char *table;
    enum reads reads;
} tables[] = {{"ab", READS_RUN}, {"pack", READS_TEXT}, {"prepare", READS_TEXT}, {"start", READS_SPARSE}};

static bool is_table(const struct bench *bench, const char *table)
{
    return bench->options.table && !strcmp(bench->options.table, table);
}

static enum reads reads_of(const struct bench *bench)
{
    if (is_table(bench, "survival") && bench->options.figures)
        return READS_NOTHING;
    for (size_t i = 0; bench->options.table && i < sizeof tables / sizeof tables[0]; i++)
        if (is_table(bench, tables[i].table))
            return tables[i].reads;
    return READS_DATASET;
}

bool compare_reads_text(const struct bench *bench)
{
    return reads_of(bench) == READS_TEXT;
}

static int dataset_arguments(struct bench *bench, struct flat_tokens *flat, struct script_arguments *arguments)
{
    const char *name;
    int result = dataset_name(bench, &name);
    if (!result)
        result = flat_tokens_open(bench, flat);
    if (result)
        return result;
    scripts_text(arguments, "--data", name);
    scripts_text(arguments, "--run", bench->options.run_file);
    scripts_text(arguments, "--bin", flat->path);
    scripts_text(arguments, "--files", flat->files);
    scripts_number(arguments, "--width", flat->width);
    scripts_number(arguments, "--count", flat->tokens);
    if (flat->eod != TOKMAP_NO_ID)
        scripts_number(arguments, "--eod", flat->eod);
    return CLI_DONE;
}

/* The month that the table survival simulates. */
static void survival_arguments(const struct bench *bench, struct script_arguments *arguments)
{
    const struct bench_options *o = &bench->options;
    scripts_number(arguments, "--nodes", o->nodes);
    scripts_number(arguments, "--spare-nodes", o->spare_nodes);
    scripts_real(arguments, "--days", o->days);
    scripts_real(arguments, "--failures", o->failures);
    scripts_real(arguments, "--checkpoint-minutes", o->checkpoint_minutes);
    scripts_real(arguments, "--repair-hours", o->repair_hours);
    scripts_text(arguments, "--figures", o->figures);
    if (o->world_given)
        scripts_number(arguments, "--ranks", o->world);
    if (o->step_ms_given)
        scripts_real(arguments, "--step-ms", o->step_ms);
    if (o->batch_given)
        scripts_number(arguments, "--global-rows", o->batch);
}

/* The table ab: a run and its training loop. */
static int run_arguments(struct bench *bench, struct script_arguments *arguments)
{
    const char *name;
    const int result = dataset_name(bench, &name);
    if (result)
        return result;
    scripts_text(arguments, "--data", name);
    scripts_text(arguments, "--run", bench->options.run_file);
    scripts_real(arguments, "--step-ms", bench->options.step_ms);
    const bool sleeps = bench->options.wait_given && bench->options.wait == BENCH_SLEEP;
    scripts_text(arguments, "--wait", sleeps ? "sleep" : "spin");
    scripts_number(arguments, "--world", max64(1, bench->options.world));
    return CLI_DONE;
}

/* The table start: sparse datasets of zeros, which need no storage but their indexes. */
#define SPARSE_SIZES 5
#define SPARSE_SHARD ((uint64_t)2000000000000) /* tokens: 4 TB, which most file systems can hold */

static int sparse_arguments(struct bench *bench, struct script_arguments *arguments)
{
    static char named[SPARSE_SIZES][BENCH_PATH + 32];
    uint64_t tokens = 1000000000;
    for (uint32_t i = 0; i < SPARSE_SIZES; i++, tokens *= 10) {
        char label[32], name[BENCH_PATH];
        bool unsupported;
        const uint64_t shards = div_ceil(tokens, SPARSE_SHARD);
        (void)snprintf(label, sizeof label, "1e%u", 9 + i);
        const int result = dataset_make_sparse(bench, label, shards, tokens / shards, name, &unsupported);
        if (result)
            return result;
        (void)snprintf(named[i], sizeof named[i], "%" PRIu64 "=%s", tokens, unsupported ? "" : name);
        scripts_text(arguments, "--sparse", named[i]);
    }
    return CLI_DONE;
}

struct comparison {
    struct bench *bench;
    struct wide *wide;
};

static int line_take(void *user, const struct script_line *line)
{
    const struct comparison *comparison = user;
    return wide_line(comparison->bench, comparison->wide, line);
}

static int run(struct bench *bench)
{
    static struct flat_tokens flat;
    static struct script_arguments arguments;
    const char *table = bench->options.table ? bench->options.table : "loaders";
    if (bench->options.child)
        return compare_child(bench);
    struct comparison comparison = {bench, wide_new()};
    int result = comparison.wide ? CLI_DONE : bench_no_memory(bench);
    if (!result && reads_of(bench) == READS_TEXT) {
        scripts_text(&arguments, "--text", bench->options.dataset);
        scripts_text(&arguments, "--tokenizer", bench->options.tokenizer);
        scripts_text(&arguments, "--pattern", bench->options.pattern);
        scripts_text(&arguments, "--field", bench->options.field);
        scripts_text(&arguments, "--megatron", bench->options.megatron);
        scripts_number(&arguments, "--text-bytes", bench->options.text_bytes);
    } else if (!result && reads_of(bench) == READS_RUN) {
        result = run_arguments(bench, &arguments);
    } else if (!result && reads_of(bench) == READS_SPARSE) {
        result = sparse_arguments(bench, &arguments);
    } else if (!result && (reads_of(bench) == READS_DATASET || bench->options.dataset)) {
        result = dataset_arguments(bench, &flat, &arguments);
    }
    if (is_table(bench, "survival"))
        survival_arguments(bench, &arguments);
    if (!result)
        result = scripts_run(bench, table, &arguments, line_take, &comparison);
    made_files_remove(bench); /* before anything is printed, which ends the command if nobody reads it */
    if (comparison.wide && !bench_stopped()) {
        wide_print(bench, comparison.wide); /* after a failure, what was measured until then */
        if (wide_check(bench, comparison.wide))
            result = CLI_FAILED;
    }
    wide_free(comparison.wide);
    return result;
}

const struct bench_case case_compare = {
    "compare", "tokmap beside other loaders on the same tokens; [TABLE] [DATA], --peers, --venv, --offline", run};
