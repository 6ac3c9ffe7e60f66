/* SPDX-License-Identifier: MIT */
/* values_print.h - prints the values that tokens of a dataset have beside them. */
#ifndef TOKMAP_COMMANDS_SHOW_VALUES_PRINT_H
#define TOKMAP_COMMANDS_SHOW_VALUES_PRINT_H

#include "cli/cli.h"
#include "tokmap/tokmap.h"

/* Prints the values `what` of the tokens of an extent, which may continue at the dataset's first token: a line for each
 * token, with its number and its values, or "-" if it has none; with a report the member "values", where a token is a
 * list, a number if each has one, or null. Statuses: OK, those of dataset_values_open() and tokmap_dataset_copy(). */
enum tokmap_status token_values_print(const struct tokmap_dataset *dataset, const char *what,
                                      struct tokmap_extent extent, struct cli_report *report,
                                      struct tokmap_error *error);

#endif
