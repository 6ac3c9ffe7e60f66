/* store_way.c - see store_way.h. */
#include "store_way.h"

#include "common/bytes.h"

/* The sum of the shortest times of both sides in this round, which it forgets; 0: one of them is not known. */
static uint64_t round_time(struct store_way *way, bool past)
{
    const uint64_t read = __atomic_exchange_n(&way->reads[past], 0, __ATOMIC_RELAXED), fill = way->fills[past];
    way->fills[past] = 0;
    return read && fill ? read + fill : 0;
}

/* Ends a round. Changes to the other way if that takes less than three quarters of the time, so that noise does not
 * change it. */
static void decide(struct store_way *way)
{
    const uint64_t now = round_time(way, way->past), other = round_time(way, !way->past);
    if (now && other && other < now - now / 4)
        way->past = !way->past;
    way->batches = 0;
}

bool store_way_begin(struct store_way *way, bool *timed)
{
    if (way->batches == STORE_WAY_ROUND)
        decide(way);
    const uint32_t place = way->batches++ % STORE_WAY_TRIED;
    *timed = place >= STORE_WAY_TRIED - 2;
    return way->past != (place == STORE_WAY_TRIED - 1);
}

/* A time for 64 KiB; 0: unknown. At most 2^62, so that two of them can be added. */
static uint64_t time_of(uint64_t ns, uint64_t bytes)
{
    return bytes && ns < UINT64_MAX >> 18 ? (ns << 16) / bytes : 0;
}

void store_way_filled(struct store_way *way, bool past, uint64_t ns, uint64_t bytes)
{
    const uint64_t time = time_of(ns, bytes), least = way->fills[past];
    if (time && (!least || time < least))
        way->fills[past] = time;
}

/* Only the consumer lowers a time, and the producer clears it: if both happen at once, a round has one time less, or an
 * old one. */
void store_way_read(struct store_way *way, bool past, uint64_t ns, uint64_t bytes)
{
    const uint64_t time = time_of(ns, bytes), least = __atomic_load_n(&way->reads[past], __ATOMIC_RELAXED);
    if (time && (!least || time < least))
        __atomic_store_n(&way->reads[past], time, __ATOMIC_RELAXED);
}
