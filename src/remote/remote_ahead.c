/* SPDX-License-Identifier: MIT */
/*
 * remote_ahead.c - see remote_ahead.h. One mutex guards the files, their pieces, and the bytes that are held. A thread
 * fetches without it, into the memory of a piece that nothing else uses meanwhile.
 */
#include "remote_ahead.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "remote_range.h"

#define THREADS_LEAST 4
#define THREADS_MOST 32 /* so many small pieces are under way */
#define SPARES_MOST (AHEAD_HELD / AHEAD_PIECE)
#define LOOK_NS ((uint64_t)100 * 1000000) /* between two calls of stop() */

enum piece_state { PIECE_PLANNED, PIECE_FETCHED_NOW, PIECE_HERE, PIECE_FAILED, PIECE_GONE };

struct piece {
    uint64_t offset, bytes;
    uint8_t *memory;
    struct tokmap_error *failure;
    uint32_t parts_left; /* that have not been read to their end */
    uint32_t state;
};

struct ahead_file {
    struct remote_ahead *ahead;
    struct ahead_file *next; /* that was opened after it */
    char *name;
    uint64_t bytes, tail_at;
    struct bytes_buffer tail; /* the bytes from tail_at on */
    struct remote_version version;
    bool grows;             /* the tail grows by what is read before it is planned */
    bool kept;              /* the tail and the version were known before */
    struct fetcher *reader; /* requests of the thread that has the file */
    struct ahead_part *parts;
    uint64_t part_count;
    struct piece *pieces;
    uint32_t piece_count, first_planned, running;
    struct piece *awaited;
    bool closing; /* accessed atomically */
};

/* Who sends requests: a thread, or the reader of a file. */
struct fetcher {
    struct remote_ahead *ahead;
    struct remote_client client;
    struct ahead_file *file; /* whose closing ends the request, or NULL */
    struct fetcher *next;    /* that is spare */
    struct os_thread *thread;
};

struct remote_ahead {
    bool (*stop)(void *user);
    void *user;
    const struct remote_watch *watch;
    struct os_mutex *mutex;
    struct os_condition *changed;
    struct ahead_file *files;
    struct fetcher *spare; /* readers of files that were closed, with their connections */
    struct fetcher *threads[THREADS_MOST];
    uint32_t thread_count;
    uint64_t held;
    uint8_t *spares[SPARES_MOST]; /* of AHEAD_PIECE bytes */
    uint32_t spare_count;
    bool ends; /* accessed atomically */
};

static bool fetcher_stops(void *user)
{
    const struct fetcher *fetcher = user;
    const struct remote_ahead *ahead = fetcher->ahead;
    return __atomic_load_n(&ahead->ends, __ATOMIC_RELAXED) ||
           (fetcher->file && __atomic_load_n(&fetcher->file->closing, __ATOMIC_RELAXED)) ||
           (ahead->stop && ahead->stop(ahead->user));
}

static struct fetcher *fetcher_new(struct remote_ahead *ahead)
{
    struct fetcher *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->ahead = ahead;
    remote_client_init(&made->client, fetcher_stops, made, ahead->watch);
    return made;
}

static void fetcher_free(struct fetcher *fetcher)
{
    remote_client_free(&fetcher->client);
    free(fetcher);
}

enum tokmap_status remote_ahead_new(struct remote_ahead **ahead, bool (*stop)(void *user), void *user,
                                    const struct remote_watch *watch, struct tokmap_error *error)
{
    struct remote_ahead *made = *ahead = calloc(1, sizeof *made);
    if (made && !os_mutex_new(&made->mutex) && !os_condition_new(&made->changed)) {
        made->stop = stop;
        made->user = user;
        made->watch = watch;
        return TOKMAP_OK;
    }
    remote_ahead_free(made);
    *ahead = NULL;
    return error_set_memory(error, "the reader of URLs", sizeof *made);
}

void remote_ahead_stop(struct remote_ahead *ahead)
{
    __atomic_store_n(&ahead->ends, true, __ATOMIC_RELAXED);
}

