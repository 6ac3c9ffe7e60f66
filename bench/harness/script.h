/* SPDX-License-Identifier: MIT */
/*
 * script.h - runs a program for minutes, reads its standard output line by line while it runs, and keeps the end of
 * what it writes to standard error for the message if it fails.
 */
#ifndef TOKMAP_BENCH_HARNESS_SCRIPT_H
#define TOKMAP_BENCH_HARNESS_SCRIPT_H

#include "harness.h"

struct script {
    const char *name;             /* for messages */
    const char *path;             /* of the program */
    const char *const *arguments; /* argv from argv[0] on, NULL last */
    /* Receives each line, without its end; may change it. Returns CLI_DONE; after CLI_FAILED, for which it has printed
     * a message, the program is ended. */
    int (*line)(void *user, char *line);
    void *user;
    double silence; /* seconds without a line after which the program is ended, and the most that it then has for its
                       end; 0: no limit */
};

/* Runs the script to its end. Returns CLI_DONE if its exit status is 0, or CLI_FAILED after a message with its last
 * lines of standard error: it cannot be started, it ended otherwise, it was silent for too long, a line has more than
 * SCRIPT_LINE bytes, or `line` failed. If the user asked to stop (bench_stopped()), the program is asked to end and has
 * ten seconds for it; CLI_FAILED is then returned without a message. */
int script_run(struct bench *bench, const struct script *script);

#define SCRIPT_LINE ((size_t)1 << 20)

#endif
