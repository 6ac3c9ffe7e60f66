/* run_spec.c - see run_spec.h. */
#include "run_spec.h"

#include <stdlib.h>
#include <string.h>

void run_spec_free(struct run_spec *spec)
{
    for (size_t i = 0; i < spec->source_count; i++) {
        free(spec->sources[i].name);
        free(spec->sources[i].data);
        free(spec->sources[i].plan);
    }
    for (size_t i = 0; i < spec->phase_count; i++)
        free(spec->phases[i].weights);
    free(spec->sources);
    free(spec->phases);
    free(spec->skips);
    memset(spec, 0, sizeof *spec);
}
