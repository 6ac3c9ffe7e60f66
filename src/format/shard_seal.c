/* SPDX-License-Identifier: MIT */
/*
 * shard_seal.c - see shard_seal.h.
 *
 * To seal, the blocks of the tokens are compared with the hashes of the index and become frames (frames_writer.h). To
 * unseal, threads read and unpack blocks in rounds (block_rounds_run()), and the calling thread writes them in order.
 * So the bytes do not depend on the number of threads, and memory is a few MiB for each.
 *
 * The new index has all sections of the old one, byte for byte, except that frames replaces pages or pages frames: a
 * frame is compared when it is unpacked, so hashes of its pages would have no use. An unsealed shard gets the section
 * pages again, unless a block of its tokens is zero: that becomes a hole in the file, as FORMAT.md says.
 */
#include "shard_seal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "frames_writer.h"
#include "index_verify.h"
#include "index_writer.h"
#include "platform/os.h"
#include "sealed.h"
#include "shard_commit.h"
#include "text/path.h"
#include "write_behind.h"

#define BLOCK_PAGES ((size_t)(BLOCK_BYTES / TOKEN_PAGE_BYTES))
#define BLOCKS_PER_THREAD 4 /* in a round that unseals */
#define THREADS_MOST 1024

enum path { INDEX_PARTIAL, MASK, TOKENS, SEALED, TOKENS_PARTIAL, SEALED_PARTIAL, OTHER_INDEX, PATHS };
static const struct {
    enum shard_file file;
    enum shard_state state;
} names[OTHER_INDEX] = {
    [INDEX_PARTIAL] = {SHARD_INDEX, SHARD_PARTIAL},   [MASK] = {SHARD_MASK, SHARD_FINAL},
    [TOKENS] = {SHARD_TOKENS, SHARD_FINAL},           [SEALED] = {SHARD_SEALED, SHARD_FINAL},
    [TOKENS_PARTIAL] = {SHARD_TOKENS, SHARD_PARTIAL}, [SEALED_PARTIAL] = {SHARD_SEALED, SHARD_PARTIAL}};

/* A block of a round that unseals. */
struct job {
    uint8_t *tokens; /* BLOCK_BYTES */
    size_t bytes;
    uint32_t pages[BLOCK_PAGES];
    bool zero; /* all of its tokens are */
    enum tokmap_status status;
    struct tokmap_error error;
};

struct sealing {
    const struct shard_seal_options *options;
    struct shard_seal_result *result;
    struct tokmap_error *error;
    struct index old;
    char *paths[PATHS], *folder;
    const char *from_path, *to_path; /* the tokens that are read, and those that are written (a partial name) */
    int from_fd, to_fd, index_fd;
    bool to_made, index_made; /* the partial files are ours to remove */
    struct index_writer index;
    struct frames frames; /* to seal */
    struct spill pages;   /* hashes, to unseal */
    bool holes;
    uint64_t written; /* bytes of the new file */
    struct write_behind behind;
    struct sealed_reader **readers; /* of each thread */
    struct job *jobs;               /* NULL to seal */
    uint32_t worker_count, job_count;
};

static enum tokmap_status cannot_write(struct sealing *sealing, int system, const char *path)
{
    return index_copy_failed(system, path, "the file", sealing->error);
}

/* ---- a block ---- */

/* Reads a block of the tokens, which are sealed or not, and compares it. */
static enum tokmap_status block_read(void *self, uint32_t worker, uint64_t block, uint8_t *tokens, size_t bytes,
                                     struct tokmap_error *error)
{
    const struct sealing *sealing = self;
    const struct index *old = &sealing->old;
    enum tokmap_status status = index_blocks_check(old, block, block + 1, error);
    if (status)
        return status;
    const uint64_t hash = index_block_hash(old, block);
    if (!index_is_sealed(old))
        return frames_block_read(sealing->from_fd, sealing->from_path, block, hash, tokens, bytes, error);
    status = sealed_read(sealing->readers[worker], old, sealing->from_path, sealing->from_fd, block * BLOCK_BYTES,
                         bytes, tokens, error);
    return status ? status : frames_block_check(sealing->from_path, block, hash, tokens, bytes, error);
}

