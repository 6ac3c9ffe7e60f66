/* SPDX-License-Identifier: MIT */
/* dataset_extents.c - see dataset_extents.h. */
#include "dataset_extents.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/shard_file.h"
#include "open_shards.h"
#include "opened_dataset.h"
#include "platform/os.h"

/* Returns room for one by content and one by file for each shard, and one of the whole. */
uint64_t dataset_extents_most(const struct tokmap_dataset *dataset)
{
    return 2 * dataset->shard_count + 1;
}

char *dataset_extent_path(const struct tokmap_dataset *dataset, uint64_t number)
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
        char *path = group->sealed ? NULL : dataset_extent_path(dataset, number);
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

bool dataset_extent(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_extent *extent)
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
