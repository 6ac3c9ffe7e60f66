/* SPDX-License-Identifier: MIT */
/* shared_tokens.h - how many tokens two ranges of a dataset share. */
#ifndef TOKMAP_COMMANDS_SHOW_SHARED_TOKENS_H
#define TOKMAP_COMMANDS_SHOW_SHARED_TOKENS_H

#include <stdint.h>

/* Returns how many tokens of [first, first + count) are among the `tokens` tokens from `start` on. These continue at
 * the dataset's first token after its last one; all: the dataset's tokens. */
uint64_t tokens_shared(uint64_t first, uint64_t count, uint64_t start, uint64_t tokens, uint64_t all);

#endif
