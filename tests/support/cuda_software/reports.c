/* SPDX-License-Identifier: MIT */
/* reports.c - the counts, the violations, and what is written at the end of the program. See cuda_software.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "entries.h"

#define VIOLATIONS_KEPT 32
#define EXIT_STATUS 97

struct cuda_software_counts counted;
static char violations[VIOLATIONS_KEPT][240];

void violation(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (counted.violations < VIOLATIONS_KEPT)
        (void)vsnprintf(violations[counted.violations], sizeof violations[0], format, arguments);
    counted.violations++;
    va_end(arguments);
}

/* ---- controls and reports ---- */

void cuda_software_counts(struct cuda_software_counts *counts)
{
    pthread_mutex_lock(&big);
    *counts = counted;
    pthread_mutex_unlock(&big);
}

static const struct {
    const char *name;
    const uint64_t *count;
} named_counts[] = {
#define NAMED_COUNT(name) {#name, &counted.name},
    CUDA_SOFTWARE_COSTS(NAMED_COUNT) NAMED_COUNT(launches) NAMED_COUNT(copies) NAMED_COUNT(blocking_events)
        NAMED_COUNT(violations)
#undef NAMED_COUNT
};

/* The lock is held by the caller. */
static uint64_t count_named(const char *name)
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < sizeof named_counts / sizeof *named_counts; i++)
        if (!strcmp(name, named_counts[i].name))
            return *named_counts[i].count;
    for (unsigned i = 0; i < CUDA_ENTRY_COUNT; i++) {
        if (!strcmp(name, entry_names[i]))
            return counted.calls[i];
        calls += counted.calls[i];
    }
    return strcmp(name, "calls") ? UINT64_MAX : calls;
}

uint64_t cuda_software_count(const char *name)
{
    pthread_mutex_lock(&big);
    uint64_t count = count_named(name);
    pthread_mutex_unlock(&big);
    return count;
}

static void report_count(FILE *file, const char *name)
{
    uint64_t count = count_named(name);
    if (count)
        (void)fprintf(file, "%s %llu\n", name, (unsigned long long)count);
}

static void write_report(void)
{
    FILE *file = *configuration.report ? fopen(configuration.report, "a") : NULL;
    if (*configuration.report && !file)
        (void)fprintf(stderr, "cuda_software: %s cannot be written\n", configuration.report);
    if (!file)
        return;
    report_count(file, "calls");
    for (unsigned i = 0; i < sizeof named_counts / sizeof *named_counts; i++)
        report_count(file, named_counts[i].name);
    for (unsigned i = 0; i < CUDA_ENTRY_COUNT; i++)
        report_count(file, entry_names[i]);
    (void)fclose(file);
}

const char *cuda_software_violation(unsigned i)
{
    pthread_mutex_lock(&big);
    const char *text = i < VIOLATIONS_KEPT && i < counted.violations ? violations[i] : NULL;
    pthread_mutex_unlock(&big);
    return text;
}

void cuda_software_reset(void)
{
    pthread_mutex_lock(&big);
    memset(counted.calls, 0, sizeof counted.calls);
    counted.launches = counted.copies = counted.copied_bytes = counted.pageable_copies = counted.violations = 0;
#define CLEAR_COST(name) counted.name = 0;
    CUDA_SOFTWARE_COSTS(CLEAR_COST)
#undef CLEAR_COST
    pthread_mutex_unlock(&big);
}

__attribute__((destructor)) static void at_exit(void)
{
    const struct cuda_software_counts *now = &counted;
    pthread_mutex_lock(&big);
    if (!forked)
        write_report();
    bool leaks = now->contexts || now->streams || now->events || now->modules || now->device_allocations ||
                 now->host_allocations || now->host_registrations;
    if (forked || configuration.quiet || (!leaks && !now->violations)) {
        pthread_mutex_unlock(&big);
        return;
    }
    for (unsigned i = 0; i < now->violations && i < VIOLATIONS_KEPT; i++)
        (void)fprintf(stderr, "cuda_software: violation: %s\n", violations[i]);
    if (now->violations)
        (void)fprintf(stderr, "cuda_software: %llu violations\n", (unsigned long long)now->violations);
    if (leaks)
        (void)fprintf(stderr,
                      "cuda_software: still alive: %llu contexts, %llu streams, %llu events, %llu modules, %llu device "
                      "allocations, %llu host allocations, %llu host registrations\n",
                      (unsigned long long)now->contexts, (unsigned long long)now->streams,
                      (unsigned long long)now->events, (unsigned long long)now->modules,
                      (unsigned long long)now->device_allocations, (unsigned long long)now->host_allocations,
                      (unsigned long long)now->host_registrations);
    (void)fflush(NULL);
    if (!configuration.lenient)
        _exit(EXIT_STATUS);
    pthread_mutex_unlock(&big);
}
