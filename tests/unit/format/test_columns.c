/* SPDX-License-Identifier: MIT */
/*
 * test_columns.c - columns of an index: what is written is read again, for few, many, and large values; the change from
 * a dictionary to plain values happens at its limits exactly; and memory does not grow with documents.
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
#include "format/columns_writer.h"
#include "format/index_columns.h"
#include "format/shard_mask.h"
#include "fuzz/index_exercise.h"
#include "platform/os.h"
#include "platform/table_key.h"
#include "support/memory_peak.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

/* The value of document d in a column of `distinct` values: a number, and nothing for one of them. */
static uint64_t value_text(uint64_t d, uint64_t distinct, char text[32])
{
    const uint64_t value = d * 0x9e3779b97f4a7c15u % distinct;
    return value == 3 ? 0 : (uint64_t)snprintf(text, 32, "%llu", (unsigned long long)value);
}

static struct shard_writer *open_writer(const char *name, const char *const *columns, uint32_t count)
{
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    options.replace = true;
    options.columns = columns;
    options.column_count = count;
    MUST(shard_writer_open(&writer, in_folder(folder, name), &options, &error));
    return writer;
}

/* Documents of one token, at once. */
static void add_documents(struct shard_writer *writer, uint64_t documents)
{
    uint64_t *ends = malloc((documents + 1) * sizeof *ends);
    uint16_t *tokens = calloc(documents + 1, sizeof *tokens);
    assert_true(ends && tokens);
    for (uint64_t d = 0; d < documents; d++)
        ends[d] = d + 1;
    MUST(shard_writer_add(writer, tokens, documents, ends, documents, 0, &error));
    free(ends);
    free(tokens);
}

static struct index_column column_at(const char *name, uint32_t number)
{
    struct index index;
    struct index_column columns[COLUMNS_MAX];
    char path[700];
    uint32_t count;
    (void)snprintf(path, sizeof path, "%s.tmx", in_folder(folder, name));
    MUST(index_open(&index, path, &error));
    MUST(index_columns(&index, columns, &count, &error));
    assert_in_range(number, 0, count - 1);
    index_close(&index);
    columns[number].name = NULL;
    return columns[number];
}

static void check_number(uint64_t distinct, uint64_t documents, uint64_t at_once, uint64_t code_bytes)
{
    static const char *const names[] = {"number", "same"};
    struct shard_writer *writer = open_writer("numbers", names, 2);
    struct shard_value *values = calloc(2 * at_once, sizeof *values);
    char(*texts)[32] = calloc(at_once, sizeof *texts);
    assert_true(values && texts);
    for (uint64_t d = 0; d < documents;) {
        const uint64_t part = min64(at_once, documents - d);
        for (uint64_t i = 0; i < part; i++, d++) {
            values[2 * i] = (struct shard_value){texts[i], value_text(d, distinct, texts[i])};
            values[2 * i + 1] = (struct shard_value){"{\"a\": [1, 2]}", 13};
        }
        MUST(shard_writer_values(writer, values, part, &error));
    }
    add_documents(writer, documents);
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    free(values);
    free(texts);
    const struct index_column column = column_at("numbers", 0), same = column_at("numbers", 1);
    assert_int_equal(column.head.code_bytes, code_bytes);
    assert_int_equal(column.head.values, code_bytes ? min64(distinct, documents) : documents);
    assert_int_equal(same.head.values, documents ? 1 : 0);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "numbers"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    for (uint64_t d = 0; d < documents; d++) {
        char text[32];
        struct tokmap_value value;
        const uint64_t bytes = value_text(d, distinct, text);
        MUST(tokmap_dataset_value(dataset, d, "number", &value, &error));
        assert_int_equal(value.bytes, bytes);
        assert_memory_equal(value.json, text, bytes);
        MUST(tokmap_dataset_value(dataset, d, "same", &value, &error));
        assert_true(value.bytes == 13 && !memcmp(value.json, "{\"a\": [1, 2]}", 13));
    }
    tokmap_dataset_close(dataset);
}

