/* SPDX-License-Identifier: MIT */
/*
 * result_rows.h - the rows that the command printed: read back, and drawn as pictures.
 *
 * A line is one JSON object: case, metric, value, unit, better, min, max, n, and, where they are known, table, row,
 * limit, text, command, machine, date. Members that are not named here are left out. A line without a command has the
 * command, machine, and date of the line before it. Names are text from a file that anyone may have written: escape
 * them before they are shown.
 *
 * One thread uses a list.
 */
#ifndef TOKMAP_BENCH_HARNESS_RESULT_ROWS_H
#define TOKMAP_BENCH_HARNESS_RESULT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "plot.h"
#include "tokmap/tokmap.h"

/* Texts are never NULL: "" stands for one that the line does not have. Numbers: NAN. */
struct result_row {
    const char *case_name, *table, *row, *metric;
    const char *unit;
    const char *better; /* "more", "less", or "" */
    const char *text;   /* of rows without a number, such as why a system is absent */
    const char *command, *machine, *date;
    double value, smallest, largest, limit;
    uint64_t count; /* repeats */
};

/* Pieces of memory that are freed together. */
struct result_memory {
    void **list;
    size_t count, capacity;
};

struct result_rows {
    struct result_row *rows;
    size_t count, capacity;
    struct result_memory texts;
};

#define RESULT_BYTES_MOST ((size_t)256 << 20) /* of one file */

/* Appends the rows of a text that has a JSON object on each line; empty lines are skipped. path: names the text in
 * errors. `rows` begins as zeros, and result_rows_free() must follow in any case. After a failure it has the rows
 * before the line that is named. Statuses: OK, ERROR_FORMAT (with the line: it is not an object, a member has another
 * kind, or a name is not UTF-8 or has a zero byte; or it lacks "case" or "metric"), ERROR_MEMORY. */
enum tokmap_status result_rows_parse(struct result_rows *rows, const char *text, size_t bytes, const char *path,
                                     struct tokmap_error *error);
/* Does the same from a file, or from each file of a folder whose name ends in .json or .jsonl, in the order of their
 * names. Statuses in addition: ERROR_NOT_FOUND (there is no such file, or the folder has none), ERROR_IO, ERROR_RANGE
 * (it is larger than RESULT_BYTES_MOST). */
enum tokmap_status result_rows_read(struct result_rows *rows, const char *path, struct tokmap_error *error);
void result_rows_free(struct result_rows *rows);

/* ==== pictures ==== */

/*
 * The pictures of results: which rows belong into one, and how it is drawn.
 *
 * Rows belong together if the same command printed them for the same case and table, in the same unit, with the same
 * better direction. Rows that have the member `row` (systems beside each other) become groups of bars, one group for
 * each system and one color for each metric; others become one bar for each metric, with the limit beside it. The axis
 * is logarithmic where the values are more than 30 times apart. A group that has a single bar and no limit has no
 * picture, and neither has what describes the machine.
 */

struct result_plot {
    char name[96]; /* of a file, without its ending: letters, digits, '.', '-', and '_'; no two of a list are equal */
    struct plot plot;
};

struct result_plots {
    struct result_plot *plots;
    size_t count;
    struct result_memory memory; /* that the plots point to */
};

/* Finds the pictures of the rows, which must stay as long as the pictures. `plots` begins as zeros, and
 * result_plots_free() must follow in any case. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status result_plots_make(struct result_plots *plots, const struct result_rows *rows,
                                     struct tokmap_error *error);
/* Writes each picture into an existing folder, as NAME.svg and NAME.png. Statuses: as plot_write(). */
enum tokmap_status result_plots_write(const struct result_plots *plots, const char *folder, struct tokmap_error *error);
void result_plots_free(struct result_plots *plots);

#endif
