/* SPDX-License-Identifier: MIT */
#include "shard_save.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "shard_slabs.h"

#define COLUMNS_FROM 64U /* kinds of the columns begin here */

enum {
    SAVED_NUMBERS,
    SAVED_PATH,
    SAVED_ENDS,
    SAVED_CARRIES,
    SAVED_BLOCKS,
    SAVED_PAGES,
    SAVED_RUNS,
    SAVED_FILES,
    SAVED_PATHS,
    SAVED_MASK
};

/* The numbers of a writer that its files and spills do not say. */
struct saved_numbers {
    uint64_t tokens, documents, largest, carries;
    uint64_t document_open, mask_tokens, column_documents;
    uint64_t open_hash; /* XXH3-64 of the tokens of the block that is being filled */
    uint64_t origin_known, origin_changed, origin_new_file, origin_record, origin_file, runs, files, paths_bytes;
};

_Static_assert(COLUMNS_FROM + COLUMNS_MAX * COLUMN_KINDS <= SHARD_SAVE_KINDS, "all kinds have numbers");

static enum tokmap_status failed(const struct shard_writer *writer, int system, const char *what,
                                 struct tokmap_error *error)
{
    const char *path = writer->paths[TOKENS_PARTIAL];
    if (system == EINVAL)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, TOKMAP_NO_OFFSET,
                         "the unfinished output does not have what its journal says; start over with "
                         "--no-resume");
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s", what);
}

/* ---- save ---- */

static uint64_t open_hash(const struct shard_writer *writer)
{
    /* The buffer may cross the end of the block, so both are hashed, one after the other. */
    const uint64_t both[2] = {hash_state_64(writer->block), hash64(writer->buffer, writer->buffered)};
    return hash64(both, sizeof both);
}

static void numbers_save(struct shard_writer *writer, struct state_sink *sink)
{
    const struct origin_state *origin = &writer->origin;
    const struct saved_numbers numbers = {.tokens = writer->tokens,
                                          .documents = writer->documents,
                                          .largest = writer->largest,
                                          .carries = writer->carries,
                                          .document_open = writer->document_open,
                                          .mask_tokens = writer->mask.tokens,
                                          .column_documents = writer->columns.documents,
                                          .open_hash = open_hash(writer),
                                          .origin_known = origin->known,
                                          .origin_changed = origin->changed,
                                          .origin_new_file = origin->new_file,
                                          .origin_record = origin->record,
                                          .origin_file = origin->file,
                                          .runs = origin->runs,
                                          .files = origin->files,
                                          .paths_bytes = origin->paths_bytes};
    if (origin->known)
        state_put(sink, SAVED_PATH, origin->path, (size_t)origin->path_bytes);
    state_put(sink, SAVED_NUMBERS, &numbers, sizeof numbers);
}

static void increments_save(struct shard_writer *writer, struct state_sink *sink)
{
    struct index_writer *index = &writer->index;
    const uint64_t begin = index->table[0].offset;
    index_writer_save(index, begin + writer->saved_documents * sizeof(uint32_t), SAVED_ENDS, sink);
    writer->saved = true;
    writer->saved_documents = writer->documents;
    spill_save(&writer->carry_spill, SAVED_CARRIES, sink);
    spill_save(&writer->block_spill, SAVED_BLOCKS, sink);
    spill_save(&writer->page_spill, SAVED_PAGES, sink);
    spill_save(&writer->origin.run_spill, SAVED_RUNS, sink);
    spill_save(&writer->origin.file_spill, SAVED_FILES, sink);
    spill_save(&writer->origin.path_spill, SAVED_PATHS, sink);
    if (writer->options.mask)
        spill_save(&writer->mask.hashes, SAVED_MASK, sink);
    columns_writer_save(&writer->columns, COLUMNS_FROM, sink);
    numbers_save(writer, sink);
}

enum tokmap_status shard_writer_save(struct shard_writer *writer, struct state_sink *sink, struct tokmap_error *error)
{
    int system = writer->failed || writer->holes ? ENOTSUP : shard_slabs_wait(writer);
    assert(!writer->finished && (system || shard_writing_is_sound(writer)));
    /* The buffer keeps its bytes: the writer writes whole slabs, and this one again when it is whole. */
    if (!system)
        system = os_pwrite(writer->tokens_fd, writer->buffer, writer->buffered, writer->written);
    if (!system && writer->options.mask)
        system = mask_writer_flush(&writer->mask);
    if (!system) {
        increments_save(writer, sink);
        system = sink->failed;
    }
    return system ? failed(writer, system, "the unfinished output cannot be saved", error) : TOKMAP_OK;
}

