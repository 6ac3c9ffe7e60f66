/* SPDX-License-Identifier: MIT */
/*
 * bpe_encode.c - from text to ids, for one thread: chunks, pieces, two caches, and what is in neither.
 *
 * The idea. Natural text repeats its pieces: in a gigabyte of web text, over 99% of the pieces have come up before. So
 * merging matters little, and the usual case must be one lookup and one store. The obvious way, a hash map from the
 * bytes of a piece to a list of ids, follows three pointers for each piece (bucket, text, ids) and branches on lengths
 * that no processor can predict. Here the usual case reads one cache line, and its only branch is taken where a piece
 * is not found:
 *
 *   1. scan_chunk() cuts up to SCAN_BYTES of text into pieces and reports their starts as a bitmap. bpe_cut.h
 *      adds starts inside pieces: borders of two characters of three bytes that no token crosses. Chinese and Japanese
 *      text has few spaces, so without this its pieces would be whole clauses, which seldom repeat.
 *   2. The bitmap becomes a list of positions, handled in batches of BPE_BATCH pieces.
 *   3. For each piece of the batch a key of 16 bytes is made: up to 15 bytes of text, then zeros, and the length in
 *      the last byte. Its hash selects a bucket, one cache line with two keys and their two values, and the line is
 *      prefetched. A batch is long enough for the lines to arrive before step 4 needs them.
 *   4. Each key is compared with both keys of its bucket. The value that belongs to the equal one holds up to 7 ids
 *      of 16 bits or 4 of 32 bits, and their number. All 16 bytes are stored to the output, whatever the number is, and
 *      the output advances by the number; the next store overwrites the excess. This is why a batch needs BPE_SLACK
 *      more room.
 *
 * Example (GPT-2): "the cat sat" has the pieces "the" " cat" " sat". The key of " cat" is 20 63 61 74, eleven zeros,
 * 04. Its bucket holds the key and the value {ids 3797; count 1}. Sixteen bytes are stored, the output advances by one
 * id, and the id of " sat" is stored after it.
 *
 * Misses, by what they cost:
 *   - The entry is in the neighbor of its bucket, because newer entries pushed it there. It is swapped with a seed of
 *     its bucket (see below), or else back about one time in four: where three entries in use share a bucket, a swap
 *     makes one of the others miss next. While most pieces that may be there are new, as in a text's beginning, they
 *     become pending before that line is read, so that it is prefetched meanwhile.
 *   - The piece is longer than 15 bytes, or has too many ids: the second cache (struct bpe_long) holds it, a line of
 *     64 bytes with ids and bytes, or with a place in the store where they are.
 *   - The piece is in no cache. It is merged and added. With AVX2 it becomes pending instead, and room for its ids
 *     is left in the output. When enough are pending they are merged together (bpe_merge_lanes.h), and the output
 *     after them moves up to close the gaps.
 *   - The text is strange: it has few pieces that any cache holds, such as random words. Then a piece is added to the
 *     caches when it comes up for the second time (keeps()), because adding costs more than merging. Most lines of
 *     the first cache come from memory then, and are prefetched twice (BPE_AGAIN).
 *   - The piece is a token that merging does not reach (bpe_unreached). It is never in a cache, because a part of a
 *     cut piece with the same bytes has other ids.
 *
 * Memory is bounded: buckets replace entries, and when the store is full the second cache is emptied. The caches begin
 * with the tokens of the vocabulary, each with the ids that merging really gives. These seeds are the first to go: a
 * vocabulary of 200,000 tokens fills two fifths of the first cache, and a text uses only a part of them.
 *
 * Cost, for GPT-2 on a Zen 4 processor: 5 ns for a piece that is found, and about 200 ns for one that is merged.
 *
 * Each thread has caches of its own. Two threads merge 255,000 pieces of 67 MB of prose in all, where one merges
 * 193,000. The longer the text, the smaller is the difference, so a shared cache would gain little.
 *
 * Tried and not kept, as times the rate (Zen 3 to Zen 5):
 *   - entries of 16 bytes for short pieces: 0.86 to 0.93; 2^17 buckets in place of 2^18: 0.75 to 0.96, warm; other
 *     numbers of buckets and caches of 16 MiB were not faster; batches of 64 pieces: slower
 *   - entries that the first cache loses move to the second, so that fewer pieces are merged again: 0.94 to 0.99 cold,
 *     0.99 to 1.04 warm, because new entries cost more
 *   - 24 to 256 pending pieces in place of 64: 0.95 to 1.05 cold; buckets of merged pieces are prefetched: 0.99 to 1.00
 *   - prefetching again in all texts: 0.87 to 0.98 warm; spreading prefetches over the making of keys, or prefetching
 *     the output, the text two chunks ahead, or lines where seeds and merged pieces are added: 0.97 to 1.03
 *   - making the cache of the first state ready while the vocabulary loads: gpt2 is ready after 18.2 ms in place
 * of 17.5
 *   - long pieces without a branch of their own: 0.96 in mixed scripts
 *   - hashes of two keys at once with VAES: 1.01 to 1.02 in the AVX2 variant, which is not worth a variant of its own
 *   - gcc's -O3: 1.01 cold, 0.99 warm; functions and loops aligned to 64 and 32 bytes: 0.99; clang 14: 0.93 to 0.96
 */
