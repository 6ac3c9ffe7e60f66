/* SPDX-License-Identifier: MIT */
#include "foreign_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "foreign_formats.h"
#include "format/shard_file.h"
#include "npy.h"
#include "platform/os.h"
#include "text/json_scan.h"
#include "text/path.h"

#define SAMPLE_TAG "sample 1"
#define SAMPLE_PROBES 256
#define SAMPLE_BYTES 4096

/* ---- paths ---- */

/* Returns `path`, of which the last `less` bytes are replaced by `ending`. */
static char *path_ending(const char *path, size_t less, const char *ending)
{
    return path_join("", 0, path, strlen(path) - less, ending);
}

char *foreign_tokens_path(enum foreign_kind kind, const char *path)
{
    if (kind == FOREIGN_MEGATRON && !path_ends_in(path, strlen(path), ".bin"))
        return path_ending(path, path_ends_in(path, strlen(path), ".idx") ? 4 : 0, ".bin");
    if (kind == FOREIGN_DATATROVE && !path_ends_in(path, strlen(path), ".ds")) {
        static const char *const beside[] = {".ds.index", ".ds.metadata", ".ds.loss"};
        for (size_t i = 0; i < 3; i++)
            if (path_ends_in(path, strlen(path), beside[i]))
                return path_ending(path, strlen(beside[i]) - 3, "");
        return path_ending(path, 0, ".ds");
    }
    return strdup(path);
}

char *foreign_index_path(const char *tokens_path)
{
    return path_ending(tokens_path, path_ends_in(tokens_path, strlen(tokens_path), ".bin") ? 4 : 0,
                       shard_file_ending(SHARD_INDEX, SHARD_FINAL));
}

/* ---- recognizing ---- */

enum foreign_kind foreign_kind_of(const char *path)
{
    uint8_t head[16];
    size_t got = 0;
    const bool idx = path_ends_in(path, strlen(path), ".idx"), bin = path_ends_in(path, strlen(path), ".bin");
    if (os_head_read(path, head, sizeof head, &got)) {
        if (idx && megatron_is(head, got))
            return FOREIGN_MEGATRON;
        if (llmc_is(head, got))
            return FOREIGN_LLMC;
        if (npy_is(head, got))
            return FOREIGN_NPY;
    }
    if (idx)
        return FOREIGN_UNNAMED;
    char *index = path_ending(path, bin ? 4 : 0, ".idx");
    const bool megatron = index && os_head_read(index, head, sizeof head, &got) && megatron_is(head, got);
    free(index);
    return megatron ? FOREIGN_MEGATRON : FOREIGN_UNNAMED;
}

enum foreign_kind foreign_note_read(const char *path, struct foreign_words *words)
{
    static const char *const names[] = {"vocab_size", "eod_id", "bos_id"};
    uint64_t *const given[] = {&words->vocabulary, &words->eod_id, &words->bos_id};
    uint64_t said[] = {0, TOKMAP_NO_ID, TOKMAP_NO_ID};
    const bool bin = path_ends_in(path, strlen(path), ".bin");
    char *note = bin ? path_ending(path, 4, ".meta.json") : NULL, text[512];
    struct json_scan scan;
    struct json_string name, dtype = {NULL, 0, false};
    size_t got = 0;
    int fd = -1;
    bool good = note && !os_open(note, OS_READ_NOW, &fd) && !os_pread(fd, text, sizeof text, 0, &got);
    os_close(fd);
    free(note);
    json_begin(&scan, text, got);
    for (good = good && json_enter_object(&scan); good && json_member(&scan, &name);) {
        size_t i = 0;
        while (i < 3 && !json_name_is(&name, names[i]))
            i++;
        good = json_name_is(&name, "dtype")               ? json_text(&scan, &dtype)
               : i < 3 && json_kind(&scan) == JSON_NUMBER ? json_unsigned(&scan, &said[i])
                                                          : json_skip(&scan);
    }
    good = good && json_end(&scan) && json_equals(&dtype, "uint16", 6) && (!words->width || words->width == 2);
    for (size_t i = 0; i < 3 && good; i++) {
        *given[i] = *given[i] == (i ? TOKMAP_NO_ID : 0) ? said[i] : *given[i];
        good = *given[i] == said[i];
    }
    words->width = good ? 2 : words->width;
    return good ? FOREIGN_RAW : FOREIGN_UNNAMED;
}

