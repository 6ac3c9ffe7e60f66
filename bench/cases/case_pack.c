/* SPDX-License-Identifier: MIT */
/*
 * case_pack.c - the command `tokmap pack` on generated text, with the byte tokenizer, as a process. Records, compressed
 * or not, and the stages of pack are measured in case_pack_stages.c. With --memory, case_pack_memory.c runs.
 *
 * The limit is a loop that moves the same bytes: it reads the text and writes, hashes and syncs twice as many bytes,
 * since a token of the byte tokenizer takes two. Both begin with the text in the page cache and end when storage has
 * the output.
 */
#include "cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_pack_memory.h"
#include "case_pack_stages.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "format/write_behind.h"
#include "harness/child.h"
#include "harness/made_files.h"
#include "harness/made_text.h"
#include "harness/page_cache.h"
#include "platform/os.h"

#define TEXTS 16 /* files */
#define BLOCK ((size_t)1 << 20)

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
            const size_t bytes = (size_t)min64(left, BLOCK);
            made_text_fill(text, packing->block, BLOCK);
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
    size_t got = BLOCK;
    int system = os_open(path, OS_READ, &from);
    if (system)
        return system;
    for (uint64_t at = 0; !system && got == BLOCK; at += got) {
        system = os_pread(from, packing->block, BLOCK, at, &got);
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

static int limit_repeat(struct bench *bench, struct packing *packing, bool counts)
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
    packing->block = malloc(BLOCK);
    if (!packing->block)
        return bench_no_memory(bench);
    int result = made_shard(bench, "packed", packing->output);
    if (!result)
        result = made_file(bench, "copy", packing->copy);
    return result ? result : text_make(bench, packing);
}

static int run(struct bench *bench)
{
    static struct packing packing;
    if (bench->options.memory)
        return pack_memory_run(bench);
    struct pack_stages *stages = NULL;
    int result = packing_open(bench, &packing);
    if (!result)
        result = pack_stages_open(bench, &stages);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 7), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, result)) {
        result = pack_repeat(bench, &packing, repeats.counts);
        if (!result)
            result = limit_repeat(bench, &packing, repeats.counts);
        if (!result)
            result = pack_stages_repeat(bench, stages, repeats.counts);
    }
    free(packing.block);
    if (!result && !bench_stopped()) {
        bench_result(bench, "text_mb_s", "MB/s", &packing.rate, &packing.limit);
        bench_result(bench, "peak_rss_mib", "MiB", &packing.peak, NULL);
        pack_stages_report(bench, stages, &packing.rate);
    } else {
        result = CLI_FAILED;
    }
    pack_stages_free(stages);
    return result;
}

const struct bench_case case_pack = {
    "pack", "tokmap pack on plain text, beside a loop that moves the same bytes, and on records, by stages", run};
