/* SPDX-License-Identifier: MIT */
/* The cursor: its text, golden fingerprints, and which changes of a run still allow a resume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"
#include "run/run_state.h"
#include "support/made_dataset.h"
#include "support/run_help.h"
#include "tokmap/tokmap.h"

static struct made_dataset made, same_tokens, other_tokens, shorter;

static int make_datasets(void **state)
{
    made_dataset_new(&made, 10000, 0);
    made_dataset_new(&same_tokens, 10000, 0);
    made_dataset_new(&other_tokens, 10000, 1);
    made_dataset_new(&shorter, 500, 0);
    return 0;
}

static int remove_datasets(void **state)
{
    made_dataset_remove(&made);
    made_dataset_remove(&same_tokens);
    made_dataset_remove(&other_tokens);
    made_dataset_remove(&shorter);
    return 0;
}

static struct tokmap_run *parse_in(const char *text, const char *folder)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s: %s", text, error.message);
    return run;
}

static struct tokmap_run *parse(const char *text)
{
    return parse_in(text, made.folder);
}

/* ---- text ---- */

static const char sample[] = "tokmap1 step=179200 tokens=1748060078080 past=0123456789abcdeffedcba9876543210 "
                             "of=00000001,20000000,abcdef01,ffffffff,0f0f0f0f";

static void print_and_parse(void **state)
{
    struct tokmap_cursor cursor, again;
    char text[TOKMAP_CURSOR_TEXT];
    assert_int_equal(tokmap_cursor_parse(&cursor, sample, NULL), TOKMAP_OK);
    assert_int_equal(cursor.step, 179200);
    assert_int_equal(cursor.tokens, 1748060078080);
    assert_true(cursor.past[0] == 0x0123456789abcdefu && cursor.past[1] == 0xfedcba9876543210u);
    assert_true(cursor.of[0] == 1 && cursor.of[1] == 0x20000000 && cursor.of[3] == 0xffffffff);
    tokmap_cursor_print(&cursor, text);
    assert_string_equal(text, sample);

    memset(&cursor, 0xff, sizeof cursor); /* the longest text */
    tokmap_cursor_print(&cursor, text);
    assert_true(strlen(text) < TOKMAP_CURSOR_TEXT - 1);
    assert_int_equal(tokmap_cursor_parse(&again, text, NULL), TOKMAP_OK);
    assert_true(again.step == UINT64_MAX && again.tokens == UINT64_MAX && again.of[4] == UINT32_MAX);

    char padded[300];
    (void)snprintf(padded, sizeof padded, " \t\r\n%s \r\n\n", sample);
    assert_int_equal(tokmap_cursor_parse(&again, padded, NULL), TOKMAP_OK);
    assert_int_equal(again.step, 179200);
}

