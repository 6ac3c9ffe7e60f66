/* SPDX-License-Identifier: MIT */
/*
 * token_parts.h - the tokens of a shard in parts that fit in the cache, as ids of the shard's width, whatever file they
 * come from: for verify and index, which read all of them.
 *
 * Positions are bytes of the *stream* of a shard's tokens, which is what its blocks are counted in: token i is at i *
 * width. For a .bin the stream is the file. A reader belongs to one thread at a time.
 */
#ifndef TOKMAP_DATASET_TOKEN_PARTS_H
#define TOKMAP_DATASET_TOKEN_PARTS_H

#include "block_scan.h"
#include "format/sealed.h"
#include "opened_dataset.h"

enum token_way { BY_PREAD, BY_MAPPING };

struct token_parts {
    void *buffer;                 /* PART_BUFFER bytes */
    void *raw;                    /* the same, for elements that are converted; NULL until the first of them */
    struct sealed_reader *sealed; /* for sealed tokens; NULL until the first of them */
    struct block_scan *scan;      /* for the blocks that the thread reads */
    struct tokmap_error failure;  /* see token_parts_read() */
    uint64_t units;               /* units of tokens so far */
    double cost[2];               /* recent nanoseconds per byte of each method; faster units count more */
};

/* Calls work(user, parts) in several threads, each with parts of its own: `threads`, or 0 for one for each processor,
 * but no more than there are units of work. A thread without memory leaves its share to the others. name: of the
 * threads. what: the buffers, for the error. Statuses: OK, ERROR_MEMORY (the first thread has none). */
enum tokmap_status token_parts_share(const char *name, const char *what, uint64_t threads, uint64_t units,
                                     void (*work)(void *user, struct token_parts *parts), void *user,
                                     struct tokmap_error *error);

/* Reads `count` bytes (at most 1 MiB, whole tokens) of the stream from `at` on, or finds them in the mapping of the
 * file (dataset_shard_map()), which may be NULL. Returns 0; an errno; TOKEN_PARTS_BAD for an element that is not an id;
 * or TOKEN_PARTS_FAILED: sealed tokens are damaged or cannot be read, and parts->failure says why. *got: bytes of the
 * stream; less than `count` if the file ends there, or at the element that is not an id. */
enum { TOKEN_PARTS_BAD = -1, TOKEN_PARTS_FAILED = -2 };
int token_parts_read(struct token_parts *parts, const struct shard *shard, const uint8_t *mapping, uint64_t at,
                     size_t count, const uint8_t **part, size_t *got);

/* Chooses how the thread reads its next unit of several MiB. mapped: a mapping may be used. */
enum token_way token_parts_way(struct token_parts *parts, bool mapped);
/* Records the cost of a unit in nanoseconds per byte. */
void token_parts_note(struct token_parts *parts, enum token_way way, double cost);

/* Returns where a position of the stream is in the file; of a sealed file, in what it is unpacked to. */
static inline uint64_t stream_place(const struct shard *shard, uint64_t at)
{
    return shard->store.offset + (at / shard->index.shard.width << element_shift(shard->store.element));
}

/* Returns the bytes of the stream that a file of `bytes` bytes has. */
static inline uint64_t stream_bytes(const struct shard *shard, uint64_t bytes)
{
    if (bytes >= shard->store.bytes)
        return shard->index.token_bytes;
    if (shard->store.sealed) /* which frames are left could be found out, but they cannot be used */
        return 0;
    if (bytes <= shard->store.offset)
        return 0;
    const uint64_t tokens = (bytes - shard->store.offset) >> element_shift(shard->store.element);
    return tokens * shard->index.shard.width;
}

/* Returns the blocks of the stream. */
static inline uint64_t stream_blocks(const struct shard *shard)
{
    return shard->index.token_bytes / BLOCK_BYTES + (shard->index.token_bytes % BLOCK_BYTES != 0);
}

#endif
