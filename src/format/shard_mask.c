/* SPDX-License-Identifier: MIT */
/*
 * shard_mask.c - see shard_mask.h.
 *
 * An index is written from front to back, so a section cannot be added to it in place. The new index is a copy of the
 * old one, section by section, with the section streams before the last one. The mask gets its name before the index
 * that describes it does, as shard_commit.h says, so an index with a section streams always belongs to its mask.
 */
#include "shard_mask.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bit_copy.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "partial_file.h"
#include "platform/os.h"
#include "shard_commit.h"
#include "text/path.h"

/* ---- the writer of a mask ---- */

/* Bits are collected in a block of 1 MiB, which is hashed and written when it is full. */
#define BLOCK_BITS (8 * BLOCK_BYTES)

int mask_writer_init(struct mask_writer *writer, int fd, const char *folder)
{
    *writer = (struct mask_writer){.fd = fd, .block = calloc(1, BLOCK_BYTES)};
    spill_init(&writer->hashes, folder);
    return writer->block ? 0 : ENOMEM;
}

void mask_writer_free(struct mask_writer *writer)
{
    if (!writer->block)
        return;
    spill_free(&writer->hashes);
    free(writer->block);
    writer->block = NULL;
}

/* Hashes and writes the first `count` bytes of the block, and empties it. */
static int write_block(struct mask_writer *writer, size_t count)
{
    const uint64_t hash = hash64(writer->block, count);
    int system = spill_add(&writer->hashes, &hash, sizeof hash);
    if (!system && writer->fd >= 0)
        system = os_pwrite(writer->fd, writer->block, count, writer->written);
    writer->written += count;
    memset(writer->block, 0, count);
    return system;
}

int mask_writer_add(struct mask_writer *writer, const uint8_t *bits, uint64_t first, uint64_t count)
{
    int system = 0;
    while (count && !system) {
        const uint64_t at = writer->tokens % BLOCK_BITS, part = min64(count, BLOCK_BITS - at);
        bit_copy(writer->block, at, bits, first, part);
        writer->tokens += part;
        first += part;
        count -= part;
        if (writer->tokens % BLOCK_BITS == 0)
            system = write_block(writer, BLOCK_BYTES);
    }
    return system;
}

int mask_writer_flush(const struct mask_writer *writer)
{
    assert(writer->fd >= 0);
    return os_pwrite(writer->fd, writer->block, (size_t)div_ceil(writer->tokens % BLOCK_BITS, 8), writer->written);
}

int mask_writer_restore(struct mask_writer *writer, uint64_t tokens)
{
    const uint64_t written = tokens / BLOCK_BITS * BLOCK_BYTES, left = div_ceil(tokens % BLOCK_BITS, 8);
    size_t got = 0;
    assert(!writer->tokens);
    if (spill_bytes(&writer->hashes) != tokens / BLOCK_BITS * sizeof(uint64_t))
        return EINVAL;
    int system = os_pread(writer->fd, writer->block, (size_t)left, written, &got);
    if (!system && got < left)
        system = EINVAL;
    if (!system)
        system = os_truncate(writer->fd, written + left);
    if (left && tokens % 8)
        writer->block[left - 1] &= (uint8_t)((1U << tokens % 8) - 1);
    writer->tokens = tokens;
    writer->written = written;
    spill_restored(&writer->hashes);
    return system;
}

int mask_writer_finish(struct mask_writer *writer, struct index_writer *index)
{
    const uint64_t left = div_ceil(writer->tokens % BLOCK_BITS, 8);
    const int system = left ? write_block(writer, (size_t)left) : 0;
    const struct {
        uint64_t count;
        struct stream_entry entry;
    } head = {1, {STREAM_MASK, 1, writer->written}};
    assert(system || writer->written == div_ceil(writer->tokens, 8));
    return system ? system : index_writer_section(index, SECTION_STREAMS, &head, sizeof head, &writer->hashes);
}

/* ---- a mask for a shard that exists ---- */

#define READ_BYTES ((size_t)1 << 18)

struct adding {
    struct index old;
    const char *from_path;
    char *mask_path, *mask_partial, *tokens_path, *sealed_path, *index_partial, *folder;
    int from_fd, mask_fd, index_fd;
    bool mask_made, index_made; /* the partial files are ours to remove */
    bool bytes_each;            /* the given file has a byte for each token */
    struct index_writer index;
    struct mask_writer mask;
    uint8_t *buffer, *bits; /* READ_BYTES, and an eighth of it */
    struct shard_mask_result *result;
    struct tokmap_error *error;
};

static enum tokmap_status cannot_write(struct adding *adding, int system, const char *path)
{
    return index_copy_failed(system, path, "the mask or its index", adding->error);
}

