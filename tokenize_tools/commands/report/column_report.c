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

/* Calls each() for every column, with what the dataset has of it. */
static enum tokmap_status columns_walk(const struct tokmap_dataset *dataset,
                                       void (*each)(void *user, const struct tokmap_column_info *info), void *user,
                                       struct tokmap_error *error)
{
    const char **names;
    size_t count = 0;
    enum tokmap_status status = column_names(dataset, &names, &count, error);
    for (size_t c = 0; c < count && !status; c++) {
        struct tokmap_column_info info = {.size = sizeof info};
        status = tokmap_dataset_column(dataset, names[c], &info, error);
        if (!status)
            each(user, &info);
    }
    free(names);
    return status;
}

static void row_of_column(void *user, const struct tokmap_column_info *info)
{
    char name[64], text[160], values[32], bytes[32];
    const bool each = info->values == info->documents && info->documents > 1;
    (void)snprintf(name, sizeof name, "column %.50s%s", info->name, strlen(info->name) > 50 ? "..." : "");
    (void)snprintf(text, sizeof text, "%s %s, %s", cli_count(info->values, values),
                   each                ? "values, one for each document"
                   : info->values == 1 ? "different value"
                                       : "different values",
                   cli_bytes(info->bytes, bytes));
    const char *const cells[] = {name, text};
    cli_table_row(user, cells);
}

enum tokmap_status columns_table(const struct tokmap_dataset *dataset, struct cli_table *table,
                                 struct tokmap_error *error)
{
    return columns_walk(dataset, row_of_column, table, error);
}

static void json_of_column(void *user, const struct tokmap_column_info *info)
{
    struct cli_json *json = user;
    cli_json_object(json, NULL);
    cli_json_text(json, "name", info->name);
    cli_json_number(json, "shards", info->shards);
    cli_json_number(json, "documents", info->documents);
    cli_json_number(json, "values", info->values);
    cli_json_number(json, "bytes", info->bytes);
    cli_json_end(json);
}

enum tokmap_status columns_json(const struct tokmap_dataset *dataset, struct cli_json *json, struct tokmap_error *error)
{
    cli_json_array(json, "columns");
    const enum tokmap_status status = columns_walk(dataset, json_of_column, json, error);
    cli_json_end(json);
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
