/*
 * block_scan_kernel.h - one pass that hashes a part of a block by XXH3 and finds its largest id, for each instruction set.
 *
 * XXH3-64 of a long input, as its specification has it, for the default secret and seed 0: eight 64-bit accumulators take
 * a stripe of 64 bytes at a time, lane by lane
 *     acc[i ^ 1] += data[i];  k = data[i] ^ secret[i];  acc[i] += (k mod 2^32) * (k >> 32)
 * with the secret moved on by 8 bytes a stripe; after 16 stripes they are scrambled
 *     acc[i] = (acc[i] ^ acc[i] >> 47 ^ secret[i]) * P
 * and the secret begins again. The input's last 64 bytes are a stripe of their own, with its own place in the secret; the
 * stripes before it are those that begin at least 64 bytes + 1 before the end. A maximum over the same registers finds the
 * largest id on the way.
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

/* bytes: a multiple of ROUND_BYTES. With `last` the part ends the block. Returns the part's largest id. */
typedef uint64_t scan_kernel(uint64_t acc[8], const uint8_t *tokens, size_t bytes, uint32_t width, bool last);

/* NULL where this build or this processor lacks it; and a scan that uses one, or none. For tests. */
scan_kernel *scan_kernel_named(const char *name);
struct block_scan *block_scan_new_with(scan_kernel *kernel);

#if defined(__x86_64__)
scan_kernel scan_part_avx2, scan_part_avx512;
#endif

#endif
