/* SPDX-License-Identifier: MIT */
/*
 * losses.h - the losses of rows or calls, from a file that a training program wrote (tokmap show --losses).
 *
 * The file is JSONL, {"step": 12, "row": 3, "loss": 2.5} with any other members, or CSV whose first line names the
 * columns, among them step, row, and loss. A loss without a row has a rank and a call, and is the mean of the rows that
 * this call of next() delivers to this rank. NaN and Infinity are losses, larger than all others.
 */
#ifndef TOKMAP_COMMANDS_SHOW_LOSSES_H
#define TOKMAP_COMMANDS_SHOW_LOSSES_H

#include <stdbool.h>

#include "cli/cli.h"
#include "step_rows.h"

#define ALSO_MOST 8 /* rows that are listed */

/* The other rows of a run that show tokens of a row. */
struct also {
    struct {
        uint64_t step, row, shared; /* shared: tokens */
    } of[ALSO_MOST];                /* the first ones, by step and row */
    uint64_t count;                 /* of all rows, maybe more than there is room for */
};

/* Finds the rows of steps before `end` that show more of a row's tokens than its neighbors do, which share the
 * lookahead. Tokens that the run excludes from the row are not looked for. place: that of the row, with a source.
 * Statuses: OK, ERROR_MEMORY, those of tokmap_run_find(). */
enum tokmap_status also_find(struct also *also, const struct tokmap_run *run, const struct tokmap_place *place,
                             uint64_t end, struct tokmap_error *error);

struct loss {
    uint64_t step, row;
    bool of_call; /* of the rows of a call, not of row */
    uint64_t rank, call;
    double loss;
    double median; /* of the losses of its step; NaN if more than half of them are NaN */
};

struct losses {
    struct loss *of; /* the largest first; of equal ones, the one of the earliest step, rank, call, and row */
    uint64_t count;
};

/* Reads a file, and keeps the largest loss of each row and of each call. Free *losses with losses_free(), whatever the
 * status. Statuses: OK, ERROR_NOT_FOUND, ERROR_FORMAT (with the line), ERROR_RANGE (the file has over 4 GiB), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status losses_read(struct losses *losses, const char *path, struct tokmap_error *error);
void losses_free(struct losses *losses);

/* Returns which rows have a loss of a call. given: the options of the command. */
struct step_choice loss_choice(const struct loss *loss, const struct step_choice *given);

/* Refuses losses of ranks and calls that a run does not have with the options of the command, also those that are too
 * small to be shown: then the options are not those of the loaders, and other losses would name wrong rows.
 *   path    the file of the losses, for errors
 * Statuses: OK, ERROR_RANGE. */
enum tokmap_status losses_check(const struct losses *losses, const char *path, const struct tokmap_run *run,
                                const struct step_choice *given, struct tokmap_error *error);

/* Print the loss of a row: as a line on standard error, and as members of an open object. */
void loss_print(const struct loss *loss, const struct also *also);
void loss_members(const struct loss *loss, const struct also *also, struct cli_report *report);

#endif
