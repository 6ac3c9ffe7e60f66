#include "progress.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "numbers.h"
#include "platform/os.h"

#define DRAW_NS 166666667u  /* 6 times a second */
#define FIRST_NS 300000000u /* work that ends sooner shows no progress */

void cli_progress_start(struct cli_progress *progress, const char *what, uint64_t total, bool quiet)
{
    assert(what);
    memset(progress, 0, sizeof *progress);
    progress->what = what;
    progress->total = total;
    if (!quiet && os_is_terminal(fileno(stderr)))
        progress->started_ns = os_clock_ns();
}

static const char *amount(const struct cli_progress *progress, uint64_t number, char text[32])
{
    return progress->unit ? cli_count(number, text) : cli_bytes(number, text);
}

void cli_progress_update(struct cli_progress *progress, uint64_t done)
{
    if (!progress->started_ns)
        return;
    const uint64_t now = os_clock_ns();
    if (now - progress->started_ns < FIRST_NS || (progress->shown && now - progress->drawn_ns < DRAW_NS))
        return;
    const double seconds = (double)(now - progress->started_ns) * 1e-9;
    const double rate = (double)done / seconds;
    const char *unit = progress->unit ? progress->unit : "";
    const char *space = progress->unit ? " " : "";
    char line[256], a[32], b[32], c[32], d[32];
    size_t length;
    if (progress->total)
        length = (size_t)snprintf(
            line, sizeof line, "%s  %3.0f%%  %s of %s%s%s  %s%s%s/s  %s left", progress->what,
            100.0 * (double)min64(done, progress->total) / (double)progress->total, amount(progress, done, a),
            amount(progress, progress->total, b), space, unit, amount(progress, (uint64_t)rate, c), space, unit,
            cli_seconds(rate > 0 ? (double)(progress->total - min64(done, progress->total)) / rate : -1.0, d));
    else
        length =
            (size_t)snprintf(line, sizeof line, "%s  %s%s%s  %s%s%s/s  %s", progress->what, amount(progress, done, a),
                             space, unit, amount(progress, (uint64_t)rate, c), space, unit, cli_seconds(seconds, d));
    /* A line that wraps could not be redrawn, so it is cut. */
    const size_t columns = os_terminal_columns(fileno(stderr));
    length = length < sizeof line ? length : sizeof line - 1;
    line[length < columns ? length : columns - 1] = '\0';
    (void)fprintf(stderr, "\r%s\033[K", line);
    (void)fflush(stderr);
    progress->shown = true;
    progress->drawn_ns = now;
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
    progress->shown = false;
    progress->started_ns = 0;
}
