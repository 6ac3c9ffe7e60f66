/* SPDX-License-Identifier: MIT */
/* test_tokenizer_library.c - the functions of tokmap/tokenizer.h, called as a program calls them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/reference_data.h"
#include "tokmap/tokenizer.h"
#include "tokmap/tokmap.h"

static struct tokmap_tokenizer *bytes_open(void)
{
    struct tokmap_tokenizer *tokenizer;
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, "bytes", NULL, NULL), TOKMAP_OK);
    assert_non_null(tokenizer);
    return tokenizer;
}

static void test_open(void **state)
{
    struct tokmap_error error = {0};
    struct tokmap_tokenizer *tokenizer = (struct tokmap_tokenizer *)&error;
    struct tokmap_tokenizer_options options = TOKMAP_TOKENIZER_OPTIONS_INIT;
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, "/no/such/file", NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_null(tokenizer);
    assert_string_equal(error.path, "/no/such/file");
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, NULL, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_tokenizer_open(NULL, "bytes", NULL, &error), TOKMAP_ERROR_ARGUMENT);
    options.special = (enum tokmap_special)7;
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, "bytes", &options, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "special is 7"));
    options.special = TOKMAP_SPECIAL_ERROR;
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, "bytes", &options, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "finds no special tokens"));
    options.size = 3;
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, "bytes", &options, &error), TOKMAP_ERROR_ARGUMENT);
    options = (struct tokmap_tokenizer_options)TOKMAP_TOKENIZER_OPTIONS_INIT;
    options.pattern = "gpt2";
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, "bytes", &options, &error), TOKMAP_OK);
    tokmap_tokenizer_close(tokenizer);
    tokmap_tokenizer_close(NULL);
    assert_string_equal(tokmap_tokenizer_version(), TOKMAP_VERSION_STRING);
}

static void test_info(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    struct tokmap_tokenizer_info info = TOKMAP_TOKENIZER_INFO_INIT;
    static const uint8_t none[16];
    assert_int_equal(tokmap_tokenizer_info(tokenizer, &info), TOKMAP_OK);
    assert_string_equal(info.name, "bytes");
    assert_null(info.note);
    assert_int_equal(info.vocabulary, 257);
    assert_int_equal(info.eod_id, 256);
    assert_true(info.bos_id == TOKMAP_NO_ID);
    assert_int_equal(info.specials, 1);
    assert_memory_not_equal(info.fingerprint, none, 16);
    info.size = 0;
    assert_int_equal(tokmap_tokenizer_info(tokenizer, &info), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_tokenizer_info(NULL, &info), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_tokenizer_info(tokenizer, NULL), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_close(tokenizer);
}

static void test_encode(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    struct tokmap_error error = {0};
    uint32_t ids[4] = {9, 9, 9, 9};
    struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "Hi!", 3, &encoded, &error), TOKMAP_OK);
    assert_int_equal(encoded.count, 3); /* counted only */
    encoded.ids = ids;
    encoded.room = 4;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "Hi!", 3, &encoded, &error), TOKMAP_OK);
    assert_int_equal(encoded.count, 3);
    const uint32_t wanted[] = {'H', 'i', '!', 9};
    assert_memory_equal(ids, wanted, sizeof wanted);
    encoded.room = 2;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "abc", 3, &encoded, &error), TOKMAP_ERROR_LIMIT);
    assert_int_equal(encoded.count, 3);
    assert_int_equal(ids[1], 'b');
    assert_int_equal(ids[2], '!'); /* nothing past the room */
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, NULL, 0, &encoded, &error), TOKMAP_OK);
    assert_int_equal(encoded.count, 0);
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "a\xff", 2, &encoded, &error), TOKMAP_ERROR_ENCODING);
    assert_int_equal(error.offset, 1);
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, NULL, 1, &encoded, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "a", 1, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_tokenizer_encode(NULL, "a", 1, &encoded, &error), TOKMAP_ERROR_ARGUMENT);
    encoded.size = sizeof encoded + 8;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "a", 1, &encoded, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_close(tokenizer);
}

