/* SPDX-License-Identifier: MIT */
/*
 * case_pack.c - the command `tokmap pack` on generated text, with the byte tokenizer, as a process. Records, compressed
 * or not, and the stages of pack are measured in case_pack_stages.c. With --memory, pack_memory_run() runs.
 *
 * The limit is a loop that moves the same bytes: it reads the text and writes, hashes and syncs twice as many bytes,
 * since a token of the byte tokenizer takes two. Both begin with the text in the page cache and end when storage has
 * the output.
 */
#include "cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_pack_stages.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "format/write_behind.h"
#include "harness/bench_data.h"
#include "harness/bench_text.h"
#include "harness/child.h"
#include "harness/storage.h"
#include "platform/os.h"
#include "tokmap/pack.h"

/* ==== the case `pack` with --memory ==== */

/*
 * `tokmap-bench pack --memory`: the peak memory of packing, beside what the manual page states.
 *
 * There are two extremes. A great number of tiny documents shows what memory grows with each document: they are lines
 * of JSONL of five words, all different, because an equal document needs no memory of its own, and one of fewer words
 * has no n-gram. One large document shows what memory grows with its size: a copy of this program writes it to a pipe,
 * so that storage needs room for the tokens alone.
 *
 * The limit of each way of packing is 256 MiB, and what tokmap-documents(7) states for each document. The bytes of the
 * tokens show that every document was packed.
 */

#define MIB ((double)(1 << 20))
#define LIMIT_MIB 256
#define DEDUP_MEMORY_MIB 200
#define DEDUP_MEMORY "200Mi"
#define EXACT_BYTES 42 /* of a document, until they need more than --dedup-memory */
#define MINHASH_BYTES 4

#define WORDS 5
#define WORD_VALUES (26 * 26) /* two letters */
/* Numbers of documents are multiplied by an odd number modulo 2^46, which is below WORD_VALUES^WORDS: all differ. */
#define SCRAMBLE 0x9e3779b97f4a7c15u
#define SCRAMBLE_BITS 46
#define TEXT_BYTES (3 * WORDS - 1)
#define LINES_AT_ONCE 16384
#define BLOCK ((size_t)1 << 20)
#define LARGE_USUAL ((uint64_t)1 << 30)
#define LARGE_CHILD "large" /* options.child of the copy that writes the large document */

enum { PLAIN, SHUFFLE, DEDUP, MINHASH, TINY_WAYS, LARGE = TINY_WAYS, WAYS };

static const struct way {
    const char *name;
    uint64_t document_bytes; /* bytes that the manual page states for each document, */
    uint64_t most_mib;       /* and for all of them; 0: no limit */
    const char *options[6];
} ways[WAYS] = {
    [PLAIN] = {"tiny_plain", 0, 0, {NULL}},
    [SHUFFLE] = {"tiny_shuffle", 0, 0, {"--shuffle", "7"}},
    [DEDUP] = {"tiny_dedup", EXACT_BYTES, DEDUP_MEMORY_MIB, {"--dedup", "exact", "--dedup-memory", DEDUP_MEMORY}},
    /* 14 bands take some MiB more for files, but for 10^8 documents 48 GB of storage. */
    [MINHASH] = {"tiny_minhash",
                 MINHASH_BYTES,
                 0,
                 {"--dedup", "minhash", "--dedup-memory", DEDUP_MEMORY, "--minhash-bands", "2"}},
    [LARGE] = {"large", 0, 0, {"--input-format", "text"}},
};

struct memory {
    char tiny[BENCH_PATH];
    char folder[BENCH_PATH], output[BENCH_PATH + 8];
    uint64_t documents, large_bytes;
    uint64_t stored[WAYS];             /* bytes of the tokens */
    struct series peak[WAYS], s[WAYS]; /* MiB; seconds */
};

/* ---- the documents ---- */

