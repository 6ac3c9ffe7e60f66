/* SPDX-License-Identifier: MIT */
/*
 * plot.c - see plot.h: writes the script of a plot, runs gnuplot, and completes the SVG that it writes.
 *
 * gnuplot's SVG has the colors of the script in each element. CSS rules win over such attributes, so one rule for each
 * color, inside a media query, makes the dark picture of the light one: [stroke='rgb(  9, 105, 218)']{stroke:#58a6ff}.
 * gnuplot writes black where the script has no color, for paths without a length.
 *
 * Bars are gnuplot's style boxxyerror, which draws a box between four numbers in the coordinates of the axes. Group i
 * is at i, and the bars of its series divide the space from i - 0.4 to i + 0.4. Example: with two series, the bars of
 * group 3 are at 2.6 to 3 and 3 to 3.4. The style for clusters that gnuplot has (histograms) draws no horizontal bars,
 * and no spread where a value is missing.
 */
#include "plot.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/visible.h"
#include "format/name_files.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

/* ---- colors ---- */

enum { BACK, TEXT, MUTED, GRID, SPREAD, LIMIT, FIRST };
static const struct shade {
    unsigned light, dark; /* 0xrrggbb: on light pages, and what takes its place on dark ones */
} shades[] = {
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

/* ---- texts ---- */

/* Writes a text as one quoted string of gnuplot. Between single quotes gnuplot replaces nothing: no command between
 * backquotes, no macro after '@', no escape after a backslash; only a quote ends the string. A quote in the text
 * becomes a typographic one (U+2019), because gnuplot does not read a doubled quote everywhere. What is not plain
 * becomes visible, so a line end does not end the command. format: the string is one in which gnuplot replaces % (a
 * label of a tick). most: characters after which the text is cut, and ends in "...". */
static void quote(FILE *script, const char *text, bool format, size_t most)
{
    const size_t count = strlen(text);
    size_t shown = 0;
    (void)fputc('\'', script);
    for (size_t at = 0, step; at < count; at += step, shown++) {
        char form[4 * VISIBLE_MOST + 1];
        bool plain;
        step = visible_step(text + at, count - at, &plain);
        if (shown == most) {
            (void)fputs("...", script);
            break;
        }
        (void)visible_copy(form, sizeof form, text + at, step, "");
        if (text[at] == '%' && format)
            (void)fputc('%', script);
        (void)fputs(text[at] == '\'' ? "\u2019" : form, script);
    }
    (void)fputc('\'', script);
}
#define ALL SIZE_MAX

static size_t characters(const char *text)
{
    const size_t count = strlen(text);
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
    const char *of; /* names an axis */
} units[] = {
    {"ns", 1e-9, "s", "time"},
    {"us", 1e-6, "s", "time"},
    {"ms", 1e-3, "s", "time"},
    {"s", 1, "s", "time"},
    {"MB/s", 1e6, "B/s", "bytes a second"},
    {"GB/s", 1e9, "B/s", "bytes a second"},
    {"bytes", 1, "B", "bytes"},
    {"s/Mtoken", 1, "s", "time for a million tokens"},
};

static struct unit unit_of(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(units[i].name, name))
            return units[i];
    return (struct unit){name, 1, NULL, !strcmp(name, "1") || !*name ? "number" : name};
}

const char *plot_unit_name(const char *unit)
{
    return unit_of(unit).of;
}

/* Returns true for a unit of which 0.001 or 1000 is written as it is. Other units are names of what is counted: 12 M
 * (tokens/s). */
static bool unit_is_plain(const char *name)
{
    static const char *const plain[] = {"%", "x", "1", "MiB", "KiB", ""};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (!strcmp(plain[i], name))
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
    const double size = fabs(value);
    const size_t last = small && size > 0 ? sizeof prefixes / sizeof prefixes[0] - 1 : 5;
    size_t i = 0;
    while (i < last && size < prefixes[i].factor * 0.9995)
        i++;
    *factor = prefixes[i].factor;
    return prefixes[i].prefix;
}

