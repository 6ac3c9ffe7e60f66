/* SPDX-License-Identifier: MIT */
/*
 * test_values_file.c - the header of values: the golden file, which a script wrote from FORMAT.md alone, names and
 * arrays as a text, and damaged and hostile files with one fault each.
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
#include "format/values_file.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static struct index golden_index; /* of tests/golden/narrow, which has 24 tokens */
static uint8_t *golden;           /* its values, f16[3], without those of tokens 0, 7, 8, and 23 */
static size_t golden_bytes;

static int golden_open(void **state)
{
    static char path[600];
    const char *top = getenv("TOP");
    (void)setup(state);
    (void)snprintf(path, sizeof path, "%s/tests/golden/narrow.tmx", top ? top : ".");
    MUST(index_open(&golden_index, path, &error));
    golden = file_read(in_folder(top ? top : ".", "tests/golden/narrow.teacher.values"), &golden_bytes);
    return 0;
}

static int golden_close(void **state)
{
    free(golden);
    index_close(&golden_index);
    return teardown(state);
}

/* Opens the values FOLDER/x.teacher.values, which are these bytes. */
static enum tokmap_status outcome_as(struct values_file *values, const uint8_t *bytes, size_t count, bool partial)
{
    const char *path = in_folder(folder, partial ? "x.teacher.values.partial" : "x.teacher.values");
    (void)os_unlink(path);
    file_write(path, bytes, count);
    memset(&error, 0, sizeof error);
    const enum tokmap_status status = (partial ? values_partial_open : values_file_open)(
        values, in_folder(folder, "x.tmx"), &golden_index, "teacher", &error);
    assert_int_equal(error.status, status);
    assert_true(!status || (values->fd < 0 && !values->path && error.message[0]));
    return status;
}

static enum tokmap_status outcome(const uint8_t *bytes, size_t count)
{
    struct values_file values;
    const enum tokmap_status status = outcome_as(&values, bytes, count, false);
    values_file_close(&values);
    return status;
}

static void the_reader_reads_the_golden_bytes(void **unused)
{
    (void)unused;
    struct values_file values;
    struct values_header header;
    MUST(outcome_as(&values, golden, golden_bytes, false));
    assert_string_equal(values.array.name, "teacher");
    assert_string_equal(VALUES_TYPE(&values.array), "f16[3]");
    assert_int_equal(values.array.value_bytes, 6);
    assert_int_equal(values.tokens, 24);
    assert_int_equal(values.present, 20);
    assert_int_equal(values.bitmap_at, 8192);
    assert_int_equal(values.hashes_at, 8200);
    assert_int_equal(values.bytes, golden_bytes);
    assert_int_equal(values_hashed_end(&values), 8195);
    assert_int_equal(load64(golden + 8200), hash64(golden + 4096, 8195 - 4096));
    assert_int_equal(values.table_hash, hash64(golden + 8200, 8));
    MUST(values_header_make(&header, &values.array, &golden_index, &error));
    header.present = 20;
    header.table_hash = values.table_hash;
    values_header_seal(&header);
    assert_memory_equal(&header, golden, sizeof header);
    values_file_close(&values);
    memset(&error, 0, sizeof error);
    assert_int_equal(values_file_open(&values, in_folder(folder, "x.tmx"), &golden_index, "weights", &error),
                     TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "tokmap index --values"));
    assert_non_null(strstr(error.path, "/x.weights.values"));
}

static void every_changed_byte_of_the_header_is_found(void **unused)
{
    (void)unused;
    uint8_t *bytes = malloc(golden_bytes + 1);
    assert_non_null(bytes);
    memcpy(bytes, golden, golden_bytes);
    for (size_t at = 0; at < VALUES_AT; at += at < 136 || at >= VALUES_AT - 16 ? 1 : 61) {
        bytes[at] ^= 0x10;
        const enum tokmap_status status = outcome(bytes, golden_bytes);
        assert_int_equal(status, at < 8 ? TOKMAP_ERROR_FORMAT : at < 12 ? TOKMAP_ERROR_VERSION : TOKMAP_ERROR_CORRUPT);
        bytes[at] ^= 0x10;
    }
    for (size_t count = 0; count < golden_bytes; count += count < 16 ? 1 : 97)
        assert_int_equal(outcome(bytes, count), count ? TOKMAP_ERROR_TRUNCATED : TOKMAP_ERROR_FORMAT);
    bytes[golden_bytes] = 0;
    assert_int_equal(outcome(bytes, golden_bytes + 1), TOKMAP_ERROR_TRUNCATED);
    free(bytes);
}

