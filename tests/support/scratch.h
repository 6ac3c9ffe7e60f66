/* scratch.h - folders, files and pseudo-random numbers for tests. Failures end the test (cmocka). */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A new folder below $TMPDIR, removed with all in it by scratch_remove(). */
void scratch_make(char folder[512]);
void scratch_remove(const char *folder);

/* FOLDER/NAME in one of a few static buffers. */
const char *in_folder(const char *folder, const char *name);

/* A whole file; the result is the caller's to free. */
void *file_read(const char *path, size_t *bytes);
void file_write(const char *path, const void *bytes, size_t count);
void file_write_text(const char *path, const char *text);
bool file_exists(const char *path);
void file_copy(const char *from, const char *to);

/* A pseudo-random number from a state of one's own: the same everywhere. */
uint64_t random_next(uint64_t *state);
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return random_next(state) % limit;
}

#endif
