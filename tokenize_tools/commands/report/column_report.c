/* column_report.c - see column_report.h. */
#include "column_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"

enum tokmap_status column_names(const struct tokmap_dataset *dataset, const char ***names, size_t *count,
                                struct tokmap_error *error)
{
    *names = NULL;
    enum tokmap_status status = tokmap_dataset_columns(dataset, NULL, 0, count, error);
    if (status || !*count)
        return status;
    *names = malloc(*count * sizeof **names);
    if (!*names)
        return error_set_memory(error, "the names of columns", *count * sizeof **names);
    status = tokmap_dataset_columns(dataset, *names, *count, count, error);
    if (status) {
        free(*names);
        *names = NULL;
        *count = 0;
    }
    return status;
}

static void column_report(const struct tokmap_column_info *info, struct cli_report *report)
{
    char label[64];
    const bool each = info->values == info->documents && info->documents > 1;
    (void)snprintf(label, sizeof label, "column %.50s%s", info->name, strlen(info->name) > 50 ? "..." : "");
    cli_report_item(report);
    cli_member(report, "name", cli_text(info->name));
    cli_member(report, "shards", cli_number(info->shards));
    cli_member(report, "documents", cli_number(info->documents));
    cli_fact(report, "values", label, cli_number(info->values), "%s %s, %s", CLI_COUNT(info->values),
             each                ? "values, one for each document"
             : info->values == 1 ? "different value"
                                 : "different values",
             CLI_BYTES(info->bytes));
    cli_member(report, "bytes", cli_number(info->bytes));
    cli_report_close(report);
}

enum tokmap_status columns_report(const struct tokmap_dataset *dataset, struct cli_report *report,
                                  struct tokmap_error *error)
{
    const char **names;
    size_t count = 0;
    enum tokmap_status status = column_names(dataset, &names, &count, error);
    cli_report_array(report, "columns");
    for (size_t c = 0; c < count && !status; c++) {
        struct tokmap_column_info info = {.size = sizeof info};
        status = tokmap_dataset_column(dataset, names[c], &info, error);
        if (!status)
            column_report(&info, report);
    }
    cli_report_close(report);
    free(names);
    return status;
}

enum tokmap_status document_values(const struct tokmap_dataset *dataset, uint64_t document,
                                   void (*each)(void *user, const char *name, const struct tokmap_value *value),
                                   void *user, struct tokmap_error *error)
{
    const char **names;
    size_t count = 0;
    enum tokmap_status status = column_names(dataset, &names, &count, error);
    for (size_t c = 0; c < count && !status; c++) {
        struct tokmap_value value;
        status = tokmap_dataset_value(dataset, document, names[c], &value, error);
        if (!status && value.bytes)
            each(user, names[c], &value);
    }
    free(names);
    return status;
}
