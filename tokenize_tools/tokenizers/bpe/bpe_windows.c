/* SPDX-License-Identifier: MIT */
/* bpe_windows.c - windows that overlap; see bpe_windows.h. The starts of a window's tokens are bits, so that the
 * tokens of two windows are compared all at once. */
#include "bpe_windows.h"

#include <assert.h>
#include <string.h>

uint32_t bpe_windows_cut(struct bpe_piece *windows, uint32_t *ids, const uint8_t *bytes, size_t count, uint32_t most)
{
    const size_t last = count - BPE_LANE_BYTES;
    size_t at = 0;
    assert(count >= BPE_LANE_BYTES && most);
    for (uint32_t i = 0;; at += BPE_LANE_BYTES - BPE_OVERLAP) {
        at = at < last ? at : last;
        windows[i] = (struct bpe_piece){.bytes = bytes + at, .count = BPE_LANE_BYTES, .ids = ids + i * BPE_WINDOW_IDS};
        if (++i == most || at == last)
            return i;
    }
}

void bpe_windows_merge(struct bpe_windows *windows, const struct bpe_model *model, bpe_merge_many_function *many,
                       const uint8_t *bytes, size_t count, uint32_t most)
{
    struct bpe_piece *pieces[BPE_WINDOWS];
    assert(most <= BPE_WINDOWS);
    windows->count = bpe_windows_cut(windows->pieces, windows->ids, bytes, count, most);
    for (uint32_t i = 0; i < windows->count; i++)
        pieces[i] = &windows->pieces[i];
    many(model, pieces, windows->count, bpe_size_class(BPE_LANE_BYTES));
}

static inline uint64_t before(uint32_t place)
{
    return ((uint64_t)1 << place) - 1;
}

/* Returns the number of tokens that begin before a place of a window. */
static uint32_t tokens_before(const struct bpe_piece *window, uint32_t place)
{
    return (uint32_t)__builtin_popcountll(window->starts & before(place));
}

bool bpe_windows_join(const struct bpe_piece *left, uint32_t from, struct bpe_window_tokens *tokens, uint32_t *next)
{
    const struct bpe_piece *right = left + 1;
    const uint32_t apart = (uint32_t)(right->bytes - left->bytes);
    const uint64_t borders = (left->starts | (uint64_t)1 << left->count) >> apart;
    const uint64_t both = borders & right->starts, either = borders | right->starts;
    for (uint64_t rest = both; rest; rest &= rest - 1) {
        const uint32_t place = (uint32_t)__builtin_ctzll(rest);
        const uint64_t after = either & ((uint64_t)-2 << place);
        if (!(after & -after & both))
            continue; /* one window has a border where the other has none */
        const uint32_t to = tokens_before(left, place + apart);
        if (to < from)
            continue;
        *tokens = (struct bpe_window_tokens){from, to, place + apart};
        *next = tokens_before(right, place);
        return true;
    }
    return false;
}

struct bpe_window_tokens bpe_windows_last(const struct bpe_piece *window, uint32_t from, bool all)
{
    if (all)
        return (struct bpe_window_tokens){from, window->ids_count, window->count};
    const uint64_t early = window->starts & before(window->count - window->count / 4 + 1);
    const uint32_t end = 63 - (uint32_t)__builtin_clzll(early), to = tokens_before(window, end);
    return (struct bpe_window_tokens){from, to > from ? to : from, end};
}

uint32_t bpe_windows_start(const struct bpe_piece *window, struct bpe_window_tokens tokens)
{
    return 63 - (uint32_t)__builtin_clzll(window->starts & before(tokens.end));
}

uint32_t bpe_windows_ids(const struct bpe_piece *windows, uint32_t count, uint32_t *ids)
{
    uint32_t made = 0, from = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct bpe_window_tokens tokens = bpe_windows_last(&windows[i], from, true);
        if (i + 1 < count && !bpe_windows_join(&windows[i], from, &tokens, &from))
            return 0;
        memcpy(ids + made, windows[i].ids + tokens.from, (tokens.to - tokens.from) * sizeof *ids);
        made += tokens.to - tokens.from;
    }
    return made;
}
