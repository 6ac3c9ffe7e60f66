/*
 * train_merges.c - see train_merges.h.
 *
 * Symbols. All pieces lie in one array, a slot a byte, with a border between them. A token of n bytes has its id in the
 * first of its n slots and, marked, in the last, so that both neighbours are found at once and a merge moves nothing.
 *
 * Segments. A segment is a piece, or about 64 bytes of a longer one. Each pair has a list of the segments in which it
 * begins, in rising order; to merge it, these are read through. Lists may name segments in which the pair is no more. A
 * pair begins to exist with the younger of its tokens, all at once, and from then on can only become less frequent; so
 * its list is made once, exactly as long as it has to be, and its count is only ever taken from.
 *
 * Queue. A heap with one entry for each pair, in the order of count and ids. An entry whose count has fallen since goes
 * back with its new count when it comes to the top.
 *
 * Work is n log n in the bytes of different pieces: each merge of a place removes a token for good, and adds at most
 * two names of segments to lists, each of which is read once.
 */
#include "train_merges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "unicode/byte_alphabet.h"

#define BORDER UINT32_MAX
#define LAST 0x80000000u   /* the last slot of a token of more than one byte: its id and this */
#define INSIDE 0xC0000000u /* any slot between; borders have these bits too */
#define ID_BITS 0x3FFFFFFFu
#define SEGMENT_MOST 96 /* longer pieces become segments of SEGMENT_BYTES */
#define SEGMENT_BYTES 64
#define LIST_BLOCK ((uint64_t)1 << 18)

struct segment {
    uint64_t begin; /* first slot */
    uint64_t times; /* the piece is in the text */
};

/* A pair of tokens that stand side by side somewhere. */
struct pair {
    uint32_t left, right;
    uint64_t count; /* 0: an empty slot of the table, or a pair that is no more */
    uint32_t segment_count;
    uint32_t segment;         /* the only one, if there is one */
    const uint32_t *segments; /* if there are more */
};

struct queued {
    uint64_t count;
    uint32_t left, right;
};

/* What a merge does on one side: by the id of the neighbour. */
struct side {
    uint64_t *counts;
    uint64_t *places;  /* how often it was met, for the length of its list */
    uint32_t *touched; /* ids, each once */
    uint32_t touched_count;
    struct place {
        uint32_t id, segment;
    } * met; /* in the order of the text */
    uint64_t met_count, met_room;
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
    uint64_t taken; /* of the budget */

    uint32_t *slots;
    uint64_t slot_count;
    struct segment *segments;
    uint64_t segment_count;
    bool too_many; /* segments for the lists */

    uint32_t *lengths; /* of tokens, by id */
    uint64_t bytes_used, bytes_room;
    uint64_t *offsets; /* of tokens in vocabulary->bytes */

    struct pair *pairs;
    uint32_t pair_bits;
    uint64_t pair_count; /* slots in use */
    struct queued *queue;
    uint64_t queue_count, queue_room;
    struct list_block *lists;
    uint64_t list_room; /* of the newest block */
    struct side left, right;
    uint64_t merged; /* places in the text, each as often as its piece is there */
};

/* ---- the alphabet ---- */

/* In the order of byte_character(): printable characters of Latin-1 stand for themselves, the other 68 bytes are U+0100
 * and on. */
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
    uint32_t byte = 0;
    while (byte < 255 && train_id_of((uint8_t)byte) != id)
        byte++;
    return (uint8_t)byte;
}

/* ---- memory ---- */

static enum tokmap_status too_large(struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "the text has more than 2^32 different pieces; train on a part of it");
}

/* Memory of the trainer's own, zeroed, on the budget until the end. */
static enum tokmap_status take(struct trainer *t, void **into, uint64_t count, uint64_t each,
                               struct tokmap_error *error)
{
    uint64_t bytes;
    if (mul_overflows(count, each, &bytes) || bytes > SIZE_MAX / 2)
        return error_set_memory(error, "training", UINT64_MAX);
    enum tokmap_status status = train_budget_reserve(t->budget, bytes, error);
    if (status)
        return status;
    t->taken += bytes;
    *into = calloc(count ? count : 1, (size_t)each);
    return *into ? TOKMAP_OK : error_set_memory(error, "training", bytes);
}

static void given(struct trainer *t, uint64_t bytes)
{
    t->taken -= bytes;
    train_budget_release(t->budget, bytes);
}

/* Doubles an array of which `room` elements are in use. */
static enum tokmap_status grow(struct trainer *t, void **array, uint64_t *room, uint64_t each,
                               struct tokmap_error *error)
{
    const uint64_t wanted = *room ? *room * 2 : 1024;
    const enum tokmap_status status = train_budget_reserve(t->budget, (wanted - *room) * each, error);
    if (status)
        return status;
    t->taken += (wanted - *room) * each;
    void *grown = realloc(*array, (size_t)(wanted * each));
    if (!grown)
        return error_set_memory(error, "training", wanted * each);
    *array = grown;
    *room = wanted;
    return TOKMAP_OK;
}

