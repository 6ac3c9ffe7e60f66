/* progress.h - a line on standard error that shows how far a command has come. */
#ifndef TOKMAP_CLI_PROGRESS_H
#define TOKMAP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    const char *what; /* "packing" */
    const char *unit; /* what is counted: NULL for bytes, else a word such as "windows"; set it after the start */
    uint64_t total;   /* in units, 0 if unknown */
    bool shown;
    uint64_t started_ns, drawn_ns; /* started_ns is 0 if nothing is to be shown */
};

/* Begins. Nothing is ever shown if `quiet` is true or if standard error is not a terminal. */
void cli_progress_start(struct cli_progress *progress, const char *what, uint64_t total, bool quiet);
/* Shows what is done, the share, the rate, and the time left. It draws at most 6 times a second and may be called as
 * often as progress is made, by any thread, but by one thread at a time. */
void cli_progress_update(struct cli_progress *progress, uint64_t done);
/* Clears the line. */
void cli_progress_end(struct cli_progress *progress);

#endif
