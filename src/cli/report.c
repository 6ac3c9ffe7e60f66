/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/visible.h"
#include "messages.h"
#include "numbers.h"

struct cli_report_row {
    size_t place; /* of its label in the order */
    char *label, *text;
};

#define NO_PLACE SIZE_MAX

/* Returns the number of a label in "A|>B|*", where '>' is not part of a label. A label that is not there has the place
 * of '*', or NO_PLACE. */
static size_t place_of(const char *order, const char *label)
{
    const size_t length = strlen(label);
    size_t others = NO_PLACE;
    for (size_t place = 0; order; place++) {
        order += *order == '>';
        const size_t bytes = strcspn(order, "|");
        if (bytes == length && memcmp(order, label, length) == 0)
            return place;
        others = *order == '*' ? place : others;
        order = order[bytes] ? order + bytes + 1 : NULL;
    }
    return others;
}

void cli_report_begin(struct cli_report *report, bool as_json, const char *order)
{
    *report = (struct cli_report){.as_json = as_json, .file = stdout, .label_width = 20, .order = order};
    cli_json_begin(&report->json, stdout);
    if (as_json)
        cli_json_object(&report->json, NULL);
}

void cli_report_end(struct cli_report *report)
{
    assert(report->depth == 0);
    cli_report_rows(report, NULL);
    if (report->as_json)
        cli_json_end(&report->json);
}

void cli_report_begin_text(struct cli_report *report, bool as_given)
{
    *report = (struct cli_report){.as_json = false};
    FILE *file = open_memstream(&report->text, &report->text_bytes);
    if (!file)
        return; /* nothing is written, and the end says so */
    report->as_json = true;
    cli_json_begin(&report->json, file);
    report->json.as_given = as_given;
    cli_json_object(&report->json, NULL);
}

char *cli_report_end_text(struct cli_report *report, size_t *bytes)
{
    if (!report->as_json)
        return NULL;
    cli_report_end(report);
    const bool failed = ferror(report->json.file) != 0;
    /* If there is no memory for the text in the end, glibc's fclose() succeeds, and there is no text. */
    if (fclose(report->json.file) || failed) {
        free(report->text);
        return NULL;
    }
    *bytes = report->text_bytes;
    return report->text;
}

/* Adds the row after those whose places are not higher. */
static void row_add(struct cli_report *report, const char *label, char *text)
{
    const struct cli_report_row row = {place_of(report->order, label), strdup(label), text};
    if (!row.label || !list_room(&report->rows, report->row_count, &report->row_room, sizeof row)) {
        report->lost = true;
        free(row.label);
        free(text);
        return;
    }
    size_t at = report->row_count++;
    for (; at && report->rows[at - 1].place > row.place; at--)
        report->rows[at] = report->rows[at - 1];
    report->rows[at] = row;
}

void cli_report_rows(struct cli_report *report, const char *order)
{
    struct cli_table *table = report->row_count || report->lost ? cli_table_new(2) : NULL;
    for (size_t i = 0; i < report->row_count; i++) {
        const char *const cells[] = {report->rows[i].label, report->rows[i].text};
        cli_table_row(table, cells);
        free(report->rows[i].label);
        free(report->rows[i].text);
    }
    if (report->row_count || report->lost)
        cli_table_print(table, NULL, report->file);
    if (report->lost)
        cli_output_lost();
    cli_table_free(table);
    free(report->rows);
    report->rows = NULL;
    report->row_count = report->row_room = 0;
    report->order = order;
}

/* Adds a text for people, which is the memory of the report from now on: a row, or a cell of the item that is open. */
static void people_add(struct cli_report *report, const char *label, char *text)
{
    const size_t place = report->table ? place_of(report->columns, label) : NO_PLACE;
    const bool in_list = memchr(report->open, 'n', report->depth);
    if (!text) {
        report->lost = true;
    } else if (!report->table && !in_list) {
        row_add(report, label, text);
    } else if (place < CLI_REPORT_COLUMNS) {
        free(report->cells[place]);
        report->cells[place] = text;
    } else {
        free(text);
    }
}

__attribute__((format(printf, 3, 0))) static void people_format(struct cli_report *report, const char *label,
                                                                const char *format, va_list arguments)
{
    char *text = NULL;
    if (report->as_json || !label)
        return;
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    people_add(report, label, text);
}

