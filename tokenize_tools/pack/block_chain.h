/*
 * block_chain.h - many lists of records in one file without a name, which disappears when it is closed or the process
 * ends, however it ends.
 *
 * A list is a chain of blocks of 64 KiB, written one after the other; only its last block is in memory. A list that has
 * been read gives its blocks back, and other lists use them, so the file is not larger than the most that the lists
 * have had at one time. One thread at a time uses a file and its lists.
 */
#ifndef TOKMAP_PACK_BLOCK_CHAIN_H
#define TOKMAP_PACK_BLOCK_CHAIN_H

#include "tokmap/tokmap.h"

#define CHAIN_BLOCK ((uint32_t)64 << 10)

struct block_file {
    const char *folder; /* in which the file is; owned by the caller */
    int fd;             /* -1 until a block is written */
    uint32_t blocks;    /* the file has so many */
    uint32_t *unused;   /* blocks that no list has */
    uint64_t unused_count, unused_capacity;
};

void block_file_init(struct block_file *file, const char *folder);
void block_file_free(struct block_file *file);

/* A list of records of one size, which divides CHAIN_BLOCK, or leaves the rest of each block unused. Begins as zero
 * bytes, except for record_bytes. */
struct block_chain {
    uint32_t record_bytes;
    uint32_t filled; /* bytes of `last` */
    uint8_t *last;   /* the block that is not written yet, NULL if it is empty */
    uint32_t *blocks;
    uint64_t block_count, block_capacity;
    uint64_t records;
};

/* Appends a record. Statuses: OK, ERROR_IO, ERROR_LIMIT (the file would have 2^32 blocks), ERROR_MEMORY. */
enum tokmap_status block_chain_add(struct block_file *file, struct block_chain *chain, const void *record,
                                   struct tokmap_error *error);

/* Writes the last block, so that the chain has no memory but that of its block numbers. Nothing can be added after it.
 * Statuses: as above. */
enum tokmap_status block_chain_end(struct block_file *file, struct block_chain *chain, struct tokmap_error *error);

/* Frees the chain's memory, so that other lists use its blocks. The chain is empty then. */
void block_chain_free(struct block_file *file, struct block_chain *chain);

/* Reads the records of a chain that has ended, in their order. Begins as zero bytes, except for `chain` and
 * buffer_bytes. */
struct chain_reader {
    const struct block_chain *chain;
    uint32_t buffer_bytes; /* how much is read at once: at most CHAIN_BLOCK, at least a record */
    uint8_t *buffer;
    uint64_t next;        /* number of the next record */
    uint64_t first, past; /* the records that are in the buffer */
};

/* Sets *record to the next record, which is valid until the next call, or to NULL at the end. Statuses: OK, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status chain_reader_next(const struct block_file *file, struct chain_reader *reader, const void **record,
                                     struct tokmap_error *error);
void chain_reader_free(struct chain_reader *reader);

#endif
