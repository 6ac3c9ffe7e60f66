/* SPDX-License-Identifier: MIT */
/*
 * tokenizer_batch.c - many texts at once: tokmap_tokenizer_encode_batch, tokmap_tokenizer_decode_batch, and what reads
 * their results.
 *
 * The texts become parts: a part is a text, or a piece of a long one, cut where that does not change ids. Consecutive
 * parts of about JOB_BYTES are a job. Threads take jobs in order, and each job collects its results in a chunk of its
 * own. So the results, read chunk by chunk, do not depend on the number of threads. Nor does the error: jobs are taken
 * in order, a failure ends the taking of jobs, and of all failures the first part's is reported.
 *
 * Example: texts of 100 KB, 1 KB, and 900 KB with jobs of 256 KB are the parts 0, 1, 2a, 2b, 2c, 2d, and the jobs
 * {0, 1, 2a}, {2b}, {2c}, {2d}: text 2 is encoded by several threads.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/id_type.h"
#include "common/struct_copy.h"
#include "platform/os.h"
#include "text/utf8.h"
#include "tokenizer_library.h"

#define JOB_BYTES ((uint64_t)256 << 10)
#define JOB_IDS ((uint64_t)64 << 10) /* of a job of decoding */
#define THREADS_MOST 1024

/* A text, or a piece of one. */
struct part {
    struct tokmap_text text;
    uint64_t document, from; /* number of the text, and the place in it; of decoding: the first id */
    uint64_t count;          /* result: ids, or of decoding: bytes. Before decoding: ids to decode */
    bool resumed, unfinished;
    int32_t status; /* result */
};

/* Results of a job's parts. */
struct chunk {
    uint64_t part, parts;       /* the first one, and how many */
    struct bytes_buffer made;   /* ids, or decoded text */
    uint64_t *begins, *offsets; /* the begins and ends of tokens */
    uint64_t count, capacity;   /* of these two */
};

struct tokmap_tokenizer_batch {
    uint64_t documents;
    struct part *parts; /* of encoding and of decoding */
    uint64_t part_count, part_capacity;
    struct chunk *chunks;
    uint64_t chunk_count, chunk_capacity;
    uint32_t width; /* bytes of an id; 0: these are decoded texts */
    bool has_offsets;
    struct tokmap_tokenizer_batch_info info;
};

/* State that the threads of a call share. */
struct work {
    const struct tokmap_tokenizer *tokenizer;
    struct tokmap_tokenizer_batch *batch;
    struct tokmap_encode_options encode;
    struct tokmap_decode_options decode;
    const struct tokmap_ids *ids; /* to decode; NULL: texts are encoded */
    atomic_uint_fast64_t next;    /* the chunk that is taken next */
    struct os_mutex *mutex;       /* of the following */
    uint64_t failed;              /* the first part that failed, or UINT64_MAX */
    enum tokmap_status status;    /* its status */
    struct tokmap_error error;
    uint64_t largest;
};

void tokmap_tokenizer_batch_close(struct tokmap_tokenizer_batch *batch)
{
    if (!batch)
        return;
    for (uint64_t i = 0; i < batch->chunk_count; i++) {
        bytes_free(&batch->chunks[i].made);
        free(batch->chunks[i].begins);
        free(batch->chunks[i].offsets);
    }
    free(batch->chunks);
    free(batch->parts);
    free(batch);
}

/* ---- the texts of the caller ---- */

static enum tokmap_status wrong_text(struct tokmap_error *error, uint64_t index, const char *what)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "text %" PRIu64 ": %s", index, what);
}

/* Gets a text that is a view: its length and then its bytes, or the number of a buffer and the offset in it. */
static enum tokmap_status view_get(const struct tokmap_texts *texts, uint64_t index, struct tokmap_text *text,
                                   struct tokmap_error *error)
{
    const uint8_t *view = (const uint8_t *)texts->views + 16 * index;
    const int32_t count = (int32_t)load32(view), buffer = (int32_t)load32(view + 8), at = (int32_t)load32(view + 12);
    if (count < 0)
        return wrong_text(error, index, "its view has a negative length");
    if (count <= 12) {
        *text = (struct tokmap_text){(const char *)view + 4, (uint64_t)count};
        return TOKMAP_OK;
    }
    if (buffer < 0 || (uint64_t)buffer >= texts->view_buffer_count || at < 0 ||
        (int64_t)at + count > texts->view_buffer_bytes[buffer])
        return wrong_text(error, index, "its view is outside of its buffer");
    *text = (struct tokmap_text){(const char *)texts->view_buffers[buffer] + at, (uint64_t)count};
    return TOKMAP_OK;
}

