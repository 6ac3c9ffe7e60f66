/* SPDX-License-Identifier: MIT */
/* picture.h - a picture as data; plot.h draws it. */
#ifndef TOKMAP_CLI_PICTURE_H
#define TOKMAP_CLI_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

enum cli_plot_kind {
    CLI_PLOT_BARS,    /* horizontal bars, one group for each label; a mark from `low` to `high` */
    CLI_PLOT_COLUMNS, /* vertical bars, such as those of a histogram; a series may be a line over them (cumulative) */
    CLI_PLOT_LINES    /* y over x, both numbers */
};

/* The color of a series. NEXT takes the next one of six that differ from each other and from the named ones. */
enum cli_plot_color { CLI_PLOT_COLOR_NEXT, CLI_PLOT_COLOR_OURS, CLI_PLOT_COLOR_LIMIT };

struct cli_plot_point {
    const char *label; /* of bars and columns, taken from the first series; NULL: "" */
    double x;          /* of lines */
    double y;          /* the value; not finite: nothing is drawn */
    double low, high;  /* the spread; drawn if both are finite and low <= y <= high */
};

struct cli_plot_series {
    const char *name;                    /* in the legend, which is left out if there is one series */
    const struct cli_plot_point *points; /* of bars and columns: point i belongs to label i */
    size_t count;
    enum cli_plot_color color;
    bool line; /* of columns: a line in place of bars */
};

#define CLI_PLOT_SERIES_MOST 8
#define CLI_PLOT_POINTS_MOST 4096 /* of one series of lines; of bars and columns, CLI_PLOT_LABELS_MOST */
#define CLI_PLOT_LABELS_MOST 100

struct cli_plot {
    enum cli_plot_kind kind;
    const char *title;
    const char *subtitle;     /* below the title: which way is better, or what the figures are; NULL: none */
    const char *unit;         /* of the values; "ns", "us", "ms", "s", "MB/s", "GB/s", and counts get SI prefixes */
    const char *axis;         /* names the axis of the values; NULL: cli_plot_unit_name() of the unit */
    const char *x_axis;       /* names the axis of the labels or of x; NULL: nothing */
    bool log_x, log_y;        /* log_x: of lines. log_y: of the values; values of 0 and less are then not drawn */
    const char *const *notes; /* lines of the caption: the command, the machine, the date; long ones are wrapped */
    size_t note_count;
    const struct cli_plot_series *series;
    size_t series_count;
};

enum cli_plot_format { CLI_PLOT_SVG, CLI_PLOT_PNG };

#endif
