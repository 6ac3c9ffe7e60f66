/*
 * case_open.c - what it takes to begin: process start to first batch, by size of the dataset; opening alone; the first
 * batch from cold storage; resuming.
 *
 * The times from process start are taken by copies of this program: the parent reads the clock before it starts one,
 * the copy reads the same clock when it has its first batch. That covers exec, dynamic linking, opening and reading.
 * The limit is a copy that does nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/child.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "harness/dataset_make.h"
#include "platform/os.h"
#include "platform/process.h"
#include "harness/reader.h"

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
#define SHARD_TOKENS ((uint64_t)2000000000000) /* 4 TB of two-byte tokens */

enum { DATASET, ONE_SHARD, FIVE_SHARDS, SIZES };

static const struct open_size {
    const char *label;
    uint64_t shards;
} sizes[SIZES] = {{"dataset", 0}, {"4tb", 1}, {"1e13_tokens", 5}};

struct opening {
    char names[SIZES][BENCH_PATH];
    bool there[SIZES];
    struct series start[SIZES], cold[SIZES], rss[SIZES], open[SIZES], open_limit[SIZES];
    struct series nothing, nothing_cold;
    struct series first_mapped, first_pread;
    struct series resume[3];
};

/* ---- the copies ---- */

static int child_start(struct bench *bench)
{
    struct tokmap_run *run = NULL;
    struct reader reader;
    int result = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 5, TOKMAP_FOREVER, &run);
    if (result)
        return result;
    result = reader_open(bench, &reader, run, 1, BOTH, 0);
    if (!result && reader_next(&reader))
        result = bench_failed(bench, &reader.error);
    uint64_t now = os_clock_ns();
    if (!result)
        (void)printf("at=%" PRIu64 " rss=%" PRIu64 "\n", now, os_memory_resident());
    reader_close(&reader);
    tokmap_run_close(run);
    return result;
}

static int child_nothing(void)
{
    (void)printf("at=%" PRIu64 " rss=%" PRIu64 "\n", os_clock_ns(), os_memory_resident());
    return CLI_DONE;
}

/* Starts a copy; ms: from before its start to what it reports. */
static int start_copy(struct bench *bench, const char *what, const char *name, double *ms, double *rss_mib)
{
    char output[256], seq_len[32], rows[32];
    uint64_t started;
    (void)snprintf(seq_len, sizeof seq_len, "%" PRIu64, bench->options.seq_len);
    (void)snprintf(rows, sizeof rows, "%" PRIu64, bench->options.rows);
    const char *const arguments[] = {"open", "--child", what, "--seq-len", seq_len, "--rows", rows, name, NULL};
    int result = child_run(bench, bench->self, arguments, output, sizeof output, &started);
    *ms = (child_number(output, "at") - (double)started) / 1e6;
    *rss_mib = child_number(output, "rss") / 1048576;
    if (!result && !isfinite(*ms)) {
        cli_say(bench->program, "a copy of this program reported nothing");
        result = CLI_FAILED;
    }
    return result;
}

static int start_turn(struct bench *bench, struct opening *opening, bool counts)
{
    double ms = 0, rss = 0;
    int result = start_copy(bench, "nothing", opening->names[DATASET], &ms, &rss);
    if (counts)
        series_add(&opening->nothing, ms);
    for (size_t i = 0; !result && i < SIZES; i++) {
        if (!opening->there[i])
            continue;
        result = start_copy(bench, "start", opening->names[i], &ms, &rss);
        if (counts && !result) {
            series_add(&opening->start[i], ms);
            series_add(&opening->rss[i], rss);
        }
    }
    return result;
}

