/* SPDX-License-Identifier: MIT */
/*
 * case_check.c - is data loading the bottleneck of this training, on this machine? The answer is one sentence, with the
 * figures below it.
 *
 * The case starts one copy of this program for each rank on this machine, as a launcher starts the processes of a
 * training. Each copy has one loader, which delivers its rank's rows of the run as 64-bit inputs and targets in host
 * memory. All of them begin at the same time, so they share the storage, the page cache, the memory bandwidth, and the
 * processors. There are up to four measurements:
 *
 *     cold, without a pause   the tokens have been dropped from the page cache: what the storage gives
 *     warm, without a pause   the same steps again: what the processors give
 *     cold, in steps          each rank computes for --step-ms after its batches: how long steps wait
 *     warm, in steps          the same steps again
 *
 * A training step ends when its slowest rank ends, so the wait of a step is the longest wait of its ranks. In steps the
 * ring is small beside the steps that are measured, because a large ring would hide a storage that is too slow until
 * the measurement is over.
 *
 * Time and bytes are bounded: a measurement lasts --seconds, and the cold one reads at most a quarter of the memory and
 * at most half of an epoch, so that it never reads what it has cached itself.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "harness/machine.h"
#include "harness/storage.h"
#include "harness/verdict.h"
#include "platform/os.h"

/* ==== a rank, in a copy of this program ==== */

/*
 * One of the ranks of the case `check`: a copy of this program with one loader, as a training program has one loader in
 * each of its processes.
 */

#define CHECK_STEPS_MOST 4000 /* steps of an emulated training that a rank can report */

/* Task of a rank. All ranks of a measurement begin at the same time on the clock of the machine. */
struct check_task {
    uint64_t rank;
    uint64_t begin_ns;   /* when to begin, on os_clock_ns() */
    uint64_t length_ns;  /* without a step: how long it takes batches, at most */
    uint64_t steps;      /* without a step: the steps of the run that it reads; with one: how many steps it makes */
    uint64_t step_ns;    /* computing time of a step; 0: it takes batches without a pause */
    uint64_t ring_bytes; /* of the loader; 0: the default */
    uint64_t again;      /* 1: without a step, it begins again at step 0 when the steps have been read */
};

/* Report of a rank. */
struct check_report {
    uint64_t from_ns, to_ns; /* when it began and ended */
    uint64_t tokens;
    uint64_t steps;        /* steps that it has completed */
    uint64_t cpu_ns;       /* of all its threads, without the time of computing */
    uint64_t storage;      /* bytes that it read from storage; UINT64_MAX if unknown */
    uint64_t first_ns;     /* the time of its first call of next() */
    uint64_t computing_ns; /* of all steps but the first */
    uint64_t all_ns;       /* of these steps */
    uint64_t wait_count;
    uint32_t waits_us[CHECK_STEPS_MOST]; /* the time in next() in each step but the first */
    uint64_t whole;                      /* REPORT_WHOLE: all members have been written */
};

#define REPORT_WHOLE UINT64_C(0x7265706f72740a01)

/* Writes a task into the text from which the copy reads it (options.child). */
static void check_task_print(const struct check_task *task, char text[256])
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

