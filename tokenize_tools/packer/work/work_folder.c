/* SPDX-License-Identifier: MIT */
/*
 * work_folder.c - see work_folder.h.
 *
 * The facts are never held in memory: a walk over the options and the inputs produces them one after the other, and
 * each is either written or compared with the next record of the journal.
 *
 * Example: a killed command had shards of 1000 tokens at most and the input a.jsonl of 700 bytes; now a.jsonl has
 * 900. The walk produces the option, which equals record 0; the input, which record 1 names with 700 bytes: the
 * message names the input and both sizes, and nothing is changed.
 */
#include "work_folder.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "corpus/stream.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "remote/remote_hub.h"
#include "remote/remote_url.h"
#include "set_commit.h"
#include "text/path.h"

#define AWAIT_NS ((uint64_t)50000000) /* between two tries, while another process makes the journal */
#define AWAIT_TRIES 36000
#define MAKE_TRIES 1000
#define HEAD SET_JOURNAL_HEAD "3"
#define HEAD_BYTES (sizeof HEAD - 1)
#define VERSION_AT (HEAD_BYTES - 1) /* of the byte that is the version */
#define RECORD_HEAD 8U
#define RECORD_HASH 8U
#define INPUT_HEAD 24U /* of the record of an input, before its name */
#define PROBE_BYTES ((size_t)64 << 10)
#define PROBES 16 /* of a file that is larger than all of them */
#define INCREMENT_MOST ((size_t)64 << 10)
#define FLUSH_BYTES ((size_t)1 << 18)
#define JOURNAL "journal"
#define JOURNAL_NEW "journal.new"
#define ABSENT UINT64_MAX /* the size of an input that cannot be opened */

enum { FACT = 1, INPUT = 2, FACTS_END = 3 };

struct work_folder {
    char *path, *journal, *fresh;              /* fresh: journal.new */
    const struct work_folder_options *options; /* while it is opened */
    work_owns *owns;
    bool swept; /* it has no journal */
    int fd;     /* of the journal, locked; or -1 */
    bool found;
    bool akin;                  /* the first fact of earlier work is the one of now */
    uint64_t facts_end, at;     /* at: offset of the next record that is read or appended */
    struct bytes_buffer record; /* that was read last */
    struct bytes_buffer out;    /* records that are appended and not written yet; they begin at `written` */
    uint64_t written;
    uint8_t *probe; /* PROBES * PROBE_BYTES */
};

static const char lacking[] = "the journal"; /* in messages about memory */

static enum tokmap_status failed(int system, const char *path, const char *what, struct tokmap_error *error)
{
    const char *remedy = system == EACCES
                             ? "; it or its folder may belong to another user, who can complete or remove the work; "
                               "otherwise choose another name for the output"
                             : "";
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s%s", what, remedy);
}

const char *work_folder_path(const struct work_folder *folder)
{
    return folder->path;
}

bool work_folder_found(const struct work_folder *folder)
{
    return folder->found;
}

bool work_folder_exists(const char *name)
{
    char *folder = path_ended(name, ".work");
    char *path = folder ? path_in(folder, JOURNAL) : NULL;
    struct os_stat found;
    const bool exists = path && !set_folder_is_link(folder) && !os_lstat(path, &found) && found.kind == OS_KIND_FILE;
    free(path);
    free(folder);
    return exists;
}

/* ---- records ---- */

/* Reads the next record. END: there is no whole one. */
static enum tokmap_status record_read(struct work_folder *folder, struct work_record *record,
                                      struct tokmap_error *error)
{
    uint8_t head[RECORD_HEAD];
    size_t got = 0;
    int system = os_pread(folder->fd, head, sizeof head, folder->at, &got);
    if (!system && got < sizeof head)
        return TOKMAP_END;
    const uint32_t bytes = system ? 0 : load32(head + 4);
    if (bytes > WORK_RECORD_MOST)
        return TOKMAP_END;
    const size_t all = RECORD_HEAD + bytes + RECORD_HASH;
    folder->record.count = 0;
    if (!system && !bytes_reserve(&folder->record, all))
        return error_set_memory(error, lacking, 0);
    if (!system)
        system = os_pread(folder->fd, folder->record.bytes, all, folder->at, &got);
    if (system)
        return error_set_system(error, system, folder->journal, folder->at, "the journal cannot be read");
    const uint8_t *from = folder->record.bytes;
    if (got < all || hash64_seeded(from, RECORD_HEAD + bytes, folder->at) != load64(from + RECORD_HEAD + bytes) ||
        load32(from + 4) != bytes)
        return TOKMAP_END;
    folder->at += all;
    *record = (struct work_record){load32(from), bytes, from + RECORD_HEAD, folder->at};
    return TOKMAP_OK;
}

