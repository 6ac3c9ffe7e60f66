/* SPDX-License-Identifier: MIT */
/* library.h: tables of functions of libraries that are loaded at their first use. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/library.h"
#include "platform/os.h"

/* A library of libc's: the tests are linked with it, so it is on every machine. Its second function is a macro, like
 * those of PCRE2. */
#define wanted_root cbrt
#define LIBM_FUNCTIONS(X) X(cos) X(wanted_root) X(fmod)
static bool may_start = true;
static unsigned starts;
static bool start(void);
LIBRARY_DECLARE_OPENED(mathematics, LIBM_FUNCTIONS)
LIBRARY_DEFINE_OPENED(mathematics, LIBM_FUNCTIONS, "libm.so.6", "libc6", .start = start)

static bool start(void)
{
    __atomic_fetch_add(&starts, 1, __ATOMIC_RELAXED);
    return may_start;
}

static int forget(void **unused)
{
    (void)unused;
    memset(&mathematics, 0, sizeof mathematics);
    mathematics_library.file = "libm.so.6";
    mathematics_library.other = NULL;
    mathematics_library.state = LIBRARY_UNOPENED;
    may_start = true;
    starts = 0;
    return 0;
}

static void a_table_has_the_functions(void **unused)
{
    char reason[LIBRARY_REASON] = "none";
    (void)unused;
    assert_true(library_load(&mathematics_library, reason, sizeof reason));
    assert_true(library_load(&mathematics_library, reason, sizeof reason));
    assert_string_equal(reason, "none");
    assert_int_equal(starts, 1);
    assert_true(mathematics.cos(0) > 0.999);
    assert_true(mathematics.wanted_root(27) > 2.999 && mathematics.cbrt(27) < 3.001);
    assert_true(mathematics.fmod(7, 4) > 2.999 && mathematics.fmod(7, 4) < 3.001);
}

static void a_missing_library_is_named_and_tried_again(void **unused)
{
    char reason[LIBRARY_REASON];
    (void)unused;
    mathematics_library.file = "libtokmap_of_nobody.so.7";
    for (int i = 0; i < 2; i++) {
        memset(reason, 0, sizeof reason);
        assert_false(library_load(&mathematics_library, reason, sizeof reason));
        assert_non_null(strstr(reason, "libtokmap_of_nobody.so.7"));
    }
    mathematics_library.other = "libtokmap_of_somebody.so.7";
    assert_false(library_load(&mathematics_library, reason, sizeof reason));
    assert_non_null(strstr(reason, "libtokmap_of_nobody.so.7"));
    mathematics_library.other = "libm.so.6";
    assert_true(library_load(&mathematics_library, reason, sizeof reason));
    assert_true(mathematics.cos(0) > 0.999);
}

static void a_short_reason_is_cut(void **unused)
{
    char reason[8];
    (void)unused;
    mathematics_library.file = "libtokmap_of_nobody.so.7";
    memset(reason, 'x', sizeof reason);
    assert_false(library_load(&mathematics_library, reason, sizeof reason));
    assert_string_equal(reason, "libtokm");
}

static void a_missing_function_is_named(void **unused)
{
    char reason[LIBRARY_REASON];
    (void)unused;
    mathematics_library.file = "libc.so.6";
    assert_false(library_load(&mathematics_library, reason, sizeof reason));
    assert_string_equal(reason, "libc.so.6 has no function cos");
    assert_int_equal(starts, 0);
}

static void a_library_that_does_not_start_is_tried_again(void **unused)
{
    char reason[LIBRARY_REASON];
    (void)unused;
    may_start = false;
    assert_false(library_load(&mathematics_library, reason, sizeof reason));
    assert_string_equal(reason, "libm.so.6 does not start");
    may_start = true;
    assert_true(library_load(&mathematics_library, reason, sizeof reason));
    assert_int_equal(starts, 2);
}

static void load_and_call(void *user)
{
    char reason[LIBRARY_REASON];
    double *result = user;
    *result = library_load(&mathematics_library, reason, sizeof reason) ? mathematics.cos(0) : -1;
}

static void threads_load_it_once(void **unused)
{
    enum { THREADS = 8 };
    struct os_thread *threads[THREADS];
    double results[THREADS];
    (void)unused;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "loads", load_and_call, &results[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        os_thread_join(threads[i]);
        assert_true(results[i] > 0.999);
    }
    assert_int_equal(starts, 1);
}

/* A child that was forked while another thread of its parent was loading does not wait for that thread. */
static void a_forked_child_loads_it_itself(void **unused)
{
    char reason[LIBRARY_REASON];
    int status = -1;
    (void)unused;
    mathematics_library.state = LIBRARY_OPENING_BY(os_process_id());
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        (void)alarm(60); /* which ends a child that waits */
        _exit(library_load(&mathematics_library, reason, sizeof reason) && mathematics.cos(0) > 0.999 && starts == 1 &&
                      mathematics_library.state == LIBRARY_READY
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_table_has_the_functions, forget),
        cmocka_unit_test_setup(a_missing_library_is_named_and_tried_again, forget),
        cmocka_unit_test_setup(a_short_reason_is_cut, forget),
        cmocka_unit_test_setup(a_missing_function_is_named, forget),
        cmocka_unit_test_setup(a_library_that_does_not_start_is_tried_again, forget),
        cmocka_unit_test_setup(threads_load_it_once, forget),
        cmocka_unit_test_setup(a_forked_child_loads_it_itself, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
