/* SPDX-License-Identifier: MIT */
/*
 * What the sources of a run must agree in, on datasets on disk; errors of mixtures that are impossible; and the step in
 * which a source runs out, in runs that are too long to enumerate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/shard_writer.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

static char folder[512];

static void make_shard(const char *name, uint32_t width, uint64_t vocabulary, uint64_t eod, uint8_t tokenizer)
{
    struct shard_writer_options options = {
        .width = width, .vocabulary = vocabulary, .eod_id = eod, .bos_id = TOKMAP_NO_ID};
    struct shard_writer *writer = NULL;
    struct tokmap_error error = {0};
    char prefix[600];
    options.tokenizer[3] = tokenizer;
    (void)snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    if (shard_writer_open(&writer, prefix, &options, &error) || shard_writer_add_zeros(writer, 1000, &error) ||
        shard_writer_commit(writer, "{}", 2, NULL, &error))
        fail_msg("%s", error.message);
}

static int make_shards(void **state)
{
    (void)state;
    scratch_make(folder);
    make_shard("a", 2, 100, 7, 1);
    make_shard("b", 2, 120, 7, 1);
    make_shard("wide", 4, 90000, 7, 1);
    make_shard("other", 2, 100, 7, 2);
    make_shard("unknown", 2, 100, 7, 0);
    make_shard("unknown_9", 2, 100, 9, 0);
    make_shard("ends", 2, 100, 9, 1);
    make_shard("no_end", 2, 100, TOKMAP_NO_ID, 1);
    return 0;
}

static int remove_shards(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

#define HEAD "seq_len 8\nbatch 4\n"

/* Opens the text. `warning`: part of the run's warning, or NULL if it has none. */
static void accepted(const char *text, const char *warning, uint32_t width, uint64_t vocabulary, uint64_t pad)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s: line %u: %s", text, error.line, error.message);
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    assert_int_equal(info.width, width);
    assert_int_equal(info.vocabulary, vocabulary);
    assert_int_equal(info.pad_id, pad);
    if ((info.warning != NULL) != (warning != NULL) || (warning && !strstr(info.warning, warning)))
        fail_msg("%s: warning: %s", text, info.warning ? info.warning : "(none)");
    tokmap_run_close(run);
}

static void agreement(void **state)
{
    (void)state;
    accepted(HEAD "source x a\nsource y b\nphase 0 natural\n", NULL, 2, 120, 7);
    accepted(HEAD "source x a\nsource y wide\nphase 0 natural\n", NULL, 4, 90000, 7);
    accepted(HEAD "source x a\nsource y wide\nphase 0 natural\npad 80000\n", NULL, 4, 90000, 80000);
    accepted(HEAD "source x a\nsource y unknown\nphase 0 natural\n", "which tokenizer made source 'y'", 2, 100, 7);
    accepted(HEAD "source x a\nsource y ends\nphase 0 natural\n", "source 'x' ends its documents with id 7", 2, 100, 7);
    accepted(HEAD "source x no_end\nsource y ends\nphase 0 natural\n", NULL, 2, 100, 9);
    accepted(HEAD "source x no_end\n", NULL, 2, 100, 0);
    accepted(HEAD "source x unknown\n", NULL, 2, 100, 7);
    /* The id that pads is that of the first source that has one, whether or not its tokenizer is recorded. */
    accepted(HEAD "source x unknown\nsource y unknown_9\nphase 0 natural\n", "source 'y' with id 9", 2, 100, 7);
    accepted(HEAD "source x unknown_9\nsource y unknown\nphase 0 natural\n", "which tokenizer made source 'x'", 2, 100,
             9);
    accepted(HEAD "source x unknown_9\nsource y a\nphase 0 natural\n", "source 'y' with id 7", 2, 100, 9);
    /* A validation set must have the same tokenizer, but changes neither the padding nor the width. */
    accepted(HEAD "source x no_end\nvalidation y wide\n", NULL, 2, 90000, 0);
    accepted(HEAD "source x a#tokens=0..500\nvalidation y ends#tokens=500..600\n", "and validation set 'y' with id 9",
             2, 100, 7);
    accepted(HEAD "source x a#tokens=0..500\nvalidation y unknown_9#tokens=500..600\n",
             "which tokenizer made validation set 'y'", 2, 100, 7);
    accepted(HEAD "source x a\nsource s synthetic:vocab=50\nphase 0 x 1 s 1\n", NULL, 2, 100, 7);
}

static void refused(const char *text, enum tokmap_status status, unsigned line, const char *message)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    const enum tokmap_status got = run_parse_in(&run, text, folder, &error);
    if (got != status || error.line != line || !strstr(error.message, message))
        fail_msg("%s\nstatus %d, line %u: %s", text, (int)got, error.line, error.message);
}