void remote_ahead_free(struct remote_ahead *ahead)
{
    if (!ahead)
        return;
    assert(!ahead->files);
    remote_ahead_stop(ahead);
    if (ahead->mutex && ahead->changed) {
        os_mutex_lock(ahead->mutex);
        os_condition_broadcast(ahead->changed);
        os_mutex_unlock(ahead->mutex);
    }
    for (uint32_t i = 0; i < ahead->thread_count; i++) {
        os_thread_join(ahead->threads[i]->thread);
        fetcher_free(ahead->threads[i]);
    }
    for (struct fetcher *next; ahead->spare; ahead->spare = next) {
        next = ahead->spare->next;
        fetcher_free(ahead->spare);
    }
    for (uint32_t i = 0; i < ahead->spare_count; i++)
        free(ahead->spares[i]);
    os_condition_free(ahead->changed);
    os_mutex_free(ahead->mutex);
    free(ahead);
}

/* ---- pieces: the mutex is locked ---- */

static void piece_memory_take(struct remote_ahead *ahead, struct piece *piece)
{
    const bool large = 2 * piece->bytes > AHEAD_PIECE;
    if (large && ahead->spare_count)
        piece->memory = ahead->spares[--ahead->spare_count];
    else
        piece->memory = malloc(large ? AHEAD_PIECE : piece->bytes);
    ahead->held += piece->memory ? piece->bytes : 0;
}

static void piece_memory_free(struct remote_ahead *ahead, struct piece *piece)
{
    if (!piece->memory)
        return;
    ahead->held -= piece->bytes;
    if (2 * piece->bytes > AHEAD_PIECE && ahead->spare_count < SPARES_MOST)
        ahead->spares[ahead->spare_count++] = piece->memory;
    else
        free(piece->memory);
    piece->memory = NULL;
}

static void piece_end(struct remote_ahead *ahead, struct piece *piece)
{
    piece_memory_free(ahead, piece);
    free(piece->failure);
    piece->failure = NULL;
    piece->state = PIECE_GONE;
    os_condition_broadcast(ahead->changed);
}

/* Chooses what is fetched next: what a reader waits for, or else the first piece that was planned. */
static struct piece *piece_choose(struct remote_ahead *ahead, struct ahead_file **of)
{
    for (*of = ahead->files; *of; *of = (*of)->next)
        if ((*of)->awaited && (*of)->awaited->state == PIECE_PLANNED)
            return (*of)->awaited;
    for (*of = ahead->files; *of; *of = (*of)->next) {
        struct ahead_file *file = *of;
        while (file->first_planned < file->piece_count && file->pieces[file->first_planned].state != PIECE_PLANNED)
            file->first_planned++;
        if (file->first_planned == file->piece_count)
            continue;
        struct piece *piece = &file->pieces[file->first_planned];
        return !ahead->held || ahead->held + piece->bytes <= AHEAD_HELD ? piece : NULL;
    }
    return NULL;
}

static enum tokmap_status range_read(struct ahead_file *file, struct remote_client *client, uint8_t *into,
                                     uint64_t first, uint64_t count, struct tokmap_error *error)
{
    struct remote_range range = {
        .first = first, .count = count, .total = file->bytes, .into = into, .version = &file->version, .known = true};
    const enum tokmap_status status = remote_range_read(client, file->name, &range, error);
    return status != TOKMAP_ERROR_MISMATCH || !file->kept
               ? status
               : error_set(error, status, file->name, TOKMAP_NO_OFFSET,
                           "the file was replaced since this work began; bring the old one back, or remove the folder "
                           "of the work while no task runs, and run all tasks again; without tasks, start over with "
                           "--no-resume");
}

/* Fetches a piece. The mutex is not locked meanwhile. */
static void piece_fetch(struct fetcher *fetcher, struct ahead_file *file, struct piece *piece)
{
    struct remote_ahead *ahead = fetcher->ahead;
    struct tokmap_error why = {0};
    enum tokmap_status status = TOKMAP_ERROR_MEMORY;
    piece->state = PIECE_FETCHED_NOW;
    file->running++;
    fetcher->file = file;
    piece_memory_take(ahead, piece);
    os_mutex_unlock(ahead->mutex);
    if (piece->memory)
        status = range_read(file, &fetcher->client, piece->memory, piece->offset, piece->bytes, &why);
    else
        (void)error_set_memory(&why, "bytes that are fetched ahead", piece->bytes);
    struct tokmap_error *failure = status ? malloc(sizeof *failure) : NULL;
    if (failure)
        *failure = why;
    os_mutex_lock(ahead->mutex);
    piece->failure = failure;
    piece->state = status ? PIECE_FAILED : PIECE_HERE;
    if (status)
        piece_memory_free(ahead, piece);
    fetcher->file = NULL;
    file->running--;
    os_condition_broadcast(ahead->changed);
}

