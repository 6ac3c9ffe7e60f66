/* SPDX-License-Identifier: MIT */
/* test_vocabulary_limits.c - vocabularies that are too large: the error is ERROR_LIMIT and names the limit. It is not
 * ERROR_MEMORY, whose advice to free memory would not help. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "vocabulary/byte_level.h"
#include "vocabulary/hf/hf_engines.h"
#include "vocabulary/hf/hf_file.h"
#include "vocabulary/hf/hf_model.h"
#include "vocabulary/text_table.h"
#include "vocabulary/vocabulary.h"

static void expect_limit(enum tokmap_status status, const struct tokmap_error *error, const char *word)
{
    if (status != TOKMAP_ERROR_LIMIT || error->status != status || !strstr(error->message, word))
        fail_msg("expected ERROR_LIMIT and '%s', got %d: %s", word, (int)status, error->message);
}

/* 2^21 texts fit, one more does not. */
static void texts(void **state)
{
    struct text_table table = {0};
    uint32_t *numbers = malloc((TEXT_TABLE_MOST + (size_t)1) * sizeof *numbers);
    assert_non_null(numbers);
    for (uint32_t i = 0; i <= TEXT_TABLE_MOST; i++) {
        numbers[i] = i;
        const enum text_added added = text_table_add(&table, (const uint8_t *)&numbers[i], sizeof *numbers, i / 2);
        assert_int_equal(added, i < TEXT_TABLE_MOST ? TEXT_ADDED : TEXT_FULL);
    }
    assert_int_equal(table.count, TEXT_TABLE_MOST);
    const uint32_t last = TEXT_TABLE_MOST - 1;
    assert_int_equal(text_table_find(&table, (const uint8_t *)&last, sizeof last), last / 2);
    text_table_free(&table);
    free(numbers);
}

/* Appends a text `count` times. */
static char *repeat(char *into, const char *text, size_t count)
{
    const size_t bytes = strlen(text);
    for (size_t i = 0; i < count; i++)
        into = (char *)memcpy(into, text, bytes) + bytes;
    return into;
}

static void open_text(const char *text, size_t bytes, const char *word)
{
    const struct tokmap_tokenizer_options options = {.pattern = NULL};
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    const enum tokmap_status status = hf_file_open(&tokenizer, "tokenizer.json", text, bytes, &options, &error);
    expect_limit(status, &error, word);
    assert_null(tokenizer);
}

static void added_tokens(void **state)
{
    static const char token[] = "{\"id\":0,\"content\":\"\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                                "\"normalized\":false,\"special\":false},";
    const size_t count = (1 << 20) + 1;
    char *text = malloc(count * (sizeof token - 1) + 64);
    assert_non_null(text);
    char *end = repeat(text, "{\"added_tokens\":[", 1);
    end = repeat(end, token, count);
    end = repeat(end - 1, "]}", 1);
    open_text(text, (size_t)(end - text), "added_tokens has more than 1048576 tokens");
    free(text);
}

static void merges(void **state)
{
    const size_t count = BPE_MERGES + (size_t)1;
    char *text = malloc(count * 6 + 128);
    assert_non_null(text);
    char *end = repeat(text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[", 1);
    end = repeat(end, "\"a b\",", count);
    end = repeat(end - 1, "]}}", 1);
    open_text(text, (size_t)(end - text), "more than 4194303 merges");
    free(text);
}

/* Tokens of 4 GiB together; no file of at most 1 GiB has them, so the table is made by hand. */
static void bytes(void **state)
{
    const uint32_t count = 1 << 16, length = 65535 + 1;
    struct hf_model model = {.fuse_unk = false};
    struct pipeline_parts parts = {.vocabulary = count};
    struct split_rules rules = {0};
    struct tokmap_error error = {0};
    struct json_file file = {0};
    const struct hf_splits splits = {.count = 0};
    uint8_t *text = calloc(1, length);
    struct text_entry *entries = malloc(count * sizeof *entries);
    assert_true(text && entries);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct text_entry){text, length, i};
    model.vocabulary.entries = entries;
    model.vocabulary.count = model.vocabulary.ids = count;
    expect_limit(byte_level_build(&parts, &model, &rules, "test", &error), &error, "4 GiB");
    assert_true(json_file_begin(&file, "test", "{}", 2, &error));
    memset(&error, 0, sizeof error);
    assert_false(hf_characters_join(&file, &model, &splits, true, &parts));
    expect_limit(json_file_status(&file), &error, "4 GiB");
    json_file_end(&file);
    pipeline_parts_free(&parts);
    free(entries);
    free(text);
}

/* A file of more than 1 GiB, which is one large hole. */
static void file(void **state)
{
    const char *scratch = getenv("TMPDIR");
    char path[640];
    int fd;
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    snprintf(path, sizeof path, "%s/test_vocabulary_limits.%llu", scratch ? scratch : "/tmp",
             (unsigned long long)os_clock_ns());
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_truncate(fd, ((uint64_t)1 << 30) + 1), 0);
    os_close(fd);
    expect_limit(vocabulary_open(&tokenizer, path, NULL, &error), &error, "1073741825 bytes");
    assert_null(tokenizer);
    assert_string_equal(error.path, path);
    assert_int_equal(os_unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts), cmocka_unit_test(added_tokens), cmocka_unit_test(merges),
        cmocka_unit_test(bytes), cmocka_unit_test(file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
