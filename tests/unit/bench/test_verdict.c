/* SPDX-License-Identifier: MIT */
/* Every answer of `tokmap-bench check`, from made-up figures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "harness/verdict.c" /* programs of tests are not linked with the objects of bench */

/* 8 ranks that need 0.27 GB/s on a storage that gives 3.1 GB/s. */
static struct verdict_figures good(void)
{
    return (struct verdict_figures){.ranks = 8,
                                    .step_ms = 250,
                                    .step_bytes = 0.27e9 / 4,
                                    .cold = 3.1e9,
                                    .warm = 20e9,
                                    .wait_cold = 0.00001,
                                    .wait_warm = 0,
                                    .busy = 0.5,
                                    .processors = 16,
                                    .dataset_bytes = (uint64_t)1 << 40};
}

static struct verdict_answer answer_to(const struct verdict_figures *figures)
{
    struct verdict_answer answer;
    verdict_find(figures, &answer);
    return answer;
}

static void expect(const struct verdict_figures *figures, enum verdict verdict, enum verdict_binds binds,
                   const char *text)
{
    const struct verdict_answer answer = answer_to(figures);
    assert_int_equal(answer.verdict, verdict);
    assert_int_equal(answer.binds, binds);
    if (!strstr(answer.sentence, text))
        fail_msg("'%s' does not contain '%s'", answer.sentence, text);
}

static void test_ok(void **state)
{
    (void)state;
    struct verdict_figures figures = good();
    assert_string_equal(answer_to(&figures).sentence,
                        "ok: 8 ranks need 0.27 GB/s; this storage gives 3.1 GB/s cold, 20 GB/s warm. A step would wait "
                        "0.00%.");
    figures.ranks = 1;
    expect(&figures, VERDICT_OK, BINDS_NOTHING, "ok: 1 rank needs 0.27 GB/s; ");
    figures.cold = figures.wait_cold = (double)NAN;
    expect(&figures, VERDICT_OK, BINDS_NOTHING, "gives 20 GB/s warm (cold was not measured: the dataset has no files)");
    figures.cold_reason = "tmpfs";
    expect(&figures, VERDICT_OK, BINDS_NOTHING, "(cold was not measured: tmpfs)");
    figures.warm = 310e9;
    figures.step_bytes = 1000;
    expect(&figures, VERDICT_OK, BINDS_NOTHING, "needs 0.004 MB/s; this machine gives 310 GB/s warm");
}

static void test_storage(void **state)
{
    (void)state;
    struct verdict_figures figures = good();
    figures.cold = 0.4e9;
    expect(&figures, VERDICT_TIGHT, BINDS_STORAGE, "tight: ");
    figures.cold = 0.2e9; /* the ring hid it from the steps that were measured */
    expect(&figures, VERDICT_BOTTLENECK, BINDS_STORAGE, "A step would wait 25.93%. The storage binds: put the dataset");
    figures.fits = true;
    figures.dataset_bytes = 2000000000;
    expect(&figures, VERDICT_BOTTLENECK, BINDS_STORAGE, "since its 2.00 GB fit in memory.");
    figures = good();
    figures.wait_cold = 0.02;
    expect(&figures, VERDICT_TIGHT, BINDS_STORAGE, "A step would wait 2.00%.");
    figures.wait_cold = 0.05;
    expect(&figures, VERDICT_BOTTLENECK, BINDS_STORAGE, "bottleneck: ");
}

static void test_machine(void **state)
{
    (void)state;
    struct verdict_figures figures = good();
    figures.cold = 0.2e9;
    figures.warm = 0.25e9;
    expect(&figures, VERDICT_BOTTLENECK, BINDS_THREADS, "The loaders' own threads bind");
    figures.busy = 0.97;
    expect(&figures, VERDICT_BOTTLENECK, BINDS_PROCESSORS, "The processors bind: the loaders use 97% of 16;");
    figures.busy = 0.3;
    figures.others = 0.7;
    expect(&figures, VERDICT_BOTTLENECK, BINDS_PROCESSORS, "of 16, other programs use 70% and the loaders 30%;");
    figures = good();
    figures.wait_cold = figures.wait_warm = 0.03; /* the time of next() itself, in short steps */
    expect(&figures, VERDICT_TIGHT, BINDS_THREADS, "tight: ");
    figures = good();
    figures.cold = figures.wait_cold = (double)NAN;
    figures.warm = 0.1e9;
    expect(&figures, VERDICT_BOTTLENECK, BINDS_THREADS, "bottleneck: ");
}

static void test_fastest_step(void **state)
{
    (void)state;
    struct verdict_figures figures = good();
    figures.step_ms = 0;
    expect(&figures, VERDICT_NONE, BINDS_NOTHING, "can feed 8 ranks a step every 21.8 ms cold, 3.38 ms warm: ");
    figures.cold = (double)NAN;
    expect(&figures, VERDICT_NONE, BINDS_NOTHING, "a step every 3.38 ms: this machine gives 20 GB/s warm");
    expect(&figures, VERDICT_NONE, BINDS_NOTHING, "With --step-ms");
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(verdict_name(VERDICT_OK), "ok");
    assert_string_equal(verdict_name(VERDICT_TIGHT), "tight");
    assert_string_equal(verdict_name(VERDICT_BOTTLENECK), "bottleneck");
    assert_string_equal(verdict_name(VERDICT_NONE), "none");
    assert_string_equal(verdict_binds_name(BINDS_STORAGE), "storage");
    assert_string_equal(verdict_binds_name(BINDS_PROCESSORS), "processors");
    assert_string_equal(verdict_binds_name(BINDS_THREADS), "threads");
    assert_string_equal(verdict_binds_name(BINDS_NOTHING), "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ok), cmocka_unit_test(test_storage),
                                       cmocka_unit_test(test_machine), cmocka_unit_test(test_fastest_step),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
