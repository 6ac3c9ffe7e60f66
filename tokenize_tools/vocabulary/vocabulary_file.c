#include "vocabulary_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error)
{
    int fd, failed = os_open(path, OS_READ, &fd);
    *text = NULL;
    *bytes = 0;
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET,
                                "the tokenizer '%s' cannot be read; the one that needs no file is 'bytes'", path);
    struct os_stat about;
    enum tokmap_status status = TOKMAP_OK;
    size_t got = 0;
    failed = os_fstat(fd, &about);
    if (!failed && (!about.bytes || about.bytes > VOCABULARY_FILE_MOST || about.kind != OS_KIND_FILE))
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "a tokenizer is a file of at most 1 GiB that is not empty");
    else if (!failed && !(*text = malloc((size_t)about.bytes)))
        status = error_set_memory(error, "a tokenizer's file", about.bytes);
    else if (!failed)
        failed = os_pread(fd, *text, (size_t)about.bytes, 0, &got);
    if (failed)
        status = error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the tokenizer's file cannot be read");
    if (!status && !got)
        status = error_set(error, TOKMAP_ERROR_TRUNCATED, path, TOKMAP_NO_OFFSET,
                           "the tokenizer's file was cut off while it was read");
    if (status) {
        free(*text);
        *text = NULL;
    }
    *bytes = got;
    os_close(fd);
    return status;
}
