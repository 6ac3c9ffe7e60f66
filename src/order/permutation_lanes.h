/* SPDX-License-Identifier: MIT */
/*
 * permutation_lanes.h - how permutation_forward_many() and its inverse go through their numbers with vectors of any
 * width. A file that includes it has defined LANES (numbers in a vector), GROUP (vectors at a time), struct
 * round_constants, constants_set(), and pass(). This defines forward() and inverse().
 */
#ifndef TOKMAP_ORDER_PERMUTATION_LANES_H
#define TOKMAP_ORDER_PERMUTATION_LANES_H

static inline __attribute__((always_inline)) void permute(const uint64_t *state, const uint64_t *in, uint64_t count,
                                                          uint64_t *out, bool inverse)
{
    struct round_constants with;
    uint64_t i = 0;
    constants_set(&with, state);
    while (count - i >= LANES) {
        const int vectors = count - i >= GROUP * LANES ? GROUP : 1;
        uint32_t walking =
            vectors == GROUP ? pass(&with, in + i, out + i, GROUP, inverse) : pass(&with, in + i, out + i, 1, inverse);
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

#endif
