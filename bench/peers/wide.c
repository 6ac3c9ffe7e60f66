/* SPDX-License-Identifier: MIT */
/* wide.c - see wide.h. */
#include "wide.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define WIDTH 120     /* columns of the terminal that a table may take; its metrics then go on in another one */
#define TEXTS_MOST 64 /* notes */

struct row {
    char *table, *label;
    char *absent;         /* reason why it has no figures, or NULL */
    char *verdict, *text; /* equal: yes, no, or undefined, and what was compared; or NULL */
    char *about;          /* or NULL */
};

struct metric {
    char *table, *name, *unit;
    char better; /* '+', '-', or 0 */
};

struct wide {
    struct row rows[WIDE_ROWS];
    struct metric metrics[WIDE_METRICS];
    struct series *cells[WIDE_ROWS][WIDE_METRICS]; /* NULL: the row has no such figure */
    char *notes[TEXTS_MOST];
    size_t row_count, metric_count, note_count;
    char *answer;
    bool lost; /* memory was short */
};

struct wide *wide_new(struct bench *bench)
{
    return bench_new(bench, 1, sizeof(struct wide));
}

void wide_free(struct wide *wide)
{
    for (size_t r = 0; r < wide->row_count; r++) {
        struct row *row = &wide->rows[r];
        char *const texts[] = {row->table, row->label, row->absent, row->verdict, row->text, row->about};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            free(texts[i]);
        for (size_t m = 0; m < wide->metric_count; m++)
            free(wide->cells[r][m]);
    }
    for (size_t m = 0; m < wide->metric_count; m++) {
        free(wide->metrics[m].table);
        free(wide->metrics[m].name);
        free(wide->metrics[m].unit);
    }
    for (size_t i = 0; i < wide->note_count; i++)
        free(wide->notes[i]);
    free(wide->answer);
    free(wide);
}

/* ---- lines ---- */

static void text_set(struct wide *wide, char **into, const char *text)
{
    free(*into);
    *into = strdup(text);
    wide->lost |= !*into;
}

/* Returns the row of the table with that label, which is made if there is none; NULL if there are too many. table "":
 * that of the first row with that label; a new row gets its table when it is named with one. */
static struct row *row_of(struct wide *wide, const char *table, const char *label)
{
    for (size_t i = 0; i < wide->row_count; i++) {
        struct row *row = &wide->rows[i];
        if (strcmp(row->label, label) != 0 || (*table && *row->table && strcmp(row->table, table) != 0))
            continue;
        if (!*row->table)
            text_set(wide, &row->table, table);
        return row->table ? row : NULL;
    }
    if (wide->row_count == WIDE_ROWS)
        return NULL;
    struct row *row = &wide->rows[wide->row_count];
    text_set(wide, &row->table, table);
    text_set(wide, &row->label, label);
    if (!row->table || !row->label)
        return NULL;
    wide->row_count++;
    return row;
}

static struct metric *metric_of(struct wide *wide, const struct script_line *line)
{
    const char *table = line->fields[1], *name = line->fields[3];
    for (size_t i = 0; i < wide->metric_count; i++)
        if (!strcmp(wide->metrics[i].table, table) && !strcmp(wide->metrics[i].name, name))
            return &wide->metrics[i];
    if (wide->metric_count == WIDE_METRICS)
        return NULL;
    struct metric *metric = &wide->metrics[wide->metric_count];
    text_set(wide, &metric->table, table);
    text_set(wide, &metric->name, name);
    text_set(wide, &metric->unit, line->fields[4]);
    if (!metric->table || !metric->name || !metric->unit)
        return NULL;
    metric->better = 0;
    wide->metric_count++;
    return metric;
}

/* Reads numbers with commas between them. Returns false if one of them is not a finite number. */
static bool numbers_take(struct series *series, const char *text)
{
    for (;;) {
        char *end;
        const double value = strtod(text, &end);
        if (end == text || !isfinite(value) || (*end && *end != ','))
            return false;
        series_add(series, value);
        if (!*end)
            return true;
        text = end + 1;
    }
}