static void refused_texts(void **state)
{
    struct tokmap_cursor cursor = {.step = 7};
    struct tokmap_error error = {0};
    char text[300];
    /* The text is cut at every length, and every single letter is changed to one that is wrong there. */
    for (size_t length = 0; length < strlen(sample); length++) {
        memcpy(text, sample, length);
        text[length] = '\0';
        assert_int_equal(tokmap_cursor_parse(&cursor, text, &error), TOKMAP_ERROR_CURSOR);
    }
    for (size_t at = 0; at < strlen(sample); at++) {
        (void)snprintf(text, sizeof text, "%s", sample);
        text[at] = '!';
        assert_int_equal(tokmap_cursor_parse(&cursor, text, &error), TOKMAP_ERROR_CURSOR);
        assert_int_equal(error.offset, at);
    }
    static const char *const bad[] = {
        "tokmap1",
        "TOKMAP1 step=1",
        "tokmap1 step=-1 tokens=0",
        "tokmap1 tokens=0 step=1",
        "tokmap1 step=18446744073709551616 tokens=0 past=0123456789abcdeffedcba9876543210 "
        "of=00000001,20000000,abcdef01,ffffffff,0f0f0f0f",
        "tokmap1 step=1 tokens=0 past=0123456789ABCDEFFEDCBA9876543210 of=00000001,20000000,abcdef01,ffffffff,0f0f0f0f",
        "tokmap1 step=1 tokens=0 past=0123456789abcdeffedcba9876543210 "
        "of=00000001,20000000,abcdef01,ffffffff,0f0f0f0f1",
        "tokmap1 step=1 tokens=0 past=0123456789abcdeffedcba9876543210 of=00000001,20000000,abcdef01,ffffffff,0f0f0f0f "
        "x",
        "tokmap1 step=1\ntokens=0 past=0123456789abcdeffedcba9876543210 "
        "of=00000001,20000000,abcdef01,ffffffff,0f0f0f0f",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tokmap_cursor_parse(&cursor, bad[i], &error), TOKMAP_ERROR_CURSOR);
    assert_int_equal(cursor.step, 7); /* unchanged */
    assert_int_equal(tokmap_cursor_parse(&cursor, "tokmap2 whatever=3", &error), TOKMAP_ERROR_VERSION);
    assert_int_equal(tokmap_cursor_parse(NULL, sample, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_cursor_parse(&cursor, NULL, &error), TOKMAP_ERROR_ARGUMENT);
}

/* ---- golden ---- */

/* Computed by a second implementation of the heads of past.c and cursor.c (in Python), for content id 00 01 02 ..
 * 0f. */
static const char golden_run[] = "seq_len 8192\nbatch 1024\nseed 1234\nsource web d\nskip 100..110\nskip 5..9\n"
                                 "skip 200000..200010\nskip 108..112\n";
static const char *const golden[] = {
    "tokmap1 step=0 tokens=0 past=00000000000000000000000000000000 of=00000000,00000000,00000000,00000000,00000000",
    "tokmap1 step=1 tokens=8388608 past=f57b9c897671ae48492dd2cfa8a8d380 "
    "of=468f70fa,e330a998,9cf81b87,5a9acee2,058beed0",
    "tokmap1 step=100 tokens=805306368 past=c8e2858577925c18710b79fab7571e66 "
    "of=468f70fa,e330a998,9cf81b87,471939f7,058beed0",
    "tokmap1 step=105 tokens=805306368 past=b7f546175b386d6ed85c5f86b4378ece "
    "of=468f70fa,e330a998,9cf81b87,278f1d8d,058beed0",
    "tokmap1 step=179200 tokens=1503104335872 past=d1a849ba9302d4f8b27d3462362aeef3 "
    "of=468f70fa,e330a998,9cf81b87,0fad431b,058beed0",
};
static const char golden_sequential[] = "tokmap1 step=7 tokens=336 past=561984577bc25049f88f367ad1414ae9 "
                                        "of=aa877947,2fe5f8d1,aad841b2,5a9acee2,83a78134";

static void with_golden_content(struct tokmap_run *run)
{
    for (int i = 0; i < 16; i++)
        run->sources.of[0].identity[i] = (uint8_t)i;
    past_free(&run->past);
    assert_int_equal(past_init(&run->past, NULL), TOKMAP_OK);
}

static void golden_values(void **state)
{
    struct tokmap_run *run = parse(golden_run);
    with_golden_content(run);
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct tokmap_cursor cursor, own;
        char text[TOKMAP_CURSOR_TEXT];
        struct tokmap_error error = {0};
        assert_int_equal(tokmap_cursor_parse(&cursor, golden[i], NULL), TOKMAP_OK);
        if (tokmap_run_check_cursor(run, &cursor, &error))
            fail_msg("%s: %s", golden[i], error.message);
        if (!tokmap_run_delivers(run, cursor.step))
            continue; /* tokmap_run_cursor() returns the cursor of the next delivered step */
        assert_int_equal(tokmap_run_cursor(run, cursor.step, &own, NULL), TOKMAP_OK);
        tokmap_cursor_print(&own, text);
        assert_string_equal(text, golden[i]);
    }
    tokmap_run_close(run);

    run = parse("seq_len 16\nlookahead 0\nbatch 3\nseed 1234\nsource data d\norder sequential\n");
    with_golden_content(run);
    struct tokmap_cursor own;
    char text[TOKMAP_CURSOR_TEXT];
    assert_int_equal(tokmap_run_cursor(run, 7, &own, NULL), TOKMAP_OK);
    tokmap_cursor_print(&own, text);
    assert_string_equal(text, golden_sequential);
    tokmap_run_close(run);
}