#include "bpe_encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_entries.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define BESIDE_COUNTED 256 /* older counts of beside_found and beside_new weigh half as much after as many pieces */

#define CACHES_BYTES (((uint64_t)BPE_COPIES + BPE_BATCH) * sizeof(struct bpe_bucket))

static uint64_t long_hash(struct table_key seed, const uint8_t *bytes, size_t count)
{
    return count > 15 ? bpe_long_hash(seed, bytes, count) : bpe_short_hash(seed, bpe_key_of(bytes, (uint32_t)count));
}

const struct bpe_long *bpe_long_line(struct bpe_state *state, uint32_t i, const uint8_t *bytes, uint32_t count)
{
    state->keys[i].low = bpe_long_hash(state->seed, bytes, count);
    state->batch_longs[state->batch_long_count++] = (uint8_t)i;
    return bpe_long_at(state, bpe_long_tag(state->keys[i].low), 0);
}

/* ---- pieces that no cache holds ---- */

/* Stores ids in the tokens' width. Returns how many. */
static size_t emit(struct bpe_state *state, const uint32_t *ids, size_t count, void *tokens)
{
    uint32_t largest = 0;
    if (state->model->wide) {
        uint32_t *into = tokens;
        for (size_t i = 0; i < count; i++) {
            into[i] = ids[i];
            largest = ids[i] > largest ? ids[i] : largest;
        }
    } else {
        uint16_t *into = tokens;
        for (size_t i = 0; i < count; i++) {
            into[i] = (uint16_t)ids[i];
            largest = ids[i] > largest ? ids[i] : largest;
        }
    }
    state->largest = max64(state->largest, largest);
    return count;
}

/* Merges a piece into state->merged, which stays valid on failure. Returns the number of ids; 0 if memory ran out. */
static size_t merge(struct bpe_state *state, const uint8_t *bytes, size_t count)
{
    if (state->merged_room < count) {
        uint32_t *wider = malloc(count * sizeof *wider);
        if (!wider) {
            state->lacks_memory = true;
            return 0;
        }
        free(state->merged);
        state->merged = wider;
        state->merged_room = count;
    }
    const size_t made = state->model->merge(state->model, &state->scratch, bytes, count, state->merged);
    if (!made)
        state->lacks_memory = true;
    state->counts.merged++;
    return made;
}

/* Merges a piece that is too long for the caches straight into the tokens. */
static size_t merge_giant(struct bpe_state *state, const uint8_t *bytes, size_t count, void *tokens)
{
    uint32_t largest = 0;
    const size_t made =
        bpe_merge_long(state->model, &state->scratch, bytes, count, tokens, state->model->wide, &largest);
    state->lacks_memory |= !made;
    state->counts.merged++;
    state->largest = max64(state->largest, largest);
    return made;
}

/* Returns whether text[from, to) of the chunk is a part of a piece, cut by state->cut(). */
static bool is_part(const struct bpe_state *state, size_t from, size_t to)
{
    return (state->cuts[from / 64] >> (from % 64) & 1) || (state->cuts[to / 64] >> (to % 64) & 1);
}

/* Finds the ids of a piece, in state->merged: by merging, or the token that it is although merging does not reach
 * it. The latter must not be kept in a cache, since a part of a piece with the same bytes (part) has the ids that
 * merging gives. Returns the number of ids; 0 if memory ran out. */
