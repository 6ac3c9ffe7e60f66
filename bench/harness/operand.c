/* SPDX-License-Identifier: MIT */
/* operand.c - see operand.h. */
#include "operand.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/bytes.h"
#include "common/error.h"

/* Returns the first option that a run file contradicts, or NULL. */
static const char *contradiction(const struct bench_options *options)
{
    return options->seq_len_given        ? "seq-len"
           : options->batch_given        ? "batch"
           : options->batch_tokens_given ? "batch-tokens"
                                         : NULL;
}

/* Opens a dataset that the user named, so that a wrong name is an error before anything is measured, and prints its
 * warning, as the other commands do. */
static enum tokmap_status dataset_warn(const struct bench *bench, const char *name, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = {.size = sizeof info};
    const enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, error);
    if (!status && !tokmap_dataset_info(dataset, &info) && info.warning)
        cli_warn(bench->program, "%s: %s", bench->options.run_file ? bench->options.run_file : name, info.warning);
    tokmap_dataset_close(dataset);
    return status;
}

/* Takes everything from the run file. The name of its dataset outlives the run in `data`. */
static enum tokmap_status run_file_read(struct bench_options *options, char data[BENCH_PATH],
                                        struct tokmap_error *error)
{
    struct tokmap_run *run = NULL;
    struct tokmap_run_info info = {.size = sizeof info};
    struct tokmap_source_info source = {.size = sizeof source};
    enum tokmap_status status = tokmap_run_open(&run, options->run_file, error);
    if (status)
        return status;
    status = tokmap_run_info(run, &info);
    if (!status)
        status = tokmap_run_source(run, 0, &source);
    if (status) {
        status = error_set(error, status, options->run_file, TOKMAP_NO_OFFSET, "The run cannot be described.");
    } else if (snprintf(data, BENCH_PATH, "%s", source.data) >= BENCH_PATH) {
        status = error_set(error, TOKMAP_ERROR_LIMIT, options->run_file, TOKMAP_NO_OFFSET,
                           "The name of the run's dataset has more than %d bytes.", BENCH_PATH - 1);
    } else {
        options->seq_len = info.seq_len;
        options->lookahead = max64(1, info.lookahead); /* the cases deliver targets */
        options->batch = info.batch;
        options->seed = info.seed;
        options->ordering = (int)info.ordering;
        options->dataset = data;
    }
    tokmap_run_close(run);
    return status;
}

uint64_t operand_slice(const struct bench *bench)
{
    const struct bench_options *options = &bench->options;
    return mul_div(options->batch, bench->rank + 1, options->world) -
           mul_div(options->batch, bench->rank, options->world);
}

/* Cuts the slice of a rank into calls of next() as the loader does, and sets rows to the largest of them. */
static void calls_cut(struct bench_options *options)
{
    const uint64_t slice = div_ceil(options->batch, options->world);
    const uint64_t most = options->rows_given ? min64(options->rows, slice) : slice;
    const uint64_t calls = div_ceil(slice, most);
    options->rows = div_ceil(slice, calls);
}

void operand_rows(struct bench *bench, uint64_t rows)
{
    if (bench->options.run_file)
        return;
    bench->options.rows = rows;
    bench->options.batch = rows * bench->options.world;
}

int operand_resolve(const struct cli_command *command, struct bench *bench, const char *operand)
{
    static char data[BENCH_PATH];
    struct bench_options *options = &bench->options;
    struct tokmap_error error = {0};
    options->dataset = operand;
    if (operand && cli_names_run(operand)) {
        const char *given = contradiction(options);
        if (given)
            return cli_misused(command, "--%s is only for datasets; the run file '%s' already sets it", given, operand);
        options->run_file = operand;
        if (run_file_read(options, data, &error))
            return bench_failed(bench, &error);
    }
    if (options->dataset && !options->child && dataset_warn(bench, options->dataset, &error))
        return bench_failed(bench, &error);
    if (!options->world_given)
        options->world = options->ranks;
    if (options->ranks > options->world)
        return cli_misused(command, "--ranks %" PRIu64 " on this machine are more than the --world of %" PRIu64,
                           options->ranks, options->world);
    if (!options->run_file && !options->batch_given)
        options->batch = options->rows * options->world;
    if (options->world > options->batch)
        return cli_misused(command, "%" PRIu64 " ranks cannot share a global batch of %" PRIu64 " rows; lower --%s",
                           options->world, options->batch, options->world_given ? "world" : "ranks");
    if (options->run_file || options->batch_given)
        calls_cut(options);
    return -1;
}
