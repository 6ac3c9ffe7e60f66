/* SPDX-License-Identifier: MIT */
#include "bpe_entries.h"

#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

_Static_assert(BPE_SEEDS >= UINT32_C(2) << BPE_BUCKET_BITS, "a bucket holds two entries");

static void entry_swap(struct bpe_bucket *a, uint32_t i, struct bpe_bucket *b, uint32_t k)
{
    const struct bpe_key key = a->keys[i];
    const uint64_t value[2] = {a->values[i][0], a->values[i][1]};
    a->keys[i] = b->keys[k];
    memcpy(a->values[i], b->values[k], sizeof value);
    b->keys[k] = key;
    memcpy(b->values[k], value, sizeof value);
}

static void entry_put(struct bpe_bucket *bucket, uint32_t way, struct bpe_key key, const uint64_t value[2])
{
    bucket->keys[way] = key;
    memcpy(bucket->values[way], value, 2 * sizeof *value);
}

/* Returns the empty place of a bucket, or 2. */
static uint32_t empty_way(const struct bpe_bucket *bucket)
{
    return !bucket->keys[0].high ? 0 : !bucket->keys[1].high ? 1 : 2;
}

/* Returns true if the only id of a value is stored twice, as seeds have it (seed_add()). An entry of id 0 alone looks
 * the same, and so it is replaced sooner than it should be. */
static bool is_seed(const uint64_t value[2], bool wide)
{
    return wide ? (value[0] & 0xFFFFFFFF) == (1u << 28 | value[0] >> 32)
                : value[1] == (uint64_t)1 << 48 && (value[0] & 0xFFFF) == value[0] >> 16;
}

/* Returns the place of a bucket that has a seed, or 2. */
static uint32_t seed_way(const struct bpe_bucket *bucket, bool wide)
{
    return is_seed(bucket->values[0], wide) ? 0 : is_seed(bucket->values[1], wide) ? 1 : 2;
}

void bpe_entry_add(struct bpe_state *state, uint32_t at, struct bpe_key key, const uint64_t value[2])
{
    const bool wide = state->model->wide;
    struct bpe_bucket *home = &state->buckets[at], *beside = &state->buckets[at ^ 1];
    uint32_t way = empty_way(home);
    if (way == 2) {
        const uint32_t seed = seed_way(home, wide), turn = state->victim++;
        uint32_t other = empty_way(beside);
        way = seed < 2 ? seed : turn & 1;
        if (other == 2 && seed == 2) {
            other = seed_way(beside, wide);
            other = other < 2 ? other : turn >> 1 & 1;
        }
        if (other < 2)
            entry_swap(home, way, beside, other);
    }
    entry_put(home, way, key, value);
}

uint64_t *bpe_entry_at_home(struct bpe_state *state, uint32_t at, struct bpe_key key)
{
    struct bpe_bucket *home = &state->buckets[at];
    for (uint32_t way = 0; way < 2; way++)
        if (bpe_same_key(home->keys[way], key))
            return home->values[way];
    return NULL;
}

bool bpe_entry_may_be_beside(const struct bpe_state *state, uint32_t at)
{
    return state->buckets[at].keys[1].high != 0;
}

uint64_t *bpe_entry_find(struct bpe_state *state, uint32_t at, struct bpe_key key)
{
    const bool wide = state->model->wide;
    struct bpe_bucket *home = &state->buckets[at], *beside = &state->buckets[at ^ 1];
    uint64_t *value = bpe_entry_at_home(state, at, key);
    if (value)
        return value;
    for (uint32_t way = 0; way < 2 && bpe_entry_may_be_beside(state, at); way++)
        if (bpe_same_key(beside->keys[way], key)) {
            const uint32_t turn = state->victim++ & 7, seed = seed_way(home, wide);
            const uint32_t into = seed < 2 ? seed : turn & 1;
            if (is_seed(beside->values[way], wide)) /* the text has it, so it is like others from now on */
                beside->values[way][0] &= wide ? 0xFFFFFFFF : 0xFFFF;
            if (seed == 2 && turn > 1 && (beside->values[way][0] | beside->values[way][1]))
                return beside->values[way];
            entry_swap(home, into, beside, way);
            return home->values[into];
        }
    return NULL;
}

