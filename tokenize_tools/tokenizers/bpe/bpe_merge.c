/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge.c - the merges of one piece of bytes.
 *
 * The definition: a piece begins as a row of single bytes. While any two neighbors are a pair of the vocabulary, the
 * pair of lowest rank merges, the leftmost of equals first. Say "th" has rank 0, "he" rank 1, and "the" = "th" + "e"
 * rank 2. Then "t h e" becomes "th e" (rank 0 wins over rank 1, which is gone with it) and then "the".
 *
 * Short pieces (merge_short): the parts in a row, with the rank of each with its right neighbor. Find the lowest rank,
 * merge there, close up the row, and repeat. This is quadratic, but a piece has about ten parts, and for so few a scan
 * of an array is faster than any tree or heap.
 *
 * Long pieces (bpe_merge_long): the obvious way is a heap over the whole piece, which costs n log n but 40 bytes of
 * memory for each byte, spread wider than any cache. Instead the piece is merged in windows of 64 bytes, so that all
 * the work stays in the nearest cache and each byte costs the same, however long the piece is.
 *
 * A window alone does not know what is beside it. Two facts make it exact for any list of merges:
 *   1. Any two neighbors in the ids of a text are the ids of their bytes together. (As long as no merge crosses the
 *      outer borders of the two, the bytes outside have no influence on them.)
 *   2. Let the ids of X end with u and those of Y begin with v. If the ids of the bytes of u and v together are u
 *      and v, then the ids of XY are those of X followed by those of Y. For, until a first merge crosses the border of
 *      X and Y, both sides merge as if each were alone. That first merge would join what u and v have become by then;
 *      alone, u and v come to the same state, and there the same pair would be the lowest. But alone they do not merge
 *      over the border.
 * So a window begins with the last token that is accepted already, u. If merging the window gives u first again, then
 * by both facts the ids up to the end of the window are the accepted ones followed by the window's. They are accepted
 * too, except for those in the last quarter of the window, which the text after it is likely to change. The next
 * window begins with the last accepted token.
 *
 * Example with windows of 8 bytes: the merges are "a b" (rank 0), "c d" (rank 1), and "ab cd" (rank 2), and the text
 * begins with "cdababcdabab". The first window, "cdababcd", gives "cd" "ab" "abcd". The last token reaches into the
 * last quarter, so "cd" and "ab" are accepted. The next window begins with "ab": "ababcdab" gives "ab" "abcd" "ab". It
 * begins with "ab" again, so "abcd" is accepted, and the next window begins there.
 *
 * If a window gives another first token, then the text in it changes how the accepted text divides. Accepted tokens are
 * taken back, one at the first failure, two at the next, then four, and the window doubles each time. In the worst case
 * it becomes the whole piece, which happens only with vocabularies made for the purpose.
 *
 * Where pieces can be merged several at once (scratch->many), windows of a text are first merged ahead, many of them at
 * once, and joined by the same two facts (bpe_windows.h). What does not join is merged window by window.
 *
 * Windows of more than BPE_SHORT bytes are merged in rounds or with a heap (bpe_merge_parts.h).
 */
#include "bpe_merge.h"

#include <assert.h>

#include "bpe_merge_parts.h"
#include "bpe_windows.h"
#include "common/bytes.h"

static inline uint32_t first_rank(const struct bpe_model *model, const uint8_t *bytes, size_t at)
{
    return model->byte_pairs[(uint32_t)bytes[at] << 8 | bytes[at + 1]];
}

static size_t merge_short(const struct bpe_model *model, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    uint32_t ranks[BPE_SHORT + 1];
    size_t parts = count;
    for (size_t i = 0; i < count; i++)
        ids[i] = model->byte_ids[bytes[i]];
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = first_rank(model, bytes, i);
    while (parts > 1) {
        uint32_t lowest = BPE_NONE;
        size_t at = 0;
        for (size_t i = 0; i + 1 < parts; i++)
            if (ranks[i] < lowest) {
                lowest = ranks[i];
                at = i;
            }
        if (lowest == BPE_NONE)
            break;
        ids[at] = bpe_result(model, lowest);
        parts--;
        for (size_t i = at + 1; i < parts; i++) {
            ids[i] = ids[i + 1];
            ranks[i - 1] = ranks[i]; /* the pair that the removed part began goes too */
        }
        if (at)
            ranks[at - 1] = bpe_pair_rank(model, ids[at - 1], ids[at]);
        if (at + 1 < parts)
            ranks[at] = bpe_pair_rank(model, ids[at], ids[at + 1]);
    }
    return parts;
}

