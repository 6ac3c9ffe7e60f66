/* SPDX-License-Identifier: MIT */
/*
 * case_writer.c - the functions of tokmap/pack.h: ids from this program's memory to a shard.
 *
 * The ids are written in calls of 2^20, as documents of 1,000: ids of the shard's own width without an EOD, which go
 * from the caller's memory to the file; the same with an EOD after each document, which are copied; and 64-bit ids, as
 * PyTorch has them. The limit hashes the same bytes and writes them to a file. Nothing waits for storage. All are rates
 * per second of processor time, so that programs beside this one change them little.
 *
 * A virtual machine may have to ask its host for each page of memory that it has not used before or has given back,
 * which can take ten times as long as writing to it. So each file is removed immediately before the next one is
 * written, whose pages are then those that it had, and the first repeat only warms memory.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "harness/made_files.h"
#include "platform/os.h"
#include "tokmap/pack.h"

#define VOCABULARY 50257
#define CALL_IDS ((uint64_t)1 << 20)
#define DOCUMENT_IDS 1000
#define DOCUMENTS (CALL_IDS / DOCUMENT_IDS + 1)
#define PIECE ((size_t)1 << 18) /* bytes that the limit hashes and writes at once, as the writer does */

enum { STORED, EOD, WIDE, WAYS };

struct writing {
    uint16_t *ids; /* CALL_IDS of them, and the same as 64-bit numbers */
    int64_t *wide;
    uint64_t ends[DOCUMENTS];
    uint64_t calls;
    char shard[BENCH_PATH], copy[BENCH_PATH];
    struct series rate[WAYS], limit; /* GB/s of stored ids */
};

static int writing_open(struct bench *bench, struct writing *writing)
{
    uint64_t state = 5;
    writing->calls = max64(1, bench->options.tokens / CALL_IDS);
    writing->ids = malloc(CALL_IDS * sizeof *writing->ids);
    writing->wide = malloc(CALL_IDS * sizeof *writing->wide);
    if (!writing->ids || !writing->wide)
        return bench_no_memory(bench);
    for (uint64_t i = 0; i < CALL_IDS; i++) {
        writing->ids[i] = (uint16_t)random_below(&state, VOCABULARY);
        writing->wide[i] = writing->ids[i];
    }
    for (uint64_t d = 0; d < DOCUMENTS; d++)
        writing->ends[d] = min64((d + 1) * DOCUMENT_IDS, CALL_IDS);
    const int result = made_shard(bench, "written", writing->shard);
    return result ? result : made_file(bench, "copy", writing->copy);
}

/* Removes the files of the repeat before. */
static void files_remove(const struct writing *writing)
{
    static const char *const endings[] = {".bin", ".tmx"};
    char path[BENCH_PATH + 8];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", writing->shard, endings[i]);
        (void)os_unlink(path);
    }
    (void)os_unlink(writing->copy);
}

static int writer_repeat(struct bench *bench, struct writing *writing, size_t way, bool counts)
{
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_added added = TOKMAP_ADDED_INIT;
    struct tokmap_writer *writer = NULL;
    struct tokmap_error error = {0};
    options.vocabulary = VOCABULARY;
    options.sync = 0;
    options.eod_id = way == EOD ? VOCABULARY - 1 : TOKMAP_NO_ID;
    added.ids = way == WIDE ? (const void *)writing->wide : writing->ids;
    added.type = way == WIDE ? TOKMAP_ID_I64 : TOKMAP_ID_U16;
    added.count = CALL_IDS;
    added.ends = writing->ends;
    added.documents = DOCUMENTS;
    files_remove(writing);
    const uint64_t started = os_thread_cpu_ns();
    enum tokmap_status status = tokmap_writer_open(&writer, writing->shard, &options, &error);
    for (uint64_t i = 0; i < writing->calls && !status && !bench_stopped(); i++)
        status = tokmap_writer_add(writer, &added, &error);
    if (!status)
        status = tokmap_writer_commit(writer, NULL, &error);
    else
        tokmap_writer_abandon(writer);
    const uint64_t ended = os_thread_cpu_ns();
    if (status)
        return bench_failed(bench, &error);
    if (counts)
        series_add(&writing->rate[way], (double)(writing->calls * CALL_IDS * 2) / (double)(ended - started));
    return CLI_DONE;
}

static int limit_repeat(struct bench *bench, struct writing *writing, bool counts)
{
    const uint64_t bytes = CALL_IDS * sizeof *writing->ids;
    int fd;
    files_remove(writing);
    const uint64_t started = os_thread_cpu_ns();
    int system = os_open(writing->copy, OS_WRITE_NEW, &fd);
    if (system)
        return bench_failed_system(bench, system, writing->copy, "The file of the limit cannot be created.");
    for (uint64_t i = 0; i < writing->calls; i++)
        for (uint64_t at = 0; at < bytes && !system; at += PIECE) {
            const uint8_t *piece = (const uint8_t *)writing->ids + at;
            keep_value(hash64(piece, PIECE));
            system = os_write(fd, piece, PIECE);
        }
    os_close(fd);
    const uint64_t ended = os_thread_cpu_ns();
    if (system)
        return bench_failed_system(bench, system, writing->copy, "The file of the limit cannot be written.");
    if (counts)
        series_add(&writing->limit, (double)(writing->calls * bytes) / (double)(ended - started));
    return CLI_DONE;
}

static int run(struct bench *bench)
{
    static struct writing writing;
    int result = writing_open(bench, &writing);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        for (size_t way = 0; way < WAYS && !result; way++)
            result = writer_repeat(bench, &writing, way, repeats.counts);
        if (!result)
            result = limit_repeat(bench, &writing, repeats.counts);
    }
    free(writing.ids);
    free(writing.wide);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_result(bench, "stored_gb_s", "GB/s", &writing.rate[STORED], &writing.limit);
    bench_result(bench, "eod_gb_s", "GB/s", &writing.rate[EOD], &writing.limit);
    bench_result(bench, "int64_gb_s", "GB/s", &writing.rate[WIDE], &writing.limit);
    return CLI_DONE;
}

const struct bench_case case_writer = {"writer", "the functions of pack.h, beside hashing and writing the same ids",
                                       run};
