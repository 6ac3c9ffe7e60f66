/* SPDX-License-Identifier: MIT */
/* error.h, struct_copy.h, and bytes.h: errors keep what their reader needs, structs of older and newer callers are
 * handled, and arithmetic does not wrap around. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"

static void every_status_has_a_name_and_a_text(void **unused)
{
    (void)unused;
    for (int i = 0; i <= TOKMAP_ERROR_INTERNAL; i++) {
        assert_string_not_equal(tokmap_status_name((enum tokmap_status)i), "unknown");
        assert_string_not_equal(tokmap_status_text((enum tokmap_status)i), "unknown");
    }
    assert_string_equal(tokmap_status_name((enum tokmap_status)9999), "unknown");
    assert_string_equal(tokmap_status_name(TOKMAP_ERROR_RANGE), "ERROR_RANGE");
    assert_string_equal(tokmap_version(), TOKMAP_VERSION_STRING);
}

static void an_error_is_filled_whole(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    memset(&error, 0xff, sizeof error);
    assert_int_equal(error_set(&error, TOKMAP_ERROR_CORRUPT, "a/b.bin", 77, "block %d is not sound", 3),
                     TOKMAP_ERROR_CORRUPT);
    assert_int_equal(error.status, TOKMAP_ERROR_CORRUPT);
    assert_int_equal(error.system, 0);
    assert_int_equal(error.device, 0);
    assert_int_equal(error.line, 0);
    assert_int_equal(error.offset, 77);
    assert_string_equal(error.path, "a/b.bin");
    assert_string_equal(error.message, "block 3 is not sound");
    assert_int_equal(error_set(NULL, TOKMAP_ERROR_CORRUPT, NULL, 0, "nobody listens"), TOKMAP_ERROR_CORRUPT);
}

static void arguments_may_point_into_the_error(void **unused)
{
    (void)unused;
    struct tokmap_error error = {0};
    (void)error_set(&error, TOKMAP_ERROR_IO, "the/path", 1, "inner");
    (void)error_set(&error, TOKMAP_ERROR_IO, error.path, 2, "outer: %s", error.message);
    assert_string_equal(error.message, "outer: inner");
    assert_string_equal(error.path, "the/path");
}

static void a_long_path_keeps_its_end(void **unused)
{
    (void)unused;
    char path[5000];
    memset(path, 'x', sizeof path);
    memcpy(path + sizeof path - 10, "/name.bin", 10);
    struct tokmap_error error;
    (void)error_set(&error, TOKMAP_ERROR_IO, path, 0, "no");
    assert_int_equal(strlen(error.path), sizeof error.path - 1);
    assert_memory_equal(error.path, "...x", 4);
    assert_string_equal(error.path + strlen(error.path) - 9, "/name.bin");
    /* The longest path that fits is not shortened. */
    path[sizeof error.path - 1] = '\0';
    (void)error_set(&error, TOKMAP_ERROR_IO, path, 0, "no");
    assert_string_equal(error.path, path);
}