/* Writes document `number` as a line of JSONL, and returns its end. */
static uint8_t *tiny_line(uint8_t *line, uint64_t number)
{
    static const char begin[] = "{\"text\":\"", end[] = "\"}\n";
    uint64_t words = number * SCRAMBLE & (((uint64_t)1 << SCRAMBLE_BITS) - 1);
    memcpy(line, begin, sizeof begin - 1);
    line += sizeof begin - 1;
    for (int i = 0; i < WORDS; i++, words /= WORD_VALUES) {
        if (i)
            *line++ = ' ';
        *line++ = (uint8_t)('a' + words % 26);
        *line++ = (uint8_t)('a' + words / 26 % 26);
    }
    memcpy(line, end, sizeof end - 1);
    return line + sizeof end - 1;
}

static int tiny_make(struct bench *bench, struct memory *memory)
{
    int fd;
    uint8_t *lines = malloc(LINES_AT_ONCE * (TEXT_BYTES + 32));
    int result = lines ? made_file(bench, "tiny.jsonl", memory->tiny) : bench_no_memory(bench);
    if (result) {
        free(lines);
        return result;
    }
    bench_say(bench, "creating %" PRIu64 " documents of %d bytes in %s", memory->documents, TEXT_BYTES,
              bench->options.folder);
    int system = os_open(memory->tiny, OS_WRITE_NEW, &fd);
    if (!system) {
        for (uint64_t at = 0; at < memory->documents && !system && !bench_stopped();) {
            uint8_t *end = lines;
            for (const uint64_t last = min64(at + LINES_AT_ONCE, memory->documents); at < last; at++)
                end = tiny_line(end, at);
            system = os_write(fd, lines, (size_t)(end - lines));
        }
        os_close(fd);
    }
    free(lines);
    return system
               ? bench_failed_system(bench, system, memory->tiny,
                                     "The documents cannot be written; give another --dir or fewer --tiny-documents.")
               : CLI_DONE;
}

/* In a copy of this program. */
static int large_write(struct bench *bench, uint64_t bytes)
{
    struct made_text *text = made_text_new(15);
    uint8_t *block = malloc(BLOCK);
    int system = 0;
    const int result = text && block ? CLI_DONE : bench_no_memory(bench);
    while (!result && !system && bytes && !bench_stopped()) {
        const size_t part = (size_t)min64(bytes, BLOCK);
        made_text_fill(text, block, part);
        system = os_write_stream(1, block, part);
        bytes -= part;
    }
    free(block);
    made_text_free(text);
    return system ? bench_failed_system(bench, system, NULL, "The large document cannot be written to a pipe.")
                  : result;
}

/* ---- packing ---- */

/* Checks the number of stored documents: one that was lost, or was taken for another, would take no memory. */
static int stored_check(struct bench *bench, struct memory *memory, int way)
{
    char path[BENCH_PATH + 32];
    struct os_stat stat;
    (void)snprintf(path, sizeof path, "%s.bin", memory->output);
    const int system = os_stat(path, &stat);
    if (system)
        return bench_failed_system(bench, system, path, "The tokens that `tokmap pack` has written cannot be found.");
    memory->stored[way] = stat.bytes;
    uint64_t right = way == LARGE ? 2 * memory->large_bytes : 2 * TEXT_BYTES * memory->documents;
    if (bench->options.tokenizer)
        right = way == LARGE ? stat.bytes : memory->stored[PLAIN];
    if (stat.bytes == right)
        return CLI_DONE;
    cli_say(bench->program, "%s: tokmap pack stored %" PRIu64 " bytes of tokens in place of %" PRIu64, ways[way].name,
            stat.bytes, right);
    return CLI_FAILED;
}

static int way_repeat(struct bench *bench, struct memory *memory, int number)
{
    const struct way *way = &ways[number];
    const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {"pack", "--quiet", "--no-eod", "-o", memory->output, "--threads"};
    char threads[32];
    struct child_usage usage = {.seconds = 0};
    size_t count = 6;
    (void)snprintf(threads, sizeof threads, "%" PRIu64, bench->options.threads);
    arguments[count++] = threads;
    count = child_tokenizer_arguments(bench, arguments, count);
    for (size_t i = 0; i < sizeof way->options / sizeof way->options[0] && way->options[i]; i++)
        arguments[count++] = way->options[i];
    arguments[count] = number == LARGE ? "-" : memory->tiny;
    int result = number == LARGE ? child_run_tokmap_fed(bench, LARGE_CHILD, arguments, &usage)
                                 : child_run_tokmap(bench, arguments, &usage);
    if (!result)
        result = stored_check(bench, memory, number);
    made_tree_empty(bench);
    if (!result) {
        series_add(&memory->peak[number], usage.peak_mib);
        series_add(&memory->s[number], usage.seconds);
    }
    return result;
}

