/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/visible.h"
#include "messages.h"

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
