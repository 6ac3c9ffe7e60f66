/* SPDX-License-Identifier: MIT */
/* dataset_state.c - see dataset_state.h. */
#include "dataset_state.h"

#include <stdlib.h>

void dataset_shard_free(struct shard *shard)
{
    if (!shard)
        return;
    store_close(&shard->store);
    mask_file_close(&shard->mask);
    if (shard->foreign.close)
        shard->foreign.close(shard->foreign.user);
    index_close(&shard->index);
    free(shard->index_path);
    free(shard);
}
