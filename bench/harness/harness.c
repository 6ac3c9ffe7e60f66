/* harness.c - see harness.h. */
#include "harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"

/* ---- series ---- */

void series_add(struct series *series, double value)
{
    if (series->count < BENCH_REPEATS_MAX)
        series->values[series->count++] = value;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double series_median(const struct series *series)
{
    double sorted[BENCH_REPEATS_MAX];
    size_t n = series->count;
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

/* ---- samples ---- */

bool samples_new(struct samples *samples, size_t capacity)
{
    *samples = (struct samples){calloc(capacity, sizeof *samples->ns), 0, capacity, false};
    if (samples->ns) /* touched now, so that no sample pays for a page */
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
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

double samples_at(struct samples *samples, double share)
{
    if (!samples->count)
        return 0;
    if (!samples->sorted)
        qsort(samples->ns, samples->count, sizeof *samples->ns, compare_samples);
    samples->sorted = true;
    double rank = share * (double)samples->count; /* rounded up, less one */
    size_t index = (size_t)rank;
    index -= (double)index == rank && index;
    return samples->ns[index < samples->count ? index : samples->count - 1];
}

double samples_largest(struct samples *samples)
{
    return samples_at(samples, 1);
}

uint64_t samples_above(const struct samples *samples, uint64_t ns)
{
    uint64_t found = 0;
    for (size_t i = 0; i < samples->count; i++)
        found += samples->ns[i] > ns;
    return found;
}

void spread_add(struct spread *spread, struct samples *samples, double unit_ns)
{
    series_add(&spread->p50, samples_at(samples, 0.5) / unit_ns);
    series_add(&spread->p99, samples_at(samples, 0.99) / unit_ns);
    series_add(&spread->p999, samples_at(samples, 0.999) / unit_ns);
    series_add(&spread->largest, samples_largest(samples) / unit_ns);
}

/* ---- results ---- */

/* The rows of the table so far; JSON needs none of it. */
struct report {
    struct cli_table *table;
    size_t rows;
};

#define REPORT_COLUMNS 8

struct report *report_new(void)
{
    static const char *const heads[REPORT_COLUMNS] = {"metric", "median", "unit", "min", "max", "n", "limit", "ratio"};
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        return NULL;
    report->table = cli_table_new(REPORT_COLUMNS);
    if (!report->table) {
        free(report);
        return NULL;
    }
    cli_table_row(report->table, heads);
    return report;
}

void report_print(struct report *report)
{
    static const bool right[REPORT_COLUMNS] = {false, true, false, true, true, true, true, true};
    if (report && report->rows)
        cli_table_print(report->table, right, stdout);
}

void report_free(struct report *report)
{
    if (report)
        cli_table_free(report->table);
    free(report);
}

/* Four significant digits, thousands apart where they are many. */
static const char *cell(double value, char text[48])
{
    if (!isfinite(value))
        return "";
    double size = value < 0 ? -value : value;
    if (size >= 1e5 && size < 1e15) {
        char count[32];
        (void)snprintf(text, 48, "%s%s", value < 0 ? "-" : "", cli_count((uint64_t)(size + 0.5), count));
        return text;
    }
    int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    if (size > 0 && size < 0.01)
        (void)snprintf(text, 48, "%.3g", value);
    else if (size < 1e5 && value == (double)(int64_t)value)
        (void)snprintf(text, 48, "%.0f", value);
    else
        (void)snprintf(text, 48, "%.*f", decimals, value);
    return text;
}

struct result {
    double value, smallest, largest, limit, ratio;
    size_t count;
};

static void report_add(struct report *report, const char *name, const char *metric, const char *unit,
                       const struct result *result)
{
    char label[128], texts[6][48], count[32];
    if (!report)
        return;
    (void)snprintf(label, sizeof label, "%s.%s", name, metric);
    const char *cells[REPORT_COLUMNS] = {
        label,
        cell(result->value, texts[0]),
        unit,
        cell(result->smallest, texts[1]),
        cell(result->largest, texts[2]),
        cli_count(result->count, count),
        cell(result->limit, texts[3]),
        cell(result->ratio, texts[4]),
    };
    cli_table_row(report->table, cells);
    report->rows++;
}

static void print_json(const char *name, const char *metric, const char *unit, const struct result *result)
{
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "case", name);
    cli_json_text(&json, "metric", metric);
    cli_json_real(&json, "value", result->value);
    cli_json_text(&json, "unit", unit);
    cli_json_real(&json, "min", result->smallest);
    cli_json_real(&json, "max", result->largest);
    cli_json_number(&json, "n", result->count);
    if (isfinite(result->limit))
        cli_json_real(&json, "limit", result->limit);
    if (isfinite(result->ratio))
        cli_json_real(&json, "ratio", result->ratio);
    cli_json_end(&json);
    (void)fflush(stdout);
}

static void result_out(struct bench *bench, const char *metric, const char *unit, struct result *result)
{
    result->ratio = isfinite(result->limit) && result->limit != 0 ? result->value / result->limit : (double)NAN;
    if (bench->options.json)
        print_json(bench->name, metric, unit, result);
    else
        report_add(bench->report, bench->name, metric, unit, result);
}

void bench_result(struct bench *bench, const char *metric, const char *unit, const struct series *values,
                  const struct series *limit)
{
    if (!values->count)
        return;
    struct result result = {.value = series_median(values),
                            .smallest = series_smallest(values),
                            .largest = series_largest(values),
                            .limit = limit ? series_median(limit) : (double)NAN,
                            .count = values->count};
    result_out(bench, metric, unit, &result);
}

void bench_value(struct bench *bench, const char *metric, const char *unit, double value, double limit)
{
    struct result result = {.value = value, .smallest = value, .largest = value, .limit = limit, .count = 1};
    result_out(bench, metric, unit, &result);
}

void bench_derived(struct bench *bench, const char *metric, const char *unit, double value, const struct series *turns)
{
    if (!turns->count)
        return;
    struct result result = {.value = value,
                            .smallest = series_smallest(turns),
                            .largest = series_largest(turns),
                            .limit = (double)NAN,
                            .count = turns->count};
    result_out(bench, metric, unit, &result);
}

void bench_spread(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                  const struct spread *limit)
{
    static const char *const names[4] = {"p50", "p99", "p999", "max"};
    const struct series *values[4] = {&spread->p50, &spread->p99, &spread->p999, &spread->largest};
    const struct series *limits[4] = {NULL, NULL, NULL, NULL};
    if (limit) {
        limits[0] = &limit->p50;
        limits[1] = &limit->p99;
        limits[2] = &limit->p999;
        limits[3] = &limit->largest;
    }
    size_t length = strlen(prefix);
    bool bare = length && prefix[length - 1] == '=';
    for (size_t i = 0; i < 4; i++) {
        char metric[96];
        if (bare && i == 0)
            (void)snprintf(metric, sizeof metric, "%.*s_%s", (int)length - 1, prefix, unit);
        else
            (void)snprintf(metric, sizeof metric, "%.*s_%s_%s", (int)(bare ? length - 1 : length), prefix, names[i],
                           unit);
        bench_result(bench, metric, unit, values[i], limits[i]);
    }
}

void bench_talk(struct bench *bench, const char *format, ...)
{
    if (bench->options.json || bench->options.child)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "%s: ", bench->program);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
}

/* ---- helpers ---- */

uint64_t bench_repeats(const struct bench *bench, uint64_t usual)
{
    uint64_t repeats = bench->options.repeats ? bench->options.repeats : usual;
    return repeats < BENCH_REPEATS_MAX ? repeats : BENCH_REPEATS_MAX;
}

double bench_seconds(const struct bench *bench, double usual)
{
    return bench->options.seconds > 0 ? bench->options.seconds : usual;
}

bool bench_stopped(void)
{
    return os_signal_caught() != 0;
}

int bench_failed(struct bench *bench, const struct tokmap_error *error)
{
    return cli_failed(bench->program, error);
}

int bench_failed_system(struct bench *bench, int system, const char *path, const char *what)
{
    struct tokmap_error error = {0};
    (void)error_set_system(&error, system, path, TOKMAP_NO_OFFSET, "%s", what);
    return cli_failed(bench->program, &error);
}

int bench_no_memory(struct bench *bench)
{
    struct tokmap_error error = {0};
    (void)error_set(&error, TOKMAP_ERROR_MEMORY, NULL, TOKMAP_NO_OFFSET,
                    "Out of memory; ask for fewer --tokens or --seconds.");
    return cli_failed(bench->program, &error);
}
