/* SPDX-License-Identifier: MIT */
/*
 * mixture.c - which leaf a draw belongs to. FROZEN: a change of the numbers reorders running jobs. ORDER.md holds a
 * second implementation in Python; tests/unit/order/test_mixture.c pins values that it computed.
 *
 * Method. The leaves are those of a balanced binary tree: of a node's m leaves, the first ceil(m / 2) are below its
 * left child. A node whose leaves weigh W, with w of it on the left, sends floor(p * w / W) of its first p draws left.
 * So its draw p goes left if floor((p + 1) * w / W) > floor(p * w / W), and it is then draw floor(p * w / W) of the
 * left child; otherwise it is draw p - floor(p * w / W) of the right child. Example, weights 5 : 3 : 2. The root has
 * {5, 3} on the left, w / W = 8 / 10. floor(8 p / 10) is 0, 0, 1, 2, 3, 4, 4 for p = 0 .. 6, so of the draws 0 to 5,
 * draws 0 and 5 go right. Draw 4 is draw 3 of the left child, which has w / W = 5 / 8: floor(15 / 8) = 1 and floor(20 /
 * 8) = 2, so it is draw 1 of the first leaf.
 *
 * Inverse. The left child's draw k is draw ceil((k + 1) * W / w) - 1 of the node, and the right child's draw k is draw
 * floor(k * W / (W - w)). It climbs from the leaf to the root.
 *
 * Why a tree? A table of the schedule would be as long as the run, and a queue of deadlines has to be advanced through
 * all draws before the one that is asked for. Random choices by weight can be computed for any draw, but their counts
 * stray from the shares by the square root of the number of draws and have no inverse. In the tree, each of the
 * ceil(log2 m) levels adds an error of less than one draw.
 *
 * Division. p * w / W needs a 128-bit product and a division of 20 to 90 cycles on each level, each waiting for the one
 * above. Instead, each node stores A = ceil(2^128 * w / W), and floor(p * w / W) = floor(p * A / 2^128), exactly:
 * p * w / W is at least 1 / W > 2^-63 below the next integer, and p * A / 2^128 exceeds it by less than p * 2^-128 <
 * 2^-64. The fraction, p * A modulo 2^128, decides the side: the draw goes left if adding A carries. The quotients W /
 * w of the inverse can be large, so they are stored as floating-point numbers with a mantissa of 128 bits (struct
 * growth). A mantissa is off by at most 1 of at least 2^127, so a result below 2^63 is off by less than 2^-64. That is
 * less than the distance of a fraction with a denominator below 2^63 from the next integer.
 */
#include "mixture.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"

typedef unsigned __int128 wide;

enum { DEPTH_MOST = 64 };

/* 2^128 * w / W, rounded up. */
struct share {
    uint64_t low, high;
};

/* The quotient q = W / w >= 1, as (high * 2^64 + low) / 2^(64 + shift), with shift = 0 .. 63 and the top bit of `high`
 * set (or, where q is a power of two, rounded down from there). For the right child, it is rounded up. For the left
 * child, it is always below q, so the floor of a product is ceil() - 1 of the exact product. */
struct growth {
    uint64_t low, high, shift;
};

/* Nodes are stored in preorder: the left child of node i is i + 1, and with l leaves below it, the right child is
 * i + l. */
struct mixture {
    uint64_t leaves;
    struct growth *growths; /* of node i: the left child's is [2 * i], the right child's is [2 * i + 1] */
    struct share shares[];
};

/* ---- making ---- */

static struct share share_of(uint64_t part, uint64_t whole)
{
    const wide first = (wide)part << 64;
    const wide second = first % whole << 64;
    const wide share = (first / whole << 64 | (uint64_t)(second / whole)) + (second % whole != 0);
    return (struct share){(uint64_t)share, (uint64_t)(share >> 64)};
}

static struct growth growth_of(uint64_t part, uint64_t whole, bool left)
{
    /* whole / part has the digits integer, digit1, digit2 in base 2^64, and more if `more`. */
    const uint64_t integer = whole / part;
    const wide first = (wide)(whole % part) << 64;
    const wide second = first % part << 64;
    const uint64_t digit1 = (uint64_t)(first / part), digit2 = (uint64_t)(second / part);
    const unsigned shift = (unsigned)__builtin_clzll(integer);
    wide mantissa = ((wide)integer << 64 | digit1) << shift;
    bool more = second % part != 0;
    if (shift) {
        mantissa |= digit2 >> (64 - shift);
        more = more || digit2 << shift;
    } else {
        more = more || digit2;
    }
    /* Neither can wrap. 2^128 - 1 with more digits would be a fraction too close to a power of two. */
    if (left)
        mantissa -= !more;
    else
        mantissa += more;
    return (struct growth){(uint64_t)mantissa, (uint64_t)(mantissa >> 64), shift};
}

/* Fills the nodes of `count` leaves from node number `node` on. Returns the sum of the leaves' weights. The recursion
 * is as deep as the tree. */
static uint64_t nodes_fill(struct mixture *mixture, uint64_t node, const uint64_t *weights, uint64_t count)
{
    if (count == 1)
        return weights[0];
    const uint64_t on_left = count - count / 2;
    const uint64_t left = nodes_fill(mixture, node + 1, weights, on_left);
    const uint64_t right = nodes_fill(mixture, node + on_left, weights + on_left, count - on_left);
    mixture->shares[node] = share_of(left, left + right);
    mixture->growths[2 * node] = growth_of(left, left + right, true);
    mixture->growths[2 * node + 1] = growth_of(right, left + right, false);
    return left + right;
}

