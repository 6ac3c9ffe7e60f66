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
#include "harness/plot.c" /* programs of tests are not linked with the objects of bench */

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

static struct plot plot_of(const struct plot_series *series, size_t count, size_t labels)
{
    return (struct plot){.title = "title",
                         .subtitle = "subtitle",
                         .unit = "us",
                         .labels = labels,
                         .series = series,
                         .series_count = count};
}

/* Draws a picture, and reads it; the caller frees it. */
static void picture_of(const struct plot *plot, enum plot_format format, struct bytes_buffer *picture)
{
    struct tokmap_error error = {0};
    if (plot_write(plot, format, "picture", &error) || cli_file_read("picture", 1 << 20, picture, &error))
        fail_msg("%s", error.message);
    assert_true(bytes_append(picture, "", 1)); /* the end of a string */
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
    char *script = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = open_memstream(&script, &bytes);
        assert_non_null(file);
        quote(file, cases[i].text, cases[i].format, cases[i].most);
        assert_int_equal(fclose(file), 0);
        assert_string_equal(script, cases[i].wanted);
        free(script);
    }
    /* Of every text the string ends where it should: two quotes, and no line end. */
    for (size_t i = 0; i < HOSTILE; i++) {
        FILE *file = open_memstream(&script, &bytes);
        size_t quotes = 0;
        assert_non_null(file);
        quote(file, hostile[i], false, 1000);
        assert_int_equal(fclose(file), 0);
        for (size_t at = 0; at < bytes; at++) {
            quotes += script[at] == '\'';
            assert_true((unsigned char)script[at] >= ' ' && script[at] != 127);
        }
        assert_true(quotes == 2 && script[0] == '\'' && script[bytes - 1] == '\'');
        free(script);
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
        char text[VALUE];
        assert_string_equal(value_text(cases[i].value, cases[i].unit, text), cases[i].wanted);
    }
    (void)state;
}

/* Every text of a picture is hostile: nothing runs, and each of them is in the SVG as text. */
static void labels_are_no_commands(void **state)
{
    struct plot_point points[HOSTILE];
    gnuplot_needed();
    for (size_t i = 0; i < HOSTILE; i++)
        points[i] = (struct plot_point){.label = hostile[i], .y = (double)i + 1, .low = 0, .high = 99};
    (void)unlink(mark);
    for (size_t i = 0; i < HOSTILE; i++) { /* the labels are all of them in each picture */
        const struct plot_series series[] = {{hostile[i], points, false}, {hostile[i], points, true}};
        struct plot plot = plot_of(series, 1 + i % 2, HOSTILE);
        struct bytes_buffer bytes = {0};
        plot.title = plot.subtitle = hostile[i];
        plot.notes = &hostile[i];
        plot.note_count = 1;
        plot.unit = i % 4 > 1 ? hostile[i] : "us";
        picture_of(&plot, PLOT_SVG, &bytes);
        const char *picture = (const char *)bytes.bytes;
        assert_int_not_equal(access(mark, F_OK), 0);
        assert_null(strstr(picture, "<script"));
        assert_null(strchr(picture, '\033'));
        assert_non_null(strstr(picture, "</svg>"));
        assert_non_null(strstr(picture, ">`touch made_by_a_label`<"));
        assert_non_null(strstr(picture, "100% of %s %n %.0s%c %%"));
        assert_non_null(strstr(picture, "{/Bold b} a_b^c @x ${x} "));
        assert_non_null(strstr(picture, "ends with a backslash \\<"));
        bytes_free(&bytes);
    }
    (void)state;
}

static void both_sets_of_colors(void **state)
{
    const struct plot_point points[] = {{.label = "one", .y = 5, .low = 4, .high = 6},
                                        {.label = "two", .y = (double)NAN, .low = (double)NAN, .high = (double)NAN}};
    const struct plot_series series[] = {{"ours", points, false}, {"limit", points, true}, {"more", points, false}};
    const struct plot plot = plot_of(series, 3, 2);
    struct bytes_buffer picture = {0}, png = {0};
    size_t seen = 0;
    gnuplot_needed();
    picture_of(&plot, PLOT_SVG, &picture);
    const char *svg = (const char *)picture.bytes;
    assert_non_null(strstr(svg, "prefers-color-scheme: dark"));
    assert_null(strstr(svg, "scale(0"));
    assert_null(strstr(svg, "gnuplot_plot_1</title>"));
    /* Each color that a picture contains has a rule, in the spelling in which it appears. */
    const char *style_end = strstr(svg, "</style>");
    assert_non_null(style_end);
    for (const char *at = style_end; (at = strstr(at, "'rgb(")) != NULL; at++) {
        char rule[64];
        (void)snprintf(rule, sizeof rule, "=%.*s]", (int)(strchr(at + 1, '\'') + 1 - at), at);
        const char *found = strstr(svg, rule);
        assert_true(found && found < style_end);
        seen++;
    }
    assert_true(seen > 5);
    picture_of(&plot, PLOT_PNG, &png);
    assert_true(png.count > 1000 && !memcmp(png.bytes, "\211PNG", 4));
    bytes_free(&picture);
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
        for (int log = 0; log < 2; log++) {
            const struct plot_point points[] = {
                {.label = "a", .y = values[i][0], .low = -(double)INFINITY, .high = (double)NAN},
                {.label = "b", .y = values[i][1], .low = values[i][1], .high = values[i][1]}};
            const struct plot_series series[] = {{"s", points, false}};
            struct plot plot = plot_of(series, 1, 2);
            struct bytes_buffer picture = {0};
            plot.log_y = log;
            picture_of(&plot, PLOT_SVG, &picture);
            assert_non_null(strstr((const char *)picture.bytes, "</svg>"));
            bytes_free(&picture);
        }
    (void)state;
}

static void faults_have_reasons(void **state)
{
    const struct plot_point points[] = {{.label = "one", .y = 5, .low = (double)NAN, .high = (double)NAN}};
    const struct plot_series series[] = {{"ours", points, false}};
    const struct plot plot = plot_of(series, 1, 1);
    struct tokmap_error error = {0};
    char *path = strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", "/no/such/folder", 1), 0);
    assert_int_equal(plot_possible(&error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(plot_write(&plot, PLOT_SVG, "none", &error), TOKMAP_ERROR_NOT_FOUND);
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
        assert_int_equal(plot_possible(&error), i ? TOKMAP_ERROR_UNSUPPORTED : TOKMAP_OK);
        assert_int_equal(plot_write(&plot, PLOT_SVG, "none", &error), TOKMAP_ERROR_UNSUPPORTED);
        assert_int_not_equal(access("none", F_OK), 0);
    }
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
    gnuplot_needed();
    assert_int_equal(plot_write(&plot, PLOT_SVG, "bin", &error), TOKMAP_ERROR_IO);
    assert_int_equal(plot_write(&plot, PLOT_SVG, "nowhere/x", &error), TOKMAP_ERROR_NOT_FOUND);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_hold),
        cmocka_unit_test(values_have_prefixes),
        cmocka_unit_test(labels_are_no_commands),
        cmocka_unit_test(both_sets_of_colors),
        cmocka_unit_test(strange_values),
        cmocka_unit_test(faults_have_reasons),
    };
    char folder[] = "/tmp/test_plot.XXXXXX";
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("/") || setenv("FOLDER", folder, 1) || system("rm -rf \"$FOLDER\""))
        return 1;
    return failed;
}
