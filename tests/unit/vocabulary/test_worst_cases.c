/* SPDX-License-Identifier: MIT */
/*
 * test_worst_cases.c - documents of 300,000 equal letters, spaces, digits, Han characters, combining marks, emoji, or
 * pairs: every vocabulary encodes them in time, and decoding returns the text.
 *
 * The test measures no time. A quadratic algorithm needs 10^11 steps here, and the test exceeds its time limit. With
 * TEST_SHOW=1 it prints the time per byte of documents that are slower than random text; up to three times that of
 * random text is expected.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/awkward_text.h"
#include "support/decode_once.h"
#include "support/reference_data.h"
#include "vocabulary/vocabulary.h"

/* clang-format off */
static const char *const atoms[] = {
    "a", "A", " ", "\n", "1", "-", "_", "\xe4\xb8\xad", "\xe3\x81\x82", "\xcc\x81", "\xf0\x9f\x98\x80", "ab", "aB",
    "a ", " \n", "a1", "'s", "1 ",
    "\xc3\xa9", "\xd0\xb6", "\xd8\xb9", "\xe0\xa4\x95\xe0\xa5\x8d", "\xe1\x84\x80\xe1\x85\xa1", "\xe2\x96\x81",
    "\xe0\xb8\x81", "e\xcc\x81", "\xe4\xb8\xad\xe6\x96\x87",
    "\xf0\x9f\x91\xa8\xe2\x80\x8d", "aaaaaaaaaaaaaaab", "\xc2\xa0", "\xe3\x80\x80", "\x01", "\r\n", "<", "<s>", "|||",
};
/* clang-format on */
#define ATOMS (sizeof atoms / sizeof atoms[0])

