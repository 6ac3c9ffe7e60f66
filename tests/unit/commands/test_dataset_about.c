/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* What an index says about itself may be anything: facts are read from what is right, and nothing else happens. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "commands/report/dataset_about.h"

/* Reads a copy of exactly `bytes` bytes, so that a sanitizer sees every byte that is read beyond them. */
static void read_bytes(const char *text, size_t bytes, uint64_t tokens, struct about_facts *facts)
{
    char *copy = malloc(bytes ? bytes : 1);
    struct tokmap_error error;
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const struct tokmap_shard_info shard = {
        .size = sizeof shard, .about = copy, .about_bytes = bytes, .tokens = tokens};
    assert_int_equal(about_read(&shard, facts, &error), TOKMAP_OK);
    free(copy);
}

static void read_text(const char *text, uint64_t tokens, struct about_facts *facts)
{
    read_bytes(text, strlen(text), tokens, facts);
}

static const char whole[] =
    "{\"tool\": \"tokmap\", \"tokenizer\": {\"name\": \"gpt2\", \"fingerprint\": \"00\", "
    "\"special\": \"recognise\", " /* kept spelling */
    "\"pattern\": \"gpt2\", \"pattern_regex\": null, \"special_tokens\": \"s.json\", \"path\": "
    "\"v/a\\u00e9.tiktoken\"}, "
    "\"options\": {\"eod\": 3}, \"totals\": {\"files\": 1, \"text_bytes\": 40, \"tokens\": 10}}";

static void test_whole(void **state)
{
    struct about_facts facts;
    char title[ABOUT_TITLE];
    (void)state;
    read_text(whole, 10, &facts);
    assert_string_equal(facts.name, "gpt2");
    assert_string_equal(facts.path, "v/a\xc3\xa9.tiktoken");
    assert_string_equal(facts.special_tokens, "s.json");
    assert_string_equal(facts.pattern, "gpt2");
    assert_null(facts.pattern_regex);
    assert_true(facts.recognizes && facts.counted);
    assert_int_equal(facts.text_bytes, 40);
    assert_string_equal(about_title(&facts, title), "gpt2 (v/a\xc3\xa9.tiktoken)");
    about_free(&facts);
    read_text(whole, 11, &facts); /* the totals are those of another shard */
    assert_false(facts.counted);
    about_free(&facts);
}

static void test_cut_anywhere(void **state)
{
    struct about_facts facts;
    (void)state;
    for (size_t bytes = 0; bytes < sizeof whole; bytes++) {
        read_bytes(whole, bytes, 10, &facts);
        about_free(&facts);
    }
    for (size_t at = 0; at + 1 < sizeof whole; at++) {
        static const char bytes[] = {0, '"', '{', '}', '[', ',', '\\', '9', (char)0xff};
        char changed[sizeof whole];
        memcpy(changed, whole, sizeof whole);
        for (size_t i = 0; i < sizeof bytes; i++) {
            changed[at] = bytes[i];
            read_bytes(changed, sizeof whole - 1, 10, &facts);
            about_free(&facts);
        }
    }
}

static void test_wrong_values(void **state)
{
    /* clang-format off */
    static const char *const texts[] = {
        "", "null", "[]", "{}", "{\"tokenizer\": 3, \"totals\": []}", "{\"tokenizer\": {}, \"totals\": {}}",
        "{\"tokenizer\": {\"name\": 3, \"path\": {\"a\": 1}, \"pattern\": [\"x\"]}, \"totals\": {\"tokens\": -1}}",
        "{\"tokenizer\": {\"name\": \"\\u001b[31m\", \"path\": \"a\\u0000b\"}}", /* not printable; a zero byte */
        "{\"tokenizer\": {\"path\": \"\"}, \"totals\": {\"text_bytes\": 1e3, \"tokens\": 10}}",
    };
    /* clang-format on */
    struct about_facts facts;
    char title[ABOUT_TITLE];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i], 10, &facts);
        assert_string_equal(facts.name, "");
        assert_null(facts.path);
        assert_null(facts.pattern);
        assert_false(facts.counted);
        assert_string_equal(about_title(&facts, title), "");
        about_free(&facts);
    }
}

static void becomes(const char *name, const char *path, const char *wanted)
{
    struct about_facts facts = {.path = path ? strdup(path) : NULL};
    char title[ABOUT_TITLE];
    memcpy(facts.name, name, strlen(name) + 1);
    assert_string_equal(about_title(&facts, title), wanted);
    about_free(&facts);
}

static void test_titles(void **state)
{
    char path[1000], title[ABOUT_TITLE];
    (void)state;
    becomes("bytes", NULL, "bytes");
    becomes("", "v.json", "v.json");
    becomes("tokenizer.json", "gpt2", "gpt2 (tokenizer.json)");
    becomes("tokenizer.json", "gpt2/tokenizer.json", "gpt2/tokenizer.json");
    becomes("r50k_base", "v/r50k.tiktoken", "r50k_base (v/r50k.tiktoken)");
    becomes("gpt2", "a\x1b[2Jb", "gpt2 (a^[[2Jb)");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    struct about_facts facts = {.name = "tokenizer.json", .path = strdup(path)};
    assert_true(strlen(about_title(&facts, title)) < ABOUT_TITLE);
    about_free(&facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_wrong_values),
        cmocka_unit_test(test_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
