/* SPDX-License-Identifier: MIT */
/*
 * shard_writer.c - writes a shard as a stream; shard_writer.h describes the protocol.
 *
 * shard_slabs.h hashes and writes the tokens in slabs of SLAB_BYTES.
 *
 * NAME.tmx.partial is both the index under construction and the lock: see partial_file.h. Only the holder of the lock
 * touches NAME.bin.partial and NAME.mask.partial. shard_commit.h gives the files their names.
 */
#include "shard_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "index_reader.h"
#include "name_files.h"
#include "partial_file.h"
#include "path_table.h"
#include "platform/os.h"
#include "sealed.h"
#include "shard_commit.h"
#include "shard_slabs.h"
#include "text/path.h"

#define ZERO_BYTES ((size_t)4096)

static const enum shard_file files[PATHS] = {SHARD_TOKENS, SHARD_INDEX, SHARD_MASK, SHARD_SEALED, SHARD_DROPPED,
                                             SHARD_TOKENS, SHARD_INDEX, SHARD_MASK, SHARD_SEALED, SHARD_DROPPED};

/* ---- open ---- */

/* Returns the path of a file; NULL without memory. */
static char *path_make(const char *prefix, enum path path, bool waits)
{
    const bool partial = path >= TOKENS_PARTIAL;
    return shard_file_path(prefix, files[path],
                           waits     ? (partial ? SHARD_READY_PARTIAL : SHARD_READY)
                           : partial ? SHARD_PARTIAL
                                     : SHARD_FINAL);
}

static enum tokmap_status system_failed(const struct shard_writer *writer, int system, enum path path, const char *what,
                                        struct tokmap_error *error)
{
    return error_set_system(error, system, writer->paths[path], TOKMAP_NO_OFFSET, "%s", what);
}

/* Whatever a commit needs to know. */
static struct shard_commit commit_of(const struct shard_writer *writer)
{
    return (struct shard_commit){
        .index = writer->paths[INDEX],
        .index_partial = writer->paths[INDEX_PARTIAL],
        .names = {[SHARD_MASK] = writer->paths[MASK],
                  [SHARD_TOKENS] = writer->paths[TOKENS],
                  [SHARD_SEALED] = writer->paths[SEALED],
                  [SHARD_DROPPED] = writer->options.list ? writer->paths[LIST] : NULL},
        .partials = {[SHARD_MASK] = writer->options.mask ? writer->paths[MASK_PARTIAL] : NULL,
                     [SHARD_TOKENS] = writer->options.seal ? NULL : writer->paths[TOKENS_PARTIAL],
                     [SHARD_SEALED] = writer->options.seal ? writer->paths[SEALED_PARTIAL] : NULL,
                     [SHARD_DROPPED] = writer->options.list == SHARD_LIST_NEW ? writer->paths[LIST_PARTIAL] : NULL},
        .id = writer->index.id,
        .sync = writer->options.sync,
        .last = writer->options.last,
        .last_user = writer->options.last_user,
    };
}

/* Returns whether files of this name without an index may be those of a writer that was killed, which only the holder
 * of the lock can tell. */
static bool may_be_leftover(const struct shard_writer *writer)
{
    struct os_stat found;
    return !writer->locked && os_lstat(writer->paths[INDEX], &found) == ENOENT &&
           !os_lstat(writer->paths[INDEX_PARTIAL], &found);
}

static enum tokmap_status check_absent(const struct shard_writer *writer, struct tokmap_error *error)
{
    if (writer->options.replace || may_be_leftover(writer))
        return TOKMAP_OK;
    for (int i = TOKENS; i <= SEALED; i++) {
        struct os_stat found;
        if ((i == MASK && !writer->options.mask) || (i == SEALED && !writer->options.seal))
            continue;
        int system = os_lstat(writer->paths[i], &found);
        if (!system)
            return error_set(error, TOKMAP_ERROR_EXISTS, writer->paths[i], TOKMAP_NO_OFFSET,
                             "the output already exists; choose another name, or replace it");
        if (system != ENOENT)
            return system_failed(writer, system, (enum path)i, "the output cannot be examined", error);
    }
    return TOKMAP_OK;
}

/* Undoes a commit. A writer that was killed in the commit of a shard that waits may have renamed the tokens and the
 * mask already: gives them the names of an unfinished shard again. No reader opens it, so its index goes. Sealed tokens
 * are made again from the tokens, which then have their partial name still. */
