/* SPDX-License-Identifier: MIT */
/*
 * case_gpu.c - the figures of the GPU path, each beside the bar that it has to reach, from one command.
 *
 * Nothing is measured here but the clock. The cases h2d, expand, loader, train (for two lengths of a step), and race
 * measure, each in a copy of this program, one after the other. A copy begins without kernels and without memory of
 * another case; and if a GPU fails in one of them, the context of the next one is sound, and the other figures are
 * still there. Each copy prints JSON, from which this case picks the figures.
 *
 * The clock of the GPU is not known to its driver. A kernel on one thread, whose time depends on that clock alone, is
 * timed before the first case and after the last one. If the clock is lower at the end, because of heat or a limit of
 * power, figures of different cases do not belong together.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/gpu.h"
#include "harness/gpu_facts.h"
#include "harness/result_rows.h"

enum part { H2D, EXPAND, LOADER, LONG_STEPS, SHORT_STEPS, RACE, PARTS };

static const struct figure {
    enum part part;
    const char *row; /* of the part's case */
    const char *metric, *unit;
    double bar; /* NAN: none */
} figures[] = {
    {H2D, "same_size_share", "h2d_same_size_share", "share", 0.98},
    {H2D, "small_pages_share", "h2d_small_pages_share", "share", (double)NAN},
    {EXPAND, "i32_share", "expand_i32_share", "share", 0.8},
    {EXPAND, "i64_share", "expand_i64_share", "share", 0.8},
    {EXPAND, "positions_i32_share", "expand_positions_i32_share", "share", 0.8},
    {EXPAND, "all_i64_share", "expand_all_i64_share", "share", 0.8},
    {EXPAND, "us_i32_32768", "expand_i32_32k_us", "us", 3},
    {EXPAND, "us_i64_32768", "expand_i64_32k_us", "us", 3},
    {EXPAND, "us_positions_i32_32768", "expand_positions_i32_32k_us", "us", 3},
    {EXPAND, "us_all_i64_32768", "expand_all_i64_32k_us", "us", 3},
    {LOADER, "kernel", "kernel", "0|1", 1},
    {LOADER, "next_over_launch_us", "next_over_launch_us", "us", 2},
    {LOADER, "driver_call_us", "driver_call_us", "us", 6},
    {LOADER, "producer_calls", "producer_calls", "calls", 6},
    {LOADER, "consumer_calls", "consumer_calls", "calls", (double)NAN},
    {LOADER, "waiting_calls", "waiting_calls", "calls", 0},
    {LOADER, "open_first_64mib_ms", "open_first_64mib_ms", "ms", 20},
    {LOADER, "open_64mib_ms", "open_64mib_ms", "ms", 20},
    {LOADER, "open_first_compiled_64mib_ms", "open_first_compiled_64mib_ms", "ms", (double)NAN},
    {LONG_STEPS, "share_percent", "train_24ms_share_percent", "%", 99.9},
    {SHORT_STEPS, "share_percent", "train_2ms_share_percent", "%", 99.5},
    {RACE, "mismatches", "race_mismatches", "outputs", 0},
    {RACE, "batches", "race_batches", "batches", 1000000},
};

enum { FIGURES = sizeof figures / sizeof figures[0] };

#define OUTPUT_BYTES ((size_t)1 << 20) /* more than the JSON of any case */
#define SPIN_ROUNDS 2000000            /* some milliseconds */

/* ---- the cases ---- */

