/*
 * store_way.h - how a producer stores rows: through its caches, or past them (copy.h).
 *
 * Which way is better depends on where the consumer runs. If its processor shares a cache with the producer's, it reads
 * rows from that cache in less than half the time that it reads them from memory. If they share none, each line has to
 * be taken from the caches of the other processor, to be stored or to be read, which takes four times as long. The
 * kernel can move the threads at any time, and a virtual machine does not know where its processors are. So a few
 * batches are stored in the other way. The producer measures how long it takes to fill some batches of each way, and
 * the consumer how long it takes to turn them into outputs. The way with the smaller sum is better.
 *
 * Example: a round has 128 batches, of which 8 are stored past the caches. The fastest of these took 4 us and 4 us, and
 * the fastest of 8 others 17 us and 4 us. From the next round on, all but 8 batches are stored past the caches.
 *
 * The fastest batch counts, because others wait for pages, storage, or the processor. Where the consumer makes no
 * outputs, because it wants pointers to rows only, or a device makes them, nothing is compared, and most rows are
 * stored through the caches.
 */
#ifndef TOKMAP_LOADER_STORE_WAY_H
#define TOKMAP_LOADER_STORE_WAY_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_WAY_ROUND 128
/* One of so many batches is stored in the other way. It is timed, and so is the one before it. */
#define STORE_WAY_TRIED 16

/* Begins with zeros. */
struct store_way {
    bool past;         /* for the producer: most batches are stored past the caches */
    uint32_t batches;  /* for the producer: of this round */
    uint64_t fills[2]; /* for the producer: its shortest time for 64 KiB of rows that it has stored through the caches,
                          and past them; 0: not known */
    uint64_t reads[2]; /* atomic: the consumer's */
};

/* For the producer: begins a batch. *timed: both sides are to report how long it takes them. Returns whether it is
 * stored past the caches. */
bool store_way_begin(struct store_way *way, bool *timed);

/* For the producer: it has filled `bytes` bytes of rows in `ns`, and stored them in one way (past: past the caches). */
void store_way_filled(struct store_way *way, bool past, uint64_t ns, uint64_t bytes);

/* For the consumer: it has read them in `ns`. */
void store_way_read(struct store_way *way, bool past, uint64_t ns, uint64_t bytes);

#endif
