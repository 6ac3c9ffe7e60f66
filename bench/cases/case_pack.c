/*
 * case_pack.c - the command `tokmap pack` on text, as a process, beside a loop that moves the same bytes: reads the
 * text, writes twice as many, hashes them, syncs. Both begin with the text in the page cache and end when storage has
 * the output.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/child.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "harness/dataset_make.h"
#include "platform/os.h"
#include "platform/process.h"

#define TEXTS 16 /* files */
#define BLOCK ((size_t)1 << 20)
#define BEHIND ((uint64_t)8 << 20) /* written between two requests to store */
#define WORDS ((uint32_t)1 << 16)

struct packing {
    char texts[TEXTS][BENCH_PATH];
    char tokmap[BENCH_PATH];
    char output[BENCH_PATH], tokens[BENCH_PATH + 8], index[BENCH_PATH + 8]; /* pack's */
    char copy[BENCH_PATH];                                                  /* the limit's */
    uint8_t *block;
    uint64_t bytes;
    struct series rate, limit, peak;
};

/* ---- text ---- */

struct words {
    char (*text)[16];
    uint8_t *length;
};

/* Made-up words: syllables, so that letters are as unequal as a language's. */
static void words_make(struct words *words, uint64_t *state)
{
    static const char consonants[] = "ttttnnnnsssshhhrrrrddllccmmffwyggpbbvk", vowels[] = "eeeeeeaaaaooooiiiiuu";
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t syllables = 1 + (uint32_t)(i > 40) + (uint32_t)(i > 2000) + (uint32_t)random_below(state, 2);
        uint8_t length = 0;
        for (uint32_t j = 0; j < syllables; j++) {
            words->text[i][length++] = consonants[random_below(state, sizeof consonants - 1)];
            words->text[i][length++] = vowels[random_below(state, sizeof vowels - 1)];
            if (random_below(state, 3) == 0)
                words->text[i][length++] = consonants[random_below(state, sizeof consonants - 1)];
        }
        words->length[i] = length;
    }
}

/* Fills a block with words by Zipf's law (the rank's logarithm is uniform), sentences and lines. */
static void text_fill(uint8_t *block, const struct words *words, uint64_t *state)
{
    size_t at = 0, line = 0;
    while (at < BLOCK) {
        uint32_t power = (uint32_t)1 << random_below(state, 16);
        uint32_t rank = power + (uint32_t)random_below(state, power) - 1;
        size_t length = (size_t)min64(words->length[rank], BLOCK - at);
        memcpy(block + at, words->text[rank], length);
        at += length;
        line += length + 1;
        uint64_t dice = random_below(state, 16);
        if (at < BLOCK && dice == 0)
            block[at++] = '.';
        if (at < BLOCK)
            block[at++] = line > 72 ? '\n' : ' ';
        line = line > 72 ? 0 : line;
    }
}

static int text_write(struct bench *bench, struct packing *packing, const struct words *words, uint64_t *state)
{
    for (uint32_t i = 0; i < TEXTS && !bench_stopped(); i++) {
        char name[32];
        int fd;
        uint64_t left = mul_div(packing->bytes, i + 1, TEXTS) - mul_div(packing->bytes, i, TEXTS);
        (void)snprintf(name, sizeof name, "text%02u.txt", i);
        if (!made_path(bench, name, packing->texts[i]) || !made_add(bench, packing->texts[i]))
            return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder, "Give a shorter --dir.");
        int system = os_open(packing->texts[i], OS_WRITE_NEW, &fd);
        if (system)
            return bench_failed_system(bench, system, packing->texts[i],
                                       "The text cannot be made; give another --dir.");
        while (!system && left) {
            size_t bytes = (size_t)min64(left, BLOCK);
            text_fill(packing->block, words, state);
            system = os_write(fd, packing->block, bytes);
            left -= bytes;
        }
        if (!system)
            system = os_sync(fd);
        os_close(fd);
        if (system)
            return bench_failed_system(bench, system, packing->texts[i],
                                       "The text cannot be written; give another "
                                       "--dir or fewer --text-bytes.");
    }
    return CLI_DONE;
}

static int text_make(struct bench *bench, struct packing *packing)
{
    uint64_t state = 11;
    char size[32];
    struct words words = {calloc(WORDS, sizeof *words.text), calloc(WORDS, 1)};
    int result = CLI_FAILED;
    bench_talk(bench, "making %s of text in %s", cli_bytes(packing->bytes, size), bench->options.folder);
    if (words.text && words.length) {
        words_make(&words, &state);
        result = text_write(bench, packing, &words, &state);
    } else {
        result = bench_no_memory(bench);
    }
    free(words.text);
    free(words.length);
    return result;
}

