/* SPDX-License-Identifier: MIT */
/* run_spec.c - see run_spec.h. */
#include "run_spec.h"

#include <stdlib.h>
#include <string.h>

static void free_lines(struct source_line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(lines[i].name);
        free(lines[i].data);
        free(lines[i].plan);
    }
    free(lines);
}

void run_spec_free(struct run_spec *spec)
{
    free_lines(spec->sources, spec->source_count);
    free_lines(spec->validations, spec->validation_count);
    for (size_t i = 0; i < spec->phase_count; i++)
        free(spec->phases[i].weights);
    free(spec->phases);
    free(spec->skips);
    for (size_t i = 0; i < spec->exclude_count; i++)
        free(spec->excludes[i].file);
    free(spec->excludes);
    memset(spec, 0, sizeof *spec);
}
