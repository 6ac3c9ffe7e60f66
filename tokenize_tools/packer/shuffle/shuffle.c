/* SPDX-License-Identifier: MIT */
/*
 * shuffle.c - see shuffle.h.
 *
 * First pass: each document becomes a record (shuffle_chunks.h). shuffle_chunks.h sorts and stores them. A document
 * that comes in parts waits in `open` until it ends; if it becomes longer than a record, what there is of it, and all
 * that follows, goes to the file of long documents, and its record says where. Second pass: shuffle_merge.h gives the
 * records in order, and shuffle_hand.h makes a run of one document for its shard set of each.
 *
 * Example, with documents of 5, 700,000, and 3 tokens of 2 bytes: the records of the first and the third have 56 + 16
 * and 56 + 8 bytes. The second one has 1,400,000 bytes of tokens, which are in the file of long documents, and a record
 * of 56 + 24 bytes. In the second pass it is read in slabs of 256 KiB, and only its last slab ends the document.
 */
#include "shuffle.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bit_copy.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "shuffle_chunks.h"
#include "shuffle_hand.h"
#include "shuffle_merge.h"
#include "text/path.h"

#define SLAB_BYTES ((uint64_t)256 << 10) /* of a long document that is read again */
#define CHUNKS SHUFFLE_CHUNKS_NAME
#define LONG SHUFFLE_LONG_NAME

enum { SAVED_CHUNK, SAVED_PATHS, SAVED_PLACES }; /* kinds of increments */
#define PAYLOAD_MOST ((uint64_t)1 << 62)

/* The document that has not ended. */
struct open_document {
    bool begun;
    bool longer; /* its payload is in the file of long documents, from `at` on */
    uint64_t tokens, text_bytes;
    struct bytes_buffer payload; /* while it is short */
    uint64_t at;
};

struct shuffle {
    struct shuffle_options options;
    char *folder;
    struct shuffle_chunks chunks;
    struct open_document open;
    int long_fd; /* the file of long documents; -1: there is none yet */
    uint64_t long_bytes;
    struct hash_state *hash;
    uint64_t tokens, largest;
    /* The paths of the inputs, each with a zero byte: that of input i begins at path_begins[i]. */
    struct bytes_buffer paths, path_begins;

    /* Names of files: chunks-0 and so on, and long-0 for the long documents. */
    struct {
        bool placed;     /* it is decided whether they have names */
        char *folder;    /* NULL: they have none */
        bool unsynced;   /* a file is new in the folder */
        bool long_named; /* long-0 exists */
        uint64_t saved_chunks, saved_paths, synced_chunks, synced_long;
        struct bytes_buffer loaded; /* struct shuffle_chunk of a killed process */
    } named;

    /* The second pass. */
    struct {
        bool begun, finished;
        struct shuffle_merge *merge;
        struct shuffle_hand *hand;
        uint64_t done;              /* tokens that were handed over by a killed process */
        struct bytes_buffer places; /* of each chunk, where a killed process was in it */
    } second;
};

/* ---- files ---- */

static char *file_path(const struct shuffle *shuffle, const char *kind, uint64_t number)
{
    char name[48];
    (void)snprintf(name, sizeof name, "%s-%" PRIu64, kind, number);
    return path_in(shuffle->named.folder, name);
}

bool shuffle_is_name(const char *entry)
{
    static const char *const kinds[] = {CHUNKS "-", LONG "-"};
    for (size_t i = 0; i < 2; i++) {
        const char *rest = strncmp(entry, kinds[i], strlen(kinds[i])) != 0 ? "" : entry + strlen(kinds[i]);
        if (*rest && !rest[strspn(rest, "0123456789")])
            return true;
    }
    return false;
}