static void waiting_take_back(const struct shard_writer *writer)
{
    static const enum path pairs[][2] = {{TOKENS, TOKENS_PARTIAL}, {MASK, MASK_PARTIAL}};
    struct os_stat found;
    (void)os_unlink(writer->paths[INDEX]);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (os_lstat(writer->paths[pairs[i][1]], &found) == ENOENT)
            (void)name_file(-1, writer->paths[pairs[i][0]], writer->paths[pairs[i][1]], false, NULL);
    if (writer->options.seal)
        (void)os_unlink(writer->paths[SEALED]);
}

static int take_over(void *user)
{
    const struct shard_writer *writer = user;
    const struct shard_commit commit = commit_of(writer);
    int system = 0;
    if (writer->options.resume && writer->options.waits)
        waiting_take_back(writer);
    else if (writer->options.resume)
        system = shard_take_back(&commit);
    return system ? system : shard_take_over(&commit);
}

static enum tokmap_status take_lock(struct shard_writer *writer, struct tokmap_error *error)
{
    const int system = partial_file_open(writer->paths[INDEX_PARTIAL], take_over, writer, &writer->index_fd);
    if (system == ELIBACC && sealed_load(writer->paths[INDEX], error))
        return TOKMAP_ERROR_UNSUPPORTED;
    writer->locked = !system;
    return system ? partial_file_failed(system, writer->paths[INDEX_PARTIAL], error) : TOKMAP_OK;
}

/* Removes an empty lock file that nobody has locked, beside a complete shard: a power cut may bring one back. */
static void lock_settle(const struct shard_writer *writer)
{
    const char *path = writer->paths[INDEX_PARTIAL];
    struct os_stat found;
    int fd;
    if (os_lstat(path, &found) || found.kind != OS_KIND_FILE || found.bytes ||
        partial_file_open(path, take_over, (void *)(uintptr_t)writer, &fd))
        return;
    (void)os_unlink(path);
    os_close(fd);
}

static enum tokmap_status make_mask_partial(struct shard_writer *writer, struct tokmap_error *error)
{
    int system = os_unlink(writer->paths[MASK_PARTIAL]);
    if (!system || system == ENOENT)
        system = os_open(writer->paths[MASK_PARTIAL], OS_WRITE_NEW, &writer->mask_fd);
    if (system) {
        writer->mask_fd = -1;
        return system_failed(writer, system, MASK_PARTIAL, "the mask cannot be created", error);
    }
    writer->mask_made = true;
    if (mask_writer_init(&writer->mask, writer->mask_fd, writer->folder))
        return error_set_memory(error, "the writer of the mask", BLOCK_BYTES);
    return TOKMAP_OK;
}

/* Opens the files that a killed writer has left; shard_save.h fills the writer with its state. */
static enum tokmap_status open_partials(struct shard_writer *writer, struct tokmap_error *error)
{
    int system = partial_file_reopen(writer->paths[TOKENS_PARTIAL], &writer->tokens_fd);
    if (system)
        return system_failed(writer, system, TOKENS_PARTIAL, "the unfinished output cannot be continued", error);
    writer->tokens_made = true;
    if (!writer->options.mask)
        return TOKMAP_OK;
    system = partial_file_reopen(writer->paths[MASK_PARTIAL], &writer->mask_fd);
    if (system)
        return system_failed(writer, system, MASK_PARTIAL, "the unfinished mask cannot be continued", error);
    writer->mask_made = true;
    if (mask_writer_init(&writer->mask, writer->mask_fd, writer->folder))
        return error_set_memory(error, "the writer of the mask", BLOCK_BYTES);
    return TOKMAP_OK;
}

