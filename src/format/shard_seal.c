/*
 * shard_seal.c - see shard_seal.h.
 *
 * The work is done in rounds. In each, threads take blocks of 1 MiB of tokens, compare them with the hashes of the
 * index, and compress them to 16 frames, or read and unpack 16 frames. Then the calling thread writes what they made,
 * in order. So the bytes do not depend on the number of threads, and memory is a few MiB for each.
 *
 * An example of the bytes of a round with two threads: blocks 0 to 3 are taken by thread 1, 2, 1, 2. They become 700,
 * 710, 690 and 705 KiB, which are written one after another; the ends of their 64 frames and the hashes of their tokens
 * go to a spill, because the section frames of the new index is written later.
 *
 * The new index has all sections of the old one, byte for byte, except that frames replaces pages or pages frames: a
 * frame is compared when it is unpacked, so hashes of its pages would have no use. An unsealed shard gets the section
 * pages again, unless a block of its tokens is zero: that becomes a hole in the file, as FORMAT.md says.
 */
#include "shard_seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "index_copy.h"
#include "index_verify.h"
#include "partial_file.h"
#include "platform/os.h"
#include "sealed.h"
#include "shard_commit.h"
#include "text/path.h"

#define BLOCK_FRAMES ((size_t)(BLOCK_BYTES / FRAME_BYTES))
#define BLOCK_PAGES ((size_t)(BLOCK_BYTES / TOKEN_PAGE_BYTES))
#define BLOCKS_PER_THREAD 4 /* in a round */
#define THREADS_MOST 1024

enum path { INDEX_PARTIAL, MASK, TOKENS, SEALED, TOKENS_PARTIAL, SEALED_PARTIAL, OTHER_INDEX, PATHS };
static const char *const path_ends[PATHS] = {".tmx.partial",     ".mask", ".bin", ".bin.zst", ".bin.partial",
                                             ".bin.zst.partial", ".idx"};

/* A block of a round. */
struct job {
    uint8_t *tokens; /* BLOCK_BYTES */
    uint8_t *stored; /* BLOCK_FRAMES * FRAME_STORED_MOST; NULL to unseal */
    size_t bytes, stored_bytes;
    uint32_t sizes[BLOCK_FRAMES]; /* of the frames in `stored` */
    uint64_t hashes[BLOCK_FRAMES];
    uint32_t pages[BLOCK_PAGES];
    bool zero; /* all of its tokens are */
    enum tokmap_status status;
    struct tokmap_error error;
};

/* What a thread has for itself. */
struct worker {
    ZSTD_CCtx *zstd; /* NULL to unseal */
    struct sealed_reader *reader;
    uint8_t *again; /* FRAME_BYTES: a frame that is unpacked to be compared; NULL to unseal */
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
    struct spill entries; /* of the section frames, or hashes of pages */
    struct spill table;   /* of the seek table */
    bool holes;
    uint64_t written; /* bytes of the new file */
    struct worker *workers;
    struct job *jobs;
    uint32_t worker_count, job_count;
    uint64_t round_first, round_end; /* blocks of the round */
    uint64_t next;                   /* the next of them; accessed atomically */
};

static enum tokmap_status cannot_write(struct sealing *sealing, int system, const char *path)
{
    return error_set_system(sealing->error, system, path, TOKMAP_NO_OFFSET, "the file cannot be written%s",
                            system == ENOSPC || system == EDQUOT ? "; free space on its file system" : "");
}

/* ---- a block ---- */

static enum tokmap_status block_check(const struct sealing *sealing, uint64_t block, struct job *job)
{
    const struct index *old = &sealing->old;
    enum tokmap_status status = index_blocks_check(old, block, block + 1, &job->error);
    if (!status && hash64(job->tokens, job->bytes) != index_block_hash(old, block))
        status = error_set(&job->error, TOKMAP_ERROR_CORRUPT, sealing->from_path, TOKMAP_NO_OFFSET,
                           "block %" PRIu64 " of the tokens (bytes %" PRIu64 "..%" PRIu64
                           ") does not match its hash in the index; restore the file from a good copy, or pack the "
                           "shard again",
                           block, block * BLOCK_BYTES, block * BLOCK_BYTES + job->bytes);
    return status;
}

