/* SPDX-License-Identifier: MIT */
#include "corpus_options.h"

#include <assert.h>

size_t record_fields(const struct corpus_options *options, const char *names[RECORD_FIELDS_MOST])
{
    size_t count = 0;
    assert(options->field && options->column_count <= RECORD_COLUMNS_MOST &&
           options->beside_count <= RECORD_BESIDE_MOST);
    names[count++] = options->field;
    if (options->second_field)
        names[count++] = options->second_field;
    for (size_t i = 0; i < options->column_count; i++)
        names[count++] = options->columns[i];
    for (size_t i = 0; i < options->beside_count; i++)
        names[count++] = options->beside[i];
    return count;
}
