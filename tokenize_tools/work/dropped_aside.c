/* SPDX-License-Identifier: MIT */
/* dropped_aside.c - see dropped_aside.h. */
#include "dropped_aside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "dropped_file.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

#define ID_DIGITS 16

struct aside_names {
    char *list, *partial;
    char *aside; /* NAME.dropped.ID */
};

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "a path", 0);
}

static bool names_make(struct aside_names *names, const char *name, uint64_t output)
{
    char ending[sizeof ".dropped." + ID_DIGITS];
    (void)snprintf(ending, sizeof ending, ".dropped.%016" PRIx64, output);
    *names = (struct aside_names){path_ended(name, ".dropped"), path_ended(name, ".dropped.partial"),
                                  path_ended(name, ending)};
    return names->list && names->partial && names->aside;
}

static void names_free(struct aside_names *names)
{
    free(names->list);
    free(names->partial);
    free(names->aside);
}

/* Returns true if a file with the name of a list that was put aside is one, or a link to one. *empty: its output has no
 * list. */
static bool aside_is_ours(const char *path, bool *empty)
{
    struct os_stat found;
    *empty = !os_lstat(path, &found) && found.kind == OS_KIND_FILE && !found.bytes;
    return *empty || dropped_is_file(path);
}

static bool is_free(const char *path)
{
    struct os_stat found;
    return os_lstat(path, &found) == ENOENT;
}

/* Makes an empty file. */
static int mark(const char *path, bool sync)
{
    int fd;
    int system = os_open(path, OS_WRITE_NEW, &fd);
    if (!system)
        os_close(fd);
    system = system == EEXIST ? 0 : system;
    return !system && sync ? os_sync_folder(path) : system;
}

enum tokmap_status dropped_aside_check(const char *name, bool listed, struct tokmap_error *error)
{
    struct aside_names names;
    struct os_stat found;
    enum tokmap_status status = names_make(&names, name, 0) ? TOKMAP_OK : no_memory(error);
    if (!status && (listed || dropped_is_file(names.list)) && os_lstat(names.aside, &found) == ENAMETOOLONG)
        status =
            error_set_system(error, ENAMETOOLONG, names.list, TOKMAP_NO_OFFSET,
                             "the output cannot be replaced, because the name of its list of dropped documents "
                             "gets %d bytes longer meanwhile; choose a shorter name, or remove the output and this "
                             "list first",
                             ID_DIGITS + 1);
    names_free(&names);
    return status;
}

enum tokmap_status dropped_aside(const char *name, uint64_t output, bool listed, bool sync, struct tokmap_error *error)
{
    struct aside_names names;
    bool empty;
    int system = 0;
    enum tokmap_status status = names_make(&names, name, output) ? TOKMAP_OK : no_memory(error);
    const bool moves = !status && dropped_is_file(names.list), marks = !status && !moves && listed && output;
    if ((moves || marks) && !is_free(names.aside) && !aside_is_ours(names.aside, &empty))
        status =
            error_set(error, TOKMAP_ERROR_EXISTS, names.aside, TOKMAP_NO_OFFSET,
                      "the list of dropped documents that is replaced would be kept under this name for a moment, and "
                      "another file has it; move that file away, or choose another name for the output");
    /* Synced, since the new list must not reach storage under its name before the old list has its other name. */
    if (!status && moves)
        system = name_file(-1, names.list, names.aside, sync, NULL);
    else if (!status && marks)
        system = mark(names.aside, sync);
    if (system)
        status = error_set_system(error, system, names.list, TOKMAP_NO_OFFSET,
                                  "the old list of dropped documents cannot be put aside");
    if (!status && !listed && partial_file_begins(names.partial, DROPPED_MAGIC))
        (void)os_unlink(names.partial);
    names_free(&names);
    return status;
}

/* Gives the list of the output its name back. EEXIST: a file of the user has that name. */
static int aside_restore(const struct aside_names *names)
{
    bool empty;
    if (!aside_is_ours(names->aside, &empty))
        return 0;
    if (empty)
        return os_unlink(names->aside);
    if (!is_free(names->list) && !dropped_is_file(names->list))
        return EEXIST;
    return name_file(-1, names->aside, names->list, false, NULL);
}

void dropped_restore(const char *name, uint64_t output)
{
    struct aside_names names;
    if (names_make(&names, name, output))
        (void)aside_restore(&names);
    names_free(&names);
}

void dropped_forget(const char *name, uint64_t output)
{
    struct aside_names names;
    bool empty;
    if (names_make(&names, name, output) && aside_is_ours(names.aside, &empty))
        (void)os_unlink(names.aside);
    names_free(&names);
}

struct aside_visit {
    const char *folder;
    const char *name; /* name of the output, without the folder */
    const char *keep; /* a path, or NULL */
    bool removes, found;
};

static int aside_visit(void *user, const char *entry)
{
    struct aside_visit *visit = user;
    const size_t bytes = strlen(visit->name), middle = strlen(".dropped.");
    if (strncmp(entry, visit->name, bytes) != 0 || strncmp(entry + bytes, ".dropped.", middle) != 0)
        return 0;
    const char *id = entry + bytes + middle;
    if (strlen(id) != ID_DIGITS || strspn(id, "0123456789abcdef") != ID_DIGITS)
        return 0;
    char *path = path_in(visit->folder, entry);
    bool empty;
    visit->found = true;
    if (path && visit->removes && (!visit->keep || strcmp(path_name(visit->keep), entry) != 0) &&
        aside_is_ours(path, &empty))
        (void)os_unlink(path);
    free(path);
    return 0;
}

/* Calls aside_visit() for the folder of the output. */
static int asides_visit(struct aside_visit *visit, const char *name)
{
    char *folder = path_folder(name);
    visit->folder = folder;
    visit->name = path_name(name);
    const int system = folder ? os_folder_list(folder, aside_visit, visit) : ENOMEM;
    free(folder);
    return system;
}

void dropped_forget_all(const char *name)
{
    struct aside_visit visit = {.removes = true};
    (void)asides_visit(&visit, name);
}

bool dropped_find_aside(const char *name)
{
    struct aside_visit visit = {.removes = false};
    return asides_visit(&visit, name) || visit.found;
}

enum tokmap_status dropped_settle(const char *name, uint64_t output, bool keeps, struct tokmap_error *error)
{
    struct aside_names names;
    bool empty;
    int system = 0;
    enum tokmap_status status = names_make(&names, name, output) ? TOKMAP_OK : no_memory(error);
    if (!status && aside_is_ours(names.aside, &empty)) {
        if (dropped_is_file(names.list)) /* the new list of an output that did not get its name */
            system = keeps ? name_file(-1, names.list, names.partial, false, NULL) : os_unlink(names.list);
        if (!system)
            system = aside_restore(&names);
    }
    if (system)
        status = error_set_system(error, system, names.list, TOKMAP_NO_OFFSET,
                                  "the old list of dropped documents, which an earlier process has put aside as "
                                  "'%.200s', cannot be given its name back",
                                  path_name(names.aside));
    if (!status) {
        struct aside_visit visit = {.removes = true, .keep = names.aside};
        (void)asides_visit(&visit, name);
    }
    names_free(&names);
    return status;
}