static enum tokmap_status text_get(const struct tokmap_texts *texts, uint64_t index, struct tokmap_text *text,
                                   struct tokmap_error *error)
{
    int64_t from, to;
    if (texts->texts) {
        *text = texts->texts[index];
        return text->bytes || !text->count ? TOKMAP_OK : wrong_text(error, index, "its bytes are NULL");
    }
    if (texts->views)
        return view_get(texts, index, text, error);
    from = texts->offsets32 ? texts->offsets32[index] : texts->offsets64[index];
    to = texts->offsets32 ? texts->offsets32[index + 1] : texts->offsets64[index + 1];
    if (from < 0 || to < from)
        return wrong_text(error, index, "its offsets are negative, or descend");
    if (!texts->data && to > from)
        return wrong_text(error, index, "the data is NULL");
    *text = (struct tokmap_text){texts->data ? texts->data + from : NULL, (uint64_t)(to - from)};
    return TOKMAP_OK;
}

static enum tokmap_status texts_read(struct tokmap_texts *into, const struct tokmap_texts *given,
                                     struct tokmap_error *error)
{
    static const struct tokmap_texts none = TOKMAP_TEXTS_INIT;
    if (!given)
        return library_missing(error, "texts");
    const enum tokmap_status status = struct_copy_in(into, given, &none, sizeof none, "tokmap_texts", error);
    if (status)
        return status;
    if (into->count && !into->texts && !into->offsets32 && !into->offsets64 && !into->views)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "texts.texts, texts.offsets32, texts.offsets64, and texts.views are NULL; one of them must "
                         "have the texts");
    if (into->views && into->view_buffer_count && (!into->view_buffers || !into->view_buffer_bytes))
        return library_missing(error, into->view_buffers ? "texts.view_buffer_bytes" : "texts.view_buffers");
    return TOKMAP_OK;
}

/* ---- parts and jobs ---- */

/* Adds a part, to the last chunk or to a new one. */
static enum tokmap_status part_add(struct tokmap_tokenizer_batch *batch, struct part part, bool new_chunk,
                                   struct tokmap_error *error)
{
    if (!list_room(&batch->parts, batch->part_count, &batch->part_capacity, sizeof *batch->parts) ||
        (new_chunk && !list_room(&batch->chunks, batch->chunk_count, &batch->chunk_capacity, sizeof *batch->chunks)))
        return error_set_memory(error, "a batch of texts", batch->part_count * sizeof part);
    if (new_chunk)
        batch->chunks[batch->chunk_count++] = (struct chunk){.part = batch->part_count};
    batch->chunks[batch->chunk_count - 1].parts++;
    batch->parts[batch->part_count++] = part;
    return TOKMAP_OK;
}

static enum tokmap_status texts_plan(const struct work *work, const struct tokmap_texts *texts,
                                     struct tokmap_error *error)
{
    struct tokmap_tokenizer_batch *batch = work->batch;
    enum tokmap_status status = TOKMAP_OK;
    uint64_t in_job = JOB_BYTES;
    for (uint64_t i = 0; i < texts->count && !status; i++) {
        struct tokmap_text text = {NULL, 0};
        status = text_get(texts, i, &text, error);
        for (uint64_t at = 0, bytes; !status && (at < text.count || !at); at += bytes) {
            const uint64_t left = text.count - at;
            bytes = left > 2 * JOB_BYTES ? library_part_bytes(work->tokenizer, text.bytes + at, left, JOB_BYTES) : left;
            const struct part part = {.text = {text.count ? text.bytes + at : "", bytes},
                                      .document = i,
                                      .from = at,
                                      .resumed = at != 0,
                                      .unfinished = at + bytes < text.count};
            status = part_add(batch, part, in_job >= JOB_BYTES || in_job + bytes > 2 * JOB_BYTES, error);
            in_job = (in_job >= JOB_BYTES || in_job + bytes > 2 * JOB_BYTES ? 0 : in_job) + bytes;
            if (!bytes)
                break;
        }
    }
    batch->documents = texts->count;
    return status;
}

