/* SPDX-License-Identifier: MIT */
/* Runs with another future than the one they continue. The Python tests of phases move loaders to them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tokmap/tokmap.h"

static const char text[] = "seq_len 50\nbatch 6\nseed 3\n"
                           "source a synthetic:vocab=100,tokens=60000\n"
                           "source b synthetic:vocab=100,tokens=90000,seed=2\n"
                           "phase 0 a 1 b 3\n# a remark\n  phase 70 batch 9\nsteps 100\n";

static struct tokmap_run *opened(void)
{
    struct tokmap_run *run;
    assert_int_equal(tokmap_run_parse(&run, text, NULL, NULL), TOKMAP_OK);
    return run;
}

static void check(uint64_t step, const char *change, const char *after)
{
    struct tokmap_run *run = opened(), *continued, *parsed;
    struct tokmap_cursor one, other;
    struct tokmap_error error;
    if (tokmap_run_continue(&continued, run, step, change, &error))
        fail_msg("%s", error.message);
    assert_int_equal(tokmap_run_parse(&parsed, after, NULL, NULL), TOKMAP_OK);
    assert_string_equal(tokmap_run_text(continued), tokmap_run_text(parsed));
    for (uint64_t t = 0; t <= step; t++) {
        assert_int_equal(tokmap_run_cursor(run, t, &one, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_run_cursor(continued, t, &other, NULL), TOKMAP_OK);
        assert_memory_equal(&one, &other, sizeof one);
    }
    tokmap_run_close(run); /* the others do not need it */
    assert_int_equal(tokmap_run_cursor(continued, 100, &one, NULL), TOKMAP_OK);
    tokmap_run_close(continued);
    tokmap_run_close(parsed);
}

#define SOURCES                                                                                                        \
    "seq_len 50\nbatch 6\nseed 3\nsource a synthetic:vocab=100,tokens=60000\n"                                         \
    "source b synthetic:vocab=100,tokens=90000,seed=2\nsteps 100\nphase 0 "

static void the_line_is_added_or_replaced(void **unused)
{
    (void)unused;
    check(40, "a 2 b 1", SOURCES "a 1 b 3\nphase 40 a 2 b 1\nphase 70 batch 9\n");
    check(70, " a 2\tseq_len 20", SOURCES "a 1 b 3\nphase 70 a 2 seq_len 20\n");
    check(99, "batch 1", SOURCES "a 1 b 3\nphase 70 batch 9\nphase 99 batch 1\n");
    check(0, "a 0 b 1", SOURCES "a 0 b 1\nphase 70 batch 9\n");
    check(7, "natural", SOURCES "a 1 b 3\nphase 7 natural\nphase 70 batch 9\n");
}

static void refused(uint64_t step, const char *change, enum tokmap_status status, const char *word)
{
    struct tokmap_run *run = opened(), *continued = run;
    struct tokmap_error error;
    assert_int_equal(tokmap_run_continue(&continued, run, step, change, &error), status);
    assert_null(continued);
    if (!strstr(error.message, word))
        fail_msg("\"%s\" lacks \"%s\"", error.message, word);
    tokmap_run_close(run);
}

static void what_is_no_change_is_refused(void **unused)
{
    (void)unused;
    struct tokmap_run *run = opened();
    struct tokmap_error error;
    refused(40, NULL, TOKMAP_ERROR_ARGUMENT, "NULL");
    refused(40, "", TOKMAP_ERROR_ARGUMENT, "what follows the step");
    refused(40, " \t", TOKMAP_ERROR_ARGUMENT, "what follows the step");
    refused(40, "a 1\nsteps 5", TOKMAP_ERROR_ARGUMENT, "what follows the step");
    refused(40, "a 1 # b", TOKMAP_ERROR_ARGUMENT, "what follows the step");
    refused(40, "a 0 b 0", TOKMAP_ERROR_RUN, "weight");
    refused(40, "c 1", TOKMAP_ERROR_RUN, "c");
    refused(40, "seq_len 70000", TOKMAP_ERROR_RANGE, "longer than");
    refused(101, "a 1", TOKMAP_ERROR_RANGE, "past the end");
    refused(TOKMAP_FOREVER, "a 1", TOKMAP_ERROR_RANGE, "past the end");
    assert_int_equal(tokmap_run_continue(NULL, run, 40, "a 1", &error), TOKMAP_ERROR_ARGUMENT);
    struct tokmap_run *continued;
    assert_int_equal(tokmap_run_continue(&continued, NULL, 40, "a 1", &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_is_added_or_replaced),
        cmocka_unit_test(what_is_no_change_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
