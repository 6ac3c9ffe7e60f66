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
#include "common/error.h"
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

static int child_open(struct bench *bench)
{
    static char text[SOURCES * (BENCH_PATH + 64)];
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    size_t used = (size_t)snprintf(text, sizeof text, "seq_len 1024\nbatch 8\n");
    for (int i = 0; i < SOURCES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "source s%02d \"%s-%02d/\"\n", i,
                                 bench->options.dataset, i);
    (void)snprintf(text + used, sizeof text - used, "phase 0 natural\n");
    const uint64_t started = os_clock_ns();
    if (tokmap_run_parse(&run, text, NULL, &error))
        return bench_failed(bench, &error);
    (void)printf("ns=%" PRIu64 "\n", os_clock_ns() - started);
    tokmap_run_close(run);
    return CLI_DONE;
}

static int child_manifest(struct bench *bench)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_error error = {0};
    const uint64_t memory = os_memory_resident(), started = os_clock_ns();
    if (tokmap_dataset_open(&dataset, bench->options.dataset, NULL, &error))
        return bench_failed(bench, &error);
    const uint64_t ended = os_clock_ns(), now = os_memory_resident();
    (void)printf("ns=%" PRIu64 " memory=%" PRIu64 "\n", ended - started, now > memory ? now - memory : 0);
    tokmap_dataset_close(dataset);
    return CLI_DONE;
}

/* Opens a run whose sources are manifests in one folder. */
static int child_stated(struct bench *bench)
{
    struct bytes_buffer text = {0};
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    char line[BENCH_PATH + 64];
    int bytes = snprintf(line, sizeof line, "seq_len 1024\nbatch 8\n");
    bool enough = bytes_append(&text, line, (size_t)bytes);
    for (uint64_t i = 0; i < STATED_SOURCES; i++) {
        bytes =
            snprintf(line, sizeof line, "source s%03" PRIu64 " \"%s/%03" PRIu64 "\"\n", i, bench->options.dataset, i);
        enough = enough && bytes_append(&text, line, (size_t)bytes);
    }
    if (!enough || !bytes_append(&text, "phase 0 natural\n", sizeof "phase 0 natural\n"))
        return bench_no_memory(bench);
    const uint64_t started = os_clock_ns();
    if (tokmap_run_parse(&run, (const char *)text.bytes, NULL, &error))
        return bench_failed(bench, &error);
    (void)printf("ns=%" PRIu64 "\n", os_clock_ns() - started);
    tokmap_run_close(run);
    bytes_free(&text);
    return CLI_DONE;
}

static int open_sources_child(struct bench *bench)
{
    const char *child = bench->options.child;
    if (!strcmp(child, MANIFEST_CHILD))
        return child_manifest(bench);
    if (!strcmp(child, OPEN_SOURCES_CHILD))
        return child_open(bench);
    if (!strcmp(child, STATED_CHILD))
        return child_stated(bench);
    return child_limit(bench, strcmp(child, MANIFEST_LIMIT_CHILD) != 0);
}

/* ---- the measurement ---- */

static enum tokmap_status make_shard(const char *prefix, struct tokmap_error *error)
{
    static const uint16_t tokens[DOCUMENTS];
    static uint64_t ends[DOCUMENTS];
    const struct shard_writer_options options = {
        .width = 2, .vocabulary = 50257, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .sync = false};
    struct shard_writer *writer = NULL;
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        ends[i] = i + 1;
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, error);
    if (status)
        return status;
    status = shard_writer_add(writer, tokens, DOCUMENTS, ends, DOCUMENTS, 0, error);
    if (!status)
        return shard_writer_commit(writer, "{}", 2, NULL, error);
    shard_writer_abort(writer);
    return status;
}

static int make_sources(struct bench *bench, char prefix[BENCH_PATH])
{
    struct tokmap_error error = {0};
    char path[SHARD_PATH], folder[BENCH_PATH], name[64];
    const uint64_t shards = shards_of(bench);
    bench_say(bench, "creating %d sources with %" PRIu64 " shard%s each", SOURCES, shards, shards == 1 ? "" : "s");
    int result = made_path(bench, "source", prefix);
    for (uint64_t i = 0; !result && i < SOURCES * shards && !bench_stopped(); i++) {
        if (i % shards == 0) {
            (void)snprintf(name, sizeof name, "source-%02" PRIu64, i / shards);
            result = made_folder(bench, name, folder);
        }
        shard_path(path, prefix, shards, i, ".bin");
        if (!result)
            result = made_add(bench, path);
        shard_path(path, prefix, shards, i, ".tmx");
        if (!result)
            result = made_add(bench, path);
        path[strlen(path) - 4] = '\0';
        if (!result && make_shard(path, &error))
            result = bench_failed(bench, &error);
    }
    return result;
}

