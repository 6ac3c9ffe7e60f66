/* SPDX-License-Identifier: MIT */
/*
 * sp_merge.c - the merges of one piece of text, from characters.
 *
 * The definition is that of bpe_merge.c, with three differences:
 *   - Merging begins with characters instead of bytes. A character that no token holds stays as it is, and becomes
 *     the tokens of its bytes, or unk, at the end. A character that is part of tokens but no token itself can merge; if
 *     it is left over, it becomes the same. So merging works on symbols, which are numbered again (sp_model.h), not on
 *     ids.
 *   - User-defined pieces are found first, from the left, the longest at each place. They never merge.
 *   - With SentencePiece's scores, several pairs may have the same priority although they make different tokens. Of
 *     equal priorities the leftmost pair merges first.
 *
 * Example: the pieces are a, b, "ab" (score -1), "bb" (-1), and "é" is unknown. In "abbé" both a+b and b+b have the
 * same priority. The leftmost merges first: "ab" "b" "é". Then b+é is no pair, since é is SP_NO_SYMBOL; it becomes the
 * two tokens <0xC3> <0xA9>. With the scores -2 and -1, "a" "bb" "é" would come out.
 *
 * Short pieces (merge_row) are merged in a row that closes up, which costs the square of a small number. Long pieces
 * are merged in windows; bpe_merge.c explains why that is exact and why a heap over the whole piece is not the better
 * choice. Here a document without spaces may be one piece, so windows matter more. They are merged in rounds or with a
 * heap (bpe_merge_parts.h). Since symbols may become several ids, or be of any length, the last REMEMBERED accepted
 * parts are kept with the number of ids written before each: that many can be taken back. If it takes more, merging
 * begins again with the whole piece as the window. User-defined pieces are found from the left, so that a window inside
 * the text could find others; with them the window is the whole piece from the start.
 */
#include "sp_merge.h"

#include <assert.h>
#include <string.h>

#include "bpe/bpe_merge_parts.h"

#define FROZEN (1u << 31) /* bit of a symbol: a user-defined piece, whose id is in the other bits */

static inline const struct sp_model *own_of(const struct bpe_model *model)
{
    return (const struct sp_model *)model;
}

static inline uint32_t pair_rank(const struct bpe_model *model, uint32_t left, uint32_t right)
{
    return (left | right) & FROZEN ? BPE_NONE : bpe_pair_rank(model, left, right);
}

/* Prefetches what pair_rank() will read, so that several misses are under way at once. */
static inline void prefetch_pair(const struct sp_model *model, uint32_t left, uint32_t right)
{
    const uint64_t hash = bpe_pair_hash(&model->head, bpe_pair_key(left, right));
    __builtin_prefetch(&model->head.pair_filter[hash / 64]);
    __builtin_prefetch(&model->head.pairs[bpe_pair_place(hash)]);
}

static inline uint32_t priority_of(const struct sp_model *model, uint32_t rank)
{
    return model->priorities && rank != BPE_NONE ? model->priorities[rank] : rank;
}

/* Returns the length of the longest user-defined piece at `bytes` and writes its id to *id; 0 if no piece begins
 * there. They are sorted, so those that begin with the same bytes are neighbors, and each further byte of text
 * narrows the range. */
static uint32_t find_defined(const struct sp_model *model, const uint8_t *bytes, size_t count, uint32_t *id)
{
    const uint32_t *offsets = model->defined_offsets;
    uint32_t low = 0, high = model->defined_count, longest = 0;
    if (!(model->defined_firsts[bytes[0] / 64] >> (bytes[0] % 64) & 1))
        return 0;
    for (uint32_t depth = 0; low < high && depth < count; depth++) {
        /* All pieces in [low, high) begin with the first `depth` bytes. */
        uint32_t from = low, to = high;
        while (from < to) {
            const uint32_t middle = from + (to - from) / 2, at = offsets[middle] + depth;
            if (at == offsets[middle + 1] || model->defined_bytes[at] < bytes[depth])
                from = middle + 1;
            else
                to = middle;
        }
        low = from;
        to = high;
        while (from < to) {
            const uint32_t middle = from + (to - from) / 2;
            if (model->defined_bytes[offsets[middle] + depth] <= bytes[depth])
                from = middle + 1;
            else
                to = middle;
        }
        high = from;
        if (low < high && offsets[low + 1] - offsets[low] == depth + 1) {
            longest = depth + 1;
            *id = model->defined_ids[low];
        }
    }
    return longest;
}

/* Returns the symbol that begins at `bytes` and writes its length to *length. */
static inline uint32_t next_symbol(const struct sp_model *model, const uint8_t *bytes, size_t count, uint32_t *length)
{
    uint32_t id = 0;
    if (model->defined_count && (*length = find_defined(model, bytes, count, &id)) != 0)
        return id | FROZEN;
    const uint32_t symbol = model->atoms[sp_character(bytes, count, length)];
    return symbol ? symbol - 1 : SP_NO_SYMBOL;
}

/* ---- ids ---- */