/* Writes a value with an SI prefix, for people. A unit such as "us" is written, as in "340 us" and "1.25 ms"; the name
 * of what is counted is not: 1.25e9 tokens/s are "1.25 G". */
#define VALUE 48 /* bytes */
static const char *value_text(double value, const char *unit, char text[VALUE])
{
    const struct unit found = unit_of(unit);
    double factor = 1;
    const char *prefix = unit_is_plain(unit) ? "" : prefix_of(value * found.factor, found.base != NULL, &factor);
    const double shown = value * found.factor / factor;
    const char *base = found.base ? found.base : unit_is_plain(unit) && strcmp(unit, "1") != 0 ? unit : "";
    const double size = fabs(shown);
    const int decimals = shown == floor(shown) || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    const char *space = *prefix || *base ? " " : "";
    if (size >= 1e6 || (size > 0 && size < 0.01))
        (void)snprintf(text, VALUE, "%.3g%s%s%s", shown, space, prefix, base);
    else
        (void)snprintf(text, VALUE, "%.*f%s%s%s", decimals, shown, space, prefix, base);
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
    FILE *script;
    const struct plot *plot;
    double height, left, top, bottom; /* of the picture; the margins around the axes, in pixels */
    double wide;                      /* the share of a group that a bar has */
    double scale;                     /* of the values in the script */
    double low, high;                 /* the axis of the values, scaled */
    char format[64];                  /* of its ticks */
};

static bool has_spread(const struct plot_point *point)
{
    return isfinite(point->low) && isfinite(point->high) && point->low <= point->y && point->y <= point->high &&
           point->low < point->high;
}

static bool drawn(const struct frame *frame, const struct plot_point *point)
{
    return isfinite(point->y) && (!frame->plot->log_y || point->y > 0);
}

/* Finds the axis of the values: its ends, where bars need a beginning, and the longest one room for the number after
 * it, and the prefix of its ticks. */
static void axis_find(struct frame *frame)
{
    const struct plot *plot = frame->plot;
    const struct unit unit = unit_of(plot->unit);
    const char *base = unit.base ? unit.base : strcmp(plot->unit, "%") == 0 ? "%%" : "";
    const double room = 0.2;
    double largest = -(double)INFINITY, smallest = (double)INFINITY, factor = 1;
    for (size_t i = 0; i < plot->series_count; i++)
        for (size_t j = 0; j < plot->labels; j++) {
            const struct plot_point *point = &plot->series[i].points[j];
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
    frame->scale = unit.factor / factor;
    largest *= frame->scale;
    smallest *= frame->scale;
    if (plot->log_y && !unit_is_plain(plot->unit))
        (void)snprintf(frame->format, sizeof frame->format, "%%.0s %%c%s", base);
    else
        (void)snprintf(frame->format, sizeof frame->format, "%%g%s%s%s", *prefix || *base ? " " : "", prefix, base);
    frame->low = smallest < 0 ? smallest * (1 + room) : 0;
    frame->high = largest > 0 ? largest * (1 + room) : 1;
    if (!plot->log_y)
        return;
    frame->low = pow(10, floor(log10(smallest * 0.7)));
    frame->high = largest * pow(largest / frame->low, room);
}

static size_t note_lines(const struct plot *plot)
{
    size_t lines = 0;
    for (size_t i = 0; i < plot->note_count; i++)
        lines += (characters(plot->notes[i]) + NOTE_MOST - 1) / NOTE_MOST;
    return lines < NOTE_LINES ? lines : NOTE_LINES;
}

/* Finds the margins and the height. */
static void frame_find(struct frame *frame)
{
    const struct plot *plot = frame->plot;
    const double bars = (double)plot->series_count;
    size_t longest = 0;
    for (size_t i = 0; i < plot->labels; i++) {
        const size_t count = characters(plot->series[0].points[i].label);
        longest = count > longest ? count : longest;
    }
    longest = longest < LABEL_MOST ? longest : LABEL_MOST;
    frame->wide = 0.8 / bars;
    frame->top = 64 + (plot->series_count > 1 ? 28 : 0);
    frame->bottom = 34 + 24 + LINE * (double)note_lines(plot) + 10;
    frame->left = 26 + CHARACTER * (double)longest;
    frame->height = frame->top + frame->bottom + (double)plot->labels * (bars * BAR_PIXELS + (bars > 1 ? 12 : 9)) + 6;
}

/* ---- the script ---- */

static void text_at(const struct frame *frame, int number, const char *text, size_t most, double y, size_t color,
                    const char *font)
{
    (void)fprintf(frame->script, "set label %d ", number);
    quote(frame->script, text, false, most);
    (void)fprintf(frame->script, " at screen %.5f,%.5f left front textcolor rgb '#%06x' font '%s'\n", 14.0 / WIDTH,
                  1 - y / frame->height, shades[color].light, font);
}

/* Writes the caption: each note on lines of at most NOTE_MOST characters, cut at a blank where one is near the end. */
static void notes_write(const struct frame *frame, int number)
{
    size_t lines = note_lines(frame->plot);
    double y = frame->height - 10 - LINE * (double)(lines - 1);
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
            text_at(frame, number++, line, ALL, y, MUTED, ",10");
            note += bytes;
            left -= bytes;
            lines--;
            y += LINE;
        }
    }
}

