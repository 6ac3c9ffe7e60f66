/* SPDX-License-Identifier: MIT */
/*
 * parquet_values.h - decodes the values of a Parquet page, in each encoding that the format has for text, integers,
 * bools and floating-point numbers.
 *
 * Texts are not copied: a value is a place in the decompressed page. Only DELTA_BYTE_ARRAY, where a text continues the
 * beginning of the one before it, needs memory of its own. Indexes of a dictionary become the places in its page.
 *
 *     encoding                 for                 what follows
 *     PLAIN                    all                 each value; a text after its length, in 4 bytes; bools as bits
 *     RLE_DICTIONARY           all                 the bits of an index, then indexes (the hybrid)
 *     RLE                      bools               u32 bytes, then values (the hybrid)
 *     DELTA_BINARY_PACKED      integers            blocks of differences; see delta_begin() in parquet_values.c
 *     DELTA_LENGTH_BYTE_ARRAY  texts               all lengths as DELTA_BINARY_PACKED, then all bytes
 *     DELTA_BYTE_ARRAY         texts               lengths of shared beginnings, then the rests as the encoding above
 *     BYTE_STREAM_SPLIT        fixed lengths       the first byte of each value, then the second of each, and so on
 *
 * Any thread.
 */
#ifndef TOKMAP_PARQUET_PARQUET_VALUES_H
#define TOKMAP_PARQUET_PARQUET_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "parquet_footer.h"

/*
 * Decodes the small integers of a Parquet page: levels and indexes of a dictionary.
 *
 * They are in the RLE/bit-packed hybrid: runs, each with a head that is a varint. An even head, 2n, is followed by one
 * value in whole bytes, which is repeated n times. An odd head, 2n + 1, is followed by 8n values of `width` bits each,
 * packed from the low bits of each byte on; the last group may be padded. Example with a width of 3 bits:
 *
 *     10 05             8 times the value 5
 *     03 88 c6 fa       the values 0, 1, 2, ..., 7
 *
 * Thread rule: one thread at a time per reader.
 */

struct parquet_hybrid {
    const uint8_t *at, *end;
    unsigned width; /* 0 to 32 */
    uint64_t left;  /* values of the current run that were not taken */
    bool packed;    /* the run is bit-packed */
    unsigned bit;   /* bits of *at that were taken */
    uint32_t value; /* that is repeated */
};

/* Begins at the first run. width: above 32 is a fault of the first take. */
void parquet_hybrid_begin(struct parquet_hybrid *hybrid, const uint8_t *bytes, uint64_t count, unsigned width);

/* Returns whether the next `count` values are all `value` and are one run; it takes nothing. So the levels of a page
 * without nulls need not be unpacked. */
bool parquet_hybrid_is_run(struct parquet_hybrid *hybrid, uint32_t value, uint64_t count);

/* Takes `count` levels. A level above `most` is a fault. */
const char *parquet_levels_take(struct parquet_hybrid *hybrid, uint8_t *into, uint64_t count, uint8_t most);

/* Returns the number of bits that levels up to `most` have. */
unsigned parquet_levels_width(uint8_t most);

#define PARQUET_REWRITE "; write the file again" /* in the reason of a fault: the page is not damaged */

/* The numbers of the format. */
enum parquet_encoding {
    PARQUET_PLAIN = 0,
    PARQUET_PLAIN_DICTIONARY = 2, /* of old files; means RLE_DICTIONARY in data pages and PLAIN in dictionary pages */
    PARQUET_RLE = 3,
    PARQUET_DELTA_BINARY_PACKED = 5,
    PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
    PARQUET_DELTA_BYTE_ARRAY = 7,
    PARQUET_RLE_DICTIONARY = 8,
    PARQUET_BYTE_STREAM_SPLIT = 9
};

/* A text: bytes [offset, offset + bytes) of parquet_values.text. */
struct parquet_span {
    uint32_t offset, bytes;
};

/* Decoded values. Texts are in `spans`, all others in `numbers`: integers with 64 bits (zero-extended if they are
 * unsigned), bools as 0 or 1, and floating-point numbers as the bits of a double. */
struct parquet_values {
    uint64_t count;
    struct parquet_span *spans; /* or NULL */
    uint64_t *numbers;          /* or NULL */
    const char *text;           /* text of the spans: the page, or `owned`, or the same of the dictionary */
    char *owned;                /* or NULL */
};

#define PARQUET_NO_MEMORY "there is not enough memory"
#define PARQUET_SHARED_MOST ((uint64_t)1 << 30)

/* Decodes `count` values, which begin at bytes[0]. *values begins as zeros; it is to be freed, also after a fault.
 * `room` (at least count) is the number of values that its arrays get memory for. dictionary: of the chunk, or NULL.
 * shared_most: most bytes of texts in DELTA_BYTE_ARRAY, up to PARQUET_SHARED_MOST.
 * `bytes` must stay valid as long as the values. Returns NULL, or what is wrong, as a static text. */
const char *parquet_values_decode(struct parquet_values *values, const struct parquet_column *column, int encoding,
                                  const uint8_t *bytes, uint64_t bytes_count, uint64_t count, uint64_t room,
                                  const struct parquet_values *dictionary, uint64_t shared_most);
void parquet_values_free(struct parquet_values *values);

#endif
