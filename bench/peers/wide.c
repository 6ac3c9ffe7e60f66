/* SPDX-License-Identifier: MIT */
/* wide.c - see wide.h. */
#include "wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define WIDTH 120     /* columns of the terminal that a table may take; its metrics then go on in another one */
#define TEXTS_MOST 64 /* notes */
#define ROWS_MOST 256
#define METRICS_MOST 128
#define FAULTS_WIDE 4 /* faults of one table */

/* Words of a fault's cell: whether the loader kept silent while rows were wrong, and whether tokmap promises more. Its
 * errors name the file, no row is lost or repeated, and what is delivered is the data, because rows are compared with
 * the hashes of their pages. */
static const struct word {
    const char *word;
    bool silent, broken;
    const char *meaning;
} words[] = {{"none", false, false, "every row came once and right"},
             {"place", false, false, "an error that names the file and a position in it"},
             {"status", false, false, "an error that names the file"},
             {"exception", false, true, "an error that names no file"},
             {"crash", false, true, "the process died"},
             {"hang", false, true, "no batch came any more"},
             {"garbage", true, true, "rows that are not the data, without a word"},
             {"lost", true, true, "rows never came, without a word"},
             {"repeated", true, true, "rows came again, without a word"},
             {"unreachable", false, false, "the fault cannot be injected into this loader here"},
             {"absent", false, false, "the loader cannot be had here"}};

/* A figure, or what a fault did. All are NULL where the row has no such cell. */
struct cell {
    struct series *values;
    const struct word *word;
    const char *text;
};

struct row {
    const char *label;
    bool in_table;              /* false: only its version and options are known */
    const char *absent;         /* reason why it has no figures, or NULL */
    const char *verdict, *text; /* equal: yes, no, or undefined, and what was compared; or NULL */
    const char *about;          /* or NULL */
};

struct metric {
    const char *name, *unit; /* unit: NULL of a fault */
    char better;             /* '+', '-', or 0 */
};

/* The table. Its texts are never freed, because the process ends after it has been printed. */
static struct {
    const char *name;
    struct row rows[ROWS_MOST];
    struct metric metrics[METRICS_MOST];
    struct cell cells[ROWS_MOST][METRICS_MOST];
    const char *notes[TEXTS_MOST];
    size_t row_count, metric_count, note_count;
    const char *answer;
} wide;

/* ---- lines ---- */

static const char *text_copy(struct bench *bench, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        bench_no_memory(bench);
    return copy;
}

/* Returns the row with that label, which is made if there is none; NULL if there are too many. */
static struct row *row_of(struct bench *bench, const char *label)
{
    for (size_t i = 0; i < wide.row_count; i++)
        if (!strcmp(wide.rows[i].label, label))
            return &wide.rows[i];
    if (wide.row_count == ROWS_MOST)
        return NULL;
    wide.rows[wide.row_count].label = text_copy(bench, label);
    return &wide.rows[wide.row_count++];
}

/* Does the same for a metric. unit: NULL for a fault. */
static struct metric *metric_of(struct bench *bench, const char *name, const char *unit)
{
    for (size_t i = 0; i < wide.metric_count; i++)
        if (!strcmp(wide.metrics[i].name, name))
            return &wide.metrics[i];
    if (wide.metric_count == METRICS_MOST)
        return NULL;
    wide.metrics[wide.metric_count] = (struct metric){text_copy(bench, name), unit ? text_copy(bench, unit) : NULL, 0};
    return &wide.metrics[wide.metric_count++];
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
static const char *values_take(struct bench *bench, const struct script_line *line)
{
    struct row *row = row_of(bench, line->fields[2]);
    struct metric *metric = metric_of(bench, line->fields[3], line->fields[4]);
    if (!row || !metric)
        return "there are too many rows or metrics";
    row->in_table = true;
    const char *better = line->fields[5];
    if (!strcmp(better, "more"))
        metric->better = '+';
    else if (!strcmp(better, "less"))
        metric->better = '-';
    else if (strcmp(better, "-") != 0)
        return "whether more or less is better must be more, less, or -";
    struct cell *cell = &wide.cells[row - wide.rows][metric - wide.metrics];
    if (cell->values)
        return "the row already has this metric";
    cell->values = bench_new(bench, 1, sizeof *cell->values);
    return numbers_take(cell->values, line->fields[6]) ? NULL : "its values are not numbers with commas between them";
}

static const struct word *word_of(const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i].word, text))
            return &words[i];
    return NULL;
}

