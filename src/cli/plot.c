/* SPDX-License-Identifier: MIT */
/*
 * plot.c - see plot.h: checks a plot, writes its script, runs gnuplot, and completes the SVG that it writes.
 *
 * gnuplot's SVG has the colors of the script in each element. CSS rules win over such attributes, so one rule for each
 * color, inside a media query, makes the dark picture of the light one: [stroke='rgb(  9, 105, 218)']{stroke:#58a6ff}.
 * gnuplot writes black where the script has no color, for paths without a length.
 *
 * Bars and columns are gnuplot's style boxxyerror, which draws a box between four numbers in the coordinates of the
 * axes. Group i is at i, and the bars of its series divide the space from i - 0.4 to i + 0.4. Example: with two series,
 * the bars of group 3 are at 2.6 to 3 and 3 to 3.4. The style for clusters that gnuplot has (histograms) draws no
 * horizontal bars, and no spread where a value is missing.
 */
#include "plot.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/visible.h"
#include "platform/os.h"
#include "platform/process.h"
#include "whole_file.h"

#define PATH_MOST 4096
#define PICTURE_MOST ((size_t)64 << 20) /* bytes */

/* ---- colors ---- */

enum { BACK, TEXT, MUTED, GRID, SPREAD, LIMIT, FIRST };
static const struct plot_shade shades[] = {
    {0xffffff, 0x14181f}, /* background */
    {0x1f2328, 0xe6edf3}, /* text */
    {0x5a6470, 0xa3adb8}, /* secondary text */
    {0xd9dee4, 0x333b46}, /* grid */
    {0x3a4048, 0xd0d7de}, /* spread */
    {0xb4bcc5, 0x5b6572}, /* the limit */
    /* series: told apart also by readers who do not see red or green */
    {0x0b62c4, 0x58a6ff},
    {0xd9730d, 0xf0a35e},
    {0x11856f, 0x3fc7ab},
    {0x8a3fbf, 0xc48cf0},
    {0xb3261e, 0xff7b72},
    {0x7a6a00, 0xd4bf3f},
};
#define SHADES (sizeof shades / sizeof shades[0])

const struct plot_shade *plot_shades(size_t *count)
{
    *count = SHADES;
    return shades;
}

/* Returns the color of series `number`. */
static unsigned series_color(const struct cli_plot *plot, size_t number)
{
    size_t next = FIRST;
    if (plot->series[number].color == CLI_PLOT_COLOR_LIMIT)
        return shades[LIMIT].light;
    if (plot->series[number].color == CLI_PLOT_COLOR_OURS)
        return shades[FIRST].light;
    for (size_t i = 0; i < plot->series_count; i++)
        next += plot->series[i].color == CLI_PLOT_COLOR_OURS ? 1 : 0;
    next = next > FIRST ? FIRST + 1 : FIRST;
    for (size_t i = 0; i < number; i++)
        next += plot->series[i].color == CLI_PLOT_COLOR_NEXT;
    return shades[FIRST + (next - FIRST) % (SHADES - FIRST)].light;
}

/* ---- writing ---- */

struct writer {
    struct bytes_buffer *script;
    bool lost; /* there was no memory for a part */
};

__attribute__((format(printf, 2, 3))) static void add(struct writer *writer, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert(length >= 0 && (size_t)length < sizeof text);
    writer->lost |= !bytes_append(writer->script, text, (size_t)length);
}

bool plot_quote(struct bytes_buffer *script, const char *text, bool format, size_t most)
{
    const size_t count = strlen(text);
    size_t shown = 0;
    bool done = bytes_append(script, "'", 1);
    for (size_t at = 0, step; at < count && done; at += step, shown++) {
        char form[4 * VISIBLE_MOST + 1];
        bool plain;
        step = visible_step(text + at, count - at, &plain);
        if (shown == most) {
            done = bytes_append(script, "...", 3);
            break;
        }
        const size_t bytes = visible_copy(form, sizeof form, text + at, step, "");
        if (text[at] == '%' && format)
            done = bytes_append(script, "%", 1);
        done = done && (text[at] == '\'' ? bytes_append(script, "\u2019", 3) : bytes_append(script, form, bytes));
    }
    return bytes_append(script, "'", 1) && done;
}

#define ALL SIZE_MAX
static void quote(struct writer *writer, const char *text, size_t most)
{
    writer->lost |= !plot_quote(writer->script, text ? text : "", false, most);
}