static void head_write(const struct frame *frame, enum plot_format format)
{
    const struct plot *plot = frame->plot;
    FILE *script = frame->script;
    const int height = (int)frame->height;
    const bool svg = format == PLOT_SVG;
    (void)fprintf(script, "set terminal %s size %d,%d %s background rgb '#%06x'\n", svg ? "svg" : "pngcairo",
                  svg ? WIDTH : 2 * WIDTH, svg ? height : 2 * height,
                  svg ? "fixed noenhanced font 'DejaVu Sans,sans-serif,12'"
                      : "noenhanced font 'DejaVu Sans,12' fontscale 1.6 linewidth 2 pointscale 2",
                  shades[BACK].light);
    (void)fprintf(script, "set output\nset tmargin at screen %.5f\nset bmargin at screen %.5f\n",
                  1 - frame->top / frame->height, frame->bottom / frame->height);
    (void)fprintf(script, "set lmargin at screen %.5f\nset rmargin at screen %.5f\n", frame->left / WIDTH,
                  1 - RIGHT / WIDTH);
    text_at(frame, 1, plot->title, 90, 26, TEXT, ",15");
    text_at(frame, 2, plot->subtitle, 140, 47, MUTED, ",11");
    notes_write(frame, 3);
    if (plot->series_count > 1)
        (void)fprintf(script,
                      "set key at screen %.5f,%.5f left top horizontal Left reverse samplen 1.5 width 1 textcolor rgb "
                      "'#%06x' font ',11'\n",
                      8.0 / WIDTH, 1 - (frame->top - 28) / frame->height, shades[TEXT].light);
    else
        (void)fputs("unset key\n", script);
    (void)fputs("set border 0\nset style fill solid 1 noborder\nset errorbars 0.6\n", script);
}

/* Writes the axis of the names of groups, and the axis of the values. */
static void axes_write(const struct frame *frame)
{
    const struct plot *plot = frame->plot;
    FILE *script = frame->script;
    (void)fprintf(script, "set xtics nomirror scale 0 textcolor rgb '#%06x'\n", shades[MUTED].light);
    (void)fprintf(script, "set ytics nomirror scale 0 textcolor rgb '#%06x' (", shades[TEXT].light);
    for (size_t i = 0; i < plot->labels; i++) {
        quote(script, plot->series[0].points[i].label, true, LABEL_MOST);
        (void)fprintf(script, " %zu%s", i, i + 1 < plot->labels ? ", " : "");
    }
    (void)fprintf(script, ")\nset yrange [%.3f:-0.6]\n", (double)plot->labels - 0.4);
    if (plot->log_y)
        (void)fputs("set logscale x\n", script);
    (void)fprintf(script, "set xrange [%.9g:%.9g]\nset format x '%s'\n", frame->low, frame->high, frame->format);
    (void)fprintf(script, "set grid xtics linetype 1 linewidth 1 linecolor rgb '#%06x'\nset xlabel ",
                  shades[GRID].light);
    quote(script, plot_unit_name(plot->unit), false, 80);
    (void)fprintf(script, " textcolor rgb '#%06x'\n", shades[MUTED].light);
}

