/* SPDX-License-Identifier: MIT */
/*
 * pack_upload.h - `tokmap pack -o s3://BUCKET/KEY`: the output is made in a folder of this machine, and sent when it is
 * whole.
 *
 * To the work it is one more format that is written beside the shards (pack_also.h), so the same command continues
 * where a process was killed, whether it packed or sent. What has been sent is known by what the server has
 * (dataset_copy.h), and the files here are removed when all sets are there.
 */
#ifndef TOKMAP_COMMANDS_PACK_PACK_UPLOAD_H
#define TOKMAP_COMMANDS_PACK_PACK_UPLOAD_H

#include "cli/cli.h"
#include "common/bytes_buffer.h"
#include "pack/packing_options.h"

struct pack_upload {
    const char *folder; /* --work-folder, or NULL */
    bool force, quiet;
    int shown; /* enum cli_progress_mode */
    /* Private. */
    char *to;                 /* the address without an ending; NULL: the output is on this machine */
    char *made;               /* the folder that this made up */
    char *prefix;             /* of the output here */
    struct bytes_buffer sent; /* the sets that were sent, as names of this machine, each with a zero byte */
    bool failed;              /* sending has failed */
    struct cli_progress progress;
};

/* Takes the output that was typed. *local: the prefix that was typed, or the one here, in memory that
 * pack_upload_free() frees. Returns 0, or prints a message and returns the exit status. */
int pack_upload_begin(struct pack_upload *upload, const struct cli_command *command, const char *output,
                      const char **local);
void pack_upload_free(struct pack_upload *upload);

/* Returns whether the output is sent. */
static inline bool pack_upload_is(const struct pack_upload *upload)
{
    return upload->to != NULL;
}

/* Takes the prefix that was made of *local. */
enum tokmap_status pack_upload_prefix(struct pack_upload *upload, const char *prefix, struct tokmap_error *error);

/* Before the work: checks that the objects can be written, and, unless work continues or `force`, that there is no such
 * dataset. Statuses: OK, ERROR_EXISTS, those of object storage. */
enum tokmap_status pack_upload_check(struct pack_upload *upload, bool continues, const struct split *split,
                                     struct tokmap_error *error);
/* Sends the set that a shard of this machine belongs to, unless that was done. numbered: it ends in its number. */
enum tokmap_status pack_upload_send(struct pack_upload *upload, const char *shard, bool numbered,
                                    struct tokmap_error *error);
/* After the work: sends the sets that have no tokens, and removes all from this machine. */
enum tokmap_status pack_upload_end(struct pack_upload *upload, const struct split *split, struct tokmap_error *error);

#endif
