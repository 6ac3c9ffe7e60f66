/* SPDX-License-Identifier: MIT */
/*
 * loader_move.c - an open loader continues as another rank, or with another run, at a step boundary.
 *
 * A second loader is made for the new place, and the first one delivers until that has succeeded. Then the two exchange
 * everything except what stays with the handle: the producer thread, which is paused meanwhile, the trace, and the
 * statistics. The second one is closed with the old parts. So a failure changes nothing, and there is no part of a
 * loader that opening sets up and moving forgets.
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "consumer.h"
#include "loader_open.h"
#include "producer.h"
#include "run/run.h"

/* Counts what belongs to the old parts into what is kept. */
static void keep_counts(struct tokmap_loader *loader)
{
    struct tokmap_stats *all = &loader->statistics.all;
    struct read_pool_counts pool = {0};
    struct backend_facts facts;
    loader->backend->calls->facts(loader->backend, &facts);
    if (loader->fill->pool)
        read_pool_counts(loader->fill->pool, &pool);
    for (uint64_t i = 0; i < loader->sources; i++) {
        const uint64_t bytes = gather_bytes(loader->fill->gathers[i]);
        all->bytes += bytes;
        loader->statistics.sources[i].bytes += bytes;
    }
    all->cold_reads += loader->fill->cold_reads;
    all->host_expanded += facts.host_expanded;
    all->late_copies += facts.late_copies;
    all->timeouts += pool.timeouts;
    all->io_reads += pool.ahead;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct loader_source *const *)a)->name, (*(const struct loader_source *const *)b)->name);
}

/* Copies the counts of the sources of `from` to the sources with the same names. order: room for from->sources. */
static void carry_sources(struct tokmap_loader *into, const struct tokmap_loader *from,
                          const struct loader_source **order)
{
    for (uint64_t i = 0; i < from->sources; i++)
        order[i] = &from->source[i];
    qsort(order, from->sources, sizeof *order, by_name);
    for (uint64_t i = 0; i < into->sources; i++) {
        const struct loader_source *wanted = &into->source[i];
        const struct loader_source **found = bsearch(&wanted, order, from->sources, sizeof *order, by_name);
        if (found)
            into->statistics.sources[i] = from->statistics.sources[*found - from->source];
    }
}

/* Exchanges the parts of two loaders, all but what stays with a handle. The producer thread may be on its way to sleep
 * and reads its turns, which are among the latter. */
static void exchange(struct tokmap_loader *loader, struct tokmap_loader *other)
{
    const size_t bytes = offsetof(struct tokmap_loader, thread);
    struct tokmap_loader before;
    struct tokmap_source_stats *counts = loader->statistics.sources;
    assert(!other->thread.producer && !other->trace && !other->thread.process);
    memcpy(&before, loader, bytes);
    memcpy(loader, other, bytes);
    memcpy(other, &before, bytes);
    loader->statistics.sources = other->statistics.sources;
    other->statistics.sources = counts;
}

/* `other` is made for where the loader is to continue. */
static enum tokmap_status replace(struct tokmap_loader *loader, struct tokmap_loader *other, struct tokmap_error *error)
{
    const struct loader_source **order = malloc(loader->sources * sizeof *order);
    if (!order)
        return error_set_memory(error, "a loader", loader->sources * sizeof *order);
    enum tokmap_status status = TOKMAP_OK;
    if (loader->trace) {
        const struct trace_header header = loader_trace_header(other, &other->start.cursor);
        status = trace_begin(loader->trace, &header, error);
    }
    if (status) {
        free(order);
        return status;
    }
    /* From here on nothing can fail. The storage may have become slow, and have threads that read since this move. */
    loader_mark_process(loader, other->fill->pool);
    if (loader->thread.producer)
        producer_pause(loader);
    keep_counts(loader);
    carry_sources(other, loader, order);
    free(order);
    exchange(loader, other);
    consumer_restart(loader);
    loader->statistics.all.ring_ready_lowest = ring_slots(loader->ring);
    if (loader->thread.producer)
        producer_resume(loader);
    return TOKMAP_OK;
}

static enum tokmap_status move(struct tokmap_loader *loader, const struct tokmap_run *run, uint64_t rank,
                               uint64_t world, struct tokmap_error *error)
{
    struct tokmap_loader_options options = loader->options;
    struct tokmap_loader *other;
    struct backend_facts facts;
    char device[32];
    loader->backend->calls->facts(loader->backend, &facts);
    (void)snprintf(device, sizeof device, "cuda:%d", facts.device);
    if (options.nodes) { /* a node keeps its number of ranks */
        const uint64_t per_node = options.world / options.nodes;
        if (world > per_node && world % per_node)
            return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "world",
                                   " is %" PRIu64 ", which is not a multiple of the %" PRIu64
                                   " ranks of a node; use such a number, or open another loader with the state",
                                   world, per_node);
        options.nodes = max64(world / per_node, 1);
    }
    options.rank = rank;
    options.world = world;
    options.device = loader->on_host ? NULL : device;
    enum tokmap_status status = loader_make(&other, run, &options, &loader->next.position, error);
    if (status)
        return status;
    status = replace(loader, other, error);
    tokmap_loader_close(other);
    return status;
}

enum tokmap_status tokmap_loader_repartition(struct tokmap_loader *loader, uint64_t rank, uint64_t world,
                                             struct tokmap_error *error)
{
    if (!loader)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "loader is NULL; pass one");
    enum tokmap_status status = consumer_check_fork(loader, error);
    return status ? status : move(loader, loader->run, rank, world, error);
}

enum tokmap_status tokmap_loader_reload(struct tokmap_loader *loader, const struct tokmap_run *run,
                                        struct tokmap_error *error)
{
    if (!loader || !run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL; pass one",
                         loader ? "run" : "loader");
    enum tokmap_status status = consumer_check_fork(loader, error);
    return status ? status : move(loader, run, loader->options.rank, loader->options.world, error);
}
