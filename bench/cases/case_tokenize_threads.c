/* SPDX-License-Identifier: MIT */
/* case_tokenize_threads.c - see case_tokenize_threads.h. */
#include "case_tokenize_threads.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/child.h"
#include "harness/bench_data.h"
#include "harness/storage.h"
#include "platform/os.h"

#define COMPUTE_ROUNDS 40000000 /* about 50 ms */
#define LOOKUPS 4000000         /* 20 to 80 ms, depending on the level of cache */

/* One thread's loop. */
struct loop {
    void (*body)(const struct loop *);
    uint64_t *table;      /* of body look_up() */
    uint64_t bytes;       /* of the table */
    _Atomic uint32_t *at; /* number of threads that have reached the beginning */
    uint32_t threads;     /* number of threads that must be there */
    uint64_t from_ns, to_ns;
};

static void compute(const struct loop *loop)
{
    (void)loop;
    uint64_t a = 1, b = 2;
    for (uint64_t i = 0; i < COMPUTE_ROUNDS; i++) {
        a = a * 6364136223846793005u + i;
        b = b * 2862933555777941757u + i;
    }
    keep_value(a ^ b);
}

/* Looks values up at addresses that do not depend on what was read, so a processor reads several at a time, as an
 * encoder does. */
static void look_up(const struct loop *loop)
{
    const uint64_t mask = loop->bytes / 8 - 1;
    uint64_t a = 1, sum = 0;
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        a = a * 6364136223846793005u + 1442695040888963407u;
        sum += loop->table[(a >> 32) & mask];
    }
    keep_value(sum);
}

static void run(void *user)
{
    struct loop *loop = user;
    atomic_fetch_add(loop->at, 1);
    while (atomic_load(loop->at) < loop->threads)
        os_relax();
    loop->from_ns = os_clock_ns();
    loop->body(loop);
    loop->to_ns = os_clock_ns();
}

/* Runs one loop or two, and returns the time from the first beginning to the last end, or 0 and *system. */
static uint64_t time_loops(struct loop *loops, uint32_t threads, int *system)
{
    _Atomic uint32_t at = 0;
    struct os_thread *other = NULL;
    for (uint32_t i = 0; i < threads; i++) {
        loops[i].at = &at;
        loops[i].threads = threads;
    }
    *system = threads > 1 ? os_thread_start(&other, "loop", run, &loops[1]) : 0;
    if (*system)
        return 0;
    run(&loops[0]);
    os_thread_join(other);
    uint64_t from = loops[0].from_ns, to = loops[0].to_ns;
    if (threads > 1) {
        from = min64(from, loops[1].from_ns);
        to = max64(to, loops[1].to_ns);
    }
    return max64(to - from, 1);
}

static int time_both(struct loop *loops, double *ratio)
{
    int system;
    const uint64_t one = time_loops(loops, 1, &system);
    const uint64_t two = system ? 0 : time_loops(loops, 2, &system);
    if (!system)
        *ratio = 2 * (double)one / (double)two;
    return system;
}

int two_threads_compute(double *ratio)
{
    struct loop loops[2] = {{.body = compute}, {.body = compute}};
    return time_both(loops, ratio);
}

int two_threads_look_up(uint64_t table_bytes, double *ratio)
{
    assert(table_bytes >= 4096 && !(table_bytes & (table_bytes - 1)));
    struct loop loops[2];
    int system = 0;
    for (int i = 0; i < 2; i++) {
        void *table = NULL;
        if (!system)
            system = os_memory_new(table_bytes, true, &table);
        loops[i] = (struct loop){.body = look_up, .table = table, .bytes = table_bytes};
        for (uint64_t at = 0; table && at < table_bytes / 8; at++)
            loops[i].table[at] = at;
    }
    if (!system)
        system = time_both(loops, ratio);
    for (int i = 0; i < 2; i++)
        os_memory_free(loops[i].table, table_bytes);
    return system;
}

/* ==== tokmap pack on two threads ==== */

void pack_records_open(struct bench *bench, struct pack_records *records, const struct bench_text *text)
{
    struct bytes_buffer lines = {.bytes = NULL};
    made_file(bench, "records.jsonl", records->path);
    records->text_bytes = text->bytes;
    for (uint64_t i = 0; i < text->document_count; i++) {
        const struct tokmap_text *document = &text->documents[i];
        if (!bytes_reserve(&lines, TEXT_JSON_MOST((size_t)document->count)))
            bench_no_memory(bench);
        lines.count += text_json_line((char *)lines.bytes + lines.count, document->bytes, document->count);
    }
    made_write(bench, records->path, lines.bytes, lines.count,
               "The text cannot be written as JSONL; give another --dir.");
    bytes_free(&lines);
}

void pack_records_repeat(struct bench *bench, struct pack_records *records, bool counts)
{
    char output[256] = "";
    child_run_copy(bench, "pack", records->path, output, sizeof output, NULL);
    if (counts) {
        series_add(&records->rate, (double)records->text_bytes / 1e6 / child_number(output, "seconds"));
        series_add(&records->peak, child_number(output, "peak"));
    }
}

void pack_records_child(struct bench *bench)
{
    static char output[BENCH_PATH];
    struct child_usage usage = {.seconds = 0};
    made_shard(bench, "packed", output);
    const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {"pack", "--quiet", "--threads", "2", "-o", output, "--no-eod"};
    const size_t count = child_tokenizer_arguments(bench, arguments, 7);
    arguments[count] = bench->options.dataset;
    page_cache_read(bench, bench->options.dataset);
    child_run_tokmap(bench, arguments, &usage);
    (void)printf("seconds=%.6f peak=%.3f\n", usage.seconds, usage.peak_mib);
}