/* ---- windows ---- */

/* Merges a window of at most BPE_SHORT bytes: in a lane where the processor has them (bpe_merge_lanes.h), which finds
 * the lowest rank with a few instructions where merge_short() compares them all. */
static size_t merge_near(const struct bpe_model *model, bpe_merge_many_function *many, const uint8_t *bytes,
                         size_t count, uint32_t ids[BPE_SHORT + 16])
{
    if (!many || count > BPE_LANE_BYTES)
        return merge_short(model, bytes, count, ids);
    struct bpe_piece piece = {.bytes = bytes, .count = (uint32_t)count, .ids = ids}, *const pieces[1] = {&piece};
    many(model, pieces, 1, bpe_size_class(piece.count));
    return piece.ids_count;
}

/* scratch: its memory is for merge_heap(), if there are more than MERGE_ROUNDS bytes. Returns the number of parts that
 * are left. */
static size_t merge_window(const struct bpe_model *model, const struct bpe_scratch *scratch, const uint8_t *bytes,
                           size_t count, struct merge_part *parts)
{
    if (count <= BPE_SHORT) {
        uint32_t ids[BPE_SHORT + 16], start = 0;
        const size_t left = merge_near(model, scratch->many, bytes, count, ids);
        for (size_t i = 0; i < left; start += bpe_token_bytes(model, ids[i]), i++)
            parts[i] = (struct merge_part){ids[i], start};
        return left;
    }
    for (size_t i = 0; i < count; i++)
        parts[i] = (struct merge_part){model->byte_ids[bytes[i]], (uint32_t)i};
    if (count > MERGE_ROUNDS)
        return merge_heap(model, scratch->memory, parts, count, bpe_pair_rank, rank_itself);
    int32_t ranks[MERGE_ROUNDS];
    for (size_t i = 0; i < count; i++) {
        const uint32_t rank = i + 1 < count ? first_rank(model, bytes, i) : BPE_NONE;
        ranks[i] = rank == BPE_NONE ? MERGE_NONE : (int32_t)rank;
    }
    return merge_rounds(model, parts, ranks, count, bpe_pair_rank, rank_itself, result_of_rank);
}

/* The tokens that are accepted so far. */
struct accepted {
    void *tokens;
    bool wide;
    size_t count, last_start; /* last_start: the offset of the last one's first byte */
};

static inline uint32_t accepted_at(const struct accepted *accepted, size_t i)
{
    return accepted->wide ? ((const uint32_t *)accepted->tokens)[i] : ((const uint16_t *)accepted->tokens)[i];
}

static void accept_ids(struct accepted *accepted, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (accepted->wide)
            ((uint32_t *)accepted->tokens)[accepted->count++] = ids[i];
        else
            ((uint16_t *)accepted->tokens)[accepted->count++] = (uint16_t)ids[i];
}

static void accept(struct accepted *accepted, const struct merge_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (accepted->wide)
            ((uint32_t *)accepted->tokens)[accepted->count++] = parts[i].symbol;
        else
            ((uint16_t *)accepted->tokens)[accepted->count++] = (uint16_t)parts[i].symbol;
}

/* Merges windows of a text ahead: `ahead` of them, of which the first begins with the last accepted token. Accepts what
 * they have in common. count: bytes from there on. Returns how many windows were joined. 0: nothing was accepted; as
 * many as there are, and *done: all of the text was. */
