/*
 * pack.c - batches of documents become tokens, side by side, and the shard writer gets them in the order of the input
 * (ordered_workers.h).
 *
 * The room for a batch's tokens is of fixed size. A batch that needs more of it writes out in between, for which it takes
 * its turn early.
 */
#include "pack.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_writer.h"
#include "platform/os.h"
#include "text/utf8.h"
#include "ordered_workers.h"

#define BATCH_MOST                                                                                                     \
    ((uint64_t)256 << 10) /* text and its tokens stay in the processor's cache from reading to writing                 \
                           */
#define BATCH_LEAST ((uint64_t)32 << 10)
#define BATCHES_ALL ((uint64_t)8 << 20) /* text in all workers' batches together, about */
#define ROOM_MOST ((uint64_t)4 << 20)   /* tokens */
#define GROUP_MOST 8192                 /* documents that are encoded in one call */

/* Documents of a batch that are encoded in one call; the first and the last may be parts. */
struct group {
    uint64_t first, count; /* documents of the batch */
    bool resumed, unfinished;
};

/* A thread's. */
struct worker {
    struct tokenizer_state *state; /* made by the thread itself, with its first batch: beside the others' */
    struct tokenizer_text *texts; /* GROUP_MOST */
};

/* A turn's. */
struct room {
    struct tokenizer_out out; /* its ends: GROUP_MOST */
    struct group group;       /* whose tokens are here, and not written yet */
    bool waits;               /* there are such */
    uint64_t tokens, largest; /* of the batch */
};

struct pack {
    const struct pack_options *options;
    struct turns *turns;
    struct shard_writer *writer; /* NULL for a dry run */
    struct tokenizer_info tokenizer;
    struct pack_result *result;
    struct worker *workers;
    uint32_t worker_count;
    struct room *rooms;
    uint32_t room_count;
};

/* ---- encode and write ---- */

/* Hands the room's tokens to the shard writer: a call for each run of documents with one file and rising records. */
static enum tokmap_status group_write(struct pack *pack, const struct corpus_batch *batch, struct room *room,
                                      struct tokmap_error *error)
{
    struct shard_writer *writer = pack->writer;
    const struct group *group = &room->group;
    const struct corpus_document *documents = batch->documents + group->first;
    const struct tokenizer_out *out = &room->out;
    const uint32_t width = pack->tokenizer.width;
    uint64_t base = 0;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < group->count && !status;) {
        const struct corpus_document *first = &documents[i];
        const char *path = batch->parts[first->part].path;
        uint64_t next = i + 1;
        while (next < group->count && batch->parts[documents[next].part].path == path &&
               documents[next].record == documents[next - 1].record + 1)
            next++;
        /* Of a document that goes on, this says again what holds already, which is nothing to the writer. */
        status = shard_writer_origin(writer, path, strlen(path), first->record, error);
        const uint64_t end = out->ends[next - 1];
        const uint64_t complete = next - i - (group->unfinished && next == group->count);
        if (base)
            for (uint64_t k = i; k < next; k++)
                out->ends[k] -= base;
        if (!status)
            status = shard_writer_add(writer, (const char *)out->tokens + base * width, end - base, out->ends + i,
                                      complete, out->largest, error);
        base = end;
        i = next;
    }
    room->waits = false;
    return status;
}

/* Makes room for a document that cannot be cut. */
static enum tokmap_status out_grow(const struct pack *pack, struct tokenizer_out *out, uint64_t tokens,
                                   struct tokmap_error *error)
{
    uint64_t bytes;
    void *grown = NULL;
    if (!mul_overflows(tokens, pack->tokenizer.width, &bytes) && bytes < SIZE_MAX / 2)
        grown = realloc(out->tokens, (size_t)bytes);
    if (!grown)
        return error_set_memory(error, "the tokens of a long document", tokens);
    out->tokens = grown;
    out->capacity = tokens;
    return TOKMAP_OK;
}

/* Chooses the documents from *document on, byte *at of it, that fit the room for tokens, and moves both behind them. */
static enum tokmap_status group_choose(const struct pack *pack, const struct turn *turn, uint64_t *document,
                                       uint64_t *at, struct tokmap_error *error)
{
    const struct corpus_batch *batch = &turn->batch;
    const struct tokenizer_info *info = &pack->tokenizer;
    struct tokenizer_text *texts = pack->workers[turn->worker].texts;
    struct tokenizer_out *out = &pack->rooms[turn->room].out;
    struct group *group = &pack->rooms[turn->room].group;
    const uint64_t each = (uint64_t)out->has_prefix + (uint64_t)out->has_suffix;
    uint64_t room = out->capacity;
    group->first = *document;
    group->count = 0;
    group->resumed = batch->documents[*document].resumed || *at;
    group->unfinished = false;
    while (*document < batch->document_count && group->count < GROUP_MOST) {
        const struct corpus_document *next = &batch->documents[*document];
        uint64_t bytes = next->bytes - *at, wanted;
        assert(!next->unfinished || *document + 1 == batch->document_count);
        if (mul_overflows(bytes, info->ids_per_byte_most, &wanted) || add_overflows(wanted, each, &wanted))
            wanted = UINT64_MAX;
        if (wanted > room && group->count)
            break;
        bool cut = false;
        const uint64_t some = wanted > room && info->cuts
                                  ? tokenizer_cut(pack->options->tokenizer, next->text + *at,
                                                  (room - each) / info->ids_per_byte_most)
                                  : 0;
        if (some) {
            bytes = some;
            wanted = room;
            cut = true;
        } else if (wanted > room) {
            const enum tokmap_status status = out_grow(pack, out, wanted, error);
            if (status)
                return status;
            room = wanted;
        }
        texts[group->count++] = (struct tokenizer_text){next->text + *at, bytes};
        room -= wanted;
        if (cut) {
            *at += bytes;
            group->unfinished = true;
            break;
        }
        group->unfinished = next->unfinished;
        *at = 0;
        ++*document;
        if (next->unfinished) /* what comes next is the rest of it: a pipe gave it in two pieces */
            break;
    }
    return TOKMAP_OK;
}