static inline void put_id(struct sp_ids *ids, uint32_t id)
{
    if (ids->wide)
        ((uint32_t *)ids->tokens)[ids->count++] = id;
    else
        ((uint16_t *)ids->tokens)[ids->count++] = (uint16_t)id;
    ids->largest = id > ids->largest ? id : ids->largest;
}

/* Appends the ids of a symbol whose text has `count` bytes. */
static inline void put_symbol(const struct sp_model *model, struct sp_ids *ids, uint32_t symbol, const uint8_t *bytes,
                              size_t count)
{
    const uint32_t plain = symbol & ~FROZEN, id = plain < model->symbols ? model->ids[plain] : BPE_NONE;
    if (id != BPE_NONE) {
        put_id(ids, id);
    } else if (!model->byte_fallback) {
        put_id(ids, model->unk);
    } else {
        for (size_t i = 0; i < count; i++)
            put_id(ids, model->head.byte_ids[bytes[i]]);
    }
}

/* ---- short pieces ---- */

struct row {
    uint32_t symbols[BPE_SHORT], ranks[BPE_SHORT], priorities[BPE_SHORT];
    uint8_t starts[BPE_SHORT + 1];
};

static void set_rank(const struct sp_model *model, struct row *row, size_t at)
{
    row->ranks[at] = pair_rank(&model->head, row->symbols[at], row->symbols[at + 1]);
    row->priorities[at] = priority_of(model, row->ranks[at]);
}

static size_t read_row(const struct sp_model *model, struct row *row, const uint8_t *bytes, size_t count)
{
    size_t parts = 0;
    for (size_t at = 0; at < count; parts++) {
        uint32_t length;
        row->symbols[parts] = next_symbol(model, bytes + at, count - at, &length);
        row->starts[parts] = (uint8_t)at;
        if (length > 1 && parts)
            prefetch_pair(model, row->symbols[parts - 1], row->symbols[parts]);
        at += length;
    }
    row->starts[parts] = (uint8_t)count;
    for (size_t i = 0; i + 1 < parts; i++) {
        const uint32_t left = bytes[row->starts[i]], right = bytes[row->starts[i + 1]];
        if (model->defined_count || ((left | right) & 0x80)) {
            set_rank(model, row, i);
        } else {
            row->ranks[i] = model->head.byte_pairs[left << 8 | right];
            row->priorities[i] = priority_of(model, row->ranks[i]);
        }
    }
    return parts;
}

/* Returns the number of parts that are left. */
static size_t merge_row(const struct sp_model *model, struct row *row, const uint8_t *bytes, size_t count)
{
    size_t parts = read_row(model, row, bytes, count);
    while (parts > 1) {
        uint32_t lowest = BPE_NONE;
        size_t at = 0;
        for (size_t i = 0; i + 1 < parts; i++)
            if (row->priorities[i] < lowest) {
                lowest = row->priorities[i];
                at = i;
            }
        if (lowest == BPE_NONE)
            break;
        row->symbols[at] = bpe_result(&model->head, row->ranks[at]);
        parts--;
        if (at)
            prefetch_pair(model, row->symbols[at - 1], row->symbols[at]);
        if (at + 1 < parts)
            prefetch_pair(model, row->symbols[at], row->symbols[at + 2]);
        for (size_t i = at + 1; i < parts; i++) {
            row->symbols[i] = row->symbols[i + 1];
            row->starts[i] = row->starts[i + 1];
            row->ranks[i - 1] = row->ranks[i]; /* the pair that the removed part began goes too */
            row->priorities[i - 1] = row->priorities[i];
        }
        row->starts[parts] = row->starts[parts + 1];
        if (at)
            set_rank(model, row, at - 1);
        if (at + 1 < parts)
            set_rank(model, row, at);
    }
    return parts;
}

static void merge_short(const struct sp_model *model, const uint8_t *bytes, size_t count, struct sp_ids *ids)
{
    struct row row;
    const size_t parts = merge_row(model, &row, bytes, count);
    for (size_t i = 0; i < parts; i++)
        put_symbol(model, ids, row.symbols[i], bytes + row.starts[i], (size_t)(row.starts[i + 1] - row.starts[i]));
}

/* ---- windows ---- */

#define WINDOW 128     /* bytes of the first window */
#define REMEMBERED 256 /* accepted parts that can be taken back */

static inline uint32_t window_priority(const struct bpe_model *model, uint32_t rank)
{
    return priority_of(own_of(model), rank);
}

static inline uint32_t window_result(const struct bpe_model *model, uint32_t priority, uint32_t left, uint32_t right)
{
    return bpe_result(model, own_of(model)->priorities ? bpe_pair_rank(model, left, right) : priority);
}

/* Merges `count` bytes, for which the scratch has room. Returns the number of parts that are left. */
static size_t merge_window(const struct sp_model *model, const struct bpe_scratch *scratch, const uint8_t *bytes,
                           size_t count, struct merge_part *parts)
{
    const struct bpe_model *head = &model->head;
    size_t made = 0;
    for (uint32_t at = 0, length; at < count; at += length, made++)
        parts[made] = (struct merge_part){next_symbol(model, bytes + at, count - at, &length), at};
    if (made > MERGE_ROUNDS)
        return merge_heap(head, scratch->memory, parts, made, pair_rank, window_priority);
    int32_t priorities[MERGE_ROUNDS];
    for (size_t i = 0; i < made; i++)
        priorities[i] =
            i + 1 < made ? merge_pair_priority(head, parts[i].symbol, parts[i + 1].symbol, pair_rank, window_priority)
                         : MERGE_NONE;
    return merge_rounds(head, parts, priorities, made, pair_rank, window_priority, window_result);
}