static enum tokmap_status flush(struct work_folder *folder, struct tokmap_error *error)
{
    const int system = os_pwrite(folder->fd, folder->out.bytes, folder->out.count, folder->written);
    if (system)
        return failed(system, folder->journal, "the journal cannot be written", error);
    folder->written += folder->out.count;
    bytes_trim(&folder->out);
    return TOKMAP_OK;
}

/* Returns whether records can be appended: those of earlier work were cut off before. */
static bool appends(const struct work_folder *folder)
{
    return folder->fd >= 0 && (!folder->found || folder->written);
}

/* Appends a record whose bytes are in two places. */
static enum tokmap_status record_add(struct work_folder *folder, uint32_t type, const void *first, size_t first_bytes,
                                     const void *second, size_t second_bytes, struct tokmap_error *error)
{
    const size_t bytes = first_bytes + second_bytes, begin = folder->out.count;
    uint8_t head[RECORD_HEAD], hash[RECORD_HASH];
    if (bytes > WORK_RECORD_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, folder->journal, TOKMAP_NO_OFFSET,
                         "an option or the name of an input is too long for a journal, whose records have at most %u "
                         "bytes",
                         WORK_RECORD_MOST);
    if (!bytes_reserve(&folder->out, RECORD_HEAD + bytes + RECORD_HASH))
        return error_set_memory(error, lacking, 0);
    store32(head, type);
    store32(head + 4, (uint32_t)bytes);
    (void)bytes_append(&folder->out, head, sizeof head);
    (void)bytes_append(&folder->out, first, first_bytes);
    (void)bytes_append(&folder->out, second, second_bytes);
    store64(hash, hash64_seeded(folder->out.bytes + begin, RECORD_HEAD + bytes, folder->at));
    (void)bytes_append(&folder->out, hash, sizeof hash);
    folder->at += RECORD_HEAD + bytes + RECORD_HASH;
    return folder->out.count >= FLUSH_BYTES ? flush(folder, error) : TOKMAP_OK;
}

enum tokmap_status work_folder_next(struct work_folder *folder, struct work_record *record, struct tokmap_error *error)
{
    assert(!folder->found || !folder->written);
    return folder->found ? record_read(folder, record, error) : TOKMAP_END;
}

void work_folder_rewind(struct work_folder *folder)
{
    assert(folder->found && !folder->out.count);
    folder->at = folder->facts_end;
}

enum tokmap_status work_folder_cut(struct work_folder *folder, uint64_t end, struct tokmap_error *error)
{
    assert(folder->found && !folder->out.count && (!end || end >= folder->facts_end));
    assert(!folder->written);
    folder->at = folder->written = end ? end : folder->facts_end;
    const int system = os_truncate(folder->fd, folder->at);
    return system ? failed(system, folder->journal, "the journal cannot be cut", error) : TOKMAP_OK;
}

enum tokmap_status work_folder_append(struct work_folder *folder, uint32_t type, const void *payload, uint32_t bytes,
                                      struct tokmap_error *error)
{
    assert(type >= WORK_TYPE_FIRST && bytes <= WORK_RECORD_MOST);
    assert(appends(folder));
    return record_add(folder, type, payload, bytes, NULL, 0, error);
}

enum tokmap_status work_folder_increments(struct work_folder *folder, uint32_t type, const void *head,
                                          size_t head_bytes, const void *bytes, size_t count,
                                          struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    size_t done = 0;
    assert(type >= WORK_TYPE_FIRST);
    assert(appends(folder) && head_bytes <= WORK_RECORD_MOST - INCREMENT_MOST);
    do {
        const size_t part = (size_t)min64(count - done, INCREMENT_MOST);
        status = record_add(folder, type, head, head_bytes, part ? (const uint8_t *)bytes + done : NULL, part, error);
        done += part;
    } while (done < count && !status);
    return status;
}