static enum tokmap_status ids_plan(const struct work *work, const struct tokmap_ids *ids, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t in_job = JOB_IDS, from = 0;
    for (uint64_t i = 0; i < ids->count && !status; i++) {
        if (ids->ends[i] < from)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "ids.ends[%" PRIu64 "] is less than the end before it", i);
        const uint64_t count = ids->ends[i] - from;
        if (count && !ids->ids)
            return library_missing(error, "ids.ids");
        status =
            part_add(work->batch, (struct part){.document = i, .from = from, .count = count}, in_job >= JOB_IDS, error);
        in_job = (in_job >= JOB_IDS ? 0 : in_job) + count + 1;
        from = ids->ends[i];
    }
    work->batch->documents = ids->count;
    return status;
}

/* ---- threads ---- */

/* Records the failure of a part, unless an earlier one has failed. */
static void fail(struct work *work, uint64_t part, enum tokmap_status status, const struct tokmap_error *error)
{
    os_mutex_lock(work->mutex);
    if (part < work->failed) {
        work->failed = part;
        work->status = status;
        work->error = *error;
    }
    os_mutex_unlock(work->mutex);
    atomic_store(&work->next, UINT64_MAX / 2);
}

static bool id_add(struct chunk *chunk, uint32_t width, uint64_t id, uint64_t begin)
{
    uint8_t bytes[4];
    if (width == 2)
        store16(bytes, (uint16_t)id);
    else
        store32(bytes, (uint32_t)id);
    if (chunk->begins)
        chunk->begins[chunk->count] = chunk->offsets[chunk->count] = begin;
    chunk->count++;
    return bytes_append(&chunk->made, bytes, width);
}

static bool offsets_reserve(struct chunk *chunk, uint64_t more)
{
    const uint64_t wanted = chunk->count + more;
    if (wanted <= chunk->capacity)
        return true;
    const uint64_t capacity = max64(wanted, chunk->capacity + chunk->capacity / 2);
    if (capacity > SIZE_MAX / 16)
        return false;
    uint64_t *begins = realloc(chunk->begins, (size_t)capacity * sizeof *begins);
    if (begins)
        chunk->begins = begins;
    uint64_t *offsets = begins ? realloc(chunk->offsets, (size_t)capacity * sizeof *offsets) : NULL;
    if (!offsets)
        return false;
    chunk->offsets = offsets;
    chunk->capacity = capacity;
    return true;
}

/* Encodes a part and appends its ids to the chunk. */
static enum tokmap_status part_encode(const struct work *work, struct library_worker *worker, struct chunk *chunk,
                                      struct part *part, struct tokmap_error *error)
{
    const uint32_t width = work->batch->width;
    const uint64_t valid = utf8_valid_prefix(part->text.bytes, (size_t)part->text.count);
    const bool begins = work->encode.bos_id != TOKMAP_NO_ID && !part->resumed;
    const bool ends = work->encode.eod_id != TOKMAP_NO_ID && !part->unfinished;
    uint64_t count;
    if (valid != part->text.count)
        return error_set(error, TOKMAP_ERROR_ENCODING, NULL, part->from + valid, "text %" PRIu64 " is not UTF-8",
                         part->document);
    enum tokmap_status status =
        library_part_encode(work->tokenizer, worker, &part->text, part->resumed, part->unfinished, &count, error);
    if (!status && work->encode.offsets && !offsets_reserve(chunk, count + 2))
        status = error_set_memory(error, "offsets of tokens", count * 16);
    if (status)
        return status;
    bool good = !begins || id_add(chunk, width, work->encode.bos_id, part->from);
    if (good && work->encode.offsets) {
        status =
            tokenizer_offsets(worker->state, &part->text, part->resumed ? TOKENIZER_RESUMES : TOKENIZER_STARTS,
                              worker->ids, count, chunk->begins + chunk->count, chunk->offsets + chunk->count, error);
        for (uint64_t i = chunk->count; i < chunk->count + count; i++) {
            chunk->begins[i] += part->from;
            chunk->offsets[i] += part->from;
        }
    }
    good = good && bytes_append(&chunk->made, worker->ids, (size_t)(count * width));
    chunk->count += count;
    good = good && (!ends || id_add(chunk, width, work->encode.eod_id, part->from + part->text.count));
    part->count = count + begins + ends;
    return good || status ? status : error_set_memory(error, "token ids", chunk->made.count);
}

