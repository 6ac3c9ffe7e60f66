/* SPDX-License-Identifier: MIT */
/* bpe_model.c - the table of pairs, tokens that merging does not reach, and freeing; see bpe_model.h. */
#include "bpe_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "platform/table_key.h"

/* Additions to a table usually pass over 2 to 5 slots each, because searches begin with a cache line's first slot. */
#define PASSED_USUAL 16
#define PASSED_LEAST 4096

static uint64_t pairs_bytes(const struct bpe_model *model)
{
    return ((uint64_t)1 << model->pair_bits) * sizeof *model->pairs;
}

static size_t filter_words(const struct bpe_model *model)
{
    return ((size_t)4 << model->pair_bits) / 64;
}

/* Allocates a table of 2^pair_bits slots, which the caller makes empty, with a new key. Returns false if memory ran
 * out. */
static bool pairs_allocate(struct bpe_model *model)
{
    model->pair_filter = calloc(filter_words(model), sizeof *model->pair_filter);
    model->pairs = os_memory_large((size_t)pairs_bytes(model));
    if (!model->pair_filter || !model->pairs) {
        bpe_pairs_free(model);
        return false;
    }
    model->pair_factor = table_key_new().low | 1;
    model->pair_passed = model->pair_count = 0;
    return true;
}

/* Chooses the size of a table. */
static void pairs_size(struct bpe_model *model, uint64_t slots)
{
    assert(!model->pairs && !model->pair_filter);
    model->pair_bits = 4;
    while ((uint64_t)1 << model->pair_bits < slots)
        model->pair_bits++;
    model->pair_limit = PASSED_LEAST;
}

bool bpe_pairs_new(struct bpe_model *model, uint64_t slots)
{
    pairs_size(model, slots);
    if (!pairs_allocate(model))
        return false;
    memset(model->pairs, 0xFF, pairs_bytes(model));
    return true;
}

void bpe_pairs_free(struct bpe_model *model)
{
    free(model->pairs);
    free(model->pair_filter);
    model->pairs = model->pair_filter = NULL;
}

/* Makes the last two slots of a full line say whether pairs have passed on to the next one. */
static void line_order(uint64_t *line, bool passed)
{
    uint64_t *last = &line[BPE_PAIRS_LINE - 1], was = *last;
    if (bpe_pairs_passed(line) != passed) {
        *last = last[-1];
        last[-1] = was;
    }
}

/* Notes that a pair has passed on from the line of slot `home` to that of slot `at`. */
static void lines_pass(uint64_t *pairs, uint64_t home, uint64_t at, uint64_t mask)
{
    for (; home != round_down(at, BPE_PAIRS_LINE); home = (home + BPE_PAIRS_LINE) & mask)
        line_order(pairs + home, true);
}

/* Does that for a pair that was put into slot `at`. If its line is full now, no pair has passed on from it yet. */
static void lines_order(uint64_t *pairs, uint64_t home, uint64_t at, uint64_t mask)
{
    lines_pass(pairs, home, at, mask);
    if (at % BPE_PAIRS_LINE == BPE_PAIRS_LINE - 1)
        line_order(pairs + round_down(at, BPE_PAIRS_LINE), false);
}

/* Puts a pair into its slot. Returns false if the pair was there already. */
static bool pair_put(struct bpe_model *model, uint64_t key, uint32_t rank)
{
    const uint64_t mask = ((uint64_t)1 << model->pair_bits) - 1, hash = bpe_pair_hash(model, key);
    const uint64_t home = bpe_pair_place(hash);
    uint64_t at = home;
    model->pair_filter[hash / 64] |= (uint64_t)1 << (hash % 64);
    while (model->pairs[at] != UINT64_MAX && model->pairs[at] >> 22 != key)
        at = (at + 1) & mask;
    const bool added = model->pairs[at] == UINT64_MAX;
    model->pairs[at] = key << 22 | rank;
    if (added)
        lines_order(model->pairs, home, at, mask);
    model->pair_passed += (at - home) & mask;
    model->pair_count += added;
    return added;
}

/* Draws another key, and moves each pair to its slot. A pair that is in that slot is moved next, unless it was moved
 * already, which `moved` has a bit for. (A second table would be as quick, and takes as much memory again.) */
static void pairs_move(struct bpe_model *model, uint64_t *moved)
{
    const uint64_t slots = (uint64_t)1 << model->pair_bits, mask = slots - 1;
    uint64_t *pairs = model->pairs;
    model->pair_factor = table_key_new().low | 1;
    model->pair_passed = 0;
    memset(model->pair_filter, 0, filter_words(model) * sizeof *model->pair_filter);
    for (uint64_t i = 0; i < slots; i++) {
        uint64_t pair = pairs[i];
        if (moved[i / 64] >> (i % 64) & 1)
            continue;
        pairs[i] = UINT64_MAX;
        while (pair != UINT64_MAX) {
            const uint64_t hash = bpe_pair_hash(model, pair >> 22), home = bpe_pair_place(hash);
            uint64_t at = home;
            while (moved[at / 64] >> (at % 64) & 1)
                at = (at + 1) & mask;
            moved[at / 64] |= (uint64_t)1 << (at % 64);
            model->pair_filter[hash / 64] |= (uint64_t)1 << (hash % 64);
            model->pair_passed += (at - home) & mask;
            const uint64_t there = pairs[at];
            pairs[at] = pair;
            pair = there;
        }
    }
    for (uint64_t line = 0; line < slots; line += BPE_PAIRS_LINE)
        line_order(pairs + line, false);
    for (uint64_t at = 0; at < slots; at++)
        if (pairs[at] != UINT64_MAX)
            lines_pass(pairs, bpe_pair_place(bpe_pair_hash(model, pairs[at] >> 22)), at, mask);
}