static void values_are_read_as_they_were_written(void **unused)
{
    (void)unused;
    check_number(1, 0, 1, 1);
    check_number(1, 5, 2, 1);
    check_number(4, 1000, 7, 1);
    check_number(256, 70000, 1000, 1);
    check_number(257, 70000, 1000, 2);
    check_number(65536, 200000, 999, 2);
    check_number(65537, 200000, 999, 0);
    check_number(200000, 200000, 100000, 0);
}

static char *large_value(uint64_t bytes, char fill)
{
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, fill, bytes);
    text[0] = text[bytes - 1] = '"';
    return text;
}

/* Makes all values of 'a' values of 'b', so that the different ones fit into a dictionary: the column must not be
 * plain. */
static void a_plain_column_that_fits_is_refused(void)
{
    size_t bytes;
    struct tokmap_dataset *dataset;
    uint8_t *index = file_read(in_folder(folder, "large.tmx"), &bytes);
    for (size_t i = 0; i + 16 < bytes; i++)
        if (index[i] == 'a' && (index[i + 1] == 'a' || index[i + 1] == '"'))
            index[i] = 'b';
    index_rehash(index, bytes);
    file_write(in_folder(folder, "large.tmx"), index, bytes);
    free(index);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "large"), NULL, &error));
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, NULL, &error), TOKMAP_ERROR_CORRUPT);
    if (!strstr(error.message, "fit into a dictionary"))
        fail_msg("%s", error.message);
    tokmap_dataset_close(dataset);
}

/* 16 values of 1 MiB fill a dictionary; one more byte makes the column plain, and so does a first value of more. */
static void a_dictionary_has_16_mib(void **unused)
{
    (void)unused;
    const uint64_t mib = 1 << 20;
    for (int extra = 0; extra < 3; extra++) {
        static const char *const names[] = {"large"};
        struct shard_writer *writer = open_writer("large", names, 1);
        char *texts[17];
        struct shard_value values[40];
        for (int i = 0; i < 16; i++)
            texts[i] = large_value(mib, (char)('a' + i));
        texts[16] = large_value(17 * mib, 'x');
        for (int i = 0; i < 40; i++)
            values[i] = (struct shard_value){texts[i % 16], mib};
        if (extra == 1)
            values[30] = (struct shard_value){"1", 1};
        if (extra == 2)
            values[0] = (struct shard_value){texts[16], 17 * mib};
        MUST(shard_writer_values(writer, values, 40, &error));
        add_documents(writer, 40);
        MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
        const struct index_column column = column_at("large", 0);
        assert_int_equal(column.head.code_bytes, extra ? 0 : 1);
        assert_int_equal(column.head.values, extra ? 40 : 16);
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, "large"), NULL, &error));
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        for (uint64_t d = 0; d < 40; d++) {
            struct tokmap_value value;
            MUST(tokmap_dataset_value(dataset, d, "large", &value, &error));
            assert_int_equal(value.bytes, values[d].bytes);
            assert_memory_equal(value.json, values[d].json, value.bytes);
        }
        tokmap_dataset_close(dataset);
        if (extra == 1)
            a_plain_column_that_fits_is_refused();
        for (int i = 0; i < 17; i++)
            free(texts[i]);
    }
}

/* Values may come before or after their tokens; the bytes of the index are the same. */
static void the_order_of_calls_does_not_matter(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a", "b.c"};
    const struct shard_value values[] = {{"1", 1}, {"", 0}, {"\"x\"", 3}, {NULL, 0}, {"null", 4}, {"[]", 2}};
    for (int after = 0; after < 2; after++) {
        struct shard_writer *writer = open_writer(after ? "after" : "before", names, 2);
        if (!after)
            MUST(shard_writer_values(writer, values, 3, &error));
        add_documents(writer, 3);
        for (int d = 0; after && d < 3; d++)
            MUST(shard_writer_values(writer, values + 2 * d, 1, &error));
        MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    }
    size_t one_bytes, other_bytes;
    uint8_t *one = file_read(in_folder(folder, "before.tmx"), &one_bytes);
    uint8_t *other = file_read(in_folder(folder, "after.tmx"), &other_bytes);
    assert_int_equal(one_bytes, other_bytes);
    assert_memory_equal(one, other, one_bytes);
    assert_int_equal(load16(one + 10), 3); /* minor version */
    free(one);
    free(other);
}

