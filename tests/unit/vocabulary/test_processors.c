/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_processors.c - what loading gives does not depend on the number of processors: the tokens and merges of a
 * byte-level vocabulary, and what the cache of a new state holds. And where a text is divided among threads that check
 * it, faults have the places that one thread finds.
 *
 * Keys of tables are fixed (table_key_fix), so that tables are the same down to the last byte.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_encode.h"
#include "common/cpu.h"
#include "engine/added_tokens.h"
#include "platform/os.h"
#include "pretokenize/pretokenizer.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/byte_level.h"

static cpu_set_t all;

/* From now on the test has one processor, or all that it had at first. */
static void use(bool one)
{
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&few); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &few);
    assert_int_equal(sched_setaffinity(0, sizeof all, one ? &few : &all), 0);
    assert_true(!one || os_processors() == 1);
}

static int find_processors(void **unused)
{
    (void)unused;
    return sched_getaffinity(0, sizeof all, &all);
}

/* ---- texts ---- */

#define LETTERS 27u /* bytes; all pairs and triples of them are tokens */
#define PAIRS (LETTERS * LETTERS)
#define TRIPLES (PAIRS * LETTERS)
#define OTHERS 20u /* tokens that do not stand for bytes, between the others */
#define TOKENS (256 + PAIRS + TRIPLES + OTHERS)
#define TEXT_MOST 8

struct made {
    char *texts; /* TEXT_MOST bytes for each token */
    uint32_t count;
    struct hf_model model;
    struct pipeline_parts parts;
};

/* Byte `number` of the letters: some are written as two bytes in the file. */
static uint8_t letter(uint32_t number)
{
    return (uint8_t)(number % 3 ? '0' + number : 0xE0 + number / 3);
}

static void token_add(struct made *made, const uint8_t *bytes, uint32_t count)
{
    uint8_t *text = (uint8_t *)made->texts + (size_t)made->count * TEXT_MOST;
    uint32_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += (uint32_t)code_point_put(text + length, byte_character(bytes[i]));
    assert_int_equal(text_table_add(&made->model.vocabulary, text, length, made->count++), TEXT_ADDED);
}

/* Adds a token with a character that does not stand for a byte. */
static void other_add(struct made *made)
{
    char *text = made->texts + (size_t)made->count * TEXT_MOST;
    (void)snprintf(text, TEXT_MOST, "%c\xe4\xb8%c", 'a' + (char)(made->count % 26),
                   (char)0x80 + (char)(made->count / 1000));
    assert_int_equal(text_table_add(&made->model.vocabulary, (const uint8_t *)text, 4, made->count++), TEXT_ADDED);
}

static void make(struct made *made)
{
    uint32_t duplicate, merges = 0;
    uint8_t bytes[3];
    memset(made, 0, sizeof *made);
    made->texts = malloc((size_t)TOKENS * TEXT_MOST);
    made->model.merges = malloc(sizeof *made->model.merges * (PAIRS + TRIPLES));
    assert_true(made->texts && made->model.merges);
    for (uint32_t byte = 0; byte < 256; byte++) {
        bytes[0] = (uint8_t)byte;
        token_add(made, bytes, 1);
    }
    uint32_t *pairs = malloc(PAIRS * sizeof *pairs);
    assert_non_null(pairs);
    for (uint32_t i = 0; i < PAIRS; i++) {
        bytes[0] = letter(i / LETTERS);
        bytes[1] = letter(i % LETTERS);
        pairs[i] = made->count;
        made->model.merges[merges++] = (struct bpe_merge){bytes[0], bytes[1], made->count};
        token_add(made, bytes, 2);
    }
    for (uint32_t i = 0; i < TRIPLES; i++) {
        if (i % 1000 == 0 && i / 1000 < OTHERS)
            other_add(made);
        bytes[0] = letter(i / PAIRS);
        bytes[1] = letter(i / LETTERS % LETTERS);
        bytes[2] = letter(i % LETTERS);
        made->model.merges[merges++] = (struct bpe_merge){pairs[i / LETTERS], bytes[2], made->count};
        token_add(made, bytes, 3);
    }
    free(pairs);
    made->model.merge_count = merges;
    assert_true(text_table_index(&made->model.vocabulary, &duplicate));
    made->parts.vocabulary = made->count;
    struct tokmap_error error;
    assert_int_equal(added_tokens_new(&made->parts.added, NULL, 0, "test", &error), TOKMAP_OK);
    assert_int_equal(byte_level_build(&made->parts, &made->model, split_rules_named("gpt2"), "test", &error),
                     TOKMAP_OK);
}

static void made_free(struct made *made)
{
    pipeline_parts_free(&made->parts);
    hf_model_free(&made->model);
    free(made->texts);
}

