/* SPDX-License-Identifier: MIT */
/* token_find.h - finds the places of one id among tokens that are in the cache, for the documents of files that only
 * mark them by an EOD or BOS. Any thread. */
#ifndef TOKMAP_DATASET_TOKEN_FIND_H
#define TOKMAP_DATASET_TOKEN_FIND_H

#include <stdint.h>

/* Returns the first place in [from, count) whose token is `id`, or `count`. tokens: little-endian, of `width` bytes, at
 * any address. */
uint64_t token_find(const uint8_t *tokens, uint32_t width, uint64_t from, uint64_t count, uint64_t id);

#if defined(__x86_64__)
/* Does the same on processors with AVX2 (CPU_AVX2); the id fits in the width. */
uint64_t token_find_avx2(const uint8_t *tokens, uint32_t width, uint64_t from, uint64_t count, uint32_t id);
#endif

#endif
