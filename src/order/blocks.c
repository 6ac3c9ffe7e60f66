/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - the order of `order blocks W SPAN`. FROZEN: a change of the numbers reorders running jobs. ORDER.md holds
 * a second implementation in Python; tests/unit/order/test_blocks.c pins values that it computed.
 *
 * Method. The n windows are cut into B = ceil(n / W) blocks; the last block has fewer than W windows if W does not
 * divide n. permute(key("blocks"), B, slot) is the block in slot 0, 1, ... of the epoch. All windows in the order of
 * the slots are a list of n windows, which is cut after each SPAN slots. The m windows of span s change places within
 * the span: draw i of it shows the window in place permute(key("span", epoch * 2^32 + s), m, i) of the span.
 *
 * Only one block can be short, so the place of any slot in the list is a multiplication and, after the short block, a
 * subtraction. Example: n = 10, W = 4, SPAN = 2, so B = 3, and block 2 has 2 windows. If the order of the blocks is 2,
 * 0, 1, the list is 8 9 | 0 1 2 3 | 4 5 6 7. Span 0 has its first 6 windows and span 1 the other 4. Place 7 is after
 * the short block, so it is place 7 + 2 of slots of equal width: slot 9 / 4 = 2, window 9 mod 4 = 1 of block 1, which
 * is 5.
 *
 * With `order even`, span s is drawn in rounds. Round q shows one window of each of its blocks that has more than q, in
 * the order of the slots: of the block in slot k, with w windows, window permute(key("even", epoch * 2^32 + k), w, q).
 * Only the short block can be missing in a round, and then it is in all later ones. Example: the span of the slots of 2
 * and 4 windows has the rounds 0 1 | 0 1 | 1 | 1, as slots.
 */
#include "blocks.h"

#include <assert.h>

#include "common/bytes.h"
#include "permutation.h"

#define NO_SPAN UINT64_MAX

void blocks_init(struct blocks_order *order, uint64_t n, uint64_t width, uint64_t span, bool even, uint64_t seed,
                 const char *name, uint64_t name_bytes, uint64_t epoch)
{
    assert(n && n <= (uint64_t)1 << 63 && width && span);
    width = min64(width, n);
    const uint64_t blocks = div_ceil(n, width);
    *order = (struct blocks_order){
        .windows = n,
        .width = width,
        .blocks = blocks,
        .per_span = min64(span, blocks),
        .missing = blocks * width - n, /* blocks * width is at most n + width - 1 < 2^64 */
        .short_slot = blocks,
        .seed = seed,
        .epoch = epoch,
        .name_bytes = name_bytes,
        .name = name,
        .even = even,
        .span = NO_SPAN,
    };
    permutation_init(&order->block_order, order_key(KEY_BLOCKS, seed, name, name_bytes, epoch), blocks);
    if (order->missing)
        order->short_slot = permutation_inverse(&order->block_order, blocks - 1);
}

/* Returns the place of the first window of a slot in the list; slot: at most the number of blocks. */
static uint64_t slot_place(const struct blocks_order *order, uint64_t slot)
{
    return slot * order->width - (slot > order->short_slot ? order->missing : 0);
}

/* Returns the slot of a place, and in *in_slot the window's number in its block. */
static uint64_t place_slot(const struct blocks_order *order, uint64_t place, uint64_t *in_slot)
{
    /* The first place after the short block. Without a short block, it is past the end. */
    const uint64_t after = order->missing ? slot_place(order, order->short_slot + 1) : order->windows;
    const uint64_t even = place + (place >= after ? order->missing : 0);
    *in_slot = even % order->width;
    return even / order->width;
}

static void span_enter(struct blocks_order *order, uint64_t slot)
{
    const uint64_t span = slot / order->per_span;
    if (span == order->span)
        return;
    const uint64_t first_slot = span * order->per_span;
    order->span = span;
    order->span_first = slot_place(order, first_slot);
    order->span_slots = min64(order->per_span, order->blocks - first_slot);
    order->span_windows = slot_place(order, first_slot + order->span_slots) - order->span_first;
    if (!order->even)
        permutation_init(&order->span_order,
                         order_key(KEY_SPAN, order->seed, order->name, order->name_bytes, (order->epoch << 32) + span),
                         order->span_windows);
}

/* Returns the permutation of the windows of the block in a slot. */
static struct tokmap_order slot_order(const struct blocks_order *order, uint64_t slot)
{
    struct tokmap_order made;
    permutation_init(&made,
                     order_key(KEY_EVEN, order->seed, order->name, order->name_bytes, (order->epoch << 32) + slot),
                     order->width - (slot == order->short_slot ? order->missing : 0));
    return made;
}

/* Returns how many rounds of the span at hand have all of its slots, and in *without the place in the span of the slot
 * that the others lack, or UINT64_MAX. */
static uint64_t whole_rounds(const struct blocks_order *order, uint64_t *without)
{
    const uint64_t place = order->short_slot - order->span * order->per_span; /* may wrap */
    *without = order->missing && place < order->span_slots ? place : UINT64_MAX;
    return order->width - (*without == UINT64_MAX ? 0 : order->missing);
}

/* Compute the window of draw i of the span at hand, and the inverse for a window of the block in a slot. */
static uint64_t even_forward(const struct blocks_order *order, uint64_t i)
{
    uint64_t without, round, k;
    const uint64_t slots = order->span_slots, whole = whole_rounds(order, &without);
    if (without == UINT64_MAX || i < whole * slots) {
        round = i / slots;
        k = i % slots;
    } else {
        i -= whole * slots;
        round = whole + i / (slots - 1);
        k = i % (slots - 1);
        k += k >= without;
    }
    const uint64_t slot = order->span * order->per_span + k;
    const struct tokmap_order windows = slot_order(order, slot);
    return permutation_forward(&order->block_order, slot) * order->width + permutation_forward(&windows, round);
}

static uint64_t even_inverse(const struct blocks_order *order, uint64_t slot, uint64_t in_slot)
{
    uint64_t without;
    const uint64_t slots = order->span_slots, whole = whole_rounds(order, &without);
    const uint64_t k = slot - order->span * order->per_span;
    const struct tokmap_order windows = slot_order(order, slot);
    const uint64_t round = permutation_inverse(&windows, in_slot);
    return round < whole ? round * slots + k : whole * slots + (round - whole) * (slots - 1) + k - (k > without);
}

uint64_t blocks_forward(struct blocks_order *order, uint64_t i)
{
    uint64_t in_slot;
    assert(i < order->windows);
    span_enter(order, place_slot(order, i, &in_slot));
    if (order->even)
        return even_forward(order, i - order->span_first);
    const uint64_t place = order->span_first + permutation_forward(&order->span_order, i - order->span_first);
    const uint64_t slot = place_slot(order, place, &in_slot);
    return permutation_forward(&order->block_order, slot) * order->width + in_slot;
}

uint64_t blocks_slot(const struct blocks_order *order, uint64_t window, uint64_t *at)
{
    *at = window % order->width;
    return permutation_inverse(&order->block_order, window / order->width);
}

uint64_t blocks_inverse(struct blocks_order *order, uint64_t window)
{
    assert(window < order->windows);
    const uint64_t slot = permutation_inverse(&order->block_order, window / order->width);
    span_enter(order, slot);
    if (order->even)
        return order->span_first + even_inverse(order, slot, window % order->width);
    const uint64_t place = slot_place(order, slot) + window % order->width;
    return order->span_first + permutation_inverse(&order->span_order, place - order->span_first);
}
