/* SPDX-License-Identifier: MIT */
/* test_pretokenizer.c - steps of a pre-tokenizer: the pieces of each behavior, of each kind of step, and of steps
 * inside of steps; stopping in the middle of a text. Patterns are in test_regex_match.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "pretokenize/pretokenizer.h"

static char pieces[256];
static size_t pieces_left; /* emit stops at 0 */

/* Writes the pieces, each followed by a bar. */
static bool write_piece(void *user, const uint8_t *bytes, size_t count)
{
    assert_true(count > 0);
    const size_t used = strlen(pieces);
    assert_true(used + count + 2 < sizeof pieces);
    memcpy(pieces + used, bytes, count);
    memcpy(pieces + used + count, "|", 2);
    return --pieces_left > 0;
}

static void check(const struct pretokenizer *pretokenizer, const char *text, bool first, const char *expected)
{
    struct pretokenizer_state state;
    struct tokmap_error error;
    assert_int_equal(pretokenizer_state_init(&state, pretokenizer, &error), TOKMAP_OK);
    state.emit = write_piece;
    state.error = &error;
    state.first = first;
    pieces[0] = 0;
    pieces_left = SIZE_MAX;
    assert_true(pretokenizer_run(&state, (const uint8_t *)text, strlen(text)));
    assert_string_equal(pieces, expected);
    pretokenizer_trim(&state);
    /* Stopped at each piece: the pieces so far are the same, and no error is reported. */
    for (size_t most = 1; most < strlen(expected); most++) {
        char got[sizeof pieces];
        strcpy(got, expected);
        size_t end = 0, found = 0;
        while (got[end] && found < most)
            found += got[end++] == '|';
        if (found < most)
            break;
        got[end] = 0;
        pieces[0] = 0;
        pieces_left = most;
        assert_false(pretokenizer_run(&state, (const uint8_t *)text, strlen(text)));
        assert_int_equal(state.status, TOKMAP_OK);
        assert_string_equal(pieces, got);
    }
    pretokenizer_state_free(&state);
}

static void check_step(struct pretokenizer_step step, const char *text, const char *expected)
{
    const struct pretokenizer pretokenizer = {.steps = {step}, .count = 1};
    check(&pretokenizer, text, true, expected);
}

static uint8_t dash[] = "-", underline[] = "_";

/* The table at the head of pretokenizer.c. */
static void behaviors(void **state)
{
    struct pretokenizer_step step = {.kind = STEP_LITERAL, .literal = dash, .literal_bytes = 1};
    static const char *const expected[] = {
        [SPLIT_REMOVED] = "a|b|c|",         [SPLIT_ISOLATED] = "a|-|b|-|-|c|",  [SPLIT_MERGED_PREVIOUS] = "a-|b-|-|c|",
        [SPLIT_MERGED_NEXT] = "a|-b|-|-c|", [SPLIT_CONTIGUOUS] = "a|-|b|--|c|",
    };
    for (int behavior = SPLIT_REMOVED; behavior <= SPLIT_CONTIGUOUS; behavior++) {
        step.behavior = (enum split_behavior)behavior;
        check_step(step, "a-b--c", expected[behavior]);
    }
    /* Inverted: the literal is the gap. */
    step.invert = true;
    step.behavior = SPLIT_REMOVED;
    check_step(step, "a-b--c", "-|-|-|");
    step.behavior = SPLIT_MERGED_PREVIOUS;
    check_step(step, "a-b--c", "a|-b|-|-c|");
}

