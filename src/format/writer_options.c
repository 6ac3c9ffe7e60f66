/* SPDX-License-Identifier: MIT */
#include "writer_options.h"

#include <string.h>

#include "common/error.h"
#include "text/path.h"
#include "text/utf8.h"

static enum tokmap_status check_tokens(const char *prefix, const struct shard_writer_options *options,
                                       struct tokmap_error *error)
{
    const char *name = path_name(prefix);
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the name of the output is empty or names a folder; give a prefix, for example data/web");
    if (options->width != 2 && options->width != 4)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the width of a token is %u bytes, but it must be 2 or 4", options->width);
    if (options->vocabulary > (uint64_t)1 << 8 * options->width)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "a vocabulary of %" PRIu64 " ids needs wider tokens than %u bytes", options->vocabulary,
                         options->width);
    if ((options->eod_id != TOKMAP_NO_ID && options->eod_id >= options->vocabulary) ||
        (options->bos_id != TOKMAP_NO_ID && options->bos_id >= options->vocabulary))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the EOD or BOS id is not in the vocabulary of %" PRIu64 " ids", options->vocabulary);
    return TOKMAP_OK;
}

static enum tokmap_status check_columns(const char *prefix, const struct shard_writer_options *options,
                                        struct tokmap_error *error)
{
    if (options->column_count > COLUMNS_MAX)
        return error_set_field(error, TOKMAP_ERROR_LIMIT, prefix, "columns",
                               " has %u names, but an index holds at most %d columns", options->column_count,
                               COLUMNS_MAX);
    for (uint32_t c = 0; c < options->column_count; c++) {
        const char *name = options->columns[c];
        const size_t bytes = strlen(name);
        if (!bytes || bytes > COLUMN_NAME_MAX || utf8_valid_prefix(name, bytes) != bytes)
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, prefix, "columns",
                                   " has a name, %u, that is empty, longer than %d bytes, or not UTF-8", c,
                                   COLUMN_NAME_MAX);
        for (uint32_t before = 0; before < c; before++)
            if (!strcmp(options->columns[before], name))
                return error_set_field(error, TOKMAP_ERROR_ARGUMENT, prefix, "columns",
                                       " names '%.100s' twice; name each column once", name);
    }
    return TOKMAP_OK;
}

enum tokmap_status writer_options_check(const struct shard_writer_options *options, const char *prefix,
                                        struct tokmap_error *error)
{
    const enum tokmap_status status = check_tokens(prefix, options, error);
    return status ? status : check_columns(prefix, options, error);
}
