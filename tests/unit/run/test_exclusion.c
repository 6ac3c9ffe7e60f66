/* SPDX-License-Identifier: MIT */
/*
 * Documents that a run excludes: lists as files, what they exclude compared with a table of every token, their part of
 * the past, and lists that are wrong.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "run/exclusion.h"
#include "run/run.h"
#include "support/run_help.h"
#include "support/scratch.h"

#define TOKENS 3000
#define HEAD                                                                                                           \
    "seq_len 50\nbatch 6\nseed 3\nsource a synthetic:vocab=100,tokens=3000,document=20\n"                              \
    "source b synthetic:vocab=100,tokens=2000,document=7,seed=2\nvalidation held synthetic:vocab=9,tokens=500\n"       \
    "phase 0 a 1 b 3\n"

static char folder[512];

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

static void list(const char *name, const char *text)
{
    file_write_text(in_folder(folder, name), text);
}

/* Opens a run with these lines after the others. */
static struct tokmap_run *opened(const char *lines)
{
    char text[2000];
    struct tokmap_run *run;
    struct tokmap_error error;
    (void)snprintf(text, sizeof text, HEAD "%s", lines);
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s:%" PRIu32 ": %s", error.path, error.line, error.message);
    return run;
}

static void cursor_of(const struct tokmap_run *run, uint64_t step, char text[TOKMAP_CURSOR_TEXT])
{
    struct tokmap_cursor cursor;
    assert_int_equal(tokmap_run_cursor(run, step, &cursor, NULL), TOKMAP_OK);
    tokmap_cursor_print(&cursor, text);
}

static void same_past(const char *lines, const char *others, uint64_t step, bool same)
{
    char one[TOKMAP_CURSOR_TEXT], other[TOKMAP_CURSOR_TEXT];
    struct tokmap_run *a = opened(lines), *b = opened(others);
    cursor_of(a, step, one);
    cursor_of(b, step, other);
    if ((strcmp(one, other) == 0) != same)
        fail_msg("%s and %s at step %" PRIu64 ": %s, %s", lines, others, step, one, other);
    tokmap_run_close(a);
    tokmap_run_close(b);
}

/* ---- what is excluded ---- */

/* Compares a walk over random extents with the table of steps from which the tokens of source 0 are excluded. */
static void check_walks(const struct tokmap_run *run, const uint64_t *from, uint64_t *random)
{
    for (int round = 0; round < 40; round++) {
        struct tokmap_extent extents[5];
        struct exclusion_walk walk;
        const uint64_t count = 1 + random_below(random, 5);
        const struct tokmap_place place = {.step = random_below(random, 40)};
        bool wanted[5 * TOKENS] = {false}, got[5 * TOKENS] = {false};
        uint64_t row = 0, first, length, end = 0;
        for (uint64_t i = 0; i < count; i++) {
            extents[i].first_token = random_below(random, TOKENS);
            extents[i].tokens = 1 + random_below(random, round % 2 ? 60 : TOKENS);
            for (uint64_t k = 0; k < extents[i].tokens; k++)
                wanted[row++] = from[(extents[i].first_token + k) % TOKENS] <= place.step;
        }
        exclusion_walk_begin(&walk, run_exclusions(run), &place, extents, count);
        while (exclusion_walk_next(&walk, &first, &length)) {
            assert_true(length && first >= end && first + length <= row);
            end = first + length;
            memset(got + first, 1, length);
        }
        assert_memory_equal(wanted, got, sizeof wanted);
    }
}

/* Random lists of one source, in some order and with repetitions, and perhaps in several files of a step. */
static void lists_exclude_their_tokens(void **unused)
{
    uint64_t random = 7;
    (void)unused;
    struct tokmap_run *plain = opened("");
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    assert_int_equal(tokmap_run_source(plain, 0, &source), TOKMAP_OK);
    for (int round = 0; round < 150; round++) {
        static uint64_t from[TOKENS];
        char lines[600] = "";
        size_t used = 0;
        const uint64_t lists = 1 + random_below(&random, 4);
        for (uint64_t x = 0; x < TOKENS; x++)
            from[x] = TOKMAP_FOREVER;
        for (uint64_t i = 0; i < lists; i++) {
            char name[32], text[4000] = "";
            size_t at = 0;
            const uint64_t step = random_below(&random, 4) * 10;
            for (uint64_t k = random_below(&random, 160); k > 0; k--) {
                struct tokmap_document document;
                const uint64_t number = random_below(&random, 150);
                assert_int_equal(tokmap_dataset_document(source.dataset, number, &document, NULL), TOKMAP_OK);
                for (uint64_t x = 0; x < document.tokens; x++)
                    from[document.first_token + x] =
                        from[document.first_token + x] < step ? from[document.first_token + x] : step;
                at += (size_t)snprintf(text + at, sizeof text - at, "%sa %" PRIu64 "%s", k % 7 ? "" : "\n# x\n \t",
                                       number, k % 5 ? "\n" : " # twice\r\n");
            }
            (void)snprintf(name, sizeof name, "list%" PRIu64, i);
            list(name, text);
            used += (size_t)snprintf(lines + used, sizeof lines - used, "exclude %s from %" PRIu64 "\n", name, step);
        }
        struct tokmap_run *run = opened(lines);
        for (uint64_t x = 0; x < TOKENS; x++)
            assert_int_equal(exclusion_step(run_exclusions(run), 0, x), from[x]);
        assert_int_equal(exclusion_step(run_exclusions(run), 1, 5), TOKMAP_FOREVER);
        check_walks(run, from, &random);
        tokmap_run_close(run);
    }
    tokmap_run_close(plain);
}

