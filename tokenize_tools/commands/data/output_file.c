/* SPDX-License-Identifier: MIT */
#include "output_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/whole_file.h"
#include "common/error.h"
#include "format/manifest.h"
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

/* ---- manifests ---- */

static const char lacking[] = "the manifest"; /* in messages about memory */

/* Adds the line of a shard, with what its index says if `state` says so. */
static enum tokmap_status line_add(struct manifest_text *made, const struct manifest *manifest,
                                   const struct manifest_shard *shard, bool state, struct tokmap_error *error)
{
    struct index index;
    char *path = manifest_index_path(manifest, shard);
    enum tokmap_status status = path ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    if (!status && state)
        status = index_open_as(&index, path, TOKMAP_READ_PREAD, error);
    if (!status) {
        if (!manifest_text_add(made, manifest_name(manifest, shard), state ? &index : NULL))
            status = error_set_memory(error, lacking, 0);
        if (state)
            index_close(&index);
    }
    free(path);
    return status;
}

/* Makes the new text from the old one. Comments stay where they are. */
static enum tokmap_status text_make(struct manifest_text *made, const struct manifest *manifest,
                                    const struct bytes_buffer *text, bool state, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    const char *at = (const char *)text->bytes, *end = at + text->count;
    uint64_t number = 0, line = 0;
    if (!manifest_text_begin(made))
        return error_set_memory(error, lacking, 0);
    while (at < end && !status) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t bytes = (size_t)((stop ? stop : end) - at);
        if (++line > 1 && number < manifest->count && manifest->shards[number].line == line)
            status = line_add(made, manifest, &manifest->shards[number++], state, error);
        else if (line > 1 && !manifest_line_states(at, bytes) &&
                 (!bytes_append(&made->text, at, bytes) || !bytes_append(&made->text, "\n", 1)))
            status = error_set_memory(error, lacking, 0);
        at += bytes + 1;
    }
    return status;
}

static enum tokmap_status file_write(const char *path, const struct bytes_buffer *text, struct tokmap_error *error)
{
    struct output_file file = {.fd = -1};
    enum tokmap_status status = output_file_open(&file, path, true, error);
    if (status)
        return status;
    const int system = os_pwrite(file.fd, text->bytes, text->count, 0);
    if (!system)
        return output_file_commit(&file, error);
    status = error_set_system(error, system, file.partial, TOKMAP_NO_OFFSET, "the manifest cannot be written");
    output_file_abort(&file);
    return status;
}

static enum tokmap_status rewrite(const char *path, bool state, bool *stated, struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    struct manifest manifest = {.count = 0};
    struct manifest_text made = {.about = 0};
    enum tokmap_status status = manifest_read(path, &text, error);
    if (!status)
        status = manifest_parse(&manifest, path, (const char *)text.bytes, text.count, error);
    *stated = !status && manifest.group_count;
    if (!status && (state || *stated)) {
        status = text_make(&made, &manifest, &text, state, error);
        if (!status)
            status = file_write(path, &made.text, error);
    }
    manifest_text_free(&made);
    manifest_free(&manifest);
    bytes_free(&text);
    return status;
}

enum tokmap_status manifest_file_state(const char *path, struct tokmap_error *error)
{
    bool stated;
    return rewrite(path, true, &stated, error);
}

enum tokmap_status manifest_file_clear(const char *path, bool *stated, struct tokmap_error *error)
{
    *stated = false;
    return cli_is_manifest(path) ? rewrite(path, false, stated, error) : TOKMAP_OK;
}
