/* SPDX-License-Identifier: MIT */
#include "shard_ranges.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "index_verify.h"
#include "values_file.h"

bool shard_has_file(const struct index *index, enum shard_file file)
{
    if (index->values)
        return file == SHARD_TOKENS;
    return file == SHARD_MASK ? index->mask_bytes != 0
                              : !index->store.offset && index_is_sealed(index) == (file == SHARD_SEALED);
}

uint64_t shard_file_size(const struct index *index, enum shard_file file)
{
    assert(file < SHARD_FILES);
    if (index->values)
        return index->values->header.file_bytes;
    return file == SHARD_MASK ? index->mask_bytes : file == SHARD_SEALED ? index->sealed_bytes : index->token_bytes;
}

uint64_t shard_ranges(const struct index *index, enum shard_file file)
{
    assert(shard_has_file(index, file));
    if (index->values)
        return index->values->count;
    return file == SHARD_MASK     ? index_mask_blocks(index)
           : file == SHARD_SEALED ? max64(index_frames(index), 1) /* without a frame, the seek table alone */
                                  : index_blocks(index);
}

/* Returns the range that has a byte of a file of values. */
static uint64_t values_range_of(const struct values_ranges *values, uint64_t at)
{
    return min64((max64(at, VALUES_AT) - VALUES_AT) / BLOCK_BYTES, values->count - 1);
}

/* Finds the last frame that begins at or before a byte of the file. */
static enum tokmap_status frame_of(const struct index *index, uint64_t at, uint64_t *number, struct tokmap_error *error)
{
    uint64_t high = index_frames(index);
    enum tokmap_status status = TOKMAP_OK;
    for (*number = 0; high - *number > 1 && !status;) {
        const uint64_t middle = *number + (high - *number) / 2;
        struct frame_entry before = {0, 0};
        status = index_frame_entries(index, middle - 1, 1, &before, error);
        *(before.end <= at ? number : &high) = middle;
    }
    return status;
}

enum tokmap_status shard_ranges_find(const struct index *index, enum shard_file file, uint64_t at, uint64_t count,
                                     uint64_t *first, uint64_t *end, struct tokmap_error *error)
{
    assert(shard_has_file(index, file));
    const uint64_t bytes = shard_file_size(index, file);
    uint64_t last = 0;
    *first = *end = 0;
    if (!count || at >= bytes)
        return TOKMAP_OK;
    const uint64_t last_byte = at + min64(count, bytes - at) - 1;
    enum tokmap_status status = TOKMAP_OK;
    if (index->values) {
        *first = values_range_of(index->values, at);
        last = values_range_of(index->values, last_byte);
    } else if (file != SHARD_SEALED) {
        *first = at / BLOCK_BYTES;
        last = last_byte / BLOCK_BYTES;
    } else {
        status = frame_of(index, at, first, error);
        if (!status)
            status = frame_of(index, last_byte, &last, error);
    }
    *end = status ? *first : last + 1;
    return status;
}

enum tokmap_status shard_ranges_place(const struct index *index, enum shard_file file, uint64_t first, uint64_t end,
                                      uint64_t *from, uint64_t *bytes, struct tokmap_error *error)
{
    uint64_t until = shard_file_size(index, file);
    enum tokmap_status status = TOKMAP_OK;
    assert(first < end && end <= shard_ranges(index, file));
    *from = first * BLOCK_BYTES;
    if (index->values) {
        *from += first ? VALUES_AT : 0;
        until = end == index->values->count ? until : VALUES_AT + end * BLOCK_BYTES;
    } else if (file != SHARD_SEALED) {
        until = min64(until, end * BLOCK_BYTES);
    } else {
        struct sealed_frame frame = {0};
        if (first < index_frames(index))
            status = sealed_frame_find(index, first, &frame, error);
        *from = frame.at;
        if (!status && end < index_frames(index))
            status = sealed_frame_find(index, end, &frame, error);
        if (end < index_frames(index))
            until = frame.at;
    }
    *bytes = status ? 0 : until - *from;
    return status;
}