/* Writes the text of a manifest, unless it is incomplete for want of memory or after another failure, and frees it. */
static int manifest_write(struct bench *bench, const char *path, struct bytes_buffer *text, bool enough, int result)
{
    int fd, system = 0;
    if (!result && enough && !(system = os_open(path, OS_WRITE_NEW, &fd))) {
        system = os_write(fd, text->bytes, text->count);
        os_close(fd);
    }
    bytes_free(text);
    if (!result && !enough)
        return bench_no_memory(bench);
    return system ? bench_failed_system(bench, system, path, "The manifest cannot be written.") : result;
}

/* Makes the same shards again, as one dataset with a manifest. */
static int make_manifest(struct bench *bench, char name[BENCH_PATH])
{
    struct tokmap_error error = {0};
    char path[SHARD_PATH];
    const uint64_t count = SOURCES * shards_of(bench);
    struct bytes_buffer text = {0};
    bench_say(bench, "creating a dataset of %" PRIu64 " shards", count);
    int result = made_folder(bench, "shards", name);
    (void)snprintf(path, sizeof path, "%s/web", name);
    (void)snprintf(name, BENCH_PATH, "%.*s", BENCH_PATH - 1, path);
    if (!result)
        result = made_add(bench, name);
    bool enough = bytes_append(&text, "tokmap-shards 1\n", strlen("tokmap-shards 1\n"));
    for (uint64_t i = 0; !result && i < count && !bench_stopped(); i++) {
        static const char *const endings[] = {".bin", ".tmx"};
        for (size_t k = 0; k < 2 && !result; k++) {
            shard_path(path, name, 0, i, endings[k]);
            result = made_add(bench, path);
        }
        shard_path(path, name, 0, i, "");
        if (!result && make_shard(path, &error))
            result = bench_failed(bench, &error);
        const char *line = path_name(path);
        enough = enough && bytes_append(&text, line, strlen(line)) && bytes_append(&text, "\n", 1);
    }
    return manifest_write(bench, name, &text, enough, result);
}

/* Runs a copy of this program. memory: NULL, or what it needs for the dataset, in MiB. */
static int repeat(struct bench *bench, const char *what, const char *prefix, struct series *ms, struct series *memory)
{
    char output[256] = "";
    const int result = child_run_copy(bench, what, prefix, output, sizeof output, NULL);
    if (!result && isfinite(child_number(output, "ns")))
        series_add(ms, child_number(output, "ns") / 1e6);
    if (!result && memory)
        series_add(memory, child_number(output, "memory") / 1048576);
    return result;
}

static int open_manifest(struct bench *bench)
{
    static struct series found, limit, memory;
    char name[BENCH_PATH];
    int result = make_manifest(bench, name);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 21), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = repeat(bench, MANIFEST_CHILD, name, &found, &memory);
        if (!result)
            result = repeat(bench, MANIFEST_LIMIT_CHILD, name, &limit, NULL);
    }
    if (!result && !bench_stopped()) {
        bench_result(bench, "shards10000_ms", "ms", &found, &limit);
        bench_result(bench, "shards10000_mib", "MiB", &memory, NULL);
    }
    return result;
}

/* Writes a manifest that states `count` shards of STATED_TOKENS tokens, which do not exist. */
static int make_stated(struct bench *bench, const char *path, uint64_t first, uint64_t count)
{
    struct bytes_buffer text = {0};
    char line[200];
    int bytes = snprintf(line, sizeof line,
                         "# tokmap manifest 2\n# shards: width=2 vocabulary=50257 eod=50256 bos=none "
                         "tokenizer=none pages=yes sealed=no\n");
    bool enough = bytes_append(&text, line, (size_t)bytes);
    for (uint64_t i = first; i < first + count && enough; i++) {
        bytes = snprintf(line, sizeof line,
                         "web-%05" PRIu64 "\t%" PRIu64 " 1203000 50256 9753000 %016" PRIx64 "%016" PRIx64 "\n", i,
                         STATED_TOKENS, i, ~i);
        enough = bytes_append(&text, line, (size_t)bytes);
    }
    const int result = made_add(bench, path);
    return manifest_write(bench, path, &text, enough, result);
}

