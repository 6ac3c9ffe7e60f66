/*
 * shuffle.c - see shuffle.h.
 *
 * First pass: each document becomes a record (shuffle_record.h). shuffle_chunks.h sorts and stores them. A document
 * that comes in parts waits in `open` until it ends; if it becomes longer than a record, what there is of it, and all
 * that follows, goes to the file of long documents, and its record says where. Second pass: shuffle_merge.h gives the
 * records in order, and each becomes a run of one document for its shard set.
 *
 * Example, with documents of 5, 700,000, and 3 tokens of 2 bytes: the records of the first and the third have 56 + 16
 * and 56 + 8 bytes. The second one has 1,400,000 bytes of tokens, which are in the file of long documents, and a record
 * of 56 + 24 bytes. In the second pass it is read in pieces of 256 KiB, and only its last piece ends the document.
 */
#include "shuffle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bit_copy.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "shuffle_chunks.h"
#include "shuffle_merge.h"

#define PIECE_BYTES ((uint64_t)256 << 10) /* of a long document */
#define STOP_TOKENS ((uint64_t)1 << 18)   /* about how often options.stop and .progress are called */
#define STOP_DOCUMENTS 4096
#define PAYLOAD_MOST ((uint64_t)1 << 62)

/* The document that has not ended. */
struct open_document {
    bool begun;
    bool longer; /* its payload is in the file of long documents, from `at` on */
    uint64_t tokens, text_bytes;
    struct bytes_buffer payload; /* while it is short */
    uint64_t at;
};

struct shuffle {
    struct shuffle_options options;
    char *folder;
    struct shuffle_chunks chunks;
    struct open_document open;
    int long_fd; /* the file of long documents; -1: there is none yet */
    uint64_t long_bytes;
    struct hash_state *hash;
    uint64_t tokens, largest;
    /* The paths of the inputs, each with a zero byte: that of input i begins at path_begins[i]. */
    struct bytes_buffer paths, path_begins;

    /* Of the second pass. */
    uint8_t *piece;
    struct bytes_buffer whole; /* the payload of a long document, or its values */
    struct corpus_value values[COLUMNS_MAX];
    uint64_t done, next_stop, since_stop;
};

enum tokmap_status shuffle_open(struct shuffle **shuffle, const struct shuffle_options *options,
                                struct tokmap_error *error)
{
    struct shuffle *made = *shuffle = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the shuffle", sizeof *made);
    assert(options->columns <= COLUMNS_MAX);
    made->options = *options;
    made->long_fd = -1;
    made->chunks.fd = -1;
    made->folder = strdup(options->folder);
    made->hash = hash_state_new();
    enum tokmap_status status =
        made->folder && made->hash
            ? shuffle_chunks_init(&made->chunks, options->seed,
                                  options->chunk_bytes ? options->chunk_bytes : SHUFFLE_CHUNK_BYTES, made->folder,
                                  error)
            : error_set_memory(error, "the shuffle", 0);
    if (status) {
        shuffle_free(made);
        *shuffle = NULL;
    }
    return status;
}

void shuffle_free(struct shuffle *shuffle)
{
    if (!shuffle)
        return;
    shuffle_chunks_free(&shuffle->chunks);
    os_close(shuffle->long_fd);
    bytes_free(&shuffle->open.payload);
    bytes_free(&shuffle->paths);
    bytes_free(&shuffle->path_begins);
    bytes_free(&shuffle->whole);
    hash_state_free(shuffle->hash);
    free(shuffle->piece);
    free(shuffle->folder);
    free(shuffle);
}

/* ---- the first pass ---- */

/* Keeps the path of an input. Inputs without documents before it get an empty one. */
static enum tokmap_status path_keep(struct shuffle *shuffle, uint64_t input, const char *path,
                                    struct tokmap_error *error)
{
    while (shuffle->path_begins.count / 8 <= input) {
        const bool own = shuffle->path_begins.count / 8 == input;
        const uint64_t begin = shuffle->paths.count;
        if (!bytes_append(&shuffle->path_begins, &begin, sizeof begin) ||
            !bytes_append(&shuffle->paths, own ? path : "", own ? strlen(path) + 1 : 1))
            return error_set_memory(error, "the paths of the inputs", shuffle->paths.count);
    }
    return TOKMAP_OK;
}

