/* SPDX-License-Identifier: MIT */
/*
 * test_plan_file.c - plans: the golden file, the Python reader that was written from FORMAT.md alone, and damaged and
 * hostile files with one fault each.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "format/plan_file.h"
#include "platform/os.h"
#include "support/shard_help.h"

static char folder[512];
static uint8_t *base; /* the golden plan */
static size_t base_bytes;

static const char *top(void)
{
    const char *found = getenv("TOP");
    return found ? found : ".";
}

static const char *golden(void)
{
    return in_folder(top(), "tests/golden/narrow.plan");
}

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    base = file_read(golden(), &base_bytes);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    free(base);
    scratch_remove(folder);
    return 0;
}

/* The golden plan is of tests/golden/narrow, whose documents have 6, 7, 1, 6, and 4 tokens, with rows of 6. */
static const uint32_t golden_first[] = {0, 1, 2, 3};
static const struct plan_segment golden_segments[] = {{0, 6, 0},  {6, 6, 1},  {14, 6, 4},
                                                      {20, 4, 5}, {12, 1, 2}, {13, 1, 3}};

static struct plan_segment golden_segment(void *user, uint64_t number)
{
    (void)user;
    return golden_segments[number];
}

static struct plan_header golden_header(void)
{
    struct plan_header header = {
        .identity = 1,
        .tokens = 24,
        .seq_len = 6,
        .rows = 4,
        .segments = 6,
        .row_segments = 3,
        .documents = 5,
        .cut = 1,
    };
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, in_folder(top(), "tests/golden/narrow"), NULL, &error));
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    memcpy(header.dataset, info.content, sizeof header.dataset);
    tokmap_dataset_close(dataset);
    return header;
}

static void the_writer_writes_the_golden_bytes(void **unused)
{
    (void)unused;
    int fd;
    size_t bytes;
    struct plan_header header = golden_header();
    assert_int_equal(os_open(in_folder(folder, "made"), OS_WRITE_NEW, &fd), 0);
    assert_int_equal(plan_write(fd, &header, golden_first, golden_segment, NULL), 0);
    os_close(fd);
    uint8_t *made = file_read(in_folder(folder, "made"), &bytes);
    assert_int_equal(bytes, base_bytes);
    assert_memory_equal(made, base, bytes);
    free(made);
}

static void the_reader_reads_the_golden_bytes(void **unused)
{
    (void)unused;
    struct plan plan;
    assert_true(plan_is_file(golden()));
    assert_false(plan_is_file(in_folder(top(), "tests/golden/narrow.tmx")));
    assert_false(plan_is_file(folder));
    MUST(plan_open(&plan, golden(), &error));
    MUST(plan_verify(&plan, NULL, NULL, &error));
    struct tokmap_extent extents[3];
    uint64_t count, first, row, i, tokens;
    for (uint64_t r = 0; r < 4; r++) {
        MUST(plan_row(&plan, r, &first, &count, &error));
        assert_int_equal(first, golden_first[r]);
        assert_int_equal(count, r < 3 ? 1 : 3);
        MUST(plan_row_extents(&plan, r, extents, 3, &count, &tokens, &error));
        for (i = 0; i < count; i++) {
            assert_int_equal(extents[i].first_token, golden_segments[first + i].first_token);
            assert_int_equal(extents[i].tokens, golden_segments[first + i].tokens);
        }
    }
    for (uint64_t token = 0; token < 24; token++) {
        uint64_t number;
        struct plan_segment segment;
        MUST(plan_find(&plan, token, &i, &error));
        MUST(plan_ordered(&plan, i, &number, &segment, &error));
        assert_true(segment.first_token <= token && token - segment.first_token < segment.tokens);
        MUST(plan_row_of(&plan, number, &row, &error));
        assert_int_equal(row, number < 3 ? number : 3);
    }
    /* xxh3_128(b"plan 1\\0\\0" + dataset + body_hash), by Python's xxhash. */
    uint8_t identity[16];
    char hex[33];
    plan_identity(&plan, plan.header.dataset, identity);
    hash128_hex(identity, hex);
    assert_string_equal(hex, "fc89de6f12490143c1cd34f338fde71d");
    plan_close(&plan);
}

