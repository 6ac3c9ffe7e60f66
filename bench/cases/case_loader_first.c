/* SPDX-License-Identifier: MIT */
/* case_loader_first.c - see case_loader_first.h. */
#include "case_loader_first.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "platform/os.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define ROWS_MOST ((uint64_t)1 << 20)

/* Makes `passes` passes of a loader that has just been opened, and sets rates[i] to the tokens per second of pass i. A
 * pass of a large dataset ends after ROWS_MOST rows. */
static int passes_make(struct bench *bench, const char *name, uint32_t threads, uint32_t passes, double *rates,
                       uint64_t *batches)
{
    struct tokmap_run *run = NULL;
    struct reader reader;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    reader_clear(&reader);
    int result = run_make(bench, name, TOKMAP_READ_MAPPED, 1, TOKMAP_FOREVER, &run);
    if (!result)
        result = run_get_info(bench, run, &source, &info);
    if (!result)
        result = reader_open(bench, &reader, run, threads, BOTH, 0);
    *batches = max64(1, min64(source.windows, ROWS_MOST) / bench->options.rows);
    for (uint32_t pass = 0; !result && pass < passes; pass++) {
        const uint64_t started = os_clock_ns();
        for (uint64_t i = 0; !result && i < *batches && !bench_stopped(); i++)
            if (reader_next(&reader))
                result = bench_failed(bench, &reader.error);
        rates[pass] = (double)(*batches * bench->options.rows * bench->options.seq_len) /
                      ((double)(os_clock_ns() - started) / 1e9);
    }
    reader_close(&reader);
    tokmap_run_close(run);
    return result;
}

int loader_first_pass_child(struct bench *bench)
{
    double rate;
    uint64_t batches;
    const int result = passes_make(bench, bench->options.dataset, 0, 1, &rate, &batches);
    if (!result)
        (void)printf("batches=%" PRIu64 "\n", batches);
    return result;
}

/* Sets *calls to the system calls that strace counts in a copy of this program, those of its start included. */
static int calls_count(struct bench *bench, const char *strace, const char *name, double *calls)
{
    char output[8192] = "", rows[32], seq_len[32];
    (void)snprintf(rows, sizeof rows, "%" PRIu64, bench->options.rows);
    (void)snprintf(seq_len, sizeof seq_len, "%" PRIu64, bench->options.seq_len);
    const char *const arguments[] = {
        "-fqqc",     "-Ucalls,name", "-o",    "/dev/stdout", bench->self, CHILD_MARK, FIRST_PASS_CHILD,
        bench->name, "--seq-len",    seq_len, "--rows",      rows,        name,       NULL};
    const int result = child_run(bench, strace, arguments, output, sizeof output, NULL);
    const char *line = strstr(output, " total\n");
    while (line && line > output && line[-1] != '\n')
        line--;
    *calls = line ? strtod(line, NULL) / child_number(output, "batches") : 0;
    return result;
}

int loader_first_pass(struct bench *bench, const char *name)
{
    static struct series first[2], second[2], calls;
    static const char strace[] = "/usr/bin/strace";
    uint64_t batches;
    int result = CLI_DONE;
    struct repeats repeats = repeats_begin(bench_repeats(bench, 5), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        for (uint32_t threads = 0; threads < 2 && !result; threads++) {
            double rates[2] = {0, 0};
            result = passes_make(bench, name, threads, 2, rates, &batches);
            series_add(&first[threads], rates[0]);
            series_add(&second[threads], rates[1]);
        }
    struct os_stat program;
    double found = 0;
    if (!result && os_stat(strace, &program))
        bench_say(bench, "%s is missing, so system calls are not counted", strace);
    else if (!result)
        result = calls_count(bench, strace, name, &found);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_result(bench, "tokens_per_s_first_pass", "tokens/s", &first[0], &second[0]);
    bench_result(bench, "tokens_per_s_first_pass_producer", "tokens/s", &first[1], &second[1]);
    if (found > 0) {
        series_add(&calls, found);
        bench_result(bench, "first_pass_system_calls", "calls", &calls, NULL);
    }
    return CLI_DONE;
}