static void system_errors_choose_the_status(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    assert_int_equal(error_set_system(&error, ENOENT, "f", 0, "x"), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(error_set_system(&error, ENOTDIR, "f", 0, "x"), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(error_set_system(&error, ENOMEM, "f", 0, "x"), TOKMAP_ERROR_MEMORY);
    assert_int_equal(error_set_system(&error, ENOSPC, "f", 0, "x"), TOKMAP_ERROR_IO);
    assert_string_equal(error.message, "x; free space on its file system, or write elsewhere");
    assert_int_equal(error.system, ENOSPC);
    assert_int_equal(error_set_system(&error, ENOLCK, "f", 0, "%s", "the lock"), TOKMAP_ERROR_IO);
    assert_non_null(strstr(error.message, "the lock; without locks (flock)"));
    assert_int_equal(error_set_system(NULL, ENOLCK, "f", 0, "x"), TOKMAP_ERROR_IO);
    assert_int_equal(error.system, ENOLCK);
}

static void a_memory_error_states_a_known_size_only(void **unused)
{
    (void)unused;
    const uint64_t unknown[] = {0, UINT64_MAX};
    struct tokmap_error error;
    assert_int_equal(error_set_memory(&error, "a table", 4096), TOKMAP_ERROR_MEMORY);
    assert_non_null(strstr(error.message, "4096 bytes"));
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_int_equal(error_set_memory(&error, "a table", unknown[i]), TOKMAP_ERROR_MEMORY);
        assert_non_null(strstr(error.message, "a table"));
        assert_null(strstr(error.message, "bytes"));
        assert_int_equal(error.offset, TOKMAP_NO_OFFSET);
    }
}

static void printing_names_position_and_system(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    char text[200];
    (void)error_set_line(&error, TOKMAP_ERROR_RUN, "train.run", 7, "what is 'sequence'?");
    assert_string_equal(tokmap_error_print(&error, text, sizeof text), "train.run:7: what is 'sequence'?");
    (void)error_set_system(&error, ENOSPC, "w.bin", 4096, "writing failed");
    assert_string_equal(tokmap_error_print(&error, text, sizeof text),
                        "w.bin: writing failed; free space on its file system, or write elsewhere: "
                        "No space left on device (byte 4096)");
    char small[8];
    assert_string_equal(tokmap_error_print(&error, small, sizeof small), "w.bin: ");
    assert_null(tokmap_error_print(&error, NULL, 0));
}

struct options {
    size_t size;
    uint64_t first, second;
};

static void options_of_any_age_are_served(void **unused)
{
    (void)unused;
    const struct options defaults = {sizeof defaults, 1, 2};
    struct options into;
    assert_int_equal(struct_copy_in(&into, NULL, &defaults, sizeof into, "options", NULL), TOKMAP_OK);
    assert_memory_equal(&into, &defaults, sizeof into);
    struct options older = {offsetof(struct options, second), 10, 999};
    assert_int_equal(struct_copy_in(&into, &older, &defaults, sizeof into, "options", NULL), TOKMAP_OK);
    assert_int_equal(into.first, 10);
    assert_int_equal(into.second, 2);
    assert_int_equal(into.size, sizeof into);
    struct options newer = {sizeof newer + 8, 1, 1}, none = {0, 1, 1};
    assert_int_equal(struct_copy_in(&into, &newer, &defaults, sizeof into, "options", NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(struct_copy_in(&into, &none, &defaults, sizeof into, "options", NULL), TOKMAP_ERROR_ARGUMENT);
}

static void results_fit_callers_of_any_age(void **unused)
{
    (void)unused;
    const struct options made = {sizeof made, 1, 2};
    struct options into = {offsetof(struct options, second), 77, 78};
    struct tokmap_error error = {0};
    assert_int_equal(struct_copy_out(&into, &made, sizeof made, "result", NULL), TOKMAP_OK);
    assert_int_equal(into.size, offsetof(struct options, second));
    assert_int_equal(into.first, 1);
    assert_int_equal(into.second, 78); /* past the end of the older caller's struct */
    into.size = sizeof into;
    assert_int_equal(struct_copy_out(&into, &made, sizeof made, "result", NULL), TOKMAP_OK);
    assert_memory_equal(&into, &made, sizeof made);
    const size_t wrong[] = {0, sizeof(size_t) - 1, sizeof into + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        into = (struct options){wrong[i], 77, 78};
        assert_int_equal(struct_size_check(&into, sizeof made, "result", NULL), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(struct_copy_out(&into, &made, sizeof made, "result", &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "result.size is "));
        assert_int_equal(into.first, 77);
    }
    assert_int_equal(struct_copy_out(NULL, &made, sizeof made, "result", &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "result is NULL"));
}

static void arithmetic_does_not_wrap(void **unused)
{
    (void)unused;
    uint64_t result;
    assert_true(add_overflows(UINT64_MAX, 1, &result));
    assert_false(add_overflows(UINT64_MAX - 1, 1, &result));
    assert_true(mul_overflows((uint64_t)1 << 33, (uint64_t)1 << 31, &result));
    assert_false(mul_overflows((uint64_t)1 << 32, (uint64_t)1 << 31, &result));
    assert_true(div_ceil(UINT64_MAX, 2) == (uint64_t)1 << 63);
    assert_int_equal(div_ceil(0, 5), 0);
    assert_int_equal(round_up(65, 64), 128);
    assert_int_equal(round_down(127, 64), 64);
    assert_true(mul_div((uint64_t)1 << 62, 12, 16) == (uint64_t)3 << 60);
    uint8_t bytes[9] = {0};
    store64(bytes + 1, 0x0102030405060708u);
    assert_int_equal(bytes[1], 8);
    assert_true(load64(bytes + 1) == 0x0102030405060708u);
    assert_int_equal(load16(bytes + 2), 0x0607);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_text), cmocka_unit_test(an_error_is_filled_whole),
        cmocka_unit_test(arguments_may_point_into_the_error), cmocka_unit_test(a_long_path_keeps_its_end),
        cmocka_unit_test(system_errors_choose_the_status),    cmocka_unit_test(a_memory_error_states_a_known_size_only),
        cmocka_unit_test(printing_names_position_and_system), cmocka_unit_test(options_of_any_age_are_served),
        cmocka_unit_test(results_fit_callers_of_any_age),     cmocka_unit_test(arithmetic_does_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
