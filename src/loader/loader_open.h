/* SPDX-License-Identifier: MIT */
/* loader_open.h - makes a loader, for tokmap_loader_open() and for a loader that moves. */
#ifndef TOKMAP_LOADER_LOADER_OPEN_H
#define TOKMAP_LOADER_LOADER_OPEN_H

#include "loader_state.h"

/* Makes a loader that delivers nothing yet: it has neither a producer thread nor a trace. options: complete, with its
 * pointers. cursor: where it begins, whose past is checked; NULL: at options->resume.
 * Statuses: those of tokmap_loader_open(). */
enum tokmap_status loader_make(struct tokmap_loader **loader, const struct tokmap_run *run,
                               const struct tokmap_loader_options *options, const struct tokmap_cursor *cursor,
                               struct tokmap_error *error);

/* Notes the process that has opened the loader, unless a child after fork() may use it. pool: threads read for it. */
void loader_mark_process(struct tokmap_loader *loader, bool pool);

#endif