static int open_stated(struct bench *bench)
{
    static struct series found, memory, sources;
    char folder[BENCH_PATH], all[BENCH_PATH + 8], name[BENCH_PATH + 8];
    int result = made_folder(bench, "stated", folder);
    (void)snprintf(all, sizeof all, "%s/all", folder);
    if (!result)
        result = make_stated(bench, all, 0, STATED_SHARDS);
    for (uint64_t i = 0; i < STATED_SOURCES && !result; i++) {
        const uint64_t shards = STATED_SHARDS / STATED_SOURCES;
        (void)snprintf(name, sizeof name, "%s/%03" PRIu64, folder, i);
        result = make_stated(bench, name, i * shards, shards);
    }
    struct repeats repeats = repeats_begin(bench_repeats(bench, 21), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = repeat(bench, MANIFEST_CHILD, all, &found, &memory);
        if (!result)
            result = repeat(bench, STATED_CHILD, folder, &sources, NULL);
    }
    if (!result && !bench_stopped()) {
        bench_result(bench, "shards100000_ms", "ms", &found, NULL);
        bench_result(bench, "shards100000_mib", "MiB", &memory, NULL);
        bench_result(bench, "sources1000_ms", "ms", &sources, NULL);
    }
    return result;
}

/* Creates the sources and the dataset, measures, and writes the results. Returns CLI_DONE, or CLI_FAILED after a
 * message. */
static int open_sources(struct bench *bench)
{
    static struct series found, limit;
    char prefix[BENCH_PATH];
    int result = make_sources(bench, prefix);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 21), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = repeat(bench, OPEN_SOURCES_CHILD, prefix, &found, NULL);
        if (!result)
            result = repeat(bench, SOURCES_LIMIT_CHILD, prefix, &limit, NULL);
    }
    if (!result && !bench_stopped())
        bench_result(bench, "sources100_ms", "ms", &found, &limit);
    if (!result && !bench_stopped())
        result = open_manifest(bench);
    return result || bench_stopped() ? result : open_stated(bench);
}

/* ==== the case `open` ==== */

#define BOTH (TOKMAP_INPUTS | TOKMAP_TARGETS)
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
static int first_batch(struct bench *bench, struct reader *reader, const struct tokmap_run *run)
{
    int result = reader_open_loader(bench, reader, run, 1, BOTH, 0);
    if (!result &&
        outputs_allocate(&reader->outputs, tokmap_loader_rows(reader->loader), bench->options.seq_len, TOKMAP_ID_I32))
        result = bench_no_memory(bench);
    reader->out.inputs = reader->outputs.inputs;
    reader->out.targets = reader->outputs.targets;
    if (!result && reader_next(reader))
        result = bench_failed(bench, &reader->error);
    return result;
}

static int child_start(struct bench *bench)
{
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    int result = run_make(bench, bench->options.dataset, TOKMAP_READ_AUTO, 5, TOKMAP_FOREVER, &run);
    if (!result)
        result = first_batch(bench, &reader, run);
    const uint64_t now = os_clock_ns();
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
    if (index >= 0)
        os_close(index);
    if (tokens >= 0)
        os_close(tokens);
    return system ? bench_failed_system(bench, system, path, "The shard cannot be read.") : child_nothing();
}

/* Runs a copy. Sets *ms to the time from before its start to the time that it reports, and *rss_mib to its memory then.
 */
static int copy_repeat(struct bench *bench, const char *what, const char *name, double *ms, double *rss_mib)
{
    char output[256] = "";
    struct child_usage usage = {.seconds = 0};
    int result = child_run_copy(bench, what, name, output, sizeof output, &usage);
    *ms = (child_number(output, "at") - (double)usage.started_ns) / 1e6;
    *rss_mib = child_number(output, "rss") / 1048576;
    if (!result && !isfinite(*ms)) {
        cli_say(bench->program, "a copy of this program did not report a time");
        result = CLI_FAILED;
    }
    return result;
}

