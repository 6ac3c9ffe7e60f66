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
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "engine/tokenizer.h"
#include "harness/bench_data.h"
#include "harness/bench_text.h"
#include "parquet/parquet.h"
#include "platform/os.h"
#include "platform/zstd_library.h"

/* ==== a Parquet file of documents ==== */

/*
 * Writes documents as a Parquet file, for cases that measure how fast such files are read.
 *
 * The file has one required column of strings, `text`, PLAIN, in pages of version 1: the shape that most writers give
 * to text. It shares no code with the reader.
 *
 * Headers and footer are structs of Thrift's compact protocol: a byte with the distance to the last field's number and
 * the type of the field, then its value; numbers are zigzag varints; a zero byte ends the struct.
 */

/* Content that follows the header of a page. */
struct made_page {
    uint64_t offset;        /* in the file */
    uint32_t stored, bytes; /* as it is stored, and decompressed */
};

struct made_parquet {
    struct made_page *pages;
    uint64_t page_count;
    uint64_t text_bytes; /* of all documents */
};

#define PAGE_BYTES ((uint64_t)1 << 20) /* the default of most writers */
#define GROUP_ROWS ((uint64_t)1 << 16)
#define LEVEL 3 /* of zstd */
#define CODEC_NONE 0
#define CODEC_ZSTD 6

enum { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_TEXT = 8, THRIFT_LIST = 9, THRIFT_STRUCT = 12 };

struct group {
    uint64_t offset, rows, bytes, stored; /* sizes with the headers of the pages */
};

struct parquet_making {
    struct bench *bench;
    struct made_parquet *made;
    const char *path;
    int fd;
    uint64_t at;
    bool compressed;
    struct bytes_buffer values, packed; /* of one page */
    struct bytes_buffer thrift;
    struct group *groups;
    uint64_t group_count;
};

/* ---- Thrift ---- */

static void put(struct parquet_making *making, const void *bytes, uint64_t count)
{
    if (!bytes_append(&making->thrift, bytes, (size_t)count))
        bench_no_memory(making->bench);
}

static void put_byte(struct parquet_making *making, uint32_t byte)
{
    const uint8_t one = (uint8_t)byte;
    put(making, &one, 1);
}

static void put_varint(struct parquet_making *making, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put_byte(making, (uint32_t)(number & 0x7f) | 0x80);
    put_byte(making, (uint32_t)number);
}

/* Puts the head of a field whose number is `distance` above that of the last one. */
static void put_field(struct parquet_making *making, uint32_t distance, uint32_t type)
{
    put_byte(making, distance << 4 | type);
}

static void put_number(struct parquet_making *making, uint32_t distance, uint32_t type, uint64_t number)
{
    put_field(making, distance, type);
    put_varint(making, 2 * number);
}

/* Puts the head of a list of fewer than 15 elements. */
static void put_list(struct parquet_making *making, uint32_t distance, uint32_t type, uint32_t count)
{
    put_field(making, distance, THRIFT_LIST);
    put_byte(making, count << 4 | type);
}

static void put_text(struct parquet_making *making, const char *text)
{
    put_varint(making, strlen(text));
    put(making, text, strlen(text));
}

/* ---- pages ---- */

static void file_write(struct parquet_making *making, const void *bytes, uint64_t count)
{
    bench_check_system(making->bench, os_write(making->fd, bytes, (size_t)count), making->path,
                       "The text cannot be written as Parquet; give another --dir.");
    making->at += count;
}

/* Writes the values as a page with `rows` rows, and empties them. */
static void page_write(struct parquet_making *making, uint64_t rows)
{
    struct made_parquet *made = making->made;
    struct bytes_buffer *stored = &making->values;
    const size_t bytes = making->values.count;
    if (making->compressed) {
        const size_t most = libzstd.ZSTD_compressBound(bytes);
        making->packed.count = 0;
        if (!bytes_reserve(&making->packed, most))
            bench_no_memory(making->bench);
        making->packed.count = libzstd.ZSTD_compress(making->packed.bytes, most, making->values.bytes, bytes, LEVEL);
        if (libzstd.ZSTD_isError(making->packed.count))
            bench_no_memory(making->bench);
        stored = &making->packed;
    }
    if (!(made->page_count & (made->page_count - 1))) { /* the capacity is a power of two */
        struct made_page *grown = realloc(made->pages, max64(1, 2 * made->page_count) * sizeof *grown);
        if (!grown)
            bench_no_memory(making->bench);
        made->pages = grown;
    }
    making->thrift.count = 0;
    put_number(making, 1, THRIFT_I32, 0); /* a data page */
    put_number(making, 1, THRIFT_I32, bytes);
    put_number(making, 1, THRIFT_I32, stored->count);
    put_field(making, 2, THRIFT_STRUCT);
    put_number(making, 1, THRIFT_I32, rows);
    put_number(making, 1, THRIFT_I32, 0); /* PLAIN */
    put_number(making, 1, THRIFT_I32, 3); /* RLE, of both levels, which a required column does not have */
    put_number(making, 1, THRIFT_I32, 3);
    put(making, "\0\0", 2);
    struct group *group = &making->groups[making->group_count - 1];
    group->rows += rows;
    group->bytes += making->thrift.count + bytes;
    group->stored += making->thrift.count + stored->count;
    made->pages[made->page_count++] =
        (struct made_page){making->at + making->thrift.count, (uint32_t)stored->count, (uint32_t)bytes};
    file_write(making, making->thrift.bytes, making->thrift.count);
    file_write(making, stored->bytes, stored->count);
    making->values.count = 0;
}

