/* SPDX-License-Identifier: MIT */
/*
 * dataset_index.c - tokmap_dataset_index(): reads the files of another project once, on several threads, and writes the
 * index of each.
 *
 * The work on a file is divided into units of UNIT_BLOCKS blocks. Each thread takes the next unit, reads, hashes, and
 * searches it, and then waits until the units before it are written, so that the index is written in order. A thread
 * holds the results of one unit, which are small: hashes, and the ends of documents where the format has no index of
 * them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset.h"
#include "dataset_foreign.h"
#include "format/foreign/store_index.h"
#include "open_shards.h"
#include "platform/os.h"
#include "text/json_scan.h"
#include "text/path.h"
#include "text/utf8.h"
#include "token_find.h"
#include "token_parts.h"

enum { UNIT_BLOCKS = 8, ENDS_AT_ONCE = 4096 };
#define MASK_TOKENS ((uint64_t)1 << 19) /* bytes of a .loss that are read at once */

struct indexing {
    struct shard *shard;
    struct store_index *writer;
    const struct tokmap_index_options *options;
    bool search;            /* documents are found by their EOD or BOS */
    bool mapped;            /* threads may read through the mapping */
    uint64_t units, next;   /* next is accessed atomically */
    uint32_t stop;          /* accessed atomically */
    struct os_mutex *mutex; /* protects the fields below and the writer */
    struct os_condition *written_more;
    uint64_t written; /* units */
    uint64_t largest;
    uint64_t bytes_before, bytes_done, bytes_total; /* of all files, for progress */
    enum tokmap_status status;
    struct tokmap_error error;
};

struct worker {
    struct indexing *indexing;
    struct token_parts *parts;
    uint64_t hashes[UNIT_BLOCKS], blocks, largest;
    uint64_t *ends, end_count, end_capacity;
};

static void fail(struct indexing *indexing, enum tokmap_status status, const struct tokmap_error *error)
{
    os_mutex_lock(indexing->mutex);
    if (!indexing->status) {
        indexing->status = status;
        indexing->error = *error;
    }
    __atomic_store_n(&indexing->stop, 1, __ATOMIC_RELAXED);
    os_condition_broadcast(indexing->written_more);
    os_mutex_unlock(indexing->mutex);
}

/* ---- units ---- */

static bool end_add(struct worker *worker, uint64_t end)
{
    if (!list_room(&worker->ends, worker->end_count, &worker->end_capacity, sizeof *worker->ends))
        return false;
    worker->ends[worker->end_count++] = end;
    return true;
}

/* Adds the ends of the documents that an EOD ends or a BOS begins among tokens of which the first has the number
 * `first`. An end can be added twice (an EOD and then a BOS); the writer leaves the second out. */
static bool search_part(struct worker *worker, const uint8_t *tokens, uint64_t first, uint64_t count)
{
    const struct section_shard *head = &worker->indexing->shard->index.shard;
    const uint64_t eod = head->eod_id, bos = head->bos_id;
    uint64_t next_eod = eod == TOKMAP_NO_ID ? count : token_find(tokens, head->width, 0, count, eod);
    uint64_t next_bos = bos == TOKMAP_NO_ID ? count : token_find(tokens, head->width, 0, count, bos);
    while (next_eod < count || next_bos < count) {
        if (next_bos <= next_eod) {
            if (!end_add(worker, first + next_bos))
                return false;
            next_bos = token_find(tokens, head->width, next_bos + 1, count, bos);
        } else {
            if (!end_add(worker, first + next_eod + 1))
                return false;
            next_eod = token_find(tokens, head->width, next_eod + 1, count, eod);
        }
    }
    return true;
}

static enum tokmap_status part_failed(const struct shard *shard, int system, uint64_t at, struct tokmap_error *error)
{
    const char *path = shard->store.path;
    const uint64_t place = stream_place(shard, at);
    if (system > 0)
        return error_set_system(error, system, path, place, "the tokens cannot be read");
    if (system < 0)
        return error_set(error, TOKMAP_ERROR_TOKEN, path, place,
                         "the element at this byte is not a token id: it is negative or does not fit in 32 bits; "
                         "restore the file");
    return error_set(error, TOKMAP_ERROR_TRUNCATED, path, place,
                     "the file ends at this byte, but it was longer when it was opened");
}