static void fetch_thread(void *user)
{
    struct fetcher *fetcher = user;
    struct remote_ahead *ahead = fetcher->ahead;
    struct ahead_file *file;
    os_mutex_lock(ahead->mutex);
    while (!__atomic_load_n(&ahead->ends, __ATOMIC_RELAXED)) {
        struct piece *piece = piece_choose(ahead, &file);
        if (piece)
            piece_fetch(fetcher, file, piece);
        else
            os_condition_wait(ahead->changed, ahead->mutex);
    }
    os_mutex_unlock(ahead->mutex);
}

static void threads_start(struct remote_ahead *ahead, uint32_t wanted)
{
    while (ahead->thread_count < wanted) {
        struct fetcher *fetcher = fetcher_new(ahead);
        if (!fetcher || os_thread_start(&fetcher->thread, "tokmap-fetch", fetch_thread, fetcher)) {
            free(fetcher);
            return;
        }
        ahead->threads[ahead->thread_count++] = fetcher;
    }
}

/* ---- open and close ---- */

#define WHOLE_SENT "answers with the whole file"

static enum tokmap_status unfit(const struct remote_client *client, const char *why, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, client->shown, TOKMAP_NO_OFFSET,
                     "this format is read by ranges of bytes, and the server %s; use a server that does, or download "
                     "the file and name that",
                     why);
}

/* Judges the answer to the first request, which asked for the tail, or for all if *whole, which it sets if that must be
 * asked for. *again: another request is needed. */
static enum tokmap_status first_judge(struct ahead_file *file, const struct http_answer *answer, bool *whole,
                                      bool *again, struct tokmap_error *error)
{
    const struct remote_client *client = &file->reader->client;
    const bool tail = answer->status == 206 && answer->has_range && answer->range_total != UINT64_MAX &&
                      answer->range_last == answer->range_total - 1 &&
                      answer->range_last - answer->range_first < AHEAD_TAIL;
    *again = false;
    remote_version_take(&file->version, answer);
    if (tail && remote_version_number(&file->version)) {
        file->bytes = answer->range_total;
        file->tail_at = answer->range_first;
        return TOKMAP_OK;
    }
    /* A range that is larger than the file is refused by some servers. */
    if (!*whole && (answer->status == 416 || answer->status == 206)) {
        *again = *whole = true;
        return tail && answer->range_total > AHEAD_WHOLE
                   ? unfit(client, "names no version of the file (an ETag that is not weak, or Last-Modified)", error)
                   : TOKMAP_OK;
    }
    if (answer->status != 200)
        return remote_client_refused(client, answer, error);
    if (answer->length == UINT64_MAX || answer->length > AHEAD_WHOLE)
        return unfit(client, WHOLE_SENT, error);
    file->bytes = answer->length;
    file->tail_at = 0;
    return TOKMAP_OK;
}

static enum tokmap_status first_fetch(struct ahead_file *file, struct tokmap_error *error)
{
    struct remote_client *client = &file->reader->client;
    struct http_answer answer;
    bool whole = false, again = true;
    enum tokmap_status status = remote_client_name(client, file->name, NULL, false, error);
    while (again && !status) {
        const struct remote_ask ask = {.ranged = !whole, .first = UINT64_MAX, .last = AHEAD_TAIL};
        file->tail.count = 0;
        status = remote_client_fetch(client, &ask, AHEAD_WHOLE, &file->tail, &answer, error);
        if (status == TOKMAP_ERROR_LIMIT)
            status = unfit(client, WHOLE_SENT, error);
        else if (!status)
            status = first_judge(file, &answer, &whole, &again, error);
        if (!status && !again && (again = file->tail.count != file->bytes - file->tail_at))
            status =
                remote_client_failed(client, "the server sent another number of bytes than it announced", 0, error);
    }
    const struct remote_watch *watch = client->watch;
    if (!status && watch && watch->unversioned && !remote_version_number(&file->version))
        watch->unversioned(watch->user, client->shown);
    remote_client_close(client);
    return status;
}

/* What is kept of a file, before its tail. */
struct kept {
    uint64_t bytes, tail_at;
    struct remote_version version;
};

/* Takes what was kept. Returns false if there is nothing. */
static bool kept_take(struct ahead_file *file, const struct bytes_buffer *from)
{
    struct kept kept;
    if (!from || from->count < sizeof kept)
        return false;
    const uint64_t tail = from->count - sizeof kept;
    memcpy(&kept, from->bytes, sizeof kept);
    if (kept.bytes < tail || kept.tail_at != kept.bytes - tail ||
        !bytes_append(&file->tail, from->bytes + sizeof kept, tail))
        return false;
    file->bytes = kept.bytes;
    file->tail_at = kept.tail_at;
    file->version = kept.version;
    return true;
}

