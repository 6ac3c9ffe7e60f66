/* dataset_extents.c - see dataset_extents.h. */
#include "dataset_extents.h"

#include <string.h>

#include "common/bytes.h"
#include "dataset_state.h"
#include "platform/os.h"

uint64_t dataset_extent_count(const struct tokmap_dataset *dataset)
{
    return 2 * dataset->shard_count + 1;
}

/* The same bytes may be a shard under one name and a file of another project under another. A sealed file has no bytes
 * of tokens. */
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

void dataset_extents(const struct tokmap_dataset *dataset, struct dataset_extent *extents)
{
    const bool by_content = !dataset->synthetic && dataset->identity == TOKMAP_IDENTITY_FULL;
    memset(extents, 0, dataset_extent_count(dataset) * sizeof *extents);
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        const struct shard *shard = &dataset->shards[i];
        struct dataset_extent *extent = &extents[2 * i];
        if (by_content) {
            memcpy(extent->of, shard->index.shard.content, sizeof extent->of);
            extent->from = shard->skipped_tokens;
            extent->to = extent->from + shard->tokens;
        }
        extent_of_file(shard, &extents[2 * i + 1]);
    }
    if (by_content)
        return;
    struct dataset_extent *whole = &extents[2 * dataset->shard_count];
    memcpy(whole->of, dataset->whole, sizeof whole->of);
    whole->from = dataset->part_first;
    whole->to = whole->from + dataset->tokens;
}
