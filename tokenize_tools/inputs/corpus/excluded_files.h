/* SPDX-License-Identifier: MIT */
/* excluded_files.h - outputs in folders of inputs, which are not read. */
#ifndef TOKMAP_CORPUS_EXCLUDED_FILES_H
#define TOKMAP_CORPUS_EXCLUDED_FILES_H

#include <stdbool.h>

#include "common/error.h"
#include "platform/os.h"

#define EXCLUDED_MOST 48

enum excluded_kind { EXCLUDED_NOT, EXCLUDED_OUTPUT, EXCLUDED_OLDER };

/* Empty if all is zero. Nothing has to be freed. */
struct excluded_files {
    struct os_stat list[EXCLUDED_MOST];
    size_t count;
    enum excluded_kind (*kind_of)(const void *user, const char *path); /* of other files, by their names; or NULL */
    const void *user;
};

/* Adds a file, or a folder, which means all files directly in it. A path that does not exist, or was added before, is
 * ignored. Statuses: OK, ERROR_LIMIT. */
enum tokmap_status excluded_files_add(struct excluded_files *excluded, const char *path, struct tokmap_error *error);

/* Returns the error for an input `shown` of a kind other than EXCLUDED_NOT: ERROR_ARGUMENT. */
enum tokmap_status excluded_kind_error(enum excluded_kind kind, const char *shown, struct tokmap_error *error);

/* Refuses the file `path`, which messages call `shown`, if it is excluded. own: what os_stat() says of it. Statuses:
 * OK, ERROR_ARGUMENT. */
enum tokmap_status excluded_files_check(const struct excluded_files *excluded, const char *path,
                                        const struct os_stat *own, const char *shown, struct tokmap_error *error);

#endif
