/* SPDX-License-Identifier: MIT */
/*
 * run_phase_text.h - reads the phase lines of a run's text, and checks what several lines say together: the names that
 * phases and `passes` use, the weights, and the sequence lengths.
 */
#ifndef TOKMAP_RUN_RUN_PHASE_TEXT_H
#define TOKMAP_RUN_RUN_PHASE_TEXT_H

#include "run_line.h"
#include "run_spec.h"

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
