/* SPDX-License-Identifier: MIT */
/*
 * case_open_sources.c - see case_open_sources.h.
 *
 * A run is opened once in the life of a process, so copies of this program open it: what a process pays only once, as
 * for the growth of its table of files, is part of the time. The limit is a copy that makes, in as many threads, the
 * system calls without which no program can check and keep open the same files: open, examine, read, and close each
 * index, open and examine each file of tokens. The same is measured for as many shards in one dataset, by its manifest.
 */
#include "case_open_sources.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/shard_writer.h"
#include "harness/child.h"
#include "harness/made_files.h"
#include "platform/os.h"
#include "text/path.h"

enum { SOURCES = 100, SHARDS_MOST = 100, SHARD_PATH = BENCH_PATH + 64 };
#define SOURCES_LIMIT_CHILD OPEN_SOURCES_CHILD "-limit"
#define MANIFEST_CHILD OPEN_SOURCES_CHILD "-manifest"
#define MANIFEST_LIMIT_CHILD OPEN_SOURCES_CHILD "-manifest-limit"
#define DOCUMENTS ((uint64_t)5000) /* of a shard: an index of 20 KB, too large to be copied instead of mapped */

/* The shards of a source: 100 with the default of --tokens, and fewer in proportion with less. */
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

int open_sources_child(struct bench *bench)
{
    const char *child = bench->options.child;
    if (!strcmp(child, MANIFEST_CHILD))
        return child_manifest(bench);
    if (!strcmp(child, OPEN_SOURCES_CHILD))
        return child_open(bench);
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

/* Makes the same shards again, as one dataset with a manifest. */
static int make_manifest(struct bench *bench, char name[BENCH_PATH])
{
    struct tokmap_error error = {0};
    char path[SHARD_PATH];
    const uint64_t count = SOURCES * shards_of(bench);
    struct bytes_buffer text = {0};
    int fd = -1;
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
    int system = result || !enough ? 0 : os_open(name, OS_WRITE_NEW, &fd);
    if (!result && enough && !system) {
        system = os_write(fd, text.bytes, text.count);
        os_close(fd);
    }
    bytes_free(&text);
    if (!result && !enough)
        return bench_no_memory(bench);
    return system ? bench_failed_system(bench, system, name, "The manifest cannot be written.") : result;
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

int open_sources(struct bench *bench)
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
    return result || bench_stopped() ? result : open_manifest(bench);
}
