/* SPDX-License-Identifier: MIT */
/*
 * test_conformance.c - the Python reader in tests/conformance, which was written from FORMAT.md alone, and the library
 * print the same about the same shards.
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
#include "format/layout.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static const char *top(void)
{
    const char *found = getenv("TOP");
    return found ? found : ".";
}

#define TEXT_BYTES ((size_t)8 << 20)

/* Returns what reader.py prints about a shard, which the caller frees; NULL if Python is missing. */
static char *python_text(const char *prefix)
{
    char command[2600];
    if (system("python3 -c 'import json, struct' >/dev/null 2>&1"))
        return NULL;
    (void)snprintf(command, sizeof command, "python3 -B '%s/tests/conformance/reader.py' '%s' 2>&1", top(), prefix);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t capacity = TEXT_BYTES, used = 0, got;
    char *text = malloc(capacity);
    assert_non_null(text);
    while ((got = fread(text + used, 1, capacity - used - 1, pipe)) > 0)
        used += got;
    text[used] = '\0';
    int status = pclose(pipe);
    if (status)
        fail_msg("reader.py on %s: %s", prefix, text);
    return text;
}

struct text {
    char *bytes;
    size_t used, capacity;
};

static void print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(text->bytes + text->used, text->capacity - text->used, format, arguments);
    va_end(arguments);
    assert_true(count >= 0 && (size_t)count < text->capacity - text->used);
    text->used += (size_t)count;
}

static void print_id(struct text *text, const char *key, uint64_t id)
{
    if (id == TOKMAP_NO_ID)
        print(text, "\"%s\": null, ", key);
    else
        print(text, "\"%s\": %llu, ", key, (unsigned long long)id);
}

static void print_tokens(struct text *text, const struct tokmap_dataset *dataset,
                         const struct tokmap_dataset_info *info)
{
    uint8_t *tokens = malloc(info->tokens * info->width + 1);
    assert_non_null(tokens);
    MUST(tokmap_dataset_copy(dataset, 0, info->tokens, tokens, &error));
    uint64_t sum = 0, shown = min64(info->tokens, 8);
    for (int part = 0; part < 2; part++) {
        print(text, part ? "\"last\": [" : "\"first\": [");
        for (uint64_t i = 0; i < shown; i++) {
            uint64_t at = part ? info->tokens - shown + i : i;
            print(text, "%s%u", i ? ", " : "", info->width == 2 ? load16(tokens + 2 * at) : load32(tokens + 4 * at));
        }
        print(text, "], ");
    }
    for (uint64_t i = 0; i < info->tokens; i++)
        sum += info->width == 2 ? load16(tokens + 2 * i) : load32(tokens + 4 * i);
    print(text, "\"sum\": %llu, ", (unsigned long long)sum);
    free(tokens);
}

/* How many tokens count as targets, and the sum of their numbers. */
static void print_mask(struct text *text, const struct tokmap_dataset *dataset, const struct tokmap_dataset_info *info)
{
    uint64_t count = 0, sum = 0;
    uint8_t *bits = malloc(info->tokens / 8 + 1);
    assert_non_null(bits);
    MUST(tokmap_dataset_mask(dataset, 0, info->tokens, bits, &error));
    for (uint64_t i = 0; i < info->tokens; i++) {
        count += bits[i / 8] >> (i % 8) & 1;
        sum += bits[i / 8] >> (i % 8) & 1 ? i : 0;
    }
    free(bits);
    if (info->masked)
        print(text, "\"mask\": [%llu, %llu], ", (unsigned long long)count, (unsigned long long)sum);
    else
        print(text, "\"mask\": null, ");
}

/* A value of a column as Python prints it as a string; values of these tests are ASCII. */
static void print_value(struct text *text, const struct tokmap_value *value)
{
    print(text, "\"");
    for (uint64_t i = 0; i < value->bytes; i++)
        print(text, strchr("\"\\", value->json[i]) ? "\\%c" : "%c", value->json[i]);
    print(text, "\"");
}

