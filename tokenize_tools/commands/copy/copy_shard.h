/* SPDX-License-Identifier: MIT */
/*
 * copy_shard.h - one shard that is copied: its index, which comes first here and gets its name last, and the files that
 * the index describes. A file of values is a shard of one file without an index: it describes itself.
 */
#ifndef TOKMAP_COMMANDS_COPY_COPY_SHARD_H
#define TOKMAP_COMMANDS_COPY_COPY_SHARD_H

#include "copy_file.h"

/* The name of a shard here and there, without the endings of its files; or the whole name of a file of values. */
struct copy_name {
    char *from, *to;
};

/* An upload that an earlier process has left. */
struct copy_upload {
    char *key, *id;
};

struct copy_settings {
    bool replace, full;
    uint64_t part_bytes;               /* 0: the default */
    const struct copy_upload *uploads; /* in byte order of their keys */
    uint64_t upload_count;
};

#define COPY_FILES (SHARD_INDEX + 1)

struct copy_shard {
    const struct copy_name *name;
    struct index index; /* of values: index.values alone */
    char *index_path;   /* of a file of this machine: the source's, NAME.tmx.partial, or a temporary file */
    bool index_opened, temporary;
    bool index_made;                    /* NAME.tmx.partial is there */
    bool index_there;                   /* `to` has this index */
    struct copy_file files[COPY_FILES]; /* with 0 parts: the shard has none; that of the index only of an object */
    uint64_t bytes;                     /* of all files */
    bool ready, done;                   /* for the caller: its parts can be copied; all of them are */
    uint32_t left;                      /* files that are not finished */
};

/* Reads the index, verifies it, compares it with the one that there is, and opens the files; *shard is zero but for its
 * name. copy_shard_free() follows with every status. Statuses: OK, ERROR_EXISTS, ERROR_BUSY, ERROR_UNSUPPORTED (tokens
 * of another project's file), those of index_open() and copy_file_open(). */
enum tokmap_status copy_shard_open(struct copy_shard *shard, const struct copy_settings *settings,
                                   struct copy_hands *hands, struct tokmap_error *error);
/* Closes what is not needed for the names. */
void copy_shard_rest(struct copy_shard *shard);
void copy_shard_free(struct copy_shard *shard);

/* Returns whether readers would see a change. */
bool copy_shard_changes(const struct copy_shard *shard);

/* Gives all files but the index their names, if they are objects, and reads them again with settings->full. */
enum tokmap_status copy_shard_name_files(struct copy_shard *shard, const struct copy_settings *settings,
                                         struct copy_hands *hands, struct tokmap_error *error);
/* Gives the index its name; on a file system, all files of the shard. */
enum tokmap_status copy_shard_name(struct copy_shard *shard, struct copy_hands *hands, struct tokmap_error *error);

/* Removes what has been copied and got no name. */
void copy_shard_abort(struct copy_shard *shard, struct copy_hands *hands);
/* Removes the uploads of its files that are listed in the settings. */
void copy_shard_abort_uploads(const struct copy_shard *shard, const struct copy_settings *settings,
                              struct copy_hands *hands);

#endif