static enum tokmap_status long_append(struct shuffle *shuffle, const void *bytes, uint64_t count,
                                      struct tokmap_error *error)
{
    if (count)
        hash_state_add(shuffle->hash, bytes, (size_t)count);
    return count ? shuffle_file_append(shuffle->folder, &shuffle->long_fd, &shuffle->long_bytes, bytes, count, error)
                 : TOKMAP_OK;
}

/* From now on the payload of the open document is in the file of long documents. */
static enum tokmap_status long_begin(struct shuffle *shuffle, struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    open->longer = true;
    open->at = shuffle->long_bytes;
    hash_state_reset(shuffle->hash);
    const enum tokmap_status status = long_append(shuffle, open->payload.bytes, open->payload.count, error);
    open->payload.count = 0;
    return status;
}

/* Adds bytes to the payload of the open document. */
static enum tokmap_status payload_add(struct shuffle *shuffle, const void *bytes, uint64_t count,
                                      struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    const uint64_t room = shuffle->chunks.record_most - sizeof(struct shuffle_head);
    if (!open->longer && count > room - open->payload.count) {
        const enum tokmap_status status = long_begin(shuffle, error);
        if (status)
            return status;
    }
    if (open->longer)
        return long_append(shuffle, bytes, count, error);
    return bytes_append(&open->payload, bytes, (size_t)count) ? TOKMAP_OK
                                                              : error_set_memory(error, "a document to shuffle", count);
}

static enum tokmap_status mask_add(struct shuffle *shuffle, const uint8_t *bits, uint64_t first, uint64_t count,
                                   struct tokmap_error *error)
{
    uint8_t piece[512];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; done < count && !status;) {
        const uint64_t part = min64(count - done, 8 * sizeof piece);
        piece[(part - 1) / 8] = 0;
        bit_copy(piece, 0, bits, first + done, part);
        status = payload_add(shuffle, piece, div_ceil(part, 8), error);
        done += part;
    }
    return status;
}

static enum tokmap_status values_add(struct shuffle *shuffle, const struct corpus_document *document,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t c = 0; c < shuffle->options.columns && !status; c++)
        status = payload_add(shuffle, &document->values[c].bytes, 8, error);
    for (uint32_t c = 0; c < shuffle->options.columns && !status; c++)
        if (document->values[c].bytes)
            status = payload_add(shuffle, document->values[c].json, document->values[c].bytes, error);
    return status;
}

/* Makes the record of a document whose payload is `bytes` bytes from `payload` on. */
static enum tokmap_status record_make(struct shuffle *shuffle, struct shuffle_head *head, const void *payload,
                                      uint64_t bytes, struct tokmap_error *error)
{
    head->bytes = (uint32_t)round_up(sizeof *head + bytes, 8);
    uint8_t *record = shuffle_chunks_room(&shuffle->chunks, head->bytes, error);
    if (!record)
        return error->status;
    memcpy(record, head, sizeof *head);
    if (bytes)
        memcpy(record + sizeof *head, payload, (size_t)bytes);
    memset(record + sizeof *head + bytes, 0, head->bytes - sizeof *head - bytes);
    shuffle_chunks_add(&shuffle->chunks, record);
    return TOKMAP_OK;
}

/* Ends the open document, whose payload is complete. */
static enum tokmap_status document_end(struct shuffle *shuffle, struct shuffle_head *head, struct tokmap_error *error)
{
    struct open_document *open = &shuffle->open;
    head->tokens = open->tokens;
    head->text_bytes = open->text_bytes;
    enum tokmap_status status;
    if (open->longer) {
        const struct shuffle_long where = {open->at, shuffle->long_bytes - open->at, hash_state_64(shuffle->hash)};
        head->set |= SHUFFLE_LONG;
        status = record_make(shuffle, head, &where, sizeof where, error);
    } else {
        status = record_make(shuffle, head, open->payload.bytes, open->payload.count, error);
    }
    open->payload.count = 0;
    open->begun = open->longer = false;
    open->tokens = open->text_bytes = 0;
    return status;
}

