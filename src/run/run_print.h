/*
 * run_print.h - the text of a run, from its values.
 */
#ifndef TOKMAP_RUN_RUN_PRINT_H
#define TOKMAP_RUN_RUN_PRINT_H

#include "run_spec.h"

/* Returns the canonical text of a run: one form for every run of the same values, whatever its text looked like. Read
 * with run_text_read(), it gives the same values, except `reading` and the lines, which are those of the new text.
 * Defaults are left out except the seed, shares have no zeros at their end, and datasets and plans are as they were
 * written, in quotes where they need them. Free it with free(). NULL: there is no memory for it, or a name has a
 * control character other than a tab, which no text of a run can have (only the arguments of tokmap_run_make() can). */
char *run_spec_print(const struct run_spec *spec);

#endif
