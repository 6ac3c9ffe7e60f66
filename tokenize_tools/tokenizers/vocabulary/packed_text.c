/* SPDX-License-Identifier: MIT */
/* packed_text.c - see packed_text.h. */
#include "packed_text.h"

#include <stdlib.h>

#include "codec/unpack.h"
#include "common/bytes_buffer.h"
#include "common/error.h"

#define ROOM ((size_t)1 << 20) /* bytes that are made at once */

static enum tokmap_status unpack(struct unpacker *unpacker, const char *path, const char *text, uint64_t bytes,
                                 struct bytes_buffer *into, struct tokmap_error *error)
{
    for (uint64_t at = 0; at < bytes || !unpacker_may_end(unpacker);) {
        if (into->count > PACKED_TEXT_MOST)
            return error_set(
                error, TOKMAP_ERROR_LIMIT, path, at,
                "the file has more than 256 MiB when it is decompressed; decompress it yourself and name the result");
        if (!bytes_reserve(into, ROOM))
            return error_set_memory(error, "a vocabulary file", into->count + ROOM);
        struct unpack_step step = {.in = text + at,
                                   .in_bytes = (size_t)(bytes - at),
                                   .out = (char *)into->bytes + into->count,
                                   .out_room = ROOM};
        const enum unpack_result result = unpacker_step(unpacker, &step);
        at += step.used;
        into->count += step.made;
        if (result == UNPACK_MORE && !step.used && !step.made)
            return error_set(error, TOKMAP_ERROR_TRUNCATED, path, at,
                             "the compressed file ends too early; copy or download it again");
        if (result == UNPACK_FOREIGN || result == UNPACK_DAMAGED)
            return error_set(error, TOKMAP_ERROR_FORMAT, path, at,
                             "the compressed file is damaged (%s); copy or download it again",
                             result == UNPACK_DAMAGED ? step.reason : "other bytes come after its end");
        if (result == UNPACK_LIMIT || result == UNPACK_REFUSED)
            return error_set(error, result == UNPACK_LIMIT ? TOKMAP_ERROR_LIMIT : TOKMAP_ERROR_UNSUPPORTED, path, at,
                             "%s", step.reason);
        if (result == UNPACK_MEMORY)
            return error_set_memory(error, "a vocabulary file", into->count + ROOM);
    }
    return into->count ? TOKMAP_OK
                       : error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                                   "the file is empty when it is decompressed; a vocabulary has at least one token");
}

enum tokmap_status packed_text_open(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error)
{
    const char *name, *advice;
    struct unpacker *unpacker = NULL;
    struct bytes_buffer into = {0};
    const enum file_type type = file_type_of(*text, (size_t)*bytes, &name, &advice);
    if (!file_type_is_packed(type))
        return TOKMAP_OK;
    enum tokmap_status status = unpacker_open(&unpacker, type, path, error);
    if (!status)
        status = unpack(unpacker, path, *text, *bytes, &into, error);
    unpacker_free(unpacker);
    if (status) {
        bytes_free(&into);
        return status;
    }
    free(*text);
    *text = (char *)into.bytes;
    *bytes = into.count;
    return TOKMAP_OK;
}
