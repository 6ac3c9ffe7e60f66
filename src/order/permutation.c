/* SPDX-License-Identifier: MIT */
/*
 * permutation.c - the definition of every order. FROZEN: a change here reorders running jobs. ORDER.md explains it,
 * holds a second implementation in Python, and states its statistical quality. tests/unit/order/test_order_golden.c
 * pins its values.
 *
 * All integers are unsigned, have 64 bits, and wrap; high(a, b) is floor(a * b / 2^64).
 *
 * Key. (low, high) = the two words of XXH3-128 (seed 0) over these bytes, integers little-endian:
 *      8  the tag ("windows", "shift", "rows", ...), padded with zero bytes
 *      8  the run's seed
 *      8  length of the source's name in bytes
 *      *  the name; or, if it is longer than 224 bytes, the 16 bytes of its own XXH3-128 in canonical (big-endian) form
 *      8  the number: the epoch, or for "rows" the step
 *    The shift of an epoch e >= 1 is high(low, seq_len) of its "shift" key; of epoch 0 it is 0.
 *
 * Stream. word(i) of a key, i = 0, 1, ..:
 *      z = low + (i + 1) * 0x9e3779b97f4a7c15
 *      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 + high
 *      z = (z ^ z >> 27) * 0x94d049bb133111eb
 *      word(i) = z ^ z >> 31
 *
 * n <= 64: a Fisher-Yates shuffle, in which every permutation is equally likely. table = 0 .. n - 1; for j = n - 1 down
 *    to 1, exchange table[j] with table[high(word(n - 1 - j), j + 1)]. forward(i) = table[i].
 *
 * n > 64: eight Feistel rounds over pairs (l, r), l < a, r < 2^h, with h = floor(ceil(log2 n) / 2), a = ceil(n / 2^h):
 *      l = x >> h, r = x mod 2^h
 *      round 0, 2, 4, 6:  l = (l + high(f(r, word(round)), a)) mod a
 *      round 1, 3, 5, 7:  r = r xor (f(l, word(round)) >> (64 - h))
 *      x = l << h | r
 *    with f(x, key): t = (x + key) * 0xbf58476d1ce4e5b9; f = (t ^ t >> 32) * 0x94d049bb133111eb.
 *    While the result is n or more, it goes through the rounds again (cycle walking). The domain a * 2^h exceeds n by
 *    less than 2^h, about sqrt(n): at most 11% of the draws walk (n = 129), 3% near n = 1,000, and a negligible share
 *    of larger n. If both halves had whole bits, every second draw would walk at n = 2^k + 1.
 *    Last, if word(8) is odd, 0 and 1 are exchanged. For some n (a odd and a * 2^h = n, for example 72) the rounds
 *    alone produce only even permutations, a bias that counting inversions over a few hundred seeds would show.
 *
 * Example. n = 100: h = 3, a = 13, so the domain has 104 numbers, 4 more than n. x = 77 is l = 9, r = 5. Eight rounds
 *    change l modulo 13 and r by xor in turn. If the result is, say, 101 (l = 12, r = 5), the rounds run once more from
 *    there. Because each round can be undone, walking from two different x never ends at the same number, and the
 *    inverse walks back through the same numbers.
 */
#include "permutation.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "common/hash.h"
#include "permutation_internal.h"

#define NAME_INLINE 224 /* longer names enter the key as their hash */