static size_t characters(const char *text)
{
    const size_t count = text ? strlen(text) : 0;
    size_t found = 0;
    bool plain;
    for (size_t at = 0; at < count; at += visible_step(text + at, count - at, &plain))
        found++;
    return found;
}

/* ---- units ---- */

/* Units that are multiples of another one, which takes SI prefixes. */
static const struct unit {
    const char *name;
    double factor;
    const char *base;
} units[] = {
    {"ns", 1e-9, "s"},    {"us", 1e-6, "s"},    {"ms", 1e-3, "s"}, {"s", 1, "s"},        {"B/s", 1, "B/s"},
    {"MB/s", 1e6, "B/s"}, {"GB/s", 1e9, "B/s"}, {"KB", 1e3, "B"},  {"MB", 1e6, "B"},     {"GB", 1e9, "B"},
    {"B", 1, "B"},        {"bytes", 1, "B"},    {"J", 1, "J"},     {"s/Mtoken", 1, "s"}, {"J/Mtoken", 1, "J"},
};

/* Units of which 0.001 or 1000 is written as it is. Other units are names of what is counted: 12 M (tokens/s). */
static const char *const plain_units[] = {"%", "x", "1", "MiB", "KiB", "GiB", ""};

static struct unit unit_of(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(units[i].name, name))
            return units[i];
    return (struct unit){name, 1, NULL};
}

const char *cli_plot_unit_name(const char *unit)
{
    const struct unit found = unit_of(unit);
    if (!strcmp(unit, "s/Mtoken") || !strcmp(unit, "J/Mtoken"))
        return unit[0] == 's' ? "time for a million tokens" : "energy for a million tokens";
    if (!found.base)
        return !strcmp(unit, "1") || !*unit ? "number" : unit;
    return !strcmp(found.base, "s")     ? "time"
           : !strcmp(found.base, "B/s") ? "bytes a second"
           : found.base[0] == 'B'       ? "bytes"
                                        : "energy";
}

static bool unit_is_plain(const char *name)
{
    for (size_t i = 0; i < sizeof plain_units / sizeof plain_units[0]; i++)
        if (!strcmp(plain_units[i], name))
            return true;
    return false;
}

/* Returns the largest prefix whose number is at least 1, and its factor. Names of what is counted have no prefix below
 * 1. */