enum tokmap_status work_folder_sync(struct work_folder *folder, struct tokmap_error *error)
{
    assert(appends(folder));
    const enum tokmap_status status = flush(folder, error);
    const int system = status ? 0 : os_sync(folder->fd);
    return system ? failed(system, folder->journal, "the journal cannot be synced to storage", error) : status;
}

/* ---- facts ---- */

enum tokmap_status work_folder_damaged(const struct work_folder *folder, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, folder->journal, folder->at,
                     "the journal of the unfinished work is damaged; start over with --no-resume");
}

/* Reads the next record of the facts and checks its type: FACT, INPUT, or FACTS_END. */
static enum tokmap_status fact_read(struct work_folder *folder, struct work_record *record, struct tokmap_error *error)
{
    const enum tokmap_status status = record_read(folder, record, error);
    if (status && status != TOKMAP_END)
        return status;
    if (status || record->type < FACT || record->type > FACTS_END ||
        (record->type == INPUT && record->bytes < INPUT_HEAD) ||
        (record->type == FACT && !memchr(record->payload, '\0', record->bytes)))
        return work_folder_damaged(folder, error);
    return TOKMAP_OK;
}

#define SHOWN 120 /* bytes of a value in a message */

/* Returns what to do about work that cannot be continued. A task must not remove what others may be writing. */
static const char *remedy(const struct work_folder *folder)
{
    return folder->options->shared ? "remove the folder of the work while no task runs, and run all tasks again"
                                   : "start over with --no-resume";
}

static enum tokmap_status differs(const struct work_folder *folder, const char *name, const char *before,
                                  size_t before_bytes, const char *now, struct tokmap_error *error)
{
    char old[SHOWN + 16];
    (void)snprintf(old, sizeof old, "%s%.*s%s", before_bytes ? "" : "none", (int)min64(before_bytes, SHOWN), before,
                   before_bytes > SHOWN ? "..." : "");
    return error_set(error, TOKMAP_ERROR_MISMATCH, folder->path, TOKMAP_NO_OFFSET,
                     "here is the unfinished work of a command with another %s: it had %s, and this one has %.*s; "
                     "repeat that command to continue it, or %s",
                     name, old, SHOWN, *now ? now : "none", remedy(folder));
}

/* Writes a fact, or compares it. */
static enum tokmap_status fact_take(struct work_folder *folder, const struct work_fact *fact,
                                    struct tokmap_error *error)
{
    struct work_record record;
    const size_t name_bytes = strlen(fact->name) + 1, value_bytes = strlen(fact->value);
    if (!folder->found)
        return record_add(folder, FACT, fact->name, name_bytes, fact->value, value_bytes, error);
    const enum tokmap_status status = fact_read(folder, &record, error);
    if (status)
        return status;
    if (record.type != FACT || record.bytes < name_bytes || memcmp(record.payload, fact->name, name_bytes) != 0)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, folder->journal, TOKMAP_NO_OFFSET,
                         "here is the unfinished work of another command, or of another version of tokmap, which does "
                         "not record '%s' here; %s",
                         fact->name, remedy(folder));
    if (record.bytes - name_bytes != value_bytes || memcmp(record.payload + name_bytes, fact->value, value_bytes) != 0)
        return differs(folder, fact->name, (const char *)record.payload + name_bytes, record.bytes - name_bytes,
                       fact->value, error);
    return TOKMAP_OK;
}

/* bytes: ABSENT if it cannot be opened. hash: of an object in a list, that of its ETag; of another URL, 0. */
struct input_fact {
    uint64_t bytes, hash;
    uint64_t cut; /* of work_inputs.cuts */
};

/* Finds the size of a file, without reading it. */
static void file_examine(const char *path, struct input_fact *fact)
{
    struct os_stat found;
    const bool there = !os_stat(path, &found) && found.kind == OS_KIND_FILE;
    fact->bytes = there ? found.bytes : ABSENT;
}

/* Returns the error of an input that can be read only once, so that no work that reads it can be continued. */
static enum tokmap_status not_twice(const struct work_folder *folder, const char *path, struct tokmap_error *error)
{
    if (folder->found)
        return error_set(error, TOKMAP_ERROR_MISMATCH, stream_name(path), TOKMAP_NO_OFFSET,
                         "this input can be read only once, so the unfinished work in '%.200s' is that of a command "
                         "with other inputs; repeat that command to continue it, or start over with "
                         "--no-resume",
                         folder->path);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream_name(path), TOKMAP_NO_OFFSET,
                     "this input is no regular file, so it cannot be read twice, which unfinished work needs");
}

