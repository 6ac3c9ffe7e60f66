/* SPDX-License-Identifier: MIT */
/*
 * case_open.c - how long it takes to begin: from process start to the first batch, for datasets of several sizes;
 * opening a dataset; the first batch from cold storage; resuming from a cursor; a run of many sources.
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

/* ==== many sources and many shards ==== */

/*
 * The part of the case `open` that opens many shards: as a run of many sources, and as one dataset.
 *
 * A run is opened once in the life of a process, so copies of this program open it: what a process pays only once, as
 * for the growth of its table of files, is part of the time. The limit is a copy that makes, in as many threads, the
 * system calls without which no program can check and keep open the same files: open, examine, read, and close each
 * index, open and examine each file of tokens. The same is measured for as many shards in one dataset, by its manifest.
 *
 * Ten times as many shards, whose sizes the manifest states, need no files at all: they are opened when a row needs
 * them. So the case makes only manifests of them, of 10^14 tokens together, in one dataset and in 1,000 sources.
 */

/* What a copy of this program does whose options.child begins with OPEN_SOURCES_CHILD. */
#define OPEN_SOURCES_CHILD "sources"

enum { SOURCES = 100, SHARDS_MOST = 100, SHARD_PATH = BENCH_PATH + 64 };
#define SOURCES_LIMIT_CHILD OPEN_SOURCES_CHILD "-limit"
#define MANIFEST_CHILD OPEN_SOURCES_CHILD "-manifest"
#define MANIFEST_LIMIT_CHILD OPEN_SOURCES_CHILD "-manifest-limit"
#define STATED_CHILD OPEN_SOURCES_CHILD "-stated"
#define STATED_SHARDS ((uint64_t)100000)
#define STATED_TOKENS ((uint64_t)1000000000) /* of a shard */
#define STATED_SOURCES ((uint64_t)1000)
#define DOCUMENTS ((uint64_t)5000) /* of a shard: an index of 20 KB, too large to be copied instead of mapped */

/* Returns the shards of a source: 100 with the default of --tokens, and fewer in proportion with less. */
static uint64_t shards_of(const struct bench *bench)
{
    return max64(1, min64(bench->options.tokens / 10000000, SHARDS_MOST));
}

/* ---- copies of this program ---- */

/* Shard `number` of all sources, which have `shards` each; with 0, that of the dataset whose manifest is `prefix`. */
static void shard_path(char path[SHARD_PATH], const char *prefix, uint64_t shards, uint64_t number, const char *ending)
{
    if (!shards) {
        (void)snprintf(path, SHARD_PATH, "%s-%05" PRIu64 "%s", prefix, number, ending);
        return;
    }
    (void)snprintf(path, SHARD_PATH, "%s-%02" PRIu64 "/%02" PRIu64 "%s", prefix, number / shards, number % shards,
                   ending);
}

