/* SPDX-License-Identifier: MIT */
/* test_bpe_golden.c - real rank files: ids equal the stored ids of the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/awkward_text.h"
#include "support/decode_once.h"
#include "support/reference_data.h"
#include "vocabulary/vocabulary.h"

static const struct {
    const char *name, *path;
} vocabularies[] = {
    {"r50k_base", "vocab/openai/r50k_base.tiktoken"},     {"p50k_base", "vocab/openai/p50k_base.tiktoken"},
    {"cl100k_base", "vocab/openai/cl100k_base.tiktoken"}, {"o200k_base", "vocab/openai/o200k_base.tiktoken"},
    {"llama3", "vocab/llama3/tokenizer.model"},
};
#define VOCABULARIES (sizeof vocabularies / sizeof vocabularies[0])

static const char *data;
static struct tokenizer *tokenizers[VOCABULARIES];
static struct tokenizer_state *states[VOCABULARIES];

static uint32_t *encode(size_t which, const char *text, size_t bytes, size_t *count)
{
    struct tokmap_error error;
    const struct tokenizer_info info = info_of_tokenizer(tokenizers[which]);
    const struct tokmap_text document = {text, bytes};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    uint64_t end;
    struct tokenizer_out out = {.tokens = malloc(bytes * info.width + 1), .capacity = bytes, .ends = &end};
    uint32_t *ids = malloc(bytes * sizeof *ids + 1);
    assert_non_null(out.tokens);
    assert_non_null(ids);
    assert_int_equal(tokenizer_encode(states[which], &batch, &out, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < out.count; i++)
        ids[i] = info.width == 4 ? ((uint32_t *)out.tokens)[i] : ((uint16_t *)out.tokens)[i];
    struct text_buffer back = {0};
    assert_int_equal(tokenizer_decode(tokenizers[which], out.tokens, out.count, false, false, &back, &error),
                     TOKMAP_OK);
    assert_int_equal(back.count, bytes);
    if (bytes)
        assert_memory_equal(back.bytes, text, bytes);
    free(back.bytes);
    free(out.tokens);
    *count = out.count;
    return ids;
}

static void check_lines(size_t which, const char *kind)
{
    char path[1024];
    size_t bytes, checked = 0;
    snprintf(path, sizeof path, "%s/golden/%s.%s.jsonl", data, vocabularies[which].name, kind);
    char *content = reference_read(path, &bytes);
    assert_non_null(content);
    for (char *line = content; line && *line;) {
        char *end = strchr(line, '\n'), *text;
        uint32_t *expected;
        size_t text_bytes, expected_count, count;
        if (end)
            *end = 0;
        if (golden_line(line, &text, &text_bytes, &expected, &expected_count)) {
            uint32_t *ids = encode(which, text, text_bytes, &count);
            if (count != expected_count || (count && memcmp(ids, expected, count * sizeof *ids)))
                fail_msg("%s: %.300s", vocabularies[which].name, line);
            checked++;
            free(ids);
            free(text);
            free(expected);
        }
        line = end ? end + 1 : NULL;
    }
    free(content);
    print_message("%s %s: %zu strings\n", vocabularies[which].name, kind, checked);
    assert_true(checked > 100);
}

static void strings(void **state)
{
    for (size_t i = 0; i < VOCABULARIES; i++) {
        check_lines(i, "strings");
        check_lines(i, "fuzz");
    }
}

/* The fields of files.tsv: golden name, vocabulary, file, mode, special tokens, number of ids, and SHA-256 of the
 * ids as little-endian 32-bit integers. */
static void files(void **state)
{
    char path[1024];
    size_t bytes;
    int checked = 0, number = 0;
    snprintf(path, sizeof path, "%s/golden/files.tsv", data);
    char *content = reference_read(path, &bytes);
    assert_non_null(content);
    for (char *line = content, *end; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = 0;
        char *field[7] = {line}, hex[65];
        for (int i = 1; i < 7 && field[i - 1]; i++)
            if ((field[i] = strchr(field[i - 1], '\t')) != NULL)
                *field[i]++ = 0;
        if (!field[6] || strcmp(field[3], "raw") || strcmp(field[4], "ordinary"))
            continue;
        for (size_t i = 0; i < VOCABULARIES; i++) {
            if (strcmp(field[0], vocabularies[i].name))
                continue;
            size_t count;
            if (number++ % 8 >= awkward_rounds(8)) /* fewer files on slow machines */
                continue;
            snprintf(path, sizeof path, "%s/%s", data, field[2]);
            char *text = reference_read(path, &bytes);
            assert_non_null(text);
            uint32_t *ids = encode(i, text, bytes, &count);
            sha256_hex(ids, count * sizeof *ids, hex);
            if (count != strtoul(field[5], NULL, 10) || strcmp(hex, field[6]))
                fail_msg("%s %s: %zu ids; expected %s, with another SHA-256 or number", field[0], field[2], count,
                         field[5]);
            free(ids);
            free(text);
            checked++;
        }
    }
    free(content);
    print_message("%d files\n", checked);
    assert_true(checked > awkward_rounds(100));
}

static void digest(void **state)
{
    char hex[65];
    sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int main(void)
{
    struct tokmap_error error;
    char path[1024];
    data = reference_data();
    if (!data) {
        printf("1..0 # SKIP no reference data\n");
        return 77;
    }
    for (size_t i = 0; i < VOCABULARIES; i++) {
        snprintf(path, sizeof path, "%s/%s", data, vocabularies[i].path);
        if (vocabulary_open(&tokenizers[i], path, NULL, &error) ||
            tokenizer_state_new(&states[i], tokenizers[i], &error)) {
            printf("%s: %s\n", path, error.message);
            return 1;
        }
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(digest), cmocka_unit_test(strings), cmocka_unit_test(files)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < VOCABULARIES; i++) {
        tokenizer_state_free(states[i]);
        tokenizer_close(tokenizers[i]);
    }
    return failed;
}