static enum tokmap_status make_partials(struct shard_writer *writer, struct tokmap_error *error)
{
    enum tokmap_status status = take_lock(writer, error);
    if (status)
        return status;
    if (writer->options.resume && writer->options.waits) /* again, as a power cut may have lost only the lock file */
        waiting_take_back(writer);
    /* Check again, because another writer may have finished before the lock was taken. */
    status = check_absent(writer, error);
    const struct shard_commit commit = commit_of(writer);
    if (!status && writer->options.replace)
        status = shard_recover(&commit, error);
    if (status)
        return status;
    (void)os_unlink(writer->paths[SEALED_PARTIAL]); /* left by a writer that was killed */
    if (writer->options.resume)
        return open_partials(writer, error);
    int system = os_unlink(writer->paths[TOKENS_PARTIAL]); /* left by a writer that was killed */
    if (system && system != ENOENT)
        return system_failed(writer, system, TOKENS_PARTIAL,
                             "the unfinished output of an earlier writer cannot be removed", error);
    system = os_open(writer->paths[TOKENS_PARTIAL], OS_WRITE_NEW, &writer->tokens_fd);
    if (system) {
        writer->tokens_fd = -1;
        return system_failed(writer, system, TOKENS_PARTIAL, "the output cannot be created", error);
    }
    writer->tokens_made = true;
    if (writer->options.mask)
        return make_mask_partial(writer, error);
    (void)os_unlink(writer->paths[MASK_PARTIAL]); /* left by a writer that was killed and had a mask */
    return TOKMAP_OK;
}

enum tokmap_status shard_writer_open(struct shard_writer **writer, const char *prefix,
                                     const struct shard_writer_options *options, struct tokmap_error *error)
{
    *writer = NULL;
    if (!prefix || !options)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "a shard needs a prefix and options");
    enum tokmap_status status = writer_options_check(options, prefix, error);
    if (!status && options->seal) /* now, and not after all the work */
        status = sealed_load(prefix, error);
    if (status)
        return status;
    struct shard_writer *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the shard writer", sizeof *made);
    made->options = *options;
    made->options.columns = NULL; /* the columns writer has copies of the names */
    made->tokens_fd = made->index_fd = made->mask_fd = made->sealed_fd = -1;
    made->folder = path_folder(prefix);
    bool complete = made->folder;
    for (int i = 0; i < PATHS; i++)
        complete = (made->paths[i] = path_make(prefix, (enum path)i, options->waits)) && complete;
    spill_init(&made->carry_spill, made->folder);
    spill_init(&made->block_spill, made->folder);
    spill_init(&made->page_spill, made->folder);
    spill_init(&made->origin.run_spill, made->folder);
    spill_init(&made->origin.file_spill, made->folder);
    spill_init(&made->origin.path_spill, made->folder);
    complete = (made->buffer = malloc(SLAB_BYTES)) && complete;
    complete = (made->block = hash_state_new()) && complete;
    if (options->column_count && complete)
        complete = !columns_writer_init(&made->columns, options->columns, options->column_count, made->folder);
    if (!complete)
        status = error_set_memory(error, "the shard writer", SLAB_BYTES);
    else if (!options->resume) /* what a killed writer has left has its names only once it is locked */
        status = check_absent(made, error);
    if (status == TOKMAP_ERROR_EXISTS)
        lock_settle(made);
    if (!status)
        status = make_partials(made, error);
    if (!status && index_writer_init(&made->index, made->index_fd))
        status = error_set_memory(error, "the index writer", SLAB_BYTES);
    if (!status) {
        int system = index_writer_begin(&made->index, SECTION_DOCUMENTS);
        if (system)
            status = system_failed(made, system, INDEX_PARTIAL, "the index cannot be written", error);
    }
    if (status && options->resume)
        shard_writer_leave(made);
    else if (status)
        shard_writer_abort(made);
    else
        *writer = made;
    return status;
}

/* ---- documents ---- */

/* Finds out whether the index has the file already. */
static int origin_file_find(struct origin_state *origin)
{
    bool found;
    const bool enough = path_table_find(&origin->table, origin->path, origin->path_bytes, &origin->file, &found);
    origin->new_file = !found;
    return enough ? 0 : ENOMEM;
}

/* Records a run if the origin has changed, and a file if its path has changed. To be called when a document ends, so
 * that an origin without documents leaves no trace. */
static int origin_flush(struct shard_writer *writer)
{
    struct origin_state *origin = &writer->origin;
    int system = 0;
    assert(origin->known && !writer->failed);
    if (!origin->changed)
        return 0;
    if (origin->new_file && writer->options.mixed)
        system = origin_file_find(origin);
    if (origin->new_file && !system) {
        origin->paths_bytes += origin->path_bytes;
        struct origin_file file = {origin->paths_bytes};
        system = spill_add(&origin->path_spill, origin->path, (size_t)origin->path_bytes);
        if (!system)
            system = spill_add(&origin->file_spill, &file, sizeof file);
        origin->file = origin->files++;
    }
    struct origin_run run = {writer->documents, origin->record, origin->file};
    if (!system)
        system = spill_add(&origin->run_spill, &run, sizeof run);
    origin->runs++;
    origin->changed = origin->new_file = false;
    return system;
}

