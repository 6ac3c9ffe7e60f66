/* SPDX-License-Identifier: MIT */
/* ci: nonroot */
/*
 * test_mask.c - masks are delivered as they were written, by every cut of ranges and calls; and every damage to a mask
 * or to the section that describes it is found, with its place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bit_copy.h"
#include "fuzz/index_exercise.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static bool counts(uint64_t token)
{
    return token_value(token, 2) % 5 > 1;
}

/* Writes a shard of `tokens` tokens in documents of 1000, whose masks come in calls of random lengths and at random
 * bits of their bytes. */
static void make_masked(const char *name, uint64_t tokens, uint64_t seed)
{
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    static uint16_t ids[1000];
    uint64_t state = seed;
    options.mask = true;
    MUST(shard_writer_open(&writer, in_folder(folder, name), &options, &error));
    for (uint64_t at = 0; at < tokens;) {
        const uint64_t count = min64(tokens - at, 1000);
        uint64_t largest = 0;
        for (uint64_t i = 0; i < count; i++) {
            ids[i] = (uint16_t)token_value(at + i, 2);
            largest = max64(largest, ids[i]);
        }
        MUST(shard_writer_add(writer, ids, count, &count, 1, largest, &error));
        at += count;
    }
    for (uint64_t at = 0; at < tokens;) {
        const uint64_t count = min64(tokens - at, 1 + random_below(&state, 3000)), first = random_below(&state, 20);
        uint8_t bits[400];
        memset(bits, 0xff, sizeof bits); /* bits around those of the call must not matter */
        for (uint64_t i = 0; i < count; i++)
            if (!counts(at + i))
                bits[(first + i) / 8] &= (uint8_t) ~(1u << ((first + i) % 8));
        MUST(shard_writer_mask(writer, bits, first, count, &error));
        at += count;
    }
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
}

static void masks_are_delivered_as_written(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = {1, 7, 8, 9, 1000, 12345, (8 << 20) - 1, 8 << 20, (8 << 20) + 9};
    uint64_t state = 3;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tokmap_dataset *dataset;
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        char name[20];
        (void)snprintf(name, sizeof name, "m%zu", i);
        make_masked(name, sizes[i], i);
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, name), NULL, &error));
        MUST(tokmap_dataset_info(dataset, &info));
        assert_int_equal(info.masked, 1);
        for (int round = 0; round < 60; round++) {
            static uint8_t bits[5000];
            const uint64_t first = random_below(&state, sizes[i]);
            const uint64_t count = 1 + random_below(&state, min64(sizes[i] - first, 35000));
            memset(bits, 0x5a, sizeof bits);
            MUST(tokmap_dataset_mask(dataset, first, count, bits, &error));
            for (uint64_t t = 0; t < count; t++)
                assert_int_equal(bits[t / 8] >> (t % 8) & 1, counts(first + t));
            for (uint64_t t = count; t % 8; t++)
                assert_int_equal(bits[t / 8] >> (t % 8) & 1, 0);
            assert_int_equal(bits[(count + 7) / 8], 0x5a); /* nothing behind the result is written */
        }
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        tokmap_dataset_close(dataset);
    }
}

/* The content id of the tokens stays, and the mask makes another identity of it: stream 1. */
static void a_mask_is_part_of_the_identity(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    uint8_t message[32] = "stream 1", expected[16];
    char path[600];
    make_masked("same", 5000, 1);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "same"), NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    MUST(tokmap_dataset_shard(dataset, 0, &shard, &error));
    struct index index;
    (void)snprintf(path, sizeof path, "%s.tmx", in_folder(folder, "same"));
    MUST(index_open(&index, path, &error));
    memcpy(message + 8, shard.content, 16);
    store64(message + 24, index.streams.hash);
    hash128_store(hash128(message, sizeof message), expected);
    assert_memory_equal(info.content, expected, 16);
    index_close(&index);
    tokmap_dataset_close(dataset);
}

static void open_masked(struct tokmap_dataset **dataset, const char *name)
{
    make_masked(name, 20000000, 9); /* 2500000 bytes of mask: 3 blocks */
    MUST(tokmap_dataset_open(dataset, in_folder(folder, name), NULL, &error));
}