/* Writes two rows for each way. Returns whether all limits are held. */
static bool report(struct bench *bench, const struct memory *memory)
{
    bool held = true;
    for (int i = 0; i < WAYS; i++) {
        const struct series *const series[2] = {&memory->peak[i], &memory->s[i]};
        double stated = (double)(ways[i].document_bytes * memory->documents) / MIB;
        if (ways[i].most_mib && stated > (double)ways[i].most_mib)
            stated = (double)ways[i].most_mib;
        for (int seconds = 0; seconds < 2; seconds++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%s_%s", ways[i].name, seconds ? "s" : "peak_mib");
            const struct bench_figure figure = {
                .metric = name,
                .unit = seconds ? "s" : "MiB",
                .value = seconds ? series_median(series[1]) : series_largest(series[0]),
                .smallest = series_smallest(series[seconds]),
                .largest = series_largest(series[seconds]),
                .count = series[seconds]->count,
                .bar = seconds ? (double)NAN : LIMIT_MIB + stated,
            };
            const enum bench_held found = bench_figure(bench, &figure);
            held &= seconds || found == BENCH_HELD;
        }
    }
    return held;
}

/* Measures and writes the results; in a copy of this program, writes the large document to standard output instead.
 * Returns CLI_DONE, CLI_FAILED after a message or if a limit that --require names is not held, or CLI_MISUSED after a
 * message. */
static int pack_memory_run(struct bench *bench)
{
    static struct memory memory;
    const struct bench_options *options = &bench->options;
    memory.documents = options->tiny_documents;
    memory.large_bytes = options->text_bytes_given ? options->text_bytes : LARGE_USUAL;
    if (options->child)
        return large_write(bench, memory.large_bytes);
    if (options->dataset || (options->require_given && options->require != BENCH_REQUIRE_HELD)) {
        cli_say(bench->program, "%s",
                options->dataset ? "--memory makes its documents itself, so leave the file out"
                                 : "--require is here followed by held");
        return CLI_MISUSED;
    }
    int result = made_tree(bench, "packed-memory", memory.folder);
    (void)snprintf(memory.output, sizeof memory.output, "%s/out", memory.folder);
    if (!result)
        result = tiny_make(bench, &memory);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 1), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats, result))
        for (int i = 0; i < WAYS && !result && !bench_stopped(); i++)
            result = way_repeat(bench, &memory, i);
    if (result || bench_stopped())
        return CLI_FAILED;
    const bool held = report(bench, &memory);
    bench_answer(bench, held ? "Every peak is within 256 MiB and what the manual page states for each document."
                             : "A peak is above 256 MiB and what the manual page states for each document.");
    return options->require_given && !held ? CLI_FAILED : CLI_DONE;
}

/* ==== the case `pack` ==== */

#define TEXTS 16 /* files */
#define COPY_BLOCK ((size_t)1 << 20)

struct packing {
    char texts[TEXTS][BENCH_PATH];
    char output[BENCH_PATH]; /* prefix of the shard that `tokmap pack` writes */
    char copy[BENCH_PATH];   /* the file that the limit writes */
    uint8_t *block;
    uint64_t bytes;                  /* of all texts */
    struct series rate, limit, peak; /* MB/s of text, the same of the limit, MiB */
};

/* ---- text ---- */