struct calls {
    const char *prefix;
    uint64_t shards; /* of a source, or 0 */
    uint64_t count;  /* of all shards */
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
    shard_path(path, calls->prefix, calls->shards, number, ".tmx");
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return system;
    system = os_fstat(fd, &found);
    if (!system)
        system = os_pread(fd, page, sizeof page, 0, &got);
    os_close(fd);
    shard_path(path, calls->prefix, calls->shards, number, ".bin");
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

static int child_limit(struct bench *bench, bool sources)
{
    const uint64_t shards = shards_of(bench);
    struct calls calls = {.prefix = bench->options.dataset, .shards = sources ? shards : 0, .count = SOURCES * shards};
    const uint64_t started = os_clock_ns();
    os_files_expect(calls.count);
    os_threads_share("bare-open", os_processors() < 8 ? os_processors() : 8, bare_some, &calls);
    (void)printf("ns=%" PRIu64 "\n", os_clock_ns() - started);
    return calls.failed ? CLI_FAILED : CLI_DONE;
}

static int child_run_parse(struct bench *bench, struct bytes_buffer *text)
{
    struct tokmap_run *run = NULL;
    const uint64_t started = os_clock_ns();
    bench_check(bench, tokmap_run_parse(&run, (const char *)text->bytes, NULL, &bench->error));
    (void)printf("ns=%" PRIu64 "\n", os_clock_ns() - started);
    tokmap_run_close(run);
    bytes_free(text);
    return CLI_DONE;
}

/* Opens a run whose sources are folders or, if they are stated, manifests in one folder. */
static int child_open(struct bench *bench, bool stated)
{
    struct bytes_buffer text = {0};
    const char *name = bench->options.dataset;
    bench_append(bench, &text, "seq_len 1024\nbatch 8\n");
    for (uint64_t i = 0; i < (stated ? STATED_SOURCES : SOURCES); i++)
        if (stated)
            bench_append(bench, &text, "source s%03" PRIu64 " \"%s/%03" PRIu64 "\"\n", i, name, i);
        else
            bench_append(bench, &text, "source s%02" PRIu64 " \"%s-%02" PRIu64 "/\"\n", i, name, i);
    bench_append(bench, &text, "phase 0 natural\n");
    return child_run_parse(bench, &text);
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

static int open_sources_child(struct bench *bench)
{
    const char *child = bench->options.child;
    if (!strcmp(child, MANIFEST_CHILD))
        return child_manifest(bench);
    if (!strcmp(child, OPEN_SOURCES_CHILD) || !strcmp(child, STATED_CHILD))
        return child_open(bench, !strcmp(child, STATED_CHILD));
    return child_limit(bench, strcmp(child, MANIFEST_LIMIT_CHILD) != 0);
}

/* ---- the measurement ---- */

/* Makes a shard of a source, or with 0 shards that of the manifest (see shard_path()). */
static void make_shard(struct bench *bench, const char *prefix, uint64_t shards, uint64_t number)
{
    static const char *const endings[] = {".bin", ".tmx"};
    static const uint16_t tokens[DOCUMENTS];
    static uint64_t ends[DOCUMENTS];
    char path[SHARD_PATH];
    const struct shard_writer_options options = {
        .width = 2, .vocabulary = 50257, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .sync = false};
    struct shard_writer *writer = NULL;
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        ends[i] = i + 1;
    for (size_t i = 0; i < 2; i++) {
        shard_path(path, prefix, shards, number, endings[i]);
        made_add(bench, path);
    }
    shard_path(path, prefix, shards, number, "");
    bench_check(bench, shard_writer_open(&writer, path, &options, &bench->error));
    enum tokmap_status status = shard_writer_add(writer, tokens, DOCUMENTS, ends, DOCUMENTS, 0, &bench->error);
    if (status)
        shard_writer_abort(writer); /* so that it leaves no partial files */
    else
        status = shard_writer_commit(writer, "{}", 2, NULL, &bench->error);
    bench_check(bench, status);
    bench_stop_check(bench);
}

static void make_sources(struct bench *bench, char prefix[BENCH_PATH])
{
    char folder[BENCH_PATH], name[64];
    const uint64_t shards = shards_of(bench);
    bench_say(bench, "creating %d sources with %" PRIu64 " shard%s each", SOURCES, shards, shards == 1 ? "" : "s");
    made_path(bench, "source", prefix);
    for (uint64_t i = 0; i < SOURCES * shards; i++) {
        (void)snprintf(name, sizeof name, "source-%02" PRIu64, i / shards);
        if (i % shards == 0)
            made_folder(bench, name, folder);
        make_shard(bench, prefix, shards, i);
    }
}

static void manifest_write(struct bench *bench, const char *path, struct bytes_buffer *text)
{
    made_add(bench, path);
    made_write(bench, path, text->bytes, text->count, "The manifest cannot be written.");
    bytes_free(text);
}

/* Makes the same shards again, as one dataset with a manifest. */
static void make_manifest(struct bench *bench, char name[BENCH_PATH])
{
    char path[SHARD_PATH];
    const uint64_t count = SOURCES * shards_of(bench);
    struct bytes_buffer text = {0};
    bench_say(bench, "creating a dataset of %" PRIu64 " shards", count);
    made_folder(bench, "shards", path);
    (void)snprintf(name, BENCH_PATH, "%.*s/web", BENCH_PATH - 5, path);
    bench_append(bench, &text, "tokmap-shards 1\n");
    for (uint64_t i = 0; i < count; i++) {
        make_shard(bench, name, 0, i);
        shard_path(path, name, 0, i, "");
        bench_append(bench, &text, "%s\n", path_name(path));
    }
    manifest_write(bench, name, &text);
}

/* Writes a manifest that states `count` shards of STATED_TOKENS tokens, which do not exist. */
static void make_stated(struct bench *bench, const char *path, uint64_t first, uint64_t count)
{
    struct bytes_buffer text = {0};
    bench_append(bench, &text,
                 "# tokmap manifest 2\n# shards: width=2 vocabulary=50257 eod=50256 bos=none tokenizer=none pages=yes "
                 "sealed=no\n");
    for (uint64_t i = first; i < first + count; i++)
        bench_append(bench, &text,
                     "web-%05" PRIu64 "\t%" PRIu64 " 1203000 50256 9753000 %016" PRIx64 "%016" PRIx64 "\n", i,
                     STATED_TOKENS, i, ~i);
    manifest_write(bench, path, &text);
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

static void open_stated(struct bench *bench)
{
    static struct series found, memory, sources;
    char folder[BENCH_PATH], all[BENCH_PATH + 8], name[BENCH_PATH + 8];
    made_folder(bench, "stated", folder);
    (void)snprintf(all, sizeof all, "%s/all", folder);
    make_stated(bench, all, 0, STATED_SHARDS);
    for (uint64_t i = 0; i < STATED_SOURCES; i++) {
        const uint64_t shards = STATED_SHARDS / STATED_SOURCES;
        (void)snprintf(name, sizeof name, "%s/%03" PRIu64, folder, i);
        make_stated(bench, name, i * shards, shards);
    }
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 21), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        repeat(bench, MANIFEST_CHILD, all, &found, &memory);
        repeat(bench, STATED_CHILD, folder, &sources, NULL);
    }
    bench_result(bench, "shards100000_ms", "ms", &found, NULL);
    bench_result(bench, "shards100000_mib", "MiB", &memory, NULL);
    bench_result(bench, "sources1000_ms", "ms", &sources, NULL);
}

/* Creates the sources and the dataset, measures, and writes the results. */
static void open_sources(struct bench *bench)
{
    static struct series found, limit;
    char prefix[BENCH_PATH];
    make_sources(bench, prefix);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 21), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        repeat(bench, OPEN_SOURCES_CHILD, prefix, &found, NULL);
        repeat(bench, SOURCES_LIMIT_CHILD, prefix, &limit, NULL);
    }
    bench_result(bench, "sources100_ms", "ms", &found, &limit);
    open_manifest(bench);
    open_stated(bench);
}