static void kinds(void **state)
{
    check_step((struct pretokenizer_step){.kind = STEP_NUMERIC, .behavior = SPLIT_ISOLATED}, "a12 \xC2\xBD.",
               "a|1|2| |\xC2\xBD|.|");
    check_step((struct pretokenizer_step){.kind = STEP_PUNCTUATION, .behavior = SPLIT_ISOLATED},
               "a!+\xE3\x80\x82"
               "b",
               "a|!|+|\xE3\x80\x82|b|");
    check_step((struct pretokenizer_step){.kind = STEP_SPACE, .behavior = SPLIT_REMOVED}, " a  b\xE3\x80\x80\n",
               "a|b|");
    check_step((struct pretokenizer_step){.kind = STEP_WORDS, .behavior = SPLIT_REMOVED, .invert = true}, "it's ok.",
               "it|'|s|ok|.|");
    check_step((struct pretokenizer_step){.kind = STEP_NOTHING, .prefix_space = true}, "ab c", " ab c|");
    check_step((struct pretokenizer_step){.kind = STEP_NOTHING, .prefix_space = true}, " ab", " ab|");
    struct pretokenizer_step scripts = {.kind = STEP_SCRIPTS, .behavior = SPLIT_ISOLATED};
    check_step(scripts, "ab c\xD0\x96\xD0\x96 1", "ab c|\xD0\x96\xD0\x96 |1|"); /* Latin, Cyrillic, common */
    check_step(scripts, "\xE3\x81\x82\xE3\x82\xA2\xE3\x83\xBC\xE4\xB8\xAD.",
               "\xE3\x81\x82\xE3\x82\xA2\xE3\x83\xBC\xE4\xB8\xAD|.|"); /* Japanese is one script */
    check_step(scripts, "  a ", "a |");                                /* spaces before the first are dropped */
    check_step(scripts, "  ", "");
    struct pretokenizer_step fixed = {.kind = STEP_FIXED, .behavior = SPLIT_ISOLATED, .length = 2};
    check_step(fixed,
               "ab\xC3\xA9\xE4\xB8\xAD"
               "c",
               "ab|\xC3\xA9\xE4\xB8\xAD|c|");
    check_step(fixed, "ab", "ab|");
    struct pretokenizer_step rules = {.kind = STEP_RULES, .behavior = SPLIT_ISOLATED};
    rules.rules = *split_rules_named("cl100k_base");
    check_step(rules, "So it's  42!\nOK", "So| it|'s| | |42|!\n|OK|"); /* the example of scanner.c */
}

static void metaspace(void **state)
{
    struct pretokenizer pretokenizer = {.count = 1};
    struct pretokenizer_step *step = &pretokenizer.steps[0];
    *step = (struct pretokenizer_step){.kind = STEP_METASPACE,
                                       .behavior = SPLIT_MERGED_NEXT,
                                       .splits = true,
                                       .prepend = PREPEND_FIRST,
                                       .literal = underline,
                                       .literal_bytes = 1};
    check(&pretokenizer, "a b  c", true, "_a|_b|_|_c|");
    check(&pretokenizer, "a b", false, "a|_b|");
    check(&pretokenizer, " a", true, "_a|");
    check(&pretokenizer, "_a", true, "_a|");
    struct pretokenizer cut = {.count = 2};
    cut.steps[0] = (struct pretokenizer_step){.kind = STEP_SPACE, .behavior = SPLIT_REMOVED};
    cut.steps[1] = *step;
    check(&cut, "a b", true, "_a|b|"); /* only the piece that begins the text is the first */
    check(&cut, " a b", true, "a|b|");
    step->prepend = PREPEND_ALWAYS;
    check(&pretokenizer, "a b", false, "_a|_b|");
    step->prepend = PREPEND_NEVER;
    step->splits = false;
    check(&pretokenizer, "a b", true, "a_b|");
}

/* Each piece of a step goes through the following steps. */
static void nested(void **state)
{
    const struct pretokenizer none = {.count = 0};
    check(&none, "a b", true, "a b|");
    struct pretokenizer two = {.count = 2};
    two.steps[0] = (struct pretokenizer_step){
        .kind = STEP_LITERAL, .behavior = SPLIT_MERGED_PREVIOUS, .literal = dash, .literal_bytes = 1};
    two.steps[1] = (struct pretokenizer_step){.kind = STEP_SPACE, .behavior = SPLIT_ISOLATED, .prefix_space = true};
    check(&two, "a-b c-", true, " |a-| |b| |c-|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(behaviors), cmocka_unit_test(kinds),
                                       cmocka_unit_test(metaspace), cmocka_unit_test(nested)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
