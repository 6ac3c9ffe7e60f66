/* SPDX-License-Identifier: MIT */
#include "task_status.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "text/path.h"

#define HEAD "tokmap-task 4\n"
#define NAME_FIRST "task-"
#define NAME_MIDDLE "-of-"
#define NAME_LAST ".status"
#define TRIES                                                                                                          \
    10 /* of a lock that a reader of the status may hold for a moment, and of a file that is being written             \
        */
#define TRY_NS ((uint64_t)20000000)

struct task_claim {
    char *path;
    int fd; /* locked, if the file system has locks */
    struct task_status own, other;
    uint64_t started_ns;
    struct os_thread *thread;
    struct os_mutex *mutex; /* guards all that follows, and own.work */
    struct os_condition *wake;
    bool ending, lost;
};

/* ---- text ---- */

static bool is_at_work(const struct task_status *status)
{
    return status->state == TASK_WORKING || status->state == TASK_WAITING;
}

void task_status_write(const struct task_status *status, char *text)
{
    const struct task_work *work = &status->work;
    char line[64];
    memset(text, ' ', TASK_STATUS_BYTES);
    char body[TASK_STATUS_BYTES];
    const int count =
        snprintf(body, sizeof body,
                 HEAD "task %" PRIu64 " %" PRIu64 "\ncounter %" PRIu64 "\nprocess %" PRIu64 " %.*s\nnonce %" PRIu64
                      "\nstate %d\nstage %d\nunits %" PRIu64 " %" PRIu64 " %" PRIu64 "\nwork %" PRIu64 " %" PRIu64
                      " %" PRIu64 " %" PRIu64 "\nout %" PRIu64 " %" PRIu64 "\nbefore %" PRIu64 "\ntime %" PRIu64 "\n",
                 status->task, status->tasks, status->counter, status->process, TASK_HOST_MOST - 1, status->host,
                 status->nonce, (int)status->state, (int)work->stage, work->units, work->units_done, work->units_all,
                 work->documents, work->tokens, work->bytes, work->bytes_all, work->dropped, work->skipped,
                 work->bytes_before, status->milliseconds);
    assert(count > 0 && (size_t)count + sizeof line < TASK_STATUS_BYTES);
    const int last = snprintf(line, sizeof line, "hash %016" PRIx64 "\n", hash64(body, (size_t)count));
    memcpy(text, body, (size_t)count);
    memcpy(text + count, line, (size_t)last);
}

/* Takes the numbers in their order. The text is right if it is the one that is written for them. */
bool task_status_read(struct task_status *status, const char *text, size_t bytes)
{
    enum { PROCESS = 3, STATE = 5, STAGE, NUMBERS = 18 };
    char copy[TASK_STATUS_BYTES + 1], again[TASK_STATUS_BYTES];
    const char *at = copy, *host = NULL;
    uint64_t n[NUMBERS];
    size_t host_bytes = 0;
    if (bytes != TASK_STATUS_BYTES || strncmp(text, HEAD, strlen(HEAD)) != 0)
        return false;
    memcpy(copy, text + strlen(HEAD), bytes - strlen(HEAD));
    copy[bytes - strlen(HEAD)] = '\0';
    for (int i = 0; i < NUMBERS; i++) {
        at += strcspn(at, " ");
        at += *at == ' ';
        if (!decimal_read(&at, NULL, &n[i]))
            return false;
        if (i == PROCESS) {
            host = at + (*at == ' ');
            host_bytes = strcspn(host, "\n");
            at = host + host_bytes;
        }
    }
    if (host_bytes >= sizeof status->host || n[STATE] >= TASK_STATES || n[STAGE] >= TASK_STAGES || n[0] >= n[1])
        return false;
    *status = (struct task_status){
        .task = n[0],
        .tasks = n[1],
        .counter = n[2],
        .process = n[PROCESS],
        .nonce = n[4],
        .state = (enum task_state)n[STATE],
        .work = {(enum task_stage)n[STAGE], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16]},
        .milliseconds = n[17]};
    memcpy(status->host, host, host_bytes);
    task_status_write(status, again);
    return !memcmp(again, text, sizeof again);
}

