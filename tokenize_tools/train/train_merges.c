/* SPDX-License-Identifier: MIT */
/*
 * train_merges.c - see train_merges.h.
 *
 * The obvious trainer counts all pairs of the text after each merge, which costs the size of the text per token. This
 * one counts all pairs once and afterwards changes only the counts near the places where a pair merged. Four structures
 * make that possible:
 *
 * Slots. All pieces are stored in one array, with one slot per byte and a border between pieces. A token of n bytes
 * occupies n slots: the first has its id, and the last has its id too, with a mark. So both neighbors of a token are
 * found at once, and a merge moves nothing. For example, this is the piece "abab" before and after the merge of a and b
 * into the token 256 (| is a border, and ' is the mark):
 *
 *     |  a   b    a   b   |             |  256 256'  256 256' |
 *
 * Segments. A segment is a piece, or about 64 bytes of a longer piece. Each pair has a list of the segments in which it
 * begins, in ascending order, and to merge the pair, the segments of its list are searched. A list may contain segments
 * that no longer have the pair. A pair comes into existence when the younger of its two tokens is made, at all of its
 * places at once, and from then on it can only become less frequent. So its list is made once, with its exact length,
 * and its count is only ever reduced.
 *
 * Sides. When a pair merges, each place creates a new pair with the token on its left and one with the token on its
 * right, and removes the pairs that existed there. These are collected per neighbor (struct side) and applied when all
 * places are merged. In "abab" the first merge creates the pair (256, a), which the second merge turns into (256, 256).
 * Such pairs that exist only during the merge are counted in `undone`.
 *
 * Queue. A heap with one entry per pair, ordered by count and ids. Reducing the count of a pair does not move its
 * entry. When an entry with an outdated count comes to the top, it gets the current count and sinks.
 *
 * The order in which the pieces arrive makes no difference. It decides only which number a segment has, so in which
 * order the places of a pair are merged and its neighbors are added; counts are sums, the queue orders pairs by count
 * and ids, and no two pairs are equal.
 *
 * The work is n log n for n bytes of distinct pieces: each merge of one place removes a token forever and adds at most
 * two segments to lists, each of which is read once.
 */
#include "train_merges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/table_key.h"

#define BORDER UINT32_MAX
#define LAST 0x80000000u   /* mark of the last slot of a token of more than one byte, besides the id */
#define INSIDE 0xC0000000u /* a slot between the first and the last; borders have these bits too */
#define ID_BITS 0x3FFFFFFFu
#define SEGMENT_MOST 96      /* longer pieces become segments of SEGMENT_BYTES */
#define SEGMENTS_A_LOOK 4096 /* segments between two looks at whether to stop */
#define SEGMENT_BYTES 64
#define LIST_BLOCK ((uint64_t)1 << 18) /* entries of lists that are allocated together */

struct segment {
    uint64_t begin; /* the first slot */
    uint64_t times; /* number of times that the piece occurs in the text */
};

/* Two tokens that are adjacent somewhere. */
struct pair {
    uint32_t left, right;
    uint64_t count; /* 0: the entry of the table is empty, or the pair does not occur anymore */
    uint32_t segment_count;
    uint32_t segment;         /* the only segment, if segment_count is 1 */
    const uint32_t *segments; /* the list, if segment_count is larger */
};

struct queued {
    uint64_t count;
    uint32_t left, right;
};

/* A merged place: the id of its neighbor, and the segment in which the new pair begins. */
struct place {
    uint32_t id, segment;
};

/* Changes of a merge on one side, by the id of the neighbor. */
struct side {
    uint64_t *counts;  /* number of times that the new pair occurs */
    uint64_t *list_at; /* length of the new pair's list, then the position where it ends, then where it begins */
    uint32_t *touched; /* ids of the neighbors, each once */
    uint32_t touched_count;
    struct place *found; /* all places, in the order of the slots */
    uint64_t found_count, found_room;
};

struct list_block {
    struct list_block *next;
    uint64_t count;
    uint32_t segments[];
};

struct trainer {
    const struct train_options *options;
    struct train_budget *budget;
    struct train_vocabulary *vocabulary;
    uint64_t reserved; /* in the budget, in bytes */

    uint32_t *slots;
    uint64_t slot_count;
    struct segment *segments;
    uint64_t segment_count;
    bool too_many; /* more segments than the lists can name */

