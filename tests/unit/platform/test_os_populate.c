/* SPDX-License-Identifier: MIT */
/* os_map_populate() against a kernel that answers EAGAIN: this program's own madvise() takes the place of libc's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/os.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static unsigned calls, failures; /* of the calls that populate: how many there were, how many of them fail */
static int failure;

int madvise(void *address, size_t bytes, int advice)
{
    if (advice != MADV_POPULATE_READ)
        return (int)syscall(SYS_madvise, address, bytes, advice);
    if (++calls > 100000) { /* ends a caller that would try forever, with another errno */
        errno = EFAULT;
        return -1;
    }
    if (calls > failures)
        return 0;
    errno = failure;
    return -1;
}

static int populate(int with, unsigned times)
{
    static char page[4096];
    calls = 0;
    failure = with;
    failures = times;
    return os_map_populate(page, sizeof page);
}

static void a_busy_kernel_is_asked_again(void **unused)
{
    (void)unused;
    assert_int_equal(populate(EAGAIN, 5), 0);
    assert_int_equal(calls, 6);
    assert_int_equal(populate(EAGAIN, OS_POPULATE_TRIES - 1), 0);
}

static void a_kernel_that_stays_busy_is_an_error(void **unused)
{
    (void)unused;
    const uint64_t started = os_clock_ns();
    assert_int_equal(populate(EAGAIN, UINT32_MAX), EAGAIN);
    assert_int_equal(calls, OS_POPULATE_TRIES);
    assert_true(os_clock_ns() - started >= (uint64_t)(OS_POPULATE_TRIES - 1) * OS_POPULATE_PAUSE_NS);
}

static void interrupts_do_not_count(void **unused)
{
    (void)unused;
    assert_int_equal(populate(EINTR, 10 * OS_POPULATE_TRIES), 0);
}

static void interrupts_that_never_end_are_an_error(void **unused)
{
    (void)unused;
    assert_int_equal(populate(EINTR, UINT32_MAX), EAGAIN);
    assert_int_equal(calls, OS_POPULATE_INTERRUPTS);
}

static void other_errors_are_returned_at_once(void **unused)
{
    (void)unused;
    assert_int_equal(populate(EFAULT, 1), EFAULT);
    assert_int_equal(populate(EINVAL, 1), ENOTSUP);
    assert_int_equal(populate(EHWPOISON, 1), EIO);
    assert_int_equal(calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_kernel_is_asked_again),      cmocka_unit_test(a_kernel_that_stays_busy_is_an_error),
        cmocka_unit_test(interrupts_do_not_count),           cmocka_unit_test(interrupts_that_never_end_are_an_error),
        cmocka_unit_test(other_errors_are_returned_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
