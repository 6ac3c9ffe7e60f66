/* SPDX-License-Identifier: MIT */
/*
 * test_foreign_large.c - a file of another project of more than 2^32 tokens, which is sparse: it is opened in place,
 * indexed, and its documents beyond 2^32 are found. And the sampled identity: which changes it covers, and that it is
 * the same for the same files elsewhere.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "format/index_reader.h"
#include "platform/os.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define POWER32 ((uint64_t)1 << 32)
#define EOD 7

static char folder[512], path[600], name[700];

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    (void)snprintf(path, sizeof path, "%s/large.bin", folder);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

static void put(int fd, uint64_t at, const void *bytes, size_t count)
{
    assert_int_equal(os_pwrite(fd, bytes, count, at), 0);
}

/* Documents of a file of 2^32 + 1000 tokens of 2 bytes. */
static const uint64_t ends[] = {1,           5,           100000,      POWER32 / 2,  POWER32 / 2 + 1,
                                POWER32 - 1, POWER32 + 1, POWER32 + 2, POWER32 + 900};
enum { ENDS = sizeof ends / sizeof ends[0] };

static void test_beyond_4_gib(void **unused)
{
    (void)unused;
#ifdef SANITIZED
    print_message("8 GiB take 13 s of the kernel's time, and other tests have the same code read shorter files\n");
    skip();
#endif
    const uint64_t tokens = POWER32 + 1000;
    const uint8_t eod[2] = {EOD, 0}, last[2] = {99, 0};
    struct tokmap_error error = {0};
    struct tokmap_dataset *dataset;
    struct tokmap_index_result result = TOKMAP_INDEX_RESULT_INIT;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    int fd;
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    if (os_truncate(fd, 2 * tokens)) {
        os_close(fd);
        print_message("this file system cannot hold a sparse file of 8 GiB\n");
        skip();
    }
    for (unsigned i = 0; i < ENDS; i++)
        put(fd, 2 * (ends[i] - 1), eod, sizeof eod);
    put(fd, 2 * (tokens - 1), last, sizeof last);
    os_close(fd);
    (void)snprintf(name, sizeof name, "raw:%s,width=2,eod=%d", path, EOD);

    /* In place. */
    assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), TOKMAP_OK);
    uint64_t found[ENDS], used, start;
    assert_int_equal(dataset_ends(dataset, POWER32 - 10, 1010, found, ENDS, &used, &start, &error), TOKMAP_OK);
    assert_int_equal(used, 5);
    const uint64_t wanted[] = {9, 11, 12, 910, 1010};
    assert_memory_equal(found, wanted, sizeof wanted);
    tokmap_dataset_close(dataset);

    /* Indexed. */
    assert_int_equal(tokmap_dataset_index(name, NULL, &result, &error), TOKMAP_OK);
    assert_true(result.tokens == tokens && result.documents == ENDS + 1 && result.bytes == 2 * tokens);
    assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_true(info.documents == ENDS + 1 && info.largest_id == 99 && info.identity == 1);
    for (uint64_t i = 0; i <= ENDS; i++) {
        struct tokmap_document document;
        const uint64_t first = i ? ends[i - 1] : 0, end = i < ENDS ? ends[i] : tokens;
        assert_int_equal(tokmap_dataset_document(dataset, i, &document, &error), TOKMAP_OK);
        assert_true(document.first_token == first && document.tokens == end - first);
    }
    tokmap_dataset_close(dataset);
}

/* ---- the sampled identity ---- */

static void identity(const char *of, uint8_t content[16])
{
    struct tokmap_error error = {0};
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_open(&dataset, of, NULL, &error), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_int_equal(info.identity, 2);
    memcpy(content, info.content, 16);
    tokmap_dataset_close(dataset);
}

static void test_identity(void **unused)
{
    (void)unused;
    enum { BYTES = 300000 }; /* 74 pieces of 4 KiB, so the 256 probes cover every byte */
    static uint8_t bytes[BYTES];
    uint8_t first[16], now[16];
    int fd;
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 31 % 251);
    (void)snprintf(path, sizeof path, "%s/small.bin", folder);
    (void)snprintf(name, sizeof name, "raw:%s,width=2", path);
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    put(fd, 0, bytes, BYTES);
    identity(name, first);
    identity(name, now);
    assert_memory_equal(first, now, 16);
    for (uint64_t at = 0; at < BYTES; at += at < 4 || at > BYTES - 5 ? 1 : 4095) {
        const uint8_t other = (uint8_t)(bytes[at] ^ 1);
        put(fd, at, &other, 1);
        identity(name, now);
        assert_memory_not_equal(first, now, 16);
        put(fd, at, bytes + at, 1);
    }
    identity(name, now);
    assert_memory_equal(first, now, 16);
    put(fd, BYTES, "\0", 2);
    identity(name, now);
    assert_memory_not_equal(first, now, 16);
    assert_int_equal(os_truncate(fd, BYTES), 0);
    /* The words are a part of it, because they say what the tokens are. */
    static const char *const words[] = {"width=4",          "width=2,eod=3",   "width=2,bos=3", "width=2,vocab=65535",
                                        "width=2,offset=0", "width=2,offset=2"};
    uint8_t seen[7][16];
    memcpy(seen[0], first, 16);
    for (unsigned i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "raw:%s,%s", path, words[i]);
        identity(name, seen[i + 1]);
        for (unsigned j = 0; j <= i; j++)
            if (strcmp(words[i], "width=2,offset=0"))
                assert_memory_not_equal(seen[i + 1], seen[j], 16);
    }
    /* The path is not a part of it. */
    char elsewhere[600];
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere.bin", folder);
    assert_int_equal(os_rename(path, elsewhere), 0);
    (void)snprintf(name, sizeof name, "raw:%s,width=2", elsewhere);
    identity(name, now);
    assert_memory_equal(first, now, 16);
    os_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beyond_4_gib),
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
