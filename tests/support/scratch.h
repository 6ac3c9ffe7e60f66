/* SPDX-License-Identifier: MIT */
/* scratch.h - folders, files, and pseudo-random numbers for tests. Failures end the test (cmocka). */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Creates a new folder below $TMPDIR (or /tmp) and writes its path into folder. */
void scratch_make(char folder[512]);
/* Removes a folder and everything in it. */
void scratch_remove(const char *folder);
/* Makes `into`, which is removed first, like `from`, but for files whose names contain `without`. The files are further
 * names of the same files, because new files are slow where many were removed: a change of one in place changes
 * both. */
void scratch_double(const char *from, const char *into, const char *without);

/* Returns FOLDER/NAME in one of eight static buffers; the ninth call overwrites the result of the first. */
const char *in_folder(const char *folder, const char *name);

/* Returns the content of a file, which the caller frees. */
void *file_read(const char *path, size_t *bytes);
/* Creates or replaces a file. */
void file_write(const char *path, const void *bytes, size_t count);
void file_write_text(const char *path, const char *text);
/* Returns whether the path exists; it may be a folder or a dangling link. */
bool file_exists(const char *path);
void file_copy(const char *from, const char *to);
/* Returns how many bytes of a file are in the page cache, in whole pages. */
uint64_t file_cached(const char *path);
/* Returns whether the file system of a folder drops pages from the page cache when it is asked to. */
bool file_pages_drop(const char *folder);

/* Returns the next pseudo-random number of the caller's state; the sequence is the same on every machine. */
uint64_t random_next(uint64_t *state);
/* Returns a pseudo-random number below `limit`, which is not 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return random_next(state) % limit;
}

#endif
