/* SPDX-License-Identifier: MIT */
/*
 * test_hf_golden.c - real tokenizer.json, tekken.json, vocab.bpe and SentencePiece files: ids equal the stored ids of
 * the reference, with special tokens as text and recognized. Also an unsupported file, and the fingerprints of one
 * tokenizer in several formats.
 */
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

/* clang-format off */
static const struct {
    const char *strings, *files, *path; /* names of the golden strings and files */
    bool inverse;                       /* decoding returns the text unchanged; false if there is a normalizer */
    uint32_t renumbered; /* lines with a golden id from here on are skipped: these ids were made without the special
                            tokens, so the other added tokens got different numbers; 0: none */
    enum { MARKS = 1,               /* U+2581 is decoded to a space */
           AS_TEXT = 2 } how;       /* the golden ids exist only for special tokens as text */
} vocabularies[] = {
    /* clang-format on */
    {"r50k_base", "gpt2_hf", "vocab/gpt2/tokenizer.json", true, 0, 0},
    {"r50k_base", NULL, "vocab/gpt2/vocab.bpe", true, 0, 0},
    {"llama3", "llama3_hf", "vocab/llama3/tokenizer.json", true, 0, 0},
    {"qwen2.5", "qwen2.5", "vocab/qwen2.5/tokenizer.json", false, 151643, 0},
    {"deepseek_v3", "deepseek_v3", "vocab/deepseek_v3/tokenizer.json", true, 128000, 0},
    {"gpt_neox_20b", "gpt_neox_20b", "vocab/gpt_neox_20b/tokenizer.json", false, 0, 0},
    {"mistral_nemo", "mistral_nemo", "vocab/mistral_nemo/tokenizer.json", true, 0, 0},
    {"mistral_nemo", NULL, "vocab/mistral_nemo/tekken_derived.json", true, 0, 0},
    {"llama2", "llama2", "vocab/llama2/tokenizer.json", true, 0, MARKS | AS_TEXT},
    {"llama2", "llama2", "vocab/llama2/tokenizer.model", true, 0, MARKS | AS_TEXT},
    {"mistral7b_v1", "mistral7b_v1", "vocab/mistral7b_v1/tokenizer.model", true, 0, MARKS | AS_TEXT},
    {"gemma", "gemma", "vocab/gemma/tokenizer.json", true, 0, MARKS},
};
#define VOCABULARIES (sizeof vocabularies / sizeof vocabularies[0])

static const char *data;
static struct tokenizer *tokenizers[VOCABULARIES][2]; /* special tokens as text, and recognized */
static struct tokenizer_state *states[VOCABULARIES][2];

static uint32_t *encode(size_t which, int special, const char *text, size_t bytes, size_t *count)
{
    struct tokmap_error error;
    const struct tokenizer *tokenizer = tokenizers[which][special];
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    const struct tokmap_text document = {text, bytes};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    const uint64_t room = bytes * info.ids_per_byte_most;
    uint64_t end;
    struct tokenizer_out out = {.tokens = malloc(room * info.width + 1), .capacity = room, .ends = &end};
    assert_non_null(out.tokens);
    assert_int_equal(tokenizer_encode(states[which][special], &batch, &out, &error), TOKMAP_OK);
    assert_int_equal(end, out.count);
    uint32_t *ids = malloc(out.count * sizeof *ids + 1), largest = 0;
    assert_non_null(ids);
    for (uint64_t i = 0; i < out.count; i++) {
        ids[i] = info.width == 4 ? ((uint32_t *)out.tokens)[i] : ((uint16_t *)out.tokens)[i];
        largest = ids[i] > largest ? ids[i] : largest;
    }
    assert_true(out.largest == largest);
    assert_true(largest < info.vocabulary);
    struct text_buffer back = {0};
    assert_int_equal(tokenizer_decode(tokenizer, out.tokens, out.count, true, false, &back, &error), TOKMAP_OK);
    if (vocabularies[which].inverse) {
        char *wanted = malloc(bytes + 1);
        size_t wanted_bytes = 0;
        assert_non_null(wanted);
        for (size_t i = 0; i < bytes; i++) {
            const bool mark = vocabularies[which].how & MARKS && bytes - i >= 3 && !memcmp(text + i, "\xE2\x96\x81", 3);
            wanted[wanted_bytes++] = mark ? ' ' : text[i];
            i += mark ? 2 : 0;
        }
        assert_int_equal(back.count, wanted_bytes);
        if (wanted_bytes)
            assert_memory_equal(back.bytes, wanted, wanted_bytes);
        free(wanted);
    }
    free(back.bytes);
    free(out.tokens);
    *count = out.count;
    return ids;
}

static void check(size_t which, int special, const char *text, size_t bytes, const uint32_t *expected, size_t wanted,
                  const char *line)
{
    size_t count;
    uint32_t *ids = encode(which, special, text, bytes, &count);
    if (count != wanted || (count && memcmp(ids, expected, count * sizeof *ids)))
        fail_msg("%s %s: %.300s", vocabularies[which].path, special ? "recognized" : "text", line);
    free(ids);
}

static bool is_renumbered(size_t which, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (vocabularies[which].renumbered && ids[i] >= vocabularies[which].renumbered)
            return true;
    return false;
}

