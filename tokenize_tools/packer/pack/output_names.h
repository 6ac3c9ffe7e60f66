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

/* Returns true if a path is that of a file in the folder NAME.work, of a finished or unfinished file of the output, or
 * of a file of `also`. */
bool output_names_have(const struct output_names *names, const char *path);

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

#endif
