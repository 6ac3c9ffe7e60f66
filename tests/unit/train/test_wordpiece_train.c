/* SPDX-License-Identifier: MIT */
/* test_wordpiece_train.c - a WordPiece vocabulary of a tiny text is the one that Hugging Face's trainer would make: its
 * words, its alphabet, its merges, and what must not become a token. tests/reference/train_models_reference.py compares
 * with the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "train/wordpiece_train.h"

static struct train_budget budget = {(uint64_t)1 << 30, 0};

/* The words of the text: "ab" three times, "xbc" twice, "cbc", "abc" once by itself and once before a syllable, and
 * others once. */
static const char text[] = "AB ab ab, Xbc xb\xc3\xa7 cbc abc abc\xea\xb0\x81 \xed\x9e\xa3\x01\n";

static enum tokmap_status train(struct wordpiece_vocabulary *v, uint32_t tokens, const struct train_settings *settings,
                                struct tokmap_error *error)
{
    struct wp_characters *table;
    struct train_pieces *pieces;
    struct train_counter *counter;
    struct train_characters characters;
    const struct train_options options = {.tokens = tokens, .min_frequency = 2};
    assert_int_equal(wp_characters_new(&table, (struct wp_rules){true, true, true, true}, NULL), TOKMAP_OK);
    assert_int_equal(train_pieces_new(&pieces, &budget, NULL), TOKMAP_OK);
    assert_int_equal(train_counter_new(&counter, pieces, NULL, NULL), TOKMAP_OK);
    assert_int_equal(wordpiece_count(table, counter, (const uint8_t *)text, sizeof text - 1, NULL), TOKMAP_OK);
    assert_int_equal(train_counter_finish(counter, NULL), TOKMAP_OK);
    train_counter_free(counter);
    wp_characters_free(table);
    assert_int_equal(train_characters_choose(&characters, pieces, 1, NULL, 0, &budget, NULL), TOKMAP_OK);
    const enum tokmap_status status = wordpiece_train(v, pieces, &characters, settings, &budget, &options, error);
    train_characters_free(&characters, &budget);
    train_pieces_free(pieces);
    return status;
}

static void check(uint32_t tokens, const struct train_settings *settings, const char *wanted)
{
    static const struct wordpiece_settings lower = {true};
    struct wordpiece_vocabulary v;
    struct growing contents[WORDPIECE_FILES] = {{0}};
    struct tokmap_error error;
    if (train(&v, tokens, settings, &error))
        fail_msg("%s", error.message);
    wordpiece_write(contents, &v, &lower, settings);
    append(&contents[0], "", 1);
    assert_string_equal(contents[0].bytes, wanted);
    for (int i = 0; i < WORDPIECE_FILES; i++)
        free(contents[i].bytes);
    wordpiece_vocabulary_free(&v);
    assert_int_equal(budget.used, 0);
}

/* U+1100, U+1112, U+1161, U+1175, U+11A8, and U+11C2 are the letters of the two syllables. */
#define FIRST                                                                                                          \
    "[UNK]\n,\na\nb\nc\nx\n\xe1\x84\x80\n\xe1\x84\x92\n\xe1\x85\xa1\n\xe1\x85\xb5\n\xe1\x86\xa8\n\xe1\x87\x82\n"
#define INSIDE "##b\n##c\n##\xe1\x84\x80\n##\xe1\x85\xa1\n##\xe1\x85\xb5\n##\xe1\x86\xa8\n##\xe1\x87\x82\n"
#define LETTERS 19

static void vocabulary(void **state)
{
    const struct train_text specials[] = {{(const uint8_t *)"[PAD]", 5}, {(const uint8_t *)"##bc", 4}};
    const struct train_settings one = {.specials = specials, .special_count = 1};
    const struct train_settings both = {.specials = specials, .special_count = 2};
    check(LETTERS, &one, FIRST INSIDE "[PAD]\n");
    check(LETTERS + 1, &one, FIRST INSIDE "ab\n[PAD]\n");
    check(LETTERS + 100, &one, FIRST INSIDE "ab\n##bc\nxbc\nabc\n[PAD]\n");
    /* A special token that would be made is not: its text would have two ids. */
    check(LETTERS + 100, &both, FIRST INSIDE "ab\nxb\nabc\nxbc\n[PAD]\n##bc\n");
}

static void too_few_tokens(void **state)
{
    const struct train_settings none = {NULL, NULL, 0};
    struct wordpiece_vocabulary v;
    struct tokmap_error error = {0};
    assert_int_equal(train(&v, LETTERS - 1, &none, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "raise --vocab-size to 19 or more"));
    wordpiece_vocabulary_free(&v);
    assert_int_equal(budget.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vocabulary), cmocka_unit_test(too_few_tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