/* Makes the command line of a part. Options of rows are left to a run file that has them. */
static void part_words(const struct bench *bench, enum part part, const char *data, struct child_arguments *words)
{
    static const char *const names[PARTS] = {"h2d", "expand", "loader", "train", "train", "race"};
    const struct bench_options *options = &bench->options;
    *words = (struct child_arguments){.count = 0};
    arguments_add(words, names[part]);
    arguments_add(words, "--json");
    arguments_text(words, "--dir", options->folder);
    arguments_number(words, "--device", options->device);
    if (options->repeats)
        arguments_number(words, "--repeats", options->repeats);
    if (options->seconds > 0)
        arguments_real(words, "--seconds", options->seconds);
    if (part == RACE)
        arguments_number(words, "--batches", options->batches);
    if (part == H2D || part == EXPAND)
        arguments_number(words, "--copy-bytes", options->copy_bytes);
    if (part == H2D || part == RACE)
        return;
    if (!options->run_file)
        arguments_number(words, "--seq-len", options->seq_len);
    if (part == EXPAND)
        return;
    if (part == LOADER && !options->run_file)
        arguments_number(words, "--rows", options->rows);
    if (part == LONG_STEPS || part == SHORT_STEPS) {
        arguments_real(words, "--step-ms", part == LONG_STEPS ? 24.5 : 2.5);
        if (!options->run_file)
            arguments_number(words, "--batch-tokens", options->batch_tokens);
    }
    arguments_add(words, data);
}

/* Fills in the figures of a part from the JSON that its case has printed. */
static void figures_find(const char *output, enum part part, struct bench_figure found[FIGURES])
{
    struct result_rows rows = {0};
    struct tokmap_error error = {0};
    (void)result_rows_parse(&rows, output, strlen(output), "the results", &error); /* those before a wrong line count */
    for (size_t i = 0; i < FIGURES; i++)
        for (size_t k = 0; k < rows.count && figures[i].part == part; k++) {
            const struct result_row *row = &rows.rows[k];
            if (strcmp(row->metric, figures[i].row) != 0)
                continue;
            found[i].value = row->value;
            found[i].smallest = row->smallest;
            found[i].largest = row->largest;
            found[i].count = (size_t)row->count;
            break;
        }
    result_rows_free(&rows);
}

/* Runs a case in a copy of this program and picks its figures. Its failure is no reason not to run the others. */
static int part_run(struct bench *bench, enum part part, const char *data, struct bench_figure found[FIGURES])
{
    static char output[OUTPUT_BYTES];
    struct child_arguments words;
    part_words(bench, part, data, &words);
    bench_say(bench, "measuring %d of %d: %s%s", part + 1, PARTS, words.list[0],
              part == LONG_STEPS    ? ", steps of 24.5 ms"
              : part == SHORT_STEPS ? ", steps of 2.5 ms"
                                    : "");
    const int result = child_try(bench, bench->self, words.list, output, sizeof output, NULL);
    if (bench->options.json) {
        (void)fputs(output, stdout);
        (void)fflush(stdout);
    }
    figures_find(output, part, found);
    return result;
}

/* ---- the GPU ---- */

/* Returns the milliseconds of a kernel that depends on the GPU's clock alone, the shortest of several, after the clock
 * had time to rise. */
static double clock_measure(struct gpu *gpu)
{
    struct gpu_timer timer;
    uint64_t out = gpu_memory_new(gpu, 8);
    double shortest = 1e300;
    gpu_timer_new(gpu, &timer);
    for (int i = 0; i < 20; i++) {
        gpu_timer_start(gpu, &timer);
        gpu_launch_spin(gpu, &(struct gpu_spin){out, SPIN_ROUNDS});
        gpu_timer_stop(gpu, &timer);
        const double ms = gpu_timer_read(gpu, &timer);
        shortest = ms > 0 && ms < shortest ? ms : shortest;
    }
    gpu_memory_free(gpu, &out);
    gpu_timer_free(gpu, &timer);
    return shortest;
}

/* Opens the GPU for a moment, so that no other case shares it with a context of this process. */
static double look(struct bench *bench, struct gpu_facts *facts)
{
    struct gpu gpu;
    gpu_open(bench, &gpu);
    const double ms = clock_measure(&gpu);
    gpu_facts_read(&gpu, facts); /* while the link is not asleep */
    gpu_close(&gpu);
    return ms;
}