static enum tokmap_status failed_before(const struct shard_writer *writer, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[TOKENS_PARTIAL], TOKMAP_NO_OFFSET,
                     "writing this output failed before; give it up and begin again");
}

/* Checks what must hold before anything is changed: a refused call leaves the shard as it was. */
static enum tokmap_status check_add(const struct shard_writer *writer, uint64_t count, const uint64_t *ends,
                                    uint64_t documents, uint64_t largest, struct tokmap_error *error)
{
    const char *path = writer->paths[TOKENS_PARTIAL];
    if (writer->failed)
        return failed_before(writer, error);
    uint64_t before = 0;
    for (uint64_t i = 0; i < documents; i++) {
        if (ends[i] < before)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                             "document %" PRIu64 " of this call ends before it begins; ends must not decrease", i);
        before = ends[i];
    }
    if (before > count)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                         "the documents of this call end at token %" PRIu64 ", but the call has only %" PRIu64
                         " tokens",
                         before, count);
    if (count && largest >= writer->options.vocabulary)
        return error_set(error, TOKMAP_ERROR_TOKEN, path, TOKMAP_NO_OFFSET,
                         "id %" PRIu64 " is not in the vocabulary of %" PRIu64
                         " ids; use the tokenizer that made the ids",
                         largest, writer->options.vocabulary);
    uint64_t width = writer->options.width;
    if (count > FILE_BYTES_MAX / width || writer->tokens > FILE_BYTES_MAX / width - count)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the tokens are more than a file can hold; write several shards");
    return TOKMAP_OK;
}

/* Records the ends of documents and the counts. This part does not depend on the tokens. */
static int add_documents(struct shard_writer *writer, uint64_t count, const uint64_t *ends, uint64_t documents,
                         uint64_t largest)
{
    int system = documents && writer->origin.known ? origin_flush(writer) : 0;
    if (!system)
        system = index_writer_ends(&writer->index, &writer->carry_spill, &writer->carries, writer->documents,
                                   writer->tokens, ends, documents);
    writer->document_open = (documents ? ends[documents - 1] : 0) < count || (!documents && writer->document_open);
    writer->tokens += count;
    writer->documents += documents;
    writer->origin.record += documents;
    if (count)
        writer->largest = max64(writer->largest, largest);
    return system;
}

enum tokmap_status shard_writer_add(struct shard_writer *writer, const void *tokens, uint64_t count,
                                    const uint64_t *ends, uint64_t documents, uint64_t largest,
                                    struct tokmap_error *error)
{
    enum tokmap_status status = check_add(writer, count, ends, documents, largest, error);
    if (status)
        return status;
    int system = shard_slabs_add(writer, tokens, count * writer->options.width);
    if (system) {
        writer->failed = true;
        return system_failed(writer, system, TOKENS_PARTIAL, "the tokens cannot be written", error);
    }
    system = add_documents(writer, count, ends, documents, largest);
    if (system) {
        writer->failed = true;
        return system_failed(writer, system, INDEX_PARTIAL, "the index cannot be written", error);
    }
    return TOKMAP_OK;
}

/* Appends zeros. Whole blocks become holes in the file; the zeros around them are written, so the rest of the writer
 * does not have to handle holes. */
