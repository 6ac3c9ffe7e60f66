/* SPDX-License-Identifier: MIT */
/*
 * pace.h - decides whether the producer thread helps. A consumer that does nothing between two calls of next() may wait
 * for each batch: then a producer only adds its hand-over, in which the lines of a slot pass from one processor to
 * another, and a second copy. Such a consumer fills its batches itself, straight from the mapping (gather_direct()),
 * while the producer is paused. As soon as it has other work between two calls, or a row comes from storage, the
 * producer continues, and is ahead again.
 *
 * Example: with threads = 1, a benchmark calls next() in a loop. When PACE_CALLS more calls had to wait, and came
 * within PACE_NS, than others did, the producer is paused; what it has filled is delivered, and then each call fills a
 * batch. When the program saves a checkpoint, the next call comes late: it still fills its batch. If the call after it
 * is late, too, it begins a turn of the producer before it returns. In a training loop, where each step takes longer
 * than PACE_NS, the producer is never paused, nor is it where it is faster than the consumer, which then does not wait.
 * Each return doubles the calls that it takes until the producer is paused again, so a machine whose other programs
 * interrupt the consumer now and then does not pay for many turns.
 *
 * PACE_NS was measured on two processors of an Emerald Rapids: 8 rows of 2,048 tokens as int32, us a batch without the
 * pause (medians of 3 to 5 runs). Machines that train are busy, so the second pair of lines decides: a producer that
 * has no processor of its own costs the consumer of the first three columns half of its rate.
 *
 *     pause between two calls, us               0     1     2     4     6     8    12
 *     no producer                            10.4   9.8   9.9   9.9  10.1   9.9  10.4
 *     a producer always                       8.6   8.2   8.0   6.1   6.2   6.0   6.1
 *     no producer, another program runs       7.9   9.8  10.5   8.9   9.4   9.2   9.4
 *     a producer always, so does another     13.2  15.0  17.4  11.4   8.4   8.0   7.8
 *
 * As int64, the consumer takes longer for a batch than the producer, and does not wait: 9.9 us with a producer,
 * and 12.6 without.
 *
 * The functions are for the thread that calls next(), and for loaders with a producer thread whose outputs can be
 * written directly; for others they do nothing.
 */
#ifndef TOKMAP_LOADER_PACE_H
#define TOKMAP_LOADER_PACE_H

#include "loader_state.h"

#define PACE_NS UINT64_C(6000)
#define PACE_CALLS 64U
#define PACE_RETURNS_MOST 12

/* Begins a call of next() whose outputs can be written directly. It may pause the producer. */
void pace_begin(struct tokmap_loader *loader);

/* Ends it. The producer may begin another turn. waited: the ns that the call has waited for a filled slot. */
void pace_end(struct tokmap_loader *loader, uint64_t waited);

#endif
