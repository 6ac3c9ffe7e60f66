#include "vocabulary_file.h"

#include <stdlib.h>

#include "common/error.h"
#include "platform/os.h"

enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error)
{
    int fd, failed = os_open(path, OS_READ, &fd);
    *text = NULL;
    *bytes = 0;
    if (failed)
        return error_set_system(
            error, failed, path, TOKMAP_NO_OFFSET,
            "the tokenizer '%s' cannot be read; name a vocabulary file, a folder that holds one, or 'bytes'", path);
    struct os_stat about;
    enum tokmap_status status = TOKMAP_OK;
    size_t got = 0;
    failed = os_fstat(fd, &about);
    if (!failed && (!about.bytes || about.bytes > VOCABULARY_FILE_MOST || about.kind != OS_KIND_FILE))
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "the file is empty, larger than 1 GiB, or not a regular file, so it is not a vocabulary");
    else if (!failed && !(*text = malloc((size_t)about.bytes)))
        status = error_set_memory(error, "a vocabulary file", about.bytes);
    else if (!failed)
        failed = os_pread(fd, *text, (size_t)about.bytes, 0, &got);
    if (failed)
        status = error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the vocabulary file cannot be read");
    if (!status && !got)
        status = error_set(error, TOKMAP_ERROR_TRUNCATED, path, TOKMAP_NO_OFFSET,
                           "the vocabulary file was emptied while it was read; try again when it is complete");
    if (status) {
        free(*text);
        *text = NULL;
    }
    *bytes = got;
    os_close(fd);
    return status;
}
