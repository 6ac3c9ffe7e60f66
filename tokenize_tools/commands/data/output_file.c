/* SPDX-License-Identifier: MIT */
/* output_file.c - see output_file.h. */
#include "output_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/whole_file.h"
#include "common/error.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

enum tokmap_status output_file_check(const char *path, bool replace, struct tokmap_error *error)
{
    struct os_stat stat;
    if (os_lstat(path, &stat))
        return TOKMAP_OK;
    if (stat.kind != OS_KIND_FILE && stat.kind != OS_KIND_LINK)
        return error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                         "this is %s, which cannot be replaced by a file; choose another name",
                         stat.kind == OS_KIND_FOLDER ? "a folder" : "not a regular file");
    if (!replace)
        return error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                         "the output already exists; choose another name, or use --force");
    return TOKMAP_OK;
}

enum tokmap_status output_file_open(struct output_file *file, const char *path, bool replace,
                                    struct tokmap_error *error)
{
    *file = (struct output_file){
        .fd = -1, .replace = replace, .path = strdup(path), .partial = path_ended(path, ".partial")};
    enum tokmap_status status = TOKMAP_OK;
    if (!file->path || !file->partial)
        status = error_set_memory(error, "the output's name", strlen(path) + 9);
    else if (!*path_name(path))
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                           "the name of the output is empty or names a folder; give the name of a file");
    if (!status)
        status = output_file_check(path, replace, error);
    if (!status)
        status = cli_output_folder(path, error);
    if (!status) {
        const int system = partial_file_open(file->partial, NULL, NULL, &file->fd);
        file->made = !system;
        status = system ? partial_file_failed(system, file->partial, error) : TOKMAP_OK;
    }
    if (status)
        output_file_abort(file);
    return status;
}

enum tokmap_status output_file_commit(struct output_file *file, struct tokmap_error *error)
{
    bool named = false;
    enum tokmap_status status = output_file_check(file->path, file->replace, error); /* made by another process */
    const int system = status ? 0 : name_file(file->fd, file->partial, file->path, true, &named);
    if (system)
        status = error_set_system(error, system, file->path, TOKMAP_NO_OFFSET,
                                  named ? "the output's folder cannot be synced" : "the output cannot be completed");
    file->made = !named;
    output_file_abort(file);
    return status;
}

void output_file_abort(struct output_file *file)
{
    if (file->made)
        (void)os_unlink(file->partial);
    os_close(file->fd);
    free(file->path);
    free(file->partial);
    *file = (struct output_file){.fd = -1};
}

/* ---- the name of an output ---- */

bool output_is_file(const char *path, const struct os_stat *file)
{
    struct os_stat found;
    return !os_stat(path, &found) && found.device == file->device && found.inode == file->inode;
}

int output_prefix_make(const struct cli_command *command, const char *typed, const char *const *endings, char **prefix)
{
    assert(typed && endings[0]);
    const char *name = path_name(typed);
    size_t bytes = strlen(typed);
    for (size_t i = 0; endings[i]; i++) {
        const size_t ending = strlen(endings[i]);
        if (strlen(name) > ending && !strcmp(typed + bytes - ending, endings[i]) && typed[bytes - ending - 1] == '.') {
            bytes -= ending + 1;
            break;
        }
    }
    if (!*name || bytes == (size_t)(name - typed) || !strcmp(name, ".") || !strcmp(name, ".."))
        return cli_misused(command,
                           "-o '%s': the name of the output is empty or names a folder; give a prefix, such as "
                           "'%.*sNAME'",
                           typed, (int)(name - typed), typed);
    *prefix = strndup(typed, bytes);
    if (*prefix)
        return 0;
    struct tokmap_error error;
    (void)error_set_memory(&error, "a path", bytes);
    return cli_failed(command->program, &error);
}

enum tokmap_status output_place_check(const char *prefix, bool set, struct tokmap_error *error)
{
    struct os_stat stat;
    enum tokmap_status status = cli_output_folder(prefix, error);
    if (status)
        return status;
    if (!os_stat(prefix, &stat) && stat.kind == OS_KIND_FOLDER)
        status = error_set(error, TOKMAP_ERROR_EXISTS, prefix, TOKMAP_NO_OFFSET,
                           "this is a folder, and an output of the same name beside it would be mistaken for it; write "
                           "into it with '-o %s/NAME', or choose another name than '%s'",
                           prefix, prefix);
    else if (!set && !os_stat(prefix, &stat) && stat.kind == OS_KIND_FILE && cli_is_manifest(prefix))
        status = error_set(error, TOKMAP_ERROR_EXISTS, prefix, TOKMAP_NO_OFFSET,
                           "this is a manifest, and an output of the same name beside it would be taken for it; choose "
                           "another name, or replace a shard set by another one with --shard-tokens");
    return status;
}