/* Decides, before the first file is made, whether files have names. */
static enum tokmap_status files_place(struct shuffle *shuffle, struct tokmap_error *error)
{
    const struct shuffle_options *options = &shuffle->options;
    const char *folder = NULL;
    if (shuffle->named.placed)
        return TOKMAP_OK;
    const enum tokmap_status status = options->place ? options->place(options->owner, &folder, error) : TOKMAP_OK;
    if (status)
        return status;
    shuffle->named.folder = folder ? strdup(folder) : NULL;
    if (folder && !shuffle->named.folder)
        return error_set_memory(error, "a path", 0);
    shuffle->named.placed = true;
    return TOKMAP_OK;
}

/* Opens a new file. */
static enum tokmap_status file_new(struct shuffle *shuffle, const char *kind, uint64_t number, int *fd,
                                   struct tokmap_error *error)
{
    const enum tokmap_status status = files_place(shuffle, error);
    if (status || !shuffle->named.folder)
        return status ? status : shuffle_file_unnamed(shuffle->folder, fd, error);
    char *path = file_path(shuffle, kind, number);
    if (!path)
        return error_set_memory(error, "a path", 0);
    (void)os_unlink(path); /* of a process that was killed before it saved its work */
    const int system = os_open(path, OS_WRITE_NEW, fd);
    if (system)
        *fd = -1;
    shuffle->named.unsynced = true;
    free(path);
    return system ? shuffle_file_failed(shuffle->named.folder, system, error) : TOKMAP_OK;
}

static enum tokmap_status chunks_open(void *self, uint32_t number, int *fd, struct tokmap_error *error)
{
    return file_new(self, CHUNKS, number, fd, error);
}

void shuffle_remove(struct shuffle *shuffle)
{
    for (uint64_t i = 0; shuffle->named.folder && i < shuffle->chunks.files + shuffle->named.long_named; i++) {
        char *path = i < shuffle->chunks.files ? file_path(shuffle, CHUNKS, i) : file_path(shuffle, LONG, 0);
        if (path)
            (void)os_unlink(path);
        free(path);
    }
}

struct sweep {
    const char *folder;
    bool removed; /* a file */
};

static int name_remove(void *user, const char *entry)
{
    struct sweep *sweep = user;
    char *path = shuffle_is_name(entry) ? path_in(sweep->folder, entry) : NULL;
    sweep->removed = (path && !os_unlink(path)) || sweep->removed;
    free(path);
    return 0;
}

enum tokmap_status shuffle_end(struct shuffle *shuffle, const char *folder, bool sync, struct tokmap_error *error)
{
    struct sweep sweep = {.folder = folder};
    shuffle_remove(shuffle);
    if (folder) /* one that is not there has no files */
        (void)os_folder_list(folder, name_remove, &sweep);
    const char *changed = shuffle->named.folder ? shuffle->named.folder : sweep.removed ? folder : NULL;
    if (!changed || !sync)
        return TOKMAP_OK;
    char *path = path_in(changed, CHUNKS);
    const int system = path ? os_sync_folder(path) : 0;
    const bool lacks_memory = !path;
    free(path);
    if (lacks_memory)
        return error_set_memory(error, "a path", 0);
    return system ? shuffle_file_failed(changed, system, error) : TOKMAP_OK;
}

enum tokmap_status shuffle_open(struct shuffle **shuffle, const struct shuffle_options *options,
                                struct tokmap_error *error)
{
    struct shuffle *made = *shuffle = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the shuffle", sizeof *made);
    assert(options->columns <= COLUMNS_MAX);
    made->options = *options;
    made->long_fd = -1;
    made->chunks.fd = -1;
    made->folder = strdup(options->folder);
    made->hash = hash_state_new();
    enum tokmap_status status =
        made->folder && made->hash
            ? shuffle_chunks_init(&made->chunks, options->seed,
                                  options->chunk_bytes ? options->chunk_bytes : SHUFFLE_CHUNK_BYTES, made->folder,
                                  error)
            : error_set_memory(error, "the shuffle", 0);
    if (status) {
        shuffle_free(made);
        *shuffle = NULL;
        return status;
    }
    made->chunks.open = chunks_open;
    made->chunks.self = made;
    made->chunks.own_thread = options->own_thread;
    made->chunks.sets = options->keyed ? options->sets : 0;
    return TOKMAP_OK;
}

