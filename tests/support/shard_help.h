/* SPDX-License-Identifier: MIT */
/* shard_help.h - small shards for tests of the rooms format and dataset. Failures end the test (cmocka). */
#ifndef TOKMAP_TESTS_SHARD_HELP_H
#define TOKMAP_TESTS_SHARD_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/shard_writer.h"
#include "scratch.h"

/* The error that MUST() prints; each test file has its own. */
static struct tokmap_error error __attribute__((unused));

/* Fails the test with the error's text if the status is not OK. MUST(call) passes `error`, which the call must fill in.
 * */
void must_succeed(enum tokmap_status status, const struct tokmap_error *found, const char *file, int line);
#define MUST(call) must_succeed((call), &error, __FILE__, __LINE__)

/* Returns the options of most tests: every id of the width is in the vocabulary, no special ids, no sync. */
struct shard_writer_options plain_options(uint32_t width);

/* Returns the value of token i of a dataset: a hash of i, below 2^16 or 2^32. */
static inline uint32_t token_value(uint64_t i, uint32_t width)
{
    uint64_t mixed = i * 0x9e3779b97f4a7c15u;
    return width == 2 ? (uint32_t)(mixed >> 48) : (uint32_t)(mixed >> 32);
}

/* Writes a shard whose token i is token_value(base + i), where base is the shard's first token in the dataset, and
 * whose documents end at ends[]. The origin of document d is record d % 3 of the file "input-<d / 3>". */
void shard_make(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents);

/* The same with two columns: "url" is "https://example.org/d" for document d, and "meta.score" is -1.5 for even
 * documents and missing for odd ones. */
void shard_make_columns(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents);

#endif