/* ==== the case `open` ==== */

#define SHARD_TOKENS ((uint64_t)2000000000000) /* 4 TB of two-byte tokens */

enum { DATASET, ONE_SHARD, FIVE_SHARDS, SIZES };

static const struct open_size {
    const char *label;
    uint64_t shards; /* of a sparse dataset that the case creates; 0: the dataset to measure on */
} sizes[SIZES] = {{"dataset", 0}, {"4tb", 1}, {"1e13_tokens", 5}};

enum { RESUMES = 3 };
static const struct resume_step {
    const char *metric;
    uint64_t step;
} resume_steps[RESUMES] = {
    {"resume_us_step_1", 1}, {"resume_us_step_12345", 12345}, {"resume_us_step_2p40", (uint64_t)1 << 40}};

struct opening {
    char names[SIZES][BENCH_PATH];
    bool exists[SIZES]; /* false: the file system cannot hold it */
    /* Start to first batch in ms, warm and with all caches dropped; resident MiB; us per opened shard, and of bare
     * calls. */
    struct series start[SIZES], cold[SIZES], rss[SIZES], open[SIZES], open_limit[SIZES];
    struct series nothing, nothing_cold;      /* ms of the copy that does nothing */
    char plain_prefix[BENCH_PATH];            /* of the first shard of the dataset; "": its index is not ours */
    struct series plain_cold;                 /* ms of the copy that reads it with plain calls */
    struct series first_default, first_pread; /* ms to the first batch with cold tokens */
    struct series resume[RESUMES];            /* us that a cursor adds to opening a loader */
};

