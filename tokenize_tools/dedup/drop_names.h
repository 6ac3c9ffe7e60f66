/* SPDX-License-Identifier: MIT */
/* drop_names.h - at the end of a pack, which list of dropped documents has the name NAME.dropped: that of the output
 * that there is, whatever process fails or is killed (work/dropped_aside.h). */
#ifndef TOKMAP_DEDUP_DROP_NAMES_H
#define TOKMAP_DEDUP_DROP_NAMES_H

#include "work/dropped_writer.h"
#include "format/name_files.h"

struct drop_output {
    const char *name;
    bool numbered;      /* it is sets of shards, which are named as a group */
    bool listed;        /* documents are left out, so it gets a list */
    bool replace, sync; /* as in shard_writer.h */
};

struct drop_names {
    struct dropped_writer *list; /* that has its name, or gets it in the group; NULL: none */
    bool grouped;                /* the shards are named as a group (set_commit.h), and so is the list */
    uint64_t output;             /* number of the output that is replaced */
    bool aside;                  /* its list may have been put aside */
};

/* Makes the list that of the output. The output has its lock, and what a killed process has left of its names is
 * completed. keeps: the list of that process will be continued. Statuses: those of dropped_settle(), and of opening the
 * index of the output. */
enum tokmap_status drop_names_settle(const struct drop_output *output, bool keeps, struct tokmap_error *error);

/* Just before the output gets its names. group: of set_work_group(), to which the list is added; NULL: puts the old
 * list aside, and gives the new one its name. list: complete; NULL: there is none. Statuses: OK, ERROR_EXISTS,
 * ERROR_IO, ERROR_MEMORY, those of opening the index of the old output. */
enum tokmap_status drop_names_begin(struct drop_names *names, const struct drop_output *output,
                                    struct dropped_writer *list, struct name_files *group, struct tokmap_error *error);

/* After it, and also if it was not called with this zeroed struct. visible: the output is the new one. */
void drop_names_end(const struct drop_names *names, const struct drop_output *output, bool visible);

#endif
