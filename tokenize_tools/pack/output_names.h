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

/* Whether a path is that of a file in the folder NAME.work, or of a file that the output has, has beside it until it is
 * complete, or gets by `also`. */
bool output_names_have(const struct output_names *names, const char *path);

/* Whether it is one of the last kind, also of one that is being written. */
bool output_names_also(const struct output_names *names, const char *path);

/* Excludes the files of this kind that are beside an old output of one shard from the inputs. Statuses: those of
 * corpus_exclude(), ERROR_MEMORY. */
enum tokmap_status output_names_exclude(const struct pack_options *options, struct corpus *corpus,
                                        struct tokmap_error *error);

#endif
