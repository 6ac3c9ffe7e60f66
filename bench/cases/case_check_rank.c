/* SPDX-License-Identifier: MIT */
/* case_check_rank.c - see case_check_rank.h. */
#include "case_check_rank.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "harness/reader.h"
#include "platform/os.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)

void check_task_print(const struct check_task *task, char text[256])
{
    (void)snprintf(text, 256, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                   task->rank, task->begin_ns, task->length_ns, task->steps, task->step_ns, task->ring_bytes,
                   task->again);
}

static bool task_read(const char *text, struct check_task *task)
{
    uint64_t numbers[7];
    if (!numbers_read(text, numbers, 7))
        return false;
    *task = (struct check_task){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]};
    return true;
}

/* ---- what a rank does ---- */

struct rank {
    struct check_task task;
    struct tokmap_run *run;
    struct reader reader;
    struct check_report report;
};

/* Takes batches without a pause. */
static int take_all(struct bench *bench, struct rank *rank)
{
    const struct check_task *task = &rank->task;
    struct check_report *report = &rank->report;
    while (os_clock_ns() - report->from_ns < task->length_ns) {
        const uint64_t before = os_clock_ns();
        const enum tokmap_status status = reader_next(&rank->reader);
        if (status == TOKMAP_END && task->again) {
            if (tokmap_loader_rewind(rank->reader.loader, &rank->reader.error))
                return bench_failed(bench, &rank->reader.error);
            continue;
        }
        if (status == TOKMAP_END)
            break;
        if (status)
            return bench_failed(bench, &rank->reader.error);
        if (!report->first_ns)
            report->first_ns = os_clock_ns() - before;
        report->tokens += rank->reader.batch.tokens;
        report->steps += rank->reader.batch.last_in_step != 0;
    }
    return CLI_DONE;
}

/* Computes for `ns`. Returns the processor time that this took, which is not the loader's. */
static uint64_t compute(struct bench *bench, uint64_t ns)
{
    const uint64_t started = os_clock_ns(), cpu = os_thread_cpu_ns();
    if (!bench->options.wait_given || bench->options.wait == BENCH_SLEEP)
        os_sleep_ns(ns);
    else
        while (os_clock_ns() - started < ns)
            os_relax();
    return os_thread_cpu_ns() - cpu;
}

/* Trains: takes the rows of a step in as many calls as the loader needs, and computes after each of them. */
static int train(struct bench *bench, struct rank *rank, uint64_t *computing_cpu)
{
    struct check_report *report = &rank->report;
    const uint64_t calls = tokmap_loader_calls(rank->reader.loader);
    for (uint64_t step = 0; step < rank->task.steps; step++) {
        const uint64_t began = os_clock_ns();
        uint64_t waited = 0, computed = 0;
        for (uint64_t call = 0; call < calls; call++) {
            const uint64_t before = os_clock_ns();
            if (reader_next(&rank->reader))
                return bench_failed(bench, &rank->reader.error);
            const uint64_t after = os_clock_ns();
            *computing_cpu += compute(bench, rank->task.step_ns / calls);
            waited += after - before;
            computed += os_clock_ns() - after;
            report->tokens += rank->reader.batch.tokens;
        }
        report->steps++;
        if (!step) {
            report->first_ns = waited;
            continue;
        }
        report->computing_ns += computed;
        report->all_ns += os_clock_ns() - began;
        report->waits_us[report->wait_count++] = (uint32_t)min64(UINT32_MAX, waited / 1000);
    }
    return CLI_DONE;
}

static void report_write(const struct check_report *report)
{
    (void)printf("from=%" PRIu64 " to=%" PRIu64 " tokens=%" PRIu64 " steps=%" PRIu64 " cpu=%" PRIu64 " storage=%" PRIu64
                 " first=%" PRIu64 " computing=%" PRIu64 " all=%" PRIu64 " waits=%" PRIu64,
                 report->from_ns, report->to_ns, report->tokens, report->steps, report->cpu_ns, report->storage,
                 report->first_ns, report->computing_ns, report->all_ns, report->wait_count);
    for (uint64_t i = 0; i < report->wait_count; i++)
        (void)printf(" %" PRIu32, report->waits_us[i]);
    (void)printf("\n");
}

int check_rank(struct bench *bench)
{
    static struct rank rank;
    uint64_t computing_cpu = 0;
    struct check_report *report = &rank.report;
    if (!task_read(bench->options.child, &rank.task) || (rank.task.step_ns && rank.task.steps > CHECK_STEPS_MOST)) {
        cli_say(bench->program, "'%s' is not a task of a rank", bench->options.child);
        return CLI_MISUSED;
    }
    bench->rank = rank.task.rank;
    bench->ring_bytes = rank.task.ring_bytes;
    const uint64_t steps = rank.task.step_ns ? TOKMAP_FOREVER : rank.task.steps;
    int result = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 1, steps, &rank.run);
    const uint64_t now = os_clock_ns();
    if (!result && now < rank.task.begin_ns)
        os_sleep_ns(rank.task.begin_ns - now);
    const uint64_t storage = os_storage_bytes_read(), cpu = os_process_cpu_ns();
    report->from_ns = os_clock_ns();
    if (!result)
        result = reader_open(bench, &rank.reader, rank.run, 1, BOTH, 0);
    rank.reader.out.type = TOKMAP_I64; /* as PyTorch's embedding and loss functions take them */
    if (!result)
        result = rank.task.step_ns ? train(bench, &rank, &computing_cpu) : take_all(bench, &rank);
    report->to_ns = os_clock_ns();
    report->cpu_ns = os_process_cpu_ns() - cpu - computing_cpu;
    report->storage = storage == UINT64_MAX ? UINT64_MAX : os_storage_bytes_read() - storage;
    reader_close(&rank.reader);
    tokmap_run_close(rank.run);
    if (!result)
        report_write(report);
    return result;
}

bool check_report_read(const char *text, struct check_report *report)
{
    uint64_t numbers[10];
    text = numbers_read(text, numbers, 10);
    if (!text || numbers[9] > CHECK_STEPS_MOST)
        return false;
    *report = (struct check_report){.from_ns = numbers[0],
                                    .to_ns = numbers[1],
                                    .tokens = numbers[2],
                                    .steps = numbers[3],
                                    .cpu_ns = numbers[4],
                                    .storage = numbers[5],
                                    .first_ns = numbers[6],
                                    .computing_ns = numbers[7],
                                    .all_ns = numbers[8],
                                    .wait_count = numbers[9]};
    for (uint64_t i = 0; i < report->wait_count; i++) {
        text = numbers_read(text, numbers, 1);
        if (!text)
            return false;
        report->waits_us[i] = (uint32_t)min64(UINT32_MAX, numbers[0]);
    }
    return true;
}
