/* SPDX-License-Identifier: MIT */
/* test_added_tokens.c - added tokens are found as a plain search finds them, on small alphabets where tokens overlap,
 * with tokens shorter and longer than what is compared at a place; and the work is linear in the text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/added_tokens.h"

#define TOKENS_MOST 40
#define TEXT_MOST 20000

static uint64_t seed = 7;

static uint32_t pick(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

/* ---- a plain splitter, for texts of ASCII ---- */

struct plain {
    const struct added_token *tokens;
    size_t count;
    bool specials;
    const char *text;
    size_t bytes, done;
    struct added_part parts[2 * TEXT_MOST];
    size_t made;
};

static const struct added_token *longest_at(const struct plain *plain, size_t at)
{
    const struct added_token *found = NULL;
    for (size_t i = 0; i < plain->count; i++)
        if (plain->tokens[i].bytes <= plain->bytes - at &&
            !memcmp(plain->tokens[i].text, plain->text + at, plain->tokens[i].bytes) &&
            (!found || plain->tokens[i].bytes > found->bytes))
            found = &plain->tokens[i];
    return found;
}

static bool is_word(char c)
{
    return c != ' ' && c != '.';
}

static void add_part(struct plain *plain, const struct added_token *token, size_t from, size_t to)
{
    plain->parts[plain->made++] = (struct added_part){token, from, to};
    plain->done = to;
}

static void split_plainly(struct plain *plain)
{
    plain->made = plain->done = 0;
    for (size_t at = 0; at < plain->bytes;) { /* the rules of added_tokens.h */
        const struct added_token *token = longest_at(plain, at);
        if (!token) {
            at++;
            continue;
        }
        size_t from = at, to = at + token->bytes;
        at = to;
        if ((token->special && !plain->specials) ||
            (token->single_word &&
             ((from && is_word(plain->text[from - 1])) || (to < plain->bytes && is_word(plain->text[to])))))
            continue;
        while (token->lstrip && from > plain->done && plain->text[from - 1] == ' ')
            from--;
        if (token->lstrip && from < plain->done)
            from = plain->done;
        while (token->rstrip && to < plain->bytes && plain->text[to] == ' ')
            to++;
        if (from >= to) /* the reference fails if it is more */
            continue;
        if (plain->done < from)
            add_part(plain, NULL, plain->done, from);
        add_part(plain, token, from, to);
    }
    if (plain->done < plain->bytes)
        add_part(plain, NULL, plain->done, plain->bytes);
}

/* ---- random sets ---- */

static char texts[TOKENS_MOST][700];
static struct added_token tokens[TOKENS_MOST];

/* Writes periodic text, now and then with a change, so that tokens share long beginnings. */
static void fill(char *into, size_t count, const char *alphabet)
{
    const uint32_t period = 1 + pick(4), letters = (uint32_t)strlen(alphabet);
    for (size_t i = 0; i < count; i++)
        into[i] = i >= period && pick(60) ? into[i - period] : alphabet[pick(letters)];
}

static size_t make_tokens(const char *alphabet, uint32_t longest)
{
    size_t count = 0;
    const uint32_t wanted = 1 + pick(TOKENS_MOST);
    for (uint32_t tries = 0; tries < wanted; tries++) {
        const uint32_t bytes = 1 + pick(pick(3) ? 6 : longest);
        bool twice = false;
        fill(texts[count], bytes, alphabet);
        for (size_t i = 0; i < count; i++)
            twice |= tokens[i].bytes == bytes && !memcmp(texts[i], texts[count], bytes);
        if (twice)
            continue;
        tokens[count] = (struct added_token){.text = (const uint8_t *)texts[count],
                                             .match = (const uint8_t *)texts[count],
                                             .bytes = bytes,
                                             .match_bytes = bytes,
                                             .id = (uint32_t)count,
                                             .single_word = !pick(6),
                                             .lstrip = !pick(5),
                                             .rstrip = !pick(5),
                                             .special = !pick(4)};
        count++;
    }
    return count;
}

/* Splits a text and returns the work. */
static uint64_t compare(const struct added_tokens *added, struct plain *plain)
{
    struct added_split split;
    struct added_part part;
    size_t at = 0;
    struct tokmap_error error;
    split_plainly(plain);
    added_split_begin(&split, added, ADDED_RAW, plain->specials, (const uint8_t *)plain->text, plain->bytes);
    for (; added_split_next(&split, &part); at++) {
        assert_true(at < plain->made);
        assert_int_equal(part.from, plain->parts[at].from);
        assert_int_equal(part.to, plain->parts[at].to);
        assert_int_equal(!part.token, !plain->parts[at].token);
        if (part.token)
            assert_int_equal(part.token->id, plain->parts[at].token->id);
    }
    assert_int_equal(at, plain->made);
    const uint64_t steps = split.search.steps;
    assert_int_equal(added_split_end(&split, &error), TOKMAP_OK);
    return steps;
}

