/*
 * trained.c - see trained.h.
 *
 * Extents are sorted by what they are of and then by where they begin. Those of several sources may overlap, so each
 * also has the largest end of those before it. An extent overlaps some of them if the last one that begins before its
 * end has a largest end after its begin: a binary search for each.
 */
#include "trained.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_extents.h"

struct trained_extent {
    struct dataset_extent extent;
    uint64_t source;
    uint64_t to_most; /* the largest end of this extent and those before it that are of the same thing */
};

bool trained_source(const struct phases *phases, uint64_t source)
{
    return phases->appearances_of[source] < phases->appearances_of[source + 1];
}

static int compare(const void *a, const void *b)
{
    const struct dataset_extent *x = &((const struct trained_extent *)a)->extent;
    const struct dataset_extent *y = &((const struct trained_extent *)b)->extent;
    const int of = memcmp(x->of, y->of, sizeof x->of);
    return of ? of : (x->from > y->from) - (x->from < y->from);
}

static enum tokmap_status extents_of(const struct tokmap_dataset *dataset, struct dataset_extent **extents,
                                     uint64_t *count, struct tokmap_error *error)
{
    *count = dataset_extent_count(dataset);
    *extents = malloc(*count * sizeof **extents);
    if (!*extents)
        return error_set_memory(error, "the shards of a dataset", *count * sizeof **extents);
    dataset_extents(dataset, *extents);
    return TOKMAP_OK;
}

enum tokmap_status trained_init(struct trained *trained, const struct run_sources *sources, const struct phases *phases,
                                struct tokmap_error *error)
{
    uint64_t most = 0;
    *trained = (struct trained){0};
    for (uint64_t i = 0; i < sources->count; i++)
        most += trained_source(phases, i) ? dataset_extent_count(sources->of[i].dataset) : 0;
    trained->extents = malloc(most * sizeof *trained->extents);
    if (!trained->extents)
        return error_set_memory(error, "the shards of the run", most * sizeof *trained->extents);
    for (uint64_t i = 0; i < sources->count; i++) {
        struct dataset_extent *extents;
        uint64_t count;
        if (!trained_source(phases, i))
            continue;
        const enum tokmap_status status = extents_of(sources->of[i].dataset, &extents, &count, error);
        if (status)
            return status;
        for (uint64_t j = 0; j < count; j++)
            if (extents[j].from < extents[j].to)
                trained->extents[trained->count++] = (struct trained_extent){.extent = extents[j], .source = i};
        free(extents);
    }
    qsort(trained->extents, trained->count, sizeof *trained->extents, compare);
    for (uint64_t i = 0; i < trained->count; i++) {
        struct trained_extent *one = &trained->extents[i];
        const bool same = i && memcmp(one->extent.of, one[-1].extent.of, sizeof one->extent.of) == 0;
        one->to_most = same ? max64(one[-1].to_most, one->extent.to) : one->extent.to;
    }
    return TOKMAP_OK;
}

void trained_free(struct trained *trained)
{
    free(trained->extents);
    *trained = (struct trained){0};
}

/* Returns an extent that overlaps the wanted one, or NULL. */
static const struct trained_extent *overlap(const struct trained *trained, const struct dataset_extent *wanted)
{
    struct trained_extent key = {.extent = {.from = wanted->to}};
    uint64_t low = 0, high = trained->count; /* extents below `low` begin before the end of the wanted one */
    memcpy(key.extent.of, wanted->of, sizeof key.extent.of);
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (compare(&trained->extents[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (const struct trained_extent *at = trained->extents + low; at-- > trained->extents;) {
        if (memcmp(at->extent.of, wanted->of, sizeof wanted->of) != 0 || at->to_most <= wanted->from)
            return NULL;
        if (at->extent.to > wanted->from)
            return at;
    }
    return NULL;
}

enum tokmap_status trained_find(const struct trained *trained, const struct tokmap_dataset *dataset, uint64_t *source,
                                const char **path, struct tokmap_error *error)
{
    struct dataset_extent *extents;
    uint64_t count;
    *source = UINT64_MAX;
    *path = NULL;
    const enum tokmap_status status = extents_of(dataset, &extents, &count, error);
    for (uint64_t i = 0; !status && i < count && *source == UINT64_MAX; i++) {
        const struct trained_extent *found = extents[i].from < extents[i].to ? overlap(trained, &extents[i]) : NULL;
        if (!found)
            continue;
        *source = found->source;
        if (i / 2 < count / 2) { /* the last extent is of no shard */
            struct shard_tokens tokens;
            dataset_shard_tokens(dataset, i / 2, &tokens);
            *path = tokens.path;
        }
    }
    free(extents);
    return status;
}