void shuffle_free(struct shuffle *shuffle)
{
    if (!shuffle)
        return;
    shuffle_chunks_free(&shuffle->chunks);
    os_close(shuffle->long_fd);
    bytes_free(&shuffle->open.payload);
    bytes_free(&shuffle->paths);
    bytes_free(&shuffle->path_begins);
    bytes_free(&shuffle->named.loaded);
    bytes_free(&shuffle->second.places);
    shuffle_merge_close(shuffle->second.merge);
    shuffle_hand_free(shuffle->second.hand);
    hash_state_free(shuffle->hash);
    free(shuffle->named.folder);
    free(shuffle->folder);
    free(shuffle);
}

/* ---- the first pass ---- */

/* Keeps the path of an input. Inputs without documents before it get an empty one. */
static enum tokmap_status path_keep(struct shuffle *shuffle, uint64_t input, const char *path,
                                    struct tokmap_error *error)
{
    while (shuffle->path_begins.count / 8 <= input) {
        const bool own = shuffle->path_begins.count / 8 == input;
        const uint64_t begin = shuffle->paths.count;
        if (!bytes_append(&shuffle->path_begins, &begin, sizeof begin) ||
            !bytes_append(&shuffle->paths, own ? path : "", own ? strlen(path) + 1 : 1))
            return error_set_memory(error, "the paths of the inputs", shuffle->paths.count);
    }
    return TOKMAP_OK;
}

static enum tokmap_status long_append(struct shuffle *shuffle, const void *bytes, uint64_t count,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!count)
        return TOKMAP_OK;
    if (shuffle->long_fd < 0) {
        status = file_new(shuffle, LONG, 0, &shuffle->long_fd, error);
        shuffle->named.long_named = !status && shuffle->named.folder;
    }
    if (status)
        return status;
    hash_state_add(shuffle->hash, bytes, (size_t)count);
    return shuffle_file_append(shuffle->folder, shuffle->long_fd, &shuffle->long_bytes, bytes, count, error);
}

/* From now on the payload of the open document is in the file of long documents. */
static enum tokmap_status long_begin(struct shuffle *shuffle, struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    open->longer = true;
    open->at = shuffle->long_bytes;
    hash_state_reset(shuffle->hash);
    const enum tokmap_status status = long_append(shuffle, open->payload.bytes, open->payload.count, error);
    open->payload.count = 0;
    return status;
}

/* Adds bytes to the payload of the open document. */
static enum tokmap_status payload_add(struct shuffle *shuffle, const void *bytes, uint64_t count,
                                      struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    const uint64_t room = shuffle->chunks.record_most - sizeof(struct shuffle_head);
    if (!open->longer && count > room - open->payload.count) {
        const enum tokmap_status status = long_begin(shuffle, error);
        if (status)
            return status;
    }
    if (open->longer)
        return long_append(shuffle, bytes, count, error);
    return bytes_append(&open->payload, bytes, (size_t)count) ? TOKMAP_OK
                                                              : error_set_memory(error, "a document to shuffle", count);
}

static enum tokmap_status mask_add(struct shuffle *shuffle, const uint8_t *bits, uint64_t first, uint64_t count,
                                   struct tokmap_error *error)
{
    uint8_t copy[512];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; done < count && !status;) {
        const uint64_t part = min64(count - done, 8 * sizeof copy);
        copy[(part - 1) / 8] = 0;
        bit_copy(copy, 0, bits, first + done, part);
        status = payload_add(shuffle, copy, div_ceil(part, 8), error);
        done += part;
    }
    return status;
}

static enum tokmap_status values_add(struct shuffle *shuffle, const struct corpus_document *document,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t c = 0; c < shuffle->options.columns && !status; c++)
        status = payload_add(shuffle, &document->values[c].bytes, 8, error);
    for (uint32_t c = 0; c < shuffle->options.columns && !status; c++)
        if (document->values[c].bytes)
            status = payload_add(shuffle, document->values[c].json, document->values[c].bytes, error);
    return status;
}

