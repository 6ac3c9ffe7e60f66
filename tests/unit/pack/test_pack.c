/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_pack.c - packing. The shard has the expected tokens, which the test computes itself, and the same bytes for any
 * number of threads. The reported error does not depend on the number of threads either. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "pack/pack.h"
#include "support/awkward_text.h"
#include "support/scratch.h"
#include "vocabulary/vocabulary.h"

static char folder[512];
static struct tokenizer *tokenizer;

/* The expected tokens, and the ends of documents in them. */
static uint16_t *wanted;
static uint64_t wanted_count, ends[20000], documents;

static void expect_document(const char *text, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        wanted[wanted_count++] = (uint8_t)text[i];
    wanted[wanted_count++] = 256;
    ends[documents++] = wanted_count;
}

/* Makes the folder in/: small and large texts, and JSONL with lines of all lengths, one of them longer than several
 * batches. */
static void make_inputs(void)
{
    static char text[3000000];
    char name[64];
    wanted = malloc(20000000 * sizeof *wanted);
    assert_non_null(wanted);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(' ' + awkward_below(94));
    assert_int_equal(mkdir("in", 0777), 0);
    for (int i = 0; i < 400; i++) {
        const size_t count = i == 200 ? sizeof text : awkward_below(i % 10 ? 3000 : 200000);
        const char *from = text + awkward_below((uint32_t)(sizeof text - count) + 1);
        (void)snprintf(name, sizeof name, "in/a%03d.txt", i);
        file_write(name, from, count);
        expect_document(from, count);
    }
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = text[i] == '"' || text[i] == '\\' ? '.' : text[i];
    for (int f = 0; f < 4; f++) {
        (void)snprintf(name, sizeof name, "in/b%d.jsonl", f);
        FILE *file = fopen(name, "wb");
        assert_non_null(file);
        for (int i = 0; i < 2000; i++) {
            const size_t count = f == 2 && i == 1000 ? sizeof text - 1 : awkward_below(i % 100 ? 300 : 100000);
            const char *from = text + awkward_below((uint32_t)(sizeof text - count));
            (void)fprintf(file, "{\"text\":\"%.*s\"}\n", (int)count, from);
            expect_document(from, count);
        }
        assert_int_equal(fclose(file), 0);
    }
}

static int setup(void **state)
{
    scratch_make(folder);
    if (chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL))
        return -1;
    make_inputs();
    return 0;
}

static int teardown(void **state)
{
    scratch_remove(folder);
    free(wanted);
    tokenizer_close(tokenizer);
    return chdir("/");
}

static struct pack_options usual(const char *prefix, uint32_t threads)
{
    struct pack_options options = {
        .prefix = prefix, .threads = threads, .tokenizer = tokenizer, .eod_id = 256, .bos_id = TOKMAP_NO_ID};
    options.corpus.field = "text";
    options.corpus.record_limit = options.corpus.document_limit = 64 << 20;
    return options;
}

