/* SPDX-License-Identifier: MIT */
/*
 * work_units.h - cuts inputs into units of work, which do not depend on who does them.
 *
 * Inputs are taken in order. A unit has consecutive whole files of at most unit_bytes together, or one file that is
 * larger. A larger one that can be cut (corpus_range.h) becomes several units, and no other file is in them: at lines,
 * each of unit_bytes, the last one of the rest; at the row groups of Parquet, those of parquet.h. Sizes are those
 * of the stored files.
 *
 * Example, with unit_bytes 100: files of 40, 50, 30, 250 (which can be cut), 10, and 300 bytes (which cannot) are the
 * units {40, 50}, {30}, {100 of 250}, {100 of 250}, {50 of 250}, {10}, {300}.
 */
#ifndef TOKMAP_WORK_WORK_UNITS_H
#define TOKMAP_WORK_WORK_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "corpus/corpus.h"

#define UNITS_MOST ((uint64_t)1000000) /* so that their names in order are their numbers in order */

struct unit {
    uint64_t first, count; /* files [first, first + count) */
    uint64_t begin, end;   /* of one file that is cut: its bytes near [begin, end). Otherwise both are 0 */
    uint64_t bytes;
    uint64_t groups; /* not 0: [begin, end) are row groups, and this is their struct corpus_range */
};

struct work_units {
    char **paths;   /* of the files, as inputs.h names them */
    uint64_t *cuts; /* of each file: if it is cut at row groups, the hash of these; or 0 */
    uint64_t file_count, file_capacity;
    struct unit *list;
    uint64_t count, capacity;
    uint64_t bytes; /* of all files */
    struct inputs_counts not_read;
    /* Reason why the inputs cannot be divided among processes: an input is not a regular file, or has no size before it
     * is read. Static text; NULL if they can. */
    const char *indivisible; /* then some inputs may be missing from the list */
    char *indivisible_path;
};

struct work_units_options {
    const char *const *operands; /* of inputs.h */
    size_t operand_count;
    const struct corpus_options *corpus; /* with `select`, and what decides the format */
    uint64_t unit_bytes;                 /* at least 1 */
    bool whole_lines; /* files of lines are not cut, since a part does not know the numbers of its lines */
    /* Called for each input. *skips is set if it belongs to the output, and another process has made it, whose work
     * this one continues. NULL: all are inputs. Statuses: any. */
    enum tokmap_status (*examine)(const void *output, const char *path, bool *skips, struct tokmap_error *error);
    const void *output;
    bool (*stop)(void *user); /* may be NULL */
    void *user;
};

/* Lists the inputs and cuts them. work_units_free() frees the result, also after a failure. Statuses: OK, those of
 * inputs_next(), ERROR_LIMIT (too many units), those of options->examine(), ERROR_INTERRUPTED. */
enum tokmap_status work_units_list(struct work_units *units, const struct work_units_options *options,
                                   struct tokmap_error *error);
void work_units_free(struct work_units *units); /* accepts zeros */

/* Keeps the footers of files that are cut in the folder NAME.work, if it has a journal, in stage files that have what
 * ahead_file_keep() makes. One task reads a footer, and the others find it. What cannot be kept is read again. */
void work_units_keep_footer(const char *name, const char *path, struct bytes_buffer *footer);

/* Finds the lines or row groups of the file that unit `number` has a part of; zeros: it has whole files. Statuses:
 * those of corpus_range_border(). */
enum tokmap_status work_units_range(const struct work_units *units, uint64_t number, bool (*stop)(void *user),
                                    void *user, struct corpus_range *range, struct tokmap_error *error);

/*
 * What the files of a unit of work, and those of a shard that is merged from all units,
 * are called in the folder NAME.work:
 *
 *     unit-000012.work/     what is made of the unit: its journal, and its finished shards, which end in .ready
 *     unit-000012.partial   the lock of the process that works on it
 *     unit-000012.skipped   what is left out of it, if a list of that is wanted
 *     shard-000007.work/    the shard, until all shards get their names; and its journal
 *     shard-000007.partial  the lock of the process that merges it
 *
 * That a unit or a shard is finished says a stage file (stage_file.h).
 */

/* Returns the path of a unit's prefix, "FOLDER/unit-000012", with an ending. The caller frees it. NULL without
 * memory. */
char *unit_path(const char *folder, uint64_t unit, const char *ending);
/* Returns the prefix of one of its finished shards: set_ending is that of the shard set ("", ".train"). */
char *unit_shard_path(const char *folder, uint64_t unit, const char *set_ending, uint64_t shard, const char *ending);
/* Returns the path of a shard that is merged from the sorted documents of all units, "FOLDER/shard-000007", and of its
 * files. */
char *merged_path(const char *folder, uint64_t number, const char *ending);
char *merged_shard_path(const char *folder, uint64_t number, const char *ending);
/* Returns true if a name in the folder is that of a unit's or of a merged shard's list, lock, or folder; *is_folder
 * says whether it is a folder. */
bool unit_is_name(const char *entry, bool *is_folder);

#endif