static const struct {
    const char *path;
    bool stored;  /* path is relative to the reference data; false: to this tree */
    bool inverse; /* decoding returns the text unchanged; false if there is a normalizer, or U+2581 becomes a space */
} vocabularies[] = {
    {"tests/fuzz/corpus/fuzz_vocabulary/gpt2.json", false, false}, /* an added token strips spaces */
    {"tests/fuzz/corpus/fuzz_vocabulary/split.json", false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/characters.json", false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/small.model", false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/words.json", false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/bpe_words.json", false, false},
    {"tests/fuzz/corpus/fuzz_vocabulary/rwkv.txt", false, true},
    {"tests/fuzz/corpus/fuzz_vocabulary/vocab.txt", false, false},
    {"vocab/openai/r50k_base.tiktoken", true, true},
    {"vocab/openai/cl100k_base.tiktoken", true, true},
    {"vocab/openai/o200k_base.tiktoken", true, true},
    {"vocab/llama3/tokenizer.json", true, true},
    {"vocab/qwen2.5/tokenizer.json", true, false},
    {"vocab/deepseek_v3/tokenizer.json", true, true},
    {"vocab/gpt_neox_20b/tokenizer.json", true, false},
    {"vocab/mistral_nemo/tokenizer.json", true, true},
    {"vocab/llama2/tokenizer.json", true, false},
    {"vocab/llama2/tokenizer.model", true, false},
    {"vocab/mistral7b_v1/tokenizer.model", true, false},
    {"vocab/gemma/tokenizer.json", true, false},
    {"vocab/t5_small/tokenizer.json", true, false},
    {"vocab2/t5_base/spiece.model", true, false},
    {"vocab2/albert_v2/30k-clean.model", true, false}, /* user-defined symbols between the keys of a charsmap */
    {"vocab2/marian_nmt/tokenizer.json", true, false},
    {"vocab2/llm_jp_v3_1/llm-jp-tokenizer-100k.ver3.1.model", true, false},
    {"vocab2/bpemb_en_100k/en.wiki.bpe.vs100000.model", true, false},
    {"vocab2/bert_base_uncased/vocab.txt", true, false},
    {"vocab2/clip_vit/tokenizer.json", true, false},
    {"vocab2/openai_gpt/vocab.json", true, false},
    {"vocab2/kimi_k2/tiktoken.model", true, true},
    {"vocab2/rwkv_world/rwkv_vocab_v20230424.txt", true, true},
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Encodes a text, checks the decoded text, and returns the seconds that encoding took. */
static double check(const struct tokenizer *tokenizer, const char *text, size_t bytes, bool inverse)
{
    struct tokmap_error error;
    struct tokenizer_state *state;
    const struct tokmap_text document = {text, bytes};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    uint64_t end;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    struct tokenizer_out out = {.capacity = (uint64_t)bytes * info.ids_per_byte_most + 64, .ends = &end};
    out.tokens = malloc(out.capacity * info.width);
    assert_non_null(out.tokens);
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    const double start = seconds();
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
    const double took = seconds() - start;
    tokenizer_state_free(state);
    if (inverse) {
        struct text_buffer back = {NULL, 0, 0};
        assert_int_equal(tokenizer_decode(tokenizer, out.tokens, out.count, true, false, &back, &error), TOKMAP_OK);
        assert_int_equal(back.count, bytes);
        assert_memory_equal(back.bytes, text, bytes);
        free(back.bytes);
    }
    free(out.tokens);
    return took;
}

static void every_vocabulary(void **unused)
{
    const char *data = reference_data();
    /* A sanitizer build looks for accesses out of bounds, for which less text is enough; with all of it, it would
     * take 15 minutes. */
    const char *sanitizer = getenv("SANITIZE");
    const size_t characters = (size_t)awkward_rounds(sanitizer && *sanitizer ? 40000 : 300000);
    const size_t random_bytes = 2 * characters;
    const bool show = getenv("TEST_SHOW") != NULL;
    char *text = malloc(16 * characters), *random = malloc(random_bytes);
    assert_true(text && random);
    awkward_seed(9);
    for (size_t at = 0; at < random_bytes;) { /* pieces of all kinds, hardly any of them twice */
        const char *drawn = awkward_atoms[awkward_below((uint32_t)awkward_atom_count)];
        const size_t bytes = at + strlen(drawn) <= random_bytes ? strlen(drawn) : 1;
        memcpy(random + at, bytes == 1 ? "x" : drawn, bytes);
        at += bytes;
    }
    for (size_t v = 0; v < sizeof vocabularies / sizeof vocabularies[0]; v++) {
        struct tokenizer *tokenizer;
        struct tokmap_error error;
        char path[1024];
        if (vocabularies[v].stored && !data)
            continue;
        (void)snprintf(path, sizeof path, "%s%s%s", vocabularies[v].stored ? data : "",
                       vocabularies[v].stored ? "/" : "", vocabularies[v].path);
        const struct tokmap_tokenizer_options options = {.lower_case = strstr(path, "vocab.txt") ? "yes" : NULL};
        const enum tokmap_status opened = vocabulary_open(&tokenizer, path, &options, &error);
        if (opened && (strstr(error.message, "PCRE2") || strstr(path, "vocab2/") || strstr(path, "t5_small"))) {
            /* test_golden2 says which of them must be read */
            print_message("%s: %s\n", vocabularies[v].path, error.message);
            continue;
        }
        assert_int_equal(opened, TOKMAP_OK);
        const double usual = check(tokenizer, random, random_bytes, vocabularies[v].inverse) / (double)random_bytes;
        if (show)
            print_message("%s: random text: %.1f ns per byte\n", vocabularies[v].path, usual * 1e9);
        for (size_t atom = 0; atom < ATOMS; atom++) {
            const size_t bytes = strlen(atoms[atom]);
            for (size_t i = 0; i < characters; i++)
                memcpy(text + i * bytes, atoms[atom], bytes);
            double took = check(tokenizer, text, characters * bytes, vocabularies[v].inverse);
            took /= (double)(characters * bytes);
            if (show && took > usual)
                print_message("  %zu times \"%s\": %.1f ns per byte, %.1f times that of random text\n", characters,
                              atoms[atom], took * 1e9, took / usual);
        }
        tokenizer_close(tokenizer);
    }
    free(text);
    free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_vocabulary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
