/* SPDX-License-Identifier: MIT */
/* Pictures: what gnuplot is given, that no name becomes a command, and what comes out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/* Names that would be commands, formats, ends of lines, or markup where they are not quoted. The file that they would
 * create is `mark`. */
static const char mark[] = "made_by_a_label";
static const char *const hostile[] = {
    "`touch made_by_a_label`",
    "'; system('touch made_by_a_label') #",
    "\"; system(\"touch made_by_a_label\") #",
    "a\nsystem('touch made_by_a_label')\n",
    "a\rsystem('touch made_by_a_label')\r",
    "\\'; system('touch made_by_a_label') #",
    "{/Bold b} a_b^c @x ${x} $(touch made_by_a_label)",
    "100% of %s %n %.0s%c %%",
    "<script>alert(1)</script> & \"q\" ]]> <!-- -->",
    "\033[31m red \302\233 \377\376 \342\200\256 back",
    "} { EOD $box0 << EOD",
    "EOD",
    "ends with a backslash \\",
    "",
};
#define HOSTILE (sizeof hostile / sizeof hostile[0])

static struct cli_plot plot_of(enum cli_plot_kind kind, const struct cli_plot_series *series, size_t count)
{
    return (struct cli_plot){.kind = kind, .title = "title", .unit = "us", .series = series, .series_count = count};
}

/* Whether gnuplot is installed; a test without it says so and is skipped. */
static void gnuplot_needed(void)
{
    if (system("gnuplot -d -e 'set terminal pngcairo; set terminal svg' >/dev/null 2>&1") != 0) {
        print_message("gnuplot is not installed\n");
        skip();
    }
}

