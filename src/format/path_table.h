/* SPDX-License-Identifier: MIT */
/*
 * path_table.h - the numbers of the input files that an index has, by their paths, for a writer whose documents come
 * from the files in any order.
 *
 * Memory: the paths, and up to 96 bytes a path. A table belongs to one thread at a time, and begins as zero bytes.
 */
#ifndef TOKMAP_FORMAT_PATH_TABLE_H
#define TOKMAP_FORMAT_PATH_TABLE_H

#include <stdbool.h>

#include "common/bytes_buffer.h"
#include "platform/table_key.h"

struct path_table {
    struct table_key key;
    struct path_slot *slots; /* a power of two of them, at most half of them in use */
    uint64_t capacity, count;
    struct bytes_buffer paths; /* one after another */
};

/* Returns false if there is not enough memory. Sets *number to the number of the path, which is 0 for the first one
 * that was ever looked for, 1 for the next one, and so on. *found: it has been looked for before. */
bool path_table_find(struct path_table *table, const char *path, uint64_t bytes, uint64_t *number, bool *found);
void path_table_free(struct path_table *table);

#endif
