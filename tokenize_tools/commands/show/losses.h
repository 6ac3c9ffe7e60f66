/* SPDX-License-Identifier: MIT */
/*
 * losses.h - the losses of rows, from a file that a training program wrote (tokmap show --losses).
 *
 * The file is JSONL, {"step": 12, "row": 3, "loss": 2.5} with any other members, or CSV whose first line names the
 * columns, among them step, row, and loss. NaN and Infinity are losses, larger than all others.
 */
#ifndef TOKMAP_COMMANDS_SHOW_LOSSES_H
#define TOKMAP_COMMANDS_SHOW_LOSSES_H

#include "tokmap/tokmap.h"

struct loss {
    uint64_t step, row;
    double loss;
    double median; /* of the losses of its step; NaN if more than half of them are NaN */
};

struct losses {
    struct loss *of; /* the largest first; of equal ones, the one of the earliest step and row */
    uint64_t count;
};

/* Reads a file. Free *losses with losses_free(), whatever the status.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_FORMAT (with the line), ERROR_RANGE (the file has over 4 GiB), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status losses_read(struct losses *losses, const char *path, struct tokmap_error *error);
void losses_free(struct losses *losses);

#endif
