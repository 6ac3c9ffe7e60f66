/* harness.c - see harness.h. */
#include "harness.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "platform/process.h"

/* ---- repeats ---- */

struct repeats repeats_begin(uint64_t count, enum repeats_kind kind)
{
    const bool warm_first = kind == REPEATS_WARM_FIRST;
    return (struct repeats){.count = count + warm_first, .warm_first = warm_first};
}

bool repeats_next(struct repeats *repeats, int result)
{
    if (result || bench_stopped() || repeats->begun == repeats->count)
        return false;
    repeats->number = repeats->begun++;
    repeats->counts = !repeats->warm_first || repeats->number;
    return true;
}

uint64_t bench_repeats(const struct bench *bench, uint64_t usual)
{
    const uint64_t repeats = bench->options.repeats ? bench->options.repeats : usual;
    return repeats < SERIES_MOST ? repeats : SERIES_MOST;
}

double bench_seconds(const struct bench *bench, double usual)
{
    return bench->options.seconds > 0 ? bench->options.seconds : usual;
}

/* ---- results ---- */

/* The rows of the table so far. Results in JSON are printed as they come, without a report. */
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

/* Formats a number for the table: four significant digits, or a whole number with separators if it is large. An empty
 * cell stands for NAN. */
static const char *cell(double value, char text[48])
{
    if (!isfinite(value))
        return "";
    const double size = value < 0 ? -value : value;
    if (size >= 1e5 && size < 1e15) {
        char count[32];
        (void)snprintf(text, 48, "%s%s", value < 0 ? "-" : "", cli_count((uint64_t)(size + 0.5), count));
        return text;
    }
    const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
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

static void result_write(struct bench *bench, const char *metric, const char *unit, struct result *result)
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
    result_write(bench, metric, unit, &result);
}

void bench_value(struct bench *bench, const char *metric, const char *unit, double value, double limit)
{
    struct result result = {.value = value, .smallest = value, .largest = value, .limit = limit, .count = 1};
    result_write(bench, metric, unit, &result);
}

void bench_derived(struct bench *bench, const char *metric, const char *unit, double value,
                   const struct series *repeats)
{
    if (!repeats->count)
        return;
    struct result result = {.value = value,
                            .smallest = series_smallest(repeats),
                            .largest = series_largest(repeats),
                            .limit = (double)NAN,
                            .count = repeats->count};
    result_write(bench, metric, unit, &result);
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
    const size_t length = strlen(prefix);
    const bool bare = length && prefix[length - 1] == '=';
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

/* ---- messages and failures ---- */

void bench_say(struct bench *bench, const char *format, ...)
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

bool bench_stopped(void)
{
    return os_signal_caught() != 0;
}

int bench_failed(struct bench *bench, const struct tokmap_error *error)
{
    assert(error->status);
    return cli_failed(bench->program, error);
}

int bench_failed_system(struct bench *bench, int system, const char *path, const char *what)
{
    struct tokmap_error error = {0};
    assert(system);
    (void)error_set_system(&error, system, path, TOKMAP_NO_OFFSET, "%s", what);
    return cli_failed(bench->program, &error);
}

int bench_no_memory(struct bench *bench)
{
    struct tokmap_error error = {0};
    (void)error_set(&error, TOKMAP_ERROR_MEMORY, NULL, TOKMAP_NO_OFFSET,
                    "There is not enough memory for this case; lower --tokens, --rows or --seconds.");
    return cli_failed(bench->program, &error);
}
