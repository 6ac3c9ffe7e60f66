/* SPDX-License-Identifier: MIT */
/* The choice of a CPU variant: TOKMAP_CPU caps it, an unknown value is reported and ignored, results do not change. The
 * choice is made once per process, so each value is tried in a child. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cpu.h"
#include "common/hash.h"
#include "text/utf8.h"

#if defined(__aarch64__)
#define WIDEST CPU_NEON
static const char *const values[] = {"scalar", "neon"};
static const enum cpu_variant caps[] = {CPU_SCALAR, CPU_NEON};
#else
#define WIDEST CPU_VBMI
static const char *const values[] = {"scalar", "avx2", "avx512"};
static const enum cpu_variant caps[] = {CPU_SCALAR, CPU_AVX2, CPU_VBMI};
#endif

struct findings {
    enum cpu_variant best;
    bool valid;
    uint64_t results; /* a hash of what functions that have variants return */
};

static uint64_t results(void)
{
    static char text[5000];
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 2654435761u >> 7);
    for (size_t count = 0; count < sizeof text; count = count * 3 + 1)
        all = all * 31 + hash64(text, count) + hash128(text, count).high + utf8_valid_prefix(text, count);
    memset(text, 'a', sizeof text - 1);
    return all + utf8_valid_prefix(text, sizeof text);
}

/* What a fresh process finds if TOKMAP_CPU has this value (NULL: is not set). */
static struct findings findings_with(const char *value)
{
    struct findings found = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (value)
            setenv("TOKMAP_CPU", value, 1);
        else
            unsetenv("TOKMAP_CPU");
        found = (struct findings){cpu_variant_best(), cpu_environment_is_valid(), results()};
        _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
    }
    close(ends[1]);
    int status = 1;
    assert_int_equal(read(ends[0], &found, sizeof found), sizeof found);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    return found;
}

static void a_value_caps_the_variant(void **unused)
{
    (void)unused;
    const struct findings free_choice = findings_with(NULL);
    assert_true(free_choice.valid);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const struct findings found = findings_with(values[i]);
        assert_true(found.valid);
        assert_int_equal(found.best, caps[i] < free_choice.best ? caps[i] : free_choice.best);
        assert_true(found.results == free_choice.results);
        assert_non_null(strstr(cpu_environment_values(), values[i]));
    }
}

static void an_unknown_value_is_reported_and_ignored(void **unused)
{
    (void)unused;
    static const char *const unknown[] = {"sse9", "AVX2", "avx2 ", "1", "avx"};
    const struct findings free_choice = findings_with(NULL);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        const struct findings found = findings_with(unknown[i]);
        assert_false(found.valid);
        assert_int_equal(found.best, free_choice.best);
    }
    assert_true(findings_with("").valid);
}

static void each_variant_includes_those_before_it(void **unused)
{
    (void)unused;
    assert_true(cpu_has(CPU_SCALAR));
    for (int variant = CPU_SCALAR; variant <= WIDEST; variant++) {
        assert_int_equal(cpu_has((enum cpu_variant)variant), variant <= (int)cpu_variant_best());
        assert_true(strlen(cpu_variant_name((enum cpu_variant)variant)) > 3);
    }
}

int main(void)
{
    /* First of all, so that no child inherits a choice that was made before. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_caps_the_variant),
        cmocka_unit_test(an_unknown_value_is_reported_and_ignored),
        cmocka_unit_test(each_variant_includes_those_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