/* Returns what is wrong with the line, or NULL. */
static const char *values_take(struct wide *wide, const struct script_line *line)
{
    struct row *row = row_of(wide, line->fields[1], line->fields[2]);
    struct metric *metric = metric_of(wide, line);
    if (!row || !metric)
        return "there are too many rows or metrics";
    const char *better = line->fields[5];
    if (!strcmp(better, "more"))
        metric->better = '+';
    else if (!strcmp(better, "less"))
        metric->better = '-';
    else if (strcmp(better, "-") != 0)
        return "whether more or less is better must be more, less, or -";
    struct series **cell = &wide->cells[row - wide->rows][metric - wide->metrics];
    if (*cell)
        return "the row already has this metric";
    *cell = calloc(1, sizeof **cell);
    if (!*cell)
        wide->lost = true;
    else if (!numbers_take(*cell, line->fields[6]))
        return "its values are not numbers with commas between them";
    return NULL;
}

/* Returns what is wrong with a line that consists of texts, or NULL. */
static const char *texts_take(struct wide *wide, const struct script_line *line)
{
    char *const *fields = line->fields;
    if (!strcmp(fields[0], "answer")) {
        text_set(wide, &wide->answer, fields[1]);
        return NULL;
    }
    if (!strcmp(fields[0], "note")) {
        if (wide->note_count < TEXTS_MOST)
            text_set(wide, &wide->notes[wide->note_count++], fields[1]);
        return NULL;
    }
    const bool about = !strcmp(fields[0], "about"), equal = !strcmp(fields[0], "equal");
    if (!about && !equal && strcmp(fields[0], "absent") != 0)
        return "this kind of line belongs to another command";
    struct row *row = row_of(wide, about ? "" : fields[1], fields[about ? 1 : 2]);
    if (!row)
        return "there are too many rows";
    if (about) {
        text_set(wide, &row->about, fields[2]);
    } else if (!equal) {
        text_set(wide, &row->absent, fields[3]);
    } else {
        if (strcmp(fields[3], "yes") != 0 && strcmp(fields[3], "no") != 0 && strcmp(fields[3], "undefined") != 0)
            return "its verdict must be yes, no, or undefined";
        text_set(wide, &row->verdict, fields[3]);
        text_set(wide, &row->text, fields[4]);
    }
    return NULL;
}

int wide_line(struct bench *bench, struct wide *wide, const struct script_line *line)
{
    const bool values = !strcmp(line->fields[0], "row");
    const char *wrong = values ? values_take(wide, line) : texts_take(wide, line);
    if (wide->lost)
        bench_no_memory(bench);
    if (!wrong)
        return CLI_DONE;
    cli_say(bench->program, "a script printed a wrong line, `%s` of '%.60s': %s", line->fields[0], line->fields[1],
            wrong);
    return CLI_FAILED;
}

/* ---- values beside one another ---- */

static double value_of(const struct wide *wide, size_t row, size_t metric)
{
    const struct series *cell = wide->cells[row][metric];
    return cell ? series_median(cell) : (double)NAN;
}

/* Returns the row that ratios refer to: that of tokmap in the same table, or WIDE_ROWS. */
static size_t reference_row(const struct wide *wide, const char *table)
{
    for (size_t r = 0; r < wide->row_count; r++)
        if (!strcmp(wide->rows[r].table, table) && !strcmp(wide->rows[r].label, "tokmap"))
            return r;
    return WIDE_ROWS;
}

/* Returns value / that of tokmap, or NAN: for tokmap itself, for 0, and where nothing is better. */
static double ratio_of(const struct wide *wide, size_t row, size_t metric)
{
    const size_t reference = reference_row(wide, wide->rows[row].table);
    if (reference == WIDE_ROWS || reference == row || !wide->metrics[metric].better)
        return (double)NAN;
    const double ours = value_of(wide, reference, metric);
    return ours != 0 ? value_of(wide, row, metric) / ours : (double)NAN;
}

/* Returns whether no other row of the table is better, and at least one is worse. */
static bool is_best(const struct wide *wide, size_t row, size_t metric)
{
    const char better = wide->metrics[metric].better;
    const double value = value_of(wide, row, metric);
    bool worse = false;
    if (!better || !isfinite(value))
        return false;
    for (size_t r = 0; r < wide->row_count; r++) {
        const double other = value_of(wide, r, metric);
        if (!isfinite(other) || strcmp(wide->rows[r].table, wide->rows[row].table) != 0)
            continue;
        if (better == '+' ? other > value : other < value)
            return false;
        worse |= other != value;
    }
    return worse;
}

/* ---- the table ---- */

