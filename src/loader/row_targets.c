/* SPDX-License-Identifier: MIT */
#include "row_targets.h"

#include "batch/boundaries.h"

struct row_bounds row_targets_bounds(const struct tokmap_loader *loader, uint64_t seq_len,
                                     const struct tokmap_place *place, uint64_t extents)
{
    const struct loader_source *source = loader_source_of(loader, place);
    const uint64_t stride = source && !source->plan && place->window ? loader->stride : 0;
    struct row_bounds bounds = {.scored_from = stride && stride < seq_len ? seq_len - stride : 0};
    for (uint64_t i = 0; i < extents; i++)
        bounds.tokens += loader->fill->extents[i].tokens;
    return bounds;
}

enum tokmap_status row_targets_bits(const struct tokmap_loader *loader, const struct tokmap_place *place,
                                    const struct tokmap_extent *extents, uint64_t count, uint64_t targets,
                                    uint64_t *bits, struct tokmap_error *error)
{
    struct uncounted *uncounted =
        loader_source_of(loader, place) ? gather_uncounted(loader->fill->gathers[place->source]) : NULL;
    return uncounted_fill(uncounted, extents, count, targets, bits, error);
}

enum tokmap_status row_targets_marks(const struct tokmap_loader *loader, const struct tokmap_place *place,
                                     uint64_t extents, uint64_t marked, struct mark *marks, struct tokmap_error *error)
{
    const struct loader_source *source = loader_source_of(loader, place);
    const struct boundaries_row row = {
        .dataset = source ? source->dataset : NULL,
        .dataset_tokens = source ? source->tokens : 0,
        .extents = loader->fill->extents,
        .count = extents,
        .segments = source && source->plan,
    };
    return boundaries_mark_extents(&row, marked, marks, error);
}
