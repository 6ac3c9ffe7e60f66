/* SPDX-License-Identifier: MIT */
/* ci: nonroot tsan */
/* test_verify.c - verify finds every fault in every block and section and names it, and returns the same first fault
 * for any number of threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "dataset/block_scan.h"
#include "dataset/block_scan_kernel.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static void flip(const char *name, uint64_t offset)
{
    int fd;
    uint8_t byte;
    size_t got;
    assert_int_equal(os_open(in_folder(folder, name), OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pread(fd, &byte, 1, offset, &got), 0);
    byte ^= 0x10;
    assert_int_equal(os_pwrite(fd, &byte, 1, offset), 0);
    os_close(fd);
}

struct seen {
    uint64_t faults, calls, last_done, total;
    uint64_t offsets[100];
    char paths[100][512];
    int answer;
};

static int on_fault(void *user, const struct tokmap_error *fault)
{
    struct seen *seen = user;
    const char *slash = strrchr(fault->path, '/');
    assert_true(seen->faults < 100);
    strcpy(seen->paths[seen->faults], slash ? slash + 1 : fault->path);
    seen->offsets[seen->faults++] = fault->offset;
    return seen->answer;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct seen *seen = user;
    assert_true(done >= seen->last_done && done <= total);
    seen->last_done = done;
    seen->total = total;
    seen->calls++;
    return seen->answer;
}

static enum tokmap_status verify_with(const struct tokmap_dataset *dataset, uint32_t threads, struct seen *seen,
                                      struct tokmap_verify_result *result)
{
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    memset(seen, 0, sizeof *seen);
    memset(result, 0, sizeof *result);
    result->size = sizeof *result;
    options.threads = threads;
    options.fault = on_fault;
    options.progress = on_progress;
    options.user = seen;
    return tokmap_dataset_verify(dataset, &options, result, &error);
}

static int saw(const struct seen *seen, const char *path, uint64_t offset)
{
    for (uint64_t i = 0; i < seen->faults; i++)
        if (!strcmp(seen->paths[i], path) && seen->offsets[i] == offset)
            return 1;
    return 0;
}

enum { BLOCK = 1 << 20, LARGE = 20 * (BLOCK / 2) + 1000 };

static void make_two(const char *name)
{
    char path[60];
    uint64_t ends[] = {100, LARGE}, small[] = {700, 1000};
    assert_int_equal(os_make_folder(in_folder(folder, name)), 0);
    (void)snprintf(path, sizeof path, "%s/a", name);
    shard_make(in_folder(folder, path), 2, 0, ends, 2);
    (void)snprintf(path, sizeof path, "%s/b", name);
    shard_make(in_folder(folder, path), 2, LARGE, small, 2);
}

static void verify_reads_every_byte_of_sound_shards(void **unused)
{
    (void)unused;
    make_two("sound");
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "sound"), NULL, &error));
    uint64_t bytes = 0;
    for (uint64_t s = 0; s < 2; s++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        MUST(tokmap_dataset_shard(dataset, s, &shard, &error));
        bytes += shard.index_bytes + 2 * shard.tokens;
    }
    for (uint32_t threads = 0; threads < 6; threads++) {
        struct seen seen;
        struct tokmap_verify_result result;
        must_succeed(verify_with(dataset, threads, &seen, &result), &error, __FILE__, __LINE__);
        assert_int_equal(result.bytes, bytes);
        assert_int_equal(result.blocks, 22);
        assert_int_equal(result.faults, 0);
        assert_int_equal(seen.last_done, bytes);
        assert_int_equal(seen.total, bytes);
    }
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    tokmap_dataset_close(dataset);
}

static void every_fault_is_found_and_the_first_is_returned(void **unused)
{
    (void)unused;
    make_two("many");
    flip("many/a.bin", 3 * (uint64_t)BLOCK + 77);
    flip("many/a.bin", 3 * (uint64_t)BLOCK + 78);
    flip("many/a.bin", 17 * (uint64_t)BLOCK);
    flip("many/a.bin", 20 * (uint64_t)BLOCK + 1999);
    flip("many/b.bin", 0);
    flip("many/b.tmx", 64);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "many"), NULL, &error));
    for (uint32_t threads = 1; threads < 9; threads++) {
        struct seen seen;
        struct tokmap_verify_result result;
        assert_int_equal(verify_with(dataset, threads, &seen, &result), TOKMAP_ERROR_CORRUPT);
        assert_int_equal(result.faults, 5);
        assert_int_equal(seen.faults, 5);
        assert_true(saw(&seen, "a.bin", 3 * (uint64_t)BLOCK) && saw(&seen, "a.bin", 17 * (uint64_t)BLOCK));
        assert_true(saw(&seen, "a.bin", 20 * (uint64_t)BLOCK) && saw(&seen, "b.bin", 0) && saw(&seen, "b.tmx", 64));
        assert_int_equal(error.status, TOKMAP_ERROR_CORRUPT);
        assert_int_equal(error.offset, 3 * (uint64_t)BLOCK);
        assert_non_null(strstr(error.path, "many/a.bin"));
        assert_non_null(strstr(error.message, "block 3 "));
        assert_non_null(strstr(error.message, "3145728..4194304"));
    }
    flip("many/a.bin", 3 * (uint64_t)BLOCK + 77);
    flip("many/a.bin", 3 * (uint64_t)BLOCK + 78);
    flip("many/a.bin", 17 * (uint64_t)BLOCK);
    flip("many/a.bin", 20 * (uint64_t)BLOCK + 1999);
    struct seen seen;
    struct tokmap_verify_result result;
    assert_int_equal(verify_with(dataset, 2, &seen, &result), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(result.faults, 2);
    assert_non_null(strstr(error.path, "many/b.tmx")); /* verify reports an index before its tokens */
    tokmap_dataset_close(dataset);
}

