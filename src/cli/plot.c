/* SPDX-License-Identifier: MIT */
/*
 * plot.c - see plot.h: checks a plot, runs gnuplot, and completes the SVG that it writes.
 *
 * gnuplot's SVG has the colors of the script in each element. CSS rules win over such attributes, so one rule for each
 * color, inside a media query, makes the dark picture of the light one: [stroke='rgb(  9, 105, 218)']{stroke:#58a6ff}.
 * gnuplot writes black where the script has no color, for paths without a length.
 */
#include "plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"
#include "plot_script.h"
#include "whole_file.h"

#define PATH_MOST 4096
#define PICTURE_MOST ((size_t)64 << 20) /* bytes */

const char *cli_plot_unit_name(const char *unit)
{
    return plot_unit_name(unit);
}

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
    const size_t most = plot->kind == CLI_PLOT_LINES ? CLI_PLOT_POINTS_MOST : CLI_PLOT_LABELS_MOST;
    bool good = plot->series_count && plot->series_count <= CLI_PLOT_SERIES_MOST && plot->title && plot->unit;
    for (size_t i = 0; good && i < plot->series_count; i++)
        good = plot->series[i].count && plot->series[i].count <= most;
    return good ? TOKMAP_OK
                : error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                            "a picture has from 1 to %d series of 1 to %zu points; leave some out",
                            CLI_PLOT_SERIES_MOST, most);
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
    size_t count;
    const struct plot_shade *shades = plot_shades(&count);
    bool done = put(into, "<style>@media (prefers-color-scheme: dark) {\n"
                          "[stroke='black'] { stroke: #e6edf3 } [fill='black'] { fill: #e6edf3 } "
                          "[color='black'] { color: #e6edf3 }\n");
    for (size_t i = 0; i < count && done; i++) {
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
