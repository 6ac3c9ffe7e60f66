/* SPDX-License-Identifier: MIT */
/* cache_types.h - words of the room that its users need, too. */
#ifndef TOKMAP_CACHE_CACHE_TYPES_H
#define TOKMAP_CACHE_CACHE_TYPES_H

#include <stdint.h>

enum cache_part { CACHE_TOKENS, CACHE_MASK };

/* What one hash covers, and what is fetched or given up as a whole: bytes of tokens, uncompressed, or of a mask. */
#define CACHE_CELL ((uint64_t)1 << 20)

/* What this process has done since the cache was opened. */
struct cache_counts {
    uint64_t requests, bytes;   /* to the storage, of blocks and indexes */
    uint64_t repeated;          /* requests of these that took too long, and were sent again on another connection */
    uint64_t evicted;           /* bytes of blocks that were given up */
    uint64_t waited_storage_ns; /* reads waited for the first byte of an answer, */
    uint64_t waited_bytes_ns;   /* for the rest of it, */
    uint64_t waited_disk_ns;    /* for the folder's disk */
};

#endif
