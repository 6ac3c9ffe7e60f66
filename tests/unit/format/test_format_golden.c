/* SPDX-License-Identifier: MIT */
/*
 * test_format_golden.c - the writer still writes the four small shards of tests/golden byte for byte, and the reader
 * still reads them. If this test has to change, the format has changed, which needs a new version and a line in
 * FORMAT.md's history.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/shard_seal.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

/* The folder below tests/golden from which a test reads: "before_pages/" has what the writer wrote before format 1.3.
 */
static const char *version = "";

static const char *golden(const char *name)
{
    const char *top = getenv("TOP");
    char path[600];
    (void)snprintf(path, sizeof path, "tests/golden/%s%s", version, name);
    return in_folder(top ? top : ".", path);
}

/* Text encoded by the byte tokenizer, from three files. One file has several records, with a gap in their numbers and
 * an empty document. */
static void make_narrow(void)
{
    static const struct {
        const char *path;
        uint64_t record;
        const char *text;
    } documents[] = {
        {"a.txt", 0, "Hello"},   {"b.jsonl", 0, "tokmap"}, {"b.jsonl", 1, ""}, {"b.jsonl", 4, "\xc3\xa4\xe2\x82\xac"},
        {"c/d e.txt", 0, "end"},
    };
    struct shard_writer_options options = plain_options(2);
    options.vocabulary = 257;
    options.eod_id = 256;
    for (uint8_t i = 0; i < 16; i++)
        options.tokenizer[i] = (uint8_t)(i * 17);
    struct shard_writer *writer;
    MUST(shard_writer_open(&writer, in_folder(folder, "narrow"), &options, &error));
    for (size_t d = 0; d < sizeof documents / sizeof documents[0]; d++) {
        uint16_t tokens[16];
        uint64_t count = strlen(documents[d].text);
        for (uint64_t i = 0; i < count; i++)
            tokens[i] = (uint8_t)documents[d].text[i];
        tokens[count++] = 256;
        MUST(shard_writer_origin(writer, documents[d].path, strlen(documents[d].path), documents[d].record, &error));
        MUST(shard_writer_add(writer, tokens, count, &count, 1, 256, &error));
    }
    static const char about[] = "{\"tokenizer\": \"bytes\"}";
    MUST(shard_writer_commit(writer, about, sizeof about - 1, NULL, &error));
}

/* Two documents of a prompt, which does not count, and an answer, which does. */
static void make_masked(void)
{
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    uint16_t tokens[20];
    const uint64_t ends[] = {12, 20};
    const uint8_t bits[] = {0xc0, 0x0f, 0x0c}; /* tokens 6 to 11, 18, and 19 */
    for (uint16_t i = 0; i < 20; i++)
        tokens[i] = (uint16_t)(100 + i);
    options.mask = true;
    options.vocabulary = 257;
    MUST(shard_writer_open(&writer, in_folder(folder, "masked"), &options, &error));
    MUST(shard_writer_add(writer, tokens, 20, ends, 2, 119, &error));
    MUST(shard_writer_mask(writer, bits, 0, 20, &error));
    MUST(shard_writer_commit(writer, "", 0, NULL, &error));
}

/* Three documents with two columns; records lack the first field, or have null. */
static void make_columns(void)
{
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    const uint16_t tokens[] = {1, 2, 3, 4, 5, 6};
    const uint64_t ends[] = {2, 2, 6};
    const struct shard_value values[] = {
        {"\"en\"", 4}, {"{\"s\": [0.5, null]}", 18}, {"", 0}, {"null", 4}, {"\"en\"", 4}, {"\"\\u00e4\"", 8}};
    options.vocabulary = 257;
    options.columns = (const char *const[]){"lang", "meta.scores"};
    options.column_count = 2;
    MUST(shard_writer_open(&writer, in_folder(folder, "columns"), &options, &error));
    MUST(shard_writer_add(writer, tokens, 6, ends, 3, 6, &error));
    MUST(shard_writer_values(writer, values, 3, &error));
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
}