/* Returns true for a status about one text, which is not a failure with keep_going. */
static bool is_of_text(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_ENCODING || status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT;
}

/* Names the text in a message that lower rooms made. */
static void name_text(struct tokmap_error *error, const char *kind, uint64_t index)
{
    char message[sizeof error->message];
    memcpy(message, error->message, sizeof message);
    (void)error_set(error, error->status, NULL, error->offset, "%s %" PRIu64 ": %s", kind, index, message);
}

static void chunk_encode(struct work *work, struct library_worker *worker, struct chunk *chunk)
{
    struct tokmap_error error = {0};
    for (uint64_t i = chunk->part; i < chunk->part + chunk->parts; i++) {
        struct part *part = &work->batch->parts[i];
        const uint64_t count = chunk->count;
        const size_t bytes = chunk->made.count;
        const enum tokmap_status status = part_encode(work, worker, chunk, part, &error);
        if (!status)
            continue;
        if (!work->encode.keep_going || !is_of_text(status)) {
            if (status != TOKMAP_ERROR_ENCODING && status != TOKMAP_ERROR_MEMORY)
                name_text(&error, "text", part->document);
            fail(work, i, status, &error);
            return;
        }
        part->status = (int32_t)status;
        part->count = 0;
        chunk->count = count;
        chunk->made.count = bytes;
    }
}

/* Decodes the documents of a chunk. */
static void chunk_decode(struct work *work, struct tokenizer_decoder *decoder, struct chunk *chunk)
{
    struct tokmap_error error = {0};
    struct text_buffer text = {NULL, 0, 0};
    for (uint64_t i = chunk->part; i < chunk->part + chunk->parts; i++) {
        struct part *part = &work->batch->parts[i];
        const uint64_t before = text.count, count = part->count;
        enum tokmap_status status = TOKMAP_OK;
        tokenizer_decoder_begin(decoder, work->decode.resumed != 0);
        for (uint64_t at = 0, some; at < count && !status; at += some) {
            some = min64(count - at, LIBRARY_DECODED);
            status = library_ids_decode(work->tokenizer, decoder, work->ids->ids, work->ids->type, some,
                                        part->from + at, &text, &error);
        }
        if (!status)
            status = tokenizer_decoder_end(decoder, &text, &error);
        part->count = text.count - before;
        if (status) {
            if (status != TOKMAP_ERROR_MEMORY)
                name_text(&error, "document", part->document);
            fail(work, i, status, &error);
            break;
        }
    }
    chunk->made = (struct bytes_buffer){.bytes = (uint8_t *)text.bytes, .count = text.count, .capacity = text.capacity};
}

/* Runs in each thread. */
static void work_run(void *user, uint32_t number)
{
    struct work *work = user;
    struct tokmap_tokenizer_batch *batch = work->batch;
    struct library_worker *worker = NULL;
    struct tokenizer_decoder *decoder = NULL;
    struct tokmap_error error = {0};
    uint64_t largest = 0;
    const enum tokmap_status status =
        work->ids ? tokenizer_decoder_new(&decoder, work->tokenizer->tokenizer, work->decode.specials != 0, &error)
                  : library_worker_take(work->tokenizer, &worker, &error);
    if (status)
        fail(work, 0, status, &error);
    for (uint64_t i; (i = atomic_fetch_add(&work->next, 1)) < batch->chunk_count;) {
        struct chunk *chunk = &batch->chunks[i];
        if (work->ids) {
            chunk_decode(work, decoder, chunk);
        } else {
            chunk_encode(work, worker, chunk);
            largest = max64(largest, largest_token(chunk->made.bytes, batch->width, chunk->made.count / batch->width));
        }
    }
    os_mutex_lock(work->mutex);
    work->largest = max64(work->largest, largest);
    os_mutex_unlock(work->mutex);
    if (worker)
        library_worker_put(work->tokenizer, worker);
    tokenizer_decoder_free(decoder);
}