static const char *prefix_of(double value, bool small, double *factor)
{
    static const struct {
        double factor;
        const char *prefix;
    } prefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"}, {1e3, "k"},
                    {1, ""},     {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
    const size_t count = small ? sizeof prefixes / sizeof prefixes[0] : 6;
    const double size = fabs(value);
    *factor = 1;
    if (size == 0)
        return "";
    for (size_t i = 0; i < count; i++)
        if (size >= prefixes[i].factor * 0.9995) {
            *factor = prefixes[i].factor;
            return prefixes[i].prefix;
        }
    *factor = prefixes[count - 1].factor;
    return prefixes[count - 1].prefix;
}

const char *plot_value(double value, const char *unit, char text[PLOT_VALUE])
{
    const struct unit found = unit_of(unit);
    double factor = 1;
    const char *prefix = unit_is_plain(unit) ? "" : prefix_of(value * found.factor, found.base != NULL, &factor);
    const double shown = value * found.factor / factor;
    const char *base = found.base ? found.base : unit_is_plain(unit) && strcmp(unit, "1") != 0 ? unit : "";
    const double size = fabs(shown);
    const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : 2;
    const char *space = *prefix || *base ? " " : "";
    if (size >= 1e6 || (size > 0 && size < 0.01))
        (void)snprintf(text, PLOT_VALUE, "%.3g%s%s%s", shown, space, prefix, base);
    else if (shown == (double)(long)shown)
        (void)snprintf(text, PLOT_VALUE, "%.0f%s%s%s", shown, space, prefix, base);
    else
        (void)snprintf(text, PLOT_VALUE, "%.*f%s%s%s", decimals, shown, space, prefix, base);
    return text;
}

/* ---- what is drawn, and where ---- */

/* In pixels. */
#define WIDTH 960
#define BAR_PIXELS 17
#define LABEL_MOST 46 /* characters */
#define NOTE_MOST 148 /* characters of a line of the caption */
#define NOTE_LINES 8
#define CHARACTER 7.4 /* the width of one in a label, on average */
#define LINE 15.0     /* the height of a label */
#define RIGHT 24.0    /* the margin */

struct frame {
    struct writer writer;
    const struct cli_plot *plot;
    size_t labels;                    /* groups of bars or columns */
    size_t bars;                      /* series that are bars */
    double height, left, top, bottom; /* of the picture; the margins around the axes, in pixels */
    int angle;                        /* of the labels of columns, in degrees */
    double scale;                     /* of the values in the script */
    double low, high;                 /* the axis of the values, scaled */
    double smallest, largest;         /* of what is drawn, scaled */
};

static bool has_spread(const struct cli_plot_point *point)
{
    return isfinite(point->low) && isfinite(point->high) && point->low <= point->y && point->y <= point->high &&
           point->low < point->high;
}

static bool drawn(const struct frame *frame, const struct cli_plot_point *point)
{
    return isfinite(point->y) && (!frame->plot->log_y || point->y > 0);
}

/* Finds the range of the values, and the prefix of the axis, whose text is stored in `format`. */
static void scale_find(struct frame *frame, char format[64])
{
    const struct cli_plot *plot = frame->plot;
    const struct unit unit = unit_of(plot->unit);
    const char *base = unit.base ? unit.base : strcmp(plot->unit, "%") == 0 ? "%%" : "";
    double largest = -(double)INFINITY, smallest = (double)INFINITY, factor = 1;
    for (size_t i = 0; i < plot->series_count; i++)
        for (size_t j = 0; j < plot->series[i].count; j++) {
            const struct cli_plot_point *point = &plot->series[i].points[j];
            if (!drawn(frame, point))
                continue;
            const bool spread = has_spread(point);
            largest = fmax(largest, spread ? point->high : point->y);
            smallest = fmin(smallest, spread && (!plot->log_y || point->low > 0) ? point->low : point->y);
        }
    if (!isfinite(largest)) /* nothing can be drawn: an empty picture, with its labels */
        largest = smallest = 1;
    const char *prefix = "";
    if (!unit_is_plain(plot->unit) && !plot->log_y)
        prefix = prefix_of(fmax(fabs(largest), fabs(smallest)) * unit.factor, unit.base != NULL, &factor);
    const char *space = *prefix || *base ? " " : "";
    frame->scale = unit.factor / factor;
    frame->largest = largest * frame->scale;
    frame->smallest = smallest * frame->scale;
    if (plot->log_y && !unit_is_plain(plot->unit))
        (void)snprintf(format, 64, "%%.0s %%c%s", base);
    else
        (void)snprintf(format, 64, "%%g%s%s%s", space, prefix, base);
}

/* Finds the ends of the axis of the values. Bars need a beginning, and room for the number after the longest one. */
static void range_find(struct frame *frame)
{
    const struct cli_plot *plot = frame->plot;
    const double room = plot->kind == CLI_PLOT_BARS ? 0.2 : 0.06;
    frame->low = frame->smallest < 0 ? frame->smallest * (1 + room) : 0;
    frame->high = frame->largest > 0 ? frame->largest * (1 + room) : 1;
    if (!plot->log_y)
        return;
    frame->low = pow(10, floor(log10(frame->smallest * 0.7)));
    frame->high = frame->largest * pow(frame->largest / frame->low, room);
}

static size_t note_lines(const struct cli_plot *plot)
{
    size_t lines = 0;
    for (size_t i = 0; i < plot->note_count; i++)
        lines += (characters(plot->notes[i]) + NOTE_MOST - 1) / NOTE_MOST;
    return lines < NOTE_LINES ? lines : NOTE_LINES;
}

/* Returns the angle at which the labels of columns do not touch each other: 0 where each pair of neighbors has room;
 * else 35, where the lines of text are that far apart; else 90. Text at an angle ends at its column. */
static int angle_find(const struct frame *frame)
{
    const double column = (WIDTH - frame->left - RIGHT) / ((double)frame->labels + 0.2);
    size_t before = 0, widest = 0;
    for (size_t i = 0; i < frame->labels; i++) {
        const size_t count = characters(frame->plot->series[0].points[i].label);
        const size_t shown = count < LABEL_MOST ? count : LABEL_MOST;
        widest = i && before + shown > widest ? before + shown : widest;
        before = shown;
    }
    if (CHARACTER * ((double)widest / 2 + 1) <= column)
        return 0;
    return column * 0.57 >= LINE ? 35 : 90; /* 0.57: the sine of 35 degrees */
}

/* Finds the margins and the height. */
static void frame_find(struct frame *frame)
{
    const struct cli_plot *plot = frame->plot;
    size_t longest = 0;
    for (size_t i = 0; i < plot->series_count; i++)
        frame->bars += !plot->series[i].line;
    frame->labels = plot->series[0].count;
    for (size_t i = 0; i < frame->labels; i++) {
        const size_t count = characters(plot->series[0].points[i].label);
        longest = count > longest ? count : longest;
    }
    longest = longest < LABEL_MOST ? longest : LABEL_MOST;
    frame->top = 44 + (plot->subtitle ? 20 : 0) + (plot->series_count > 1 ? 28 : 0);
    frame->bottom = 34 + 24 + LINE * (double)note_lines(plot) + 10;
    if (plot->kind == CLI_PLOT_BARS) {
        frame->left = 26 + CHARACTER * (double)longest;
        frame->height = frame->top + frame->bottom +
                        (double)frame->labels * ((double)frame->bars * BAR_PIXELS + (frame->bars > 1 ? 12 : 9)) + 6;
        return;
    }
    frame->left = 92;
    frame->height = 330 + frame->top + frame->bottom;
    frame->angle = angle_find(frame);
    const double more = frame->angle == 90 ? CHARACTER * (double)longest : frame->angle ? 5.2 * (double)longest : 0;
    frame->bottom += more;
    frame->height += more;
}

/* ---- the script ---- */

static void text_at(struct frame *frame, int number, const char *text, size_t most, double x, double y, size_t color,
                    const char *font)
{
    add(&frame->writer, "set label %d ", number);
    quote(&frame->writer, text, most);
    add(&frame->writer, " at screen %.5f,%.5f left front textcolor rgb '#%06x' font '%s'\n", x / WIDTH,
        1 - y / frame->height, shades[color].light, font);
}

/* Adds the caption: each note on lines of at most NOTE_MOST characters, cut at a blank where one is near the end. */
static void notes_add(struct frame *frame, int number)
{
    double y = frame->height - 10 - LINE * (double)(note_lines(frame->plot) - 1);
    size_t lines = note_lines(frame->plot);
    for (size_t i = 0; i < frame->plot->note_count; i++) {
        const char *note = frame->plot->notes[i];
        size_t left = strlen(note);
        while (left && lines) {
            char line[4 * NOTE_MOST + 1];
            size_t bytes = 0, blank = 0;
            bool plain;
            for (size_t shown = 0; shown < NOTE_MOST && bytes < left; shown++) {
                blank = note[bytes] == ' ' && shown > NOTE_MOST - 30 ? bytes + 1 : blank;
                bytes += visible_step(note + bytes, left - bytes, &plain);
            }
            bytes = bytes < left && blank ? blank : bytes;
            memcpy(line, note, bytes);
            line[bytes] = '\0';
            text_at(frame, number++, line, ALL, 14, y, MUTED, ",10");
            note += bytes;
            left -= bytes;
            lines--;
            y += LINE;
        }
    }
}

static void head_add(struct frame *frame, enum cli_plot_format format)
{
    const struct cli_plot *plot = frame->plot;
    struct writer *writer = &frame->writer;
    const int height = (int)frame->height;
    if (format == CLI_PLOT_SVG)
        add(writer,
            "set terminal svg size %d,%d fixed noenhanced font 'DejaVu Sans,sans-serif,12' background rgb '#%06x'\n",
            WIDTH, height, shades[BACK].light);
    else
        add(writer,
            "set terminal pngcairo size %d,%d noenhanced font 'DejaVu Sans,12' fontscale 1.6 linewidth 2 pointscale 2 "
            "background rgb '#%06x'\n",
            2 * WIDTH, 2 * height, shades[BACK].light);
    add(writer, "set output\nset tmargin at screen %.5f\nset bmargin at screen %.5f\n", 1 - frame->top / frame->height,
        frame->bottom / frame->height);
    add(writer, "set lmargin at screen %.5f\nset rmargin at screen %.5f\n", frame->left / WIDTH, 1 - RIGHT / WIDTH);
    text_at(frame, 1, plot->title, 90, 14, 26, TEXT, ",15");
    if (plot->subtitle)
        text_at(frame, 2, plot->subtitle, 140, 14, 47, MUTED, ",11");
    notes_add(frame, 3);
    if (plot->series_count > 1)
        add(writer,
            "set key at screen %.5f,%.5f left top horizontal Left reverse samplen 1.5 width 1 textcolor rgb '#%06x' "
            "font ',11'\n",
            8.0 / WIDTH, 1 - (frame->top - 28) / frame->height, shades[TEXT].light);
    else
        add(writer, "unset key\n");
    add(writer, "set border 0\nset style fill solid 1 noborder\nset errorbars 0.6\n");
    add(writer, "set xtics nomirror scale 0 textcolor rgb '#%06x'\nset ytics nomirror scale 0 textcolor rgb '#%06x'\n",
        shades[MUTED].light, shades[MUTED].light);
}

/* Adds the names of groups, as ticks of an axis. */
static void labels_add(struct frame *frame, const char *axis, const char *how)
{
    struct writer *writer = &frame->writer;
    add(writer, "set %stics %s textcolor rgb '#%06x' (", axis, how, shades[TEXT].light);
    for (size_t i = 0; i < frame->labels; i++) {
        const char *label = frame->plot->series[0].points[i].label;
        writer->lost |= !plot_quote(writer->script, label ? label : "", true, LABEL_MOST);
        add(writer, " %zu%s", i, i + 1 < frame->labels ? ", " : "");
    }
    add(writer, ")\n");
}

static void axis_add(struct frame *frame, const char *axis, const char *format)
{
    struct writer *writer = &frame->writer;
    const struct cli_plot *plot = frame->plot;
    if (plot->log_y)
        add(writer, "set logscale %s\n", axis);
    add(writer, "set %srange [%.9g:%.9g]\nset format %s '%s'\n", axis, frame->low, frame->high, axis, format);
    add(writer, "set grid %stics linetype 1 linewidth 1 linecolor rgb '#%06x'\nset %slabel ", axis, shades[GRID].light,
        axis);
    quote(writer, plot->axis ? plot->axis : cli_plot_unit_name(plot->unit), 80);
    add(writer, " textcolor rgb '#%06x'%s\n", shades[MUTED].light, plot->kind == CLI_PLOT_BARS ? "" : " offset 1,0");
}

/* Adds the numbers of a series: one line for each point that is drawn. Bars and columns: where the bar is, its value,
 * its ends across, its ends along. */
static void boxes_add(struct frame *frame, size_t number, size_t slot)
{
    const struct cli_plot_series *series = &frame->plot->series[number];
    const double wide = 0.8 / (double)frame->bars;
    const double base = frame->plot->log_y ? frame->low : 0;
    add(&frame->writer, "$box%zu << EOD\n", number);
    for (size_t i = 0; i < series->count && i < frame->labels; i++) {
        const struct cli_plot_point *point = &series->points[i];
        const double from = (double)i - 0.4 + wide * (double)slot, y = point->y * frame->scale;
        if (drawn(frame, point))
            add(&frame->writer, "%.6f %.9g %.6f %.6f %.9g %.9g\n", from + wide / 2, y, from + wide * 0.04,
                from + wide * 0.96, base, y);
    }
    add(&frame->writer, "EOD\n$spread%zu << EOD\n", number);
    for (size_t i = 0; i < series->count && i < frame->labels; i++) {
        const struct cli_plot_point *point = &series->points[i];
        if (drawn(frame, point) && has_spread(point))
            add(&frame->writer, "%.6f %.9g %.9g %.9g\n", (double)i - 0.4 + wide * ((double)slot + 0.5),
                point->y * frame->scale, fmax(point->low * frame->scale, frame->low), point->high * frame->scale);
    }
    add(&frame->writer, "EOD\n");
}

/* Adds the numbers of a line over columns: x, y, and the spread. */
static void points_add(struct frame *frame, size_t number)
{
    const struct cli_plot_series *series = &frame->plot->series[number];
    add(&frame->writer, "$line%zu << EOD\n", number);
    for (size_t i = 0; i < series->count; i++) {
        const struct cli_plot_point *point = &series->points[i];
        const bool spread = has_spread(point);
        if (drawn(frame, point))
            add(&frame->writer, "%.12g %.9g %.9g %.9g\n", (double)i, point->y * frame->scale,
                (spread ? point->low : point->y) * frame->scale, (spread ? point->high : point->y) * frame->scale);
    }
    add(&frame->writer, "EOD\n");
}

/* Adds the number after each bar. */
static void values_add(struct frame *frame)
{
    const struct cli_plot *plot = frame->plot;
    const double wide = 0.8 / (double)frame->bars;
    int number = 100;
    for (size_t i = 0; i < plot->series_count; i++)
        for (size_t j = 0; j < plot->series[i].count && j < frame->labels; j++) {
            const struct cli_plot_point *point = &plot->series[i].points[j];
            char text[PLOT_VALUE];
            if (!isfinite(point->y))
                continue;
            double end = fmax(0, has_spread(point) ? point->high : point->y);
            if (!drawn(frame, point)) /* 0 on a logarithmic axis: a number without a bar */
                end = frame->low / frame->scale;
            add(&frame->writer, "set label %d ", number++);
            quote(&frame->writer, plot_value(point->y, plot->unit, text), ALL);
            add(&frame->writer, " at first %.9g,%.6f left offset 0.7,0 front textcolor rgb '#%06x' font ',10'\n",
                end * frame->scale, (double)j - 0.4 + wide * ((double)i + 0.5),
                shades[plot->series[i].color == CLI_PLOT_COLOR_LIMIT ? MUTED : TEXT].light);
        }
}

/* Returns whether a series has a point that is drawn; gnuplot refuses to plot data without any. */
static bool series_drawn(const struct frame *frame, const struct cli_plot_series *series, bool spread)
{
    const size_t count = series->count > frame->labels ? frame->labels : series->count;
    for (size_t i = 0; i < count; i++)
        if (drawn(frame, &series->points[i]) && (!spread || has_spread(&series->points[i])))
            return true;
    return false;
}

static void plot_add(struct frame *frame)
{
    struct writer *writer = &frame->writer;
    const struct cli_plot *plot = frame->plot;
    const bool bars = plot->kind == CLI_PLOT_BARS;
    const char *separator = "plot ";
    for (size_t i = 0; i < plot->series_count; i++) {
        const struct cli_plot_series *series = &plot->series[i];
        const bool line = series->line;
        if (!series_drawn(frame, series, false))
            continue;
        add(writer, "%s", separator);
        separator = ", ";
        if (line)
            add(writer, "$line%zu using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.5", i);
        else
            add(writer, "$box%zu using %s with boxxyerror", i, bars ? "2:1:5:6:3:4" : "1:2:3:4:5:6");
        add(writer, " linecolor rgb '#%06x' title ", series_color(plot, i));
        quote(writer, series->name, 40);
    }
    for (size_t i = 0; i < plot->series_count; i++) {
        const bool line = plot->series[i].line;
        if (!series_drawn(frame, &plot->series[i], true))
            continue;
        add(writer, ", $%s%zu using %s with %s pointtype 0 linewidth 1.3 linecolor rgb '#%06x' notitle",
            line ? "line" : "spread", i, bars ? "2:1:3:4" : "1:2:3:4", bars ? "xerrorbars" : "yerrorbars",
            line ? series_color(plot, i) : shades[SPREAD].light);
    }
    /* Without anything to draw, the axes alone. */
    add(writer, separator[0] == 'p' ? "plot NaN notitle\n" : "\n");
}

enum tokmap_status plot_script_make(const struct cli_plot *plot, enum cli_plot_format format,
                                    struct bytes_buffer *script, struct tokmap_error *error)
{
    struct frame frame = {.writer = {script, false}, .plot = plot};
    struct writer *writer = &frame.writer;
    char axis_format[64];
    scale_find(&frame, axis_format);
    range_find(&frame);
    frame_find(&frame);
    head_add(&frame, format);
    const double last = (double)frame.labels - 0.4;
    if (plot->kind == CLI_PLOT_BARS) {
        labels_add(&frame, "y", "");
        add(writer, "set yrange [%.3f:-0.6]\n", last);
        axis_add(&frame, "x", axis_format);
        values_add(&frame);
    } else {
        axis_add(&frame, "y", axis_format);
        labels_add(&frame, "x", frame.angle == 90 ? "rotate by 90 right" : frame.angle ? "rotate by 35 right" : "");
        add(writer, "set xrange [-0.6:%.3f]\nset xlabel ", last);
        quote(writer, plot->x_axis, 80);
        add(writer, " textcolor rgb '#%06x'\n", shades[MUTED].light);
    }
    for (size_t i = 0, slot = 0; i < plot->series_count; i++) {
        if (plot->series[i].line)
            points_add(&frame, i);
        else
            boxes_add(&frame, i, slot++);
    }
    plot_add(&frame);
    return writer->lost ? error_set_memory(error, "the script of a picture", 0) : TOKMAP_OK;
}

/* ---- formats ---- */

bool cli_plot_format_of(const char *path, enum cli_plot_format *format)
{
    const size_t length = strlen(path);
    const char *end = length > 4 ? path + length - 4 : "";
    if (strcmp(end, ".svg") != 0 && strcmp(end, ".png") != 0)
        return false;
    *format = strcmp(end, ".svg") == 0 ? CLI_PLOT_SVG : CLI_PLOT_PNG;
    return true;
}

static enum tokmap_status plot_check(const struct cli_plot *plot, struct tokmap_error *error)
{
    bool good = plot->series_count && plot->series_count <= CLI_PLOT_SERIES_MOST && plot->title && plot->unit;
    for (size_t i = 0; good && i < plot->series_count; i++)
        good = plot->series[i].count && plot->series[i].count <= CLI_PLOT_LABELS_MOST;
    return good ? TOKMAP_OK
                : error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                            "a picture has from 1 to %d series of 1 to %d points; leave some out", CLI_PLOT_SERIES_MOST,
                            CLI_PLOT_LABELS_MOST);
}

