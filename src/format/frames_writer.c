/* SPDX-License-Identifier: MIT */
/*
 * frames_writer.c - see frames_writer.h.
 *
 * An example of the bytes of a round with two threads and four blocks: the blocks become 700, 710, 690 and 705 KiB,
 * which are written one after another; the ends of their 64 frames and the hashes of their tokens go to one spill, and
 * their lengths to another, because the section of the index and the seek table are written later.
 */
#include "frames_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "platform/zstd_library.h"
#include "sealed.h"
#include "token_repeats.h"
#include "write_behind.h"

/* ---- rounds ---- */

struct round {
    const struct block_rounds *rounds;
    uint64_t first, end; /* blocks of this round */
    uint64_t next;       /* the next of them; accessed atomically */
};

/* Runs in each thread. */
static void work(void *user, uint32_t number)
{
    struct round *round = user;
    for (;;) {
        const uint64_t block = __atomic_fetch_add(&round->next, 1, __ATOMIC_RELAXED);
        if (block >= round->end)
            return;
        round->rounds->work(round->rounds->user, number, (uint32_t)(block - round->first), block);
    }
}

enum tokmap_status block_rounds_run(const struct block_rounds *rounds, struct tokmap_error *error)
{
    assert(rounds->threads && rounds->slots);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t first = 0; first < rounds->blocks && !status;) {
        struct round round = {rounds, first, min64(rounds->blocks, first + rounds->slots), first};
        os_threads_share(rounds->name, rounds->threads, work, &round);
        for (uint64_t block = first; block < round.end && !status; block++)
            status = rounds->take(rounds->user, (uint32_t)(block - first), block, error);
        if (!status)
            status = rounds->taken(rounds->user, round.end, error);
        first = round.end;
    }
    return status;
}

/* ---- frames ---- */

#define BLOCK_FRAMES ((size_t)(BLOCK_BYTES / FRAME_BYTES))

/* A block of a round. */
struct slot {
    uint8_t *tokens; /* BLOCK_BYTES */
    uint8_t *stored; /* BLOCK_FRAMES * FRAME_STORED_MOST */
    size_t bytes, stored_bytes;
    uint32_t sizes[BLOCK_FRAMES]; /* of the frames in `stored` */
    uint64_t hashes[BLOCK_FRAMES];
    enum tokmap_status status;
    struct tokmap_error error;
};

/* State of one thread. */
struct worker {
    ZSTD_CCtx *zstd;
    struct token_repeats *repeats; /* NULL at levels at which zstd finds them */
    struct sealed_reader *reader;  /* only compares */
};

struct writing {
    const struct frames_options *options;
    struct frames *frames;
    struct spill table; /* of the seek table */
    struct write_behind behind;
    struct worker *workers;
    struct slot *slots;
    uint32_t worker_count, slot_count;
};

static enum tokmap_status cannot_write(const struct writing *writing, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, writing->options->path, TOKMAP_NO_OFFSET, "the file cannot be written");
}

/* ---- a block ---- */

enum tokmap_status frames_block_check(const char *path, uint64_t block, uint64_t hash, const uint8_t *tokens,
                                      size_t bytes, struct tokmap_error *error)
{
    if (hash64(tokens, bytes) == hash)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_CORRUPT, path, TOKMAP_NO_OFFSET,
                     "block %" PRIu64 " of the tokens (bytes %" PRIu64 "..%" PRIu64
                     ") does not match its hash in the index; restore the file from a good copy, or pack the shard "
                     "again",
                     block, block * BLOCK_BYTES, block * BLOCK_BYTES + bytes);
}

enum tokmap_status frames_block_read(int fd, const char *path, uint64_t block, uint64_t hash, uint8_t *tokens,
                                     size_t bytes, struct tokmap_error *error)
{
    size_t got = 0;
    const uint64_t at = block * BLOCK_BYTES;
    const int system = os_pread(fd, tokens, bytes, at, &got);
    if (system || got < bytes)
        return error_set_system(error, system ? system : EIO, path, at + got, "the tokens cannot be read%s",
                                system ? "" : "; the file became shorter");
    return frames_block_check(path, block, hash, tokens, bytes, error);
}