static void print_columns(struct text *text, const struct tokmap_dataset *dataset, uint64_t documents)
{
    const char *names[COLUMNS_MAX];
    size_t count;
    MUST(tokmap_dataset_columns(dataset, names, COLUMNS_MAX, &count, &error));
    print(text, "\"columns\": {");
    for (size_t c = 0; c < count; c++) {
        print(text, "%s\"%s\": [", c ? ", " : "", names[c]);
        for (uint64_t d = 0; d < documents; d++) {
            struct tokmap_value value;
            MUST(tokmap_dataset_value(dataset, d, names[c], &value, &error));
            print(text, d ? ", " : "");
            print_value(text, &value);
        }
        print(text, "]");
    }
    print(text, "}, ");
}

/* Returns the text that reader.py should print, made with the library. The caller frees it. */
static char *library_text(const char *prefix)
{
    struct text text = {malloc(TEXT_BYTES), 0, TEXT_BYTES};
    assert_non_null(text.bytes);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, prefix, NULL, &error));
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    MUST(tokmap_dataset_shard(dataset, 0, &shard, &error));
    char content[33], tokenizer[33];
    hash128_hex(shard.content, content); /* that of the dataset has the mask in it */
    hash128_hex(info.tokenizer, tokenizer);
    print(&text, "{\"tokens\": %llu, \"documents\": %llu, \"width\": %u, \"vocabulary\": %llu, \"largest_id\": %llu, ",
          (unsigned long long)info.tokens, (unsigned long long)info.documents, info.width,
          (unsigned long long)info.vocabulary, (unsigned long long)info.largest_id);
    print_id(&text, "eod_id", info.eod_id);
    print_id(&text, "bos_id", info.bos_id);
    print(&text, "\"content\": \"%s\", \"tokenizer\": \"%s\", \"blocks\": %llu, ", content, tokenizer,
          (unsigned long long)shard.blocks);
    print_tokens(&text, dataset, &info);
    print(&text, "\"ends\": [");
    for (uint64_t d = 0; d < info.documents; d++) {
        struct tokmap_document document;
        MUST(tokmap_dataset_document(dataset, d, &document, &error));
        print(&text, "%s%llu", d ? ", " : "", (unsigned long long)(document.first_token + document.tokens));
    }
    print(&text, "], \"origins\": [");
    for (uint64_t d = 0; d < info.documents; d++) {
        struct tokmap_origin origin;
        if (tokmap_dataset_origin(dataset, d, &origin, &error))
            break;
        print(&text, "%s[\"%.*s\", %llu]", d ? ", " : "", (int)origin.path_bytes, origin.path,
              (unsigned long long)origin.record);
    }
    print(&text, "], ");
    print_mask(&text, dataset, &info);
    print_columns(&text, dataset, info.documents);
    tokmap_dataset_close(dataset);
    return text.bytes;
}

static void compare(const char *prefix)
{
    char *python = python_text(prefix);
    if (!python) {
        printf("python3 is not installed\n");
        skip();
    }
    char *library = library_text(prefix);
    /* The about text is not compared, because Python escapes it. test_format_golden reads it. */
    char *about = strstr(python, "\"about\"");
    assert_non_null(about);
    *about = '\0';
    assert_string_equal(python, library);
    free(python);
    free(library);
}

static void golden_files_read_the_same(void **unused)
{
    (void)unused;
    char prefix[600];
    (void)snprintf(prefix, sizeof prefix, "%s/tests/golden/narrow", top());
    compare(prefix);
    (void)snprintf(prefix, sizeof prefix, "%s/tests/golden/wide", top());
    compare(prefix);
    (void)snprintf(prefix, sizeof prefix, "%s/tests/golden/masked", top());
    compare(prefix);
    (void)snprintf(prefix, sizeof prefix, "%s/tests/golden/columns", top());
    compare(prefix);
}