static void the_python_reader_reads_the_same(void **unused)
{
    (void)unused;
    char command[2600], text[4096];
    if (system("python3 -c 'import json, struct' >/dev/null 2>&1")) {
        printf("python3 is not installed\n");
        skip();
    }
    (void)snprintf(command, sizeof command, "python3 -B '%s/tests/conformance/plan_reader.py' '%s' 2>&1", top(),
                   golden());
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t got = fread(text, 1, sizeof text - 1, pipe);
    text[got] = '\0';
    assert_int_equal(pclose(pipe), 0);
    assert_non_null(strstr(text, "\"tokens\": 24, \"seq_len\": 6, \"rows\": [[[0, 6]], [[6, 6]], [[14, 6]], "
                                 "[[20, 4], [12, 1], [13, 1]]], \"documents_most\": 0, \"documents\": 5, \"cut\": 1"));
    (void)snprintf(command, sizeof command, "python3 -B '%s/tests/conformance/plan_reader.py' '%s/x' >/dev/null 2>&1",
                   top(), folder);
    uint8_t *hurt = malloc(base_bytes);
    assert_non_null(hurt);
    memcpy(hurt, base, base_bytes);
    hurt[130]++;
    file_write(in_folder(folder, "x"), hurt, base_bytes);
    free(hurt);
    assert_int_not_equal(system(command), 0);
}

/* Writes a plan with these bytes and opens it, and if that succeeds verifies it. */
static enum tokmap_status outcome(const uint8_t *bytes, size_t count)
{
    struct plan plan;
    (void)os_unlink(in_folder(folder, "hurt"));
    file_write(in_folder(folder, "hurt"), bytes, count);
    memset(&error, 0, sizeof error);
    enum tokmap_status status = plan_open(&plan, in_folder(folder, "hurt"), &error);
    if (!status) {
        status = plan_verify(&plan, NULL, NULL, &error);
        plan_close(&plan);
    }
    assert_int_equal(error.status, status);
    assert_true(!status || error.message[0]);
    return status;
}

static void every_changed_byte_is_found(void **unused)
{
    (void)unused;
    uint8_t *bytes = malloc(base_bytes + 1);
    assert_non_null(bytes);
    memcpy(bytes, base, base_bytes);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_OK);
    for (size_t at = 0; at < base_bytes; at++) {
        bytes[at] ^= 0x10;
        const enum tokmap_status status = outcome(bytes, base_bytes);
        if (at < 8)
            assert_int_equal(status, TOKMAP_ERROR_FORMAT);
        else
            assert_true(status == TOKMAP_ERROR_CORRUPT || (at < 10 && status == TOKMAP_ERROR_VERSION));
        bytes[at] ^= 0x10;
    }
    for (size_t count = 0; count < base_bytes; count++) {
        const enum tokmap_status status = outcome(bytes, count);
        assert_int_equal(status, count ? TOKMAP_ERROR_TRUNCATED : TOKMAP_ERROR_FORMAT);
    }
    bytes[base_bytes] = 0;
    assert_int_equal(outcome(bytes, base_bytes + 1), TOKMAP_ERROR_TRUNCATED);
    free(bytes);
}

static void hashes_again(uint8_t *bytes, size_t count)
{
    struct plan_header header;
    memcpy(&header, bytes, sizeof header);
    header.body_hash = hash64(bytes + sizeof header, count - sizeof header);
    header.header_hash = hash64(&header, offsetof(struct plan_header, header_hash));
    memcpy(bytes, &header, sizeof header);
}

