/* SPDX-License-Identifier: MIT */
/*
 * tokmap_run_evaluation(): which documents it reads, that every target counts once, what it refuses, and that its text
 * is the run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tokmap/tokmap.h"

/* 2,000 tokens in 200 documents. */
#define WEB "synthetic:vocab=90,tokens=2000,document=10"
#define WIKI "synthetic:vocab=90,tokens=1500,document=10,seed=1"
#define ONE "synthetic:vocab=90,tokens=1"
#define HEAD "seq_len 16\nbatch 8\nseed 3\n"

static struct tokmap_run *parse(const char *text)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    if (tokmap_run_parse(&run, text, NULL, &error))
        fail_msg("%s: line %u: %s", text, error.line, error.message);
    return run;
}

static struct tokmap_run *evaluate(const char *text, const struct tokmap_evaluation_options *options)
{
    struct tokmap_run *run = parse(text), *evaluation;
    struct tokmap_error error = {0};
    if (tokmap_run_evaluation(&evaluation, run, options, &error))
        fail_msg("%s: %s", text, error.message);
    tokmap_run_close(run); /* the evaluation does not depend on it */
    return evaluation;
}

/* The evaluation's sources are these names and datasets. */
static void has_sources(const struct tokmap_run *run, const char *const (*expected)[2], uint64_t count)
{
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    for (uint64_t i = 0; i < count; i++) {
        struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
        assert_int_equal(tokmap_run_source(run, i, &source), TOKMAP_OK);
        assert_string_equal(source.name, expected[i][0]);
        assert_string_equal(source.data, expected[i][1]);
    }
    assert_int_equal(info.sources, count);
}

/* Every token of every source is a target once, except the first of each dataset, of which nothing is known. */
static void counts_each_target_once(const struct tokmap_run *run)
{
    static unsigned char counted[8][4000];
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    const uint64_t stride = info.stride ? info.stride : info.seq_len;
    memset(counted, 0, sizeof counted);
    for (uint64_t step = 0; step < info.steps; step++)
        for (uint64_t row = 0; row < info.batch; row++) {
            struct tokmap_place place;
            assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
            assert_int_equal(place.source == TOKMAP_NO_SOURCE, row >= tokmap_run_real_rows(run, step));
            if (place.source == TOKMAP_NO_SOURCE)
                continue;
            assert_int_equal(place.epoch, 0);
            /* of later windows only the last `stride` targets count */
            for (uint64_t i = place.window ? info.seq_len - stride : 0; i < info.seq_len && i + 1 < place.tokens; i++)
                counted[place.source][place.first_token + i + 1]++;
        }
    for (uint64_t i = 0; i < info.sources; i++) {
        struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
        struct tokmap_dataset_info dataset = TOKMAP_DATASET_INFO_INIT;
        assert_int_equal(tokmap_run_source(run, i, &source), TOKMAP_OK);
        assert_int_equal(tokmap_dataset_info(source.dataset, &dataset), TOKMAP_OK);
        assert_int_equal(counted[i][0], 0);
        for (uint64_t token = 1; token < dataset.tokens; token++)
            assert_int_equal(counted[i][token], 1);
    }
}