static int append_zeros(struct shard_writer *writer, uint64_t count)
{
    static const uint8_t zeros[ZERO_BYTES];
    int system = 0;
    while (count && !(system = shard_slabs_wait(writer))) {
        if (writer->buffered && !((writer->written + writer->buffered) % BLOCK_BYTES))
            system = shard_slabs_flush(writer);
        if (!system && !writer->buffered && !writer->block_filled && count >= BLOCK_BYTES) {
            if (!writer->zero_block_hash) {
                for (size_t done = 0; done < BLOCK_BYTES; done += sizeof zeros)
                    hash_state_add(writer->block, zeros, sizeof zeros);
                writer->zero_block_hash = hash_state_64(writer->block);
                hash_state_reset(writer->block);
            }
            system = spill_add(&writer->block_spill, &writer->zero_block_hash, sizeof writer->zero_block_hash);
            writer->holes = true;
            writer->written += BLOCK_BYTES;
            writer->behind.asked = writer->written;
            writer->behind.flushed = writer->written;
            count -= BLOCK_BYTES;
        } else if (!system) {
            uint64_t to_block = BLOCK_BYTES - (writer->written + writer->buffered) % BLOCK_BYTES;
            uint64_t part = min64(min64(count, to_block), sizeof zeros);
            system = shard_slabs_add(writer, zeros, part);
            count -= part;
        }
    }
    return system;
}

enum tokmap_status shard_writer_add_zeros(struct shard_writer *writer, uint64_t count, struct tokmap_error *error)
{
    enum tokmap_status status = check_add(writer, count, &count, 1, 0, error);
    if (status)
        return status;
    int system = append_zeros(writer, count * writer->options.width);
    if (!system)
        system = add_documents(writer, count, &count, 1, 0);
    if (system) {
        writer->failed = true;
        return system_failed(writer, system, TOKENS_PARTIAL, "the shard cannot be written", error);
    }
    return TOKMAP_OK;
}

enum tokmap_status shard_writer_origin(struct shard_writer *writer, const char *path, uint64_t path_bytes,
                                       uint64_t record, struct tokmap_error *error)
{
    struct origin_state *origin = &writer->origin;
    if (writer->failed)
        return failed_before(writer, error);
    if (!origin->known && writer->documents)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[INDEX_PARTIAL], TOKMAP_NO_OFFSET,
                         "earlier documents have no origin; state an origin before the first document, or never");
    bool same_path = origin->known && path_bytes == origin->path_bytes && !memcmp(path, origin->path, path_bytes);
    if (same_path && record == origin->record)
        return TOKMAP_OK;
    if (writer->document_open)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[INDEX_PARTIAL], TOKMAP_NO_OFFSET,
                         "the origin cannot change while a document is open; end the document first");
    if (!same_path) {
        if (path_bytes > origin->path_capacity || !origin->path) {
            char *grown = path_bytes < SIZE_MAX / 2 ? realloc(origin->path, (size_t)path_bytes + 1) : NULL;
            if (!grown)
                return error_set_memory(error, "the path of an input", path_bytes);
            origin->path = grown;
            origin->path_capacity = path_bytes;
        }
        memcpy(origin->path, path, (size_t)path_bytes);
        origin->path_bytes = path_bytes;
        origin->new_file = true;
    }
    origin->known = origin->changed = true;
    origin->record = record;
    return TOKMAP_OK;
}

enum tokmap_status shard_writer_mask(struct shard_writer *writer, const uint8_t *bits, uint64_t first, uint64_t count,
                                     struct tokmap_error *error)
{
    if (writer->failed)
        return failed_before(writer, error);
    if (!writer->options.mask)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[TOKENS_PARTIAL], TOKMAP_NO_OFFSET,
                         "the shard is written without a mask; set mask");
    const int system = mask_writer_add(&writer->mask, bits, first, count);
    if (!system)
        return TOKMAP_OK;
    writer->failed = true;
    return system_failed(writer, system, MASK_PARTIAL, "the mask cannot be written", error);
}

enum tokmap_status shard_writer_values(struct shard_writer *writer, const struct shard_value *values,
                                       uint64_t documents, struct tokmap_error *error)
{
    const uint32_t columns = writer->columns.count;
    if (writer->failed)
        return failed_before(writer, error);
    if (!columns)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[INDEX_PARTIAL], TOKMAP_NO_OFFSET,
                         "the shard is written without columns; set columns");
    for (uint64_t i = 0; i < documents * columns; i++)
        if (!shard_value_is_sound(&values[i]))
            return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                             "the value of column '%.100s' for document %" PRIu64
                             " is not JSON text in UTF-8, begins or ends with a space, or is more than %d containers "
                             "deep",
                             writer->columns.columns[i % columns].name, writer->columns.documents + i / columns,
                             COLUMN_DEPTH);
    const int system = columns_writer_add(&writer->columns, values, documents);
    if (!system)
        return TOKMAP_OK;
    writer->failed = true;
    if (system == EFBIG)
        return error_set(error, TOKMAP_ERROR_LIMIT, writer->paths[INDEX_PARTIAL], TOKMAP_NO_OFFSET,
                         "the values of the columns are more than a file can hold; write several shards");
    return system_failed(writer, system, INDEX_PARTIAL, "the columns cannot be written", error);
}