/* One hostile value under valid checksums. */
static void hostile_values_are_refused(void **unused)
{
    (void)unused;
    enum { FIRST = 128, SEGMENT = 144 };
    static const struct {
        size_t at, bytes;
        uint64_t value;
        bool at_opening;
    } faults[] = {
        {12, 4, 64, true},
        {32, 4, 0, true},
        {32, 4, 3, true},
        {36, 4, 1, true},
        {40, 8, 0, true},
        {40, 8, 25, true},
        {40, 8, 23, false},
        {40, 8, UINT64_MAX, true},
        {48, 8, 0, true},
        {48, 8, 5, true}, /* 4 rows of 5 tokens cannot hold 24 */
        {48, 8, ((uint64_t)1 << 31) + 1, true},
        {48, 8, 7, false}, /* segments shorter than a row are possible */
        {56, 8, 0, true},
        {56, 8, 3, true},
        {56, 8, UINT64_MAX, true},
        {64, 8, 0, true},
        {64, 8, 7, true},
        {64, 8, (uint64_t)1 << 32, true},
        {64, 8, UINT64_MAX, true},
        {72, 8, 0, true},
        {72, 8, 2, false},
        {72, 8, 4, true},
        {72, 8, UINT64_MAX, true},
        {80, 8, 2, true},
        {88, 8, 0, true},
        {88, 8, 7, true},
        {96, 8, 6, true},
        {104, 8, 200, true},
        {FIRST, 4, 1, false},
        {FIRST + 4, 4, 0, false},
        {FIRST + 4, 4, 2, false},
        {FIRST + 12, 4, 6, false},
        {FIRST + 12, 4, UINT32_MAX, false},
        {SEGMENT, 8, 1, false},
        {SEGMENT, 8, UINT64_MAX, false},
        {SEGMENT + 8, 4, 0, false},
        {SEGMENT + 8, 4, 5, false},
        {SEGMENT + 8, 4, 7, false},
        {SEGMENT + 8, 4, UINT32_MAX, false},
        {SEGMENT + 12, 4, 1, false},
        {SEGMENT + 12, 4, 6, false},
        {SEGMENT + 12, 4, UINT32_MAX, false},
        {SEGMENT + 3 * 16 + 8, 4, 5, false}, /* the last row is too long */
    };
    uint8_t *bytes = malloc(base_bytes);
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        memcpy(bytes, base, base_bytes);
        memcpy(bytes + faults[i].at, &faults[i].value, faults[i].bytes);
        hashes_again(bytes, base_bytes);
        const enum tokmap_status status = outcome(bytes, base_bytes);
        if (faults[i].at == 48 && faults[i].value == 7) {
            assert_int_equal(status, TOKMAP_OK);
            continue;
        }
        if (status != TOKMAP_ERROR_CORRUPT)
            fail_msg("fault %zu: %s", i, tokmap_status_name(status));
        struct plan plan;
        const bool opens = !plan_open(&plan, in_folder(folder, "hurt"), &error);
        assert_int_equal(opens, !faults[i].at_opening);
        if (!opens)
            continue;
        /* Every use of it ends. */
        uint64_t found, row, count, tokens;
        struct tokmap_extent extents[6];
        for (uint64_t token = 0; token < plan.header.tokens; token++)
            if (plan_find(&plan, token, &found, &error))
                assert_int_equal(error.status, TOKMAP_ERROR_CORRUPT);
        for (uint64_t s = 0; s < plan.header.segments; s++)
            if (plan_row_of(&plan, s, &row, &error))
                assert_int_equal(error.status, TOKMAP_ERROR_CORRUPT);
        for (uint64_t r = 0; r < plan.header.rows; r++)
            if (plan_row_extents(&plan, r, extents, 6, &count, &tokens, &error))
                assert_int_equal(error.status, TOKMAP_ERROR_CORRUPT);
        plan_close(&plan);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_writer_writes_the_golden_bytes), cmocka_unit_test(the_reader_reads_the_golden_bytes),
        cmocka_unit_test(the_python_reader_reads_the_same),   cmocka_unit_test(every_changed_byte_is_found),
        cmocka_unit_test(hostile_values_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
