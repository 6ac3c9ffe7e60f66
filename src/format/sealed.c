/* SPDX-License-Identifier: MIT */
/*
 * sealed.c - see sealed.h.
 *
 * An example. A shard has 100,000 tokens of 2 bytes, 200,000 bytes. Its file has four frames: three of 65,536 bytes of
 * tokens, and one of 3,392. The entries of the section frames are, say,
 *
 *     end  41200   hash of bytes      0 ..  65535
 *     end  82510   hash of bytes  65536 .. 131071
 *     end 123700   hash of bytes 131072 .. 196607
 *     end 125900   hash of bytes 196608 .. 199999
 *
 * To read the row of tokens 30,000 to 34,095, bytes 60,000 to 68,191, a reader takes frames 0 and 1: bytes 0 to 82,509
 * of the file. It unpacks frame 0, compares it, and copies its last 5,536 bytes; then the same with the first 2,656
 * bytes of frame 1. After byte 125,900 come 41 bytes of the seek table: 8 for the head of the skippable frame, 8 for
 * each frame, and 9 for the foot.
 *
 * Why 64 KiB. A row of 4,096 tokens of 2 bytes is 8 KiB, so a shuffled run unpacks several times what it delivers, and
 * smaller frames would waste less. But they compress worse, and the index would have more hashes.
 */
#include "sealed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "platform/zstd_library.h"

#define REMEDY "restore the file from a good copy, or pack the shard again"
#define TABLE_AT_ONCE 4096 /* bytes of the seek table */
#define NO_FRAME UINT64_MAX

struct sealed_reader {
    ZSTD_DCtx *zstd;
    const struct index *index; /* of the frame in `bytes` */
    uint64_t frame;            /* its number, or NO_FRAME */
    uint8_t bytes[FRAME_BYTES];
    uint8_t stored[FRAME_STORED_MOST];
};

enum tokmap_status sealed_frame_check(const struct index *index, uint64_t number, uint64_t before,
                                      const struct frame_entry *entry, struct sealed_frame *frame,
                                      struct tokmap_error *error)
{
    const uint64_t frames = index_frames(index);
    assert(number < frames);
    const uint64_t end = index->sealed_bytes - (SEEK_HEAD + frames * SEEK_ENTRY + SEEK_FOOT);
    if (entry->end <= before || entry->end - before > FRAME_STORED_MOST || entry->end > end ||
        (number + 1 == frames && entry->end != end))
        return error_set(error, TOKMAP_ERROR_CORRUPT, index->path, index_frame_at(index, number),
                         "frame %" PRIu64 " of the sealed tokens is at bytes %" PRIu64 "..%" PRIu64
                         " of their file, which cannot be: the index is damaged; run `tokmap verify`, and restore it "
                         "from a good copy, or pack the shard again",
                         number, before, entry->end);
    *frame = (struct sealed_frame){
        .number = number,
        .at = before,
        .stored = (uint32_t)(entry->end - before),
        .bytes = (uint32_t)min64(FRAME_BYTES, index->token_bytes - number * FRAME_BYTES),
        .hash = entry->hash,
    };
    return TOKMAP_OK;
}

enum tokmap_status sealed_frame_find(const struct index *index, uint64_t number, struct sealed_frame *frame,
                                     struct tokmap_error *error)
{
    struct frame_entry entries[2] = {{0, 0}};
    const enum tokmap_status status =
        index_frame_entries(index, number - (number > 0), 1 + (number > 0), &entries[number == 0], error);
    return status ? status : sealed_frame_check(index, number, entries[0].end, &entries[1], frame, error);
}

enum tokmap_status sealed_load(const char *path, struct tokmap_error *error)
{
    char reason[LIBRARY_REASON];
    return library_load(&libzstd_library, reason, sizeof reason)
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "sealed tokens are compressed with zstd, whose library cannot be loaded (%s); install it "
                           "(apt-get install %s)",
                           reason, libzstd_library.package);
}

struct sealed_reader *sealed_reader_new(void)
{
    struct sealed_reader *reader = sealed_load(NULL, NULL) ? NULL : malloc(sizeof *reader);
    if (!reader)
        return NULL;
    reader->zstd = libzstd.ZSTD_createDCtx();
    reader->frame = NO_FRAME;
    if (reader->zstd)
        return reader;
    free(reader);
    return NULL;
}

void sealed_reader_free(struct sealed_reader *reader)
{
    if (reader)
        (void)libzstd.ZSTD_freeDCtx(reader->zstd);
    free(reader);
}

/* Unpacks a frame. What zstd would also accept, frames of its old formats, skippable frames, and several frames, is not
 * what `tokmap seal` writes, and has paths in zstd that are used little. */
static const char *unpack(struct sealed_reader *reader, const struct sealed_frame *frame, const uint8_t *stored,
                          uint8_t *into)
{
    if (frame->stored < 4 || load32(stored) != ZSTD_MAGICNUMBER)
        return "it is not a frame of zstd";
    const size_t whole = libzstd.ZSTD_findFrameCompressedSize(stored, frame->stored);
    if (libzstd.ZSTD_isError(whole))
        return libzstd.ZSTD_getErrorName(whole);
    if (whole != frame->stored)
        return "the frame of zstd ends before";
    const size_t got = libzstd.ZSTD_decompressDCtx(reader->zstd, into, frame->bytes, stored, frame->stored);
    if (libzstd.ZSTD_isError(got))
        return libzstd.ZSTD_getErrorName(got);
    if (got != frame->bytes)
        return "it has fewer tokens than the index says";
    return hash64(into, frame->bytes) == frame->hash ? NULL : "its tokens do not match their hash in the index";
}

