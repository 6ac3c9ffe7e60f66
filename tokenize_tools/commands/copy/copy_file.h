/* SPDX-License-Identifier: MIT */
/*
 * copy_file.h - one file of a shard on its way from a file system or object storage to either of them, in parts that
 * threads copy in any order.
 *
 * Each part is compared with the index before it is written. At the end there is a finished file that has no name yet:
 * NAME.partial, or an upload. What a killed process has left is used again: a part of a partial file that matches the
 * index, and a part of an upload that has the MD5 of the source, are not written again. A file that has the name
 * already is compared in the same way, and stays if it is the same.
 */
#ifndef TOKMAP_COMMANDS_COPY_COPY_FILE_H
#define TOKMAP_COMMANDS_COPY_COPY_FILE_H

#include "format/shard_ranges.h"
#include "remote/remote_upload.h"

#define COPY_ALIGN BLOCK_BYTES /* parts begin at multiples of it */
#define COPY_PART_BYTES ((uint64_t)16 << 20)
#define COPY_PART_LEAST ((uint64_t)5 << 20) /* which object storage demands of all parts but the last */
#define COPY_PART_MOST ((uint64_t)1 << 30)

/* What one thread needs. */
struct copy_hands {
    struct remote_client client;
    uint8_t *bytes;
    size_t capacity;
    struct sealed_reader *reader; /* NULL until sealed tokens are compared */
    uint64_t sent, kept;          /* bytes that were written, and that were there */
};
void copy_hands_free(struct copy_hands *hands);

/* Returns the name of a file of a shard, which the caller frees. A stem that is the name of a file of values has no
 * other files: it stands for its SHARD_TOKENS. */
char *copy_file_path(const char *stem, enum shard_file file, enum shard_state state);

struct copy_file {
    enum shard_file file;
    const struct index *index; /* of the shard, open as long as parts are copied */
    char *from, *to, *partial; /* partial: NULL if `to` is an object */
    uint64_t bytes, part_bytes;
    uint32_t parts, next, left; /* parts; the next to be copied; those that are not copied */
    bool replace;               /* a file that has the name and is not the same is replaced */
    bool there;                 /* the file has its name: nothing is to be done */
    /* Private. */
    int from_fd, to_fd;
    struct remote_facts version; /* of `from` */
    struct remote_facts old;     /* of `to`; 0 bytes without an ETag: no such file */
    bool comparing, by_tag;      /* true while what has the name is compared; if so by its ETag alone */
    uint32_t differs;            /* it is not the same; accessed atomically */
    bool resumed, made;          /* the partial file was there; it is there */
    struct bytes_buffer upload;  /* its id; empty: none */
    char **tags;                 /* of the parts of the upload, or NULL */
    uint64_t *sizes;             /* of those that the server has had before */
    uint8_t (*hashes)[MD5_BYTES];
};

/* Opens a file from stem + ending to stem + ending, with file->index, file->file, file->replace, and file->part_bytes
 * (0: the default) set, and all else zero. upload: the id of an unfinished upload, or NULL. The caller frees it with
 * every status. Statuses: OK, ERROR_EXISTS (without `replace`: there is another file), ERROR_TRUNCATED (the source has
 * another size than the index says), and those of files and object storage. */
enum tokmap_status copy_file_open(struct copy_file *file, const char *from, const char *to, const char *upload,
                                  struct copy_hands *hands, struct tokmap_error *error);
void copy_file_free(struct copy_file *file);

/* Copies a part, any thread. Statuses: OK, ERROR_CORRUPT (the source does not match the index), ERROR_IO, ... */
enum tokmap_status copy_file_part(struct copy_file *file, uint32_t number, struct copy_hands *hands,
                                  struct tokmap_error *error);
/* After the last part: sets *again if all parts must be copied once more, because what has the name is not the same,
 * for which the caller sets `next` and `left`; otherwise the file is finished, brought to storage, and closed. full: a
 * finished partial file is read once more, and compared. Statuses: also ERROR_EXISTS. */
enum tokmap_status copy_file_end(struct copy_file *file, bool full, bool *again, struct copy_hands *hands,
                                 struct tokmap_error *error);

/* Gives an object its name. The index is not used. Statuses: also ERROR_EXISTS (another process has written it). */
enum tokmap_status copy_file_name(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error);
/* Reads all of `to`, with an open index, and compares it. */
enum tokmap_status copy_file_read_again(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error);
/* Removes the parts of a file that got no name. */
void copy_file_abort(struct copy_file *file, struct copy_hands *hands);

#endif
