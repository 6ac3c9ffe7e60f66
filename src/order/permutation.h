/*
 * permutation.h - the keyed bijection on [0, n) that every order of tokmap comes from, and its keys. Pure functions.
 *
 * struct tokmap_order (public) is the state of one. permutation.c holds the definition, which is frozen.
 */
#ifndef TOKMAP_ORDER_PERMUTATION_H
#define TOKMAP_ORDER_PERMUTATION_H

#include "tokmap/tokmap.h"

/* Uses of a key; the tag is hashed as these bytes. */
#define KEY_WINDOWS "windows" /* number: the epoch; name: the source */
#define KEY_SHIFT "shift"     /* number: the epoch; name: the source */
#define KEY_ROWS "rows"       /* number: the step; name: "" */

struct order_key {
    uint64_t low, high;
};

/* Hash of (tag, seed, name with its length, number). */
struct order_key order_key(const char *tag, uint64_t seed, const char *name, uint64_t name_bytes, uint64_t number);

/* n: 1 .. 2^63. */
void permutation_init(struct tokmap_order *order, struct order_key key, uint64_t n);
/* i < n. tokmap_order_window / tokmap_order_draw are these with a bounds check. */
uint64_t permutation_forward(const struct tokmap_order *order, uint64_t i);
uint64_t permutation_inverse(const struct tokmap_order *order, uint64_t i);

/* A number below `limit` made from the key: high 64 bits of key.low * limit. */
uint64_t order_key_below(struct order_key key, uint64_t limit);

#endif
