/* SPDX-License-Identifier: MIT */
/*
 * case_pack.c - the command `tokmap pack` as a process, on plain text and on the same text as records, by stages. With
 * --memory, pack_memory_run() runs.
 *
 * The limit of plain text with the byte tokenizer is a loop that moves the same bytes: it reads the text and writes,
 * hashes and syncs twice as many bytes, since a token takes two. Both begin with the text in the page cache and end
 * when storage has the output.
 */
#include "cases.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "format/write_behind.h"
#include "harness/bench_data.h"
#include "harness/bench_text.h"
#include "harness/child.h"
#include "harness/storage.h"
#include "platform/library.h"
#include "platform/os.h"
#include "platform/zstd_library.h"
#include "tokmap/pack.h"

/* ==== a way of packing ==== */

#define THREADS_MOST 256 /* that pack takes */
#define OPTIONS_MOST 6   /* words of options */

/* Begins the command line of `tokmap pack`, in the tokenizer and the number of threads that the user asked for. */
static void command_begin(const struct bench *bench, struct child_arguments *command, const char *output,
                          uint64_t threads_times, const char *const options[OPTIONS_MOST])
{
    *command = (struct child_arguments){.list = {"pack", "--quiet", "--no-eod", "-o", output}, .count = 5};
    arguments_number(command, "--threads", min64(bench->options.threads * threads_times, THREADS_MOST));
    arguments_tokenizer(command, bench);
    for (size_t i = 0; i < OPTIONS_MOST && options[i]; i++)
        arguments_add(command, options[i]);
}

/* Returns the bytes of a file; 0 if there is none. */
static uint64_t file_bytes(const char *prefix, const char *ending)
{
    char path[BENCH_PATH + 32];
    struct os_stat stat;
    (void)snprintf(path, sizeof path, "%s%s", prefix, ending);
    return os_stat(path, &stat) ? 0 : stat.bytes;
}

enum { OURS, THEIRS, SIDES };

/* What is measured of a way. With --before, each repeat also runs the other command, in turns first and last. */
struct measured {
    struct series rate, peak;         /* MB/s, MiB */
    struct series before_peak;        /* of the other command */
    struct series before, before_cpu; /* its time and its processor time divided by ours, repeat by repeat */
};

/* Runs a command, as so many tasks at once unless that is 0. stored: receives the bytes of the tokens of the one shard
 * at `output`, or 0. */
static void command_measure(struct bench *bench, struct measured *measured, const struct child_arguments *command,
                            uint32_t tasks, const char *output, uint64_t bytes, const struct repeats *repeats,
                            uint64_t *stored)
{
    char ours[BENCH_PATH], said[256];
    const char *const programs[SIDES] = {ours, bench->options.before};
    struct child_usage usage[SIDES];
    const int sides = bench->options.before ? SIDES : 1;
    child_program(bench, ours);
    for (int i = 0; i < sides; i++) {
        const int side = repeats->number % 2 ? sides - 1 - i : i;
        if (tasks)
            child_run_tasks(bench, programs[side], command, tasks, &usage[side]);
        else
            child_run(bench, programs[side], command->list, said, sizeof said, &usage[side]);
        if (!side)
            *stored = file_bytes(output, ".bin") + file_bytes(output, ".bin.zst");
        made_tree_empty(bench);
    }
    repeats_add(repeats, &measured->rate, (double)bytes / 1e6 / usage[OURS].seconds);
    repeats_add(repeats, &measured->peak, usage[OURS].peak_mib);
    if (sides == 1)
        return;
    repeats_add(repeats, &measured->before_peak, usage[THEIRS].peak_mib);
    repeats_add(repeats, &measured->before, usage[THEIRS].seconds / usage[OURS].seconds);
    repeats_add(repeats, &measured->before_cpu, usage[THEIRS].cpu_seconds / usage[OURS].cpu_seconds);
}