/* Encodes the batch. Its last tokens stay in the room, for batch_end(). */
static enum tokmap_status batch_encode(void *self, struct turn *turn, struct tokmap_error *error)
{
    struct pack *pack = self;
    struct worker *worker = &pack->workers[turn->worker];
    struct room *room = &pack->rooms[turn->room];
    enum tokmap_status status =
        worker->state ? TOKMAP_OK : tokenizer_state_new(&worker->state, pack->options->tokenizer, error);
    room->tokens = room->largest = 0;
    room->waits = false;
    for (uint64_t document = 0, at = 0; document < turn->batch.document_count && !status;) {
        if (room->waits) {
            if (!turns_take(pack->turns, turn))
                return TOKMAP_OK;
            status = group_write(pack, &turn->batch, room, error);
        }
        if (!status)
            status = group_choose(pack, turn, &document, &at, error);
        if (status)
            break;
        const struct group *group = &room->group;
        const struct tokenizer_batch texts = {worker->texts, group->count, group->resumed, group->unfinished};
        status = tokenizer_encode(worker->state, &texts, &room->out, error);
        if (status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT)
            corpus_error_place(&turn->batch, group->first + room->out.failed, error);
        room->tokens += room->out.count;
        room->largest = max64(room->largest, room->out.largest);
        room->waits = pack->writer != NULL;
    }
    return status;
}

static enum tokmap_status batch_end(void *self, struct turn *turn, struct tokmap_error *error)
{
    struct pack *pack = self;
    struct room *room = &pack->rooms[turn->room];
    const enum tokmap_status status =
        room->waits ? group_write(pack, &turn->batch, room, error) : TOKMAP_OK;
    pack->result->tokens += room->tokens;
    pack->result->largest_id = max64(pack->result->largest_id, room->largest);
    return status;
}

/* ---- memory ---- */

static enum tokmap_status room_make(const struct pack *pack, uint64_t batch_bytes, struct room *room,
                                    struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    struct tokenizer_out *out = &room->out;
    out->has_suffix = options->eod_id != TOKMAP_NO_ID;
    out->suffix = (uint32_t)options->eod_id;
    out->has_prefix = options->bos_id != TOKMAP_NO_ID;
    out->prefix = (uint32_t)options->bos_id;
    out->capacity = min64(batch_bytes * pack->tokenizer.ids_per_byte_most, ROOM_MOST) + GROUP_MOST;
    out->tokens = malloc((size_t)out->capacity * pack->tokenizer.width);
    out->ends = malloc(GROUP_MOST * sizeof *out->ends);
    if (!out->tokens || !out->ends)
        return error_set_memory(error, "the tokens of a batch", out->capacity * pack->tokenizer.width);
    return TOKMAP_OK;
}

static enum tokmap_status memory_make(struct pack *pack, uint64_t batch_bytes, struct tokmap_error *error)
{
    const uint32_t threads = pack->options->threads, rooms = turns_rooms(pack->turns);
    enum tokmap_status status = TOKMAP_OK;
    pack->workers = calloc(threads, sizeof *pack->workers);
    pack->rooms = calloc(rooms, sizeof *pack->rooms);
    if (!pack->workers || !pack->rooms)
        return error_set_memory(error, "the threads of the packer", threads * sizeof *pack->workers);
    for (; pack->worker_count < threads && !status; pack->worker_count++) {
        struct worker *worker = &pack->workers[pack->worker_count];
        worker->texts = malloc(GROUP_MOST * sizeof *worker->texts);
        if (!worker->texts)
            status = error_set_memory(error, "a thread of the packer", GROUP_MOST * sizeof *worker->texts);
    }
    for (; pack->room_count < rooms && !status; pack->room_count++)
        status = room_make(pack, batch_bytes, &pack->rooms[pack->room_count], error);
    return status;
}

