/* SPDX-License-Identifier: MIT */
/* shard_seal.h - seals a shard, whose tokens are compressed then, and unseals it. For one thread at a time. */
#ifndef TOKMAP_FORMAT_SHARD_SEAL_H
#define TOKMAP_FORMAT_SHARD_SEAL_H

#include <stdbool.h>

#include "token_repeats.h"
#include "tokmap/tokmap.h"

#define SEAL_LEVEL TOKEN_REPEATS_LEVEL /* the level that `tokmap seal` uses unless another one is given */
#define SEAL_LEVEL_MOST 19

struct shard_seal_options {
    bool unseal;
    bool replace;     /* seals a sealed shard again, and replaces or separates files that the shard does not need: see
                         below */
    int level;        /* of zstd, 1 to SEAL_LEVEL_MOST */
    uint32_t threads; /* that compress or unpack, at least 1; the bytes do not depend on it */
    /* Is called with the bytes of tokens that are done, and all of them, by the calling thread; a result other than 0
     * ends the work with ERROR_INTERRUPTED. May be NULL. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

struct shard_seal_result {
    bool changed; /* false: the shard was already what was wanted */
    uint64_t tokens;
    uint64_t token_bytes;  /* of NAME.bin */
    uint64_t sealed_bytes; /* of NAME.bin.zst */
};

/* Seals the shard with the index NAME.tmx: writes NAME.bin.zst and a new NAME.tmx, and removes NAME.bin; or unseals it.
 * Every block of the tokens is compared with its hash on the way, and every compressed frame is unpacked and compared
 * before it is written. A kill at any moment leaves the shard in one of the two forms (shard_commit.h). A dataset that
 * is open continues to read what it has opened. The content id stays.
 * Statuses: OK, ERROR_UNSUPPORTED (the index belongs to a file of another project), ERROR_EXISTS (without replace:
 * there is a file with the new name that does not belong to the shard, or NAME.idx, which needs NAME.bin), ERROR_BUSY
 * (another process writes this shard), ERROR_CORRUPT (tokens do not match their hashes; nothing was changed),
 * ERROR_LIMIT, ERROR_INTERRUPTED, ERROR_IO, ERROR_NOT_FOUND, ERROR_TRUNCATED, ERROR_MEMORY, and those of opening an
 * index. */
enum tokmap_status shard_seal(const char *index_path, const struct shard_seal_options *options,
                              struct shard_seal_result *result, struct tokmap_error *error);

#endif