uint64_t shard_writer_tokens(const struct shard_writer *writer)
{
    return writer->tokens;
}

uint64_t shard_writer_documents(const struct shard_writer *writer)
{
    return writer->documents;
}

/* ---- commit ---- */

static int finish_tokens(struct shard_writer *writer)
{
    int system = shard_slabs_flush(writer);
    if (!system && writer->block_filled)
        system = shard_slabs_end_block(writer);
    if (!system)
        system =
            os_truncate(writer->tokens_fd, writer->written); /* a hole at the end does not extend the file by itself */
    return system;
}

/* Reads a block of the finished tokens, for sealing. */
static enum tokmap_status block_read(void *self, uint32_t worker, uint64_t block, uint8_t *tokens, size_t bytes,
                                     struct tokmap_error *error)
{
    const struct shard_writer *writer = self;
    uint64_t hash;
    const int system = spill_read(&writer->block_spill, block * sizeof hash, &hash, sizeof hash);
    (void)worker;
    if (system)
        return system_failed(writer, system, TOKENS_PARTIAL, "the hashes of the tokens cannot be read", error);
    return frames_block_read(writer->tokens_fd, writer->paths[TOKENS_PARTIAL], block, hash, tokens, bytes, error);
}

static int sealed_progress(void *self, uint64_t done)
{
    const struct shard_writer *writer = self;
    const struct shard_writer_seal *seal = writer->options.seal;
    return seal->progress ? seal->progress(seal->user, done, writer->written) : 0;
}

/* Makes the sealed tokens from the finished ones. */
static enum tokmap_status seal_tokens(struct shard_writer *writer, struct tokmap_error *error)
{
    const struct shard_writer_seal *seal = writer->options.seal;
    const int system = os_open(writer->paths[SEALED_PARTIAL], OS_WRITE_NEW, &writer->sealed_fd);
    if (system) {
        writer->sealed_fd = -1;
        return system_failed(writer, system, SEALED_PARTIAL, "the sealed tokens cannot be created", error);
    }
    writer->sealed_made = true;
    const struct frames_options options = {.folder = writer->folder,
                                           .path = writer->paths[SEALED_PARTIAL],
                                           .fd = writer->sealed_fd,
                                           .token_bytes = writer->written,
                                           .width = writer->options.width,
                                           .level = seal->level,
                                           .threads = seal->threads,
                                           .sync = writer->options.sync,
                                           .read = block_read,
                                           .progress = sealed_progress,
                                           .user = writer};
    const enum tokmap_status status = frames_write(&writer->frames, &options, error);
    if (!status && seal->sealed_bytes)
        *seal->sealed_bytes = writer->frames.bytes;
    return status;
}

static int write_origin(struct shard_writer *writer)
{
    struct origin_state *origin = &writer->origin;
    struct origin_head head = {origin->runs, origin->files, origin->paths_bytes, 0};
    int system = index_writer_begin(&writer->index, SECTION_ORIGIN);
    if (!system)
        system = index_writer_add(&writer->index, &head, sizeof head);
    if (!system)
        system = index_writer_add_spill(&writer->index, &origin->run_spill);
    if (!system)
        system = index_writer_add_spill(&writer->index, &origin->file_spill);
    if (!system)
        system = index_writer_add_spill(&writer->index, &origin->path_spill);
    return system ? system : index_writer_end(&writer->index);
}

