/* SPDX-License-Identifier: MIT */
/* test_tekken_file.c - a tekken.json with one fault at a time is refused with the field and the rank in question. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"

/* Writes a tekken.json with a rank for each byte and two special tokens, in which the first `find` is replaced. */
static void write_file(const char *path, const char *find, const char *replace)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static char text[1 << 16], changed[1 << 16];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "{\"config\": {\"pattern\": \"\\\\s+|\\\\S+\", \"default_vocab_size\": 258, "
                                   "\"default_num_special_tokens\": 2}, \"vocab\": [");
    for (unsigned byte = 0; byte < 256; byte++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s{\"rank\": %u, \"token_bytes\": \"%c%c==\"}",
                                 byte ? ", " : "", byte, digits[byte >> 2], digits[(byte & 3) << 4]);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "], \"special_tokens\": [{\"rank\": 0, \"token_str\": \"<unk>\"}, "
                             "{\"rank\": 1, \"token_str\": \"</s>\"}]}");
    assert_true(used < sizeof text);
    const char *at = strstr(text, find);
    assert_non_null(at);
    const int length =
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
    assert_true(length > 0 && (size_t)length < sizeof changed);
    file_write(path, changed, (size_t)length);
}

static void one_fault_at_a_time(void **unused)
{
    (void)unused;
    static const struct {
        const char *find, *replace, *message;
    } faults[] = {
        {"{\"rank\": 0, \"token_bytes\"", "{\"token_bytes\"", "entry 0 (counted from 0) must have the rank 0"},
        {"{\"rank\": 7, ", "{\"rank\": 8, ", "entry 7 (counted from 0) must have the rank 7"},
        {"{\"rank\": 3, \"token_bytes\": \"Aw==\"}", "{\"rank\": 3}", "token_bytes of rank 3 are missing"},
        {"\"token_bytes\": \"AA==\"", "\"token_bytes\": \"\"", "token_bytes of rank 0 are missing, empty"},
        {"\"token_bytes\": \"BQ==\"", "\"token_bytes\": \"B!==\"", "token_bytes of rank 5 are not base64"},
        {"{\"rank\": 0, \"token_str\": \"<unk>\"}", "{\"token_str\": \"<unk>\"}", "special_tokens: a token must have"},
        {"{\"rank\": 1, \"token_str\": \"</s>\"}", "{\"rank\": 1}", "special_tokens: a token must have"},
        {"{\"rank\": 1, \"token_str\"", "{\"rank\": 0, \"token_str\"", "special_tokens: two tokens have the rank 0"},
        {"{\"rank\": 8, ", "{\"rank\" 8, ", "the name of a field is not followed by a colon"},
        {"{\"rank\": 9, \"token_bytes\": \"CQ==\"}", "{\"rank\": 9, \"token_bytes\": \"CQ==\" ]", "not the JSON"},
        {"\"token_str\": \"</s>\"}", "\"token_str\": \"</s>\" ]", "not the JSON"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char path[600];
        struct tokenizer *tokenizer = NULL;
        struct tokmap_error error = {0};
        (void)snprintf(path, sizeof path, "%s/%zu.json", folder, i);
        write_file(path, faults[i].find, faults[i].replace);
        assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_FORMAT);
        assert_null(tokenizer);
        assert_string_equal(error.path, path);
        if (!strstr(error.message, faults[i].message))
            fail_msg("fault %zu: %s", i, error.message);
    }
}

/* Without a fault the file opens, so the faults above are the reason for the refusals. */
static void the_file_is_sound(void **unused)
{
    (void)unused;
#ifdef HAVE_PCRE2
    char path[600];
    struct tokenizer *tokenizer = NULL;
    struct tokmap_error error = {0};
    (void)snprintf(path, sizeof path, "%s/sound.json", folder);
    write_file(path, "\"config\"", "\"config\"");
    if (vocabulary_open(&tokenizer, path, NULL, &error))
        fail_msg("%s", error.message);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.vocabulary, 258);
    assert_int_equal(info.eod_id, 1);
    tokenizer_close(tokenizer);
#else
    skip(); /* the pattern needs PCRE2 */
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_fault_at_a_time),
        cmocka_unit_test(the_file_is_sound),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
