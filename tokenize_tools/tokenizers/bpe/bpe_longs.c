/* SPDX-License-Identifier: MIT */
/* bpe_longs.c - see bpe_longs.h. */
#include "bpe_longs.h"

#include <string.h>

#include "common/bytes.h"

#define STORE_UNITS                                                                                                    \
    ((BPE_COPIES - BPE_LONGS - (UINT32_C(1) << BPE_BUCKET_BITS)) * sizeof(struct bpe_bucket) / 4) /* of 4 bytes */

void bpe_longs_place(struct bpe_state *state)
{
    state->longs = (struct bpe_long *)(void *)(state->buckets + (UINT32_C(1) << BPE_BUCKET_BITS));
    state->long_fours = BPE_LONGS_FIRST / BPE_LONG_WAYS;
    state->store = (uint32_t *)(void *)(state->longs + BPE_LONGS);
}

const struct bpe_long *bpe_long_find(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count,
                                     const void **ids)
{
    const uint32_t width = state->model->wide ? 4 : 2, tag = bpe_long_tag(hash);
    for (uint32_t beside = 0; beside < BPE_LONG_WAYS; beside++) {
        const struct bpe_long *line = bpe_long_at(state, tag, beside);
        if (!line->tag)
            return NULL; /* a line is used only if those before it are taken */
        if (line->tag != tag || line->bytes != count)
            continue;
        const uint32_t ids_bytes = line->ids * width;
        const uint8_t *kept = line->rest;
        if (ids_bytes + count > sizeof line->rest)
            kept = (const uint8_t *)(state->store + load32(line->rest));
        if (!memcmp(kept + ids_bytes, bytes, count)) {
            *ids = kept;
            return line;
        }
    }
    return NULL;
}

/* Returns the first empty line that a tag may have, or NULL. */
static struct bpe_long *empty_line(const struct bpe_state *state, uint32_t tag)
{
    for (uint32_t beside = 0; beside < BPE_LONG_WAYS; beside++)
        if (!bpe_long_at(state, tag, beside)->tag)
            return bpe_long_at(state, tag, beside);
    return NULL;
}

/* Moves all lines to their places in a larger cache. A line is lost where five get the same four places. */
static void grow(struct bpe_state *state)
{
    const uint32_t old = state->long_fours, most = BPE_LONGS / BPE_LONG_WAYS;
    state->long_fours = old < most / 3 ? 2 * old : most;
    state->longs_used = 0;
    for (uint32_t four = old; four--;) {
        struct bpe_long lines[BPE_LONG_WAYS], *from = &state->longs[(size_t)BPE_LONG_WAYS * four];
        memcpy(lines, from, sizeof lines);
        memset(from, 0, sizeof lines);
        for (uint32_t i = 0; i < BPE_LONG_WAYS; i++) {
            struct bpe_long *to = lines[i].tag ? empty_line(state, lines[i].tag) : NULL;
            if (to) {
                *to = lines[i];
                state->longs_used++;
            }
        }
    }
}

/* Returns the line for a new piece, whose place may be that of an older one. */
static struct bpe_long *line_for(struct bpe_state *state, uint32_t tag)
{
    if (state->longs_used >= state->long_fours && state->long_fours < BPE_LONGS / BPE_LONG_WAYS)
        grow(state);
    struct bpe_long *line = empty_line(state, tag);
    if (!line)
        return bpe_long_at(state, tag, state->victim++ % BPE_LONG_WAYS);
    state->longs_used++;
    return line;
}

void bpe_long_add(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count, const uint32_t *ids,
                  size_t id_count)
{
    const uint32_t width = state->model->wide ? 4 : 2, tag = bpe_long_tag(hash);
    const uint64_t needed = id_count * width + count, units = needed > BPE_LONG_REST ? (needed + 3) / 4 : 0;
    if (count > BPE_LONG_MOST)
        return;
    if (state->store_used + units > STORE_UNITS) {
        memset(state->longs, 0, (size_t)state->long_fours * BPE_LONG_WAYS * sizeof *state->longs);
        state->store_used = state->longs_used = 0;
        state->counts.stores_emptied++;
    }
    struct bpe_long *line = line_for(state, tag);
    uint8_t *into = line->rest;
    line->tag = tag;
    line->largest = 0;
    line->bytes = (uint16_t)count;
    line->ids = (uint16_t)id_count;
    if (units) {
        store32(line->rest, (uint32_t)state->store_used);
        into = (uint8_t *)(state->store + state->store_used);
        state->store_used += units;
    }
    for (size_t i = 0; i < id_count; i++) {
        line->largest = ids[i] > line->largest ? ids[i] : line->largest;
        if (width == 4)
            store32(into + 4 * i, ids[i]);
        else
            store16(into + 2 * i, (uint16_t)ids[i]);
    }
    memcpy(into + id_count * width, bytes, count);
}
