/* SPDX-License-Identifier: MIT */
/* foreign_bytes.c - see foreign_bytes.h. */
#include "foreign_bytes.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

enum tokmap_status foreign_bytes_map(struct foreign_bytes *bytes, struct tokmap_error *error)
{
    const void *mapped = NULL;
    if (bytes->map || !bytes->count)
        return TOKMAP_OK;
    const int system = os_map_file(bytes->fd, bytes->count, &mapped);
    if (system)
        return error_set_system(error, system, bytes->path, TOKMAP_NO_OFFSET,
                                "the index cannot be mapped; raise vm.max_map_count or ulimit -v");
    bytes->map = mapped;
    return TOKMAP_OK;
}

void foreign_bytes_unmap(struct foreign_bytes *bytes)
{
    os_unmap(bytes->map, bytes->count);
    bytes->map = NULL;
}

enum tokmap_status foreign_load(const struct foreign_bytes *bytes, uint64_t at, void *into, size_t count,
                                struct tokmap_error *error)
{
    size_t got = 0;
    assert(at <= bytes->count && count <= bytes->count - at);
    if (bytes->map) {
        memcpy(into, bytes->map + at, count);
        return TOKMAP_OK;
    }
    const int system = os_pread(bytes->fd, into, count, at, &got);
    if (system)
        return error_set_system(error, system, bytes->path, at, "the index cannot be read");
    if (got < count)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, bytes->path, at + got,
                         "the index ends at this byte, but it was longer when it was opened; copy it again");
    return TOKMAP_OK;
}

enum tokmap_status foreign_load32(const struct foreign_bytes *bytes, uint64_t at, uint32_t *value,
                                  struct tokmap_error *error)
{
    uint8_t loaded[4] = {0};
    const enum tokmap_status status = foreign_load(bytes, at, loaded, sizeof loaded, error);
    *value = load32(loaded);
    return status;
}

enum tokmap_status foreign_load64(const struct foreign_bytes *bytes, uint64_t at, uint64_t *value,
                                  struct tokmap_error *error)
{
    uint8_t loaded[8] = {0};
    const enum tokmap_status status = foreign_load(bytes, at, loaded, sizeof loaded, error);
    *value = load64(loaded);
    return status;
}
