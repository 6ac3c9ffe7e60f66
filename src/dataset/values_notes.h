/* SPDX-License-Identifier: MIT */
/*
 * values_notes.h - what writers of values have written: one file for each writer in FOLDER/WHAT.values.notes, WHAT
 * being its first array. A note is stored only after the values that it is about, so a killed writer's notes are true.
 *
 *     head     magic
 *     chunk    u64 records, u64 XXH3-64 of this count and the records, 24 bytes for each record
 *     ...
 *
 * The file is locked while its writer is open. Its last chunk may be torn, which readers ignore.
 */
#ifndef TOKMAP_DATASET_VALUES_NOTES_H
#define TOKMAP_DATASET_VALUES_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

#define VALUES_NOTES_ENDING ".values.notes"
#define VALUES_CHUNK_MOST 4096 /* records */

/* Tokens [first, first + tokens) of the shard whose files have the number `work` have been written. Without tokens: its
 * files have been opened. */
struct values_record {
    uint64_t work, first, tokens;
};

/* A file of notes that is open for writing, and the records that wait until their values are on storage. */
struct values_note {
    char *folder, *path; /* owned */
    int fd;
    uint64_t end; /* of the file */
    bool noted;   /* it has a record with tokens */
    struct values_record *records;
    uint64_t count, room;
    struct values_chunk *chunk; /* that is appended next */
};

/* Lock a folder of notes, which is created, against other processes that open files of values there or finish them, and
 * unlock it; a folder without notes is then removed. Statuses: OK, ERROR_BUSY (for more than 10 s), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status values_notes_lock(const char *folder, int *lock, struct tokmap_error *error);
void values_notes_unlock(const char *folder, int lock);

/* Creates a note in a locked folder. After a failure there is nothing to close. Statuses: OK, ERROR_IO, ERROR_MEMORY.
 */
enum tokmap_status values_note_open(struct values_note *note, const char *folder, struct tokmap_error *error);
/* Adds a record that waits, or makes the last one longer. Returns false without memory. */
bool values_note_wait(struct values_note *note, const struct values_record *record);
/* Appends the records that wait to the file, adjacent ones as one, and brings them to storage. Records that overlap
 * stay two, because what was put twice is counted. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status values_note_store(struct values_note *note, struct tokmap_error *error);
/* Appends a record at once, for other processes to see. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status values_note_opened(struct values_note *note, uint64_t work, struct tokmap_error *error);
/* Closes it, and removes one that has noted nothing. */
void values_note_close(struct values_note *note);

/* Calls found() for each record of a note; a status of found() ends the scan and is returned.
 *   locked  receives whether its writer is open
 * Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_MEMORY, those of found(). */
enum tokmap_status values_note_scan(const char *path, bool *locked,
                                    enum tokmap_status (*found)(void *user, const struct values_record *record,
                                                                struct tokmap_error *error),
                                    void *user, struct tokmap_error *error);

#endif
