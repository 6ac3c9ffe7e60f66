/* SPDX-License-Identifier: MIT */
/*
 * permutation_lanes.h - permutation_forward_many() and its inverse with vectors of any width. A file that includes this
 * header has defined PERMUTATION_KERNELS, the name of the table, PERMUTATION_NAME, the name in it, and what differs:
 *
 *     key_of(key)        what mixed() takes of a key of a round
 *     mixed(x, key)      the round function; the lanes of x are below 2^32
 *     unwrapped(y, x)    y where its highest bit is 0, else x; y is below x then
 *
 * A pass has GROUP vectors, 32 numbers, at a time. Each round waits for the one before; with fewer vectors, the
 * processor is idle for more than half of the time.
 *
 * high(f, a), of which no processor has an instruction, with the halves of f = f1 * 2^32 + f0:
 *      floor((f1 * a + floor(f0 * a / 2^32)) / 2^32)
 * The sum is below 2^64, and each product is one of 32 bits by 32 bits. If a = 2^32, which is so only for the largest
 * n, the products are 0, because they take the low bits of a, and the result is f1.
 *
 * A number that comes out as n or more walks; plain C finishes it. At most 11% do (see permutation.c). Comparisons have
 * a sign: the numbers compared are below 2^63, because a * 2^h is at most 2^63.
 */
#ifndef TOKMAP_ORDER_PERMUTATION_LANES_H
#define TOKMAP_ORDER_PERMUTATION_LANES_H

#include "common/lanes.h"
#include "permutation_internal.h"

extern const struct permutation_kernels PERMUTATION_KERNELS;

enum { LANES = LANES_BYTES / 8, GROUP = 32 / LANES };

struct round_constants {
    lanes64 most, a, whole, mask, flip, keys[ROUNDS]; /* most: n - 1 */
    uint64_t h, rest;                                 /* rest: 64 - h */
};

LANES_INLINE void constants_set(struct round_constants *with, const uint64_t *state)
{
    with->most = lanes_all(state[STATE_N] - 1);
    with->a = lanes_all(state[STATE_A]);
    with->whole = lanes_all(state[STATE_A] > UINT32_MAX ? UINT64_MAX : 0);
    with->mask = lanes_all(((uint64_t)1 << state[STATE_H]) - 1);
    with->flip = lanes_all(state[STATE_FLIP]);
    with->h = state[STATE_H];
    with->rest = 64 - state[STATE_H];
    for (int round = 0; round < ROUNDS; round++)
        with->keys[round] = lanes_all(key_of(state[STATE_KEYS + round]));
}

/* high(f, a) */
LANES_INLINE lanes64 scaled(const struct round_constants *with, lanes64 f)
{
    const lanes64 sum = lanes_multiply_halves(f >> 32, with->a) + (lanes_multiply_halves(f, with->a) >> 32);
    return sum >> 32 | (f >> 32 & with->whole);
}

LANES_INLINE lanes64 flipped(const struct round_constants *with, lanes64 x)
{
    return x ^ (with->flip & (lanes64)(x < 2));
}

/* Does one pass through the rounds for `vectors` vectors, a constant where it is called. The numbers that walk come
 * back in *out, and their bits in the result. */
LANES_INLINE uint32_t rounds_pass(const struct round_constants *with, const uint64_t *in, uint64_t *out, int vectors,
                                  bool inverse)
{
    lanes64 l[GROUP], r[GROUP];
    uint32_t walking = 0;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        lanes64 x = lanes_load(in + v * LANES);
        if (inverse)
            x = flipped(with, x);
        l[v] = x >> with->h;
        r[v] = x & with->mask;
    }
    for (int pair = 0; pair < ROUNDS; pair += 2) {
        const int even = inverse ? ROUNDS - 2 - pair : pair;
        if (inverse) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                r[v] ^= mixed(l[v], with->keys[even + 1]) >> with->rest;
        }
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            const lanes64 amount = scaled(with, mixed(r[v], with->keys[even]));
            const lanes64 moved = inverse ? l[v] - amount : l[v] + amount;
            l[v] = inverse ? unwrapped(moved, moved + with->a) : unwrapped(moved - with->a, moved);
        }
        if (!inverse) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                r[v] ^= mixed(l[v], with->keys[even + 1]) >> with->rest;
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        lanes64 x = l[v] << with->h | r[v];
        walking |= lanes_greater(x, with->most) << (v * LANES);
        if (!inverse)
            x = flipped(with, x);
        lanes_store(out + v * LANES, x);
    }
    return walking;
}

LANES_INLINE void permute(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out, bool inverse)
{
    struct round_constants with;
    uint64_t i = 0;
    constants_set(&with, state);
    while (count - i >= LANES) {
        const int vectors = count - i >= GROUP * LANES ? GROUP : 1;
        uint32_t walking = vectors == GROUP ? rounds_pass(&with, in + i, out + i, GROUP, inverse)
                                            : rounds_pass(&with, in + i, out + i, 1, inverse);
        for (; walking; walking &= walking - 1) {
            uint64_t *walker = out + i + __builtin_ctz(walking);
            *walker = inverse ? walk_inverse(state, *walker) : walk_forward(state, *walker);
        }
        i += (uint64_t)vectors * LANES;
    }
    for (; i < count; i++)
        out[i] = inverse ? walk_inverse(state, in[i] ^ (state[STATE_FLIP] & (in[i] < 2))) : walk_forward(state, in[i]);
}

static void forward(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out)
{
    permute(state, in, count, out, false);
}

static void inverse(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out)
{
    permute(state, in, count, out, true);
}

const struct permutation_kernels PERMUTATION_KERNELS = {PERMUTATION_NAME, forward, inverse};

#endif