/* Reads a small file, or samples of a large one, and returns how many bytes these are. All are asked for before the
 * first one is read: storage that is far away then answers once, and not for each of them. */
static int samples_read(const struct work_folder *folder, int fd, uint64_t bytes, size_t *got)
{
    const uint64_t all = PROBES * PROBE_BYTES, last = bytes - min64(bytes, PROBE_BYTES);
    int system = 0;
    *got = 0;
    if (bytes <= all)
        return os_pread(fd, folder->probe, (size_t)bytes, 0, got);
    for (uint64_t i = 1; i < PROBES; i++)
        os_read_ahead(fd, mul_div(i, last, PROBES - 1), PROBE_BYTES);
    for (uint64_t i = 0; i < PROBES && !system; i++) {
        size_t some = 0;
        system = os_pread(fd, folder->probe + *got, PROBE_BYTES, mul_div(i, last, PROBES - 1), &some);
        *got += some;
    }
    return system;
}

/* Reads what the journal keeps of a file. */
static enum tokmap_status file_probe(struct work_folder *folder, const char *path, struct input_fact *fact,
                                     struct tokmap_error *error)
{
    struct os_stat found;
    size_t got = 0;
    int fd;
    int system = os_open(path, OS_READ_NOW, &fd);
    if (system == EMFILE || system == ENFILE || system == ENOMEM)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be opened");
    if (system)
        return TOKMAP_OK; /* opening it again reports it, or leaves it out */
    system = os_fstat(fd, &found);
    if (!system && found.kind != OS_KIND_FILE) {
        os_close(fd);
        return not_twice(folder, path, error);
    }
    if (!system)
        system = samples_read(folder, fd, found.bytes, &got);
    os_close(fd);
    if (system)
        return TOKMAP_OK;
    fact->bytes = found.bytes;
    fact->hash = hash64(folder->probe, got);
    return TOKMAP_OK;
}

static enum tokmap_status input_differs(const struct work_folder *folder, const char *name,
                                        const struct input_fact *before, const struct input_fact *now,
                                        struct tokmap_error *error)
{
    char what[160];
    if (now->bytes == ABSENT)
        (void)snprintf(what, sizeof what, "could be read when this work began, and cannot be opened any more");
    else if (before->bytes == ABSENT)
        (void)snprintf(what, sizeof what, "could not be opened when this work began, and now it can");
    else if (now->bytes != before->bytes)
        (void)snprintf(what, sizeof what, "had %" PRIu64 " bytes when this work began, and now it has %" PRIu64,
                       before->bytes, now->bytes);
    else if (now->cut != before->cut)
        (void)snprintf(what, sizeof what, "has other row groups than when this work began");
    else if (remote_kind(name))
        (void)snprintf(what, sizeof what, "has another ETag than when this work began, so it was replaced");
    else
        (void)snprintf(what, sizeof what, "has %s than when this work began",
                       strcmp(name, "-") ? "another content" : "other first documents");
    return error_set(error, TOKMAP_ERROR_MISMATCH, stream_name(name), TOKMAP_NO_OFFSET,
                     "this input %s; bring the old one back and repeat the command to continue, or %s (unfinished "
                     "work: %.200s)",
                     what, remedy(folder), folder->path);
}

/* Writes what an input is, or compares it, without `content` only its name, size, and row groups. `shown` has no
 * secrets. */
static enum tokmap_status input_take(struct work_folder *folder, const char *shown, const struct input_fact *now,
                                     bool content, struct tokmap_error *error)
{
    uint8_t numbers[INPUT_HEAD];
    struct work_record record;
    store64(numbers, now->bytes);
    store64(numbers + 8, now->hash);
    store64(numbers + 16, now->cut);
    if (!folder->found)
        return record_add(folder, INPUT, numbers, sizeof numbers, shown, strlen(shown), error);
    const enum tokmap_status status = fact_read(folder, &record, error);
    if (status)
        return status;
    if (record.type == FACTS_END)
        return differs(folder, "list of inputs", "no more", 7, shown, error);
    if (record.type != INPUT)
        return work_folder_damaged(folder, error);
    const struct input_fact before = {load64(record.payload), load64(record.payload + 8), load64(record.payload + 16)};
    const char *name = (const char *)record.payload + INPUT_HEAD;
    const size_t name_bytes = record.bytes - INPUT_HEAD;
    if (name_bytes != strlen(shown) || memcmp(name, shown, name_bytes) != 0)
        return differs(folder, "list of inputs", name, name_bytes, shown, error);
    if (!content && before.bytes == ABSENT) /* it may exist, and not be readable */
        return TOKMAP_OK;
    if (before.bytes != now->bytes || before.cut != now->cut || (content && before.hash != now->hash))
        return input_differs(folder, shown, &before, now, error);
    return TOKMAP_OK;
}