/* Adds tokens [at, end) of a run to the open document number `i` of the run. ends: they are its last ones. */
static enum tokmap_status part_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run, uint64_t i,
                                   uint64_t at, uint64_t end, bool ends, struct tokmap_error *error)
{
    const uint32_t width = shuffle->options.width;
    struct open_document *open = &shuffle->open;
    assert(end - at <= PAYLOAD_MOST / 8 && (!shuffle->options.mask || (ends && !open->begun)));
    open->begun = true;
    open->tokens += end - at;
    open->text_bytes += run->text_bytes[i];
    enum tokmap_status status = payload_add(shuffle, run->tokens + at * width, (end - at) * width, error);
    if (!status && shuffle->options.mask)
        status = mask_add(shuffle, run->mask, run->mask_first + at, end - at, error);
    if (status || !ends)
        return status;
    status = values_add(shuffle, &run->from[i], error);
    struct shuffle_head head = {
        .set = set, .input = run->input, .position = run->from[i].position, .record = run->from[i].record};
    return status ? status : document_end(shuffle, &head, error);
}

/* Adds a whole document, without a copy to the memory of the open one if it is nothing but tokens. */
static enum tokmap_status document_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run,
                                       uint64_t i, uint64_t at, uint64_t end, struct tokmap_error *error)
{
    const uint64_t bytes = (end - at) * shuffle->options.width;
    if (shuffle->open.begun || shuffle->options.mask || shuffle->options.columns ||
        bytes > shuffle->chunks.record_most - sizeof(struct shuffle_head))
        return part_add(shuffle, set, run, i, at, end, true, error);
    struct shuffle_head head = {.set = set,
                                .input = run->input,
                                .position = run->from[i].position,
                                .record = run->from[i].record,
                                .text_bytes = run->text_bytes[i],
                                .tokens = end - at};
    return record_make(shuffle, &head, run->tokens + at * shuffle->options.width, bytes, error);
}

enum tokmap_status shuffle_add(struct shuffle *shuffle, uint32_t set, const struct document_run *run,
                               struct tokmap_error *error)
{
    uint64_t at = 0;
    assert(run->unfinished || (run->documents && run->ends[run->documents - 1] == run->count));
    enum tokmap_status status = path_keep(shuffle, run->input, run->path, error);
    for (uint64_t i = 0; i < run->documents && !status; at = run->ends[i++])
        status = document_add(shuffle, set, run, i, at, run->ends[i], error);
    if (!status && run->unfinished)
        status = part_add(shuffle, set, run, run->documents, at, run->count, false, error);
    shuffle->tokens += run->count;
    shuffle->largest = max64(shuffle->largest, run->largest);
    return status;
}

/* ---- the second pass ---- */

static const char *path_of(const struct shuffle *shuffle, uint64_t input)
{
    if (input >= shuffle->path_begins.count / 8)
        return NULL;
    return (const char *)shuffle->paths.bytes + load64(shuffle->path_begins.bytes + 8 * input);
}

static enum tokmap_status progress_make(struct shuffle *shuffle, struct tokmap_error *error)
{
    const struct shuffle_options *options = &shuffle->options;
    if (shuffle->done < shuffle->next_stop && ++shuffle->since_stop < STOP_DOCUMENTS)
        return TOKMAP_OK;
    shuffle->next_stop = shuffle->done + STOP_TOKENS;
    shuffle->since_stop = 0;
    if (options->stop && options->stop(options->user))
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    if (options->progress)
        options->progress(options->user, shuffle->done, shuffle->tokens);
    return TOKMAP_OK;
}

/* What the shard set gets: one document, or a part of one. */
struct handed {
    struct corpus_document document;
    struct document_run run;
    uint64_t end, text_bytes;
};

