/* SPDX-License-Identifier: MIT */
/*
 * index_columns.h - reads the columns of an open index: chosen fields of the records that documents came from.
 *
 * Opening an index does not look into its section columns. Every call here checks the numbers that it uses against the
 * section and against each other, and nothing of a damaged column leads outside the section. Any thread may call these
 * functions.
 */
#ifndef TOKMAP_FORMAT_INDEX_COLUMNS_H
#define TOKMAP_FORMAT_INDEX_COLUMNS_H

#include "columns_writer.h"
#include "index_reader.h"

struct index_column {
    const char *name; /* terminated; head.name_bytes long; lives as long as the index */
    struct column_head head;
    struct column_layout layout;
};

/* Stores the columns of the index in columns[0 .. *count); *count is 0 if it has none. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_columns(const struct index *index, struct index_column columns[COLUMNS_MAX], uint32_t *count,
                                 struct tokmap_error *error);

/* Finds the value of a column for a document (< documents): *bytes bytes of JSON text, 0 where the record has no such
 * field. It lives as long as the index. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status index_value(const struct index *index, const struct index_column *column, uint64_t document,
                               const char **json, uint64_t *bytes, struct tokmap_error *error);

/* Reads the whole section and checks every rule of FORMAT.md for it. *error is the first fault. Statuses: OK,
 * ERROR_CORRUPT. */
enum tokmap_status index_columns_check(const struct index *index, struct tokmap_error *error);

#endif