static bool is_output(const struct work_inputs *given, const char *path)
{
    return given->is_output && given->is_output(given->output, path);
}

static enum tokmap_status inputs_take(struct work_folder *folder, struct inputs *inputs, struct tokmap_error *error)
{
    const struct work_folder_options *options = folder->options;
    const struct work_inputs *given = &options->inputs;
    for (uint64_t number = 0;;) { /* as work_units.h counts them */
        const bool content =
            !folder->found || !options->shared || (number >= given->compare_first && number < given->compare_end);
        const char *path;
        struct input_fact fact = {ABSENT, 0, number < given->cut_count ? given->cuts[number] : 0};
        enum tokmap_status status = inputs_next(inputs, &path, error);
        if (status == TOKMAP_END)
            return TOKMAP_OK;
        if (options->stop && options->stop(options->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        if (status == TOKMAP_ERROR_INTERRUPTED || status == TOKMAP_ERROR_MEMORY || status == TOKMAP_ERROR_FORMAT)
            return status;
        if (status) {
            path = ""; /* an operand without files, which reading the inputs reports, or leaves out */
        } else if (!strcmp(path, "-") && !given->feed) {
            return not_twice(folder, path, error);
        } else if (!strcmp(path, "-")) {
            fact = (struct input_fact){.hash = given->feed};
        } else if (remote_kind(path)) {
            fact.bytes = inputs_bytes(inputs);
            fact.hash = inputs_tag(inputs);
        } else if (is_output(given, path)) {
            continue; /* it changes while the work is done, and is never read */
        } else if (!content) {
            file_examine(path, &fact);
        } else if ((status = file_probe(folder, path, &fact, error))) {
            return status;
        }
        char *shown = remote_shown(path);
        if (!shown)
            return error_set_memory(error, lacking, 0);
        status = input_take(folder, shown, &fact, content || remote_kind(path), error);
        free(shown);
        if (status)
            return status;
        number++;
    }
}

/* Returns the commit in a record of what a branch of the Hub means, or NULL. */
static const char *pin_of(const struct work_record *record)
{
    const char *revision = (const char *)record->payload;
    const char *end = record->type == FACT ? memchr(revision, '\0', record->bytes) : NULL;
    return end && remote_kind(revision) == REMOTE_HUB && end + 1 + HUB_COMMIT == revision + record->bytes ? end + 1
                                                                                                          : NULL;
}

void work_folder_pins_take(const char *name)
{
    struct work_folder folder = {.journal = path_ended(name, ".work/" JOURNAL), .at = HEAD_BYTES};
    struct work_record record;
    if (folder.journal && !os_open(folder.journal, OS_READ_NOW, &folder.fd)) {
        while (!record_read(&folder, &record, NULL) && record.type < FACTS_END)
            if (pin_of(&record))
                remote_hub_pin_take((const char *)record.payload, pin_of(&record));
        os_close(folder.fd);
    }
    bytes_free(&folder.record);
    free(folder.journal);
}

/* Writes or compares everything. */
static enum tokmap_status facts_take(struct work_folder *folder, struct tokmap_error *error)
{
    const struct work_folder_options *options = folder->options;
    struct inputs *inputs = NULL;
    struct work_record record;
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < options->fact_count && !status; i++) {
        status = fact_take(folder, &options->facts[i], error);
        folder->akin = folder->akin || !status;
    }
    if (!status)
        status = inputs_new(&inputs, options->inputs.operands, options->inputs.count, options->inputs.select,
                            options->stop, options->user, error);
    if (!status)
        status = inputs_take(folder, inputs, error);
    inputs_free(inputs);
    for (const struct hub_fact *pin = NULL; !status && !folder->found && (pin = remote_hub_pin_next(pin));)
        status = record_add(folder, FACT, pin->name, strlen(pin->name) + 1, pin->commit, HUB_COMMIT, error);
    if (!status && !folder->found)
        return record_add(folder, FACTS_END, NULL, 0, NULL, 0, error);
    if (!status)
        status = fact_read(folder, &record, error);
    while (!status && pin_of(&record)) /* the names of the inputs have the commits, and are compared */
        status = fact_read(folder, &record, error);
    if (status)
        return status;
    if (record.type == INPUT)
        return differs(folder, "list of inputs", (const char *)record.payload + INPUT_HEAD, record.bytes - INPUT_HEAD,
                       "no more", error);
    if (record.type == FACT)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, folder->journal, TOKMAP_NO_OFFSET,
                         "here is the unfinished work of another version of tokmap; start over with "
                         "--no-resume");
    folder->facts_end = folder->at;
    return TOKMAP_OK;
}