/* Makes the record of a document whose payload is `bytes` bytes from `payload` on. */
static enum tokmap_status record_make(struct shuffle *shuffle, struct shuffle_head *head, const void *payload,
                                      uint64_t bytes, struct tokmap_error *error)
{
    head->bytes = (uint32_t)round_up(sizeof *head + bytes, 8);
    uint8_t *record = shuffle_chunks_room(&shuffle->chunks, head->bytes, error);
    if (!record)
        return error->status;
    memcpy(record, head, sizeof *head);
    if (bytes)
        memcpy(record + sizeof *head, payload, (size_t)bytes);
    memset(record + sizeof *head + bytes, 0, head->bytes - sizeof *head - bytes);
    shuffle_chunks_add(&shuffle->chunks, record);
    return TOKMAP_OK;
}

/* Ends the open document, whose payload is complete. */
static enum tokmap_status document_end(struct shuffle *shuffle, struct shuffle_head *head, struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    head->tokens = open->tokens;
    head->text_bytes = open->text_bytes;
    enum tokmap_status status;
    if (open->longer) {
        const struct shuffle_long where = {open->at, shuffle->long_bytes - open->at, hash_state_64(shuffle->hash)};
        head->set |= SHUFFLE_LONG;
        status = record_make(shuffle, head, &where, sizeof where, error);
    } else {
        status = record_make(shuffle, head, open->payload.bytes, open->payload.count, error);
    }
    open->payload.count = 0;
    open->begun = open->longer = false;
    open->tokens = open->text_bytes = 0;
    return status;
}

/* Adds tokens [at, end) of a run to the open document number `i` of the run. ends: they are its last ones. */
static enum tokmap_status part_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run, uint64_t i,
                                   uint64_t at, uint64_t end, bool ends, struct tokmap_error *error)
{
    const uint32_t width = shuffle->options.width;
    struct open_document *open = &shuffle->open;
    assert(end - at <= PAYLOAD_MOST / 8 && (!shuffle->options.mask || (ends && !open->begun)));
    open->begun = true;
    open->tokens += end - at;
    open->text_bytes += run->text_bytes[i];
    enum tokmap_status status = payload_add(shuffle, run->tokens + at * width, (end - at) * width, error);
    if (!status && shuffle->options.mask)
        status = mask_add(shuffle, run->mask, run->mask_first + at, end - at, error);
    if (status || !ends)
        return status;
    status = values_add(shuffle, &run->from[i], error);
    struct shuffle_head head = {.set = set,
                                .input = shuffle->options.first_input + run->input,
                                .position = run->from[i].position,
                                .record = run->from[i].record};
    return status ? status : document_end(shuffle, &head, error);
}

/* Adds a whole document, without a copy to the memory of the open one if it is nothing but tokens. */
static enum tokmap_status document_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run,
                                       uint64_t i, uint64_t at, uint64_t end, struct tokmap_error *error)
{
    const uint64_t bytes = (end - at) * shuffle->options.width;
    if (shuffle->open.begun || shuffle->options.mask || shuffle->options.columns ||
        bytes > shuffle->chunks.record_most - sizeof(struct shuffle_head))
        return part_add(shuffle, set, run, i, at, end, true, error);
    struct shuffle_head head = {.set = set,
                                .input = shuffle->options.first_input + run->input,
                                .position = run->from[i].position,
                                .record = run->from[i].record,
                                .text_bytes = run->text_bytes[i],
                                .tokens = end - at};
    return record_make(shuffle, &head, run->tokens + at * shuffle->options.width, bytes, error);
}

enum tokmap_status shuffle_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run,
                               struct tokmap_error *error)
{
    uint64_t at = 0;
    assert(run->unfinished || (run->documents && run->ends[run->documents - 1] == run->count));
    /* Whoever merges keyed chunks has the paths of all inputs. */
    enum tokmap_status status = shuffle->options.keyed ? TOKMAP_OK : path_keep(shuffle, run->input, run->path, error);
    for (uint64_t i = 0; i < run->documents && !status; at = run->ends[i++])
        status = document_add(shuffle, set, run, i, at, run->ends[i], error);
    if (!status && run->unfinished)
        status = part_add(shuffle, set, run, run->documents, at, run->count, false, error);
    shuffle->tokens += run->count;
    shuffle->largest = max64(shuffle->largest, run->largest);
    return status;
}

