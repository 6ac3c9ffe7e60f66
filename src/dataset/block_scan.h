/*
 * block_scan.h - what verify needs of a block of tokens, its XXH3-64 and its largest id, from one pass over its bytes.
 *
 * A thread's read leaves a part of a block in the cache; hashing it and then looking for the largest id would load it
 * twice, and that is felt beside a read that only copies. Any thread; a state belongs to one.
 */
#ifndef TOKMAP_DATASET_BLOCK_SCAN_H
#define TOKMAP_DATASET_BLOCK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole block of 1 MiB comes in parts of this size, what is shorter than a block in one part. */
#define SCAN_PART_BYTES ((size_t)1 << 19)

struct block_scan;
struct block_scan *block_scan_new(void); /* NULL without memory */
void block_scan_free(struct block_scan *scan);

/* The parts of a block one after the other; the last one ends the block. width: 2 or 4; bytes: a multiple of it. */
void block_scan_part(struct block_scan *scan, const void *tokens, size_t bytes, uint32_t width, bool last);
/* After the last part. *largest is 0 for no tokens. */
void block_scan_result(const struct block_scan *scan, uint64_t *hash, uint64_t *largest);

#endif
