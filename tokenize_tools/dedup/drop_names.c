/* SPDX-License-Identifier: MIT */
/* drop_names.c - see drop_names.h. */
#include "drop_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/index_reader.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"
#include "work/dropped_aside.h"

/* Sets the number of the output that there is: the id of its index, or 0. An index that cannot be read counts as
 * absent: such an output is removed before it is replaced. */
static enum tokmap_status output_number(const struct drop_output *output, uint64_t *number, struct tokmap_error *error)
{
    struct index index;
    char *path = shard_file_path(output->name, SHARD_INDEX, SHARD_FINAL);
    const enum tokmap_status status =
        path ? index_open(&index, path, error) : error_set_memory(error, "a path", strlen(output->name));
    *number = status ? 0 : index.id;
    if (!status)
        index_close(&index);
    free(path);
    return status == TOKMAP_ERROR_MEMORY || status == TOKMAP_ERROR_IO ? status : TOKMAP_OK;
}

/* Returns true if a file of one kind is there: of the index of one shard, or the list of dropped documents. */
static bool has_file(const struct drop_output *output, enum shard_file file)
{
    struct os_stat found;
    char *path = shard_file_path(output->name, file, SHARD_FINAL);
    const bool has = !path || !os_lstat(path, &found);
    free(path);
    return has;
}

enum tokmap_status drop_names_settle(const struct drop_output *output, bool keeps, struct tokmap_error *error)
{
    uint64_t number = 0;
    if (output->numbered) /* the list gets its name in one group with the shards */
        return TOKMAP_OK;
    /* Without output->replace, there is no old output. */
    enum tokmap_status status =
        dropped_aside_check(output->name, output->replace && output->listed && has_file(output, SHARD_INDEX), error);
    if (status || !output->replace || !dropped_find_aside(output->name))
        return status;
    status = output_number(output, &number, error);
    return status ? status : dropped_settle(output->name, number, keeps, error);
}

/* Adds the list, or the removal of an old or unfinished one, to the group. */
static void group_add(struct name_files *group, const char *name, bool listed)
{
    char *path = shard_file_path(name, SHARD_DROPPED, SHARD_FINAL);
    char *partial = shard_file_path(name, SHARD_DROPPED, SHARD_PARTIAL);
    if (listed || !path || !partial) {
        name_files_add(group, 0, partial, path);
        return;
    }
    if (partial_file_begins(partial, DROPPED_MAGIC))
        name_files_remove(group, 0, strdup(partial));
    if (dropped_is_file(path))
        name_files_remove(group, 0, strdup(path));
    free(partial);
    free(path);
}

enum tokmap_status drop_names_begin(struct drop_names *names, const struct drop_output *output,
                                    struct dropped_writer *list, struct name_files *group, struct tokmap_error *error)
{
    names->grouped = group != NULL;
    names->list = group ? list : NULL;
    if (group) {
        group_add(group, output->name, list != NULL);
        return TOKMAP_OK;
    }
    /* An output without a list, or one that gets none, has nothing to put aside, and no index need be read. */
    const bool listed = list || has_file(output, SHARD_DROPPED);
    enum tokmap_status status = listed ? output_number(output, &names->output, error) : TOKMAP_OK;
    names->aside = listed && !status;
    if (!status && !(list && dropped_writer_is_named(list)))
        status = dropped_aside(output->name, names->output, list != NULL, output->sync, error);
    /* The list is there before the shards, so that no shard is without one. */
    if (!status && list)
        status = dropped_writer_commit(list, error);
    if (!status)
        names->list = list;
    return status;
}

void drop_names_end(const struct drop_names *names, const struct drop_output *output, bool visible)
{
    if (names->grouped && visible && names->list)
        dropped_writer_given(names->list);
    else if (!names->grouped && !visible && names->list)
        dropped_writer_take_back(names->list);
    if (names->aside && visible)
        dropped_forget(output->name, names->output);
    else if (names->aside)
        dropped_restore(output->name, names->output);
}