static size_t merge_or_whole(struct bpe_state *state, const uint8_t *bytes, size_t count, bool part, bool *keep)
{
    const uint32_t whole = bpe_unreached(state->model, bytes, count);
    *keep = whole == BPE_NONE;
    if (whole == BPE_NONE || part)
        return merge(state, bytes, count);
    state->merged[0] = whole;
    return 1;
}

/* Writes the ids of a piece that the first cache does not hold, or does not hold inline. */
static size_t miss_long(struct bpe_state *state, const uint8_t *bytes, size_t count, bool part, void *tokens)
{
    const uint64_t hash = long_hash(state->seed, bytes, count);
    const void *ids;
    const struct bpe_long *line = bpe_long_find(state, hash, bytes, count, &ids);
    if (line) {
        state->counts.long_found++;
        state->largest = max64(state->largest, line->largest);
        memcpy(tokens, ids, (size_t)line->ids * (state->model->wide ? 4 : 2));
        return line->ids;
    }
    if (count > BPE_LONG_MOST && state->model->merge == bpe_merge &&
        (part || bpe_unreached(state->model, bytes, count) == BPE_NONE))
        return merge_giant(state, bytes, count, tokens);
    bool keep;
    const size_t made = merge_or_whole(state, bytes, count, part, &keep);
    if (keep && made)
        bpe_long_add(state, hash, bytes, count, state->merged, made);
    return emit(state, state->merged, made, tokens);
}

/* Unpacks a value of the first cache. Returns the number of ids; 0: the second cache has them. */
static uint32_t inline_ids(const uint64_t value[2], bool wide, uint32_t ids[8])
{
    const uint32_t count = (uint32_t)(wide ? value[0] >> 28 & 15 : value[1] >> 48);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = wide ? (uint32_t)(value[i / 2] >> (32 * (i % 2))) & 0x0FFFFFFF
                      : (uint32_t)(value[i / 4] >> (16 * (i % 4))) & 0xFFFF;
    return count;
}

/* Adds a piece of at most 15 bytes to the caches. */
static void keep_entry(struct bpe_state *state, uint32_t at, struct bpe_key key, const uint32_t *ids, uint32_t count)
{
    uint64_t value[2] = {0, 0};
    if (count <= bpe_inline_ids(state->model->wide))
        bpe_value_make(value, state->model->wide, ids, count);
    else
        bpe_long_add(state, bpe_short_hash(state->seed, key), (const uint8_t *)&key, key.high >> 56, ids, count);
    const struct bpe_bucket *home = &state->buckets[at];
    if (!bpe_same_key(home->keys[0], key) &&
        !bpe_same_key(home->keys[1], key)) /* else the second cache had lost its ids */
        bpe_entry_add(state, at, key, value);
}

size_t bpe_miss(struct bpe_state *state, const uint8_t *text, size_t from, size_t to, void *tokens)
{
    const uint8_t *bytes = text + from;
    const size_t count = to - from;
    const bool part = is_part(state, from, to);
    state->counts.missed++;
    if (count > 15)
        return miss_long(state, bytes, count, part, tokens);
    const struct bpe_key key = bpe_key_of(bytes, (uint32_t)count);
    const uint32_t at = bpe_bucket_of(state, key);
    const uint64_t *value = bpe_entry_find(state, at, key);
    if (value) {
        uint32_t ids[8];
        const uint32_t found = inline_ids(value, state->model->wide, ids);
        return found ? emit(state, ids, found, tokens) : miss_long(state, bytes, count, part, tokens);
    }
    bool keep;
    const size_t made = merge_or_whole(state, bytes, count, part, &keep);
    if (keep && made)
        keep_entry(state, at, key, state->merged, (uint32_t)made);
    return emit(state, state->merged, made, tokens);
}

/* ---- pending pieces ---- */

/* Returns whether a piece that is longer than a lane becomes pending. Its windows keep lanes busy that would wait for
 * memory if the piece were merged alone, but in natural text such pieces are few and often repeat one character, which
 * bpe_merge_long() is made for. windows: of the piece. */
static bool windows_wait(const struct bpe_state *state, uint32_t count, uint32_t windows)
{
    return state->strange >= BPE_STRANGE / 4 && state->model->merge == bpe_merge && count <= BPE_LONG_MOST &&
           windows <= BPE_PENDING_WINDOWS - state->windows_count;
}

