/* SPDX-License-Identifier: MIT */
/*
 * block_scan_kernel.h - the pass that hashes a part of a block with XXH3 and finds its largest id, one per instruction
 * set.
 *
 * The specification of XXH3-64 defines the hash of a long input, with the default secret and seed 0, as follows. Eight
 * accumulators of 64 bits take a stripe of 64 bytes at a time, lane by lane,
 *     acc[i ^ 1] += data[i];  k = data[i] ^ secret[i];  acc[i] += (k mod 2^32) * (k >> 32)
 * where the secret advances by 8 bytes per stripe. After 16 stripes the accumulators are scrambled
 *     acc[i] = (acc[i] ^ acc[i] >> 47 ^ secret[i]) * P
 * and the secret starts over. The last 64 bytes of the input form a stripe with its own position in the secret. The
 * stripes before it are those that begin at least 64 + 1 bytes before the end. A maximum over the same registers finds
 * the largest id.
 *
 * The pages of the part have hashes of their own. What a stripe adds to the accumulators depends on its bytes and its
 * key, and not on what they hold, and a page is a whole number of rounds. So the block and the page add the same sums
 * of 16 stripes, each to its own accumulators, and only the last stripe of a page is computed twice, with both keys. A
 * second pass over the bytes would cost a third of a read by pread.
 */
#ifndef TOKMAP_DATASET_BLOCK_SCAN_KERNEL_H
#define TOKMAP_DATASET_BLOCK_SCAN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRIPE_BYTES = 64, ROUND_BYTES = 1024, SECRET_BYTES = 192 };
#define SECRET_SCRAMBLE (SECRET_BYTES - STRIPE_BYTES)
#define SECRET_LAST (SECRET_BYTES - STRIPE_BYTES - 7)
#define SCRAMBLE_PRIME 0x9e3779b1u

extern const uint64_t scan_secret[SECRET_BYTES / 8];
extern const uint64_t scan_start[8]; /* of the accumulators */

enum { PAGE_ROUNDS = 4 }; /* in TOKEN_PAGE_BYTES */

/* bytes: a multiple of ROUND_BYTES. last: the part ends the block. pages: NULL, or, with bytes a multiple of a page,
 * receives the accumulators of each page. Returns the largest id of the part. */
typedef uint64_t scan_kernel(uint64_t acc[8], const uint8_t *tokens, size_t bytes, uint32_t width, bool last,
                             uint64_t (*pages)[8]);

/* For tests. The first function returns NULL if this build or this processor does not have the kernel. The second
 * one makes a scan that uses the given kernel, or, with NULL, the hash function and a separate search. */
scan_kernel *scan_kernel_named(const char *name);
struct block_scan *block_scan_new_with(scan_kernel *kernel);

#if defined(__x86_64__)
scan_kernel scan_part_avx2, scan_part_avx512;
#endif

#endif
