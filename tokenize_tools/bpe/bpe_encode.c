/* bpe_encode.c - the state of one thread: its caches, what they do not have, and the way from text to pieces. */
#include "bpe_encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define BUCKET_BITS 19 /* 32 MiB */
#define STORE_UNITS ((uint64_t)1 << 21) /* 8 MiB */
#define LONGEST_KEPT 2048 /* web pages have lists without spaces, the same on each */

#define BUCKETS_BYTES ((uint64_t)sizeof(struct bpe_bucket) << BUCKET_BITS)
#define LONGS_BYTES ((uint64_t)sizeof(struct bpe_long) << BPE_LONG_BITS)
#define STORE_BYTES (STORE_UNITS * 4)

/* ---- the first cache ---- */

static void entry_swap(struct bpe_bucket *a, uint32_t i, struct bpe_bucket *b, uint32_t k)
{
    const struct bpe_key key = a->keys[i];
    const uint64_t value[2] = {a->values[i][0], a->values[i][1]};
    a->keys[i] = b->keys[k];
    memcpy(a->values[i], b->values[k], sizeof value);
    b->keys[k] = key;
    memcpy(b->values[k], value, sizeof value);
}

static bool same_key(struct bpe_key a, struct bpe_key b)
{
    return a.low == b.low && a.high == b.high;
}

/* An entry lives in its bucket or in the one beside it: there it is only found by a miss, which brings it home. */
static void entry_add(struct bpe_state *state, uint32_t at, struct bpe_key key, const uint64_t value[2])
{
    struct bpe_bucket *home = &state->buckets[at], *beside = &state->buckets[at ^ 1];
    uint32_t way = 0;
    while (way < 2 && home->keys[way].high)
        way++;
    if (way == 2) {
        way = state->victim++ & 1;
        const uint32_t other = !beside->keys[0].high ? 0 : !beside->keys[1].high ? 1 : state->victim >> 1 & 1;
        entry_swap(home, way, beside, other);
    }
    home->keys[way] = key;
    memcpy(home->values[way], value, 2 * sizeof *value);
}

/* The entry of a key at home, having been brought there if it was beside; NULL if there is none. */
static uint64_t *entry_find(struct bpe_state *state, uint32_t at, struct bpe_key key)
{
    struct bpe_bucket *home = &state->buckets[at], *beside = &state->buckets[at ^ 1];
    for (uint32_t way = 0; way < 2; way++)
        if (same_key(home->keys[way], key))
            return home->values[way];
    /* Nothing goes beside before its home is full, and that line is far. */
    for (uint32_t way = 0; way < 2 && home->keys[1].high; way++)
        if (same_key(beside->keys[way], key)) {
            const uint32_t into = state->victim++ & 1;
            entry_swap(home, into, beside, way);
            return home->values[into];
        }
    return NULL;
}

/* ---- the second cache ---- */

static uint64_t long_hash(const uint8_t *bytes, size_t count)
{
    return count > 15 ? bpe_long_hash(bytes, count) : bpe_short_hash(bpe_key_of(bytes, (uint32_t)count));
}

