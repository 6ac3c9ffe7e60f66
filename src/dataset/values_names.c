/* SPDX-License-Identifier: MIT */
/* values_names.c - see values_names.h. */
#include "values_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "remote/remote_list.h"
#include "text/path.h"

#define ENDING ".values"

static int name_listed(void *user, const char *name)
{
    struct values_names *names = user;
    if (!path_ends_in(name, strlen(name), ENDING))
        return 0;
    if (!list_room(&names->names, names->count, &names->room, sizeof *names->names))
        return ENOMEM;
    names->names[names->count] = strdup(name);
    return names->names[names->count++] ? 0 : ENOMEM;
}

/* Lists the objects in a folder, whose name ends in a slash. */
static enum tokmap_status objects_list(struct values_names *names, const char *folder, struct tokmap_error *error)
{
    const struct remote_client none = {0}, *client = names->client ? names->client : &none;
    struct remote_list *list = NULL;
    const char *path;
    uint64_t size, tag;
    if (remote_kind(folder) == REMOTE_WEB)
        return TOKMAP_OK;
    enum tokmap_status status =
        remote_list_open(&list, folder, false, client->stop, client->user, client->watch, error);
    while (!status && !(status = remote_list_next(list, &path, &size, &tag, error)))
        if (path_folder_bytes(path) == strlen(folder) && name_listed(names, path + strlen(folder)))
            status = error_set_memory(error, "the names of values", 0);
    remote_list_close(list);
    return status == TOKMAP_END || status == TOKMAP_ERROR_NOT_FOUND ? TOKMAP_OK : status;
}

static enum tokmap_status names_list(struct values_names *names, struct tokmap_error *error)
{
    const char *folder = names->folder;
    enum tokmap_status status = TOKMAP_OK;
    if (remote_is(folder)) {
        status = objects_list(names, folder, error);
    } else {
        const int system = os_folder_list(*folder ? folder : ".", name_listed, names);
        if (system)
            status = error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                      "the folder of the shard cannot be listed to find its values");
    }
    if (names->count)
        qsort(names->names, (size_t)names->count, sizeof *names->names, path_compare);
    return status;
}

void values_names_free(struct values_names *names)
{
    for (uint64_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    free(names->folder);
    free(names->prefix);
    *names = (struct values_names){.client = names->client};
}

enum tokmap_status values_names_begin(struct values_names *names, const char *path, struct tokmap_error *error)
{
    char *stem = values_file_path(path, "", VALUES_FINAL); /* "FOLDER/NAME..values" */
    enum tokmap_status status = TOKMAP_OK;
    if (!stem)
        return error_set_memory(error, "the names of values", 0);
    const size_t folder = path_folder_bytes(stem);
    if (!names->folder || strlen(names->folder) != folder || memcmp(names->folder, stem, folder) != 0) {
        values_names_free(names);
        names->folder = strndup(stem, folder);
        status = names->folder ? names_list(names, error) : error_set_memory(error, "the names of values", 0);
    }
    free(names->prefix);
    names->prefix = strndup(stem + folder, strlen(stem) - folder - strlen(ENDING));
    free(stem);
    if (status || !names->prefix)
        return status ? status : error_set_memory(error, "the names of values", 0);
    uint64_t first = 0, end = names->count;
    while (first < end) {
        const uint64_t middle = first + (end - first) / 2;
        if (strcmp(names->names[middle], names->prefix) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    names->next = first;
    return TOKMAP_OK;
}

const char *values_names_next(struct values_names *names, char what[VALUES_NAME_MOST + 1])
{
    const size_t bytes = strlen(names->prefix);
    while (names->next < names->count && !strncmp(names->names[names->next], names->prefix, bytes)) {
        const char *name = names->names[names->next++] + bytes;
        (void)snprintf(what, VALUES_NAME_MOST + 1, "%s", name);
        const size_t length = strcspn(what, ".");
        what[length] = '\0';
        if (!strcmp(name + length, ENDING) && !values_file_name_check(what, NULL))
            return what;
    }
    return NULL;
}
