/* SPDX-License-Identifier: MIT */
/*
 * output_set.h - a few files whose names begin alike, which appear complete or not at all.
 *
 * A format of another project can need several files. Its readers find none of them useful without one, the *key*, such
 * as Megatron's .idx, so the set exists when its key exists. Each file is written as NAME.partial, on which the writer
 * holds a lock. The commit syncs the files, renames the others, syncs the folder, and renames the key last. If the key
 * of an older set is replaced, it is removed first: then there is a moment without a set, but never one with files of
 * two sets. A writer that is killed leaves only partial files, or files without their key.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_OUTPUT_SET_H
#define TOKMAP_COMMANDS_CONVERT_OUTPUT_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "format/write_behind.h"
#include "tokmap/tokmap.h"

enum { OUTPUT_SET_MOST = 4 };

struct output_part {
    char *path, *partial;
    const char *linked; /* the file that this one is a link to, or a copy where it cannot be; NULL: it is written */
    int fd;
    bool made;   /* the partial file is ours to remove */
    bool copied; /* of a linked one: there is a copy */
    size_t used; /* bytes in the buffer */
    uint8_t *buffer;
    uint64_t bytes; /* of the file so far, those in the buffer included */
    struct write_behind behind;
};

struct output_set {
    struct output_part parts[OUTPUT_SET_MOST];
    uint32_t count;     /* the last one is the key */
    const char *absent; /* path of a file that would belong to the set, but that this set does not have, or NULL */
    bool replace, equal, sync;
};

/* Files to open. For one thread at a time; so is the set. */
struct output_set_options {
    const char *prefix;         /* of all names */
    const char *const *endings; /* `count` of them, 1 to OUTPUT_SET_MOST; that of the key is the last one */
    uint32_t count;
    const char *absent; /* an older file of this path must not remain beside the set; NULL: there is none */
    bool replace;
    bool equal; /* with `replace`: only files that have the bytes of the new ones, which a killed writer has left */
    bool sync;
};

/* Creates the partial files. On failure there is nothing to abort. Messages name options.replace. Statuses: OK,
 * ERROR_EXISTS, ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status output_set_open(struct output_set *set, const struct output_set_options *options,
                                   struct tokmap_error *error);

/* Appends bytes to a file of the set. Statuses: OK, ERROR_IO. */
enum tokmap_status output_set_add(struct output_set *set, uint32_t part, const void *bytes, size_t count,
                                  struct tokmap_error *error);

/* Writes over bytes that were added. Statuses: OK, ERROR_IO. */
enum tokmap_status output_set_rewrite(struct output_set *set, uint32_t part, uint64_t at, const void *bytes,
                                      size_t count, struct tokmap_error *error);

/* States that a file of the set, to which nothing was added, has the bytes of the file `path`, which is complete and
 * will not change. The commit makes it another name of that file, or a copy where the file system has no such names. */
void output_set_link(struct output_set *set, uint32_t part, const char *path);

/* Returns what ERROR_IO and ERROR_MEMORY are for an errno of writing a part: a message with the file. */
enum tokmap_status output_set_failed(const struct output_set *set, uint32_t part, int system,
                                     struct tokmap_error *error);

/* Syncs and renames. To be followed by output_set_free(). Statuses: OK, ERROR_EXISTS, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status output_set_commit(struct output_set *set, struct tokmap_error *error);

/* Removes what is not committed, and frees. A zeroed set is allowed. */
void output_set_free(struct output_set *set);

#endif