static void facts_report(struct bench *bench, const struct gpu_facts *facts)
{
    char line[256], whole[512];
    (void)gpu_facts_line(facts, line, sizeof line);
    (void)snprintf(whole, sizeof whole, "%s, %s", facts->name, line);
    bench_text(bench, "device", whole);
    if (!bench->options.json) {
        cli_print("cuda:%u: %s\n", (unsigned)bench->options.device, line);
        return;
    }
    const struct {
        const char *metric, *unit;
        double value;
    } rows[] = {{"capability", "version", facts->capability}, {"driver_cuda", "version", facts->cuda},
                {"link_gt_s", "GT/s", facts->link_gt_s},      {"link_lanes", "lanes", facts->link_lanes},
                {"coherent", "0|1", facts->coherent},         {"clock_mhz", "MHz", facts->clock_mhz}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (isfinite(rows[i].value))
            bench_value(bench, rows[i].metric, rows[i].unit, rows[i].value, (double)NAN);
}

/* ---- the answer ---- */

/* Writes the figures and the sentence. Returns whether all that have a bar are held. */
static bool report(struct bench *bench, struct bench_figure found[FIGURES])
{
    char names[768] = "";
    size_t held = 0, with_bar = 0, missing = 0, used = 0;
    for (size_t i = 0; i < FIGURES; i++) {
        const enum bench_held verdict = bench_figure(bench, &found[i]);
        held += verdict == BENCH_HELD;
        missing += verdict == BENCH_NOT_MEASURED && isfinite(figures[i].bar);
        with_bar += isfinite(figures[i].bar);
        if (verdict == BENCH_SHORT && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s is %.4g %s (bar %.7g)", used ? ", " : "",
                                     found[i].metric, found[i].value, found[i].unit, found[i].bar);
    }
    if (held == with_bar)
        bench_answer(bench, "All %zu figures that have a bar are held.", with_bar);
    else if (used)
        bench_answer(bench,
                     "%zu of %zu figures that have a bar are held, %zu were not measured, and %zu are short: %s.", held,
                     with_bar, missing, with_bar - held - missing, names);
    else
        bench_answer(bench, "%zu of %zu figures that have a bar are held, and %zu were not measured.", held, with_bar,
                     missing);
    return held == with_bar;
}

static const char *check_options(const struct bench *bench)
{
    const struct bench_options *options = &bench->options;
    if (options->step_ms_given)
        return "--step-ms is for train: this case measures steps of 24.5 and of 2.5 ms";
    if (options->cold)
        return "--cold is for loader and train: this case measures the way from memory to the GPU";
    if (options->require_given && options->require != BENCH_REQUIRE_HELD)
        return "--require is here followed by held";
    return NULL;
}

static int run(struct bench *bench)
{
    static struct bench_figure found[FIGURES];
    struct gpu_facts facts;
    const char *data = bench->options.run_file;
    const char *wrong = check_options(bench);
    int parts = CLI_DONE;
    if (wrong)
        return bench_misused(bench, wrong);
    const double before = look(bench, &facts);
    if (!data)
        data = dataset_name(bench);
    facts_report(bench, &facts);
    for (size_t i = 0; i < FIGURES; i++)
        found[i] = (struct bench_figure){.metric = figures[i].metric,
                                         .unit = figures[i].unit,
                                         .value = (double)NAN,
                                         .smallest = (double)NAN,
                                         .largest = (double)NAN,
                                         .bar = figures[i].bar};
    for (int part = 0; part < PARTS; part++) {
        bench_stop_check(bench);
        if (part_run(bench, (enum part)part, data, found))
            parts = CLI_FAILED;
    }
    bench_stop_check(bench);
    const bool held = report(bench, found);
    const double share = before / look(bench, &facts);
    (void)bench_figure(
        bench, &(struct bench_figure){"clock_share", "share", share, share, share, isfinite(share), (double)NAN});
    bench_text(bench, "answer", bench->sentence);
    return parts || (bench->options.require_given && !held) ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_gpu = {
    "gpu", "all figures of the GPU path beside their bars: runs h2d, expand, loader, train, and race on a GPU",
    .run = run};