/* ---- the second pass ---- */

/* Lists where the paths begin, and where each chunk continues. */
static enum tokmap_status second_begin(struct shuffle *shuffle, const char ***paths, struct tokmap_error *error)
{
    const struct shuffle_options *options = &shuffle->options;
    const struct shuffle_hand_options hand = {.width = options->width,
                                              .columns = options->columns,
                                              .mask = options->mask,
                                              .folder = shuffle->folder,
                                              .largest = shuffle->largest,
                                              .tokens = shuffle->tokens,
                                              .stop = options->stop,
                                              .progress = options->progress,
                                              .user = options->user};
    const uint64_t inputs = shuffle->path_begins.count / 8;
    bool due;
    *paths = malloc((inputs + 1) * sizeof **paths);
    if (!*paths)
        return error_set_memory(error, "the paths of the inputs", inputs * sizeof **paths);
    for (uint64_t i = 0; i < inputs; i++)
        (*paths)[i] = (const char *)shuffle->paths.bytes + load64(shuffle->path_begins.bytes + 8 * i);
    enum tokmap_status status = TOKMAP_OK;
    if (shuffle->chunks.used > SHUFFLE_CHUNK_BYTES) { /* merging takes long enough to be continued */
        status = files_place(shuffle, error);
        if (!status && shuffle->named.folder)
            status = shuffle_chunks_write(&shuffle->chunks, error);
    }
    if (!status)
        status = shuffle_chunks_end(&shuffle->chunks, error);
    if (!status)
        status = shuffle_hand_new(&shuffle->second.hand, &hand, shuffle->second.done, error);
    if (!status)
        status = shuffle_hand_check(shuffle->second.hand, &due, error);
    if (!status)
        status = shuffle_merge_open(&shuffle->second.merge, &shuffle->chunks, error);
    shuffle->second.begun = !status;
    return status;
}

