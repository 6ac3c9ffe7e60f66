/* SPDX-License-Identifier: MIT */
/* observe.c - what a program or its monitoring sees of an open loader: statistics, of the loader and of its sources,
 * also as the text that Prometheus reads. The functions are public, and any thread may call them while another thread
 * is in next(). */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cache/cache_folder.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset/dataset_fetch.h"
#include "loader_state.h"
#include "run/run.h"

/* Adds what the caches of the sources have done, each once. */
static void fetches_read(const struct tokmap_loader *loader, struct tokmap_stats *now)
{
    for (uint64_t i = 0; i < loader->sources; i++) {
        const struct cache *cache = dataset_cache(loader->source[i].dataset);
        struct cache_counts counts;
        bool before = !cache;
        for (uint64_t k = 0; k < i && !before; k++)
            before = dataset_cache(loader->source[k].dataset) == cache;
        if (before)
            continue;
        cache_count(cache, &counts);
        now->fetch_requests += counts.requests;
        now->fetch_bytes += counts.bytes;
        now->fetch_repeated += counts.repeated;
        now->fetch_evicted += counts.evicted;
        now->fetch_storage_ns += counts.waited_storage_ns;
        now->fetch_transfer_ns += counts.waited_bytes_ns;
        now->fetch_disk_ns += counts.waited_disk_ns;
    }
}

static uint64_t counter_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void stats_read(const struct tokmap_loader *loader, struct tokmap_stats *now)
{
    struct read_pool_counts pool = {0};
    struct backend_facts facts;
    const struct tokmap_stats *all = &loader->statistics.all;
    if (loader->fill->pool)
        read_pool_counts(loader->fill->pool, &pool);
    loader->backend->calls->facts(loader->backend, &facts);
    *now = (struct tokmap_stats){
        .size = sizeof *now,
        .batches = counter_read(&all->batches),
        .rows = counter_read(&all->rows),
        .padding = counter_read(&all->padding),
        .tokens = counter_read(&all->tokens),
        .epoch = counter_read(&all->epoch),
        .waits = counter_read(&all->waits),
        .wait_ns = counter_read(&all->wait_ns),
        .wait_ns_largest = counter_read(&all->wait_ns_largest),
        .alarms = counter_read(&all->alarms),
        .ring_bytes = loader->ring_bytes,
        .ring_slots = ring_slots(loader->ring),
        .ring_ready = ring_ready(loader->ring),
        .ring_ready_lowest = __atomic_load_n(&all->ring_ready_lowest, __ATOMIC_RELAXED),
        .reading = residency_reading(loader->fill->residency),
        .bytes = all->bytes,
        .cold_reads = all->cold_reads + counter_read(&loader->fill->cold_reads),
        .probe_ns = loader->fill->probe_ns,
        .io_threads = pool.threads,
        .io_reads = all->io_reads + pool.ahead,
        .timeouts = all->timeouts + pool.timeouts,
        .device_bytes = facts.device_bytes,
        .late_copies = all->late_copies + facts.late_copies,
        .host_expanded = all->host_expanded + facts.host_expanded,
        .excluded = counter_read(&all->excluded),
        .excluded_rows = counter_read(&all->excluded_rows),
    };
    for (unsigned i = 0; i < TOKMAP_WAIT_BUCKETS; i++)
        now->wait_histogram[i] = counter_read(&all->wait_histogram[i]);
    for (uint64_t i = 0; i < loader->sources; i++)
        now->bytes += gather_bytes(loader->fill->gathers[i]);
    fetches_read(loader, now);
}