static void wrong_calls_are_refused(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a", "b"};
    static const struct shard_value wrong[] = {{" 1", 2},       {"1 ", 2}, {"01", 2}, {"x", 1},      {"1 2", 3},
                                               {"\"\xff\"", 3}, {"\"", 1}, {"[1", 2}, {"\"\n\"", 3}, {"\0", 1}};
    struct shard_writer *writer = open_writer("wrong", names, 2);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct shard_value values[] = {{"1", 1}, {"2", 1}, {"3", 1}, wrong[i]};
        assert_int_equal(shard_writer_values(writer, values, 2, &error), TOKMAP_ERROR_INPUT);
        assert_non_null(strstr(error.message, "column 'b' for document 1"));
    }
    const struct shard_value good[] = {{"1", 1}, {"2", 1}};
    MUST(shard_writer_values(writer, good, 1, &error)); /* nothing of the refused calls was stored */
    add_documents(writer, 2);
    assert_int_equal(shard_writer_commit(writer, NULL, 0, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "1 documents have values"));
    writer = open_writer("wrong", NULL, 0);
    assert_int_equal(shard_writer_values(writer, good, 1, &error), TOKMAP_ERROR_ARGUMENT);
    shard_writer_abort(writer);
    char *long_name = large_value(1026, 'n');
    long_name[1025] = 0;
    const char *const bad[][2] = {{"a", "a"}, {"", "b"}, {"a", "\xff"}, {"a", long_name}};
    for (int i = 0; i < 4; i++) {
        struct shard_writer_options options = plain_options(2);
        options.columns = bad[i];
        options.column_count = 2;
        assert_int_equal(shard_writer_open(&writer, in_folder(folder, "bad"), &options, &error), TOKMAP_ERROR_ARGUMENT);
        assert_string_equal(error.field, "columns");
    }
    free(long_name);
    struct shard_writer_options options = plain_options(2);
    options.columns = names;
    options.column_count = COLUMNS_MAX + 1;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "bad"), &options, &error), TOKMAP_ERROR_LIMIT);
}

/* A million different values of 58 bytes are 58 MB; the writer holds a dictionary of 65,536 of them. */
static void memory_does_not_grow_with_documents(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 1000000 };
    static const char *const names[] = {"url"};
    struct shard_writer *writer = open_writer("many", names, 1);
    add_documents(writer, DOCUMENTS);
    const uint64_t before = memory_peak();
    for (uint64_t d = 0; d < DOCUMENTS; d++) {
        char text[64];
        const int bytes = snprintf(text, sizeof text, "\"https://example.org/%036llu\"", (unsigned long long)d);
        const struct shard_value value = {text, (uint64_t)bytes};
        MUST(shard_writer_values(writer, &value, 1, &error));
    }
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    if (before)
        assert_in_range(memory_peak() - before, 0, 20 << 20);
    assert_int_equal(column_at("many", 0).head.values, DOCUMENTS);
}