enum tokmap_status sealed_unpack(struct sealed_reader *reader, const char *path, const struct sealed_frame *frame,
                                 const uint8_t *stored, uint8_t *into, struct tokmap_error *error)
{
    assert(frame->bytes <= FRAME_BYTES && frame->stored <= FRAME_STORED_MOST);
    const char *fault = unpack(reader, frame, stored, into ? into : reader->bytes);
    if (!fault)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_CORRUPT, path, frame->at,
                     "frame %" PRIu64 ", bytes %" PRIu64 "..%" PRIu64
                     " of this file, cannot be unpacked: %s; the file was damaged, changed, or exchanged; " REMEDY,
                     frame->number, frame->at, frame->at + frame->stored, fault);
}

static enum tokmap_status read_bytes(const struct index *index, const char *path, int fd, uint64_t at, size_t count,
                                     uint8_t *into, struct tokmap_error *error)
{
    size_t got = 0;
    const int system = os_pread(fd, into, count, at, &got);
    if (system)
        return error_set_system(error, system, path, at, "the sealed tokens cannot be read");
    if (got < count)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, at + got,
                         "the file ends at this byte, but its index says %" PRIu64
                         " bytes; it has been truncated since it was opened: " REMEDY,
                         index->sealed_bytes);
    return TOKMAP_OK;
}

enum tokmap_status sealed_read(struct sealed_reader *reader, const struct index *index, const char *path, int fd,
                               uint64_t at, uint64_t count, void *into, struct tokmap_error *error)
{
    uint8_t *to = into;
    assert(at <= index->token_bytes && count <= index->token_bytes - at);
    assert(index_is_sealed(index));
    while (count) {
        const uint64_t number = at / FRAME_BYTES, skip = at % FRAME_BYTES;
        const uint64_t part = min64(count, FRAME_BYTES - skip);
        if (reader->frame != number || reader->index != index) {
            struct sealed_frame frame;
            enum tokmap_status status = sealed_frame_find(index, number, &frame, error);
            if (!status)
                status = read_bytes(index, path, fd, frame.at, frame.stored, reader->stored, error);
            const bool whole = part == frame.bytes; /* is unpacked to where it is wanted */
            if (!whole)
                reader->frame = NO_FRAME;
            if (!status)
                status = sealed_unpack(reader, path, &frame, reader->stored, whole ? to : reader->bytes, error);
            if (status)
                return status;
            if (!whole) {
                reader->frame = number;
                reader->index = index;
                memcpy(to, reader->bytes + skip, (size_t)part);
            }
        } else {
            memcpy(to, reader->bytes + skip, (size_t)part);
        }
        at += part;
        to += part;
        count -= part;
    }
    return TOKMAP_OK;
}

enum tokmap_status sealed_table_compare(const struct index *index, const char *path, uint64_t at, uint64_t count,
                                        const uint8_t *bytes, struct tokmap_error *error)
{
    assert(index_is_sealed(index));
    const uint64_t frames = index_frames(index), table = SEEK_ENTRY * frames + SEEK_FOOT, end = at + count;
    const uint64_t begin = index->sealed_bytes - table - SEEK_HEAD;
    for (uint64_t from = max64(at, begin), to; from < end; from = to) {
        /* Number 0 is the head, which is as long as an entry; the one after the entries is the foot. */
        const uint64_t number = min64((from - begin) / SEEK_ENTRY, frames + 1), part = begin + number * SEEK_ENTRY;
        uint8_t wanted[SEEK_FOOT] = {0};
        if (number == 0) {
            store32(wanted, SEEK_HEAD_MAGIC);
            store32(wanted + 4, (uint32_t)table);
        } else if (number <= frames) {
            struct sealed_frame frame;
            const enum tokmap_status status = sealed_frame_find(index, number - 1, &frame, error);
            if (status)
                return status;
            store32(wanted, frame.stored);
            store32(wanted + 4, frame.bytes);
        } else {
            store32(wanted, (uint32_t)frames);
            store32(wanted + 5, SEEK_FOOT_MAGIC);
        }
        to = min64(part + (number > frames ? SEEK_FOOT : SEEK_ENTRY), end);
        if (memcmp(wanted + (from - part), bytes + (from - at), (size_t)(to - from)) != 0)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, from,
                             "the seek table, from byte %" PRIu64
                             " on, does not match the index here: tokmap does not need it, but other programs that "
                             "read sealed tokens do; restore the file, or unseal the shard and seal it again",
                             begin);
    }
    return TOKMAP_OK;
}

enum tokmap_status sealed_table_check(const struct index *index, const char *path, int fd, struct tokmap_error *error)
{
    assert(index_is_sealed(index));
    uint8_t bytes[TABLE_AT_ONCE];
    uint64_t at = index->sealed_bytes - (SEEK_HEAD + index_frames(index) * SEEK_ENTRY + SEEK_FOOT);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t count; at < index->sealed_bytes && !status; at += count) {
        count = min64(index->sealed_bytes - at, sizeof bytes);
        status = read_bytes(index, path, fd, at, (size_t)count, bytes, error);
        if (!status)
            status = sealed_table_compare(index, path, at, count, bytes, error);
    }
    return status;
}