/* Returns the value of a key that may be in the neighbor of its bucket, or NULL; and counts which of both it was. */
static const uint64_t *find_beside(struct bpe_state *state, uint32_t bucket, struct bpe_key key)
{
    const uint64_t *value = bpe_entry_find(state, bucket, key);
    state->beside_found += value != NULL;
    state->beside_new += value == NULL;
    if (state->beside_found + state->beside_new > BESIDE_COUNTED) {
        state->beside_found /= 2;
        state->beside_new /= 2;
    }
    return value;
}

size_t bpe_miss_batch(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t i, void *into,
                      const void *tokens)
{
    const struct bpe_key key = state->keys[i];
    const uint32_t bucket = state->batch_places[i] >> BPE_BUCKET_SHIFT;
    const uint32_t from = positions[i], to = positions[i + 1], count = to - from;
    const bool short_one = count <= 15, strange = state->strange >= BPE_STRANGE;
    const uint64_t *value = short_one ? bpe_entry_at_home(state, bucket, key) : NULL;
    bool beside = short_one && !value && bpe_entry_may_be_beside(state, bucket);
    if (beside && !strange && state->beside_new <= state->beside_found) {
        value = find_beside(state, bucket, key);
        beside = false;
    }
    const void *ids;
    const uint32_t windows = count > BPE_LANE_BYTES ? bpe_windows_of(count) : 0;
    if (value && value[0] | value[1]) {
        uint32_t found[8];
        state->counts.missed++;
        return emit(state, found, inline_ids(value, state->model->wide, found), into);
    }
    if (!state->merge_many || (windows && !windows_wait(state, count, windows)) ||
        (count > 15 && bpe_long_find(state, key.low, text + from, count, &ids)) ||
        ((count > 15 || bpe_may_be_unreached(state->model, key)) &&
         bpe_unreached(state->model, text + from, count) != BPE_NONE))
        return bpe_miss(state, text, from, to, into);
    if (value)
        __builtin_prefetch(bpe_long_at(state, bpe_long_tag(bpe_short_hash(state->seed, key)), 1));
    if (beside)
        __builtin_prefetch(&state->buckets[bucket ^ 1]);
    struct bpe_pending *piece = &state->pending[state->pending_count++];
    piece->key = key;
    piece->has_entry = value != NULL;
    piece->beside = beside;
    piece->windows = windows;
    state->windows_count += windows;
    piece->piece =
        (struct bpe_piece){.bytes = text + from, .count = count, .ids = state->pending_ids + state->pending_ids_count};
    piece->bucket = bucket;
    piece->at = (uint64_t)((uint8_t *)into - (const uint8_t *)tokens) / (state->model->wide ? 4 : 2);
    state->pending_ids_count += count + 16;
    assert(state->pending_ids_count <= BPE_PENDING_IDS);
    return count;
}

/* Returns whether two pending pieces have the same bytes. */
static bool same_piece(const struct bpe_pending *a, const struct bpe_pending *b)
{
    const struct bpe_piece *one = &a->piece, *other = &b->piece;
    return bpe_same_key(a->key, b->key) &&
           (one->count <= 15 || (one->count == other->count && !memcmp(one->bytes, other->bytes, one->count)));
}

/* Destination of ids. Of the `made` tokens, those where pending pieces begin are gaps that have room for their ids. */
struct output {
    uint8_t *tokens;
    uint64_t made, room; /* in tokens */
};

/* Writes the ids of all pending pieces where room was left for them, and moves what is after each gap up. */
static void close_gaps(struct bpe_state *state, struct output *out)
{
    const size_t size = state->model->wide ? 4 : 2;
    uint8_t *const tokens = out->tokens;
    uint64_t to = state->pending[0].at;
    for (uint32_t i = 0; i < state->pending_count; i++) {
        const struct bpe_pending *piece = &state->pending[i], *found = piece->same ? piece->same : piece;
        const uint64_t from = piece->at + piece->piece.count;
        const uint64_t end = i + 1 < state->pending_count ? state->pending[i + 1].at : out->made;
        to += emit(state, found->piece.ids, found->piece.ids_count, tokens + to * size);
        memmove(tokens + to * size, tokens + from * size, (end - from) * size);
        to += end - from;
    }
    out->made = to;
}