static void refusals(void **state)
{
    (void)state;
    refused(HEAD "source x a\nsource y other\nphase 0 natural\n", TOKMAP_ERROR_MISMATCH, 4, "different tokenizers");
    refused(HEAD "source x unknown\nsource y a\nsource z other\nphase 0 natural\n", TOKMAP_ERROR_MISMATCH, 5,
            "source 'z' (other) and source 'y' (a)");
    refused(HEAD "source x a\nvalidation y b\n", TOKMAP_ERROR_RANGE, 4,
            "source 'x' (a) has tokens of "); /* whose content is the same */
    refused(HEAD "source x a\nvalidation y other\n", TOKMAP_ERROR_MISMATCH, 4,
            "validation set 'y' (other) and source 'x' (a) were made with different tokenizers");
    refused(HEAD "source x a\nvalidation y missing\n", TOKMAP_ERROR_NOT_FOUND, 4, "validation set 'y' is the dataset");
    refused(HEAD "source x a plan missing.plan\n", TOKMAP_ERROR_NOT_FOUND, 3,
            "source 'x' has the plan 'missing.plan', which was looked for as");
    refused(HEAD "source x a\npad 65536\ntail pad\n", TOKMAP_ERROR_RANGE, 4, "does not fit");
    refused(HEAD "source x a\nsource y b\nphase 0 natural\nphase 10 x 1 seq_len 2000\n", TOKMAP_ERROR_RANGE, 6,
            "longer than dataset 'a'");
    /* The end of a run with `passes` is known only when its sources are open: here step 41 ends the first phase. */
    refused(HEAD "source x a\nsource y b\nphase 0 x tokens=1440 y tokens=480\nphase 60 natural\npasses 1 of x\n",
            TOKMAP_ERROR_RANGE, 5,
            "the weights sum to 1920 tokens, but the steps that they are for, from step 0 on, have 1312");
    refused(HEAD "source x synthetic:vocab=9,tokens=4611686018427387904\n"
                 "source y synthetic:vocab=9,tokens=4611686018427387904\nphase 0 natural seq_len 1\n",
            TOKMAP_ERROR_RUN, 5, "seq_len");
    refused("seq_len 1\nbatch 4\nsource x synthetic:vocab=9,tokens=4611686018427387904\n"
            "source y synthetic:vocab=9,tokens=4611686018427387904\n"
            "source z synthetic:vocab=9,tokens=4611686018427387904\nphase 0 natural\n",
            TOKMAP_ERROR_RANGE, 6, "2^63");
    refused(HEAD "source x a\nsource y b\nphase 0 x 1 y 1\npasses 2\n", TOKMAP_ERROR_RUN, 6, "passes 2 of x");
    refused(HEAD "source x a\nsource y b\nphase 0 x 1 y 1\nphase 10 y 1\npasses 9 of x\n", TOKMAP_ERROR_RANGE, 7,
            "has no weight from step 10 on (line 6)");
    refused(HEAD "source x a\nsource y b epochs<=3\nphase 0 x 1 y 1\n", TOKMAP_ERROR_RANGE, 4, "the run has no end");
    refused(HEAD "source x a epochs<=3\nsteps 94\n", TOKMAP_ERROR_RANGE, 3,
            "runs out in step 93: there its 3 epochs are over, and the run continues");
    refused(HEAD "source x a epochs<=1\nsteps 94\n", TOKMAP_ERROR_RANGE, 3, ": there its 1 epoch is over, and the run");
}

static void first_of_many(void **state)
{
    (void)state;
    char text[8000] = HEAD;
    for (int i = 0; i < 60; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "source s%d %s\n", i,
                       i == 23  ? "missing"
                       : i > 30 ? "absent"
                       : i % 2  ? "a"
                                : "b");
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "phase 0 natural\n");
    for (int i = 0; i < 30; i++)
        refused(text, TOKMAP_ERROR_NOT_FOUND, 26, "source 's23' is the dataset 'missing'");
}

/* A source runs out in exactly the step that the error names: a run that ends before it is accepted, and one that is a
 * step longer is refused. The runs have up to 10^18 draws. */
static void out_in_long_runs(void **state)
{
    (void)state;
    uint64_t random = 99;
    for (int i = 0; i < 400; i++) {
        char text[2000], longer[2100];
        uint64_t numbers[8];
        for (int j = 0; j < 8; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            numbers[j] = random >> 33;
        }
        (void)snprintf(
            text, sizeof text,
            "seq_len %u\nbatch %u\nsource big synthetic:vocab=9,tokens=1%09u00000000\n"
            "source cap synthetic:vocab=9,tokens=%u epochs<=%u\nsource more synthetic:vocab=9,tokens=10000000\n"
            "phase 0 big %u.5 cap 0.%03u more 0.1\nphase %u big 5 cap 0.001 batch %u\n",
            (unsigned)(1 + numbers[0] % 9000), (unsigned)(1 + numbers[1] % 5000), (unsigned)(numbers[2] % 1000000000),
            (unsigned)(10000 + numbers[3]), (unsigned)(1 + numbers[4] % 1000), (unsigned)(numbers[5] % 900),
            (unsigned)(1 + numbers[6] % 999), (unsigned)(1 + numbers[7] % 10000000), (unsigned)(1 + numbers[2] % 900));
        struct tokmap_run *run = NULL;
        struct tokmap_error error = {0};
        assert_int_equal(tokmap_run_parse(&run, text, NULL, &error), TOKMAP_ERROR_RANGE);
        const char *at = strstr(error.message, "runs out in step ");
        assert_non_null(at);
        const uint64_t step = strtoull(at + 17, NULL, 10);
        (void)snprintf(longer, sizeof longer, "%ssteps %llu\n", text, (unsigned long long)(step + 1));
        assert_int_equal(tokmap_run_parse(&run, longer, NULL, &error), TOKMAP_ERROR_RANGE);
        assert_non_null(strstr(error.message, at));
        if (step == 0)
            continue;
        (void)snprintf(longer, sizeof longer, "%ssteps %llu\n", text, (unsigned long long)step);
        assert_int_equal(tokmap_run_parse(&run, longer, NULL, &error), TOKMAP_OK);
        tokmap_run_close(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agreement),
        cmocka_unit_test(refusals),
        cmocka_unit_test(first_of_many),
        cmocka_unit_test(out_in_long_runs),
    };
    return cmocka_run_group_tests_name("run_sources", tests, make_shards, remove_shards);
}