/* Begins a row group after each GROUP_ROWS rows, and a page when the last one is full. */
static void pages_write(struct parquet_making *making, const struct tokmap_text *documents, uint64_t count)
{
    uint64_t rows = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct tokmap_text *document = &documents[i];
        if (i % GROUP_ROWS == 0)
            making->groups[making->group_count++] = (struct group){.offset = making->at};
        assert(document->count <= PAGE_BYTES);
        uint8_t length[4];
        store32(length, (uint32_t)document->count);
        if (!bytes_append(&making->values, length, sizeof length) ||
            !bytes_append(&making->values, document->bytes, document->count))
            bench_no_memory(making->bench);
        making->made->text_bytes += document->count;
        rows++;
        if (making->values.count >= PAGE_BYTES || (i + 1) % GROUP_ROWS == 0 || i + 1 == count) {
            page_write(making, rows);
            rows = 0;
        }
    }
}

/* ---- the footer ---- */

static void put_schema(struct parquet_making *making)
{
    put_list(making, 1, THRIFT_STRUCT, 2);
    put_field(making, 4, THRIFT_TEXT);
    put_text(making, "schema");
    put_number(making, 1, THRIFT_I32, 1); /* children */
    put_byte(making, 0);
    put_number(making, 1, THRIFT_I32, 6); /* BYTE_ARRAY */
    put_number(making, 2, THRIFT_I32, 0); /* required */
    put_field(making, 1, THRIFT_TEXT);
    put_text(making, "text");
    put_number(making, 2, THRIFT_I32, 0); /* UTF8 */
    put_byte(making, 0);
}

static void put_group(struct parquet_making *making, const struct group *group)
{
    put_list(making, 1, THRIFT_STRUCT, 1);
    put_number(making, 2, THRIFT_I64, group->offset);
    put_field(making, 1, THRIFT_STRUCT);
    put_number(making, 1, THRIFT_I32, 6); /* BYTE_ARRAY */
    put_list(making, 1, THRIFT_I32, 1);
    put_varint(making, 0); /* PLAIN */
    put_list(making, 1, THRIFT_TEXT, 1);
    put_text(making, "text");
    put_number(making, 1, THRIFT_I32, making->compressed ? CODEC_ZSTD : CODEC_NONE);
    put_number(making, 1, THRIFT_I64, group->rows);
    put_number(making, 1, THRIFT_I64, group->bytes);
    put_number(making, 1, THRIFT_I64, group->stored);
    put_number(making, 2, THRIFT_I64, group->offset);
    put(making, "\0\0", 2);
    put_number(making, 1, THRIFT_I64, group->bytes);
    put_number(making, 1, THRIFT_I64, group->rows);
    put_byte(making, 0);
}

static void footer_write(struct parquet_making *making, uint64_t rows)
{
    uint8_t end[8] = {0, 0, 0, 0, 'P', 'A', 'R', '1'};
    making->thrift.count = 0;
    put_number(making, 1, THRIFT_I32, 1); /* version */
    put_schema(making);
    put_number(making, 1, THRIFT_I64, rows);
    put_field(making, 1, THRIFT_LIST);
    put_byte(making, 15 << 4 | THRIFT_STRUCT);
    put_varint(making, making->group_count);
    for (uint64_t i = 0; i < making->group_count; i++)
        put_group(making, &making->groups[i]);
    put_byte(making, 0);
    store32(end, (uint32_t)making->thrift.count);
    put(making, end, sizeof end);
    file_write(making, making->thrift.bytes, making->thrift.count);
}

