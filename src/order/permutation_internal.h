/* SPDX-License-Identifier: MIT */
/*
 * permutation_internal.h - the state of a permutation, and its rounds in plain C. permutation.c defines them; the
 * variants of permutation_forward_many() for vectors finish with them the numbers that walk.
 */
#ifndef TOKMAP_ORDER_PERMUTATION_INTERNAL_H
#define TOKMAP_ORDER_PERMUTATION_INTERNAL_H

#include "permutation.h"

enum {
    TABLE_WINDOWS = 64, /* up to this n, the permutation is a table */
    ROUNDS = 8,
};

/* The words of tokmap_order.state[]. The bytes of the table begin at STATE_TABLE. */
enum { STATE_N, STATE_TABLE, STATE_A = STATE_TABLE, STATE_H, STATE_FLIP, STATE_KEYS, STATE_END = STATE_KEYS + ROUNDS };
_Static_assert(STATE_END == sizeof(struct tokmap_order) / 8, "the state is full");
_Static_assert(TABLE_WINDOWS <= sizeof(struct tokmap_order) - 8 * STATE_TABLE, "the table fits");

/* The factors of the round function. */
#define ROUND_FIRST 0xbf58476d1ce4e5b9u
#define ROUND_SECOND 0x94d049bb133111ebu

static inline uint64_t high(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* x is below 2^32. The high bits of the result are the well-mixed ones, so the callers use those. */
static inline uint64_t round_function(uint64_t x, uint64_t key)
{
    uint64_t t = (x + key) * ROUND_FIRST;
    return (t ^ t >> 32) * ROUND_SECOND;
}

/* Returns the image of x; n > TABLE_WINDOWS. x may also be a number of the domain that is not below n: one that
 * walks. */
static inline uint64_t walk_forward(const uint64_t *state, uint64_t x)
{
    uint64_t n = state[STATE_N], a = state[STATE_A], h = state[STATE_H], mask = ((uint64_t)1 << h) - 1;
    do {
        uint64_t l = x >> h, r = x & mask;
        for (int round = 0; round < ROUNDS; round += 2) {
            l += high(round_function(r, state[STATE_KEYS + round]), a);
            l -= l >= a ? a : 0;
            r ^= round_function(l, state[STATE_KEYS + round + 1]) >> (64 - h);
        }
        x = l << h | r;
    } while (__builtin_expect(x >= n, 0));
    return x ^ (state[STATE_FLIP] & (x < 2));
}

/* Returns the preimage of x, whose exchange of 0 and 1 has been undone. n and x are as above. */
static inline uint64_t walk_inverse(const uint64_t *state, uint64_t x)
{
    uint64_t n = state[STATE_N], a = state[STATE_A], h = state[STATE_H], mask = ((uint64_t)1 << h) - 1;
    do {
        uint64_t l = x >> h, r = x & mask;
        for (int round = ROUNDS - 2; round >= 0; round -= 2) {
            r ^= round_function(l, state[STATE_KEYS + round + 1]) >> (64 - h);
            uint64_t less = high(round_function(r, state[STATE_KEYS + round]), a);
            l += l < less ? a - less : -less;
        }
        x = l << h | r;
    } while (__builtin_expect(x >= n, 0));
    return x;
}

#endif
