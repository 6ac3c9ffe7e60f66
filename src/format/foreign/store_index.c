/* SPDX-License-Identifier: MIT */
#include "store_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/index_reader.h"
#include "format/index_writer.h"
#include "format/partial_file.h"
#include "format/shard_commit.h"
#include "format/shard_file.h"
#include "format/shard_mask.h"
#include "platform/os.h"
#include "text/path.h"

struct output {
    char *path, *partial;
    int fd;
    bool made; /* the partial file is ours to remove */
};

struct store_index {
    struct output index, mask;
    char *folder;
    bool replace, masked;
    uint64_t documents, last_end, carries;
    struct index_writer writer; /* the documents section, its first one, is open until the commit */
    struct spill carry_spill, block_spill;
    struct mask_writer mask_writer;
};

static enum tokmap_status failed(const struct output *output, int system, const char *what, struct tokmap_error *error)
{
    if (system == ENOMEM)
        return error_set_memory(error, "the index", 0);
    return error_set_system(error, system, output->partial, TOKMAP_NO_OFFSET, "%s", what);
}

/* Refuses to replace what must not be replaced. */
static enum tokmap_status check_old(const struct store_index *writer, struct tokmap_error *error)
{
    struct index old;
    struct os_stat found;
    int system = os_lstat(writer->index.path, &found);
    if (system == ENOENT)
        return TOKMAP_OK;
    if (system)
        return error_set_system(error, system, writer->index.path, TOKMAP_NO_OFFSET, "the index cannot be examined");
    if (!writer->replace)
        return error_set(error, TOKMAP_ERROR_EXISTS, writer->index.path, TOKMAP_NO_OFFSET,
                         "the index already exists; replace it");
    const enum tokmap_status status = index_open(&old, writer->index.path, NULL);
    const bool packed = !status && !old.store.offset;
    if (!status)
        index_close(&old);
    if (packed || status == TOKMAP_ERROR_FORMAT)
        return error_set(error, TOKMAP_ERROR_EXISTS, writer->index.path, TOKMAP_NO_OFFSET,
                         "%s, which is not replaced; move one of the two elsewhere",
                         packed ? "this is the index of a packed shard" : "this file is not an index");
    return TOKMAP_OK;
}

static int remove_saved(void *user)
{
    shard_remove_saved(user);
    return 0;
}

static struct shard_commit commit_of(const struct store_index *writer)
{
    return (struct shard_commit){
        .index = writer->index.path,
        .index_partial = writer->index.partial,
        .names = {[SHARD_MASK] = writer->mask.path},
        .partials = {[SHARD_MASK] = writer->masked ? writer->mask.partial : NULL},
        .id = writer->writer.id,
        .sync = true,
    };
}

/* commit: what a killed writer of this file has left is removed; NULL: the file says nothing about the others. */
static enum tokmap_status output_open(struct output *output, struct shard_commit *commit, struct tokmap_error *error)
{
    const int system = partial_file_open(output->partial, commit ? remove_saved : NULL, commit, &output->fd);
    if (system == EACCES || system == EPERM)
        return failed(
            output, system,
            "the index cannot be created; its folder, that of the tokens, may not be writable for you, or the "
            "file may belong to another user: link the files into a folder of your own, and name the links",
            error);
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, output->partial, TOKMAP_NO_OFFSET,
                         "another process is writing this index; wait for it");
    output->made = !system; /* the lock is held, so the file is this writer's to remove */
    return system ? failed(output, system, "the index cannot be created", error) : TOKMAP_OK;
}

static enum tokmap_status paths_make(struct store_index *writer, const char *index_path, struct tokmap_error *error)
{
    const size_t bytes = strlen(index_path);
    assert(shard_file_is(index_path, SHARD_INDEX));
    writer->folder = path_folder(index_path);
    writer->index.path = strdup(index_path);
    writer->index.partial = shard_file_beside(index_path, SHARD_INDEX, SHARD_PARTIAL);
    writer->mask.path = shard_file_beside(index_path, SHARD_MASK, SHARD_FINAL);
    writer->mask.partial = shard_file_beside(index_path, SHARD_MASK, SHARD_PARTIAL);
    return writer->folder && writer->index.path && writer->index.partial && writer->mask.path && writer->mask.partial
               ? TOKMAP_OK
               : error_set_memory(error, "the path of an index", bytes);
}

enum tokmap_status store_index_open(struct store_index **writer, const char *index_path, bool mask, bool replace,
                                    struct tokmap_error *error)
{
    struct store_index *made = calloc(1, sizeof *made);
    *writer = NULL;
    if (!made)
        return error_set_memory(error, "the index", sizeof *made);
    made->index.fd = made->mask.fd = -1;
    made->replace = replace;
    made->masked = mask;
    enum tokmap_status status = paths_make(made, index_path, error);
    spill_init(&made->carry_spill, made->folder);
    spill_init(&made->block_spill, made->folder);
    if (!status)
        status = check_old(made, error);
    struct shard_commit commit = commit_of(made);
    if (!status)
        status = output_open(&made->index, &commit, error);
    if (!status && mask)
        status = output_open(&made->mask, NULL, error);
    if (!status)
        status = shard_recover(&commit, error);
    int system = status ? 0 : index_writer_init(&made->writer, made->index.fd);
    if (!status && !system)
        system = index_writer_begin(&made->writer, SECTION_DOCUMENTS);
    if (!status && !system && mask)
        system = mask_writer_init(&made->mask_writer, made->mask.fd, made->folder);
    if (system)
        status = failed(&made->index, system, "the index cannot be written", error);
    if (status)
        store_index_abort(made);
    else
        *writer = made;
    return status;
}

