/* SPDX-License-Identifier: MIT */
/*
 * images.c - what the emulated driver loads as a module: the text of PTX, or a fatbin, which has machine code (cubins)
 * for some targets and PTX. Kernels are recognized by the text of their PTX. In a fatbin they are recognized by name,
 * because the tools strip the comments from PTX: machine code has a section of that name. They run as they were
 * compiled for the host.
 *
 * A fatbin is a header and entries, all little endian, without padding in between:
 *
 *     header   0 magic 0xba55ed50    4 version (16 bits)    6 bytes of the header (16)    8 bytes of the entries (64)
 *     entry    0 kind: 1 PTX, 2 machine code (16)    4 bytes of its header (32)    8 bytes of its data (64)
 *              16 bytes of compressed data (32)      28 target, as in sm_90 (32)   40 flags (64)
 *              56 bytes of the data when decompressed (64)
 *
 * Its address can also be in a wrapper: magic 0x466243b1, version, the address (as nvcc links it into a program).
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "software.h"

#define FATBIN_MAGIC 0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u
#define LEAST_ENTRY 64
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define IMAGE_MOST ((uint64_t)16 << 20)

enum { KIND_PTX = 1, KIND_CODE = 2 };

struct entry {
    const uint8_t *data;
    uint64_t bytes, flags;
    unsigned kind, target;
};

static uint64_t number_at(const uint8_t *bytes, unsigned count)
{
    uint64_t number = 0;
    memcpy(&number, bytes, count);
    return number;
}

/* Reads the entry at *at and advances *at. Returns false at the end of the fatbin, or if it is not valid. */
static bool next_entry(const uint8_t **at, const uint8_t *end, struct entry *entry)
{
    const uint8_t *from = *at;
    if (end - from < LEAST_ENTRY)
        return false;
    const uint64_t header = number_at(from + 4, 4), bytes = number_at(from + 8, 8);
    const uint64_t compressed = number_at(from + 16, 4), room = (uint64_t)(end - from);
    if (header < LEAST_ENTRY || header > room || bytes > room - header || compressed > bytes) {
        violation("an entry of a fatbin is longer than the fatbin");
        return false;
    }
    *entry = (struct entry){.data = from + header,
                            .bytes = compressed ? compressed : bytes,
                            .kind = (unsigned)number_at(from, 2),
                            .target = (unsigned)number_at(from + 28, 4),
                            .flags = number_at(from + 40, 8)};
    *at = from + header + bytes;
    return true;
}

/* Machine code runs on devices of the same major version from its own minor version on; PTX on any from its own. With
 * CUDA_FORCE_PTX_JIT a driver takes PTX only, and with CUDA_DISABLE_PTX_JIT it compiles none. */
static bool is_on(const char *variable)
{
    const char *given = getenv(variable);
    return given && *given == '1';
}

static bool fits(const struct entry *entry)
{
    const unsigned capability = (unsigned)configuration.capability;
    if (is_on(entry->kind == KIND_PTX ? "CUDA_DISABLE_PTX_JIT" : "CUDA_FORCE_PTX_JIT"))
        return false;
    return entry->target <= capability && (entry->kind == KIND_PTX || entry->target / 10 == capability / 10);
}

static const struct kernel *kernel_of_entry(const struct entry *entry)
{
    static char whole[IMAGE_MOST + 1]; /* the lock is held */
    const uint8_t *data = entry->data;
    uint64_t bytes = entry->bytes;
    if (entry->flags & FLAG_LZ4) {
        violation("an entry of a fatbin is compressed by LZ4, which the emulated driver cannot read");
        return NULL;
    }
    if (entry->flags & FLAG_ZSTD || entry->kind == KIND_PTX) {
        const size_t read = entry->flags & FLAG_ZSTD ? ZSTD_decompress(whole, IMAGE_MOST, data, bytes)
                            : bytes < IMAGE_MOST     ? (memcpy(whole, data, bytes), bytes)
                                                     : IMAGE_MOST + 1;
        if (read > IMAGE_MOST)
            return NULL;
        whole[read] = '\0';
        data = (const uint8_t *)whole;
        bytes = read;
    }
    return kernel_of_code(data, bytes, entry->kind == KIND_PTX);
}

static CUresult fatbin_open(const uint8_t *fatbin, const struct kernel **first, bool *compiled)
{
    const uint64_t header = number_at(fatbin + 6, 2), bytes = number_at(fatbin + 8, 8);
    const uint8_t *at = fatbin + header, *end = at + bytes;
    struct entry entry, best = {.data = NULL};
    if (header < 16 || bytes > IMAGE_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    while (next_entry(&at, end, &entry)) {
        bool better = !best.data || entry.kind > best.kind || (entry.kind == best.kind && entry.target > best.target);
        if ((entry.kind == KIND_PTX || entry.kind == KIND_CODE) && fits(&entry) && better)
            best = entry;
    }
    if (!best.data)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *first = kernel_of_entry(&best);
    *compiled = best.kind == KIND_PTX;
    return *first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult image_open(const void *image, const struct kernel **first, bool *compiled)
{
    uint32_t magic;
    memcpy(&magic, image, strnlen(image, sizeof magic) == sizeof magic ? sizeof magic : 0);
    if (strnlen(image, sizeof magic) == sizeof magic && magic == WRAPPER_MAGIC) {
        memcpy(&image, (const uint8_t *)image + 8, sizeof image);
        memcpy(&magic, image, sizeof magic);
    }
    if (strnlen(image, sizeof magic) == sizeof magic && magic == FATBIN_MAGIC)
        return fatbin_open(image, first, compiled);
    *compiled = true;
    if (is_on("CUDA_DISABLE_PTX_JIT"))
        return CUDA_ERROR_JIT_COMPILATION_DISABLED;
    *first = kernel_of_image(image);
    return *first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}