void cli_member(struct cli_report *report, const char *name, struct cli_value value)
{
    struct cli_json *json = &report->json;
    if (!report->as_json)
        return;
    switch (value.kind) {
    case CLI_VALUE_NULL:
        cli_json_null(json, name);
        break;
    case CLI_VALUE_NUMBER:
        cli_json_number(json, name, value.number);
        break;
    case CLI_VALUE_REAL:
        cli_json_real(json, name, value.real);
        break;
    case CLI_VALUE_BOOL:
        cli_json_bool(json, name, value.number);
        break;
    case CLI_VALUE_TEXT:
        cli_json_bytes(json, name, value.text, (size_t)value.number);
        break;
    case CLI_VALUE_RAW:
        cli_json_raw(json, name, value.text, (size_t)value.number);
        break;
    }
}

void cli_numbers_add(struct cli_report *report, const char *names, const uint64_t *numbers, size_t count)
{
    char name[64];
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strcspn(names, "|");
        assert(bytes < sizeof name && !names[bytes] == (i + 1 == count));
        (void)snprintf(name, sizeof name, "%.*s", (int)bytes, names);
        cli_member(report, name, cli_number(numbers[i]));
        names += bytes + 1;
    }
}

void cli_member_text_if(struct cli_report *report, const char *name, const char *text)
{
    if (text)
        cli_member(report, name, cli_text(text));
}

void cli_member_number_if(struct cli_report *report, const char *name, uint64_t number)
{
    if (number)
        cli_member(report, name, cli_number(number));
}

void cli_member_pair(struct cli_report *report, const char *name, uint64_t first, uint64_t second)
{
    cli_report_array(report, name);
    cli_member(report, NULL, cli_number(first));
    cli_member(report, NULL, cli_number(second));
    cli_report_close(report);
}

void cli_row(struct cli_report *report, const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    people_format(report, label, format, arguments);
    va_end(arguments);
}

void cli_fact(struct cli_report *report, const char *name, const char *label, struct cli_value value,
              const char *format, ...)
{
    va_list arguments;
    if (name)
        cli_member(report, name, value);
    va_start(arguments, format);
    people_format(report, label, format, arguments);
    va_end(arguments);
}

void cli_fact_number(struct cli_report *report, const char *name, const char *label, uint64_t number)
{
    char text[32];
    cli_fact(report, name, label, cli_number(number), "%s", cli_count(number, text));
}

void cli_fact_text(struct cli_report *report, const char *name, const char *label, const char *text)
{
    cli_fact(report, name, label, cli_text(text), "%s", text);
}

void cli_line(struct cli_report *report, const char *name, const char *label, uint64_t number, const char *remark)
{
    if (name)
        cli_member(report, name, cli_number(number));
    if (!report->as_json && label)
        cli_print_to(report->file, "  %-*s %20s%s%s\n", report->label_width, label, CLI_COUNT(number),
                     *remark ? "  " : "", remark);
}

/* ---- objects and lists ---- */

static void open_add(struct cli_report *report, char kind)
{
    assert(report->depth < CLI_REPORT_DEPTH);
    report->open[report->depth++] = kind;
}

void cli_report_object(struct cli_report *report, const char *name)
{
    if (report->as_json)
        cli_json_object(&report->json, name);
    open_add(report, 'o');
}

void cli_report_array(struct cli_report *report, const char *name)
{
    if (report->as_json)
        cli_json_array(&report->json, name);
    open_add(report, 'o');
}

/* Adds the row of the heading, and returns the columns that are aligned to the right. */
static size_t columns_of(const char *columns, char text[512], const char *cells[CLI_REPORT_COLUMNS],
                         bool right[CLI_REPORT_COLUMNS])
{
    size_t count = 0;
    char *at = text;
    (void)snprintf(text, 512, "%s", columns);
    for (char *word; (word = strsep(&at, "|")) && count < CLI_REPORT_COLUMNS; count++) {
        right[count] = *word == '>';
        cells[count] = word + right[count];
    }
    return count;
}

void cli_report_list(struct cli_report *report, const char *name, const char *columns)
{
    char text[512];
    const char *cells[CLI_REPORT_COLUMNS];
    bool right[CLI_REPORT_COLUMNS];
    if (report->as_json)
        cli_json_array(&report->json, name);
    if (!report->as_json && columns) {
        report->columns = columns;
        report->table = cli_table_new(columns_of(columns, text, cells, right));
        cli_table_row(report->table, cells);
        open_add(report, 'l');
    } else {
        open_add(report, 'n');
    }
}