static uint64_t key_word(struct order_key key, uint64_t i)
{
    uint64_t z = key.low + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u + key.high;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

struct order_key order_key(const char *tag, uint64_t seed, const char *name, uint64_t name_bytes, uint64_t number)
{
    uint8_t message[8 + 8 + 8 + NAME_INLINE + 8] = {0};
    size_t used = 24;
    for (size_t i = 0; i < 8 && tag[i]; i++)
        message[i] = (uint8_t)tag[i];
    store64(message + 8, seed);
    store64(message + 16, name_bytes);
    if (name_bytes > NAME_INLINE) {
        hash128_store(hash128(name, name_bytes), message + used);
        used += 16;
    } else if (name_bytes) {
        memcpy(message + used, name, name_bytes);
        used += name_bytes;
    }
    store64(message + used, number);
    struct hash128 hash = hash128(message, used + 8);
    return (struct order_key){hash.low, hash.high};
}

uint64_t order_key_below(struct order_key key, uint64_t limit)
{
    return high(key.low, limit);
}

void permutation_init(struct tokmap_order *order, struct order_key key, uint64_t n)
{
    assert(n && n <= (uint64_t)1 << 63);
    memset(order, 0, sizeof *order);
    order->state[STATE_N] = n;
    if (n <= TABLE_WINDOWS) {
        uint8_t *table = (uint8_t *)&order->state[STATE_TABLE];
        for (uint64_t i = 0; i < n; i++)
            table[i] = (uint8_t)i;
        for (uint64_t j = n - 1; j >= 1 && j < n; j--) {
            uint64_t k = high(key_word(key, n - 1 - j), j + 1);
            uint8_t moved = table[j];
            table[j] = table[k];
            table[k] = moved;
        }
        return;
    }
    uint64_t bits = 64 - (uint64_t)__builtin_clzll(n - 1);
    uint64_t h = bits / 2;
    order->state[STATE_H] = h;
    order->state[STATE_A] = div_ceil(n, (uint64_t)1 << h);
    for (uint64_t i = 0; i < ROUNDS; i++)
        order->state[STATE_KEYS + i] = key_word(key, i);
    order->state[STATE_FLIP] = key_word(key, ROUNDS) & 1;
}

uint64_t permutation_forward(const struct tokmap_order *order, uint64_t i)
{
    const uint64_t *state = order->state;
    if (state[STATE_N] <= TABLE_WINDOWS)
        return ((const uint8_t *)&state[STATE_TABLE])[i];
    return walk_forward(state, i);
}

uint64_t permutation_inverse(const struct tokmap_order *order, uint64_t i)
{
    const uint64_t *state = order->state;
    uint64_t n = state[STATE_N];
    assert(i < n);
    if (n <= TABLE_WINDOWS) {
        const uint8_t *table = (const uint8_t *)&state[STATE_TABLE];
        const uint8_t *at = memchr(table, (int)i, n);
        return at ? (uint64_t)(at - table) : UINT64_MAX;
    }
    return walk_inverse(state, i ^ (state[STATE_FLIP] & (i < 2)));
}

/* ---- many at once ---- */

static void scalar_forward(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = walk_forward(state, in[i]);
}

static void scalar_inverse(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = walk_inverse(state, in[i] ^ (state[STATE_FLIP] & (in[i] < 2)));
}

static const struct permutation_kernels scalar = {"scalar", scalar_forward, scalar_inverse};

extern const struct permutation_kernels permutation_avx2, permutation_avx512;

const struct permutation_kernels *permutation_variant(unsigned number)
{
    return CPU_KERNELS(number, &permutation_avx512, &permutation_avx2, &scalar);
}

void permutation_forward_many(const struct tokmap_order *order, const uint64_t *in, uint64_t count, uint64_t *out)
{
    if (order->state[STATE_N] > TABLE_WINDOWS)
        permutation_variant(0)->forward(order->state, in, count, out);
    else
        for (uint64_t i = 0; i < count; i++)
            out[i] = permutation_forward(order, in[i]);
}

void permutation_inverse_many(const struct tokmap_order *order, const uint64_t *in, uint64_t count, uint64_t *out)
{
    if (order->state[STATE_N] > TABLE_WINDOWS) {
        permutation_variant(0)->inverse(order->state, in, count, out);
        return;
    }
    uint8_t inverse[TABLE_WINDOWS];
    for (uint64_t i = 0; i < order->state[STATE_N]; i++)
        inverse[permutation_forward(order, i)] = (uint8_t)i;
    for (uint64_t i = 0; i < count; i++)
        out[i] = inverse[in[i]];
}

/* ---- public ---- */

enum tokmap_status tokmap_order_init(struct tokmap_order *order, uint64_t windows, uint64_t seed, const char *source,
                                     uint64_t epoch)
{
    if (!order || !source || windows == 0 || windows > (uint64_t)1 << 63)
        return TOKMAP_ERROR_ARGUMENT;
    permutation_init(order, order_key(KEY_WINDOWS, seed, source, strlen(source), epoch), windows);
    return TOKMAP_OK;
}

uint64_t tokmap_order_window(const struct tokmap_order *order, uint64_t draw)
{
    return order && draw < order->state[STATE_N] ? permutation_forward(order, draw) : UINT64_MAX;
}

uint64_t tokmap_order_draw(const struct tokmap_order *order, uint64_t window)
{
    return order && window < order->state[STATE_N] ? permutation_inverse(order, window) : UINT64_MAX;
}
