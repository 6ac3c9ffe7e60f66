/* SPDX-License-Identifier: MIT */
#include "output_group.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

#define BUFFER_BYTES ((size_t)1 << 18)

/* ---- open ---- */

static enum tokmap_status places_check(const struct output_group *group, struct tokmap_error *error)
{
    enum tokmap_status status = group->absent ? output_file_check(group->absent, group->replace, error) : TOKMAP_OK;
    for (uint32_t i = 0; i < group->count && !status; i++)
        status = output_file_check(group->parts[i].file.path, group->replace, error);
    return status;
}

enum tokmap_status output_group_open(struct output_group *group, const char *prefix, const char *const *endings,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    assert(group->count && group->count <= OUTPUT_GROUP_MOST);
    group->names.name = prefix;
    for (uint32_t i = 0; i < group->count; i++) {
        struct output_part *part = &group->parts[i];
        part->file = (struct output_file){.fd = -1, .path = path_ended(prefix, endings[i])};
        part->buffer = malloc(BUFFER_BYTES);
        if (!part->file.path || !part->buffer)
            status = error_set_memory(error, "a buffer of the output", BUFFER_BYTES);
    }
    if (!status)
        status = places_check(group, error);
    for (uint32_t i = group->count; i-- && !status;) { /* the key first: its lock decides between two writers */
        char *path = group->parts[i].file.path;
        status = output_file_open(&group->parts[i].file, path, group->replace, error);
        free(path);
    }
    if (status)
        output_group_free(group);
    return status;
}

/* ---- write ---- */

enum tokmap_status output_group_failed(const struct output_group *group, uint32_t part, int system,
                                       struct tokmap_error *error)
{
    if (system == ENOMEM)
        return error_set_memory(error, "the output", 0);
    return error_set_system(error, system, group->parts[part].file.partial, TOKMAP_NO_OFFSET,
                            "the output cannot be written");
}

static int flush(struct output_part *part)
{
    const int system = part->used ? os_write(part->file.fd, part->buffer, part->used) : 0;
    part->used = 0;
    return system;
}

enum tokmap_status output_group_add(struct output_group *group, uint32_t number, const void *bytes, size_t count,
                                    struct tokmap_error *error)
{
    struct output_part *part = &group->parts[number];
    int system = 0;
    assert(number < group->count && !part->linked);
    if (count > BUFFER_BYTES - part->used)
        system = flush(part);
    part->bytes += count;
    if (!system && count > BUFFER_BYTES) {
        system = os_write(part->file.fd, bytes, count);
    } else if (!system && count) {
        memcpy(part->buffer + part->used, bytes, count);
        part->used += count;
    }
    if (!system && group->sync)
        write_behind(&part->behind, part->file.fd, part->bytes - part->used);
    return system ? output_group_failed(group, number, system, error) : TOKMAP_OK;
}

enum tokmap_status output_group_rewrite(struct output_group *group, uint32_t number, uint64_t at, const void *bytes,
                                        size_t count, struct tokmap_error *error)
{
    struct output_part *part = &group->parts[number];
    assert(number < group->count && at <= part->bytes && count <= part->bytes - at);
    int system = flush(part);
    if (!system)
        system = os_pwrite(part->file.fd, bytes, count, at);
    return system ? output_group_failed(group, number, system, error) : TOKMAP_OK;
}

void output_group_link(struct output_group *group, uint32_t number, const char *path)
{
    assert(number < group->count && !group->parts[number].bytes);
    group->parts[number].linked = path;
}

/* ---- commit ---- */

/* Copies the linked file into the partial one, on a file system where a file has one name. */
static int copy_linked(struct output_part *part)
{
    struct os_stat found;
    int from;
    int system = os_open(part->linked, OS_READ_NOW, &from);
    if (system)
        return system;
    system = os_fstat(from, &found);
    if (!system)
        system = os_copy_range(from, 0, part->file.fd, 0, found.bytes);
    os_close(from);
    part->copied = true;
    part->bytes = system ? 0 : found.bytes;
    return system;
}

/* Replaces the partial file by a link of that name. For a moment there is no file that a second writer would find
 * locked; if there is one that comes in this moment, the link fails. */
