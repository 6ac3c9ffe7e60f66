/* SPDX-License-Identifier: MIT */
/* values_report.h - the values beside the shards of a dataset: for `info`, and for commands that leave them out. */
#ifndef TOKMAP_COMMANDS_REPORT_VALUES_REPORT_H
#define TOKMAP_COMMANDS_REPORT_VALUES_REPORT_H

#include "cli/cli.h"
#include "tokmap/tokmap.h"

/* Adds a row "values" for each name, and the member "values", if there are any. Files that cannot be read, or belong to
 * other tokens, are warnings. Statuses: OK, those of opening shards, ERROR_MEMORY. */
enum tokmap_status values_report(const char *program, const struct tokmap_dataset *dataset, struct cli_report *report,
                                 struct tokmap_error *error);
/* Warns that a command leaves out the values of a dataset, if it has some, and says what to do. */
void values_left_out(const char *program, const struct tokmap_dataset *dataset, const char *advice);

#endif