/* ---- open ---- */

static enum tokmap_status busy(const struct work_folder *folder, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_BUSY, folder->path, TOKMAP_NO_OFFSET,
                     "another process is working here, on the same output; wait for it, or choose another name");
}

/* Opens the journal to continue it, or only to remove it. */
static int old_open(struct work_folder *folder)
{
    if (folder->options->shared)
        return os_open(folder->journal, OS_READ_NOW, &folder->fd);
    return folder->options->start_over ? os_open(folder->journal, OS_WRITE_OLD, &folder->fd)
                                       : partial_file_reopen(folder->journal, &folder->fd);
}

static bool is_same_file(const struct os_stat *a, const struct os_stat *b)
{
    return a->inode == b->inode && a->device == b->device;
}

/* Opens and locks the journal of earlier work. *absent: there is none. */
static enum tokmap_status journal_open(struct work_folder *folder, bool *absent, struct tokmap_error *error)
{
    char head[HEAD_BYTES];
    size_t got = 0;
    struct os_stat locked, named;
    const bool shared = folder->options->shared;
    int system = old_open(folder);
    *absent = system == ENOENT || system == ENOTDIR;
    if (system) {
        folder->fd = -1;
        if (system == EPERM)
            return error_set(error, TOKMAP_ERROR_MISMATCH, folder->journal, TOKMAP_NO_OFFSET,
                             "here is the unfinished work of another user, who could change it at any time; start over "
                             "with --no-resume, or choose another name");
        return *absent ? TOKMAP_OK : failed(system, folder->journal, "the journal cannot be opened", error);
    }
    system = shared ? 0 : os_lock(folder->fd);
    if (system == EWOULDBLOCK)
        return busy(folder, error);
    if (!system)
        system = os_fstat(folder->fd, &locked);
    if (system)
        return failed(system, folder->journal, "the journal cannot be locked", error);
    /* The process that had the lock may have ended well just now. */
    *absent = !shared && (os_lstat(folder->journal, &named) || !is_same_file(&named, &locked));
    if (*absent) {
        os_close(folder->fd);
        folder->fd = -1;
        return TOKMAP_OK;
    }
    system = os_pread(folder->fd, head, sizeof head, 0, &got);
    if (system)
        return failed(system, folder->journal, "the journal cannot be read", error);
    folder->at = HEAD_BYTES;
    folder->found = true;
    const bool ours = partial_file_begins(folder->journal, SET_JOURNAL_HEAD);
    if ((folder->options->start_over && ours) || (got == HEAD_BYTES && !memcmp(head, HEAD, HEAD_BYTES)))
        return TOKMAP_OK;
    if (got == HEAD_BYTES && !memcmp(head, HEAD, VERSION_AT))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, folder->journal, TOKMAP_NO_OFFSET,
                         "here is the unfinished work of another version of tokmap, whose journal this one cannot "
                         "read; complete it with that version, or %s",
                         remedy(folder));
    folder->at = 0;
    if (!ours)
        return error_set(error, TOKMAP_ERROR_CORRUPT, folder->journal, 0,
                         "this file has the name of the journal of unfinished work, and does not begin as one, so it "
                         "may be yours, and is not removed; move it away, or choose another name");
    return work_folder_damaged(folder, error);
}