/* 4-byte ids, a BOS, documents without an EOD, no origin section, and no about text. */
static void make_wide(void)
{
    struct shard_writer_options options = plain_options(4);
    options.vocabulary = 200000;
    options.bos_id = 199999;
    struct shard_writer *writer;
    MUST(shard_writer_open(&writer, in_folder(folder, "wide"), &options, &error));
    uint32_t tokens[100];
    for (uint32_t i = 0; i < 100; i++)
        tokens[i] = i % 25 ? i * 1999 : 199999;
    uint64_t ends[] = {25, 25, 50, 75};
    MUST(shard_writer_add(writer, tokens, 80, ends, 4, 199999, &error));
    uint64_t end = 20;
    MUST(shard_writer_add(writer, tokens + 80, 20, &end, 1, 197901, &error));
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
}

static void compare(const char *name)
{
    size_t made_bytes, golden_bytes;
    uint8_t *made = file_read(in_folder(folder, name), &made_bytes), *kept = file_read(golden(name), &golden_bytes);
    assert_int_equal(made_bytes, golden_bytes);
    for (size_t i = 0; i < made_bytes; i++)
        if (made[i] != kept[i])
            fail_msg("%s differs from the golden file at byte %zu", name, i);
    free(made);
    free(kept);
}

static void the_writer_writes_the_golden_bytes(void **unused)
{
    (void)unused;
    make_narrow();
    make_wide();
    make_masked();
    make_columns();
    compare("columns.bin");
    compare("columns.tmx");
    compare("narrow.bin");
    compare("narrow.tmx");
    compare("wide.bin");
    compare("wide.tmx");
    compare("masked.bin");
    compare("masked.tmx");
    compare("masked.mask");
}