/* Finds the first id that is not in the vocabulary, in a part that has one. vocabulary: that of the options, or 0. */
static enum tokmap_status id_too_large(const struct shard *shard, uint64_t vocabulary, const uint8_t *part, uint64_t at,
                                       size_t bytes, struct tokmap_error *error)
{
    const struct section_shard *head = &shard->index.shard;
    uint64_t id = 0;
    for (size_t i = 0; i < bytes; i += head->width, at += head->width) {
        id = head->width == 2 ? load16(part + i) : load32(part + i);
        if (id >= head->vocabulary)
            break;
    }
    return error_set(
        error, TOKMAP_ERROR_TOKEN, shard->store.path, stream_place(shard, at),
        "the id at this byte is %" PRIu64 ", but ids must be below %" PRIu64 "; restore the file, or correct %s", id,
        head->vocabulary, vocabulary ? "the tokenizer: another one made the ids" : "vocab=V in the name");
}

static enum tokmap_status scan_block(struct worker *worker, const uint8_t *mapping, uint64_t at, size_t bytes,
                                     struct tokmap_error *error)
{
    const struct indexing *indexing = worker->indexing;
    const struct shard *shard = indexing->shard;
    const uint32_t width = shard->index.shard.width;
    const size_t step = bytes == BLOCK_BYTES ? SCAN_PART_BYTES : bytes;
    for (size_t done = 0; done < bytes; done += step) {
        const uint8_t *part;
        size_t got = 0;
        const int system = token_parts_read(worker->parts, shard, mapping, at + done, step, &part, &got);
        if (system || got < step) {
            if (done)
                block_scan_part(worker->parts->scan, worker->parts->buffer, 0, width, true, NULL);
            return part_failed(shard, system, at + done + got, error);
        }
        block_scan_part(worker->parts->scan, part, step, width, done + step == bytes, NULL);
        if (indexing->search && !search_part(worker, part, (at + done) / width, step / width)) {
            if (done + step < bytes)
                block_scan_part(worker->parts->scan, worker->parts->buffer, 0, width, true, NULL);
            return error_set_memory(error, "the ends of documents", worker->end_count * sizeof *worker->ends);
        }
    }
    uint64_t hash, largest;
    block_scan_result(worker->parts->scan, &hash, &largest);
    worker->hashes[worker->blocks++] = hash;
    worker->largest = max64(worker->largest, largest);
    if (largest < shard->index.shard.vocabulary)
        return TOKMAP_OK;
    /* Read the block again to name the place. */
    const uint8_t *part;
    size_t got = 0;
    const int system = token_parts_read(worker->parts, shard, NULL, at, bytes, &part, &got);
    return system || got < bytes ? part_failed(shard, system, at + got, error)
                                 : id_too_large(shard, indexing->options->vocabulary, part, at, bytes, error);
}

/* Writes the results of a unit, and reports progress. The mutex is held. */
static enum tokmap_status unit_write(struct worker *worker, uint64_t bytes, struct tokmap_error *error)
{
    struct indexing *indexing = worker->indexing;
    const struct tokmap_index_options *options = indexing->options;
    enum tokmap_status status = TOKMAP_OK;
    uint64_t kept = 0, before = store_index_last_end(indexing->writer);
    for (uint64_t i = 0; i < worker->end_count; i++) {
        if (worker->ends[i] != before)
            worker->ends[kept++] = before = worker->ends[i];
    }
    status = store_index_ends(indexing->writer, worker->ends, kept, error);
    for (uint64_t i = 0; i < worker->blocks && !status; i++)
        status = store_index_block(indexing->writer, worker->hashes[i], error);
    indexing->largest = max64(indexing->largest, worker->largest);
    indexing->bytes_done += bytes;
    if (!status && options->progress &&
        options->progress(options->user, indexing->bytes_before + indexing->bytes_done, indexing->bytes_total))
        status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET,
                           "the caller ended the indexing after %" PRIu64 " of %" PRIu64 " bytes",
                           indexing->bytes_before + indexing->bytes_done, indexing->bytes_total);
    return status;
}

