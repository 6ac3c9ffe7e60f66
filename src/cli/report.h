/* SPDX-License-Identifier: MIT */
/*
 * report.h - what a command found out, each fact named once, as a table for people or as a JSON object.
 *
 * A command describes what it has to say by one list of calls. Each fact has a name for JSON, a label for people, a
 * value for JSON, and a text for people:
 *
 *     cli_report_begin(&report, json, "tokens|width|shards");
 *     cli_fact(&report, "width", "width", cli_number(2), "%u bytes per token", 2);
 *     cli_fact_number(&report, "tokens", "tokens", 1234);
 *     cli_report_end(&report);
 *
 * prints {"width": 2, "tokens": 1234} or
 *
 *     tokens  1,234
 *     width   2 bytes per token
 *
 * JSON has the order of the calls, and people have the order of the labels in the string: both orders are promises, and
 * they differ. A fact without a name is for people only, and one without a label is for JSON only.
 *
 * A list is an array of objects in JSON. For people it is a table with a heading, whose columns are chosen and ordered
 * by another such string ('>' aligns a column to the right), or nothing. Inside the items of a list, facts are cells.
 * If the items have lists themselves, these fill further columns of the same table: one row for each inner item, of
 * which the first one also has the cells of the outer item.
 */
#ifndef TOKMAP_CLI_REPORT_H
#define TOKMAP_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json_writer.h"
#include "tokmap/tokmap.h"

/* A value of JSON. */
struct cli_value {
    enum { CLI_VALUE_NULL, CLI_VALUE_NUMBER, CLI_VALUE_REAL, CLI_VALUE_BOOL, CLI_VALUE_TEXT, CLI_VALUE_RAW } kind;
    uint64_t number; /* of a text: its bytes */
    double real;     /* null in JSON if it is not finite */
    const char *text;
};

static inline struct cli_value cli_number(uint64_t number)
{
    return (struct cli_value){.kind = CLI_VALUE_NUMBER, .number = number};
}
/* Returns the number, or null if it is not known. */
static inline struct cli_value cli_number_if(bool known, uint64_t number)
{
    return (struct cli_value){.kind = known ? CLI_VALUE_NUMBER : CLI_VALUE_NULL, .number = number};
}
static inline struct cli_value cli_id(uint64_t id)
{
    return cli_number_if(id != TOKMAP_NO_ID, id);
}
static inline struct cli_value cli_real(double real)
{
    return (struct cli_value){.kind = CLI_VALUE_REAL, .real = real};
}
static inline struct cli_value cli_bool(bool value)
{
    return (struct cli_value){.kind = CLI_VALUE_BOOL, .number = value};
}
static inline struct cli_value cli_bytes_text(const char *text, size_t bytes)
{
    return (struct cli_value){.kind = CLI_VALUE_TEXT, .text = text, .number = bytes};
}
/* Returns a value that is JSON already: see cli_json_raw(). */
static inline struct cli_value cli_raw(const char *json, size_t bytes)
{
    return (struct cli_value){.kind = CLI_VALUE_RAW, .text = json, .number = bytes};
}
/* Returns the text, or null if it is NULL. */
static inline struct cli_value cli_text(const char *text)
{
    return text ? cli_bytes_text(text, strlen(text)) : (struct cli_value){.kind = CLI_VALUE_NULL};
}
static inline struct cli_value cli_null(void)
{
    return (struct cli_value){.kind = CLI_VALUE_NULL};
}

#define CLI_REPORT_COLUMNS 16 /* of a list, at most */
#define CLI_REPORT_DEPTH 8    /* lists, items, and objects that are open, at most */

struct cli_report {
    bool as_json;
    struct cli_json json;
    FILE *file;                  /* of tables: standard output, unless the command sets another one */
    int label_width;             /* of cli_line(): bytes, 20 unless the command sets others */
    const char *order;           /* of the rows */
    struct cli_report_row *rows; /* that are not printed yet */
    uint64_t row_count, row_room;
    bool lost;               /* a row is missing because there was no memory for it */
    struct cli_table *table; /* of the list that is open, or NULL */
    const char *columns;
    char *cells[CLI_REPORT_COLUMNS]; /* of the item that is open */
    char open[CLI_REPORT_DEPTH];     /* objects and arrays 'o', lists with a table 'l', other lists 'n', items 'i' */
    uint32_t depth;
    char *text; /* of cli_report_end_text() */
    size_t text_bytes;
};

/* Begins a report on standard output; in JSON, an object. order: the labels of the rows, separated by '|', and "*" for
 * all others, which come last without it. NULL: the rows have the order of the calls. */
void cli_report_begin(struct cli_report *report, bool as_json, const char *order);
/* Prints the rows that are left; in JSON, ends the object. */
void cli_report_end(struct cli_report *report);

/* Begin and end an object of JSON that becomes a text, which the caller frees. as_given: see struct cli_json. The
 * report must stay where it is. The end returns NULL if there was not enough memory. */
void cli_report_begin_text(struct cli_report *report, bool as_given);
char *cli_report_end_text(struct cli_report *report, size_t *bytes);
/* Prints the rows so far as a table, after which others may follow in the order `order`. Nothing in JSON. */
void cli_report_rows(struct cli_report *report, const char *order);

/* Adds a fact. */
void cli_fact(struct cli_report *report, const char *name, const char *label, struct cli_value value,
              const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds a fact whose text is the number, as cli_count() writes it. */
void cli_fact_number(struct cli_report *report, const char *name, const char *label, uint64_t number);
void cli_fact_text(struct cli_report *report, const char *name, const char *label, const char *text);
/* Adds a number with a remark, which may be "". For people, it is a line in columns of a fixed width, which is printed
 * at once, unless the label is NULL. */
void cli_line(struct cli_report *report, const char *name, const char *label, uint64_t number, const char *remark);
/* Adds what is for JSON only, or for people only. In an array, members have no name: NULL. */
void cli_member(struct cli_report *report, const char *name, struct cli_value value);
/* Adds numbers for JSON only, each with its name in a list: cli_numbers(report, "rows|bytes", of->rows, of->bytes). */
#define cli_numbers(report, names, ...)                                                                                \
    cli_numbers_add((report), (names), (const uint64_t[]){__VA_ARGS__},                                                \
                    sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))
void cli_numbers_add(struct cli_report *report, const char *names, const uint64_t *numbers, size_t count);
/* Add a text unless it is NULL, and a number unless it is 0, for JSON only. */
void cli_member_text_if(struct cli_report *report, const char *name, const char *text);
void cli_member_number_if(struct cli_report *report, const char *name, uint64_t number);
/* Adds an array of two numbers, such as the borders of a range. */
void cli_member_pair(struct cli_report *report, const char *name, uint64_t first, uint64_t second);
void cli_row(struct cli_report *report, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Opens an object in JSON. Its facts are rows like all others. */
void cli_report_object(struct cli_report *report, const char *name);
/* Opens a list. columns: see above; NULL: it is for JSON only, or fills columns of the table around it. */
void cli_report_list(struct cli_report *report, const char *name, const char *columns);
/* Opens an array of objects in JSON, whose facts are rows like all others. */
void cli_report_array(struct cli_report *report, const char *name);
void cli_report_item(struct cli_report *report);
/* Closes what was opened last. A table is printed here, so the rows before it must have been printed. */
void cli_report_close(struct cli_report *report);

/* Rows of cells whose columns are aligned when the table is printed. */
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
