/* SPDX-License-Identifier: MIT */
#include "mask_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/bit_copy.h"
#include "common/error.h"
#include "platform/os.h"

#define PART_BYTES 4096 /* of the file that are read at once */

enum tokmap_status mask_file_open(struct mask_file *mask, char *path, bool wide, uint64_t tokens,
                                  struct tokmap_error *error)
{
    struct os_stat found;
    *mask = (struct mask_file){.fd = -1, .path = path, .bytes = wide ? tokens : div_ceil(tokens, 8), .wide = wide};
    int system = os_open(path, OS_READ_NOW, &mask->fd);
    if (system) {
        mask->fd = -1;
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                "the mask that belongs to the tokens cannot be opened; restore it");
    }
    system = os_fstat(mask->fd, &found);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the mask cannot be examined");
    if (found.kind != OS_KIND_FILE)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                         "this is not a regular file; a mask must be stored in a regular file");
    if (found.bytes != mask->bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, min64(found.bytes, mask->bytes),
                         "the mask is %" PRIu64 " bytes long, but %" PRIu64 " tokens need %" PRIu64
                         " (one %s for each token); restore the file",
                         found.bytes, tokens, mask->bytes, wide ? "byte" : "bit");
    return TOKMAP_OK;
}

void mask_file_close(struct mask_file *mask)
{
    os_close(mask->fd);
    free(mask->path);
    mask->fd = -1;
    mask->path = NULL;
}

static enum tokmap_status read_part(const struct mask_file *mask, uint64_t offset, size_t count, void *into,
                                    const struct mask_reader *reader, struct tokmap_error *error)
{
    size_t got = 0;
    uint64_t now;
    int system = reader ? reader->read(reader->user, mask->fd, into, count, offset, &got)
                        : os_pread(mask->fd, into, count, offset, &got);
    if (system == ETIMEDOUT)
        return error_set(error, TOKMAP_ERROR_TIMEOUT, mask->path, offset,
                         "reading the mask took longer than deadline_ns; check the storage that holds the "
                         "file, then call again or continue from the last cursor");
    if (system)
        return error_set_system(error, system, mask->path, offset, "the mask cannot be read");
    if (got < count) /* its end may be before `offset`; it may also have grown again since it was read */
        return error_set(error, TOKMAP_ERROR_TRUNCATED, mask->path,
                         os_file_bytes(mask->fd, &now) ? offset + got : min64(offset + got, now),
                         "the mask ends at this byte, but its tokens need %" PRIu64
                         " bytes; it has been truncated since it was opened: restore it",
                         mask->bytes);
    return TOKMAP_OK;
}

enum tokmap_status mask_file_read(const struct mask_file *mask, uint64_t first, uint64_t count, uint8_t *bits,
                                  uint64_t at, const struct mask_reader *reader, struct tokmap_error *error)
{
    uint8_t buffer[PART_BYTES];
    assert(mask->fd >= 0);
    first += mask->first_bit;
    while (count) {
        const uint64_t skipped = mask->wide ? 0 : first % 8;
        const uint64_t part = min64(count, mask->wide ? PART_BYTES : PART_BYTES * 8 - skipped);
        const uint64_t offset = mask->wide ? first : first / 8;
        const size_t bytes = (size_t)(mask->wide ? part : div_ceil(skipped + part, 8));
        const enum tokmap_status status = read_part(mask, offset, bytes, buffer, reader, error);
        if (status)
            return status;
        if (!mask->wide)
            bit_copy(bits, at, buffer, skipped, part);
        for (uint64_t i = 0; mask->wide && i < part; i++) {
            const uint8_t bit = (uint8_t)(1u << ((at + i) % 8));
            bits[(at + i) / 8] = (uint8_t)(buffer[i] ? bits[(at + i) / 8] | bit : bits[(at + i) / 8] & ~bit);
        }
        at += part;
        first += part;
        count -= part;
    }
    return TOKMAP_OK;
}