static enum tokmap_status unit_scan(struct worker *worker, uint64_t unit, uint64_t *bytes, struct tokmap_error *error)
{
    struct indexing *indexing = worker->indexing;
    struct shard *shard = indexing->shard;
    const uint64_t first = unit * UNIT_BLOCKS, last = min64(first + UNIT_BLOCKS, stream_blocks(shard));
    const enum token_way way = token_parts_way(worker->parts, indexing->mapped);
    const uint8_t *mapping = NULL;
    worker->blocks = worker->end_count = worker->largest = 0;
    if (way == BY_MAPPING && store_map(&shard->store, shard->index.shard.width, &mapping, NULL))
        mapping = NULL;
    const uint64_t started = os_clock_ns();
    enum tokmap_status status = TOKMAP_OK;
    *bytes = 0;
    for (uint64_t block = first; block < last && !status; block++) {
        const uint64_t count = min64(BLOCK_BYTES, shard->index.token_bytes - block * BLOCK_BYTES);
        status = scan_block(worker, mapping, block * BLOCK_BYTES, (size_t)count, error);
        *bytes += count;
    }
    if (*bytes)
        token_parts_note(worker->parts, way, (double)(os_clock_ns() - started) / (double)*bytes);
    return status;
}

/* Runs in each thread. */
static void work(void *user, struct token_parts *parts)
{
    struct indexing *indexing = user;
    struct worker worker = {.indexing = indexing, .parts = parts};
    while (!__atomic_load_n(&indexing->stop, __ATOMIC_RELAXED)) {
        const uint64_t unit = __atomic_fetch_add(&indexing->next, 1, __ATOMIC_RELAXED);
        struct tokmap_error error;
        uint64_t bytes;
        if (unit >= indexing->units)
            break;
        enum tokmap_status status = unit_scan(&worker, unit, &bytes, &error);
        if (!status) {
            os_mutex_lock(indexing->mutex);
            while (indexing->written < unit && !__atomic_load_n(&indexing->stop, __ATOMIC_RELAXED))
                os_condition_wait(indexing->written_more, indexing->mutex);
            if (indexing->written == unit) {
                status = unit_write(&worker, bytes, &error);
                indexing->written++;
                os_condition_broadcast(indexing->written_more);
            }
            os_mutex_unlock(indexing->mutex);
        }
        if (status)
            fail(indexing, status, &error);
    }
    free(worker.ends);
}

/* ---- documents that are known before the tokens are read ---- */

/* Copies the ends from a document index that is mapped, because each of them is read. */
static enum tokmap_status ends_copy(struct store_index *writer, const struct foreign_index *index,
                                    struct tokmap_error *error)
{
    uint64_t ends[512], used = 0;
    enum tokmap_status status = foreign_index_check(index, error);
    for (uint64_t i = 0; i < index->count && !status; i++) {
        status = foreign_index_end(index, i, &ends[used++], error);
        if (!status && (used == sizeof ends / sizeof ends[0] || i + 1 == index->count)) {
            status = store_index_ends(writer, ends, used, error);
            used = 0;
        }
    }
    return status;
}

static enum tokmap_status index_copy(struct store_index *writer, const struct foreign_index *index,
                                     struct tokmap_error *error)
{
    struct foreign_index documents = *index;
    enum tokmap_status status = foreign_bytes_map(&documents.bytes, error);
    if (!status)
        status = ends_copy(writer, &documents, error);
    if (!index->bytes.map)
        foreign_bytes_unmap(&documents.bytes);
    return status;
}

