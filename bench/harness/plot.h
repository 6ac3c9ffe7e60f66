/* SPDX-License-Identifier: MIT */
/*
 * plot.h - pictures of results: SVG and PNG with horizontal bars, drawn by the program gnuplot.
 *
 * A plot is described as data, and becomes a script that gnuplot reads from its standard input. Names may come from
 * anyone: each is written as one quoted string from which nothing can escape, and with what is not plain
 * (common/visible.h) in its visible form. No coordinate is computed here but the size of the picture and its margins;
 * axes, ticks, and bars are gnuplot's.
 *
 * An SVG has its own background and two sets of colors: where the reader prefers dark pages (prefers-color-scheme), a
 * style sheet inside it replaces one set by the other. A PNG is always light, with its own background.
 *
 *     const struct plot_point points[] = {{.label = "tokmap", .y = 1.2e9, .low = 1.1e9, .high = 1.3e9},
 *                                         {.label = "memmap loop", .y = 0.4e9, .low = NAN, .high = NAN}};
 *     const struct plot_series series[] = {{"warm", points, false}};
 *     const struct plot plot = {.title = "Tokens a second", .subtitle = "more is better", .unit = "tokens/s",
 *                               .labels = 2, .series = series, .series_count = 1};
 *     status = plot_write(&plot, PLOT_SVG, "loader.svg", &error);
 *
 * Functions keep nothing between calls, and are called by the main thread.
 */
#ifndef TOKMAP_BENCH_HARNESS_PLOT_H
#define TOKMAP_BENCH_HARNESS_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "tokmap/tokmap.h"

struct plot_point {
    const char *label; /* taken from the first series */
    double y;          /* the value; not finite: nothing is drawn */
    double low, high;  /* the spread, a mark on the bar; drawn if both are finite and low <= y <= high */
};

struct plot_series {
    const char *name;                /* in the legend, which is left out if there is one series */
    const struct plot_point *points; /* point i belongs to label i */
    bool limit;                      /* has the color of a limit, else one of six by its number */
};

struct plot {
    const char *title;
    const char *subtitle;     /* below the title: which way is better, or what the figures are */
    const char *unit;         /* of the values; "ns", "us", "ms", "s", "MB/s", "GB/s", and counts get SI prefixes */
    bool log_y;               /* of the values; values of 0 and less are then not drawn */
    const char *const *notes; /* lines of the caption: the command, the machine, the date; long ones are wrapped */
    size_t note_count;
    size_t labels; /* groups of bars: the points of each series */
    const struct plot_series *series;
    size_t series_count; /* at least 1 */
};

enum plot_format { PLOT_SVG, PLOT_PNG };

/* Returns what an axis of this unit shows: "time" for "us", whose ticks have units of their own; else the unit
 * itself. */
const char *plot_unit_name(const char *unit);

/* Finds out whether gnuplot runs, before work whose result is to be drawn. Statuses: as plot_write(). */
enum tokmap_status plot_possible(struct tokmap_error *error);

/* Draws into a file, which replaces an earlier one. What gnuplot says about an error goes to standard error. Statuses:
 * OK, ERROR_NOT_FOUND (gnuplot is not in the folders of PATH, and the message names its package; or the folder of the
 * file is missing), ERROR_UNSUPPORTED (gnuplot failed, which an old one does), ERROR_INTERRUPTED (a signal came),
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status plot_write(const struct plot *plot, enum plot_format format, const char *path,
                              struct tokmap_error *error);

/* Writes a file, which appears complete or not at all, and replaces an earlier one. Statuses: OK, ERROR_MEMORY, those
 * of the system. */
enum tokmap_status bench_file_write(const char *path, const void *bytes, size_t count, struct tokmap_error *error);

#endif
