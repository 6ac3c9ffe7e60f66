/* SPDX-License-Identifier: MIT */
#include "run_spec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

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

/* ---- skipped steps ---- */

static int compare_lines(const void *a, const void *b)
{
    const struct skip_line *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

enum tokmap_status skips_merge(struct skips *skips, const struct skip_line *lines, size_t count,
                               struct tokmap_error *error)
{
    *skips = (struct skips){0};
    if (count == 0)
        return TOKMAP_OK;
    assert(lines);
    struct skip_line *sorted = malloc(count * sizeof *sorted);
    skips->ranges = malloc(count * sizeof *skips->ranges);
    if (!sorted || !skips->ranges) {
        free(sorted);
        return error_set_memory(error, "the run's skipped steps", count * (sizeof *sorted + sizeof *skips->ranges));
    }
    memcpy(sorted, lines, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_lines);
    uint64_t skipped = 0;
    for (size_t i = 0; i < count; i++) {
        assert(sorted[i].first < sorted[i].end);
        struct skip_range *last = skips->count ? &skips->ranges[skips->count - 1] : NULL;
        if (last && sorted[i].first <= last->end) {
            skipped += max64(last->end, sorted[i].end) - last->end;
            last->end = max64(last->end, sorted[i].end);
        } else {
            skips->ranges[skips->count++] =
                (struct skip_range){.first = sorted[i].first, .end = sorted[i].end, .before = skipped};
            skipped += sorted[i].end - sorted[i].first;
        }
    }
    free(sorted);
    return TOKMAP_OK;
}

void skips_free(struct skips *skips)
{
    free(skips->ranges);
    *skips = (struct skips){0};
}

size_t skips_index(const struct skips *skips, uint64_t step)
{
    size_t low = 0, high = skips->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (skips->ranges[middle].end > step)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t skips_before(const struct skips *skips, uint64_t step)
{
    size_t index = skips_index(skips, step);
    if (index < skips->count) {
        const struct skip_range *range = &skips->ranges[index];
        return range->before + (step > range->first ? step - range->first : 0);
    }
    if (index == 0)
        return 0;
    const struct skip_range *last = &skips->ranges[index - 1];
    return last->before + (last->end - last->first);
}

uint64_t skips_next_delivered(const struct skips *skips, uint64_t step)
{
    size_t index = skips_index(skips, step);
    return index < skips->count && step >= skips->ranges[index].first ? skips->ranges[index].end : step;
}
