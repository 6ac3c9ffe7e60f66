/* SPDX-License-Identifier: MIT */
/* The parser of options: every kind and every form of option, and every mistake. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

struct values {
    bool flag, quick;
    const char *text, *maybe;
    uint64_t number, size;
    double real;
    int choice;
    struct cli_range range;
    bool text_given, number_given;
};

static struct values got;
static const char *operands[32];
static size_t operand_count;

static const struct cli_option options[] = {
    {'f', "flag", CLI_FLAG, &got.flag, NULL, NULL, "a flag", NULL},
    CLI_HEADING("Second group"),
    {'q', "quick", CLI_FLAG, &got.quick, NULL, NULL, "another", NULL},
    {'o', "output", CLI_TEXT, &got.text, &got.text_given, "NAME", "text", NULL},
    {0, "eod", CLI_MAYBE, &got.maybe, NULL, "NAME", "perhaps a value", NULL},
    {'n', "number", CLI_NUMBER, &got.number, &got.number_given, "N", "a number", NULL},
    {0, "size", CLI_SIZE, &got.size, NULL, "SIZE", "a size", NULL},
    {0, "real", CLI_REAL, &got.real, NULL, "X", "a real number", NULL},
    {0, "choice", CLI_CHOICE, &got.choice, NULL, "WHAT", "one of three", "one|two|three"},
    {0, "range", CLI_RANGE, &got.range, NULL, "A..B", "a range", NULL},
};
static const struct cli_command command = {.program = "test",
                                           .usage = "...",
                                           .summary = "A test.",
                                           .options = options,
                                           .option_count = sizeof options / sizeof options[0]};

static int parse(const char *a, const char *b, const char *c, const char *d)
{
    char words[4][64];
    char *argv[] = {(char[]){"test"}, words[0], words[1], words[2], words[3], NULL};
    const char *given[] = {a, b, c, d};
    int argc = 1;
    for (; argc <= 4 && given[argc - 1]; argc++)
        snprintf(words[argc - 1], sizeof words[0], "%s", given[argc - 1]);
    memset(&got, 0, sizeof got);
    return cli_parse(&command, argc, argv, operands, &operand_count);
}

static void test_forms(void **state)
{
    assert_int_equal(parse("--output", "x", "--flag", NULL), -1);
    assert_true(got.flag && got.text_given && !got.quick && !got.number_given);
    assert_int_equal(parse("--output=x=y", NULL, NULL, NULL), -1);
    assert_int_equal(parse("-fqn7", "-o", "-", "last"), -1);
    assert_true(got.flag && got.quick && got.number == 7 && operand_count == 1);
    assert_int_equal(parse("-n", "5", "-n6", NULL), -1);
    assert_true(got.number == 6);
    assert_int_equal(parse("--size=2Ki", "--real", "-1.5e3", "--choice=three"), -1);
    assert_true(got.size == 2048 && got.real > -1500.5 && got.real < -1499.5 && got.choice == 2);
    assert_int_equal(parse("--range", "3..9", NULL, NULL), -1);
    assert_true(got.range.given && got.range.first == 3 && got.range.end == 9);
    (void)state;
}

static void test_maybe(void **state)
{
    assert_int_equal(parse("--eod", "operand", NULL, NULL), -1);
    assert_string_equal(got.maybe, "");
    assert_int_equal(operand_count, 1);
    assert_int_equal(parse("--eod=256", NULL, NULL, NULL), -1);
    assert_non_null(got.maybe);
    (void)state;
}

static void test_operands(void **state)
{
    assert_int_equal(parse("a", "-f", "b", "-"), -1);
    assert_true(got.flag);
    assert_int_equal(operand_count, 3);
    assert_int_equal(parse("--", "-f", "--", "x"), -1);
    assert_false(got.flag);
    assert_int_equal(operand_count, 3);
    assert_int_equal(parse("", NULL, NULL, NULL), -1);
    assert_int_equal(operand_count, 1);
    (void)state;
}

static void test_wrong(void **state)
{
    static const char *const wrong[] = {
        "--unknown",     "-x",        "--output",         "-n",           "--flag=1", "--number=x",
        "--number=",     "-nx",       "--size=1q",        "--real=x",     "--real=",  "--real=1e999",
        "--choice=four", "--choice=", "--choice=one|two", "--range=9..3", "--flagg",  "--fla",
        "---",           "--=x",      "--real=nan",       "--real=0x10",  "-fx"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (parse(wrong[i], NULL, NULL, NULL) != CLI_MISUSED)
            fail_msg("taken: %s", wrong[i]);
    (void)state;
}

struct body {
    int calls, status;
    size_t count;
};

static int body_call(const struct cli_command *of, const char **words, size_t count, void *user)
{
    struct body *body = user;
    assert_ptr_equal(of, &command);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(words[i], i ? "second" : "first");
    words[count] = "-"; /* the extra entry for a default operand */
    body->calls++;
    body->count = count;
    return body->status;
}

