/* SPDX-License-Identifier: MIT */
/* output_names.h - which files in a folder of inputs are outputs of the same command, by their names. They come and go
 * while it works, so they are not among the inputs that unfinished work is compared with. */
#ifndef TOKMAP_PACK_OUTPUT_NAMES_H
#define TOKMAP_PACK_OUTPUT_NAMES_H

#include "inputs/corpus.h"
#include "packing_options.h"

struct output_names {
    const char *name;
    const struct split *split;    /* NULL: one set, or one shard */
    bool numbered;                /* shard sets; with `split` always */
    const struct pack_also *also; /* NULL: no files of other projects */
};

/* Returns true if a path is that of a file in the folder NAME.work, or of a file that the output has, has beside it
 * until it is complete, or gets by `also`. */
bool output_names_have(const struct output_names *names, const char *path);

/* Returns true if it is one of the last kind, also of one that is being written. */
bool output_names_also(const struct output_names *names, const char *path);

/* Returns true if a file that exists is one of an older output of this name, whatever sets and shards it has: a
 * manifest, a file of a shard, or one that --also, with any formats, has written beside a shard. What it is called does
 * not decide that alone: see output_names.c. */
bool output_names_older(const char *output, const char *path);

/* Returns true if it is a file that either of the two says. output: struct output_names; for work_folder.h. */
bool output_names_either(const void *output, const char *path);

/* Excludes from the inputs what output_names_have() and output_names_older() say. Statuses: those of corpus_exclude(),
 * ERROR_MEMORY. */
enum tokmap_status output_names_exclude(const struct pack_options *options, struct corpus *corpus,
                                        struct tokmap_error *error);

#endif
