/* SPDX-License-Identifier: MIT */
/* plot_script.h - what gnuplot reads to draw a plot, and the colors that are in it. Internal to the pictures. */
#ifndef TOKMAP_CLI_PLOT_SCRIPT_H
#define TOKMAP_CLI_PLOT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "picture.h"
#include "tokmap/tokmap.h"

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

/* cli_plot_unit_name() of plot.h. */
const char *plot_unit_name(const char *unit);

#endif
