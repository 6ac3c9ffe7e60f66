/* SPDX-License-Identifier: MIT */
/* pace.c - see pace.h. */
#include "pace.h"

#include "common/bytes.h"
#include "platform/os.h"
#include "producer.h"

static uint64_t cold_reads(const struct tokmap_loader *loader)
{
    return __atomic_load_n(&loader->fill->cold_reads, __ATOMIC_RELAXED);
}

/* Returns whether the loader has a producer without which it could do. Where threads read, storage is slow. */
static bool has_choice(const struct tokmap_loader *loader)
{
    return loader->thread.producer && !loader->fill->pool;
}

void pace_begin(struct tokmap_loader *loader)
{
    struct pace *pace = &loader->next.pace;
    if (!has_choice(loader))
        return;
    const uint64_t away = os_clock_ns() - pace->returned_ns, cold = cold_reads(loader);
    const bool late = away >= PACE_NS + loader->next.waited_ns || cold != pace->cold_reads;
    pace->cold_reads = cold;
    pace->wanted = late && pace->late; /* one call alone is late if another program interrupts the consumer */
    pace->late = late;
    if (pace->alone || pace->waits < PACE_CALLS << pace->returns)
        return;
    producer_pause(loader);
    ring_continue(loader->ring);
    pace->alone = true;
    pace->waits = 0;
}

void pace_end(struct tokmap_loader *loader, uint64_t waited)
{
    struct pace *pace = &loader->next.pace;
    if (!has_choice(loader))
        return;
    if (!pace->alone && waited && !pace->late)
        pace->waits++;
    else if (pace->waits)
        pace->waits--;
    if (pace->alone && (pace->wanted || cold_reads(loader) != pace->cold_reads)) {
        pace->returns = (uint32_t)min64(pace->returns + 1, PACE_RETURNS_MOST);
        producer_resume(loader);
    }
    pace->returned_ns = os_clock_ns();
}