static void a_callback_can_end_verify(void **unused)
{
    (void)unused;
    make_two("ended");
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "ended"), NULL, &error));
    struct seen seen = {.answer = 1};
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    options.user = &seen;
    options.progress = on_progress;
    assert_int_equal(tokmap_dataset_verify(dataset, &options, NULL, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(seen.calls, 1);
    flip("ended/a.bin", 5);
    flip("ended/a.bin", BLOCK);
    options.progress = NULL;
    options.fault = on_fault;
    assert_int_equal(tokmap_dataset_verify(dataset, &options, NULL, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(seen.faults, 1);
    tokmap_dataset_close(dataset);
}

static void a_file_of_the_wrong_length_is_one_fault(void **unused)
{
    (void)unused;
    make_two("cut");
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "cut"), NULL, &error));
    uint64_t kept = 5 * (uint64_t)BLOCK + 300;
    assert_int_equal(truncate(in_folder(folder, "cut/a.bin"), (long)kept), 0);
    struct seen seen;
    struct tokmap_verify_result result;
    assert_int_equal(verify_with(dataset, 3, &seen, &result), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(result.faults, 1);
    assert_int_equal(result.blocks, 6); /* five of the truncated shard, one of the other */
    assert_int_equal(error.offset, kept);
    assert_int_equal(truncate(in_folder(folder, "cut/b.bin"), 3000), 0);
    assert_int_equal(verify_with(dataset, 3, &seen, &result), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(result.faults, 2);
    assert_true(saw(&seen, "b.bin", 2000));
    tokmap_dataset_close(dataset);
}

/* Truncating an index while it is open must result in a fault, not in a signal. */
static void a_truncated_index_is_a_fault(void **unused)
{
    (void)unused;
    static uint64_t ends[9000];
    for (uint64_t i = 0; i < 9000; i++)
        ends[i] = i + 1;
    shard_make(in_folder(folder, "lost"), 2, 0, ends, 9000);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "lost"), NULL, &error));
    assert_int_equal(truncate(in_folder(folder, "lost.tmx"), 5000), 0);
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, NULL, &error), TOKMAP_ERROR_TRUNCATED);
    assert_non_null(strstr(error.path, "lost.tmx"));
    tokmap_dataset_close(dataset);
}