static int start_repeat(struct bench *bench, struct opening *opening, bool counts)
{
    double ms = 0, rss = 0;
    int result = copy_repeat(bench, "nothing", opening->names[DATASET], &ms, &rss);
    if (counts)
        series_add(&opening->nothing, ms);
    for (size_t i = 0; !result && i < SIZES; i++) {
        if (!opening->exists[i])
            continue;
        result = copy_repeat(bench, "start", opening->names[i], &ms, &rss);
        if (counts && !result) {
            series_add(&opening->start[i], ms);
            series_add(&opening->rss[i], rss);
        }
    }
    return result;
}

/* Does the same after all caches of the system were dropped, so that programs, libraries, folders, index and tokens
 * come from storage. */
static int start_cold_repeat(struct bench *bench, struct opening *opening)
{
    double ms = 0, rss = 0;
    int result = CLI_DONE, system = os_drop_all_caches();
    if (!system)
        result = copy_repeat(bench, "nothing", opening->names[DATASET], &ms, &rss);
    series_add(&opening->nothing_cold, ms);
    if (!system && !result && *opening->plain_prefix && !(system = os_drop_all_caches())) {
        result = copy_repeat(bench, "plain", opening->plain_prefix, &ms, &rss);
        series_add(&opening->plain_cold, ms);
    }
    for (size_t i = 0; !system && !result && i < SIZES; i++) {
        if (!opening->exists[i])
            continue;
        system = os_drop_all_caches();
        if (!system)
            result = copy_repeat(bench, "start", opening->names[i], &ms, &rss);
        series_add(&opening->cold[i], ms);
    }
    if (system)
        return bench_failed_system(bench, system, "/proc/sys/vm/drop_caches",
                                   "The caches of the system cannot be dropped.");
    return result;
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

static int open_repeat(struct bench *bench, struct opening *opening, size_t size)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_error error = {0};
    double us = 0;
    const uint64_t started = os_clock_ns();
    if (tokmap_dataset_open(&dataset, opening->names[size], NULL, &error))
        return bench_failed(bench, &error);
    const double spent = (double)(os_clock_ns() - started) / 1000;
    int system = 0;
    const int result = dataset_get_info(bench, dataset, &info, &shard);
    if (!result)
        system = bare_open(shard.tokens_path, shard.index_path, &us);
    tokmap_dataset_close(dataset);
    if (system)
        return bench_failed_system(bench, system, opening->names[size], "The shard cannot be opened.");
    if (result)
        return result;
    series_add(&opening->open[size], spent / (double)max64(1, info.shards));
    series_add(&opening->open_limit[size], us);
    return CLI_DONE;
}

/* ---- the first batch, with cold tokens and a warm index ---- */

static int first_batch_repeat(struct bench *bench, struct opening *opening, enum tokmap_reading reading,
                              struct series *series)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_run *run = NULL;
    struct reader reader = {.loader = NULL};
    int result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = page_cache_drop(bench, dataset);
    tokmap_dataset_close(dataset);
    if (result)
        return result;
    const uint64_t started = os_clock_ns();
    result = run_make(bench, opening->names[DATASET], reading, started, TOKMAP_FOREVER, &run);
    if (!result)
        result = first_batch(bench, &reader, run);
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
    const uint64_t started = os_clock_ns();
    if (tokmap_loader_open(loader, run, &options, &error))
        return bench_failed(bench, &error);
    *us = (double)(os_clock_ns() - started) / 1000;
    return CLI_DONE;
}

/* Checks that the first batch after a resume contains the window that the run locates there. */
static int resume_check(struct bench *bench, const struct tokmap_run *run, struct tokmap_loader *loader, uint64_t step)
{
    struct reader reader;
    reader_clear(&reader);
    reader.loader = loader;
    struct tokmap_place place;
    if (outputs_new(&reader.outputs, bench->options.rows, bench->options.seq_len, TOKMAP_ID_I32))
        return bench_no_memory(bench);
    reader.out.inputs = reader.outputs.inputs;
    reader.out.targets = reader.outputs.targets;
    int result = CLI_DONE;
    if (reader_next(&reader) || tokmap_run_locate(run, step, 0, &place, &reader.error)) {
        result = bench_failed(bench, &reader.error);
    } else if (reader.batch.step != step || reader.batch.places[0].first_token != place.first_token) {
        cli_say(bench->program,
                "after a resume at step %" PRIu64 " the loader delivered other rows than the run has there", step);
        result = CLI_FAILED;
    }
    outputs_free(&reader.outputs);
    return result;
}