static void assert_same_file(const char *a, const char *b)
{
    size_t a_count, b_count;
    char *a_bytes = file_read(a, &a_count), *b_bytes = file_read(b, &b_count);
    assert_int_equal(a_count, b_count);
    assert_memory_equal(a_bytes, b_bytes, a_count);
    free(a_bytes);
    free(b_bytes);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Compares the reported lengths of documents with those of the expected documents. */
static void assert_lengths(const struct pack_result *result)
{
    static uint64_t lengths[sizeof ends / sizeof ends[0]];
    for (uint64_t i = 0; i < documents; i++)
        lengths[i] = ends[i] - (i ? ends[i - 1] : 0);
    qsort(lengths, documents, sizeof *lengths, compare);
    const uint64_t p50 = lengths[(documents + 1) / 2 - 1], p99 = lengths[(99 * documents + 99) / 100 - 1];
    assert_true(p99 < 65536); /* so that both are exact */
    assert_int_equal(result->lengths.documents, documents);
    assert_int_equal(result->lengths.p50, p50);
    assert_int_equal(result->lengths.p99, p99);
    assert_int_equal(result->lengths.largest, lengths[documents - 1]);
    assert_true(result->lengths.mean == (double)wanted_count / (double)documents);
}

static void test_tokens_and_origins(void **state)
{
    const char *operand = "in";
    struct pack_result result;
    struct tokmap_error error;
    struct pack_options options = usual("one", 1);
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
    assert_int_equal(result.tokens, wanted_count);
    assert_int_equal(result.counts.documents, documents);
    assert_int_equal(result.eod_tokens, documents);
    assert_int_equal(result.largest_id, 256);
    assert_lengths(&result);
    size_t count;
    char *bytes = file_read("one.bin", &count);
    assert_int_equal(count, 2 * wanted_count);
    assert_memory_equal(bytes, wanted, count);
    free(bytes);

    struct tokmap_dataset *dataset;
    assert_int_equal(tokmap_dataset_open(&dataset, "one", NULL, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < documents; i += i < 500 ? 1 : 97) {
        struct tokmap_document document = {0};
        struct tokmap_origin origin = {0};
        char path[64];
        assert_int_equal(tokmap_dataset_document(dataset, i, &document, &error), TOKMAP_OK);
        assert_int_equal(document.first_token + document.tokens, ends[i]);
        assert_int_equal(tokmap_dataset_origin(dataset, i, &origin, &error), TOKMAP_OK);
        if (i < 400)
            (void)snprintf(path, sizeof path, "in/a%03d.txt", (int)i);
        else
            (void)snprintf(path, sizeof path, "in/b%d.jsonl", (int)(i - 400) / 2000);
        assert_int_equal(origin.path_bytes, strlen(path));
        assert_memory_equal(origin.path, path, strlen(path));
        assert_int_equal(origin.record, i < 400 ? 0 : (i - 400) % 2000);
    }
    tokmap_dataset_close(dataset);
}

static void test_threads(void **state)
{
    const char *operand = "in";
    struct pack_result first, result;
    struct tokmap_error error;
    struct pack_options options = usual("one", 1);
    options.replace = true;
    assert_int_equal(pack_run(&options, &operand, 1, &first, &error), TOKMAP_OK);
    static const uint32_t threads[] = {2, 3, 7, 64};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        options.prefix = "more";
        options.threads = threads[i];
        assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
        assert_memory_equal(&first, &result, sizeof first);
        assert_same_file("one.bin", "more.bin");
        assert_same_file("one.tmx", "more.tmx");
        struct pack_options dry = usual(NULL, threads[i]);
        dry.dry_run = true;
        assert_int_equal(pack_run(&dry, &operand, 1, &result, &error), TOKMAP_OK);
        assert_memory_equal(&first.counts, &result.counts, sizeof first.counts);
        assert_int_equal(first.tokens, result.tokens);
        assert_lengths(&result);
    }
}

/* Of two bad lines that are far apart, the first one is reported for every number of threads, and no file is left. */
static void test_first_fault(void **state)
{
    struct tokmap_error error;
    struct pack_result result;
    size_t count;
    char *lines = file_read("in/b1.jsonl", &count);
    lines[count / 2] = '\n';
    memcpy(lines + count - 20, "\n!\n", 3);
    file_write("wrong.jsonl", lines, count);
    free(lines);
    const char *const operands[] = {"in/b0.jsonl", "wrong.jsonl", "in/a000.txt"};
    uint64_t offset = 0;
    for (uint32_t threads = 1; threads < 20; threads += 3) {
        struct pack_options options = usual("none", threads);
        assert_int_equal(pack_run(&options, operands, 3, &result, &error), TOKMAP_ERROR_INPUT);
        assert_string_equal(error.path, "wrong.jsonl");
        if (threads == 1)
            offset = error.offset;
        assert_int_equal(error.offset, offset);
        assert_int_not_equal(access("none.bin", F_OK), 0);
        assert_int_not_equal(access("none.tmx", F_OK), 0);
        assert_int_not_equal(access("none.bin.partial", F_OK), 0);
        assert_int_not_equal(access("none.tmx.partial", F_OK), 0);
    }
}

struct skips {
    uint64_t count, last_offset;
};

static void count_skip(void *user, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    struct skips *skips = user;
    skips->count++;
    assert_true(why->offset > skips->last_offset);
    assert_true(issue->bytes > 0 && !issue->is_file);
    skips->last_offset = why->offset;
}

static void test_skips(void **state)
{
    const char *operand = "wrong.jsonl";
    struct tokmap_error error;
    struct pack_result first, result;
    for (uint32_t threads = 1; threads < 20; threads += 3) {
        struct skips skips = {0};
        struct pack_options options = usual("skips", threads);
        options.corpus.skip = options.replace = true;
        options.skipped = count_skip;
        options.user = &skips;
        assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
        assert_true(skips.count >= 3);
        assert_int_equal(skips.count, result.counts.records_skipped);
        if (threads == 1)
            first = result;
        assert_memory_equal(&first, &result, sizeof first);
    }
}

static bool stop_soon(void *user)
{
    int *left = user;
    return --*left < 0;
}

static void test_stop(void **state)
{
    const char *operand = "in";
    struct tokmap_error error;
    struct pack_result result;
    for (int calls = 0; calls < 40; calls += 13) {
        int left = calls;
        struct pack_options options = usual("stopped", 1);
        options.stop = stop_soon;
        options.user = &left;
        assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_ERROR_INTERRUPTED);
        assert_int_not_equal(access("stopped.bin.partial", F_OK), 0);
    }
}