/* ---- to seal ---- */

static int progressed(void *self, uint64_t done)
{
    const struct sealing *sealing = self;
    const struct shard_seal_options *options = sealing->options;
    return options->progress ? options->progress(options->user, done, sealing->old.token_bytes) : 0;
}

static enum tokmap_status seal_tokens(struct sealing *sealing)
{
    const struct frames_options options = {.folder = sealing->folder,
                                           .path = sealing->to_path,
                                           .fd = sealing->to_fd,
                                           .token_bytes = sealing->old.token_bytes,
                                           .width = sealing->old.shard.width,
                                           .level = sealing->options->level,
                                           .threads = sealing->worker_count,
                                           .sync = true,
                                           .read = block_read,
                                           .progress = progressed,
                                           .user = sealing};
    const enum tokmap_status status = frames_write(&sealing->frames, &options, sealing->error);
    sealing->written = sealing->frames.bytes;
    return status;
}

/* ---- to unseal ---- */

static void block_unseal(void *self, uint32_t worker, uint32_t slot, uint64_t block)
{
    struct sealing *sealing = self;
    struct job *job = &sealing->jobs[slot];
    job->bytes = (size_t)min64(BLOCK_BYTES, sealing->old.token_bytes - block * BLOCK_BYTES);
    job->status = block_read(sealing, worker, block, job->tokens, job->bytes, &job->error);
    for (size_t i = 0; i * TOKEN_PAGE_BYTES < job->bytes && !job->status; i++) {
        const size_t at = i * TOKEN_PAGE_BYTES;
        job->pages[i] = (uint32_t)hash64(job->tokens + at, (size_t)min64(TOKEN_PAGE_BYTES, job->bytes - at));
    }
    /* All bytes are equal to their neighbors, and the first one is 0. */
    job->zero = !job->status && job->bytes == BLOCK_BYTES && !job->tokens[0] &&
                !memcmp(job->tokens, job->tokens + 1, job->bytes - 1);
}

static enum tokmap_status block_write(void *self, uint32_t slot, uint64_t block, struct tokmap_error *error)
{
    struct sealing *sealing = self;
    const struct job *job = &sealing->jobs[slot];
    (void)block;
    if (job->status) {
        if (error)
            *error = job->error;
        return job->status;
    }
    sealing->holes = sealing->holes || job->zero;
    int system = job->zero ? 0 : os_pwrite(sealing->to_fd, job->tokens, job->bytes, sealing->written);
    if (!system)
        system = spill_add(&sealing->pages, job->pages,
                           (size_t)div_ceil(job->bytes, TOKEN_PAGE_BYTES) * sizeof job->pages[0]);
    sealing->written += job->bytes;
    return system ? cannot_write(sealing, system, sealing->to_path) : TOKMAP_OK;
}

static enum tokmap_status round_end(void *self, uint64_t blocks, struct tokmap_error *error)
{
    struct sealing *sealing = self;
    write_behind(&sealing->behind, sealing->to_fd, sealing->written);
    if (!progressed(sealing, min64(sealing->old.token_bytes, blocks * BLOCK_BYTES)))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_INTERRUPTED, sealing->old.path, TOKMAP_NO_OFFSET,
                     "the work was interrupted; the shard is unchanged");
}

