/* SPDX-License-Identifier: MIT */
/* Commands print errors with the options that they have. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "common/error.h"

static const struct cli_option some_options[] = {
    {0, "on-error", CLI_CHOICE, NULL, NULL, "WHAT", "", "stop|skip"},
    {0, "max-record", CLI_SIZE, NULL, NULL, "SIZE", "", NULL},
    {0, "field", CLI_TEXT, NULL, NULL, "NAME", "", NULL},
    {0, "force", CLI_FLAG, NULL, NULL, NULL, "", NULL},
};
static const struct cli_command some_command = {
    .program = "tokmap some", .usage = "", .summary = "", .options = some_options, .option_count = 4};
static const struct cli_command without_force = {
    .program = "tokmap some", .usage = "", .summary = "", .options = some_options, .option_count = 3};

static void changed(const struct cli_command *command, enum tokmap_status status, const char *field,
                    const char *message, const char *wanted)
{
    struct tokmap_error error = {.status = status};
    snprintf(error.message, sizeof error.message, "%s", message);
    snprintf(error.field, sizeof error.field, "%s", field);
    error_name_options(command, &error);
    assert_string_equal(error.message, wanted);
    assert_string_equal(error.field, field);
}

static void becomes(const char *field, const char *message, const char *wanted)
{
    changed(&some_command, TOKMAP_ERROR_INPUT, field, message, wanted);
}

static void test_fields_become_options(void **state)
{
    becomes("", "", "");
    becomes("", "field is 'a'", "field is 'a'");
    becomes("field", "field is 'a'; set field", "--field is 'a'; set field");
    becomes("max_record", "max_record is 0", "--max-record is 0");
    /* An option that this command lacks, and a message that does not begin with the field. */
    becomes("threads", "threads is 2", "threads is 2");
    becomes("field", "the field is 'a'", "the field is 'a'");
    /* As error_set_field() writes it. */
    struct tokmap_error error;
    assert_int_equal(error_set_field(&error, TOKMAP_ERROR_LIMIT, "a", "max_record", " is %d; lower it", 7),
                     TOKMAP_ERROR_LIMIT);
    assert_string_equal(error.path, "a");
    assert_true(error.offset == TOKMAP_NO_OFFSET);
    becomes(error.field, error.message, "--max-record is 7; lower it");
    assert_int_equal(error_set_field(NULL, TOKMAP_ERROR_LIMIT, NULL, "rank", " is wrong"), TOKMAP_ERROR_LIMIT);
    (void)state;
}

static void test_replacing(void **state)
{
    static const char message[] = "the output already exists; choose another name, or replace it",
                      forced[] = "the output already exists; choose another name, or use --force";
    changed(&some_command, TOKMAP_ERROR_EXISTS, "", message, forced);
    changed(&some_command, TOKMAP_ERROR_BUSY, "", message, message);
    changed(&without_force, TOKMAP_ERROR_EXISTS, "", message, message);
    changed(&some_command, TOKMAP_ERROR_EXISTS, "", "it", "it");
    changed(&some_command, TOKMAP_ERROR_EXISTS, "", "replace it", "use --force");
    (void)state;
}

/* A clause of advice that the command has no option for is left out, but not the rest of the message. */
static void test_advice_without_option(void **state)
{
    becomes("", "raise --max-record, or set --threads", "raise --max-record");
    becomes("", "set --threads, or use --on-error skip", "set --threads, or use --on-error skip");
    becomes("", "correct it, or set --threads, or use --field", "correct it, or use --field");
    becomes("", "correct it, or set --threads; see the page", "correct it; see the page");
    becomes("", "correct it, or set --threads. Or not.", "correct it. Or not.");
    becomes("", "correct v1.2, or rename a.b, or use --field", "correct v1.2, or rename a.b, or use --field");
    becomes("", "set it, or run `tokmap pack --seal`", "set it, or run `tokmap pack --seal`");
    becomes("", "a, or b -- c", "a, or b -- c");
    (void)state;
}

/* The text may grow, but never beyond the size of the message. */
static void test_long_messages(void **state)
{
    static const char end[] = "replace it";
    struct tokmap_error error;
    for (size_t left = 0; left < 40; left++) {
        memset(&error, 0, sizeof error);
        error.status = TOKMAP_ERROR_EXISTS;
        memset(error.message, 'x', sizeof error.message - 1 - left);
        memcpy(error.message, "max_record", 10);
        memcpy(error.message + strlen(error.message) - (sizeof end - 1), end, sizeof end - 1);
        snprintf(error.field, sizeof error.field, "max_record");
        error_name_options(&some_command, &error);
        assert_non_null(memchr(error.message, '\0', sizeof error.message));
        assert_memory_equal(error.message, "--max-recordxxxx", 16);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_become_options),
        cmocka_unit_test(test_replacing),
        cmocka_unit_test(test_advice_without_option),
        cmocka_unit_test(test_long_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
