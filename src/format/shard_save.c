/* shard_save.c - see shard_save.h. */
#include "shard_save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "shard_pieces.h"
#include "shard_writing.h"

/* What no file says. */
struct saved_numbers {
    uint64_t tokens, largest, document_open, mask_tokens;
    uint64_t open_hash; /* XXH3-64 of the tokens of the block that is being filled */
};

static enum tokmap_status failed(const struct shard_writer *writer, int system, const char *what,
                                 struct tokmap_error *error)
{
    const char *path = writer->paths[TOKENS_PARTIAL];
    if (system == EINVAL)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, TOKMAP_NO_OFFSET,
                         "the unfinished output does not have what its journal says; start over with "
                         "options.start_over");
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s", what);
}

static uint64_t open_hash(const struct shard_writer *writer)
{
    /* The buffer may cross the end of the block, so both are hashed, one after the other. */
    const uint64_t both[2] = {hash_state_64(writer->block), hash64(writer->buffer, writer->buffered)};
    return hash64(both, sizeof both);
}

static int files_pass(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem)
{
    struct origin_state *origin = &writer->origin;
    const struct {
        struct append_file *file;
        const char *name;
    } all[] = {{&writer->end_list, "ends"},   {&writer->carry_list, "carries"}, {&writer->block_list, "blocks"},
               {&writer->page_list, "pages"}, {&origin->run_list, "runs"},      {&origin->file_list, "files"},
               {&origin->path_list, "paths"}, {&writer->mask.hashes, "mask"}};
    const size_t count = sizeof all / sizeof all[0] - !writer->options.mask;
    int system = 0;
    for (size_t i = 0; i < count && !system; i++)
        system = checkpoint_file(checkpoint, all[i].file, stem, all[i].name);
    return system || !writer->columns.count ? system : columns_writer_pass(&writer->columns, checkpoint, stem);
}

/* ---- save ---- */

static int state_save(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem)
{
    const struct index_writer *index = &writer->index;
    int system = writer->document_open && writer->origin.changed ? shard_writer_origin_flush(writer) : 0;
    if (!system)
        system =
            index_writer_copy(index, index->table[0].offset + append_file_bytes(&writer->end_list), &writer->end_list);
    if (!system)
        system = files_pass(writer, checkpoint, stem);
    struct saved_numbers numbers = {.tokens = writer->tokens,
                                    .largest = writer->largest,
                                    .document_open = writer->document_open,
                                    .mask_tokens = writer->mask.tokens,
                                    .open_hash = open_hash(writer)};
    writer->saved = true;
    return system ? system : checkpoint_pass(checkpoint, &numbers, sizeof numbers);
}

enum tokmap_status shard_writer_save(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem,
                                     struct tokmap_error *error)
{
    int system = writer->failed || writer->holes ? ENOTSUP : shard_pieces_wait(writer);
    /* The buffer keeps its bytes: the writer writes whole pieces, and this one again when it is whole. */
    if (!system)
        system = os_pwrite(writer->tokens_fd, writer->buffer, writer->buffered, writer->written);
    if (!system && writer->options.mask)
        system = mask_writer_flush(&writer->mask);
    if (!system)
        system = state_save(writer, checkpoint, stem);
    return system ? failed(writer, system, "the unfinished output cannot be saved", error) : TOKMAP_OK;
}

enum tokmap_status shard_writer_sync(struct shard_writer *writer, struct tokmap_error *error)
{
    int system = write_behind_store(&writer->behind, writer->tokens_fd);
    if (!system && writer->options.mask)
        system = os_sync(writer->mask_fd);
    return system ? failed(writer, system, "the unfinished output cannot be synced to storage", error) : TOKMAP_OK;
}

/* ---- restore ---- */

/* Whether a file has so many elements of a size. */
static bool has(const struct append_file *file, uint64_t count, uint64_t each)
{
    return append_file_bytes(file) % each == 0 && append_file_bytes(file) / each == count;
}

/* Writes the ends to the new index. */
static int ends_restore(struct shard_writer *writer)
{
    const uint64_t bytes = append_file_bytes(&writer->end_list);
    writer->documents = bytes / sizeof(uint32_t);
    writer->carries = append_file_bytes(&writer->carry_list) / sizeof(uint64_t);
    if (bytes % sizeof(uint32_t) || append_file_bytes(&writer->carry_list) % sizeof(uint64_t))
        return EINVAL;
    return index_writer_add_file(&writer->index, &writer->end_list);
}

/* Reads the path of a file of the index. */
static int path_read(struct origin_state *origin, uint64_t number, struct bytes_buffer *path)
{
    struct origin_file file, before = {0};
    int system = number ? append_file_read(&origin->file_list, (number - 1) * sizeof file, &before, sizeof before) : 0;
    if (!system)
        system = append_file_read(&origin->file_list, number * sizeof file, &file, sizeof file);
    if (!system && (file.path_end < before.path_end || file.path_end > origin->paths_bytes))
        system = EINVAL;
    path->count = 0;
    if (!system && !bytes_reserve(path, (size_t)(file.path_end - before.path_end) + 1))
        system = ENOMEM;
    if (system)
        return system;
    path->count = (size_t)(file.path_end - before.path_end);
    return append_file_read(&origin->path_list, before.path_end, path->bytes, path->count);
}