/* ---- changes of a run ---- */

#define BASE_RUN "seq_len 10\nlookahead 1\nbatch 4\nseed 7\norder shuffle\nsource web d\n"
static const char base_run[] = BASE_RUN "steps 500\nskip 20..30\nskip 25..40\nskip 300..310\n";

static const struct {
    const char *text;
    uint64_t step; /* of the cursor, which comes from base_run */
    enum tokmap_status status;
    uint32_t line;
    const char *kinds; /* part of the message */
} changes[] = {
    /* The future may change. */
    {BASE_RUN "steps 500\nskip 20..30\nskip 25..40\nskip 300..310\n", 200, TOKMAP_OK, 0, ""},
    {BASE_RUN "steps 201\nskip 20..30\nskip 25..40\nskip 300..310\n", 200, TOKMAP_OK, 0, ""},
    {BASE_RUN "steps 200\nskip 20..30\nskip 25..40\n", 200, TOKMAP_OK, 0, ""},
    {BASE_RUN "passes 1\nskip 20..30\nskip 25..40\nskip 300..310\n", 200, TOKMAP_OK, 0, ""},
    {BASE_RUN "skip 20..40\nskip 200..210\nskip 300..400\n", 200, TOKMAP_OK, 0, ""},
    {BASE_RUN "skip 30..40\nskip 20..30\n", 200, TOKMAP_OK, 0, ""}, /* the same steps, written differently */
    {BASE_RUN "skip 20..41\n", 20, TOKMAP_OK, 0, ""},               /* the cursor is at step 40, */
    {BASE_RUN "skip 20..400\n", 20, TOKMAP_OK, 0, ""},              /* so later skips are the future */
    {"seed 7\nbatch 4\nsource web d\nseq_len 10\n\nskip "
     "20..40\n",
     200, TOKMAP_OK, 0, ""}, /* other lines, and defaults */
    /* The past must not change. */
    {"lookahead 1\nseq_len 11\nbatch 4\nseed 7\nsource web d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 2,
     "geometry (line 2: seq_len 11, line 1: lookahead 1)"},
    {"seq_len 10\nlookahead 2\nbatch 4\nseed 7\nsource web d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 1, "geometry ("},
    {"seq_len 10\nbatch 4\nseed 8\nsource web d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 3,
     "order (order shuffle by default, line 3: seed 8)"},
    {"seq_len 10\nbatch 4\nsource web d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 0, "seed 0 by default"},
    {"seq_len 10\nbatch 4\norder sequential\nsource web d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 3,
     "order (line 3: order sequential)"},
    {"seq_len 10\nbatch 5\nseed 7\nsource web d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 2, "batch (line 2: batch 5)"},
    {BASE_RUN, 200, TOKMAP_ERROR_PAST, 0, "skips (nothing skipped before step 200)"},
    {BASE_RUN "skip 20..39\n", 200, TOKMAP_ERROR_PAST, 7, "skips (line 7: skip 20..39)"},
    {BASE_RUN "skip 20..40\nskip 198..210\n", 200, TOKMAP_ERROR_PAST, 7, "line 7: skip 20..40, line 8: skip 198..210"},
    {BASE_RUN "skip 20..40\nskip 3..4\n", 10, TOKMAP_ERROR_PAST, 7, "skips (line 8: skip 3..4)"},
    {"seq_len 10\nbatch 4\nseed 7\nsource wab d\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 4,
     "data (line 4: source wab d"},
    {"seq_len 9\nbatch 5\nseed 6\nsource wab d\nskip 20..41\n", 200, TOKMAP_ERROR_PAST, 1,
     "data (line 4: source wab d"},
    {"seq_len 9\nbatch 5\nseed 6\nsource wab d\nskip 20..41\n", 0, TOKMAP_OK, 0, ""}, /* step 0 has no past */
    /* The cursor is past the end of the run. */
    {BASE_RUN "steps 199\nskip 20..40\n", 200, TOKMAP_ERROR_RANGE, 7, "raise 'steps'"},
    {BASE_RUN "passes 1\nskip 20..40\nskip 300..310\n", 400, TOKMAP_ERROR_RANGE, 7, "raise 'passes'"},
    /* It is past the end because something else has changed, which is reported instead. */
    {"seq_len 1000\nbatch 4\nseed 7\nsource web d\npasses 5\nskip 20..40\n", 200, TOKMAP_ERROR_PAST, 1, "geometry ("},
    {BASE_RUN "steps 199\nskip 20..41\n", 200, TOKMAP_ERROR_PAST, 8, "skips ("},
};

static void check_change(size_t i)
{
    struct tokmap_run *run = parse(base_run);
    struct tokmap_cursor cursor;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_run_cursor(run, changes[i].step, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, NULL), TOKMAP_OK);
    tokmap_run_close(run);
    run = parse(changes[i].text);
    enum tokmap_status status = tokmap_run_check_cursor(run, &cursor, &error);
    if (status != changes[i].status || error.line != changes[i].line || !strstr(error.message, changes[i].kinds))
        fail_msg("change %zu: %s, line %u: %s", i, tokmap_status_name(status), error.line, error.message);
    tokmap_run_close(run);
}

static void every_change(void **state)
{
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        check_change(i);
}

/* The message names exactly the kinds that differ. */
static void kinds_are_named(void **state)
{
    static const char *const names[] = {"geometry (", "order (", "batch (", "skips (", "data ("};
    struct tokmap_run *run = parse(base_run);
    struct tokmap_cursor cursor;
    assert_int_equal(tokmap_run_cursor(run, 200, &cursor, NULL), TOKMAP_OK);
    tokmap_run_close(run);
    for (unsigned which = 1; which < 32; which++) {
        char text[400];
        (void)snprintf(text, sizeof text, "seq_len %s\nseed %s\nbatch %s\nskip %s\nsource %s d\n",
                       which & 1 ? "20" : "10", which & 2 ? "1" : "7", which & 4 ? "3" : "4",
                       which & 8 ? "20..50" : "20..40", which & 16 ? "wiki" : "web");
        struct tokmap_error error = {0};
        run = parse(text);
        assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_ERROR_PAST);
        for (unsigned kind = 0; kind < 5; kind++)
            assert_int_equal(strstr(error.message, names[kind]) != NULL, which >> kind & 1);
        assert_true(strstr(error.message, "change that back") != NULL);
        tokmap_run_close(run);
    }
}

static void datasets(void **state)
{
    static const char text[] = "seq_len 10\nbatch 4\nsource web d\n";
    struct tokmap_run *run = parse(text);
    struct tokmap_cursor cursor;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_run_cursor(run, 200, &cursor, NULL), TOKMAP_OK);
    tokmap_run_close(run);
    run = parse_in(text, same_tokens.folder); /* the same content in another place */
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_OK);
    tokmap_run_close(run);
    run = parse_in(text, other_tokens.folder);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_ERROR_PAST);
    assert_non_null(strstr(error.message, "data (line 3: source web d, content id "));
    tokmap_run_close(run);
    /* Other data that is too short for the cursor: raising 'passes' would be bad advice. */
    run = parse_in("seq_len 10\nbatch 4\nsource web d\npasses 1\n", shorter.folder);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_ERROR_PAST);
    assert_non_null(strstr(error.message, "data (line 3: source web d, content id "));
    tokmap_run_close(run);
}