static enum tokmap_status frame_make(const struct writing *writing, struct worker *worker, struct slot *slot, size_t i)
{
    const char *path = writing->options->path;
    const size_t at = i * FRAME_BYTES, bytes = (size_t)min64(FRAME_BYTES, slot->bytes - at);
    uint8_t *stored = slot->stored + slot->stored_bytes;
    const uint8_t *tokens = slot->tokens + at;
    struct token_repeats *repeats = worker->repeats;
    const size_t count = repeats ? token_repeats_find(repeats, tokens, bytes, writing->options->width) : 0;
    const size_t made = repeats ? libzstd.ZSTD_compressSequences(worker->zstd, stored, FRAME_STORED_MOST, repeats->list,
                                                                 count, tokens, bytes)
                                : libzstd.ZSTD_compress2(worker->zstd, stored, FRAME_STORED_MOST, tokens, bytes);
    if (libzstd.ZSTD_isError(made))
        return error_set(&slot->error, TOKMAP_ERROR_MEMORY, path, TOKMAP_NO_OFFSET,
                         "zstd cannot compress the tokens: %s", libzstd.ZSTD_getErrorName(made));
    slot->sizes[i] = (uint32_t)made;
    slot->hashes[i] = hash64(tokens, bytes);
    const struct sealed_frame frame = {.stored = (uint32_t)made, .bytes = (uint32_t)bytes, .hash = slot->hashes[i]};
    slot->stored_bytes += made;
    return sealed_unpack(worker->reader, path, &frame, stored, NULL, &slot->error);
}

static void block_seal(void *self, uint32_t number, uint32_t slot_number, uint64_t block)
{
    const struct writing *writing = self;
    const struct frames_options *options = writing->options;
    struct slot *slot = &writing->slots[slot_number];
    slot->bytes = (size_t)min64(BLOCK_BYTES, options->token_bytes - block * BLOCK_BYTES);
    slot->stored_bytes = 0;
    slot->status = options->read(options->user, number, block, slot->tokens, slot->bytes, &slot->error);
    for (size_t i = 0; i * FRAME_BYTES < slot->bytes && !slot->status; i++)
        slot->status = frame_make(writing, &writing->workers[number], slot, i);
}

/* ---- writing ---- */

static enum tokmap_status block_write(void *self, uint32_t slot_number, uint64_t block, struct tokmap_error *error)
{
    struct writing *writing = self;
    const struct slot *slot = &writing->slots[slot_number];
    uint64_t end = writing->frames->bytes;
    (void)block;
    if (slot->status) {
        if (error)
            *error = slot->error;
        return slot->status;
    }
    int system = os_pwrite(writing->options->fd, slot->stored, slot->stored_bytes, end);
    for (size_t i = 0; i * FRAME_BYTES < slot->bytes && !system; i++) {
        const uint32_t sizes[2] = {slot->sizes[i], (uint32_t)min64(FRAME_BYTES, slot->bytes - i * FRAME_BYTES)};
        end += slot->sizes[i];
        const struct frame_entry entry = {end, slot->hashes[i]};
        system = spill_add(&writing->frames->entries, &entry, sizeof entry);
        if (!system)
            system = spill_add(&writing->table, sizes, sizeof sizes);
    }
    writing->frames->bytes = end;
    return system ? cannot_write(writing, system, error) : TOKMAP_OK;
}

static enum tokmap_status round_end(void *self, uint64_t blocks, struct tokmap_error *error)
{
    struct writing *writing = self;
    const struct frames_options *options = writing->options;
    const uint64_t written = writing->frames->bytes;
    write_behind(&writing->behind, options->fd, written);
    if (options->progress && options->progress(options->user, min64(options->token_bytes, blocks * BLOCK_BYTES)))
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, options->path, TOKMAP_NO_OFFSET,
                         "the work was interrupted; the shard is unchanged");
    return TOKMAP_OK;
}

/* Ends the file with the seek table, which has no checksums: the index has hashes of 64 bits. */
static int table_write(struct writing *writing)
{
    const int fd = writing->options->fd;
    const uint64_t table = spill_bytes(&writing->table);
    uint64_t end = writing->frames->bytes;
    uint8_t bytes[4096];
    store32(bytes, SEEK_HEAD_MAGIC);
    store32(bytes + 4, (uint32_t)(table + SEEK_FOOT));
    int system = os_pwrite(fd, bytes, SEEK_HEAD, end);
    end += SEEK_HEAD;
    for (uint64_t at = 0; at < table && !system;) {
        const size_t part = (size_t)min64(sizeof bytes, table - at);
        system = spill_read(&writing->table, at, bytes, part);
        if (!system)
            system = os_pwrite(fd, bytes, part, end);
        end += part;
        at += part;
    }
    store32(bytes, (uint32_t)(table / SEEK_ENTRY));
    bytes[4] = 0;
    store32(bytes + 5, SEEK_FOOT_MAGIC);
    if (!system)
        system = os_pwrite(fd, bytes, SEEK_FOOT, end);
    writing->frames->bytes = end + SEEK_FOOT;
    return system;
}