static enum tokmap_status unseal_tokens(struct sealing *sealing)
{
    const struct block_rounds rounds = {.name = "tokmap-unseal",
                                        .blocks = div_ceil(sealing->old.token_bytes, BLOCK_BYTES),
                                        .threads = sealing->worker_count,
                                        .slots = sealing->job_count,
                                        .work = block_unseal,
                                        .take = block_write,
                                        .taken = round_end,
                                        .user = sealing};
    const enum tokmap_status status = block_rounds_run(&rounds, sealing->error);
    if (status)
        return status;
    int system = os_truncate(sealing->to_fd, sealing->written); /* for a hole at the end */
    if (!system)
        system = write_behind_sync(&sealing->behind, sealing->to_fd, sealing->written);
    return system ? cannot_write(sealing, system, sealing->to_path) : TOKMAP_OK;
}

/* ---- the index ---- */

/* Writes the section frames, or pages. */
static int write_hashes(struct sealing *sealing)
{
    if (!sealing->options->unseal)
        return frames_section(&sealing->frames, &sealing->index);
    return sealing->holes ? 0 : index_writer_section(&sealing->index, SECTION_PAGES, NULL, 0, &sealing->pages);
}

static enum tokmap_status write_index(struct sealing *sealing)
{
    const uint32_t sections = index_sections(&sealing->old);
    enum tokmap_status status = TOKMAP_OK;
    int system = 0;
    for (uint32_t i = 0; i < sections && !status && !system; i++) {
        struct index_entry entry;
        index_section_entry(&sealing->old, i, &entry);
        if (entry.type == SECTION_FRAMES || entry.type == SECTION_PAGES)
            continue;
        status = index_copy_section(&sealing->old, &entry, &sealing->index, &system, sealing->error);
        if (!status && !system && entry.type == SECTION_BLOCKS)
            system = write_hashes(sealing);
    }
    if (!status && !system)
        system = index_writer_finish(&sealing->index);
    if (!status && !system)
        system = os_sync(sealing->index_fd);
    return system ? cannot_write(sealing, system, sealing->paths[INDEX_PARTIAL]) : status;
}

/* ---- names ---- */

/* all: for recovery, which completes what is missing of any file. Otherwise the mask keeps its name. */
static struct shard_commit commit_of(const struct sealing *sealing, bool all)
{
    const bool unseal = sealing->options->unseal;
    return (struct shard_commit){
        .index = sealing->old.path,
        .index_partial = sealing->paths[INDEX_PARTIAL],
        .names = {[SHARD_MASK] = all ? sealing->paths[MASK] : NULL,
                  [SHARD_TOKENS] = sealing->paths[TOKENS],
                  [SHARD_SEALED] = sealing->paths[SEALED]},
        .partials = {[SHARD_TOKENS] = unseal ? sealing->paths[TOKENS_PARTIAL] : NULL,
                     [SHARD_SEALED] = unseal ? NULL : sealing->paths[SEALED_PARTIAL]},
        .id = sealing->index.id,
        .sync = true,
    };
}

/* Refuses to remove what somebody else may need. */
static enum tokmap_status check_others(struct sealing *sealing)
{
    const bool unseal = sealing->options->unseal;
    const char *name = sealing->paths[unseal ? TOKENS : SEALED];
    struct os_stat found;
    if (sealing->options->replace)
        return TOKMAP_OK;
    if (!os_lstat(name, &found))
        return error_set(sealing->error, TOKMAP_ERROR_EXISTS, name, TOKMAP_NO_OFFSET,
                         "this file exists, but does not belong to the shard; remove it, or replace it");
    if (!unseal && !os_lstat(sealing->paths[OTHER_INDEX], &found))
        return error_set(sealing->error, TOKMAP_ERROR_EXISTS, sealing->paths[OTHER_INDEX], TOKMAP_NO_OFFSET,
                         "this file is an index of another program for the .bin, which sealing removes; remove it, or "
                         "replace it");
    return TOKMAP_OK;
}

