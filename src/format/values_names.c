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

void values_names_free(struct values_names *names)
{
    for (uint64_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    free(names->folder);
    free(names->prefix);
    *names = (struct values_names){0};
}

enum tokmap_status values_names_begin(struct values_names *names, const char *index_path, struct tokmap_error *error)
{
    char *folder = path_folder(index_path), *stem = values_file_path(index_path, "", VALUES_FINAL);
    int system = folder && stem ? 0 : ENOMEM;
    if (!system && (!names->folder || strcmp(names->folder, folder) != 0)) {
        values_names_free(names);
        system = os_folder_list(folder, name_listed, names);
        qsort(names->names, (size_t)names->count, sizeof *names->names, path_compare);
        names->folder = folder;
        folder = NULL;
    }
    free(folder);
    free(names->prefix);
    names->prefix = system ? NULL : strdup(path_name(stem));
    free(stem);
    if (!names->prefix)
        return error_set_system(error, system ? system : ENOMEM, index_path, TOKMAP_NO_OFFSET,
                                "the folder of the shard cannot be listed to find its values");
    names->prefix[strlen(names->prefix) - strlen(ENDING)] = '\0'; /* "NAME..values" */
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
