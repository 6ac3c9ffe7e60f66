/* SPDX-License-Identifier: MIT */
/*
 * shard_file.h - the names of a shard's files. A name is that of the shard, then what the file holds, then its state:
 *
 *                      final       partial            ready            partial ready            replaced
 *     mask             .mask       .mask.partial      .mask.ready      .mask.ready.partial      .mask.0123456789abcdef
 *     tokens           .bin        and so on
 *     sealed tokens    .bin.zst
 *     index            .tmx
 *     dropped list     .dropped
 *
 * A partial file is being written. A shard that is ready waits for its set: it is in the folder of unfinished work
 * (FORMAT.md, "Shard sets"), where no reader looks for shards. A replaced file belongs to an older index, or to a newer
 * one, whose id it names (shard_commit.h). Files of other projects are in foreign/.
 */
#ifndef TOKMAP_FORMAT_SHARD_FILE_H
#define TOKMAP_FORMAT_SHARD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first SHARD_FILES are those that an index describes, in the order in which a commit renames them. */
enum shard_file { SHARD_MASK, SHARD_TOKENS, SHARD_SEALED, SHARD_FILES, SHARD_INDEX = SHARD_FILES, SHARD_DROPPED };
#define SHARD_FILE_KINDS (SHARD_DROPPED + 1)

enum shard_state { SHARD_FINAL, SHARD_PARTIAL, SHARD_READY, SHARD_READY_PARTIAL, SHARD_REPLACED };
#define SHARD_NAMED_STATES SHARD_REPLACED /* the states before it have one name each */

/* 8 bytes of a list of dropped documents that a transfer in text mode or with 7 bits would change. */
#define SHARD_LIST_MAGIC "\x89TDR\r\n\x1a\n"

#define SHARD_ID_DIGITS 16 /* of the id of an index in the name of a replaced file */

/* Returns what follows the name of the shard, for a state that is not SHARD_REPLACED. */
const char *shard_file_ending(enum shard_file file, enum shard_state state);

/* Paths, which the caller frees; NULL without memory. */

/* Returns the path of a file of the shard PREFIX. */
char *shard_file_path(const char *prefix, enum shard_file file, enum shard_state state);
/* Returns the path of a file of shard `number` of the set PREFIX: "PREFIX-00012.tmx". */
char *shard_file_numbered(const char *prefix, uint64_t number, enum shard_file file, enum shard_state state);
/* Returns the path of a file of the shard to which the final file `path` belongs: its ending, if it has one, is
 * replaced. */
char *shard_file_beside(const char *path, enum shard_file file, enum shard_state state);
/* Returns the path of the index of the shard that is called by its name, its index, or its tokens, in a folder, which
 * may be empty. */
char *shard_file_index(const char *folder, size_t folder_bytes, const char *name, size_t name_bytes);
/* Returns the path of a replaced file: a final path, and the id of an index. */
char *shard_file_replaced(const char *path, uint64_t id);

/* True if a name is that of a final file of a shard of at least one byte. */
bool shard_file_is(const char *name, enum shard_file file);
/* True if it ends in .ready or .ready.partial: a file of a shard or of a manifest that waits for its final name. */
bool shard_file_waits(const char *name);
/* True if it is that of the index, the tokens, or the sealed tokens. */
bool shard_file_is_main(const char *name);

/* True if a file that begins with these bytes is a manifest, of any version: see manifest.h. */
bool shard_manifest_begins(const char *head, size_t bytes);

struct shard_name {
    enum shard_file file;
    enum shard_state state;
    size_t stem; /* bytes of the shard's name, at least 1 */
    uint64_t id; /* of a replaced file */
};
/* Finds which file of a shard has the name, or a path, of `bytes` bytes. False if none has. */
bool shard_file_find(const char *name, size_t bytes, struct shard_name *found);

#endif
