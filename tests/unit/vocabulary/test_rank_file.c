/* SPDX-License-Identifier: MIT */
/* test_rank_file.c - rank files: good ones are read, and each kind of damage is reported with its line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer.h"
#include "support/decode_once.h"
#include "vocabulary/rank_file.h"

static enum tokmap_status open_ranks(struct tokenizer **tokenizer, const char *text, uint64_t bytes,
                                     const char *pattern, struct tokmap_error *error)
{
    const struct tokmap_tokenizer_options options = {.pattern = pattern};
    return rank_tokenizer_new(tokenizer, "test", text, bytes, &options, NULL, error);
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t line_of(char *into, const uint8_t *bytes, size_t count, uint32_t rank, const char *end)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i += 3) {
        const uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (i + 2 < count ? bytes[i + 2] : 0);
        into[at++] = digits[three >> 18];
        into[at++] = digits[three >> 12 & 63];
        into[at++] = i + 1 < count ? digits[three >> 6 & 63] : '=';
        into[at++] = i + 2 < count ? digits[three & 63] : '=';
    }
    return at + (size_t)sprintf(into + at, " %u%s", rank, end);
}

/* Writes a rank file: all 256 bytes, then "ab" and "abc". */
static size_t make_file(char *into, const char *end)
{
    size_t at = 0;
    for (uint32_t i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)(i * 7 + 3);
        at += line_of(into + at, &byte, 1, i, end);
    }
    at += line_of(into + at, (const uint8_t *)"ab", 2, 256, end);
    return at + line_of(into + at, (const uint8_t *)"abc", 3, 257, end);
}

static char text[1 << 16];

static void good_files(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\n\n"};
    for (int i = 0; i < 3; i++) {
        struct tokmap_error error;
        struct tokenizer *tokenizer;
        struct tokenizer_state *own;
        const size_t bytes = make_file(text, ends[i]);
        assert_true(rank_file_is(text, bytes));
        assert_int_equal(open_ranks(&tokenizer, text, bytes, NULL, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(open_ranks(&tokenizer, text, bytes, "gpt3", &error), TOKMAP_ERROR_ARGUMENT);
        /* The last line needs no newline. */
        assert_int_equal(open_ranks(&tokenizer, text, bytes - 1, "gpt2", &error), TOKMAP_OK);
        const struct tokenizer_info info = info_of_tokenizer(tokenizer);
        assert_int_equal(info.vocabulary, 258);
        assert_int_equal(info.width, 2);
        assert_int_equal(info.eod_id, TOKMAP_NO_ID);
        assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
        const struct tokmap_text document = {"abcab", 5};
        const struct tokenizer_batch batch = {&document, 1, false, false};
        uint16_t tokens[8];
        uint64_t end;
        struct tokenizer_out out = {.tokens = tokens, .capacity = 8, .ends = &end, .has_suffix = true, .suffix = 9};
        assert_int_equal(tokenizer_encode(own, &batch, &out, &error), TOKMAP_OK);
        assert_int_equal(out.count, 3);
        assert_int_equal(end, 3);
        assert_int_equal(out.largest, 257);
        assert_true(tokens[0] == 257 && tokens[1] == 256 && tokens[2] == 9);
        struct text_buffer back = {0};
        assert_int_equal(tokenizer_decode(tokenizer, tokens, 2, false, false, &back, &error), TOKMAP_OK);
        assert_int_equal(back.count, 5);
        assert_memory_equal(back.bytes, "abcab", 5);
        tokens[0] = 258;
        assert_int_equal(tokenizer_decode(tokenizer, tokens, 2, false, false, &back, &error), TOKMAP_ERROR_TOKEN);
        free(back.bytes);
        tokenizer_state_free(own);
        tokenizer_close(tokenizer);
    }
}

static enum tokmap_status ranks_read(struct rank_file *file, const char *path, const char *content, uint64_t count,
                                     struct tokmap_error *error)
{
    const enum tokmap_status status = rank_file_parse(file, path, content, count, error);
    return status ? status : rank_file_check(file, content, count, error);
}

/* Lines may be in any order. */
static void any_order(void **state)
{
    struct rank_file file;
    struct tokmap_error error;
    size_t at = line_of(text, (const uint8_t *)"ab", 2, 256, "\n");
    for (uint32_t i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)(255 - i);
        at += line_of(text + at, &byte, 1, 255 - i, "\n");
    }
    assert_int_equal(ranks_read(&file, "test", text, at, &error), TOKMAP_OK);
    assert_int_equal(file.source.vocabulary, 257);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(file.source.bytes[file.source.offsets[i]], i);
    assert_memory_equal(file.source.bytes + file.source.offsets[256], "ab", 2);
    rank_file_free(&file);
}

static void faults(void **state)
{
    static const struct {
        const char *line, *says; /* line: written after the 256 lines of the bytes; at: the line of the error */
        uint64_t at;
    } wrong[] = {
        {"YWI=256\n", "lacks the space", 257},
        {"YWI= \n", "lacks a rank", 257},
        {"YWI= x\n", "not a number", 257},
        {"YWI= 25 6\n", "not a number", 257},
        {"YWI= -1\n", "not a number", 257},
        {"YWI= 99999999999999999999\n", "2097151", 257},
        {"YWI 256\n", "base64", 257},
        {" 256\n", "base64", 257},
        {"YW=I 256\n", "base64", 257},
        {"YWI=YWI= 256\n", "base64", 257},
        {"Y!I= 256\n", "base64", 257},
        {"YWJ= 256\n", "base64", 257},
        {"YQ== 256\n", "has a lower rank, too", 257},
        {"YWI= 255\n", "two lines have the rank", 257},
        {"YWI= 0\n", "two lines have the rank", 257},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rank_file file;
        struct tokmap_error error;
        size_t at = 0;
        for (uint32_t k = 0; k < 256; k++) {
            const uint8_t byte = (uint8_t)k;
            at += line_of(text + at, &byte, 1, k, "\n");
        }
        at += (size_t)sprintf(text + at, "%s", wrong[i].line);
        const enum tokmap_status status = ranks_read(&file, "test", text, at, &error);
        if (status != TOKMAP_ERROR_FORMAT || !strstr(error.message, wrong[i].says) || error.line != wrong[i].at)
            fail_msg("%s: status %d, line %llu: %s", wrong[i].line, (int)status, (unsigned long long)error.line,
                     error.message);
        rank_file_free(&file);
    }
}

/* A rank without a token means that the file lost a line; a byte without a token could not be encoded. */
static void holes(void **state)
{
    struct tokmap_error error;
    struct tokenizer *tokenizer;
    size_t at = 0;
    for (uint32_t k = 0; k < 256; k++) {
        const uint8_t byte = (uint8_t)k;
        at += line_of(text + at, &byte, 1, k, "\n");
    }
    const size_t bytes_end = at;
    at += line_of(text + at, (const uint8_t *)"ab", 2, 257, "\n");
    assert_int_equal(open_ranks(&tokenizer, text, at, "gpt2", &error), TOKMAP_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "256"));
    assert_int_equal(open_ranks(&tokenizer, text, bytes_end - 9, "gpt2", &error), TOKMAP_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "0xff"));
    assert_int_equal(open_ranks(&tokenizer, "\n", 1, "gpt2", &error), TOKMAP_ERROR_FORMAT);
}