/* Adds a pending piece that has been merged to the caches. */
static void keep_merged(struct bpe_state *state, const struct bpe_pending *pending)
{
    const struct bpe_piece *piece = &pending->piece;
    if (piece->count <= 15)
        keep_entry(state, pending->bucket, pending->key, piece->ids, piece->ids_count);
    else
        bpe_long_add(state, pending->key.low, piece->bytes, piece->count, piece->ids, piece->ids_count);
}

/* Finds the ids of a pending piece of at most 15 bytes in the second cache. Returns false if it has lost them. */
static bool recall(struct bpe_state *state, struct bpe_piece *piece, uint64_t hash)
{
    const void *ids;
    const struct bpe_long *line = bpe_long_find(state, hash, piece->bytes, piece->count, &ids);
    if (!line)
        return false;
    for (uint32_t i = 0; i < line->ids; i++)
        piece->ids[i] = state->model->wide ? ((const uint32_t *)ids)[i] : ((const uint16_t *)ids)[i];
    piece->ids_count = line->ids;
    state->counts.long_found++;
    return true;
}

/* Finds the ids of a pending piece whose entry may be in the neighbor of its bucket. Returns false if they are not
 * there. */
static bool recall_beside(struct bpe_state *state, struct bpe_pending *pending)
{
    const uint64_t *value = find_beside(state, pending->bucket, pending->key);
    if (!value)
        return false;
    pending->has_entry = true;
    pending->piece.ids_count = inline_ids(value, state->model->wide, pending->piece.ids);
    return pending->piece.ids_count != 0;
}

/* ---- strangers ---- */

/* Returns whether a pending piece that has been merged belongs in the caches. Usually it does, since natural text soon
 * repeats it. Where text does not repeat itself, most pieces are strange, and each that is added pushes out another,
 * with several cache misses. There a piece is added when it comes up for the second time: the first time leaves only a
 * tag of its hash. */
static bool keeps(struct bpe_state *state, const struct bpe_pending *pending)
{
    if (state->strange < BPE_STRANGE || pending->has_entry)
        return true;
    const uint64_t hash = pending->piece.count <= 15 ? bpe_short_hash(state->seed, pending->key) : pending->key.low;
    uint16_t *door = &state->doors[hash & ((1u << BPE_DOOR_BITS) - 1)];
    const uint16_t tag = (uint16_t)(hash >> 48);
    const bool known = *door == tag;
    *door = tag;
    return known;
}

/* Counts the pieces since the last call, and those of them that no cache held. Pending pieces count among these; if
 * some of them turn out to be equal, or to be in a cache after all, the next count is lower by as many. */
static void strange_count(struct bpe_state *state)
{
    const uint64_t strangers = state->counts.merged + state->pending_count;
    if (!state->pieces_since)
        return;
    const uint64_t since = strangers - min64(strangers, state->strangers_before);
    state->strange = (7 * state->strange + 256 * since / state->pieces_since) / 8;
    state->strangers_before = strangers;
    state->pieces_since = 0;
}

/* Prefetches the lines of the second cache that pieces of at most 15 bytes are about to get. */
static void prefetch_lines(const struct bpe_state *state, struct bpe_piece *const *pieces, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct bpe_pending *pending = (const struct bpe_pending *)(const void *)pieces[i];
        if (pieces[i]->count <= 15 && pieces[i]->ids_count > bpe_inline_ids(state->model->wide)) {
            const uint32_t tag = bpe_long_tag(bpe_short_hash(state->seed, pending->key));
            __builtin_prefetch(bpe_long_at(state, tag, 0), 1);
            __builtin_prefetch(bpe_long_at(state, tag, 1), 1);
        }
    }
}

/* Lists the windows of those pending pieces that are longer than a lane. Returns how many there are. */
static uint32_t list_windows(struct bpe_state *state)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < state->pending_count && state->windows_count; i++) {
        const struct bpe_pending *pending = &state->pending[i];
        if (pending->windows && !pending->same)
            used += bpe_windows_cut(state->windows + used, state->window_ids + used * BPE_WINDOW_IDS,
                                    pending->piece.bytes, pending->piece.count, pending->windows);
    }
    for (uint32_t i = 0; i < used; i++)
        state->to_merge[i] = &state->windows[i];
    return used;
}