static int finish_index(struct shard_writer *writer, const char *about, uint64_t about_bytes, uint8_t content[16])
{
    struct index_writer *index = &writer->index;
    int system = index_writer_pad(index, 8);
    if (!system)
        system = index_writer_add_spill(index, &writer->carry_spill);
    if (!system)
        system = index_writer_end(index);
    uint64_t documents_hash = index->table[index->sections - 1].hash;
    if (!system)
        system = index_writer_section(index, SECTION_BLOCKS, NULL, 0, &writer->block_spill);
    uint64_t blocks_hash = index->table[index->sections - 1].hash;
    const bool pages = !writer->options.seal && !writer->holes;
    if (!system && writer->options.seal)
        system = frames_section(&writer->frames, index);
    if (!system && pages)
        system = index_writer_section(index, SECTION_PAGES, NULL, 0, &writer->page_spill);
    if (!system && writer->origin.known)
        system = write_origin(writer);
    if (!system && writer->options.mask)
        system = mask_writer_finish(&writer->mask, index);
    if (!system && writer->columns.count)
        system = columns_writer_finish(&writer->columns, index);
    if (!system && about_bytes)
        system = index_writer_section(index, SECTION_ABOUT, about, (size_t)about_bytes, NULL);
    const struct shard_writer_options *options = &writer->options;
    struct section_shard shard;
    memset(&shard, 0, sizeof shard);
    shard.tokens = writer->tokens;
    shard.documents = writer->documents;
    shard.width = options->width;
    shard.block_bytes = (uint32_t)BLOCK_BYTES;
    shard.vocabulary = options->vocabulary;
    shard.largest_id = writer->largest;
    shard.eod_id = options->eod_id;
    shard.bos_id = options->bos_id;
    memcpy(shard.tokenizer, options->tokenizer, sizeof shard.tokenizer);
    index_content_id(shard.width, shard.tokens, shard.documents, blocks_hash, documents_hash, shard.content);
    memcpy(content, shard.content, sizeof shard.content);
    /* The shard section is written last, next to the table, so that one read from storage returns both. */
    if (!system)
        system = index_writer_section(index, SECTION_SHARD, &shard, sizeof shard, NULL);
    return system ? system : index_writer_finish(index);
}

/* Returns true if NAME.bin.partial is still the file of this writer. */
static bool is_named(const struct shard_writer *writer)
{
    struct os_stat made, named;
    return !os_fstat(writer->tokens_fd, &made) && !os_lstat(writer->paths[TOKENS_PARTIAL], &named) &&
           made.inode == named.inode && made.device == named.device;
}

/* Before sealed tokens get their name: removes plain ones that nobody needs. Those of a state that was saved are needed
 * until the shard has its name, and of one that waits until the next state is saved. A NAME.bin without an index
 * belongs to no shard, and is what options.replace replaces. */
static void plain_remove(const struct shard_writer *writer)
{
    struct os_stat found;
    if (!writer->saved)
        (void)os_unlink(writer->paths[TOKENS_PARTIAL]);
    if (writer->options.replace && os_lstat(writer->paths[INDEX], &found) == ENOENT)
        (void)os_unlink(writer->paths[TOKENS]);
}

static enum tokmap_status rename_all(struct shard_writer *writer, struct tokmap_error *error)
{
    const struct shard_commit commit = commit_of(writer);
    bool visible;
    assert(writer->locked && writer->tokens_made && !writer->document_open);
    /* Only by the partial index does a writer that continues know which files are its own. So that reaches storage
     * before any of them loses its partial name. */
    const int system = writer->saved && writer->options.sync && !writer->options.waits
                           ? os_sync_folder(writer->paths[INDEX_PARTIAL])
                           : 0;
    if (system)
        return system_failed(writer, system, INDEX_PARTIAL, "the folder cannot be synced", error);
    if (writer->options.seal)
        plain_remove(writer);
    const enum tokmap_status status = shard_commit(&commit, &visible, error);
    if (visible) {
        writer->locked = writer->mask_made = writer->sealed_made = false;
        writer->tokens_made = writer->options.seal && !writer->options.waits && is_named(writer);
    }
    return status;
}

/* Checks that the caller has stated all that the shard must have. */
static enum tokmap_status whole_check(const struct shard_writer *writer, struct tokmap_error *error)
{
    if (writer->document_open)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[TOKENS_PARTIAL], TOKMAP_NO_OFFSET,
                         "the last document is still open; end it before the commit");
    if (writer->options.mask && writer->mask.tokens != writer->tokens)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[MASK_PARTIAL], TOKMAP_NO_OFFSET,
                         "the mask has %" PRIu64 " bits, but the shard has %" PRIu64
                         " tokens; state one bit for each token",
                         writer->mask.tokens, writer->tokens);
    if (writer->columns.count && writer->columns.documents != writer->documents)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->paths[INDEX_PARTIAL], TOKMAP_NO_OFFSET,
                         "%" PRIu64 " documents have values of the columns, but the shard has %" PRIu64
                         " documents; state the values of each document",
                         writer->columns.documents, writer->documents);
    return TOKMAP_OK;
}

