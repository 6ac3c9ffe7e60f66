/* SPDX-License-Identifier: MIT */
/* JSON, tables, and reports: the output is compared byte for byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

struct output {
    FILE *file;
    char *text;
    size_t length;
};

static void output_open(struct output *output)
{
    output->file = open_memstream(&output->text, &output->length);
    assert_non_null(output->file);
}

static void output_is(struct output *output, const char *wanted)
{
    fclose(output->file);
    assert_string_equal(output->text, wanted);
    free(output->text);
}

static void test_json_shape(void **state)
{
    struct output output;
    struct cli_json json;
    output_open(&output);
    cli_json_begin(&json, output.file);
    cli_json_object(&json, NULL);
    cli_json_number(&json, "a", UINT64_MAX);
    cli_json_array(&json, "empty");
    cli_json_end(&json);
    cli_json_array(&json, "list");
    for (uint64_t i = 0; i < 3; i++)
        cli_json_number(&json, NULL, i);
    cli_json_object(&json, NULL);
    cli_json_bool(&json, "yes", true);
    cli_json_bool(&json, "no", false);
    cli_json_null(&json, "nothing");
    cli_json_end(&json);
    cli_json_array(&json, NULL);
    cli_json_end(&json);
    cli_json_end(&json);
    cli_json_raw(&json, "raw", "[1,\n2]\r\n ", 9);
    cli_json_end(&json);
    /* A second object on its own line, from the same writer. */
    cli_json_object(&json, NULL);
    cli_json_end(&json);
    output_is(&output, "{\"a\": 18446744073709551615, \"empty\": [], \"list\": [0, 1, 2, {\"yes\": true, "
                       "\"no\": false, \"nothing\": null}, []], \"raw\": [1, 2]}\n{}\n");
    (void)state;
}

static void text_becomes(const char *text, size_t bytes, const char *wanted)
{
    struct output output;
    struct cli_json json;
    output_open(&output);
    cli_json_begin(&json, output.file);
    cli_json_bytes(&json, NULL, text, bytes);
    output_is(&output, wanted);
}

