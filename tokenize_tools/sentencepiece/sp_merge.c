/*
 * sp_merge.c - the merges of one piece of text, from characters.
 *
 * Short pieces: parts in a row that closes up, as in bpe_merge.c. Different here: what merges at first are characters,
 * some of which no token holds (they stay as they are and become bytes, or unk, at the end), user defined pieces are
 * found first and never merge, and of merges of equal priority the leftmost is first though they give different tokens.
 *
 * Long pieces: window after window. A window begins with the last part that is settled, and what it
 * gives goes on if that part comes out first again; then it is what the whole would give: as long as nothing merges over
 * a border, its two sides are merged as if each were alone, and what merges over it first would do so with the two parts
 * beside it alone. The end of a window, which does not see what follows, is left to the next one. Where the first part
 * comes out otherwise, parts are taken back, and the window grows, at last to the whole piece. (User defined pieces are
 * told from the left, so with them the window is the whole piece at once.)
 *
 * Windows are merged in rounds, each with all pairs of the lowest priority from left to right, until one of them makes a
 * pair that is to come before the next: runs of one letter take few. Long windows: parts in a linked list and a heap of
 * (priority, place), with entries that are out of date left in it until they come up.
 */
#include "sp_model.h"

#include <stdlib.h>
#include <string.h>

#include "bpe/merge_parts.h"

#define FROZEN (1u << 31)       /* a user defined piece */
#define GONE UINT32_MAX

static inline uint32_t pair_rank(const struct sp_model *model, uint32_t left, uint32_t right)
{
    return (left | right) & FROZEN ? BPE_NONE : bpe_pair_rank(&model->head, left, right);
}

/* Asks for what pair_rank() will read, so that several are on their way at once. */
static inline void expect_pair(const struct sp_model *model, uint32_t left, uint32_t right)
{
    const uint64_t hash = bpe_pair_hash(&model->head, bpe_pair_key(left, right));
    __builtin_prefetch(&model->head.pair_filter[hash / 64]);
    __builtin_prefetch(&model->head.pairs[bpe_pair_place(hash)]);
}

static inline uint32_t priority_of(const struct sp_model *model, uint32_t rank)
{
    return model->priorities && rank != BPE_NONE ? model->priorities[rank] : rank;
}

/* The longest user defined piece at bytes: its length, 0 if there is none. Sorted, those that begin with the same bytes
 * are neighbours: each further byte narrows them down. */