/* Asks the caller for the ends of documents. *found: the caller has them. */
static enum tokmap_status ends_ask(const struct indexing *indexing, bool *found, struct tokmap_error *error)
{
    const struct tokmap_index_options *options = indexing->options;
    const uint64_t tokens = indexing->shard->index.shard.tokens;
    *found = false;
    if (!options->ends)
        return TOKMAP_OK;
    uint64_t *ends = malloc(ENDS_AT_ONCE * sizeof *ends), used = 0;
    enum tokmap_status status = ends ? TOKMAP_OK : error_set_memory(error, "the ends of documents", ENDS_AT_ONCE);
    while (!status) {
        status = options->ends(options->user, indexing->shard->store.path, tokens, ends, ENDS_AT_ONCE, &used, error);
        if (status == TOKMAP_ERROR_NOT_FOUND && !*found) {
            free(ends);
            return TOKMAP_OK;
        }
        *found = true;
        if (status || !used)
            break;
        uint64_t before = store_index_last_end(indexing->writer);
        for (uint64_t i = 0; i < used && !status; before = ends[i++])
            if (used > ENDS_AT_ONCE || ends[i] < before || ends[i] > tokens)
                status = error_set(error, TOKMAP_ERROR_ARGUMENT, indexing->shard->store.path, TOKMAP_NO_OFFSET,
                                   "the caller returned an end of a document that is out of order or past the last "
                                   "token");
        if (!status)
            status = store_index_ends(indexing->writer, ends, used, error);
    }
    free(ends);
    return status;
}

/* ---- one file ---- */

static enum tokmap_status mask_copy(struct store_index *writer, const struct shard *shard, struct tokmap_error *error)
{
    const uint64_t tokens = shard->index.shard.tokens;
    uint8_t *bits = malloc(MASK_TOKENS / 8);
    enum tokmap_status status = bits ? TOKMAP_OK : error_set_memory(error, "the mask", MASK_TOKENS / 8);
    for (uint64_t at = 0; at < tokens && !status; at += MASK_TOKENS) {
        const uint64_t part = min64(MASK_TOKENS, tokens - at);
        memset(bits, 0, MASK_TOKENS / 8);
        status = mask_file_read(&shard->mask, at, part, bits, 0, NULL, error);
        if (!status)
            status = store_index_mask(writer, bits, part, error);
    }
    free(bits);
    return status;
}

/* Compares the open file with its name again: it must not have been replaced or changed while it was read. */
static enum tokmap_status unchanged(const struct shard *shard, const struct os_stat *before, struct tokmap_error *error)
{
    struct os_stat now;
    const int system = os_stat(shard->store.path, &now);
    if (system)
        return error_set_system(error, system, shard->store.path, TOKMAP_NO_OFFSET, "the file cannot be examined");
    if (now.bytes != before->bytes || now.inode != before->inode || now.device != before->device ||
        now.modified_ns != before->modified_ns)
        return error_set(error, TOKMAP_ERROR_BUSY, shard->store.path, TOKMAP_NO_OFFSET,
                         "the file was changed while it was being indexed; index it when its writer has finished");
    return TOKMAP_OK;
}

static enum tokmap_status documents_begin(struct indexing *indexing, struct tokmap_error *error)
{
    const struct foreign_file *file = foreign_of(indexing->shard);
    const struct section_shard *head = &indexing->shard->index.shard;
    bool found = false;
    if (file->documents_path)
        return index_copy(indexing->writer, &file->documents, error);
    enum tokmap_status status = ends_ask(indexing, &found, error);
    indexing->search = !found && (head->eod_id != TOKMAP_NO_ID || head->bos_id != TOKMAP_NO_ID);
    return status;
}