enum tokmap_status shuffle_finish(struct shuffle *shuffle, struct shard_set *const *sets, struct tokmap_error *error)
{
    const struct shuffle_options *options = &shuffle->options;
    const char **paths = NULL;
    struct shuffle_head head;
    const uint8_t *record;
    bool due = true;
    assert(!shuffle->open.begun);
    if (shuffle->second.finished)
        return TOKMAP_OK;
    enum tokmap_status status = second_begin(shuffle, &paths, error);
    const struct shuffle_source source = {.paths = paths,
                                          .inputs = shuffle->path_begins.count / 8,
                                          .long_fd = shuffle->long_fd,
                                          .long_bytes = shuffle->long_bytes};
    while (!status) {
        status = shuffle_hand_check(shuffle->second.hand, &due, error);
        if (!status && due && options->save)
            status = options->save(options->owner, error);
        if (!status)
            status = shuffle_merge_next(shuffle->second.merge, &head, &record, error);
        if (!status && (head.set & ~SHUFFLE_LONG) >= options->sets)
            status = shuffle_file_damaged(shuffle->folder, 0, error);
        if (!status)
            status = shuffle_hand_record(shuffle->second.hand, sets[head.set & ~SHUFFLE_LONG], &source, &head, record,
                                         error);
    }
    free(paths);
    shuffle->second.finished = status == TOKMAP_END;
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

enum tokmap_status shuffle_sort(struct shuffle *shuffle, bool sync, struct shuffle_sorted *sorted,
                                struct tokmap_error *error)
{
    assert(shuffle->options.keyed && !shuffle->open.begun);
    enum tokmap_status status = files_place(shuffle, error);
    assert(status || shuffle->named.folder);
    if (!status)
        status = shuffle_chunks_write(&shuffle->chunks, error);
    if (!status)
        status = shuffle_chunks_end(&shuffle->chunks, error);
    if (!status && sync)
        status = shuffle_sync(shuffle, error);
    *sorted = (struct shuffle_sorted){.chunks = shuffle->chunks.chunks,
                                      .count = shuffle->chunks.chunk_count,
                                      .files = shuffle->chunks.files,
                                      .long_bytes = shuffle->long_bytes};
    return status;
}

/* ---- saving ---- */

bool shuffle_can_save(const struct shuffle *shuffle)
{
    return (!shuffle->named.placed || shuffle->named.folder) &&
           (!shuffle->second.begun || shuffle->second.finished || shuffle->chunks.chunk_count);
}

/* Passes on the chunks that were written since the last call. */
static void chunks_save(struct shuffle *shuffle, struct state_sink *sink)
{
    for (; shuffle->named.saved_chunks < shuffle->chunks.chunk_count; shuffle->named.saved_chunks++) {
        struct shuffle_chunk saved = shuffle->chunks.chunks[shuffle->named.saved_chunks];
        saved.fd = 0;
        state_put(sink, SAVED_CHUNK, &saved, sizeof saved);
    }
}

enum tokmap_status shuffle_save(struct shuffle *shuffle, struct shuffle_state *state, struct state_sink *sink,
                                struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    enum tokmap_status status = TOKMAP_OK;
    assert(shuffle_can_save(shuffle));
    if (!shuffle->second.begun && !shuffle->second.finished)
        status = shuffle_chunks_write(&shuffle->chunks, error);
    if (!status && open->begun && !open->longer)
        status = long_begin(shuffle, error);
    if (status)
        return status;
    chunks_save(shuffle, sink);
    if (shuffle->named.saved_paths < shuffle->paths.count)
        state_put(sink, SAVED_PATHS, shuffle->paths.bytes + shuffle->named.saved_paths,
                  shuffle->paths.count - shuffle->named.saved_paths);
    shuffle->named.saved_paths = shuffle->paths.count;
    if (shuffle->second.begun && !shuffle->second.finished)
        shuffle_merge_save(shuffle->second.merge, SAVED_PLACES, sink);
    *state = (struct shuffle_state){.chunks = shuffle->chunks.chunk_count,
                                    .files = shuffle->chunks.files,
                                    .file_bytes = shuffle->chunks.file_bytes,
                                    .has_long = shuffle->long_fd >= 0,
                                    .long_bytes = shuffle->long_bytes,
                                    .path_bytes = shuffle->paths.count,
                                    .tokens = shuffle->tokens,
                                    .largest = shuffle->largest,
                                    .open = open->begun,
                                    .open_tokens = open->tokens,
                                    .open_text = open->text_bytes,
                                    .open_at = open->at,
                                    .merging = shuffle->second.begun,
                                    .finished = shuffle->second.finished,
                                    .done = shuffle->second.hand ? shuffle_hand_done(shuffle->second.hand)
                                                                 : shuffle->second.done};
    return TOKMAP_OK;
}

enum tokmap_status shuffle_sync(struct shuffle *shuffle, struct tokmap_error *error)
{
    const uint64_t chunks = shuffle->chunks.chunk_count;
    int system = 0, last = -1;
    /* The second pass begins with a last chunk. */
    if (!shuffle->named.folder ||
        (chunks == shuffle->named.synced_chunks && shuffle->long_bytes == shuffle->named.synced_long))
        return TOKMAP_OK;
    for (uint64_t i = shuffle->named.synced_chunks; i < chunks && !system; i++) {
        const int fd = shuffle->chunks.chunks[i].fd;
        system = fd != last ? os_sync(fd) : 0;
        last = fd;
    }
    if (!system && shuffle->long_fd >= 0)
        system = os_sync(shuffle->long_fd);
    char *path = shuffle->named.unsynced ? path_in(shuffle->named.folder, CHUNKS) : NULL;
    if (shuffle->named.unsynced && !path)
        return error_set_memory(error, "a path", 0);
    if (!system && path)
        system = os_sync_folder(path);
    shuffle->named.unsynced = shuffle->named.unsynced && system;
    free(path);
    if (!system) {
        shuffle->named.synced_chunks = chunks;
        shuffle->named.synced_long = shuffle->long_bytes;
    }
    return system ? shuffle_file_failed(shuffle->named.folder, system, error) : TOKMAP_OK;
}

/* ---- restoring ---- */

static enum tokmap_status damaged(const struct shuffle *shuffle, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, shuffle->named.folder ? shuffle->named.folder : shuffle->folder,
                     TOKMAP_NO_OFFSET, "the unfinished work of the shuffle is damaged; start over with --no-resume");
}

