/* SPDX-License-Identifier: MIT */
#include "dataset_extents.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "open_shards.h"
#include "opened_dataset.h"
#include "platform/os.h"

/* Numbers [from, to), not empty, of what `of` identifies: tokens of a shard, by its content id; bytes of a file with
 * tokens, by its device and inode; or tokens of a dataset that has no shards, or none with a content id, by its
 * identity. */
struct dataset_extent {
    uint8_t of[16];
    uint64_t from, to;
    uint64_t number; /* of the dataset */
};

/* Returns the most extents of a dataset: one by content and one by file for each shard, and one of the whole. */
static uint64_t extents_most(const struct tokmap_dataset *dataset)
{
    return 2 * dataset->shard_count + 1;
}

/* Returns the path of the file that has extent `number`, to be freed. */
static char *extent_path(const struct tokmap_dataset *dataset, uint64_t number)
{
    if (number / 2 == dataset->shard_count)
        return NULL;
    const struct manifest_shard *line = shard_line(dataset, number / 2);
    if (!line)
        return strdup(shard_held(dataset, number / 2)->store.path);
    const bool sealed = dataset->manifest.groups[line->group].sealed;
    char *index = manifest_index_path(&dataset->manifest, line);
    char *path = index ? shard_file_beside(index, sealed ? SHARD_SEALED : SHARD_TOKENS, SHARD_FINAL) : NULL;
    free(index);
    return path;
}

/* Describes a file by itself: the same bytes may be a shard under one name and a file of another project under another.
 * A sealed file has no bytes of tokens. A shard that is not open is not opened for it: its file is looked at. */
static void extent_of_file(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_extent *extent)
{
    const struct manifest_shard *line = shard_line(dataset, number / 2);
    const struct shard_place *place = &dataset->slots[number / 2].place;
    struct os_stat found;
    if (line) {
        const struct manifest_group *group = &dataset->manifest.groups[line->group];
        char *path = group->sealed ? NULL : extent_path(dataset, number);
        const bool good = path && !os_stat(path, &found);
        free(path);
        if (!good)
            return;
        extent->from = place->skipped_tokens * group->width;
        extent->to = extent->from + place->tokens * group->width;
    } else {
        const struct shard *shard = shard_held(dataset, number / 2);
        if (shard->store.sealed || shard->store.fd < 0 || os_fstat(shard->store.fd, &found))
            return;
        extent->from = shard_offset(shard);
        extent->to = extent->from + (place->tokens << element_shift(shard->store.element));
    }
    store64(extent->of, found.device);
    store64(extent->of + 8, found.inode);
}

/* Finds an extent. Returns false if the dataset has no extent of this number, as for a file that was removed. */
static bool extent_find(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_extent *extent)
{
    const bool by_content = !dataset->synthetic && dataset->identity == TOKMAP_IDENTITY_FULL;
    const bool whole = number / 2 == dataset->shard_count;
    *extent = (struct dataset_extent){.from = 0};
    if (whole && !by_content) {
        memcpy(extent->of, dataset->whole, sizeof extent->of);
        extent->from = dataset->part_first;
        extent->to = extent->from + dataset->tokens;
    } else if (!whole && number % 2) {
        extent_of_file(dataset, number, extent);
    } else if (!whole && by_content) {
        const struct manifest_shard *line = shard_line(dataset, number / 2);
        const struct shard_place *place = &dataset->slots[number / 2].place;
        memcpy(extent->of, line ? line->content : shard_held(dataset, number / 2)->index.shard.content,
               sizeof extent->of);
        extent->from = place->skipped_tokens;
        extent->to = extent->from + place->tokens;
    }
    return extent->from < extent->to;
}

static int compare_of(const struct dataset_extent *x, const struct dataset_extent *y)
{
    return memcmp(x->of, y->of, sizeof x->of);
}

static int compare(const void *a, const void *b)
{
    const struct dataset_extent *x = a, *y = b;
    const int of = compare_of(x, y);
    return of ? of : (x->from > y->from) - (x->from < y->from);
}

/* Extents are equal if they overlap. */
static int compare_overlap(const void *a, const void *b)
{
    const struct dataset_extent *x = a, *y = b;
    const int of = compare_of(x, y);
    return of ? of : (x->from >= y->to) - (x->to <= y->from);
}

enum tokmap_status dataset_extents_add(struct dataset_extents *extents, const struct tokmap_dataset *dataset,
                                       uint64_t number, struct tokmap_error *error)
{
    for (uint64_t i = 0; i < extents_most(dataset); i++) {
        if (!list_room(&extents->of, extents->count, &extents->capacity, sizeof *extents->of))
            return error_set_memory(error, "the shards of the run", extents->capacity * sizeof *extents->of);
        struct dataset_extent *extent = &extents->of[extents->count];
        extents->count += extent_find(dataset, i, extent);
        extent->number = number;
    }
    return TOKMAP_OK;
}

void dataset_extents_sort(struct dataset_extents *extents)
{
    uint64_t kept = 0;
    if (extents->count)
        qsort(extents->of, extents->count, sizeof *extents->of, compare);
    for (uint64_t i = 0; i < extents->count; i++) { /* leaves out what an extent before has */
        struct dataset_extent next = extents->of[i];
        const struct dataset_extent *last = kept ? &extents->of[kept - 1] : NULL;
        if (last && compare_of(last, &next) == 0)
            next.from = max64(next.from, last->to);
        if (next.from < next.to)
            extents->of[kept++] = next;
    }
    extents->count = kept;
}

void dataset_extents_free(struct dataset_extents *extents)
{
    free(extents->of);
    *extents = (struct dataset_extents){.of = NULL};
}

uint64_t dataset_extents_find(const struct dataset_extents *extents, const struct tokmap_dataset *dataset, char **path)
{
    struct dataset_extent extent;
    *path = NULL;
    for (uint64_t i = 0; i < extents_most(dataset) && extents->count; i++) {
        const struct dataset_extent *found = NULL;
        if (extent_find(dataset, i, &extent))
            found = bsearch(&extent, extents->of, extents->count, sizeof *found, compare_overlap);
        if (found) {
            *path = extent_path(dataset, i);
            return found->number;
        }
    }
    return UINT64_MAX;
}