/* Lists those pending pieces that fit a lane, without those that are the `same`, after the `count` that are listed
 * already. The longest come first, because they take most turns: then the last lanes end at about the same time.
 * lengths: how many pieces there are of each length. Returns how many pieces are listed in all. */
static uint32_t list_by_length(struct bpe_state *state, uint32_t count, const uint16_t lengths[BPE_LANE_BYTES + 1])
{
    uint32_t next[BPE_LANE_BYTES + 1];
    for (uint32_t length = BPE_LANE_BYTES; length; length--) {
        next[length] = count;
        count += lengths[length];
    }
    for (uint32_t i = 0; i < state->pending_count; i++) {
        struct bpe_pending *pending = &state->pending[i];
        if (pending->merges)
            state->to_merge[next[pending->piece.count]++] = &pending->piece;
    }
    return count;
}

/* Joins the windows of those pieces, which have been merged. Returns how many pieces they are. */
static uint32_t join_windows(struct bpe_state *state)
{
    uint32_t used = 0, pieces = 0, largest = 0;
    for (uint32_t i = 0; i < state->pending_count && state->windows_count; i++) {
        struct bpe_pending *pending = &state->pending[i];
        struct bpe_piece *piece = &pending->piece;
        if (!pending->windows || pending->same)
            continue;
        piece->ids_count = bpe_windows_ids(state->windows + used, pending->windows, piece->ids);
        if (!piece->ids_count)
            piece->ids_count = (uint32_t)bpe_merge_long(state->model, &state->scratch, piece->bytes, piece->count,
                                                        piece->ids, true, &largest);
        state->lacks_memory |= !piece->ids_count;
        state->heads[pending->bucket % BPE_PENDING_HEADS] = NULL;
        if (piece->ids_count && keeps(state, pending))
            keep_merged(state, pending);
        used += pending->windows;
        pieces++;
    }
    return pieces;
}

/* Finds out which pending pieces have to be merged: not those that a cache holds after all, nor those that are the same
 * as an earlier one. lengths: how many of those that fit a lane have each length. */
static void choose_pending(struct bpe_state *state, uint16_t lengths[BPE_LANE_BYTES + 1])
{
    for (uint32_t i = 0; i < state->pending_count; i++) {
        struct bpe_pending *pending = &state->pending[i];
        struct bpe_pending **head = &state->heads[pending->bucket % BPE_PENDING_HEADS], *same = *head;
        pending->same = NULL;
        pending->merges = false;
        if (pending->beside && recall_beside(state, pending))
            continue;
        if (pending->has_entry && recall(state, &pending->piece, bpe_short_hash(state->seed, pending->key)))
            continue;
        while (same && !same_piece(same, pending))
            same = same->older;
        pending->same = same;
        if (same)
            continue;
        pending->older = *head;
        *head = pending;
        if (!pending->windows) {
            pending->merges = true;
            lengths[pending->piece.count]++;
        }
    }
}

/* Merges all pending pieces and closes their gaps. */
static void merge_pending(struct bpe_state *state, struct output *out)
{
    uint16_t lengths[BPE_LANE_BYTES + 1] = {0};
    if (!state->pending_count)
        return;
    choose_pending(state, lengths);
    const uint32_t windows = list_windows(state), count = list_by_length(state, windows, lengths);
    struct bpe_piece *const *const pieces = state->to_merge + windows;
    if (count)
        state->merge_many(state->model, state->to_merge, count,
                          windows ? BPE_SIZES - 1 : bpe_size_class(pieces[0]->count));
    if (state->strange < BPE_STRANGE)
        prefetch_lines(state, pieces, count - windows);
    for (uint32_t i = 0; i < count - windows; i++) {
        const struct bpe_pending *pending = (const struct bpe_pending *)(const void *)pieces[i];
        state->heads[pending->bucket % BPE_PENDING_HEADS] = NULL;
        if (keeps(state, pending))
            keep_merged(state, pending);
    }
    state->counts.merged += count - windows + join_windows(state);
    state->counts.missed += state->pending_count;
    close_gaps(state, out);
    state->pending_count = state->pending_ids_count = state->windows_count = 0;
}

/* ---- from text to pieces ---- */