/* Writes the results NAME_mb_s and NAME_peak_mib, and with --before NAME_before_ratio and NAME_before_cpu_ratio. */
static void measured_report(struct bench *bench, const char *name, const struct measured *measured,
                            const struct series *limit)
{
    const bool before = measured->before.count != 0;
    const struct {
        const char *ending, *unit;
        const struct series *values, *limit;
    } results[] = {{"mb_s", "MB/s", &measured->rate, limit},
                   {"peak_mib", "MiB", &measured->peak, before ? &measured->before_peak : NULL},
                   {"before_ratio", "x", &measured->before, NULL},
                   {"before_cpu_ratio", "x", &measured->before_cpu, NULL}};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        char metric[64];
        (void)snprintf(metric, sizeof metric, "%s_%s", name, results[i].ending);
        bench_result(bench, metric, results[i].unit, results[i].values, results[i].limit);
    }
}

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
#define TINY_TEXT_BYTES (3 * WORDS - 1)
#define LINES_AT_ONCE 16384
#define BLOCK ((size_t)1 << 20)
#define LARGE_USUAL ((uint64_t)1 << 30)
#define LARGE_CHILD "large" /* options.child of the copy that writes the large document */

enum { TINY_PLAIN, TINY_SHUFFLE, TINY_DEDUP, TINY_MINHASH, LARGE, MEMORY_WAYS };

static const struct memory_way {
    const char *name;
    uint64_t document_bytes; /* bytes that the manual page states for each document, */
    uint64_t most_mib;       /* and for all of them; 0: no limit */
    const char *options[OPTIONS_MOST];
} memory_ways[MEMORY_WAYS] = {
    [TINY_PLAIN] = {"tiny_plain", 0, 0, {NULL}},
    [TINY_SHUFFLE] = {"tiny_shuffle", 0, 0, {"--shuffle", "7"}},
    [TINY_DEDUP] = {"tiny_dedup", EXACT_BYTES, DEDUP_MEMORY_MIB, {"--dedup", "exact", "--dedup-memory", DEDUP_MEMORY}},
    /* 14 bands take some MiB more for files, but for 10^8 documents 48 GB of storage. */
    [TINY_MINHASH] = {"tiny_minhash",
                      MINHASH_BYTES,
                      0,
                      {"--dedup", "minhash", "--dedup-memory", DEDUP_MEMORY, "--minhash-bands", "2"}},
    [LARGE] = {"large", 0, 0, {"--input-format", "text"}},
};