/* ---- copies of this program ---- */

/* Opens a loader and takes its first batch. The outputs are memory that nothing has written to, as in a program that
 * has just started. */
static void first_batch(struct bench *bench, struct reader *reader, const struct tokmap_run *run)
{
    const struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    reader_open_bare(bench, reader, run, &options);
    outputs_allocate(bench, &reader->outputs, tokmap_loader_rows(reader->loader), TOKMAP_ID_I32);
    reader->out.inputs = reader->outputs.inputs;
    reader->out.targets = reader->outputs.targets;
    reader_take(bench, reader, 1);
}

static int child_start(struct bench *bench)
{
    struct reader reader;
    struct tokmap_run *run = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 5, TOKMAP_FOREVER);
    first_batch(bench, &reader, run);
    const uint64_t now = os_clock_ns();
    (void)printf("at=%" PRIu64 " rss=%" PRIu64 "\n", now, os_memory_resident());
    reader_close(&reader);
    tokmap_run_close(run);
    return CLI_DONE;
}

static int child_nothing(void)
{
    (void)printf("at=%" PRIu64 " rss=%" PRIu64 "\n", os_clock_ns(), os_memory_resident());
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

/* Runs a copy. Returns the time from before its start to the time that it reports, in ms. rss: NULL, or receives its
 * memory then, in MiB. */
static double copy_repeat(struct bench *bench, const char *what, const char *name, struct series *rss)
{
    char output[256] = "";
    struct child_usage usage;
    child_run_copy(bench, what, name, output, sizeof output, &usage);
    const double ms = (child_number(output, "at") - (double)usage.started_ns) / 1e6;
    if (!isfinite(ms)) {
        cli_say(bench->program, "a copy of this program did not report a time");
        bench_end(bench, CLI_FAILED);
    }
    if (rss)
        series_add(rss, child_number(output, "rss") / 1048576);
    return ms;
}

static void start_repeat(struct bench *bench, struct opening *opening, bool counts)
{
    struct series unused = {.count = 0};
    series_add(counts ? &opening->nothing : &unused, copy_repeat(bench, "nothing", opening->names[DATASET], NULL));
    for (size_t i = 0; i < SIZES; i++)
        if (opening->exists[i])
            series_add(counts ? &opening->start[i] : &unused,
                       copy_repeat(bench, "start", opening->names[i], counts ? &opening->rss[i] : NULL));
}

/* Does the same after all caches of the system were dropped, so that programs, libraries, folders, index and tokens
 * come from storage. */
static void cold_repeat(struct bench *bench, const char *what, const char *name, struct series *ms)
{
    bench_check_system(bench, os_drop_all_caches(), "/proc/sys/vm/drop_caches",
                       "The caches of the system cannot be dropped.");
    series_add(ms, copy_repeat(bench, what, name, NULL));
}

static void start_cold_repeat(struct bench *bench, struct opening *opening)
{
    cold_repeat(bench, "nothing", opening->names[DATASET], &opening->nothing_cold);
    if (*opening->plain_prefix)
        cold_repeat(bench, "plain", opening->plain_prefix, &opening->plain_cold);
    for (size_t i = 0; i < SIZES; i++)
        if (opening->exists[i])
            cold_repeat(bench, "start", opening->names[i], &opening->cold[i]);
}

/* ---- opening a dataset ---- */

/* Makes the system calls that opening a shard needs at least: open both files, ask for their sizes, read a page of the
 * index. Returns 0 or an errno. */
static int bare_open(const char *tokens_path, const char *index_path, double *us)
{
    uint8_t page[4096];
    struct os_stat stat;
    size_t got;
    int tokens, index;
    const uint64_t started = os_clock_ns();
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

static void open_repeat(struct bench *bench, struct opening *opening, size_t size)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    double us = 0;
    const uint64_t started = os_clock_ns();
    bench_check(bench, tokmap_dataset_open(&dataset, opening->names[size], NULL, &bench->error));
    const double spent = (double)(os_clock_ns() - started) / 1000;
    bench_check(bench, tokmap_dataset_shard(dataset, 0, &shard, &bench->error));
    bench_check_system(bench, bare_open(shard.tokens_path, shard.index_path, &us), opening->names[size],
                       "The shard cannot be opened.");
    if (!tokmap_dataset_info(dataset, &info))
        series_add(&opening->open[size], spent / (double)max64(1, info.shards));
    series_add(&opening->open_limit[size], us);
    tokmap_dataset_close(dataset);
}

/* ---- the first batch, with cold tokens and a warm index ---- */

static void first_batch_repeat(struct bench *bench, struct opening *opening, enum tokmap_reading reading,
                               struct series *series)
{
    struct reader reader;
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    page_cache_drop(bench, data.dataset);
    tokmap_dataset_close(data.dataset);
    const uint64_t started = os_clock_ns();
    struct tokmap_run *run = run_make(bench, opening->names[DATASET], reading, started, TOKMAP_FOREVER);
    first_batch(bench, &reader, run);
    series_add(series, (double)(os_clock_ns() - started) / 1e6);
    reader_close(&reader);
    tokmap_run_close(run);
}

/* ---- resuming ---- */

/* Returns the microseconds that opening takes. resume: a cursor, or NULL. */
static double open_loader(struct bench *bench, const struct tokmap_run *run, const char *resume, struct reader *reader)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.threads = 0;
    options.resume = resume;
    const uint64_t started = os_clock_ns();
    reader_open_bare(bench, reader, run, &options);
    return (double)(os_clock_ns() - started) / 1000;
}