static enum tokmap_status frame_make(const struct sealing *sealing, struct worker *worker, struct job *job, size_t i)
{
    const size_t at = i * FRAME_BYTES, bytes = (size_t)min64(FRAME_BYTES, job->bytes - at);
    uint8_t *stored = job->stored + job->stored_bytes;
    const size_t made = ZSTD_compress2(worker->zstd, stored, FRAME_STORED_MOST, job->tokens + at, bytes);
    if (ZSTD_isError(made))
        return error_set(&job->error, TOKMAP_ERROR_MEMORY, sealing->from_path, TOKMAP_NO_OFFSET,
                         "zstd cannot compress the tokens: %s", ZSTD_getErrorName(made));
    job->sizes[i] = (uint32_t)made;
    job->hashes[i] = hash64(job->tokens + at, bytes);
    const struct sealed_frame frame = {.stored = (uint32_t)made, .bytes = (uint32_t)bytes, .hash = job->hashes[i]};
    job->stored_bytes += made;
    return sealed_unpack(worker->reader, sealing->from_path, &frame, stored, worker->again, &job->error);
}

/* Reads a block of the tokens, which are sealed or not, and compares it. */
static enum tokmap_status block_read(const struct sealing *sealing, struct worker *worker, uint64_t block,
                                     struct job *job)
{
    const uint64_t at = block * BLOCK_BYTES;
    enum tokmap_status status = TOKMAP_OK;
    if (index_is_sealed(&sealing->old)) {
        status = sealed_read(worker->reader, &sealing->old, sealing->from_path, sealing->from_fd, at, job->bytes,
                             job->tokens, &job->error);
    } else {
        size_t got = 0;
        const int system = os_pread(sealing->from_fd, job->tokens, job->bytes, at, &got);
        if (system || got < job->bytes)
            status = error_set_system(&job->error, system ? system : EIO, sealing->from_path, at + got,
                                      "the tokens cannot be read%s", system ? "" : "; the file became shorter");
    }
    return status ? status : block_check(sealing, block, job);
}

static enum tokmap_status block_seal(const struct sealing *sealing, struct worker *worker, uint64_t block,
                                     struct job *job)
{
    enum tokmap_status status = block_read(sealing, worker, block, job);
    for (size_t i = 0; i * FRAME_BYTES < job->bytes && !status; i++)
        status = frame_make(sealing, worker, job, i);
    return status;
}

static enum tokmap_status block_unseal(const struct sealing *sealing, struct worker *worker, uint64_t block,
                                       struct job *job)
{
    const enum tokmap_status status = block_read(sealing, worker, block, job);
    for (size_t i = 0; i * TOKEN_PAGE_BYTES < job->bytes && !status; i++) {
        const size_t at = i * TOKEN_PAGE_BYTES;
        job->pages[i] = (uint32_t)hash64(job->tokens + at, (size_t)min64(TOKEN_PAGE_BYTES, job->bytes - at));
    }
    /* All bytes are equal to their neighbors, and the first one is 0. */
    job->zero = !status && job->bytes == BLOCK_BYTES && !job->tokens[0] &&
                !memcmp(job->tokens, job->tokens + 1, job->bytes - 1);
    return status;
}

/* The body of a thread. */
static void work(void *user, uint32_t number)
{
    struct sealing *sealing = user;
    for (;;) {
        const uint64_t block = __atomic_fetch_add(&sealing->next, 1, __ATOMIC_RELAXED);
        if (block >= sealing->round_end)
            return;
        struct job *job = &sealing->jobs[block - sealing->round_first];
        job->bytes = (size_t)min64(BLOCK_BYTES, sealing->old.token_bytes - block * BLOCK_BYTES);
        job->stored_bytes = 0;
        job->status =
            (sealing->options->unseal ? block_unseal : block_seal)(sealing, &sealing->workers[number], block, job);
    }
}

/* ---- writing ---- */

static int write_sealed(struct sealing *sealing, const struct job *job)
{
    uint64_t end = sealing->written;
    int system = os_pwrite(sealing->to_fd, job->stored, job->stored_bytes, sealing->written);
    for (size_t i = 0; i * FRAME_BYTES < job->bytes && !system; i++) {
        const uint32_t sizes[2] = {job->sizes[i], (uint32_t)min64(FRAME_BYTES, job->bytes - i * FRAME_BYTES)};
        end += job->sizes[i];
        const struct frame_entry entry = {end, job->hashes[i]};
        system = spill_add(&sealing->entries, &entry, sizeof entry);
        if (!system)
            system = spill_add(&sealing->table, sizes, sizeof sizes);
    }
    sealing->written = end;
    return system;
}

static int write_plain(struct sealing *sealing, const struct job *job)
{
    sealing->holes = sealing->holes || job->zero;
    int system = job->zero ? 0 : os_pwrite(sealing->to_fd, job->tokens, job->bytes, sealing->written);
    if (!system)
        system = spill_add(&sealing->entries, job->pages,
                           (size_t)div_ceil(job->bytes, TOKEN_PAGE_BYTES) * sizeof job->pages[0]);
    sealing->written += job->bytes;
    return system;
}