static int text_write(struct bench *bench, struct packing *packing, struct made_text *text)
{
    for (uint32_t i = 0; i < TEXTS && !bench_stopped(); i++) {
        char name[32];
        int fd;
        uint64_t left = mul_div(packing->bytes, i + 1, TEXTS) - mul_div(packing->bytes, i, TEXTS);
        (void)snprintf(name, sizeof name, "text%02u.txt", i);
        const int result = made_file(bench, name, packing->texts[i]);
        if (result)
            return result;
        int system = os_open(packing->texts[i], OS_WRITE_NEW, &fd);
        if (system)
            return bench_failed_system(bench, system, packing->texts[i],
                                       "The text cannot be created; give another --dir.");
        while (!system && left) {
            const size_t bytes = (size_t)min64(left, COPY_BLOCK);
            made_text_fill(text, packing->block, COPY_BLOCK);
            system = os_write(fd, packing->block, bytes);
            left -= bytes;
        }
        if (!system)
            system = os_sync(fd);
        os_close(fd);
        if (system)
            return bench_failed_system(bench, system, packing->texts[i],
                                       "The text cannot be written; give another --dir or fewer --text-bytes.");
    }
    return CLI_DONE;
}

static int text_make(struct bench *bench, struct packing *packing)
{
    char size[32];
    struct made_text *text = made_text_new(11);
    bench_say(bench, "creating %s of text in %s", cli_bytes(packing->bytes, size), bench->options.folder);
    const int result = text ? text_write(bench, packing, text) : bench_no_memory(bench);
    made_text_free(text);
    return result;
}

/* ---- pack ---- */

static int pack_repeat(struct bench *bench, struct packing *packing, bool counts)
{
    static const char *const endings[] = {".bin", ".tmx"};
    char threads[32];
    const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {
        "pack", "--quiet", "--input-format", "text", "--eod", "--threads", threads, "-o", packing->output};
    struct child_usage usage = {.seconds = 0};
    (void)snprintf(threads, sizeof threads, "%" PRIu64, bench->options.threads);
    for (uint32_t i = 0; i < TEXTS; i++)
        arguments[9 + i] = packing->texts[i];
    int result = CLI_DONE;
    for (uint32_t i = 0; i < TEXTS && !result; i++)
        result = page_cache_read(bench, packing->texts[i]);
    if (!result)
        result = child_run_tokmap(bench, arguments, &usage);
    for (size_t i = 0; i < 2; i++) {
        char path[BENCH_PATH + 8];
        (void)snprintf(path, sizeof path, "%s%s", packing->output, endings[i]);
        (void)os_unlink(path);
    }
    if (!result && counts) {
        series_add(&packing->rate, (double)packing->bytes / 1e6 / usage.seconds);
        series_add(&packing->peak, usage.peak_mib);
    }
    return result;
}

/* ---- the limit ---- */

struct copy {
    int fd;
    uint64_t written; /* bytes */
    struct write_behind behind;
};

/* Writes each block of a text twice, and stores them meanwhile, as the packer does. */
static int copy_text(struct packing *packing, const char *path, struct copy *output)
{
    int from;
    size_t got = COPY_BLOCK;
    int system = os_open(path, OS_READ, &from);
    if (system)
        return system;
    for (uint64_t at = 0; !system && got == COPY_BLOCK; at += got) {
        system = os_pread(from, packing->block, COPY_BLOCK, at, &got);
        for (int twice = 0; !system && got && twice < 2; twice++) {
            keep_value(hash64(packing->block, got));
            system = os_write(output->fd, packing->block, got);
            output->written += got;
            write_behind(&output->behind, output->fd, output->written);
        }
    }
    os_close(from);
    return system;
}

static int pack_limit_repeat(struct bench *bench, struct packing *packing, bool counts)
{
    struct copy copy = {.fd = -1};
    const uint64_t started = os_clock_ns();
    int system = os_open(packing->copy, OS_WRITE_NEW, &copy.fd);
    for (uint32_t i = 0; !system && i < TEXTS; i++)
        system = copy_text(packing, packing->texts[i], &copy);
    if (!system)
        system = os_sync(copy.fd);
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    if (copy.fd >= 0)
        os_close(copy.fd);
    (void)os_unlink(packing->copy);
    if (system)
        return bench_failed_system(bench, system, packing->copy, "The file of the limit cannot be written.");
    if (counts)
        series_add(&packing->limit, (double)packing->bytes / 1e6 / seconds);
    return CLI_DONE;
}

