/* SPDX-License-Identifier: MIT */
/*
 * case_pack_memory.c - see case_pack_memory.h.
 *
 * There are two extremes. A great number of tiny documents shows what memory grows with each document: they are lines
 * of JSONL of five words, all different, because an equal document needs no memory of its own, and one of fewer words
 * has no n-gram. One large document shows what memory grows with its size: a copy of this program writes it to a pipe,
 * so that storage needs room for the tokens alone.
 *
 * The limit of each way of packing is 256 MiB, and what tokmap-documents(7) states for each document. The bytes of the
 * tokens show that every document was packed.
 */
#include "case_pack_memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "harness/child.h"
#include "harness/made_files.h"
#include "harness/made_text.h"
#include "platform/os.h"

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
    uint64_t document_bytes; /* what the manual page states for each document, */
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

/* A document that was lost, or one that was taken for another, would take no memory. */
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

int pack_memory_run(struct bench *bench)
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