static void generated_shards_read_the_same(void **unused)
{
    (void)unused;
    uint64_t state = 11;
    for (uint32_t width = 2; width <= 4; width += 2) {
        static const uint64_t sizes[] = {0, 1, 100, 700000};
        for (int s = 0; s < 4; s++) {
            uint64_t ends[301], documents = 0, at = 0;
            while (at < sizes[s] && documents < 300) {
                at += min64(sizes[s] - at, random_below(&state, sizes[s] / 100 + 3));
                ends[documents++] = at;
            }
            if (at < sizes[s])
                ends[documents++] = sizes[s];
            shard_make(in_folder(folder, "made"), width, 0, ends, documents);
            compare(in_folder(folder, "made"));
        }
    }
}

/* Masks of one part, of several, and of whole bytes. */
static void generated_masks_read_the_same(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = {0, 8, 1001, (8 << 20) + 17};
    uint64_t state = 12;
    for (int s = 0; s < 4; s++) {
        struct shard_writer_options options = plain_options(2);
        struct shard_writer *writer;
        uint8_t *bits = malloc(sizes[s] / 8 + 1);
        assert_non_null(bits);
        for (uint64_t i = 0; i <= sizes[s] / 8; i++)
            bits[i] = (uint8_t)random_below(&state, 256);
        options.mask = true;
        options.replace = true;
        MUST(shard_writer_open(&writer, in_folder(folder, "masked"), &options, &error));
        if (sizes[s])
            MUST(shard_writer_add_zeros(writer, sizes[s], &error));
        MUST(shard_writer_mask(writer, bits, 0, sizes[s], &error));
        MUST(shard_writer_commit(writer, "", 0, NULL, &error));
        free(bits);
        if (sizes[s])
            compare(in_folder(folder, "masked"));
    }
}

/* Columns of few values, of more than 256, and of more than a dictionary has. */
static void generated_columns_read_the_same(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 66000 };
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    options.columns = (const char *const[]){"few", "more", "each"};
    options.column_count = 3;
    MUST(shard_writer_open(&writer, in_folder(folder, "columns"), &options, &error));
    for (unsigned d = 0; d < DOCUMENTS; d++) {
        char each[20], more[20];
        const int each_bytes = snprintf(each, sizeof each, "\"%u\"", d);
        const int more_bytes = snprintf(more, sizeof more, "%u", d * 7919 % 300);
        const struct shard_value values[] = {
            {"[true, \"\\n\"]", d % 3 ? 12 : 0}, {more, (uint64_t)more_bytes}, {each, (uint64_t)each_bytes}};
        MUST(shard_writer_add_zeros(writer, d % 2, &error));
        MUST(shard_writer_values(writer, values, 1, &error));
    }
    MUST(shard_writer_commit(writer, "", 0, NULL, &error));
    compare(in_folder(folder, "columns"));
}

static void the_python_reader_refuses_damaged_shards(void **unused)
{
    (void)unused;
    if (system("python3 -c 'import json, struct' >/dev/null 2>&1")) {
        printf("python3 is not installed\n");
        skip();
    }
    uint64_t ends[] = {5, 9};
    shard_make(in_folder(folder, "hurt"), 2, 0, ends, 2);
    size_t bytes;
    uint8_t *index = file_read(in_folder(folder, "hurt.tmx"), &bytes);
    index[20]++; /* the number of sections */
    file_write(in_folder(folder, "hurt.tmx"), index, bytes);
    free(index);
    char command[2600];
    (void)snprintf(command, sizeof command, "python3 -B '%s/tests/conformance/reader.py' '%s' >/dev/null 2>&1", top(),
                   in_folder(folder, "hurt"));
    assert_int_not_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files_read_the_same),
        cmocka_unit_test(generated_shards_read_the_same),
        cmocka_unit_test(generated_masks_read_the_same),
        cmocka_unit_test(generated_columns_read_the_same),
        cmocka_unit_test(the_python_reader_refuses_damaged_shards),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