/* ---- the case ---- */

static int packing_open(struct bench *bench, struct packing *packing)
{
    packing->bytes = bench->options.text_bytes;
    packing->block = malloc(COPY_BLOCK);
    if (!packing->block)
        return bench_no_memory(bench);
    int result = made_shard(bench, "packed", packing->output);
    if (!result)
        result = made_file(bench, "copy", packing->copy);
    return result ? result : text_make(bench, packing);
}

static int pack_case(struct bench *bench)
{
    static struct packing packing;
    if (bench->options.memory)
        return pack_memory_run(bench);
    struct stage_costs *stages = NULL;
    int result = packing_open(bench, &packing);
    if (!result)
        result = stage_costs_open(bench, &stages);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        result = pack_repeat(bench, &packing, repeats.counts);
        if (!result)
            result = pack_limit_repeat(bench, &packing, repeats.counts);
        if (!result)
            result = stage_costs_repeat(bench, stages, repeats.counts);
    }
    free(packing.block);
    if (!result && !bench_stopped()) {
        bench_result(bench, "text_mb_s", "MB/s", &packing.rate, &packing.limit);
        bench_result(bench, "peak_rss_mib", "MiB", &packing.peak, NULL);
        stage_costs_report(bench, stages, &packing.rate);
    } else {
        result = CLI_FAILED;
    }
    stage_costs_free(stages);
    return result;
}

const struct bench_case case_pack = {
    "pack", "tokmap pack on plain text, beside a loop that moves the same bytes, and on records, by stages", pack_case};

/* ==== the case `writer` ==== */

/*
 * The functions of tokmap/pack.h: ids from this program's memory to a shard.
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

#define VOCABULARY 50257
#define CALL_IDS ((uint64_t)1 << 20)
#define DOCUMENT_IDS 1000
#define DOCUMENTS (CALL_IDS / DOCUMENT_IDS + 1)
#define PIECE ((size_t)1 << 18) /* bytes that the limit hashes and writes at once, as the writer does */

enum { STORED, EOD, WIDE, WRITER_WAYS };

struct writing {
    uint16_t *ids; /* CALL_IDS of them, and the same as 64-bit numbers */
    int64_t *wide;
    uint64_t ends[DOCUMENTS];
    uint64_t calls;
    char shard[BENCH_PATH], copy[BENCH_PATH];
    struct series rate[WRITER_WAYS], limit; /* GB/s of stored ids */
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
    struct tokmap_documents documents = TOKMAP_DOCUMENTS_INIT;
    struct tokmap_writer *writer = NULL;
    struct tokmap_error error = {0};
    options.vocabulary = VOCABULARY;
    options.sync = 0;
    options.eod_id = way == EOD ? VOCABULARY - 1 : TOKMAP_NO_ID;
    documents.ids = way == WIDE ? (const void *)writing->wide : writing->ids;
    documents.type = way == WIDE ? TOKMAP_ID_I64 : TOKMAP_ID_U16;
    documents.id_count = CALL_IDS;
    documents.ends = writing->ends;
    documents.document_count = DOCUMENTS;
    files_remove(writing);
    const uint64_t started = os_thread_cpu_ns();
    enum tokmap_status status = tokmap_writer_open(&writer, writing->shard, &options, &error);
    for (uint64_t i = 0; i < writing->calls && !status && !bench_stopped(); i++)
        status = tokmap_writer_add(writer, &documents, &error);
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

static int writer_limit_repeat(struct bench *bench, struct writing *writing, bool counts)
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

static int writer_run(struct bench *bench)
{
    static struct writing writing;
    int result = writing_open(bench, &writing);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        for (size_t way = 0; way < WRITER_WAYS && !result; way++)
            result = writer_repeat(bench, &writing, way, repeats.counts);
        if (!result)
            result = writer_limit_repeat(bench, &writing, repeats.counts);
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
                                       writer_run};