/* ---- seeds ---- */

/* Adds a seed to its bucket, or to the neighboring one, if there is room. The seeds that come first are those of the
 * most frequent tokens. The id is stored twice: lookups take as many ids as the value says, and bpe_entry_add() can
 * tell what was here from the start from what text has brought. */
static void seed_add(struct bpe_state *state, uint32_t at, const struct bpe_entry *seed)
{
    const bool wide = state->model->wide;
    const uint64_t id = seed->value[0] & (wide ? 0x0FFFFFFF : 0xFFFF), one = wide ? id | 1u << 28 : id;
    uint64_t value[2] = {seed->value[0], seed->value[1]};
    struct bpe_bucket *bucket = &state->buckets[at];
    uint32_t way = empty_way(bucket);
    if (value[0] == one && value[1] == (wide ? 0 : (uint64_t)1 << 48))
        value[0] |= id << (wide ? 32 : 16);
    if (way == 2) {
        bucket = &state->buckets[at ^ 1];
        way = empty_way(bucket);
    }
    if (way < 2)
        entry_put(bucket, way, seed->key, value);
}

/* The buckets are divided into parts, and a large vocabulary's seeds are added by two threads: each goes through all
 * seeds, and adds those of its part, whose memory it touches first. */
#define SEED_PART_BITS 1u
#define SEED_PARTS (1u << SEED_PART_BITS)
#define SEEDS_SHARED 16384u /* seeds that make a thread worth its start */

struct seeding {
    struct bpe_state *state;
    uint32_t next; /* the first part that no thread has taken */
};

/* Adds the seeds of the parts from `part` to before `end`. The buckets are scattered, so several are prefetched at
 * once. */
static void seeds_add(struct bpe_state *state, uint32_t part, uint32_t end)
{
    enum { TOGETHER = 64 };
    const struct bpe_model *model = state->model;
    const uint32_t shift = BPE_BUCKET_BITS - SEED_PART_BITS;
    struct {
        uint32_t at;
        const struct bpe_entry *seed;
    } few[TOGETHER];
    for (uint32_t i = 0; i < model->seed_count;) {
        uint32_t count = 0;
        for (; i < model->seed_count && count < TOGETHER; i++) {
            const uint32_t at = bpe_bucket_of(state, model->seeds[i].key);
            few[count].at = at;
            few[count].seed = &model->seeds[i];
            count += at >> shift >= part && at >> shift < end;
        }
        for (uint32_t k = 0; k < count; k++)
            __builtin_prefetch(&state->buckets[few[k].at], 1);
        for (uint32_t k = 0; k < count; k++)
            seed_add(state, few[k].at, few[k].seed);
    }
}

static void seeding_run(void *user, uint32_t number)
{
    struct seeding *seeding = user;
    uint32_t part;
    while ((part = __atomic_fetch_add(&seeding->next, 1, __ATOMIC_RELAXED)) < SEED_PARTS)
        seeds_add(seeding->state, part, part + 1);
}

void bpe_entries_seed(struct bpe_state *state)
{
    struct seeding seeding = {.state = state};
    if (state->model->seed_count >= SEEDS_SHARED && os_processors() > 1)
        os_threads_share("tokmap-seeds", SEED_PARTS, seeding_run, &seeding);
    else
        seeds_add(state, 0, SEED_PARTS);
}

/*
 * ---- the second cache ----
 *
 * A piece has one of four neighboring lines of 64 bytes, which its tag
 * selects. The cache begins with 2 MiB, because most texts need less: 67 MB of source code use 4,000 of its 32,768
 * lines. When a quarter of the lines is used, it grows to 4 MiB and then to 12 MiB. So a short text does not wait until
 * the kernel has cleared memory that it does not need.
 *
 * To grow, lines move within the same memory. The place of a line is its tag times the number of lines, divided by
 * 2^32. So lines are in the order of their tags, in the old places as in the new ones, and none moves down. Moved from
 * the last to the first, no line gets a place whose old line has yet to move. Example with four fours that become
 * eight: the tags 0x30000001 and 0xC0000001 are in fours 0 and 3. The second moves to four 6, and then the first to
 * four 1.
 */
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