/* Reads "task-I-of-N.status". */
static bool name_read(const char *entry, uint64_t *task, uint64_t *tasks)
{
    const char *at = entry;
    if (strncmp(at, NAME_FIRST, strlen(NAME_FIRST)) != 0)
        return false;
    at += strlen(NAME_FIRST);
    if (!decimal_read(&at, NULL, task) || strncmp(at, NAME_MIDDLE, strlen(NAME_MIDDLE)) != 0)
        return false;
    at += strlen(NAME_MIDDLE);
    return decimal_read(&at, NULL, tasks) && !strcmp(at, NAME_LAST) && *task < *tasks;
}

static char *status_path(const char *folder, uint64_t task, uint64_t tasks)
{
    char name[96];
    (void)snprintf(name, sizeof name, NAME_FIRST "%" PRIu64 NAME_MIDDLE "%" PRIu64 NAME_LAST, task, tasks);
    return path_in(folder, name);
}

bool task_status_is_name(const char *entry)
{
    uint64_t task, tasks;
    return name_read(entry, &task, &tasks);
}

/* ---- files ---- */

/* Reads an open file. A writer may be in the middle of it: then it is read again. */
static bool status_load(int fd, struct task_status *status)
{
    char text[TASK_STATUS_BYTES];
    for (int i = 0; i < TRIES; i++) {
        size_t got = 0;
        if (os_pread(fd, text, sizeof text, 0, &got))
            return false;
        if (task_status_read(status, text, got))
            return true;
        if (!got) /* new */
            return false;
        os_sleep_ns(TRY_NS);
    }
    return false;
}

static bool path_load(const char *path, struct task_status *status)
{
    int fd;
    if (os_open(path, OS_READ_NOW, &fd))
        return false;
    const bool good = status_load(fd, status);
    os_close(fd);
    return good;
}

/* Writes the file, which is opened for every writing, because closing it makes the bytes visible on NFS. A file that is
 * gone, because the output is complete, is not made again. */
static int path_store(const char *path, const struct task_status *status)
{
    char text[TASK_STATUS_BYTES];
    int fd;
    int system = os_open(path, OS_WRITE_OLD, &fd);
    if (system)
        return system;
    task_status_write(status, text);
    system = os_pwrite(fd, text, sizeof text, 0);
    os_close(fd);
    return system;
}

/* ---- claims ---- */

static bool is_same(const struct task_status *a, const struct task_status *b)
{
    return a->nonce == b->nonce && a->process == b->process && !strcmp(a->host, b->host);
}

/* Does one beat: looks whether the file is still ours, and writes it. The caller holds the mutex. */
static void beat(struct task_claim *claim)
{
    struct task_status found;
    if (claim->lost)
        return;
    if (path_load(claim->path, &found) && !is_same(&found, &claim->own)) {
        claim->other = found;
        claim->lost = true;
        return;
    }
    claim->own.counter++;
    claim->own.milliseconds = (os_clock_ns() - claim->started_ns) / 1000000;
    (void)path_store(claim->path, &claim->own);
}

static void beats(void *user)
{
    struct task_claim *claim = user;
    os_mutex_lock(claim->mutex);
    while (!claim->ending)
        if (!os_condition_wait_for(claim->wake, claim->mutex, TASK_BEAT_NS))
            beat(claim);
    os_mutex_unlock(claim->mutex);
}

static enum tokmap_status taken(const struct task_status *other, const char *path, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                     "another process is task %" PRIu64 " of %" PRIu64 " of this output: process %" PRIu64
                     " on host %s; give each task a number of its own, or wait for it",
                     other->task, other->tasks, other->process, *other->host ? other->host : "?");
}