/* The same with nothing of the system in memory: programs, libraries, folders, index and tokens come from storage. */
static int start_cold_turn(struct bench *bench, struct opening *opening)
{
    double ms = 0, rss = 0;
    int system = os_drop_all_caches();
    int result = CLI_DONE;
    if (!system)
        result = start_copy(bench, "nothing", opening->names[DATASET], &ms, &rss);
    series_add(&opening->nothing_cold, ms);
    for (size_t i = 0; !system && !result && i < SIZES; i++) {
        if (!opening->there[i])
            continue;
        system = os_drop_all_caches();
        if (!system)
            result = start_copy(bench, "start", opening->names[i], &ms, &rss);
        series_add(&opening->cold[i], ms);
    }
    if (system)
        return bench_failed_system(bench, system, "/proc/sys/vm/drop_caches", "The caches cannot be dropped.");
    return result;
}

/* ---- opening alone ---- */

/* What no opening of a shard can do without: both files opened and asked for their size, a page of the index read. */
static int bare_open(const char *tokens_path, const char *index_path, double *us)
{
    uint8_t page[4096];
    struct os_stat stat;
    size_t got;
    int tokens, index;
    uint64_t started = os_clock_ns();
    int system = os_open(tokens_path, OS_READ, &tokens);
    if (system)
        return system;
    system = os_open(index_path, OS_READ, &index);
    if (!system) {
        system = os_fstat(tokens, &stat);
        if (!system)
            system = os_fstat(index, &stat);
        if (!system)
            system = os_pread(index, page, sizeof page, 0, &got);
        *us = (double)(os_clock_ns() - started) / 1000;
        os_close(index);
    }
    os_close(tokens);
    return system;
}

static int open_turn(struct bench *bench, struct opening *opening, size_t size)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_shard_info shard = {.size = sizeof shard};
    struct tokmap_error error = {0};
    double us = 0;
    uint64_t started = os_clock_ns();
    if (tokmap_dataset_open(&dataset, opening->names[size], NULL, &error))
        return bench_failed(bench, &error);
    double spent = (double)(os_clock_ns() - started) / 1000;
    int result = CLI_DONE, system = 0;
    if (tokmap_dataset_info(dataset, &info) || tokmap_dataset_shard(dataset, 0, &shard, &error))
        result = bench_failed(bench, &error);
    if (!result)
        system = bare_open(shard.tokens_path, shard.index_path, &us);
    tokmap_dataset_close(dataset);
    if (system)
        return bench_failed_system(bench, system, opening->names[size], "The shard cannot be opened.");
    series_add(&opening->open[size], spent / (double)max64(1, info.shards));
    series_add(&opening->open_limit[size], us);
    return result;
}

/* ---- the first batch, its tokens cold and its index warm ---- */

static int first_batch_turn(struct bench *bench, struct opening *opening, enum tokmap_reading reading,
                            struct series *series)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    int result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = dataset_drop(bench, dataset);
    tokmap_dataset_close(dataset);
    if (result)
        return result;
    uint64_t started = os_clock_ns();
    result = run_make(bench, opening->names[DATASET], reading, started, TOKMAP_FOREVER, &run);
    if (!result)
        result = reader_open(bench, &reader, run, 1, BOTH, 0);
    if (!result && reader_next(&reader))
        result = bench_failed(bench, &reader.error);
    series_add(series, (double)(os_clock_ns() - started) / 1e6);
    reader_close(&reader);
    tokmap_run_close(run);
    return result;
}

/* ---- resuming ---- */

static int open_loader(struct bench *bench, const struct tokmap_run *run, const char *resume,
                       struct tokmap_loader **loader, double *us)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_error error = {0};
    options.threads = 0;
    options.resume = resume;
    uint64_t started = os_clock_ns();
    if (tokmap_loader_open(loader, run, &options, &error))
        return bench_failed(bench, &error);
    *us = (double)(os_clock_ns() - started) / 1000;
    return CLI_DONE;
}

