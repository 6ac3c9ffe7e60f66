/* SPDX-License-Identifier: MIT */
/*
 * parquet_page.h - one page of a Parquet file: its header, and its values once they are decoded.
 *
 * A page has *entries*: one for each row of a flat column; of a list, one for each element, and one for each list that
 * is null or empty. An entry whose definition level is the column's largest one has a value. The levels and the values
 * of all entries follow each other in the page:
 *
 *     version 1    compressed together: repetition levels, definition levels, values
 *     version 2    repetition levels, definition levels, compressed: values
 *
 * The entries of one row in one page are a *fragment*. Of a flat column each entry is a fragment. A list can begin in
 * one page and continue in the next ones: those begin with a fragment that continues the row (`continues`). Version 2
 * forbids that, but some programs do it.
 *
 * A page is made by the thread that reads the file and decoded by the first thread that needs it, so that decoding is
 * parallel by page. It is freed with the last reference to it.
 *
 * Thread rule: parquet_page_decode(), hold and release: any thread. Decoded values are constant.
 */
#ifndef TOKMAP_PARQUET_PARQUET_PAGE_H
#define TOKMAP_PARQUET_PARQUET_PAGE_H

#include "parquet_codec.h"
#include "parquet_values.h"

/*
 * Decompressors and memory that the pages of Parquet files use one after another.
 *
 * The threads that decode pages are not known here, so a thread borrows a decompressor for one page. Memory of pages is
 * kept for the next ones, because fresh memory would cost a page fault for every 4 KiB; at most POOL_KEPT_BYTES of it.
 *
 * Thread rule: any thread.
 */

#define POOL_KEPT_BYTES ((uint64_t)64 << 20)

struct parquet_pool;

/* Creates a pool, with one reference. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status parquet_pool_new(struct parquet_pool **pool, struct tokmap_error *error);
void parquet_pool_hold(struct parquet_pool *pool);    /* adds a reference */
void parquet_pool_release(struct parquet_pool *pool); /* the last one frees the pool; accepts NULL */

/* Returns a buffer with count 0: of those that were given back, the smallest with this capacity, or else the largest;
 * one without memory if all are out. So the buffers get the sizes that pages need, compressed and decompressed, and
 * their memory is not freed and touched for the first time again with each page. It allocates nothing. */
struct bytes_buffer parquet_pool_buffer(struct parquet_pool *pool, uint64_t capacity);
void parquet_pool_buffer_back(struct parquet_pool *pool, struct bytes_buffer *buffer); /* and empties it */

/* Largest usual ratio of a page's size in memory to its size in the file. */
#define PARQUET_USUAL_RATIO 64
/* Entries of a page above which it is refused: few bytes can claim any number of them. */
#define PARQUET_ENTRIES_MOST ((uint64_t)1 << 26)

/* State that the pages of one file share. */
struct parquet_file {
    uint32_t references;
    char *path;
    struct parquet_footer footer;
    struct parquet_pool *pool;
    uint64_t page_most; /* memory that a page may take (parquet.h); 0: any */
};
void parquet_file_hold(struct parquet_file *file);
void parquet_file_release(struct parquet_file *file); /* the last one frees the file; accepts NULL */

enum parquet_page_kind { PARQUET_PAGE_DATA, PARQUET_PAGE_INDEX, PARQUET_PAGE_DICTIONARY, PARQUET_PAGE_DATA_2 };

struct parquet_page_header {
    int64_t kind;           /* enum parquet_page_kind; readers skip index pages, which no writer makes */
    uint64_t header_bytes;  /* of the header itself */
    uint64_t bytes, stored; /* of what follows it, decompressed and as it is stored */
    bool has_crc, is_compressed;
    uint32_t crc;
    uint64_t entries;
    int64_t encoding, definition_encoding, repetition_encoding;
    uint64_t rows, definition_bytes, repetition_bytes; /* version 2; `rows` of lists cannot be trusted */
};

/* Reads a header. Returns NULL, or what is wrong, as a static text: THRIFT_FAULT_SHORT if it does not end in these
 * bytes. */
const char *parquet_page_header_read(struct parquet_page_header *header, const uint8_t *bytes, uint64_t count);

/* About how much memory a page takes that has this header: its bytes, and 8 for each entry. */
uint64_t parquet_page_weight(const struct parquet_file *file, uint64_t group, uint32_t column,
                             const struct parquet_page_header *header);

/* An entry that has no value: the place of its span, if other entries of the page have values. */
struct parquet_page {
    uint32_t references;
    struct parquet_file *file;
    struct parquet_page_header header;
    uint64_t group;                  /* its row group */
    uint32_t column;                 /* index in footer.columns */
    uint64_t offset;                 /* of its header in the file */
    struct parquet_page *dictionary; /* of its chunk, or NULL */

    /* Valid after parquet_page_decode(). Entry i has the span or number i of `values`, if it has a value. */
    struct parquet_values values;
    uint8_t *definitions; /* of each entry, or NULL: all have values */

    /* Valid after parquet_page_divide(); of a flat column, always. */
    uint32_t *fragments;     /* of a list: the first entry of each fragment, and the number of entries; else NULL */
    uint64_t fragment_count; /* of a flat column, the entries */
    bool continues;          /* fragment 0 continues a row of an earlier page */

    /* State of parquet_page.c. */
    struct os_mutex *mutex;
    struct bytes_buffer stored, data;
    bool checked, decoded;        /* its checksum was compared; it was decoded, or failed */
    struct tokmap_error *failure; /* reason why it cannot be decoded, or NULL */
};

/* Makes a page of a file with one reference, and takes `stored`, its bytes. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status parquet_page_new(struct parquet_page **page, struct parquet_file *file, uint64_t group,
                                    uint32_t column, uint64_t offset, const struct parquet_page_header *header,
                                    struct bytes_buffer *stored, struct parquet_page *dictionary,
                                    struct tokmap_error *error);
void parquet_page_hold(struct parquet_page *page);
void parquet_page_release(struct parquet_page *page); /* accepts NULL */

/* Finds where the rows of a page of lists begin. A page of version 1 is decoded for that, one of version 2 is not. Only
 * the thread that made the page calls this, before others see it. Statuses: those of parquet_page_decode(). */
enum tokmap_status parquet_page_divide(struct parquet_page *page, struct tokmap_error *error);

/* Decompresses and decodes the page, unless that has been done. A page that failed fails again in the same way.
 * Statuses: OK, ERROR_CORRUPT, ERROR_UNSUPPORTED (a codec or an encoding), ERROR_MEMORY. */
enum tokmap_status parquet_page_decode(struct parquet_page *page, struct tokmap_error *error);

/* Says what is wrong with a page: sets the error and returns `status`, or ERROR_UNSUPPORTED in place of ERROR_CORRUPT
 * if the reason says to write the file again. */
enum tokmap_status parquet_page_fault(const struct parquet_file *file, uint64_t group, uint32_t column, uint64_t offset,
                                      enum tokmap_status status, const char *reason, struct tokmap_error *error);

#endif
