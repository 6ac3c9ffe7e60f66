/* SPDX-License-Identifier: MIT */
/*
 * dropped_file.c - see dropped_file.h.
 *
 * Example: the entries of a list, where record 7 of b.jsonl has the text of record 0 of a.jsonl:
 *
 *     input      a.jsonl           (number 0)
 *     input      b.jsonl           (number 1)
 *     duplicate  input 1, record 7, kept input 0, kept record 0
 */
#include "dropped_file.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

#define WINDOW ((size_t)1 << 18)
#define REMEDY "restore it from a good copy, or pack the dataset again"
#define NOT_A_LIST                                                                                                     \
    "this is not a list of dropped documents (it does not begin with the bytes of one); name a dataset that "          \
    "`tokmap pack` has made without duplicates or excluded texts"

#define CORRUPT(file, error, offset, ...) error_set((error), TOKMAP_ERROR_CORRUPT, (file)->path, offset, __VA_ARGS__)

/* A text of the file, which the list owns. A zero byte follows it. */
struct text {
    char *bytes;
    uint64_t count;
};

struct texts {
    struct text *list;
    uint64_t count, capacity;
};

struct ngram {
    uint64_t text, path; /* numbers in the list of texts */
    uint64_t record;
};

struct dropped_file {
    const char *path;
    int fd;
    struct dropped_header header;
    uint8_t *window;
    uint64_t window_at; /* offset of the window in the file */
    size_t filled;
    uint64_t at; /* offset of the next entry */
    struct texts inputs, texts, readings;
    struct ngram *ngrams;
    uint64_t ngram_count, ngram_capacity;
    uint64_t duplicates, excluded;
    /* The last document. */
    struct {
        bool any; /* true if a document was read */
        uint32_t input;
        uint64_t record;
    } last;
};

bool dropped_is_file(const char *path)
{
    uint8_t start[8];
    size_t got;
    return os_head_read(path, start, sizeof start, &got) && got == sizeof start &&
           !memcmp(start, DROPPED_MAGIC, sizeof start);
}

/* ---- opening ---- */

static enum tokmap_status header_check(struct dropped_file *file, uint64_t file_bytes, struct tokmap_error *error)
{
    struct dropped_header *header = &file->header;
    size_t got = 0;
    const int system = os_pread(file->fd, header, sizeof *header, 0, &got);
    if (system)
        return error_set_system(error, system, file->path, 0, "the list of dropped documents cannot be read");
    if (!got || memcmp(header->magic, DROPPED_MAGIC, min64(got, sizeof header->magic)) != 0)
        return error_set(error, TOKMAP_ERROR_FORMAT, file->path, 0, NOT_A_LIST);
    if (got < sizeof *header)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, file->path, got,
                         "the list of dropped documents is %zu bytes long, but its header alone needs %zu; " REMEDY,
                         got, sizeof *header);
    const bool sound = hash64(header, offsetof(struct dropped_header, header_hash)) == header->header_hash;
    if (header->major > DROPPED_MAJOR)
        return error_set(error, TOKMAP_ERROR_VERSION, file->path, 8,
                         "the list has major version %u, but this tokmap reads version %u; %s", header->major,
                         DROPPED_MAJOR,
                         sound ? "use a newer tokmap" : "use a newer tokmap, or, if no newer tokmap wrote it, " REMEDY);
    if (!sound)
        return CORRUPT(file, error, 0, "the hash of the header does not match its bytes; " REMEDY);
    if (header->major != DROPPED_MAJOR || header->header_bytes != sizeof *header)
        return CORRUPT(file, error, 8, "the header's version or size does not match version %u; " REMEDY,
                       DROPPED_MAJOR);
    if (header->file_bytes != file_bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, file->path, min64(header->file_bytes, file_bytes),
                         "the list is %" PRIu64 " bytes long, but its header says %" PRIu64 "; " REMEDY, file_bytes,
                         header->file_bytes);
    uint64_t dropped;
    if (add_overflows(header->duplicates, header->excluded, &dropped) || dropped > header->documents)
        return CORRUPT(file, error, 24, "the header counts more dropped documents than documents; " REMEDY);
    return TOKMAP_OK;
}

/* Fills the window with the bytes from `at` on. */
static enum tokmap_status window_fill(struct dropped_file *file, uint64_t at, struct tokmap_error *error)
{
    const int system = os_pread(file->fd, file->window, WINDOW, at, &file->filled);
    file->window_at = at;
    if (system)
        return error_set_system(error, system, file->path, at, "the list of dropped documents cannot be read");
    return TOKMAP_OK;
}