/* The last parts that are accepted, by their number modulo REMEMBERED; ids[i] ids were written before parts[i]. */
struct accepted {
    struct merge_part parts[REMEMBERED];
    size_t ids[REMEMBERED];
    size_t count;
};

/* Returns where part `at` of a window of `count` bytes ends. */
static inline size_t part_end(const struct merge_part *parts, size_t made, size_t at, size_t count)
{
    return at + 1 < made ? parts[at + 1].start : count;
}

/* Takes back `back` accepted parts, or all if these are not remembered. Returns where the next window begins. */
static size_t take_back(struct accepted *accepted, size_t back, struct sp_ids *ids, size_t first_id)
{
    if (back >= accepted->count || back >= REMEMBERED / 2) {
        accepted->count = 0;
        ids->count = first_id;
        return 0;
    }
    accepted->count -= back;
    ids->count = accepted->ids[accepted->count % REMEMBERED];
    return accepted->parts[(accepted->count - 1) % REMEMBERED].start;
}

/* Accepts parts of the window that begins at `from`. */
static void accept(const struct sp_model *model, struct accepted *accepted, struct sp_ids *ids, const uint8_t *bytes,
                   size_t from, struct merge_part part, size_t end)
{
    accepted->parts[accepted->count % REMEMBERED] = (struct merge_part){part.symbol, (uint32_t)(from + part.start)};
    accepted->ids[accepted->count++ % REMEMBERED] = ids->count;
    put_symbol(model, ids, part.symbol, bytes + from + part.start, end - part.start);
}

bool sp_merge_long(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                   struct sp_ids *ids)
{
    struct accepted accepted;
    struct window_memory memory;
    size_t window = model->defined_count ? count : WINDOW, from = 0, back = 1;
    const size_t first_id = ids->count;
    size_t looks = 0;
    assert(count);
    accepted.count = 0;
    window_memory_init(&memory);
    for (;;) {
        if (++looks % WINDOWS_A_LOOK == 0 && bpe_scratch_stops(scratch))
            return false;
        const bool last = window >= count - from;
        size_t size = last ? count - from : window;
        while (!last && size > 4 && (bytes[from + size] & 0xC0) == 0x80)
            size--;
        if (!window_grow(scratch, size))
            return false;
        struct merge_part *parts = window_parts(scratch, size);
        size_t made = window_recall(&memory, bytes + from, size, parts);
        if (!made) {
            made = merge_window(model, scratch, bytes + from, size, parts);
            window_keep(&memory, bytes + from, size, parts, made);
        }
        const size_t known = accepted.count != 0;
        /* The same symbol has the same length, except for unknown characters, which never change. */
        if (known && accepted.parts[(accepted.count - 1) % REMEMBERED].symbol != parts[0].symbol) {
            from = take_back(&accepted, back, ids, first_id);
            window = back >= REMEMBERED / 2 ? count : 2 * window;
            back *= 2;
            continue;
        }
        const size_t taken = last ? made : parts_to_accept(parts, made, size);
        if (!last && taken <= known) { /* nothing new */
            window *= 2;
            continue;
        }
        for (size_t i = known; i < taken; i++)
            accept(model, &accepted, ids, bytes, from, parts[i], part_end(parts, made, i, size));
        if (last)
            return true;
        from += parts[taken - 1].start;
        if (back > 1)
            back /= 2;
        else if (window > WINDOW && !model->defined_count)
            window = window / 2 > WINDOW ? window / 2 : WINDOW;
    }
}

size_t sp_merge(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                uint32_t *ids)
{
    struct sp_ids into = {.tokens = ids, .wide = true};
    assert(count);
    if (count <= BPE_SHORT)
        merge_short(own_of(model), bytes, count, &into);
    else if (!sp_merge_long(own_of(model), scratch, bytes, count, &into))
        return 0;
    return into.count;
}

size_t sp_merge_symbols(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                        uint32_t symbols[2], uint32_t *border)
{
    assert(count && count <= UINT32_MAX / 2);
    if (count <= BPE_SHORT) {
        struct row row;
        const size_t parts = merge_row(model, &row, bytes, count);
        memcpy(symbols, row.symbols, 2 * sizeof *symbols);
        *border = row.starts[1];
        return parts;
    }
    if (!window_grow(scratch, count))
        return 0;
    struct merge_part *parts = window_parts(scratch, count);
    const size_t made = merge_window(model, scratch, bytes, count, parts);
    for (size_t i = 0; i < 2 && i < made; i++)
        symbols[i] = parts[i].symbol;
    *border = made > 1 ? parts[1].start : (uint32_t)count;
    return made;
}