/* The first batch after a resume holds the windows that the run says. */
static int resume_check(struct bench *bench, const struct tokmap_run *run, struct tokmap_loader *loader, uint64_t step)
{
    struct reader reader = {.loader = loader, .out = TOKMAP_OUT_INIT};
    struct tokmap_place place;
    if (outputs_new(&reader.outputs, bench->options.rows, bench->options.seq_len, TOKMAP_I32))
        return bench_no_memory(bench);
    reader.out.inputs = reader.outputs.inputs;
    reader.out.targets = reader.outputs.targets;
    int result = CLI_DONE;
    if (reader_next(&reader) || tokmap_run_locate(run, step, 0, &place, &reader.error)) {
        result = bench_failed(bench, &reader.error);
    } else if (reader.batch.step != step || reader.batch.places[0].first_token != place.first_token) {
        cli_say(bench->program, "a loader resumed at step %" PRIu64 " delivered other rows than the run says", step);
        result = CLI_FAILED;
    }
    outputs_free(&reader.outputs);
    return result;
}

static int resume_turn(struct bench *bench, struct opening *opening, const struct tokmap_run *run, bool check)
{
    static const uint64_t steps[3] = {1, 12345, (uint64_t)1 << 40};
    for (size_t i = 0; i < 3; i++) {
        struct tokmap_loader *plain = NULL, *resumed = NULL;
        struct tokmap_cursor cursor;
        struct tokmap_error error = {0};
        char text[TOKMAP_CURSOR_TEXT];
        double without = 0, with = 0;
        if (tokmap_run_cursor(run, steps[i], &cursor, &error))
            return bench_failed(bench, &error);
        tokmap_cursor_print(&cursor, text);
        int result = open_loader(bench, run, NULL, &plain, &without);
        tokmap_loader_close(plain);
        if (!result)
            result = open_loader(bench, run, text, &resumed, &with);
        if (!result && check)
            result = resume_check(bench, run, resumed, steps[i]);
        tokmap_loader_close(resumed);
        if (result)
            return result;
        series_add(&opening->resume[i], with - without);
    }
    return CLI_DONE;
}

/* ---- the case ---- */

static int opening_make(struct bench *bench, struct opening *opening)
{
    const char *name;
    struct tokmap_dataset *dataset = NULL;
    int result = dataset_get(bench, &name);
    if (result)
        return result;
    (void)snprintf(opening->names[DATASET], BENCH_PATH, "%s", name);
    opening->there[DATASET] = true;
    bench_talk(bench, "making sparse datasets of 4 TB and 20 TB");
    for (size_t i = ONE_SHARD; !result && i < SIZES; i++) {
        bool unsupported;
        result =
            dataset_make_sparse(bench, sizes[i].label, sizes[i].shards, SHARD_TOKENS, opening->names[i], &unsupported);
        opening->there[i] = !unsupported;
    }
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = dataset_warm(bench, dataset);
    tokmap_dataset_close(dataset);
    return result;
}

static int measure(struct bench *bench, struct opening *opening)
{
    struct tokmap_run *run = NULL;
    int result = CLI_DONE;
    uint64_t repeats = bench_repeats(bench, 41);
    for (uint64_t turn = 0; !result && turn <= repeats && !bench_stopped(); turn++)
        result = start_turn(bench, opening, turn > 0);
    for (uint64_t turn = 0; !result && turn < 5 * repeats && !bench_stopped(); turn++)
        for (size_t i = 0; !result && i < SIZES; i++)
            if (opening->there[i])
                result = open_turn(bench, opening, i);
    if (!result)
        result = run_make(bench, opening->names[DATASET], TOKMAP_READ_AUTO, 9, TOKMAP_FOREVER, &run);
    for (uint64_t turn = 0; !result && turn < 5 * repeats && !bench_stopped(); turn++)
        result = resume_turn(bench, opening, run, turn == 0);
    tokmap_run_close(run);
    return result;
}

static bool tokens_can_go(struct bench *bench)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_shard_info shard = {.size = sizeof shard};
    struct tokmap_error error;
    int fd;
    bool memory = false;
    if (dataset_open(bench, TOKMAP_READ_PREAD, &dataset))
        return false;
    if (!tokmap_dataset_shard(dataset, 0, &shard, &error) && !os_open(shard.tokens_path, OS_READ, &fd)) {
        memory = os_file_is_memory(fd);
        os_close(fd);
    }
    tokmap_dataset_close(dataset);
    if (memory)
        bench_talk(bench, "first batches from cold storage are left out: this file system is in memory");
    return !memory;
}