enum tokmap_status shuffle_load(struct shuffle *shuffle, uint32_t kind, const uint8_t *bytes, size_t count,
                                struct tokmap_error *error)
{
    int failed = 0;
    if (kind == SAVED_CHUNK && count == sizeof(struct shuffle_chunk))
        failed = bytes_append(&shuffle->named.loaded, bytes, count) ? 0 : ENOMEM;
    else if (kind == SAVED_PATHS)
        failed = bytes_append(&shuffle->paths, bytes, count) ? 0 : ENOMEM;
    else if (kind == SAVED_PLACES)
        failed = shuffle_places_load(&shuffle->second.places, bytes, count);
    else
        failed = EINVAL;
    return !failed            ? TOKMAP_OK
           : failed == ENOMEM ? error_set_memory(error, "the unfinished work of the shuffle", count)
                              : damaged(shuffle, error);
}

/* Opens a file that has at least so many bytes, and cuts it there. */
static enum tokmap_status file_reopen(const struct shuffle *shuffle, const char *kind, uint64_t number, uint64_t bytes,
                                      bool cut, int *fd, struct tokmap_error *error)
{
    struct os_stat found = {0};
    char *path = file_path(shuffle, kind, number);
    if (!path)
        return error_set_memory(error, "a path", 0);
    int system = partial_file_reopen(path, fd);
    if (!system)
        system = os_fstat(*fd, &found);
    const bool whole = !system && found.bytes >= bytes;
    if (whole && cut && found.bytes > bytes)
        system = os_truncate(*fd, bytes);
    free(path);
    if (*fd >= 0 && (system || !whole)) {
        os_close(*fd);
        *fd = -1;
    }
    if (system)
        return error_set_system(error, system, shuffle->named.folder, TOKMAP_NO_OFFSET,
                                "a file of the unfinished work of the shuffle, %s-%" PRIu64
                                ", cannot be opened; start over with --no-resume",
                                kind, number);
    return whole ? TOKMAP_OK : damaged(shuffle, error);
}

/* Takes the chunks, which follow each other in their files. */
static enum tokmap_status chunks_restore(struct shuffle *shuffle, const struct shuffle_state *state,
                                         struct tokmap_error *error)
{
    struct shuffle_chunks *chunks = &shuffle->chunks;
    enum tokmap_status status = TOKMAP_OK;
    struct shuffle_chunk last = {0};
    int fd = -1;
    if (shuffle->named.loaded.count != state->chunks * sizeof last || state->files > state->chunks)
        return damaged(shuffle, error);
    for (uint64_t i = 0; i < state->chunks && !status; i++) {
        struct shuffle_chunk saved;
        memcpy(&saved, shuffle->named.loaded.bytes + i * sizeof saved, sizeof saved);
        const bool next = !i || saved.file != last.file;
        if (saved.file != (i ? last.file + next : 0) || saved.begin != (next ? 0 : shuffle_chunk_after(&last)) ||
            saved.fd || saved.end < saved.begin || saved.file >= state->files || saved.keys > saved.end - saved.begin ||
            saved.end > UINT64_MAX / 64)
            return damaged(shuffle, error);
        last = saved;
        const bool newest = saved.file + 1 == state->files;
        if (next)
            status = file_reopen(shuffle, CHUNKS, saved.file, newest ? state->file_bytes : shuffle_chunk_after(&saved),
                                 newest, &fd, error);
        saved.fd = fd;
        if (!status && (status = shuffle_chunks_take(chunks, &saved, error)) && next)
            os_close(fd);
    }
    chunks->fd = status ? -1 : fd;
    chunks->files = (uint32_t)state->files;
    chunks->file_bytes = state->file_bytes;
    return status ||
                   (state->chunks && (shuffle_chunk_after(&last) != state->file_bytes || last.file + 1 != state->files))
               ? (status ? status : damaged(shuffle, error))
               : TOKMAP_OK;
}

