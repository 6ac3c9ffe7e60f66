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
#include "common/bytes.h"
#include "common/error.h"
#include "platform/process.h"

/* ---- repeats ---- */

struct repeats repeats_begin(struct bench *bench, uint64_t count, enum repeats_kind kind)
{
    const bool warm_first = kind == REPEATS_WARM_FIRST;
    return (struct repeats){.bench = bench, .count = count + warm_first, .warm_first = warm_first};
}

bool repeats_next(struct repeats *repeats)
{
    bench_stop_check(repeats->bench);
    if (repeats->begun == repeats->count)
        return false;
    repeats->number = repeats->begun++;
    repeats->counts = !repeats->warm_first || repeats->number;
    return true;
}

uint64_t bench_repeats(const struct bench *bench, uint64_t usual)
{
    const uint64_t less = bench->options.quick ? min64(usual, 3) : usual;
    const uint64_t repeats = bench->options.repeats ? bench->options.repeats : less;
    return repeats < SERIES_MOST ? repeats : SERIES_MOST;
}

double bench_seconds(const struct bench *bench, double usual)
{
    return bench->options.seconds > 0 ? bench->options.seconds : bench->options.quick ? usual / 3 : usual;
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
    {"need_gb_s", BETTER_NEITHER},
    {"need_tokens_per_s", BETTER_NEITHER},
    {"au_percent", BETTER_MORE},
    {"share_percent", BETTER_MORE},
    {"share_mean_percent", BETTER_MORE},
    {"share_low_percent", BETTER_MORE},
    {"share_high_percent", BETTER_MORE},
    {"wait_percent", BETTER_LESS},
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

static void report_add(const struct bench *bench, const char *metric, const char *unit, const struct result *result)
{
    static const char *const heads[REPORT_COLUMNS] = {"metric", "median", "unit",  "better", "min",
                                                      "max",    "n",      "limit", "ratio",  "verdict"};
    char label[128], texts[6][48], count[32];
    struct report *report = bench->report;
    if (!report)
        return;
    if (!report->rows++) {
        report->table = cli_table_new(result->verdict ? REPORT_COLUMNS : REPORT_COLUMNS - 1);
        cli_table_row(report->table, heads);
    }
    (void)snprintf(label, sizeof label, "%s.%s%s", bench->name, metric, bench->options.quick ? " (quick)" : "");
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
    if (bench->options.quick)
        cli_json_bool(json, "quick", true);
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
        report_add(bench, metric, unit, result);
}

static double ratio_of(double value, double limit)
{
    return isfinite(limit) && limit != 0 ? value / limit : (double)NAN;
}

static struct result result_of(double value, const struct series *repeats, double limit)
{
    return (struct result){.value = value,
                           .smallest = series_smallest(repeats),
                           .largest = series_largest(repeats),
                           .limit = limit,
                           .ratio = ratio_of(value, limit),
                           .count = repeats->count};
}

static struct result result_alone(double value, double limit)
{
    return (struct result){value, value, value, limit, ratio_of(value, limit), 1, BETTER_NEITHER, NULL};
}

void bench_result(struct bench *bench, const char *metric, const char *unit, const struct series *values,
                  const struct series *limit)
{
    struct result result = result_of(series_median(values), values, limit ? series_median(limit) : (double)NAN);
    if (values->count)
        result_write(bench, metric, unit, &result);
}

void bench_value(struct bench *bench, const char *metric, const char *unit, double value, double limit)
{
    struct result result = result_alone(value, limit);
    result_write(bench, metric, unit, &result);
}

void bench_value_alone(struct bench *bench, const char *metric, const char *unit, double value, double alone)
{
    struct result result = result_alone(value, alone);
    result.ratio = (double)NAN;
    result_write(bench, metric, unit, &result);
}

void bench_derived(struct bench *bench, const char *metric, const char *unit, double value,
                   const struct series *repeats)
{
    struct result result = result_of(value, repeats, (double)NAN);
    if (repeats->count)
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
                            .ratio = ratio_of(value, bar),
                            .count = figure->count,
                            .verdict = verdicts[held]};
    result_write(bench, figure->metric, figure->unit, &result);
    return held;
}

static void spread_write(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                         const struct spread *limit, bool with_ratio)
{
    static const char *const names[4] = {"p50", "p99", "p999", "max"};
    const struct spread none = {.p50 = {.count = 0}}, *const by = limit ? limit : &none;
    const struct series *const values[4] = {&spread->p50, &spread->p99, &spread->p999, &spread->largest};
    const struct series *const limits[4] = {&by->p50, &by->p99, &by->p999, &by->largest};
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
        struct result result = result_of(series_median(values[i]), values[i], series_median(limits[i]));
        if (!with_ratio)
            result.ratio = (double)NAN;
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
    struct result result = result_alone(number, (double)NAN);
    result.better = BETTER_LESS;
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

void bench_stop_check(struct bench *bench)
{
    if (bench_stopped())
        bench_end(bench, CLI_FAILED);
}

/* Other threads may still run, so nothing but the end of the process stops them. */
void bench_end(struct bench *bench, int result)
{
    _Exit(bench->finish(bench, result));
}

void bench_failed(struct bench *bench, const struct tokmap_error *error)
{
    assert(error->status);
    bench_end(bench, cli_failed(bench->program, error));
}

void bench_failed_system(struct bench *bench, int system, const char *path, const char *what)
{
    assert(system);
    (void)error_set_system(&bench->error, system, path, TOKMAP_NO_OFFSET, "%s", what);
    bench_failed(bench, &bench->error);
}

void bench_no_memory(struct bench *bench)
{
    (void)error_set(&bench->error, TOKMAP_ERROR_MEMORY, NULL, TOKMAP_NO_OFFSET,
                    "There is not enough memory for this case; lower --tokens, --rows or --seconds.");
    bench_failed(bench, &bench->error);
}

void bench_check(struct bench *bench, enum tokmap_status status)
{
    if (status)
        bench_failed(bench, &bench->error);
}

void bench_check_system(struct bench *bench, int system, const char *path, const char *what)
{
    if (system)
        bench_failed_system(bench, system, path, what);
}

void *bench_new(struct bench *bench, uint64_t count, size_t size)
{
    void *memory = count > SIZE_MAX / size ? NULL : calloc((size_t)max64(1, count), size);
    if (!memory)
        bench_no_memory(bench);
    return memory;
}

void bench_samples_new(struct bench *bench, struct samples *samples, size_t capacity)
{
    if (!samples_new(samples, capacity))
        bench_no_memory(bench);
}

void bench_append(struct bench *bench, struct bytes_buffer *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0 || !bytes_reserve(text, (size_t)length + 1))
        bench_no_memory(bench);
    (void)vsnprintf((char *)text->bytes + text->count, (size_t)length + 1, format, again);
    text->count += (size_t)length;
    va_end(again);
    va_end(arguments);
}

int bench_misused(struct bench *bench, const char *message)
{
    cli_say(bench->program, "%s", message);
    return CLI_MISUSED;
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