/* Does all rounds. */
static enum tokmap_status convert(struct sealing *sealing)
{
    const uint64_t total = sealing->old.token_bytes, blocks = div_ceil(total, BLOCK_BYTES);
    const struct shard_seal_options *options = sealing->options;
    for (uint64_t first = 0; first < blocks; first = sealing->round_end) {
        const uint64_t before = sealing->written;
        sealing->round_first = sealing->next = first;
        sealing->round_end = min64(blocks, first + sealing->job_count);
        os_threads_share(options->unseal ? "tokmap-unseal" : "tokmap-seal", sealing->worker_count, work, sealing);
        for (uint64_t block = first; block < sealing->round_end; block++) {
            const struct job *job = &sealing->jobs[block - first];
            if (job->status) {
                if (sealing->error)
                    *sealing->error = job->error;
                return job->status;
            }
            const int system = (options->unseal ? write_plain : write_sealed)(sealing, job);
            if (system)
                return cannot_write(sealing, system, sealing->to_path);
        }
        os_write_behind(sealing->to_fd, before, sealing->written - before);
        if (options->progress &&
            options->progress(options->user, min64(total, sealing->round_end * BLOCK_BYTES), total))
            return error_set(sealing->error, TOKMAP_ERROR_INTERRUPTED, sealing->old.path, TOKMAP_NO_OFFSET,
                             "the work was interrupted; the shard is unchanged");
    }
    return TOKMAP_OK;
}

/* Ends the new file of tokens: with the seek table, or with the hole at its end. */
static enum tokmap_status finish_tokens(struct sealing *sealing)
{
    int system = 0;
    if (sealing->options->unseal) {
        system = os_truncate(sealing->to_fd, sealing->written);
    } else {
        const uint64_t table = spill_bytes(&sealing->table), frames = table / SEEK_ENTRY;
        uint8_t bytes[4096];
        store32(bytes, SEEK_HEAD_MAGIC);
        store32(bytes + 4, (uint32_t)(table + SEEK_FOOT));
        system = os_pwrite(sealing->to_fd, bytes, SEEK_HEAD, sealing->written);
        sealing->written += SEEK_HEAD;
        for (uint64_t at = 0; at < table && !system;) {
            const size_t part = (size_t)min64(sizeof bytes, table - at);
            system = spill_read(&sealing->table, at, bytes, part);
            if (!system)
                system = os_pwrite(sealing->to_fd, bytes, part, sealing->written);
            sealing->written += part;
            at += part;
        }
        store32(bytes, (uint32_t)frames);
        bytes[4] = 0; /* the table has no checksums: the index has hashes of 64 bits */
        store32(bytes + 5, SEEK_FOOT_MAGIC);
        if (!system)
            system = os_pwrite(sealing->to_fd, bytes, SEEK_FOOT, sealing->written);
        sealing->written += SEEK_FOOT;
    }
    if (!system)
        system = os_sync(sealing->to_fd);
    return system ? cannot_write(sealing, system, sealing->to_path) : TOKMAP_OK;
}

/* Writes the section frames, or pages. */
static int write_hashes(struct sealing *sealing)
{
    const bool unseal = sealing->options->unseal;
    if (unseal && sealing->holes)
        return 0;
    const struct frames_head head = {FRAME_BYTES, sealing->written};
    int system = index_writer_begin(&sealing->index, unseal ? SECTION_PAGES : SECTION_FRAMES);
    if (!system && !unseal)
        system = index_writer_add(&sealing->index, &head, sizeof head);
    if (!system)
        system = index_writer_add_spill(&sealing->index, &sealing->entries);
    return system ? system : index_writer_end(&sealing->index);
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

static int remove_saved(void *user)
{
    const struct shard_commit commit = commit_of(user, true);
    shard_remove_saved(&commit);
    return 0;
}

static enum tokmap_status lock(struct sealing *sealing)
{
    const char *path = sealing->paths[INDEX_PARTIAL];
    const int system = partial_file_open(path, remove_saved, sealing, &sealing->index_fd);
    if (system == EWOULDBLOCK)
        return error_set(sealing->error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                         "another process is writing this shard; wait for it");
    sealing->index_made = !system;
    return system ? cannot_write(sealing, system, path) : TOKMAP_OK;
}

/* Looks, with the lock, whether the index that was opened before is still the shard's, and completes what a killed
 * writer has left. */
static enum tokmap_status check_old(struct sealing *sealing)
{
    struct os_stat now;
    const int system = os_stat(sealing->old.path, &now);
    if (system)
        return cannot_write(sealing, system, sealing->old.path);
    if (now.inode != sealing->old.inode || now.device != sealing->old.device)
        return error_set(sealing->error, TOKMAP_ERROR_BUSY, sealing->old.path, TOKMAP_NO_OFFSET,
                         "the shard was replaced by another process; call again");
    const struct shard_commit commit = commit_of(sealing, true);
    return shard_recover(&commit, sealing->error);
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
                         "this file exists, but does not belong to the shard; remove it, or use options.replace");
    if (!unseal && !os_lstat(sealing->paths[OTHER_INDEX], &found))
        return error_set(sealing->error, TOKMAP_ERROR_EXISTS, sealing->paths[OTHER_INDEX], TOKMAP_NO_OFFSET,
                         "this file is an index of another program for the .bin, which sealing removes; remove it, or "
                         "use options.replace");
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

static bool worker_init(struct worker *worker, const struct shard_seal_options *options)
{
    worker->reader = sealed_reader_new();
    if (options->unseal)
        return worker->reader != NULL;
    worker->zstd = ZSTD_createCCtx();
    worker->again = malloc(FRAME_BYTES);
    return worker->reader && worker->zstd && worker->again &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(worker->zstd, ZSTD_c_compressionLevel, options->level));
}

