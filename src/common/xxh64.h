/*
 * xxh64.h - XXH64, the older hash of xxHash. datatrove hashes the n-grams of words with it, and `pack --dedup minhash`
 * reproduces its results. All else uses XXH3 (hash.h).
 */
#ifndef TOKMAP_COMMON_XXH64_H
#define TOKMAP_COMMON_XXH64_H

#include <stddef.h>
#include <stdint.h>

/* The hash with seed 0. Any thread. */
uint64_t xxh64(const void *bytes, size_t count);

#endif