static enum tokmap_status file_write(struct indexing *indexing, const struct os_stat *before,
                                     struct tokmap_index_result *result, struct tokmap_error *error)
{
    const struct shard *shard = indexing->shard;
    const struct foreign_file *file = foreign_of(shard);
    struct section_shard head = shard->index.shard;
    enum tokmap_status status = documents_begin(indexing, error);
    if (!status)
        status = token_parts_share("tokmap-index", "the buffers of the indexing", indexing->options->threads,
                                   indexing->units, work, indexing, error);
    if (!status && indexing->status) {
        if (error)
            *error = indexing->error;
        status = indexing->status;
    }
    /* Tokens after the last end are a document, too. */
    if (!status && store_index_last_end(indexing->writer) != head.tokens)
        status = store_index_ends(indexing->writer, &head.tokens, 1, error);
    if (!status && shard->mask.fd >= 0)
        status = mask_copy(indexing->writer, shard, error);
    if (!status)
        status = unchanged(shard, before, error);
    if (status) {
        store_index_abort(indexing->writer);
        return status;
    }
    const struct tokmap_index_options *options = indexing->options;
    const char *given = options->tokenizer_about;
    const size_t room = 256 + (given ? strlen(given) : 0);
    char *about = malloc(room);
    if (!about) {
        store_index_abort(indexing->writer);
        return error_set_memory(error, "the about section", room);
    }
    (void)snprintf(about, room, "{\"tool\":\"tokmap index\",\"version\":\"%s\",\"kind\":\"%s\"%s%s}",
                   TOKMAP_VERSION_STRING, foreign_kind_name(file->kind), given ? ",\"tokenizer\":" : "",
                   given ? given : "");
    head.largest_id = indexing->largest;
    if (options->tokenizer)
        memcpy(head.tokenizer, options->tokenizer, sizeof head.tokenizer);
    const uint64_t documents = store_index_documents(indexing->writer);
    status = store_index_commit(indexing->writer, &head, &file->layout, path_name(file->path), about, error);
    free(about);
    result->files += !status;
    result->tokens += head.tokens;
    result->documents += documents;
    result->bytes += file->layout.bytes;
    return status;
}

static enum tokmap_status file_index(const struct foreign_group *group, uint64_t number, struct indexing *indexing,
                                     struct tokmap_index_result *result, struct tokmap_error *error)
{
    struct shard *shard;
    struct os_stat before;
    enum tokmap_status status = foreign_shard_open(&shard, group, number, error);
    const int system = status ? 0 : os_fstat(shard->store.fd, &before);
    if (system)
        status = error_set_system(error, system, shard->store.path, TOKMAP_NO_OFFSET,
                                  "the file of tokens cannot be examined");
    if (!status)
        status = store_index_open(&indexing->writer, foreign_of(shard)->index_path, shard->mask.fd >= 0,
                                  indexing->options->replace != 0, error);
    if (!status) {
        indexing->shard = shard;
        indexing->search = false;
        indexing->mapped = store_has_views(&shard->store, shard->index.shard.width) &&
                           os_file_is_local(shard->store.fd) && shard->store.bytes <= os_memory_limit() / 2;
        indexing->units = div_ceil(stream_blocks(shard), UNIT_BLOCKS);
        indexing->next = indexing->written = indexing->largest = indexing->bytes_done = 0;
        indexing->stop = 0;
        indexing->status = TOKMAP_OK;
        status = file_write(indexing, &before, result, error);
        indexing->bytes_before += shard->index.token_bytes;
    }
    dataset_shard_free(shard);
    return status;
}

/* ---- all files ---- */

/* Adds up the work, and fails before it begins if an index exists or a file cannot be opened. */
static enum tokmap_status prepare(const struct foreign_group *group, struct indexing *indexing,
                                  struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < group->count && !status; i++) {
        struct shard *shard;
        struct os_stat found;
        status = foreign_shard_open(&shard, group, i, error);
        if (!status && !indexing->options->replace && !os_lstat(foreign_of(shard)->index_path, &found))
            status = error_set(error, TOKMAP_ERROR_EXISTS, foreign_of(shard)->index_path, TOKMAP_NO_OFFSET,
                               "the index already exists; replace it");
        if (!status)
            indexing->bytes_total += shard->index.token_bytes;
        dataset_shard_free(shard);
    }
    return status;
}

