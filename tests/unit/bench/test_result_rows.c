/* SPDX-License-Identifier: MIT */
/* Results read back from JSON lines, and the pictures that are made of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

/* programs of tests are not linked with the objects of bench */
#include "harness/plot.c"
#include "harness/result_rows.c"

static enum tokmap_status parse(struct result_rows *rows, const char *text, struct tokmap_error *error)
{
    return result_rows_parse(rows, text, strlen(text), "file.json", error);
}

static void lines_become_rows(void **state)
{
    struct result_rows rows = {0};
    struct tokmap_error error = {0};
    assert_int_equal(
        parse(&rows,
              "{\"case\": \"loader\", \"metric\": \"next_p99_us\", \"value\": 2.5, \"unit\": \"us\", \"better\": "
              "\"less\", \"min\": 2, \"max\": 3, \"n\": 7, \"limit\": 1, \"ratio\": 2.5, \"values\": [1, {\"a\": 2}], "
              "\"command\": \"tokmap-bench loader 'a b'\", \"machine\": \"m\", \"date\": \"d\"}\n"
              "\n  \r\n"
              "{\"metric\":\"absent\",\"case\":\"compare\",\"row\":\"x\\u0041\\n<\",\"value\":null,\"better\":null,"
              "\"text\":\"why\",\"verdict\":null}\n"
              "{\"case\":\"loader\",\"metric\":\"m\",\"command\":\"c\",\"machine\":null,\"date\":\"e\"}\n",
              &error),
        TOKMAP_OK);
    assert_int_equal(rows.count, 3);
    const struct result_row *one = &rows.rows[0], *two = &rows.rows[1];
    assert_string_equal(one->case_name, "loader");
    assert_string_equal(one->metric, "next_p99_us");
    assert_string_equal(one->better, "less");
    assert_string_equal(one->command, "tokmap-bench loader 'a b'");
    assert_true(one->value == 2.5 && one->smallest == 2 && one->largest == 3 && one->limit == 1);
    assert_int_equal(one->count, 7);
    assert_string_equal(one->table, "");
    assert_string_equal(two->row, "xA\n<");
    assert_string_equal(two->text, "why");
    assert_true(isnan(two->value) && isnan(two->limit));
    assert_string_equal(two->better, "");
    /* A row without a command has the command, machine, and date of the row before it, if that is in the same text. */
    assert_string_equal(two->command, one->command);
    assert_string_equal(two->machine, "m");
    assert_string_equal(two->date, "d");
    assert_string_equal(rows.rows[2].command, "c");
    assert_string_equal(rows.rows[2].machine, "");
    assert_int_equal(parse(&rows, "{\"case\": \"order\", \"metric\": \"m\"}", &error), TOKMAP_OK);
    assert_int_equal(rows.count, 4);
    assert_string_equal(rows.rows[3].command, "");
    assert_string_equal(rows.rows[3].date, "");
    result_rows_free(&rows);
    (void)state;
}

/* Each of these is refused with the number of its line; the rows before it stay. */
static void faults_name_the_line(void **state)
{
    static const char *const faults[] = {
        "[]",
        "nothing",
        "{\"case\": \"a\", \"metric\": \"b\"",
        "{\"case\": \"a\", \"metric\": \"b\"} {}",
        "{\"case\": 1, \"metric\": \"b\"}",
        "{\"case\": \"a\"}",
        "{\"metric\": \"b\"}",
        "{\"case\": \"a\", \"metric\": \"b\", \"value\": \"1\"}",
        "{\"case\": \"a\", \"metric\": \"b\", \"n\": -1}",
        "{\"case\": \"a\", \"metric\": \"b\\u0000c\"}",
        "{\"case\": \"a\", \"metric\": \"\377\"}",
        "\1{}",
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct result_rows rows = {0};
        struct tokmap_error error = {0};
        char text[512];
        (void)snprintf(text, sizeof text, "{\"case\": \"good\", \"metric\": \"m\"}\n\n%s\n", faults[i]);
        if (parse(&rows, text, &error) != TOKMAP_ERROR_FORMAT)
            fail_msg("accepted: %s", faults[i]);
        assert_int_equal(error.line, 3);
        assert_int_equal(rows.count, 1);
        assert_string_equal(rows.rows[0].case_name, "good");
        result_rows_free(&rows);
    }
    (void)state;
}

static void plots_of(const char *text, struct result_rows *rows, struct result_plots *plots)
{
    struct tokmap_error error = {0};
    assert_int_equal(parse(rows, text, &error), TOKMAP_OK);
    assert_int_equal(result_plots_make(plots, rows, &error), TOKMAP_OK);
}