/* Four significant digits, with M or G for large numbers. */
static const char *value_text(double value, char text[32])
{
    const double size = fabs(value);
    if (!isfinite(value))
        return "";
    if (size >= 1e6)
        (void)snprintf(text, 32, "%.*f%s", size >= 1e9 || size < 1e8 ? 2 : 1, value / (size >= 1e9 ? 1e9 : 1e6),
                       size >= 1e9 ? "G" : "M");
    else if (size >= 1000 || value == rint(value))
        (void)snprintf(text, 32, "%.0f", value);
    else if (size < 0.001)
        (void)snprintf(text, 32, "%.3g", value);
    else
        (void)snprintf(text, 32, "%.*f", size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4, value);
    return text;
}

static const char *ratio_text(const struct wide *wide, size_t row, size_t metric, char text[32])
{
    const double ratio = ratio_of(wide, row, metric);
    const char *star = is_best(wide, row, metric) ? "*" : "";
    if (!isfinite(ratio))
        (void)snprintf(text, 32, "%s", star);
    else
        (void)snprintf(text, 32, "%s%.*fx", star, ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2, ratio);
    return text;
}

/* Returns whether a row is in the table and has figures. */
static bool row_shown(const struct wide *wide, size_t row, const char *table)
{
    return !strcmp(wide->rows[row].table, table) && !wide->rows[row].absent;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the terminal columns that a metric takes, with the spaces before both of its columns. */
static size_t metric_width(const struct wide *wide, size_t metric)
{
    const struct metric *it = &wide->metrics[metric];
    char text[32];
    size_t values = larger(strlen(it->name), strlen(it->unit)), ratios = 0;
    for (size_t r = 0; r < wide->row_count; r++) {
        if (!row_shown(wide, r, it->table))
            continue;
        values = larger(values, strlen(value_text(value_of(wide, r, metric), text)));
        ratios = larger(ratios, strlen(ratio_text(wide, r, metric, text)));
    }
    return values + ratios + 4;
}

/* Prints the metrics list[0 .. count - 1] of a table. */
static void block_print(const struct wide *wide, const char *table, const size_t *list, size_t count)
{
    enum { MOST = 2 * WIDE_METRICS + 1 };
    const size_t columns = 2 * count + 1;
    const char *names[MOST], *units[MOST];
    bool right[MOST];
    struct cli_table *printed = cli_table_new(columns);
    names[0] = table;
    units[0] = "";
    right[0] = false;
    for (size_t i = 0; i < count; i++) {
        names[2 * i + 1] = wide->metrics[list[i]].name;
        units[2 * i + 1] = wide->metrics[list[i]].unit;
        names[2 * i + 2] = units[2 * i + 2] = "";
        right[2 * i + 1] = true;
        right[2 * i + 2] = false;
    }
    cli_table_row(printed, names);
    cli_table_row(printed, units);
    for (size_t r = 0; r < wide->row_count; r++) {
        char texts[MOST][32];
        const char *cells[MOST] = {wide->rows[r].label};
        if (!row_shown(wide, r, table))
            continue;
        for (size_t i = 0; i < count; i++) {
            cells[2 * i + 1] = value_text(value_of(wide, r, list[i]), texts[2 * i]);
            cells[2 * i + 2] = ratio_text(wide, r, list[i], texts[2 * i + 1]);
        }
        cli_table_row(printed, cells);
    }
    cli_table_print(printed, right, stdout);
    cli_table_free(printed);
}

static void table_print(const struct wide *wide, const char *table)
{
    size_t list[WIDE_METRICS], count = 0, label = strlen(table);
    for (size_t r = 0; r < wide->row_count; r++)
        if (row_shown(wide, r, table))
            label = larger(label, strlen(wide->rows[r].label));
    size_t used = label;
    for (size_t m = 0; m < wide->metric_count; m++) {
        if (strcmp(wide->metrics[m].table, table) != 0)
            continue;
        const size_t width = metric_width(wide, m);
        if (count && used + width > WIDTH) {
            block_print(wide, table, list, count);
            (void)printf("\n");
            count = 0;
            used = label;
        }
        list[count++] = m;
        used += width;
    }
    if (count)
        block_print(wide, table, list, count);
}

static void rows_describe(const struct wide *wide)
{
    for (size_t r = 0; r < wide->row_count; r++)
        if (wide->rows[r].absent)
            cli_print("%s is absent: %s\n", wide->rows[r].label, wide->rows[r].absent);
    for (size_t r = 0; r < wide->row_count; r++) {
        const struct row *row = &wide->rows[r];
        if (row->verdict && !row->absent)
            cli_print("%s: %s: %s\n", row->label,
                      !strcmp(row->verdict, "yes")  ? "delivered the tokens of the reference"
                      : !strcmp(row->verdict, "no") ? "DELIVERED OTHER TOKENS"
                                                    : "has no defined order",
                      row->text);
        if (row->about)
            cli_print("%s: %s\n", row->label, row->about);
    }
    for (size_t i = 0; i < wide->note_count; i++)
        cli_print("%s\n", wide->notes[i]);
}

/* ---- JSON ---- */

static void line_begin(struct bench *bench, struct cli_json *json, const char *table, const char *row,
                       const char *metric)
{
    bench_json_begin(bench, json);
    if (table && *table)
        cli_json_text(json, "table", table);
    if (row)
        cli_json_text(json, "row", row);
    cli_json_text(json, "metric", metric);
}

/* Writes the members that every result has. */
static void line_value(struct cli_json *json, double value, const char *unit, char better, const struct series *series)
{
    cli_json_real(json, "value", value);
    cli_json_text(json, "unit", unit);
    if (better)
        cli_json_text(json, "better", better == '+' ? "more" : "less");
    else
        cli_json_null(json, "better");
    cli_json_real(json, "min", series ? series_smallest(series) : value);
    cli_json_real(json, "max", series ? series_largest(series) : value);
    cli_json_number(json, "n", series ? series->count : 1);
}

static void line_cell(struct bench *bench, const struct wide *wide, size_t r, size_t m)
{
    const struct metric *metric = &wide->metrics[m];
    const struct series *series = wide->cells[r][m];
    const double ratio = ratio_of(wide, r, m);
    struct cli_json json;
    line_begin(bench, &json, metric->table, wide->rows[r].label, metric->name);
    line_value(&json, series_median(series), metric->unit, metric->better, series);
    if (isfinite(ratio))
        cli_json_real(&json, "ratio", ratio);
    cli_json_array(&json, "values");
    for (size_t i = 0; i < series->count; i++)
        cli_json_real(&json, NULL, series->values[i]);
    cli_json_end(&json);
    bench_json_end(bench, &json);
}

/* Writes a line whose value is a text. */
static void line_text(struct bench *bench, const struct row *row, const char *metric, double value, const char *verdict,
                      const char *text)
{
    struct cli_json json;
    line_begin(bench, &json, row ? row->table : NULL, row ? row->label : NULL, metric);
    line_value(&json, value, "", 0, NULL);
    if (verdict)
        cli_json_text(&json, "verdict", verdict);
    cli_json_text(&json, "text", text);
    bench_json_end(bench, &json);
}

static void json_print(struct bench *bench, const struct wide *wide)
{
    for (size_t r = 0; r < wide->row_count; r++) {
        const struct row *row = &wide->rows[r];
        for (size_t m = 0; m < wide->metric_count; m++)
            if (wide->cells[r][m])
                line_cell(bench, wide, r, m);
        if (row->absent)
            line_text(bench, row, "absent", 1, NULL, row->absent);
        if (row->verdict)
            line_text(bench, row, "equal",
                      !strcmp(row->verdict, "yes")  ? 1
                      : !strcmp(row->verdict, "no") ? 0
                                                    : (double)NAN,
                      row->verdict, row->text);
        if (row->about)
            line_text(bench, row, "about", 1, NULL, row->about);
    }
    for (size_t i = 0; i < wide->note_count; i++)
        line_text(bench, NULL, "note", 1, NULL, wide->notes[i]);
    if (wide->answer)
        line_text(bench, NULL, "answer", 1, NULL, wide->answer);
}

/* ---- everything ---- */

void wide_print(struct bench *bench, struct wide *wide)
{
    if (wide->answer)
        bench_answer(bench, "%s", wide->answer);
    if (bench_json_wanted(bench))
        json_print(bench, wide);
    if (bench->options.json)
        return;
    for (size_t m = 0; m < wide->metric_count; m++) {
        bool printed = false;
        for (size_t i = 0; i < m; i++)
            printed |= !strcmp(wide->metrics[i].table, wide->metrics[m].table);
        if (printed)
            continue;
        table_print(wide, wide->metrics[m].table);
        (void)printf("\n");
    }
    rows_describe(wide);
}

int wide_check(const struct bench *bench, const struct wide *wide)
{
    int result = CLI_DONE;
    for (size_t r = 0; r < wide->row_count; r++) {
        const struct row *row = &wide->rows[r];
        if (!row->verdict || strcmp(row->verdict, "no") != 0)
            continue;
        cli_say(bench->program, "%s delivered other tokens than the reference: %s", row->label, row->text);
        result = CLI_FAILED;
    }
    return result;
}
