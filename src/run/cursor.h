/* SPDX-License-Identifier: MIT */
/* cursor.h - what the public functions on cursors do, for arguments that are not NULL. */
#ifndef TOKMAP_RUN_CURSOR_H
#define TOKMAP_RUN_CURSOR_H

#include "tokmap/tokmap.h"

/* Fills the cursor of the first delivered step from `step` on, which is at most the run's end. */
void run_cursor(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor);

/* Reports that a step is past the end of the run. */
enum tokmap_status run_past_the_end(const struct tokmap_run *run, uint64_t step, struct tokmap_error *error);

/* Statuses: those of tokmap_run_check_cursor(). */
enum tokmap_status run_check_cursor(const struct tokmap_run *run, const struct tokmap_cursor *cursor,
                                    struct tokmap_error *error);

/* Statuses: those of tokmap_cursor_parse(). */
enum tokmap_status cursor_parse(struct tokmap_cursor *cursor, const char *text, struct tokmap_error *error);

#endif
