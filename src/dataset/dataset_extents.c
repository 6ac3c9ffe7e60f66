/* SPDX-License-Identifier: MIT */
/* dataset_extents.c - see dataset_extents.h. */
#include "dataset_extents.h"

#include <string.h>

#include "common/bytes.h"
#include "dataset_state.h"
#include "platform/os.h"

/* Returns room for one by content and one by file for each shard, and one of the whole. */
uint64_t dataset_extents_most(const struct tokmap_dataset *dataset)
{
    return 2 * dataset->shard_count + 1;
}

/* Describes a file by itself: the same bytes may be a shard under one name and a file of another project under another.
 * A sealed file has no bytes of tokens. */
static void extent_of_file(const struct shard *shard, struct dataset_extent *extent)
{
    struct os_stat found;
    if (shard->store.sealed || shard->store.fd < 0 || os_fstat(shard->store.fd, &found))
        return;
    store64(extent->of, found.device);
    store64(extent->of + 8, found.inode);
    extent->from = shard_offset(shard);
    extent->to = extent->from + (shard->tokens << element_shift(shard->store.element));
}

bool dataset_extent(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_extent *extent)
{
    const bool by_content = !dataset->synthetic && dataset->identity == TOKMAP_IDENTITY_FULL;
    const bool whole = number / 2 == dataset->shard_count;
    const struct shard *shard = whole ? NULL : &dataset->shards[number / 2];
    *extent = (struct dataset_extent){.path = whole ? NULL : shard->store.path};
    if (whole && !by_content) {
        memcpy(extent->of, dataset->whole, sizeof extent->of);
        extent->from = dataset->part_first;
        extent->to = extent->from + dataset->tokens;
    } else if (!whole && number % 2) {
        extent_of_file(shard, extent);
    } else if (!whole && by_content) {
        memcpy(extent->of, shard->index.shard.content, sizeof extent->of);
        extent->from = shard->skipped_tokens;
        extent->to = extent->from + shard->tokens;
    }
    return extent->from < extent->to;
}
