/* SPDX-License-Identifier: MIT */
/*
 * task_status.h - the progress of each process that shares an output, in files that all of them can read.
 *
 * Task i of n writes NAME.work/task-I-of-N.status, in place, every 2 seconds with a counter that is one larger each
 * time. The file is text of TASK_STATUS_BYTES bytes:
 *
 *     tokmap-task 4           the version; a file of another one is as if it were not there
 *     task 2 7                its number, and of how many
 *     counter 31
 *     process 4711 node17     id and host
 *     nonce 1234              a random number of the process
 *     state 0                 enum task_state
 *     stage 2                 enum task_stage; the lines that follow are about it alone
 *     units 5 3 8             its units, how many of them are done, and the units of all tasks; while comparing: its
 *                             portions; while merging: its shards; the third number is then 0
 *     work 120 9000 700 100   documents, tokens, and stored bytes that are done, and the stored bytes of its units;
 *                             while comparing or cutting: bytes of keys; while merging: bytes of tokens
 *     out 12 3                documents that were dropped (drop_filter.h), and records and files that were left out for
 *                             other reasons, while packing or sorting
 *     before 200              the bytes that were done when the process began with the stage
 *     time 12345              milliseconds since then
 *     hash 0123456789abcdef   XXH3-64 of the lines before
 *
 * and then spaces. A reader that finds another hash has met a writer, and reads again.
 *
 * The file is also what keeps a second process with the same number away. A process locks it (flock) as long as it
 * works. Where a lock says nothing, because the file system has no locks or those of one machine only, the counter
 * decides: the second process watches it for TASK_WATCH_NS, and stops if it moves.
 */
#ifndef TOKMAP_WORK_TASK_STATUS_H
#define TOKMAP_WORK_TASK_STATUS_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#define TASK_STATUS_BYTES 1024
#define TASK_BEAT_NS ((uint64_t)2000000000)
#define TASK_WATCH_NS ((uint64_t)5000000000)
#define TASKS_MOST ((uint64_t)1000000)
#define TASK_HOST_MOST 256

/* TASK_AGAIN: its share of the stage is done, and the command must run again when others have done theirs. */
enum task_state { TASK_WORKING, TASK_DONE, TASK_FAILED, TASK_WAITING, TASK_AGAIN, TASK_STATES };

/* The stages of the search for duplicates (dedup/dedup_stages.h) and of packing (pack/pack_stages.h). */
enum task_stage { TASK_SCANS, TASK_COMPARES, TASK_PACKS, TASK_SORTS, TASK_CUTS, TASK_MERGES, TASK_STAGES };

/* Returns whether a stage is the last one of some work, in which tasks do not wait for each other. */
static inline bool task_stage_is_last(enum task_stage stage)
{
    return stage == TASK_PACKS || stage == TASK_MERGES;
}

/* Returns whether the items of a stage are the units of the work. */
static inline bool task_stage_is_of_units(enum task_stage stage)
{
    return stage == TASK_SCANS || stage == TASK_PACKS || stage == TASK_SORTS;
}

/* Report of a process about its work in a stage. */
struct task_work {
    enum task_stage stage;
    uint64_t units, units_done, units_all; /* units_all: of all tasks; 0 in stages whose parts are no units */
    uint64_t documents, tokens, bytes, bytes_all;
    uint64_t dropped, skipped; /* documents that are dropped; records and files that are left out for other reasons */
    uint64_t bytes_before;
};

struct task_status {
    uint64_t task, tasks, counter, process, nonce;
    char host[TASK_HOST_MOST];
    enum task_state state;
    struct task_work work;
    uint64_t milliseconds;
    bool moving; /* of task_status_list(): a process writes the file */
    bool unsure; /* of task_status_list() without watching: no lock says whether one does */
};

struct task_claim; /* task_claim_report() and task_claim_lost(): any thread; the others: one */

/* Takes the number `task` of `tasks` in a folder of unfinished work, and writes its file from then on. Statuses: OK,
 * ERROR_BUSY (another process has it, which the message names), ERROR_INTERRUPTED (stop(user) returned true while the
 * counter was watched), ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY. */
enum tokmap_status task_claim_take(struct task_claim **claim, const char *folder, uint64_t task, uint64_t tasks,
                                   bool (*stop)(void *user), void *user, struct tokmap_error *error);

/* Sets what the file says next; writes it at once if the stage is another one. */
void task_claim_report(struct task_claim *claim, const struct task_work *work);

/* Says whether the task waits for others: TASK_WAITING in place of TASK_WORKING. Writes the file at once. */
void task_claim_wait(struct task_claim *claim, bool waits);

/* Returns true if another process has written the file since it was taken: then this one must stop. */
bool task_claim_lost(const struct task_claim *claim);
/* Returns the error for that. */
enum tokmap_status task_claim_lost_error(const struct task_claim *claim, struct tokmap_error *error);

/* Writes the file once more, and frees the claim. state: that of a task that has ended. NULL is ignored. */
void task_claim_end(struct task_claim *claim, enum task_state state);

/* Reads the files of a folder, in order of tasks and number. watch: where a lock does not say whether a process is
 * there, waits TASK_WATCH_NS to see whether its counter moves. The caller frees *list. Statuses: OK, ERROR_NOT_FOUND
 * (there is no such folder), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status task_status_list(const char *folder, bool watch, struct task_status **list, size_t *count,
                                    struct tokmap_error *error);

/* Looks again and again what the other tasks do. The one that was found working is looked at first, so that most looks
 * read one file. Where no lock says whether a process is there, one is if the counter has moved within TASK_WATCH_NS,
 * or was not looked at before. Begins as zero bytes. */
enum task_others {
    TASK_OTHERS_NONE,
    TASK_OTHERS_WAIT, /* none works, and one with a lower number waits in the same stage */
    TASK_OTHERS_WORK
};
struct task_watch {
    struct task_status found; /* the one that worked last; tasks 0: none */
    struct task_seen *seen;   /* counters of those that no lock says anything about */
    size_t count;
};
/* own, stage: of the process that asks. A process that waits in another stage works as soon as it looks again. */
enum task_others task_watch_look(struct task_watch *watch, const char *folder, uint64_t own, enum task_stage stage);
void task_watch_free(struct task_watch *watch);

/* Returns true if a file in the folder of unfinished work is one of these. */
bool task_status_is_name(const char *entry);

/* Text to status and back, for tests. task_status_write() fills TASK_STATUS_BYTES. */
void task_status_write(const struct task_status *status, char *text);
bool task_status_read(struct task_status *status, const char *text, size_t bytes);

/*
 * Finds out whether another process is using an output, so that no command removes its
 * work or begins beside it.
 *
 * A process at work holds a lock (flock) on a file:
 *
 *     packing without units     NAME.partial or NAME.tmx.partial, and soon the journal
 *     making the journal       journal.new
 *     a task                   its status file
 *     naming the shards        NAME.partial
 *
 * Where locks do not work, the counter in the status file decides.
 */

/* Returns true if a process holds the lock of the shard set `name`, or of the single shard of this name. */
bool work_is_locked(const char *name);

/* Returns the error for that. */
enum tokmap_status work_locked_error(const char *name, struct tokmap_error *error);

/* Checks that no process is at work in the folder of unfinished work of `name`. Waits TASK_WATCH_NS where no lock says
 * so. Statuses: OK (none is), ERROR_BUSY (one is; of a task, the message names process and host), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status work_idle_check(const char *name, const char *folder, struct tokmap_error *error);

#endif