static enum tokmap_status blocks_check(const struct index *index, bool mask, uint64_t first, uint64_t end,
                                       const char *name, const uint8_t *bytes, uint64_t count,
                                       struct tokmap_error *error)
{
    enum tokmap_status status = mask ? index_bytes_check(index, index->streams.offset, index->streams.bytes, error)
                                     : index_blocks_check(index, first, end, error);
    for (uint64_t block = first, at = 0; block < end && !status; block++, at += BLOCK_BYTES) {
        const uint64_t part = min64(BLOCK_BYTES, count - at), from = block * BLOCK_BYTES;
        if (hash64(bytes + at, (size_t)part) != (mask ? index_mask_hash(index, block) : index_block_hash(index, block)))
            status = error_set(error, TOKMAP_ERROR_CORRUPT, name, from,
                               "bytes %" PRIu64 "..%" PRIu64
                               " of this file do not match their hash in the index; the file was damaged, changed, or "
                               "exchanged; restore it from a good copy, or pack the shard again",
                               from, from + part);
    }
    return status;
}

/* Compares the header, the values, and the table, as far as they are in ranges [first, end) of a file of values. */
static enum tokmap_status values_check(const struct values_ranges *values, uint64_t first, uint64_t end,
                                       const char *name, const uint8_t *bytes, struct tokmap_error *error)
{
    const uint64_t at = first ? VALUES_AT + first * BLOCK_BYTES : 0,
                   table = values->header.file_bytes - values->table_at;
    bool good = first || !memcmp(bytes, &values->header, sizeof values->header);
    uint64_t from = 0;
    for (uint64_t range = first; range < end && good; range++) {
        from = VALUES_AT + range * BLOCK_BYTES;
        const uint64_t part = min64(BLOCK_BYTES, values->end - min64(from, values->end));
        good = !part || hash64(bytes + (from - at), (size_t)part) == values->hashes[range];
    }
    if (good && end == values->count)
        good = !memcmp(bytes + (values->table_at - at), values->hashes, (size_t)table);
    return good ? TOKMAP_OK
                : error_set(error, TOKMAP_ERROR_CORRUPT, name, from,
                            "the MiB of this file from here on does not match its hash; the file was damaged, changed, "
                            "or exchanged; restore it from a good copy, or make the values again");
}

static enum tokmap_status frames_check(const struct index *index, uint64_t first, uint64_t end, const char *name,
                                       uint64_t from, const uint8_t *bytes, uint64_t count,
                                       struct sealed_reader *reader, struct tokmap_error *error)
{
    uint8_t tokens[FRAME_BYTES];
    enum tokmap_status status = TOKMAP_OK;
    end = min64(end, index_frames(index));
    for (uint64_t number = first; number < end && !status; number++) {
        struct sealed_frame frame;
        status = sealed_frame_find(index, number, &frame, error);
        if (!status && (frame.at - from > count || frame.stored > count - (frame.at - from)))
            status = error_set(error, TOKMAP_ERROR_CORRUPT, index->path, index_frame_at(index, number),
                               "the index was changed while it was used; run the command again");
        if (!status)
            status = sealed_unpack(reader, name, &frame, bytes + (frame.at - from), tokens, error);
    }
    return status ? status : sealed_table_compare(index, name, from, count, bytes, error);
}

enum tokmap_status shard_ranges_check(const struct index *index, enum shard_file file, uint64_t first, uint64_t end,
                                      const char *name, const uint8_t *bytes, struct sealed_reader **reader,
                                      struct tokmap_error *error)
{
    uint64_t from, count;
    enum tokmap_status status = shard_ranges_place(index, file, first, end, &from, &count, error);
    if (!status && index->values)
        return values_check(index->values, first, end, name, bytes, error);
    if (status || file != SHARD_SEALED)
        return status ? status : blocks_check(index, file == SHARD_MASK, first, end, name, bytes, count, error);
    if (!*reader)
        status = sealed_load(name, error);
    if (!*reader && !status && !(*reader = sealed_reader_new()))
        status = error_set_memory(error, "a reader of sealed tokens", FRAME_BYTES);
    return status ? status : frames_check(index, first, end, name, from, bytes, count, *reader, error);
}
