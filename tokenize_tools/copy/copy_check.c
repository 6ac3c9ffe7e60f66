/* SPDX-License-Identifier: MIT */
/* copy_check.c - see copy_check.h. */
#include "copy_check.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_verify.h"

#define REMEDY "copy it again from a good copy, or pack the shard again"

uint64_t copy_file_bytes(const struct index *index, enum shard_file file, bool *has)
{
    const bool sealed = index_is_sealed(index);
    *has = file == SHARD_MASK ? index->mask_bytes != 0 : sealed == (file == SHARD_SEALED);
    return !*has ? 0 : file == SHARD_MASK ? index->mask_bytes : sealed ? index->sealed_bytes : index->token_bytes;
}

/* Finds the first frame that begins at byte `at` of the file or later; the number of frames if there is none. */
static enum tokmap_status frame_at(const struct index *index, uint64_t at, uint64_t *number, struct tokmap_error *error)
{
    uint64_t first = 0, last = index_frames(index);
    enum tokmap_status status = TOKMAP_OK;
    while (first < last && !status) {
        const uint64_t middle = first + (last - first) / 2;
        struct frame_entry entry = {0, 0};
        if (middle)
            status = index_frame_entries(index, middle - 1, 1, &entry, error);
        if (entry.end < at)
            first = middle + 1;
        else
            last = middle;
    }
    *number = first;
    return status;
}

enum tokmap_status copy_check_end(const struct index *index, enum shard_file file, uint64_t at, uint64_t range_end,
                                  uint64_t *end, struct tokmap_error *error)
{
    uint64_t number = 0;
    struct sealed_frame frame;
    *end = range_end;
    if (file != SHARD_SEALED)
        return TOKMAP_OK;
    enum tokmap_status status = frame_at(index, range_end, &number, error);
    if (status || !number)
        return status;
    status = sealed_frame_find(index, number - 1, &frame, error);
    if (!status && frame.at >= at)
        *end = max64(range_end, frame.at + frame.stored);
    return status;
}

static enum tokmap_status differs(const char *name, uint64_t from, uint64_t to, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, name, from,
                     "bytes %" PRIu64 "..%" PRIu64 " do not match what the index says of them; " REMEDY, from, to);
}

/* Compares blocks of plain tokens, or of a mask. */
static enum tokmap_status blocks_check(const struct index *index, bool mask, const char *name, uint64_t at,
                                       uint64_t end, const uint8_t *bytes, struct tokmap_error *error)
{
    const uint64_t first = at / BLOCK_BYTES, last = div_ceil(end, BLOCK_BYTES);
    enum tokmap_status status = mask ? index_bytes_check(index, index->streams.offset, index->streams.bytes, error)
                                     : index_blocks_check(index, first, last, error);
    for (uint64_t block = first; block < last && !status; block++) {
        const uint64_t begin = block * BLOCK_BYTES, to = min64(begin + BLOCK_BYTES, end);
        if (hash64(bytes + (begin - at), (size_t)(to - begin)) !=
            (mask ? index_mask_hash(index, block) : index_block_hash(index, block)))
            status = differs(name, begin, to, error);
    }
    return status;
}

/* Makes entry `number` of the seek table. */
static enum tokmap_status seek_entry(const struct index *index, uint64_t number, uint8_t into[SEEK_ENTRY],
                                     struct tokmap_error *error)
{
    struct sealed_frame frame = {0};
    const enum tokmap_status status = sealed_frame_find(index, number, &frame, error);
    store32(into, frame.stored);
    store32(into + 4, frame.bytes);
    return status;
}

/* Compares the bytes of the seek table that are in the range. */
static enum tokmap_status table_check(const struct index *index, const char *name, uint64_t at, uint64_t end,
                                      const uint8_t *bytes, struct tokmap_error *error)
{
    const uint64_t frames = index_frames(index), table = SEEK_ENTRY * frames + SEEK_FOOT;
    const uint64_t begin = index->sealed_bytes - table - SEEK_HEAD, entries = begin + SEEK_HEAD;
    uint8_t part[SEEK_FOOT];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t from = max64(at, begin), to; from < end && !status; from = to) {
        uint64_t part_at;
        size_t count = SEEK_ENTRY;
        if (from < entries) {
            part_at = begin;
            store32(part, SEEK_HEAD_MAGIC);
            store32(part + 4, (uint32_t)table);
        } else if (from < entries + frames * SEEK_ENTRY) {
            part_at = round_down(from - entries, SEEK_ENTRY) + entries;
            status = seek_entry(index, (part_at - entries) / SEEK_ENTRY, part, error);
        } else {
            part_at = entries + frames * SEEK_ENTRY;
            count = SEEK_FOOT;
            store32(part, (uint32_t)frames);
            part[4] = 0;
            store32(part + 5, SEEK_FOOT_MAGIC);
        }
        to = min64(part_at + count, end);
        if (!status && memcmp(part + (from - part_at), bytes + (from - at), (size_t)(to - from)) != 0)
            status = differs(name, from, to, error);
    }
    return status;
}

static enum tokmap_status frames_check(const struct index *index, const char *name, uint64_t at, uint64_t end,
                                       const uint8_t *bytes, struct sealed_reader *reader, struct tokmap_error *error)
{
    uint8_t *unpacked = malloc(FRAME_BYTES);
    uint64_t number;
    enum tokmap_status status =
        unpacked && reader ? frame_at(index, at, &number, error) : error_set_memory(error, "a frame", FRAME_BYTES);
    for (; !status && number < index_frames(index); number++) {
        struct sealed_frame frame;
        status = sealed_frame_find(index, number, &frame, error);
        if (!status && frame.at >= end)
            break;
        if (!status)
            status = sealed_unpack(reader, name, &frame, bytes + (frame.at - at), unpacked, error);
    }
    free(unpacked);
    return status ? status : table_check(index, name, at, end, bytes, error);
}

enum tokmap_status copy_check(const struct index *index, enum shard_file file, const char *name, uint64_t at,
                              uint64_t range_end, const uint8_t *bytes, struct sealed_reader *reader,
                              struct tokmap_error *error)
{
    return file == SHARD_SEALED ? frames_check(index, name, at, range_end, bytes, reader, error)
                                : blocks_check(index, file == SHARD_MASK, name, at, range_end, bytes, error);
}
