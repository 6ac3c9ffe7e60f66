#include "vocabulary_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/error.h"
#include "platform/os.h"

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
    size_t got = 0;
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
        failed = os_pread(fd, *text, (size_t)about.bytes, 0, &got);
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
