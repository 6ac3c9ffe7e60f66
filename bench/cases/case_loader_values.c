/* SPDX-License-Identifier: MIT */
/*
 * case_loader_values.c - the case `loader` with --values: the bytes of values that a loader delivers from memory in a
 * second, with the inputs and targets that they belong to.
 *
 * The limit is a loop in plain C that does the same for the same rows in the same order, from a mapping whose pages are
 * populated: it widens each row's tokens into inputs and targets, and copies its values. It has no order to compute, no
 * ids to check, and no ring. A loader without a producer thread writes values straight to the caller's memory; with
 * one, they pass through the ring. All three take turns.
 */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset_values.h"
#include "harness/bench_data.h"
#include "harness/loops.h"
#include "harness/machine.h"
#include "harness/storage.h"
#include "platform/os.h"

/* A row's tokens, and the values of its targets. */
struct plain_row {
    const void *tokens;
    const uint8_t *values;
};

struct values_case {
    struct tokmap_run *run;
    struct tokmap_dataset *values; /* a dataset of bytes */
    struct reader readers[2];      /* [threads] */
    struct plain_row *rows;
    uint64_t count, next; /* of rows */
    uint64_t unit;        /* bytes of a token's values */
    uint64_t row_bytes;   /* of a row's */
    uint32_t width;
};

/* ---- the plain loop ---- */

/* Finds the rows of the run's first epochs, without those that are in two shards or around the end, and populates their
 * pages. */
static void plain_open(struct bench *bench, struct values_case *it, const struct run_data *data)
{
    const uint64_t seq_len = bench->options.seq_len;
    const uint64_t most = min64(4 * data->source.windows, READER_WINDOWS_MOST), slice = operand_slice(bench);
    it->rows = bench_new(bench, most, sizeof *it->rows);
    for (uint64_t i = 0; i < most; i++) {
        struct tokmap_place place;
        struct tokmap_span tokens[2], values[2];
        size_t used[2];
        bench_check(bench, tokmap_run_locate(it->run, i / slice, i % slice, &place, &bench->error));
        if (tokmap_dataset_view(data->source.dataset, place.first_token, seq_len + 1, tokens, 2, &used[0], NULL) ||
            tokmap_dataset_view(it->values, (place.first_token + 1) * it->unit, it->row_bytes, values, 2, &used[1],
                                NULL) ||
            used[0] != 1 || used[1] != 1)
            continue;
        (void)os_map_populate(tokens[0].tokens, (seq_len + 1) * it->width);
        (void)os_map_populate(values[0].tokens, it->row_bytes);
        it->rows[it->count++] = (struct plain_row){tokens[0].tokens, values[0].tokens};
    }
    if (!it->count)
        bench_check(bench, error_set(&bench->error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                                     "No row is in one shard; give a smaller --seq-len."));
}

static void plain_batch(struct values_case *it, uint64_t seq_len, uint64_t rows, const struct reader *into)
{
    for (uint64_t i = 0; i < rows; i++) {
        const struct plain_row *row = &it->rows[it->next];
        it->next = it->next + 1 == it->count ? 0 : it->next + 1;
        plain_widen_base(row->tokens, it->width, seq_len, TOKMAP_ID_I32, (uint32_t *)into->out.inputs + i * seq_len,
                         (uint32_t *)into->out.targets + i * seq_len);
        memcpy((uint8_t *)into->out.values[0] + i * it->row_bytes, row->values, (size_t)it->row_bytes);
    }
}

/* Returns the bytes of values in a second, in GB/s. */
static double plain_repeat(struct bench *bench, struct values_case *it, double seconds)
{
    const uint64_t length = (uint64_t)(seconds * 1e9), rows = bench->options.rows, started = os_clock_ns();
    uint64_t now = started, copied = 0;
    for (; now - started < length; now = os_clock_ns(), copied += rows)
        plain_batch(it, bench->options.seq_len, rows, &it->readers[0]);
    return (double)(copied * it->row_bytes) / (double)(now - started);
}

/* ---- the case ---- */

static void values_case_open(struct bench *bench, struct values_case *it)
{
    it->run = run_make(bench, dataset_name(bench), TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER);
    const struct run_data data = run_get_data(bench, it->run);
    struct values_array type;
    bench_check(bench, dataset_values_open(&it->values, &type, data.source.dataset,
                                           dataset_values_name(bench, data.source.dataset), &bench->error));
    it->width = data.info.width;
    it->unit = type.value_bytes;
    it->row_bytes = bench->options.seq_len * it->unit;
    page_cache_warm(bench, data.source.dataset); /* before any page is mapped */
    plain_open(bench, it, &data);
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = reader_options(bench, threads, READER_BOTH);
        options.values = bench->options.values;
        reader_open(bench, &it->readers[threads], it->run, &options);
        (void)reader_first_pass(bench, &it->readers[threads], data.source.windows);
    }
}

static void values_case_close(struct values_case *it)
{
    for (int threads = 0; threads < 2; threads++)
        reader_close(&it->readers[threads]);
    free(it->rows);
    tokmap_dataset_close(it->values);
    tokmap_run_close(it->run);
}

/* Returns the bytes of values in a second, in GB/s, without those that were in the ring at the beginning. */
static double loader_repeat(struct bench *bench, struct reader *reader, double seconds, uint64_t unit)
{
    struct tokmap_stats stats;
    reader_stats(reader, &stats);
    reader_take(bench, reader, stats.ring_ready);
    return reader_repeat(bench, reader, TOKMAP_ID_I32, seconds, NULL, NULL) * (double)unit / 1e9;
}

static int run(struct bench *bench)
{
    static struct series found[2], limit, memory;
    struct values_case it = {.run = NULL};
    values_case_open(bench, &it);
    const double seconds = bench_seconds(bench, 0.4);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 9), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        for (int threads = 0; threads < 2; threads++)
            repeats_add(&repeats, &found[threads], loader_repeat(bench, &it.readers[threads], seconds, it.unit));
        repeats_add(&repeats, &limit, plain_repeat(bench, &it, seconds));
        repeats_add(&repeats, &memory, machine_own_mib());
    }
    bench_result(bench, "values_gb_s", "GB/s", &found[0], &limit);
    bench_result(bench, "values_gb_s_producer", "GB/s", &found[1], &limit);
    bench_result(bench, "values_memory_mib", "MiB", &memory, NULL);
    bench_answer(
        bench,
        "One thread delivers %.2f GB of values a second from memory, with their tokens: %.2f times the rate of "
        "a loop in plain C that copies the same rows; with a producer thread, %.2f times.",
        series_median(&found[0]), series_median(&found[0]) / series_median(&limit),
        series_median(&found[1]) / series_median(&limit));
    values_case_close(&it);
    return CLI_DONE;
}

const struct bench_case case_loader_values = {"loader", "values beside tokens, on the host", .run = run,
                                              .reads_files = true};
