/* SPDX-License-Identifier: MIT */
/*
 * run_phase_text.h - reads the phase lines of a run's text, and checks what several lines say together: the names that
 * phases and `passes` use, the weights, and the sequence lengths.
 */
#ifndef TOKMAP_RUN_RUN_PHASE_TEXT_H
#define TOKMAP_RUN_RUN_PHASE_TEXT_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "run_spec.h"

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

#define RUN_PHASE_USAGE "phase STEP [NAME WEIGHT]... [batch ROWS] [seq_len TOKENS]"

bool run_name_is_good(const char *name);

/* Reads the line's words into *phase, whose weights the caller frees whatever the status. text: where the run's text
 * begins; until run_text_resolve() a weight's source is the offset of its name in this text. before: the phase of the
 * line before, or NULL. */
enum tokmap_status run_phase_read(struct run_line *at, const char *text, const struct phase_line *before,
                                  struct phase_line *phase);

/* After all lines were read: replaces the offsets of names by the numbers of sources, and checks everything that one
 * line alone cannot tell. passes_of: the name in `passes P of NAME`, or NULL. */
enum tokmap_status run_text_resolve(struct run_line *at, const char *text, const char *passes_of,
                                    struct run_spec *spec);

#endif
