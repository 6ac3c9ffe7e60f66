/*
 * block_chain.c - see block_chain.h.
 *
 * Example with two lists: block 0 is the first one that list A fills, blocks 1 and 2 are of B, and block 3 is the next
 * one of A, whose block numbers are then 0 and 3. When A has been read, 0 and 3 are unused, and the next block that B
 * fills is written to 3.
 */
#include "block_chain.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define KEYS "the keys of the documents, which are kept in an unnamed file beside the output,"

void block_file_init(struct block_file *file, const char *folder)
{
    *file = (struct block_file){.folder = folder, .fd = -1};
}

void block_file_free(struct block_file *file)
{
    os_close(file->fd);
    free(file->unused);
    *file = (struct block_file){.folder = file->folder, .fd = -1};
}

/* Makes room for one more number in a list. */
static bool numbers_reserve(uint32_t **numbers, uint64_t count, uint64_t *capacity)
{
    if (count < *capacity)
        return true;
    const uint64_t more = 2 * *capacity + 16;
    uint32_t *grown = realloc(*numbers, (size_t)more * sizeof *grown);
    if (!grown)
        return false;
    *numbers = grown;
    *capacity = more;
    return true;
}

/* Writes the block that is in memory. */
static enum tokmap_status block_write(struct block_file *file, struct block_chain *chain, struct tokmap_error *error)
{
    if (!numbers_reserve(&chain->blocks, chain->block_count, &chain->block_capacity))
        return error_set_memory(error, "the list of blocks of a list of keys", chain->block_count * sizeof(uint32_t));
    if (file->fd < 0) {
        const int opened = os_open(file->folder, OS_WRITE_UNNAMED, &file->fd);
        if (opened) {
            file->fd = -1;
            return error_set_system(error, opened, file->folder, TOKMAP_NO_OFFSET, KEYS " cannot be written");
        }
    }
    if (!file->unused_count && file->blocks == UINT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, file->folder, TOKMAP_NO_OFFSET,
                         KEYS " need more than 2^48 bytes; pack fewer documents at once");
    const uint32_t block = file->unused_count ? file->unused[file->unused_count - 1] : file->blocks;
    const int system = os_pwrite(file->fd, chain->last, CHAIN_BLOCK, (uint64_t)block * CHAIN_BLOCK);
    if (system)
        return error_set_system(error, system, file->folder, TOKMAP_NO_OFFSET,
                                KEYS " cannot be written; the manual page says how much they need");
    if (file->unused_count)
        file->unused_count--;
    else
        file->blocks++;
    chain->blocks[chain->block_count++] = block;
    chain->filled = 0;
    return TOKMAP_OK;
}

enum tokmap_status block_chain_add(struct block_file *file, struct block_chain *chain, const void *record,
                                   struct tokmap_error *error)
{
    assert(chain->record_bytes && chain->record_bytes <= CHAIN_BLOCK);
    if (chain->filled + chain->record_bytes > CHAIN_BLOCK) {
        const enum tokmap_status status = block_write(file, chain, error);
        if (status)
            return status;
    }
    if (!chain->last && !(chain->last = calloc(1, CHAIN_BLOCK)))
        return error_set_memory(error, "a block of keys", CHAIN_BLOCK);
    memcpy(chain->last + chain->filled, record, chain->record_bytes);
    chain->filled += chain->record_bytes;
    chain->records++;
    return TOKMAP_OK;
}

enum tokmap_status block_chain_end(struct block_file *file, struct block_chain *chain, struct tokmap_error *error)
{
    const enum tokmap_status status = chain->filled ? block_write(file, chain, error) : TOKMAP_OK;
    free(chain->last);
    chain->last = NULL;
    return status;
}

void block_chain_free(struct block_file *file, struct block_chain *chain)
{
    for (uint64_t i = 0; i < chain->block_count; i++) {
        /* Without memory for its number, a block stays unused: the file is larger, and nothing is wrong. */
        if (numbers_reserve(&file->unused, file->unused_count, &file->unused_capacity))
            file->unused[file->unused_count++] = chain->blocks[i];
    }
    free(chain->last);
    free(chain->blocks);
    *chain = (struct block_chain){.record_bytes = chain->record_bytes};
}

enum tokmap_status chain_reader_next(const struct block_file *file, struct chain_reader *reader, const void **record,
                                     struct tokmap_error *error)
{
    const struct block_chain *chain = reader->chain;
    const uint64_t each = chain->record_bytes, in_block = CHAIN_BLOCK / each;
    assert(!chain->last && reader->buffer_bytes >= each && reader->buffer_bytes <= CHAIN_BLOCK);
    *record = NULL;
    if (reader->next == chain->records)
        return TOKMAP_OK;
    if (!reader->buffer && !(reader->buffer = malloc(reader->buffer_bytes)))
        return error_set_memory(error, "a block of keys", reader->buffer_bytes);
    if (reader->next >= reader->past) {
        const uint64_t block = chain->blocks[reader->next / in_block], inside = reader->next % in_block;
        const uint64_t count =
            min64(min64(reader->buffer_bytes / each, in_block - inside), chain->records - reader->next);
        size_t got = 0;
        const int system =
            os_pread(file->fd, reader->buffer, (size_t)(count * each), block * CHAIN_BLOCK + inside * each, &got);
        if (system || got < count * each)
            return error_set_system(error, system ? system : EIO, file->folder, TOKMAP_NO_OFFSET,
                                    KEYS " cannot be read");
        reader->first = reader->next;
        reader->past = reader->next + count;
    }
    *record = reader->buffer + (reader->next++ - reader->first) * each;
    return TOKMAP_OK;
}

void chain_reader_free(struct chain_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
}
