/* SPDX-License-Identifier: MIT */
/*
 * frames_writer.h - writes the tokens of a sealed shard, NAME.bin.zst: independent zstd frames of 64 KiB, and the seek
 * table at the end (FORMAT.md, section frames).
 *
 * The tokens come in blocks of 1 MiB, which threads compress to 16 frames each. Every frame is unpacked again and
 * compared before it is written. The bytes depend on the tokens and the level alone, not on the number of threads.
 */
#ifndef TOKMAP_FORMAT_FRAMES_WRITER_H
#define TOKMAP_FORMAT_FRAMES_WRITER_H

#include <stdbool.h>

#include "index_writer.h"
#include "tokmap/tokmap.h"

#define FRAMES_BLOCKS_PER_THREAD 4 /* in memory: each takes about 2.1 MiB */

struct frames_options {
    const char *folder; /* of unnamed files; must outlive struct frames */
    const char *path;   /* of the new file, for messages */
    int fd;             /* of the new file, which is empty */
    uint64_t token_bytes;
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
