/* SPDX-License-Identifier: MIT */
/*
 * store_way.h - how a producer stores rows: through its caches, or around them (copy.h).
 *
 * Which way is better depends on where the consumer runs. If its processor shares a cache with the producer's, it reads
 * rows from that cache in less than half the time that it reads them from memory. If they share none, each line has to
 * be taken from the caches of the other processor, to be stored or to be read, which takes four times as long. And rows
 * of a ring that is larger than the caches go to memory in any case, which costs more traffic if they go through the
 * caches. The kernel can move the threads at any time, and a virtual machine does not know where its processors are.
 *
 * So the other way is tried in each round of batches, for more batches in a row than the ring has slots: until then,
 * the slots are where the usual way left them, in a cache or in memory. What counts is how long next() takes on the
 * consumer's side: the wait for a batch, and turning it into outputs. That is the time of a whole pipeline if the
 * consumer does nothing else, and that of reading the rows if it has other work, while the producer is ahead.
 *
 * Example: with 32 slots, a round has 1,280 batches, of which the last 40 are stored around the caches. next() takes
 * 170 us for batches 1,233 to 1,240 together, and 40 us for batches 1,273 to 1,280. When three rounds in a row have
 * found that, all but 40 batches of a round are stored around the caches.
 *
 * A wait may have other reasons, such as storage, or a thread that was stopped. They seldom slow the same way down in
 * three rounds.
 *
 * Measured where processors share no cache (Zen 4), in G tokens/s through the caches, around them, and
 * chosen: 4.3, 3.0, and 4.4 with 16 rows of 2,047 tokens; 2.5, 3.7, and 3.1 with 64 rows of 8,191. A first form added
 * the times in which single batches were filled and read. It kept large batches in the caches, because a single batch
 * does not show what many in a row save.
 */
#ifndef TOKMAP_LOADER_STORE_WAY_H
#define TOKMAP_LOADER_STORE_WAY_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_WAY_SHARE 32        /* one batch in so many is stored in the other way */
#define STORE_WAY_TIMED 8         /* the last of them in a round are timed, and as many before the first of them */
#define STORE_WAY_WINS 3          /* rounds in a row in which the other way has to be faster */
#define STORE_WAY_SLOTS_MOST 4096 /* a larger ring is not waited for */

struct store_way {
    bool bypass;             /* atomic: most batches are stored around the caches; the consumer changes it */
    uint32_t tried;          /* batches of a round that are stored in the other way */
    uint32_t batches;        /* for the producer: of this round */
    uint64_t ns[2], rows[2]; /* for the consumer: of batches that were stored through the caches, and around them:
                                the time, and the bytes of their rows */
    uint32_t taken[2];       /* for the consumer: how many these are */
    uint32_t wins;           /* for the consumer: rounds in a row */
};

/* slots: of the ring, at least 1. */
void store_way_init(struct store_way *way, uint32_t slots);

/* For the producer: begins a batch. *timed: the consumer is to report how long it takes. Returns whether the batch is
 * stored around the caches. */
bool store_way_begin(struct store_way *way, bool *timed);

/* For the consumer: a timed batch with `bytes` bytes of rows, stored in one way (bypass: around the caches), took `ns`.
 */
void store_way_taken(struct store_way *way, bool bypass, uint64_t ns, uint64_t bytes);

#endif