enum tokmap_status tokmap_loader_stats(const struct tokmap_loader *loader, struct tokmap_stats *stats)
{
    struct tokmap_stats now;
    if (!loader || struct_size_check(stats, sizeof now, "tokmap_stats", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    stats_read(loader, &now);
    return struct_copy_out(stats, &now, sizeof now, "tokmap_stats", NULL);
}

static void source_stats_read(const struct tokmap_loader *loader, uint64_t source, struct tokmap_source_stats *now)
{
    const struct tokmap_source_stats *counted = &loader->statistics.sources[source];
    const struct tokmap_source_info info = info_of_source(loader->run, source);
    *now = (struct tokmap_source_stats){
        .size = sizeof *now,
        .name = info.name,
        .rows = counter_read(&counted->rows),
        .tokens = counter_read(&counted->tokens),
        .bytes = counted->bytes + gather_bytes(loader->fill->gathers[source]),
        .epoch = counter_read(&counted->epoch),
        .draws = run_drawn(loader->run, source, counter_read(&loader->statistics.step)),
        .windows = info.windows,
    };
}

enum tokmap_status tokmap_loader_source_stats(const struct tokmap_loader *loader, uint64_t source,
                                              struct tokmap_source_stats *stats)
{
    struct tokmap_source_stats now;
    if (!loader || struct_size_check(stats, sizeof now, "tokmap_source_stats", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    if (source >= loader->sources)
        return TOKMAP_ERROR_RANGE;
    source_stats_read(loader, source, &now);
    return struct_copy_out(stats, &now, sizeof now, "tokmap_source_stats", NULL);
}

/* ---- Prometheus ---- */

/* In the text format of Prometheus, version 0.0.4, a metric is a line "# HELP", a line "# TYPE", and one line for each
 * of its samples, which must follow each other. So the sources are walked once for each metric that they have. */
struct text {
    char *into;
    size_t capacity, bytes; /* bytes: of the whole text, also beyond the capacity */
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...)
{
    va_list values;
    const size_t left = text->bytes < text->capacity ? text->capacity - text->bytes : 0;
    va_start(values, format);
    int count = vsnprintf(left ? text->into + text->bytes : NULL, left, format, values);
    va_end(values);
    text->bytes += count > 0 ? (size_t)count : 0;
}

/* Writes a label's value, in which \, ", and line ends are escaped. */
static void put_escaped(struct text *text, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            put(text, "\\n");
        else if (*value == '\\' || *value == '"')
            put(text, "\\%c", *value);
        else
            put(text, "%c", *value);
    }
}

static void put_metric(struct text *text, const char *name, const char *type, const char *help)
{
    put(text, "# HELP tokmap_loader_%s %s\n# TYPE tokmap_loader_%s %s\n", name, help, name, type);
}

/* The labels of every sample. */
struct labels {
    uint64_t rank;
    const char *given; /* by the caller; "" */
};

static void put_labels(struct text *text, const struct labels *labels)
{
    put(text, "rank=\"%" PRIu64 "\"%s%s", labels->rank, *labels->given ? "," : "", labels->given);
}

static void put_sample(struct text *text, const char *name, const struct labels *labels, const char *value)
{
    put(text, "tokmap_loader_%s{", name);
    put_labels(text, labels);
    put(text, "} %s\n", value);
}

/* Times are seconds, as Prometheus wants them, exact to the nanosecond. */
static const char *seconds(uint64_t ns, char into[32])
{
    (void)snprintf(into, 32, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
    return into;
}

static const char *number(uint64_t value, char into[32])
{
    (void)snprintf(into, 32, "%" PRIu64, value);
    return into;
}

static void put_simple(struct text *text, const struct labels *labels, const struct tokmap_stats *stats)
{
    const struct {
        const char *name, *type, *help;
        uint64_t value;
        bool ns;
    } metrics[] = {
        {"batches_total", "counter", "Batches delivered.", stats->batches, false},
        {"rows_total", "counter", "Rows delivered.", stats->rows, false},
        {"padding_rows_total", "counter", "Rows of padding among the delivered rows.", stats->padding, false},
        {"tokens_total", "counter", "Tokens delivered.", stats->tokens, false},
        {"excluded_tokens_total", "counter", "Tokens of excluded documents, delivered as the pad id.", stats->excluded,
         false},
        {"excluded_rows_total", "counter", "Rows delivered without any token that is not excluded.",
         stats->excluded_rows, false},
        {"bytes_total", "counter", "Bytes of tokens copied into the ring.", stats->bytes, false},
        {"cold_reads_total", "counter", "Rows that were not in the page cache when they were needed.",
         stats->cold_reads, false},
        {"epoch", "gauge", "Largest epoch of any source delivered.", stats->epoch, false},
        {"ring_bytes", "gauge", "Memory of the ring.", stats->ring_bytes, false},
        {"ring_slots", "gauge", "Batches that the ring holds.", stats->ring_slots, false},
        {"ring_ready", "gauge", "Batches that are filled and not yet taken.", stats->ring_ready, false},
        {"ring_ready_lowest", "gauge", "Smallest number of filled batches that a call found.", stats->ring_ready_lowest,
         false},
        {"host_expanded_total", "counter", "Batches for a GPU that the host expanded.", stats->host_expanded, false},
        {"late_copies_total", "counter", "Batches that were still on their way to the GPU when they were needed.",
         stats->late_copies, false},
        {"device_bytes", "gauge", "GPU memory of the loader.", stats->device_bytes, false},
        {"timeouts_total", "counter", "Reads that took longer than their deadline.", stats->timeouts, false},
        {"io_threads", "gauge", "Threads that read ahead.", stats->io_threads, false},
        {"io_reads_total", "counter", "Reads that these threads made ahead.", stats->io_reads, false},
        {"fetch_requests_total", "counter", "Requests that object storage answered, for all loaders of the process.",
         stats->fetch_requests, false},
        {"fetch_bytes_total", "counter", "Bytes that object storage sent.", stats->fetch_bytes, false},
        {"fetch_repeated_total", "counter", "Requests that took too long and were sent again.", stats->fetch_repeated,
         false},
        {"fetch_evicted_bytes_total", "counter", "Bytes that left the cache for others.", stats->fetch_evicted, false},
        {"fetch_storage_seconds_total", "counter", "Time that reads waited for the first byte of an answer.",
         stats->fetch_storage_ns, true},
        {"fetch_transfer_seconds_total", "counter", "Time that reads waited for the rest of an answer.",
         stats->fetch_transfer_ns, true},
        {"fetch_disk_seconds_total", "counter", "Time that reads waited for the disk of the cache.",
         stats->fetch_disk_ns, true},
        {"alarms_total", "counter", "Alarms raised because too many calls waited.", stats->alarms, false},
        {"wait_largest_seconds", "gauge", "Longest wait of a call.", stats->wait_ns_largest, true},
    };
    char value[32];
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        put_metric(text, metrics[i].name, metrics[i].type, metrics[i].help);
        put_sample(text, metrics[i].name, labels,
                   metrics[i].ns ? seconds(metrics[i].value, value) : number(metrics[i].value, value));
    }
}

/* Writes the histogram of waits. Bucket b of the statistics has the waits below 2^b ns; from 1 us on, every second one
 * is a bucket here. */
static void put_waits(struct text *text, const struct labels *labels, const struct tokmap_stats *stats)
{
    uint64_t count = 0;
    char value[32];
    put_metric(text, "wait_seconds", "histogram", "Time that calls waited for a filled batch.");
    for (unsigned b = 0; b < TOKMAP_WAIT_BUCKETS; b++) {
        count += stats->wait_histogram[b];
        if (b < 10 || b > 36 || b % 2)
            continue;
        put(text, "tokmap_loader_wait_seconds_bucket{");
        put_labels(text, labels);
        put(text, ",le=\"%s\"} %" PRIu64 "\n", seconds((uint64_t)1 << b, value), count);
    }
    put(text, "tokmap_loader_wait_seconds_bucket{");
    put_labels(text, labels);
    put(text, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    put_sample(text, "wait_seconds_sum", labels, seconds(stats->wait_ns, value));
    put_sample(text, "wait_seconds_count", labels, number(count, value));
}

static void put_sources(struct text *text, const struct labels *labels, const struct tokmap_loader *loader)
{
    static const struct {
        const char *name, *type, *help;
        size_t member;
    } metrics[] = {
        {"source_rows_total", "counter", "Rows delivered of a source.", offsetof(struct tokmap_source_stats, rows)},
        {"source_tokens_total", "counter", "Tokens of data delivered of a source.",
         offsetof(struct tokmap_source_stats, tokens)},
        {"source_bytes_total", "counter", "Bytes of tokens of a source copied into the ring.",
         offsetof(struct tokmap_source_stats, bytes)},
        {"source_epoch", "gauge", "Largest epoch of a source delivered.", offsetof(struct tokmap_source_stats, epoch)},
        {"source_draws", "gauge", "Rows of a source in all steps so far, over all ranks.",
         offsetof(struct tokmap_source_stats, draws)},
        {"source_windows", "gauge", "Rows of one epoch of a source.", offsetof(struct tokmap_source_stats, windows)},
    };
    struct tokmap_source_stats stats;
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        put_metric(text, metrics[i].name, metrics[i].type, metrics[i].help);
        for (uint64_t source = 0; source < loader->sources; source++) {
            uint64_t value;
            source_stats_read(loader, source, &stats);
            memcpy(&value, (const char *)&stats + metrics[i].member, sizeof value);
            put(text, "tokmap_loader_%s{", metrics[i].name);
            put_labels(text, labels);
            put(text, ",source=\"");
            put_escaped(text, stats.name);
            put(text, "\"} %" PRIu64 "\n", value);
        }
    }
}

/* Returns whether the labels are NAME="VALUE" with commas between them, so that they cannot break the page that they
 * are written into. */
static bool labels_are_right(const char *labels)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (const char *at = labels; *at;) {
        if (!strspn(at, letters))
            return false;
        at += strspn(at, more);
        if (at[0] != '=' || at[1] != '"')
            return false;
        for (at += 2; *at && *at != '"' && *at != '\n'; at++)
            if (*at == '\\' && !strchr("\\\"n", *++at))
                return false;
            else if (!*at)
                return false;
        if (*at++ != '"')
            return false;
        if (*at == ',' && at[1])
            at++;
        else if (*at)
            return false;
    }
    return true;
}

enum tokmap_status tokmap_loader_prometheus(const struct tokmap_loader *loader, const char *labels, char *text,
                                            size_t capacity, size_t *bytes)
{
    struct tokmap_stats stats;
    struct text made = {text, capacity, 0};
    if (bytes)
        *bytes = 0;
    if (!loader || (!text && capacity) || (labels && !labels_are_right(labels)))
        return TOKMAP_ERROR_ARGUMENT;
    const struct labels all = {loader->options.rank, labels ? labels : ""};
    stats_read(loader, &stats);
    if (capacity)
        text[0] = '\0';
    put_simple(&made, &all, &stats);
    put_waits(&made, &all, &stats);
    put_sources(&made, &all, loader);
    if (bytes)
        *bytes = made.bytes;
    return made.bytes < capacity ? TOKMAP_OK : TOKMAP_ERROR_LIMIT;
}