    uint32_t byte_ids[256];
    uint32_t *lengths; /* of tokens, by id */
    uint64_t bytes_used, bytes_room;
    uint64_t *offsets; /* of tokens in vocabulary->bytes */

    struct table_key key; /* of the table of pairs */
    struct pair *pairs;
    uint32_t pair_bits;
    uint64_t pair_count; /* entries of the table in use */
    struct queued *queue;
    uint64_t queue_count, queue_room;
    struct list_block *lists;
    uint64_t list_room; /* of the newest block */
    struct side left, right;
    uint64_t merged; /* merged places of the text, which is how many tokens fewer it has */
};

/* ---- the alphabet ---- */

/* Ids follow the order of byte_character(): first the printable characters of Latin-1, which represent themselves, then
 * the other 68 bytes, which have U+0100 and above. PLAIN is the number of the former. */
#define PLAIN 188

uint32_t train_id_of(uint8_t byte)
{
    if (byte <= 0x20)
        return PLAIN + (uint32_t)byte;
    if (byte <= 0x7E)
        return byte - 0x21u;
    if (byte <= 0xA0)
        return PLAIN + 0x21 + (byte - 0x7Fu);
    if (byte == 0xAD)
        return 255;
    return (byte < 0xAD ? 94 : 93) + (byte - 0xA1u);
}

uint8_t train_byte_of(uint32_t id)
{
    assert(id < 256);
    uint32_t byte = 0;
    while (byte < 255 && train_id_of((uint8_t)byte) != id)
        byte++;
    return (uint8_t)byte;
}

/* ---- memory ---- */

static enum tokmap_status too_large(struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "the text has more than 2^32 distinct pieces; train on a part of it");
}

/* Adds bytes to those that stay reserved in the budget until the trainer is freed or releases them. */
static enum tokmap_status trainer_reserve(struct trainer *t, uint64_t bytes, struct tokmap_error *error)
{
    const enum tokmap_status status = train_budget_reserve(t->budget, bytes, error);
    t->reserved += status ? 0 : bytes;
    return status;
}

/* Releases memory that the caller has freed. */
static void trainer_release(struct trainer *t, uint64_t bytes)
{
    assert(t->reserved >= bytes);
    t->reserved -= bytes;
    train_budget_release(t->budget, bytes);
}

/* Allocates zeroed memory, which is reserved. *into is NULL after a failure. */
static enum tokmap_status trainer_allocate(struct trainer *t, void **into, uint64_t count, uint64_t each,
                                           struct tokmap_error *error)
{
    uint64_t bytes;
    *into = NULL;
    if (mul_overflows(count, each, &bytes) || bytes > SIZE_MAX / 2)
        return error_set_memory(error, "training", UINT64_MAX);
    const enum tokmap_status status = trainer_reserve(t, bytes, error);
    if (status)
        return status;
    *into = calloc(count ? (size_t)count : 1, (size_t)each);
    if (*into)
        return TOKMAP_OK;
    trainer_release(t, bytes);
    return error_set_memory(error, "training", bytes);
}

/* Doubles an array with room for *room elements, all of which are in use. */
static enum tokmap_status trainer_grow(struct trainer *t, void **array, uint64_t *room, uint64_t each,
                                       struct tokmap_error *error)
{
    const uint64_t wanted = *room ? *room * 2 : 1024, more = (wanted - *room) * each;
    assert(wanted < UINT64_MAX / 2 / each);
    const enum tokmap_status status = trainer_reserve(t, more, error);
    if (status)
        return status;
    void *grown = realloc(*array, (size_t)(wanted * each));
    if (!grown) {
        trainer_release(t, more);
        return error_set_memory(error, "training", wanted * each);
    }
    *array = grown;
    *room = wanted;
    return TOKMAP_OK;
}

/* Allocates a list of `count` segments. It lives until the trainer is freed. */
static enum tokmap_status list_new(struct trainer *t, uint64_t count, uint32_t **list, struct tokmap_error *error)
{
    if (!t->lists || t->list_room - t->lists->count < count) {
        struct list_block *block = NULL;
        const uint64_t room = max64(count, LIST_BLOCK);
        const enum tokmap_status status =
            trainer_allocate(t, (void **)&block, sizeof *block + room * sizeof **list, 1, error);
        if (status)
            return status;
        block->next = t->lists;
        t->lists = block;
        t->list_room = room;
    }
    *list = t->lists->segments + t->lists->count;
    t->lists->count += count;
    return TOKMAP_OK;
}

