/* observe.c - what a program or its monitoring sees of an open loader: statistics, of the loader and of its sources.
 * The functions are public, and any thread may call them while another thread is in next(). */
#include "common/error.h"
#include "common/struct_copy.h"
#include "loader_state.h"
#include "run/run.h"

enum tokmap_status tokmap_loader_stats(const struct tokmap_loader *loader, struct tokmap_stats *stats)
{
    struct tokmap_stats now = {.size = sizeof now};
    struct read_pool_counts pool = {0};
    struct backend_facts facts;
    if (!loader || struct_size_check(stats, sizeof now, "tokmap_stats", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    const struct statistics *statistics = &loader->statistics;
    statistics_read(statistics, &now);
    now.bytes = statistics->before.bytes;
    for (uint64_t i = 0; i < loader->sources; i++)
        now.bytes += gather_bytes(loader->gathers[i]);
    now.cold_reads = statistics->before.cold_reads + __atomic_load_n(&loader->cold_reads, __ATOMIC_RELAXED);
    loader->backend->calls->facts(loader->backend, &facts);
    if (loader->pool)
        read_pool_counts(loader->pool, &pool);
    now.host_expanded = statistics->before.host_expanded + facts.host_expanded;
    now.late_copies = statistics->before.late_copies + facts.late_copies;
    now.device_bytes = facts.device_bytes;
    now.ring_bytes = loader->ring_bytes;
    now.ring_slots = ring_slots(loader->ring);
    now.ring_ready = ring_ready(loader->ring);
    now.reading = residency_reading(loader->residency);
    now.timeouts = statistics->before.timeouts + pool.timeouts;
    now.io_threads = pool.threads;
    now.io_reads = statistics->before.io_reads + pool.ahead;
    now.probe_ns = loader->probe_ns;
    now.alarms = __atomic_load_n(&loader->stalls.alarms, __ATOMIC_RELAXED);
    return struct_copy_out(stats, &now, sizeof now, "tokmap_stats", NULL);
}

enum tokmap_status tokmap_loader_source_stats(const struct tokmap_loader *loader, uint64_t source,
                                              struct tokmap_source_stats *stats)
{
    struct tokmap_source_stats now = {.size = sizeof now};
    struct tokmap_source_info info = {.size = sizeof info};
    if (!loader || struct_size_check(stats, sizeof now, "tokmap_source_stats", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    if (source >= loader->sources)
        return TOKMAP_ERROR_RANGE;
    enum tokmap_status status = tokmap_run_source(loader->run, source, &info);
    if (status)
        return status;
    statistics_read_source(&loader->statistics, source, &now);
    now.name = info.name;
    now.windows = info.windows;
    now.bytes += gather_bytes(loader->gathers[source]);
    status =
        tokmap_run_drawn(loader->run, source, __atomic_load_n(&loader->statistics.step, __ATOMIC_RELAXED), &now.draws);
    return status ? status : struct_copy_out(stats, &now, sizeof now, "tokmap_source_stats", NULL);
}