/* Draws another key if additions pass over more slots than is usual. A product is a quick hash, not a strong one: for
 * regular pairs some keys are bad. The next limit is twice the work so far, so that drawing keys costs no more than
 * adding pairs does. Where there is no memory to do it, the key stays. */
static void pairs_spread(struct bpe_model *model)
{
    model->pair_limit = PASSED_LEAST + PASSED_USUAL * (uint64_t)model->pair_count;
    if (model->pair_passed <= model->pair_limit)
        return;
    uint64_t *moved = calloc((size_t)div_ceil((uint64_t)1 << model->pair_bits, 64), sizeof *moved);
    if (moved)
        pairs_move(model, moved);
    free(moved);
    model->pair_limit = max64(model->pair_limit, 2 * model->pair_passed);
}

bool bpe_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    assert(left < BPE_IDS && right < BPE_IDS && rank < BPE_MERGES);
    const bool added = pair_put(model, bpe_pair_key(left, right), rank);
    if (model->pair_passed > model->pair_limit)
        pairs_spread(model);
    return added;
}

/* ---- a list of pairs ----
 *
 * The slots are divided into parts of equal size, and each part into its own thread: the thread goes through the whole
 * list, and adds the pairs whose hash selects a line of its part. Most of the time of an addition is that of fetching
 * the slot from memory, so two threads take half of the time. A pair whose search would leave the part at its end is
 * late: it is added when all threads are done. Two equal pairs select the same line, so they keep their order. */

#define PARTS_MOST 4u
#define PART_LEAST 50000u /* pairs that make a thread worth its start */
#define LATE_MOST 64u     /* of a part; many more mean that the key is bad */
#define BLOCK 64u         /* pairs of the list whose slots are prefetched before the first of them is added */

struct pairs_part {
    uint64_t passed;
    uint32_t added, late_count;
    uint32_t late[LATE_MOST]; /* places in the list */
    bool gave_up;             /* the additions pass over so many slots that the table needs another key */
};

struct pairs_list {
    struct bpe_model *model;
    const struct bpe_merge *merges;
    uint32_t count;
    bool by_result;
    uint32_t part_bits; /* there are 2^part_bits parts */
    uint32_t next;      /* the first part that no thread has taken */
    struct pairs_part parts[PARTS_MOST];
};

/* A pair whose slot is being prefetched. */
struct pair_waiting {
    uint64_t key, hash;
    uint32_t place;
};

static uint32_t rank_of(const struct pairs_list *list, uint32_t place)
{
    return list->by_result ? list->merges[place].result : place;
}

/* Adds a pair to a part that ends before slot `end`. */
static void part_put(const struct pairs_list *list, struct pairs_part *part, uint64_t end,
                     const struct pair_waiting *pair)
{
    struct bpe_model *model = list->model;
    const uint64_t home = bpe_pair_place(pair->hash);
    uint64_t *pairs = model->pairs, at = home;
    model->pair_filter[pair->hash / 64] |= (uint64_t)1 << (pair->hash % 64);
    while (at < end && pairs[at] != UINT64_MAX && pairs[at] >> 22 != pair->key)
        at++;
    part->passed += at - home;
    if (at == end) {
        part->gave_up |= part->late_count == LATE_MOST;
        if (!part->gave_up)
            part->late[part->late_count++] = pair->place;
        return;
    }
    const bool added = pairs[at] == UINT64_MAX;
    pairs[at] = pair->key << 22 | rank_of(list, pair->place);
    if (added)
        lines_order(pairs, home, at, UINT64_MAX);
    part->added += added;
    part->gave_up |= part->passed > PASSED_LEAST + PASSED_USUAL * (uint64_t)part->added;
}

/* Collects the pairs of a block of the list that are of a part, and prefetches what part_put() will write. */
static uint32_t part_collect(const struct pairs_list *list, uint32_t number, uint32_t from, struct pair_waiting *pairs)
{
    const struct bpe_model *model = list->model;
    const uint32_t shift = model->pair_bits + 2 - list->part_bits, end = (uint32_t)min64(list->count, from + BLOCK);
    uint32_t count = 0;
    for (uint32_t i = from; i < end; i++) {
        const uint64_t key = bpe_pair_key(list->merges[i].left, list->merges[i].right),
                       hash = bpe_pair_hash(model, key);
        pairs[count] = (struct pair_waiting){key, hash, i};
        count += hash >> shift == number;
    }
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(&model->pairs[bpe_pair_place(pairs[i].hash)], 1);
        __builtin_prefetch(&model->pair_filter[pairs[i].hash / 64], 1);
    }
    return count;
}

