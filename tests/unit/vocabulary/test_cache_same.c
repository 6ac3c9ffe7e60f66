/*
 * test_cache_same.c - a tokenizer that the cache returns is the one that its file gives: ids, offsets, decoded text,
 * tokens, names, and fingerprints, for small vocabularies of every kind and for the reference vocabularies.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocabulary/vocabulary.h"
#include "support/awkward_text.h"
#include "support/cached_tokenizer.h"
#include "support/reference_data.h"
#include "support/scratch.h"

#define TEXT 60000

static const struct {
    const char *path, *pattern;
    bool stored;   /* path is relative to the reference data; false: to this tree */
    bool uncached; /* its pattern needs PCRE2 */
} vocabularies[] = {
    {"tests/fuzz/corpus/fuzz_vocabulary/gpt2.json", NULL, false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/split.json", NULL, false, true},
    {"tests/fuzz/corpus/fuzz_vocabulary/characters.json", NULL, false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/small.model", NULL, false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/tekken.json", NULL, false, true},
    {"tests/fuzz/corpus/fuzz_vocabulary/ranks.tiktoken", "o200k_base", false, false},
    {"vocab/openai/r50k_base.tiktoken", NULL, true, false},
    {"vocab/openai/cl100k_base.tiktoken", NULL, true, false},
    {"vocab/openai/o200k_base.tiktoken", NULL, true, false},
    {"vocab/gpt2/tokenizer.json", NULL, true, false},
    {"vocab/gpt2/vocab.bpe", NULL, true, false},
    {"vocab/gpt2/encoder.json", NULL, true, false},
    {"vocab/llama3/tokenizer.json", NULL, true, false},
    {"vocab/llama3/tokenizer.model", NULL, true, false},
    {"vocab/qwen2.5/tokenizer.json", NULL, true, false},
    {"vocab/deepseek_v3/tokenizer.json", NULL, true, false},
    {"vocab/gpt_neox_20b/tokenizer.json", NULL, true, false},
    {"vocab/mistral_nemo/tokenizer.json", NULL, true, false},
    {"vocab/mistral_nemo/tekken_derived.json", NULL, true, false},
    {"vocab/llama2/tokenizer.json", NULL, true, false},
    {"vocab/llama2/tokenizer.model", NULL, true, false},
    {"vocab/mistral7b_v1/tokenizer.model", NULL, true, false},
    {"vocab/gemma/tokenizer.json", NULL, true, false},
};

/* Writes awkward text, the texts of some added tokens, and text that no cache of pieces holds. */
static void text_make(char *text, const struct tokenizer *tokenizer)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    awkward_text((uint8_t *)text, TEXT);
    size_t at = 0;
    for (uint64_t i = 0; i < info.added && at < TEXT / 4; i += 1 + info.added / 16) {
        struct tokenizer_added added;
        tokenizer_added_at(tokenizer, i, &added);
        if (added.bytes > 64)
            continue;
        memcpy(text + at, added.text, added.bytes);
        at += added.bytes;
        at += (size_t)sprintf(text + at,
                              " The quick brown f\xC3\xB6x, %u times: \xE4\xB8\xAD\xE6\x96\x87. \xF0\x9F\x98\x80",
                              awkward_below(1000000));
    }
    for (; at < TEXT / 2; at++)
        text[at] = (char)('a' + awkward_below(26));
    while (at < TEXT && ((uint8_t)text[at] & 0xC0) == 0x80)
        text[at++] = ' ';
}

static void check(const char *path, struct tokenizer_options options, const char *folder, bool uncached)
{
    static char text[TEXT + 64];
    struct tokenizer *plain;
    struct tokmap_error error;
    if (vocabulary_open(&plain, path, &options, &error)) {
        assert_true(strstr(error.message, "PCRE2") != NULL); /* a build without it */
        return;
    }
    text_make(text, plain);
    if (uncached) {
        for (int i = 0; i < 2; i++)
            tokenizer_close(open_cached(path, folder, options, TOKENIZER_NOT_CACHED));
        tokenizer_close(plain);
        return;
    }
    struct tokenizer *written = open_cached(path, folder, options, TOKENIZER_CACHE_WRITTEN);
    struct tokenizer *read = open_cached(path, folder, options, TOKENIZER_CACHE_READ), *shared;
    same_tokenizer(plain, read, text, TEXT);
    tokenizer_close(written);
    /* The policy for special tokens is not a part of the file. */
    assert_int_equal(tokenizer_share(&shared, plain, TOKENIZER_SPECIAL_RECOGNIZE, &error), TOKMAP_OK);
    options.special = TOKENIZER_SPECIAL_RECOGNIZE;
    struct tokenizer *recognizes = open_cached(path, folder, options, TOKENIZER_CACHE_READ);
    same_tokenizer(shared, recognizes, text, TEXT);
    tokenizer_close(shared);
    tokenizer_close(recognizes);
    assert_int_equal(tokenizer_share(&shared, read, TOKENIZER_SPECIAL_RECOGNIZE, &error), TOKMAP_OK);
    tokenizer_close(shared);
    tokenizer_close(read);
    tokenizer_close(plain);
}

static void every_vocabulary(void **unused)
{
    const char *data = reference_data();
    char folder[512];
    scratch_make(folder);
    awkward_seed(3);
    for (size_t v = 0; v < sizeof vocabularies / sizeof vocabularies[0]; v++) {
        char path[1024];
        if (vocabularies[v].stored && !data)
            continue;
        (void)snprintf(path, sizeof path, "%s%s%s", vocabularies[v].stored ? data : "",
                       vocabularies[v].stored ? "/" : "", vocabularies[v].path);
        const struct tokenizer_options options = {.pattern = vocabularies[v].pattern};
        check(path, options, folder, vocabularies[v].uncached);
    }
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_vocabulary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
