/* SPDX-License-Identifier: MIT */
/*
 * frames_writer.h - writes the tokens of a sealed shard, NAME.bin.zst: independent zstd frames of 64 KiB, and the seek
 * table at the end (FORMAT.md, section frames).
 *
 * The tokens come in blocks of 1 MiB, which threads compress to 16 frames each. At the usual level, token_repeats.h
 * finds what repeats, and zstd encodes it; at other levels, zstd does both. Every frame is unpacked again and compared
 * before it is written. The bytes depend on the tokens and the level alone, not on the number of threads.
 */
#ifndef TOKMAP_FORMAT_FRAMES_WRITER_H
#define TOKMAP_FORMAT_FRAMES_WRITER_H

#include <stdbool.h>

#include "index_writer.h"

/* Works on the blocks of a shard in several threads, and takes what they made in the order of the blocks.
 *
 * In each round, threads work on the next blocks, at most `slots` of them, and when all are done, the calling thread
 * takes them one after the other. So what is taken does not depend on the number of threads.
 *
 * Example with 2 threads, 4 slots, and 6 blocks: the threads work on blocks 0 to 3 as 0, 2, 3 and 1, in slots 0 to 3;
 * blocks 0 to 3 are taken; the threads work on blocks 4 and 5, in slots 0 and 1; these are taken. */
struct block_rounds {
    const char *name; /* of the threads */
    uint64_t blocks;
    uint32_t threads, slots; /* at least 1 each */
    /* Works on a block, in any thread. No two calls at the same time have the same worker, and no two of a round the
     * same slot; both are numbers below `threads` and `slots`. */
    void (*work)(void *user, uint32_t worker, uint32_t slot, uint64_t block);
    /* Takes a block that was worked on. A status other than OK ends the work with it. */
    enum tokmap_status (*take)(void *user, uint32_t slot, uint64_t block, struct tokmap_error *error);
    /* Is called after each round with the number of blocks that were taken so far. As take(). */
    enum tokmap_status (*taken)(void *user, uint64_t blocks, struct tokmap_error *error);
    void *user;
};

/* Does all rounds. Statuses: OK, those of take() and taken(). */
enum tokmap_status block_rounds_run(const struct block_rounds *rounds, struct tokmap_error *error);

#define FRAMES_BLOCKS_PER_THREAD 4 /* in memory: each takes about 2.1 MiB */

struct frames_options {
    const char *folder; /* of unnamed files; must outlive struct frames */
    const char *path;   /* of the new file, for messages */
    int fd;             /* of the new file, which is empty */
    uint64_t token_bytes;
    uint32_t width;   /* of a token */
    int level;        /* of zstd, 1 to 19 */
    uint32_t threads; /* at least 1 */
    bool sync;
    /* Reads block `block` of the tokens, of so many bytes, and compares it with its hash. worker: a number below
     * `threads`; no two calls at the same time have the same one. */
    enum tokmap_status (*read)(void *user, uint32_t worker, uint64_t block, uint8_t *tokens, size_t bytes,
                               struct tokmap_error *error);
    /* Is called by the calling thread with the bytes of tokens that are done; a result other than 0 ends the work with
     * ERROR_INTERRUPTED. */
    int (*progress)(void *user, uint64_t done);
    void *user;
};

struct frames {
    uint64_t bytes;       /* of the new file, so far */
    struct spill entries; /* of the section frames */
};

/* Writes the file. *frames must be zero before, and frames_free() frees it with every status. Statuses: OK, ERROR_LIMIT
 * (more tokens than the seek table can name), ERROR_INTERRUPTED, ERROR_IO, ERROR_MEMORY, and those of read(). */
enum tokmap_status frames_write(struct frames *frames, const struct frames_options *options,
                                struct tokmap_error *error);

/* Writes the section frames, after frames_write(). Returns 0 or an errno. */
int frames_section(struct frames *frames, struct index_writer *index);
void frames_free(struct frames *frames);

/* Reads a block of the tokens from a NAME.bin, and compares it: for options.read. Statuses: OK, ERROR_IO,
 * ERROR_CORRUPT. */
enum tokmap_status frames_block_read(int fd, const char *path, uint64_t block, uint64_t hash, uint8_t *tokens,
                                     size_t bytes, struct tokmap_error *error);
/* Compares a block that has been read otherwise. */
enum tokmap_status frames_block_check(const char *path, uint64_t block, uint64_t hash, const uint8_t *tokens,
                                      size_t bytes, struct tokmap_error *error);

#endif