static void check_lines(size_t which, const char *kind)
{
    char path[1024];
    size_t bytes, checked = 0;
    snprintf(path, sizeof path, "%s/golden/%s.%s.jsonl", data, vocabularies[which].strings, kind);
    char *content = reference_read(path, &bytes);
    assert_non_null(content);
    for (char *line = content, *end; line && *line; line = end ? end + 1 : NULL) {
        char *text;
        uint32_t *expected;
        size_t text_bytes, wanted;
        end = strchr(line, '\n');
        if (end)
            *end = 0;
        if (!golden_line(line, &text, &text_bytes, &expected, &wanted))
            continue;
        if (!is_renumbered(which, expected, wanted))
            check(which, 0, text, text_bytes, expected, wanted, line);
        /* The ids with special tokens recognized follow if they differ. */
        uint32_t *recognized;
        size_t recognized_count;
        if (golden_ids(line, "ids_special", &recognized, &recognized_count)) {
            free(expected);
            expected = recognized;
            wanted = recognized_count;
        }
        /* Old tekken.json files do not name their special tokens, and their <pad> has no common id. */
        if (!(vocabularies[which].how & AS_TEXT) &&
            (!strstr(vocabularies[which].path, "tekken") || !strstr(text, "<pad>")))
            check(which, 1, text, text_bytes, expected, wanted, line);
        checked++;
        free(text);
        free(expected);
    }
    free(content);
    print_message("%s %s: %zu strings\n", vocabularies[which].path, kind, checked);
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
        if (!field[6] || strcmp(field[3], "raw"))
            continue;
        for (size_t i = 0; i < VOCABULARIES; i++) {
            if (!vocabularies[i].files || strcmp(field[0], vocabularies[i].files))
                continue;
            size_t count;
            if (number++ % 8 >= awkward_rounds(8)) /* fewer files on slow machines */
                continue;
            snprintf(path, sizeof path, "%s/%s", data, field[2]);
            char *text = reference_read(path, &bytes);
            assert_non_null(text);
            uint32_t *ids = encode(i, strcmp(field[4], "special") == 0, text, bytes, &count);
            sha256_hex(ids, count * sizeof *ids, hex);
            if (count != strtoul(field[5], NULL, 10) || strcmp(hex, field[6]))
                fail_msg("%s %s %s: %zu ids; expected %s, with another SHA-256 or number", field[0], field[2], field[4],
                         count, field[5]);
            free(ids);
            free(text);
            checked++;
        }
    }
    free(content);
    print_message("%d files\n", checked);
    assert_true(checked > awkward_rounds(200));
}

static void fingerprint(const char *name, enum tokmap_special special, uint8_t into[16])
{
    char path[1024];
    struct tokmap_error error;
    struct tokenizer *tokenizer;
    const struct tokmap_tokenizer_options options = {.special = special};
    snprintf(path, sizeof path, "%s/vocab/%s", data, name);
    assert_int_equal(vocabulary_open(&tokenizer, path, &options, &error), TOKMAP_OK);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    memcpy(into, info.fingerprint, 16);
    tokenizer_close(tokenizer);
}

/* The same tokenizer has one fingerprint in all formats; a different policy for special tokens is a different
 * tokenizer. */
static void fingerprints(void **state)
{
    uint8_t one[16], other[16];
    fingerprint("gpt2/tokenizer.json", TOKMAP_SPECIAL_TEXT, one);
    fingerprint("gpt2/encoder.json", TOKMAP_SPECIAL_TEXT, other);
    assert_memory_equal(one, other, 16);
    fingerprint("gpt2", TOKMAP_SPECIAL_TEXT, other);
    assert_memory_equal(one, other, 16);
    fingerprint("openai/r50k_base.tiktoken", TOKMAP_SPECIAL_TEXT, other);
    assert_memory_equal(one, other, 16);
    fingerprint("gpt2/tokenizer.json", TOKMAP_SPECIAL_RECOGNIZE, other);
    assert_memory_not_equal(one, other, 16);
    fingerprint("gpt_neox_20b", TOKMAP_SPECIAL_TEXT, other);
    assert_memory_not_equal(one, other, 16);
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
    for (size_t i = 0; i < VOCABULARIES; i++)
        for (int special = 0; special < 2; special++) {
            const struct tokmap_tokenizer_options options = {.special = special ? TOKMAP_SPECIAL_RECOGNIZE
                                                                                : TOKMAP_SPECIAL_TEXT};
            snprintf(path, sizeof path, "%s/%s", data, vocabularies[i].path);
            if (vocabulary_open(&tokenizers[i][special], path, &options, &error) ||
                tokenizer_state_new(&states[i][special], tokenizers[i][special], &error)) {
                printf("%s: %s\n", path, error.message);
                return 1;
            }
        }
    const struct CMUnitTest tests[] = {cmocka_unit_test(strings), cmocka_unit_test(files),
                                       cmocka_unit_test(fingerprints)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < VOCABULARIES; i++)
        for (int special = 0; special < 2; special++) {
            tokenizer_state_free(states[i][special]);
            tokenizer_close(tokenizers[i][special]);
        }
    return failed;
}
