/* excluded_files.h - outputs in folders of inputs, which are not read. */
#ifndef TOKMAP_CORPUS_EXCLUDED_FILES_H
#define TOKMAP_CORPUS_EXCLUDED_FILES_H

#include <stdbool.h>

#include "common/error.h"
#include "platform/os.h"

#define EXCLUDED_MOST 48

/* Empty if all is zero. Nothing has to be freed. */
struct excluded_files {
    struct os_stat list[EXCLUDED_MOST];
    size_t count;
};

/* Adds a file, or a folder, which means all files directly in it. A path that does not exist, or was added before, is
 * ignored. Statuses: OK, ERROR_LIMIT. */
enum tokmap_status excluded_files_add(struct excluded_files *excluded, const char *path, struct tokmap_error *error);

/* Whether the file `path` is excluded. own: what os_stat() says of it. */
bool excluded_files_have(const struct excluded_files *excluded, const char *path, const struct os_stat *own);

#endif
