/* SPDX-License-Identifier: MIT */
/*
 * parquet.h - cuts a Parquet file into runs of rows, and reads their pages without decoding them.
 *
 * This is the sequential part of reading a Parquet file. It reads headers and compressed bytes of pages, column after
 * column, and only as far as the next rows need. A run of rows names, for each column, the pages that its rows are in;
 * a page at the border of two runs is in both. The threads that get the runs decode the pages (parquet_page.h). So
 * memory is bounded by pages, of which each column has one or a few at a time, and never by a row group. Of lists,
 * levels are decoded here, since nothing else says where their rows begin.
 *
 * Example: a row group with the columns text, in pages of 3 and 4 rows, and score, in one page of 7 rows.
 *
 *     text     | page A: 0 1 2 | page B: 3 4 5 6 |      run 0: rows 0 to 2, text A, score C from its row 0 on
 *     score    | page C: 0 1 2 3 4 5 6           |      run 1: rows 3 to 6, text B, score C from its row 3 on
 *
 * Accounts: of the bytes of the file, those of the data pages of its first column, without their headers, belong to
 * rows: a page of c bytes with n fragments gives fragment i the bytes from floor(i * c / n) up to floor((i + 1) * c /
 * n). All other bytes are structure.
 *
 * Thread rule: one thread at a time per source. The runs are independent of it, and of each other.
 */
#ifndef TOKMAP_PARQUET_PARQUET_H
#define TOKMAP_PARQUET_PARQUET_H

#include "parquet_footer.h"
#include "parquet_input.h"
#include "parquet_page.h"

/* Consecutive fragments of a page. */
struct parquet_slice {
    struct parquet_page *page;
    uint64_t first, count;
};

/* Consecutive rows of one row group. For each column of the footer, the slices have the fragments of the rows in order.
 * A slice that begins with fragment 0 of a page that `continues` continues a row. */
struct parquet_rows {
    struct parquet_file *file;
    uint64_t group, first, count; /* `first` is a row of the file */
    uint64_t stored_bytes;        /* of the file that belong to these rows */
    struct parquet_slice *slices; /* of all columns, one column after another */
    uint64_t slice_count, slice_capacity;
    uint64_t begins[PARQUET_LEAVES_MOST + 1]; /* column c has slices [begins[c], begins[c + 1]) */
};

/* Frees the rows and their pages. Accepts NULL. */
void parquet_rows_free(struct parquet_rows *rows);

/* Returns the bytes of the file that belong to fragment `fragment` of a page, as above. */
uint64_t parquet_fragment_bytes(const struct parquet_page *page, uint64_t fragment);

struct parquet_source;

struct parquet_source_options {
    const struct parquet_wanted *wanted; /* used while the file is opened */
    size_t wanted_count;
    uint64_t run_bytes; /* bytes of text that a run should have */
    uint64_t rows_most; /* most rows of a run */
    /* Most memory that a page may take, and a list over several pages, by what their headers say; 0: any. Pages that
     * are at least a 64th as large in the file may take more. */
    uint64_t page_most;
    /* The row groups [first_group, end_group) of a file whose parquet_cut_hash() is groups_hash; 0: all of any file. */
    uint64_t first_group, end_group, groups_hash;
    struct remote_ahead *ahead;       /* of a path that is a URL; otherwise NULL */
    void (*before_large)(void *user); /* called before a page is read that takes more than 32 MiB; may be NULL */
    void *user;
};

/* Opens a file and reads its footer. `pool` gets a reference. input: its bytes, which are the source's from now on,
 * also after an error; if it has no functions, the file of this machine is opened. Statuses: those of
 * parquet_footer_read() and parquet_input_open(), ERROR_MISMATCH (its row groups are not those that groups_hash is of).
 */
enum tokmap_status parquet_source_open(struct parquet_source **source, const char *path,
                                       const struct parquet_input *input, const struct parquet_source_options *options,
                                       struct parquet_pool *pool, struct tokmap_error *error);
void parquet_source_close(struct parquet_source *source); /* accepts NULL */

/* Begins the reading, at a row group of the part, or 0 for its first one. Returns false if the part does not have it.
 */
bool parquet_source_begin(struct parquet_source *source, uint64_t group);

/* Makes the next run of rows. Rows that precede an error are delivered before it. Statuses: OK, END, ERROR_CORRUPT,
 * ERROR_UNSUPPORTED, ERROR_LIMIT (page_most), ERROR_MISMATCH (the file has changed), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status parquet_source_next(struct parquet_source *source, struct parquet_rows **rows,
                                       struct tokmap_error *error);

uint64_t parquet_source_version(const struct parquet_source *source); /* of its input */
const struct parquet_footer *parquet_source_footer(const struct parquet_source *source);
/* Return the bytes of the file, or of its part, and how far the first column has been read in them. */
uint64_t parquet_source_bytes(const struct parquet_source *source);
uint64_t parquet_source_at(const struct parquet_source *source);

/* ---- cuts ---- */

/*
 * Divides the row groups of a Parquet file among parts, so that several processes share it.
 *
 * The place of a row group is the byte at which its pages of the first chosen column begin; one without values has
 * none. A part has consecutive row groups, and ends before one whose place is in another multiple of part_bytes than
 * that of the row group before it. The bytes of the file belong to parts, too: a part has those from the place of its
 * first row group up to the place of the next part, the first part those from the beginning, and the last one those up
 * to the end.
 *
 * Example: the places are 4, 700, 1100, none, 1900, 5200, and the file has 6000 bytes. With part_bytes 1000 the parts
 * have the row groups 0 and 1 (bytes 0 to 1099); 2, 3, and 4 (1100 to 5199); and 5 (5200 to 5999).
 *
 * A file is not cut whose row groups do not have the order in it that their rows have.
 */

struct parquet_part {
    uint64_t first, end; /* row groups [first, end) */
    uint64_t begin;      /* byte of the file */
    uint64_t bytes;
};

struct parquet_cut {
    struct parquet_part *parts;
    uint64_t count; /* 0: the file is not cut. Otherwise at least 2 */
    uint64_t hash;  /* parquet_cut_hash() of the footer */
};

/* Divides a file. part_bytes is at least 1. The result must be freed, also after an error. Statuses: OK, ERROR_MEMORY.
 */
enum tokmap_status parquet_cut_make(struct parquet_cut *cut, const struct parquet_footer *footer, uint64_t part_bytes,
                                    struct tokmap_error *error);
void parquet_cut_free(struct parquet_cut *cut); /* accepts zeros */

/* Returns a hash of where the row groups are and how many rows they have, other than 0; 0 without memory. The reader of
 * a part compares it with the hash of the footer that was cut. */
uint64_t parquet_cut_hash(const struct parquet_footer *footer);

#endif