static enum tokmap_status group_find(struct foreign_group *group, const char *name, struct tokmap_error *error)
{
    const bool named = foreign_name_has_kind(name);
    if (error)
        error->message[0] = '\0';
    enum tokmap_status status = foreign_group_find(group, name, named, error);
    struct tokmap_dataset *dataset;
    if (status == TOKMAP_ERROR_NOT_FOUND && !named && !dataset_open_as(&dataset, name, TOKMAP_READ_AUTO, NULL)) {
        tokmap_dataset_close(dataset);
        return error_set(error, TOKMAP_ERROR_EXISTS, name, TOKMAP_NO_OFFSET,
                         "this is a dataset that has its indexes already, such as `tokmap pack` makes; only token "
                         "files of other projects are indexed, and are named by their kind: " FOREIGN_RAW_FORM);
    }
    if (status == TOKMAP_ERROR_NOT_FOUND && !named && (!error || !error->message[0]))
        return error_set(error, status, name, TOKMAP_NO_OFFSET,
                         "there is no token file of Megatron, llm.c, or NumPy of this name; name other files by their "
                         "kind, for example " FOREIGN_RAW_FORM);
    return status;
}

static enum tokmap_status tokenizer_check(const struct tokmap_index_options *options, struct tokmap_error *error)
{
    const char *about = options->tokenizer_about;
    const size_t bytes = about ? strlen(about) : 0;
    if (about &&
        (*about != '{' || !json_is_valid(about, bytes, JSON_DEPTH - 1) || utf8_valid_prefix(about, bytes) != bytes))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "tokenizer_about",
                               " is not the text of a JSON object in UTF-8");
    return TOKMAP_OK;
}

/* Takes the vocabulary of the tokenizer as the word vocab of the name. */
static enum tokmap_status vocabulary_settle(struct foreign_group *group, const struct tokmap_index_options *options,
                                            const char *name, struct tokmap_error *error)
{
    uint64_t *word = &group->words.vocabulary;
    if (options->vocabulary && *word && *word != options->vocabulary)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "the name says vocab=%" PRIu64 ", but the tokenizer has %" PRIu64
                         " ids; leave out the word vocab, or name the tokenizer that made the ids",
                         *word, options->vocabulary);
    *word = options->vocabulary ? options->vocabulary : *word;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_dataset_index(const char *name, const struct tokmap_index_options *options,
                                        struct tokmap_index_result *result, struct tokmap_error *error)
{
    static const struct tokmap_index_options defaults = TOKMAP_INDEX_OPTIONS_INIT;
    struct tokmap_index_options chosen;
    struct tokmap_index_result made = TOKMAP_INDEX_RESULT_INIT;
    struct foreign_group group;
    if (!name || !*name)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the name of the dataset is missing");
    enum tokmap_status status =
        result ? struct_size_check(result, sizeof *result, "tokmap_index_result", error) : TOKMAP_OK;
    if (!status)
        status = struct_copy_in(&chosen, options, &defaults, sizeof chosen, "tokmap_index_options", error);
    if (status)
        return status;
    struct indexing indexing = {.options = &chosen};
    status = tokenizer_check(&chosen, error);
    if (status)
        return status;
    status = group_find(&group, name, error);
    if (!status)
        status = vocabulary_settle(&group, &chosen, name, error);
    if (!status)
        status = prepare(&group, &indexing, error);
    if (!status && (os_mutex_new(&indexing.mutex) || os_condition_new(&indexing.written_more)))
        status = error_set_memory(error, "the indexing", 0);
    for (uint64_t i = 0; i < group.count && !status; i++)
        status = file_index(&group, i, &indexing, &made, error);
    os_condition_free(indexing.written_more);
    os_mutex_free(indexing.mutex);
    foreign_group_free(&group);
    if (!result)
        return status;
    const enum tokmap_status copied =
        struct_copy_out(result, &made, sizeof made, "tokmap_index_result", status ? NULL : error);
    return status ? status : copied;
}
