/* SPDX-License-Identifier: MIT */
/* table.h - rows of cells whose columns are aligned when the table is printed. */
#ifndef TOKMAP_CLI_TABLE_H
#define TOKMAP_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_table;

/* Makes a table. Without memory it returns NULL, which the functions below accept; printing then says so, and
 * cli_finish() fails, as it does if a row is lost. */
struct cli_table *cli_table_new(size_t columns);
/* Adds a row. cells: one per column; they are copied, with what is not plain in its visible
 * form, and NULL is an empty cell. */
void cli_table_row(struct cli_table *table, const char *const *cells);
/* right[c] aligns column c to the right, as numbers are; right may be NULL, which aligns all columns to the left. */
void cli_table_print(struct cli_table *table, const bool *right, FILE *file);
void cli_table_free(struct cli_table *table);

#endif
