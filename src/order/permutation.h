/* SPDX-License-Identifier: MIT */
/*
 * permutation.h - the keyed bijection on [0, n) from which every order of tokmap is made, and its keys.
 *
 * All functions are pure: they read only their arguments, so any thread may call them. struct tokmap_order (public) is
 * the state of one permutation. permutation.c holds the definition, which is frozen; ORDER.md explains it.
 */
#ifndef TOKMAP_ORDER_PERMUTATION_H
#define TOKMAP_ORDER_PERMUTATION_H

#include "tokmap/tokmap.h"

/* The tags of the uses of a key. The bytes of a tag are part of what is hashed. */
#define KEY_WINDOWS "windows" /* number: the epoch; name: the source */
#define KEY_SHIFT "shift"     /* number: the epoch; name: the source */
#define KEY_ROWS "rows"       /* number: the step; name: "" */
/* Returns the place of a document in the order of `tokmap pack --shuffle`. name: the 8 bytes of the input's number;
 * number: the position. */
#define KEY_DOCUMENT "document"

struct order_key {
    uint64_t low, high;
};

/* Returns the key of a use: a hash of the tag (at most 8 characters), the seed, the name with its length, and the
 * number. */
struct order_key order_key(const char *tag, uint64_t seed, const char *name, uint64_t name_bytes, uint64_t number);

/* Initializes *order as the permutation of [0, n) for the key. n: 1 .. 2^63. */
void permutation_init(struct tokmap_order *order, struct order_key key, uint64_t n);
/* Return the image of i and the preimage of i; i < n. tokmap_order_window() and tokmap_order_draw() are these functions
 * with a bounds check. */
uint64_t permutation_forward(const struct tokmap_order *order, uint64_t i);
uint64_t permutation_inverse(const struct tokmap_order *order, uint64_t i);

/* Do the same for many numbers: out[k] is the image, or the preimage, of in[k]. `out` may be `in`. Vectors take 8
 * numbers at once with AVX-512 and 4 with AVX2, so that one of many costs a fifth of one alone. */
void permutation_forward_many(const struct tokmap_order *order, const uint64_t *in, uint64_t count, uint64_t *out);
void permutation_inverse_many(const struct tokmap_order *order, const uint64_t *in, uint64_t count, uint64_t *out);

/* The kernels of these two functions, for tests. `state` is that of an order with n > 64. */
struct permutation_kernels {
    const char *name; /* "scalar", "avx2", "avx512" */
    void (*forward)(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out);
    void (*inverse)(const uint64_t *state, const uint64_t *in, uint64_t count, uint64_t *out);
};

/* Returns the variants that this processor can run, as far as TOKMAP_CPU allows them: number 0 is the fastest, and the
 * last one is plain C. Returns NULL for numbers past the last. The result is static. */
const struct permutation_kernels *permutation_variant(unsigned number);

/* Returns a number below `limit` that depends on the key: the high 64 bits of key.low * limit. */
uint64_t order_key_below(struct order_key key, uint64_t limit);

#endif