enum tokmap_status shard_writer_finish(struct shard_writer *writer, const char *about, uint64_t about_bytes,
                                       uint8_t content[16], struct tokmap_error *error)
{
    uint8_t made[16];
    assert(!writer->finished);
    enum tokmap_status status = writer->failed ? failed_before(writer, error) : whole_check(writer, error);
    if (status)
        return status;
    const bool sync_tokens = writer->options.sync && !writer->options.seal;
    int system = finish_tokens(writer);
    assert(system || shard_writing_is_sound(writer));
    if (!system && sync_tokens)
        write_behind_rest(&writer->behind, writer->tokens_fd, writer->written);
    if (system)
        return system_failed(writer, system, TOKENS_PARTIAL, "the tokens cannot be written", error);
    status = writer->options.seal ? seal_tokens(writer, error) : TOKMAP_OK;
    if (status)
        return status;
    system = finish_index(writer, about, about_bytes, made);
    if (system)
        return system_failed(writer, system, INDEX_PARTIAL, "the index cannot be written", error);
    system = sync_tokens ? write_behind_sync(&writer->behind, writer->tokens_fd, writer->written) : 0;
    if (system)
        return system_failed(writer, system, TOKENS_PARTIAL, "the tokens cannot be synced to storage", error);
    system = writer->options.sync && writer->options.mask ? os_sync(writer->mask_fd) : 0;
    if (system)
        return system_failed(writer, system, MASK_PARTIAL, "the mask cannot be synced to storage", error);
    system = writer->options.sync ? os_sync(writer->index_fd) : 0;
    if (system)
        return system_failed(writer, system, INDEX_PARTIAL, "the index cannot be synced to storage", error);
    writer->finished = true;
    if (content)
        memcpy(content, made, sizeof made);
    return TOKMAP_OK;
}

enum tokmap_status shard_writer_commit(struct shard_writer *writer, const char *about, uint64_t about_bytes,
                                       uint8_t content[16], struct tokmap_error *error)
{
    enum tokmap_status status =
        writer->finished ? TOKMAP_OK : shard_writer_finish(writer, about, about_bytes, content, error);
    if (!status)
        status = check_absent(writer, error);
    if (!status)
        status = rename_all(writer, error);
    (status && writer->saved ? shard_writer_leave : shard_writer_abort)(writer);
    return status;
}

void shard_writer_leave(struct shard_writer *writer)
{
    if (!writer)
        return;
    writer->tokens_made = writer->mask_made = false;
    shard_writer_abort(writer);
}

/* Closing the index releases the lock. That happens last, because no other writer may use these names before. */
void shard_writer_abort(struct shard_writer *writer)
{
    if (!writer)
        return;
    shard_slabs_free(writer);
    if (writer->tokens_made)
        (void)os_unlink(writer->paths[TOKENS_PARTIAL]);
    if (writer->mask_made)
        (void)os_unlink(writer->paths[MASK_PARTIAL]);
    if (writer->sealed_made)
        (void)os_unlink(writer->paths[SEALED_PARTIAL]);
    if (writer->locked)
        (void)os_unlink(writer->paths[INDEX_PARTIAL]);
    write_behind_end(&writer->behind);
    os_close(writer->tokens_fd);
    os_close(writer->mask_fd);
    os_close(writer->sealed_fd);
    frames_free(&writer->frames);
    mask_writer_free(&writer->mask);
    columns_writer_free(&writer->columns);
    os_close(writer->index_fd);
    index_writer_free(&writer->index);
    hash_state_free(writer->block);
    spill_free(&writer->carry_spill);
    spill_free(&writer->block_spill);
    spill_free(&writer->page_spill);
    spill_free(&writer->origin.run_spill);
    spill_free(&writer->origin.file_spill);
    spill_free(&writer->origin.path_spill);
    free(writer->origin.path);
    path_table_free(&writer->origin.table);
    free(writer->buffer);
    free(writer->folder);
    for (int i = 0; i < PATHS; i++)
        free(writer->paths[i]);
    free(writer);
}