/* One hostile value under a valid hash. */
static void hostile_values_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        size_t at, bytes;
        uint64_t value;
        enum tokmap_status expected;
    } faults[] = {
        {8, 4, 0, TOKMAP_ERROR_CORRUPT},
        {8, 4, 2, TOKMAP_ERROR_VERSION},
        {12, 4, 0, TOKMAP_ERROR_CORRUPT},
        {12, 4, 3, TOKMAP_ERROR_CORRUPT}, /* an element of 4 bytes */
        {12, 4, 7, TOKMAP_ERROR_CORRUPT},
        {12, 4, UINT32_MAX, TOKMAP_ERROR_CORRUPT},
        {16, 4, 0, TOKMAP_ERROR_CORRUPT},
        {16, 4, 2, TOKMAP_ERROR_CORRUPT},
        {16, 4, 5, TOKMAP_ERROR_CORRUPT},
        {16, 4, UINT32_MAX, TOKMAP_ERROR_CORRUPT},
        {20, 4, 4, TOKMAP_ERROR_CORRUPT},
        {20, 4, 0, TOKMAP_ERROR_CORRUPT},
        {24, 8, 0, TOKMAP_ERROR_CORRUPT},
        {24, 8, 4, TOKMAP_ERROR_CORRUPT},
        {24, 8, ((uint64_t)1 << 63) + 3, TOKMAP_ERROR_CORRUPT}, /* 2 * it is 6 mod 2^64 */
        {32, 8, 1, TOKMAP_ERROR_CORRUPT},
        {48, 8, 1, TOKMAP_ERROR_CORRUPT},
        {56, 8, 23, TOKMAP_ERROR_CORRUPT},
        {56, 8, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {64, 8, 0, TOKMAP_ERROR_MISMATCH},
        {72, 8, 1, TOKMAP_ERROR_MISMATCH},
        {80, 8, 25, TOKMAP_ERROR_CORRUPT},
        {88, 8, 4096, TOKMAP_ERROR_CORRUPT},
        {88, 8, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {96, 8, 0, TOKMAP_ERROR_CORRUPT},
        {96, 8, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {112, 8, 1, TOKMAP_OK},
        {120, 8, 1, TOKMAP_ERROR_CORRUPT},
        {4080, 8, (uint64_t)1 << 63, TOKMAP_ERROR_CORRUPT},
    };
    uint8_t *bytes = malloc(golden_bytes);
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        memcpy(bytes, golden, golden_bytes);
        memcpy(bytes + faults[i].at, &faults[i].value, faults[i].bytes);
        store64(bytes + 4088, hash64(bytes, 4088));
        const enum tokmap_status status = outcome(bytes, golden_bytes);
        if (status != faults[i].expected)
            fail_msg("fault %zu: %s", i, tokmap_status_name(status));
    }
    free(bytes);
}

static void a_file_that_is_being_written_has_a_number_and_any_size(void **unused)
{
    (void)unused;
    struct values_file values;
    uint8_t *bytes = malloc(golden_bytes);
    assert_non_null(bytes);
    memcpy(bytes, golden, golden_bytes);
    store64(bytes + 112, 77);
    store64(bytes + 4088, hash64(bytes, 4088));
    MUST(outcome_as(&values, bytes, VALUES_AT, true));
    assert_int_equal(values.work, 77);
    assert_non_null(strstr(values.path, "/x.teacher.values.partial"));
    values_file_close(&values);
    values_file_close(&values);
    /* The last header that it got is torn: its hash is that of the one before. The fields count. */
    bytes[80] ^= 1;
    assert_int_equal(outcome(bytes, golden_bytes), TOKMAP_ERROR_CORRUPT);
    MUST(outcome_as(&values, bytes, golden_bytes, true));
    values_file_close(&values);
    bytes[24] ^= 1;
    assert_int_equal(outcome_as(&values, bytes, golden_bytes, true), TOKMAP_ERROR_CORRUPT);
    free(bytes);
}

static void a_file_that_would_be_too_large_is_refused(void **unused)
{
    (void)unused;
    struct values_header header;
    struct values_array array = {"teacher", VALUES_F32, 1, {16384}, 65536};
    struct index index = {.path = "x.tmx"};
    static const uint64_t most = ((uint64_t)1 << 45) - 1;
    index.shard.tokens = most;
    MUST(values_header_make(&header, &array, &index, &error));
    assert_int_equal(header.bitmap_at, VALUES_AT + 65536 * most);
    for (int shift = 45; shift < 64; shift++) {
        index.shard.tokens = (uint64_t)1 << shift;
        assert_int_equal(values_header_make(&header, &array, &index, &error), TOKMAP_ERROR_LIMIT);
    }
    array = (struct values_array){"w", VALUES_U8, 0, {0}, 1};
    index.shard.tokens = 0;
    MUST(values_header_make(&header, &array, &index, &error));
    assert_int_equal(header.file_bytes, VALUES_AT);
}

static void arrays_are_read_from_a_text(void **unused)
{
    (void)unused;
    struct values_array arrays[VALUES_ARRAYS_MOST];
    uint32_t count;
    MUST(values_arrays_parse("  teacher_ids:u32[32] teacher:f16[4,8]   weights:f32 x:u8[1,1,65536,1] ", arrays, &count,
                             &error));
    assert_int_equal(count, 4);
    assert_string_equal(arrays[0].name, "teacher_ids");
    assert_int_equal(arrays[0].value_bytes, 128);
    assert_string_equal(VALUES_TYPE(&arrays[1]), "f16[4,8]");
    assert_int_equal(arrays[1].value_bytes, 64);
    assert_string_equal(VALUES_TYPE(&arrays[2]), "f32");
    assert_int_equal(arrays[2].dimensions, 0);
    assert_int_equal(arrays[3].value_bytes, 65536);
    MUST(values_arrays_parse("a:u8 b:u16 c:u32 d:f16 e:bf16 f:f32 g:u8 h:u8", arrays, &count, &error));
    assert_int_equal(count, 8);
    static const char *const wrong[] = {
        "",
        "   ",
        "a",
        "a:",
        "a:f64",
        "a:f16[",
        "a:f16[]",
        "a:f16[3",
        "a:f16[3]]",
        "a:f16[3,]",
        "a:f16[3]x",
        "a:f16[-3]",
        "a:f16[0]",
        "a:f16[ 3]",
        "a:f16[1,1,1,1,1]",
        "a:u8[65537]",
        "a:u8[99999,99999,99999,99999]",
        "a:f32[16385]",
        "A:u8",
        "1a:u8",
        "_a:u8",
        "a-b:u8",
        "a.b:u8",
        "a/b:u8",
        "mask:u8",
        "bin:u8",
        "values:u8",
        "a:u8 a:u16",
        "abcdefghijklmnopqrstuvwxyz_0123456:u8",
        "a:u8 b:u16 c:u32 d:f16 e:bf16 f:f32 g:u8 h:u8 i:u8",
        ("a:f16[3333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333"
         "333333333333333333333333333333333333333333333333333333333333333]"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memset(&error, 0, sizeof error);
        if (values_arrays_parse(wrong[i], arrays, &count, &error) != TOKMAP_ERROR_ARGUMENT)
            fail_msg("accepted: %s", wrong[i]);
        assert_string_equal(error.field, "arrays");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_reads_the_golden_bytes),
        cmocka_unit_test(every_changed_byte_of_the_header_is_found),
        cmocka_unit_test(hostile_values_are_refused),
        cmocka_unit_test(a_file_that_is_being_written_has_a_number_and_any_size),
        cmocka_unit_test(a_file_that_would_be_too_large_is_refused),
        cmocka_unit_test(arrays_are_read_from_a_text),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