/* The columns of parts, and of shards that have different ones. */
static void datasets_have_the_columns_of_their_shards(void **unused)
{
    (void)unused;
    static const char *const names[] = {"lang", "url"};
    const uint64_t ends[] = {5, 9, 30};
    assert_int_equal(os_make_folder(in_folder(folder, "d")), 0);
    shard_make_columns(in_folder(folder, "d/a"), 2, 0, ends, 3);
    shard_make(in_folder(folder, "d/b"), 2, 30, ends, 3);
    struct shard_writer *writer = open_writer("d/c", names, 2);
    const struct shard_value values[] = {{"\"en\"", 4}, {"7", 1}};
    MUST(shard_writer_values(writer, values, 1, &error));
    add_documents(writer, 1);
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    struct tokmap_dataset *dataset;
    struct tokmap_value value;
    const char *found[4];
    size_t count;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "d/"), NULL, &error));
    MUST(tokmap_dataset_columns(dataset, found, 4, &count, &error));
    assert_int_equal(count, 3);
    assert_string_equal(found[0], "url");
    assert_string_equal(found[1], "meta.score");
    assert_string_equal(found[2], "lang");
    assert_int_equal(tokmap_dataset_columns(dataset, found, 2, &count, &error), TOKMAP_ERROR_LIMIT);
    assert_int_equal(count, 3);
    MUST(tokmap_dataset_columns(dataset, NULL, 0, &count, &error));
    assert_int_equal(count, 3);
    struct tokmap_column_info info = TOKMAP_COLUMN_INFO_INIT;
    MUST(tokmap_dataset_column(dataset, "url", &info, &error));
    assert_true(info.shards == 2 && info.documents == 4 && info.values == 4 && info.bytes > 60);
    assert_int_equal(tokmap_dataset_column(dataset, "nothing", &info, &error), TOKMAP_ERROR_NOT_FOUND);
    static const char *const urls[] = {
        "\"https://example.org/0\"", "\"https://example.org/1\"", "\"https://example.org/2\"", "", "", "", "7"};
    for (uint64_t d = 0; d < 7; d++) {
        MUST(tokmap_dataset_value(dataset, d, "url", &value, &error));
        assert_int_equal(value.bytes, strlen(urls[d]));
        assert_memory_equal(value.json, urls[d], value.bytes);
    }
    assert_int_equal(tokmap_dataset_value(dataset, 7, "url", &value, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_value(dataset, 0, "uri", &value, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(tokmap_dataset_value(dataset, 0, NULL, &value, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_dataset_close(dataset);
    char part[700];
    (void)snprintf(part, sizeof part, "%s#docs=1..3", in_folder(folder, "d/a"));
    MUST(tokmap_dataset_open(&dataset, part, NULL, &error));
    MUST(tokmap_dataset_value(dataset, 0, "url", &value, &error));
    assert_memory_equal(value.json, urls[1], value.bytes);
    MUST(tokmap_dataset_value(dataset, 1, "meta.score", &value, &error));
    assert_true(value.bytes == 4 && !memcmp(value.json, "-1.5", 4));
    assert_int_equal(tokmap_dataset_value(dataset, 2, "url", &value, &error), TOKMAP_ERROR_RANGE);
    tokmap_dataset_close(dataset);
    MUST(tokmap_dataset_open(&dataset, "synthetic:vocab=100,tokens=1000", NULL, &error));
    MUST(tokmap_dataset_columns(dataset, NULL, 0, &count, &error));
    assert_int_equal(count, 0);
    assert_int_equal(tokmap_dataset_value(dataset, 0, "url", &value, &error), TOKMAP_ERROR_NOT_FOUND);
    tokmap_dataset_close(dataset);
}

/* The content id covers tokens and documents alone. */
static void columns_do_not_change_the_content_id(void **unused)
{
    (void)unused;
    const uint64_t ends[] = {5, 9, 30};
    struct tokmap_dataset_info with = TOKMAP_DATASET_INFO_INIT, without = {.size = sizeof without};
    struct tokmap_dataset *dataset;
    shard_make_columns(in_folder(folder, "with"), 2, 0, ends, 3);
    shard_make(in_folder(folder, "without"), 2, 0, ends, 3);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "with"), NULL, &error));
    MUST(tokmap_dataset_info(dataset, &with));
    tokmap_dataset_close(dataset);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "without"), NULL, &error));
    MUST(tokmap_dataset_info(dataset, &without));
    tokmap_dataset_close(dataset);
    assert_memory_equal(with.content, without.content, 16);
}