/* ---- gnuplot ---- */

/* Finds the program in the first folder of PATH that has it. Returns false if none has. */
static bool gnuplot_find(char path[PATH_MOST])
{
    const char *folders = getenv("PATH");
    folders = folders ? folders : "/usr/local/bin:/usr/bin:/bin";
    for (const char *at = folders; *at;) {
        const size_t length = strcspn(at, ":");
        struct os_stat stat;
        const int bytes = snprintf(path, PATH_MOST, "%.*s/gnuplot", (int)length, at);
        if (length && bytes > 0 && bytes < PATH_MOST && !os_stat(path, &stat) && stat.kind == OS_KIND_FILE)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

enum tokmap_status cli_plot_possible(struct tokmap_error *error)
{
    char path[PATH_MOST];
    return gnuplot_find(path)
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                           "pictures are drawn by the program gnuplot, which is not in the folders of PATH; install "
                           "it, on Debian and Ubuntu with: apt-get install gnuplot-nox");
}

static int output_read(const struct os_child *child, struct bytes_buffer *into)
{
    size_t got = 0;
    int system;
    do {
        system = bytes_reserve(into, 65536) ? os_read(child->output, into->bytes + into->count, 65536, &got) : ENOMEM;
        into->count += system ? 0 : got;
    } while (!system && got && into->count <= PICTURE_MOST);
    return system || into->count <= PICTURE_MOST ? system : EFBIG;
}

/* Runs gnuplot and reads the picture. */
static enum tokmap_status gnuplot_run(const struct bytes_buffer *script, struct bytes_buffer *picture,
                                      struct tokmap_error *error)
{
    static const char *const arguments[] = {"gnuplot", "-d", NULL}; /* -d: without the user's settings */
    char path[PATH_MOST];
    struct os_child child;
    int status = 0;
    if (!gnuplot_find(path))
        return cli_plot_possible(error);
    int system = os_child_start_fed(&child, path, arguments, true, script->bytes, script->count);
    if (system)
        return error_set_system(error, system, "gnuplot", TOKMAP_NO_OFFSET, "the program cannot be started");
    const int reading = output_read(&child, picture);
    if (reading)
        os_child_stop(&child);
    while ((system = os_child_wait(&child, &status)) == EINTR)
        os_child_stop(&child);
    if (os_signal_caught())
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET,
                         "a signal ended the drawing of a picture");
    if (reading || system)
        return error_set_system(error, reading ? reading : system, "gnuplot", TOKMAP_NO_OFFSET,
                                "the picture cannot be read from the program");
    if (status || picture->count < 100)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "gnuplot ended with exit status %d and %zu bytes of a picture; pictures need gnuplot 5.2 or "
                         "newer, with the terminals svg and pngcairo (package gnuplot-nox)",
                         status, picture->count);
    return TOKMAP_OK;
}

