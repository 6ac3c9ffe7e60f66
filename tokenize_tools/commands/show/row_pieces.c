/* SPDX-License-Identifier: MIT */
/* row_pieces.c - see row_pieces.h. */
#include "row_pieces.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/run.h"

static enum tokmap_status add(struct row_pieces *pieces, uint64_t first, uint64_t tokens, bool excluded,
                              struct tokmap_error *error)
{
    uint64_t room = pieces->capacity;
    if (!list_room(&pieces->extents, pieces->count, &room, sizeof *pieces->extents) ||
        !list_room(&pieces->excluded, pieces->count, &pieces->capacity, sizeof *pieces->excluded))
        return error_set_memory(error, "the pieces of a row", pieces->count * sizeof *pieces->extents);
    pieces->extents[pieces->count] = (struct tokmap_extent){first, tokens};
    pieces->excluded[pieces->count++] = excluded;
    return TOKMAP_OK;
}

enum tokmap_status row_pieces_cut(struct row_pieces *pieces, const struct tokmap_run *run,
                                  const struct tokmap_place *place, const struct tokmap_extent *extents, uint64_t count,
                                  struct tokmap_error *error)
{
    const struct exclusions *exclusions = run_exclusions(run);
    enum tokmap_status status = TOKMAP_OK;
    struct exclusion_walk walk;
    uint64_t from, hidden, row = 0; /* the extent's first token in the row */
    pieces->count = 0;
    exclusion_walk_begin(&walk, exclusions, place, extents, count);
    bool more = exclusion_walk_next(&walk, &from, &hidden);
    if (!more)
        return TOKMAP_OK;
    const uint64_t tokens = exclusions->sources->of[place->source].tokens;
    for (uint64_t i = 0; i < count && !status; row += extents[i++].tokens)
        for (uint64_t done = 0, part; done < extents[i].tokens && !status; done += part) {
            const bool excluded = more && from == row + done;
            part = excluded ? hidden : min64(extents[i].tokens - done, more ? from - row - done : UINT64_MAX);
            const uint64_t first = extents[i].first_token + done;
            status = add(pieces, extent_is_padding(&extents[i]) ? first : first % tokens, part, excluded, error);
            if (excluded)
                more = exclusion_walk_next(&walk, &from, &hidden);
        }
    return status;
}

enum tokmap_status row_pieces_add(struct row_pieces *pieces, const struct tokmap_extent *extent,
                                  struct tokmap_error *error)
{
    return add(pieces, extent->first_token, extent->tokens, false, error);
}

void row_pieces_free(struct row_pieces *pieces)
{
    free(pieces->extents);
    free(pieces->excluded);
    *pieces = (struct row_pieces){0};
}