/* ---- the past ---- */

static void the_past_has_what_is_excluded(void **unused)
{
    (void)unused;
    list("one", "a 3\nb 9\na 4\n");
    list("mixed", "# the same\nb 9\na 4\na 3\nb 9\n");
    list("more", "a 3\na 4\nb 9\nb 10\n");
    list("less", "a 3\na 4\n");
    list("rest", "b 9\n");
    list("none", "# nobody\n");
    for (uint64_t step = 0; step <= 20; step++) {
        same_past("exclude one from 20\n", "", step, true);
        same_past("exclude none from 2\n", "", step, true);
    }
    same_past("exclude one from 20\n", "", 21, false);
    same_past("exclude one from 20\n", "exclude mixed from 20\n", 30, true);
    same_past("exclude one from 20\n", "exclude more from 20\n", 30, false);
    same_past("exclude one from 20\n", "exclude one from 21\n", 30, false);
    same_past("exclude one from 20\n", "exclude less from 20\nexclude rest from 20\n", 30, true);
    same_past("exclude one from 20\n", "exclude rest from 21\nexclude less from 20\n", 21, false);
    /* What an earlier list excludes may be listed again. */
    same_past("exclude one from 20\nexclude more from 25\n", "exclude more from 25\nexclude one from 20\n", 30, true);
    list("added", "b 10\n");
    same_past("exclude one from 20\nexclude more from 25\n", "exclude one from 20\nexclude added from 25\n", 30, true);
    same_past("exclude one from 20\nexclude less from 25\n", "exclude one from 20\n", 30, true);
    /* A row has the pad id in place of the tokens. */
    same_past("exclude one from 20\npad 5\n", "exclude one from 20\npad 6\n", 20, true);
    same_past("exclude one from 20\npad 5\n", "exclude one from 20\npad 6\n", 21, false);
}

/* FROZEN, as the golden values of test_cursor.c. */
static void golden_values(void **unused)
{
    static const char *const wanted[] = {
        "tokmap1 step=21 tokens=6300 past=3017b19cdc06e63b4ac1549bf2a53273 "
        "of=b2e3f290,f706f612,749e4886,5a9acee2,6440c52f",
        "tokmap1 step=51 tokens=15300 past=04735bffaa3baf8da5d59d8b7bb3a57a "
        "of=b2e3f290,f706f612,749e4886,5a9acee2,1d844ae6",
    };
    char text[TOKMAP_CURSOR_TEXT];
    (void)unused;
    list("one", "a 3\nb 9\na 4\n");
    list("two", "a 3\na 17\n");
    struct tokmap_run *run = opened("phase 20 a 1\nexclude two from 50\nexclude one from 20\n");
    for (uint64_t i = 0; i < 2; i++) {
        cursor_of(run, 21 + i * 30, text);
        assert_string_equal(text, wanted[i]);
    }
    tokmap_run_close(run);
}