/* A mask that is added later, and one that replaces it, leave every value as it was. */
static void a_mask_that_is_added_keeps_the_columns(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 3, TOKENS = 30, COLUMNS_READ = 8 };
    const uint64_t ends[DOCUMENTS] = {5, 9, TOKENS};
    const char *names[COLUMNS_READ];
    struct shard_mask_result result;
    struct tokmap_dataset *before, *after;
    size_t count, still;
    char index[700], bytes[TOKENS];
    shard_make_columns(in_folder(folder, "later"), 2, 0, ends, DOCUMENTS);
    MUST(tokmap_dataset_open(&before, in_folder(folder, "later"), NULL, &error));
    MUST(tokmap_dataset_columns(before, names, COLUMNS_READ, &count, &error));
    assert_in_range(count, 1, COLUMNS_READ);
    (void)snprintf(index, sizeof index, "%s.tmx", in_folder(folder, "later"));
    for (int time = 0; time < 2; time++) {
        for (int i = 0; i < TOKENS; i++)
            bytes[i] = (char)(i % (time + 2) == 0);
        file_write(in_folder(folder, "mask bytes"), bytes, sizeof bytes);
        MUST(shard_mask_add(index, in_folder(folder, "mask bytes"), time == 1, &result, &error));
        assert_int_equal(result.counted, TOKENS / (time + 2));
        MUST(tokmap_dataset_open(&after, in_folder(folder, "later"), NULL, &error));
        MUST(tokmap_dataset_verify(after, NULL, NULL, &error));
        MUST(tokmap_dataset_columns(after, NULL, 0, &still, &error));
        assert_int_equal(still, count);
        for (size_t c = 0; c < count; c++)
            for (uint64_t d = 0; d < DOCUMENTS; d++) {
                struct tokmap_value old, new;
                MUST(tokmap_dataset_value(before, d, names[c], &old, &error));
                MUST(tokmap_dataset_value(after, d, names[c], &new, &error));
                assert_int_equal(new.bytes, old.bytes);
                assert_memory_equal(new.json, old.json, old.bytes);
            }
        tokmap_dataset_close(after);
    }
    tokmap_dataset_close(before);
}

/* Adds `count` values that differ. Returns the slots that were passed over. colliding: values whose hash, if it were
 * XXH3 without a key, would select one of the first 64 slots of 2^14. The test counts steps and measures no time. */
static uint64_t passed_over(uint32_t count, bool colliding)
{
    static const char *const names[] = {"value"};
    struct columns_writer writer;
    assert_int_equal(columns_writer_init(&writer, names, 1, folder), 0);
    for (uint32_t number = 0, made = 0; made < count; number++) {
        char text[32];
        const struct shard_value value = {text, (uint64_t)snprintf(text, sizeof text, "%u", number)};
        if (colliding && (hash64(text, (size_t)value.bytes) >> 32 & 0x3FFF) >= 64)
            continue;
        assert_int_equal(columns_writer_add(&writer, &value, 1), 0);
        made++;
    }
    const uint64_t passed = writer.columns[0].passed;
    assert_int_equal(writer.columns[0].values, count);
    columns_writer_free(&writer);
    return passed;
}

static void colliding_values_cost_no_more(void **state)
{
    (void)state;
    table_key_fix(1); /* a random key in a hundred spreads so unevenly that the bound would need slack */
    assert_in_range(passed_over(8000, false), 0, 2 * 8000);
    assert_in_range(passed_over(8000, true), 0, 2 * 8000);
    table_key_fix(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_as_they_were_written),
        cmocka_unit_test(a_dictionary_has_16_mib),
        cmocka_unit_test(the_order_of_calls_does_not_matter),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(memory_does_not_grow_with_documents),
        cmocka_unit_test(datasets_have_the_columns_of_their_shards),
        cmocka_unit_test(columns_do_not_change_the_content_id),
        cmocka_unit_test(a_mask_that_is_added_keeps_the_columns),
        cmocka_unit_test(colliding_values_cost_no_more),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
