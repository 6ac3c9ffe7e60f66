/* SPDX-License-Identifier: MIT */
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
    struct cli_table *table; /* made with the first row */
    size_t rows;
};

/* The last column is only for figures. */
#define REPORT_COLUMNS 10

struct report *report_new(void)
{
    return calloc(1, sizeof(struct report));
}

void report_print(struct report *report)
{
    static const bool right[REPORT_COLUMNS] = {false, true, false, false, true, true, true, true, true, false};
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

/* ---- which way is better ---- */

enum better { BETTER_MORE, BETTER_LESS, BETTER_NEITHER };

/* Metrics whose units do not decide, or that differ from others of their unit. BETTER_NEITHER: it is a setting, a
 * description, or a part of a whole. The first ending that fits counts. */
static const struct {
    const char *ending;
    enum better better;
} metric_directions[] = {
    {"paced_tokens_per_s", BETTER_NEITHER},
    {"need_gb_s", BETTER_NEITHER},
    {"need_tokens_per_s", BETTER_NEITHER},
    {"au_percent", BETTER_MORE},
    {"fill_percent", BETTER_MORE},
    {"hit_percent", BETTER_MORE},
    {"share_percent", BETTER_MORE},
    {"share_mean_percent", BETTER_MORE},
    {"share_low_percent", BETTER_MORE},
    {"share_high_percent", BETTER_MORE},
    {"merged_percent", BETTER_LESS},
    {"wait_percent", BETTER_LESS},
    {"trace_percent", BETTER_LESS},
    {"trace_inline_percent", BETTER_LESS},
    {"journal_percent", BETTER_LESS},
    {"sealed_percent", BETTER_LESS},
    {"saturated_cpu_percent", BETTER_NEITHER},
    {"others_percent", BETTER_LESS},
    {"steal_percent", BETTER_LESS},
    {"load_average", BETTER_LESS},
    {"amplification", BETTER_LESS},
    {"work_per_byte", BETTER_LESS},
    {"ratio", BETTER_MORE},
    {"_share", BETTER_MORE},
    {"_slower", BETTER_LESS},
    {"race_batches", BETTER_MORE},
    {"equal", BETTER_MORE},
    {"kernel", BETTER_MORE},
    {"not_ready", BETTER_LESS},
    {"mismatches", BETTER_LESS},
    {"host_expanded", BETTER_LESS},
};

/* Whole units; rates, whose units end in "/s", are better if they are larger. */
static const struct {
    const char *unit;
    enum better better;
} unit_directions[] = {
    {"s/Mtoken", BETTER_LESS}, {"x", BETTER_MORE}, {"ns", BETTER_LESS},  {"us", BETTER_LESS},
    {"ms", BETTER_LESS},       {"s", BETTER_LESS}, {"MiB", BETTER_LESS}, {"calls", BETTER_LESS},
};

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static enum better better_of(const char *metric, const char *unit)
{
    for (size_t i = 0; i < sizeof metric_directions / sizeof metric_directions[0]; i++)
        if (ends_with(metric, metric_directions[i].ending))
            return metric_directions[i].better;
    for (size_t i = 0; i < sizeof unit_directions / sizeof unit_directions[0]; i++)
        if (!strcmp(unit, unit_directions[i].unit))
            return unit_directions[i].better;
    return ends_with(unit, "/s") ? BETTER_MORE : BETTER_NEITHER;
}

struct result {
    double value, smallest, largest, limit, ratio;
    size_t count;
    enum better better;
    const char *verdict; /* of a figure; NULL: this is not a figure */
};

static void report_add(struct report *report, const char *name, const char *metric, const char *unit,
                       const struct result *result)
{
    static const char *const heads[REPORT_COLUMNS] = {"metric", "median", "unit",  "better", "min",
                                                      "max",    "n",      "limit", "ratio",  "verdict"};
    char label[128], texts[6][48], count[32];
    if (!report)
        return;
    if (!report->rows++) {
        report->table = cli_table_new(result->verdict ? REPORT_COLUMNS : REPORT_COLUMNS - 1);
        cli_table_row(report->table, heads);
    }
    (void)snprintf(label, sizeof label, "%s.%s", name, metric);
    const char *cells[REPORT_COLUMNS] = {
        label,
        cell(result->value, texts[0]),
        unit,
        result->better == BETTER_NEITHER ? ""
        : result->better == BETTER_MORE  ? "more"
                                         : "less",
        cell(result->smallest, texts[1]),
        cell(result->largest, texts[2]),
        cli_count(result->count, count),
        cell(result->limit, texts[3]),
        cell(result->ratio, texts[4]),
        result->verdict,
    };
    cli_table_row(report->table, cells);
}

bool bench_json_wanted(const struct bench *bench)
{
    return bench->options.json || ((bench->options.plot || bench->options.save) && !bench->options.child);
}

void bench_json_begin(struct bench *bench, struct cli_json *json)
{
    assert(!bench->line);
    bench->line = open_memstream(&bench->line_text, &bench->line_bytes);
    if (!bench->line)
        cli_output_lost();
    cli_json_begin(json, bench->line ? bench->line : stdout);
    cli_json_object(json, NULL);
    cli_json_text(json, "case", bench->name);
}

void bench_json_end(struct bench *bench, struct cli_json *json)
{
    cli_json_text(json, "command", bench->command);
    cli_json_text(json, "machine", bench->machine);
    cli_json_text(json, "date", bench->date);
    cli_json_end(json);
    if (!bench->line)
        return;
    const bool whole = !fclose(bench->line);
    bench->line = NULL;
    if (!whole || ((bench->options.plot || bench->options.save) &&
                   !bytes_append(&bench->lines, bench->line_text, bench->line_bytes)))
        cli_output_lost();
    else if (bench->options.json)
        (void)fwrite(bench->line_text, 1, bench->line_bytes, stdout);
    (void)fflush(stdout);
    free(bench->line_text);
    bench->line_text = NULL;
}

/* Begins the line of a result; the caller ends it. */
static void result_begin(struct bench *bench, struct cli_json *json, const char *metric, const char *unit,
                         const struct result *result)
{
    bench_json_begin(bench, json);
    cli_json_text(json, "metric", metric);
    cli_json_real(json, "value", result->value);
    cli_json_text(json, "unit", unit);
    if (result->better != BETTER_NEITHER)
        cli_json_text(json, "better", result->better == BETTER_MORE ? "more" : "less");
    else
        cli_json_null(json, "better");
    cli_json_real(json, "min", result->smallest);
    cli_json_real(json, "max", result->largest);
    cli_json_number(json, "n", result->count);
    if (isfinite(result->limit))
        cli_json_real(json, "limit", result->limit);
    if (isfinite(result->ratio))
        cli_json_real(json, "ratio", result->ratio);
}

static void result_write(struct bench *bench, const char *metric, const char *unit, struct result *result)
{
    result->better = better_of(metric, unit);
    struct cli_json json;
    if (bench_json_wanted(bench)) {
        result_begin(bench, &json, metric, unit, result);
        if (result->verdict && *result->verdict)
            cli_json_text(&json, "verdict", result->verdict);
        else if (result->verdict)
            cli_json_null(&json, "verdict");
        bench_json_end(bench, &json);
    }
    if (!bench->options.json)
        report_add(bench->report, bench->name, metric, unit, result);
}

static double ratio_of(const struct result *result)
{
    return isfinite(result->limit) && result->limit != 0 ? result->value / result->limit : (double)NAN;
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
    result.ratio = ratio_of(&result);
    result_write(bench, metric, unit, &result);
}

void bench_value(struct bench *bench, const char *metric, const char *unit, double value, double limit)
{
    struct result result = {.value = value, .smallest = value, .largest = value, .limit = limit, .count = 1};
    result.ratio = ratio_of(&result);
    result_write(bench, metric, unit, &result);
}

void bench_value_alone(struct bench *bench, const char *metric, const char *unit, double value, double alone)
{
    struct result result = {
        .value = value, .smallest = value, .largest = value, .limit = alone, .ratio = (double)NAN, .count = 1};
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
                            .ratio = (double)NAN,
                            .count = repeats->count};
    result_write(bench, metric, unit, &result);
}