/* Room for a list. */
static enum tokmap_status list_new(struct trainer *t, uint64_t count, uint32_t **list, struct tokmap_error *error)
{
    if (!t->lists || t->list_room - t->lists->count < count) {
        struct list_block *block = NULL;
        const uint64_t room = max64(count, LIST_BLOCK);
        const enum tokmap_status status = take(t, (void **)&block, sizeof *block + room * sizeof **list, 1, error);
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

/* Four below each: a walk down touches half as many lines as with two. */
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
        const enum tokmap_status status = grow(t, (void **)&t->queue, &t->queue_room, sizeof *t->queue, error);
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
    return bpe_mix(left, right) >> (64 - t->pair_bits);
}

/* The pair's place, or the empty one where it belongs. Pairs that are no more keep their place (segment_count is not 0
 * there) until the table grows. */
static struct pair *pair_find(const struct trainer *t, uint32_t left, uint32_t right)
{
    const uint64_t mask = ((uint64_t)1 << t->pair_bits) - 1;
    for (uint64_t slot = pair_slot(t, left, right);; slot = (slot + 1) & mask) {
        struct pair *pair = &t->pairs[slot];
        if (!pair->segment_count || (pair->left == left && pair->right == right))
            return pair;
    }
}

static enum tokmap_status pairs_make_room(struct trainer *t, struct tokmap_error *error)
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
    const enum tokmap_status status = take(t, (void **)&made, (uint64_t)1 << bits, sizeof *made, error);
    if (status)
        return status;
    t->pairs = made;
    t->pair_bits = bits;
    t->pair_count = alive;
    for (uint64_t i = 0; i < old_slots; i++)
        if (old[i].count)
            *pair_find(t, old[i].left, old[i].right) = old[i];
    free(old);
    given(t, old_slots * sizeof *old);
    return TOKMAP_OK;
}

/* A pair that has just come to be. Its count is final as soon as it is here. */
static enum tokmap_status pair_add(struct trainer *t, uint32_t left, uint32_t right, uint64_t count,
                                   const uint32_t *segments, uint64_t segment_count, struct tokmap_error *error)
{
    if (segment_count > UINT32_MAX)
        return too_large(error);
    if (!count || count < t->options->min_frequency)
        return TOKMAP_OK; /* it can only become less frequent */
    enum tokmap_status status = pairs_make_room(t, error);
    if (status)
        return status;
    struct pair *pair = pair_find(t, left, right);
    assert(!pair->segment_count);
    *pair =
        (struct pair){left, right, count, (uint32_t)segment_count, segments[0], segment_count > 1 ? segments : NULL};
    t->pair_count++;
    return queue_add(t, (struct queued){count, left, right}, error);
}

/* Some places of a pair are no more. It may be one that was too rare to be kept. */
static void pair_lessen(struct trainer *t, uint32_t left, uint32_t right, uint64_t count)
{
    struct pair *pair = pair_find(t, left, right);
    if (pair->segment_count)
        pair->count -= count;
}

/* ---- symbols ---- */

static void add_piece(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    struct trainer *t = user;
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
        t->slots[t->slot_count + i] = bytes[i];
    t->slots[t->slot_count + count] = BORDER;
    t->slot_count += count + 1;
}

static enum tokmap_status symbols_make(struct trainer *t, struct train_pieces *pieces, struct tokmap_error *error)
{
    struct train_totals totals;
    uint32_t ids[256];
    train_pieces_totals(pieces, &totals);
    const uint64_t segments = totals.different + totals.bytes / SEGMENT_BYTES + 1;
    enum tokmap_status status =
        take(t, (void **)&t->slots, totals.bytes + totals.different + 1, sizeof *t->slots, error);
    if (!status)
        status = take(t, (void **)&t->segments, segments + 1, sizeof *t->segments, error);
    if (status)
        return status;
    t->slots[0] = BORDER;
    t->slot_count = 1;
    train_pieces_drain(pieces, add_piece, t);
    if (t->too_many)
        return too_large(error);
    t->segments[t->segment_count].begin = t->slot_count; /* where the last one ends at most */
    for (uint32_t b = 0; b < 256; b++)
        ids[b] = train_id_of((uint8_t)b);
    for (uint64_t i = 0; i < t->slot_count; i++)
        if (t->slots[i] != BORDER)
            t->slots[i] = ids[t->slots[i]];
    return TOKMAP_OK;
}

