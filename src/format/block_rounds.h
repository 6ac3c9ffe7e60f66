/* SPDX-License-Identifier: MIT */
/*
 * block_rounds.h - works on the blocks of a shard in several threads, and takes what they made in the order of the
 * blocks.
 *
 * In each round, threads work on the next blocks, at most `slots` of them, and when all are done, the calling thread
 * takes them one after the other. So what is taken does not depend on the number of threads.
 *
 * Example with 2 threads, 4 slots, and 6 blocks: the threads work on blocks 0 to 3 as 0, 2, 3 and 1, in slots 0 to 3;
 * blocks 0 to 3 are taken; the threads work on blocks 4 and 5, in slots 0 and 1; these are taken.
 */
#ifndef TOKMAP_FORMAT_BLOCK_ROUNDS_H
#define TOKMAP_FORMAT_BLOCK_ROUNDS_H

#include "tokmap/tokmap.h"

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

#endif
