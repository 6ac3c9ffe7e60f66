/* SPDX-License-Identifier: MIT */
/*
 * run_text.h - reads the text of a run into values, and remembers the line of each directive; and writes the text of
 * values. It opens no dataset. RUN.md defines the grammar.
 */
#ifndef TOKMAP_RUN_RUN_TEXT_H
#define TOKMAP_RUN_RUN_TEXT_H

#include "run_spec.h"

/* Reads text[bytes] into *spec. path is only for errors: the run file, or NULL for text from memory. On success free
 * *spec with run_spec_free(); on failure nothing needs to be freed. Any thread.
 * Statuses: OK, ERROR_RUN with the line, ERROR_LIMIT (more than RUN_TEXT_MOST bytes), ERROR_MEMORY. */
enum tokmap_status run_text_read(struct run_spec *spec, const char *text, size_t bytes, const char *path,
                                 struct tokmap_error *error);

/* Returns the canonical text of a run: one form for every run of the same values, whatever its text looked like. Read
 * with run_text_read(), it gives the same values, except `reading` and the lines, which are those of the new text.
 * Defaults are left out except the seed, shares have no zeros at their end, and datasets and plans are as they were
 * written, in quotes where they need them. Free it with free(). NULL: there is no memory for it, or a name has a
 * control character other than a tab, which no text of a run can have (only the values of run_of_values() can). */
char *run_spec_print(const struct run_spec *spec);

#endif
