/* SPDX-License-Identifier: MIT */
/* writer_options.h - the options of a shard writer (shard_writer.h). */
#ifndef TOKMAP_FORMAT_WRITER_OPTIONS_H
#define TOKMAP_FORMAT_WRITER_OPTIONS_H

#include <stdbool.h>

#include "columns_writer.h"
#include "tokmap/tokmap.h"

/* Options of sealing in a commit. */
struct shard_writer_seal {
    int level;        /* of zstd, 1 to 19 */
    uint32_t threads; /* that compress, at least 1; the bytes do not depend on it. Each takes about 9 MiB meanwhile */
    /* As in struct shard_seal_options. May be NULL. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    uint64_t *sealed_bytes; /* receives the size of NAME.bin.zst; may be NULL */
};

/* The list of dropped documents that is beside the shard stays; is removed; or is replaced by NAME.dropped.partial,
 * which is complete when the shard is committed. */
enum shard_list { SHARD_LIST_STAYS, SHARD_LIST_GOES, SHARD_LIST_NEW };

struct shard_writer_options {
    uint32_t width;          /* 2 or 4 */
    uint64_t vocabulary;     /* every id must be below it */
    uint64_t eod_id, bos_id; /* or TOKMAP_NO_ID */
    uint8_t tokenizer[16];   /* fingerprint; zero if unknown */
    bool replace; /* the commit replaces an existing shard of this name; if false, opening reports ERROR_EXISTS */
    bool mask;    /* the shard has a mask: see shard_writer_mask() */
    /* Not NULL: the commit seals the shard, so that NAME.bin.zst takes the place of NAME.bin. The bytes are those of
     * shard_seal() after a commit. The tokens are written to NAME.bin.partial all the same, so that there must be room
     * for both. Valid until the writer is freed. */
    const struct shard_writer_seal *seal;
    bool sync; /* fsync before the commit; false only for files that need not survive a crash */
    /* Documents of one file need not follow one another: the index names each file once all the same, for which the
     * writer remembers the paths (path_table.h). If false, the writer remembers only the last path. */
    bool mixed;
    /* A thread of the writer hashes and writes the tokens, while the caller adds more: for a caller that otherwise uses
     * one processor of several. The bytes are the same. Takes 2 MiB. A failure is that of a later call. */
    bool own_thread;
    enum shard_list list;
    bool resume; /* continues what a killed writer has left: see shard_save.h. ERROR_NOT_FOUND if it is not there */
    bool waits;  /* the names end in .ready, so that no reader takes the files for a shard: see set_commit.h */
    /* Called once in the commit, when nothing can fail any more but this call and the renaming of the index, and before
     * other tokens have the name NAME.bin: removes what is beside an old shard and would not fit the new one. A status
     * other than OK ends the commit with it. May be NULL. */
    enum tokmap_status (*last)(void *user, struct tokmap_error *error);
    void *last_user;
    /* The fields of the documents' records that the index keeps: see shard_writer_values(). At most COLUMNS_MAX names,
     * each of 1 to COLUMN_NAME_MAX bytes of UTF-8, all different; copied. */
    const char *const *columns;
    uint32_t column_count; /* 0: the index has no section columns */
};

/* Checks the options of a shard, and its name. prefix: its path. Statuses: OK, ERROR_ARGUMENT, ERROR_LIMIT. */
enum tokmap_status writer_options_check(const struct shard_writer_options *options, const char *prefix,
                                        struct tokmap_error *error);

#endif