enum tokmap_status store_index_ends(struct store_index *writer, const uint64_t *ends, uint64_t count,
                                    struct tokmap_error *error)
{
    assert(!count || ends[0] >= writer->last_end);
    const int system =
        index_writer_ends(&writer->writer, &writer->carry_spill, &writer->carries, writer->documents, 0, ends, count);
    writer->documents += count;
    writer->last_end = count ? ends[count - 1] : writer->last_end;
    return system ? failed(&writer->index, system, "the index cannot be written", error) : TOKMAP_OK;
}

enum tokmap_status store_index_block(struct store_index *writer, uint64_t hash, struct tokmap_error *error)
{
    const int system = spill_add(&writer->block_spill, &hash, sizeof hash);
    return system ? failed(&writer->index, system, "the index cannot be written", error) : TOKMAP_OK;
}

enum tokmap_status store_index_mask(struct store_index *writer, const uint8_t *bits, uint64_t count,
                                    struct tokmap_error *error)
{
    const int system = mask_writer_add(&writer->mask_writer, bits, 0, count);
    return system ? failed(&writer->mask, system, "the mask cannot be written", error) : TOKMAP_OK;
}

uint64_t store_index_documents(const struct store_index *writer)
{
    return writer->documents;
}

uint64_t store_index_last_end(const struct store_index *writer)
{
    return writer->last_end;
}

/* ---- commit ---- */

static int sections_write(struct store_index *writer, struct section_shard *head, const struct foreign_layout *layout,
                          const char *tokens_path, const char *about)
{
    struct index_writer *index = &writer->writer;
    const struct store_head store = {layout->element, layout->offset, layout->bytes, strlen(tokens_path)};
    int system = index_writer_pad(index, 8);
    if (!system)
        system = index_writer_add_spill(index, &writer->carry_spill);
    if (!system)
        system = index_writer_end(index);
    const uint64_t documents_hash = index->table[index->sections - 1].hash;
    if (!system)
        system = index_writer_section(index, SECTION_BLOCKS, NULL, 0, &writer->block_spill);
    const uint64_t blocks_hash = index->table[index->sections - 1].hash;
    if (!system && writer->masked)
        system = mask_writer_finish(&writer->mask_writer, index);
    if (!system)
        system = index_writer_section(index, SECTION_ABOUT, about, strlen(about), NULL);
    if (!system)
        system = index_writer_begin(index, SECTION_STORE);
    if (!system)
        system = index_writer_add(index, &store, sizeof store);
    if (!system)
        system = index_writer_add(index, tokens_path, (size_t)store.path_bytes);
    if (!system)
        system = index_writer_end(index);
    head->documents = writer->documents;
    head->block_bytes = (uint32_t)BLOCK_BYTES;
    index_content_id(head->width, head->tokens, head->documents, blocks_hash, documents_hash, head->content);
    if (!system)
        system = index_writer_section(index, SECTION_SHARD, head, sizeof *head, NULL);
    return system ? system : index_writer_finish(index);
}

static enum tokmap_status rename_both(struct store_index *writer, struct tokmap_error *error)
{
    const struct shard_commit commit = commit_of(writer);
    bool visible;
    const enum tokmap_status status = shard_commit(&commit, &visible, error);
    if (visible)
        writer->index.made = writer->mask.made = false;
    return status;
}

enum tokmap_status store_index_commit(struct store_index *writer, struct section_shard *head,
                                      const struct foreign_layout *layout, const char *tokens_path, const char *about,
                                      struct tokmap_error *error)
{
    assert(writer->last_end == head->tokens && layout->tokens == head->tokens);
    assert(!writer->masked || writer->mask_writer.tokens == head->tokens);
    int system = sections_write(writer, head, layout, tokens_path, about);
    if (!system)
        system = os_sync(writer->index.fd);
    enum tokmap_status status =
        system ? failed(&writer->index, system, "the index cannot be written", error) : TOKMAP_OK;
    system = status || !writer->masked ? 0 : os_sync(writer->mask.fd);
    if (system)
        status = failed(&writer->mask, system, "the mask cannot be written", error);
    if (!status)
        status = check_old(writer, error);
    if (!status)
        status = rename_both(writer, error);
    store_index_abort(writer);
    return status;
}

static void output_remove(struct output *output)
{
    if (output->made)
        (void)os_unlink(output->partial);
    os_close(output->fd);
    free(output->path);
    free(output->partial);
}

void store_index_abort(struct store_index *writer)
{
    if (!writer)
        return;
    index_writer_free(&writer->writer);
    mask_writer_free(&writer->mask_writer);
    spill_free(&writer->carry_spill);
    spill_free(&writer->block_spill);
    output_remove(&writer->mask);
    output_remove(&writer->index);
    free(writer->folder);
    free(writer);
}
