/* SPDX-License-Identifier: MIT */
/*
 * parquet_made.h - writes Parquet files for tests, by hand: each byte of a page is what the test says. It shares no
 * code with the reader.
 *
 * A test describes columns, adds pages to the current row group, column after column, and ends the group. The fields of
 * struct made_file are open so that a test can lie: change a number before made_file_end() writes the footer.
 */
#ifndef TESTS_SUPPORT_PARQUET_MADE_H
#define TESTS_SUPPORT_PARQUET_MADE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes_buffer.h"

#define MADE_GROUPS 8
#define MADE_COLUMNS 8
#define MADE_ELEMENTS 24

/* An element of the schema, without the root. type -1: a group. */
struct made_element {
    const char *name;
    int type, repetition, children; /* repetition: 0 required, 1 optional, 2 repeated */
    int converted;                  /* -1: none */
    int type_bytes;
    int logical; /* the field of LogicalType that is set; 0: none */
    int64_t scale, precision;
};

struct made_chunk {
    int64_t codec, values, bytes, data_page, dictionary_page; /* dictionary_page 0: none */
    const char *file_path;                                    /* or NULL */
    bool encrypted;
};

struct made_file {
    struct bytes_buffer bytes; /* the file */
    struct made_element elements[MADE_ELEMENTS];
    uint32_t element_count, leaves;
    int64_t root_children;
    bool root_typed;        /* the root has a type and a repetition */
    const char *created_by; /* NULL: "a test" */
    struct made_chunk chunks[MADE_GROUPS][MADE_COLUMNS];
    int64_t rows[MADE_GROUPS];
    uint32_t groups;
    int64_t extra_groups; /* how many more the list of row groups claims */
};

/* A data page. */
struct made_page {
    int version; /* 1 or 2 */
    int64_t entries, encoding;
    int level_encoding;                       /* of both levels in version 1; 3 is RLE */
    const uint8_t *definitions, *repetitions; /* a level for each entry, or NULL if the column has none */
    int definition_most, repetition_most;
    struct bytes_buffer values; /* encoded */
    bool crc, crc_wrong;
    int64_t rows;          /* version 2 */
    int64_t bytes, stored; /* what the header says instead of the truth; 0: the truth */
    int codec;             /* 0 or 6 (zstd) */
    bool plain_values;     /* version 2: the values are not compressed */
    bool says_plain;       /* version 2: the header says that they are not */
    int64_t kind;          /* that the header says instead of the truth; 0: the truth */
};

/* Encodings. */
void made_plain_text(struct bytes_buffer *into, const char *text, uint32_t count);
void made_varint(struct bytes_buffer *into, uint64_t value);
void made_zigzag(struct bytes_buffer *into, int64_t value);
/* The hybrid of runs and bit-packed values. packed: bit-packed in groups of 8, else a run for each change. */
void made_hybrid(struct bytes_buffer *into, const uint32_t *values, uint64_t count, unsigned width, bool packed);
/* DELTA_BINARY_PACKED in blocks of 128 with 4 miniblocks. */
void made_delta(struct bytes_buffer *into, const int64_t *values, uint64_t count);

void made_begin(struct made_file *file);
/* Adds an element of the schema; the children of a group follow it. */
void made_element(struct made_file *file, const char *name, int type, int repetition, int children);
/* Adds a page to a column of the current row group, and frees page->values. */
void made_data(struct made_file *file, uint32_t column, struct made_page *page);
void made_dictionary(struct made_file *file, uint32_t column, struct bytes_buffer *values, int64_t entries, int codec);
/* Adds an index page, which readers skip. */
void made_index_page(struct made_file *file, uint32_t column);
void made_group_end(struct made_file *file, int64_t rows);
/* Writes the footer and the file, and frees its memory. */
void made_file_end(struct made_file *file, const char *path);

#endif