/* Checks that the first batch after a resume contains the window that the run locates there. */
static void resume_check(struct bench *bench, const struct tokmap_run *run, struct reader *reader, uint64_t step)
{
    struct tokmap_place place;
    outputs_new(bench, &reader->outputs, bench->options.rows, TOKMAP_ID_I32);
    reader->out.inputs = reader->outputs.inputs;
    reader->out.targets = reader->outputs.targets;
    reader_take(bench, reader, 1);
    bench_check(bench, tokmap_run_locate(run, step, 0, &place, &bench->error));
    if (reader->batch.step == step && reader->batch.places[0].first_token == place.first_token)
        return;
    cli_say(bench->program, "after a resume at step %" PRIu64 " the loader delivered other rows than the run has there",
            step);
    bench_end(bench, CLI_FAILED);
}

static void resume_repeat(struct bench *bench, struct opening *opening, const struct tokmap_run *run, bool check)
{
    for (size_t i = 0; i < RESUMES; i++) {
        struct reader reader;
        struct tokmap_cursor cursor;
        char text[TOKMAP_CURSOR_TEXT];
        bench_check(bench, tokmap_run_cursor(run, resume_steps[i].step, &cursor, &bench->error));
        tokmap_cursor_print(&cursor, text);
        const double without = open_loader(bench, run, NULL, &reader);
        reader_close(&reader);
        series_add(&opening->resume[i], open_loader(bench, run, text, &reader) - without);
        if (check)
            resume_check(bench, run, &reader, resume_steps[i].step);
        reader_close(&reader);
    }
}

/* ---- the case ---- */