static void the_reader_reads_the_narrow_shard(void **older)
{
    version = *older ? *older : "";
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, golden("narrow"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_int_equal(info.page_hashes, !*version);
    assert_true(info.tokens == 24 && info.documents == 5 && info.width == 2 && info.vocabulary == 257);
    assert_true(info.largest_id == 256 && info.eod_id == 256 && info.bos_id == TOKMAP_NO_ID);
    assert_int_equal(info.tokenizer[15], 255);
    static const struct {
        uint64_t first, tokens, record;
        const char *path;
    } expected[] = {{0, 6, 0, "a.txt"},
                    {6, 7, 0, "b.jsonl"},
                    {13, 1, 1, "b.jsonl"},
                    {14, 6, 4, "b.jsonl"},
                    {20, 4, 0, "c/d e.txt"}};
    for (uint64_t d = 0; d < 5; d++) {
        struct tokmap_document document;
        struct tokmap_origin origin;
        MUST(tokmap_dataset_document(dataset, d, &document, &error));
        MUST(tokmap_dataset_origin(dataset, d, &origin, &error));
        assert_true(document.first_token == expected[d].first && document.tokens == expected[d].tokens);
        assert_int_equal(origin.record, expected[d].record);
        assert_int_equal(origin.path_bytes, strlen(expected[d].path));
        assert_memory_equal(origin.path, expected[d].path, origin.path_bytes);
    }
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    MUST(tokmap_dataset_shard(dataset, 0, &shard, &error));
    assert_int_equal(shard.about_bytes, 22);
    assert_memory_equal(shard.about, "{\"tokenizer\": \"bytes\"}", 22);
    uint16_t tokens[6], hello[] = {'H', 'e', 'l', 'l', 'o', 256};
    MUST(tokmap_dataset_copy(dataset, 0, 6, tokens, &error));
    assert_memory_equal(tokens, hello, sizeof hello);
    tokmap_dataset_close(dataset);
}

/* The shard narrow, sealed. Other versions of zstd may compress it to other bytes, so only reading is compared. */
static void the_sealed_shard_is_the_narrow_one(void **unused)
{
    (void)unused;
    const struct shard_seal_options options = {.unseal = true, .threads = 1};
    struct shard_seal_result result;
    struct tokmap_dataset *dataset;
    uint16_t tokens[24];
    size_t bytes;
    version = "";
    uint8_t *plain = file_read(golden("narrow.bin"), &bytes);
    MUST(tokmap_dataset_open(&dataset, golden("sealed"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    MUST(tokmap_dataset_copy(dataset, 0, 24, tokens, &error));
    assert_int_equal(bytes, sizeof tokens);
    assert_memory_equal(tokens, plain, bytes);
    tokmap_dataset_close(dataset);
    free(plain);
    file_copy(golden("sealed.tmx"), in_folder(folder, "narrow.tmx"));
    file_copy(golden("sealed.bin.zst"), in_folder(folder, "narrow.bin.zst"));
    (void)os_unlink(in_folder(folder, "narrow.bin"));
    MUST(shard_seal(in_folder(folder, "narrow.tmx"), &options, &result, &error));
    compare("narrow.bin");
    compare("narrow.tmx");
}

static void the_reader_reads_the_wide_shard(void **older)
{
    version = *older ? *older : "";
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, golden("wide.tmx"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_true(info.tokens == 100 && info.documents == 5 && info.width == 4 && info.vocabulary == 200000);
    assert_true(info.largest_id == 199999 && info.eod_id == TOKMAP_NO_ID && info.bos_id == 199999);
    struct tokmap_origin origin;
    assert_int_equal(tokmap_dataset_origin(dataset, 0, &origin, &error), TOKMAP_ERROR_NOT_FOUND);
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    MUST(tokmap_dataset_shard(dataset, 0, &shard, &error));
    assert_int_equal(shard.about_bytes, 0);
    struct tokmap_document document;
    MUST(tokmap_dataset_document_at(dataset, 25, &document, &error));
    assert_true(document.number == 2 && document.first_token == 25 && document.tokens == 25);
    uint32_t token;
    MUST(tokmap_dataset_copy(dataset, 99, 1, &token, &error));
    assert_int_equal(token, 99 * 1999);
    tokmap_dataset_close(dataset);
}

static void the_reader_reads_the_masked_shard(void **older)
{
    version = *older ? *older : "";
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, golden("masked"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    static const uint8_t identity[16] = {0x97, 0xa3, 0x98, 0x1d, 0x7d, 0xfd, 0x4c, 0x1b,
                                         0xfe, 0x1f, 0x90, 0x87, 0x9e, 0x07, 0x61, 0x44};
    assert_memory_equal(info.content, identity, 16);
    uint8_t bits[3];
    assert_true(info.tokens == 20 && info.documents == 2 && info.masked == 1);
    MUST(tokmap_dataset_mask(dataset, 0, 20, bits, &error));
    assert_true(bits[0] == 0xc0 && bits[1] == 0x0f && bits[2] == 0x0c);
    tokmap_dataset_close(dataset);
}

static void the_reader_reads_the_shard_with_columns(void **older)
{
    version = *older ? *older : "";
    struct tokmap_dataset *dataset;
    static const char *const langs[] = {"\"en\"", "", "\"en\""};
    static const char *const scores[] = {"{\"s\": [0.5, null]}", "null", "\"\\u00e4\""};
    MUST(tokmap_dataset_open(&dataset, golden("columns"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    for (uint64_t d = 0; d < 3; d++) {
        struct tokmap_value value;
        MUST(tokmap_dataset_value(dataset, d, "lang", &value, &error));
        assert_int_equal(value.bytes, strlen(langs[d]));
        assert_memory_equal(value.json, langs[d], value.bytes);
        MUST(tokmap_dataset_value(dataset, d, "meta.scores", &value, &error));
        assert_int_equal(value.bytes, strlen(scores[d]));
        assert_memory_equal(value.json, scores[d], value.bytes);
    }
    tokmap_dataset_close(dataset);
}

int main(void)
{
    static char older[] = "before_pages/";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_writer_writes_the_golden_bytes),
        cmocka_unit_test(the_reader_reads_the_narrow_shard),
        cmocka_unit_test(the_sealed_shard_is_the_narrow_one),
        cmocka_unit_test(the_reader_reads_the_wide_shard),
        cmocka_unit_test(the_reader_reads_the_masked_shard),
        cmocka_unit_test(the_reader_reads_the_shard_with_columns),
        cmocka_unit_test_prestate(the_reader_reads_the_narrow_shard, older),
        cmocka_unit_test_prestate(the_reader_reads_the_wide_shard, older),
        cmocka_unit_test_prestate(the_reader_reads_the_masked_shard, older),
        cmocka_unit_test_prestate(the_reader_reads_the_shard_with_columns, older),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
