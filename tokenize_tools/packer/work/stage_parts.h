/* SPDX-License-Identifier: MIT */
/*
 * stage_parts.h - the parts of a stage file whose making takes long (stage_file.h). Every few seconds a process commits
 * what it has found since the last part, with its state, as the next part; a process that continues takes the state of
 * the last one. In the end the file is made of all parts, and they are removed.
 *
 * The last section of a part is its state. It also has a token of the parts before it, made of their digests
 * (stage_digest()), so that parts are those of one process after the other: a part that another process has made at the
 * same time, or that is left of older work, ends the list of parts.
 *
 * Example: a scan has made the parts 0, 1, and 2, and is killed. The next process continues after part 2, and its first
 * part is number 3.
 *
 * Where parts end depends on time, so nothing that is made of them may depend on that. The maker of parts has opened
 * the file with stage_writer_reopen(), which keeps other processes away.
 */
#ifndef TOKMAP_WORK_STAGE_PARTS_H
#define TOKMAP_WORK_STAGE_PARTS_H

#include "stage_file.h"

#define STAGE_STATE_MOST 1024 /* bytes of a state */

struct stage_parts {
    struct stage_id id; /* that of the next part */
    uint64_t count;
    uint64_t token; /* a number that depends on all parts; 0 without parts */
};

/* Finds the parts of a file, each of which has so many sections with that of the state. *state, of so many bytes, at
 * most STAGE_STATE_MOST, is then that of the last part, or stays as it is without parts. Statuses: OK, ERROR_CORRUPT,
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status stage_parts_find(struct stage_parts *parts, const struct stage_id *file, uint64_t sections,
                                    void *state, uint32_t state_bytes, struct tokmap_error *error);

/* Begins the next part. Statuses: those of stage_writer_open(). */
enum tokmap_status stage_part_open(const struct stage_parts *parts, struct stage_writer **writer,
                                   struct tokmap_error *error);
/* Ends it with the state, when its last section but one is open, and frees the writer in any case. stays: a process may
 * continue after this part; otherwise stage_parts_find() does not find it unless one that stays follows. Statuses:
 * those of stage_writer_commit(). */
enum tokmap_status stage_part_commit(struct stage_parts *parts, struct stage_writer *writer, bool stays,
                                     const void *state, uint32_t state_bytes, bool sync, struct tokmap_error *error);

/* Returns the name of part `part`, for reading. */
struct stage_id stage_part_id(const struct stage_parts *parts, uint64_t part);

/* Appends a section of all parts, not the state, to that of a writer. Statuses: those of stage_section_copy(). */
enum tokmap_status stage_parts_copy(const struct stage_parts *parts, uint64_t section, struct stage_writer *into,
                                    struct tokmap_error *error);

/* Removes the parts, after the file has its name, or what they have is given up. Those that follow, which do not belong
 * to them or are damaged, are removed, too. */
void stage_parts_remove(const struct stage_parts *parts);

/*
 * Merges sections of stage files (stage_file.h), each of which is in the order of the documents that
 * its records are about.
 *
 * All records have the layout of struct stage_record. A document of a unit (work_units.h) is known by the number of its
 * input, among those of the unit that have documents, and by the number of its record in that input, or in the part of
 * it that the unit has.
 */

struct stage_record {
    uint64_t record;
    uint32_t input;
    uint32_t unit; /* of the kept document; of a key: 0 */
    /* Halves of a key; the record of the kept document and its input, of a duplicate; the number of the n-gram and
     * STAGE_EXCLUDED, of an excluded document. */
    uint64_t first, second;
};
_Static_assert(sizeof(struct stage_record) == 32, "the bytes a document that the manual states");
#define STAGE_EXCLUDED UINT64_MAX

struct stage_merge; /* for one thread at a time */

/* count: how many sections at most. buffer_bytes: of each. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status stage_merge_new(struct stage_merge **merge, uint64_t count, uint32_t buffer_bytes,
                                   struct tokmap_error *error);
/* Adds a section; not after stage_merge_next(). Statuses: those of stage_reader_open(). */
enum tokmap_status stage_merge_add(struct stage_merge *merge, const struct stage_id *id, uint64_t section,
                                   struct tokmap_error *error);
/* Sets *record to the next one of all sections, or to NULL at the end. Statuses: those of stage_reader_next(),
 * ERROR_CORRUPT also for a section that is not in order. */
enum tokmap_status stage_merge_next(struct stage_merge *merge, const struct stage_record **record,
                                    struct tokmap_error *error);
void stage_merge_free(struct stage_merge *merge); /* accepts NULL */

/* Returns true if document a comes before b. */
static inline bool stage_is_before(const struct stage_record *a, const struct stage_record *b)
{
    return a->input != b->input ? a->input < b->input : a->record < b->record;
}

#endif