struct memory {
    char tiny[BENCH_PATH];
    char folder[BENCH_PATH], output[BENCH_PATH + 8];
    uint64_t documents, large_bytes;
    uint64_t stored[MEMORY_WAYS];                    /* bytes of the tokens */
    struct series peak[MEMORY_WAYS], s[MEMORY_WAYS]; /* MiB; seconds */
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

static void tiny_make(struct bench *bench, struct memory *memory)
{
    static const char failed[] = "The documents cannot be written; give another --dir or fewer --tiny-documents.";
    int fd;
    uint8_t *lines = bench_new(bench, LINES_AT_ONCE, TINY_TEXT_BYTES + 32);
    made_file(bench, "tiny.jsonl", memory->tiny);
    bench_say(bench, "creating %" PRIu64 " documents of %d bytes in %s", memory->documents, TINY_TEXT_BYTES,
              bench->options.folder);
    bench_check_system(bench, os_open(memory->tiny, OS_WRITE_NEW, &fd), memory->tiny, failed);
    for (uint64_t at = 0; at < memory->documents && !bench_stopped();) {
        uint8_t *end = lines;
        for (const uint64_t last = min64(at + LINES_AT_ONCE, memory->documents); at < last; at++)
            end = tiny_line(end, at);
        bench_check_system(bench, os_write(fd, lines, (size_t)(end - lines)), memory->tiny, failed);
    }
    os_close(fd);
    free(lines);
}

/* In a copy of this program. */
static void large_write(struct bench *bench, uint64_t bytes)
{
    struct made_text *text = made_text_new(bench, 15);
    uint8_t *block = bench_new(bench, BLOCK, 1);
    for (size_t part; bytes && !bench_stopped(); bytes -= part) {
        part = (size_t)min64(bytes, BLOCK);
        made_text_fill(text, block, part);
        bench_check_system(bench, os_write_stream(1, block, part), NULL,
                           "The large document cannot be written to a pipe.");
    }
    free(block);
    made_text_free(text);
}

/* ---- packing ---- */

/* Checks the number of stored documents: one that was lost, or was taken for another, would take no memory. */
static void stored_check(struct bench *bench, struct memory *memory, int way)
{
    const uint64_t stored = memory->stored[way] = file_bytes(memory->output, ".bin");
    uint64_t right = way == LARGE ? 2 * memory->large_bytes : 2 * TINY_TEXT_BYTES * memory->documents;
    if (bench->options.tokenizer)
        right = way == LARGE ? stored : memory->stored[TINY_PLAIN];
    if (stored == right)
        return;
    cli_say(bench->program, "%s: tokmap pack stored %" PRIu64 " bytes of tokens in place of %" PRIu64,
            memory_ways[way].name, stored, right);
    bench_end(bench, CLI_FAILED);
}

static void memory_repeat(struct bench *bench, struct memory *memory, int way)
{
    struct child_arguments command;
    struct child_usage usage;
    command_begin(bench, &command, memory->output, 1, memory_ways[way].options);
    arguments_add(&command, way == LARGE ? "-" : memory->tiny);
    if (way == LARGE)
        child_run_tokmap_fed(bench, LARGE_CHILD, command.list, &usage);
    else
        child_run_tokmap(bench, command.list, &usage);
    stored_check(bench, memory, way);
    made_tree_empty(bench);
    series_add(&memory->peak[way], usage.peak_mib);
    series_add(&memory->s[way], usage.seconds);
}

/* Writes two rows for each way. Returns whether all limits are held. */
static bool memory_report(struct bench *bench, const struct memory *memory)
{
    bool held = true;
    for (int i = 0; i < MEMORY_WAYS; i++) {
        const struct series *const series[2] = {&memory->peak[i], &memory->s[i]};
        const double most = memory_ways[i].most_mib ? (double)memory_ways[i].most_mib : (double)INFINITY;
        const double stated = fmin(most, (double)(memory_ways[i].document_bytes * memory->documents) / MIB);
        for (int seconds = 0; seconds < 2; seconds++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%s_%s", memory_ways[i].name, seconds ? "s" : "peak_mib");
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

/* Measures and writes the results; in a copy of this program, writes the large document to standard output instead. */
static int pack_memory_run(struct bench *bench)
{
    static struct memory memory;
    const struct bench_options *options = &bench->options;
    memory.documents = options->tiny_documents;
    memory.large_bytes = options->text_bytes_given ? options->text_bytes : LARGE_USUAL;
    if (options->child) {
        large_write(bench, memory.large_bytes);
        return CLI_DONE;
    }
    if (options->before)
        return bench_misused(bench, "--memory measures one command, so leave --before out");
    if (options->dataset || (options->require_given && options->require != BENCH_REQUIRE_HELD))
        return bench_misused(bench, options->dataset ? "--memory makes its documents itself, so leave the file out"
                                                     : "--require is here followed by held");
    made_tree(bench, "packed-memory", memory.folder);
    (void)snprintf(memory.output, sizeof memory.output, "%s/out", memory.folder);
    tiny_make(bench, &memory);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 1), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats))
        for (int i = 0; i < MEMORY_WAYS; i++)
            memory_repeat(bench, &memory, i);
    const bool held = memory_report(bench, &memory);
    bench_answer(bench, held ? "Every peak is within 256 MiB and what the manual page states for each document."
                             : "A peak is above 256 MiB and what the manual page states for each document.");
    return options->require_given && !held ? CLI_FAILED : CLI_DONE;
}

/* ==== plain text, and each stage of `tokmap pack` beside packing the same records without it ==== */

/*
 * The text is generated, or that of the file which the command names, from its begin again if it is too short.
 *
 * All rates are bytes of text per second, as they are before they become JSON, so all rows can be compared. Each way of
 * packing is a row of a table and has another row as its limit, which does the same without the stage, or with half of
 * the threads.
 */

#define FILES 16
#define RECORD_MOST ((size_t)1 << 14) /* bytes of a text, but for the rest of a character */
#define ZSTD_LEVEL 3
#define EXCLUDED_BYTES ((size_t)1 << 20)
#define EXCLUDED_LINE 1024

enum kind { TEXT, JSONL, COMPRESSED, KINDS };
enum {
    PLAIN_TEXT,
    RECORDS,
    ZST,
    SHARDS,
    TASKS,
    THREE_THREADS,
    THREE_TASKS,
    SHUFFLE,
    DEDUP,
    MINHASH,
    EXCLUDE,
    SPLIT,
    SEAL,
    ALSO,
    RECORDS_TWICE,
    ZST_TWICE,
    BUSY_RECORDS, /* this and the next ones while another process runs on each processor */
    BUSY_SHUFFLE,
    BUSY_ALSO,
    WAYS
};

enum { LOOP = -1 }; /* the limit of plain text, if the tokenizer is that of bytes */

/* These stand for words that stages_open() makes. */
#define SHARD_TOKENS "{shard}"
#define UNIT_BYTES "{unit}"
#define EXCLUDED "{excluded}"

static const struct way {
    const char *name;
    enum kind kind;
    uint32_t threads; /* times --threads */
    int limit;        /* the way beside which it is shown */
    const char *options[OPTIONS_MOST];
} ways[WAYS] = {
    [PLAIN_TEXT] = {"text", TEXT, 1, LOOP, {"--input-format", "text"}},
    [RECORDS] = {"jsonl", JSONL, 1, PLAIN_TEXT, {NULL}},
    [ZST] = {"jsonl_zst", COMPRESSED, 1, RECORDS, {NULL}},
    [SHARDS] = {"shards", JSONL, 1, RECORDS, {"--shard-tokens", SHARD_TOKENS}},
    [TASKS] =
        {"tasks", JSONL, 1, SHARDS, {"--shard-tokens", SHARD_TOKENS, "--unit-bytes", UNIT_BYTES, "--task", "0/1"}},
    [THREE_THREADS] = {"three_threads", JSONL, 3, SHARDS, {"--shard-tokens", SHARD_TOKENS}},
    [THREE_TASKS] =
        {"three_tasks", JSONL, 1, THREE_THREADS, {"--shard-tokens", SHARD_TOKENS, "--unit-bytes", UNIT_BYTES}},
    [SHUFFLE] = {"shuffle", JSONL, 1, RECORDS, {"--shuffle", "7"}},
    [DEDUP] = {"dedup", JSONL, 1, RECORDS, {"--dedup", "exact"}},
    [MINHASH] = {"minhash", JSONL, 1, RECORDS, {"--dedup", "minhash"}},
    [EXCLUDE] = {"exclude", JSONL, 1, RECORDS, {"--exclude-ngrams", EXCLUDED}},
    [SPLIT] = {"split", JSONL, 1, RECORDS, {"--split", "train=0.99,val=0.01"}},
    [SEAL] = {"seal", JSONL, 1, RECORDS, {"--seal"}},
    [ALSO] = {"also", JSONL, 1, RECORDS, {"--also", "megatron,llmc"}},
    [RECORDS_TWICE] = {"twice_threads", JSONL, 2, RECORDS, {NULL}},
    [ZST_TWICE] = {"jsonl_zst_twice_threads", COMPRESSED, 2, ZST, {NULL}},
    [BUSY_RECORDS] = {"busy_jsonl", JSONL, 1, RECORDS, {NULL}},
    [BUSY_SHUFFLE] = {"busy_shuffle", JSONL, 1, BUSY_RECORDS, {"--shuffle", "7"}},
    [BUSY_ALSO] = {"busy_also", JSONL, 1, BUSY_RECORDS, {"--also", "megatron,llmc"}},
};

struct stages {
    char paths[KINDS][FILES][BENCH_PATH];
    char folder[BENCH_PATH], output[BENCH_PATH + 8];
    char excluded[BENCH_PATH]; /* a file of texts that are in no document */
    char copy[BENCH_PATH];     /* the file that the loop writes */
    uint8_t *block;            /* of the loop */
    char shard_tokens[32], unit_bytes[32];
    uint64_t text_bytes;
    struct bench_text real; /* source of the documents, if the command names a file */
    struct measured measured[WAYS];
    uint64_t stored[WAYS]; /* bytes of the tokens of this repeat: those of one shard, or 0 */
    struct series sealed;  /* percent */
    struct series loop;    /* MB/s of text */
};

/* ---- the records ---- */

struct making {
    struct made_text *text;
    const struct bench_text *real; /* with a path: the text of the documents; it begins again at its end */
    uint64_t real_at;
    uint64_t state;  /* of the random lengths */
    uint8_t *record; /* RECORD_MOST */
    char *line;      /* LINE_MOST */
    ZSTD_CCtx *zstd;
    char *out; /* of zstd: `out_bytes` */
    size_t out_bytes;
    int fds[KINDS];
};

/* Fills the record with the next `bytes` of text, or less, so that it ends between characters. Returns its bytes. */
static size_t record_fill(struct making *making, size_t bytes)
{
    const struct bench_text *real = making->real;
    if (!real->path) {
        made_text_fill(making->text, making->record, bytes);
        return bytes;
    }
    if (making->real_at == real->bytes)
        making->real_at = 0;
    const uint64_t begin = making->real_at;
    uint64_t end = begin + min64(bytes, real->bytes - begin);
    while (end < real->bytes && end > begin + 4 && ((uint8_t)real->text[end] & 0xC0) == 0x80)
        end--;
    while (end < real->bytes && ((uint8_t)real->text[end] & 0xC0) == 0x80) /* a character and no more */
        end++;
    making->real_at = end;
    memcpy(making->record, real->text + begin, (size_t)(end - begin));
    return (size_t)(end - begin);
}

/* Compresses and writes a line, or with 0 bytes ends the file. Returns 0 or an errno. */
static int compressed_write(struct making *making, size_t bytes)
{
    ZSTD_inBuffer in = {making->line, bytes, 0};
    size_t left = 1;
    int system = 0;
    while (!system && (bytes ? in.pos < in.size : left != 0)) {
        ZSTD_outBuffer out = {making->out, making->out_bytes, 0};
        left = libzstd.ZSTD_compressStream2(making->zstd, &out, &in, bytes ? ZSTD_e_continue : ZSTD_e_end);
        if (libzstd.ZSTD_isError(left))
            return ENOMEM;
        system = os_write(making->fds[COMPRESSED], making->out, out.pos);
    }
    return system;
}

/* Writes one file of each kind. As in real text, many documents are short and few are long: the logarithm of their
 * sizes is uniform, and the mean is about 3 KB. */
static int files_write(struct making *making, uint64_t bytes)
{
    int system = 0;
    while (bytes && !system && !bench_stopped()) {
        const uint64_t power = (uint64_t)64 << random_below(&making->state, 8);
        const size_t text = record_fill(making, (size_t)min64(power + random_below(&making->state, power), bytes));
        const size_t line = text_json_line(making->line, (const char *)making->record, text);
        bytes -= min64(text, bytes);
        system = os_write(making->fds[TEXT], making->record, text);
        if (!system)
            system = os_write(making->fds[JSONL], making->line, line);
        if (!system)
            system = compressed_write(making, line);
    }
    return system ? system : compressed_write(making, 0);
}

static void records_write(struct bench *bench, struct stages *stages, struct making *making)
{
    static const char failed[] = "The records cannot be written; give another --dir or fewer --text-bytes.";
    static const char *const endings[KINDS] = {[TEXT] = ".txt", [JSONL] = ".jsonl", [COMPRESSED] = ".jsonl.zst"};
    for (uint32_t i = 0; i < FILES; i++) {
        const uint64_t bytes = mul_div(stages->text_bytes, i + 1, FILES) - mul_div(stages->text_bytes, i, FILES);
        for (int kind = 0; kind < KINDS; kind++) {
            char name[32], *path = stages->paths[kind][i];
            (void)snprintf(name, sizeof name, "records%02u%s", i, endings[kind]);
            made_file(bench, name, path);
            bench_check_system(bench, os_open(path, OS_WRITE_NEW, &making->fds[kind]), path, failed);
        }
        bench_check_system(bench, files_write(making, bytes), stages->paths[JSONL][i], failed);
        bench_stop_check(bench);
        for (int kind = 0; kind < KINDS; kind++) {
            bench_check_system(bench, os_sync(making->fds[kind]), stages->paths[kind][i], failed);
            os_close(making->fds[kind]);
        }
    }
}

static void zstd_load(struct bench *bench)
{
    char reason[LIBRARY_REASON];
    if (library_load(&libzstd_library, reason, sizeof reason))
        return;
    cli_say(bench->program, "zstd cannot be loaded (%s); install it (apt-get install %s)", reason,
            libzstd_library.package);
    bench_end(bench, CLI_FAILED);
}

static void records_make(struct bench *bench, struct stages *stages)
{
    zstd_load(bench);
    struct making making = {.text = made_text_new(bench, 12),
                            .real = &stages->real,
                            .state = 13,
                            .record = bench_new(bench, RECORD_MOST + 4, 1),
                            .line = bench_new(bench, TEXT_JSON_MOST(RECORD_MOST + 4), 1),
                            .zstd = libzstd.ZSTD_createCCtx(),
                            .out_bytes = libzstd.ZSTD_CStreamOutSize()};
    making.out = bench_new(bench, making.out_bytes, 1);
    if (!making.zstd ||
        libzstd.ZSTD_isError(libzstd.ZSTD_CCtx_setParameter(making.zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)))
        bench_no_memory(bench);
    records_write(bench, stages, &making);
    made_text_free(making.text);
    free(making.record);
    free(making.line);
    free(making.out);
    (void)libzstd.ZSTD_freeCCtx(making.zstd);
}

/* Writes texts whose words are in no document, a line each. */
static void excluded_write(struct bench *bench, struct stages *stages)
{
    uint8_t *texts = bench_new(bench, EXCLUDED_BYTES, 1);
    struct made_text *text = made_text_new(bench, 14);
    made_file(bench, "excluded.txt", stages->excluded);
    made_text_fill(text, texts, EXCLUDED_BYTES);
    for (size_t i = 0; i < EXCLUDED_BYTES; i++)
        if (texts[i] == '\n' || i % EXCLUDED_LINE == EXCLUDED_LINE - 1)
            texts[i] = i % EXCLUDED_LINE == EXCLUDED_LINE - 1 ? '\n' : ' ';
    made_write(bench, stages->excluded, texts, EXCLUDED_BYTES,
               "The excluded texts cannot be written; give another --dir.");
    made_text_free(text);
    free(texts);
}

/* Lowers the peak of this process to the memory that it has: the peak of a child begins with that of its parent. */
static void own_peak_forget(void)
{
    int fd;
    if (os_open("/proc/self/clear_refs", OS_WRITE_ONLY, &fd))
        return;
    (void)os_write(fd, "5", 1);
    os_close(fd);
}

/* Makes the records, of --text-bytes of text. */
static void stages_open(struct bench *bench, struct stages *stages)
{
    char size[32];
    stages->text_bytes = bench->options.text_bytes;
    stages->block = bench_new(bench, BLOCK, 1);
    made_file(bench, "copy", stages->copy);
    bench_say(bench, "creating %s of text in %s", cli_bytes(stages->text_bytes, size), bench->options.folder);
    if (bench->options.dataset)
        bench_text_open(bench, &stages->real);
    made_tree(bench, "packed-stages", stages->folder);
    (void)snprintf(stages->output, sizeof stages->output, "%s/out", stages->folder);
    (void)snprintf(stages->shard_tokens, sizeof stages->shard_tokens, "%" PRIu64, max64(stages->text_bytes / 16, 4096));
    (void)snprintf(stages->unit_bytes, sizeof stages->unit_bytes, "%" PRIu64, max64(stages->text_bytes / 8, 65536));
    excluded_write(bench, stages);
    records_make(bench, stages);
    bench_text_close(&stages->real);
    own_peak_forget();
}

/* ---- the loop ---- */

struct copy {
    int fd;
    uint64_t written; /* bytes */
    struct write_behind behind;
};

/* Writes each block of a text twice, and stores them meanwhile, as the packer does. */
static int copy_text(struct stages *stages, const char *path, struct copy *output)
{
    int from;
    size_t got = BLOCK;
    int system = os_open(path, OS_READ, &from);
    if (system)
        return system;
    for (uint64_t at = 0; !system && got == BLOCK; at += got) {
        system = os_pread(from, stages->block, BLOCK, at, &got);
        for (int twice = 0; !system && got && twice < 2; twice++) {
            keep_value(hash64(stages->block, got));
            system = os_write(output->fd, stages->block, got);
            output->written += got;
            write_behind(&output->behind, output->fd, output->written);
        }
    }
    os_close(from);
    return system;
}

static void loop_repeat(struct bench *bench, struct stages *stages, const struct repeats *repeats)
{
    struct copy copy = {.fd = -1};
    const uint64_t started = os_clock_ns();
    int system = os_open(stages->copy, OS_WRITE_NEW, &copy.fd);
    for (uint32_t i = 0; !system && i < FILES; i++)
        system = copy_text(stages, stages->paths[TEXT][i], &copy);
    if (!system)
        system = os_sync(copy.fd);
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    if (copy.fd >= 0)
        os_close(copy.fd);
    (void)os_unlink(stages->copy);
    bench_check_system(bench, system, stages->copy, "The file of the loop cannot be written.");
    repeats_add(repeats, &stages->loop, (double)stages->text_bytes / 1e6 / seconds);
}

/* ---- packing ---- */

/* Returns the word of the command line that an option of the table stands for. */
static const char *option_word(const struct stages *stages, const char *option)
{
    return !strcmp(option, SHARD_TOKENS) ? stages->shard_tokens
           : !strcmp(option, UNIT_BYTES) ? stages->unit_bytes
           : !strcmp(option, EXCLUDED)   ? stages->excluded
                                         : option;
}

static void way_repeat(struct bench *bench, struct stages *stages, size_t number, const struct repeats *repeats)
{
    const struct way *way = &ways[number];
    const char *options[OPTIONS_MOST];
    struct child_arguments command;
    for (size_t i = 0; i < OPTIONS_MOST; i++)
        options[i] = way->options[i] ? option_word(stages, way->options[i]) : NULL;
    command_begin(bench, &command, stages->output, way->threads, options);
    for (uint32_t i = 0; i < FILES; i++) {
        arguments_add(&command, stages->paths[way->kind][i]);
        page_cache_read(bench, stages->paths[way->kind][i]);
    }
    command_measure(bench, &stages->measured[number], &command, number == THREE_TASKS ? 3 : 0, stages->output,
                    stages->text_bytes, repeats, &stages->stored[number]);
}

/* Packs the records once in each way. */
static void stages_repeat(struct bench *bench, struct stages *stages, const struct repeats *repeats)
{
    struct child_load load;
    for (size_t i = 0; i < BUSY_RECORDS; i++)
        way_repeat(bench, stages, i, repeats);
    child_load_begin(bench, &load);
    for (size_t i = BUSY_RECORDS; i < WAYS; i++)
        way_repeat(bench, stages, i, repeats);
    child_load_end(&load);
    if (stages->stored[RECORDS])
        repeats_add(repeats, &stages->sealed, 100 * (double)stages->stored[SEAL] / (double)stages->stored[RECORDS]);
}

static void stages_report(struct bench *bench, const struct stages *stages)
{
    for (size_t i = 0; i < WAYS; i++)
        measured_report(bench, ways[i].name, &stages->measured[i],
                        ways[i].limit == LOOP ? &stages->loop : &stages->measured[ways[i].limit].rate);
    bench_result(bench, "sealed_percent", "%", &stages->sealed, NULL);
}

static int pack_case(struct bench *bench)
{
    static struct stages stages;
    if (bench->options.child && !strcmp(bench->options.child, CHILD_LOAD)) {
        child_load_run();
        return CLI_DONE;
    }
    if (bench->options.memory)
        return pack_memory_run(bench);
    stages_open(bench, &stages);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats)) {
        if (!bench->options.tokenizer)
            loop_repeat(bench, &stages, &repeats);
        stages_repeat(bench, &stages, &repeats);
    }
    free(stages.block);
    stages_report(bench, &stages);
    return CLI_DONE;
}

const struct bench_case case_pack = {
    "pack", "tokmap pack on plain text, beside a loop that moves the same bytes, and on records, by stages",
    .run = pack_case};
