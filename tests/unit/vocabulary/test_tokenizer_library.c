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
    assert_non_null(strstr(error.message, "options.special is 7"));
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
    struct tokmap_tokenizer_info info = {.size = sizeof info};
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
                        encoded.count == sharing->count &&
                        !memcmp(ids, sharing->wanted, sharing->count * sizeof *ids);
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
        cmocka_unit_test(test_open),   cmocka_unit_test(test_info), cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode), cmocka_unit_test(test_tokens), cmocka_unit_test(test_real),
        cmocka_unit_test(test_real_tokens),
    };
    return cmocka_run_group_tests_name("tokenizer_library", tests, NULL, NULL);
}
