/* shard_help.h - folders, files and small shards for the tests of format and dataset. Failures end the test (cmocka). */
#ifndef TOKMAP_TESTS_SHARD_HELP_H
#define TOKMAP_TESTS_SHARD_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/shard_writer.h"

/* A new folder below $TMPDIR, removed with all in it by scratch_remove(). */
void scratch_make(char folder[512]);
void scratch_remove(const char *folder);

/* FOLDER/NAME in one of a few static buffers. */
const char *in_folder(const char *folder, const char *name);

/* A whole file; the result is the caller's to free. */
uint8_t *file_read(const char *path, size_t *bytes);
void file_write(const char *path, const void *bytes, size_t count);
bool file_exists(const char *path);
void file_copy(const char *from, const char *to);

/* A pseudo-random number from a state of one's own: the same everywhere. */
uint64_t random_next(uint64_t *state);
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return random_next(state) % limit;
}

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
