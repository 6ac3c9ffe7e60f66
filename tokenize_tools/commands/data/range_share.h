/* SPDX-License-Identifier: MIT */
/*
 * range_share.h - threads that share the items 0 to total - 1, such as the documents or tokens of a dataset, and work
 * on them lot by lot, with progress, signals, and an error that does not depend on the number of threads.
 */
#ifndef TOKMAP_COMMANDS_DATA_RANGE_SHARE_H
#define TOKMAP_COMMANDS_DATA_RANGE_SHARE_H

#include "cli/cli.h"
#include "tokmap/tokmap.h"

#define RANGE_THREADS_MOST 1024

struct range_share {
    const char *what, *unit; /* of the progress: "counting ids", "tokens" */
    uint64_t total, lot;     /* items in all, and of one call of work() */
    uint32_t threads;        /* of range_threads() */
    int progress;            /* enum cli_progress_mode */
    /* Works on the items [first, first + count). thread: below `threads`; a thread makes one call at a time. */
    enum tokmap_status (*work)(void *user, uint32_t thread, uint64_t first, uint64_t count, struct tokmap_error *error);
    void *user;
};

/* Returns the threads to use where the user asked for `asked` (0: one for each processor): at most one for each
 * lot. */
uint32_t range_threads(uint64_t asked, uint64_t total, uint64_t lot);

/* Calls work() for every lot. After a failure no further lot is begun; of several failures, that of the first lot
 * is returned, which is the same for every number of threads. Statuses: OK, ERROR_INTERRUPTED (a signal was caught, see
 * process.h), ERROR_MEMORY, those of work(). */
enum tokmap_status range_share_run(const struct range_share *share, struct tokmap_error *error);

#endif
