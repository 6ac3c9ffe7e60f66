/* SPDX-License-Identifier: MIT */
/* test_tokenizer.c - the byte tokenizer through the interface of all tokenizers; widening, compared with a plain
 * loop. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/hash.h"
#include "engine/widen.h"
#include "support/decode_once.h"
#include "vocabulary/vocabulary.h"

static void check_widen(widen_function *widen)
{
    for (size_t count = 0; count < 200; count++)
        for (size_t shift = 0; shift < 4; shift++) {
            uint8_t *from = malloc(count + shift + 1);
            uint16_t *into = malloc((count + 2) * 2);
            uint32_t largest = 0;
            assert_non_null(from);
            assert_non_null(into);
            for (size_t i = 0; i < count; i++) {
                from[shift + i] = (uint8_t)(i * 37 + count * 11);
                largest = from[shift + i] > largest ? from[shift + i] : largest;
            }
            into[count] = 0xabcd;
            assert_int_equal(widen(into, from + shift, count), largest);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(into[i], from[shift + i]);
            assert_int_equal(into[count], 0xabcd);
            free(from);
            free(into);
        }
}

static void test_widen(void **state)
{
    check_widen(widen_scalar);
    check_widen(widen_choose());
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2))
        check_widen(widen_avx2);
#endif
}

static void test_open(void **state)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    assert_int_equal(vocabulary_open(&tokenizer, "gpt2.tiktoken", NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_null(tokenizer);
    assert_non_null(strstr(error.message, "there is no file or folder of this name; name a vocabulary file"));
    assert_int_equal(vocabulary_open(&tokenizer, "bytes", NULL, &error), TOKMAP_OK);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_string_equal(info.name, "bytes");
    assert_int_equal(info.vocabulary, 257);
    assert_int_equal(info.width, 2);
    assert_int_equal(info.eod_id, 256);
    assert_true(info.bos_id == TOKMAP_NO_ID);
    /* The index of every packed shard contains it, so it must never change. */
    char hex[33];
    hash128_hex(info.fingerprint, hex);
    assert_string_equal(hex, "838f97144d8539b9b44dfc8fdc71fcb5");
    assert_int_equal(tokenizer_special(tokenizer, "<|endoftext|>"), 256);
    assert_int_equal(tokenizer_special(tokenizer, "endoftext"), 256);
    assert_true(tokenizer_special(tokenizer, "bos") == TOKMAP_NO_ID);
    tokenizer_close(tokenizer);
    tokenizer_close(NULL);
}

static struct tokenizer *tokenizer;
static struct tokenizer_state *own;

static int bytes_setup(void **state)
{
    return vocabulary_open(&tokenizer, "bytes", NULL, NULL) || tokenizer_state_new(&own, tokenizer, NULL);
}

static int bytes_teardown(void **state)
{
    tokenizer_state_free(own);
    tokenizer_close(tokenizer);
    return 0;
}

static void test_encode(void **state)
{
    const struct tokmap_text texts[] = {{"ab", 2}, {"", 0}, {"\xff", 1}};
    uint16_t tokens[16];
    uint64_t ends[3];
    struct tokenizer_out out = {.tokens = tokens, .capacity = 16, .ends = ends};
    struct tokenizer_batch batch = {texts, 3, false, false};
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_OK);
    assert_int_equal(out.count, 3);
    assert_int_equal(out.largest, 255);
    assert_memory_equal(tokens, ((uint16_t[]){'a', 'b', 255}), 6);
    assert_memory_equal(ends, ((uint64_t[]){2, 2, 3}), 24);

    out.has_suffix = out.has_prefix = true;
    out.suffix = 256;
    out.prefix = 7;
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_OK);
    assert_int_equal(out.count, 9);
    assert_int_equal(out.largest, 256);
    assert_memory_equal(tokens, ((uint16_t[]){7, 'a', 'b', 256, 7, 256, 7, 255, 256}), 18);
    assert_memory_equal(ends, ((uint64_t[]){4, 6, 9}), 24);

    /* Parts: a resumed document gets no prefix, an unfinished one no suffix. */
    batch.resumed = batch.unfinished = true;
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_OK);
    assert_int_equal(out.count, 7);
    assert_memory_equal(tokens, ((uint16_t[]){'a', 'b', 256, 7, 256, 7, 255}), 14);
    batch.count = 1;
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_OK);
    assert_int_equal(out.count, 2);

    /* Exactly the room that the documents may need is required. */
    batch = (struct tokenizer_batch){texts, 3, false, false};
    out.capacity = 9;
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_OK);
    out.capacity = 8;
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_ERROR_LIMIT);
    assert_int_equal(out.count, 0);
    const struct tokmap_text hostile[] = {{"a", UINT64_MAX}, {"b", 2}};
    batch = (struct tokenizer_batch){hostile, 2, false, false};
    assert_int_equal(tokenizer_encode(own, &batch, &out, NULL), TOKMAP_ERROR_LIMIT);
}

static void test_decode(void **state)
{
    uint16_t tokens[10000];
    struct text_buffer text = {0};
    for (size_t i = 0; i < 10000; i++)
        tokens[i] = (uint16_t)(i % 257);
    assert_int_equal(tokenizer_decode(tokenizer, tokens, 10000, false, false, &text, NULL), TOKMAP_OK);
    assert_int_equal(text.count, 10000 - 38);
    for (size_t i = 0, at = 0; i < 10000; i++)
        if (tokens[i] < 256)
            assert_int_equal((uint8_t)text.bytes[at++], tokens[i]);
    text.count = 0;
    const uint16_t some[] = {'a', 256, 'b', 256};
    assert_int_equal(tokenizer_decode(tokenizer, some, 4, true, false, &text, NULL), TOKMAP_OK);
    assert_int_equal(text.count, 28);
    assert_memory_equal(text.bytes, "a<|endoftext|>b<|endoftext|>", 28);
    const uint16_t wrong[] = {'a', 257};
    assert_int_equal(tokenizer_decode(tokenizer, wrong, 2, true, false, &text, NULL), TOKMAP_ERROR_TOKEN);
    /* Many special tokens: the buffer grows for their names. */
    text.count = 0;
    for (size_t i = 0; i < 10000; i++)
        tokens[i] = 256;
    assert_int_equal(tokenizer_decode(tokenizer, tokens, 10000, true, false, &text, NULL), TOKMAP_OK);
    assert_int_equal(text.count, 130000);
    free(text.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen),
        cmocka_unit_test(test_open),
        cmocka_unit_test_setup_teardown(test_encode, bytes_setup, bytes_teardown),
        cmocka_unit_test_setup_teardown(test_decode, bytes_setup, bytes_teardown),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