/* Takes ids away from texts of which a part failed, and counts. */
static void results_count(struct tokmap_tokenizer_batch *batch)
{
    struct tokmap_tokenizer_batch_info *info = &batch->info;
    uint64_t total = 0;
    info->documents = batch->documents;
    for (uint64_t i = 0, end; i < batch->part_count; i = end) {
        int32_t status = TOKMAP_OK;
        for (end = i; end < batch->part_count && batch->parts[end].document == batch->parts[i].document; end++)
            status = status ? status : batch->parts[end].status;
        info->failed += status != TOKMAP_OK;
        for (uint64_t part = i; part < end; part++) {
            batch->parts[part].status = status;
            total += status ? 0 : batch->parts[part].count;
        }
    }
    *(batch->width ? &info->ids : &info->bytes) = total;
}

static enum tokmap_status work_do(struct work *work, uint32_t threads, struct tokmap_error *error)
{
    if (os_mutex_new(&work->mutex))
        return error_set_memory(error, "threads", 0);
    work->failed = UINT64_MAX;
    threads = threads ? threads : os_processors();
    threads = (uint32_t)min64(min64(threads, THREADS_MOST), work->batch->chunk_count);
    os_threads_share("tokmap-encode", (uint32_t)max64(1, threads), work_run, work);
    os_mutex_free(work->mutex);
    if (work->status) {
        if (error)
            *error = work->error;
        return work->status;
    }
    work->batch->info.largest = work->largest;
    results_count(work->batch);
    return TOKMAP_OK;
}

/* ---- the public functions ---- */

static enum tokmap_status added_check(const struct tokmap_tokenizer *tokenizer, uint64_t id, const char *name,
                                      struct tokmap_error *error)
{
    if (id == TOKMAP_NO_ID || id < tokenizer->info.vocabulary)
        return TOKMAP_OK;
    return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, name,
                           " is %" PRIu64 ", but the ids of the tokenizer '%s' end at %" PRIu64, id,
                           tokenizer->info.name, tokenizer->info.vocabulary - 1);
}

/* Does the work that is planned, and delivers the batch or frees it. */
static enum tokmap_status batch_finish(struct work *work, enum tokmap_status status, uint32_t threads,
                                       struct tokmap_tokenizer_batch **batch, struct tokmap_error *error)
{
    if (!status)
        status = work_do(work, threads, error);
    if (status)
        tokmap_tokenizer_batch_close(work->batch);
    else
        *batch = work->batch;
    return status;
}

enum tokmap_status tokmap_tokenizer_encode_batch(const struct tokmap_tokenizer *tokenizer,
                                                 const struct tokmap_texts *texts,
                                                 const struct tokmap_encode_options *options,
                                                 struct tokmap_tokenizer_batch **batch, struct tokmap_error *error)
{
    static const struct tokmap_encode_options defaults = TOKMAP_ENCODE_OPTIONS_INIT;
    struct work work = {.tokenizer = tokenizer};
    struct tokmap_texts given;
    if (batch)
        *batch = NULL;
    if (!tokenizer || !batch)
        return library_missing(error, tokenizer ? "batch" : "tokenizer");
    enum tokmap_status status = texts_read(&given, texts, error);
    if (!status)
        status = struct_copy_in(&work.encode, options, &defaults, sizeof defaults, "tokmap_encode_options", error);
    if (!status)
        status = added_check(tokenizer, work.encode.bos_id, "bos_id", error);
    if (!status)
        status = added_check(tokenizer, work.encode.eod_id, "eod_id", error);
    if (status)
        return status;
    work.batch = calloc(1, sizeof *work.batch);
    if (!work.batch)
        return error_set_memory(error, "a batch of texts", sizeof *work.batch);
    work.batch->width = tokenizer->info.width;
    work.batch->has_offsets = work.encode.offsets != 0;
    status = texts_plan(&work, &given, error);
    return batch_finish(&work, status, work.encode.threads, batch, error);
}