enum bench_held bench_figure(struct bench *bench, const struct bench_figure *figure)
{
    static const char *const verdicts[] = {"held", "short", "not measured", ""};
    enum bench_held held = BENCH_NO_BAR;
    const double value = figure->value, bar = figure->bar;
    if (!isfinite(value))
        held = BENCH_NOT_MEASURED;
    else if (isfinite(bar))
        held = (better_of(figure->metric, figure->unit) == BETTER_MORE ? value >= bar : value <= bar) ? BENCH_HELD
                                                                                                      : BENCH_SHORT;
    struct result result = {.value = value,
                            .smallest = figure->smallest,
                            .largest = figure->largest,
                            .limit = bar,
                            .count = figure->count,
                            .verdict = verdicts[held]};
    result.ratio = ratio_of(&result);
    result_write(bench, figure->metric, figure->unit, &result);
    return held;
}

static void spread_write(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                         const struct spread *limit, bool with_ratio)
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
        if (!values[i]->count)
            continue;
        if (bare && i == 0)
            (void)snprintf(metric, sizeof metric, "%.*s_%s", (int)length - 1, prefix, unit);
        else
            (void)snprintf(metric, sizeof metric, "%.*s_%s_%s", (int)(bare ? length - 1 : length), prefix, names[i],
                           unit);
        struct result result = {.value = series_median(values[i]),
                                .smallest = series_smallest(values[i]),
                                .largest = series_largest(values[i]),
                                .limit = limits[i] ? series_median(limits[i]) : (double)NAN,
                                .count = values[i]->count};
        result.ratio = with_ratio ? ratio_of(&result) : (double)NAN;
        result_write(bench, metric, unit, &result);
    }
}

