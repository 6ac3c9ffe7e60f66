/* SPDX-License-Identifier: MIT */
/* cache_model.h - which uses of blocks a node's cache serves, and which it must fetch: cache_model.c has the method. */
#ifndef TOKMAP_COMMANDS_AUDIT_CACHE_MODEL_H
#define TOKMAP_COMMANDS_AUDIT_CACHE_MODEL_H

#include "tokmap/tokmap.h"

#define CACHE_FETCHED ((uint32_t)1 << 31) /* in a use: the block was not in the cache */

/* Sets CACHE_FETCHED in each use whose block must be fetched.
 *   uses      numbers of blocks in the order in which the node uses them, `count` of them, fewer than 2^31
 *   blocks    their numbers are below this, at most 2^31
 *   capacity  blocks that the cache holds, at least 1
 *   horizon   uses after the one at hand that are known
 * Memory: 8 bytes for each use, 9 for each block, and 24 for each block that the cache holds. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status cache_model_run(uint32_t *uses, uint64_t count, uint64_t blocks, uint64_t capacity, uint64_t horizon,
                                   struct tokmap_error *error);

#endif
