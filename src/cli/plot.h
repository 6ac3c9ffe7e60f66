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
#include "picture.h"
#include "tokmap/tokmap.h"

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

#endif