static void handed_make(struct handed *handed, const struct shuffle *shuffle, const struct shuffle_head *head)
{
    *handed = (struct handed){.document = {.record = head->record, .position = head->position},
                              .run = {.path = path_of(shuffle, head->input),
                                      .input = head->input,
                                      .largest = shuffle->largest,
                                      .documents = 1},
                              .text_bytes = head->text_bytes};
    handed->document.values = shuffle->values;
    handed->run.from = &handed->document;
    handed->run.text_bytes = &handed->text_bytes;
    handed->run.ends = &handed->end;
}

static void values_find(struct shuffle *shuffle, const struct shuffle_payload *payload)
{
    const uint8_t *at = payload->values;
    for (uint32_t c = 0; c < shuffle->options.columns; c++) {
        const uint64_t bytes = load64(payload->lengths + (uint64_t)8 * c);
        shuffle->values[c] = (struct corpus_value){(const char *)at, bytes};
        at += bytes;
    }
}

/* Hands over a document whose payload is in memory; false if the payload has another length than its parts. */
static bool payload_hand(struct shuffle *shuffle, struct shard_set *set, const struct shuffle_head *head,
                         const uint8_t *bytes, uint64_t count, enum tokmap_status *status, struct tokmap_error *error)
{
    struct shuffle_payload payload;
    struct handed handed;
    if (!shuffle_payload_cut(bytes, count, head->tokens, shuffle->options.width, shuffle->options.mask,
                             shuffle->options.columns, &payload))
        return false;
    handed_make(&handed, shuffle, head);
    values_find(shuffle, &payload);
    handed.run.tokens = (const char *)payload.tokens;
    handed.run.count = handed.end = head->tokens;
    handed.run.mask = payload.mask;
    *status = shard_set_add(set, &handed.run, error);
    return true;
}

/* Reads the rest of a long document's payload into `whole`. */
static enum tokmap_status long_read(struct shuffle *shuffle, const struct shuffle_long *where, uint64_t from,
                                    struct tokmap_error *error)
{
    const uint64_t bytes = where->bytes - from;
    shuffle->whole.count = 0;
    if (bytes > SIZE_MAX / 2 || !bytes_reserve(&shuffle->whole, (size_t)bytes + 8))
        return error_set_memory(error, "a long document to shuffle", bytes);
    const enum tokmap_status status =
        shuffle_file_read(shuffle->folder, shuffle->long_fd, shuffle->whole.bytes, bytes, where->offset + from, error);
    hash_state_add(shuffle->hash, shuffle->whole.bytes, (size_t)bytes);
    shuffle->whole.count = (size_t)bytes;
    return status;
}

/* Hands over the tokens of a long document piece by piece; its last token and its values are the last run. */
static enum tokmap_status long_pieces(struct shuffle *shuffle, struct shard_set *set, const struct shuffle_head *head,
                                      const struct shuffle_long *where, struct tokmap_error *error)
{
    const uint32_t width = shuffle->options.width;
    const uint64_t none = 0;
    enum tokmap_status status = TOKMAP_OK;
    struct handed handed;
    handed_make(&handed, shuffle, head);
    handed.run.documents = 0;
    handed.run.unfinished = true;
    handed.run.text_bytes = &none;
    for (uint64_t done = 0; done < head->tokens && !status;) {
        const uint64_t part = min64(head->tokens - done, PIECE_BYTES / width);
        status = shuffle_file_read(shuffle->folder, shuffle->long_fd, shuffle->piece, part * width,
                                   where->offset + done * width, error);
        if (status)
            break;
        hash_state_add(shuffle->hash, shuffle->piece, (size_t)(part * width));
        handed.run.tokens = (const char *)shuffle->piece;
        handed.run.count = part;
        status = shard_set_add(set, &handed.run, error);
        done += part;
        shuffle->done += part;
        if (!status)
            status = progress_make(shuffle, error);
    }
    if (status)
        return status;
    shuffle->done -= head->tokens; /* record_hand() counts the document */
    status = long_read(shuffle, where, head->tokens * width, error);
    if (!status && hash_state_64(shuffle->hash) != where->hash)
        status = shuffle_file_damaged(shuffle->folder, where->offset, error);
    struct shuffle_payload payload;
    if (!status && !shuffle_payload_cut(shuffle->whole.bytes, shuffle->whole.count, 0, width, false,
                                        shuffle->options.columns, &payload))
        return shuffle_file_damaged(shuffle->folder, where->offset, error);
    if (status)
        return status;
    values_find(shuffle, &payload);
    handed.run.tokens = "";
    handed.run.count = handed.end = 0;
    handed.run.documents = 1;
    handed.run.unfinished = false;
    handed.run.text_bytes = &handed.text_bytes;
    return shard_set_add(set, &handed.run, error);
}