/* Takes the file of long documents, and hashes what there is of the open one. */
static enum tokmap_status long_restore(struct shuffle *shuffle, const struct shuffle_state *state,
                                       struct tokmap_error *error)
{
    if (!state->has_long)
        return state->open || state->long_bytes ? damaged(shuffle, error) : TOKMAP_OK;
    uint8_t *slab = malloc(SLAB_BYTES);
    enum tokmap_status status = slab ? file_reopen(shuffle, LONG, 0, state->long_bytes, true, &shuffle->long_fd, error)
                                     : error_set_memory(error, "a long document to shuffle", SLAB_BYTES);
    shuffle->named.long_named = true;
    shuffle->long_bytes = state->long_bytes;
    if (!status && state->open && state->open_at > state->long_bytes)
        status = damaged(shuffle, error);
    for (uint64_t at = state->open_at; state->open && at < state->long_bytes && !status;) {
        const uint64_t part = min64(SLAB_BYTES, state->long_bytes - at);
        status = shuffle_file_read(shuffle->named.folder, shuffle->long_fd, slab, part, at, error);
        if (!status)
            hash_state_add(shuffle->hash, slab, (size_t)part);
        at += part;
    }
    free(slab);
    return status;
}

/* Lists where the paths begin. */
static enum tokmap_status paths_restore(struct shuffle *shuffle, struct tokmap_error *error)
{
    const struct bytes_buffer *paths = &shuffle->paths;
    if (paths->count && paths->bytes[paths->count - 1])
        return damaged(shuffle, error);
    for (uint64_t begin = 0; begin < paths->count;) {
        if (!bytes_append(&shuffle->path_begins, &begin, sizeof begin))
            return error_set_memory(error, "the paths of the inputs", paths->count);
        begin += strlen((const char *)paths->bytes + begin) + 1;
    }
    return TOKMAP_OK;
}

enum tokmap_status shuffle_restored(struct shuffle *shuffle, const struct shuffle_state *state,
                                    struct tokmap_error *error)
{
    shuffle->tokens = state->tokens;
    shuffle->largest = state->largest;
    shuffle->second.done = state->done;
    shuffle->second.finished = state->finished;
    enum tokmap_status status = files_place(shuffle, error);
    if (!status && (!shuffle->named.folder || shuffle->paths.count != state->path_bytes))
        status = damaged(shuffle, error);
    if (!status)
        status = paths_restore(shuffle, error);
    shuffle->named.saved_paths =
        shuffle->paths.count; /* also after the end of the second pass: they must not be saved twice */
    if (status || state->finished)
        return status;
    hash_state_reset(shuffle->hash);
    status = chunks_restore(shuffle, state, error);
    if (!status)
        status = long_restore(shuffle, state, error);
    if (!status && state->merging &&
        (!state->chunks || state->open || !shuffle_places_restore(&shuffle->second.places, &shuffle->chunks)))
        return damaged(shuffle, error);
    shuffle->open.begun = shuffle->open.longer = state->open;
    shuffle->open.tokens = state->open_tokens;
    shuffle->open.text_bytes = state->open_text;
    shuffle->open.at = state->open_at;
    shuffle->named.saved_chunks = shuffle->chunks.chunk_count;
    shuffle->named.synced_chunks = shuffle->named.saved_chunks;
    shuffle->named.synced_long = shuffle->long_bytes;
    bytes_free(&shuffle->named.loaded);
    return status;
}