/* ---- opening ---- */

static enum tokmap_status file_open(const char *path, int *fd, struct os_stat *found, const char *what,
                                    struct tokmap_error *error)
{
    int system = os_open(path, OS_READ_NOW, fd);
    if (system) {
        *fd = -1;
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s cannot be opened", what);
    }
    system = os_fstat(*fd, found);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s cannot be examined", what);
    if (found->kind != OS_KIND_FILE)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                         "this is not a regular file; tokens and their indexes must be stored in regular files");
    return TOKMAP_OK;
}

static enum tokmap_status head_read(int fd, const char *path, uint8_t *head, size_t count, size_t *got,
                                    struct tokmap_error *error)
{
    int system = os_pread(fd, head, count, 0, got);
    return system ? error_set_system(error, system, path, 0, "the file cannot be read") : TOKMAP_OK;
}

/* Opens the document index. */
static enum tokmap_status documents_open(struct foreign_file *file, struct os_stat *found, struct tokmap_error *error)
{
    const enum tokmap_status status =
        file_open(file->documents_path, &file->documents_fd, found, "the index of the tokens", error);
    file->documents.bytes =
        (struct foreign_bytes){file->documents_path, NULL, status ? 0 : found->bytes, file->documents_fd};
    return status;
}

static enum tokmap_status open_megatron(struct foreign_file *file, uint64_t file_bytes, struct tokmap_error *error)
{
    struct foreign_index *documents = &file->documents;
    struct os_stat found;
    uint8_t head[MEGATRON_HEAD_BYTES];
    size_t got = 0;
    file->documents_path =
        path_ending(file->path, path_ends_in(file->path, strlen(file->path), ".bin") ? 4 : 0, ".idx");
    if (!file->documents_path)
        return error_set_memory(error, "the path of an index", strlen(file->path));
    enum tokmap_status status = documents_open(file, &found, error);
    if (!status)
        status = head_read(file->documents_fd, file->documents_path, head, sizeof head, &got, error);
    if (!status)
        status = megatron_parse(&documents->megatron, file->documents_path, head, got, documents->bytes.count, error);
    if (!status)
        status =
            megatron_check_ends(&documents->megatron, &documents->bytes, file->path, file_bytes, &file->layout, error);
    documents->is_megatron = true;
    documents->count = documents->megatron.documents;
    documents->tokens = file->layout.tokens;
    return status ? status : foreign_index_check(documents, error);
}

/* Reads X.ds.metadata, if it exists. */
static enum tokmap_status metadata_read(const struct foreign_file *file, uint64_t *width, uint64_t *tokens,
                                        struct tokmap_error *error)
{
    char *path = path_ending(file->path, 0, ".metadata"), *text = malloc(DATATROVE_METADATA_MOST);
    struct os_stat found;
    int fd = -1;
    size_t got = 0;
    enum tokmap_status status = path && text ? TOKMAP_OK : error_set_memory(error, "the metadata", 0);
    if (!status && os_stat(path, &found) != ENOENT) {
        status = file_open(path, &fd, &found, "the metadata of the tokens", error);
        if (!status)
            status = head_read(fd, path, (uint8_t *)text, DATATROVE_METADATA_MOST, &got, error);
        if (!status)
            status = datatrove_parse(path, text, got, width, tokens, error);
    }
    os_close(fd);
    free(text);
    free(path);
    return status;
}