/* With options.mixed: looks for all paths once, so that the table has their numbers. */
static int table_restore(struct origin_state *origin, struct bytes_buffer *path)
{
    int system = 0;
    for (uint64_t i = 0; i < origin->files && !system; i++) {
        uint64_t number = 0;
        bool found = false;
        system = path_read(origin, i, path);
        if (!system && !path_table_find(&origin->table, (const char *)path->bytes, path->count, &number, &found))
            system = ENOMEM;
        if (!system && (found || number != i))
            system = EINVAL;
    }
    return system;
}

/* Continues with the origin of the last run. One that was stated later is stated again, since it had no document. */
static int origin_restore(struct shard_writer *writer)
{
    struct origin_state *origin = &writer->origin;
    struct bytes_buffer path = {0};
    struct origin_run run;
    origin->runs = append_file_bytes(&origin->run_list) / sizeof run;
    origin->files = append_file_bytes(&origin->file_list) / sizeof(struct origin_file);
    origin->paths_bytes = append_file_bytes(&origin->path_list);
    if (!has(&origin->run_list, origin->runs, sizeof run) ||
        !has(&origin->file_list, origin->files, sizeof(struct origin_file)))
        return EINVAL;
    if (!origin->runs)
        return origin->files ? EINVAL : 0;
    int system = append_file_read(&origin->run_list, (origin->runs - 1) * sizeof run, &run, sizeof run);
    if (!system && (run.file >= origin->files || run.document > writer->documents))
        system = EINVAL;
    if (!system && writer->options.mixed)
        system = table_restore(origin, &path);
    if (!system)
        system = path_read(origin, run.file, &path);
    if (system) {
        bytes_free(&path);
        return system;
    }
    origin->known = true;
    origin->file = run.file;
    origin->record = run.record + (writer->documents - run.document);
    origin->path = (char *)path.bytes;
    origin->path_bytes = path.count;
    origin->path_capacity = path.capacity - 1;
    return 0;
}

/* Reads the open block and the bytes that belong in the buffer, and cuts the file after them. */
static int tokens_restore(struct shard_writer *writer, uint64_t saved_hash)
{
    const uint64_t bytes = writer->tokens * writer->options.width;
    const uint64_t written = round_down(bytes, PIECE_BYTES), begin = round_down(written, BLOCK_BYTES);
    int system = has(&writer->block_list, written / BLOCK_BYTES, sizeof(uint64_t)) &&
                         has(&writer->page_list, written / TOKEN_PAGE_BYTES, sizeof(uint32_t))
                     ? 0
                     : EINVAL;
    for (uint64_t at = begin; at < written && !system; at += PIECE_BYTES) {
        size_t got = 0;
        system = os_pread(writer->tokens_fd, writer->buffer, PIECE_BYTES, at, &got);
        if (!system && got < PIECE_BYTES)
            system = EINVAL;
        if (!system)
            hash_state_add(writer->block, writer->buffer, PIECE_BYTES);
    }
    size_t got = 0;
    writer->buffered = (size_t)(bytes - written);
    if (!system)
        system = os_pread(writer->tokens_fd, writer->buffer, writer->buffered, written, &got);
    if (!system && (got < writer->buffered || open_hash(writer) != saved_hash))
        system = EINVAL;
    if (!system)
        system = os_truncate(writer->tokens_fd, bytes);
    writer->written = writer->behind.asked = writer->behind.dropped = writer->behind.flushed = written;
    writer->block_filled = (size_t)(written - begin);
    return system;
}

static int state_restore(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem)
{
    struct saved_numbers numbers;
    int system = files_pass(writer, checkpoint, stem);
    if (!system)
        system = checkpoint_pass(checkpoint, &numbers, sizeof numbers);
    if (system)
        return system;
    if (numbers.tokens > FILE_BYTES_MAX / writer->options.width ||
        (numbers.tokens && numbers.largest >= writer->options.vocabulary))
        return EINVAL;
    writer->tokens = numbers.tokens;
    writer->largest = numbers.largest;
    writer->document_open = numbers.document_open != 0;
    system = ends_restore(writer);
    if (!system)
        system = origin_restore(writer);
    if (!system)
        system = tokens_restore(writer, numbers.open_hash);
    return system || !writer->options.mask ? system : mask_writer_restore(&writer->mask, numbers.mask_tokens);
}

enum tokmap_status shard_writer_restore(struct shard_writer *writer, struct checkpoint *checkpoint, const char *stem,
                                        struct tokmap_error *error)
{
    const int system = state_restore(writer, checkpoint, stem);
    writer->saved = true;
    return system ? failed(writer, system, "the unfinished output cannot be restored", error) : TOKMAP_OK;
}
