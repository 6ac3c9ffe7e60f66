/* SPDX-License-Identifier: MIT */
/*
 * parquet_footer.h - the footer of a Parquet file: its columns, and where the pages of the chosen ones are.
 *
 *     PAR1 | pages of row group 0, column after column | pages of row group 1 | ... | footer | u32 its bytes | PAR1
 *
 * The schema is a tree of fields, listed depth first. Its leaves are the columns that have pages. A leaf has the names
 * of the fields from the root to it, joined by dots, and two numbers without which the levels in its pages cannot be
 * read (parquet_page.h): max_definition counts the fields on that path that may be absent or repeated, and
 * max_repetition counts those that are repeated. Example, a list of ids as most programs write it:
 *
 *     optional group input_ids (LIST) {      levels of the leaf "input_ids.list.element":
 *         repeated group list {                  definition 0: the list is null      2: the element is null
 *             optional int32 element;                       1: the list is empty     3: the element has a value
 *         }                                      repetition 0: the first entry of a row   1: a further element
 *     }
 *
 * The levels give the same answers for every way to write a list ("bag.array_element", "array", a repeated column), so
 * only they are used, and not the names.
 *
 * Of the footer only the chosen columns are kept: a file with 10^6 columns costs little more memory than its footer.
 * While it is read, the places of all chunks are, too. A file is refused in which a chosen column shares bytes with any
 * other chunk, so pages of one column are never taken for those of another.
 *
 * Thread rule: constant after it was read, and then for any thread.
 */
#ifndef TOKMAP_PARQUET_PARQUET_FOOTER_H
#define TOKMAP_PARQUET_PARQUET_FOOTER_H

#include <stdbool.h>
#include <stddef.h>

#include "parquet_types.h"
#include "tokmap/tokmap.h"

/* Uses of a field, which decide the columns that it can be (parquet_types.h). */
enum parquet_use {
    PARQUET_USE_TEXT,    /* texts */
    PARQUET_USE_NUMBERS, /* lists of integers or bools, or texts, which then are JSON */
    PARQUET_USE_VALUE,   /* texts, numbers, bools and others that JSON can have */
    PARQUET_USE_BESIDE,  /* the same; others are refused because what they say would be lost */
    PARQUET_USE_MESSAGES /* lists of structs of texts, and of structs of them, or texts, which then are JSON */
};

struct parquet_wanted {
    const char *field; /* with dots where it is nested; a field whose own name has the dots is preferred */
    enum parquet_use use;
    const char *option; /* that names the field, for messages: "--field" */
};

#define PARQUET_LEAVES_MOST 64 /* columns that are read of one file */

/* A chosen column. */
struct parquet_column {
    char name[128];  /* the path, for messages: cut, and not as bytes of a file */
    char last[128];  /* the name of the leaf alone; the key of a message */
    char group[128]; /* the name of the group around it */
    bool in_group;   /* that group is a field of a message: "group": {"last": ...} */
    uint32_t nodes;  /* its depth in the schema */
    uint64_t path;   /* the hash of the whole path */
    uint32_t wanted; /* the index of the field that it belongs to */
    bool inside;     /* the field is a group that contains it */
    uint64_t leaf;   /* its number among all columns of the file, from 0 */
    struct parquet_kind kind;
    enum parquet_meaning meaning;
    uint8_t max_definition, max_repetition;
    uint8_t repeated_definition; /* from this definition level on, an entry is an element of the list; 0: no list */
};

/* The pages of one column in one row group. */
struct parquet_chunk {
    int codec;       /* of the format */
    uint64_t offset; /* of the first page, in the file */
    uint64_t bytes;  /* of all pages with their headers, as the footer says */
    uint64_t values; /* entries of all data pages */
    uint64_t limit;  /* beginning of something else: the pages of the next chunk of any column, or the footer */
};

struct parquet_row_group {
    uint64_t rows;
    uint64_t first_row; /* in the file */
};

struct parquet_footer {
    uint64_t file_bytes;
    uint64_t data_end; /* place of the footer: no page ends behind it */
    uint64_t rows;
    uint64_t leaves; /* all columns of the file */
    /* Pages of version 2 are compressed though they say that they are not: Arrow before 3 wrote such (ARROW-10353). */
    bool is_compressed_anyway;
    struct parquet_column columns[PARQUET_LEAVES_MOST];
    uint32_t column_count;
    struct parquet_row_group *groups;
    uint64_t group_count;
    struct parquet_chunk *chunks; /* of row group g, column c: chunks[g * column_count + c] */
};

struct parquet_input;

/* Reads the footer of an open file, and chooses the columns of the wanted fields; those of one field follow one
 * another, in the order of `wanted`. path: as it was named. The footer must be freed, also after an error. Statuses:
 * OK, ERROR_INPUT (a field is missing, or cannot be read as it is wanted), ERROR_CORRUPT, ERROR_TRUNCATED,
 * ERROR_UNSUPPORTED (encrypted), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status parquet_footer_read(struct parquet_footer *footer, const struct parquet_input *input,
                                       const char *path, const struct parquet_wanted *wanted, size_t count,
                                       struct tokmap_error *error);
void parquet_footer_free(struct parquet_footer *footer);

#endif