static void nothing_to_print(void **state)
{
    (void)state;
    char text[TOKMAP_CURSOR_TEXT] = "before";
    tokmap_cursor_print(NULL, text);
    assert_string_equal(text, "");
    const struct tokmap_cursor cursor = {0};
    tokmap_cursor_print(&cursor, NULL);
}

static void made_from_arguments(void **state)
{
    struct run_values options = {.data = made.name,
                                 .seq_len = 10,
                                 .lookahead = 1,
                                 .batch = 4,
                                 .steps = TOKMAP_FOREVER,
                                 .passes = TOKMAP_FOREVER};
    struct tokmap_run *run = NULL, *text = parse("seq_len 10\nbatch 4\nsource data d\n");
    struct tokmap_cursor cursor;
    struct tokmap_error error = {0};
    assert_int_equal(run_of_values(&run, &options, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_cursor(run, 100, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(text, &cursor, &error), TOKMAP_OK); /* the same run in other words */
    tokmap_run_close(run);
    tokmap_run_close(text);
    options.batch = 8;
    options.seed = 3;
    assert_int_equal(run_of_values(&run, &options, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_ERROR_PAST);
    assert_non_null(strstr(error.message, "its order (order shuffle, seed 3), its batch (batch 8)"));
    assert_null(strstr(error.message, "line"));
    assert_int_equal(error.line, 0);
    tokmap_run_close(run);
}

/* ---- numbers ---- */

static void tokens_and_steps(void **state)
{
    struct tokmap_run *run = parse(base_run);
    struct tokmap_cursor cursor;
    struct tokmap_error error = {0};
    /* The step asked for, the step of its cursor, and the steps delivered before that. */
    static const uint64_t steps[][3] = {{0, 0, 0},       {1, 1, 1},      {19, 19, 19},    {20, 40, 20},
                                        {39, 40, 20},    {40, 40, 20},   {299, 299, 279}, {300, 310, 280},
                                        {499, 499, 469}, {500, 500, 470}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(tokmap_run_cursor(run, steps[i][0], &cursor, NULL), TOKMAP_OK);
        assert_int_equal(cursor.step, steps[i][1]);
        assert_int_equal(cursor.tokens, steps[i][2] * 40);
    }
    assert_int_equal(tokmap_run_cursor(run, 501, &cursor, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(error.line, 7);
    assert_int_equal(tokmap_run_cursor(NULL, 0, &cursor, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_cursor(run, 0, NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_check_cursor(NULL, &cursor, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_check_cursor(run, NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    tokmap_run_close(run);

    /* If only skipped steps are left, the next step is the end of the run. */
    run = parse(BASE_RUN "steps 50\nskip 45..60\n");
    assert_int_equal(tokmap_run_cursor(run, 45, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(cursor.step, 50);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, NULL), TOKMAP_OK);
    tokmap_run_close(run);

    /* A cursor whose text was edited fits no run. */
    run = parse(base_run);
    assert_int_equal(tokmap_run_cursor(run, 200, &cursor, NULL), TOKMAP_OK);
    struct tokmap_cursor edited = cursor;
    edited.step = 201;
    assert_int_equal(tokmap_run_check_cursor(run, &edited, &error), TOKMAP_ERROR_PAST);
    edited = cursor;
    edited.tokens++;
    assert_int_equal(tokmap_run_check_cursor(run, &edited, &error), TOKMAP_ERROR_PAST);
    edited = cursor;
    edited.past[1] ^= 1;
    assert_int_equal(tokmap_run_check_cursor(run, &edited, &error), TOKMAP_ERROR_PAST);
    edited = cursor;
    edited.step = 0;
    assert_int_equal(tokmap_run_check_cursor(run, &edited, &error), TOKMAP_ERROR_PAST);
    tokmap_run_close(run);

    /* The number of tokens does not fit 64 bits. */
    run = parse("seq_len 9000\nbatch 2147483648\nsource web d\n");
    assert_int_equal(tokmap_run_cursor(run, (uint64_t)1 << 32, &cursor, NULL), TOKMAP_OK);
    assert_true(cursor.tokens == UINT64_MAX);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_cursor(run, ((uint64_t)1 << 32) + 1, &cursor, NULL), TOKMAP_ERROR_RANGE);
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_and_parse),  cmocka_unit_test(refused_texts),       cmocka_unit_test(golden_values),
        cmocka_unit_test(every_change),     cmocka_unit_test(kinds_are_named),     cmocka_unit_test(datasets),
        cmocka_unit_test(tokens_and_steps), cmocka_unit_test(made_from_arguments), cmocka_unit_test(nothing_to_print),
    };
    return cmocka_run_group_tests_name("cursor", tests, make_datasets, remove_datasets);
}