/* Root has the right, but not in every container. */
static bool caches_can_go(struct bench *bench)
{
    bool dropped = os_is_root() && !os_drop_all_caches();
    if (!dropped)
        bench_talk(bench, "starts with all caches dropped are left out: that takes root, and a writable /proc/sys");
    return dropped;
}

static int measure_cold(struct bench *bench, struct opening *opening)
{
    int result = CLI_DONE;
    uint64_t turns = max64(1, bench_repeats(bench, 41) / 4);
    bool can_go = tokens_can_go(bench);
    for (uint64_t turn = 0; can_go && !result && turn < turns && !bench_stopped(); turn++) {
        result = first_batch_turn(bench, opening, TOKMAP_READ_AUTO, &opening->first_mapped);
        if (!result)
            result = first_batch_turn(bench, opening, TOKMAP_READ_PREAD, &opening->first_pread);
    }
    bool cold = !result && caches_can_go(bench);
    for (uint64_t turn = 0; cold && !result && turn < max64(1, turns) && !bench_stopped(); turn++)
        result = start_cold_turn(bench, opening);
    return result;
}

/* The worst of the series under `metric`, each under metric_SIZE. */
static void report(struct bench *bench, const char *metric, const char *unit, const struct series *found, size_t count,
                   const struct series *limit)
{
    size_t worst = 0;
    for (size_t i = 0; i < count; i++)
        if (found[i].count && series_median(&found[i]) > series_median(&found[worst]))
            worst = i;
    bench_result(bench, metric, unit, &found[worst], limit);
    for (size_t i = 0; i < count; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s_%s", metric, sizes[i].label);
        bench_result(bench, name, unit, &found[i], limit);
    }
}

static void report_all(struct bench *bench, const struct opening *opening)
{
    static const char *const resume_names[3] = {"resume_us_step_1", "resume_us_step_12345", "resume_us_step_2p40"};
    size_t worst = 0;
    report(bench, "start_ms", "ms", opening->start, SIZES, &opening->nothing);
    report(bench, "start_cold_ms", "ms", opening->cold, SIZES, &opening->nothing_cold);
    report(bench, "rss_mib", "MiB", opening->rss, SIZES, NULL);
    report(bench, "open_us", "us", opening->open, SIZES, &opening->open_limit[DATASET]);
    bool pread_worse = series_median(&opening->first_pread) > series_median(&opening->first_mapped);
    bench_result(bench, "first_batch_ms", "ms", pread_worse ? &opening->first_pread : &opening->first_mapped, NULL);
    bench_result(bench, "first_batch_ms_default", "ms", &opening->first_mapped, NULL);
    bench_result(bench, "first_batch_ms_pread", "ms", &opening->first_pread, NULL);
    for (size_t i = 1; i < 3; i++)
        if (series_median(&opening->resume[i]) > series_median(&opening->resume[worst]))
            worst = i;
    bench_result(bench, "resume_us", "us", &opening->resume[worst], NULL);
    for (size_t i = 0; i < 3; i++)
        bench_result(bench, resume_names[i], "us", &opening->resume[i], NULL);
}

static int run(struct bench *bench)
{
    static struct opening opening;
    if (bench->options.child)
        return strcmp(bench->options.child, "nothing") ? child_start(bench) : child_nothing();
    int result = opening_make(bench, &opening);
    if (!result)
        result = measure(bench, &opening);
    if (!result)
        result = measure_cold(bench, &opening);
    if (result || bench_stopped())
        return CLI_FAILED;
    report_all(bench, &opening);
    return CLI_DONE;
}

const struct bench_case case_open = {"open", "process start to first batch, opening, first cold batch, resuming", run};