static enum tokmap_status open_datatrove(struct foreign_file *file, uint64_t file_bytes, struct tokmap_error *error)
{
    struct foreign_index *documents = &file->documents;
    struct os_stat found;
    uint64_t width = 0, tokens = TOKMAP_NO_ID;
    enum tokmap_status status = metadata_read(file, &width, &tokens, error);
    if (!status && width && file->words.width && width != file->words.width)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, file->path, TOKMAP_NO_OFFSET,
                         "the .metadata says that tokens have %" PRIu64 " bytes, but the name says width=%" PRIu64
                         "; leave out the word width",
                         width, file->words.width);
    if (!status)
        status =
            datatrove_layout(&file->layout, file->path, width ? width : file->words.width, tokens, file_bytes, error);
    if (status)
        return status;
    file->documents_path = path_ending(file->path, 0, ".index");
    file->loss_path = path_ending(file->path, 0, ".loss");
    if (!file->documents_path || !file->loss_path)
        return error_set_memory(error, "the path of an index", strlen(file->path));
    int system = os_stat(file->loss_path, &found);
    if (system && system != ENOENT)
        return error_set_system(error, system, file->loss_path, TOKMAP_NO_OFFSET, "the file cannot be examined");
    if (system) {
        free(file->loss_path);
        file->loss_path = NULL;
    } else if (found.bytes != file->layout.tokens) {
        return error_set(error, TOKMAP_ERROR_TRUNCATED, file->loss_path, min64(found.bytes, file->layout.tokens),
                         "the file has %" PRIu64 " bytes, but there are %" PRIu64 " tokens, each of which needs one; "
                         "copy it again, or remove it to train on all tokens",
                         found.bytes, file->layout.tokens);
    }
    if (os_stat(file->documents_path, &found) == ENOENT) {
        free(file->documents_path);
        file->documents_path = NULL;
        return TOKMAP_OK;
    }
    status = documents_open(file, &found, error);
    if (status)
        return status;
    const uint64_t whole = found.bytes / 8;
    uint64_t last = 0;
    documents->count = whole;
    if (whole)
        status = foreign_load64(&documents->bytes, 8 * (whole - 1), &last, error);
    documents->tokens = file->layout.tokens;
    if (!status)
        status = datatrove_check_index(file->documents_path, found.bytes, last, documents->tokens, error);
    return status ? status : foreign_index_check(documents, error);
}

static enum tokmap_status open_single(struct foreign_file *file, uint64_t file_bytes, struct tokmap_error *error)
{
    const size_t count = file->kind == FOREIGN_NPY ? NPY_HEAD_MOST : LLMC_HEAD_BYTES;
    uint8_t *head = malloc(count);
    size_t got = 0;
    if (!head)
        return error_set_memory(error, "the head of a file", count);
    enum tokmap_status status = head_read(file->fd, file->path, head, count, &got, error);
    if (!status && file->kind == FOREIGN_NPY)
        status = npy_parse(&file->layout, file->path, head, got, file_bytes, error);
    else if (!status && file->kind == FOREIGN_LLMC)
        status = llmc_parse(&file->layout, file->path, head, got, file_bytes, error);
    else if (!status)
        status = raw_parse(&file->layout, file->kind, &file->words, file->path, head, got, file_bytes, error);
    free(head);
    return status;
}

/* Combines the words of the name with what the format prescribes. */
static enum tokmap_status ids_settle(struct foreign_file *file, struct tokmap_error *error)
{
    const struct foreign_words *words = &file->words;
    const uint64_t range = element_vocabulary(file->layout.element);
    file->eod_id = words->eod_id != TOKMAP_NO_ID ? words->eod_id : file->layout.eod_id;
    file->bos_id = words->bos_id != TOKMAP_NO_ID ? words->bos_id : file->layout.bos_id;
    /* The BOS that a format prescribes is its convention, not a statement about this file. */
    if (words->bos_id == TOKMAP_NO_ID && words->eod_id != TOKMAP_NO_ID)
        file->bos_id = TOKMAP_NO_ID;
    if (words->bos_id == TOKMAP_NO_ID && words->vocabulary && file->bos_id != TOKMAP_NO_ID &&
        file->bos_id >= words->vocabulary)
        file->bos_id = TOKMAP_NO_ID;
    if (words->vocabulary > range)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, file->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has %" PRIu64
                         " ids, but the file's tokens are %s, which has ids below %" PRIu64
                         "; correct the word vocab, or name the tokenizer that made the ids",
                         words->vocabulary, element_name(file->layout.element), range);
    /* Loaders deliver ids as int32 by default, and no tokenizer has 2^31 ids. */
    file->vocabulary = words->vocabulary ? words->vocabulary : min64(range, (uint64_t)1 << 31);
    if ((file->eod_id != TOKMAP_NO_ID && file->eod_id >= file->vocabulary) ||
        (file->bos_id != TOKMAP_NO_ID && file->bos_id >= file->vocabulary))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, file->path, TOKMAP_NO_OFFSET,
                         "the EOD or BOS of the name is not below %" PRIu64 ", the number of ids of the file's tokens "
                         "(%s); correct the word eod or bos, or name the tokenizer that made the ids",
                         file->vocabulary, element_name(file->layout.element));
    return TOKMAP_OK;
}