static void test_refused(void **state)
{
    const char *operand = "in/a000.txt";
    struct tokmap_error error;
    struct pack_result result;
    struct pack_options options = usual("one", 2);
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_ERROR_EXISTS);
    options.prefix = "nowhere/x";
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_ERROR_NOT_FOUND);
    options.prefix = "empty";
    file_write("empty.jsonl", "\n\n", 2);
    operand = "empty.jsonl";
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_ERROR_INPUT);
    assert_int_not_equal(access("empty.bin", F_OK), 0);
    /* The output is in a folder that is an input. */
    options.prefix = "in/out";
    operand = "in";
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_not_equal(access("in/out.bin.partial", F_OK), 0);
}

/* The end of a pipe or a zstd frame is detected only after its last byte. The text is one document all the same. */
static void test_late_end(void **state)
{
    static char text[700000], packed[800000];
    struct tokmap_error error;
    struct pack_result result;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    for (uint32_t round = 0; round < 60; round++) {
        const size_t bytes = round % 2 ? awkward_below(sizeof text) : awkward_below(300);
        struct pack_options options = usual("late", 1 + round % 4);
        const char *operand = "late.zst";
        char path[64];
        FILE *pipe = NULL;
        options.replace = true;
        if (round % 3) {
            const size_t count = ZSTD_compress(packed, sizeof packed, text, bytes, 1);
            assert_false(ZSTD_isError(count));
            file_write("late.zst", packed, count);
        } else {
            file_write("late.txt", text, bytes);
            pipe = popen(round % 4 ? "cat late.txt" : "cat late.txt; sleep 0.01", "r");
            assert_non_null(pipe);
            (void)snprintf(path, sizeof path, "/dev/fd/%d", fileno(pipe));
            operand = path;
            options.corpus.format = CORPUS_TEXT;
        }
        assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
        if (pipe)
            (void)pclose(pipe);
        assert_int_equal(result.counts.documents, 1);
        assert_int_equal(result.tokens, bytes + 1);
        size_t count;
        char *tokens = file_read("late.bin", &count);
        assert_int_equal(count, 2 * (bytes + 1));
        for (size_t i = 0; i < bytes; i++)
            assert_true(tokens[2 * i] == text[i] && !tokens[2 * i + 1]);
        free(tokens);
    }
}

static void test_prefix_and_no_suffix(void **state)
{
    const char *operand = "in/b0.jsonl";
    struct tokmap_error error;
    struct pack_result result;
    struct pack_options options = usual("bos", 3);
    options.eod_id = TOKMAP_NO_ID;
    options.bos_id = 256;
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
    assert_int_equal(result.bos_tokens, 2000);
    assert_int_equal(result.eod_tokens, 0);
    size_t count;
    char *bytes = file_read("bos.bin", &count);
    assert_int_equal(count, 2 * (ends[2399] - ends[399]));
    assert_memory_equal(bytes, "\0\1", 2);
    assert_memory_equal(bytes + 2, wanted + ends[399], count - 4);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_and_origins),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_first_fault),
        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_late_end),
        cmocka_unit_test(test_prefix_and_no_suffix),
    };
    return cmocka_run_group_tests_name("pack", tests, setup, teardown);
}
