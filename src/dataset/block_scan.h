/* SPDX-License-Identifier: MIT */
/*
 * block_scan.h - computes the XXH3-64 and the largest id of a block of tokens, and the hashes of its pages, in one pass
 * over its bytes, for verify.
 *
 * A read leaves a part of a block in the cache. Hashing the part and then searching it for the largest id would load it
 * twice, which takes measurable time compared with a read that only copies. A block_scan belongs to one thread at a
 * time.
 */
#ifndef TOKMAP_DATASET_BLOCK_SCAN_H
#define TOKMAP_DATASET_BLOCK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The caller passes a whole block of 1 MiB in parts of this size, and a shorter block as one part. */
#define SCAN_PART_BYTES ((size_t)1 << 19)

struct block_scan;
struct block_scan *block_scan_new(void); /* returns NULL if memory is exhausted */
void block_scan_free(struct block_scan *scan);

/* Takes the parts of a block in order; `last` marks the part that ends the block. width: 2 or 4; bytes: a multiple
 * of width. pages: NULL, or receives the low 32 bits of the hash of each page (TOKEN_PAGE_BYTES) of the part, of which
 * the last one may be short. */
void block_scan_part(struct block_scan *scan, const void *tokens, size_t bytes, uint32_t width, bool last,
                     uint32_t *pages);
/* Returns the results of the block whose last part was taken. *largest is 0 for a block without tokens. */
void block_scan_result(const struct block_scan *scan, uint64_t *hash, uint64_t *largest);

#endif