static void change(const char *name, uint64_t offset, uint8_t by)
{
    int fd;
    uint8_t byte;
    size_t got;
    assert_int_equal(os_open(in_folder(folder, name), OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pread(fd, &byte, 1, offset, &got), 0);
    byte ^= by;
    assert_int_equal(os_pwrite(fd, &byte, 1, offset), 0);
    os_close(fd);
}

static void verify_names_the_damaged_block_of_a_mask(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset;
    open_masked(&dataset, "hurt");
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    change("hurt.mask", 2400000, 4);
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, NULL, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(error.offset, 2 << 20);
    assert_non_null(strstr(error.path, "hurt.mask"));
    change("hurt.mask", 2400000, 4);
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    assert_int_equal(truncate(in_folder(folder, "hurt.mask"), 2000000), 0);
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, NULL, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(error.offset, 2000000);
    uint8_t bits[200];
    assert_int_equal(tokmap_dataset_mask(dataset, 15999000, 1600, bits, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(error.offset, 2000000);
    tokmap_dataset_close(dataset);
    assert_int_equal(tokmap_dataset_open(&dataset, in_folder(folder, "hurt"), NULL, &error), TOKMAP_ERROR_TRUNCATED);
    assert_non_null(strstr(error.path, "hurt.mask"));
    assert_int_equal(error.offset, 2000000);
    assert_int_equal(unlink(in_folder(folder, "hurt.mask")), 0);
    assert_int_equal(tokmap_dataset_open(&dataset, in_folder(folder, "hurt"), NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.path, "hurt.mask"));
}

static void a_writer_needs_one_bit_for_each_token(void **unused)
{
    (void)unused;
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    const uint16_t ids[3] = {1, 2, 3};
    const uint64_t end = 3;
    const uint8_t bits = 5;
    static const uint64_t calls[] = {0, 1, 2, 4, 8, 3};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const uint64_t given = calls[i];
        options.mask = true;
        MUST(shard_writer_open(&writer, in_folder(folder, "three"), &options, &error));
        MUST(shard_writer_add(writer, ids, 3, &end, 1, 3, &error));
        MUST(shard_writer_mask(writer, &bits, 0, given, &error));
        assert_int_equal(shard_writer_commit(writer, "", 0, NULL, &error),
                         given == 3 ? TOKMAP_OK : TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(access(in_folder(folder, "three.mask.partial"), F_OK), -1);
        assert_int_equal(access(in_folder(folder, "three.mask"), F_OK), given == 3 ? 0 : -1);
    }
    options.mask = false;
    MUST(shard_writer_open(&writer, in_folder(folder, "none"), &options, &error));
    assert_int_equal(shard_writer_mask(writer, &bits, 0, 3, &error), TOKMAP_ERROR_ARGUMENT);
    shard_writer_abort(writer);
    /* A shard without a mask replaces one with a mask. */
    options.replace = true;
    MUST(shard_writer_open(&writer, in_folder(folder, "three"), &options, &error));
    MUST(shard_writer_add(writer, ids, 3, &end, 1, 3, &error));
    MUST(shard_writer_commit(writer, "", 0, NULL, &error));
    assert_int_equal(access(in_folder(folder, "three.mask"), F_OK), -1);
}

/* ---- hostile sections ---- */

static uint8_t *bytes;
static size_t bytes_count;

static void read_index(const char *name)
{
    int fd;
    struct os_stat found;
    assert_int_equal(os_open(in_folder(folder, name), OS_READ, &fd), 0);
    assert_int_equal(os_fstat(fd, &found), 0);
    bytes_count = (size_t)found.bytes;
    bytes = malloc(bytes_count);
    assert_non_null(bytes);
    assert_int_equal(os_pread(fd, bytes, bytes_count, 0, &bytes_count), 0);
    os_close(fd);
}

/* Opens and exercises the changed index. */
static enum tokmap_status outcome(const uint8_t *changed)
{
    struct tokmap_dataset *dataset;
    int fd;
    (void)unlink(in_folder(folder, "hostile.tmx"));
    assert_int_equal(os_open(in_folder(folder, "hostile.tmx"), OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_pwrite(fd, changed, bytes_count, 0), 0);
    os_close(fd);
    enum tokmap_status status = tokmap_dataset_open(&dataset, in_folder(folder, "hostile"), NULL, &error);
    if (status)
        return status;
    status = exercise_dataset(dataset);
    tokmap_dataset_close(dataset);
    return status;
}

static size_t streams_at(void)
{
    struct index index;
    MUST(index_open(&index, in_folder(folder, "hostile.tmx"), &error));
    const size_t at = (size_t)index.streams.offset;
    assert_int_equal(index.streams.bytes, 48);
    index_close(&index);
    return at;
}

static void hostile_streams_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        size_t at;
        uint64_t value;
        enum tokmap_status expected;
    } cases[] = {
        {0, 0, TOKMAP_ERROR_CORRUPT}, /* count */
        {0, 2, TOKMAP_ERROR_CORRUPT},
        {0, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {0, (uint64_t)1 << 59, TOKMAP_ERROR_CORRUPT}, /* times 32 overflows to 0 */
        {8, 0, TOKMAP_ERROR_UNSUPPORTED},             /* name */
        {8, 0x7468676965770000, TOKMAP_ERROR_UNSUPPORTED},
        {16, 1, TOKMAP_ERROR_UNSUPPORTED}, /* the end of the name */
        {24, 0, TOKMAP_ERROR_CORRUPT},     /* bits */
        {24, 2, TOKMAP_ERROR_CORRUPT},
        {24, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {32, 0, TOKMAP_ERROR_CORRUPT}, /* bytes of the file */
        {32, 624, TOKMAP_ERROR_CORRUPT},
        {32, 626, TOKMAP_ERROR_CORRUPT},
        {32, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {40, 0, TOKMAP_ERROR_CORRUPT}, /* a hash */
    };
    make_masked("hostile", 5000, 1);
    read_index("hostile.tmx");
    const size_t at = streams_at();
    assert_int_equal(bytes[10], 3); /* the minor version */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *changed = malloc(bytes_count);
        memcpy(changed, bytes, bytes_count);
        store64(changed + at + cases[i].at, cases[i].value);
        index_rehash(changed, bytes_count);
        const enum tokmap_status found = outcome(changed);
        if (found != cases[i].expected)
            fail_msg("case %zu: %s: %s", i, tokmap_status_name(found), error.message);
        free(changed);
    }
    /* every number, every awkward value: nothing may crash */
    static const uint64_t values[] = {
        0,          1,          2,          63,         255,        0x80000000,    UINT32_MAX,
        1ull << 32, 1ull << 40, 1ull << 61, 1ull << 62, 1ull << 63, UINT64_MAX - 1};
    for (size_t offset = 0; offset + 8 <= bytes_count; offset += 4) {
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            uint8_t *changed = malloc(bytes_count);
            memcpy(changed, bytes, bytes_count);
            memcpy(changed + offset, &values[v], v % 2 ? 8 : 4);
            index_rehash(changed, bytes_count);
            (void)outcome(changed);
            free(changed);
        }
    }
    free(bytes);
}

/* Spare bits are covered by the hash; this one fits, as that of a careless writer would. */
static void spare_bits_must_be_zero(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset;
    uint8_t mask[626];
    size_t got;
    int fd;
    assert_int_equal(unlink(in_folder(folder, "hostile.tmx")), 0);
    assert_int_equal(unlink(in_folder(folder, "hostile.bin")), 0);
    assert_int_equal(unlink(in_folder(folder, "hostile.mask")), 0);
    make_masked("hostile", 5001, 1);
    change("hostile.mask", 625, 0x80);
    read_index("hostile.tmx");
    assert_int_equal(os_open(in_folder(folder, "hostile.mask"), OS_READ, &fd), 0);
    assert_int_equal(os_pread(fd, mask, sizeof mask, 0, &got), 0);
    os_close(fd);
    store64(bytes + streams_at() + 40, hash64(mask, sizeof mask));
    index_rehash(bytes, bytes_count);
    assert_int_equal(outcome(bytes), TOKMAP_ERROR_CORRUPT);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "hostile"), NULL, &error));
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, NULL, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(error.offset, 625);
    tokmap_dataset_close(dataset);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_delivered_as_written),
        cmocka_unit_test(a_mask_is_part_of_the_identity),
        cmocka_unit_test(verify_names_the_damaged_block_of_a_mask),
        cmocka_unit_test(a_writer_needs_one_bit_for_each_token),
        cmocka_unit_test(hostile_streams_are_refused),
        cmocka_unit_test(spare_bits_must_be_zero),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
