/* SPDX-License-Identifier: MIT */
/* numbers.h - numbers as users type them, and numbers as people read them. */
#ifndef TOKMAP_CLI_NUMBERS_H
#define TOKMAP_CLI_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_range {
    uint64_t first, end; /* includes first and excludes end */
    bool given;
};

/* Numbers as CLI_NUMBER, CLI_SIZE, and CLI_RANGE (arguments.h) take them. Each returns false, and leaves the result
 * alone, if the text has another form or a number does not fit in 64 bits. */
bool cli_parse_number(const char *text, uint64_t *number);
bool cli_parse_size(const char *text, uint64_t *size);
bool cli_parse_range(const char *text, struct cli_range *range);

/* Returns the share in percent, and 0 of nothing. */
static inline double cli_percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Numbers for people. Each writes into `text` and returns it. */
const char *cli_bytes(uint64_t bytes, char text[32]);   /* "1.23 GB" */
const char *cli_count(uint64_t count, char text[32]);   /* "1,234,567" */
const char *cli_seconds(double seconds, char text[32]); /* "1.23 ms", "4 min 05 s", "?" if negative or not finite */
/* Prints a time that has passed or is left, in steps that a person can use: "less than 1 s", "12 s", "4 min 05 s", "2 h
 * 02 min", "3 d 04 h"; "?" if it is negative, not finite, or longer than a thousand years. */
const char *cli_duration(double seconds, char text[32]);
/* Prints a count and what is counted: "1 row", "2,000 rows", "2 batches". noun: the singular. */
const char *cli_counted(uint64_t count, const char *noun, char text[64]);

/* The same, written into memory that lasts until the end of the block around the call. */
#define CLI_BYTES(bytes) cli_bytes((bytes), (char[32]){0})
#define CLI_COUNT(count) cli_count((count), (char[32]){0})
#define CLI_SECONDS(seconds) cli_seconds((seconds), (char[32]){0})
#define CLI_COUNTED(count, noun) cli_counted((count), (noun), (char[64]){0})

#endif