static enum tokmap_status long_hand(struct shuffle *shuffle, struct shard_set *set, const struct shuffle_head *head,
                                    const uint8_t *payload, struct tokmap_error *error)
{
    struct shuffle_long where;
    uint64_t least;
    memcpy(&where, payload, sizeof where);
    if (head->bytes != sizeof *head + sizeof where || where.offset > shuffle->long_bytes ||
        where.bytes > shuffle->long_bytes - where.offset ||
        !shuffle_payload_bytes(head->tokens, shuffle->options.width, shuffle->options.mask, &least) ||
        least > where.bytes)
        return shuffle_file_damaged(shuffle->folder, 0, error);
    hash_state_reset(shuffle->hash);
    enum tokmap_status status = TOKMAP_OK;
    if (!shuffle->options.mask) {
        status = long_pieces(shuffle, set, head, &where, error);
    } else {
        status = long_read(shuffle, &where, 0, error);
        if (!status && (hash_state_64(shuffle->hash) != where.hash ||
                        !payload_hand(shuffle, set, head, shuffle->whole.bytes, where.bytes, &status, error)))
            status = shuffle_file_damaged(shuffle->folder, where.offset, error);
    }
    bytes_trim(&shuffle->whole);
    return status;
}

/* Hands a record to its shard set. */
static enum tokmap_status record_hand(struct shuffle *shuffle, struct shard_set *const *sets,
                                      const struct shuffle_head *head, const uint8_t *record,
                                      struct tokmap_error *error)
{
    struct shard_set *set = sets[head->set & ~SHUFFLE_LONG];
    const uint8_t *payload = record + sizeof *head;
    enum tokmap_status status = TOKMAP_OK;
    assert(path_of(shuffle, head->input));
    if (head->set & SHUFFLE_LONG) {
        status = long_hand(shuffle, set, head, payload, error);
    } else {
        /* Without the zeros at the end, of which only the payload says how many there are. */
        uint64_t bytes, values = 0;
        if (!shuffle_payload_bytes(head->tokens, shuffle->options.width, shuffle->options.mask, &bytes))
            return shuffle_file_damaged(shuffle->folder, 0, error);
        for (uint32_t c = 0; c < shuffle->options.columns; c++)
            if (bytes + 8 * (uint64_t)(c + 1) <= head->bytes - sizeof *head)
                values += 8 + load64(payload + bytes + 8 * (uint64_t)c);
        if (bytes + values > head->bytes - sizeof *head ||
            !payload_hand(shuffle, set, head, payload, bytes + values, &status, error))
            return shuffle_file_damaged(shuffle->folder, 0, error);
    }
    shuffle->done += head->tokens;
    return status;
}

enum tokmap_status shuffle_finish(struct shuffle *shuffle, struct shard_set *const *sets, struct tokmap_error *error)
{
    struct shuffle_merge *merge = NULL;
    struct shuffle_head head;
    const uint8_t *record;
    assert(!shuffle->open.begun);
    enum tokmap_status status = shuffle_chunks_end(&shuffle->chunks, error);
    shuffle->piece = malloc(PIECE_BYTES);
    if (!status && !shuffle->piece)
        status = error_set_memory(error, "a long document to shuffle", PIECE_BYTES);
    if (!status)
        status = progress_make(shuffle, error);
    if (!status)
        status = shuffle_merge_open(&merge, &shuffle->chunks, error);
    while (!status) {
        status = progress_make(shuffle, error);
        if (!status)
            status = shuffle_merge_next(merge, &head, &record, error);
        if (!status)
            status = record_hand(shuffle, sets, &head, record, error);
    }
    shuffle_merge_close(merge);
    return status == TOKMAP_END ? TOKMAP_OK : status;
}