static enum tokmap_status open_given(struct adding *adding)
{
    struct os_stat found;
    const uint64_t tokens = adding->old.shard.tokens, bytes = div_ceil(tokens, 8);
    int system = os_open(adding->from_path, OS_READ_NOW, &adding->from_fd);
    if (system) {
        adding->from_fd = -1;
        return error_set_system(adding->error, system, adding->from_path, TOKMAP_NO_OFFSET,
                                "the mask cannot be opened");
    }
    system = os_fstat(adding->from_fd, &found);
    if (system)
        return error_set_system(adding->error, system, adding->from_path, TOKMAP_NO_OFFSET,
                                "the mask cannot be examined");
    adding->bytes_each = found.bytes != bytes;
    if (found.kind != OS_KIND_FILE || (found.bytes != bytes && found.bytes != tokens))
        return error_set(adding->error, TOKMAP_ERROR_FORMAT, adding->from_path, min64(found.bytes, tokens),
                         "a mask of %" PRIu64 " tokens is a file of %" PRIu64
                         " bytes (one for each token, 0 or 1) or of "
                         "%" PRIu64 " bytes (one bit for each token), but this file has %" PRIu64,
                         tokens, tokens, bytes, found.bytes);
    return TOKMAP_OK;
}

static struct shard_commit commit_of(const struct adding *adding)
{
    return (struct shard_commit){.index = adding->old.path,
                                 .index_partial = adding->index_partial,
                                 .names = {adding->mask_path, adding->tokens_path, adding->sealed_path},
                                 .partials = {adding->mask_partial},
                                 .sync = true};
}

/* Turns bytes of the given file into bits. Returns the first byte that is neither 0 nor 1, or `count`. */
static uint64_t pack_bits(const uint8_t *bytes, uint64_t count, uint8_t *bits)
{
    memset(bits, 0, (size_t)div_ceil(count, 8));
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] > 1)
            return i;
        bits[i / 8] |= (uint8_t)(bytes[i] << (i % 8));
    }
    return count;
}

static enum tokmap_status read_mask(struct adding *adding)
{
    const uint64_t tokens = adding->old.shard.tokens;
    const uint64_t at_once = adding->bytes_each ? READ_BYTES : 8 * (uint64_t)READ_BYTES;
    for (uint64_t at = 0; at < tokens; at += at_once) {
        const uint64_t count = min64(tokens - at, at_once), offset = adding->bytes_each ? at : at / 8;
        const size_t bytes = (size_t)(adding->bytes_each ? count : div_ceil(count, 8));
        size_t got = 0;
        int system = os_pread(adding->from_fd, adding->buffer, bytes, offset, &got);
        if (system || got < bytes)
            return error_set_system(adding->error, system ? system : EIO, adding->from_path, offset + got,
                                    "the mask cannot be read%s", system ? "" : "; it became shorter");
        const uint8_t *bits = adding->buffer;
        if (adding->bytes_each) {
            const uint64_t good = pack_bits(adding->buffer, count, adding->bits);
            if (good < count)
                return error_set(adding->error, TOKMAP_ERROR_FORMAT, adding->from_path, at + good,
                                 "the byte of token %" PRIu64
                                 " is %u, but it must be 1 (the token counts) or 0 (it does not)",
                                 at + good, adding->buffer[good]);
            bits = adding->bits;
        } else if (count % 8 && bits[bytes - 1] >> (count % 8)) {
            return error_set(adding->error, TOKMAP_ERROR_FORMAT, adding->from_path, offset + bytes - 1,
                             "a bit behind that of the last token is not 0; this is not a mask of %" PRIu64 " tokens",
                             tokens);
        }
        for (uint64_t i = 0; i < div_ceil(count, 8); i++)
            adding->result->counted += (uint64_t)__builtin_popcount(bits[i]);
        system = mask_writer_add(&adding->mask, bits, 0, count);
        if (system)
            return cannot_write(adding, system, adding->mask_partial);
    }
    adding->result->tokens = tokens;
    return TOKMAP_OK;
}

/* Copies one section of the old index, comparing its hash. */
static enum tokmap_status copy_section(struct adding *adding, const struct index_entry *entry)
{
    int system;
    const enum tokmap_status status = index_copy_section(&adding->old, entry, &adding->index, &system, adding->error);
    return system ? cannot_write(adding, system, adding->index_partial) : status;
}

