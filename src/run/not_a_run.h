/* not_a_run.h - what a file is that was to be opened as a run, but is not a run file. */
#ifndef TOKMAP_RUN_NOT_A_RUN_H
#define TOKMAP_RUN_NOT_A_RUN_H

#include <stddef.h>

#include "tokmap/tokmap.h"

/* To be called after a path could not be opened or read as a run file. If it names something else that people mistake
 * for one (a dataset, JSON), replaces *error by a message that says what it is and what to do, and returns
 * ERROR_FORMAT. Otherwise returns `failed` and leaves *error as it is.
 *   text    the beginning of the file, `bytes` bytes; NULL if it could not be read */
enum tokmap_status not_a_run(const char *path, const char *text, size_t bytes, enum tokmap_status failed,
                             struct tokmap_error *error);

#endif
