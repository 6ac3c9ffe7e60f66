/* SPDX-License-Identifier: MIT */
/*
 * work_folder.h - NAME.work, the folder of unfinished work beside an output NAME, and the journal in it, with which a
 * command that was killed continues where it was.
 *
 * The file NAME.work/journal begins with all that the output depends on: facts (options, the tokenizer), and of each
 * input its name, its size, and XXH3-64 of its bytes, or of a file above 1 MiB of 16 samples of 64 KiB: sample i begins
 * at floor(i * (size - 64 KiB) / 15). After them follow the records of the caller.
 *
 *     16 bytes   "tokmap-journal 3"
 *     records    u32 type, u32 bytes, the bytes, u64 XXH3-64 of type, bytes, and payload, with the record's offset as
 *                the seed
 *
 * Among the facts are the commits that branches of the Hugging Face Hub meant (remote_hub.h). A later command learns
 * them before it lists its inputs, so that it reads what the first one did.
 *
 * The facts are written to journal.new, synced, and renamed, so a journal has all of them or does not exist. A record
 * of the caller that is not whole, or whose hash is wrong, ends the journal: it and all that follows was not synced
 * when the command was killed.
 *
 * Only one process uses a folder: the journal is locked as long as it is open. But a folder that is shared has a
 * journal of facts alone, which one process makes under a lock, and all of them only read.
 */
#ifndef TOKMAP_WORK_WORK_FOLDER_H
#define TOKMAP_WORK_WORK_FOLDER_H

#include <stdbool.h>

#include "corpus/inputs.h"

#define WORK_RECORD_MOST ((uint32_t)1 << 20) /* bytes of a record */
#define WORK_TYPE_FIRST 16U                  /* types of the caller begin here */

struct work_folder; /* for one thread at a time */

/* Something that the output depends on: an option as the user types it ("--shard-tokens"), or another name. Either is
 * text. A value that a command does not have is "". */
struct work_fact {
    const char *name, *value;
};

/* Returns true if an entry of the folder is a file of the caller. journal: the folder has a journal of ours, or gets
 * one; without one, it may be a folder of the user, whose files may have any name. */
typedef bool work_owns(const char *folder, const char *entry, bool journal);

/* The inputs of the command, which are compared. */
struct work_inputs {
    const char *const *operands; /* of inputs.h */
    size_t count;
    const struct inputs_selection *select;
    uint64_t feed; /* corpus_options.feed: standard input is known by it; 0: it cannot be read twice */
    /* Whether a file belongs to the output, or to an older one, so that it comes and goes while the work is done: it is
     * no input. NULL: none does. */
    bool (*is_output)(const void *output, const char *path);
    const void *output;
    const uint64_t *cuts; /* of inputs [0, cut_count): a hash of where they are cut, which is compared of all; or 0 */
    uint64_t cut_count;
    /* With `shared`: of the inputs only those with the numbers [compare_first, compare_end) are read to compare their
     * contents; of the others, names and sizes are compared. */
    uint64_t compare_first, compare_end;
};

/* Everything here must stay valid until work_folder_open() returns. */
struct work_folder_options {
    const char *name; /* of the output: the folder is NAME.work */
    const struct work_fact *facts;
    size_t fact_count;
    struct work_inputs inputs;
    /* Tells which files of the folder the caller has made, beside the journal. They are removed where work begins.
     * NULL: none. */
    work_owns *owns;
    /* Whether a record of this type, or, if `entry` is not NULL, this file of the folder, is work that could be
     * continued. Earlier work with other facts is refused if it has any, or if its first fact differs, and is removed
     * otherwise. NULL: it is always refused. */
    bool (*is_work)(uint32_t type, const char *entry);
    bool shared;              /* several processes use the folder at a time: none locks it, and none appends records */
    bool start_over;          /* true if work of a killed command is removed; otherwise it is continued */
    bool create;              /* make the folder if it is absent; if false, *folder is then NULL, with status OK */
    bool (*stop)(void *user); /* true ends the reading of the inputs with ERROR_INTERRUPTED; may be NULL */
    void *user;
};

