/* SPDX-License-Identifier: MIT */
/*
 * run_line.h - a line of a run's text, cut into words, and errors that name it.
 */
#ifndef TOKMAP_RUN_RUN_LINE_H
#define TOKMAP_RUN_RUN_LINE_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct run_line {
    const char *path; /* of the run file, for errors; NULL: none */
    uint64_t line;    /* its number, from 1; 0: an error is not about one line */
    char **words;     /* zero-terminated, in the text; words[0] is the directive */
    size_t count, capacity;
    struct tokmap_error *error;
};

#define line_wrong(at, ...) error_set_line((at)->error, TOKMAP_ERROR_RUN, (at)->path, (at)->line, __VA_ARGS__)

/* Cuts a text (zero-terminated, changed in place) into words. A comment begins at a # that is first in the line or
 * follows a space. A word in double quotes may contain spaces, \" for a quote, and \\ for a backslash. The words are
 * parts of the text. */
enum tokmap_status run_line_cut(struct run_line *at, char *text);

/* Frees the list of words. */
void run_line_free(struct run_line *at);

#endif