static enum tokmap_status body_check(struct dropped_file *file, bool (*stop)(void *user), void *user,
                                     struct tokmap_error *error)
{
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(error, "the hash of a list", 0);
    enum tokmap_status status = TOKMAP_OK;
    uint64_t at = sizeof file->header;
    while (at < file->header.file_bytes && !status) {
        status = window_fill(file, at, error);
        if (!status && !file->filled)
            status = error_set(error, TOKMAP_ERROR_TRUNCATED, file->path, at,
                               "the list became shorter while it was read; " REMEDY);
        if (!status)
            hash_state_add(hash, file->window, file->filled);
        at += file->filled;
        if (!status && stop && stop(user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    if (!status && (at != file->header.file_bytes || hash_state_64(hash) != file->header.body_hash))
        status =
            CORRUPT(file, error, sizeof file->header, "the hash of the entries does not match their bytes; " REMEDY);
    hash_state_free(hash);
    return status;
}

static void texts_free(struct texts *texts)
{
    for (uint64_t i = 0; i < texts->count; i++)
        free(texts->list[i].bytes);
    free(texts->list);
}

const struct dropped_header *dropped_header(const struct dropped_file *file)
{
    return &file->header;
}

/* ---- entries ---- */

/* Copies `count` bytes of the file from the next entry's offset `at` on. */
static enum tokmap_status bytes_read(struct dropped_file *file, uint64_t at, void *into, uint64_t count,
                                     struct tokmap_error *error)
{
    uint8_t *to = into;
    if (at > file->header.file_bytes || count > file->header.file_bytes - at)
        return CORRUPT(file, error, at, "the last entry reaches past the end of the file; " REMEDY);
    while (count) {
        if (at < file->window_at || at - file->window_at >= file->filled) {
            const enum tokmap_status status = window_fill(file, at, error);
            if (status)
                return status;
            if (!file->filled)
                return error_set(error, TOKMAP_ERROR_TRUNCATED, file->path, at,
                                 "the list became shorter while it was read; " REMEDY);
        }
        const uint64_t inside = at - file->window_at, part = min64(count, file->filled - inside);
        memcpy(to, file->window + inside, (size_t)part);
        to += part;
        at += part;
        count -= part;
    }
    return TOKMAP_OK;
}

/* Reads a text at `at` and adds it to the list. */
static enum tokmap_status text_read(struct dropped_file *file, struct texts *texts, uint64_t at, uint32_t count,
                                    struct tokmap_error *error)
{
    if (!count || count > DROPPED_TEXT_MOST)
        return CORRUPT(file, error, file->at,
                       "a path or an n-gram has %" PRIu32 " bytes, but it must have 1 to %" PRIu32 "; " REMEDY, count,
                       DROPPED_TEXT_MOST);
    if (at > file->header.file_bytes || count > file->header.file_bytes - at)
        return CORRUPT(file, error, at, "the last entry reaches past the end of the file; " REMEDY);
    const bool room = list_room(&texts->list, texts->count, &texts->capacity, sizeof *texts->list);
    char *bytes = room ? malloc(count + (size_t)1) : NULL;
    if (!bytes)
        return error_set_memory(error, "the paths of a list of dropped documents", count);
    const enum tokmap_status status = bytes_read(file, at, bytes, count, error);
    if (status) {
        free(bytes);
        return status;
    }
    bytes[count] = '\0';
    texts->list[texts->count++] = (struct text){bytes, count};
    return TOKMAP_OK;
}

/* Moves to the entry that begins after `bytes` more bytes, rounded up; what is between must be zeros. */
static enum tokmap_status entry_end(struct dropped_file *file, uint64_t bytes, struct tokmap_error *error)
{
    static const uint8_t zeros[8];
    uint8_t padding[8];
    const uint64_t whole = round_up(bytes, 8);
    const enum tokmap_status status = bytes_read(file, file->at + bytes, padding, whole - bytes, error);
    if (status)
        return status;
    if (memcmp(padding, zeros, (size_t)(whole - bytes)) != 0)
        return CORRUPT(file, error, file->at + bytes, "the bytes after a path or an n-gram are not zero; " REMEDY);
    file->at += whole;
    return TOKMAP_OK;
}

static enum tokmap_status input_read(struct dropped_file *file, struct tokmap_error *error)
{
    struct dropped_input entry;
    enum tokmap_status status = bytes_read(file, file->at, &entry, sizeof entry, error);
    if (!status && file->inputs.count == file->header.inputs)
        status = CORRUPT(file, error, file->at, "there are more inputs than the header counts; " REMEDY);
    if (!status)
        status = text_read(file, &file->inputs, file->at + sizeof entry, entry.path_bytes, error);
    return status ? status : entry_end(file, sizeof entry + entry.path_bytes, error);
}

/* Reads the reading, which is the first entry if there is one. */
static enum tokmap_status reading_read(struct dropped_file *file, struct tokmap_error *error)
{
    struct dropped_input entry = {.type = 0};
    enum tokmap_status status =
        file->at == file->header.file_bytes ? TOKMAP_OK : bytes_read(file, file->at, &entry, sizeof entry, error);
    if (status || entry.type != DROPPED_READING)
        return status;
    status = text_read(file, &file->readings, file->at + sizeof entry, entry.path_bytes, error);
    return status ? status : entry_end(file, sizeof entry + entry.path_bytes, error);
}

static enum tokmap_status ngram_read(struct dropped_file *file, struct tokmap_error *error)
{
    struct dropped_ngram entry;
    enum tokmap_status status = bytes_read(file, file->at, &entry, sizeof entry, error);
    if (!status && file->ngram_count == file->header.ngrams)
        status = CORRUPT(file, error, file->at, "there are more n-grams than the header counts; " REMEDY);
    if (!status && entry.reserved)
        status = CORRUPT(file, error, file->at, "a reserved field of an entry is not 0; " REMEDY);
    if (!status)
        status = text_read(file, &file->texts, file->at + sizeof entry, entry.text_bytes, error);
    if (!status)
        status = text_read(file, &file->texts, file->at + sizeof entry + entry.text_bytes, entry.path_bytes, error);
    if (status)
        return status;
    if (!list_room(&file->ngrams, file->ngram_count, &file->ngram_capacity, sizeof *file->ngrams))
        return error_set_memory(error, "the n-grams of a list of dropped documents", sizeof *file->ngrams);
    file->ngrams[file->ngram_count++] = (struct ngram){file->texts.count - 2, file->texts.count - 1, entry.record};
    return entry_end(file, sizeof entry + (uint64_t)entry.text_bytes + entry.path_bytes, error);
}

/* Checks that the document comes after the one before it. */
static enum tokmap_status order_check(struct dropped_file *file, uint32_t input, uint64_t record,
                                      struct tokmap_error *error)
{
    if (input >= file->inputs.count)
        return CORRUPT(file, error, file->at,
                       "an entry refers to input %" PRIu32 ", and %" PRIu64 " inputs precede it; " REMEDY, input,
                       file->inputs.count);
    if (file->last.any && (input < file->last.input || (input == file->last.input && record <= file->last.record)))
        return CORRUPT(file, error, file->at, "the documents are not in the order of the input; " REMEDY);
    file->last.any = true;
    file->last.input = input;
    file->last.record = record;
    return TOKMAP_OK;
}

/* Describes a document. other: the path of the document that was kept, or of the n-gram. */
static struct dropped_document document_of(const struct dropped_file *file, uint32_t type, const struct text *other,
                                           uint64_t other_record)
{
    const struct text *path = &file->inputs.list[file->last.input];
    return (struct dropped_document){.type = (enum dropped_type)type,
                                     .path = path->bytes,
                                     .path_bytes = path->count,
                                     .record = file->last.record,
                                     .other_path = other->bytes,
                                     .other_path_bytes = other->count,
                                     .other_record = other_record,
                                     .offset = file->at};
}

static enum tokmap_status duplicate_read(struct dropped_file *file, struct dropped_document *document,
                                         struct tokmap_error *error)
{
    struct dropped_duplicate entry;
    enum tokmap_status status = bytes_read(file, file->at, &entry, sizeof entry, error);
    if (!status)
        status = order_check(file, entry.input, entry.record, error);
    if (status)
        return status;
    if (entry.reserved)
        return CORRUPT(file, error, file->at, "a reserved field of an entry is not 0; " REMEDY);
    if (entry.kept_input > entry.input || (entry.kept_input == entry.input && entry.kept_record >= entry.record))
        return CORRUPT(file, error, file->at, "a duplicate is said to come before the document that was kept; " REMEDY);
    *document = document_of(file, entry.type, &file->inputs.list[entry.kept_input], entry.kept_record);
    file->duplicates++;
    file->at += sizeof entry;
    return TOKMAP_OK;
}

static enum tokmap_status excluded_read(struct dropped_file *file, struct dropped_document *document,
                                        struct tokmap_error *error)
{
    struct dropped_excluded entry;
    enum tokmap_status status = bytes_read(file, file->at, &entry, sizeof entry, error);
    if (!status)
        status = order_check(file, entry.input, entry.record, error);
    if (status)
        return status;
    if (entry.ngram >= file->ngram_count)
        return CORRUPT(file, error, file->at,
                       "an entry refers to n-gram %" PRIu64 ", and %" PRIu64 " precede it; " REMEDY, entry.ngram,
                       file->ngram_count);
    const struct ngram *ngram = &file->ngrams[entry.ngram];
    const struct text *text = &file->texts.list[ngram->text];
    *document = document_of(file, entry.type, &file->texts.list[ngram->path], ngram->record);
    document->ngram = text->bytes;
    document->ngram_bytes = text->count;
    file->excluded++;
    file->at += sizeof entry;
    return TOKMAP_OK;
}

static enum tokmap_status end_check(const struct dropped_file *file, struct tokmap_error *error)
{
    const struct dropped_header *header = &file->header;
    if (file->inputs.count != header->inputs || file->ngram_count != header->ngrams ||
        file->duplicates != header->duplicates || file->excluded != header->excluded)
        return CORRUPT(file, error, 32, "the header counts other entries than the list has; " REMEDY);
    return TOKMAP_END;
}

enum tokmap_status dropped_next(struct dropped_file *file, struct dropped_document *document,
                                struct tokmap_error *error)
{
    for (;;) {
        uint32_t type;
        if (file->at == file->header.file_bytes)
            return end_check(file, error);
        enum tokmap_status status = bytes_read(file, file->at, &type, sizeof type, error);
        if (status)
            return status;
        switch (type) {
        case DROPPED_INPUT:
            status = input_read(file, error);
            break;
        case DROPPED_NGRAM:
            status = ngram_read(file, error);
            break;
        case DROPPED_DUPLICATE:
        case DROPPED_NEAR_DUPLICATE:
            return duplicate_read(file, document, error);
        case DROPPED_EXCLUDED:
            return excluded_read(file, document, error);
        default:
            return CORRUPT(file, error, file->at, "an entry has the unknown type %" PRIu32 "; " REMEDY, type);
        }
        if (status)
            return status;
    }
}

/* ---- opening and closing ---- */

enum tokmap_status dropped_open(struct dropped_file **file, const char *path, bool (*stop)(void *user), void *user,
                                struct tokmap_error *error)
{
    struct os_stat stat;
    struct dropped_file *made = *file = calloc(1, sizeof *made);
    if (!made || !(made->window = malloc(WINDOW))) {
        free(made);
        *file = NULL;
        return error_set_memory(error, "a list of dropped documents", sizeof *made + WINDOW);
    }
    made->path = path;
    int system = os_open(path, OS_READ_NOW, &made->fd);
    if (system)
        made->fd = -1;
    enum tokmap_status status = TOKMAP_OK;
    if (!system)
        system = os_fstat(made->fd, &stat);
    if (system == ENOENT)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                  "there is no list of dropped documents; `tokmap pack` writes one where it leaves out "
                                  "duplicates or excluded texts");
    else if (system)
        status =
            error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the list of dropped documents cannot be opened");
    else if (stat.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET, NOT_A_LIST);
    if (!status)
        status = header_check(made, stat.bytes, error);
    if (!status)
        status = body_check(made, stop, user, error);
    made->at = sizeof made->header;
    made->filled = 0;
    if (!status)
        status = reading_read(made, error);
    if (status) {
        dropped_close(made);
        *file = NULL;
    }
    return status;
}

void dropped_close(struct dropped_file *file)
{
    if (!file)
        return;
    os_close(file->fd);
    texts_free(&file->inputs);
    texts_free(&file->texts);
    texts_free(&file->readings);
    free(file->ngrams);
    free(file->window);
    free(file);
}

const char *dropped_reading(const struct dropped_file *file)
{
    return file->readings.count ? file->readings.list[0].bytes : "";
}

static int texts_compare(const void *a, const void *b)
{
    return strcmp(((const struct text *)a)->bytes, ((const struct text *)b)->bytes);
}

const char *dropped_twice(struct dropped_file *file)
{
    const struct texts *inputs = &file->inputs;
    assert(file->at == file->header.file_bytes);
    if (inputs->count)
        qsort(inputs->list, (size_t)inputs->count, sizeof *inputs->list, texts_compare);
    for (uint64_t i = 1; i < inputs->count; i++)
        if (!texts_compare(&inputs->list[i - 1], &inputs->list[i]))
            return inputs->list[i].bytes;
    return NULL;
}