/* ---- pack ---- */

static int pack_turn(struct bench *bench, struct packing *packing, bool counts)
{
    char threads[32];
    const char *arguments[TEXTS + 16] = {packing->tokmap, "pack",  "--quiet", "--input-format", "text", "--eod",
                                         "--threads",     threads, "-o",      packing->output};
    size_t count = 10;
    (void)snprintf(threads, sizeof threads, "%llu", (unsigned long long)bench->options.threads);
    for (uint32_t i = 0; i < TEXTS; i++)
        arguments[count++] = packing->texts[i];
    struct os_child child;
    int status = 0;
    uint64_t started = os_clock_ns();
    int system = os_child_start(&child, packing->tokmap, arguments, false);
    if (!system)
        system = child_wait(&child, &status);
    double seconds = (double)(os_clock_ns() - started) / 1e9;
    (void)os_unlink(packing->index);
    (void)os_unlink(packing->tokens);
    if (system)
        return bench_failed_system(bench, system, packing->tokmap,
                                   "tokmap could not be run; it belongs beside "
                                   "tokmap-bench.");
    if (status) {
        if (!bench_stopped())
            cli_say(bench->program, "%s pack failed with status %d", packing->tokmap, status);
        return CLI_FAILED;
    }
    if (counts) {
        series_add(&packing->rate, (double)packing->bytes / 1e6 / seconds);
        series_add(&packing->peak, (double)child.peak_bytes / 1048576);
    }
    return CLI_DONE;
}

/* ---- the limit ---- */

struct copy {
    int fd;
    uint64_t written, behind; /* bytes; those that storing has begun for */
};

/* Storing is begun behind the writes, so that the sync at the end finds little left: a limit does what it can. */
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
            if (output->written - output->behind >= BEHIND) {
                os_write_behind(output->fd, output->behind, output->written - output->behind);
                output->behind = output->written;
            }
        }
    }
    os_close(from);
    return system;
}

static int limit_turn(struct bench *bench, struct packing *packing, bool counts)
{
    struct copy copy = {-1, 0, 0};
    uint64_t started = os_clock_ns();
    int system = os_open(packing->copy, OS_WRITE_NEW, &copy.fd);
    for (uint32_t i = 0; !system && i < TEXTS; i++)
        system = copy_text(packing, packing->texts[i], &copy);
    if (!system)
        system = os_sync(copy.fd);
    double seconds = (double)(os_clock_ns() - started) / 1e9;
    if (copy.fd >= 0)
        os_close(copy.fd);
    (void)os_unlink(packing->copy);
    if (system)
        return bench_failed_system(bench, system, packing->copy, "The limit's file cannot be written.");
    if (counts)
        series_add(&packing->limit, (double)packing->bytes / 1e6 / seconds);
    return CLI_DONE;
}

/* ---- the case ---- */

static int packing_open(struct bench *bench, struct packing *packing)
{
    char *slash;
    packing->bytes = bench->options.text_bytes;
    memcpy(packing->tokmap, bench->self, sizeof packing->tokmap);
    slash = strrchr(packing->tokmap, '/');
    if (slash)
        (void)snprintf(slash + 1, sizeof packing->tokmap - (size_t)(slash + 1 - packing->tokmap), "tokmap");
    packing->block = malloc(BLOCK);
    if (!packing->block)
        return bench_no_memory(bench);
    if (!made_path(bench, "packed", packing->output) || !made_path(bench, "copy", packing->copy))
        return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder, "Give a shorter --dir.");
    (void)snprintf(packing->tokens, sizeof packing->tokens, "%s.bin", packing->output);
    (void)snprintf(packing->index, sizeof packing->index, "%s.tmx", packing->output);
    if (!made_add(bench, packing->tokens) || !made_add(bench, packing->index) || !made_add(bench, packing->copy))
        return bench_no_memory(bench);
    return text_make(bench, packing);
}

static int run(struct bench *bench)
{
    static struct packing packing;
    int result = packing_open(bench, &packing);
    for (uint64_t turn = 0; !result && turn <= bench_repeats(bench, 7) && !bench_stopped(); turn++) {
        result = pack_turn(bench, &packing, turn > 0); /* the first warms */
        if (!result)
            result = limit_turn(bench, &packing, turn > 0);
    }
    free(packing.block);
    if (result || bench_stopped())
        return CLI_FAILED;
    bench_result(bench, "text_mb_s", "MB/s", &packing.rate, &packing.limit);
    bench_result(bench, "peak_rss_mib", "MiB", &packing.peak, NULL);
    return CLI_DONE;
}

const struct bench_case case_pack = {"pack", "tokmap pack on plain text, beside a loop that moves the same bytes", run};