static void parts_equal_a_plain_search(void **state)
{
    static const char *const alphabets[] = {"a", "ab", "ab ", " ", "abc .", "yz"};
    static struct plain plain;
    static char text[TEXT_MOST];
    (void)state;
    for (int round = 0; round < 1500; round++) {
        const char *alphabet = alphabets[pick(6)];
        const size_t count = make_tokens(alphabet, round % 3 ? 12 : 700);
        struct added_tokens *added;
        struct tokmap_error error;
        assert_int_equal(added_tokens_new(&added, tokens, count, NULL, &error), TOKMAP_OK);
        plain.tokens = tokens;
        plain.count = count;
        plain.text = text;
        for (int tries = 0; tries < 4; tries++) {
            plain.bytes = pick(round % 50 ? 1500 : TEXT_MOST);
            plain.specials = pick(2);
            fill(text, plain.bytes, alphabet);
            for (uint32_t copies = pick(5); copies; copies--) { /* tokens as they are */
                const struct added_token *token = &tokens[pick((uint32_t)count)];
                if (token->bytes < plain.bytes)
                    memcpy(text + pick((uint32_t)plain.bytes - token->bytes), token->text, token->bytes);
            }
            const uint64_t steps = compare(added, &plain);
            assert_true(steps <= 80 * (uint64_t)plain.bytes + 80);
        }
        added_tokens_free(added);
    }
}

/* ---- work ---- */

static struct added_token token_of(const char *text, size_t bytes, uint32_t id)
{
    return (struct added_token){.text = (const uint8_t *)text,
                                .match = (const uint8_t *)text,
                                .bytes = (uint32_t)bytes,
                                .match_bytes = (uint32_t)bytes,
                                .id = id};
}

/* Splits a text of one repeated byte. Returns the work per byte, and the number of parts. */
static double work(const struct added_token *all, size_t count, char byte, size_t bytes, size_t *parts)
{
    struct added_tokens *added;
    struct added_split split;
    struct added_part part;
    struct tokmap_error error;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, byte, bytes);
    assert_int_equal(added_tokens_new(&added, all, count, NULL, &error), TOKMAP_OK);
    added_split_begin(&split, added, ADDED_RAW, true, (const uint8_t *)text, bytes);
    for (*parts = 0; added_split_next(&split, &part);)
        ++*parts;
    const uint64_t steps = split.search.steps;
    assert_int_equal(added_split_end(&split, &error), TOKMAP_OK);
    added_tokens_free(added);
    free(text);
    return (double)steps / (double)bytes;
}

static void work_is_linear(void **state)
{
    const size_t longest = 60000, bytes = 300000;
    char *as = malloc(longest + 1);
    size_t parts;
    (void)state;
    assert_non_null(as);
    memset(as, 'a', longest);
    as[longest] = 'b';
    /* "aaa...ab" alone, and with "a", with which each place is searched again after the match before it. */
    const struct added_token all[] = {token_of(as, longest + 1, 0), token_of(as, 1, 1), token_of(as, 65, 2),
                                      token_of(as, 1000, 3)};
    assert_true(work(all, 1, 'a', bytes, &parts) < 80);
    assert_int_equal(parts, 1);
    assert_true(work(all, 2, 'a', bytes, &parts) < 80);
    assert_int_equal(parts, bytes);
    assert_true(work(all, 3, 'a', bytes, &parts) < 80);
    assert_int_equal(parts, (bytes + 64) / 65 + bytes % 65 - 1);
    assert_true(work(all, 4, 'a', bytes, &parts) < 80);
    /* Each space is a token that takes the spaces after it. */
    struct added_token space = token_of(" ", 1, 0);
    space.rstrip = true;
    assert_true(work(&space, 1, ' ', bytes, &parts) < 5);
    assert_int_equal(parts, bytes);
    free(as);
}

static void too_many_long_tokens_are_refused(void **state)
{
    const size_t each = 1 << 19;
    struct added_tokens *added;
    struct tokmap_error error = {0};
    char *text = malloc(each + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', each + 1);
    const struct added_token all[] = {token_of(text, each, 0), token_of(text, each - 1, 1), token_of(text, 3, 2)};
    assert_int_equal(added_tokens_new(&added, all, 3, NULL, &error), TOKMAP_OK);
    added_tokens_free(added);
    const struct added_token more[] = {token_of(text, each, 0), token_of(text, each + 1, 1)};
    assert_int_equal(added_tokens_new(&added, more, 2, "v.json", &error), TOKMAP_ERROR_LIMIT);
    assert_null(added);
    assert_non_null(strstr(error.message, "more than 64 bytes have 1048577 bytes in total"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_equal_a_plain_search), cmocka_unit_test(work_is_linear),
                                       cmocka_unit_test(too_many_long_tokens_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
