/* SPDX-License-Identifier: MIT */
#include "block_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "block_scan_kernel.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "common/hash.h"
#include "format/layout.h"

_Static_assert(TOKEN_PAGE_BYTES == PAGE_ROUNDS * ROUND_BYTES, "kernels know the size of a page");

/* Constants of XXH3: its default secret as little-endian numbers, and its primes. */
const uint64_t scan_secret[SECRET_BYTES / 8] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb,
    0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088,
    0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a,
    0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
};
#define PRIME32_1 0x9e3779b1u
#define PRIME32_2 0x85ebca77u
#define PRIME32_3 0xc2b2ae3du
#define PRIME64_1 0x9e3779b185ebca87u
#define PRIME64_2 0xc2b2ae3d27d4eb4fu
#define PRIME64_3 0x165667b19e3779f9u
#define PRIME64_4 0x85ebca77c2b2ae63u
#define PRIME64_5 0x27d4eb2f165667c5u
#define AVALANCHE_PRIME 0x165667919e3779f9u

const uint64_t scan_start[8] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};

struct block_scan {
    scan_kernel *kernel; /* NULL: hash and search in two passes */
    uint64_t acc[8];
    uint64_t bytes;
    struct hash_state *state; /* for blocks that are too short for the kernel */
    bool begun, by_kernel;
    uint64_t hash, largest;
};

/* ---- finishing XXH3 ---- */

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t acc_hash(const uint64_t acc[8], uint64_t bytes)
{
    const uint8_t *secret = (const uint8_t *)scan_secret + 11;
    uint64_t hash = bytes * PRIME64_1;
    for (int i = 0; i < 8; i += 2)
        hash += fold(acc[i] ^ load64(secret + 8 * i), acc[i + 1] ^ load64(secret + 8 * i + 8));
    hash ^= hash >> 37;
    hash *= AVALANCHE_PRIME;
    return hash ^ hash >> 32;
}

/* ---- choosing a kernel ---- */

/* Compares a kernel with the library's hash on a sample, before it is used on real data. */
static bool kernel_is_right(scan_kernel *kernel)
{
    enum { PAGES = 3, BYTES = PAGES * TOKEN_PAGE_BYTES };
    uint8_t sample[BYTES];
    uint64_t acc[8], pages[PAGES][8];
    for (size_t i = 0; i < BYTES; i++)
        sample[i] = (uint8_t)(i * 167 + (i >> 8) * 13);
    memcpy(acc, scan_start, sizeof acc);
    (void)kernel(acc, sample, TOKEN_PAGE_BYTES, 2, false, pages);
    (void)kernel(acc, sample + TOKEN_PAGE_BYTES, BYTES - TOKEN_PAGE_BYTES, 2, true, pages + 1);
    bool right = acc_hash(acc, BYTES) == hash64(sample, BYTES);
    for (size_t i = 0; i < PAGES; i++)
        right =
            right && acc_hash(pages[i], TOKEN_PAGE_BYTES) == hash64(sample + i * TOKEN_PAGE_BYTES, TOKEN_PAGE_BYTES);
    return right;
}

scan_kernel *scan_kernel_named(const char *name)
{
#if defined(__x86_64__)
    if (!strcmp(name, "avx512") && cpu_has(CPU_AVX512))
        return scan_part_avx512;
    if (!strcmp(name, "avx2") && cpu_has(CPU_AVX2))
        return scan_part_avx2;
#else
    (void)name;
#endif
    return NULL;
}

static scan_kernel *choose(void)
{
    scan_kernel *kernel = scan_kernel_named("avx512");
    if (!kernel)
        kernel = scan_kernel_named("avx2");
    return kernel && kernel_is_right(kernel) ? kernel : NULL;
}

struct block_scan *block_scan_new_with(scan_kernel *kernel)
{
    struct block_scan *scan = calloc(1, sizeof *scan);
    if (scan && !(scan->state = hash_state_new())) {
        free(scan);
        return NULL;
    }
    if (scan)
        scan->kernel = kernel;
    return scan;
}

struct block_scan *block_scan_new(void)
{
    return block_scan_new_with(choose());
}

void block_scan_free(struct block_scan *scan)
{
    if (scan)
        hash_state_free(scan->state);
    free(scan);
}

/* ---- parts ---- */

/* Scans a part of SCAN_PART_BYTES, and computes the hashes of its pages if they are wanted. */
static uint64_t part_by_kernel(struct block_scan *scan, const void *tokens, uint32_t width, bool last, uint32_t *pages)
{
    uint64_t acc[SCAN_PART_BYTES / TOKEN_PAGE_BYTES][8];
    const uint64_t largest = scan->kernel(scan->acc, tokens, SCAN_PART_BYTES, width, last, pages ? acc : NULL);
    for (size_t i = 0; pages && i < SCAN_PART_BYTES / TOKEN_PAGE_BYTES; i++)
        pages[i] = (uint32_t)acc_hash(acc[i], TOKEN_PAGE_BYTES);
    return largest;
}

void block_scan_part(struct block_scan *scan, const void *tokens, size_t bytes, uint32_t width, bool last,
                     uint32_t *pages)
{
    assert((width == 2 || width == 4) && bytes % width == 0);
    if (!scan->begun) {
        /* All parts of a block are handled the same way: either its first part has the kernel's size, or the block
         * is short. */
        scan->by_kernel = scan->kernel && bytes == SCAN_PART_BYTES;
        scan->largest = scan->bytes = 0;
        memcpy(scan->acc, scan_start, sizeof scan->acc);
        hash_state_reset(scan->state);
    }
    scan->begun = !last;
    scan->bytes += bytes;
    uint64_t largest = 0;
    if (scan->by_kernel) {
        assert(bytes == SCAN_PART_BYTES || (!bytes && last));
        if (bytes)
            largest = part_by_kernel(scan, tokens, width, last, pages);
    } else {
        hash_state_add(scan->state, tokens, bytes);
        largest = largest_token(tokens, width, bytes / width);
        for (size_t at = 0; pages && at < bytes; at += TOKEN_PAGE_BYTES)
            *pages++ = (uint32_t)hash64((const uint8_t *)tokens + at, (size_t)min64(bytes - at, TOKEN_PAGE_BYTES));
    }
    scan->largest = max64(scan->largest, largest);
    if (last)
        scan->hash = scan->by_kernel ? acc_hash(scan->acc, scan->bytes) : hash_state_64(scan->state);
}

void block_scan_result(const struct block_scan *scan, uint64_t *hash, uint64_t *largest)
{
    assert(!scan->begun);
    *hash = scan->hash;
    *largest = scan->largest;
}
