/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <assert.h>

#include "common/bytes.h"
#include "numbers.h"
#include "platform/os.h"

#define DRAW_NS 166666667u                    /* 6 times a second */
#define FIRST_NS 300000000u                   /* work that ends sooner shows no progress */
#define PLAIN_NS ((uint64_t)60 * 1000000000u) /* a log gets a line a minute, also the first one */

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit, uint64_t total, int mode)
{
    assert(what && mode >= CLI_PROGRESS_AUTO && mode <= CLI_PROGRESS_PLAIN);
    const bool terminal = os_is_terminal(fileno(stderr));
    *progress = (struct cli_progress){.what = what,
                                      .unit = unit,
                                      .total = total,
                                      .active = mode != CLI_PROGRESS_NONE,
                                      .plain = mode == CLI_PROGRESS_PLAIN || !terminal,
                                      .started_ns = os_clock_ns(),
                                      .clock = os_clock_ns,
                                      .file = stderr};
}

static const char *amount(const struct cli_progress *progress, double number, char text[32])
{
    /* A rate of more than 2^63 is not meant seriously, but must convert. */
    const uint64_t whole = number < 9e18 ? (uint64_t)number : (uint64_t)9e18;
    return progress->unit ? cli_count(whole, text) : cli_bytes(whole, text);
}

/* Writes the line without its end. A line of a log is read out of its context, so that it names the time that has
 * passed, too. */
static size_t line_write(const struct cli_progress *progress, uint64_t done, double seconds, char *line, size_t size)
{
    const double rate = seconds > 0 ? (double)done / seconds : 0;
    const char *unit = progress->unit ? progress->unit : "", *space = progress->unit ? " " : "";
    char a[32], b[32], c[32], d[32], e[32];
    const char *passed = cli_duration(seconds, e);
    int length;
    (void)amount(progress, rate, c);
    if (progress->total) {
        const uint64_t within = min64(done, progress->total);
        (void)cli_duration(rate > 0 ? (double)(progress->total - within) / rate : -1.0, d);
        length = snprintf(line, size, "%s  %3.0f%%  %s of %s%s%s  %s%s%s/s%s%s  %s left", progress->what,
                          100.0 * (double)within / (double)progress->total, amount(progress, (double)done, a),
                          amount(progress, (double)progress->total, b), space, unit, c, space, unit,
                          progress->plain ? "  after " : "", progress->plain ? passed : "", d);
    } else {
        length = snprintf(line, size, "%s  %s%s%s  %s%s%s/s  %s%s", progress->what, amount(progress, (double)done, a),
                          space, unit, c, space, unit, progress->plain ? "after " : "", passed);
    }
    return min64((uint64_t)length, size - 1);
}

void cli_progress_update(struct cli_progress *progress, uint64_t done)
{
    char line[256];
    if (!progress->active)
        return;
    const uint64_t now = progress->clock();
    const uint64_t first = progress->plain ? PLAIN_NS : FIRST_NS, pause = progress->plain ? PLAIN_NS : DRAW_NS;
    if (now - progress->started_ns < first || (progress->drawn_ns && now - progress->drawn_ns < pause))
        return;
    const size_t length = line_write(progress, done, (double)(now - progress->started_ns) * 1e-9, line, sizeof line);
    if (progress->plain) {
        (void)fprintf(progress->file, "%s\n", line);
    } else {
        /* A line that wraps could not be redrawn, so it is cut. */
        const size_t columns = progress->columns ? progress->columns : os_terminal_columns(fileno(stderr));
        line[length < columns ? length : columns - 1] = '\0';
        (void)fprintf(progress->file, "\r%s\033[K", line);
        progress->shown = true;
    }
    (void)fflush(progress->file);
    progress->drawn_ns = now;
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", progress->file);
        (void)fflush(progress->file);
    }
    progress->shown = false;
}

void cli_progress_end(struct cli_progress *progress)
{
    cli_progress_clear(progress);
    progress->active = false;
}
