/* SPDX-License-Identifier: MIT */
/*
 * output_group.h - a few files whose names begin alike, which appear complete or not at all.
 *
 * A format of another project can need several files. Its readers find none of them useful without one, the *key*, such
 * as Megatron's .idx, so the group exists when its key exists. Each file is written as NAME.partial, on which the
 * writer holds a lock. The commit syncs the files, renames the others, syncs the folder, and renames the key last. If
 * the key of an older group is replaced, it is removed first: then there is a moment without a group, but never one
 * with files of two groups. A writer that is killed leaves only partial files, or files without their key.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_OUTPUT_GROUP_H
#define TOKMAP_COMMANDS_CONVERT_OUTPUT_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "commands/data/output_file.h"
#include "format/name_files.h"
#include "format/write_behind.h"

enum { OUTPUT_GROUP_MOST = 4 };

struct output_part {
    struct output_file file;
    const char *linked; /* the file that this one is a link to, or a copy where it cannot be; NULL: it is written */
    bool copied;        /* of a linked one: there is a copy */
    size_t used;        /* bytes in the buffer */
    uint8_t *buffer;
    uint64_t bytes; /* of the file so far, those in the buffer included */
    struct write_behind behind;
};

struct output_group {
    struct output_part parts[OUTPUT_GROUP_MOST];
    struct name_files names;
    uint32_t count;     /* the last one is the key */
    const char *absent; /* path of an older file that must not remain beside the group, or NULL */
    bool replace, sync;
    bool equal; /* with `replace`: only files that have the bytes of the new ones, which a killed writer has left */
};

/* Creates the partial files of a group that is zero but for count, absent, replace, equal, and sync. For one thread at
 * a time; so is the group. On failure there is nothing to abort. Messages name --force.
 *   prefix   of all names
 *   endings  group->count of them, 1 to OUTPUT_GROUP_MOST; that of the key is the last one
 * Statuses: OK, ERROR_EXISTS, ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status output_group_open(struct output_group *group, const char *prefix, const char *const *endings,
                                     struct tokmap_error *error);

/* Appends bytes to a file of the group. Statuses: OK, ERROR_IO. */
enum tokmap_status output_group_add(struct output_group *group, uint32_t part, const void *bytes, size_t count,
                                    struct tokmap_error *error);

/* Writes over bytes that were added. Statuses: OK, ERROR_IO. */
enum tokmap_status output_group_rewrite(struct output_group *group, uint32_t part, uint64_t at, const void *bytes,
                                        size_t count, struct tokmap_error *error);

/* States that a file of the group, to which nothing was added, has the bytes of the file `path`, which is complete and
 * will not change. The commit makes it another name of that file, or a copy where the file system has no such names. */
void output_group_link(struct output_group *group, uint32_t part, const char *path);

/* Returns what ERROR_IO and ERROR_MEMORY are for an errno of writing a part: a message with the file. */
enum tokmap_status output_group_failed(const struct output_group *group, uint32_t part, int system,
                                       struct tokmap_error *error);

/* Syncs and renames. To be followed by output_group_free(). Statuses: OK, ERROR_EXISTS, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status output_group_commit(struct output_group *group, struct tokmap_error *error);

/* Removes what is not committed, and frees. A zeroed group is allowed. */
void output_group_free(struct output_group *group);

#endif