/* A token without bytes, as the last one of Whisper's multilingual.tiktoken, is an id that no text gets. */
static void empty_token(void **state)
{
    struct tokmap_error error;
    struct tokenizer *tokenizer;
    struct rank_file file;
    size_t bytes = make_file(text, "\n");
    const size_t sound = bytes;
    bytes += (size_t)sprintf(text + bytes, "= 258\n");
    assert_int_equal(open_ranks(&tokenizer, text, bytes, "gpt2", &error), TOKMAP_OK);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.vocabulary, 259);
    tokenizer_close(tokenizer);
    assert_int_equal(ranks_read(&file, "test", text, bytes, &error), TOKMAP_OK);
    assert_true(file.empty == 258 && file.hole == BPE_NONE);
    assert_int_equal(file.offsets[258], file.offsets[259]);
    rank_file_free(&file);
    sprintf(text + bytes, "= 259\n");
    assert_int_equal(open_ranks(&tokenizer, text, strlen(text), "gpt2", &error), TOKMAP_ERROR_FORMAT);
    assert_int_equal(error.line, 260);
    assert_non_null(strstr(error.message, "a second token has no bytes"));
    static const char *const bad[] = {" 258\n", "== 258\n", "==== 258\n", "=a== 258\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        strcpy(text + sound, bad[i]);
        assert_int_equal(open_ranks(&tokenizer, text, strlen(text), "gpt2", &error), TOKMAP_ERROR_FORMAT);
        assert_int_equal(error.line, 259);
    }
}

static void recognized_by_content(void **state)
{
    static const char *const others[] = {
        "", "\n", "{\"version\": \"1.0\"}", "#version: 0.2\na b\n", "the cat sat", "\x0a\x10<unk>", "YWI=\t256\n"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(rank_file_is(others[i], strlen(others[i])));
    assert_true(rank_file_is("IQ== 0", 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files),  cmocka_unit_test(any_order), cmocka_unit_test(faults),
        cmocka_unit_test(empty_token), cmocka_unit_test(holes),     cmocka_unit_test(recognized_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
