/* SPDX-License-Identifier: MIT */
/* test_rwkv_file.c - RWKV's vocabulary: the longest token is taken, escapes of Python are read, and files with one
 * fault each are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/decode_once.h"
#include "vocabulary/rwkv_file.h"

static char text[65536];
static const struct tokmap_tokenizer_options options;

/* Makes a file that has a token for each byte, id byte + 1, and more lines. Returns its length. */
static uint64_t make(const char *more)
{
    size_t used = 0;
    for (unsigned byte = 0; byte < 256; byte++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%u %s'\\x%02x' 1\n", byte + 1,
                                 byte < 0x80 ? "" : "b", byte);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", more);
    assert_true(used < sizeof text);
    return used;
}

static void check(const char *more, const char *document, size_t bytes, const char *wanted)
{
    struct tokenizer *tokenizer;
    struct tokenizer_state *state;
    struct tokenizer_info info;
    struct tokmap_error error;
    uint16_t ids[64];
    uint64_t begins[64], ends[64], end;
    char got[512] = "";
    size_t used = 0;
    const struct tokmap_text one = {document, bytes};
    const struct tokenizer_batch batch = {&one, 1, false, false};
    struct tokenizer_out out = {.tokens = ids, .capacity = 64, .ends = &end};
    if (rwkv_file_open(&tokenizer, "rwkv.txt", text, make(more), &options, &error))
        fail_msg("%s: %s", more, error.message);
    info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.eod_id, 0);
    assert_int_equal(tokenizer_special(tokenizer, "endoftext"), 0);
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_offsets(state, &one, TOKENIZER_STARTS, ids, out.count, begins, ends, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < out.count; i++) {
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%u", i ? " " : "", ids[i]);
        assert_true(begins[i] == (i ? ends[i - 1] : 0) && ends[i] > begins[i]);
    }
    assert_string_equal(got, wanted);
    struct text_buffer back = {NULL, 0, 0};
    assert_int_equal(tokenizer_decode(tokenizer, ids, out.count, true, false, &back, &error), TOKMAP_OK);
    assert_int_equal(back.count, bytes);
    assert_memory_equal(back.bytes, document, bytes);
    free(back.bytes);
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
}

static void longest(void **state)
{
    check("300 'ab' 2\n301 'abcd' 4\n302 'bc' 2\n", "abc", 3, "300 100");
    check("300 'ab' 2\n301 'abcd' 4\n302 'bc' 2\n", "abcdabcabce", 11, "301 300 100 300 100 102");
    check("300 'ab' 2\r\n301 'abcd' 4", "xabcd", 5, "121 301");
    /* A token may begin and end inside a character. */
    check("300 b'a\\xe4\\xb8' 3\n301 '\xe4\xb8\xad' 3\n", "a\xe4\xb8\xad\xe4\xb8\xad", 7, "300 174 301");
}

static void escapes(void **state)
{
    check("300 '\\n\\t\\r\\\\\\'\\\"' 6\n", "\n\t\r\\'\"", 6, "300");
    check("300 \"it's\" 4\n301 '\"a\"' 3\n", "it's\"a\"", 7, "300 301");
    check("300 '\\xe9\\u4e2d\\U0001f600' 9\n", "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 9, "300");
    check("300 '\\x00\\x00' 2\n", "\0\0\0", 3, "300 1");
}

static void refused(const char *more, enum tokmap_status status, const char *message)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    assert_int_equal(rwkv_file_open(&tokenizer, "rwkv.txt", text, make(more), &options, &error), status);
    assert_null(tokenizer);
    if (!strstr(error.message, message))
        fail_msg("%s: %s", more, error.message);
}

static void faults(void **state)
{
    const enum tokmap_status bad = TOKMAP_ERROR_FORMAT, no = TOKMAP_ERROR_UNSUPPORTED;
    const char *form = "line 257 must have an id, a text in quotes";
    refused("x\n", bad, form);
    refused("300\n", bad, form);
    refused("300 ab 2\n", bad, form);
    refused("300 'ab\n", bad, form);
    refused("300 'ab' \n", bad, "line 257 says another number of bytes");
    refused("300 'ab'2\n", bad, form);
    refused("300 'ab' 2 3\n", bad, form);
    refused("\n", bad, form);
    refused("300 b'\xc3\xa9' 2\n", bad, form);
    refused("300 'ab' 3\n", bad, "line 257 says another number of bytes");
    refused("300 '' 0\n", bad, "line 257 says another number of bytes");
    refused("300 'ab' 2\n300 'cd' 2\n", bad, "line 258 has the id of an earlier line");
    refused("0 'ab' 2\n", bad, "line 257 has the id 0");
    refused("300 'ab' 2\n301 'ab' 2\n", bad, "the ids 300 and 301 have the same text");
    refused("2097152 'ab' 2\n", TOKMAP_ERROR_LIMIT, "line 257 has an id that is too large");
    refused("99999999999999999999 'ab' 2\n", bad, form);
    refused("18446744073709551917 'ab' 2\n", bad, form); /* 2^64 + 301 */
    refused("300 '\\q' 1\n", no, "line 257 has an escape");
    refused("300 '\\ud800' 3\n", no, "line 257 has an escape");
    refused("300 '\\x4' 1\n", no, "line 257 has an escape");
    refused("300 b'\\u0041' 1\n", no, "line 257 has an escape");
    refused("300 '\xff' 1\n", bad, "not UTF-8");
    char more[1200] = "300 '";
    memset(more + 5, 'a', 1025);
    memcpy(more + 1030, "' 1025\n", 8);
    refused(more, TOKMAP_ERROR_LIMIT, "the token with the id 300 has 1025 bytes");
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    assert_int_equal(rwkv_file_open(&tokenizer, "rwkv.txt", "1 'a' 1\n", 8, &options, &error), bad);
    assert_non_null(strstr(error.message, "no token for the byte 0x00"));
    assert_true(rwkv_file_is("1 'a' 1\n", 8) && rwkv_file_is("23 b\"a", 6));
    assert_false(rwkv_file_is("1 a", 3) || rwkv_file_is("a 'b' 1", 7) || rwkv_file_is("1 ", 2) || rwkv_file_is("", 0));
    assert_false(rwkv_file_is("IQ== 0\n", 7) || rwkv_file_is("1 b", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(longest), cmocka_unit_test(escapes), cmocka_unit_test(faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