/* Writes the ids of a piece that is longer than a chunk, cut as in bpe_cut.h. */
static size_t encode_giant(struct bpe_state *state, const uint8_t *text, size_t count, void *tokens)
{
    const size_t size = state->model->wide ? 4 : 2;
    size_t made = 0, from = 0;
    for (size_t at = 3; at + 8 <= count; at++) {
        if (text[at] < 0xE0 || text[at - 3] < 0xE0 || at - 3 < from ||
            bpe_may_join(state->model, load64(text + at - 3)))
            continue;
        made += miss_long(state, text + from, at - from, true, (uint8_t *)tokens + made * size);
        from = at;
    }
    return made + miss_long(state, text + from, count - from, from != 0, (uint8_t *)tokens + made * size);
}

/* Prefetches the text that comes one chunk after text[from, to). The scanner reads a chunk faster than memory delivers
 * it, so each batch asks for its share of the next chunk. After the last chunk that is often the next document; a
 * prefetch of memory that does not exist has no effect. */
static inline void prefetch_text(const uint8_t *text, uint32_t from, uint32_t to)
{
    for (uint32_t at = from; at < to; at += 64)
        __builtin_prefetch((const void *)((uintptr_t)text + SCAN_BYTES + at));
}

/* Writes the ids of the pieces at state->positions, batch by batch. Some pieces may still be pending in the end. */
static void encode_pieces(struct bpe_state *state, const uint8_t *text, uint32_t count, struct output *out)
{
    const size_t size = state->model->wide ? 4 : 2;
    for (uint32_t i = 0; i < count; i += BPE_BATCH) {
        const uint32_t batch = count - i < BPE_BATCH ? count - i : BPE_BATCH, pending = state->pending_count;
        const uint16_t *positions = state->positions + i;
        const uint64_t bytes = (uint64_t)positions[batch] - positions[0];
        uint8_t *into = out->tokens + out->made * size;
        size_t few;
        prefetch_text(text, positions[0], positions[batch]);
        if (out->room - out->made >= bytes + BPE_SLACK) {
            few = state->pieces(state, text, positions, batch, into);
        } else {
            few = state->pieces(state, text, positions, batch, state->spill);
            memcpy(into, state->spill, few * size);
        }
        for (uint32_t k = pending; k < state->pending_count; k++)
            state->pending[k].at += out->made;
        out->made += few;
        state->pieces_since += batch;
        if (state->pending_count >= BPE_PENDING || state->windows_count >= BPE_PENDING_WINDOWS / 2) {
            merge_pending(state, out);
            strange_count(state);
        }
    }
    strange_count(state);
}

/* Writes the ids of a chunk of text, as bpe_encode_starts() does. Some pieces may still be pending in the end: they are
 * merged with those of the next chunks, because lanes that run out of pieces wait for memory. */
static void encode_chunk(struct bpe_state *state, const uint8_t *text, size_t count, struct output *out)
{
    assert(count && count <= SCAN_BYTES && out->room - out->made >= count);
    assert(state->chunk.starts[0] & 1);
    assert(state->text_end >= text + count);
    const uint32_t pieces = state->find_positions(state->positions, state->chunk.starts, (count + 63) / 64);
    state->positions[pieces] = (uint16_t)count;
    state->counts.pieces += pieces;
    encode_pieces(state, text, pieces, out);
}

/* Adds the cuts of a chunk that scan_chunk() has scanned, and that is not longer than SCAN_BYTES. Text without
 * characters of more than one byte has none. */
static void cut_chunk(struct bpe_state *state, const uint8_t *text, size_t done)
{
    uint64_t wide = 0;
    for (size_t i = 0; i < sizeof state->chunk.masks.wide_words / sizeof wide; i++)
        wide |= state->chunk.masks.wide_words[i];
    if (wide)
        state->cut(&(struct bpe_cutting){state->model, &state->chunk, state->cuts, state->text_end}, text, done);
    else
        memset(state->cuts, 0, ((done + 63) / 64 + 1) * sizeof *state->cuts);
}

size_t bpe_encode_starts(struct bpe_state *state, const uint8_t *text, size_t count, void *tokens, uint64_t room)
{
    struct output out = {tokens, 0, room};
    assert(!state->pending_count);
    encode_chunk(state, text, count, &out);
    merge_pending(state, &out);
    return out.made;
}