enum tokmap_status tokmap_tokenizer_decode_batch(const struct tokmap_tokenizer *tokenizer, const struct tokmap_ids *ids,
                                                 const struct tokmap_decode_options *options,
                                                 struct tokmap_tokenizer_batch **batch, struct tokmap_error *error)
{
    static const struct tokmap_decode_options defaults = TOKMAP_DECODE_OPTIONS_INIT;
    static const struct tokmap_ids none = TOKMAP_IDS_INIT;
    struct tokmap_ids given;
    struct work work = {.tokenizer = tokenizer, .ids = &given};
    if (batch)
        *batch = NULL;
    if (!tokenizer || !batch || !ids)
        return library_missing(error, !tokenizer ? "tokenizer" : !batch ? "batch" : "ids");
    enum tokmap_status status = struct_copy_in(&given, ids, &none, sizeof none, "tokmap_ids", error);
    if (!status)
        status = struct_copy_in(&work.decode, options, &defaults, sizeof defaults, "tokmap_decode_options", error);
    if (!status)
        status = library_type_check(given.type, 0, error);
    if (!status && given.count && !given.ends)
        status = library_missing(error, "ids.ends");
    if (status)
        return status;
    work.batch = calloc(1, sizeof *work.batch);
    if (!work.batch)
        return error_set_memory(error, "a batch of texts", sizeof *work.batch);
    status = ids_plan(&work, &given, error);
    return batch_finish(&work, status, work.decode.threads, batch, error);
}

enum tokmap_status tokmap_tokenizer_batch_info(const struct tokmap_tokenizer_batch *batch,
                                               struct tokmap_tokenizer_batch_info *info)
{
    if (!batch || !info)
        return TOKMAP_ERROR_ARGUMENT;
    struct tokmap_tokenizer_batch_info made = batch->info;
    made.size = sizeof made;
    return struct_copy_out(info, &made, sizeof made, "tokmap_tokenizer_batch_info", NULL);
}

/* Copies the results of a chunk, which begin at `at`. Returns where they end. */
static uint64_t chunk_read(const struct tokmap_tokenizer_batch *batch, const struct chunk *chunk,
                           const struct tokmap_tokenizer_batch_out *out, uint64_t at)
{
    uint64_t from = 0; /* in the chunk */
    for (uint64_t i = chunk->part; i < chunk->part + chunk->parts; i++) {
        const struct part *part = &batch->parts[i];
        const uint64_t count = part->count;
        if (out->statuses)
            out->statuses[part->document] = part->status;
        if (!part->status && count) {
            if (out->ids && batch->width)
                id_type_store(batch->width == 2 ? TOKMAP_ID_U16 : TOKMAP_ID_U32, chunk->made.bytes, from, count,
                              id_type_bytes(out->type), (uint8_t *)out->ids + at * id_type_bytes(out->type));
            if (out->text && !batch->width)
                memcpy(out->text + at, chunk->made.bytes + from, (size_t)count);
            if (out->begins)
                memcpy(out->begins + at, chunk->begins + from, (size_t)count * sizeof *out->begins);
            if (out->ends)
                memcpy(out->ends + at, chunk->offsets + from, (size_t)count * sizeof *out->ends);
            at += count;
        }
        from += count;
        if (out->document_ends)
            out->document_ends[part->document] = at;
    }
    return at;
}

enum tokmap_status tokmap_tokenizer_batch_read(const struct tokmap_tokenizer_batch *batch,
                                               const struct tokmap_tokenizer_batch_out *out, struct tokmap_error *error)
{
    static const struct tokmap_tokenizer_batch_out none = TOKMAP_TOKENIZER_BATCH_OUT_INIT;
    struct tokmap_tokenizer_batch_out own;
    if (!batch || !out)
        return library_missing(error, batch ? "out" : "batch");
    enum tokmap_status status = struct_copy_in(&own, out, &none, sizeof own, "tokmap_tokenizer_batch_out", error);
    if (!status)
        status = library_type_check(own.type, batch->info.largest, error);
    if (!status && (own.begins || own.ends) && !batch->has_offsets)
        status = error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "begins",
                                 " and ends need a batch that was encoded with offsets");
    if (status)
        return status;
    for (uint64_t i = 0, at = 0; i < batch->chunk_count; i++)
        at = chunk_read(batch, &batch->chunks[i], &own, at);
    return TOKMAP_OK;
}