void cli_report_item(struct cli_report *report)
{
    if (report->as_json)
        cli_json_object(&report->json, NULL);
    open_add(report, 'i');
}

/* Adds the cells of an item as a row. An item whose cells are in the row of an inner item has none. */
static void item_close(struct cli_report *report)
{
    bool any = false;
    for (size_t i = 0; i < CLI_REPORT_COLUMNS; i++)
        any = any || report->cells[i];
    if (any)
        cli_table_row(report->table, (const char *const *)report->cells);
    for (size_t i = 0; i < CLI_REPORT_COLUMNS; i++) {
        free(report->cells[i]);
        report->cells[i] = NULL;
    }
}

void cli_report_close(struct cli_report *report)
{
    char text[512];
    const char *cells[CLI_REPORT_COLUMNS];
    bool right[CLI_REPORT_COLUMNS];
    assert(report->depth > 0);
    const char kind = report->open[--report->depth];
    if (report->as_json)
        cli_json_end(&report->json);
    else if (kind == 'i')
        item_close(report);
    if (kind != 'l')
        return;
    (void)columns_of(report->columns, text, cells, right);
    cli_table_print(report->table, right, report->file);
    cli_table_free(report->table);
    report->table = NULL;
}

/* ---- tables ---- */

struct cli_table {
    uint64_t columns, rows, capacity; /* capacity: in rows */
    char **cells;                     /* row by row; NULL is an empty cell */
    bool lost;                        /* a row is missing because there was no memory for it */
};

struct cli_table *cli_table_new(size_t columns)
{
    assert(columns > 0);
    struct cli_table *table = calloc(1, sizeof *table);
    if (table)
        table->columns = columns;
    else
        cli_output_lost();
    return table;
}

void cli_table_row(struct cli_table *table, const char *const *cells)
{
    assert(cells);
    if (!table || table->lost)
        return;
    if (!list_room(&table->cells, table->rows, &table->capacity, table->columns * sizeof *table->cells)) {
        table->lost = true;
        return;
    }
    char **row = table->cells + table->rows++ * table->columns;
    for (size_t column = 0; column < table->columns; column++) {
        const size_t bytes = cells[column] ? strlen(cells[column]) : 0;
        row[column] = cells[column] ? malloc(VISIBLE_MOST * bytes + 1) : NULL;
        if (cells[column] && !row[column])
            table->lost = true;
        if (row[column])
            (void)visible_copy(row[column], VISIBLE_MOST * bytes + 1, cells[column], bytes, "");
    }
}

/* Returns the number of terminal columns that a text takes, counted as one per character of UTF-8. */
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; text && *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void put_spaces(size_t count, FILE *file)
{
    while (count--)
        (void)fputc(' ', file);
}

void cli_table_print(struct cli_table *table, const bool *right, FILE *file)
{
    size_t *widths = table ? calloc(table->columns, sizeof *widths) : NULL;
    if (!widths) {
        cli_output_lost();
        (void)fputs("(there is no memory for this table)\n", file);
        return;
    }
    for (size_t row = 0; row < table->rows; row++)
        for (size_t column = 0; column < table->columns; column++) {
            const size_t width = text_width(table->cells[row * table->columns + column]);
            widths[column] = width > widths[column] ? width : widths[column];
        }
    for (size_t row = 0; row < table->rows; row++) {
        size_t owed = 0; /* spaces that are written only if a cell follows, so that no line ends with spaces */
        for (size_t column = 0; column < table->columns; column++) {
            const char *cell = table->cells[row * table->columns + column];
            const size_t rest = widths[column] - text_width(cell);
            if (right && right[column])
                owed += rest;
            if (cell && *cell) {
                put_spaces(owed, file);
                owed = 0;
                (void)fputs(cell, file);
            } else {
                owed += widths[column] - rest;
            }
            if (!right || !right[column])
                owed += rest;
            owed += 2;
        }
        (void)fputc('\n', file);
    }
    if (table->lost)
        cli_output_lost();
    if (table->lost)
        (void)fputs("(there is no memory for the rest of this table)\n", file);
    free(widths);
}

void cli_table_free(struct cli_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->rows * table->columns; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}