/* Makes the datasets, and finds the first shard of the one that is measured. */
static void opening_make(struct bench *bench, struct opening *opening)
{
    (void)snprintf(opening->names[DATASET], BENCH_PATH, "%s", dataset_name(bench));
    opening->exists[DATASET] = true;
    bench_say(bench, "creating sparse datasets of 4 TB and 20 TB");
    for (size_t i = ONE_SHARD; i < SIZES; i++)
        opening->exists[i] =
            dataset_make_sparse(bench, sizes[i].label, sizes[i].shards, SHARD_TOKENS, opening->names[i]);
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
    while (repeats_next(&repeats))
        start_repeat(bench, opening, repeats.counts);
    repeats = repeats_begin(bench, 5 * bench_repeats(bench, 41), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < SIZES; i++)
            if (opening->exists[i])
                open_repeat(bench, opening, i);
    struct tokmap_run *run = run_make(bench, opening->names[DATASET], TOKMAP_READ_AUTO, 9, TOKMAP_FOREVER);
    repeats = repeats_begin(bench, 5 * bench_repeats(bench, 41), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        resume_repeat(bench, opening, run, repeats.number == 0);
    tokmap_run_close(run);
}

static bool tokens_can_be_dropped(struct bench *bench)
{
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    int fd;
    bool memory = false;
    if (!os_open(data.first.tokens_path, OS_READ, &fd)) {
        memory = os_file_is_memory(fd);
        os_close(fd);
    }
    tokmap_dataset_close(data.dataset);
    if (memory)
        bench_say(bench,
                  "the first batch from cold storage is not measured: this file system keeps its files in memory");
    return !memory;
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
    struct repeats repeats = repeats_begin(bench, tokens_can_be_dropped(bench) ? count : 0, REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        first_batch_repeat(bench, opening, TOKMAP_READ_AUTO, &opening->first_default);
        first_batch_repeat(bench, opening, TOKMAP_READ_PREAD, &opening->first_pread);
    }
    repeats = repeats_begin(bench, caches_can_be_dropped(bench) ? count : 0, REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        start_cold_repeat(bench, opening);
}

/* Writes the series with the largest median as METRIC, and each series as METRIC_SIZE. */
static void report(struct bench *bench, const char *metric, const char *unit, const struct series found[SIZES],
                   const struct series *limit)
{
    bench_result(bench, metric, unit, series_worst(found, SIZES), limit);
    for (size_t i = 0; i < SIZES; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s_%s", metric, sizes[i].label);
        bench_result(bench, name, unit, &found[i], limit);
    }
}

static void report_all(struct bench *bench, const struct opening *opening)
{
    report(bench, "start_ms", "ms", opening->start, &opening->nothing);
    report(bench, "start_cold_ms", "ms", opening->cold, &opening->nothing_cold);
    bench_result(bench, "plain_start_cold_ms", "ms", &opening->plain_cold, &opening->nothing_cold);
    report(bench, "rss_mib", "MiB", opening->rss, NULL);
    report(bench, "open_us", "us", opening->open, &opening->open_limit[DATASET]);
    const bool pread_worse = series_median(&opening->first_pread) > series_median(&opening->first_default);
    bench_result(bench, "first_batch_ms", "ms", pread_worse ? &opening->first_pread : &opening->first_default, NULL);
    bench_result(bench, "first_batch_ms_default", "ms", &opening->first_default, NULL);
    bench_result(bench, "first_batch_ms_pread", "ms", &opening->first_pread, NULL);
    bench_result(bench, "resume_us", "us", series_worst(opening->resume, RESUMES), NULL);
    for (size_t i = 0; i < RESUMES; i++)
        bench_result(bench, resume_steps[i].metric, "us", &opening->resume[i], NULL);
}

static int run(struct bench *bench)
{
    static struct opening opening;
    if (bench->options.child && !strncmp(bench->options.child, OPEN_SOURCES_CHILD, sizeof OPEN_SOURCES_CHILD - 1))
        return open_sources_child(bench);
    if (bench->options.child && !strcmp(bench->options.child, "plain"))
        return child_plain(bench);
    if (bench->options.child)
        return strcmp(bench->options.child, "nothing") ? child_start(bench) : child_nothing();
    opening_make(bench, &opening);
    measure(bench, &opening);
    measure_cold(bench, &opening);
    report_all(bench, &opening);
    open_sources(bench);
    return CLI_DONE;
}

const struct bench_case case_open = {
    "open", "process start to first batch, opening datasets and runs, the first cold batch, resuming", run};