/* ---- SVG ---- */

static bool put(struct bytes_buffer *into, const char *text)
{
    return bytes_append(into, text, strlen(text));
}

/* Writes the rules for dark pages: for each color, in the spellings that gnuplot uses. */
static bool style_put(struct bytes_buffer *into)
{
    bool done = put(into, "<style>@media (prefers-color-scheme: dark) {\n"
                          "[stroke='black'] { stroke: #e6edf3 } [fill='black'] { fill: #e6edf3 } "
                          "[color='black'] { color: #e6edf3 }\n");
    for (size_t i = 0; i < SHADES && done; i++) {
        static const char *const attributes[] = {"stroke", "fill", "color"};
        const unsigned red = shades[i].light >> 16, green = shades[i].light >> 8 & 255, blue = shades[i].light & 255;
        for (size_t a = 0; a < 3; a++) {
            const char *name = attributes[a];
            char rule[512];
            (void)snprintf(rule, sizeof rule,
                           "[%s='rgb(%3u, %3u, %3u)'], [%s='rgb(%u,%u,%u)'], [%s='#%06x'], [%s='#%06X'] "
                           "{ %s: #%06x }\n",
                           name, red, green, blue, name, red, green, blue, name, shades[i].light, name, shades[i].light,
                           name, shades[i].dark);
            done = done && put(into, rule);
        }
    }
    return done && put(into, "}</style>\n");
}