static uint32_t accept_ahead(const struct bpe_model *model, bpe_merge_many_function *many, const uint8_t *bytes,
                             size_t count, uint32_t ahead, struct accepted *accepted, bool *done)
{
    struct bpe_windows windows;
    const size_t old = accepted->count;
    uint32_t from = old != 0, next, i = 0;
    size_t last_start = accepted->last_start;
    *done = false;
    bpe_windows_merge(&windows, model, many, bytes, count, ahead);
    if (old && accepted_at(accepted, old - 1) != windows.pieces[0].ids[0])
        return 0;
    for (;; from = next, i++) {
        const struct bpe_piece *window = &windows.pieces[i];
        struct bpe_window_tokens tokens;
        const bool joined = i + 1 < windows.count && bpe_windows_join(window, from, &tokens, &next);
        if (!joined) {
            *done = i + 1 == windows.count && window->bytes + window->count == bytes + count;
            tokens = bpe_windows_last(window, from, *done);
        }
        accept_ids(accepted, window->ids + tokens.from, tokens.to - tokens.from);
        if (tokens.to > tokens.from)
            last_start = accepted->last_start + (size_t)(window->bytes - bytes) + bpe_windows_start(window, tokens);
        if (!joined)
            break;
    }
    accepted->last_start = last_start;
    return accepted->count == old ? 0 : i + 1;
}

static void take_back(const struct bpe_model *model, struct accepted *accepted, size_t tokens)
{
    while (tokens-- && accepted->count) {
        if (--accepted->count)
            accepted->last_start -= bpe_token_bytes(model, accepted_at(accepted, accepted->count - 1));
    }
}

static uint32_t largest_of(const struct accepted *accepted)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < accepted->count; i++)
        largest = accepted_at(accepted, i) > largest ? accepted_at(accepted, i) : largest;
    return largest;
}

size_t bpe_merge_long(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                      void *tokens, bool wide, uint32_t *largest)
{
    struct merge_part near[MERGE_ROUNDS], *parts = near;
    struct accepted accepted = {tokens, wide, 0, 0};
    const size_t least = scratch->many ? BPE_LANE_BYTES : BPE_SHORT;
    size_t window = least, back = 1, successes = 0, looks = 0;
    uint32_t ahead = BPE_WINDOWS;
    struct window_memory memory;
    assert(count);
    window_memory_init(&memory);
    for (;;) {
        if (++looks > WINDOWS_A_LOOK) {
            looks = 0;
            if (bpe_scratch_stops(scratch))
                return 0;
        }
        const bool last = window >= count - accepted.last_start;
        const size_t size = last ? count - accepted.last_start : window;
        if (size > MERGE_ROUNDS && !window_grow(scratch, size))
            return 0;
        parts = size > MERGE_ROUNDS ? window_parts(scratch, size) : near;
        const uint8_t *text = bytes + accepted.last_start;
        size_t made = window_recall(&memory, text, size, parts);
        if (!made && scratch->many && ahead > 1 && size == BPE_LANE_BYTES && !last) {
            bool done;
            const uint32_t tried = ahead, joined = accept_ahead(model, scratch->many, text, count - accepted.last_start,
                                                                ahead, &accepted, &done);
            looks += tried;
            ahead = joined < tried ? joined : 2 * ahead < BPE_WINDOWS ? 2 * ahead : BPE_WINDOWS;
            if (done) {
                *largest = (uint32_t)max64(*largest, largest_of(&accepted));
                return accepted.count;
            }
            if (joined) {
                back = 1;
                continue;
            }
        }
        ahead = ahead > 1 ? ahead : 2;
        if (!made) {
            made = merge_window(model, scratch, text, size, parts);
            window_keep(&memory, text, size, parts, made);
        }
        if (accepted.count && accepted_at(&accepted, accepted.count - 1) != parts[0].symbol) {
            const size_t end = accepted.last_start;
            take_back(model, &accepted, back);
            back *= 2;
            window = 2 * window + (end - accepted.last_start);
            successes = 0;
            continue;
        }
        if (!last)
            made = parts_to_accept(parts, made, size);
        if (made < 1 + (size_t)(accepted.count != 0) && !last) { /* nothing new */
            window *= 2;
            continue;
        }
        accepted.count -= accepted.count != 0; /* the window begins with it */
        accept(&accepted, parts, made);
        if (last) {
            *largest = (uint32_t)max64(*largest, largest_of(&accepted));
            return accepted.count;
        }
        accepted.last_start += parts[made - 1].start;
        back = 1;
        if (++successes % 16 == 0 && window > least)
            window = window / 2 > least ? window / 2 : least;
    }
}

size_t bpe_merge(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                 uint32_t *ids)
{
    uint32_t largest = 0;
    return count <= BPE_SHORT ? merge_short(model, bytes, count, ids)
                              : bpe_merge_long(model, scratch, bytes, count, ids, true, &largest);
}