enum tokmap_status bpe_state_check(struct bpe_state *state, uint64_t bytes, struct tokmap_error *error)
{
    const bool lacks_memory = state->lacks_memory;
    state->lacks_memory = false;
    if (state->scratch.stopped)
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    return lacks_memory ? error_set_memory(error, "merging a long piece of text", bytes) : TOKMAP_OK;
}

enum tokmap_status bpe_encode(struct bpe_state *state, const uint8_t *text, uint64_t count, void *tokens, uint64_t room,
                              uint64_t *written, struct tokmap_error *error)
{
    const size_t size = state->model->wide ? 4 : 2;
    struct output out = {tokens, 0, room};
    assert(room >= count && !state->pending_count);
    state->text_end = text + count;
    while (count && !bpe_scratch_stops(&state->scratch)) {
        const size_t done = scan_chunk(&state->model->scanner, &state->chunk, text, count);
        if (done > SCAN_BYTES) {
            merge_pending(state, &out);
            out.made += encode_giant(state, text, done, out.tokens + out.made * size);
        } else {
            cut_chunk(state, text, done);
            encode_chunk(state, text, done, &out);
        }
        text += done;
        count -= done;
    }
    merge_pending(state, &out);
    *written = out.made;
    return bpe_state_check(state, state->scratch.bytes, error);
}

enum tokmap_status bpe_encode_piece(struct bpe_state *state, const uint8_t *piece, uint64_t count, void *tokens,
                                    uint64_t *written, struct tokmap_error *error)
{
    assert(count && !state->pending_count);
    if (count <= 15) {
        state->cuts[0] = 0; /* the piece is not a part of another */
        *written = bpe_miss(state, piece, 0, count, tokens);
    } else {
        *written = miss_long(state, piece, count, false, tokens);
    }
    state->counts.pieces++;
    return bpe_state_check(state, state->scratch.bytes, error);
}

enum tokmap_status bpe_state_new(struct bpe_state **out, const struct bpe_model *model, enum cpu_variant variant,
                                 struct tokmap_error *error)
{
    void *caches = NULL, *memory = calloc(1, sizeof(struct bpe_state) + _Alignof(struct bpe_state) - 1);
    assert(variant <= cpu_variant_best());
    *out = NULL;
    if (!memory)
        return error_set_memory(error, "the state of a tokenizer", sizeof(struct bpe_state));
    struct bpe_state *state = (struct bpe_state *)((uintptr_t)memory + -(uintptr_t)memory % _Alignof(struct bpe_state));
    state->memory = memory;
    state->model = model;
    state->seed = table_key_new();
    state->merged_room = 4096;
    state->merged = malloc(state->merged_room * sizeof *state->merged);
    const int failed = os_memory_new(CACHES_BYTES, true, &caches);
    state->buckets = caches;
    if (failed || !state->merged) {
        bpe_state_free(state);
        return error_set_memory(error, "the state of a tokenizer", CACHES_BYTES);
    }
    bpe_longs_place(state);
    state->bucket_mask = (1u << BPE_BUCKET_BITS) - 1;
    state->pieces = bpe_pieces_scalar;
    state->find_positions = bpe_positions_scalar;
    state->hash = bpe_hash_scalar;
    state->cut = bpe_cut_scalar;
#if defined(__x86_64__)
    const bool lanes = model->merge == bpe_merge && model->vocabulary < BPE_IDS;
    if (variant >= CPU_AVX2) {
        state->pieces = bpe_pieces_avx2;
        state->find_positions = bpe_positions_avx2;
        state->hash = bpe_hash_aes;
        state->cut = bpe_cut_avx2;
        state->merge_many = lanes ? bpe_merge_many_avx2 : NULL;
    }
    if (variant == CPU_VBMI) {
        state->pieces = bpe_pieces_vbmi;
        state->find_positions = bpe_positions_vbmi;
        state->cut = bpe_cut_vbmi;
        state->merge_many = lanes ? bpe_merge_many_vbmi : NULL;
    }
    state->scratch.many = state->merge_many;
#endif
    bpe_entries_seed(state);
    *out = state;
    return TOKMAP_OK;
}

void bpe_state_free(struct bpe_state *state)
{
    if (!state)
        return;
    os_memory_free(state->buckets, CACHES_BYTES);
    free(state->scratch.memory);
    free(state->merged);
    free(state->memory);
}
