/* SPDX-License-Identifier: MIT */
/* store_way.c - see store_way.h. */
#include "store_way.h"

#include <string.h>

#include "common/bytes.h"

#define NS_MOST (UINT64_C(1) << 48) /* of a batch; more is not a time that a clock has measured */

void store_way_init(struct store_way *way, uint32_t slots)
{
    *way = (struct store_way){.tried = (uint32_t)min64(slots, STORE_WAY_SLOTS_MOST) + STORE_WAY_TIMED};
}

bool store_way_begin(struct store_way *way, bool *timed)
{
    const uint32_t round = way->tried * STORE_WAY_SHARE, other = round - way->tried, place = way->batches;
    way->batches = (place + 1) % round;
    *timed = place >= round - STORE_WAY_TIMED || (place >= other - STORE_WAY_TIMED && place < other);
    return __atomic_load_n(&way->bypass, __ATOMIC_RELAXED) != (place >= other);
}

/* Returns whether the other way takes less than seven eighths of the time for the same rows. */
static bool other_wins(const struct store_way *way, bool bypass)
{
    const double now = (double)way->ns[bypass] * (double)way->rows[!bypass];
    const double other = (double)way->ns[!bypass] * (double)way->rows[bypass];
    return other < now * 7 / 8;
}

void store_way_taken(struct store_way *way, bool bypass, uint64_t ns, uint64_t bytes)
{
    way->ns[bypass] += min64(ns, NS_MOST);
    way->rows[bypass] += bytes;
    way->taken[bypass]++;
    if (way->taken[0] < STORE_WAY_TIMED || way->taken[1] < STORE_WAY_TIMED)
        return;
    const bool most = way->bypass; /* only this thread changes it */
    way->wins = other_wins(way, most) ? way->wins + 1 : 0;
    if (way->wins == STORE_WAY_WINS) {
        __atomic_store_n(&way->bypass, !most, __ATOMIC_RELAXED);
        way->wins = 0;
    }
    memset(way->ns, 0, sizeof way->ns);
    memset(way->rows, 0, sizeof way->rows);
    memset(way->taken, 0, sizeof way->taken);
}