static void memory_free(struct pack *pack)
{
    for (uint32_t i = 0; i < pack->worker_count; i++) {
        tokenizer_state_free(pack->workers[i].state);
        free(pack->workers[i].texts);
    }
    for (uint32_t i = 0; i < pack->room_count; i++) {
        free(pack->rooms[i].out.tokens);
        free(pack->rooms[i].out.ends);
    }
    free(pack->workers);
    free(pack->rooms);
}

/* ---- the whole ---- */

static enum tokmap_status writer_open(struct pack *pack, struct tokmap_error *error)
{
    static const char *const ends[] = {".bin", ".tmx", ".bin.partial", ".tmx.partial"};
    const struct pack_options *options = pack->options;
    struct shard_writer_options shard = {.width = pack->tokenizer.width,
                                         .vocabulary = pack->tokenizer.vocabulary,
                                         .eod_id = options->eod_id,
                                         .bos_id = options->bos_id,
                                         .replace = options->replace,
                                         .sync = options->sync};
    memcpy(shard.tokenizer, pack->tokenizer.fingerprint, sizeof shard.tokenizer);
    enum tokmap_status status = shard_writer_open(&pack->writer, options->prefix, &shard, error);
    /* None of the outputs may be an input, as it could be where they lie in an input's folder. */
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && !status; i++) {
        const size_t bytes = strlen(options->prefix) + strlen(ends[i]) + 1;
        char *path = malloc(bytes);
        if (!path)
            return error_set_memory(error, "a path", bytes);
        (void)snprintf(path, bytes, "%s%s", options->prefix, ends[i]);
        status = corpus_exclude(turns_corpus(pack->turns), path, error);
        free(path);
    }
    return status;
}

/* What must hold at the end, whatever the input was. */
static enum tokmap_status accounts_check(const struct pack *pack, struct tokmap_error *error)
{
    const struct corpus_counts *counts = &pack->result->counts;
    const uint64_t accounted = counts->document_bytes + counts->structure_bytes + counts->skipped_bytes;
    if (accounted != counts->stream_bytes)
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " bytes came in and %" PRIu64
                         " are accounted for; this is a fault of tokmap, please "
                         "report it",
                         counts->stream_bytes, accounted);
    if (pack->writer && (shard_writer_tokens(pack->writer) != pack->result->tokens ||
                         shard_writer_documents(pack->writer) != counts->documents))
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " documents were made and %" PRIu64 " written; this is a fault of tokmap, please "
                         "report it",
                         counts->documents, shard_writer_documents(pack->writer));
    if (!counts->documents)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs hold no document, so there is nothing to pack");
    return TOKMAP_OK;
}

static enum tokmap_status commit(struct pack *pack, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    char *about = pack_about(pack->options, pack->result, &bytes);
    if (!about)
        return error_set_memory(error, "the about section", 0);
    struct shard_writer *writer = pack->writer;
    pack->writer = NULL;
    const enum tokmap_status status = shard_writer_commit(writer, about, bytes, pack->result->content, error);
    free(about);
    return status;
}

static uint64_t corpus_cut(void *user, const char *bytes, uint64_t count)
{
    return tokenizer_cut(((const struct pack *)user)->options->tokenizer, bytes, count);
}

enum tokmap_status pack_run(const struct pack_options *options, const char *const *operands, size_t count,
                            struct pack_result *result, struct tokmap_error *error)
{
    struct tokmap_error unused;
    struct pack pack = {.options = options, .result = result};
    struct turns_options turns = {.name = "tokmap-pack",
                                  .threads = options->threads,
                                  .corpus = options->corpus,
                                  .counts = &result->counts,
                                  .work = batch_encode,
                                  .end = batch_end,
                                  .self = &pack,
                                  .skipped = options->skipped,
                                  .progress = options->progress,
                                  .stop = options->stop,
                                  .user = options->user};
    assert(options->threads && options->threads <= PACK_THREADS_MOST);
    error = error ? error : &unused;
    memset(result, 0, sizeof *result);
    tokenizer_info(options->tokenizer, &pack.tokenizer);
    turns.corpus.cut_anywhere = pack.tokenizer.cuts;
    turns.corpus.cut = pack.tokenizer.cut_anywhere ? NULL : corpus_cut;
    turns.corpus.cut_user = &pack;
    turns.corpus.batch_bytes = min64(BATCH_MOST, max64(BATCH_LEAST, BATCHES_ALL / options->threads));
    enum tokmap_status status = turns_new(&pack.turns, &turns, operands, count, error);
    if (!status && !options->dry_run)
        status = writer_open(&pack, error);
    if (!status)
        status = memory_make(&pack, turns.corpus.batch_bytes, error);
    if (!status)
        status = turns_run(pack.turns, error);
    memory_free(&pack);
    result->eod_tokens = options->eod_id != TOKMAP_NO_ID ? result->counts.documents : 0;
    result->bos_tokens = options->bos_id != TOKMAP_NO_ID ? result->counts.documents : 0;
    if (!status)
        status = accounts_check(&pack, error);
    if (!status && pack.writer)
        status = commit(&pack, error);
    shard_writer_abort(pack.writer);
    turns_free(pack.turns);
    return status;
}