#define ROW(metric, value, unit, more)                                                                                 \
    "{\"case\":\"loader\",\"metric\":\"" metric "\",\"value\":" value ",\"unit\":\"" unit                              \
    "\",\"better\":\"less\",\"n\":3,\"command\":\"c\"" more "}\n"

/* Rows of one unit are one picture with the limit beside them; what describes the machine, texts, and a single number
 * have none. */
static void cases_are_grouped(void **state)
{
    struct result_rows rows = {0};
    struct result_plots plots = {0};
    plots_of(ROW("next_us", "2", "us", ",\"limit\":1") ROW("wait_p99_us", "70", "us", "") ROW("rss", "5", "MiB", "")
                 ROW("others_percent", "50", "%", "") ROW("steal_percent", "5", "%", "")
                     ROW("note", "1", "us", ",\"text\":\"t\"") ROW("gone_us", "null", "us", ""),
             &rows, &plots);
    assert_int_equal(plots.count, 1);
    const struct plot *plot = &plots.plots[0].plot;
    assert_string_equal(plots.plots[0].name, "loader-us");
    assert_string_equal(plot->title, "loader: time");
    assert_int_equal(plot->series_count, 2);
    assert_int_equal(plot->labels, 2);
    assert_string_equal(plot->series[0].points[0].label, "next");
    assert_string_equal(plot->series[0].points[1].label, "wait p99");
    assert_true(plot->series[1].points[0].y == 1 && isnan(plot->series[1].points[1].y));
    assert_true(plot->log_y); /* 70 is more than 30 times 1 */
    assert_non_null(strstr(plot->subtitle, "less is better"));
    assert_non_null(strstr(plot->notes[1], "other programs used 50%"));
    result_plots_free(&plots);
    result_rows_free(&rows);
    (void)state;
}

/* Rows of systems: the systems are the labels, the metrics the colors, and what a system lacks is empty. */
static void systems_are_grouped(void **state)
{
    struct result_rows rows = {0};
    struct result_plots plots = {0};
    plots_of(ROW("warm", "9", "t/s", ",\"row\":\"a\",\"table\":\"x/..\"")
                 ROW("cold", "3", "t/s", ",\"row\":\"a\",\"table\":\"x/..\"")
                     ROW("warm", "8", "t/s", ",\"row\":\"b\",\"table\":\"x/..\"")
                         ROW("warm", "7", "t/s", ",\"row\":\"b\",\"table\":\"other\"")
                             ROW("warm", "6", "t/s", ",\"row\":\"c\",\"table\":\"other\""),
             &rows, &plots);
    assert_int_equal(plots.count, 2);
    const struct plot *plot = &plots.plots[0].plot;
    assert_string_equal(plots.plots[0].name, "loader-x_per_..-t_per_s"); /* no folder */
    assert_int_equal(plot->series_count, 2);
    assert_string_equal(plot->series[0].name, "warm");
    assert_string_equal(plot->series[1].name, "cold");
    assert_string_equal(plot->series[0].points[1].label, "b");
    assert_true(plot->series[0].points[1].y == 8 && isnan(plot->series[1].points[1].y));
    assert_false(plot->log_y);
    result_plots_free(&plots);
    result_rows_free(&rows);
    (void)state;
}

/* More systems and metrics than a picture has room for become further pictures, with names of their own. */
static void groups_are_divided(void **state)
{
    struct result_rows rows = {0};
    struct result_plots plots = {0};
    struct bytes_buffer text = {0};
    size_t points = 0;
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < 8; j++) {
            char line[256];
            const int length = snprintf(line, sizeof line,
                                        "{\"case\":\"c\",\"metric\":\"m%d\",\"row\":\"r%d\",\"value\":%d,"
                                        "\"unit\":\"x\",\"command\":\"c\"}\n",
                                        j, i, i + j + 1);
            assert_true(bytes_append(&text, line, (size_t)length));
        }
    assert_true(bytes_append(&text, "", 1));
    plots_of((const char *)text.bytes, &rows, &plots);
    for (size_t i = 0; i < plots.count; i++) {
        const struct plot *plot = &plots.plots[i].plot;
        assert_true(plot->series_count <= COLORS_MOST && plot->labels <= LABELS_MOST);
        for (size_t s = 0; s < plot->series_count; s++)
            for (size_t p = 0; p < plot->labels; p++)
                points += isfinite(plot->series[s].points[p].y);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(plots.plots[i].name, plots.plots[j].name);
    }
    assert_int_equal(points, 800);
    bytes_free(&text);
    result_plots_free(&plots);
    result_rows_free(&rows);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_rows),  cmocka_unit_test(faults_name_the_line),
        cmocka_unit_test(cases_are_grouped),  cmocka_unit_test(systems_are_grouped),
        cmocka_unit_test(groups_are_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