/* ---- the queue ---- */

static inline bool goes_before(const struct queued *a, const struct queued *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

/* Puts the item at position `at` or below it. The heap has four children per node, so that a walk down touches half as
 * many cache lines as with two. */
static void queue_sink(struct trainer *t, uint64_t at, struct queued item)
{
    for (;;) {
        const uint64_t first = 4 * at + 1, end = min64(first + 4, t->queue_count);
        uint64_t best = first;
        if (first >= t->queue_count)
            break;
        for (uint64_t i = first + 1; i < end; i++)
            if (goes_before(&t->queue[i], &t->queue[best]))
                best = i;
        if (!goes_before(&t->queue[best], &item))
            break;
        t->queue[at] = t->queue[best];
        at = best;
    }
    t->queue[at] = item;
}

static enum tokmap_status queue_add(struct trainer *t, struct queued item, struct tokmap_error *error)
{
    if (t->queue_count == t->queue_room) {
        const enum tokmap_status status = trainer_grow(t, (void **)&t->queue, &t->queue_room, sizeof *t->queue, error);
        if (status)
            return status;
    }
    uint64_t at = t->queue_count++;
    while (at && goes_before(&item, &t->queue[(at - 1) / 4])) {
        t->queue[at] = t->queue[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    t->queue[at] = item;
    return TOKMAP_OK;
}

/* ---- the table of pairs ---- */

static inline uint64_t pair_slot(const struct trainer *t, uint32_t left, uint32_t right)
{
    return table_mix(t->key, left, right) >> (64 - t->pair_bits);
}

/* Returns the entry of a pair, or the empty entry where it belongs. A pair that does not occur anymore keeps its entry,
 * with a segment_count above 0, until the table grows. */
static struct pair *pair_find(const struct trainer *t, uint32_t left, uint32_t right)
{
    const uint64_t mask = ((uint64_t)1 << t->pair_bits) - 1;
    for (uint64_t slot = pair_slot(t, left, right);; slot = (slot + 1) & mask) {
        struct pair *pair = &t->pairs[slot];
        if (!pair->segment_count || (pair->left == left && pair->right == right))
            return pair;
    }
}

/* Makes room for one more pair: removes pairs that do not occur anymore, and doubles the table if necessary. */
static enum tokmap_status pairs_reserve(struct trainer *t, struct tokmap_error *error)
{
    if (t->pair_count < ((uint64_t)3 << t->pair_bits) / 4)
        return TOKMAP_OK;
    struct pair *old = t->pairs;
    const uint64_t old_slots = (uint64_t)1 << t->pair_bits;
    uint64_t alive = 0;
    for (uint64_t i = 0; i < old_slots; i++)
        alive += old[i].count != 0;
    const uint32_t bits = alive > old_slots / 4 ? t->pair_bits + 1 : t->pair_bits;
    struct pair *made = NULL;
    const enum tokmap_status status = trainer_allocate(t, (void **)&made, (uint64_t)1 << bits, sizeof *made, error);
    if (status)
        return status;
    t->pairs = made;
    t->pair_bits = bits;
    t->pair_count = alive;
    for (uint64_t i = 0; i < old_slots; i++)
        if (old[i].count)
            *pair_find(t, old[i].left, old[i].right) = old[i];
    free(old);
    trainer_release(t, old_slots * sizeof *old);
    return TOKMAP_OK;
}

/* Adds a new pair. Its count can only fall from now on. */
static enum tokmap_status pair_add(struct trainer *t, uint32_t left, uint32_t right, uint64_t count,
                                   const uint32_t *segments, uint64_t segment_count, struct tokmap_error *error)
{
    if (segment_count > UINT32_MAX)
        return too_large(error);
    if (!count || count < t->options->min_frequency)
        return TOKMAP_OK; /* it will never be frequent enough */
    enum tokmap_status status = pairs_reserve(t, error);
    if (status)
        return status;
    struct pair *pair = pair_find(t, left, right);
    assert(!pair->segment_count && segment_count);
    *pair =
        (struct pair){left, right, count, (uint32_t)segment_count, segments[0], segment_count > 1 ? segments : NULL};
    t->pair_count++;
    return queue_add(t, (struct queued){count, left, right}, error);
}

/* Subtracts places that do not have the pair anymore. The pair may have been too rare to be in the table. */
static void pair_reduce(struct trainer *t, uint32_t left, uint32_t right, uint64_t count)
{
    struct pair *pair = pair_find(t, left, right);
    assert(!pair->segment_count || pair->count >= count);
    if (pair->segment_count)
        pair->count -= count;
}

/* ---- slots ---- */

/* Appends a piece to the slots, a token for each byte, with its segments. */
static void add_piece(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    struct trainer *t = user;
    assert(count && times);
    static const uint64_t step = SEGMENT_BYTES;
    const uint64_t each = count > SEGMENT_MOST ? step : count;
    for (uint64_t at = 0; at < count; at += each) {
        if (t->segment_count == UINT32_MAX) {
            t->too_many = true;
            return;
        }
        t->segments[t->segment_count++] = (struct segment){t->slot_count + at, times};
    }
    for (uint64_t i = 0; i < count; i++)
        t->slots[t->slot_count + i] = t->byte_ids[bytes[i]];
    t->slots[t->slot_count + count] = BORDER;
    t->slot_count += count + 1;
}

static enum tokmap_status slots_make(struct trainer *t, struct train_pieces *pieces, struct tokmap_error *error)
{
    struct train_totals totals;
    train_pieces_totals(pieces, &totals);
    const uint64_t segments = totals.distinct + totals.bytes / SEGMENT_BYTES + 1;
    enum tokmap_status status =
        trainer_allocate(t, (void **)&t->slots, totals.bytes + totals.distinct + 1, sizeof *t->slots, error);
    if (!status)
        status = trainer_allocate(t, (void **)&t->segments, segments + 1, sizeof *t->segments, error);
    if (status)
        return status;
    t->slots[0] = BORDER;
    t->slot_count = 1;
    for (uint32_t b = 0; b < 256; b++)
        t->byte_ids[b] = train_id_of((uint8_t)b);
    train_pieces_drain(pieces, add_piece, t);
    if (t->too_many)
        return too_large(error);
    t->segments[t->segment_count].begin = t->slot_count; /* the end of the last segment */
    return TOKMAP_OK;
}

/* Returns OK, or ERROR_INTERRUPTED if that is asked for. */
static enum tokmap_status look_at_stop(const struct trainer *t, struct tokmap_error *error)
{
    return t->options->stop && t->options->stop(t->options->user)
               ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : TOKMAP_OK;
}

/* The pairs of bytes, by left << 8 | right. */
struct byte_pairs {
    uint64_t counts[65536];
    uint64_t ends[65536];   /* lengths of lists of segments, then where each list begins, then where it ends */
    uint32_t latest[65536]; /* the segment in which the pair was seen last, plus 1 */
};

/* Visits all pairs of bytes: counts them and the lengths of their lists, or fills the lists if they are not NULL. */
static enum tokmap_status first_pass(struct trainer *t, struct byte_pairs *pairs, uint32_t *lists,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    memset(pairs->latest, 0, sizeof pairs->latest);
    for (uint64_t s = 0; s < t->segment_count && !status; s++) {
        const uint64_t end = t->segments[s + 1].begin;
        if ((s + 1) % SEGMENTS_A_LOOK == 0)
            status = look_at_stop(t, error);
        for (uint64_t i = t->segments[s].begin; i < end; i++) {
            if (t->slots[i] == BORDER || t->slots[i + 1] == BORDER)
                continue;
            const uint32_t p = t->slots[i] << 8 | t->slots[i + 1];
            if (!lists)
                pairs->counts[p] += t->segments[s].times;
            if (pairs->latest[p] == (uint32_t)s + 1)
                continue;
            pairs->latest[p] = (uint32_t)s + 1;
            if (lists)
                lists[pairs->ends[p]] = (uint32_t)s;
            pairs->ends[p]++;
        }
    }
    return status;
}

/* Adds all pairs of bytes. The first pass counts pairs and lengths of lists, and the second one fills the lists. */
static enum tokmap_status first_pairs_add(struct trainer *t, struct tokmap_error *error)
{
    uint64_t total = 0;
    uint32_t *lists = NULL;
    struct byte_pairs *pairs = NULL;
    enum tokmap_status status = trainer_allocate(t, (void **)&pairs, 1, sizeof *pairs, error);
    if (status)
        return status;
    status = first_pass(t, pairs, NULL, error);
    for (uint32_t p = 0; p < 65536; p++) {
        const uint64_t length = pairs->ends[p];
        pairs->ends[p] = total;
        total += length;
    }
    if (!status)
        status = list_new(t, total, &lists, error);
    if (!status)
        status = first_pass(t, pairs, lists, error);
    for (uint32_t p = 0; p < 65536 && !status; p++) {
        const uint64_t begin = p ? pairs->ends[p - 1] : 0, end = pairs->ends[p];
        if (end > begin)
            status = pair_add(t, p >> 8, p & 255, pairs->counts[p], lists + begin, end - begin, error);
    }
    free(pairs);
    trainer_release(t, sizeof *pairs);
    return status;
}

/* ---- one merge ---- */

/* Records that a merged place in this segment has a neighbor. */
static inline enum tokmap_status side_add(struct trainer *t, struct side *side, uint32_t id, uint64_t segment,
                                          uint64_t times, struct tokmap_error *error)
{
    if (side->found_count == side->found_room) {
        const enum tokmap_status status =
            trainer_grow(t, (void **)&side->found, &side->found_room, sizeof *side->found, error);
        if (status)
            return status;
    }
    if (!side->list_at[id]++)
        side->touched[side->touched_count++] = id;
    side->counts[id] += times;
    side->found[side->found_count++] = (struct place){id, (uint32_t)segment};
    return TOKMAP_OK;
}

/* Merges all places of the pair that begin in one segment. Adds to *undone the pairs (result, left) that a merge
 * created and the next one removed. */
static enum tokmap_status segment_merge(struct trainer *t, uint32_t segment, const struct bpe_merge *merge,
                                        uint64_t *undone, struct tokmap_error *error)
{
    const uint64_t end = t->segments[segment + 1].begin, times = t->segments[segment].times;
    const uint32_t left_bytes = t->lengths[merge->left], bytes = t->lengths[merge->result];
    uint64_t at = t->segments[segment].begin;
    enum tokmap_status status = TOKMAP_OK;
    while (at < end && t->slots[at] >= LAST)
        at++; /* skip the rest of a token that begins in an earlier segment, or a border */
    while (at < end && !status) {
        const uint32_t id = t->slots[at];
        if (id >= LAST) { /* a border */
            at++;
            continue;
        }
        const uint64_t next = at + t->lengths[id];
        if (id != merge->left || t->slots[next] != merge->right) {
            at = next;
            continue;
        }
        const uint64_t behind = at + bytes;
        const uint32_t before = t->slots[at - 1], after = t->slots[behind];
        if (before != BORDER) {
            const uint32_t neighbor = before & ID_BITS;
            const uint64_t begin = at - t->lengths[neighbor];
            uint64_t home = segment;
            while (t->segments[home].begin > begin)
                home--;
            if (neighbor == merge->result)
                *undone += times;
            status = side_add(t, &t->left, neighbor, home, times, error);
        }
        if (after != BORDER && !status)
            status = side_add(t, &t->right, after, segment, times, error);
        t->slots[at] = merge->result;
        t->slots[at + left_bytes] = INSIDE;
        t->slots[behind - 1] = merge->result | LAST;
        t->merged += times;
        at = behind;
    }
    return status;
}

/* Makes the lists of segments of all neighbors, one after the other in one allocation. */
static enum tokmap_status side_lists(struct trainer *t, struct side *side, uint32_t **lists, struct tokmap_error *error)
{
    const enum tokmap_status status = list_new(t, side->found_count, lists, error);
    if (status)
        return status;
    uint64_t at = 0;
    /* Lengths become ends, which become beginnings while the lists are filled from the back. */
    for (uint32_t i = 0; i < side->touched_count; i++) {
        at += side->list_at[side->touched[i]];
        side->list_at[side->touched[i]] = at;
    }
    for (uint64_t i = side->found_count; i-- > 0;)
        (*lists)[--side->list_at[side->found[i].id]] = side->found[i].segment;
    return TOKMAP_OK;
}

/* Adds the new pairs of one side, reduces the pairs that were there before, and empties the side. */
static enum tokmap_status side_apply(struct trainer *t, struct side *side, const struct bpe_merge *merge,
                                     uint64_t undone, struct tokmap_error *error)
{
    const bool is_left = side == &t->left;
    assert(is_left || side == &t->right);
    uint32_t *lists = NULL;
    enum tokmap_status status = side_lists(t, side, &lists, error);
    for (uint32_t i = 0; i < side->touched_count && !status; i++) {
        const uint32_t id = side->touched[i];
        const uint64_t begin = side->list_at[id];
        const uint64_t end = i + 1 < side->touched_count ? side->list_at[side->touched[i + 1]] : side->found_count;
        const uint32_t old_left = is_left ? id : merge->right, old_right = is_left ? merge->left : id;
        uint64_t count = side->counts[id];
        if (id != merge->result && !(old_left == merge->left && old_right == merge->right))
            pair_reduce(t, old_left, old_right, count);
        if (!is_left && id == merge->left)
            count -= undone;
        status = pair_add(t, is_left ? id : merge->result, is_left ? merge->result : id, count, lists + begin,
                          end - begin, error);
    }
    for (uint32_t i = 0; i < side->touched_count; i++) {
        side->counts[side->touched[i]] = 0;
        side->list_at[side->touched[i]] = 0;
    }
    side->touched_count = 0;
    side->found_count = 0;
    return status;
}

/* Adds the result of a merge to the vocabulary. */
static enum tokmap_status token_add(struct trainer *t, const struct bpe_merge *merge, struct tokmap_error *error)
{
    struct train_vocabulary *v = t->vocabulary;
    const uint64_t left = t->lengths[merge->left], right = t->lengths[merge->right];
    if (left + right > ID_BITS)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a token would be longer than 1 GiB; set a smaller --vocab-size");
    while (t->bytes_room - t->bytes_used < left + right) {
        const enum tokmap_status status = trainer_grow(t, (void **)&v->bytes, &t->bytes_room, 1, error);
        if (status)
            return status;
    }
    memcpy(v->bytes + t->bytes_used, v->bytes + t->offsets[merge->left], (size_t)left);
    memcpy(v->bytes + t->bytes_used + left, v->bytes + t->offsets[merge->right], (size_t)right);
    t->offsets[merge->result] = t->bytes_used;
    t->lengths[merge->result] = (uint32_t)(left + right);
    t->bytes_used += left + right;
    v->merges[merge->result - 256] = *merge;
    v->count = merge->result + 1;
    return TOKMAP_OK;
}

static enum tokmap_status pair_merge(struct trainer *t, struct pair *pair, struct tokmap_error *error)
{
    const struct bpe_merge merge = {pair->left, pair->right, t->vocabulary->count};
    const uint32_t segment_count = pair->segment_count, only = pair->segment;
    const uint32_t *segments = pair->segments ? pair->segments : &only;
    uint64_t undone = 0;
    enum tokmap_status status = token_add(t, &merge, error);
    pair->count = 0;
    for (uint32_t i = 0; i < segment_count && !status; i++) {
        status = segment_merge(t, segments[i], &merge, &undone, error);
        if (!status && (i + 1) % SEGMENTS_A_LOOK == 0)
            status = look_at_stop(t, error);
    }
    if (!status)
        status = side_apply(t, &t->left, &merge, undone, error);
    if (!status)
        status = side_apply(t, &t->right, &merge, undone, error);
    return status;
}

/* ---- all merges ---- */

/* Returns true if the pair would make a token that is forbidden. */
static bool is_forbidden(const struct trainer *t, const struct pair *pair)
{
    const uint64_t left = t->lengths[pair->left], right = t->lengths[pair->right];
    const uint8_t *bytes = t->vocabulary->bytes;
    for (uint32_t i = 0; i < t->options->forbidden_count; i++) {
        const struct train_text *forbidden = &t->options->forbidden[i];
        if (forbidden->count == left + right &&
            !memcmp(forbidden->bytes, bytes + t->offsets[pair->left], (size_t)left) &&
            !memcmp(forbidden->bytes + left, bytes + t->offsets[pair->right], (size_t)right))
            return true;
    }
    return false;
}

static enum tokmap_status merge_all(struct trainer *t, struct tokmap_error *error)
{
    const struct train_options *options = t->options;
    enum tokmap_status status = TOKMAP_OK;
    while (t->vocabulary->count < options->tokens && t->queue_count && !status) {
        struct queued top = t->queue[0];
        struct pair *pair = pair_find(t, top.left, top.right);
        if (pair->count >= options->min_frequency && pair->count && pair->count != top.count) {
            top.count = pair->count;
            queue_sink(t, 0, top);
            continue;
        }
        const struct queued last = t->queue[--t->queue_count];
        if (t->queue_count)
            queue_sink(t, 0, last);
        if (!pair->count || pair->count < options->min_frequency || is_forbidden(t, pair))
            continue;
        if (options->progress)
            options->progress(options->user, t->vocabulary->count);
        status = look_at_stop(t, error);
        if (!status)
            status = pair_merge(t, pair, error);
    }
    return status;
}

static enum tokmap_status side_make(struct trainer *t, struct side *side, struct tokmap_error *error)
{
    const uint64_t tokens = t->options->tokens;
    enum tokmap_status status = trainer_allocate(t, (void **)&side->counts, tokens, sizeof *side->counts, error);
    if (!status)
        status = trainer_allocate(t, (void **)&side->list_at, tokens, sizeof *side->list_at, error);
    if (!status)
        status = trainer_allocate(t, (void **)&side->touched, tokens, sizeof *side->touched, error);
    return status;
}

static enum tokmap_status trainer_make(struct trainer *t, struct tokmap_error *error)
{
    struct train_vocabulary *v = t->vocabulary;
    const uint64_t tokens = t->options->tokens;
    t->key = table_key_new();
    t->pair_bits = 17;
    t->bytes_room = 4096;
    enum tokmap_status status = trainer_allocate(t, (void **)&t->lengths, tokens, sizeof *t->lengths, error);
    if (!status)
        status = trainer_allocate(t, (void **)&t->offsets, tokens, sizeof *t->offsets, error);
    if (!status)
        status = trainer_allocate(t, (void **)&v->bytes, t->bytes_room, 1, error);
    if (!status)
        status = trainer_allocate(t, (void **)&v->merges, tokens - 256, sizeof *v->merges, error);
    if (!status)
        status = trainer_allocate(t, (void **)&t->pairs, (uint64_t)1 << t->pair_bits, sizeof *t->pairs, error);
    if (!status)
        status = side_make(t, &t->left, error);
    if (!status)
        status = side_make(t, &t->right, error);
    if (status)
        return status;
    for (uint32_t id = 0; id < 256; id++) {
        v->bytes[id] = train_byte_of(id);
        t->offsets[id] = id;
        t->lengths[id] = 1;
    }
    t->bytes_used = v->count = 256;
    return TOKMAP_OK;
}

static void trainer_free(struct trainer *t)
{
    while (t->lists) {
        struct list_block *next = t->lists->next;
        free(t->lists);
        t->lists = next;
    }
    struct side *const sides[] = {&t->left, &t->right};
    for (int i = 0; i < 2; i++) {
        free(sides[i]->counts);
        free(sides[i]->list_at);
        free(sides[i]->touched);
        free(sides[i]->found);
    }
    free(t->slots);
    free(t->segments);
    free(t->lengths);
    free(t->offsets);
    free(t->pairs);
    free(t->queue);
    train_budget_release(t->budget, t->reserved);
}

enum tokmap_status train_merges(struct train_vocabulary *vocabulary, struct train_pieces *pieces,
                                struct train_budget *budget, const struct train_options *options,
                                struct tokmap_error *error)
{
    struct trainer t = {.options = options, .budget = budget, .vocabulary = vocabulary};
    struct train_totals totals;
    assert(options->tokens >= 256 && options->tokens <= TRAIN_TOKENS_MOST);
    assert(options->forbidden || !options->forbidden_count);
    memset(vocabulary, 0, sizeof *vocabulary);
    train_pieces_totals(pieces, &totals);
    enum tokmap_status status = trainer_make(&t, error);
    if (!status)
        status = slots_make(&t, pieces, error);
    if (!status)
        status = first_pairs_add(&t, error);
    if (!status)
        status = merge_all(&t, error);
    if (!status) {
        vocabulary->tokens = malloc(vocabulary->count * sizeof *vocabulary->tokens);
        if (!vocabulary->tokens)
            status = error_set_memory(error, "the vocabulary", vocabulary->count * sizeof *vocabulary->tokens);
    }
    for (uint32_t id = 0; id < vocabulary->count && !status; id++)
        vocabulary->tokens[id] = (struct train_text){vocabulary->bytes + t.offsets[id], t.lengths[id]};
    vocabulary->trained_tokens = totals.text - t.merged;
    trainer_free(&t);
    if (status)
        train_vocabulary_free(vocabulary);
    return status;
}

void train_vocabulary_free(struct train_vocabulary *vocabulary)
{
    free(vocabulary->tokens);
    free(vocabulary->merges);
    free(vocabulary->bytes);
    memset(vocabulary, 0, sizeof *vocabulary);
}
