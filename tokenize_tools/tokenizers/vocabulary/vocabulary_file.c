/* SPDX-License-Identifier: MIT */
/*
 * vocabulary_file.c - see vocabulary_file.h. A large file is read by several threads: copying it, and making the pages
 * that it is copied to, takes as long as a tenth of all work on it. Each thread reads the next piece that none has
 * taken; a piece begins where a huge page does.
 */
#include "vocabulary_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define PIECE_BYTES ((uint64_t)2 << 20)
#define THREADS_MOST 4u

/* Findings of a thread: the first of its pieces that could not be read whole, after which it read no more. */
struct reader {
    uint64_t end; /* end of the bytes that could be read; UINT64_MAX: there is no such piece */
    int failed;   /* 0: the file ends there */
};

struct reading {
    int fd;
    char *text;
    uint64_t bytes;
    uint32_t next; /* the first piece that no thread has taken */
    struct reader readers[THREADS_MOST];
};

static void reading_run(void *user, uint32_t number)
{
    struct reading *reading = user;
    struct reader *reader = &reading->readers[number];
    while (reader->end == UINT64_MAX) {
        const uint64_t from = __atomic_fetch_add(&reading->next, 1, __ATOMIC_RELAXED) * PIECE_BYTES;
        if (from >= reading->bytes)
            return;
        const size_t wanted = (size_t)min64(reading->bytes - from, PIECE_BYTES);
        size_t got;
        reader->failed = os_pread(reading->fd, reading->text + from, wanted, from, &got);
        if (reader->failed || got < wanted)
            reader->end = from + got;
    }
}

/* Reads the file. *got: the bytes before the first place that could not be read, all if there is none. Returns 0, or
 * the errno of that place. 0 there means that the file has become shorter. */
static int read_all(int fd, char *text, uint64_t bytes, uint64_t *got)
{
    struct reading reading = {.fd = fd, .text = text, .bytes = bytes};
    const uint64_t pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    struct reader first = {UINT64_MAX, 0};
    for (uint32_t i = 0; i < THREADS_MOST; i++)
        reading.readers[i].end = UINT64_MAX;
    os_threads_share("tokmap-read", (uint32_t)min64(min64(os_processors(), THREADS_MOST), pieces), reading_run,
                     &reading);
    for (uint32_t i = 0; i < THREADS_MOST; i++)
        if (reading.readers[i].end < first.end)
            first = reading.readers[i];
    *got = min64(first.end, bytes);
    return first.failed;
}

enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error)
{
    assert(path && text && bytes);
    int fd, failed = os_open(path, OS_READ_NOW, &fd);
    *text = NULL;
    *bytes = 0;
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be opened");
    struct os_stat about;
    enum tokmap_status status = TOKMAP_OK;
    uint64_t got = 0;
    failed = os_fstat(fd, &about);
    if (!failed && about.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "this is not a regular file, so it cannot be read as a vocabulary");
    else if (!failed && !about.bytes)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "the file is empty; a vocabulary has at least one token");
    else if (!failed && about.bytes > VOCABULARY_FILE_MOST)
        status =
            error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                      "the file has %" PRIu64 " bytes; tokmap can read vocabulary files of at most 1 GiB", about.bytes);
    else if (!failed && !(*text = os_memory_large((size_t)about.bytes)))
        status = error_set_memory(error, "a vocabulary file", about.bytes);
    else if (!failed)
        failed = read_all(fd, *text, about.bytes, &got);
    if (failed)
        status = error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be read");
    if (!status && !got)
        status = error_set(error, TOKMAP_ERROR_TRUNCATED, path, TOKMAP_NO_OFFSET,
                           "the file was emptied while it was read; try again when it is complete");
    if (status) {
        free(*text);
        *text = NULL;
    }
    *bytes = got;
    os_close(fd);
    return status;
}
