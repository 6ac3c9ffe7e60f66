/* SPDX-License-Identifier: MIT */
/*
 * case_parquet.c - how fast text is read from Parquet files, on one thread, and what `tokmap pack` loses by it.
 *
 * The text is written as documents of 4 KB to two Parquet files, one with zstd and one without compression. Each is
 * read as `tokmap pack` reads it, up to the place and length of each text in memory, from the page cache. The limit
 * does only what no reader can avoid: it reads the same pages, and decompresses them with the same library. Both are
 * rates per second of processor time, so that programs beside this one change them little.
 */
#include "cases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "case_tokenize_pack.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_text.h"
#include "harness/made_files.h"
#include "harness/made_parquet.h"
#include "parquet/parquet.h"
#include "platform/os.h"
#include "platform/zstd_library.h"

#define RUN_BYTES ((uint64_t)1 << 20) /* of a run of rows, as in pack on a few threads */
#define RUN_ROWS 8192

enum { ZSTD, PLAIN, FILES };

struct reading {
    struct bench_text text;
    char paths[FILES][BENCH_PATH];
    struct made_parquet made[FILES];
    uint8_t *stored, *bytes; /* of the largest page */
    ZSTD_DCtx *zstd;
    struct parquet_pool *pool;
    struct series rate[FILES], limit[FILES]; /* GB/s of text */
    struct pack_records jsonl, parquet[FILES];
};

/* ---- reading ---- */

/* Decodes a run of rows, and looks at each text. */
static enum tokmap_status rows_read(const struct parquet_rows *rows, uint64_t *bytes, struct tokmap_error *error)
{
    uint64_t seen = 0;
    for (uint64_t i = 0; i < rows->slice_count; i++) {
        const struct parquet_slice *slice = &rows->slices[i];
        const enum tokmap_status status = parquet_page_decode(slice->page, error);
        if (status)
            return status;
        const struct parquet_values *values = &slice->page->values;
        for (uint64_t k = slice->first; k < slice->first + slice->count; k++) {
            keep_value((uint8_t)values->text[values->spans[k].offset]);
            seen += values->spans[k].bytes;
        }
    }
    *bytes += seen;
    return TOKMAP_OK;
}

static int read_repeat(struct bench *bench, struct reading *reading, size_t file, bool counts)
{
    const struct parquet_wanted wanted = {"text", PARQUET_USE_TEXT, "--field"};
    const struct parquet_source_options options = {
        .wanted = &wanted, .wanted_count = 1, .run_bytes = RUN_BYTES, .rows_most = RUN_ROWS};
    struct parquet_source *source;
    struct parquet_rows *rows = NULL;
    struct tokmap_error error = {0};
    uint64_t bytes = 0;
    const uint64_t started = os_thread_cpu_ns();
    enum tokmap_status status = parquet_source_open(&source, reading->paths[file], &options, reading->pool, &error);
    while (!status) {
        status = parquet_source_next(source, &rows, &error);
        if (!status)
            status = rows_read(rows, &bytes, &error);
        parquet_rows_free(rows);
        rows = NULL;
    }
    const uint64_t ended = os_thread_cpu_ns();
    parquet_source_close(source);
    if (status != TOKMAP_END)
        return bench_failed(bench, &error);
    assert(bytes == reading->made[file].text_bytes);
    if (counts)
        series_add(&reading->rate[file], (double)bytes / (double)(ended - started));
    return CLI_DONE;
}

/* ---- the limit ---- */

static int limit_repeat(struct bench *bench, struct reading *reading, size_t file, bool counts)
{
    const struct made_parquet *made = &reading->made[file];
    int fd;
    const uint64_t started = os_thread_cpu_ns();
    int system = os_open(reading->paths[file], OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, reading->paths[file], "The Parquet file cannot be opened.");
    bool sound = true;
    for (uint64_t i = 0; i < made->page_count && !system && sound; i++) {
        const struct made_page *page = &made->pages[i];
        size_t got = 0;
        system = os_pread(fd, reading->stored, page->stored, page->offset, &got);
        sound = got == page->stored;
        if (file == ZSTD && sound)
            sound = libzstd.ZSTD_decompressDCtx(reading->zstd, reading->bytes, page->bytes, reading->stored, got) ==
                    page->bytes;
    }
    const uint64_t ended = os_thread_cpu_ns();
    os_close(fd);
    if (system || !sound)
        return bench_failed_system(bench, system, reading->paths[file], "The pages of the file cannot be read.");
    if (counts)
        series_add(&reading->limit[file], (double)made->text_bytes / (double)(ended - started));
    return CLI_DONE;
}