static void test_decode(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    struct tokmap_error error = {0};
    char text[32] = "..............................";
    struct tokmap_decoded decoded = TOKMAP_DECODED_INIT;
    const uint32_t ids[] = {'H', 256, 'i'};
    decoded.text = text;
    decoded.room = sizeof text;
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, ids, 3, &decoded, &error), TOKMAP_OK);
    assert_int_equal(decoded.bytes, 2);
    assert_memory_equal(text, "Hi.", 3);
    decoded.specials = 1;
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, ids, 3, &decoded, &error), TOKMAP_OK);
    assert_int_equal(decoded.bytes, 15);
    assert_memory_equal(text, "H<|endoftext|>i.", 16);
    decoded.room = 1;
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, ids, 3, &decoded, &error), TOKMAP_ERROR_LIMIT);
    assert_int_equal(decoded.bytes, 15);
    const uint32_t wrong[] = {'H', 'i', 70000};
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, wrong, 3, &decoded, &error), TOKMAP_ERROR_TOKEN);
    assert_non_null(strstr(error.message, "ids[2] is 70000"));
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, NULL, 0, &decoded, &error), TOKMAP_OK);
    assert_int_equal(decoded.bytes, 0);
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, NULL, 1, &decoded, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_close(tokenizer);
}

static void test_tokens(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    struct tokmap_error error = {0};
    const char *bytes;
    uint64_t count, id;
    assert_int_equal(tokmap_tokenizer_token(tokenizer, 'a', &bytes, &count, &error), TOKMAP_OK);
    assert_int_equal(count, 1);
    assert_memory_equal(bytes, "a", 1);
    assert_int_equal(tokmap_tokenizer_token(tokenizer, 257, &bytes, &count, &error), TOKMAP_ERROR_TOKEN);
    assert_int_equal(tokmap_tokenizer_token(tokenizer, UINT64_MAX, &bytes, &count, &error), TOKMAP_ERROR_TOKEN);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "<|endoftext|>", 13, &id, &error), TOKMAP_OK);
    assert_int_equal(id, 256);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "\xff", 1, &id, &error), TOKMAP_OK);
    assert_int_equal(id, 255);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "ab", 2, &id, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "", 0, &id, &error), TOKMAP_ERROR_NOT_FOUND);
    tokmap_tokenizer_close(tokenizer);
}

/* ---- offsets, sharing, batches ---- */

static void test_offsets(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    uint16_t ids[3];
    uint64_t begins[3] = {9, 9, 9}, ends[3] = {9, 9, 9};
    struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
    encoded.ids = ids;
    encoded.type = TOKMAP_ID_U16;
    encoded.begins = begins;
    encoded.ends = ends;
    encoded.room = 3;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "abc", 3, &encoded, NULL), TOKMAP_OK);
    const uint16_t wanted[] = {'a', 'b', 'c'};
    assert_memory_equal(ids, wanted, sizeof wanted);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(begins[i] == i && ends[i] == i + 1);
    encoded.room = 1; /* no more is written than there is room for */
    begins[1] = ends[1] = 77;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "xyz", 3, &encoded, NULL), TOKMAP_ERROR_LIMIT);
    assert_true(encoded.count == 3 && ids[0] == 'x' && ids[1] == 'b' && begins[1] == 77 && ends[1] == 77);
    static const uint8_t sizes[] = {4, 4, 2, 2, 8, 8, 1, 1};
    for (int type = 0; type < 8; type++) { /* the ids of this vocabulary, up to 256, need 2 bytes */
        uint64_t memory[3] = {0}, id = 0;
        encoded.ids = memory;
        encoded.type = (enum tokmap_id_type)type;
        encoded.room = 3;
        assert_int_equal(tokmap_tokenizer_encode(tokenizer, "abc", 3, &encoded, NULL),
                         sizes[type] == 1 ? TOKMAP_ERROR_ARGUMENT : TOKMAP_OK);
        for (int i = 0; i < 3 && sizes[type] > 1; i++) {
            memcpy(&id, (uint8_t *)memory + i * sizes[type], sizes[type]);
            assert_int_equal(id, "abc"[i]);
        }
    }
    encoded.type = (enum tokmap_id_type)8;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, "xyz", 3, &encoded, NULL), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_close(tokenizer);
}