/* Returns where the middle of a bar is across its group. */
static double middle_of(const struct frame *frame, size_t series, size_t label)
{
    return (double)label - 0.4 + frame->wide * ((double)series + 0.5);
}

/* Writes the number after each bar. */
static void values_write(const struct frame *frame)
{
    const struct plot *plot = frame->plot;
    int number = 100;
    for (size_t i = 0; i < plot->series_count; i++)
        for (size_t j = 0; j < plot->labels; j++) {
            const struct plot_point *point = &plot->series[i].points[j];
            char text[VALUE];
            if (!isfinite(point->y))
                continue;
            double end = fmax(0, has_spread(point) ? point->high : point->y);
            if (!drawn(frame, point)) /* 0 on a logarithmic axis: a number without a bar */
                end = frame->low / frame->scale;
            (void)fprintf(frame->script, "set label %d ", number++);
            quote(frame->script, value_text(point->y, plot->unit, text), false, ALL);
            (void)fprintf(
                frame->script, " at first %.9g,%.6f left offset 0.7,0 front textcolor rgb '#%06x' font ',10'\n",
                end * frame->scale, middle_of(frame, i, j), shades[plot->series[i].limit ? MUTED : TEXT].light);
        }
}

/* Writes the numbers of a series. A bar: where it is, its value, its ends across, its ends along. A spread: where it
 * is, the value, and its ends. */
static void boxes_write(const struct frame *frame, size_t number)
{
    const struct plot *plot = frame->plot;
    const struct plot_point *points = plot->series[number].points;
    const double base = plot->log_y ? frame->low : 0;
    (void)fprintf(frame->script, "$box%zu << EOD\n", number);
    for (size_t i = 0; i < plot->labels; i++) {
        const double middle = middle_of(frame, number, i), half = 0.46 * frame->wide, y = points[i].y * frame->scale;
        if (drawn(frame, &points[i]))
            (void)fprintf(frame->script, "%.6f %.9g %.6f %.6f %.9g %.9g\n", middle, y, middle - half, middle + half,
                          base, y);
    }
    (void)fprintf(frame->script, "EOD\n$spread%zu << EOD\n", number);
    for (size_t i = 0; i < plot->labels; i++)
        if (drawn(frame, &points[i]) && has_spread(&points[i]))
            (void)fprintf(frame->script, "%.6f %.9g %.9g %.9g\n", middle_of(frame, number, i),
                          points[i].y * frame->scale, fmax(points[i].low * frame->scale, frame->low),
                          points[i].high * frame->scale);
    (void)fputs("EOD\n", frame->script);
}

/* Returns whether a series has a point that is drawn; gnuplot refuses to plot data without any. */
static bool series_drawn(const struct frame *frame, const struct plot_series *series, bool spread)
{
    for (size_t i = 0; i < frame->plot->labels; i++)
        if (drawn(frame, &series->points[i]) && (!spread || has_spread(&series->points[i])))
            return true;
    return false;
}

