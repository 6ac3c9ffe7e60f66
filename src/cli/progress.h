/* SPDX-License-Identifier: MIT */
/*
 * progress.h - shows on standard error how far a command has come.
 *
 * On a terminal it is one line, which is drawn again and again. Elsewhere, such as in the log of a batch system, it is
 * a line of its own once a minute, so that work that takes hours is not mute and work that takes seconds adds nothing.
 */
#ifndef TOKMAP_CLI_PROGRESS_H
#define TOKMAP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* AUTO: a line that is redrawn if standard error is a terminal, else PLAIN. PLAIN: a line once a minute. NONE is 1, so
 * that a command without the option may pass its flag --quiet. */
enum cli_progress_mode { CLI_PROGRESS_AUTO = 0, CLI_PROGRESS_NONE = 1, CLI_PROGRESS_PLAIN = 2 };

/* A row for a table of options. mode: an int that is CLI_PROGRESS_AUTO at first. */
#define CLI_OPTION_PROGRESS(mode)                                                                                      \
    {                                                                                                                  \
        0, "progress", CLI_CHOICE, &(mode), NULL, "HOW",                                                               \
            "auto (default): redraw a line on a terminal, else print a line a minute; plain: print a line a minute; "  \
            "none",                                                                                                    \
            "auto|none|plain"                                                                                          \
    }

struct cli_progress {
    const char *what; /* "packing" */
    const char *unit; /* the unit: NULL for bytes, else a word such as "windows" */
    uint64_t total;   /* in units, 0 if unknown; it may be set later */
    bool shown;       /* a line of the terminal is drawn */
    bool active, plain;
    uint64_t started_ns, drawn_ns; /* drawn_ns is 0 before the first line */
    /* Set by the start to os_clock_ns(), standard error, and 0 (ask the terminal); tests replace them. */
    uint64_t (*clock)(void);
    FILE *file;
    uint64_t columns;
};

/* Begins. The mode is one of enum cli_progress_mode; CLI_PROGRESS_NONE shows nothing. */
void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit, uint64_t total, int mode);
/* Shows what is done, the share, the rate, and the time left. It may be called as often as progress is made, by any
 * thread, but by one thread at a time; it draws at most 6 times a second, or prints once a minute. */
void cli_progress_update(struct cli_progress *progress, uint64_t done);
/* Clears the line, if one is drawn, so that a message can be printed. The next update draws it again. */
void cli_progress_clear(struct cli_progress *progress);
/* Clears the line and ends: later updates show nothing. */
void cli_progress_end(struct cli_progress *progress);

#endif
