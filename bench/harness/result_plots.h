/* SPDX-License-Identifier: MIT */
/*
 * result_plots.h - the pictures of results: which rows belong into one, and how it is drawn.
 *
 * Rows belong together if the same command printed them for the same case and table, in the same unit, with the same
 * better direction. Rows that have the member `row` (systems beside each other) become groups of bars, one group for
 * each system and one color for each metric; others become one bar for each metric, with the limit beside it. The axis
 * is logarithmic where the values are more than 30 times apart. A group that has a single bar and no limit has no
 * picture, and neither has what describes the machine.
 */
#ifndef TOKMAP_BENCH_HARNESS_RESULT_PLOTS_H
#define TOKMAP_BENCH_HARNESS_RESULT_PLOTS_H

#include "cli/cli.h"
#include "result_rows.h"

struct result_plot {
    char name[96]; /* of a file, without its ending: letters, digits, '.', '-', and '_'; no two of a list are equal */
    const char *command, *case_name, *table; /* of its rows */
    struct cli_plot plot;
};

struct result_plots {
    struct result_plot *plots;
    size_t count;
    void **memory; /* what the plots point to */
    size_t memory_count, memory_capacity;
};

#define RESULT_PLOTS_MOST 1000

/* Finds the pictures of the rows, which must stay as long as the pictures. `plots` begins as zeros, and
 * result_plots_free() must follow in any case. Statuses: OK, ERROR_LIMIT (more than RESULT_PLOTS_MOST),
 * ERROR_MEMORY. */
enum tokmap_status result_plots_make(struct result_plots *plots, const struct result_rows *rows,
                                     struct tokmap_error *error);
/* Writes each picture into an existing folder, as NAME.svg and NAME.png. Statuses: as cli_plot_write(). */
enum tokmap_status result_plots_write(const struct result_plots *plots, const char *folder, struct tokmap_error *error);
void result_plots_free(struct result_plots *plots);

/* Returns whether a row describes the machine during the run, and not what was measured. */
bool result_row_is_machine(const struct result_row *row);

#endif