/* Watches the counter of a process that may be there. */
static enum tokmap_status watch(struct task_claim *claim, const struct task_status *before, bool (*stop)(void *user),
                                void *user, struct tokmap_error *error)
{
    for (uint64_t waited = 0; waited < TASK_WATCH_NS; waited += TASK_WATCH_NS / 50) {
        struct task_status now;
        if (stop && stop(user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        os_sleep_ns(TASK_WATCH_NS / 50);
        if (path_load(claim->path, &now) && is_at_work(&now) &&
            (now.counter != before->counter || !is_same(&now, before)))
            return taken(&now, claim->path, error);
    }
    return TOKMAP_OK;
}

/* Opens the file, and makes sure that no other process has it. */
static enum tokmap_status file_take(struct task_claim *claim, bool (*stop)(void *user), void *user,
                                    struct tokmap_error *error)
{
    struct task_status before;
    int system = os_open(claim->path, OS_WRITE_OPEN, &claim->fd);
    if (system) {
        claim->fd = -1;
        return error_set_system(error, system, claim->path, TOKMAP_NO_OFFSET, "the status of the task cannot be made");
    }
    system = EWOULDBLOCK;
    for (int i = 0; i < TRIES && system == EWOULDBLOCK; i++) {
        if (i)
            os_sleep_ns(TRY_NS);
        system = os_lock(claim->fd);
    }
    const bool known = status_load(claim->fd, &before);
    if (known)
        claim->own.counter = before.counter;
    if (system == EWOULDBLOCK) {
        before = known ? before : claim->own;
        if (!known)
            before.process = 0;
        return taken(&before, claim->path, error);
    }
    if (!known || !is_at_work(&before) || (!system && !strcmp(before.host, claim->own.host)))
        return TOKMAP_OK;
    return watch(claim, &before, stop, user, error);
}

enum tokmap_status task_claim_take(struct task_claim **claim, const char *folder, uint64_t task, uint64_t tasks,
                                   bool (*stop)(void *user), void *user, struct tokmap_error *error)
{
    char text[TASK_STATUS_BYTES];
    assert(task < tasks && tasks <= TASKS_MOST);
    struct task_claim *made = *claim = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the status of a task", 0);
    made->fd = -1;
    made->path = status_path(folder, task, tasks);
    made->started_ns = os_clock_ns();
    made->own = (struct task_status){.task = task, .tasks = tasks, .process = os_process_id()};
    os_host_name(made->own.host, sizeof made->own.host);
    made->own.host[strcspn(made->own.host, "\n")] = '\0';
    if (os_random(&made->own.nonce, sizeof made->own.nonce))
        made->own.nonce = made->started_ns;
    enum tokmap_status status = made->path && !os_mutex_new(&made->mutex) && !os_condition_new(&made->wake)
                                    ? file_take(made, stop, user, error)
                                    : error_set_memory(error, "the status of a task", 0);
    const bool ours = !status;
    if (!status) {
        made->own.counter++;
        task_status_write(&made->own, text);
        int system = os_pwrite(made->fd, text, sizeof text, 0);
        if (!system)
            system = os_thread_start(&made->thread, "tokmap-status", beats, made);
        if (system)
            status = error_set_system(error, system, made->path, TOKMAP_NO_OFFSET,
                                      "the status of the task cannot be written");
    }
    if (status) {
        made->lost = !ours; /* the file belongs to another process */
        task_claim_end(made, TASK_FAILED);
        *claim = NULL;
    }
    return status;
}

void task_claim_report(struct task_claim *claim, const struct task_work *work)
{
    os_mutex_lock(claim->mutex);
    const bool is_new = claim->own.work.stage != work->stage;
    if (is_new)
        claim->started_ns = os_clock_ns();
    claim->own.work = *work;
    if (is_new)
        beat(claim);
    os_mutex_unlock(claim->mutex);
}

void task_claim_wait(struct task_claim *claim, bool waits)
{
    os_mutex_lock(claim->mutex);
    claim->own.state = waits ? TASK_WAITING : TASK_WORKING;
    beat(claim);
    os_mutex_unlock(claim->mutex);
}

bool task_claim_lost(const struct task_claim *claim)
{
    os_mutex_lock(claim->mutex);
    const bool lost = claim->lost;
    os_mutex_unlock(claim->mutex);
    return lost;
}

enum tokmap_status task_claim_lost_error(const struct task_claim *claim, struct tokmap_error *error)
{
    assert(claim->lost);
    return taken(&claim->other, claim->path, error);
}

void task_claim_end(struct task_claim *claim, enum task_state state)
{
    assert(state == TASK_DONE || state == TASK_FAILED || state == TASK_AGAIN);
    if (!claim)
        return;
    if (claim->thread) {
        os_mutex_lock(claim->mutex);
        claim->ending = true;
        claim->own.state = state;
        beat(claim);
        os_condition_signal(claim->wake);
        os_mutex_unlock(claim->mutex);
        os_thread_join(claim->thread);
    }
    os_close(claim->fd);
    os_condition_free(claim->wake);
    os_mutex_free(claim->mutex);
    free(claim->path);
    free(claim);
}

/* ---- all tasks ---- */

/* A task for which only the counter says whether a process is there. */
struct task_seen {
    uint64_t task, tasks, counter, nonce, moved_ns;
};

struct listing {
    const char *folder;
    struct task_status *list;
    size_t count, capacity;
    bool lost; /* true if there was not enough memory */
};

/* Returns 1 if a process has the file, 0 if none has it, and -1 if that is unknown. */
static int is_held(const char *path, const struct task_status *status)
{
    char host[TASK_HOST_MOST];
    int fd;
    os_host_name(host, sizeof host);
    if (os_open(path, OS_READ_NOW, &fd))
        return 0;
    const int system = os_lock_shared(fd);
    os_close(fd);
    if (system == EWOULDBLOCK)
        return 1;
    return !system && !strcmp(host, status->host) ? 0 : -1;
}

/* Reads a file, and finds out whether a process has it. */
static bool status_look(const char *path, struct task_status *status)
{
    if (!path || !path_load(path, status))
        return false;
    const int held = is_at_work(status) ? is_held(path, status) : 0;
    status->moving = held > 0;
    status->unsure = held < 0;
    return true;
}

static int entry_take(void *user, const char *entry)
{
    struct listing *listing = user;
    struct task_status status;
    if (!task_status_is_name(entry))
        return 0;
    char *path = path_in(listing->folder, entry);
    const bool good = status_look(path, &status);
    listing->lost = listing->lost || !path;
    free(path);
    if (!good)
        return 0;
    if (listing->lost || !list_room(&listing->list, listing->count, &listing->capacity, sizeof *listing->list)) {
        listing->lost = true;
        return -1;
    }
    listing->list[listing->count++] = status;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct task_status *one = a, *other = b;
    if (one->tasks != other->tasks)
        return one->tasks < other->tasks ? -1 : 1;
    return one->task < other->task ? -1 : one->task > other->task;
}

/* Finds out whether counters move, for tasks about which no lock says whether a process is there. */
static void counters_watch(struct listing *listing)
{
    bool any = false;
    for (size_t i = 0; i < listing->count; i++)
        any = any || listing->list[i].unsure;
    if (any)
        os_sleep_ns(TASK_WATCH_NS);
    for (size_t i = 0; i < listing->count && any; i++) {
        struct task_status *task = &listing->list[i], now;
        char *path = task->unsure ? status_path(listing->folder, task->task, task->tasks) : NULL;
        if (path && path_load(path, &now)) {
            const bool moves = now.counter != task->counter && is_at_work(&now);
            *task = now;
            task->moving = moves;
        }
        free(path);
    }
}

enum tokmap_status task_status_list(const char *folder, bool watched, struct task_status **list, size_t *count,
                                    struct tokmap_error *error)
{
    struct listing listing = {.folder = folder};
    const int system = os_folder_list(folder, entry_take, &listing);
    enum tokmap_status status = TOKMAP_OK;
    if (listing.lost)
        status = error_set_memory(error, "the list of tasks", 0);
    else if (system > 0)
        status =
            error_set_system(error, system, folder, TOKMAP_NO_OFFSET, "the folder of unfinished work cannot be read");
    if (!status && watched)
        counters_watch(&listing);
    if (!status && listing.count)
        qsort(listing.list, listing.count, sizeof *listing.list, compare);
    *list = status ? NULL : listing.list;
    *count = status ? 0 : listing.count;
    if (status)
        free(listing.list);
    return status;
}

/* ---- waiting for any task ---- */

/* Returns true if the counter of a task that no lock says anything about has moved lately. */
static bool counter_moved(struct task_watch *watch, const struct task_status *task)
{
    const uint64_t now = os_clock_ns();
    struct task_seen *seen = NULL;
    for (size_t i = 0; i < watch->count && !seen; i++)
        if (watch->seen[i].task == task->task && watch->seen[i].tasks == task->tasks)
            seen = &watch->seen[i];
    if (!seen) {
        struct task_seen *grown = realloc(watch->seen, (watch->count + 1) * sizeof *grown);
        if (!grown)
            return true;
        watch->seen = grown;
        seen = &grown[watch->count++];
        *seen = (struct task_seen){task->task, task->tasks, task->counter, task->nonce, now};
    }
    if (seen->counter != task->counter || seen->nonce != task->nonce)
        *seen = (struct task_seen){task->task, task->tasks, task->counter, task->nonce, now};
    return now - seen->moved_ns < TASK_WATCH_NS;
}

static enum task_others other_state(struct task_watch *watch, const struct task_status *task, uint64_t own,
                                    enum task_stage stage)
{
    if (task->task == own || !is_at_work(task) || !(task->moving || (task->unsure && counter_moved(watch, task))))
        return TASK_OTHERS_NONE;
    return task->state == TASK_WORKING || task->work.stage != stage ? TASK_OTHERS_WORK
           : task->task < own                                       ? TASK_OTHERS_WAIT
                                                                    : TASK_OTHERS_NONE;
}

/* Reads the file of one task. */
static bool status_again(const char *folder, struct task_status *task)
{
    char *path = status_path(folder, task->task, task->tasks);
    const bool good = status_look(path, task);
    free(path);
    return good;
}

enum task_others task_watch_look(struct task_watch *watch, const char *folder, uint64_t own, enum task_stage stage)
{
    struct task_status *list;
    struct tokmap_error unused;
    size_t count;
    enum task_others others = TASK_OTHERS_NONE;
    if (watch->found.tasks && status_again(folder, &watch->found) &&
        other_state(watch, &watch->found, own, stage) == TASK_OTHERS_WORK)
        return TASK_OTHERS_WORK;
    watch->found.tasks = 0;
    if (task_status_list(folder, false, &list, &count, &unused))
        return TASK_OTHERS_NONE;
    for (size_t i = 0; i < count; i++) {
        const enum task_others state = other_state(watch, &list[i], own, stage);
        if (state == TASK_OTHERS_WORK)
            watch->found = list[i];
        others = state > others ? state : others;
    }
    free(list);
    return others;
}

void task_watch_free(struct task_watch *watch)
{
    free(watch->seen);
    *watch = (struct task_watch){.count = 0};
}

/* Returns true if a process has locked a file. The path is freed. A shared lock is tried: it does not keep other
 * processes from looking at the same time. Without memory nothing is said to be locked; what follows fails for the same
 * reason. */
static bool is_locked(char *path)
{
    int fd, system = path ? os_open(path, OS_READ_NOW, &fd) : ENOMEM;
    if (!system) {
        system = os_lock_shared(fd);
        os_close(fd);
    }
    free(path);
    return system == EWOULDBLOCK;
}

bool work_is_locked(const char *name)
{
    return is_locked(path_ended(name, ".partial")) || is_locked(shard_file_path(name, SHARD_INDEX, SHARD_PARTIAL));
}

enum tokmap_status work_locked_error(const char *name, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_BUSY, name, TOKMAP_NO_OFFSET,
                     "another process is writing this output; wait for it, or choose another name");
}

/* Looks for a task at work. watched: where no lock says whether there is one, its counter is watched. */
static enum tokmap_status tasks_check(const char *folder, bool watched, struct tokmap_error *error)
{
    struct task_status *list = NULL;
    size_t count = 0;
    enum tokmap_status status = task_status_list(folder, watched, &list, &count, error);
    if (status == TOKMAP_ERROR_NOT_FOUND) /* the folder is gone */
        return TOKMAP_OK;
    for (size_t i = 0; i < count && !status; i++)
        if (list[i].moving)
            status = error_set(error, TOKMAP_ERROR_BUSY, folder, TOKMAP_NO_OFFSET,
                               "process %" PRIu64 " on host %s is at work here, as task %" PRIu64 " of %" PRIu64
                               "; wait for it, or choose another name",
                               list[i].process, *list[i].host ? list[i].host : "?", list[i].task, list[i].tasks);
    free(list);
    return status;
}

enum tokmap_status work_idle_check(const char *name, const char *folder, struct tokmap_error *error)
{
    enum tokmap_status status = tasks_check(folder, true, error);
    if (!status && (is_locked(path_in(folder, "journal")) || is_locked(path_in(folder, "journal.new"))))
        status = work_locked_error(name, error);
    return status ? status : tasks_check(folder, false, error); /* of tasks that began while others were watched */
}