/* Creates the file. compressed: with zstd, else the pages are stored as they are. *made must be all zeros before. */
static void made_parquet_write(struct bench *bench, const char *path, const struct tokmap_text *documents,
                               uint64_t count, bool compressed, struct made_parquet *made)
{
    struct parquet_making making = {.bench = bench, .made = made, .path = path, .compressed = compressed};
    if (compressed)
        bench_zstd_load(bench, &libzstd_library);
    making.groups = bench_new(bench, count / GROUP_ROWS + 1, sizeof *making.groups);
    bench_check_system(bench, os_open(path, OS_WRITE_NEW, &making.fd), path,
                       "The Parquet file cannot be created; give another --dir.");
    file_write(&making, "PAR1", 4);
    pages_write(&making, documents, count);
    footer_write(&making, count);
    os_close(making.fd);
    bytes_free(&making.values);
    bytes_free(&making.packed);
    bytes_free(&making.thrift);
    free(making.groups);
}

static void made_parquet_free(struct made_parquet *made)
{
    free(made->pages);
    *made = (struct made_parquet){.page_count = 0};
}

/* ==== the case `parquet` ==== */

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

static void read_repeat(struct bench *bench, struct reading *reading, size_t file, bool counts)
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
        bench_failed(bench, &error);
    assert(bytes == reading->made[file].text_bytes);
    if (counts)
        series_add(&reading->rate[file], (double)bytes / (double)(ended - started));
}

/* ---- the limit ---- */

static void limit_repeat(struct bench *bench, struct reading *reading, size_t file, bool counts)
{
    const struct made_parquet *made = &reading->made[file];
    int fd;
    const uint64_t started = os_thread_cpu_ns();
    bench_check_system(bench, os_open(reading->paths[file], OS_READ, &fd), reading->paths[file],
                       "The Parquet file cannot be opened.");
    int system = 0;
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
        bench_failed_system(bench, system ? system : EIO, reading->paths[file],
                            "The pages of the file cannot be read.");
    if (counts)
        series_add(&reading->limit[file], (double)made->text_bytes / (double)(ended - started));
}

/* ---- the case ---- */

static void files_make(struct bench *bench, struct reading *reading)
{
    static const char *const names[FILES] = {[ZSTD] = "zstd.parquet", [PLAIN] = "plain.parquet"};
    const struct bench_text *text = &reading->text;
    uint64_t most = 0;
    for (size_t i = 0; i < FILES; i++) {
        made_file(bench, names[i], reading->paths[i]);
        made_parquet_write(bench, reading->paths[i], text->documents, text->document_count, i == ZSTD,
                           &reading->made[i]);
        for (uint64_t k = 0; k < reading->made[i].page_count; k++)
            most = max64(most, max64(reading->made[i].pages[k].stored, reading->made[i].pages[k].bytes));
    }
    reading->stored = bench_new(bench, most, 1);
    reading->bytes = bench_new(bench, most, 1);
    reading->zstd = libzstd.ZSTD_createDCtx(); /* made_parquet_write() has loaded zstd */
    if (!reading->zstd)
        bench_no_memory(bench);
    bench_check(bench, parquet_pool_new(&reading->pool, &bench->error));
    for (size_t i = 0; i < FILES; i++) {
        memcpy(reading->parquet[i].path, reading->paths[i], BENCH_PATH);
        reading->parquet[i].text_bytes = text->bytes;
    }
}

static void all_repeat(struct bench *bench, struct reading *reading, bool counts)
{
    for (size_t i = 0; i < FILES; i++) {
        read_repeat(bench, reading, i, counts);
        limit_repeat(bench, reading, i, counts);
    }
    pack_records_repeat(bench, &reading->jsonl, counts);
    for (size_t i = 0; i < FILES; i++)
        pack_records_repeat(bench, &reading->parquet[i], counts);
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
    if (!bench->options.dataset)
        return bench_misused(bench, "name a text: tokmap-bench parquet FILE");
    if (!bench->options.tokenizer)
        bench->options.tokenizer = "bytes";
    if (bench->options.child) {
        pack_records_child(bench);
        return CLI_DONE;
    }
    bench_text_open(bench, &reading.text);
    files_make(bench, &reading);
    pack_records_open(bench, &reading.jsonl, &reading.text);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        all_repeat(bench, &reading, repeats.counts);
    results(bench, &reading);
    for (size_t i = 0; i < FILES; i++)
        made_parquet_free(&reading.made[i]);
    free(reading.stored);
    free(reading.bytes);
    (void)libzstd.ZSTD_freeDCtx(reading.zstd);
    parquet_pool_release(reading.pool);
    bench_text_close(&reading.text);
    return CLI_DONE;
}

const struct bench_case case_parquet = {"parquet", "reading text from Parquet, beside its codec alone; needs FILE",
                                        run};