/* The line of a piece, or the one beside it; NULL if neither has it. *ids: in the tokens' width. */
static const struct bpe_long *long_find(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count,
                                        const void **ids)
{
    const uint32_t width = state->model->wide ? 4 : 2;
    for (uint32_t beside = 0; beside < 2; beside++) {
        const struct bpe_long *line = bpe_long_at(state, hash ^ beside);
        if (!line->tag)
            return NULL; /* nothing goes beside before its home is full */
        if (line->tag != bpe_long_tag(hash) || line->bytes != count)
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

static void long_add(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count, const uint32_t *ids,
                     size_t id_count)
{
    const uint32_t width = state->model->wide ? 4 : 2;
    const uint64_t needed = id_count * width + count;
    struct bpe_long *line = bpe_long_at(state, hash);
    if (count > LONGEST_KEPT)
        return;
    uint8_t *into = NULL;
    if (needed > sizeof line->rest) {
        const uint64_t units = (needed + 3) / 4;
        if (state->store_used + units > STORE_UNITS) {
            memset(state->longs, 0, LONGS_BYTES);
            state->store_used = 0;
            state->counts.stores_emptied++;
        }
        into = (uint8_t *)(state->store + state->store_used);
    }
    if (line->tag) {
        struct bpe_long *beside = bpe_long_at(state, hash ^ 1);
        if (!beside->tag || (state->victim++ & 1))
            line = beside;
    }
    line->tag = bpe_long_tag(hash);
    line->largest = 0;
    line->bytes = (uint16_t)count;
    line->ids = (uint16_t)id_count;
    if (into) {
        store32(line->rest, (uint32_t)state->store_used);
        state->store_used += (needed + 3) / 4;
    } else {
        into = line->rest;
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

/* ---- what no cache has ---- */

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

/* The merged ids are in state->merged. 0: no memory. */
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

/* What no cache would keep goes straight to the tokens. */
static size_t merge_giant(struct bpe_state *state, const uint8_t *bytes, size_t count, void *tokens)
{
    uint32_t largest = 0;
    const size_t made = bpe_merge_long(state->model, &state->scratch, bytes, count, tokens, state->model->wide, &largest);
    state->lacks_memory |= !made;
    state->counts.merged++;
    state->largest = max64(state->largest, largest);
    return made;
}

static bool is_part(const struct bpe_state *state, size_t from, size_t to)
{
    return (state->cuts[from / 64] >> (from % 64) & 1) || (state->cuts[to / 64] >> (to % 64) & 1);
}

/* Merges a piece, or takes the token that it is though merges do not reach it: then it is in no cache, because a part of
 * a piece with these bytes is something else. */
static size_t merge_or_whole(struct bpe_state *state, const uint8_t *bytes, size_t count, bool part, bool *keep)
{
    const uint32_t whole = bpe_unreached(state->model, bytes, count);
    *keep = whole == BPE_NONE;
    if (whole == BPE_NONE || part)
        return merge(state, bytes, count);
    state->merged[0] = whole;
    return 1;
}

static size_t miss_long(struct bpe_state *state, const uint8_t *bytes, size_t count, bool part, void *tokens)
{
    const uint64_t hash = long_hash(bytes, count);
    const void *ids;
    const struct bpe_long *line = long_find(state, hash, bytes, count, &ids);
    if (line) {
        state->counts.long_found++;
        state->largest = max64(state->largest, line->largest);
        memcpy(tokens, ids, (size_t)line->ids * (state->model->wide ? 4 : 2));
        return line->ids;
    }
    if (count > LONGEST_KEPT && state->model->merge == bpe_merge &&
        (part || bpe_unreached(state->model, bytes, count) == BPE_NONE))
        return merge_giant(state, bytes, count, tokens);
    bool keep;
    const size_t made = merge_or_whole(state, bytes, count, part, &keep);
    if (keep && made)
        long_add(state, hash, bytes, count, state->merged, made);
    return emit(state, state->merged, made, tokens);
}

/* Ids that a value of the first cache holds inline; 0: they are in the second. */
static uint32_t inline_ids(const uint64_t value[2], bool wide, uint32_t ids[8])
{
    const uint32_t count = (uint32_t)(wide ? value[0] >> 28 & 15 : value[1] >> 48);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = wide ? (uint32_t)(value[i / 2] >> (32 * (i % 2))) & 0x0FFFFFFF
                      : (uint32_t)(value[i / 4] >> (16 * (i % 4))) & 0xFFFF;
    return count;
}

/* Puts a piece of at most 15 bytes into the caches. */
static void keep_entry(struct bpe_state *state, uint32_t at, struct bpe_key key, const uint32_t *ids, uint32_t count)
{
    uint64_t value[2] = {0, 0};
    if (count <= bpe_inline_ids(state->model->wide))
        bpe_value_make(value, state->model->wide, ids, count);
    else
        long_add(state, bpe_short_hash(key), (const uint8_t *)&key, key.high >> 56, ids, count);
    entry_add(state, at, key, value);
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
    const uint64_t *value = entry_find(state, at, key);
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

/* ---- what is found later ---- */

size_t bpe_miss_batch(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t i, void *into,
                      const void *tokens)
{
    const struct bpe_key key = state->keys[i];
    const uint32_t from = positions[i], to = positions[i + 1], count = to - from;
    const void *ids;
    if (count > BPE_LANE_BYTES || !state->merge_many ||
        (count <= 15 ? entry_find(state, state->chosen[i], key) != NULL
                     : long_find(state, key.low, text + from, count, &ids) != NULL) ||
        bpe_unreached(state->model, text + from, count) != BPE_NONE)
        return bpe_miss(state, text, from, to, into);
    struct bpe_pending *piece = &state->pending[state->pending_count++];
    piece->key = key;
    piece->piece = (struct bpe_piece){.bytes = text + from, .count = count,
                                      .ids = state->pending_ids + state->pending_ids_count};
    piece->chosen = state->chosen[i];
    piece->at = (uint32_t)((size_t)((uint8_t *)into - (const uint8_t *)tokens) / (state->model->wide ? 4 : 2));
    state->pending_ids_count += count + 16;
    return count;
}

static bool same_piece(const struct bpe_pending *a, const struct bpe_pending *b)
{
    const struct bpe_piece *one = &a->piece, *other = &b->piece;
    return same_key(a->key, b->key) &&
           (one->count <= 15 || (one->count == other->count && !memcmp(one->bytes, other->bytes, one->count)));
}

/* Ids take the room that was left for them, and what is behind moves up. */
static size_t pending_close(struct bpe_state *state, uint8_t *tokens, size_t made)
{
    const size_t size = state->model->wide ? 4 : 2;
    size_t to = state->pending[0].at;
    for (uint32_t i = 0; i < state->pending_count; i++) {
        const struct bpe_pending *piece = &state->pending[i], *found = piece->same ? piece->same : piece;
        const size_t from = piece->at + piece->piece.count;
        const size_t end = i + 1 < state->pending_count ? state->pending[i + 1].at : made;
        to += emit(state, found->piece.ids, found->piece.ids_count, tokens + to * size);
        memmove(tokens + to * size, tokens + from * size, (end - from) * size);
        to += end - from;
    }
    return to;
}

static void keep_merged(struct bpe_state *state, const struct bpe_pending *pending)
{
    const struct bpe_piece *piece = &pending->piece;
    if (piece->count <= 15)
        keep_entry(state, pending->chosen, pending->key, piece->ids, piece->ids_count);
    else
        long_add(state, pending->key.low, piece->bytes, piece->count, piece->ids, piece->ids_count);
}

/* Finds the ids of all that is pending, in tokens[0, made); returns what `made` becomes. */
static size_t pending_resolve(struct bpe_state *state, uint8_t *tokens, size_t made)
{
    uint32_t counts[BPE_SIZES] = {0};
    for (uint32_t i = 0; i < state->pending_count; i++) {
        struct bpe_pending *pending = &state->pending[i];
        struct bpe_pending **head = &state->heads[pending->chosen % BPE_PENDING_HEADS], *same = *head;
        while (same && !same_piece(same, pending))
            same = same->older;
        pending->same = same;
        if (same)
            continue;
        const uint32_t size = bpe_size_class(pending->piece.count);
        pending->older = *head;
        *head = pending;
        state->lacking[size][counts[size]++] = &pending->piece;
    }
    for (uint32_t size = 0; size < BPE_SIZES; size++) {
        state->merge_many(state->model, state->lacking[size], counts[size], size);
        for (uint32_t i = 0; i < counts[size]; i++) {
            const struct bpe_pending *pending = (const struct bpe_pending *)(const void *)state->lacking[size][i];
            state->heads[pending->chosen % BPE_PENDING_HEADS] = NULL;
            keep_merged(state, pending);
        }
        state->counts.merged += counts[size];
    }
    state->counts.missed += state->pending_count;
    made = pending_close(state, tokens, made);
    state->pending_count = state->pending_ids_count = 0;
    return made;
}

/* ---- from text to pieces ---- */

/* Borders of characters that no token crosses become starts: whoever writes without spaces would else make pieces so
 * long that no cache knows them. */
static void cut(struct bpe_state *state, const uint8_t *text, size_t words, size_t done)
{
    const struct scan_masks *masks = &state->chunk.masks;
    const uint64_t *tall = SCAN_ROW(masks->tall);
    uint64_t *starts = state->chunk.starts;
    for (size_t i = 0; i < words; i++) {
        uint64_t found = tall[i] & ~starts[i] & (tall[i] << 3 | tall[(ptrdiff_t)i - 1] >> 61), cuts = 0;
        if (64 * (i + 1) > done)
            found &= done > 64 * i ? ((uint64_t)1 << (done - 64 * i)) - 1 : 0;
        for (; found; found &= found - 1) {
            const uint32_t at = (uint32_t)__builtin_ctzll(found);
            const uint8_t *pair = text + 64 * i + at - 3;
            uint64_t six = 0;
            if (state->text_end - pair >= 8)
                six = load64(pair);
            else
                memcpy(&six, pair, (size_t)(state->text_end - pair));
            cuts |= (uint64_t)!bpe_may_join(state->model, six) << at;
        }
        starts[i] |= cuts;
        state->cuts[i] = cuts;
    }
    state->cuts[words] = 0;
}

/* A piece longer than a chunk. */
static size_t encode_giant(struct bpe_state *state, const uint8_t *text, size_t count, void *tokens)
{
    const size_t size = state->model->wide ? 4 : 2;
    size_t made = 0, from = 0;
    for (size_t at = 3; at + 8 <= count; at++) {
        if (text[at] < 0xE0 || text[at - 3] < 0xE0 || at - 3 < from || bpe_may_join(state->model, load64(text + at - 3)))
            continue;
        made += miss_long(state, text + from, at - from, true, (uint8_t *)tokens + made * size);
        from = at;
    }
    return made + miss_long(state, text + from, count - from, from != 0, (uint8_t *)tokens + made * size);
}

uint32_t bpe_hash_scalar(struct bpe_key key)
{
    return (uint32_t)bpe_mix(key.low, key.high);
}

uint32_t bpe_positions_scalar(uint16_t *positions, const uint64_t *words, size_t count)
{
    uint32_t made = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t rest = words[i]; rest; rest &= rest - 1)
            positions[made++] = (uint16_t)(64 * i + (size_t)__builtin_ctzll(rest));
    return made;
}

size_t bpe_pieces_scalar(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t count,
                         void *tokens)
{
    const bool wide = state->model->wide;
    uint8_t *into = tokens;
    uint64_t largest = state->largest;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = (uint32_t)positions[i + 1] - positions[i];
        struct bpe_key key = {0, 0};
        if (bytes <= 15)
            memcpy(&key, text + positions[i], bytes);
        key.high |= (uint64_t)(bytes <= 15 ? bytes : 255) << 56;
        state->keys[i] = key;
        state->chosen[i] = bpe_hash_scalar(key) & state->bucket_mask;
        if (bytes > 15) {
            state->keys[i].low = bpe_long_hash(text + positions[i], bytes);
            __builtin_prefetch(bpe_long_at(state, state->keys[i].low));
        } else {
            __builtin_prefetch(&state->buckets[state->chosen[i]]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct bpe_bucket *bucket = &state->buckets[state->chosen[i]];
        const uint32_t way = !same_key(bucket->keys[0], state->keys[i]);
        const uint64_t *value = bucket->values[way];
        const uint32_t ids = (uint32_t)(wide ? value[0] >> 28 & 15 : value[1] >> 48);
        if (!ids || !same_key(bucket->keys[way], state->keys[i])) {
            into += bpe_miss(state, text, positions[i], positions[i + 1], into) * (wide ? 4 : 2);
            continue;
        }
        const uint64_t plain[2] = {wide ? value[0] & 0xFFFFFFFF0FFFFFFF : value[0],
                                   wide ? value[1] : value[1] & 0xFFFFFFFFFFFF};
        memcpy(into, plain, 16);
        into += ids * (wide ? 4 : 2);
        for (uint32_t k = 0; k < ids; k++)
            largest = max64(largest, wide ? (uint32_t)(plain[k / 2] >> (32 * (k % 2)))
                                          : (uint16_t)(plain[k / 4] >> (16 * (k % 4))));
    }
    state->largest = max64(state->largest, largest);
    return (size_t)(into - (uint8_t *)tokens) / (wide ? 4 : 2);
}

static size_t encode_pieces(struct bpe_state *state, const uint8_t *text, uint32_t count, uint8_t *tokens, uint64_t room)
{
    const size_t size = state->model->wide ? 4 : 2;
    size_t made = 0;
    for (uint32_t i = 0; i < count; i += BPE_BATCH) {
        const uint32_t batch = count - i < BPE_BATCH ? count - i : BPE_BATCH, pending = state->pending_count;
        const uint16_t *positions = state->positions + i;
        const uint64_t bytes = (uint64_t)positions[batch] - positions[0];
        size_t few;
        if (room - made >= bytes + BPE_SLACK) {
            few = state->pieces(state, text, positions, batch, tokens + made * size);
        } else {
            few = state->pieces(state, text, positions, batch, state->spill);
            memcpy(tokens + made * size, state->spill, few * size);
        }
        for (uint32_t k = pending; k < state->pending_count; k++)
            state->pending[k].at += (uint32_t)made;
        made += few;
        if (state->pending_count >= BPE_PENDING || (state->pending_count && i + BPE_BATCH >= count))
            made = pending_resolve(state, tokens, made);
    }
    return made;
}

size_t bpe_encode_starts(struct bpe_state *state, const uint8_t *text, size_t count, void *tokens, uint64_t room)
{
    const uint32_t pieces = state->find_positions(state->positions, state->chunk.starts, (count + 63) / 64);
    state->positions[pieces] = (uint16_t)count;
    state->counts.pieces += pieces;
    return encode_pieces(state, text, pieces, tokens, room);
}

enum tokmap_status bpe_encode(struct bpe_state *state, const uint8_t *text, uint64_t count, void *tokens, uint64_t room,
                              uint64_t *written, struct tokmap_error *error)
{
    const size_t size = state->model->wide ? 4 : 2;
    uint8_t *into = tokens;
    uint64_t made = 0;
    assert(room >= count);
    state->text_end = text + count;
    while (count) {
        const size_t done = scan_chunk(&state->model->scanner, &state->chunk, text, count);
        if (done > SCAN_BYTES) {
            made += encode_giant(state, text, done, into + made * size);
        } else {
            cut(state, text, (done + 63) / 64, done);
            made += bpe_encode_starts(state, text, done, into + made * size, room - made);
        }
        text += done;
        count -= done;
    }
    *written = made;
    if (state->lacks_memory) {
        state->lacks_memory = false;
        return error_set_memory(error, "the merges of a long piece", state->scratch.bytes);
    }
    return TOKMAP_OK;
}

enum tokmap_status bpe_encode_piece(struct bpe_state *state, const uint8_t *piece, uint64_t count, void *tokens,
                                    uint64_t *written, struct tokmap_error *error)
{
    if (count <= 15) {
        state->cuts[0] = 0; /* it is no part of a piece */
        *written = bpe_miss(state, piece, 0, count, tokens);
    } else {
        *written = miss_long(state, piece, count, false, tokens);
    }
    state->counts.pieces++;
    if (state->lacks_memory) {
        state->lacks_memory = false;
        return error_set_memory(error, "the merges of a long piece", state->scratch.bytes);
    }
    return TOKMAP_OK;
}

/* Their buckets lie anywhere: several are asked for at once. */
static void add_seeds(struct bpe_state *state)
{
    enum { TOGETHER = 64 };
    const struct bpe_model *model = state->model;
    uint32_t at[TOGETHER];
    for (uint32_t i = 0; i < model->seed_count; i += TOGETHER) {
        const struct bpe_entry *seeds = model->seeds + i;
        const uint32_t count = (uint32_t)min64(model->seed_count - i, TOGETHER);
        for (uint32_t k = 0; k < count; k++) {
            at[k] = bpe_bucket_of(state, seeds[k].key);
            __builtin_prefetch(&state->buckets[at[k]], 1);
        }
        for (uint32_t k = 0; k < count; k++)
            entry_add(state, at[k], seeds[k].key, seeds[k].value);
    }
}

enum tokmap_status bpe_state_new(struct bpe_state **out, const struct bpe_model *model, enum cpu_variant variant,
                               struct tokmap_error *error)
{
    void *buckets = NULL, *longs = NULL, *store = NULL;
    struct bpe_state *state = calloc(1, sizeof *state);
    *out = NULL;
    if (!state)
        return error_set_memory(error, "the state of a tokenizer", sizeof *state);
    state->model = model;
    state->merged_room = 4096;
    state->merged = malloc(state->merged_room * sizeof *state->merged);
    int failed = os_memory_new(BUCKETS_BYTES, true, &buckets);
    state->buckets = buckets;
    failed = failed ? failed : os_memory_new(LONGS_BYTES, true, &longs);
    state->longs = longs;
    failed = failed ? failed : os_memory_new(STORE_BYTES, true, &store);
    state->store = store;
    if (failed || !state->merged) {
        bpe_state_free(state);
        return error_set_memory(error, "the state of a tokenizer", BUCKETS_BYTES + LONGS_BYTES + STORE_BYTES);
    }
    state->bucket_mask = (1u << BUCKET_BITS) - 1;
    state->pieces = bpe_pieces_scalar;
    state->find_positions = bpe_positions_scalar;
    state->hash = bpe_hash_scalar;
#if defined(__x86_64__)
    if (variant == CPU_VBMI) {
        state->pieces = bpe_pieces_vbmi;
        state->find_positions = bpe_positions_vbmi;
        state->hash = bpe_hash_vbmi;
        if (model->merge == bpe_merge && model->vocabulary < BPE_IDS)
            state->merge_many = bpe_merge_many_vbmi;
    }
#endif
    add_seeds(state);
    *out = state;
    return TOKMAP_OK;
}

void bpe_state_free(struct bpe_state *state)
{
    if (!state)
        return;
    os_memory_free(state->buckets, BUCKETS_BYTES);
    os_memory_free(state->longs, LONGS_BYTES);
    os_memory_free(state->store, STORE_BYTES);
    free(state->scratch.memory);
    free(state->merged);
    free(state);
}