static int entry_remove(void *user, const char *entry)
{
    const struct work_folder *folder = user;
    if (!folder->owns || !folder->owns(folder->path, entry, !folder->swept))
        return 0;
    char *path = path_in(folder->path, entry);
    if (path)
        (void)os_unlink(path);
    free(path);
    return 0;
}

static bool is_replaced(const struct work_folder *folder)
{
    struct os_stat locked, named;
    const int system = os_lstat(folder->journal, &named);
    return system == ENOENT || (!system && !os_fstat(folder->fd, &locked) && !is_same_file(&named, &locked));
}

/* Removes the files of earlier work, and the journal last. If somebody has removed the journal that this process has
 * locked, what is there now may be of another process, and stays. */
static void work_clear(struct work_folder *folder)
{
    if (is_replaced(folder))
        return;
    (void)os_folder_list(folder->path, entry_remove, folder);
    (void)os_unlink(folder->journal);
}

static int entry_look(void *user, const char *entry)
{
    struct work_folder *folder = user;
    folder->found = folder->found || folder->owns(folder->path, entry, false);
    return 0;
}

/* For partial_file_open(): nothing but a journal that was never complete is replaced by a new one. */
static int fresh_check(void *user)
{
    return partial_file_begins(user, SET_JOURNAL_HEAD) ? 0 : EEXIST;
}

void work_folder_sweep(const char *name, work_owns *owns)
{
    int fd = -1;
    struct work_folder folder = {.owns = owns, .swept = true, .path = path_ended(name, ".work")};
    char *fresh = folder.path ? path_in(folder.path, JOURNAL_NEW) : NULL;
    if (fresh && !set_folder_is_link(folder.path) && !work_folder_exists(name))
        (void)os_folder_list(folder.path, entry_look, &folder);
    /* The lock keeps others from beginning here. Whoever has made such files has a journal, and had the lock before. */
    if (folder.found && !partial_file_open(fresh, fresh_check, fresh, &fd)) {
        if (!work_folder_exists(name))
            (void)os_folder_list(folder.path, entry_remove, &folder);
        (void)os_unlink(fresh);
        os_close(fd);
    }
    free(fresh);
    free(folder.path);
}

void work_folder_settle(const char *name)
{
    int fd = -1;
    char *path = path_ended(name, ".work");
    char *fresh = path ? path_in(path, JOURNAL_NEW) : NULL;
    if (fresh && !set_folder_is_link(path) && !work_folder_exists(name)) {
        /* As long as this is its name, no other process has it. */
        if (!partial_file_take(fresh, &fd) && !fresh_check(fresh))
            (void)os_unlink(fresh);
        (void)os_remove_folder(path); /* fails if a file is in it */
        os_close(fd);
    }
    free(fresh);
    free(path);
}

struct work_look {
    bool (*is_work)(uint32_t type, const char *entry);
    bool found;
};

static int work_look(void *user, const char *entry)
{
    struct work_look *look = user;
    look->found = look->found || look->is_work(0, entry);
    return 0;
}

/* Returns true if earlier work of other facts has nothing that its command could continue. */
static bool is_worthless(struct work_folder *folder)
{
    struct work_record record;
    struct work_look look = {.is_work = folder->options->is_work};
    enum tokmap_status status = TOKMAP_OK;
    if (!look.is_work || !folder->akin || os_folder_list(folder->path, work_look, &look))
        return false;
    for (folder->at = HEAD_BYTES; !status && !look.found;) {
        status = record_read(folder, &record, NULL);
        look.found = !status && record.type >= WORK_TYPE_FIRST && look.is_work(record.type, NULL);
    }
    return status == TOKMAP_END;
}