/* Writes the command that draws the numbers; without anything to draw, the axes alone. */
static void command_write(const struct frame *frame)
{
    const struct plot *plot = frame->plot;
    FILE *script = frame->script;
    const char *separator = "plot ";
    for (size_t i = 0; i < plot->series_count; i++) {
        const struct plot_series *series = &plot->series[i];
        if (!series_drawn(frame, series, false))
            continue;
        const size_t color = series->limit ? LIMIT : FIRST + i % (SHADES - FIRST);
        (void)fprintf(script, "%s$box%zu using 2:1:5:6:3:4 with boxxyerror linecolor rgb '#%06x' title ", separator, i,
                      shades[color].light);
        quote(script, series->name, false, 40);
        separator = ", ";
    }
    for (size_t i = 0; i < plot->series_count; i++)
        if (series_drawn(frame, &plot->series[i], true))
            (void)fprintf(script,
                          ", $spread%zu using 2:1:3:4 with xerrorbars pointtype 0 linewidth 1.3 linecolor rgb '#%06x' "
                          "notitle",
                          i, shades[SPREAD].light);
    (void)fputs(separator[0] == 'p' ? "plot NaN notitle\n" : "\n", script);
}

static void script_write(const struct plot *plot, enum plot_format format, FILE *script)
{
    struct frame frame = {.script = script, .plot = plot};
    axis_find(&frame);
    frame_find(&frame);
    head_write(&frame, format);
    axes_write(&frame);
    values_write(&frame);
    for (size_t i = 0; i < plot->series_count; i++)
        boxes_write(&frame, i);
    command_write(&frame);
}

/* ---- gnuplot ---- */

/* Opens a file without a name in a folder, which has the script: gnuplot alone reads it, and never waits for it.
 * Returns an errno. */
static int script_open(const struct plot *plot, enum plot_format format, const char *folder, int *fd)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *script = open_memstream(&text, &bytes);
    if (script)
        script_write(plot, format, script);
    int system = !script || fclose(script) ? ENOMEM : os_open(folder, OS_WRITE_UNNAMED, fd);
    if (!system && (system = os_pwrite(*fd, text, bytes, 0)))
        os_close(*fd);
    free(text);
    return system;
}

/* Runs gnuplot and reads what it draws: a plot, whose script is in a file in the folder for a while, or nothing if that
 * is NULL. */
static enum tokmap_status gnuplot_run(const struct plot *plot, enum plot_format format, const char *folder,
                                      struct bytes_buffer *picture, struct tokmap_error *error)
{
    /* -d: without the user's settings */
    static const char *const arguments[] = {"sh", "-c", "command -v gnuplot >/dev/null || exit 127; exec gnuplot -d",
                                            NULL};
    struct os_child child;
    int status = 0, reading = 0, script = -1;
    int system = plot ? script_open(plot, format, folder, &script) : os_open("/dev/null", OS_READ_NOW, &script);
    if (!system) {
        system = os_child_start_reading(&child, "/bin/sh", arguments, true, script);
        os_close(script);
    }
    if (system)
        return error_set_system(error, system, "gnuplot", TOKMAP_NO_OFFSET, "the program cannot be given its script");
    for (size_t got = 1; got && !reading; picture->count += reading ? 0 : got)
        reading = bytes_reserve(picture, 65536) ? os_read(child.output, picture->bytes + picture->count, 65536, &got)
                                                : ENOMEM;
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
    if (status == 127)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                         "pictures are drawn by the program gnuplot, which is not in the folders of PATH; install it, "
                         "on Debian and Ubuntu with: apt-get install gnuplot-nox");
    if (status || (plot && picture->count < 100))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "gnuplot ended with exit status %d and %zu bytes of a picture; pictures need gnuplot 5.2 or "
                         "newer, with the terminals svg and pngcairo (package gnuplot-nox)",
                         status, picture->count);
    return TOKMAP_OK;
}

/* ---- SVG ---- */

