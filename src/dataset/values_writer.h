/* SPDX-License-Identifier: MIT */
/*
 * values_writer.h - struct tokmap_values_writer, and the files of values that are being written.
 *
 * Values are written to NAME.WHAT.values.partial, whose header has their type, the content id of the shard, and a
 * number, `work`, which the files of all arrays of a shard share: 32 random bits above 32 bits of the hash of the
 * arrays. Notes (values_notes.h) name that number, so notes about files that were removed since then are not mistaken
 * for notes about their successors; and a writer of other arrays, or of the same in another order, refuses the files.
 */
#ifndef TOKMAP_DATASET_VALUES_WRITER_H
#define TOKMAP_DATASET_VALUES_WRITER_H

#include "format/values_file.h"
#include "platform/os.h"
#include "values_notes.h"

/* The files of one shard's values. */
struct values_partials {
    uint64_t work;
    struct values_file files[VALUES_ARRAYS_MOST]; /* fd is -1 where the array is finished, and is not being replaced */
};

/* A shard that a writer has open. */
struct values_shard {
    uint64_t number; /* in the dataset */
    uint64_t used;   /* when it was put to last, counted in puts; 0: nothing is open here */
    bool dirty;      /* it was written since it was synced last */
    struct values_note *note;
    struct values_partials partials;
};

struct tokmap_values_writer {
    const struct tokmap_dataset *dataset;
    struct values_array arrays[VALUES_ARRAYS_MOST];
    uint32_t array_count;
    uint64_t arrays_hash; /* of their text */
    bool replace;
    struct os_mutex *mutex; /* protects all members below */
    struct os_condition *wake;
    struct os_thread *thread;
    bool closing;
    struct tokmap_error failure; /* of a sync or a note, after which nothing is noted; its status is OK before that */
    struct values_shard *shards; /* shard_room of them */
    uint64_t shard_room, puts;
    struct values_note **notes; /* one for each folder */
    uint64_t note_count, note_room;
};

/* Returns the folder of the notes about a shard, which the caller frees; NULL without memory. */
char *values_notes_folder(const struct tokmap_values_writer *writer, const char *index_path);

/* Opens the files of a shard for writing. If one is missing, all are made, unless an array is finished: `work` is 0
 * then if no file is to be finished. The folder of its notes is locked. After a failure nothing is open. Statuses: OK,
 * those of tokmap_values_open(). */
enum tokmap_status values_partials_open(const struct tokmap_values_writer *writer, const char *index_path,
                                        const struct index *index, struct values_partials *partials,
                                        struct tokmap_error *error);
void values_partials_close(struct values_partials *partials);

/* Refuses a writer or an array that is NULL: ERROR_ARGUMENT. */
enum tokmap_status values_arguments_check(const struct tokmap_values_writer *writer, const void *const *values,
                                          struct tokmap_error *error);
/* Do what the functions of values.h do, for arguments that are not NULL. */
enum tokmap_status values_put_at(struct tokmap_values_writer *writer, uint64_t token, uint64_t count,
                                 const void *const *values, struct tokmap_error *error);
enum tokmap_status values_sync(struct tokmap_values_writer *writer, struct tokmap_error *error);

/* Removes the unfinished files of a writer whose notes no other writer has; tokmap_values_close() follows. */
void values_discard(struct tokmap_values_writer *writer);

/* Closes all files and notes of a writer. */
void values_writer_release(struct tokmap_values_writer *writer);

#endif