/* Opens the folder of earlier work, if it is of the same facts and inputs, or makes one. Statuses: OK, ERROR_MISMATCH
 * (a fact or an input differs, which the message names), ERROR_BUSY (another process uses it), ERROR_CORRUPT,
 * ERROR_EXISTS (a link of its name, or a file of the user with the name of a journal, which stay), ERROR_UNSUPPORTED (a
 * journal of another version; an input, such as standard input, that cannot be read twice), ERROR_IO, ERROR_NOT_FOUND,
 * ERROR_LIMIT, ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status work_folder_open(struct work_folder **folder, const struct work_folder_options *options,
                                    struct tokmap_error *error);

/* Does the same, and waits while another process makes the journal: up to half an hour, since it reads a part of each
 * input. */
enum tokmap_status work_folder_await(struct work_folder **folder, const struct work_folder_options *options,
                                     struct tokmap_error *error);

/* Returns true if the folder is that of earlier work, whose records work_folder_next() returns. */
bool work_folder_found(const struct work_folder *folder);

/* Returns whether there is a journal of an output of this name, which may be that of a process that runs. */
bool work_folder_exists(const char *name);

/* Makes this process read of the Hub what the work beside an output did, if there is any. */
void work_folder_pins_take(const char *name);

/* Removes the files that `owns` knows from a folder without a journal: a power cut may bring them back after a process
 * has removed them. Does nothing if another process begins there. */
void work_folder_sweep(const char *name, work_owns *owns);

/* Removes an empty folder, or one with a journal that was never complete, which a process has left that was killed, or
 * lost to a power cut. Does nothing if there is a journal, or another process makes one. */
void work_folder_settle(const char *name);

/* ERROR_CORRUPT, for a caller that finds a record that cannot be right. The message names the journal and the offset of
 * the record that would follow. */
enum tokmap_status work_folder_damaged(const struct work_folder *folder, struct tokmap_error *error);

/* Returns the path of the folder. It stays valid as long as *folder. */
const char *work_folder_path(const struct work_folder *folder);

struct work_record {
    uint32_t type, bytes;
    const uint8_t *payload; /* valid until the next call */
    uint64_t end;           /* offset of the next record */
};

/* Reads the next record of earlier work, before work_folder_cut(). Statuses: OK, END (no record follows, or the rest of
 * the journal is torn), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status work_folder_next(struct work_folder *folder, struct work_record *record, struct tokmap_error *error);

/* Makes the next call of work_folder_next() return the first record again. */
void work_folder_rewind(struct work_folder *folder);

/* Cuts the journal at the end of a record, or, with end 0, after the facts. The next record is appended there. Call it
 * once, before the first record is appended to earlier work. Statuses: OK, ERROR_IO. */
enum tokmap_status work_folder_cut(struct work_folder *folder, uint64_t end, struct tokmap_error *error);

/* Appends a record; it is written at the latest by work_folder_sync(), which also syncs it. type: from WORK_TYPE_FIRST
 * on; bytes: at most WORK_RECORD_MOST. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status work_folder_append(struct work_folder *folder, uint32_t type, const void *payload, uint32_t bytes,
                                      struct tokmap_error *error);
/* Appends bytes as records of a type. Each of them begins with the head, and has at most 64 KiB of the bytes after it,
 * so entries of 2^n bytes stay whole. Without bytes it is one record. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status work_folder_increments(struct work_folder *folder, uint32_t type, const void *head,
                                          size_t head_bytes, const void *bytes, size_t count,
                                          struct tokmap_error *error);
enum tokmap_status work_folder_sync(struct work_folder *folder, struct tokmap_error *error);

/* Closes the folder and leaves it for the next attempt. NULL is ignored. */
void work_folder_close(struct work_folder *folder);

/* Ends work that is complete, or given up: removes the journal, the files that the caller owns, and the folder, and
 * syncs. A folder with other files in it remains. Frees *folder. NULL is ignored. */
void work_folder_remove(struct work_folder *folder);

/* Does the same without a sync, for a journal that has facts alone: a power cut may bring it back, and then the next
 * work removes it. */
void work_folder_discard(struct work_folder *folder);

#endif