static int link_one(struct output_part *part)
{
    struct os_stat found;
    int system = os_stat(part->linked, &found);
    if (!system)
        system = os_unlink(part->file.partial);
    part->file.made = false;
    if (!system)
        system = os_link(part->linked, part->file.partial);
    part->file.made = !system;
    part->bytes = system ? 0 : found.bytes;
    if (system != EPERM && system != ENOTSUP && system != EXDEV && system != EMLINK && system != ENOSYS)
        return system;
    os_close(part->file.fd);
    part->file.fd = -1;
    system = partial_file_open(part->file.partial, NULL, NULL, &part->file.fd);
    part->file.made = !system;
    return system ? system : copy_linked(part);
}

static enum tokmap_status parts_complete(struct output_group *group, struct tokmap_error *error)
{
    for (uint32_t i = 0; i < group->count; i++) {
        struct output_part *part = &group->parts[i];
        int system = part->linked ? link_one(part) : flush(part);
        if (!system && group->sync && (!part->linked || part->copied))
            system = write_behind_sync(&part->behind, part->file.fd, part->bytes);
        if (system)
            return output_group_failed(group, i, system, error);
    }
    return TOKMAP_OK;
}

/* Compares the bytes of two open files. */
static int bytes_compare(int a, int b, bool *equal)
{
    struct os_stat of_a, of_b;
    size_t got_a = 0, got_b = 0;
    int system = os_fstat(a, &of_a);
    if (!system)
        system = os_fstat(b, &of_b);
    *equal = !system && of_a.bytes == of_b.bytes;
    if (!*equal || (of_a.device == of_b.device && of_a.inode == of_b.inode))
        return system;
    const size_t most = BUFFER_BYTES / 2;
    uint8_t *bytes = malloc(2 * most);
    if (!bytes)
        return ENOMEM;
    for (uint64_t at = 0; at < of_a.bytes && *equal && !system; at += most) {
        system = os_pread(a, bytes, most, at, &got_a);
        if (!system)
            system = os_pread(b, bytes + most, most, at, &got_b);
        *equal = !system && got_a && got_a == got_b && !memcmp(bytes, bytes + most, got_a);
    }
    free(bytes);
    return system;
}

/* Refuses a file that is not equal to the new one of its name, or that the new group does not have. */
static enum tokmap_status equal_check(const struct output_group *group, uint32_t number, struct tokmap_error *error)
{
    const char *path = number < group->count ? group->parts[number].file.path : group->absent;
    struct os_stat found;
    int old = -1, new = -1;
    bool equal = false;
    if (!path || os_lstat(path, &found) == ENOENT)
        return TOKMAP_OK;
    int system = 0;
    if (number < group->count && found.kind == OS_KIND_FILE) {
        system = os_open(path, OS_READ_NOW, &old);
        if (!system)
            system = os_open(group->parts[number].file.partial, OS_READ_NOW, &new);
        if (!system)
            system = bytes_compare(old, new, &equal);
        os_close(old);
        os_close(new);
    }
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                "this file cannot be compared with the one that would replace it");
    return equal ? TOKMAP_OK
                 : error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                             "this file has the name of one of the output, and other bytes, so it may be yours, and is "
                             "not replaced; move it away, and run the same command again");
}

/* Refuses to replace what an earlier process cannot have made. */
static enum tokmap_status equals_check(const struct output_group *group, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; group->equal && i <= group->count && !status; i++)
        status = equal_check(group, i, error);
    return status;
}

enum tokmap_status output_group_commit(struct output_group *group, struct tokmap_error *error)
{
    enum tokmap_status status = parts_complete(group, error);
    if (!status) /* another process may have made a file meanwhile */
        status = places_check(group, error);
    if (!status)
        status = equals_check(group, error);
    if (status)
        return status;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct output_file *file = &group->parts[i].file;
        name_files_add(&group->names, i && i + 1 == group->count, strdup(file->partial), strdup(file->path));
    }
    if (group->absent)
        name_files_remove(&group->names, 1, strdup(group->absent));
    status = name_files_now(&group->names, group->sync, error);
    for (uint32_t i = 0; i < group->count; i++)
        group->parts[i].file.made = status != TOKMAP_OK;
    return status;
}

void output_group_free(struct output_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        struct output_part *part = &group->parts[i];
        write_behind_end(&part->behind);
        output_file_abort(&part->file);
        free(part->buffer);
    }
    name_files_free(&group->names);
    memset(group, 0, sizeof *group);
}
