/* SPDX-License-Identifier: MIT */
/* series.c - see series.h. */
#include "series.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- series ---- */

void series_add(struct series *series, double value)
{
    if (series->count < SERIES_MOST)
        series->values[series->count++] = value;
}

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double series_median(const struct series *series)
{
    double sorted[SERIES_MOST];
    const size_t n = series->count;
    if (!n)
        return (double)NAN;
    memcpy(sorted, series->values, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], compare_doubles);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double series_smallest(const struct series *series)
{
    double found = series->count ? series->values[0] : (double)NAN;
    for (size_t i = 1; i < series->count; i++)
        found = series->values[i] < found ? series->values[i] : found;
    return found;
}

double series_largest(const struct series *series)
{
    double found = series->count ? series->values[0] : (double)NAN;
    for (size_t i = 1; i < series->count; i++)
        found = series->values[i] > found ? series->values[i] : found;
    return found;
}

double series_last(const struct series *series)
{
    return series->count ? series->values[series->count - 1] : (double)NAN;
}

const struct series *series_worst(const struct series *list, size_t count)
{
    assert(count);
    const struct series *worst = list;
    for (size_t i = 1; i < count; i++) /* a comparison with NAN is false, so an empty series never replaces another */
        if (!worst->count || series_median(&list[i]) > series_median(worst))
            worst = list[i].count ? &list[i] : worst;
    return worst;
}

/* ---- samples ---- */

bool samples_new(struct samples *samples, size_t capacity)
{
    *samples = (struct samples){calloc(capacity, sizeof *samples->ns), 0, capacity, false};
    if (samples->ns)
        memset(samples->ns, 1, capacity * sizeof *samples->ns);
    return samples->ns != NULL;
}

void samples_free(struct samples *samples)
{
    free(samples->ns);
    samples->ns = NULL;
}

void samples_clear(struct samples *samples)
{
    samples->count = 0;
    samples->sorted = false;
}

static int compare_samples(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

double samples_at(struct samples *samples, double share)
{
    assert(share >= 0 && share <= 1);
    if (!samples->count)
        return 0;
    if (!samples->sorted)
        qsort(samples->ns, samples->count, sizeof *samples->ns, compare_samples);
    samples->sorted = true;
    /* The index is ceil(share * count) - 1, but at least 0. */
    const double rank = share * (double)samples->count;
    size_t index = (size_t)rank;
    index -= (double)index == rank && index;
    return samples->ns[index < samples->count ? index : samples->count - 1];
}

/* ---- spread ---- */

void spread_add(struct spread *spread, struct samples *samples, double unit_ns)
{
    series_add(&spread->p50, samples_at(samples, 0.5) / unit_ns);
    series_add(&spread->p99, samples_at(samples, 0.99) / unit_ns);
    series_add(&spread->p999, samples_at(samples, 0.999) / unit_ns);
    series_add(&spread->largest, samples_at(samples, 1) / unit_ns);
}
