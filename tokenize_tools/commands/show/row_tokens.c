/* SPDX-License-Identifier: MIT */
/* row_tokens.c - see row_tokens.h. */
#include "row_tokens.h"

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

/* ---- rows that show tokens ---- */

/* Returns how many of the tokens are in an extent, which is at most two spans of the dataset. One that is longer than
 * the dataset, which has `all` tokens, counts each token once. */
static uint64_t tokens_shared(const struct sharing *sharing, const struct tokmap_extent *extent, uint64_t all)
{
    const uint64_t start = extent->first_token, reach = min64(extent->tokens, all), head = min64(reach, all - start);
    const uint64_t spans[2][2] = {{start, start + head}, {0, reach - head}};
    uint64_t shared = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t from = max64(sharing->first, spans[i][0]);
        const uint64_t to = min64(sharing->first + sharing->tokens, spans[i][1]);
        shared += to > from ? to - from : 0;
    }
    return shared;
}

static int row_found(void *user, const struct tokmap_place *place)
{
    struct sharing *sharing = user;
    const uint64_t all = run_exclusions(sharing->run)->sources->of[place->source].tokens;
    uint64_t count, shared = 0;
    if (!sharing->left-- || !list_room(&sharing->rows, sharing->count, &sharing->capacity, sizeof *sharing->rows))
        return 1;
    if (run_row_extents(sharing->run, place, sharing->extents, run_extents_most(sharing->run), &count, NULL))
        count = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!extent_is_padding(&sharing->extents[i]))
            shared += tokens_shared(sharing, &sharing->extents[i], all);
    sharing->rows[sharing->count++] = (struct sharing_row){*place, shared};
    return 0;
}

static int by_row(const void *one, const void *other)
{
    const struct tokmap_place *a = &((const struct sharing_row *)one)->place;
    const struct tokmap_place *b = &((const struct sharing_row *)other)->place;
    return a->step != b->step ? (a->step < b->step ? -1 : 1) : a->row < b->row ? -1 : a->row > b->row;
}

enum tokmap_status sharing_find(struct sharing *sharing, uint64_t source, uint64_t first, uint64_t tokens,
                                uint64_t from, uint64_t end, uint64_t most, struct tokmap_error *error)
{
    sharing->first = first;
    sharing->tokens = tokens;
    sharing->left = most;
    if (!sharing->extents && !(sharing->extents = calloc(run_extents_most(sharing->run), sizeof *sharing->extents)))
        return error_set_memory(error, "the extents of a row", sizeof *sharing->extents);
    enum tokmap_status status =
        tokmap_run_find(sharing->run, source, first, tokens, from, end, row_found, sharing, error);
    if (status == TOKMAP_ERROR_INTERRUPTED) /* one row more than `most` was found */
        status = sharing->left == UINT64_MAX ? TOKMAP_OK
                                             : error_set_memory(error, "the rows that show tokens", sharing->count);
    if (sharing->count)
        qsort(sharing->rows, sharing->count, sizeof *sharing->rows, by_row);
    return status;
}

void sharing_free(struct sharing *sharing)
{
    free(sharing->extents);
    free(sharing->rows);
    *sharing = (struct sharing){.run = NULL};
}
