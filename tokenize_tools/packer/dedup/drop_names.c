/* SPDX-License-Identifier: MIT */
/* drop_names.c - see drop_names.h. */
#include "drop_names.h"

#include <stdlib.h>
#include <string.h>

#include "format/partial_file.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "work/dropped_file.h"

void drop_names_add(struct name_files *group, const char *name, bool listed)
{
    char *path = shard_file_path(name, SHARD_DROPPED, SHARD_FINAL);
    char *partial = shard_file_path(name, SHARD_DROPPED, SHARD_PARTIAL);
    if (group && (listed || !path || !partial)) {
        name_files_add(group, 0, partial, path);
        return;
    }
    if (!listed && partial && partial_file_begins(partial, DROPPED_MAGIC)) /* of a killed process */
        (void)os_unlink(partial);
    if (group && dropped_is_file(path))
        name_files_remove(group, 0, strdup(path));
    free(partial);
    free(path);
}