enum tokmap_status shard_writer_sync(struct shard_writer *writer, struct tokmap_error *error)
{
    assert(writer->saved);
    int system = write_behind_store(&writer->behind, writer->tokens_fd);
    if (!system && writer->options.mask)
        system = os_sync(writer->mask_fd);
    return system ? failed(writer, system, "the unfinished output cannot be synced to storage", error) : TOKMAP_OK;
}

/* ---- load ---- */

static int path_load(struct shard_writer *writer, const uint8_t *bytes, size_t count)
{
    struct origin_state *origin = &writer->origin;
    char *path = malloc(count + 1);
    if (!path)
        return ENOMEM;
    memcpy(path, bytes, count);
    free(origin->path);
    origin->path = path;
    origin->path_bytes = origin->path_capacity = count;
    return 0;
}

static int numbers_load(struct shard_writer *writer, const uint8_t *bytes, size_t count)
{
    struct origin_state *origin = &writer->origin;
    struct saved_numbers numbers;
    if (count != sizeof numbers)
        return EINVAL;
    memcpy(&numbers, bytes, sizeof numbers);
    if (numbers.tokens > FILE_BYTES_MAX / writer->options.width || numbers.largest >= (uint64_t)1 << 32 ||
        (numbers.tokens && numbers.largest >= writer->options.vocabulary))
        return EINVAL;
    writer->tokens = numbers.tokens;
    writer->documents = numbers.documents;
    writer->largest = numbers.largest;
    writer->carries = numbers.carries;
    writer->document_open = numbers.document_open != 0;
    writer->saved_mask = numbers.mask_tokens;
    writer->columns.documents = numbers.column_documents;
    writer->saved_hash = numbers.open_hash;
    origin->known = numbers.origin_known != 0;
    origin->changed = numbers.origin_changed != 0;
    origin->new_file = numbers.origin_new_file != 0;
    origin->record = numbers.origin_record;
    origin->runs = numbers.runs;
    origin->files = numbers.files;
    origin->file = numbers.origin_file;
    origin->paths_bytes = numbers.paths_bytes;
    return 0;
}

enum tokmap_status shard_writer_load(struct shard_writer *writer, uint32_t kind, const uint8_t *bytes, size_t count,
                                     struct tokmap_error *error)
{
    assert(writer->options.resume && !writer->saved);
    struct spill *const spills[] = {
        [SAVED_CARRIES] = &writer->carry_spill,     [SAVED_BLOCKS] = &writer->block_spill,
        [SAVED_PAGES] = &writer->page_spill,        [SAVED_RUNS] = &writer->origin.run_spill,
        [SAVED_FILES] = &writer->origin.file_spill, [SAVED_PATHS] = &writer->origin.path_spill,
        [SAVED_MASK] = &writer->mask.hashes};
    int system = EINVAL;
    if (kind == SAVED_NUMBERS)
        system = numbers_load(writer, bytes, count);
    else if (kind == SAVED_PATH)
        system = path_load(writer, bytes, count);
    else if (kind == SAVED_ENDS)
        system = index_writer_add(&writer->index, bytes, count);
    else if (kind <= SAVED_MASK && (kind != SAVED_MASK || writer->options.mask))
        system = spill_add(spills[kind], bytes, count);
    else if (kind >= COLUMNS_FROM)
        system = columns_writer_load(&writer->columns, kind - COLUMNS_FROM, bytes, count);
    return system ? failed(writer, system, "the unfinished output cannot be restored", error) : TOKMAP_OK;
}

/* Returns true if a spill has so many elements of a size. */
static bool has(const struct spill *spill, uint64_t count, uint64_t each)
{
    return spill_bytes(spill) % each == 0 && spill_bytes(spill) / each == count;
}