bool ahead_file_keep(const struct ahead_file *file, struct bytes_buffer *into)
{
    const struct kept kept = {file->bytes, file->tail_at, file->version};
    return !file->kept && file->tail_at && bytes_append(into, &kept, sizeof kept) &&
           bytes_append(into, file->tail.bytes, file->tail.count);
}

enum tokmap_status ahead_file_open(struct ahead_file **file, struct remote_ahead *ahead, const char *name,
                                   const struct bytes_buffer *kept, struct tokmap_error *error)
{
    struct ahead_file *made = *file = calloc(1, sizeof *made);
    if (!made || !(made->name = strdup(name))) {
        free(made);
        *file = NULL;
        return error_set_memory(error, "the reader of URLs", sizeof *made);
    }
    made->ahead = ahead;
    made->grows = kept != NULL;
    made->kept = kept_take(made, kept);
    os_mutex_lock(ahead->mutex);
    made->reader = ahead->spare;
    if (made->reader)
        ahead->spare = made->reader->next;
    struct ahead_file **last = &ahead->files;
    while (*last)
        last = &(*last)->next;
    *last = made;
    os_mutex_unlock(ahead->mutex);
    if (!made->reader)
        made->reader = fetcher_new(ahead);
    const enum tokmap_status status = !made->reader
                                          ? error_set_memory(error, "the reader of URLs", sizeof *made->reader)
                                      : made->kept ? TOKMAP_OK
                                                   : first_fetch(made, error);
    if (status) {
        ahead_file_close(made);
        *file = NULL;
    }
    return status;
}

void ahead_file_close(struct ahead_file *file)
{
    if (!file)
        return;
    struct remote_ahead *ahead = file->ahead;
    __atomic_store_n(&file->closing, true, __ATOMIC_RELAXED);
    os_mutex_lock(ahead->mutex);
    struct ahead_file **link = &ahead->files;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    while (file->running)
        os_condition_wait(ahead->changed, ahead->mutex);
    for (uint32_t i = 0; i < file->piece_count; i++)
        piece_end(ahead, &file->pieces[i]);
    if (file->reader) {
        file->reader->next = ahead->spare;
        ahead->spare = file->reader;
    }
    os_condition_broadcast(ahead->changed);
    os_mutex_unlock(ahead->mutex);
    bytes_free(&file->tail);
    free(file->pieces);
    free(file->parts);
    free(file->name);
    free(file);
}

void ahead_file_about(const struct ahead_file *file, uint64_t *bytes, uint64_t *version)
{
    *bytes = file->bytes;
    *version = remote_version_number(&file->version);
}

void ahead_file_plan(struct ahead_file *file, struct ahead_part *parts, uint64_t count, uint32_t pieces)
{
    struct remote_ahead *ahead = file->ahead;
    struct piece *made = file->tail_at && pieces ? calloc(pieces, sizeof *made) : NULL;
    assert(!file->parts);
    if (!made) {
        free(parts);
        return;
    }
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct piece *piece = &made[parts[i].piece];
        if (parts[i].offset >= file->tail_at)
            continue;
        parts[i].bytes = min64(parts[i].bytes, file->tail_at - parts[i].offset);
        const uint64_t end = parts[i].offset + parts[i].bytes;
        bytes += parts[i].bytes;
        if (!piece->parts_left++)
            piece->offset = parts[i].offset;
        piece->bytes = end - piece->offset;
        assert(piece->bytes <= AHEAD_PIECE);
    }
    for (uint32_t i = 0; i < pieces; i++)
        made[i].state = made[i].parts_left ? PIECE_PLANNED : PIECE_GONE;
    const uint64_t useful = AHEAD_HELD / max64(bytes / pieces, 1);
    os_mutex_lock(ahead->mutex);
    file->parts = parts;
    file->part_count = count;
    file->pieces = made;
    file->piece_count = pieces;
    threads_start(ahead, (uint32_t)min64(min64(max64(useful, THREADS_LEAST), THREADS_MOST), pieces));
    os_condition_broadcast(ahead->changed);
    os_mutex_unlock(ahead->mutex);
}

/* ---- reading ---- */