static void test_added(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open(), *shared = tokenizer;
    struct tokmap_error error = {0};
    struct tokmap_added_token token = TOKMAP_ADDED_TOKEN_INIT;
    assert_int_equal(tokmap_tokenizer_added(tokenizer, 0, &token, &error), TOKMAP_OK);
    assert_true(token.id == 256 && token.special == 1 && token.bytes == 13);
    assert_memory_equal(token.text, "<|endoftext|>", 13);
    assert_int_equal(tokmap_tokenizer_added(tokenizer, 1, &token, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_tokenizer_share(&shared, tokenizer, TOKMAP_SPECIAL_TEXT, &error), TOKMAP_ERROR_ARGUMENT);
    assert_null(shared);
    tokmap_tokenizer_close(tokenizer);
}

/* Texts in the three forms, with and without threads, have the ids of single calls. */
static void batch_check(const struct tokmap_tokenizer *tokenizer, const struct tokmap_texts *texts, uint32_t threads,
                        const uint32_t *wanted, uint64_t count)
{
    struct tokmap_encode_options options = TOKMAP_ENCODE_OPTIONS_INIT;
    struct tokmap_error error = {0};
    struct tokmap_tokenizer_batch *batch;
    struct tokmap_tokenizer_batch_info info = TOKMAP_TOKENIZER_BATCH_INFO_INIT;
    options.threads = threads;
    options.eod_id = 256;
    assert_int_equal(tokmap_tokenizer_encode_batch(tokenizer, texts, &options, &batch, &error), TOKMAP_OK);
    assert_int_equal(tokmap_tokenizer_batch_info(batch, &info), TOKMAP_OK);
    assert_true(info.documents == 3 && info.ids == count && info.failed == 0 && info.largest == 256);
    uint32_t *ids = calloc(count, sizeof *ids);
    uint64_t ends[3];
    struct tokmap_tokenizer_batch_out out = TOKMAP_TOKENIZER_BATCH_OUT_INIT;
    out.ids = ids;
    out.document_ends = ends;
    assert_int_equal(tokmap_tokenizer_batch_read(batch, &out, &error), TOKMAP_OK);
    assert_memory_equal(ids, wanted, count * sizeof *ids);
    assert_int_equal(ends[2], count);
    out.begins = ends;
    assert_int_equal(tokmap_tokenizer_batch_read(batch, &out, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_batch_close(batch);
    free(ids);
}

static void test_batch(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    const uint32_t wanted[] = {'a', 'b', 256, 256, 'c', 'd', 'e', 'f', 'g',
                               'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 256};
    const struct tokmap_text some[] = {{"ab", 2}, {NULL, 0}, {"cdefghijklmno", 13}};
    const int32_t offsets32[] = {0, 2, 2, 15};
    const int64_t offsets64[] = {0, 2, 2, 15};
    const int32_t views[3][4] = {{2, 'a' | 'b' << 8, 0, 0}, {0, 0, 0, 0}, {13, 0, 0, 2}};
    const void *const buffers[] = {"abcdefghijklmno"};
    int64_t buffer_bytes[] = {15};
    struct tokmap_texts texts[4];
    for (int i = 0; i < 4; i++)
        texts[i] = (struct tokmap_texts){.size = sizeof texts[i], .count = 3, .data = buffers[0]};
    texts[0].texts = some;
    texts[1].offsets32 = offsets32;
    texts[2].offsets64 = offsets64;
    texts[3].views = views;
    texts[3].view_buffers = buffers;
    texts[3].view_buffer_bytes = buffer_bytes;
    texts[3].view_buffer_count = 1;
    for (int i = 0; i < 4; i++)
        for (uint32_t threads = 0; threads < 4; threads++)
            batch_check(tokenizer, &texts[i], threads, wanted, sizeof wanted / sizeof wanted[0]);
    struct tokmap_tokenizer_batch *batch;
    struct tokmap_error error = {0};
    buffer_bytes[0] = 14;
    assert_int_equal(tokmap_tokenizer_encode_batch(tokenizer, &texts[3], NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "text 2: its view is outside of its buffer"));
    texts[0].texts = NULL;
    assert_int_equal(tokmap_tokenizer_encode_batch(tokenizer, &texts[0], NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    assert_null(batch);
    tokmap_tokenizer_close(tokenizer);
}

static void test_batch_errors(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    const struct tokmap_text some[] = {{"ab", 2}, {"c\xff", 2}, {"d", 1}, {"\xff", 1}};
    struct tokmap_texts texts = TOKMAP_TEXTS_INIT;
    struct tokmap_encode_options options = TOKMAP_ENCODE_OPTIONS_INIT;
    struct tokmap_tokenizer_batch *batch;
    struct tokmap_tokenizer_batch_info info = TOKMAP_TOKENIZER_BATCH_INFO_INIT;
    struct tokmap_error error = {0};
    int32_t statuses[4];
    uint64_t ends[4];
    texts.count = 4;
    texts.texts = some;
    assert_int_equal(tokmap_tokenizer_encode_batch(tokenizer, &texts, &options, &batch, &error), TOKMAP_ERROR_ENCODING);
    assert_true(error.offset == 1 && strstr(error.message, "text 1"));
    options.keep_going = 1;
    assert_int_equal(tokmap_tokenizer_encode_batch(tokenizer, &texts, &options, &batch, &error), TOKMAP_OK);
    assert_int_equal(tokmap_tokenizer_batch_info(batch, &info), TOKMAP_OK);
    assert_true(info.failed == 2 && info.ids == 3);
    struct tokmap_tokenizer_batch_out out = TOKMAP_TOKENIZER_BATCH_OUT_INIT;
    out.statuses = statuses;
    out.document_ends = ends;
    assert_int_equal(tokmap_tokenizer_batch_read(batch, &out, &error), TOKMAP_OK);
    assert_true(statuses[0] == TOKMAP_OK && statuses[2] == TOKMAP_OK);
    assert_true(statuses[1] == TOKMAP_ERROR_ENCODING && statuses[3] == TOKMAP_ERROR_ENCODING);
    assert_true(ends[0] == 2 && ends[1] == 2 && ends[2] == 3 && ends[3] == 3);
    tokmap_tokenizer_batch_close(batch);
    options.eod_id = 257;
    assert_int_equal(tokmap_tokenizer_encode_batch(tokenizer, &texts, &options, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_close(tokenizer);
}

static void test_decode_batch(void **state)
{
    struct tokmap_tokenizer *tokenizer = bytes_open();
    const uint64_t ids[] = {'a', 'b', 256, 'c'}, document_ends[] = {3, 3, 4};
    struct tokmap_ids given = TOKMAP_IDS_INIT;
    struct tokmap_decode_options options = TOKMAP_DECODE_OPTIONS_INIT;
    struct tokmap_tokenizer_batch *batch;
    struct tokmap_error error = {0};
    char text[16];
    uint64_t ends[3];
    given.count = 3;
    given.ids = ids;
    given.type = TOKMAP_ID_U64;
    given.ends = document_ends;
    options.specials = 1;
    options.threads = 2;
    assert_int_equal(tokmap_tokenizer_decode_batch(tokenizer, &given, &options, &batch, &error), TOKMAP_OK);
    struct tokmap_tokenizer_batch_out out = TOKMAP_TOKENIZER_BATCH_OUT_INIT;
    out.text = text;
    out.document_ends = ends;
    assert_int_equal(tokmap_tokenizer_batch_read(batch, &out, &error), TOKMAP_OK);
    assert_memory_equal(text, "ab<|endoftext|>c", 16);
    assert_true(ends[0] == 15 && ends[1] == 15 && ends[2] == 16);
    tokmap_tokenizer_batch_close(batch);
    const uint64_t falling[] = {3, 2, 4};
    given.ends = falling;
    assert_int_equal(tokmap_tokenizer_decode_batch(tokenizer, &given, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_tokenizer_close(tokenizer);
}

/* ---- real vocabularies ---- */

struct sharing {
    struct tokmap_tokenizer *tokenizer;
    const char *text;
    uint64_t bytes, count;
    const uint32_t *wanted;
    bool good;
};

static void *encode_often(void *user)
{
    struct sharing *sharing = user;
    uint32_t *ids = malloc(sharing->count * sizeof *ids);
    sharing->good = ids != NULL;
    for (int i = 0; i < 5 && sharing->good; i++) {
        struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
        encoded.ids = ids;
        encoded.room = sharing->count;
        sharing->good = !tokmap_tokenizer_encode(sharing->tokenizer, sharing->text, sharing->bytes, &encoded, NULL) &&
                        encoded.count == sharing->count && !memcmp(ids, sharing->wanted, sharing->count * sizeof *ids);
    }
    free(ids);
    return NULL;
}

/* A long text has the same ids from several threads and in one piece, and decodes to itself. */
static void round_trip(const char *path, const char *text, size_t bytes)
{
    struct tokmap_tokenizer *tokenizer;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, path, NULL, &error), TOKMAP_OK);
    struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, text, bytes, &encoded, &error), TOKMAP_OK);
    assert_true(encoded.count > bytes / 8 && encoded.count < bytes);
    uint32_t *ids = malloc(encoded.count * sizeof *ids);
    encoded.ids = ids;
    encoded.room = encoded.count;
    assert_int_equal(tokmap_tokenizer_encode(tokenizer, text, bytes, &encoded, &error), TOKMAP_OK);

    struct sharing sharing[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        sharing[i] = (struct sharing){tokenizer, text, bytes, encoded.count, ids, false};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &sharing[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(sharing[i].good);
    }

    char *back = malloc(bytes);
    struct tokmap_decoded decoded = TOKMAP_DECODED_INIT;
    decoded.text = back;
    decoded.room = bytes;
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, ids, encoded.count, &decoded, &error), TOKMAP_OK);
    assert_int_equal(decoded.bytes, bytes);
    assert_memory_equal(back, text, bytes);
    /* The second half of a document, as the rest of it. */
    const uint64_t half = encoded.count / 2;
    decoded.resumed = 1;
    assert_int_equal(tokmap_tokenizer_decode(tokenizer, ids + half, encoded.count - half, &decoded, &error), TOKMAP_OK);
    assert_memory_equal(back + decoded.bytes - 1000, text + bytes - 1000, 1000);
    tokmap_tokenizer_close(tokenizer);
    free(back);
    free(ids);
}

static void test_real(void **state)
{
    static const char *const names[] = {"gpt2/tokenizer.json", "openai/o200k_base.tiktoken", "llama2/tokenizer.json",
                                        "llama2/tokenizer.model", "gemma/tokenizer.json"};
    const char *data = reference_data();
    char path[1024];
    size_t bytes;
    if (!data)
        skip();
    snprintf(path, sizeof path, "%s/corpus/en_tinyshakespeare.txt", data);
    char *text = reference_read(path, &bytes);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/vocab/%s", data, names[i]);
        round_trip(path, text, bytes);
    }
    free(text);
}

/* Several tokens have the same bytes: the one that text becomes is found. */
static void test_real_tokens(void **state)
{
    const char *data = reference_data();
    char path[1024];
    struct tokmap_tokenizer *tokenizer;
    const char *bytes;
    uint64_t count, id;
    if (!data)
        skip();
    snprintf(path, sizeof path, "%s/vocab/llama2/tokenizer.model", data);
    assert_int_equal(tokmap_tokenizer_open(&tokenizer, path, NULL, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "A", 1, &id, NULL), TOKMAP_OK);
    assert_int_equal(id, 29909);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "\n", 1, &id, NULL), TOKMAP_OK);
    assert_int_equal(id, 13); /* <0x0A> */
    assert_int_equal(tokmap_tokenizer_find(tokenizer, " the", 4, &id, NULL), TOKMAP_OK);
    assert_int_equal(id, 278);
    assert_int_equal(tokmap_tokenizer_find(tokenizer, "<s>", 3, &id, NULL), TOKMAP_OK);
    assert_int_equal(id, 1);
    assert_int_equal(tokmap_tokenizer_token(tokenizer, 278, &bytes, &count, NULL), TOKMAP_OK);
    assert_int_equal(count, 4);
    assert_memory_equal(bytes, " the", 4);
    tokmap_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),        cmocka_unit_test(test_info),         cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode),      cmocka_unit_test(test_tokens),       cmocka_unit_test(test_real),
        cmocka_unit_test(test_real_tokens), cmocka_unit_test(test_offsets),      cmocka_unit_test(test_added),
        cmocka_unit_test(test_batch),       cmocka_unit_test(test_batch_errors), cmocka_unit_test(test_decode_batch),
    };
    return cmocka_run_group_tests_name("tokenizer_library", tests, NULL, NULL);
}
