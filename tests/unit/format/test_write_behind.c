/* SPDX-License-Identifier: MIT */
/*
 * test_write_behind.c - what the thread that stores a file meanwhile reports is not lost, and it has ended before the
 * file is closed. Files need not be large, because the writer says how many bytes they have.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "format/write_behind.h"
#include "support/scratch_folder.h"

static int file_new(void)
{
    int fd;
    assert_int_equal(os_open(folder, OS_WRITE_UNNAMED, &fd), 0);
    return fd;
}

/* fsync of a pipe fails with EINVAL. */
static int pipe_new(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    (void)close(ends[0]);
    return ends[1];
}

/* Tells `behind` of `steps` steps of writing. */
static void steps_add(struct write_behind *behind, int fd, uint64_t *written, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        *written += WRITE_BEHIND_STEP;
        write_behind(behind, fd, *written);
    }
}

static void threads_begin_with_large_files(void **unused)
{
    (void)unused;
    struct write_behind behind = {.asked = 0};
    uint64_t written = 0;
    const int fd = file_new();
    steps_add(&behind, fd, &written, WRITE_BEHIND_FLUSH / WRITE_BEHIND_STEP - 1);
    assert_null(behind.flush);
    steps_add(&behind, fd, &written, 1);
    assert_non_null(behind.flush);
    assert_int_equal(behind.flushed, WRITE_BEHIND_FLUSH);
    steps_add(&behind, fd, &written, 100 * WRITE_BEHIND_FLUSH / WRITE_BEHIND_STEP);
    assert_int_equal(write_behind_sync(&behind, fd, written), 0);
    assert_null(behind.flush);
    write_behind_end(&behind);
    assert_int_equal(close(fd), 0);
}

/* The descriptor fails while the thread uses it, and no longer in the end. */
static void errors_are_kept(void **unused)
{
    (void)unused;
    struct write_behind behind = {.asked = 0};
    uint64_t written = 0;
    const int fd = pipe_new(), file = file_new();
    steps_add(&behind, fd, &written, WRITE_BEHIND_FLUSH / WRITE_BEHIND_STEP);
    assert_non_null(behind.flush);
    write_behind_end(&behind);
    assert_null(behind.flush);
    assert_int_equal(dup2(file, fd), fd);
    steps_add(&behind, fd, &written, 2 * WRITE_BEHIND_FLUSH / WRITE_BEHIND_STEP);
    assert_int_equal(write_behind_store(&behind, fd), EINVAL);
    assert_int_equal(write_behind_sync(&behind, fd, written), EINVAL);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(file), 0);
}

static void the_last_error_is_kept(void **unused)
{
    (void)unused;
    struct write_behind behind = {.asked = 0};
    const int fd = pipe_new(), file = file_new();
    assert_int_equal(write_behind_store(&behind, file), 0);
    assert_int_equal(write_behind_store(&behind, fd), EINVAL);
    assert_int_equal(write_behind_store(&behind, file), EINVAL);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_begin_with_large_files),
        cmocka_unit_test(errors_are_kept),
        cmocka_unit_test(the_last_error_is_kept),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