/* ---- the case ---- */

static int files_make(struct bench *bench, struct reading *reading)
{
    static const char *const names[FILES] = {[ZSTD] = "zstd.parquet", [PLAIN] = "plain.parquet"};
    const struct bench_text *text = &reading->text;
    uint64_t most = 0;
    for (size_t i = 0; i < FILES; i++) {
        int result = made_file(bench, names[i], reading->paths[i]);
        if (!result)
            result = made_parquet_write(bench, reading->paths[i], text->documents, text->document_count, i == ZSTD,
                                        &reading->made[i]);
        if (result)
            return result;
        for (uint64_t k = 0; k < reading->made[i].page_count; k++)
            most = max64(most, max64(reading->made[i].pages[k].stored, reading->made[i].pages[k].bytes));
    }
    reading->stored = calloc(1, (size_t)most);
    reading->bytes = calloc(1, (size_t)most);
    reading->zstd = libzstd.ZSTD_createDCtx(); /* made_parquet_write() has loaded zstd */
    struct tokmap_error error = {0};
    if (parquet_pool_new(&reading->pool, &error))
        return bench_failed(bench, &error);
    for (size_t i = 0; i < FILES; i++) {
        memcpy(reading->parquet[i].path, reading->paths[i], BENCH_PATH);
        reading->parquet[i].text_bytes = text->bytes;
    }
    return reading->stored && reading->bytes && reading->zstd ? CLI_DONE : bench_no_memory(bench);
}

static int all_repeat(struct bench *bench, struct reading *reading, bool counts)
{
    int result = CLI_DONE;
    for (size_t i = 0; i < FILES && !result; i++) {
        result = read_repeat(bench, reading, i, counts);
        if (!result)
            result = limit_repeat(bench, reading, i, counts);
    }
    if (!result)
        result = pack_records_repeat(bench, &reading->jsonl, counts);
    for (size_t i = 0; i < FILES && !result; i++)
        result = pack_records_repeat(bench, &reading->parquet[i], counts);
    return result;
}

static void results(struct bench *bench, const struct reading *reading)
{
    bench_result(bench, "zstd_gb_s", "GB/s", &reading->rate[ZSTD], &reading->limit[ZSTD]);
    bench_result(bench, "plain_gb_s", "GB/s", &reading->rate[PLAIN], &reading->limit[PLAIN]);
    bench_result(bench, "pack_zstd_mb_s", "MB/s", &reading->parquet[ZSTD].rate, &reading->jsonl.rate);
    bench_result(bench, "pack_plain_mb_s", "MB/s", &reading->parquet[PLAIN].rate, &reading->jsonl.rate);
    bench_result(bench, "pack_peak_mib", "MiB", &reading->parquet[ZSTD].peak, &reading->jsonl.peak);
}

static int run(struct bench *bench)
{
    static struct reading reading;
    if (!bench->options.dataset) {
        cli_say(bench->program, "name a text: tokmap-bench parquet FILE");
        return CLI_MISUSED;
    }
    if (!bench->options.tokenizer)
        bench->options.tokenizer = "bytes";
    if (bench->options.child)
        return pack_records_child(bench);
    int result = bench_text_open(bench, &reading.text);
    if (!result)
        result = files_make(bench, &reading);
    if (!result)
        result = pack_records_open(bench, &reading.jsonl, &reading.text);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result))
        result = all_repeat(bench, &reading, repeats.counts);
    if (bench_stopped())
        result = CLI_FAILED;
    if (!result)
        results(bench, &reading);
    for (size_t i = 0; i < FILES; i++)
        made_parquet_free(&reading.made[i]);
    free(reading.stored);
    free(reading.bytes);
    (void)libzstd.ZSTD_freeDCtx(reading.zstd);
    parquet_pool_release(reading.pool);
    bench_text_close(&reading.text);
    return result;
}

const struct bench_case case_parquet = {"parquet", "reading text from Parquet, beside its codec alone; needs FILE",
                                        run};
