/* SPDX-License-Identifier: MIT */
/* trained.c - see trained.h. */
#include "trained.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset_extents.h"

struct trained_extent {
    struct dataset_extent extent;
    uint64_t source;
};

bool trained_source(const struct phases *phases, uint64_t source)
{
    return phases->appearances_of[source] < phases->appearances_of[source + 1];
}

static int compare_of(const struct dataset_extent *x, const struct dataset_extent *y)
{
    return memcmp(x->of, y->of, sizeof x->of);
}

static int compare(const void *a, const void *b)
{
    const struct dataset_extent *x = &((const struct trained_extent *)a)->extent;
    const struct dataset_extent *y = &((const struct trained_extent *)b)->extent;
    const int of = compare_of(x, y);
    return of ? of : (x->from > y->from) - (x->from < y->from);
}

/* Extents are equal if they overlap. */
static int compare_overlap(const void *a, const void *b)
{
    const struct dataset_extent *x = a, *y = &((const struct trained_extent *)b)->extent;
    const int of = compare_of(x, y);
    return of ? of : (x->from >= y->to) - (x->to <= y->from);
}

enum tokmap_status trained_init(struct trained *trained, const struct run_sources *sources, const struct phases *phases,
                                struct tokmap_error *error)
{
    uint64_t most = 0, count = 0;
    *trained = (struct trained){0};
    for (uint64_t i = 0; i < sources->count; i++)
        most += trained_source(phases, i) ? dataset_extents_most(sources->of[i].dataset) : 0;
    struct trained_extent *extents = trained->extents = malloc(most * sizeof *extents);
    if (!extents)
        return error_set_memory(error, "the shards of the run", most * sizeof *extents);
    for (uint64_t i = 0; i < sources->count; i++) {
        const struct tokmap_dataset *dataset = sources->of[i].dataset;
        for (uint64_t j = 0; trained_source(phases, i) && j < dataset_extents_most(dataset); j++) {
            extents[count].source = i;
            count += dataset_extent(dataset, j, &extents[count].extent);
        }
    }
    qsort(extents, count, sizeof *extents, compare);
    for (uint64_t i = 0; i < count; i++) { /* leaves out what an extent before has */
        struct trained_extent next = extents[i];
        const struct dataset_extent *last = trained->count ? &extents[trained->count - 1].extent : NULL;
        if (last && compare_of(last, &next.extent) == 0)
            next.extent.from = max64(next.extent.from, last->to);
        if (next.extent.from < next.extent.to)
            extents[trained->count++] = next;
    }
    return TOKMAP_OK;
}

void trained_free(struct trained *trained)
{
    free(trained->extents);
    *trained = (struct trained){0};
}

uint64_t trained_find(const struct trained *trained, const struct tokmap_dataset *dataset, char **path)
{
    struct dataset_extent extent;
    *path = NULL;
    for (uint64_t i = 0; i < dataset_extents_most(dataset); i++) {
        const struct trained_extent *found = NULL;
        if (dataset_extent(dataset, i, &extent))
            found = bsearch(&extent, trained->extents, trained->count, sizeof *found, compare_overlap);
        if (found) {
            *path = dataset_extent_path(dataset, i);
            return found->source;
        }
    }
    return UINT64_MAX;
}