/* All pairs of bytes, counted and listed. */
static enum tokmap_status pairs_begin(struct trainer *t, struct tokmap_error *error)
{
    uint64_t *counts = NULL, *ends = NULL, total = 0;
    uint32_t *lists = NULL, *latest = NULL;
    enum tokmap_status status = take(t, (void **)&counts, 65536, sizeof *counts, error);
    if (!status)
        status = take(t, (void **)&ends, 65537, sizeof *ends, error);
    if (!status)
        status = take(t, (void **)&latest, 65536, sizeof *latest, error);
    for (int pass = 0; pass < 2 && !status; pass++) {
        if (pass) {
            for (uint32_t p = 0; p <= 65536;
                 p++) { /* lengths to beginnings, which become ends while lists are filled */
                const uint64_t length = p < 65536 ? ends[p] : 0;
                ends[p] = total;
                total += length;
            }
            status = list_new(t, total, &lists, error);
            if (status)
                break;
            memset(latest, 0, 65536 * sizeof *latest);
        }
        for (uint64_t s = 0; s < t->segment_count; s++) {
            const uint64_t end = t->segments[s + 1].begin;
            for (uint64_t i = t->segments[s].begin; i < end; i++) {
                if (t->slots[i] == BORDER || t->slots[i + 1] == BORDER)
                    continue;
                const uint32_t p = t->slots[i] << 8 | t->slots[i + 1];
                if (pass == 0)
                    counts[p] += t->segments[s].times;
                if (latest[p] == (uint32_t)s + 1)
                    continue;
                latest[p] = (uint32_t)s + 1;
                if (pass)
                    lists[ends[p]] = (uint32_t)s;
                ends[p]++;
            }
        }
    }
    for (uint32_t p = 0; p < 65536 && !status; p++) {
        const uint64_t begin = p ? ends[p - 1] : 0;
        if (ends[p] > begin)
            status = pair_add(t, p >> 8, p & 255, counts[p], lists + begin, ends[p] - begin, error);
    }
    free(counts);
    free(ends);
    free(latest);
    return status;
}

/* ---- one merge ---- */

static inline enum tokmap_status side_add(struct trainer *t, struct side *side, uint32_t id, uint64_t segment,
                                          uint64_t times, struct tokmap_error *error)
{
    if (side->met_count == side->met_room) {
        const enum tokmap_status status = grow(t, (void **)&side->met, &side->met_room, sizeof *side->met, error);
        if (status)
            return status;
    }
    if (!side->places[id]++)
        side->touched[side->touched_count++] = id;
    side->counts[id] += times;
    side->met[side->met_count++] = (struct place){id, (uint32_t)segment};
    return TOKMAP_OK;
}