/* Takes batches without a pause, and at least one, since without any there is no rate. */
static void take_all(struct bench *bench, struct rank *rank)
{
    const struct check_task *task = &rank->task;
    struct check_report *report = &rank->report;
    while (!report->tokens || os_clock_ns() - report->from_ns < task->length_ns) {
        const uint64_t before = os_clock_ns();
        const enum tokmap_status status = reader_next(&rank->reader);
        if (status == TOKMAP_END && task->again) {
            if (tokmap_loader_rewind(rank->reader.loader, &rank->reader.error))
                bench_failed(bench, &rank->reader.error);
            continue;
        }
        if (status == TOKMAP_END)
            break;
        if (status)
            bench_failed(bench, &rank->reader.error);
        if (!report->first_ns)
            report->first_ns = os_clock_ns() - before;
        report->tokens += rank->reader.batch.tokens;
        report->steps += rank->reader.batch.last_in_step != 0;
    }
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
static void train(struct bench *bench, struct rank *rank, uint64_t *computing_cpu)
{
    struct check_report *report = &rank->report;
    const uint64_t calls = tokmap_loader_calls_per_step(rank->reader.loader);
    for (uint64_t step = 0; step < rank->task.steps; step++) {
        const uint64_t began = os_clock_ns();
        uint64_t waited = 0, computed = 0;
        for (uint64_t call = 0; call < calls; call++) {
            const uint64_t before = os_clock_ns();
            if (reader_next(&rank->reader))
                bench_failed(bench, &rank->reader.error);
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
}

/* Does the work of the copy: reads the task from options.child, measures, and writes a report. Returns the exit
 * status. */
static int check_rank(struct bench *bench)
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
    const struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    const uint64_t steps = rank.task.step_ns ? TOKMAP_FOREVER : rank.task.steps;
    rank.run = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 1, steps);
    const uint64_t now = os_clock_ns();
    if (now < rank.task.begin_ns)
        os_sleep_ns(rank.task.begin_ns - now);
    const uint64_t storage = os_storage_bytes_read(), cpu = os_process_cpu_ns();
    report->from_ns = os_clock_ns();
    reader_open(bench, &rank.reader, rank.run, &options);
    rank.reader.out.type = TOKMAP_ID_I64; /* as PyTorch's embedding and loss functions take them */
    if (rank.task.step_ns)
        train(bench, &rank, &computing_cpu);
    else
        take_all(bench, &rank);
    report->to_ns = os_clock_ns();
    report->cpu_ns = os_process_cpu_ns() - cpu - computing_cpu;
    report->storage = storage == UINT64_MAX ? UINT64_MAX : os_storage_bytes_read() - storage;
    reader_close(&rank.reader);
    tokmap_run_close(rank.run);
    report->whole = REPORT_WHOLE;
    return fwrite(report, sizeof *report, 1, stdout) == 1 ? CLI_DONE : CLI_FAILED; /* for the same program */
}

/* ==== the case `check` ==== */

#define RANKS_MOST 256
#define COLD_BYTES_MOST ((uint64_t)16 << 30)
#define WARM_BYTES ((uint64_t)1 << 30) /* a dataset of up to this size is read into the page cache as a whole */
#define RING_STEPS 4                   /* the ring holds a quarter of the steps that are measured */
#define RING_BATCHES 32                /* ... and never more batches than by default */

enum { COLD, WARM, SIDES };
static const char *const side_names[SIDES] = {"cold", "warm"};

/* Each repeat adds one value to each series. */
struct side {
    struct series bytes_per_s, tokens_per_s; /* of all loaders together */
    struct series busy, others;              /* shares of the processors at that rate, of the loaders and others */
    struct series amplification;             /* bytes read from storage / bytes of tokens delivered */
    struct series wait_share, au;            /* 0 to 1; au: of the rank whose share is smallest */
    struct spread wait_ms;                   /* of steps; its p999 is not used */
    struct series first_ms;                  /* the longest first call */
    struct series step_cpu_ms;               /* processor time of all loaders in a step */
};

struct check {
    struct tokmap_run *run;
    struct run_data data;
    uint64_t ranks, step_rows; /* rows of a step that these ranks own */
    double step_tokens, step_bytes;
    uint64_t cold_steps, warm_steps; /* of the measurements without a pause */
    bool warm_again;                 /* the warm one reads its steps again and again */
    uint64_t train_steps;            /* of the measurements in steps; 0: they are left out */
    double seconds;
    bool can_drop;
    char cold_reason[1024];
    struct child_copy *copies;
    struct check_report *reports;
    struct side sides[SIDES];
};

/* ---- one measurement ---- */

static void ranks_run(struct bench *bench, struct check *check, const struct check_task *task)
{
    /* A copy needs a few milliseconds to start and to open the run. */
    const uint64_t begin = os_clock_ns() + 100000000 + 10000000 * check->ranks;
    for (uint64_t rank = 0; rank < check->ranks; rank++) {
        struct check_task own = *task;
        own.rank = rank;
        own.begin_ns = begin;
        check_task_print(&own, check->copies[rank].what);
    }
    child_run_copies(bench, check->copies, check->ranks);
    for (uint64_t rank = 0; rank < check->ranks; rank++) {
        memcpy(&check->reports[rank], check->copies[rank].output, sizeof check->reports[rank]);
        if (check->reports[rank].whole == REPORT_WHOLE)
            continue;
        cli_say(bench->program, "rank %" PRIu64 " did not report what it measured", rank);
        bench_end(bench, CLI_FAILED);
    }
}

/* Takes batches without a pause, and adds the rates. */
static void rates_run(struct bench *bench, struct check *check, const struct check_task *task, struct side *side)
{
    struct machine_times before, after;
    machine_times(&before);
    ranks_run(bench, check, task);
    machine_times(&after);
    uint64_t from = UINT64_MAX, to = 0, tokens = 0, cpu = 0, storage = 0;
    bool storage_known = true;
    for (uint64_t rank = 0; rank < check->ranks; rank++) {
        const struct check_report *report = &check->reports[rank];
        from = min64(from, report->from_ns);
        to = max64(to, report->to_ns);
        tokens += report->tokens;
        cpu += report->cpu_ns;
        storage += report->storage;
        storage_known &= report->storage != UINT64_MAX;
    }
    const double seconds = (double)max64(1, to - min64(from, to)) / 1e9;
    series_add(&side->tokens_per_s, (double)tokens / seconds);
    series_add(&side->bytes_per_s, (double)tokens * check->data.info.width / seconds);
    series_add(&side->busy, fmin(1, (double)cpu / 1e9 / seconds / os_processors()));
    if (storage_known && tokens && check->data.info.shards)
        series_add(&side->amplification, (double)storage / ((double)tokens * check->data.info.width));
    const double others = machine_others(&before, &after), steal = machine_steal(&before, &after);
    series_add(&side->others, isfinite(others) ? fmin(others + steal, 1 - series_last(&side->busy)) : 0);
}

/* Adds the waits of a measurement in steps. */
static void waits_add(struct bench *bench, const struct check *check, struct side *side)
{
    static uint32_t waits[CHECK_STEPS_MOST];
    struct samples samples = {.ns = waits}; /* in microseconds */
    uint64_t sum_us = 0, first = 0, cpu = 0, steps = 0;
    double au = 1;
    memset(waits, 0, sizeof waits);
    samples.count = (size_t)check->reports[0].wait_count;
    for (uint64_t rank = 0; rank < check->ranks; rank++) {
        const struct check_report *report = &check->reports[rank];
        samples.count = (size_t)min64(samples.count, report->wait_count);
        for (uint64_t i = 0; i < report->wait_count; i++)
            waits[i] = (uint32_t)max64(waits[i], report->waits_us[i]);
        if (report->all_ns)
            au = fmin(au, (double)report->computing_ns / (double)report->all_ns);
        first = max64(first, report->first_ns);
        cpu += report->cpu_ns;
        steps = max64(steps, report->steps);
    }
    for (size_t i = 0; i < samples.count; i++)
        sum_us += waits[i];
    series_add(&side->first_ms, (double)first / 1e6);
    series_add(&side->step_cpu_ms, (double)cpu / 1e6 / (double)max64(1, steps));
    if (!samples.count)
        return;
    const double computing_us = (double)samples.count * bench->options.step_ms * 1e3;
    series_add(&side->wait_share, (double)sum_us / ((double)sum_us + computing_us));
    series_add(&side->au, au);
    spread_add(&side->wait_ms, &samples, 1000);
}

/* Returns the steps that every rank has completed. */
static uint64_t steps_read(const struct check *check)
{
    uint64_t steps = UINT64_MAX;
    for (uint64_t rank = 0; rank < check->ranks; rank++)
        steps = min64(steps, check->reports[rank].steps);
    return steps;
}

/* Drops the tokens; if that fails, there are no cold measurements, and cold_reason says why. */
static void drop(struct check *check)
{
    struct tokmap_error error = {0};
    if (!check->can_drop || !page_cache_try_drop(check->data.source.dataset, &error))
        return;
    char text[1500];
    check->can_drop = false;
    (void)snprintf(check->cold_reason, sizeof check->cold_reason, "%s", tokmap_error_print(&error, text, sizeof text));
    check->cold_reason[strcspn(check->cold_reason, ";")] = '\0'; /* what to do about it does not belong in a sentence */
}

static void rates_measure(struct bench *bench, struct check *check)
{
    const uint64_t length = (uint64_t)(check->seconds * 1e9);
    drop(check);
    if (check->can_drop)
        rates_run(bench, check, &(struct check_task){.length_ns = length, .steps = check->cold_steps},
                  &check->sides[COLD]);
    else if (check->warm_again) /* bring the steps into the page cache */
        ranks_run(bench, check, &(struct check_task){.length_ns = 5 * length, .steps = check->warm_steps});
    if (check->warm_again)
        check->warm_steps = max64(1, min64(check->warm_steps, steps_read(check)));
    else
        page_cache_warm(bench, check->data.source.dataset);
    rates_run(bench, check,
              &(struct check_task){.length_ns = length, .steps = check->warm_steps, .again = check->warm_again},
              &check->sides[WARM]);
}

static void waits_measure(struct bench *bench, struct check *check)
{
    const uint64_t row = round_up((bench->options.seq_len + bench->options.lookahead) * check->data.info.width, 64);
    const uint64_t batches = min64(RING_BATCHES, max64(4, check->train_steps / RING_STEPS));
    struct check_task task = {.steps = check->train_steps, .step_ns = (uint64_t)(bench->options.step_ms * 1e6)};
    if (batches < RING_BATCHES)
        task.ring_bytes = batches * (bench->options.rows * row + 4096);
    for (int side = 0; side < SIDES; side++) {
        if (side == COLD)
            drop(check);
        if (side == COLD && !check->can_drop)
            continue;
        ranks_run(bench, check, &task);
        waits_add(bench, check, &check->sides[side]);
    }
}

/* ---- the case ---- */

/* Decides how much is read. */
static void plan(struct bench *bench, struct check *check)
{
    const struct bench_options *options = &bench->options;
    const uint64_t step_bytes = max64(1, (uint64_t)check->step_bytes);
    const uint64_t epoch_steps = check->data.source.windows / options->batch;
    const uint64_t cold_bytes = min64(COLD_BYTES_MOST, os_memory_limit() / 4);
    check->seconds = bench_seconds(bench, 2);
    check->can_drop = check->data.info.shards > 0;
    check->cold_steps = max64(1, min64(epoch_steps / 2, cold_bytes / step_bytes));
    check->warm_steps = max64(1, min64(epoch_steps, cold_bytes / step_bytes));
    check->warm_again = check->data.info.shards && check->data.info.tokens > WARM_BYTES / check->data.info.width;
    if (!check->warm_again)
        check->warm_steps = TOKMAP_FOREVER;
    if (!options->step_ms_given)
        return;
    const double steps = bench_seconds(bench, fmin(8, fmax(2, 24 * options->step_ms / 1e3))) * 1e3 / options->step_ms;
    check->train_steps = max64(4, min64(CHECK_STEPS_MOST, (uint64_t)fmin(steps, CHECK_STEPS_MOST) + 1));
}

static void check_open(struct bench *bench, struct check *check)
{
    const struct bench_options *options = &bench->options;
    char ranks[64], rows[32];
    check->ranks = options->ranks;
    check->run = run_make(bench, dataset_name(bench), TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER);
    check->data = run_get_data(bench, check->run);
    check->step_rows = mul_div(options->batch, check->ranks, options->world);
    check->step_tokens = (double)check->step_rows * (double)options->seq_len;
    check->step_bytes = check->step_tokens * check->data.info.width;
    plan(bench, check);
    check->copies = bench_new(bench, check->ranks, sizeof *check->copies);
    check->reports = bench_new(bench, check->ranks, sizeof *check->reports);
    for (uint64_t rank = 0; rank < check->ranks; rank++) {
        check->copies[rank].capacity = sizeof *check->reports + 1;
        check->copies[rank].output = bench_new(bench, check->copies[rank].capacity, 1);
    }
    bench_say(bench, "%s: %s rows of %" PRIu64 " tokens in each step", cli_counted(check->ranks, "loader", ranks),
              cli_count(check->step_rows, rows), options->seq_len);
}

static void check_close(struct check *check)
{
    for (uint64_t rank = 0; check->copies && rank < check->ranks; rank++)
        free(check->copies[rank].output);
    free(check->copies);
    free(check->reports);
    tokmap_run_close(check->run);
}

/* Writes a result of one side, whose name begins with "cold_" or "warm_". scale: of the values. */
static void side_result(struct bench *bench, int side, const char *metric, const char *unit,
                        const struct series *values, double scale, double limit)
{
    char name[64];
    static struct series scaled, limits;
    scaled.count = limits.count = 0;
    for (size_t i = 0; i < values->count; i++)
        series_add(&scaled, values->values[i] * scale);
    if (isfinite(limit))
        series_add(&limits, limit);
    (void)snprintf(name, sizeof name, "%s_%s", side_names[side], metric);
    bench_result(bench, name, unit, &scaled, limits.count ? &limits : NULL);
}

static void results_write(struct bench *bench, const struct check *check)
{
    const double step_s = bench->options.step_ms / 1e3;
    const bool stepped = bench->options.step_ms_given;
    const double need = stepped ? check->step_bytes / step_s : (double)NAN;
    if (stepped) {
        bench_value(bench, "need_gb_s", "GB/s", need / 1e9, (double)NAN);
        bench_value(bench, "need_tokens_per_s", "tokens/s", check->step_tokens / step_s, (double)NAN);
    }
    for (int i = 0; i < SIDES; i++) {
        const struct side *side = &check->sides[i];
        struct series fastest = {.count = 0};
        for (size_t k = 0; k < side->bytes_per_s.count; k++)
            series_add(&fastest, check->step_bytes / side->bytes_per_s.values[k] * 1e3);
        side_result(bench, i, "gb_s", "GB/s", &side->bytes_per_s, 1e-9, need / 1e9);
        side_result(bench, i, "tokens_per_s", "tokens/s", &side->tokens_per_s, 1, need / check->data.info.width);
        side_result(bench, i, "fastest_step_ms", "ms", &fastest, 1, stepped ? bench->options.step_ms : (double)NAN);
        side_result(bench, i, "amplification", "1", &side->amplification, 1, (double)NAN);
        side_result(bench, i, "saturated_cpu_percent", "%", &side->busy, 100, (double)NAN);
        side_result(bench, i, "wait_percent", "%", &side->wait_share, 100, (double)NAN);
        side_result(bench, i, "au_percent", "%", &side->au, 100, (double)NAN);
        side_result(bench, i, "wait_p50_ms", "ms", &side->wait_ms.p50, 1, (double)NAN);
        side_result(bench, i, "wait_p99_ms", "ms", &side->wait_ms.p99, 1, (double)NAN);
        side_result(bench, i, "wait_max_ms", "ms", &side->wait_ms.largest, 1, (double)NAN);
        side_result(bench, i, "first_wait_ms", "ms", &side->first_ms, 1, (double)NAN);
        side_result(bench, i, "cpu_ms_per_step", "ms", &side->step_cpu_ms, 1, (double)NAN);
    }
}

static int judge(struct bench *bench, const struct check *check)
{
    struct verdict_answer answer;
    const struct side *cold = &check->sides[COLD], *warm = &check->sides[WARM];
    const uint64_t bytes = check->data.info.shards ? check->data.info.tokens * check->data.info.width : 0;
    const struct verdict_figures figures = {
        .ranks = check->ranks,
        .step_ms = bench->options.step_ms_given ? bench->options.step_ms : 0,
        .step_bytes = check->step_bytes,
        .cold = series_median(&cold->bytes_per_s),
        .warm = series_median(&warm->bytes_per_s),
        .wait_cold = series_median(&cold->wait_share),
        .wait_warm = series_median(&warm->wait_share),
        .busy = series_median(&warm->busy),
        .others = series_median(&warm->others),
        .processors = os_processors(),
        .dataset_bytes = bytes,
        .fits = bytes < os_memory_limit() / 2,
        .cold_reason = check->cold_reason[0] ? check->cold_reason : NULL,
    };
    verdict_find(&figures, &answer);
    bench_verdict(bench, answer.verdict, verdict_name(answer.verdict), verdict_binds_name(answer.binds),
                  answer.sentence);
    const enum verdict worst = bench->options.require == BENCH_REQUIRE_OK ? VERDICT_OK : VERDICT_TIGHT;
    return bench->options.require_given && answer.verdict > worst ? CLI_FAILED : CLI_DONE;
}

static int run(struct bench *bench)
{
    static struct check check;
    const struct bench_options *options = &bench->options;
    if (options->child)
        return check_rank(bench);
    if (!options->run_file && !options->batch_given)
        return bench_misused(bench,
                             options->dataset
                                 ? "this is a dataset; name a run file, or say with --seq-len and --batch what a step "
                                   "of the training reads"
                                 : "name a run file, or a dataset with --seq-len and --batch");
    if (options->cold || options->device_given)
        return bench_misused(bench, options->cold
                                        ? "--cold is not needed: the case measures both cold and warm"
                                        : "--device is for other cases: this one measures delivery to host memory, "
                                          "before any copy to a GPU; `tokmap-bench train --device` has the rest");
    if (options->require_given && options->require == BENCH_REQUIRE_HELD)
        return bench_misused(bench, "--require held is for the case gpu; here it is followed by tight or ok");
    if (options->require_given && !options->step_ms_given)
        return bench_misused(bench, "--require needs --step-ms, without which there is no verdict");
    if (options->ranks > RANKS_MOST)
        return bench_misused(bench, "--ranks must be at most 256, the loaders on this machine; --world has all ranks");
    check_open(bench, &check);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 1), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        rates_measure(bench, &check);
        if (check.train_steps)
            waits_measure(bench, &check);
    }
    results_write(bench, &check);
    const int result = judge(bench, &check);
    check_close(&check);
    return result;
}

const struct bench_case case_check = {
    "check", "is data loading the bottleneck here? what --ranks loaders need and get, and how long a step waits",
    .run = run};