static void test_json_escapes(void **state)
{
    text_becomes("", 0, "\"\"");
    text_becomes("plain", 5, "\"plain\"");
    text_becomes("\"\\/", 3, "\"\\\"\\\\/\"");
    text_becomes("\n\t\r\b\f\x1b\x7f", 7, "\"\\n\\t\\r\\u0008\\u000c\\u001b\\u007f\"");
    /* C1 controls and characters that change the direction act on a terminal, so they are escaped. */
    text_becomes("\xc2\x80\xc2\x9f\xc2\xa0\xe2\x80\xae", 9, "\"\\u0080\\u009f\xc2\xa0\\u202e\"");
    text_becomes("a\0b", 3, "\"a\\u0000b\"");
    text_becomes("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10, "\"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    /* Not UTF-8: a continuation byte alone, an overlong form, a surrogate, a number above U+10FFFF, an incomplete
     * sequence. */
    text_becomes("\x80", 1, "\"\xef\xbf\xbd\"");
    text_becomes("\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    text_becomes("\xe0\x80\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    text_becomes("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    text_becomes("\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    text_becomes("\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    text_becomes("\xc3(", 2, "\"\xef\xbf\xbd(\"");
    text_becomes("\xed\x9f\xbf\xee\x80\x80", 6, "\"\xed\x9f\xbf\xee\x80\x80\"");
    (void)state;
}

static void real_becomes(double number, const char *wanted)
{
    struct output output;
    struct cli_json json;
    output_open(&output);
    cli_json_begin(&json, output.file);
    cli_json_real(&json, NULL, number);
    output_is(&output, wanted);
}

static void test_json_real(void **state)
{
    real_becomes(0, "0");
    real_becomes(31.2, "31.2");
    real_becomes(1.0 / 3, "0.333333333333");
    real_becomes((double)52447887 * 1e-6, "52.447887");
    real_becomes(0.1 + 0.2, "0.3");
    real_becomes(123456789012.0, "123456789012");
    real_becomes(1e300, "1e+300");
    real_becomes((double)NAN, "null");
    real_becomes((double)INFINITY, "null");
    (void)state;
}

static void raw_becomes(const char *text, size_t bytes, const char *wanted)
{
    struct output output;
    struct cli_json json;
    output_open(&output);
    cli_json_begin(&json, output.file);
    cli_json_raw(&json, NULL, text, bytes);
    output_is(&output, wanted);
}

static void test_json_raw(void **state)
{
    raw_becomes("[1,\r\n2]\n ", 9, "[1,  2]");
    raw_becomes("{\"a\": ", 6, "null");
    raw_becomes("", 0, "null");
    raw_becomes("{\"\xc2\x9b\": \"\x7f\xc3\xa9\"}", 13, "{\"\\u009b\": \"\\u007f\xc3\xa9\"}");
    (void)state;
}

static void test_table(void **state)
{
    static const bool right[] = {false, true, false};
    const char *const rows[][3] = {{"name", "count", "note"}, {"a", "1,234", NULL}, {"h\xc3\xa9", NULL, "last"}};
    struct output output;
    struct cli_table *table = cli_table_new(3);
    for (size_t i = 0; i < 3; i++)
        cli_table_row(table, rows[i]);
    output_open(&output);
    cli_table_print(table, right, output.file);
    output_is(&output, "name  count  note\n"
                       "a     1,234\n"
                       "h\xc3\xa9           last\n");
    cli_table_free(table);
    cli_table_free(NULL);
    (void)state;
}

/* Reports a width and two sources, the second of which has no parts. */
static void sources_report(struct cli_report *report)
{
    static const uint64_t parts[][2] = {{3, 2}, {2, 0}};
    cli_fact(report, "width", "width", cli_number(2), "%d bytes", 2);
    cli_row(report, "note", "for people");
    cli_member(report, "hidden", cli_null());
    cli_fact_number(report, "tokens", "tokens", 1234);
    cli_report_rows(report, NULL);
    cli_report_list(report, "sources", "source|>part|>share");
    for (uint64_t i = 0; i < 2; i++) {
        cli_report_item(report);
        cli_fact_number(report, "source", "source", i);
        cli_report_list(report, "parts", NULL);
        for (uint64_t k = 0; k < parts[i][1]; k++) {
            cli_report_item(report);
            cli_fact(report, "share", "share", cli_real(0.5), "%d%%", 50);
            cli_fact_number(report, NULL, "part", k + parts[i][0]);
            cli_report_close(report);
        }
        cli_report_close(report);
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_report_list(report, "json_only", NULL);
    cli_report_item(report);
    cli_fact_text(report, "x", "x", "y");
    cli_report_close(report);
    cli_report_close(report);
}

static void test_report(void **state)
{
    struct output output;
    struct cli_report report;
    for (int as_json = 0; as_json < 2; as_json++) {
        output_open(&output);
        cli_report_begin(&report, false, "tokens|*");
        report.file = output.file;
        report.as_json = as_json;
        if (as_json) {
            cli_json_begin(&report.json, output.file);
            cli_json_object(&report.json, NULL);
        }
        sources_report(&report);
        cli_report_end(&report);
        output_is(&output, as_json ? "{\"width\": 2, \"hidden\": null, \"tokens\": 1234, \"sources\": "
                                     "[{\"source\": 0, \"parts\": [{\"share\": 0.5}, {\"share\": 0.5}]}, "
                                     "{\"source\": 1, \"parts\": []}], \"json_only\": [{\"x\": \"y\"}]}\n"
                                   : "tokens  1,234\n"
                                     "width   2 bytes\n"
                                     "note    for people\n"
                                     "source  part  share\n"
                                     "0          3    50%\n"
                                     "           4    50%\n"
                                     "1\n");
    }
    (void)state;
}

/* Numbers with remarks are lines for people, and members are for JSON, some of them only if they have a value. */
static void test_report_lines(void **state)
{
    struct output output;
    struct cli_report report;
    size_t bytes;
    output_open(&output);
    cli_report_begin(&report, false, NULL);
    report.file = output.file;
    cli_line(&report, "files", "files", 1234, "of which:");
    cli_line(&report, "hidden", NULL, 5, "not printed");
    report.label_width = 2;
    cli_line(&report, NULL, "x", 0, "");
    cli_member_pair(&report, "range", 1, 3);
    cli_report_end(&report);
    output_is(&output, "  files                               1,234  of which:\n"
                       "  x                     0\n");
    cli_report_begin_text(&report, true);
    cli_line(&report, "files", "files", 1234, "of which:");
    cli_line(&report, NULL, "x", 0, "");
    cli_member_pair(&report, "range", 1, 3);
    cli_member(&report, "raw", cli_raw("{\"a\":\n1}", 8));
    cli_member_text_if(&report, "none", NULL);
    cli_member_text_if(&report, "text", "\xc2\x9b");
    cli_member_number_if(&report, "zero", 0);
    cli_member_number_if(&report, "one", 1);
    char *text = cli_report_end_text(&report, &bytes);
    assert_string_equal(text, "{\"files\": 1234, \"range\": [1, 3], \"raw\": {\"a\": 1}, \"text\": \"\xc2\x9b\", "
                              "\"one\": 1}\n");
    assert_int_equal(bytes, strlen(text));
    free(text);
    (void)state;
}

static void quotes_as(const char *word, const char *wanted)
{
    char *quoted = cli_shell_quote(word);
    assert_string_equal(quoted, wanted);
    free(quoted);
}

static void test_shell_quote(void **state)
{
    quotes_as("data/web-2.bin", "data/web-2.bin");
    quotes_as("", "''");
    quotes_as("a b", "'a b'");
    quotes_as("it's", "'it'\\''s'");
    quotes_as("$HOME*~;", "'$HOME*~;'");
    quotes_as("~x", "'~x'");
    quotes_as("-x", "./-x");
    quotes_as("-'x", "'./-'\\''x'");
    quotes_as("\xc3\xa9", "'\xc3\xa9'");
    assert_null(cli_shell_quote("a\nb"));
    assert_null(cli_shell_quote("a\x1b[m"));
    assert_null(cli_shell_quote("a\xc2\x9b"));
    (void)state;
}

static void test_file_read(void **state)
{
    char path[] = "/tmp/test_cli_output.XXXXXX";
    struct bytes_buffer read = {0};
    struct tokmap_error error = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "second", 6) == 6 && !close(fd));
    assert_int_equal(cli_file_read(path, 6, &read, &error), TOKMAP_OK);
    assert_int_equal(read.count, 6);
    assert_memory_equal(read.bytes, "second", 6);
    assert_int_equal(cli_file_read(path, 5, &read, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(cli_file_read(path, 5, &read, &error), TOKMAP_ERROR_NOT_FOUND);
    bytes_free(&read);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_shape),   cmocka_unit_test(test_json_escapes), cmocka_unit_test(test_json_real),
        cmocka_unit_test(test_json_raw),     cmocka_unit_test(test_table),        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_lines), cmocka_unit_test(test_shell_quote),  cmocka_unit_test(test_file_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
