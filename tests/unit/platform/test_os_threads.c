/* SPDX-License-Identifier: MIT */
/*
 * Where threads start: not on the processor of the thread that starts them, and from then on where the program may run.
 * This program's own pthread_attr_setaffinity_np() sees what os_thread_start() asks for. And what threads do while the
 * process forks.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "platform/os.h"

typedef int set_affinity(pthread_attr_t *attributes, size_t size, const cpu_set_t *set);

static unsigned asked;      /* how often a thread was to start elsewhere */
static cpu_set_t elsewhere; /* where the last one was to start */
static bool impossible;     /* it is to start on a processor that no machine has, so pthread_create() fails */

int pthread_attr_setaffinity_np(pthread_attr_t *attributes, size_t size, const cpu_set_t *set)
{
    set_affinity *const real = (set_affinity *)dlsym(RTLD_NEXT, "pthread_attr_setaffinity_np");
    cpu_set_t none;
    assert_non_null(real);
    assert_int_equal(size, sizeof elsewhere);
    asked++;
    elsewhere = *set;
    if (!impossible)
        return real(attributes, size, set);
    CPU_ZERO(&none);
    CPU_SET(CPU_SETSIZE - 1, &none);
    return real(attributes, sizeof none, &none);
}

static cpu_set_t allowed_here(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static void see_allowed(void *user)
{
    *(cpu_set_t *)user = allowed_here();
}

/* Starts a thread and waits for it. Returns where it could run. */
static cpu_set_t started(void)
{
    struct os_thread *thread;
    cpu_set_t seen;
    CPU_ZERO(&seen);
    asked = 0;
    assert_int_equal(os_thread_start(&thread, "test", see_allowed, &seen), 0);
    os_thread_join(thread);
    return seen;
}

static void a_thread_starts_elsewhere_and_may_run_anywhere(void **unused)
{
    (void)unused;
    const cpu_set_t all = allowed_here(), seen = started();
    cpu_set_t both;
    assert_true(CPU_EQUAL(&seen, &all));
    if (CPU_COUNT(&all) < 2)
        skip();
    CPU_AND(&both, &elsewhere, &all);
    assert_int_equal(asked, 1);
    assert_true(CPU_EQUAL(&both, &elsewhere));
    assert_int_equal(CPU_COUNT(&elsewhere), CPU_COUNT(&all) - 1);
}

static void a_program_on_one_processor_stays_there(void **unused)
{
    (void)unused;
    const cpu_set_t all = allowed_here();
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const cpu_set_t seen = started();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_true(CPU_EQUAL(&seen, &one));
    assert_int_equal(asked, 0);
}

static void a_thread_starts_where_its_processor_cannot_be_set(void **unused)
{
    (void)unused;
    const cpu_set_t all = allowed_here();
    impossible = true;
    const cpu_set_t seen = started();
    impossible = false;
    assert_true(CPU_EQUAL(&seen, &all));
    assert_int_equal(asked, CPU_COUNT(&all) > 1);
}

static void count_number(void *user, uint32_t number)
{
    __atomic_fetch_add((uint64_t *)user, (uint64_t)1 << (8 * number), __ATOMIC_RELAXED);
}

static void shared_work_is_called_once_for_each_number(void **unused)
{
    (void)unused;
    uint64_t numbers = 0;
    os_threads_share("test", 5, count_number, &numbers);
    assert_int_equal(numbers, UINT64_C(0x0101010101));
}

static uint32_t keeps; /* accessed atomically */

static void keep_errors(void *unused)
{
    (void)unused;
    struct tokmap_error error;
    while (__atomic_load_n(&keeps, __ATOMIC_RELAXED)) {
        error_set(&error, TOKMAP_ERROR_CORRUPT, "x", 0, "a message");
        (void)error_keep(&error);
    }
}

/* Threads keep errors much of the time, so some of the forks are made while one does. */
static void a_child_keeps_errors_whatever_threads_did(void **unused)
{
    (void)unused;
    struct os_thread *threads[2];
    keeps = 1;
    os_process_lock(); /* as a cache does when it is opened */
    os_process_unlock();
    for (int i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "test", keep_errors, NULL), 0);
    for (int i = 0; i < 100; i++) {
        int status;
        const pid_t child = fork();
        if (!child) {
            struct tokmap_error error, again;
            (void)alarm(20);
            error_set(&error, TOKMAP_ERROR_CORRUPT, "y", 0, "the child's");
            _exit(error_set_system(&again, error_keep(&error), "z", 0, "no") != TOKMAP_ERROR_CORRUPT);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&keeps, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        os_thread_join(threads[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_starts_elsewhere_and_may_run_anywhere),
        cmocka_unit_test(a_program_on_one_processor_stays_there),
        cmocka_unit_test(a_thread_starts_where_its_processor_cannot_be_set),
        cmocka_unit_test(shared_work_is_called_once_for_each_number),
        cmocka_unit_test(a_child_keeps_errors_whatever_threads_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
