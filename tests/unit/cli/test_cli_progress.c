/* SPDX-License-Identifier: MIT */
/* Progress: with a clock that the test sets, what is printed, and when. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static uint64_t now_ns;

static uint64_t test_clock(void)
{
    return now_ns;
}

static char *text;
static size_t length;

/* Begins with the test's clock at 0 and output that goes to `text`. plain: as where standard error is not a terminal.
 */
static void begin(struct cli_progress *progress, uint64_t total, int mode, bool plain)
{
    cli_progress_start(progress, "packing", NULL, total, mode);
    progress->clock = test_clock;
    progress->plain = plain || mode == CLI_PROGRESS_PLAIN;
    progress->columns = 80;
    progress->file = open_memstream(&text, &length);
    assert_non_null(progress->file);
    progress->started_ns = now_ns = 0;
}

static void update_at(struct cli_progress *progress, double seconds, uint64_t done)
{
    now_ns = (uint64_t)(seconds * 1e9);
    cli_progress_update(progress, done);
}

/* Ends, and compares all that was printed. */
static void ends_with(struct cli_progress *progress, const char *wanted)
{
    cli_progress_end(progress);
    update_at(progress, 1e6, 1);
    fclose(progress->file);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_plain(void **state)
{
    struct cli_progress progress;
    /* Nothing in the first minute, then one line a minute, however often progress is made. */
    begin(&progress, 4000000000u, CLI_PROGRESS_AUTO, true);
    for (uint64_t second = 0; second <= 150; second++)
        update_at(&progress, (double)second, second * 20000000);
    update_at(&progress, 4000, 3999999999u);
    ends_with(&progress, "packing   30%  1.20 GB of 4.00 GB  20.0 MB/s  after 1 min 00 s  2 min 20 s left\n"
                         "packing   60%  2.40 GB of 4.00 GB  20.0 MB/s  after 2 min 00 s  1 min 20 s left\n"
                         "packing  100%  4.00 GB of 4.00 GB  1.00 MB/s  after 1 h 06 min  less than 1 s left\n");
    /* A total that is not known, and a unit. */
    begin(&progress, 0, CLI_PROGRESS_PLAIN, false);
    progress.unit = "windows";
    update_at(&progress, 59.9, 100);
    update_at(&progress, 90, 123400);
    ends_with(&progress, "packing  123,400 windows  1,371 windows/s  after 1 min 30 s\n");
    (void)state;
}

static void test_terminal(void **state)
{
    struct cli_progress progress;
    begin(&progress, 1000, CLI_PROGRESS_AUTO, false);
    update_at(&progress, 0.2, 100); /* too early */
    update_at(&progress, 0.5, 500);
    update_at(&progress, 0.6, 600); /* too soon after the last one */
    cli_progress_clear(&progress);
    update_at(&progress, 0.8, 1000);
    /* No time is given with more precision than it has. */
    ends_with(&progress, "\rpacking   50%  500 B of 1.00 kB  1.00 kB/s  less than 1 s left\033[K"
                         "\r\033[K"
                         "\rpacking  100%  1.00 kB of 1.00 kB  1.25 kB/s  less than 1 s left\033[K"
                         "\r\033[K");
    /* A line that would wrap is cut, and more than the total is not more than 100 percent. */
    begin(&progress, 1000, CLI_PROGRESS_AUTO, false);
    progress.columns = 20;
    update_at(&progress, 10, 2000);
    ends_with(&progress, "\rpacking  100%  2.00\033[K\r\033[K");
    (void)state;
}

static void test_none(void **state)
{
    struct cli_progress progress;
    begin(&progress, 1000, CLI_PROGRESS_NONE, false);
    update_at(&progress, 100, 500);
    ends_with(&progress, "");
    begin(&progress, 1000, true, true); /* a flag --quiet */
    update_at(&progress, 100, 500);
    ends_with(&progress, "");
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