static void a_changed_list_is_named(void **unused)
{
    (void)unused;
    char saved[TOKMAP_CURSOR_TEXT], early[TOKMAP_CURSOR_TEXT];
    struct tokmap_error error;
    struct tokmap_cursor cursor;
    list("takedown", "a 3\n");
    struct tokmap_run *run = opened("exclude takedown from 20\n");
    cursor_of(run, 40, saved);
    cursor_of(run, 20, early);
    tokmap_run_close(run);
    list("takedown", "a 3\na 4\n");
    run = opened("exclude takedown from 20\n");
    assert_int_equal(tokmap_cursor_parse(&cursor, early, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_OK);
    assert_int_equal(tokmap_cursor_parse(&cursor, saved, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_ERROR_PAST);
    assert_non_null(strstr(error.message, "in its data (line 8: exclude "));
    assert_non_null(strstr(error.message, "takedown from 20"));
    assert_int_equal(error.line, 8);
    tokmap_run_close(run);
}

/* ---- the text ---- */

static void the_text_keeps_the_lines(void **unused)
{
    (void)unused;
    char wanted[1200];
    struct tokmap_run *run, *parsed, *continued;
    struct tokmap_error error;
    list("a list", "a 3\n");
    list("one", "b 1\n");
    run = opened("exclude \"a list\" from 20\nsteps 90\nexclude one from 0\n");
    (void)snprintf(wanted, sizeof wanted, "exclude  \"%s/a list\" from 20\nexclude  %s/one from 0\nsteps    90\n",
                   folder, folder);
    assert_non_null(strstr(tokmap_run_text(run), wanted));
    assert_int_equal(tokmap_run_parse(&parsed, tokmap_run_text(run), NULL, &error), TOKMAP_OK);
    assert_string_equal(tokmap_run_text(parsed), tokmap_run_text(run));
    assert_int_equal(tokmap_run_continue(&continued, run, 50, "a 1", &error), TOKMAP_OK);
    assert_non_null(strstr(tokmap_run_text(continued), wanted));
    assert_int_equal(exclusion_step(run_exclusions(continued), 1, 0) == 0,
                     exclusion_step(run_exclusions(run), 1, 0) == 0);
    assert_int_equal(run_exclusions(continued)->event_count, 2);
    tokmap_run_close(continued);
    tokmap_run_close(parsed);
    tokmap_run_close(run);
}

/* ---- wrong lists ---- */

static void refused_text(const char *text, enum tokmap_status status, const char *word, uint64_t line)
{
    char lines[8000];
    struct tokmap_run *run = (struct tokmap_run *)&line;
    struct tokmap_error error;
    list("bad", text);
    (void)snprintf(lines, sizeof lines, HEAD "exclude bad from 5\n");
    const enum tokmap_status got = run_parse_in(&run, lines, folder, &error);
    assert_null(run);
    if (got != status || !strstr(error.message, word) || error.line != line || !strstr(error.path, "/bad"))
        fail_msg("'%.60s': %d, %s:%" PRIu32 ": %s", text, (int)got, error.path, error.line, error.message);
}

static void refused_line(const char *lines, enum tokmap_status status, const char *word)
{
    char text[1200];
    struct tokmap_run *run;
    struct tokmap_error error;
    (void)snprintf(text, sizeof text, HEAD "%s", lines);
    const enum tokmap_status got = run_parse_in(&run, text, folder, &error);
    if (got != status || !strstr(error.message, word))
        fail_msg("'%s': %d, %s:%" PRIu32 ": %s", lines, (int)got, error.path, error.line, error.message);
}

static void wrong_lists(void **unused)
{
    char longest[5200], content[200];
    (void)unused;
    refused_text("a 1\nc 2\n", TOKMAP_ERROR_FORMAT, "no source 'c'", 2);
    refused_text("held 2\n", TOKMAP_ERROR_FORMAT, "'held' is a validation set", 1);
    refused_text("a 150\n", TOKMAP_ERROR_RANGE, "document 150 does not exist", 1);
    refused_text("\n\na 18446744073709551615\n", TOKMAP_ERROR_RANGE, "does not exist", 3);
    refused_text("a 18446744073709551616\n", TOKMAP_ERROR_FORMAT, "'a 18446744073709551616' is not the name", 1);
    refused_text("a\n", TOKMAP_ERROR_FORMAT, "such as 'a 17'", 1);
    refused_text("a 1 2\n", TOKMAP_ERROR_FORMAT, "such as 'a 17'", 1);
    refused_text("a -1\n", TOKMAP_ERROR_FORMAT, "such as 'a 17'", 1);
    refused_text("a 1#2\n", TOKMAP_ERROR_FORMAT, "such as 'a 17'", 1);
    refused_text("17 a\n", TOKMAP_ERROR_FORMAT, "such as 'a 17'", 1);
    refused_text("a 1\x01\n", TOKMAP_ERROR_FORMAT, "control character (0x01)", 1);
    refused_text("# content-id a\n", TOKMAP_ERROR_FORMAT, "states the name of a source and the content id", 1);
    refused_text("a 1\n#content-id c 00112233445566778899aabbccddeeff\n", TOKMAP_ERROR_FORMAT, "no source 'c'", 2);
    refused_text("# content-id a 00112233445566778899aabbccddeeff\na 1\n", TOKMAP_ERROR_MISMATCH,
                 "with the content id 00112233445566778899aabbccddeeff, but source 'a'", 1);
    refused_text("# content-id a 0011\na 1\n", TOKMAP_ERROR_MISMATCH, "`tokmap find`", 1);
    memset(longest, ' ', sizeof longest);
    (void)snprintf(longest + 4096, 100, "a 1\na 2\n");
    refused_text(longest, TOKMAP_ERROR_FORMAT, "more than 4096 bytes", 1);
    memset(longest, 'a', 5000);
    longest[5000] = '\0'; /* without an end */
    refused_text(longest, TOKMAP_ERROR_FORMAT, "more than 4096 bytes", 1);
    file_write(in_folder(folder, "zeros"), "a 1\n\0\0\0\n", 8);
    refused_line("exclude zeros from 5\n", TOKMAP_ERROR_FORMAT, "control character (0x00)");
    /* The right id, a byte order mark, and a line without an end are taken. */
    struct tokmap_run *run = opened("");
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    char id[33];
    assert_int_equal(tokmap_run_source(run, 1, &source), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(source.dataset, &info), TOKMAP_OK);
    hash128_hex(info.content, id);
    (void)snprintf(content, sizeof content, "\xef\xbb\xbf# content-id b %s\r\nb 4\r\n\tb   5  # so", id);
    tokmap_run_close(run);
    list("good", content);
    run = opened("exclude good from 5\n");
    assert_int_equal(run_exclusions(run)->lists[0].documents, 2);
    assert_int_equal(run_exclusions(run)->of[1].count, 1);
    tokmap_run_close(run);
}

static void wrong_lines(void **unused)
{
    char many[257 * 24], *at = many;
    (void)unused;
    refused_line("exclude\n", TOKMAP_ERROR_RUN, "at least one word");
    refused_line("exclude x\n", TOKMAP_ERROR_RUN, "write 'exclude FILE from STEP'");
    refused_line("exclude x from\n", TOKMAP_ERROR_RUN, "write 'exclude FILE from STEP'");
    refused_line("exclude x at 5\n", TOKMAP_ERROR_RUN, "write 'exclude FILE from STEP'");
    refused_line("exclude x from 5 6\n", TOKMAP_ERROR_RUN, "write 'exclude FILE from STEP'");
    refused_line("exclude x from -5\n", TOKMAP_ERROR_RUN, "'-5' is not a number");
    refused_line("exclude x from 9223372036854775808\n", TOKMAP_ERROR_RUN, "is out of range");
    refused_line("exclude \"\" from 5\n", TOKMAP_ERROR_RUN, "write 'exclude FILE from STEP'");
    refused_line("exclud x from 5\n", TOKMAP_ERROR_RUN, "did you mean 'exclude'?");
    refused_line("exclude missing from 5\n", TOKMAP_ERROR_NOT_FOUND, "'missing' was looked for as '");
    refused_line("exclude . from 5\n", TOKMAP_ERROR_IO, "cannot read the list");
    refused_line("exclude s3://bucket/list from 5\n", TOKMAP_ERROR_UNSUPPORTED, "cannot be read from a URL");
    for (int i = 0; i < 257; i++)
        at += sprintf(at, "exclude x from %d\n", i);
    char text[sizeof many + sizeof HEAD];
    struct tokmap_run *run;
    struct tokmap_error error;
    (void)snprintf(text, sizeof text, HEAD "%s", many);
    assert_int_equal(run_parse_in(&run, text, folder, &error), TOKMAP_ERROR_RUN);
    assert_non_null(strstr(error.message, "more than 256 lists"));
}

/* An evaluation shows documents as they are stored. */
static void evaluations_exclude_nothing(void **unused)
{
    (void)unused;
    struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
    struct tokmap_run *run, *evaluation;
    struct tokmap_error error;
    list("one", "a 3\n");
    run = opened("exclude one from 0\nsteps 50\n");
    options.source = "a";
    options.trained = 1;
    assert_int_equal(tokmap_run_evaluation(&evaluation, run, &options, &error), TOKMAP_OK);
    assert_false(exclusions_any(run_exclusions(evaluation)));
    tokmap_run_close(evaluation);
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_exclude_their_tokens),
        cmocka_unit_test(the_past_has_what_is_excluded),
        cmocka_unit_test(golden_values),
        cmocka_unit_test(a_changed_list_is_named),
        cmocka_unit_test(the_text_keeps_the_lines),
        cmocka_unit_test(wrong_lists),
        cmocka_unit_test(wrong_lines),
        cmocka_unit_test(evaluations_exclude_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