void bench_spread(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                  const struct spread *limit)
{
    spread_write(bench, prefix, unit, spread, limit, true);
}

void bench_spread_alone(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                        const struct spread *alone)
{
    spread_write(bench, prefix, unit, spread, alone, false);
}

/* ---- messages and failures ---- */

void bench_verdict(struct bench *bench, int number, const char *verdict, const char *binds, const char *sentence)
{
    (void)snprintf(bench->sentence, sizeof bench->sentence, "%s", sentence);
    if (!bench_json_wanted(bench))
        return;
    struct cli_json json;
    const struct result result = {.value = number,
                                  .smallest = number,
                                  .largest = number,
                                  .limit = (double)NAN,
                                  .ratio = (double)NAN,
                                  .count = 1,
                                  .better = BETTER_LESS};
    result_begin(bench, &json, "verdict", "0 ok, 1 tight, 2 bottleneck, 3 none", &result);
    cli_json_text(&json, "verdict", verdict);
    cli_json_text(&json, "binds", binds);
    cli_json_text(&json, "sentence", sentence);
    bench_json_end(bench, &json);
}

void bench_text(struct bench *bench, const char *metric, const char *text)
{
    const double none = (double)NAN;
    struct cli_json json;
    const struct result result = {none, none, none, none, none, 0, BETTER_NEITHER, NULL};
    if (!bench_json_wanted(bench))
        return;
    result_begin(bench, &json, metric, "text", &result);
    cli_json_text(&json, "text", text);
    bench_json_end(bench, &json);
}

void bench_answer(struct bench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(bench->sentence, sizeof bench->sentence, format, arguments);
    va_end(arguments);
}

void bench_say(struct bench *bench, const char *format, ...)
{
    if (bench->options.json || bench->options.child)
        return;
    va_list arguments;
    va_start(arguments, format);
    cli_say_list(bench->program, format, arguments);
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

/* ---- small helpers ---- */

const char *numbers_read(const char *text, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text += strcspn(text, "0123456789");
        const size_t digits = strspn(text, "0123456789");
        char number[24];
        if (!digits || digits >= sizeof number)
            return NULL;
        memcpy(number, text, digits);
        number[digits] = '\0';
        if (!cli_parse_number(number, &numbers[i]))
            return NULL;
        text += digits;
    }
    return text;
}