/* Writes the rules for dark pages: for each color, in the spellings that gnuplot uses. */
static void style_write(FILE *into)
{
    static const char *const attributes[] = {"stroke", "fill", "color"};
    (void)fputs("<style>@media (prefers-color-scheme: dark) {\n"
                "[stroke='black'] { stroke: #e6edf3 } [fill='black'] { fill: #e6edf3 } "
                "[color='black'] { color: #e6edf3 }\n",
                into);
    for (size_t i = 0; i < SHADES; i++) {
        const unsigned light = shades[i].light, red = light >> 16, green = light >> 8 & 255, blue = light & 255;
        for (size_t a = 0; a < 3; a++) {
            const char *name = attributes[a];
            (void)fprintf(into,
                          "[%s='rgb(%3u, %3u, %3u)'], [%s='rgb(%u,%u,%u)'], [%s='#%06x'], [%s='#%06X'] "
                          "{ %s: #%06x }\n",
                          name, red, green, blue, name, red, green, blue, name, light, name, light, name,
                          shades[i].dark);
        }
    }
    (void)fputs("}</style>\n", into);
}

static void escaped_write(const char *text, FILE *into)
{
    for (; *text; text++)
        if (*text == '&' || *text == '<')
            (void)fputs(*text == '&' ? "&amp;" : "&lt;", into);
        else
            (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, into);
}

/* Copies what gnuplot wrote: with the title and the style after the first tag, without the titles of its own, which
 * browsers show over the bars. */
static void svg_write(const struct plot *plot, const struct bytes_buffer *picture, FILE *into)
{
    const char *at = (const char *)picture->bytes, *end = at + picture->count;
    const char *head = memmem(at, picture->count, "<svg", 4);
    const char *body = head ? memchr(head, '>', (size_t)(end - head)) : NULL;
    if (body) {
        (void)fwrite(at, 1, (size_t)(body + 1 - at), into);
        (void)fputs("\n<title>", into);
        escaped_write(plot->title, into);
        (void)fputs("</title>\n", into);
        style_write(into);
        at = body + 1;
    }
    while (at < end) {
        const char *title = memmem(at, (size_t)(end - at), "<title>", 7);
        const char *close = title ? memmem(title, (size_t)(end - title), "</title>", 8) : NULL;
        (void)fwrite(at, 1, (size_t)((close ? title : end) - at), into);
        at = close ? close + 8 : end;
    }
}

/* ---- what is public ---- */

enum tokmap_status plot_possible(struct tokmap_error *error)
{
    struct bytes_buffer nothing = {0};
    const enum tokmap_status status = gnuplot_run(NULL, PLOT_SVG, NULL, &nothing, error);
    bytes_free(&nothing);
    return status;
}

enum tokmap_status bench_file_write(const char *path, const void *bytes, size_t count, struct tokmap_error *error)
{
    char *partial = path_ended(path, ".partial");
    int fd = -1, system = partial ? os_unlink(partial) : ENOMEM; /* of a program that was killed */
    if (!system || system == ENOENT)
        system = os_open(partial, OS_WRITE_NEW, &fd);
    if (!system && !(system = os_pwrite(fd, bytes, count, 0)))
        system = name_file(fd, partial, path, true, NULL);
    if (fd >= 0) {
        os_close(fd);
        if (system)
            (void)os_unlink(partial);
    }
    free(partial);
    return system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the file cannot be written") : TOKMAP_OK;
}

enum tokmap_status plot_write(const struct plot *plot, enum plot_format format, const char *path,
                              struct tokmap_error *error)
{
    struct bytes_buffer picture = {0};
    char *folder = path_folder(path), *text = NULL;
    size_t bytes = 0;
    enum tokmap_status status =
        folder ? gnuplot_run(plot, format, folder, &picture, error) : error_set_memory(error, "a path", 0);
    FILE *svg = status || format != PLOT_SVG ? NULL : open_memstream(&text, &bytes);
    if (svg)
        svg_write(plot, &picture, svg);
    if (!status && format == PLOT_SVG && (!svg || fclose(svg)))
        status = error_set_memory(error, "a picture", picture.count);
    if (!status)
        status = bench_file_write(path, text ? text : (const char *)picture.bytes, text ? bytes : picture.count, error);
    bytes_free(&picture);
    free(folder);
    free(text);
    return status;
}
