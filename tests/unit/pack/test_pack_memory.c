/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_pack_memory.c - the peak memory of packing stays below 256 MiB for a text of 1 GiB, for several lines of the
 * largest allowed length, and for a zstd frame with a large window. Threads that have no work use no memory. All
 * runs are dry. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "pack/pack.h"
#include "platform/os.h"
#include "platform/process.h"
#include "support/memory_peak.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "vocabulary/vocabulary.h"

#define LINE ((size_t)64 << 20)

static char folder[512];
static struct tokenizer *tokenizer;

static int setup(void **state)
{
    scratch_make(folder);
    return chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL) ? -1 : 0;
}

static int teardown(void **state)
{
    scratch_remove(folder);
    tokenizer_close(tokenizer);
    return chdir("/");
}

#ifdef SANITIZED
static void test_peak(void **state)
{
    print_message("skipped: sanitizers need additional memory\n");
    skip();
}

static void test_idle_threads(void **state)
{
    skip();
}
#else
static void fill(FILE *file, size_t count)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    for (size_t part; count; count -= part) {
        part = count < sizeof text ? count : sizeof text;
        assert_int_equal(fwrite(text, 1, part, file), part);
    }
}

static void make_inputs(void)
{
    FILE *file = fopen("huge.txt", "wb");
    assert_non_null(file);
    fill(file, 1 << 14); /* a zero byte in the first block would make it binary */
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate("huge.txt", (off_t)1 << 30), 0); /* zero bytes are valid UTF-8 */
    file = fopen("lines.jsonl", "wb");
    assert_non_null(file);
    for (int i = 0; i < 2; i++) {
        (void)fputs("{\"text\":\"", file);
        fill(file, LINE - 20);
        (void)fputs("\"}\n", file);
    }
    /* A line that is almost entirely structure. A parser that builds a tree would need many times its size. */
    (void)fputs("{\"text\":\"\",\"x\":[1", file);
    for (size_t i = 0; i < LINE / 2 - 20; i++)
        (void)fputs(",1", file);
    (void)fputs("]}\n", file);
    assert_int_equal(fclose(file), 0);
}

static void make_window(void)
{
    static char part[1 << 16];
    static char packed[1 << 17];
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    FILE *file = fopen("window.zst", "wb");
    assert_non_null(zstd);
    assert_non_null(file);
    memset(part, 'y', sizeof part);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 27)));
    for (int i = 0; i <= 3000; i++) {
        ZSTD_inBuffer in = {part, sizeof part, 0};
        size_t left;
        do {
            ZSTD_outBuffer out = {packed, sizeof packed, 0};
            left = ZSTD_compressStream2(zstd, &out, &in, i == 3000 ? ZSTD_e_end : ZSTD_e_continue);
            assert_false(ZSTD_isError(left));
            assert_int_equal(fwrite(packed, 1, out.pos, file), out.pos);
        } while (in.pos < in.size || (i == 3000 && left));
    }
    assert_int_equal(fclose(file), 0);
    (void)ZSTD_freeCCtx(zstd);
}

/* Packs in a process of its own, as the command does: what threads of earlier packs have freed stays in the heap. */
static void check_peak(uint32_t threads, const char *const *operands, uint32_t count, uint64_t most)
{
    int child_status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct pack_result result;
        struct tokmap_error error;
        struct pack_options options = {
            .dry_run = true, .threads = threads, .tokenizer = tokenizer, .eod_id = 256, .bos_id = TOKMAP_NO_ID};
        options.corpus.field = "text";
        options.corpus.record_limit = options.corpus.document_limit = LINE;
        const enum tokmap_status status = pack_run(&options, operands, count, &result, &error);
        print_message("peak: %llu MiB\n", (unsigned long long)(memory_peak() >> 20));
        (void)fflush(stdout);
        _exit(status != TOKMAP_OK                                                             ? 1
              : count == 2 && result.counts.documents != 4                                    ? 2
              : count == 2 && result.counts.text_bytes != ((uint64_t)1 << 30) + 2 * LINE - 40 ? 3
              : memory_peak() >= most                                                         ? 4
                                                                                              : 0);
    }
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
}

static void test_peak(void **state)
{
    const char *const operands[] = {"window.zst", "huge.txt", "lines.jsonl"};
    make_inputs();
    make_window();
    (void)fflush(stdout);
    for (uint32_t threads = 1; threads <= 16; threads += 15)
        check_peak(threads, operands + 1, 2, (uint64_t)150 << 20);
    check_peak(4, operands, 3, (uint64_t)256 << 20);
}

/* Makes a vocabulary whose tokens fill the whole piece cache of a thread: the 256 bytes and 16384 tokens of two
 * bytes. */
static void make_ranks(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = fopen("two.tiktoken", "wb");
    assert_non_null(file);
    for (int byte = 0; byte < 256; byte++)
        (void)fprintf(file, "%c%c== %d\n", digits[byte >> 2], digits[byte << 4 & 63], byte);
    for (int left = 0, rank = 256; left < 256; left++)
        for (int right = 0; right < 256; right += 4, rank++)
            (void)fprintf(file, "%c%c%c= %d\n", digits[left >> 2], digits[(left << 4 & 63) | right >> 4],
                          digits[right << 2 & 63], rank);
    assert_int_equal(fclose(file), 0);
}

static void test_idle_threads(void **state)
{
    const char *const operands[] = {"one.txt"};
    const struct tokmap_tokenizer_options gpt2 = {.pattern = "gpt2"};
    struct tokenizer *ranks;
    struct pack_result result;
    struct tokmap_error error;
    FILE *file = fopen("one.txt", "wb");
    assert_non_null(file);
    fill(file, 1000);
    assert_int_equal(fclose(file), 0);
    make_ranks();
    assert_int_equal(vocabulary_open(&ranks, "two.tiktoken", &gpt2, &error), TOKMAP_OK);
    struct pack_options options = {
        .dry_run = true, .threads = 64, .tokenizer = ranks, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    options.corpus.record_limit = options.corpus.document_limit = LINE;
    assert_int_equal(pack_run(&options, operands, 1, &result, &error), TOKMAP_OK);
    assert_int_equal(result.counts.documents, 1);
    print_message("peak: %llu MiB\n", (unsigned long long)(memory_peak() >> 20));
    assert_true(memory_peak() < (uint64_t)512 << 20);
    tokenizer_close(ranks);
}
#endif

int main(void)
{
    os_memory_returned(); /* as the command does */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak), cmocka_unit_test(test_idle_threads)};
    return cmocka_run_group_tests_name("pack_memory", tests, setup, teardown);
}
