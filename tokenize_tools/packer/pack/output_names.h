/* SPDX-License-Identifier: MIT */
/* output_names.h - which files in a folder of inputs are outputs of the same command, by their names. They come and go
 * while it works, so they are not among the inputs that unfinished work is compared with. */
#ifndef TOKMAP_PACK_OUTPUT_NAMES_H
#define TOKMAP_PACK_OUTPUT_NAMES_H

#include "corpus/corpus.h"
#include "packing_options.h"

struct output_names {
    const char *name;
    const struct split *split;    /* NULL: one set, or one shard */
    bool numbered;                /* shard sets; with `split` always */
    const struct pack_also *also; /* NULL: no files of other projects */
};

/* Returns true if a path is that of a finished or unfinished file of `also`. */
bool output_names_also(const struct output_names *names, const char *path);

/* Returns true if a file that exists is one of an older output of this name, whatever sets and shards it has: a
 * manifest, a file of a shard, or one that --also, with any formats, has written beside a shard. What it is called does
 * not decide that alone: see output_names.c. */
bool output_names_older(const char *output, const char *path);

/* Returns true if output_names_have() or output_names_older() does. output: struct output_names; for work_folder.h. */
bool output_names_either(const void *output, const char *path);

/* Excludes the files of output_names_either() from the inputs. Statuses: those of corpus_exclude(), ERROR_MEMORY. */
enum tokmap_status output_names_exclude(const struct pack_options *options, struct corpus *corpus,
                                        struct tokmap_error *error);

/*
 * Removes what units and tasks have left in NAME.work, the folder of unfinished work, and nothing that
 * the user has put there.
 */

/* Removes the unfinished work of a unit, so that it begins again. */
void pack_clear_unit(const char *folder, uint64_t unit);

/* Removes all that units and tasks have left in a folder of unfinished work, and the folder. Files that cannot be
 * removed stay. sync: syncs the removal, for completed work, whose journal must not be there again after a power cut.
 * Statuses: OK, ERROR_IO (with sync), ERROR_MEMORY. */
enum tokmap_status pack_clear_work(const char *folder, bool sync, struct tokmap_error *error);

/* Removes the rest of the work of an output that exists: a process may have been killed before it had removed the
 * folder, from which it removes the journal first, and the lock. */
void pack_clear_settle(const struct pack_options *options, const char *folder);

/* Removes all that units and tasks have left in the folder, to start over. Removes nothing while a process is at work
 * on the output, and no process begins to write it meanwhile. Statuses: those of work_idle_check(). */
enum tokmap_status pack_clear_start(const char *name, const char *folder, struct tokmap_error *error);

#endif
