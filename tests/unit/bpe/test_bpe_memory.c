/* SPDX-License-Identifier: MIT */
/*
 * test_bpe_memory.c - encoding continues after a failed allocation: the call reports it, and nothing is written to
 * memory that is not there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_encode.h"
#include "common/cpu.h"
#include "pretokenize/pretokenizer.h"
#include "support/sanitized.h"

#ifndef SANITIZED
void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes);

static size_t failing; /* allocations of at least as many bytes fail; 0: none do */
static int failures;

void *malloc(size_t bytes)
{
    if (failing && bytes >= failing) {
        failures++;
        return NULL;
    }
    return __libc_malloc(bytes);
}

/* The 256 bytes; CHARACTERS times the character U+4E2D, and "hello", which no merges reach, so that they are tokens
 * only where they are whole pieces; and the character U+6587, with its first two bytes. */
enum { CHARACTERS = 1700, LONG = 3 * CHARACTERS, LONG_ID = 256, HELLO_ID, TWO_BYTES_ID, OTHER_ID, VOCABULARY };
static const char character[] = "\xE4\xB8\xAD", other_character[] = "\xE6\x96\x87";

static struct bpe_model *make_model(void)
{
    static uint8_t bytes[256 + LONG + 5 + 2 + 3];
    static uint32_t offsets[VOCABULARY + 1];
    const struct bpe_source source = {.path = "made",
                                      .vocabulary = VOCABULARY,
                                      .bytes = bytes,
                                      .offsets = offsets,
                                      .whole = true,
                                      .rules = *split_rules_named("gpt2")};
    struct bpe_model *model;
    struct tokmap_error error;
    for (uint32_t i = 0; i < 256; i++) {
        bytes[i] = (uint8_t)i;
        offsets[i] = i;
    }
    for (uint32_t i = 0; i < CHARACTERS; i++)
        memcpy(bytes + 256 + 3 * i, character, 3);
    offsets[LONG_ID] = 256;
    offsets[HELLO_ID] = 256 + LONG;
    offsets[TWO_BYTES_ID] = offsets[HELLO_ID] + 5;
    offsets[OTHER_ID] = offsets[TWO_BYTES_ID] + 2;
    offsets[VOCABULARY] = offsets[OTHER_ID] + 3;
    memcpy(bytes + offsets[HELLO_ID], "hello", 5);
    memcpy(bytes + offsets[TWO_BYTES_ID], other_character, 2);
    memcpy(bytes + offsets[OTHER_ID], other_character, 3);
    assert_int_equal(bpe_model_build(&model, &source, &error), TOKMAP_OK);
    assert_int_equal(model->unreached_count, 2);
    return model;
}

/* A merge function other than bpe_merge gets pieces of any length, as that of SentencePiece does. */
static size_t merge_any(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                        uint32_t *ids)
{
    return bpe_merge(model, scratch, bytes, count, ids);
}

/* A long part of a piece needs more room for its ids than there is, and the allocation fails. The cache holds what
 * follows, up to the piece "hello": it is looked up whole, and its id needs that room too. */
static void a_whole_piece_after_a_failure(void **unused)
{
    static uint8_t text[LONG + 3 + 1 + 5];
    static uint16_t ids[sizeof text];
    struct bpe_model *model = make_model();
    struct bpe_state *state;
    struct tokmap_error error;
    uint64_t written;
    (void)unused;
    model->merge = merge_any;
    memcpy(text, model->bytes + 256, LONG);
    memcpy(text + LONG, other_character, 3);
    memcpy(text + LONG + 3, "\nhello", 6);
    for (int variant = 0; variant <= (int)cpu_variant_best(); variant++) {
        assert_int_equal(bpe_state_new(&state, model, (enum cpu_variant)variant, &error), TOKMAP_OK);
        failures = 0;
        failing = LONG;
        const enum tokmap_status status = bpe_encode(state, text, sizeof text, ids, sizeof text, &written, &error);
        failing = 0;
        assert_int_equal(failures, 1);
        assert_int_equal(status, TOKMAP_ERROR_MEMORY);
        /* With memory, the same state encodes the same text. */
        assert_int_equal(bpe_encode(state, text, sizeof text, ids, sizeof text, &written, &error), TOKMAP_OK);
        assert_int_equal(written, LONG + 1 + 1 + 1);
        for (size_t i = 0; i < LONG; i++)
            assert_int_equal(ids[i], text[i]);
        assert_int_equal(ids[LONG], OTHER_ID);
        assert_int_equal(ids[LONG + 1], '\n');
        assert_int_equal(ids[LONG + 2], HELLO_ID);
        bpe_state_free(state);
    }
    bpe_model_free(model);
}
#else
static void a_whole_piece_after_a_failure(void **unused)
{
    (void)unused;
    print_message("a sanitizer has its own malloc\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_whole_piece_after_a_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
