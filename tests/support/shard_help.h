/* shard_help.h - small shards for the tests of format and dataset. Failures end the test (cmocka). */
#ifndef TOKMAP_TESTS_SHARD_HELP_H
#define TOKMAP_TESTS_SHARD_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/shard_writer.h"
#include "scratch.h"

/* The tests' own place for errors. */
static struct tokmap_error error __attribute__((unused));

/* Prints the error and fails the test if the status is not OK. */
void must_succeed(enum tokmap_status status, const struct tokmap_error *found, const char *file, int line);
#define MUST(call) must_succeed((call), &error, __FILE__, __LINE__)

/* The options that most tests use: the full vocabulary of the width, no special ids, no sync. */
struct shard_writer_options plain_options(uint32_t width);

/* Token i of a shard that begins at token `base` of its dataset: a value that tells i, below 2^16 or 2^32. */
static inline uint32_t token_value(uint64_t i, uint32_t width)
{
    uint64_t mixed = i * 0x9e3779b97f4a7c15u;
    return width == 2 ? (uint32_t)(mixed >> 48) : (uint32_t)(mixed >> 32);
}

/* Writes a shard whose token i is token_value(base + i) and whose documents end at ends[]; origin of document d is record
 * d % 3 of file "input-<d / 3>". */
void shard_make(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents);

#endif