static bool escaped_put(struct bytes_buffer *into, const char *text)
{
    bool done = true;
    for (; *text && done; text++)
        done = *text == '&'                 ? put(into, "&amp;")
               : *text == '<'               ? put(into, "&lt;")
               : (unsigned char)*text < ' ' ? put(into, " ")
                                            : bytes_append(into, text, 1);
    return done;
}

/* Copies what gnuplot wrote: with the title and the style after the first tag, without the titles of its own, which
 * browsers show over the curves. */
static bool svg_complete(const struct cli_plot *plot, const struct bytes_buffer *drawn, struct bytes_buffer *into)
{
    const char *text = (const char *)drawn->bytes, *end = text + drawn->count;
    const char *head = memmem(text, drawn->count, "<svg", 4);
    const char *body = head ? memchr(head, '>', (size_t)(end - head)) : NULL;
    if (!body)
        return false;
    bool done = bytes_append(into, text, (size_t)(body + 1 - text)) && put(into, "\n<title>");
    done = done && escaped_put(into, plot->title) && put(into, "</title>\n") && style_put(into);
    for (const char *at = body + 1; at < end && done;) {
        const size_t left = (size_t)(end - at);
        const char *close =
            *at == '<' && left > 7 && !memcmp(at, "<title>", 7) ? memmem(at, left, "</title>", 8) : NULL;
        if (close) {
            at = close + 8;
            continue;
        }
        done = bytes_append(into, at++, 1);
    }
    return done;
}

