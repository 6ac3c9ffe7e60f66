/* SPDX-License-Identifier: MIT */
/* mask_writer.c - see mask_writer.h. Bits are collected in a block of 1 MiB, which is hashed and written when it is
 * full. */
#include "mask_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bit_copy.h"
#include "common/hash.h"
#include "platform/os.h"

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
    assert(writer->fd >= 0);
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