static uint32_t find_defined(const struct sp_model *model, const uint8_t *bytes, size_t count, uint32_t *id)
{
    const uint32_t *offsets = model->defined_offsets;
    uint32_t low = 0, high = model->defined_count, longest = 0;
    if (!(model->defined_firsts[bytes[0] / 64] >> (bytes[0] % 64) & 1))
        return 0;
    for (uint32_t depth = 0; low < high && depth < count; depth++) {
        /* All of [low, high) have the first `depth` bytes and are longer, but for those that are these bytes. */
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

/* The symbol that begins at bytes; *length. */
static inline uint32_t next_symbol(const struct sp_model *model, const uint8_t *bytes, size_t count, uint32_t *length)
{
    uint32_t id = 0;
    if (model->defined_count && (*length = find_defined(model, bytes, count, &id)) != 0)
        return id | FROZEN;
    const uint32_t symbol = model->atoms[sp_character(bytes, count, length)];
    return symbol ? symbol - 1 : SP_NO_SYMBOL;
}

/* Ids of a symbol that stands for `count` bytes. */
static inline void put_symbol(const struct sp_model *model, struct sp_ids *ids, uint32_t symbol, const uint8_t *bytes,
                              size_t count)
{
    sp_ids_put_symbol(model, ids, symbol & ~FROZEN, bytes, count);
}

/* ---- short pieces ---- */

struct row {
    uint32_t symbols[BPE_SHORT], ranks[BPE_SHORT], priorities[BPE_SHORT];
    uint8_t starts[BPE_SHORT + 1];
};

static void set_rank(const struct sp_model *model, struct row *row, size_t at)
{
    row->ranks[at] = pair_rank(model, row->symbols[at], row->symbols[at + 1]);
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
            expect_pair(model, row->symbols[parts - 1], row->symbols[parts]);
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

/* Returns how many parts are left. */
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
            expect_pair(model, row->symbols[at - 1], row->symbols[at]);
        if (at + 1 < parts)
            expect_pair(model, row->symbols[at], row->symbols[at + 2]);
        for (size_t i = at + 1; i < parts; i++) {
            row->symbols[i] = row->symbols[i + 1];
            row->starts[i] = row->starts[i + 1];
            row->ranks[i - 1] = row->ranks[i]; /* the pair of the part that is gone goes with it */
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

/* ---- rounds ---- */

#define ROUNDS 1024 /* bytes of a window, at most */

/* What came out: the parts that are left, by where they begin. */
struct merged {
    uint32_t symbol, start;
};

static inline int32_t pair_priority(const struct sp_model *model, uint32_t left, uint32_t right)
{
    const uint32_t rank = pair_rank(model, left, right);
    return rank == BPE_NONE ? MERGE_NONE : (int32_t)priority_of(model, rank);
}

static inline uint32_t result_of(const struct sp_model *model, int32_t priority, uint32_t left, uint32_t right)
{
    return bpe_result(&model->head, model->priorities ? bpe_pair_rank(&model->head, left, right) : (uint32_t)priority);
}

/* Merges pairs of one priority, one at least; returns how many parts are left. */
static size_t merge_round(const struct sp_model *model, struct merged *merged, int32_t *priorities, size_t parts,
                          int32_t priority)
{
    size_t from = 0, to;
    bool before = false; /* a pair came up that is to be merged before what is left */
    while (priorities[from] != priority)
        from++;
    for (to = from; from < parts && !before; to++) {
        if (priorities[from] != priority) {
            merged[to] = merged[from];
            priorities[to] = priorities[from++];
            continue;
        }
        const uint32_t result = result_of(model, priority, merged[from].symbol, merged[from + 1].symbol);
        merged[to] = (struct merged){result, merged[from].start};
        from += 2;
        priorities[to] = from < parts ? pair_priority(model, result, merged[from].symbol) : MERGE_NONE;
        if (to)
            priorities[to - 1] = pair_priority(model, merged[to - 1].symbol, result);
        before = priorities[to] <= priority || (to && priorities[to - 1] <= priority);
    }
    memmove(merged + to, merged + from, (parts - from) * sizeof *merged);
    memmove(priorities + to, priorities + from, (parts - from) * sizeof *priorities);
    return to + (parts - from);
}

static size_t merge_rounds(const struct sp_model *model, const uint8_t *bytes, uint32_t count, struct merged *merged)
{
    int32_t priorities[ROUNDS];
    size_t parts = 0;
    for (uint32_t at = 0, length; at < count; at += length, parts++)
        merged[parts] = (struct merged){next_symbol(model, bytes + at, count - at, &length), at};
    for (size_t i = 0; i < parts; i++)
        priorities[i] = i + 1 < parts ? pair_priority(model, merged[i].symbol, merged[i + 1].symbol) : MERGE_NONE;
    for (int32_t priority; (priority = lowest_of(priorities, parts)) != MERGE_NONE;)
        parts = merge_round(model, merged, priorities, parts, priority);
    return parts;
}

/* ---- heap ---- */

struct part {
    uint32_t symbol, next, previous; /* places of parts in the row are those of their first bytes */
    uint32_t rank;                   /* with the next; BPE_NONE: none */
};

static bool find_rank(const struct sp_model *model, struct part *parts, uint32_t at, uint32_t end)
{
    struct part *part = &parts[at];
    part->rank = part->next < end ? pair_rank(model, part->symbol, parts[part->next].symbol) : BPE_NONE;
    return part->rank != BPE_NONE;
}

static void push_rank(const struct sp_model *model, struct heap *heap, struct part *parts, uint32_t at, uint32_t end)
{
    if (!find_rank(model, parts, at, end))
        return;
    heap->entries[heap->count] = (uint64_t)priority_of(model, parts[at].rank) << 32 | at;
    heap_up(heap->entries, heap->count++);
}

static size_t merge_heap(const struct sp_model *model, struct part *parts, const uint8_t *bytes, uint32_t count,
                         struct merged *merged)
{
    struct heap heap = {(uint64_t *)(void *)(parts + count), 0};
    uint32_t previous = 0;
    for (uint32_t at = 0, length; at < count; at += length) {
        const uint32_t symbol = next_symbol(model, bytes + at, count - at, &length);
        parts[at] = (struct part){symbol, at + length, previous, BPE_NONE};
        previous = at;
    }
    for (uint32_t at = 0; at < count; at = parts[at].next)
        if (find_rank(model, parts, at, count))
            heap.entries[heap.count++] = (uint64_t)priority_of(model, parts[at].rank) << 32 | at;
    for (size_t i = heap.count / 2; i--;)
        heap_down(heap.entries, heap.count, i);
    /* A merge takes an entry out and puts at most two in: with those of the start never more than 2 * count. */
    while (heap.count) {
        const uint32_t priority = (uint32_t)(heap.entries[0] >> 32), at = (uint32_t)heap.entries[0];
        heap.entries[0] = heap.entries[--heap.count];
        if (heap.count)
            heap_down(heap.entries, heap.count, 0);
        struct part *part = &parts[at];
        if (part->symbol == GONE || part->rank == BPE_NONE || priority_of(model, part->rank) != priority)
            continue;
        struct part *gone = &parts[part->next];
        part->symbol = bpe_result(&model->head, part->rank);
        part->next = gone->next;
        gone->symbol = GONE;
        if (part->next < count)
            parts[part->next].previous = at;
        push_rank(model, &heap, parts, at, count);
        if (at)
            push_rank(model, &heap, parts, part->previous, count);
    }
    size_t made = 0;
    for (uint32_t at = 0; at < count; at = parts[at].next)
        merged[made++] = (struct merged){parts[at].symbol, at};
    return made;
}

/* ---- windows ---- */

#define WINDOW 128
#define REMEMBERED 256

/* The last parts that are settled, by their number; `ids` are written before each. */
struct settled {
    struct merged parts[REMEMBERED];
    size_t ids[REMEMBERED];
    size_t count;
};

static bool grow(struct bpe_scratch *scratch, size_t window)
{
    const size_t wanted = window * (sizeof(struct part) + 2 * sizeof(uint64_t) + sizeof(struct merged));
    if (scratch->bytes >= wanted)
        return true;
    free(scratch->memory);
    scratch->memory = malloc(wanted);
    scratch->bytes = scratch->memory ? wanted : 0;
    return scratch->memory;
}

/* Behind the parts and the heap. */
static struct merged *merged_of(const struct bpe_scratch *scratch, size_t window)
{
    struct part *parts = scratch->memory;
    return (struct merged *)(void *)((uint64_t *)(void *)(parts + window) + 2 * window);
}

static size_t part_end(const struct merged *merged, size_t made, size_t at, size_t count)
{
    return at + 1 < made ? merged[at + 1].start : count;
}

bool sp_merge_long(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                   struct sp_ids *ids)
{
    struct settled settled;
    struct window_memory memory;
    size_t window = model->defined_count ? count : WINDOW, from = 0, back = 1;
    const size_t start = ids->count;
    settled.count = 0;
    window_memory_init(&memory);
    for (;;) {
        const bool last = window >= count - from;
        size_t size = last ? count - from : window;
        while (!last && size > 4 && (bytes[from + size] & 0xC0) == 0x80)
            size--;
        if (!grow(scratch, size))
            return false;
        struct part *parts = scratch->memory;
        struct merged *merged = merged_of(scratch, size);
        const uint8_t *here = bytes + from;
        size_t made = window_recall(&memory, here, size, merged) / sizeof *merged;
        if (!made) {
            made = size <= ROUNDS ? merge_rounds(model, here, (uint32_t)size, merged)
                                  : merge_heap(model, parts, here, (uint32_t)size, merged);
            window_keep(&memory, here, size, merged, made * sizeof *merged);
        }
        const size_t known = settled.count != 0;
        if (known) {
            const struct merged *first = &settled.parts[(settled.count - 1) % REMEMBERED];
            if (first->symbol != merged[0].symbol) { /* the same symbol is as long, but for unknown ones, which stay */
                if (back >= settled.count || back >= REMEMBERED / 2) {
                    settled.count = from = 0;
                    ids->count = start;
                    window = back >= REMEMBERED / 2 ? count : 2 * window;
                } else {
                    settled.count -= back;
                    ids->count = settled.ids[settled.count % REMEMBERED];
                    from = settled.parts[(settled.count - 1) % REMEMBERED].start;
                    window *= 2;
                }
                back *= 2;
                continue;
            }
        }
        size_t taken = made;
        while (!last && taken && part_end(merged, made, taken - 1, size) > size - size / 4)
            taken--;
        if (!last && taken <= known) { /* nothing new */
            window *= 2;
            continue;
        }
        for (size_t i = known; i < taken; i++) {
            const size_t end = part_end(merged, made, i, size);
            settled.parts[settled.count % REMEMBERED] =
                (struct merged){merged[i].symbol, (uint32_t)(from + merged[i].start)};
            settled.ids[settled.count++ % REMEMBERED] = ids->count;
            put_symbol(model, ids, merged[i].symbol, bytes + from + merged[i].start, end - merged[i].start);
        }
        if (last)
            return true;
        from += merged[taken - 1].start;
        if (back > 1)
            back /= 2;
        else if (window > WINDOW && !model->defined_count)
            window = window / 2 > WINDOW ? window / 2 : WINDOW;
    }
}

size_t sp_merge(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                uint32_t *ids)
{
    const struct sp_model *own = (const struct sp_model *)model;
    struct sp_ids into = {.tokens = ids, .wide = true};
    if (count <= BPE_SHORT)
        merge_short(own, bytes, count, &into);
    else if (!sp_merge_long(own, scratch, bytes, count, &into))
        return 0;
    return into.count;
}

size_t sp_merge_symbols(const struct sp_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                        uint32_t symbols[2], uint32_t *border)
{
    if (count <= BPE_SHORT) {
        struct row row;
        const size_t parts = merge_row(model, &row, bytes, count);
        memcpy(symbols, row.symbols, 2 * sizeof *symbols);
        *border = row.starts[1];
        return parts;
    }
    if (!grow(scratch, count))
        return 0;
    struct part *parts = scratch->memory;
    struct merged *merged = merged_of(scratch, count);
    const size_t made = count <= ROUNDS ? merge_rounds(model, bytes, (uint32_t)count, merged)
                                        : merge_heap(model, parts, bytes, (uint32_t)count, merged);
    for (size_t i = 0; i < 2 && i < made; i++)
        symbols[i] = merged[i].symbol;
    *border = made > 1 ? merged[1].start : (uint32_t)count;
    return made;
}