int frames_section(struct frames *frames, struct index_writer *index)
{
    assert(frames->bytes >= SEEK_HEAD + SEEK_FOOT);
    const struct frames_head head = {FRAME_BYTES, frames->bytes};
    return index_writer_section(index, SECTION_FRAMES, &head, sizeof head, &frames->entries);
}

/* ---- memory ---- */

static bool worker_make(struct worker *worker, int level)
{
    const bool own = level == TOKEN_REPEATS_LEVEL;
    worker->reader = sealed_reader_new();
    worker->zstd = libzstd.ZSTD_createCCtx();
    worker->repeats = own ? malloc(sizeof *worker->repeats) : NULL;
    /* zstd encodes repeats alike at each level; at level 1 its tables, which it does not use, are small. */
    return worker->reader && worker->zstd && (worker->repeats || !own) &&
           !libzstd.ZSTD_isError(
               libzstd.ZSTD_CCtx_setParameter(worker->zstd, ZSTD_c_compressionLevel, own ? 1 : level)) &&
           !libzstd.ZSTD_isError(
               libzstd.ZSTD_CCtx_setParameter(worker->zstd, ZSTD_c_blockDelimiters, ZSTD_sf_explicitBlockDelimiters));
}

static bool memory_make(struct writing *writing, uint64_t blocks)
{
    const struct frames_options *options = writing->options;
    writing->worker_count = (uint32_t)min64(options->threads, max64(1, blocks));
    writing->slot_count = (uint32_t)min64((uint64_t)writing->worker_count * FRAMES_BLOCKS_PER_THREAD, max64(1, blocks));
    writing->workers = calloc(writing->worker_count, sizeof *writing->workers);
    writing->slots = calloc(writing->slot_count, sizeof *writing->slots);
    bool made = writing->workers && writing->slots;
    for (uint32_t i = 0; i < writing->worker_count && made; i++)
        made = worker_make(&writing->workers[i], options->level);
    for (uint32_t i = 0; i < writing->slot_count && made; i++) {
        writing->slots[i].tokens = malloc(BLOCK_BYTES);
        writing->slots[i].stored = malloc(BLOCK_FRAMES * FRAME_STORED_MOST);
        made = writing->slots[i].tokens && writing->slots[i].stored;
    }
    return made;
}

static void memory_free(struct writing *writing)
{
    for (uint32_t i = 0; i < writing->worker_count && writing->workers; i++) {
        (void)libzstd.ZSTD_freeCCtx(writing->workers[i].zstd);
        sealed_reader_free(writing->workers[i].reader);
        free(writing->workers[i].repeats);
    }
    for (uint32_t i = 0; i < writing->slot_count && writing->slots; i++) {
        free(writing->slots[i].tokens);
        free(writing->slots[i].stored);
    }
    free(writing->workers);
    free(writing->slots);
    spill_free(&writing->table);
}

enum tokmap_status frames_write(struct frames *frames, const struct frames_options *options, struct tokmap_error *error)
{
    assert(!frames->bytes && !frames->entries.folder);
    assert(options->level >= 1 && options->level <= 19 && options->threads);
    const uint64_t blocks = div_ceil(options->token_bytes, BLOCK_BYTES);
    struct writing writing = {.options = options, .frames = frames};
    spill_init(&frames->entries, options->folder);
    spill_init(&writing.table, options->folder);
    if (div_ceil(options->token_bytes, FRAME_BYTES) > FRAMES_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, options->path, TOKMAP_NO_OFFSET,
                         "a sealed shard has at most %" PRIu64 " bytes of tokens, but this one has %" PRIu64
                         "; pack several shards",
                         FRAMES_MOST * FRAME_BYTES, options->token_bytes);
    enum tokmap_status status = sealed_load(options->path, error);
    if (status)
        return status;
    if (!memory_make(&writing, blocks))
        status = error_set_memory(error, "the sealing of a shard", BLOCK_BYTES);
    const struct block_rounds rounds = {.name = "tokmap-seal",
                                        .blocks = blocks,
                                        .threads = writing.worker_count,
                                        .slots = writing.slot_count,
                                        .work = block_seal,
                                        .take = block_write,
                                        .taken = round_end,
                                        .user = &writing};
    if (!status)
        status = block_rounds_run(&rounds, error);
    if (!status) {
        int system = table_write(&writing);
        if (!system && options->sync)
            system = write_behind_sync(&writing.behind, options->fd, frames->bytes);
        status = system ? cannot_write(&writing, system, error) : TOKMAP_OK;
    }
    write_behind_end(&writing.behind);
    memory_free(&writing);
    return status;
}

void frames_free(struct frames *frames)
{
    if (frames->entries.folder)
        spill_free(&frames->entries);
    *frames = (struct frames){.bytes = 0};
}
