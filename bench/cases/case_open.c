/* SPDX-License-Identifier: MIT */
/*
 * case_open.c - how long it takes to begin: from process start to the first batch, and opening a dataset of many
 * shards.
 *
 * Copies of this program measure the time from process start. The parent reads the clock before it starts a copy, and
 * the copy reads the same clock when it has its first batch. The difference covers exec, dynamic linking, opening and
 * reading. The limit is a copy that does nothing. With all caches dropped, another copy reads as many bytes of the same
 * files with plain calls, which shows how much of the rest is storage.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "format/shard_writer.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "harness/storage.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

/* ==== many shards ==== */

/*
 * A dataset is opened once in the life of a process, so copies of this program open it: what a process pays only once,
 * as for the growth of its table of files, is part of the time. The limit is a copy that makes, in as many threads, the
 * system calls without which no program can check and keep open the same files: open, examine, read, and close each
 * index, open and examine each file of tokens.
 */

#define MANIFEST_CHILD "manifest"
#define MANIFEST_LIMIT_CHILD "manifest-limit"
enum { SHARDS_MOST = 10000, SHARD_PATH = BENCH_PATH + 64 };
#define DOCUMENTS ((uint64_t)5000) /* of a shard: an index of 20 KB, too large to be copied instead of mapped */

/* Returns the number of shards: 10,000 with the default of --tokens, and fewer in proportion with less. */
static uint64_t shards_of(const struct bench *bench)
{
    return max64(100, min64(bench->options.tokens / 100000, SHARDS_MOST));
}

/* ---- copies of this program ---- */

/* Names a file of shard `number` of the dataset whose manifest is `prefix`. */
static void shard_path(char path[SHARD_PATH], const char *prefix, uint64_t number, const char *ending)
{
    (void)snprintf(path, SHARD_PATH, "%s-%05" PRIu64 "%s", prefix, number, ending);
}

struct calls {
    const char *prefix;
    uint64_t count;  /* of shards */
    uint64_t next;   /* accessed atomically */
    uint32_t failed; /* accessed atomically */
};

static int bare_shard(const struct calls *calls, uint64_t number)
{
    char path[SHARD_PATH];
    uint8_t page[4096];
    struct os_stat found;
    size_t got;
    int fd;
    shard_path(path, calls->prefix, number, ".tmx");
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return system;
    system = os_fstat(fd, &found);
    if (!system)
        system = os_pread(fd, page, sizeof page, 0, &got);
    os_close(fd);
    shard_path(path, calls->prefix, number, ".bin");
    if (!system)
        system = os_open(path, OS_READ, &fd); /* stays open until the process ends */
    return system ? system : os_fstat(fd, &found);
}

static void bare_some(void *user, uint32_t thread)
{
    struct calls *calls = user;
    for (uint64_t number; (number = __atomic_fetch_add(&calls->next, 1, __ATOMIC_RELAXED)) < calls->count;)
        if (bare_shard(calls, number))
            __atomic_store_n(&calls->failed, 1, __ATOMIC_RELAXED);
}

static int child_limit(struct bench *bench)
{
    struct calls calls = {.prefix = bench->options.dataset, .count = shards_of(bench)};
    const uint64_t started = os_clock_ns();
    os_files_expect(calls.count);
    os_threads_share("bare-open", os_processors() < 8 ? os_processors() : 8, bare_some, &calls);
    (void)printf("ns=%" PRIu64 "\n", os_clock_ns() - started);
    return calls.failed ? CLI_FAILED : CLI_DONE;
}

static int child_manifest(struct bench *bench)
{
    struct tokmap_dataset *dataset = NULL;
    const uint64_t memory = os_memory_resident(), started = os_clock_ns();
    bench_check(bench, tokmap_dataset_open(&dataset, bench->options.dataset, NULL, &bench->error));
    const uint64_t ended = os_clock_ns(), now = os_memory_resident();
    (void)printf("ns=%" PRIu64 " memory=%" PRIu64 "\n", ended - started, now > memory ? now - memory : 0);
    tokmap_dataset_close(dataset);
    return CLI_DONE;
}

/* ---- the measurement ---- */

static void make_shard(struct bench *bench, const char *prefix, uint64_t number)
{
    static const uint16_t tokens[DOCUMENTS];
    static uint64_t ends[DOCUMENTS];
    char path[SHARD_PATH];
    const struct shard_writer_options options = {
        .width = 2, .vocabulary = 50257, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .sync = false};
    struct shard_writer *writer = NULL;
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        ends[i] = i + 1;
    shard_path(path, prefix, number, "");
    bench_check(bench, shard_writer_open(&writer, path, &options, &bench->error));
    enum tokmap_status status = shard_writer_add(writer, tokens, DOCUMENTS, ends, DOCUMENTS, 0, &bench->error);
    if (status)
        shard_writer_abort(writer); /* so that it leaves no partial files */
    else
        status = shard_writer_commit(writer, "{}", 2, NULL, &bench->error);
    bench_check(bench, status);
    bench_stop_check(bench);
}

