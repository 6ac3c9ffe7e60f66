/* SPDX-License-Identifier: MIT */
/*
 * parquet_levels.h - decodes the small integers of a Parquet page: levels and indexes of a dictionary.
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
#ifndef TOKMAP_PARQUET_PARQUET_LEVELS_H
#define TOKMAP_PARQUET_PARQUET_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

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

/* Takes the next `count` values. Returns NULL, or what is wrong, as a static text. */
const char *parquet_hybrid_take(struct parquet_hybrid *hybrid, uint32_t *into, uint64_t count);

/* Returns whether the next `count` values are all `value` and are one run; it takes nothing. So the levels of a page
 * without nulls need not be unpacked. */
bool parquet_hybrid_is_run(struct parquet_hybrid *hybrid, uint32_t value, uint64_t count);

/* Takes `count` levels. A level above `most` is a fault. */
const char *parquet_levels_take(struct parquet_hybrid *hybrid, uint8_t *into, uint64_t count, uint8_t most);

/* Returns the number of bits that levels up to `most` have. */
unsigned parquet_levels_width(uint8_t most);

#endif
