/* SPDX-License-Identifier: MIT */
/* Messages of the rooms below name fields; commands print the options that set them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/options/field_options.h"

/* Returns what a command prints on standard output with --help-all. The caller frees it. */
static char *help_of(int (*run)(int argc, char **argv), char *name)
{
    char option[] = "--help-all";
    char *arguments[] = {name, option, NULL};
    char *text = NULL;
    size_t length = 0;
    FILE *before = stdout, *file = open_memstream(&text, &length);
    assert_non_null(file);
    stdout = file;
    const int status = run(2, arguments);
    stdout = before;
    fclose(file);
    assert_int_equal(status, CLI_DONE);
    return text;
}

/* Returns whether a line of the help text begins with the option. */
static bool lists(const char *help, const char *option)
{
    char head[64];
    const int length = snprintf(head, sizeof head, "--%s", option);
    for (const char *line = help; line; line = strchr(line, '\n'), line += line != NULL) {
        const char *at = line + strspn(line, " ");
        if (at[0] == '-' && at[1] != '-') /* "-o, --output" */
            at += 4;
        if (at - line >= 2 && strncmp(at, head, (size_t)length) == 0 && strchr(" [\n", at[length]))
            return true;
    }
    return false;
}

static void test_every_option_exists(void **state)
{
    size_t count;
    const struct field_option *table = field_options(&count);
    bool exists[96] = {false};
    assert_true(count <= sizeof exists / sizeof exists[0]);
#define LOOK(suffix, command, summary)                                                                                 \
    {                                                                                                                  \
        char name[] = command;                                                                                         \
        char *help = help_of(command_##suffix, name);                                                                  \
        for (size_t i = 0; i < count; i++)                                                                             \
            exists[i] = exists[i] || !table[i].option || lists(help, table[i].option);                                 \
        free(help);                                                                                                    \
    }
#define IGNORE(heading)
    COMMANDS(LOOK, IGNORE)
#undef LOOK
#undef IGNORE
    for (size_t i = 0; i < count; i++)
        if (!exists[i])
            fail_msg("no command has --%s, the option of options.%s", table[i].option, table[i].field);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(table[i - 1].field, table[i].field) < 0);
    (void)state;
}

static const struct cli_option some_options[] = {
    {0, "on-error", CLI_CHOICE, NULL, NULL, "WHAT", "", "stop|skip"},
    {0, "max-record", CLI_SIZE, NULL, NULL, "SIZE", "", NULL},
    {0, "field", CLI_TEXT, NULL, NULL, "NAME", "", NULL},
};
static const struct cli_command some_command = {
    .program = "tokmap some", .usage = "", .summary = "", .options = some_options, .option_count = 3};

static void becomes(const char *message, const char *wanted)
{
    struct tokmap_error error = {.status = TOKMAP_ERROR_INPUT};
    snprintf(error.message, sizeof error.message, "%s", message);
    error_name_options(&some_command, &error);
    assert_string_equal(error.message, wanted);
}

static void test_fields_become_options(void **state)
{
    becomes("", "");
    becomes("no field here", "no field here");
    becomes("raise options.record_limit", "raise --max-record");
    becomes("options.field, options.record_limit.", "--field, --max-record.");
    becomes("set options.skip to leave it out", "set --on-error skip to leave it out");
    /* An option that this command lacks, a field that the table lacks, and text that only looks like a field. */
    becomes("lower options.threads", "lower options.threads");
    becomes("set options.no_such_field", "set options.no_such_field");
    becomes("options. and options", "options. and options");
    becomes("more_options.field is a name", "more_options.field is a name");
    becomes("options.fields", "options.fields");
    (void)state;
}

/* A clause of advice that the command has no option for is left out, but not the rest of the message. */
static void test_advice_without_option(void **state)
{
    becomes("raise options.record_limit, or set options.threads", "raise --max-record");
    becomes("set options.threads, or set options.skip", "set options.threads, or set --on-error skip");
    becomes("correct it, or set options.threads, or set options.skip", "correct it, or set --on-error skip");
    becomes("correct it, or set options.threads; see the page", "correct it; see the page");
    becomes("correct it, or set options.threads. Or not.", "correct it. Or not.");
    becomes("correct v1.2, or rename a.b, or set options.skip", "correct v1.2, or rename a.b, or set --on-error skip");
    becomes("set options.rows, or raise options.ring_bytes", "set options.rows"); /* no command sets it */
    becomes("a, or b", "a, or b");
    (void)state;
}

/* The text may grow, but never beyond the size of the message. */
static void test_long_messages(void **state)
{
    struct tokmap_error error;
    for (size_t left = 0; left < 40; left++) {
        memset(&error, 0, sizeof error);
        memset(error.message, 'x', sizeof error.message - 1);
        char *at = error.message + sizeof error.message - 1 - left;
        const size_t field = strlen(" options.skip");
        memcpy(at, " options.skip", left < field ? left : field);
        error_name_options(&some_command, &error);
        assert_true(strlen(error.message) < sizeof error.message);
        assert_memory_equal(error.message, "xxxx", 4);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_exists),
        cmocka_unit_test(test_fields_become_options),
        cmocka_unit_test(test_advice_without_option),
        cmocka_unit_test(test_long_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