static enum tokmap_status make_memory(struct sealing *sealing)
{
    const struct shard_seal_options *options = sealing->options;
    const uint64_t blocks = max64(1, div_ceil(sealing->old.token_bytes, BLOCK_BYTES));
    sealing->worker_count = (uint32_t)min64(min64(options->threads, THREADS_MOST), blocks);
    sealing->job_count = (uint32_t)min64((uint64_t)sealing->worker_count * BLOCKS_PER_THREAD, blocks);
    sealing->workers = calloc(sealing->worker_count, sizeof *sealing->workers);
    sealing->jobs = calloc(sealing->job_count, sizeof *sealing->jobs);
    bool made = sealing->workers && sealing->jobs;
    for (uint32_t i = 0; i < sealing->worker_count && made; i++)
        made = worker_init(&sealing->workers[i], options);
    for (uint32_t i = 0; i < sealing->job_count && made; i++) {
        struct job *job = &sealing->jobs[i];
        job->tokens = malloc(BLOCK_BYTES);
        job->stored = options->unseal ? NULL : malloc(BLOCK_FRAMES * FRAME_STORED_MOST);
        made = job->tokens && (job->stored || options->unseal);
    }
    made = made && !index_writer_init(&sealing->index, sealing->index_fd);
    return made ? TOKMAP_OK : error_set_memory(sealing->error, "the sealing of a shard", BLOCK_BYTES);
}

static void finish(struct sealing *sealing)
{
    if (sealing->to_made)
        (void)os_unlink(sealing->to_path);
    if (sealing->index_made)
        (void)os_unlink(sealing->paths[INDEX_PARTIAL]);
    for (uint32_t i = 0; i < sealing->worker_count && sealing->workers; i++) {
        (void)ZSTD_freeCCtx(sealing->workers[i].zstd);
        sealed_reader_free(sealing->workers[i].reader);
        free(sealing->workers[i].again);
    }
    for (uint32_t i = 0; i < sealing->job_count && sealing->jobs; i++) {
        free(sealing->jobs[i].tokens);
        free(sealing->jobs[i].stored);
    }
    free(sealing->workers);
    free(sealing->jobs);
    index_writer_free(&sealing->index);
    spill_free(&sealing->entries);
    spill_free(&sealing->table);
    os_close(sealing->from_fd);
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
    const size_t stem = strlen(path) - 4;
    bool complete = (sealing->folder = path_folder(path)) != NULL;
    for (int i = 0; i < PATHS; i++)
        complete = (sealing->paths[i] = path_join("", 0, path, stem, path_ends[i])) && complete;
    if (!complete)
        return error_set_memory(sealing->error, "the paths of a shard", stem);
    spill_init(&sealing->entries, sealing->folder);
    spill_init(&sealing->table, sealing->folder);
    enum tokmap_status status = lock(sealing);
    return status ? status : check_old(sealing);
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
        status = convert(sealing);
    if (!status)
        status = finish_tokens(sealing);
    if (!status)
        status = write_index(sealing);
    return status ? status : rename_all(sealing);
}

enum tokmap_status shard_seal(const char *index_path, const struct shard_seal_options *options,
                              struct shard_seal_result *result, struct tokmap_error *error)
{
    struct sealing sealing = {
        .options = options, .result = result, .error = error, .from_fd = -1, .to_fd = -1, .index_fd = -1};
    sealing.entries.fd = sealing.table.fd = -1;
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
    if (!status)
        status = prepare(&sealing);
    result->changed = options->unseal ? sealed : !sealed || options->replace;
    if (!status && result->changed)
        status = seal(&sealing);
    result->tokens = old->shard.tokens;
    result->token_bytes = old->token_bytes;
    result->sealed_bytes = result->changed && !options->unseal ? sealing.written : old->sealed_bytes;
    finish(&sealing);
    return status;
}