static enum tokmap_status open_tokens(struct sealing *sealing)
{
    const bool sealed = index_is_sealed(&sealing->old);
    const uint64_t bytes = sealed ? sealing->old.sealed_bytes : sealing->old.token_bytes;
    struct os_stat found;
    sealing->from_path = sealing->paths[sealed ? SEALED : TOKENS];
    int system = os_open(sealing->from_path, OS_READ_NOW, &sealing->from_fd);
    if (system)
        sealing->from_fd = -1;
    else
        system = os_fstat(sealing->from_fd, &found);
    if (system)
        return error_set_system(sealing->error, system, sealing->from_path, TOKMAP_NO_OFFSET,
                                "the tokens that belong to the index cannot be opened");
    if (found.kind != OS_KIND_FILE || found.bytes != bytes)
        return error_set(sealing->error, TOKMAP_ERROR_TRUNCATED, sealing->from_path, min64(found.bytes, bytes),
                         "the file is %" PRIu64 " bytes long, but its index says %" PRIu64
                         "; restore the file or pack the shard again",
                         found.bytes, bytes);
    return TOKMAP_OK;
}

static enum tokmap_status make_tokens(struct sealing *sealing)
{
    sealing->to_path = sealing->paths[sealing->options->unseal ? TOKENS_PARTIAL : SEALED_PARTIAL];
    int system = os_unlink(sealing->to_path); /* left by a writer that was killed */
    if (!system || system == ENOENT)
        system = os_open(sealing->to_path, OS_WRITE_NEW, &sealing->to_fd);
    if (system) {
        sealing->to_fd = -1;
        return cannot_write(sealing, system, sealing->to_path);
    }
    sealing->to_made = true;
    (void)os_unlink(sealing->paths[sealing->options->unseal ? SEALED_PARTIAL : TOKENS_PARTIAL]);
    return TOKMAP_OK;
}

static enum tokmap_status rename_all(struct sealing *sealing)
{
    const struct shard_commit commit = commit_of(sealing, false);
    bool visible;
    const enum tokmap_status status = shard_commit(&commit, &visible, sealing->error);
    if (visible)
        sealing->to_made = sealing->index_made = false;
    return status;
}

/* ---- memory ---- */

static enum tokmap_status make_memory(struct sealing *sealing)
{
    const struct shard_seal_options *options = sealing->options;
    const uint64_t blocks = max64(1, div_ceil(sealing->old.token_bytes, BLOCK_BYTES));
    sealing->worker_count = (uint32_t)min64(min64(options->threads, THREADS_MOST), blocks);
    sealing->job_count =
        options->unseal ? (uint32_t)min64((uint64_t)sealing->worker_count * BLOCKS_PER_THREAD, blocks) : 0;
    sealing->readers = calloc(sealing->worker_count, sizeof *sealing->readers);
    sealing->jobs = options->unseal ? calloc(sealing->job_count, sizeof *sealing->jobs) : NULL;
    bool made = sealing->readers && (sealing->jobs || !options->unseal);
    for (uint32_t i = 0; i < sealing->worker_count && made; i++)
        made = (sealing->readers[i] = sealed_reader_new()) != NULL;
    for (uint32_t i = 0; i < sealing->job_count && made; i++)
        made = (sealing->jobs[i].tokens = malloc(BLOCK_BYTES)) != NULL;
    made = made && !index_writer_init(&sealing->index, sealing->index_fd);
    return made ? TOKMAP_OK : error_set_memory(sealing->error, "the sealing of a shard", BLOCK_BYTES);
}

static void finish(struct sealing *sealing)
{
    if (sealing->to_made)
        (void)os_unlink(sealing->to_path);
    if (sealing->index_made)
        (void)os_unlink(sealing->paths[INDEX_PARTIAL]);
    for (uint32_t i = 0; i < sealing->worker_count && sealing->readers; i++)
        sealed_reader_free(sealing->readers[i]);
    for (uint32_t i = 0; i < sealing->job_count && sealing->jobs; i++)
        free(sealing->jobs[i].tokens);
    free(sealing->readers);
    free(sealing->jobs);
    index_writer_free(&sealing->index);
    spill_free(&sealing->pages);
    frames_free(&sealing->frames);
    os_close(sealing->from_fd);
    write_behind_end(&sealing->behind);
    os_close(sealing->to_fd);
    os_close(sealing->index_fd); /* releases the lock, so it comes last */
    for (int i = 0; i < PATHS; i++)
        free(sealing->paths[i]);
    free(sealing->folder);
    index_close(&sealing->old);
}