static int resume_repeat(struct bench *bench, struct opening *opening, const struct tokmap_run *run, bool check)
{
    for (size_t i = 0; i < RESUMES; i++) {
        const uint64_t step = resume_steps[i].step;
        struct tokmap_loader *plain = NULL, *resumed = NULL;
        struct tokmap_cursor cursor;
        struct tokmap_error error = {0};
        char text[TOKMAP_CURSOR_TEXT];
        double without = 0, with = 0;
        if (tokmap_run_cursor(run, step, &cursor, &error))
            return bench_failed(bench, &error);
        tokmap_cursor_print(&cursor, text);
        int result = open_loader(bench, run, NULL, &plain, &without);
        tokmap_loader_close(plain);
        if (!result)
            result = open_loader(bench, run, text, &resumed, &with);
        if (!result && check)
            result = resume_check(bench, run, resumed, step);
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
    int result = dataset_name(bench, &name);
    if (result)
        return result;
    (void)snprintf(opening->names[DATASET], BENCH_PATH, "%s", name);
    opening->exists[DATASET] = true;
    bench_say(bench, "creating sparse datasets of 4 TB and 20 TB");
    for (size_t i = ONE_SHARD; !result && i < SIZES; i++) {
        bool unsupported;
        result =
            dataset_make_sparse(bench, sizes[i].label, sizes[i].shards, SHARD_TOKENS, opening->names[i], &unsupported);
        opening->exists[i] = !unsupported;
    }
    if (!result)
        result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = page_cache_warm(bench, dataset);
    tokmap_dataset_close(dataset);
    return result;
}

static int measure(struct bench *bench, struct opening *opening)
{
    struct tokmap_run *run = NULL;
    int result = CLI_DONE;
    struct repeats repeats = repeats_begin(bench_repeats(bench, 41), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        result = start_repeat(bench, opening, repeats.counts);
    repeats = repeats_begin(5 * bench_repeats(bench, 41), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        for (size_t i = 0; !result && i < SIZES; i++)
            if (opening->exists[i])
                result = open_repeat(bench, opening, i);
    if (!result)
        result = run_make(bench, opening->names[DATASET], TOKMAP_READ_AUTO, 9, TOKMAP_FOREVER, &run);
    repeats = repeats_begin(5 * bench_repeats(bench, 41), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        result = resume_repeat(bench, opening, run, repeats.number == 0);
    tokmap_run_close(run);
    return result;
}

/* Finds the first shard of the dataset. */
static int plain_find(struct bench *bench, struct opening *opening)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    int result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = dataset_get_info(bench, dataset, &info, &shard);
    const size_t length = result ? 0 : strlen(shard.index_path);
    if (length > 4 && length < BENCH_PATH && !strcmp(shard.index_path + length - 4, ".tmx"))
        (void)snprintf(opening->plain_prefix, BENCH_PATH, "%.*s", (int)length - 4, shard.index_path);
    tokmap_dataset_close(dataset);
    return result;
}

static bool tokens_can_be_dropped(struct bench *bench)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
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

static int measure_cold(struct bench *bench, struct opening *opening)
{
    int result = plain_find(bench, opening);
    const uint64_t count = max64(1, bench_repeats(bench, 41) / 4);
    struct repeats repeats = repeats_begin(tokens_can_be_dropped(bench) ? count : 0, REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result)) {
        result = first_batch_repeat(bench, opening, TOKMAP_READ_AUTO, &opening->first_default);
        if (!result)
            result = first_batch_repeat(bench, opening, TOKMAP_READ_PREAD, &opening->first_pread);
    }
    repeats = repeats_begin(!result && caches_can_be_dropped(bench) ? count : 0, REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        result = start_cold_repeat(bench, opening);
    return result;
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
    int result = opening_make(bench, &opening);
    if (!result)
        result = measure(bench, &opening);
    if (!result)
        result = measure_cold(bench, &opening);
    if (result || bench_stopped())
        return CLI_FAILED;
    report_all(bench, &opening);
    return open_sources(bench) || bench_stopped() ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_open = {
    "open", "process start to first batch, opening datasets and runs, the first cold batch, resuming", run};