/* ---- what is public ---- */

enum tokmap_status cli_plot_render(const struct cli_plot *plot, enum cli_plot_format format, struct bytes_buffer *into,
                                   struct tokmap_error *error)
{
    struct bytes_buffer script = {0}, drawn = {0};
    enum tokmap_status status = plot_check(plot, error);
    if (!status)
        status = plot_script_make(plot, format, &script, error);
    if (!status)
        status = gnuplot_run(&script, &drawn, error);
    bool memory = true;
    if (!status)
        memory =
            format == CLI_PLOT_SVG ? svg_complete(plot, &drawn, into) : bytes_append(into, drawn.bytes, drawn.count);
    bytes_free(&script);
    bytes_free(&drawn);
    return status || memory ? status : error_set_memory(error, "a picture", 0);
}

enum tokmap_status cli_plot_write(const struct cli_plot *plot, const char *path, struct tokmap_error *error)
{
    struct bytes_buffer picture = {0};
    enum cli_plot_format format = CLI_PLOT_SVG;
    if (!cli_plot_format_of(path, &format))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                         "the name of a picture ends in .svg or .png; choose another one");
    enum tokmap_status status = cli_plot_render(plot, format, &picture, error);
    if (!status)
        status = cli_output_folder(path, error);
    if (!status)
        status = cli_file_write(path, picture.bytes, picture.count, error);
    bytes_free(&picture);
    return status;
}