enum tokmap_status foreign_open(struct foreign_file *file, enum foreign_kind kind, const char *path,
                                const struct foreign_words *words, struct tokmap_error *error)
{
    assert(kind != FOREIGN_UNNAMED);
    struct os_stat found;
    memset(file, 0, sizeof *file);
    file->fd = file->documents_fd = -1;
    file->kind = kind;
    file->words = *words;
    file->path = foreign_tokens_path(kind, path);
    file->index_path = file->path ? foreign_index_path(file->path) : NULL;
    enum tokmap_status status =
        file->index_path ? TOKMAP_OK : error_set_memory(error, "the path of a file of tokens", strlen(path));
    if (!status)
        status = file_open(file->path, &file->fd, &found, "the file of tokens", error);
    if (!status) {
        file->device = found.device;
        file->inode = found.inode;
        status = kind == FOREIGN_MEGATRON    ? open_megatron(file, found.bytes, error)
                 : kind == FOREIGN_DATATROVE ? open_datatrove(file, found.bytes, error)
                                             : open_single(file, found.bytes, error);
    }
    if (!status)
        status = ids_settle(file, error);
    if (status)
        foreign_close(file);
    return status;
}

void foreign_close(struct foreign_file *file)
{
    foreign_bytes_unmap(&file->documents.bytes);
    os_close(file->fd);
    os_close(file->documents_fd);
    free(file->path);
    free(file->documents_path);
    free(file->loss_path);
    free(file->index_path);
    file->path = file->documents_path = file->loss_path = file->index_path = NULL;
    file->fd = file->documents_fd = -1;
}

/* ---- sampled identity ---- */

/* Hashes up to 4 KiB of the string of all parts, from `at` on; a probe can touch several small files. */
static enum tokmap_status probe(struct hash_state *hash, const struct foreign_part *parts, uint64_t count, uint64_t at,
                                struct tokmap_error *error)
{
    uint8_t bytes[SAMPLE_BYTES];
    uint64_t first = last_at_most(&parts->start, sizeof *parts, count, at);
    for (uint64_t left = SAMPLE_BYTES; first < count && left; first++) {
        const struct foreign_part *part = &parts[first];
        const uint64_t offset = at - part->start, here = min64(left, part->bytes - offset);
        size_t got = 0;
        int system = here ? os_pread(part->fd, bytes, (size_t)here, offset, &got) : 0;
        if (system)
            return error_set_system(error, system, part->path, offset, "the file cannot be read");
        if (got < here)
            return error_set(error, TOKMAP_ERROR_TRUNCATED, part->path, offset + got,
                             "the file ends at this byte, but it was longer when it was opened");
        hash_state_add(hash, bytes, (size_t)here);
        left -= here;
        at += here;
    }
    return TOKMAP_OK;
}

static void hash_number(struct hash_state *hash, uint64_t number)
{
    uint8_t bytes[8];
    store64(bytes, number);
    hash_state_add(hash, bytes, sizeof bytes);
}

enum tokmap_status foreign_sample(const struct foreign_file *file, struct foreign_part *parts, uint64_t count,
                                  uint8_t id[16], struct tokmap_error *error)
{
    const struct foreign_words *words = &file->words;
    struct hash_state *hash = hash_state_new();
    uint64_t bytes = 0;
    if (!hash)
        return error_set_memory(error, "the identity of a dataset", 0);
    hash_state_add(hash, SAMPLE_TAG, 8);
    const uint64_t head[] = {file->kind,    words->width,      words->offset, words->eod_id,
                             words->bos_id, words->vocabulary, count};
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        hash_number(hash, head[i]);
    for (uint64_t i = 0; i < count; i++) {
        hash_number(hash, parts[i].bytes);
        parts[i].start = bytes;
        bytes += parts[i].bytes;
    }
    const uint64_t blocks = div_ceil(bytes, SAMPLE_BYTES);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < SAMPLE_PROBES && blocks && !status; i++)
        status = probe(hash, parts, count, SAMPLE_BYTES * mul_div(i, blocks - 1, SAMPLE_PROBES - 1), error);
    if (!status)
        hash128_store(hash_state_128(hash), id);
    hash_state_free(hash);
    return status;
}