/* Makes the shards, as one dataset with a manifest. */
static void make_manifest(struct bench *bench, char name[BENCH_PATH])
{
    char path[SHARD_PATH];
    const uint64_t count = shards_of(bench);
    struct bytes_buffer text = {0};
    bench_say(bench, "creating a dataset of %" PRIu64 " shards", count);
    made_tree(bench, "shards", path);
    (void)snprintf(name, BENCH_PATH, "%.*s/web", BENCH_PATH - 5, path);
    bench_append(bench, &text, "tokmap-shards 1\n");
    for (uint64_t i = 0; i < count; i++) {
        make_shard(bench, name, i);
        shard_path(path, name, i, "");
        bench_append(bench, &text, "%s\n", path_name(path));
    }
    made_write(bench, name, text.bytes, text.count, "The manifest cannot be written.");
    bytes_free(&text);
}

/* Runs a copy of this program. memory: NULL, or what it needs for the dataset, in MiB. */
static void repeat(struct bench *bench, const char *what, const char *prefix, struct series *ms, struct series *memory)
{
    char output[256] = "";
    child_run_copy(bench, what, prefix, output, sizeof output, NULL);
    if (isfinite(child_number(output, "ns")))
        series_add(ms, child_number(output, "ns") / 1e6);
    if (memory)
        series_add(memory, child_number(output, "memory") / 1048576);
}

/* Creates the dataset, measures, and writes the results. */
static void open_manifest(struct bench *bench)
{
    static struct series found, limit, memory;
    char name[BENCH_PATH];
    make_manifest(bench, name);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 21), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        repeat(bench, MANIFEST_CHILD, name, &found, &memory);
        repeat(bench, MANIFEST_LIMIT_CHILD, name, &limit, NULL);
    }
    bench_result(bench, "shards10000_ms", "ms", &found, &limit);
    bench_result(bench, "shards10000_mib", "MiB", &memory, NULL);
}

/* ==== the case `open` ==== */

struct opening {
    const char *name;
    struct series start, cold;           /* start to first batch in ms, warm and with all caches dropped */
    struct series nothing, nothing_cold; /* ms of the copy that does nothing */
    char plain_prefix[BENCH_PATH];       /* of the first shard of the dataset; "": its index is not ours */
    struct series plain_cold;            /* ms of the copy that reads it with plain calls */
};

/* ---- copies of this program ---- */

/* Opens a loader and takes its first batch. The outputs are memory that nothing has written to, as in a program that
 * has just started. */
static int child_start(struct bench *bench)
{
    struct reader reader;
    const struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    struct tokmap_run *run = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 5, TOKMAP_FOREVER);
    reader_open_bare(bench, &reader, run, &options);
    outputs_allocate(bench, &reader.outputs, tokmap_loader_rows(reader.loader), TOKMAP_ID_I32);
    reader.out.inputs = reader.outputs.inputs;
    reader.out.targets = reader.outputs.targets;
    reader_take(bench, &reader, 1);
    (void)printf("at=%" PRIu64 "\n", os_clock_ns());
    reader_close(&reader);
    tokmap_run_close(run);
    return CLI_DONE;
}

static int child_nothing(void)
{
    (void)printf("at=%" PRIu64 "\n", os_clock_ns());
    return CLI_DONE;
}

/* Reads what the first batch needs at least: both ends of the index, and rows that are spread over the tokens, each of
 * seq_len + 1 tokens of two bytes. Returns 0 or an errno. */
static int plain_read(const struct bench *bench, int index, int tokens)
{
    static uint8_t bytes[1 << 16];
    const uint64_t row_bytes = min64(sizeof bytes, 2 * (bench->options.seq_len + 1)), rows = bench->options.rows;
    struct os_stat stat;
    size_t got;
    int system = os_fstat(index, &stat);
    for (uint64_t i = 0; i < 2 && !system; i++)
        system = os_pread(index, bytes, 4096, i * (stat.bytes - min64(stat.bytes, 4096)), &got);
    if (!system)
        system = os_fstat(tokens, &stat);
    for (uint64_t i = 0; i < rows && !system; i++)
        system = os_pread(tokens, bytes, (size_t)row_bytes, stat.bytes / rows * i, &got);
    return system;
}