/* Takes the cell of a fault. Returns what is wrong with the line, or NULL. */
static const char *fault_take(struct bench *bench, const struct script_line *line)
{
    const struct metric *fault = metric_of(bench, line->fields[1], NULL);
    struct row *row = row_of(bench, line->fields[2]);
    const struct word *word = word_of(line->fields[3]);
    if (!fault || !row)
        return "there are too many faults or systems";
    row->in_table = true;
    struct cell *cell = &wide.cells[row - wide.rows][fault - wide.metrics];
    if (!word || cell->word)
        return "the system has this cell already, or its result is not a word that is known";
    *cell = (struct cell){.word = word, .text = text_copy(bench, line->fields[4])};
    return NULL;
}

/* Returns what is wrong with a line that consists of texts, or NULL. */
static const char *texts_take(struct bench *bench, const struct script_line *line)
{
    char *const *fields = line->fields;
    if (!strcmp(fields[0], "answer")) {
        wide.answer = text_copy(bench, fields[1]);
        return NULL;
    }
    if (!strcmp(fields[0], "note")) {
        if (wide.note_count < TEXTS_MOST)
            wide.notes[wide.note_count++] = text_copy(bench, fields[1]);
        return NULL;
    }
    const bool about = !strcmp(fields[0], "about");
    struct row *row = row_of(bench, fields[about ? 1 : 2]);
    if (!row)
        return "there are too many rows";
    row->in_table |= !about;
    if (about) {
        row->about = text_copy(bench, fields[2]);
    } else if (!strcmp(fields[0], "absent")) {
        row->absent = text_copy(bench, fields[3]);
    } else {
        if (strcmp(fields[3], "yes") != 0 && strcmp(fields[3], "no") != 0 && strcmp(fields[3], "undefined") != 0)
            return "its verdict must be yes, no, or undefined";
        row->verdict = text_copy(bench, fields[3]);
        row->text = text_copy(bench, fields[4]);
    }
    return NULL;
}

int wide_line(struct bench *bench, const struct script_line *line)
{
    const char *kind = line->fields[0];
    const bool values = !strcmp(kind, "row"), fault = !strcmp(kind, "cell");
    if (fault)
        wide.name = "faults";
    else if (!wide.name && (values || !strcmp(kind, "absent") || !strcmp(kind, "equal")))
        wide.name = text_copy(bench, line->fields[1]);
    const char *wrong = values ? values_take(bench, line) : fault ? fault_take(bench, line) : texts_take(bench, line);
    if (!wrong)
        return CLI_DONE;
    if (fault)
        cli_say(bench->program, "the cell of the fault '%s' and the system '%s' cannot be taken: '%s'", line->fields[1],
                line->fields[2], line->fields[3]);
    else
        cli_say(bench->program, "a script printed a wrong line, `%s` of '%.60s': %s", kind, line->fields[1], wrong);
    return CLI_FAILED;
}

/* ---- values beside one another ---- */

static double value_of(size_t row, size_t metric)
{
    const struct series *values = wide.cells[row][metric].values;
    return values ? series_median(values) : (double)NAN;
}

/* Returns value / that of tokmap, or NAN: for tokmap itself, for 0, and where nothing is better. */
static double ratio_of(size_t row, size_t metric)
{
    size_t reference = 0;
    while (reference < wide.row_count && strcmp(wide.rows[reference].label, "tokmap") != 0)
        reference++;
    if (reference == wide.row_count || reference == row || !wide.metrics[metric].better)
        return (double)NAN;
    const double ours = value_of(reference, metric);
    return ours != 0 ? value_of(row, metric) / ours : (double)NAN;
}

/* Returns whether no other row is better, and at least one is worse. */
static bool is_best(size_t row, size_t metric)
{
    const char better = wide.metrics[metric].better;
    const double value = value_of(row, metric);
    bool worse = false;
    if (!better || !isfinite(value))
        return false;
    for (size_t r = 0; r < wide.row_count; r++) {
        const double other = value_of(r, metric);
        if (better == '+' ? other > value : other < value)
            return false;
        worse |= isfinite(other) && other != value;
    }
    return worse;
}

/* ---- the table of figures ---- */

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

static const char *ratio_text(size_t row, size_t metric, char text[32])
{
    const double ratio = ratio_of(row, metric);
    const char *star = is_best(row, metric) ? "*" : "";
    if (!isfinite(ratio))
        (void)snprintf(text, 32, "%s", star);
    else
        (void)snprintf(text, 32, "%s%.*fx", star, ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2, ratio);
    return text;
}

