/* SPDX-License-Identifier: MIT */
/*
 * plot.h - pictures of figures: SVG and PNG, drawn by the program gnuplot.
 *
 * A plot is described as data, and becomes a script that gnuplot reads from its standard input, so there is no
 * temporary file. Names may come from anyone: each is written as one quoted string from which nothing can escape, and
 * with what is not plain (common/visible.h) in its visible form. No coordinate is computed here but the size of the
 * picture and its margins; axes, ticks, bars, and lines are gnuplot's.
 *
 * An SVG has its own background and two sets of colors: where the reader prefers dark pages (prefers-color-scheme), a
 * style sheet inside it replaces one set by the other. A PNG is always light, with its own background.
 *
 *     const struct cli_plot_point points[] = {{.label = "tokmap", .y = 1.2e9, .low = 1.1e9, .high = 1.3e9},
 *                                             {.label = "memmap loop", .y = 0.4e9, .low = NAN, .high = NAN}};
 *     const struct cli_plot_series series[] = {{"warm", points, 2, CLI_PLOT_COLOR_OURS, false}};
 *     const struct cli_plot plot = {.kind = CLI_PLOT_BARS, .title = "Tokens a second", .subtitle = "more is better",
 *                                   .unit = "tokens/s", .series = series, .series_count = 1, .caption = caption};
 *     status = cli_plot_write(&plot, "loader.svg", &error);
 *
 * Functions keep nothing between calls, and are called by the main thread.
 */
#ifndef TOKMAP_CLI_PLOT_H
#define TOKMAP_CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

enum cli_plot_kind {
    CLI_PLOT_BARS,   /* horizontal bars, one group for each label; a mark from `low` to `high` */
    CLI_PLOT_COLUMNS /* vertical bars, such as those of a histogram; a series may be a line over them (cumulative) */
};

/* The color of a series. NEXT takes the next one of six that differ from each other and from the named ones. */
enum cli_plot_color { CLI_PLOT_COLOR_NEXT, CLI_PLOT_COLOR_OURS, CLI_PLOT_COLOR_LIMIT };

struct cli_plot_point {
    const char *label; /* taken from the first series; NULL: "" */
    double y;          /* the value; not finite: nothing is drawn */
    double low, high;  /* the spread; drawn if both are finite and low <= y <= high */
};

struct cli_plot_series {
    const char *name;                    /* in the legend, which is left out if there is one series */
    const struct cli_plot_point *points; /* point i belongs to label i */
    size_t count;
    enum cli_plot_color color;
    bool line; /* of columns: a line in place of bars */
};

#define CLI_PLOT_SERIES_MOST 8
#define CLI_PLOT_LABELS_MOST 100

struct cli_plot {
    enum cli_plot_kind kind;
    const char *title;
    const char *subtitle;     /* below the title: which way is better, or what the figures are; NULL: none */
    const char *unit;         /* of the values; "ns", "us", "ms", "s", "MB/s", "GB/s", and counts get SI prefixes */
    const char *axis;         /* names the axis of the values; NULL: cli_plot_unit_name() of the unit */
    const char *x_axis;       /* names the axis of the labels of columns; NULL: nothing */
    bool log_y;               /* of the values; values of 0 and less are then not drawn */
    const char *const *notes; /* lines of the caption: the command, the machine, the date; long ones are wrapped */
    size_t note_count;
    const struct cli_plot_series *series;
    size_t series_count;
};

enum cli_plot_format { CLI_PLOT_SVG, CLI_PLOT_PNG };

/* Returns what an axis of this unit shows: "time" for "us", whose ticks have units of their own; else the unit
 * itself. */
const char *cli_plot_unit_name(const char *unit);

/* Finds the format by the end of a name, ".svg" or ".png". Returns false if it has another one. */
bool cli_plot_format_of(const char *path, enum cli_plot_format *format);

/* Finds out whether gnuplot is there, before work whose result is to be drawn. Statuses: OK, ERROR_NOT_FOUND (the
 * message names its package). */
enum tokmap_status cli_plot_possible(struct tokmap_error *error);

/* Appends the picture to `into`, which the caller frees. gnuplot is searched for in the folders of PATH. What gnuplot
 * says about an error goes to standard error. Statuses: OK, ERROR_ARGUMENT (no series, no point, or too many),
 * ERROR_NOT_FOUND (gnuplot is not installed; the message names its package),
 * ERROR_UNSUPPORTED (gnuplot failed, which an old one does), ERROR_INTERRUPTED (a signal came), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status cli_plot_render(const struct cli_plot *plot, enum cli_plot_format format, struct bytes_buffer *into,
                                   struct tokmap_error *error);

/* Does the same into a file, whose name decides the format. The file appears complete or not at all, and replaces an
 * earlier one. Statuses in addition: ERROR_ARGUMENT (another ending), ERROR_EXISTS (the name is that of a folder). */
enum tokmap_status cli_plot_write(const struct cli_plot *plot, const char *path, struct tokmap_error *error);

/* ---- what gnuplot reads; tests look at it ---- */

/* A color of the pictures on light pages, and what takes its place on dark ones. */
struct plot_shade {
    unsigned light, dark; /* 0xrrggbb */
};
/* Returns all colors; *count is their number. The first one is the background. */
const struct plot_shade *plot_shades(size_t *count);

/* Appends the script. The plot has been checked: it has a series, and no more of anything than plot.h allows. Statuses:
 * OK, ERROR_MEMORY. */
enum tokmap_status plot_script_make(const struct cli_plot *plot, enum cli_plot_format format,
                                    struct bytes_buffer *script, struct tokmap_error *error);

/* Appends a text as one quoted string of gnuplot. Between single quotes gnuplot replaces nothing: no command between
 * backquotes, no macro after '@', no escape after a backslash; only a quote ends the string. A quote in the text
 * becomes a typographic one (U+2019), because gnuplot does not read a doubled quote everywhere. What is not plain
 * becomes visible, so a line end does not end the command. format: the string is one in which gnuplot replaces % (a
 * label of a tick). most: characters after which the text is cut, and ends in "...". Returns false if there is no
 * memory. */
bool plot_quote(struct bytes_buffer *script, const char *text, bool format, size_t most);

/* Writes a value with an SI prefix, for people. A unit such as "us" is written, as in "340 us" and "1.25 ms"; the name
 * of what is counted is not: 1.25e9 tokens/s are "1.25 G". */
#define PLOT_VALUE 48 /* bytes */
const char *plot_value(double value, const char *unit, char text[PLOT_VALUE]);

#endif