static void test_run(void **state)
{
    char program[] = "test", flag[] = "-f", first[] = "first", second[] = "second", wrong[] = "--wrong";
    char *none[] = {program, NULL}, *both[] = {program, first, flag, second, NULL}, *misused[] = {program, wrong, NULL};
    struct body body = {.status = CLI_FAILED};
    memset(&got, 0, sizeof got);
    assert_int_equal(cli_run(&command, 4, both, body_call, &body), CLI_FAILED);
    assert_true(got.flag && body.calls == 1 && body.count == 2);
    body.status = CLI_DONE;
    assert_int_equal(cli_run(&command, 1, none, body_call, &body), CLI_DONE);
    assert_true(body.calls == 2 && body.count == 0);
    assert_int_equal(cli_run(&command, 2, misused, body_call, &body), CLI_MISUSED);
    assert_int_equal(body.calls, 2);
    (void)state;
}

/* If a command ignored an unknown TOKMAP_CPU, a bug report would be about another variant than its author believes. */
static void test_environment(void **state)
{
    char program[] = "test";
    char *none[] = {program, NULL};
    struct body body = {.status = CLI_DONE};
    assert_int_equal(setenv("TOKMAP_CPU", "sse9", 1), 0);
    assert_int_equal(cli_run(&command, 1, none, body_call, &body), CLI_MISUSED);
    assert_int_equal(body.calls, 0);
    assert_int_equal(setenv("TOKMAP_CPU", "scalar", 1), 0);
    assert_int_equal(cli_run(&command, 1, none, body_call, &body), CLI_DONE);
    assert_int_equal(unsetenv("TOKMAP_CPU"), 0);
    (void)state;
}

static int saved = -1;
static FILE *captured;

/* What is written to this descriptor from now on goes to a file, until capture_end() returns it as text. */
static void capture_begin(int descriptor)
{
    (void)fflush(NULL);
    captured = tmpfile();
    saved = dup(descriptor);
    assert_true(captured && saved >= 0 && dup2(fileno(captured), descriptor) == descriptor);
}

static const char *capture_end(int descriptor, char *text, size_t size)
{
    (void)fflush(NULL);
    assert_int_equal(dup2(saved, descriptor), descriptor);
    (void)close(saved);
    rewind(captured);
    text[fread(text, 1, size - 1, captured)] = '\0';
    (void)fclose(captured);
    return text;
}

static void test_headings(void **state)
{
    char text[8192];
    capture_begin(1);
    assert_int_equal(parse("--help", NULL, NULL, NULL), CLI_DONE);
    capture_end(1, text, sizeof text);
    const char *first = strstr(text, "\nOptions:\n  -f, --flag"),
               *second = strstr(text, "\nSecond group:\n  -q, --quick");
    const char *help = strstr(text, "\nGeneral:\n  -h, --help");
    assert_true(first && second && help && first < second && second < help);
    (void)state;
}

/* With a list of options that are often used, --help prints these, and --help-all all. */
static void test_often(void **state)
{
    static const struct cli_often often[] = {{"number", NULL}, {"flag", "a short text"}};
    struct cli_command many = command;
    char text[8192], program[] = "test", help[] = "--help", all[] = "--help-all";
    many.often = often;
    many.often_count = 2;
    capture_begin(1);
    assert_int_equal(cli_parse(&many, 2, (char *[]){program, help, NULL}, operands, &operand_count), CLI_DONE);
    capture_end(1, text, sizeof text);
    const char *number = strstr(text, "\nOptions:\n  -n, --number N"), *flag = strstr(text, "\n  -f, --flag");
    assert_true(number && flag && number < flag && strstr(flag, "a short text\n") && strstr(flag, "--help-all"));
    assert_true(!strstr(text, "--output") && !strstr(text, "Second group"));
    capture_begin(1);
    assert_int_equal(cli_parse(&many, 2, (char *[]){program, all, NULL}, operands, &operand_count), CLI_DONE);
    capture_end(1, text, sizeof text);
    assert_true(strstr(text, "Second group:\n") && strstr(text, "--output NAME") && strstr(text, "a flag"));
    (void)state;
}

/* A suggestion is found in the whole table, however long it is. */
static void test_suggested(void **state)
{
    static struct cli_option rows[100];
    char text[1024], program[] = "test", typed[] = "--worksho";
    for (int i = 0; i < 100; i++)
        rows[i] = (struct cli_option){0, i < 99 ? "another" : "workshop", CLI_FLAG, &got.flag, NULL, NULL, "", NULL};
    const struct cli_command whole = {
        .program = "test", .usage = "", .summary = "", .options = rows, .option_count = 100};
    capture_begin(2);
    assert_int_equal(cli_parse(&whole, 2, (char *[]){program, typed, NULL}, operands, &operand_count), CLI_MISUSED);
    assert_non_null(strstr(capture_end(2, text, sizeof text), "did you mean '--workshop'?"));
    (void)state;
}

static void test_warning(void **state)
{
    char text[8192];
    capture_begin(2);
    cli_warn("tokmap pack", "%s has no %c", "a\033b", 'x');
    assert_string_equal(capture_end(2, text, sizeof text), "tokmap pack: warning: a^[b has no x\n");
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),    cmocka_unit_test(test_maybe), cmocka_unit_test(test_operands),
        cmocka_unit_test(test_wrong),    cmocka_unit_test(test_run),   cmocka_unit_test(test_environment),
        cmocka_unit_test(test_headings), cmocka_unit_test(test_often), cmocka_unit_test(test_suggested),
        cmocka_unit_test(test_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