static enum tokmap_status weights_check(const uint64_t *weights, uint64_t count, struct tokmap_error *error)
{
    uint64_t sum = 0;
    if (count == 0)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET, "the mixture has no source; add one");
    for (uint64_t i = 0; i < count; i++) {
        if (weights[i] == 0)
            return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                             "the weight of source %" PRIu64 " of the mixture is 0; leave the source out", i);
        if (add_overflows(sum, weights[i], &sum) || sum >= (uint64_t)1 << 63)
            return error_set(
                error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                "the weights of the mixture add up to 2^63 or more; use smaller weights in the same ratio");
    }
    return TOKMAP_OK;
}

enum tokmap_status mixture_new(struct mixture **mixture, const uint64_t *weights, uint64_t count,
                               struct tokmap_error *error)
{
    *mixture = NULL;
    const enum tokmap_status status = weights_check(weights, count, error);
    if (status)
        return status;
    uint64_t bytes;
    if (mul_overflows(count - 1, sizeof(struct share) + 2 * sizeof(struct growth), &bytes) ||
        add_overflows(bytes, sizeof(struct mixture), &bytes) || bytes > SIZE_MAX)
        return error_set_memory(error, "the mixture", UINT64_MAX);
    struct mixture *made = malloc((size_t)bytes);
    if (!made)
        return error_set_memory(error, "the mixture", bytes);
    made->leaves = count;
    made->growths = (struct growth *)(made->shares + (count - 1));
    (void)nodes_fill(made, 0, weights, count);
    *mixture = made;
    return TOKMAP_OK;
}

void mixture_free(struct mixture *mixture)
{
    free(mixture);
}

uint64_t mixture_leaves(const struct mixture *mixture)
{
    return mixture->leaves;
}

/* ---- draws ---- */

/* Returns how many of a node's first p draws go left; *fraction receives the remainder, in units of 2^-128. */
static inline uint64_t sent_left(struct share share, uint64_t p, wide *fraction)
{
    const wide low = (wide)p * share.low;
    const wide high = (wide)p * share.high + (uint64_t)(low >> 64);
    *fraction = high << 64 | (uint64_t)low;
    return (uint64_t)(high >> 64);
}

uint64_t mixture_draw(const struct mixture *mixture, uint64_t p, uint64_t *k)
{
    assert(p < MIXTURE_DRAWS);
    uint64_t node = 0, leaf = 0;
    /* The side of a draw cannot be predicted, so the loop has no branch for it. */
    for (uint64_t count = mixture->leaves; count > 1;) {
        const struct share share = mixture->shares[node];
        const uint64_t on_left = count - count / 2;
        wide fraction;
        const uint64_t left = sent_left(share, p, &fraction);
        const wide whole = (wide)share.high << 64 | share.low;
        const uint64_t goes_right = (uint64_t)(fraction + whole < whole) - 1; /* 0, or all bits */
        p = left + ((p - left - left) & goes_right);
        node += 1 + ((on_left - 1) & goes_right);
        leaf += on_left & goes_right;
        count = on_left - ((count & 1) & goes_right);
    }
    *k = p;
    return leaf;
}

uint64_t mixture_count(const struct mixture *mixture, uint64_t leaf, uint64_t draws)
{
    assert(leaf < mixture->leaves && draws <= MIXTURE_DRAWS);
    uint64_t node = 0;
    for (uint64_t count = mixture->leaves; count > 1;) {
        const uint64_t on_left = count - count / 2;
        wide fraction;
        const uint64_t left = sent_left(mixture->shares[node], draws, &fraction);
        if (leaf < on_left) {
            draws = left;
            node += 1;
            count = on_left;
        } else {
            draws -= left;
            leaf -= on_left;
            node += on_left;
            count -= on_left;
        }
    }
    return draws;
}

uint64_t mixture_draw_of(const struct mixture *mixture, uint64_t leaf, uint64_t k)
{
    uint64_t
        path[DEPTH_MOST]; /* the growths between the root and the leaf: 2 * node, + 1 if the leaf is on the right */
    unsigned depth = 0;
    uint64_t node = 0;
    assert(leaf < mixture->leaves);
    for (uint64_t count = mixture->leaves; count > 1;) {
        const uint64_t on_left = count - count / 2;
        const uint64_t right = leaf >= on_left, goes_right = -right;
        path[depth++] = 2 * node + right;
        leaf -= on_left & goes_right;
        node += 1 + ((on_left - 1) & goes_right);
        count = on_left - ((count & 1) & goes_right);
    }
    if (k >= MIXTURE_DRAWS)
        return MIXTURE_NONE;
    while (depth) {
        const uint64_t at = path[--depth];
        const struct growth *growth = &mixture->growths[at];
        const uint64_t factor = k + !(at & 1);
        const wide low = (wide)factor * growth->low;
        const wide high = ((wide)factor * growth->high + (uint64_t)(low >> 64)) >> growth->shift;
        if (high >= MIXTURE_DRAWS)
            return MIXTURE_NONE;
        k = (uint64_t)high;
    }
    return k;
}