static bool numbers_are_sound(const struct shard_writer *writer, uint64_t written)
{
    const struct origin_state *origin = &writer->origin;
    const uint64_t ends_bytes = writer->index.offset - writer->index.table[0].offset;
    return ends_bytes % sizeof(uint32_t) == 0 && ends_bytes / sizeof(uint32_t) == writer->documents &&
           has(&writer->carry_spill, writer->carries, sizeof(uint64_t)) &&
           has(&writer->block_spill, written / BLOCK_BYTES, sizeof(uint64_t)) &&
           has(&writer->page_spill, written / TOKEN_PAGE_BYTES, sizeof(uint32_t)) &&
           has(&origin->run_spill, origin->runs, sizeof(struct origin_run)) &&
           has(&origin->file_spill, origin->files, sizeof(struct origin_file)) &&
           spill_bytes(&origin->path_spill) == origin->paths_bytes && (!origin->known || origin->path) &&
           (origin->known || !writer->documents || !origin->runs) &&
           (origin->file < origin->files || (!origin->file && !origin->files));
}

/* With options.mixed: looks for all paths once, so that the table has their numbers. */
static int table_restore(struct origin_state *origin)
{
    struct bytes_buffer path = {0};
    uint64_t begin = 0;
    int system = 0;
    for (uint64_t i = 0; i < origin->files && !system; i++) {
        struct origin_file file;
        uint64_t number = 0;
        bool found = false;
        system = spill_read(&origin->file_spill, i * sizeof file, &file, sizeof file);
        if (system)
            break;
        if (file.path_end < begin || file.path_end > origin->paths_bytes)
            system = EINVAL;
        else if (!bytes_reserve(&path, (size_t)(file.path_end - begin) + 1))
            system = ENOMEM;
        if (!system)
            system = spill_read(&origin->path_spill, begin, path.bytes, (size_t)(file.path_end - begin));
        if (!system &&
            !path_table_find(&origin->table, (const char *)path.bytes, file.path_end - begin, &number, &found))
            system = ENOMEM;
        if (!system && (found || number != i))
            system = EINVAL;
        begin = file.path_end;
    }
    bytes_free(&path);
    return system;
}

/* Reads the open block and the bytes that belong in the buffer, and cuts the file after them. */
static int tokens_restore(struct shard_writer *writer)
{
    const uint64_t bytes = writer->tokens * writer->options.width;
    const uint64_t written = round_down(bytes, SLAB_BYTES), begin = round_down(written, BLOCK_BYTES);
    int system = numbers_are_sound(writer, written) ? 0 : EINVAL;
    for (uint64_t at = begin; at < written && !system; at += SLAB_BYTES) {
        size_t got = 0;
        system = os_pread(writer->tokens_fd, writer->buffer, SLAB_BYTES, at, &got);
        if (!system && got < SLAB_BYTES)
            system = EINVAL;
        if (!system)
            hash_state_add(writer->block, writer->buffer, SLAB_BYTES);
    }
    size_t got = 0;
    writer->buffered = (size_t)(bytes - written);
    if (!system)
        system = os_pread(writer->tokens_fd, writer->buffer, writer->buffered, written, &got);
    if (!system && (got < writer->buffered || open_hash(writer) != writer->saved_hash))
        system = EINVAL;
    if (!system)
        system = os_truncate(writer->tokens_fd, bytes);
    writer->written = writer->behind.asked = writer->behind.dropped = writer->behind.flushed = written;
    writer->block_filled = (size_t)(written - begin);
    return system;
}

enum tokmap_status shard_writer_restored(struct shard_writer *writer, struct tokmap_error *error)
{
    assert(writer->options.resume && !writer->saved);
    int system = tokens_restore(writer);
    if (!system && writer->options.mask)
        system = mask_writer_restore(&writer->mask, writer->saved_mask);
    if (!system && writer->columns.count)
        system = columns_writer_restored(&writer->columns, writer->columns.documents);
    if (!system && writer->options.mixed)
        system = table_restore(&writer->origin);
    if (system)
        return failed(writer, system, "the unfinished output cannot be restored", error);
    writer->saved = true;
    writer->saved_documents = writer->documents;
    struct spill *const spills[] = {&writer->carry_spill,      &writer->block_spill,       &writer->page_spill,
                                    &writer->origin.run_spill, &writer->origin.file_spill, &writer->origin.path_spill};
    for (size_t i = 0; i < sizeof spills / sizeof spills[0]; i++)
        spill_restored(spills[i]);
    return TOKMAP_OK;
}