/* Returns whether a row has figures. */
static bool row_shown(const struct row *row)
{
    return row->in_table && !row->absent;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the terminal columns that a metric takes, with the spaces before both of its columns. */
static size_t metric_width(size_t metric)
{
    const struct metric *it = &wide.metrics[metric];
    char text[32];
    size_t values = larger(strlen(it->name), strlen(it->unit)), ratios = 0;
    for (size_t r = 0; r < wide.row_count; r++) {
        if (!row_shown(&wide.rows[r]))
            continue;
        values = larger(values, strlen(value_text(value_of(r, metric), text)));
        ratios = larger(ratios, strlen(ratio_text(r, metric, text)));
    }
    return values + ratios + 4;
}

/* Prints the metrics first .. end - 1. */
static void block_print(const struct bench *bench, size_t first, size_t end)
{
    enum { MOST = 2 * METRICS_MOST + 1 };
    const size_t count = end - first, columns = 2 * count + 1;
    const char *names[MOST] = {wide.name}, *units[MOST] = {bench->options.quick ? "(quick)" : ""};
    bool right[MOST] = {false};
    struct cli_table *printed = cli_table_new(columns);
    for (size_t i = 0; i < count; i++) {
        names[2 * i + 1] = wide.metrics[first + i].name;
        units[2 * i + 1] = wide.metrics[first + i].unit;
        names[2 * i + 2] = units[2 * i + 2] = "";
        right[2 * i + 1] = true;
    }
    cli_table_row(printed, names);
    cli_table_row(printed, units);
    for (size_t r = 0; r < wide.row_count; r++) {
        char texts[MOST][32];
        const char *cells[MOST] = {wide.rows[r].label};
        if (!row_shown(&wide.rows[r]))
            continue;
        for (size_t i = 0; i < count; i++) {
            cells[2 * i + 1] = value_text(value_of(r, first + i), texts[2 * i]);
            cells[2 * i + 2] = ratio_text(r, first + i, texts[2 * i + 1]);
        }
        cli_table_row(printed, cells);
    }
    cli_table_print(printed, right, stdout);
    cli_table_free(printed);
    (void)printf("\n");
}

static void figures_print(const struct bench *bench)
{
    size_t first = 0, label = strlen(wide.name);
    for (size_t r = 0; r < wide.row_count; r++)
        if (row_shown(&wide.rows[r]))
            label = larger(label, strlen(wide.rows[r].label));
    size_t used = label;
    for (size_t m = 0; m < wide.metric_count; m++) {
        const size_t width = metric_width(m);
        if (m > first && used + width > WIDTH) {
            block_print(bench, first, m);
            first = m;
            used = label;
        }
        used += width;
    }
    block_print(bench, first, wide.metric_count);
}

/* ---- the table of faults ---- */

static void words_print(size_t first, size_t count)
{
    const char *cells[FAULTS_WIDE + 1] = {"loader"};
    struct cli_table *table = cli_table_new(count + 1);
    for (size_t i = 0; i < count; i++)
        cells[i + 1] = wide.metrics[first + i].name;
    cli_table_row(table, cells);
    for (size_t r = 0; r < wide.row_count; r++) {
        if (!wide.rows[r].in_table)
            continue;
        cells[0] = wide.rows[r].label;
        for (size_t i = 0; i < count; i++) {
            const struct word *word = wide.cells[r][first + i].word;
            cells[i + 1] = word ? word->word : "";
        }
        cli_table_row(table, cells);
    }
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
    (void)printf("\n");
}

/* Prints the words of all cells as tables, and then the sentences of all cells but those of loaders that are absent,
 * which are named below them. */
static void faults_print(void)
{
    for (size_t f = 0; f < wide.metric_count; f += FAULTS_WIDE)
        words_print(f, wide.metric_count - f < FAULTS_WIDE ? wide.metric_count - f : FAULTS_WIDE);
    for (size_t f = 0; f < wide.metric_count; f++) {
        cli_print("%s\n", wide.metrics[f].name);
        for (size_t r = 0; r < wide.row_count; r++) {
            const struct cell *cell = &wide.cells[r][f];
            if (cell->word && strcmp(cell->word->word, "absent") != 0)
                cli_print("  %s: %s: %s\n", wide.rows[r].label, cell->word->word, cell->text);
        }
    }
    (void)printf("\n");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        cli_print("%s: %s\n", words[i].word, words[i].meaning);
}

static void rows_describe(void)
{
    for (size_t r = 0; r < wide.row_count; r++)
        if (wide.rows[r].absent)
            cli_print("%s is absent: %s\n", wide.rows[r].label, wide.rows[r].absent);
    for (size_t r = 0; r < wide.row_count; r++) {
        const struct row *row = &wide.rows[r];
        if (row->verdict && !row->absent)
            cli_print("%s: %s: %s\n", row->label,
                      !strcmp(row->verdict, "yes")  ? "delivered the tokens of the reference"
                      : !strcmp(row->verdict, "no") ? "DELIVERED OTHER TOKENS"
                                                    : "has no defined order",
                      row->text);
        if (row->about)
            cli_print("%s: %s\n", row->label, row->about);
    }
    for (size_t i = 0; i < wide.note_count; i++)
        cli_print("%s\n", wide.notes[i]);
}

/* ---- JSON ---- */

/* Begins a line with the members that every result has. row: NULL if the line is about the whole table. */
static void line_begin(struct bench *bench, struct cli_json *json, const struct row *row, const char *metric,
                       double value, const char *unit, char better, const struct series *series)
{
    bench_json_begin(bench, json);
    if (row && row->in_table)
        cli_json_text(json, "table", wide.name);
    if (row)
        cli_json_text(json, "row", row->label);
    cli_json_text(json, "metric", metric);
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

static void line_values(struct bench *bench, size_t r, size_t m)
{
    const struct metric *metric = &wide.metrics[m];
    const struct series *series = wide.cells[r][m].values;
    const double ratio = ratio_of(r, m);
    struct cli_json json;
    line_begin(bench, &json, &wide.rows[r], metric->name, series_median(series), metric->unit, metric->better, series);
    if (isfinite(ratio))
        cli_json_real(&json, "ratio", ratio);
    cli_json_array(&json, "values");
    for (size_t i = 0; i < series->count; i++)
        cli_json_real(&json, NULL, series->values[i]);
    cli_json_end(&json);
    bench_json_end(bench, &json);
}

/* Writes the cell of a fault, whose value is the number of silent faults, so that fewer are better. */
static void line_fault(struct bench *bench, const struct row *row, const char *fault, const struct cell *cell)
{
    struct cli_json json;
    line_begin(bench, &json, row, fault, cell->word->silent ? 1 : 0, "silent", '-', NULL);
    cli_json_text(&json, "result", cell->word->word);
    cli_json_text(&json, "text", cell->text);
    bench_json_end(bench, &json);
}

/* Writes a line whose value is a text. */
static void line_text(struct bench *bench, const struct row *row, const char *metric, double value, const char *verdict,
                      const char *text)
{
    struct cli_json json;
    line_begin(bench, &json, row, metric, value, "", 0, NULL);
    if (verdict)
        cli_json_text(&json, "verdict", verdict);
    cli_json_text(&json, "text", text);
    bench_json_end(bench, &json);
}

static void row_lines(struct bench *bench, const struct row *row, size_t r)
{
    for (size_t m = 0; m < wide.metric_count; m++)
        if (wide.cells[r][m].values)
            line_values(bench, r, m);
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

static void json_print(struct bench *bench)
{
    for (size_t r = 0; r < wide.row_count; r++)
        for (size_t m = 0; m < wide.metric_count; m++)
            if (wide.cells[r][m].word)
                line_fault(bench, &wide.rows[r], wide.metrics[m].name, &wide.cells[r][m]);
    for (size_t r = 0; r < wide.row_count; r++)
        row_lines(bench, &wide.rows[r], r);
    for (size_t i = 0; i < wide.note_count; i++)
        line_text(bench, NULL, "note", 1, NULL, wide.notes[i]);
    if (wide.answer)
        line_text(bench, NULL, "answer", 1, NULL, wide.answer);
}

/* ---- everything ---- */

void wide_print(struct bench *bench)
{
    const bool faults = wide.metric_count && !wide.metrics[0].unit;
    if (wide.answer)
        bench_answer(bench, "%s", wide.answer);
    if (bench_json_wanted(bench))
        json_print(bench);
    if (bench->options.json)
        return;
    if (faults)
        faults_print();
    else if (wide.metric_count)
        figures_print(bench);
    rows_describe();
}

int wide_check(const struct bench *bench)
{
    int result = CLI_DONE;
    for (size_t r = 0; r < wide.row_count; r++) {
        const struct row *row = &wide.rows[r];
        if (row->verdict && !strcmp(row->verdict, "no")) {
            cli_say(bench->program, "%s delivered other tokens than the reference: %s", row->label, row->text);
            result = CLI_FAILED;
        }
        for (size_t m = 0; m < wide.metric_count && row->in_table; m++) {
            const struct cell *cell = &wide.cells[r][m];
            const bool ours = !strncmp(row->label, "tokmap", 6);
            if (wide.metrics[m].unit || (cell->word && !(ours && cell->word->broken)))
                continue;
            cli_say(bench->program, "%s, %s: %s: %s", row->label, wide.metrics[m].name,
                    cell->word ? cell->word->word : "there is no result",
                    cell->word ? cell->text : "the script left it out");
            result = CLI_FAILED;
        }
    }
    return result;
}