/* Merges the pair where it begins in one segment. *undone: pairs (made, left) that came and went. */
static enum tokmap_status segment_merge(struct trainer *t, uint32_t segment, const struct bpe_merge *merge,
                                        uint64_t *undone, struct tokmap_error *error)
{
    const uint64_t end = t->segments[segment + 1].begin, times = t->segments[segment].times;
    const uint32_t left_bytes = t->lengths[merge->left], bytes = t->lengths[merge->result];
    uint64_t at = t->segments[segment].begin;
    enum tokmap_status status = TOKMAP_OK;
    while (at < end && t->slots[at] >= LAST)
        at++; /* inside a token that begins before, or the border behind the piece */
    while (at < end && !status) {
        const uint32_t id = t->slots[at];
        if (id >= LAST)
            break;
        const uint64_t next = at + t->lengths[id];
        if (id != merge->left || t->slots[next] != merge->right) {
            at = next;
            continue;
        }
        const uint64_t behind = at + bytes;
        const uint32_t before = t->slots[at - 1], after = t->slots[behind];
        if (before != BORDER) {
            const uint32_t neighbour = before & ID_BITS;
            const uint64_t begin = at - t->lengths[neighbour];
            uint64_t its = segment;
            while (t->segments[its].begin > begin)
                its--;
            if (neighbour == merge->result)
                *undone += times;
            status = side_add(t, &t->left, neighbour, its, times, error);
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

/* Lists of segments for each neighbour, one behind the other in one piece of memory. */
static enum tokmap_status side_lists(struct trainer *t, struct side *side, uint32_t **lists, struct tokmap_error *error)
{
    const enum tokmap_status status = list_new(t, side->met_count, lists, error);
    if (status)
        return status;
    uint64_t at = 0;
    for (uint32_t i = 0; i < side->touched_count; i++) { /* lengths to ends */
        at += side->places[side->touched[i]];
        side->places[side->touched[i]] = at;
    }
    for (uint64_t i = side->met_count; i-- > 0;)
        (*lists)[--side->places[side->met[i].id]] = side->met[i].segment;
    return TOKMAP_OK;
}

/* New pairs of one side, and what they take from the old ones. */
static enum tokmap_status side_settle(struct trainer *t, struct side *side, const struct bpe_merge *merge,
                                      uint64_t undone, struct tokmap_error *error)
{
    const bool is_left = side == &t->left;
    uint32_t *lists = NULL;
    enum tokmap_status status = side_lists(t, side, &lists, error);
    for (uint32_t i = 0; i < side->touched_count && !status; i++) {
        const uint32_t id = side->touched[i];
        const uint64_t begin = side->places[id];
        const uint64_t end = i + 1 < side->touched_count ? side->places[side->touched[i + 1]] : side->met_count;
        const uint32_t old_left = is_left ? id : merge->right, old_right = is_left ? merge->left : id;
        uint64_t count = side->counts[id];
        if (id != merge->result && !(old_left == merge->left && old_right == merge->right))
            pair_lessen(t, old_left, old_right, count);
        if (!is_left && id == merge->left)
            count -= undone;
        status = pair_add(t, is_left ? id : merge->result, is_left ? merge->result : id, count, lists + begin,
                          end - begin, error);
    }
    for (uint32_t i = 0; i < side->touched_count; i++) {
        side->counts[side->touched[i]] = 0;
        side->places[side->touched[i]] = 0;
    }
    side->touched_count = 0;
    side->met_count = 0;
    return status;
}

static enum tokmap_status token_add(struct trainer *t, const struct bpe_merge *merge, struct tokmap_error *error)
{
    struct train_vocabulary *v = t->vocabulary;
    const uint64_t left = t->lengths[merge->left], right = t->lengths[merge->right];
    if (left + right > ID_BITS)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET, "a token would be longer than 1 GiB");
    while (t->bytes_room - t->bytes_used < left + right) {
        const enum tokmap_status status = grow(t, (void **)&v->bytes, &t->bytes_room, 1, error);
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
    for (uint32_t i = 0; i < segment_count && !status; i++)
        status = segment_merge(t, segments[i], &merge, &undone, error);
    if (!status)
        status = side_settle(t, &t->left, &merge, undone, error);
    if (!status)
        status = side_settle(t, &t->right, &merge, undone, error);
    return status;
}

/* ---- the whole ---- */

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
        if (options->stop && options->stop(options->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        status = pair_merge(t, pair, error);
    }
    return status;
}

static enum tokmap_status side_make(struct trainer *t, struct side *side, struct tokmap_error *error)
{
    const uint64_t tokens = t->options->tokens;
    enum tokmap_status status = take(t, (void **)&side->counts, tokens, sizeof *side->counts, error);
    if (!status)
        status = take(t, (void **)&side->places, tokens, sizeof *side->places, error);
    if (!status)
        status = take(t, (void **)&side->touched, tokens, sizeof *side->touched, error);
    return status;
}

static enum tokmap_status trainer_make(struct trainer *t, struct tokmap_error *error)
{
    struct train_vocabulary *v = t->vocabulary;
    const uint64_t tokens = t->options->tokens;
    t->pair_bits = 17;
    t->bytes_room = 4096;
    enum tokmap_status status = take(t, (void **)&t->lengths, tokens, sizeof *t->lengths, error);
    if (!status)
        status = take(t, (void **)&t->offsets, tokens, sizeof *t->offsets, error);
    if (!status)
        status = take(t, (void **)&v->bytes, t->bytes_room, 1, error);
    if (!status)
        status = take(t, (void **)&v->merges, tokens - 256, sizeof *v->merges, error);
    if (!status)
        status = take(t, (void **)&t->pairs, (uint64_t)1 << t->pair_bits, sizeof *t->pairs, error);
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
        free(sides[i]->places);
        free(sides[i]->touched);
        free(sides[i]->met);
    }
    free(t->slots);
    free(t->segments);
    free(t->lengths);
    free(t->offsets);
    free(t->pairs);
    free(t->queue);
    train_budget_release(t->budget, t->taken);
}

enum tokmap_status train_merges(struct train_vocabulary *vocabulary, struct train_pieces *pieces,
                                struct train_budget *budget, const struct train_options *options,
                                struct tokmap_error *error)
{
    struct trainer t = {.options = options, .budget = budget, .vocabulary = vocabulary};
    struct train_totals totals;
    assert(options->tokens >= 256 && options->tokens <= TRAIN_TOKENS_MOST);
    memset(vocabulary, 0, sizeof *vocabulary);
    train_pieces_totals(pieces, &totals);
    enum tokmap_status status = trainer_make(&t, error);
    if (!status)
        status = symbols_make(&t, pieces, error);
    if (!status)
        status = pairs_begin(&t, error);
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
