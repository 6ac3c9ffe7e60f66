/*
 * run_text.h - reads the text of a run into values, and remembers the line of each directive. It opens no dataset.
 * RUN.md defines the grammar.
 */
#ifndef TOKMAP_RUN_RUN_TEXT_H
#define TOKMAP_RUN_RUN_TEXT_H

#include "run_spec.h"

/* Reads text[bytes] into *spec. path is only for errors: the run file, or NULL for text from memory. On success free
 * *spec with run_spec_free(); on failure nothing needs to be freed. Any thread.
 * Statuses: OK, ERROR_RUN with the line, ERROR_LIMIT (more than RUN_TEXT_MOST bytes), ERROR_MEMORY. */
enum tokmap_status run_text_read(struct run_spec *spec, const char *text, size_t bytes, const char *path,
                                 struct tokmap_error *error);

#endif