static void what_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *source;
        uint64_t count;
        const char *sources[3][2];
    } cases[] = {
        {HEAD "source web " WEB "#docs=0..90%\n", NULL, 1, {{"web", WEB "#docs=180..200"}}},
        {HEAD "source web " WEB "#docs=20..150\n",
         "web",
         2,
         {{"web", WEB "#docs=0..20"}, {"web-2", WEB "#docs=150..200"}}},
        {HEAD "source web " WEB "#docs=0..90%\nsource wiki " WIKI "#docs=0..140\nphase 0 natural\n",
         NULL,
         2,
         {{"web", WEB "#docs=180..200"}, {"wiki", WIKI "#docs=140..150"}}},
        {HEAD "source web " WEB "#docs=0..90%\nsource wiki " WIKI "\nphase 0 natural\n",
         NULL,
         1,
         {{"web", WEB "#docs=180..200"}}},
        /* Two parts of one dataset; and one that only another source trains on. */
        {HEAD "source web " WEB "#docs=0..50%\nsource more " WEB "#docs=60..95%\nphase 0 natural\n",
         NULL,
         2,
         {{"web", WEB "#docs=100..120"}, {"web-2", WEB "#docs=190..200"}}},
        {HEAD "source web " WEB "#tokens=100..1900\n",
         NULL,
         2,
         {{"web", WEB "#tokens=0..100"}, {"web-2", WEB "#tokens=1900..2000"}}},
        /* A source that the run never draws is for evaluation. */
        {HEAD "source web " WEB "\nsource val " WIKI "\nphase 0 web 1 val 0\n", NULL, 1, {{"val", WIKI}}},
        {HEAD "source web " WEB "#docs=0..190\nsource val " WEB "#docs=195..200\nphase 0 web 1 val 0\n",
         "val",
         1,
         {{"val", WEB "#docs=195..200"}}},
        {HEAD "source web " WEB "#docs=0..190\nsource val " WEB "#docs=195..200\nphase 0 web 1 val 0\n",
         NULL,
         1,
         {{"web", WEB "#docs=190..200"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
        options.source = cases[i].source;
        for (int stride = 0; stride < 2; stride++) {
            options.stride = stride ? 5 : 0;
            struct tokmap_run *run = evaluate(cases[i].text, &options);
            has_sources(run, cases[i].sources, cases[i].count);
            counts_each_target_once(run);
            struct tokmap_run *again = parse(tokmap_run_text(run));
            counts_each_target_once(again);
            has_sources(again, cases[i].sources, cases[i].count);
            tokmap_run_close(again);
            tokmap_run_close(run);
        }
    }
}

/* Of a lookahead above 1, too: windows are as many as the targets of the next token need. */
static void lookaheads(void **state)
{
    (void)state;
    for (unsigned lookahead = 0; lookahead < 20; lookahead++)
        for (unsigned tokens = 180; tokens < 197; tokens++)
            for (int asked = 0; asked < 2; asked++) {
                char text[200];
                struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
                struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
                (void)snprintf(text, sizeof text, HEAD "lookahead %u\nsource web " WEB "#tokens=0..%u\n", lookahead,
                               1999 - tokens);
                if (asked)
                    options.lookahead = lookahead;
                struct tokmap_run *run = evaluate(text, &options);
                assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
                assert_int_equal(info.lookahead, asked ? lookahead : 1);
                if (info.lookahead)
                    counts_each_target_once(run);
                tokmap_run_close(run);
            }
}

#define HELD_OUT HEAD "source web " WEB "#docs=0..190\nvalidation val " WEB "#docs=195..200\nvalidation wiki " WIKI "\n"

static void validation_sets(void **state)
{
    (void)state;
    static const struct {
        const char *source, *part;
        uint64_t count;
        const char *sources[2][2];
    } cases[] = {
        {NULL, NULL, 2, {{"val", WEB "#docs=195..200"}, {"wiki", WIKI}}},
        {"val", NULL, 1, {{"val", WEB "#docs=195..200"}}},
        {"wiki", "docs=1..2", 1, {{"wiki", WIKI "#docs=1..2"}}},
        {"web", NULL, 1, {{"web", WEB "#docs=190..200"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
        options.source = cases[i].source;
        options.part = cases[i].part;
        struct tokmap_run *run = evaluate(HELD_OUT, &options);
        has_sources(run, cases[i].sources, cases[i].count);
        counts_each_target_once(run);
        tokmap_run_close(run);
    }
    /* A part of a dataset of which several validation sets are parts is read once. */
    struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
    options.part = "docs=194..196";
    struct tokmap_run *once = evaluate(HEAD "source web " WEB "#docs=0..190\nvalidation v " WEB "#docs=190..195\n"
                                            "validation w " WEB "#docs=195..200\n",
                                       &options);
    has_sources(once, (const char *const[][2]){{"v", WEB "#docs=194..196"}}, 1);
    tokmap_run_close(once);
    /* They change neither the sources nor the past, and are described after the sources. */
    struct tokmap_run *run = parse(HELD_OUT), *without = parse(HEAD "source web " WEB "#docs=0..190\n");
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_cursor cursor;
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    assert_true(info.sources == 1 && info.validations == 2);
    assert_int_equal(tokmap_run_source(run, 2, &source), TOKMAP_OK);
    assert_string_equal(source.name, "wiki");
    assert_true(source.windows == (1500 - 1 + 15) / 16 && source.tail == 0 && source.line == 6);
    assert_int_equal(tokmap_run_source(run, 3, &source), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_cursor(run, 40, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(without, &cursor, NULL), TOKMAP_OK);
    struct tokmap_run *again = parse(tokmap_run_text(run));
    assert_string_equal(tokmap_run_text(run), tokmap_run_text(again));
    assert_non_null(strstr(tokmap_run_text(run), "validation val " WEB "#docs=195..200\nvalidation wiki " WIKI "\n"));
    tokmap_run_close(again);
    tokmap_run_close(without);
    tokmap_run_close(run);
}

/* A run does not open if it trains on a validation set, or on a part of one. */
static void trained_validation_sets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned line; /* 0: it opens */
    } cases[] = {
        {HEAD "source web " WEB "\nvalidation v " WEB "\n", 5},
        {HEAD "source web " WEB "#docs=0..196\nvalidation v " WEB "#docs=195..200\n", 5},
        {HEAD "source web " WEB "#tokens=0..1951\nvalidation v " WEB "#tokens=1950..2000\n", 5},
        {HEAD "source web " WEB "#tokens=0..1950\nvalidation v " WEB "#tokens=1950..2000\n", 0},
        {HEAD "source web " WEB "#tokens=1960..2000\nvalidation v " WEB "#tokens=100..1960\n", 0},
        {HEAD "source a " WIKI "\nsource web " WEB "\nvalidation v " WEB "#docs=1..2\nphase 0 a 1 web 0\n", 0},
        {HEAD "source a " WIKI "\nsource web " WEB "\nvalidation v " WEB "#docs=1..2\nphase 0 a 1 web 0\n"
              "phase 9 web 1\nsteps 10\n",
         6},
        {HEAD "source a " WIKI "\nsource web " WEB "\nvalidation v " WEB "#docs=1..2\nphase 0 a 1 web 0\n"
              "phase 9 web 1\nsteps 9\n",
         0},
        /* Ranges of several sources that contain each other. */
        {HEAD "source a " WEB "#tokens=0..1000\nsource b " WEB "#tokens=10..50\nsource c " WEB "#tokens=1500..1600\n"
              "validation v " WEB "#tokens=900..1500\nphase 0 natural\n",
         7},
        {HEAD "source a " WEB "#tokens=0..900\nsource b " WEB "#tokens=10..50\nsource c " WEB "#tokens=1500..1600\n"
              "validation v " WEB "#tokens=900..1500\nphase 0 natural\n",
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokmap_run *run = NULL;
        struct tokmap_error error = {0};
        const enum tokmap_status status = tokmap_run_parse(&run, cases[i].text, NULL, &error);
        if (status != (cases[i].line ? TOKMAP_ERROR_RANGE : TOKMAP_OK) || error.line != cases[i].line)
            fail_msg("%s\nline %u: %s", cases[i].text, error.line, error.message);
        if (cases[i].line)
            assert_non_null(strstr(error.message, "the run trains on data of validation set 'v'"));
        tokmap_run_close(run);
    }
}

static void chosen_parts_and_values(void **state)
{
    (void)state;
    struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    options.part = "docs=95..100%";
    options.source = "web";
    options.batch = 3;
    options.seq_len = 7;
    options.lookahead = 2;
    options.pad_id = 11;
    struct tokmap_run *run = evaluate(HEAD "source web " WEB "#docs=0..90%\nphase 9 seq_len 32 batch 64\n", &options);
    const char *const expected[1][2] = {{"web", WEB "#docs=95..100%"}};
    has_sources(run, expected, 1);
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    assert_true(info.batch == 3 && info.seq_len == 7 && info.lookahead == 2 && info.pad_id == 11 &&
                info.tail_pad == 1 && info.order == TOKMAP_SEQUENTIAL && info.steps > 2);
    tokmap_run_close(run);
    options.steps = 2;
    run = evaluate(HEAD "source web " WEB "#docs=0..90%\n", &options);
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    assert_int_equal(info.steps, 2);
    assert_int_equal(info.real_rows_last, 3);
    tokmap_run_close(run);
    options =
        (struct tokmap_evaluation_options)TOKMAP_EVALUATION_OPTIONS_INIT; /* the largest seq_len, the first batch */
    run = evaluate(HEAD "source web " WEB "#docs=0..90%\nphase 9 seq_len 32 batch 64\n", NULL);
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    assert_true(info.batch == 8 && info.seq_len == 32);
    tokmap_run_close(run);
    options.trained = 1;
    run = evaluate(HEAD "source web " WEB "\n", &options);
    tokmap_run_close(run);
}

/* A token has no target without another one after it in its dataset. */
static void single_tokens(void **state)
{
    (void)state;
    static const char *const sets[] = {"validation a " ONE "\n", "validation a " ONE "\nvalidation b " ONE ",seed=5\n"};
    static const char *const also[] = {"validation a synthetic:vocab=90,tokens=2\n",
                                       "validation a " ONE "\nvalidation b " WIKI "\n"};
    for (size_t i = 0; i < 2; i++) {
        char text[400];
        struct tokmap_run *evaluation;
        struct tokmap_error error = {0};
        (void)snprintf(text, sizeof text, HEAD "source web " WEB "\n%s", sets[i]);
        struct tokmap_run *run = parse(text);
        assert_int_equal(tokmap_run_evaluation(&evaluation, run, NULL, &error), TOKMAP_ERROR_RANGE);
        assert_null(evaluation);
        assert_string_equal(error.message, "the evaluation has no target, because '" ONE
                                           "' has 1 token; evaluate on 2 tokens or more");
        tokmap_run_close(run);
        (void)snprintf(text, sizeof text, HEAD "source web " WEB "\n%s", also[i]);
        tokmap_run_close(evaluate(text, NULL));
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *source, *part, *message;
        enum tokmap_status status;
    } cases[] = {
        {HEAD "source web " WEB "\n", NULL, NULL, "leaves out no data of its sources", TOKMAP_ERROR_NOT_FOUND},
        {HEAD "source web " WEB "\n", "web", NULL, "no data of source 'web'", TOKMAP_ERROR_NOT_FOUND},
        {HEAD "source a " WEB "#docs=0..90%\nsource b " WIKI "\nphase 0 a 1 b 1\n", "b", NULL,
         "such as '" WIKI "#docs=0..99%'", TOKMAP_ERROR_NOT_FOUND},
        {HEAD "source a " WEB "#docs=0..100%\n", "a", NULL, "such as '" WEB "#docs=0..99%'", TOKMAP_ERROR_NOT_FOUND},
        {HEAD "source web " WEB "#docs=0..90%\n", "wab", NULL, "no source 'wab'", TOKMAP_ERROR_NOT_FOUND},
        {HEAD "source web " WEB "#docs=0..90%\n", "web", "docs=89..100%", "trains on data", TOKMAP_ERROR_RANGE},
        {HEAD "source web " WEB "#docs=0..90%\n", NULL, "docs=179..181", "source 'web'", TOKMAP_ERROR_RANGE},
        {HEAD "source web " WEB "#docs=0..90%\n", NULL, "tokens=0..9", "set trained", TOKMAP_ERROR_RANGE},
        {HEAD "source web " WEB "#docs=0..50%\nsource b " WEB "#docs=50..90%\nphase 0 natural\n", "web", "docs=60..70%",
         "source 'b'", TOKMAP_ERROR_RANGE},
        {HEAD "source web " WEB "\nsource v " WEB "#docs=1..2\nphase 0 web 1 v 0\n", "v", NULL, "source 'web'",
         TOKMAP_ERROR_RANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokmap_run *run = parse(cases[i].text), *evaluation = run;
        struct tokmap_evaluation_options options = TOKMAP_EVALUATION_OPTIONS_INIT;
        struct tokmap_error error = {0};
        options.source = cases[i].source;
        options.part = cases[i].part;
        assert_int_equal(tokmap_run_evaluation(&evaluation, run, &options, &error), cases[i].status);
        assert_null(evaluation);
        if (!strstr(error.message, cases[i].message))
            fail_msg("'%s' is not in '%s'", cases[i].message, error.message);
        options.stride = 1000;
        options.source = options.part = NULL;
        options.trained = 1;
        assert_int_equal(tokmap_run_evaluation(&evaluation, run, &options, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(tokmap_run_evaluation(&evaluation, NULL, NULL, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(tokmap_run_evaluation(NULL, run, NULL, &error), TOKMAP_ERROR_ARGUMENT);
        tokmap_run_close(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out),        cmocka_unit_test(lookaheads),
        cmocka_unit_test(validation_sets),         cmocka_unit_test(trained_validation_sets),
        cmocka_unit_test(chosen_parts_and_values), cmocka_unit_test(refusals),
        cmocka_unit_test(single_tokens),
    };
    return cmocka_run_group_tests_name("evaluation", tests, NULL, NULL);
}