static void quotes_hold(void **state)
{
    static const struct {
        const char *text, *wanted;
        bool format;
        size_t most;
    } cases[] = {{"plain", "'plain'", false, 100},
                 {"it's", "'it\u2019s'", false, 100},
                 {"50%", "'50%'", false, 100},
                 {"50%", "'50%%'", true, 100},
                 {"a\nb", "'a^Jb'", false, 100},
                 {"a`b\\", "'a`b\\'", false, 100},
                 {"\303\251\303\251\303\251", "'\303\251\303\251...'", false, 2},
                 {"\377", "'\\xff'", false, 100},
                 {"''''", "'\u2019\u2019...'", false, 2},
                 {"", "''", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes_buffer script = {0};
        assert_true(plot_quote(&script, cases[i].text, cases[i].format, cases[i].most));
        assert_true(bytes_append(&script, "", 1));
        assert_string_equal((const char *)script.bytes, cases[i].wanted);
        bytes_free(&script);
    }
    /* Of every text the string ends where it should: two quotes, and no line end. */
    for (size_t i = 0; i < HOSTILE; i++) {
        struct bytes_buffer script = {0};
        size_t quotes = 0;
        assert_true(plot_quote(&script, hostile[i], false, 1000));
        for (size_t at = 0; at < script.count; at++) {
            quotes += script.bytes[at] == '\'';
            assert_true(script.bytes[at] >= ' ' && script.bytes[at] != 127);
        }
        assert_true(quotes == 2 && script.bytes[0] == '\'' && script.bytes[script.count - 1] == '\'');
        bytes_free(&script);
    }
    (void)state;
}

static void values_have_prefixes(void **state)
{
    static const struct {
        double value;
        const char *unit, *wanted;
    } cases[] = {{1.234e9, "tokens/s", "1.23 G"},
                 {999.96e6, "tokens/s", "1.00 G"},
                 {3.425, "us", "3.42 us"},
                 {4109.8, "us", "4.11 ms"},
                 {24.5, "ms", "24.5 ms"},
                 {18.68, "GB/s", "18.7 GB/s"},
                 {0.5, "GB/s", "500 MB/s"},
                 {99.54, "%", "99.5 %"},
                 {0, "us", "0 s"},
                 {7, "calls", "7"},
                 {-10.757, "us", "-10.8 us"},
                 {0.59, "x", "0.59 x"},
                 {2.8e-4, "s/Mtoken", "280 us"},
                 {0.25, "calls", "0.25"},
                 {1500, "MiB", "1500 MiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[PLOT_VALUE];
        assert_string_equal(plot_value(cases[i].value, cases[i].unit, text), cases[i].wanted);
    }
    (void)state;
}

static bool contains(const struct bytes_buffer *bytes, const char *text)
{
    return memmem(bytes->bytes, bytes->count, text, strlen(text)) != NULL;
}

/* Whether the labels of columns are turned follows from the room that neighbors have, and from nothing else. */
static void labels_of_columns_do_not_touch(void **state)
{
    static const char *const lengths[] = {"2..3",     "4..7",     "8..15",     "16..31",  "32..63",  "64..127",
                                          "128..255", "256..511", "512..1023", "1..2 Ki", "2..4 Ki", "4..8 Ki"};
    static const char *const notes[] = {"one", "two", "three", "four", "five", "six", "seven", "eight"};
    static const struct {
        size_t labels, notes;
        const char *same; /* of all labels; NULL: those above */
        const char *turn; /* NULL: none */
    } cases[] = {{12, 2, NULL, "rotate by 35 right"},
                 {12, 0, NULL, "rotate by 35 right"},
                 {5, 8, NULL, NULL},
                 {9, 0, NULL, NULL},
                 {12, 8, "8..15", NULL},
                 {40, 1, "8..15", "rotate by 90 right"},
                 {2, 0, "a label of thirty characters..", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_plot_point points[40] = {{0}};
        struct bytes_buffer script = {0};
        struct tokmap_error error = {0};
        for (size_t j = 0; j < cases[i].labels; j++)
            points[j] = (struct cli_plot_point){.label = cases[i].same ? cases[i].same : lengths[j], .y = 1};
        const struct cli_plot_series series[] = {{"all", points, cases[i].labels, CLI_PLOT_COLOR_OURS, false}};
        struct cli_plot plot = plot_of(CLI_PLOT_COLUMNS, series, 1);
        plot.notes = notes;
        plot.note_count = cases[i].notes;
        assert_int_equal(plot_script_make(&plot, CLI_PLOT_SVG, &script, &error), TOKMAP_OK);
        assert_int_equal(contains(&script, "rotate"), cases[i].turn != NULL);
        assert_true(!cases[i].turn || contains(&script, cases[i].turn));
        bytes_free(&script);
    }
    (void)state;
}

/* Every text of a picture is hostile: nothing runs, and each of them is in the SVG as text. */
static void labels_are_no_commands(void **state)
{
    struct cli_plot_point points[HOSTILE];
    struct tokmap_error error = {0};
    gnuplot_needed();
    for (size_t i = 0; i < HOSTILE; i++)
        points[i] = (struct cli_plot_point){.label = hostile[i], .y = (double)i + 1, .low = 0, .high = 99};
    (void)unlink(mark);
    for (int kind = CLI_PLOT_BARS; kind <= CLI_PLOT_COLUMNS; kind++)
        for (size_t i = (size_t)kind; i < HOSTILE; i += 2) { /* the labels are all of them in each picture */
            const struct cli_plot_series series[] = {{hostile[i], points, HOSTILE, CLI_PLOT_COLOR_OURS, false},
                                                     {hostile[i], points, HOSTILE, CLI_PLOT_COLOR_NEXT, true}};
            struct cli_plot plot = plot_of((enum cli_plot_kind)kind, series, kind == CLI_PLOT_BARS ? 1 : 2);
            struct bytes_buffer picture = {0};
            plot.title = plot.subtitle = plot.axis = plot.x_axis = hostile[i];
            plot.notes = &hostile[i];
            plot.note_count = 1;
            plot.unit = i % 2 ? hostile[i] : "us";
            assert_int_equal(cli_plot_render(&plot, CLI_PLOT_SVG, &picture, &error), TOKMAP_OK);
            assert_int_not_equal(access(mark, F_OK), 0);
            assert_false(contains(&picture, "<script"));
            assert_false(contains(&picture, "\033"));
            assert_true(contains(&picture, "</svg>"));
            if (kind == CLI_PLOT_BARS) {
                assert_true(contains(&picture, ">`touch made_by_a_label`<"));
                assert_true(contains(&picture, "100% of %s %n %.0s%c %%"));
                assert_true(contains(&picture, "{/Bold b} a_b^c @x ${x} "));
                assert_true(contains(&picture, "ends with a backslash \\<"));
            }
            bytes_free(&picture);
        }
    (void)state;
}

static void both_sets_of_colors(void **state)
{
    const struct cli_plot_point points[] = {
        {.label = "one", .y = 5, .low = 4, .high = 6},
        {.label = "two", .y = (double)NAN, .low = (double)NAN, .high = (double)NAN}};
    const struct cli_plot_series series[] = {{"ours", points, 2, CLI_PLOT_COLOR_OURS, false},
                                             {"limit", points, 2, CLI_PLOT_COLOR_LIMIT, false},
                                             {"more", points, 2, CLI_PLOT_COLOR_NEXT, false}};
    const struct cli_plot plot = plot_of(CLI_PLOT_BARS, series, 3);
    struct tokmap_error error = {0};
    struct bytes_buffer svg = {0}, png = {0};
    size_t count;
    gnuplot_needed();
    assert_int_equal(cli_plot_render(&plot, CLI_PLOT_SVG, &svg, &error), TOKMAP_OK);
    assert_true(contains(&svg, "prefers-color-scheme: dark"));
    assert_false(contains(&svg, "scale(0"));
    assert_false(contains(&svg, "gnuplot_plot_1</title>"));
    /* Each color that a picture contains has a rule, in the spelling in which it appears. */
    const struct plot_shade *shades = plot_shades(&count);
    assert_true(count >= 8 && shades[0].light != shades[0].dark);
    (void)bytes_append(&svg, "", 1);
    size_t seen = 0;
    for (const char *at = (const char *)svg.bytes; (at = strstr(at, "'rgb(")) != NULL; at++) {
        const char *style_end = strstr((const char *)svg.bytes, "</style>");
        char rule[64];
        if (at < style_end)
            continue;
        (void)snprintf(rule, sizeof rule, "=%.*s]", (int)(strchr(at + 1, '\'') + 1 - at), at);
        const char *found = strstr((const char *)svg.bytes, rule);
        assert_true(found && found < style_end);
        seen++;
    }
    assert_true(seen > 5);
    assert_int_equal(cli_plot_render(&plot, CLI_PLOT_PNG, &png, &error), TOKMAP_OK);
    assert_true(png.count > 1000 && !memcmp(png.bytes, "\211PNG", 4));
    bytes_free(&svg);
    bytes_free(&png);
    (void)state;
}

/* Values without a picture: none that is finite, none above 0 on a logarithmic axis, one that is 0, very large ones. */
static void strange_values(void **state)
{
    static const double values[][2] = {
        {(double)NAN, (double)INFINITY}, {-1, 0}, {0, 0}, {1e300, -1e300}, {1e-300, 1}, {5, 5}};
    gnuplot_needed();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        for (int kind = CLI_PLOT_BARS; kind <= CLI_PLOT_COLUMNS; kind++)
            for (int log = 0; log < 2; log++) {
                const struct cli_plot_point points[] = {
                    {.label = "a", .y = values[i][0], .low = -(double)INFINITY, .high = (double)NAN},
                    {.label = "b", .y = values[i][1], .low = values[i][1], .high = values[i][1]}};
                const struct cli_plot_series series[] = {{"s", points, 2, CLI_PLOT_COLOR_NEXT, false}};
                struct cli_plot plot = plot_of((enum cli_plot_kind)kind, series, 1);
                struct tokmap_error error = {0};
                struct bytes_buffer picture = {0};
                plot.log_y = log;
                if (cli_plot_render(&plot, CLI_PLOT_SVG, &picture, &error))
                    fail_msg("values %zu, kind %d, log %d: %s", i, kind, log, error.message);
                assert_true(contains(&picture, "</svg>"));
                bytes_free(&picture);
            }
    (void)state;
}

static void faults_have_reasons(void **state)
{
    const struct cli_plot_point points[] = {{.label = "one", .y = 5, .low = (double)NAN, .high = (double)NAN}};
    const struct cli_plot_series series[] = {{"ours", points, 1, CLI_PLOT_COLOR_OURS, false}};
    struct cli_plot plot = plot_of(CLI_PLOT_BARS, series, 1);
    struct tokmap_error error = {0};
    struct bytes_buffer picture = {0};
    char *path = strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", "/no/such/folder", 1), 0);
    assert_int_equal(cli_plot_render(&plot, CLI_PLOT_SVG, &picture, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "apt-get install gnuplot-nox"));
    /* A program of that name that fails, and one that draws nothing. */
    assert_true(!mkdir("bin", 0700) || !access("bin", F_OK));
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen("bin/gnuplot", "w");
        assert_non_null(file);
        (void)fprintf(file, "#!/bin/sh\nexit %d\n", i);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod("bin/gnuplot", 0700), 0);
        assert_int_equal(setenv("PATH", "bin:/usr/bin:/bin", 1), 0);
        assert_int_equal(cli_plot_render(&plot, CLI_PLOT_SVG, &picture, &error), TOKMAP_ERROR_UNSUPPORTED);
        assert_int_equal(picture.count, 0);
    }
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
    assert_int_equal(cli_plot_write(&plot, "picture.jpg", &error), TOKMAP_ERROR_ARGUMENT);
    plot.series_count = CLI_PLOT_SERIES_MOST + 1;
    assert_int_equal(cli_plot_render(&plot, CLI_PLOT_SVG, &picture, &error), TOKMAP_ERROR_ARGUMENT);
    bytes_free(&picture);
    (void)state;
}

static void files_are_whole(void **state)
{
    struct tokmap_error error = {0};
    struct bytes_buffer read = {0};
    assert_int_equal(cli_file_write("whole", "first", 5, &error), TOKMAP_OK);
    assert_int_equal(cli_file_write("whole", "second", 6, &error), TOKMAP_OK);
    assert_int_equal(cli_file_read("whole", 6, &read, &error), TOKMAP_OK);
    assert_int_equal(read.count, 6);
    assert_memory_equal(read.bytes, "second", 6);
    assert_int_equal(cli_file_read("whole", 5, &read, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(cli_file_read("nowhere", 5, &read, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(cli_file_write("nowhere/whole", "x", 1, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_true(!mkdir("folder", 0700));
    assert_int_equal(cli_file_write("folder", "x", 1, &error), TOKMAP_ERROR_EXISTS);
    bytes_free(&read);
    (void)state;
}

static void origins_are_written(void **state)
{
    char text[512], date[CLI_DATE];
    char name[] = "x", info[] = "info", blank[] = "a b", quote[] = "it's", option[] = "--plot=x.svg", empty[] = "",
         color[] = "\033[1m";
    char *const words[] = {name, info, blank, quote, option, empty, color, NULL};
    assert_string_equal(cli_command_line("tokmap", 7, words, text, sizeof text),
                        "tokmap info 'a b' 'it'\\''s' --plot=x.svg '' '^[[1m'");
    assert_string_equal(cli_command_line("tokmap", 7, words, text, 12), "tokmap info");
    assert_int_equal(strlen(cli_date(date)), 20);
    assert_true(date[4] == '-' && date[10] == 'T' && date[19] == 'Z');
    assert_non_null(strstr(cli_machine(text, sizeof text), "processors, "));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_hold),
        cmocka_unit_test(values_have_prefixes),
        cmocka_unit_test(labels_of_columns_do_not_touch),
        cmocka_unit_test(labels_are_no_commands),
        cmocka_unit_test(both_sets_of_colors),
        cmocka_unit_test(strange_values),
        cmocka_unit_test(faults_have_reasons),
        cmocka_unit_test(files_are_whole),
        cmocka_unit_test(origins_are_written),
    };
    char folder[] = "/tmp/test_plot.XXXXXX";
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("/") || setenv("FOLDER", folder, 1) || system("rm -rf \"$FOLDER\""))
        return 1;
    return failed;
}