static void part_fill(struct pairs_list *list, uint32_t number)
{
    struct bpe_model *model = list->model;
    struct pairs_part part = {.passed = 0}; /* a copy, because another thread writes to the cache line beside it */
    const uint64_t slots = (uint64_t)1 << (model->pair_bits - list->part_bits), end = slots * (number + 1);
    struct pair_waiting pairs[2][BLOCK];
    memset(model->pairs + end - slots, 0xFF, slots * sizeof *model->pairs);
    uint32_t now = part_collect(list, number, 0, pairs[0]), then;
    for (uint32_t i = 0; i < list->count && !part.gave_up; i += BLOCK, now = then) {
        struct pair_waiting *block = pairs[i / BLOCK % 2], *next = pairs[(i / BLOCK + 1) % 2];
        then = list->count - i > BLOCK ? part_collect(list, number, i + BLOCK, next) : 0;
        for (uint32_t k = 0; k < now && !part.gave_up; k++)
            part_put(list, &part, end, &block[k]);
    }
    list->parts[number] = part;
}

static void parts_run(void *user, uint32_t number)
{
    struct pairs_list *list = user;
    uint32_t part;
    while ((part = __atomic_fetch_add(&list->next, 1, __ATOMIC_RELAXED)) < (uint32_t)1 << list->part_bits)
        part_fill(list, part);
}

/* Adds one pair after the other, with other keys where additions pass over too many slots. Returns how many were not
 * there yet. */
static uint32_t list_put(const struct pairs_list *list)
{
    struct bpe_model *model = list->model;
    uint32_t added = 0;
    memset(model->pairs, 0xFF, pairs_bytes(model));
    model->pair_passed = model->pair_count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        added += bpe_pair_add(model, list->merges[i].left, list->merges[i].right, rank_of(list, i));
    return added;
}

bool bpe_pairs_new_list(struct bpe_model *model, uint64_t slots, const struct bpe_merge *merges, uint32_t count,
                        bool by_result, bool *twice)
{
    struct pairs_list list = {.model = model, .merges = merges, .count = count, .by_result = by_result};
    const uint32_t processors = os_processors();
    bool good = true;
    assert(slots > count);
    pairs_size(model, slots);
    if (!pairs_allocate(model))
        return false;
    while ((uint32_t)2 << list.part_bits <= min64(processors, PARTS_MOST) && count >> list.part_bits >= 2 * PART_LEAST)
        list.part_bits++;
    os_threads_share("tokmap-pairs", (uint32_t)1 << list.part_bits, parts_run, &list);
    for (uint32_t i = 0; i < (uint32_t)1 << list.part_bits; i++) {
        good &= !list.parts[i].gave_up;
        model->pair_passed += list.parts[i].passed;
        model->pair_count += list.parts[i].added;
    }
    uint32_t added = good ? model->pair_count : list_put(&list);
    for (uint32_t i = 0; i < (uint32_t)1 << list.part_bits && good; i++)
        for (uint32_t k = 0; k < list.parts[i].late_count; k++) {
            const uint32_t place = list.parts[i].late[k];
            added += bpe_pair_add(model, merges[place].left, merges[place].right, rank_of(&list, place));
        }
    *twice = added < count;
    return true;
}

_Static_assert(NO_TEXT == BPE_NONE, "a text that is not there has no id");

bool bpe_unreached_new(struct bpe_model *model, const uint32_t *ids, uint32_t count)
{
    if (count && !text_places_new(&model->unreached, 2 * (uint64_t)count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = bpe_token_bytes(model, ids[i]);
        (void)text_places_add(&model->unreached, model->bytes, model->offsets, ids[i]);
        if (bytes <= 15) {
            const uint32_t bit = bpe_unreached_bit(bpe_key_of(model->bytes + model->offsets[ids[i]], bytes));
            model->unreached_filter[bit / 64] |= (uint64_t)1 << (bit % 64);
        }
    }
    model->unreached_count = count;
    return true;
}

uint32_t bpe_unreached(const struct bpe_model *model, const uint8_t *bytes, size_t count)
{
    return !model->unreached_count ? BPE_NONE
                                   : text_places_find(&model->unreached, model->bytes, model->offsets, bytes, count);
}

void bpe_model_clear(struct bpe_model *model)
{
    bpe_pairs_free(model);
    free(model->bytes);
    free(model->offsets);
    free(model->byte_pairs);
    free(model->results);
    free(model->joins);
    free(model->seeds);
    text_places_free(&model->unreached);
    model->pairs = model->pair_filter = NULL;
    model->bytes = NULL;
    model->offsets = model->byte_pairs = model->results = NULL;
    model->joins = NULL;
    model->seeds = NULL;
}

void bpe_model_free(struct bpe_model *model)
{
    if (!model)
        return;
    bpe_model_clear(model);
    free(model);
}