/* Writes a new journal with the facts, and gives it its name. */
static enum tokmap_status journal_make(struct work_folder *folder, struct tokmap_error *error)
{
    int system = ENOENT;
    bool made = false;
    /* Another process may remove the folder before this one has a file in it (work_folder_settle()), and make it. */
    for (uint32_t i = 0; i < MAKE_TRIES && system == ENOENT; i++) {
        system = os_make_folder(folder->path);
        if (system && system != EEXIST)
            return failed(system, folder->path,
                          system == ENOENT ? "the folder of the output does not exist; create it with 'mkdir -p'"
                                           : "the folder for unfinished work cannot be made",
                          error);
        made = made || !system;
        system = partial_file_open(folder->fresh, fresh_check, folder->fresh, &folder->fd);
    }
    if (system && made)
        (void)os_remove_folder(folder->path); /* fails if somebody works there */
    if (system == EWOULDBLOCK)
        return busy(folder, error);
    if (system == EEXIST)
        return error_set(error, TOKMAP_ERROR_EXISTS, folder->fresh, TOKMAP_NO_OFFSET,
                         "this file has the name of a new journal, and does not begin as one, so it may be yours, and "
                         "is not removed; move it away, or choose another name");
    if (system)
        return failed(system, folder->fresh, "the journal cannot be created", error);
    struct os_stat found;
    if (folder->options->shared && !os_lstat(folder->journal, &found)) { /* made before this one had the lock */
        (void)os_unlink(folder->fresh);
        return busy(folder, error);
    }
    (void)os_folder_list(folder->path, entry_remove, folder);
    folder->written = 0;
    folder->at = HEAD_BYTES;
    folder->out.count = 0;
    enum tokmap_status status =
        bytes_append(&folder->out, HEAD, HEAD_BYTES) ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    if (!status)
        status = facts_take(folder, error);
    if (!status)
        status = work_folder_sync(folder, error);
    system = status ? 0 : name_file(-1, folder->fresh, folder->journal, true, NULL);
    if (!status && !system)
        system = os_sync_folder(folder->path);
    if (system)
        status = failed(system, folder->journal, "the journal cannot be created", error);
    folder->facts_end = folder->at;
    if (!status)
        return TOKMAP_OK;
    (void)os_unlink(folder->fresh);
    if (made)
        (void)os_remove_folder(folder->path);
    return status;
}

enum tokmap_status work_folder_open(struct work_folder **folder, const struct work_folder_options *options,
                                    struct tokmap_error *error)
{
    bool absent = true;
    *folder = NULL;
    assert(options->inputs.compare_first <= options->inputs.compare_end);
    struct work_folder *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, lacking, 0);
    made->options = options;
    made->owns = options->owns;
    made->fd = -1;
    made->path = path_ended(options->name, ".work");
    made->journal = made->path ? path_in(made->path, JOURNAL) : NULL;
    made->fresh = made->path ? path_in(made->path, JOURNAL_NEW) : NULL;
    made->probe = malloc(PROBES * PROBE_BYTES);
    enum tokmap_status status =
        made->journal && made->fresh && made->probe ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    if (!status && set_folder_is_link(made->path))
        status = set_folder_link_error(made->path, error);
    if (!status)
        status = journal_open(made, &absent, error);
    bool clears = !status && !absent && options->start_over;
    if (!status && !absent && !clears) {
        status = facts_take(made, error);
        clears = status == TOKMAP_ERROR_MISMATCH && is_worthless(made);
    }
    if (clears) {
        status = TOKMAP_OK;
        work_clear(made);
        os_close(made->fd);
        made->fd = -1;
        made->found = false;
        absent = true;
        if (!options->create)
            (void)os_remove_folder(made->path);
    }
    if (!status && absent && options->create)
        status = journal_make(made, error);
    made->options = NULL;
    if (status || made->fd < 0)
        work_folder_close(made);
    else
        *folder = made;
    return status;
}

enum tokmap_status work_folder_await(struct work_folder **folder, const struct work_folder_options *options,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < AWAIT_TRIES && !status; i++) {
        status = work_folder_open(folder, options, error);
        if (status != TOKMAP_ERROR_BUSY)
            break;
        os_sleep_ns(AWAIT_NS);
        if (options->stop && options->stop(options->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else if (i + 1 < AWAIT_TRIES)
            status = TOKMAP_OK;
    }
    return status;
}

void work_folder_close(struct work_folder *folder)
{
    if (!folder)
        return;
    os_close(folder->fd);
    bytes_free(&folder->record);
    bytes_free(&folder->out);
    free(folder->probe);
    free(folder->path);
    free(folder->journal);
    free(folder->fresh);
    free(folder);
}

void work_folder_discard(struct work_folder *folder)
{
    work_clear(folder);
    (void)os_remove_folder(folder->path);
    work_folder_close(folder);
}

void work_folder_remove(struct work_folder *folder)
{
    if (!folder)
        return;
    work_clear(folder);
    if (!os_remove_folder(folder->path))
        (void)os_sync_folder(folder->path);
    work_folder_close(folder);
}