static int child_plain(struct bench *bench)
{
    char path[BENCH_PATH + 8];
    int index = -1, tokens = -1;
    (void)snprintf(path, sizeof path, "%s.tmx", bench->options.dataset);
    int system = os_open(path, OS_READ, &index);
    (void)snprintf(path, sizeof path, "%s.bin", bench->options.dataset);
    if (!system)
        system = os_open(path, OS_READ, &tokens);
    if (!system)
        system = plain_read(bench, index, tokens);
    bench_check_system(bench, system, path, "The shard cannot be read.");
    os_close(index);
    os_close(tokens);
    return child_nothing();
}

/* Runs a copy. Returns the time from before its start to the time that it reports, in ms. */
static double copy_repeat(struct bench *bench, const char *what, const char *name)
{
    char output[256] = "";
    struct child_usage usage;
    child_run_copy(bench, what, name, output, sizeof output, &usage);
    const double ms = (child_number(output, "at") - (double)usage.started_ns) / 1e6;
    if (!isfinite(ms)) {
        cli_say(bench->program, "a copy of this program did not report a time");
        bench_end(bench, CLI_FAILED);
    }
    return ms;
}

/* Runs a copy after all caches of the system were dropped, so that programs, libraries, folders, index and tokens
 * come from storage. */
static void cold_repeat(struct bench *bench, const char *what, const char *name, struct series *ms)
{
    bench_check_system(bench, os_drop_all_caches(), "/proc/sys/vm/drop_caches",
                       "The caches of the system cannot be dropped.");
    series_add(ms, copy_repeat(bench, what, name));
}

static void start_cold_repeat(struct bench *bench, struct opening *opening)
{
    cold_repeat(bench, "nothing", opening->name, &opening->nothing_cold);
    if (*opening->plain_prefix)
        cold_repeat(bench, "plain", opening->plain_prefix, &opening->plain_cold);
    cold_repeat(bench, "start", opening->name, &opening->cold);
}

/* ---- the case ---- */

/* Warms the dataset, and finds its first shard. */
static void opening_make(struct bench *bench, struct opening *opening)
{
    opening->name = dataset_name(bench);
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    page_cache_warm(bench, data.dataset);
    const char *path = data.first.index_path;
    const size_t length = strlen(path);
    if (length > 4 && length < BENCH_PATH && !strcmp(path + length - 4, ".tmx"))
        (void)snprintf(opening->plain_prefix, BENCH_PATH, "%.*s", (int)length - 4, path);
    tokmap_dataset_close(data.dataset);
}

static void measure(struct bench *bench, struct opening *opening)
{
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 41), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        repeats_add(&repeats, &opening->nothing, copy_repeat(bench, "nothing", opening->name));
        repeats_add(&repeats, &opening->start, copy_repeat(bench, "start", opening->name));
    }
}

/* Root may drop the caches, but not in every container. */
static bool caches_can_be_dropped(struct bench *bench)
{
    const bool dropped = os_is_root() && !os_drop_all_caches();
    if (!dropped)
        bench_say(bench, "starts with all caches dropped are not measured: they need root and a writable /proc/sys");
    return dropped;
}

static void measure_cold(struct bench *bench, struct opening *opening)
{
    const uint64_t count = max64(1, bench_repeats(bench, 41) / 4);
    struct repeats repeats = repeats_begin(bench, caches_can_be_dropped(bench) ? count : 0, REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        start_cold_repeat(bench, opening);
}

static int run(struct bench *bench)
{
    static struct opening opening;
    const char *child = bench->options.child;
    if (child)
        return !strcmp(child, MANIFEST_CHILD)         ? child_manifest(bench)
               : !strcmp(child, MANIFEST_LIMIT_CHILD) ? child_limit(bench)
               : !strcmp(child, "plain")              ? child_plain(bench)
               : !strcmp(child, "nothing")            ? child_nothing()
                                                      : child_start(bench);
    opening_make(bench, &opening);
    measure(bench, &opening);
    measure_cold(bench, &opening);
    bench_result(bench, "start_ms", "ms", &opening.start, &opening.nothing);
    bench_result(bench, "start_cold_ms", "ms", &opening.cold, &opening.nothing_cold);
    bench_result(bench, "plain_start_cold_ms", "ms", &opening.plain_cold, &opening.nothing_cold);
    open_manifest(bench);
    return CLI_DONE;
}

const struct bench_case case_open = {"open", "process start to first batch, and opening a dataset of 10,000 shards",
                                     .run = run, .reads_files = true};
