/* column_report.h - what the columns of a dataset are (info), and their values for a document (show). For one
 * thread. */
#ifndef TOKMAP_COMMANDS_REPORT_COLUMN_REPORT_H
#define TOKMAP_COMMANDS_REPORT_COLUMN_REPORT_H

#include "cli/report.h"
#include "tokmap/tokmap.h"

/* Lists the names of a dataset's columns in an array that the caller frees; each name lives as long as the dataset.
 * Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status column_names(const struct tokmap_dataset *dataset, const char ***names, size_t *count,
                                struct tokmap_error *error);

/* Adds the list of the columns: for people, a row for each. Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status columns_report(const struct tokmap_dataset *dataset, struct cli_report *report,
                                  struct tokmap_error *error);

/* Calls each() for every value that a document has. Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status document_values(const struct tokmap_dataset *dataset, uint64_t document,
                                   void (*each)(void *user, const char *name, const struct tokmap_value *value),
                                   void *user, struct tokmap_error *error);

#endif