static enum tokmap_status write_index(struct adding *adding)
{
    enum tokmap_status status = TOKMAP_OK;
    const uint32_t sections = index_sections(&adding->old);
    for (int shard = 0; shard < 2 && !status; shard++) { /* the shard section comes last */
        for (uint32_t i = 0; i < sections && !status; i++) {
            struct index_entry entry;
            index_section_entry(&adding->old, i, &entry);
            if (entry.type != SECTION_STREAMS && (entry.type == SECTION_SHARD) == shard)
                status = copy_section(adding, &entry);
        }
        int system = status || shard ? 0 : mask_writer_finish(&adding->mask, &adding->index);
        if (system)
            status = cannot_write(adding, system, adding->mask_partial);
    }
    int system = status ? 0 : index_writer_finish(&adding->index);
    if (!status && !system)
        system = os_sync(adding->mask_fd);
    if (!status && !system)
        system = os_sync(adding->index_fd);
    return system ? cannot_write(adding, system, adding->index_partial) : status;
}

static enum tokmap_status rename_both(struct adding *adding)
{
    const struct shard_commit commit = {.index = adding->old.path,
                                        .index_partial = adding->index_partial,
                                        .names = {[SHARD_MASK] = adding->mask_path},
                                        .partials = {[SHARD_MASK] = adding->mask_partial},
                                        .id = adding->index.id,
                                        .sync = true};
    bool visible;
    const enum tokmap_status status = shard_commit(&commit, &visible, adding->error);
    if (visible)
        adding->mask_made = adding->index_made = false;
    return status;
}

static enum tokmap_status prepare(struct adding *adding)
{
    const char *path = adding->old.path;
    adding->mask_path = shard_file_beside(path, SHARD_MASK, SHARD_FINAL);
    adding->mask_partial = shard_file_beside(path, SHARD_MASK, SHARD_PARTIAL);
    adding->index_partial = shard_file_beside(path, SHARD_INDEX, SHARD_PARTIAL);
    adding->tokens_path = shard_file_beside(path, SHARD_TOKENS, SHARD_FINAL);
    adding->sealed_path = shard_file_beside(path, SHARD_SEALED, SHARD_FINAL);
    adding->folder = path_folder(path);
    adding->buffer = malloc(READ_BYTES + READ_BYTES / 8);
    if (!adding->mask_path || !adding->mask_partial || !adding->index_partial || !adding->tokens_path ||
        !adding->sealed_path || !adding->folder || !adding->buffer)
        return error_set_memory(adding->error, "a mask", READ_BYTES);
    adding->bits = adding->buffer + READ_BYTES;
    enum tokmap_status status = open_given(adding);
    const struct shard_commit commit = commit_of(adding);
    if (!status)
        status = shard_commit_lock(&commit, &adding->old, "the mask or its index", &adding->index_fd, adding->error);
    adding->index_made = adding->index_fd >= 0;
    if (!status) {
        const int system = partial_file_open(adding->mask_partial, NULL, NULL, &adding->mask_fd);
        adding->mask_made = !system;
        status = system ? cannot_write(adding, system, adding->mask_partial) : TOKMAP_OK;
    }
    if (!status && (index_writer_init(&adding->index, adding->index_fd) ||
                    mask_writer_init(&adding->mask, adding->mask_fd, adding->folder)))
        status = error_set_memory(adding->error, "a mask", READ_BYTES);
    return status;
}

static void finish(struct adding *adding)
{
    if (adding->mask_made)
        (void)os_unlink(adding->mask_partial);
    if (adding->index_made)
        (void)os_unlink(adding->index_partial);
    mask_writer_free(&adding->mask);
    index_writer_free(&adding->index);
    os_close(adding->from_fd);
    os_close(adding->mask_fd);
    os_close(adding->index_fd);
    free(adding->mask_path);
    free(adding->mask_partial);
    free(adding->index_partial);
    free(adding->tokens_path);
    free(adding->sealed_path);
    free(adding->folder);
    free(adding->buffer);
    index_close(&adding->old);
}

enum tokmap_status shard_mask_add(const char *index_path, const char *mask_path, bool replace,
                                  struct shard_mask_result *result, struct tokmap_error *error)
{
    struct adding adding = {
        .from_path = mask_path, .from_fd = -1, .mask_fd = -1, .index_fd = -1, .result = result, .error = error};
    *result = (struct shard_mask_result){0, 0};
    enum tokmap_status status = index_open(&adding.old, index_path, error);
    if (status)
        return status;
    if (adding.old.streams.offset && !replace)
        status = error_set(error, TOKMAP_ERROR_EXISTS, index_path, TOKMAP_NO_OFFSET,
                           "the shard already has a mask; replace it");
    if (!status)
        status = prepare(&adding);
    if (!status)
        status = read_mask(&adding);
    if (!status)
        status = write_index(&adding);
    if (!status)
        status = rename_both(&adding);
    finish(&adding);
    return status;
}