static void texts_are_the_same(void **unused)
{
    (void)unused;
    struct made one, several;
    use(true);
    make(&one);
    use(false);
    make(&several);
    assert_memory_equal(one.parts.fingerprint, several.parts.fingerprint, sizeof one.parts.fingerprint);
    assert_true(one.parts.text_count == OTHERS);
    assert_int_equal(one.parts.text_count, several.parts.text_count);
    for (uint32_t i = 0; i < one.parts.text_count; i++) {
        const struct pipeline_text *a = &one.parts.texts[i], *b = &several.parts.texts[i];
        assert_true(a->id == b->id && a->bytes == b->bytes);
        assert_memory_equal(a->text, b->text, a->bytes);
    }
    for (uint32_t id = 0; id < one.count; id++) {
        const struct text_engine *a = one.parts.engine, *b = several.parts.engine;
        const uint8_t *text[2];
        uint32_t count[2];
        const bool has = a->kind->id_bytes(a, id, &text[0], &count[0]);
        assert_int_equal(b->kind->id_bytes(b, id, &text[1], &count[1]), has);
        assert_int_equal(count[0], count[1]);
        assert_memory_equal(text[0], text[1], count[0]);
    }
    made_free(&one);
    made_free(&several);
}

/* ---- the cache of a new state ---- */

#define BUCKETS ((size_t)sizeof(struct bpe_bucket) << BPE_BUCKET_BITS)

/* All tokens of one, two, and three bytes of the letters, by rank: each has a seed. Its third bytes are any. */
static struct bpe_model *model_make(void)
{
    const uint32_t thirds = 80, most = 256 + PAIRS + PAIRS * thirds;
    uint8_t *bytes = malloc((size_t)most * 3);
    uint32_t *offsets = calloc((size_t)most + 1, sizeof *offsets), used = 0, count = 0;
    assert_true(bytes && offsets);
    for (uint32_t byte = 0; byte < 256; byte++) {
        bytes[used++] = (uint8_t)byte;
        offsets[++count] = used;
    }
    for (uint32_t i = 0; i < PAIRS + PAIRS * thirds; i++) {
        const uint32_t pair = i % PAIRS, third = i / PAIRS;
        bytes[used++] = letter(pair / LETTERS);
        bytes[used++] = letter(pair % LETTERS);
        if (third)
            bytes[used++] = (uint8_t)third;
        offsets[++count] = used;
    }
    const struct bpe_source source = {.path = "test",
                                      .vocabulary = count,
                                      .bytes = bytes,
                                      .offsets = offsets,
                                      .whole = true,
                                      .rules = *split_rules_named("gpt2")};
    struct bpe_model *model;
    struct tokmap_error error;
    assert_int_equal(bpe_model_build(&model, &source, &error), TOKMAP_OK);
    free(bytes);
    free(offsets);
    return model;
}

static void caches_are_the_same(void **unused)
{
    (void)unused;
    struct bpe_model *model = model_make();
    struct bpe_state *one, *several;
    struct tokmap_error error;
    assert_true(model->seed_count > 50000); /* so many that some buckets are full */
    use(true);
    table_key_fix(1);
    assert_int_equal(bpe_state_new(&one, model, cpu_variant_best(), &error), TOKMAP_OK);
    use(false);
    table_key_fix(1);
    assert_int_equal(bpe_state_new(&several, model, cpu_variant_best(), &error), TOKMAP_OK);
    assert_true(!memcmp(one->buckets, several->buckets, BUCKETS));
    assert_int_equal(one->victim, several->victim);
    bpe_state_free(one);
    bpe_state_free(several);
    table_key_fix(0);
    bpe_model_free(model);
}

/* ---- UTF-8 ---- */

#define PIECE ((size_t)1 << 20) /* as in json_file.c */
#define TEXT (2 * PIECE + 99)

static void expect_checked(const char *text, size_t count)
{
    struct json_file file;
    struct tokmap_error error = {0};
    const size_t valid = utf8_valid_prefix(text, count);
    const bool good = json_file_begin(&file, "test", text, count, &error);
    assert_int_equal(good, valid == count);
    if (!good) {
        (void)json_file_status(&file);
        assert_int_equal(error.offset, valid);
    }
    json_file_end(&file);
}

static void faults_of_texts(void **unused)
{
    (void)unused;
    static const char *const characters[] = {"a", "\xC3\xA9", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80"};
    static const size_t places[] = {77, PIECE - 1, PIECE, PIECE + 1, TEXT - 1};
    char *text = malloc(TEXT);
    assert_non_null(text);
    for (size_t kind = 0; kind < 4; kind++)
        for (size_t shift = 0; shift <= kind; shift++) {
            const size_t length = strlen(characters[kind]);
            memset(text, ' ', TEXT);
            for (size_t at = shift; at + length <= TEXT; at += length)
                memcpy(text + at, characters[kind], length);
            expect_checked(text, TEXT);
            for (size_t i = 0; i < sizeof places / sizeof places[0] && shift == kind; i++) {
                const char was = text[places[i]];
                text[places[i]] = (char)(i % 2 ? 0x80 : 0xE4);
                expect_checked(text, TEXT);
                text[places[i]] = was;
            }
        }
    memset(text, 'a', TEXT);
    memset(text + PIECE - 20, 0x80, 24); /* more continuation bytes than a sequence has */
    expect_checked(text, TEXT);
    memset(text, 0x80, TEXT);
    expect_checked(text, TEXT);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_the_same), cmocka_unit_test(caches_are_the_same),
                                       cmocka_unit_test(faults_of_texts)};
    return cmocka_run_group_tests(tests, find_processors, NULL);
}
