/* SPDX-License-Identifier: MIT */
/* test_hf_bpe_words.c - BPE models that mark ends of words or places inside them, and models that lose or replace
 * characters: ids and offsets that follow from the definition, and files with one fault each. The references are
 * compared by tests/reference/hf_variants.py. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocabulary/hf/hf_file.h"

/* Opens a tokenizer.json that splits at spaces. model: the fields of the model. */
static enum tokmap_status open_model(struct tokenizer **tokenizer, const char *model, struct tokmap_error *error)
{
    static const struct tokmap_tokenizer_options options;
    static char text[8192];
    const int used = snprintf(text, sizeof text,
                              "{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"decoder\":"
                              "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"},\"added_tokens\":[],"
                              "\"model\":{\"type\":\"BPE\",%s}}",
                              model);
    assert_true(used > 0 && (size_t)used < sizeof text);
    return hf_file_open(tokenizer, "tokenizer.json", text, (uint64_t)used, &options, error);
}

/* Checks the ids of a text and where they are: "id:begin-end" for each. */
static void check(const char *model, const char *text, const char *wanted)
{
    struct tokenizer *tokenizer;
    struct tokenizer_state *state;
    struct tokmap_error error;
    uint16_t ids[64];
    uint64_t begins[64], ends[64], end;
    char got[1024] = "";
    size_t used = 0;
    const struct tokmap_text document = {text, strlen(text)};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    struct tokenizer_out out = {.tokens = ids, .capacity = 64, .ends = &end};
    if (open_model(&tokenizer, model, &error))
        fail_msg("%s: %s", model, error.message);
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    for (int again = 0; again < 2; again++) { /* the second time from the cache */
        assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
        used = 0;
        got[0] = '\0';
        if (tokenizer_offsets(state, &document, TOKENIZER_STARTS, ids, out.count, begins, ends, &error))
            fail_msg("%s: %s", text, error.message);
        for (uint64_t i = 0; i < out.count; i++)
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%u:%u-%u", i ? " " : "", ids[i],
                                     (unsigned)begins[i], (unsigned)ends[i]);
        assert_string_equal(got, wanted);
    }
    /* Other ids are noticed. */
    if (out.count) {
        ids[out.count - 1] = 60000;
        assert_int_equal(tokenizer_offsets(state, &document, TOKENIZER_STARTS, ids, out.count, begins, ends, &error),
                         TOKMAP_ERROR_TOKEN);
    }
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
}

#define SUFFIX                                                                                                         \
    "\"unk_token\":\"<unk>\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"<unk>\":0,\"a\":1,\"b\":2,\"a</w>\":3,"      \
    "\"b</w>\":4,\"ab\":5,\"ab</w>\":6,\"aab</w>\":7},\"merges\":[\"a b\",\"a b</w>\",\"a ab</w>\"]"

static void suffix(void **state)
{
    check(SUFFIX, "", "");
    check(SUFFIX, "a", "3:0-1");
    check(SUFFIX, "ab", "6:0-2");
    check(SUFFIX, "aba  aab", "5:0-2 3:2-3 7:5-8");
    check(SUFFIX, "ba", "2:0-1 3:1-2");
    /* Unknown inside and at the end: the last character is unknown, so none has the suffix. */
    check(SUFFIX, "axb ab\xc3\xa9", "1:0-1 0:1-2 4:2-3 5:4-6 0:6-8");
    check(SUFFIX, "xx", "0:0-1 0:1-2");
    check("\"fuse_unk\":true," SUFFIX, "xyax x", "0:0-2 1:2-3 0:3-4 0:5-6");
}

static void prefix(void **state)
{
    static const char model[] =
        "\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"<unk>\":0,\"a\":1,\"b\":2,"
        "\"##a\":3,\"##b\":4,\"ab\":5,\"##ab\":6,\"aab\":7,\"##\":8},\"merges\":[[\"##a\",\"##b\"],[\"a\",\"##b\"],"
        "[\"a\",\"##ab\"]]";
    check(model, "a", "1:0-1");
    check(model, "ab", "5:0-2");
    check(model, "aab", "7:0-3");
    check(model, "bab", "2:0-1 6:1-3");
    check(model, "xab #", "0:0-1 6:1-3 0:4-5");
}

static void lost(void **state)
{
    /* Without unk_token, a character that has no token is left out, and its neighbors merge. */
    static const char model[] = "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"axb\":3},\"merges\":[\"a b\"]";
    check(model, "axb x ab xx", "2:0-3 2:6-8");
    check("\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"axb\":3},\"merges\":[\"a b\"]", "axb x xaxb",
          "3:0-3 2:7-10");
}

/* Tokens of bytes do not end a run of unknown characters, and come before them. */
static void bytes(void **state)
{
    static const char model[] =
        "\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true,\"vocab\":{\"<unk>\":0,\"a\":1,"
        "\"<0x62>\":2,\"<0xC3>\":3,\"<0xA9>\":4},\"merges\":[]";
    check(model, "ab\xc3\xa9", "1:0-1 2:1-2 3:2-3 4:3-4");
    check(model, "xbya", "2:1-2 0:2-3 1:3-4");
}

/* A model whose characters are merged by the engine of SentencePiece, in a text that has U+2581 itself. */
static void marks(void **state)
{
    check("\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"a\":1,\"\xe2\x96\x81\":2,\"\xe2\x96\x81\xe2\x96\x81\":3},"
          "\"merges\":[\"\xe2\x96\x81 \xe2\x96\x81\"]",
          "a\xe2\x96\x81\xe2\x96\x81 \xe2\x96\x81", "1:0-1 3:1-7 2:8-11");
}

static void refused(const char *model, enum tokmap_status status, const char *message)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    assert_int_equal(open_model(&tokenizer, model, &error), status);
    assert_null(tokenizer);
    if (!strstr(error.message, message))
        fail_msg("%s: %s", model, error.message);
}

#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void faults(void **state)
{
    refused("\"unk_token\":\"u\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0},\"merges\":[]",
            TOKMAP_ERROR_UNSUPPORTED, "model.unk_token is 'u', which the vocabulary lacks");
    refused("\"end_of_word_suffix\":\"" LONG_64 LONG_64 LONG_64 LONG_64 "0\",\"vocab\":{\"a\":0},\"merges\":[]",
            TOKMAP_ERROR_LIMIT, "model.end_of_word_suffix has 257 bytes");
    refused("\"end_of_word_suffix\":[],\"vocab\":{\"a\":0},\"merges\":[]", TOKMAP_ERROR_FORMAT, "");
    refused("\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]",
            TOKMAP_ERROR_UNSUPPORTED, "merge 0 (counted from 0): the right part 'b' does not begin");
    refused("\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"##\":1},\"merges\":[\"a ##\"]",
            TOKMAP_ERROR_UNSUPPORTED, "merge 0 (counted from 0): the right part '##' does not begin");
    refused("\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"##b\":1},\"merges\":[\"a ##b\"]",
            TOKMAP_ERROR_FORMAT, "needs the token 'ab'");
    refused("\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"],\"continuing_subword_prefix\":\"##\"",
            TOKMAP_ERROR_UNSUPPORTED, "model.continuing_subword_prefix comes after model.merges");
    refused("\"end_of_word_suffix\":\"b\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"<0x62>\":1},\"merges\":[]",
            TOKMAP_ERROR_UNSUPPORTED, "model.byte_fallback is true, and the bytes of end_of_word_suffix");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(suffix), cmocka_unit_test(prefix), cmocka_unit_test(lost),
                                       cmocka_unit_test(bytes),  cmocka_unit_test(marks),  cmocka_unit_test(faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
