/* SPDX-License-Identifier: MIT */
/*
 * pace.h - decides whether the producer thread helps: a consumer that does nothing between two calls of next() waits
 * for each batch, so that a producer only adds its hand-over, in which the lines of a slot pass from one processor to
 * another, and a second copy. Such a consumer fills its batches itself, straight from the mapping (gather_direct()),
 * while the producer is paused. As soon as it has other work between two calls, or a row comes from storage, the
 * producer continues, and is ahead again.
 *
 * Example: with threads = 1, a benchmark calls next() in a loop. After PACE_CALLS calls that came within PACE_NS, the
 * producer is paused; what it has filled is delivered, and then each call fills a batch. When the program saves a
 * checkpoint, the next call comes late: it still fills its batch. If the call after it is late, too, it begins a turn
 * of the producer before it returns. In a training loop, where each step takes longer than PACE_NS, the producer is
 * never paused. Each return doubles the calls that it takes until the producer is paused again, so a machine whose
 * other programs interrupt the consumer now and then does not pay for many turns.
 *
 * Which time between calls makes a producer worthwhile depends on whether its processor shares a cache with the
 * consumer's. Where it does (Zen 3), a call finds its batch in that cache, and takes 7 us instead of 11 (8 rows of
 * 2,048 tokens as int64): a producer saves 4 us of a loop that has more than about 4 us of other work. Where it does
 * not (Emerald Rapids), a loop in Python with some 10 us between calls took 38 us a batch with a producer, and 28
 * without. PACE_NS is what a loop in Python has at most if it does nothing with its batches.
 *
 * The functions are for the thread that calls next(), and for loaders with a producer thread whose outputs can be
 * written directly; for others they do nothing.
 */
#ifndef TOKMAP_LOADER_PACE_H
#define TOKMAP_LOADER_PACE_H

#include "loader_state.h"

#define PACE_NS UINT64_C(16000)
#define PACE_CALLS 64U
#define PACE_RETURNS_MOST 12

/* Begins a call of next() whose outputs can be written directly. It may pause the producer. */
void pace_begin(struct tokmap_loader *loader);

/* Ends it. The producer may begin another turn. */
void pace_end(struct tokmap_loader *loader);

#endif