/* A writer that records a wrong largest id, too high or too low. */
static void the_largest_id_is_compared_with_the_tokens(void **unused)
{
    (void)unused;
    for (uint32_t width = 2; width <= 4; width += 2) {
        for (uint64_t claimed = 499; claimed <= 501; claimed++) {
            struct shard_writer_options options = plain_options(width);
            options.replace = true;
            struct shard_writer *writer;
            uint8_t *tokens = calloc(600000, width);
            assert_non_null(tokens);
            store16(tokens + 599999 * width, 500);
            uint64_t end = 600000;
            MUST(shard_writer_open(&writer, in_folder(folder, "claim"), &options, &error));
            MUST(shard_writer_add(writer, tokens, end, &end, 1, claimed, &error));
            MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
            struct tokmap_dataset *dataset;
            MUST(tokmap_dataset_open(&dataset, in_folder(folder, "claim"), NULL, &error));
            enum tokmap_status status = tokmap_dataset_verify(dataset, NULL, NULL, &error);
            assert_int_equal(status, claimed == 500 ? TOKMAP_OK : TOKMAP_ERROR_CORRUPT);
            if (status)
                assert_non_null(strstr(error.path, claimed == 499 ? "claim.bin" : "claim.tmx"));
            tokmap_dataset_close(dataset);
            free(tokens);
        }
    }
}

/* Compares the scan with hash64() and a plain loop: whole blocks in parts, shorter blocks in one call. */
static void check_scan(scan_kernel *kernel)
{
    uint8_t *bytes = malloc(BLOCK + 64);
    struct block_scan *scan = block_scan_new_with(kernel);
    assert_true(bytes && scan);
    uint64_t state = 9;
    for (int round = 0; round < 60; round++) {
        uint32_t width = round % 2 ? 4 : 2;
        size_t count = round < 10 ? BLOCK : random_below(&state, round % 3 ? 4000 : BLOCK) / 4 * 4;
        uint64_t mask = round % 5 ? 0x7fff7fff7fff7fff : UINT64_MAX, hash, largest, expected = 0;
        uint8_t *tokens = bytes + (round % 7) * 4;
        for (size_t i = 0; i + 8 <= count; i += 8)
            store64(tokens + i, random_next(&state) & mask);
        for (size_t i = 0; i < count; i += width)
            expected = max64(expected, width == 2 ? load16(tokens + i) : load32(tokens + i));
        /* Only one place holds the largest id. Over the rounds it is at many places, so none can be skipped. */
        if (count >= 4) {
            size_t at = random_below(&state, count / width) * width;
            expected = max64(expected, 0xfffe);
            if (width == 2)
                store16(tokens + at, (uint16_t)expected);
            else
                store32(tokens + at, (uint32_t)expected);
        }
        size_t step = count == BLOCK ? SCAN_PART_BYTES : count;
        size_t at = 0;
        do {
            uint32_t pages[BLOCK / 4096] = {0};
            block_scan_part(scan, tokens + at, step, width, at + step == count, round % 4 ? pages : NULL);
            for (size_t page = 0; round % 4 && page < step; page += 4096)
                assert_int_equal(pages[page / 4096],
                                 (uint32_t)hash64(tokens + at + page, (size_t)min64(step - page, 4096)));
            at += step;
        } while (at < count);
        block_scan_result(scan, &hash, &largest);
        assert_true(hash == hash64(tokens, count));
        assert_int_equal(largest, expected);
    }
    block_scan_free(scan);
    free(bytes);
}

static void a_scan_computes_hash_and_largest_id(void **unused)
{
    (void)unused;
    check_scan(NULL);
    if (scan_kernel_named("avx2"))
        check_scan(scan_kernel_named("avx2"));
    if (scan_kernel_named("avx512"))
        check_scan(scan_kernel_named("avx512"));
    struct block_scan *scan = block_scan_new();
    assert_non_null(scan);
    block_scan_free(scan);
    block_scan_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_reads_every_byte_of_sound_shards),
        cmocka_unit_test(every_fault_is_found_and_the_first_is_returned),
        cmocka_unit_test(a_callback_can_end_verify),
        cmocka_unit_test(a_file_of_the_wrong_length_is_one_fault),
        cmocka_unit_test(a_truncated_index_is_a_fault),
        cmocka_unit_test(the_largest_id_is_compared_with_the_tokens),
        cmocka_unit_test(a_scan_computes_hash_and_largest_id),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