/* Returns the index of the first part that ends behind a byte. */
static uint64_t part_find(const struct ahead_file *file, uint64_t offset)
{
    uint64_t low = 0, high = file->part_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (file->parts[middle].offset + file->parts[middle].bytes <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Waits for a piece. *gone: it has been read before, or nobody fetches it. */
static enum tokmap_status piece_await(struct ahead_file *file, struct piece *piece, bool *gone,
                                      struct tokmap_error *error)
{
    struct remote_ahead *ahead = file->ahead;
    enum tokmap_status status = TOKMAP_OK;
    os_mutex_lock(ahead->mutex);
    file->awaited = piece;
    if (piece->state == PIECE_PLANNED)
        os_condition_broadcast(ahead->changed);
    while (piece->state < PIECE_HERE && ahead->thread_count && !status)
        if (!os_condition_wait_for(ahead->changed, ahead->mutex, LOOK_NS) && ahead->stop && ahead->stop(ahead->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    file->awaited = NULL;
    *gone = piece->state == PIECE_GONE || piece->state == PIECE_PLANNED;
    if (piece->state == PIECE_FAILED) {
        status = piece->failure ? piece->failure->status : TOKMAP_ERROR_MEMORY;
        if (error && piece->failure)
            *error = *piece->failure;
        else
            (void)error_set_memory(error, "bytes that are fetched ahead", piece->bytes);
    }
    os_mutex_unlock(ahead->mutex);
    return status;
}

static enum tokmap_status read_now(struct ahead_file *file, uint8_t *into, uint64_t offset, uint64_t count,
                                   struct tokmap_error *error)
{
    return range_read(file, &file->reader->client, into, offset, count, error);
}

/* Reads the bytes from `offset` to the tail, which become part of it. */
static enum tokmap_status tail_grow(struct ahead_file *file, uint64_t offset, struct tokmap_error *error)
{
    struct bytes_buffer *tail = &file->tail;
    const uint64_t more = file->tail_at - offset;
    if (!bytes_reserve(tail, more))
        return error_set_memory(error, "the end of a file", more);
    memmove(tail->bytes + more, tail->bytes, tail->count);
    const enum tokmap_status status = read_now(file, tail->bytes, offset, more, error);
    if (status) {
        memmove(tail->bytes, tail->bytes + more, tail->count);
        return status;
    }
    tail->count += more;
    file->tail_at = offset;
    return TOKMAP_OK;
}

/* Reads from the part that has the first byte, as far as it goes. *some: the bytes. */
static enum tokmap_status part_read(struct ahead_file *file, struct ahead_part *part, uint8_t *into, uint64_t offset,
                                    uint64_t *some, struct tokmap_error *error)
{
    struct piece *piece = &file->pieces[part->piece];
    const uint64_t end = part->offset + part->bytes;
    bool gone;
    *some = min64(*some, end - offset);
    const enum tokmap_status status = piece_await(file, piece, &gone, error);
    if (status)
        return status;
    if (gone)
        return read_now(file, into, offset, *some, error);
    memcpy(into, piece->memory + (offset - piece->offset), *some);
    if (offset + *some < end || part->read)
        return TOKMAP_OK;
    part->read = true;
    os_mutex_lock(file->ahead->mutex);
    if (!--piece->parts_left)
        piece_end(file->ahead, piece);
    os_mutex_unlock(file->ahead->mutex);
    return TOKMAP_OK;
}

enum tokmap_status ahead_file_read(struct ahead_file *file, void *into, uint64_t offset, size_t count,
                                   struct tokmap_error *error)
{
    uint8_t *at = into;
    enum tokmap_status status = TOKMAP_OK;
    assert(offset <= file->bytes && count <= file->bytes - offset);
    if (file->grows && !file->parts && offset < file->tail_at && count >= file->tail_at - offset &&
        count <= AHEAD_WHOLE)
        status = tail_grow(file, offset, error);
    while (count && !status) {
        uint64_t some = count;
        const uint64_t index = part_find(file, offset);
        struct ahead_part *part = index < file->part_count ? &file->parts[index] : NULL;
        if (offset >= file->tail_at) {
            memcpy(at, file->tail.bytes + (offset - file->tail_at), count);
        } else if (part && part->offset <= offset) {
            status = part_read(file, part, at, offset, &some, error);
        } else {
            some = min64(some, (part ? min64(part->offset, file->tail_at) : file->tail_at) - offset);
            status = read_now(file, at, offset, some, error);
        }
        at += some;
        offset += some;
        count -= some;
    }
    return status;
}