static enum tokmap_status prepare(struct sealing *sealing)
{
    const char *path = sealing->old.path;
    const size_t stem = strlen(path) - strlen(shard_file_ending(SHARD_INDEX, SHARD_FINAL));
    bool complete = (sealing->folder = path_folder(path)) != NULL;
    for (int i = 0; i < PATHS; i++)
        complete = (sealing->paths[i] = i == OTHER_INDEX ? path_join("", 0, path, stem, ".idx")
                                                         : shard_file_beside(path, names[i].file, names[i].state)) &&
                   complete;
    if (!complete)
        return error_set_memory(sealing->error, "the paths of a shard", stem);
    spill_init(&sealing->pages, sealing->folder);
    const struct shard_commit commit = commit_of(sealing, true);
    const enum tokmap_status status =
        shard_commit_lock(&commit, &sealing->old, "the file", &sealing->index_fd, sealing->error);
    sealing->index_made = sealing->index_fd >= 0;
    return status;
}

/* Does the work, with the lock and with what an earlier writer has left out of the way. */
static enum tokmap_status seal(struct sealing *sealing)
{
    enum tokmap_status status = check_others(sealing);
    if (!status)
        status = open_tokens(sealing);
    if (!status)
        status = make_tokens(sealing);
    if (!status)
        status = make_memory(sealing);
    if (!status)
        status = (sealing->options->unseal ? unseal_tokens : seal_tokens)(sealing);
    if (!status)
        status = write_index(sealing);
    return status ? status : rename_all(sealing);
}

enum tokmap_status shard_seal(const char *index_path, const struct shard_seal_options *options,
                              struct shard_seal_result *result, struct tokmap_error *error)
{
    assert(shard_file_is(index_path, SHARD_INDEX) && options->threads);
    assert(options->unseal || (options->level >= 1 && options->level <= SEAL_LEVEL_MOST));
    struct sealing sealing = {
        .options = options, .result = result, .error = error, .from_fd = -1, .to_fd = -1, .index_fd = -1};
    sealing.pages.fd = -1;
    *result = (struct shard_seal_result){.changed = false};
    enum tokmap_status status = index_open(&sealing.old, index_path, error);
    if (status)
        return status;
    const struct index *old = &sealing.old;
    const bool sealed = index_is_sealed(old);
    if (old->store.offset)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, index_path, TOKMAP_NO_OFFSET,
                           "the tokens are in a file of another project, which tokmap does not change; make a shard of "
                           "them to seal it");
    else if (!options->unseal && div_ceil(old->token_bytes, FRAME_BYTES) > FRAMES_MOST)
        status = error_set(error, TOKMAP_ERROR_LIMIT, index_path, TOKMAP_NO_OFFSET,
                           "a sealed shard has at most %" PRIu64 " bytes of tokens, but this one has %" PRIu64
                           "; pack several shards",
                           FRAMES_MOST * FRAME_BYTES, old->token_bytes);
    result->changed = options->unseal ? sealed : !sealed || options->replace;
    if (!status && result->changed)
        status = sealed_load(index_path, error);
    if (!status)
        status = prepare(&sealing);
    if (!status && result->changed)
        status = seal(&sealing);
    result->tokens = old->shard.tokens;
    result->token_bytes = old->token_bytes;
    result->sealed_bytes = result->changed && !options->unseal ? sealing.written : old->sealed_bytes;
    finish(&sealing);
    return status;
}
