/* SPDX-License-Identifier: MIT */
/*
 * pack_writer.c - the functions of tokmap/pack.h: documents of ids from a program's memory, written as a shard.
 *
 * What a call adds is checked completely before any of it is stored, because a shard cannot be taken back a few
 * documents. Ids that are stored already as the shard stores tokens, and to which no EOD, BOS, or mask is added, go
 * from the caller's memory to the shard writer. All others are put together in a buffer of CHUNK_TOKENS tokens, which
 * is added to the shard whenever it is full; a document may begin in one chunk and end in another.
 */
#include "tokmap/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/id_type.h"
#include "common/struct_copy.h"
#include "shard_writer.h"
#include "text/json_scan.h"
#include "text/utf8.h"

#define CHUNK_TOKENS ((uint64_t)1 << 16)
#define CHUNK_ENDS ((uint64_t)1 << 13)
#define CHUNK_VALUES ((uint64_t)1 << 10)
#define IDS_MAX ((uint64_t)1 << 60) /* of one call: keeps sizes in bytes from overflowing */

struct tokmap_writer {
    struct shard_writer *shard;
    char *prefix;
    char *about;
    uint64_t vocabulary, eod_id, bos_id;
    uint32_t width, columns;
    bool mask;
    bool adds_eod, adds_bos;
    bool delimited;
    bool failed;
    /* The chunk. */
    uint8_t *tokens; /* CHUNK_TOKENS */
    uint64_t *ends;  /* CHUNK_ENDS */
    uint8_t *bits;   /* CHUNK_TOKENS / 8; NULL without a mask */
    uint64_t token_count, end_count;
};

/* ---- open ---- */

#define REFUSED(...) error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET, __VA_ARGS__)
#define WRONG(field, ...) error_set_field(error, TOKMAP_ERROR_ARGUMENT, prefix, field, __VA_ARGS__)

static bool about_is_valid(const char *about)
{
    const size_t bytes = strlen(about);
    return *about == '{' && json_is_valid(about, bytes, COLUMN_DEPTH) && utf8_valid_prefix(about, bytes) == bytes;
}

static enum tokmap_status check_options(const char *prefix, const struct tokmap_writer_options *options,
                                        struct tokmap_error *error)
{
    if (!options->vocabulary || options->vocabulary > (uint64_t)1 << 32)
        return WRONG("vocabulary", " is %" PRIu64 ", but must be the number of ids of the tokenizer, from 1 to 2^32",
                     options->vocabulary);
    if (options->width && options->width != 2 && options->width != 4)
        return WRONG("width", " is %" PRIu32 ", but must be 2, 4, or 0 for the smallest that fits", options->width);
    if (options->column_count && !options->columns)
        return WRONG("columns", " is NULL, but column_count is %" PRIu32, options->column_count);
    for (uint32_t c = 0; c < options->column_count; c++)
        if (!options->columns[c])
            return WRONG("columns", " has NULL as name %" PRIu32, c);
    if (options->delimited && options->eod_id == TOKMAP_NO_ID && options->bos_id == TOKMAP_NO_ID)
        return WRONG("delimited", " says that documents have an EOD or a BOS, but the id of neither is set");
    if (options->about && !about_is_valid(options->about))
        return WRONG("about", " is not the text of a JSON object in UTF-8");
    return TOKMAP_OK;
}

static void writer_free(struct tokmap_writer *writer)
{
    if (!writer)
        return;
    free(writer->prefix);
    free(writer->about);
    free(writer->tokens);
    free(writer->ends);
    free(writer->bits);
    free(writer);
}

static struct tokmap_writer *writer_new(const char *prefix, const struct tokmap_writer_options *options)
{
    static const char about[] = "{\"tool\":\"tokmap_writer\",\"version\":\"" TOKMAP_VERSION_STRING "\"}";
    struct tokmap_writer *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->width = options->width ? options->width : options->vocabulary > 1 << 16 ? 4 : 2;
    made->vocabulary = options->vocabulary;
    made->eod_id = options->eod_id;
    made->bos_id = options->bos_id;
    made->columns = options->column_count;
    made->mask = options->mask != 0;
    made->delimited = options->delimited != 0;
    made->adds_eod = !made->delimited && options->eod_id != TOKMAP_NO_ID;
    made->adds_bos = !made->delimited && options->bos_id != TOKMAP_NO_ID;
    made->prefix = strdup(prefix);
    made->about = strdup(options->about ? options->about : about);
    made->tokens = malloc(CHUNK_TOKENS * made->width);
    made->ends = malloc(CHUNK_ENDS * sizeof *made->ends);
    made->bits = made->mask ? calloc(1, CHUNK_TOKENS / 8) : NULL;
    if (made->prefix && made->about && made->tokens && made->ends && (made->bits || !made->mask))
        return made;
    writer_free(made);
    return NULL;
}

enum tokmap_status tokmap_writer_open(struct tokmap_writer **writer, const char *prefix,
                                      const struct tokmap_writer_options *options, struct tokmap_error *error)
{
    static const struct tokmap_writer_options defaults = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_writer_options chosen;
    if (writer)
        *writer = NULL;
    if (!writer || !prefix || !options)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the place for the writer, the prefix, or the options are NULL");
    enum tokmap_status status =
        struct_copy_in(&chosen, options, &defaults, sizeof chosen, "tokmap_writer_options", error);
    if (!status)
        status = check_options(prefix, &chosen, error);
    if (status)
        return status;
    struct tokmap_writer *made = writer_new(prefix, &chosen);
    if (!made)
        return error_set_memory(error, "the writer of a shard", CHUNK_TOKENS * 4);
    struct shard_writer_options shard = {.width = made->width,
                                         .vocabulary = chosen.vocabulary,
                                         .eod_id = chosen.eod_id,
                                         .bos_id = chosen.bos_id,
                                         .replace = chosen.replace != 0,
                                         .mask = made->mask,
                                         .sync = chosen.sync != 0,
                                         .columns = chosen.columns,
                                         .column_count = chosen.column_count};
    memcpy(shard.tokenizer, chosen.tokenizer, sizeof shard.tokenizer);
    status = shard_writer_open(&made->shard, prefix, &shard, error);
    if (status)
        writer_free(made);
    else
        *writer = made;
    return status;
}

/* ---- checks ---- */

static uint64_t begin_of(const struct tokmap_documents *documents, uint64_t document)
{
    return document ? documents->ends[document - 1] : 0;
}

static uint64_t end_of(const struct tokmap_documents *documents, uint64_t document)
{
    return documents->ends ? documents->ends[document] : documents->id_count;
}

static enum tokmap_status check_shape(const struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                      struct tokmap_error *error)
{
    const char *prefix = writer->prefix;
    if (!id_type_is_known(documents->type))
        return REFUSED("the ids have type %d, which does not exist", (int)documents->type);
    if (documents->id_count > IDS_MAX || (!documents->ids && documents->id_count))
        return REFUSED("%" PRIu64 " ids are added from %s", documents->id_count, documents->ids ? "memory" : "NULL");
    if (!documents->ends && documents->document_count != 1)
        return REFUSED("%" PRIu64 " documents are added, but their ends are NULL", documents->document_count);
    uint64_t before = 0;
    for (uint64_t d = 0; documents->ends && d < documents->document_count; d++) {
        if (documents->ends[d] < before)
            return REFUSED("document %" PRIu64 " of this call ends at id %" PRIu64 ", before it begins at %" PRIu64
                           "; ends must not decrease",
                           d, documents->ends[d], before);
        before = documents->ends[d];
    }
    if (documents->ends && before != documents->id_count)
        return REFUSED("the last document of this call ends at id %" PRIu64 ", but there are %" PRIu64 " ids", before,
                       documents->id_count);
    if (documents->counted && !writer->mask)
        return REFUSED("the shard is written without a mask; set mask");
    if (documents->values && !writer->columns)
        return REFUSED("the shard is written without columns; set columns");
    if (!documents->origin && documents->origin_bytes)
        return REFUSED("the origin is NULL, but has %" PRIu64 " bytes", documents->origin_bytes);
    return TOKMAP_OK;
}

/* Finds the document that has an id, for messages. */
static uint64_t document_of(const struct tokmap_documents *documents, uint64_t at)
{
    uint64_t document = 0;
    while (documents->ends && documents->ends[document] <= at)
        document++;
    return document;
}

static enum tokmap_status check_ids(const struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                    uint64_t *largest, struct tokmap_error *error)
{
    const uint64_t limit = min64(writer->vocabulary, id_type_limit(documents->type));
    *largest = id_type_largest(documents->type, documents->ids, documents->id_count);
    if (*largest < limit || !documents->id_count)
        return TOKMAP_OK;
    uint64_t at = 0, id;
    while ((id = id_type_get(documents->type, documents->ids, at)) < limit)
        at++;
    const uint64_t document = document_of(documents, at), place = at - begin_of(documents, document);
    if (id >= id_type_limit(documents->type))
        return error_set(error, TOKMAP_ERROR_TOKEN, writer->prefix, TOKMAP_NO_OFFSET,
                         "id %" PRIu64 " of document %" PRIu64 " of this call is %" PRId64
                         ", but an id is never negative; state what a model should not learn in a mask",
                         place, document, id_type_signed(documents->type, id));
    return error_set(error, TOKMAP_ERROR_TOKEN, writer->prefix, TOKMAP_NO_OFFSET,
                     "id %" PRIu64 " of document %" PRIu64 " of this call is %" PRIu64
                     ", which is not in the vocabulary of %" PRIu64 " ids; set the vocabulary of the "
                     "tokenizer that made the ids",
                     place, document, id, writer->vocabulary);
}

static enum tokmap_status check_delimiters(const struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                           struct tokmap_error *error)
{
    for (uint64_t d = 0; writer->delimited && d < documents->document_count; d++) {
        const uint64_t begin = begin_of(documents, d), end = end_of(documents, d);
        const bool begins = writer->bos_id == TOKMAP_NO_ID ||
                            (begin < end && id_type_get(documents->type, documents->ids, begin) == writer->bos_id);
        const bool ends = writer->eod_id == TOKMAP_NO_ID ||
                          (begin < end && id_type_get(documents->type, documents->ids, end - 1) == writer->eod_id);
        if (!begins || !ends)
            return error_set(error, TOKMAP_ERROR_INPUT, writer->prefix, TOKMAP_NO_OFFSET,
                             "document %" PRIu64 " of this call does not %s id %" PRIu64
                             ", although delimited says that documents have it",
                             d, begins ? "end with" : "begin with", begins ? writer->eod_id : writer->bos_id);
    }
    return TOKMAP_OK;
}

static enum tokmap_status check_extras(const struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                       struct tokmap_error *error)
{
    if (documents->counted && documents->id_count &&
        id_type_largest(TOKMAP_ID_U8, documents->counted, documents->id_count) > 1) {
        uint64_t at = 0;
        while (documents->counted[at] <= 1)
            at++;
        const uint64_t document = document_of(documents, at);
        return error_set(error, TOKMAP_ERROR_INPUT, writer->prefix, TOKMAP_NO_OFFSET,
                         "the mask of id %" PRIu64 " of document %" PRIu64
                         " of this call is %u, but must be 1 (the id counts as a target) or 0 (it does not)",
                         at - begin_of(documents, document), document, documents->counted[at]);
    }
    for (uint64_t i = 0; documents->values && i < documents->document_count * writer->columns; i++) {
        const struct shard_value value = {documents->values[i].json, documents->values[i].bytes};
        if ((value.bytes && !value.json) || !shard_value_is_sound(&value))
            return error_set(error, TOKMAP_ERROR_INPUT, writer->prefix, TOKMAP_NO_OFFSET,
                             "the value of column %" PRIu64 " for document %" PRIu64
                             " of this call is not JSON text in UTF-8, begins or ends with a space, or is more than %d "
                             "containers deep",
                             i % writer->columns, i / writer->columns, COLUMN_DEPTH);
    }
    return TOKMAP_OK;
}

/* ---- storing ---- */

static enum tokmap_status chunk_flush(struct tokmap_writer *writer, uint64_t largest, struct tokmap_error *error)
{
    enum tokmap_status status = shard_writer_add(writer->shard, writer->tokens, writer->token_count, writer->ends,
                                                 writer->end_count, largest, error);
    if (!status && writer->mask) {
        status = shard_writer_mask(writer->shard, writer->bits, 0, writer->token_count, error);
        memset(writer->bits, 0, CHUNK_TOKENS / 8);
    }
    writer->token_count = writer->end_count = 0;
    return status;
}

/* Sets the bits of the chunk from token `at` on. bytes: one for each token; NULL: all are 1. */
static void set_bits(uint8_t *bits, uint64_t at, const uint8_t *bytes, uint64_t count)
{
    uint64_t i = 0;
    for (; i < count && (at + i) % 8; i++)
        bits[(at + i) / 8] |= (uint8_t)((bytes ? bytes[i] : 1) << (at + i) % 8);
    for (; i + 8 <= count; i += 8) /* bit k of the product's last byte is byte k of the factor, which is 0 or 1 */
        bits[(at + i) / 8] = bytes ? (uint8_t)(load64(bytes + i) * 0x0102040810204080u >> 56) : 0xff;
    for (; i < count; i++)
        bits[(at + i) / 8] |= (uint8_t)((bytes ? bytes[i] : 1) << (at + i) % 8);
}

/* Puts ids into the chunk, which is flushed whenever it is full. counted: NULL if all count. */
static enum tokmap_status chunk_ids(struct tokmap_writer *writer, enum tokmap_id_type type, const void *ids,
                                    uint64_t first, uint64_t count, const uint8_t *counted, uint64_t largest,
                                    struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    while (count && !status) {
        if (writer->token_count == CHUNK_TOKENS)
            status = chunk_flush(writer, largest, error);
        const uint64_t part = min64(count, CHUNK_TOKENS - writer->token_count);
        id_type_store(type, ids, first, part, writer->width, writer->tokens + writer->token_count * writer->width);
        if (writer->mask)
            set_bits(writer->bits, writer->token_count, counted ? counted + first : NULL, part);
        writer->token_count += part;
        first += part;
        count -= part;
    }
    return status;
}

/* Puts an EOD or a BOS into the chunk. */
static enum tokmap_status chunk_id(struct tokmap_writer *writer, uint64_t id, uint8_t counted, uint64_t largest,
                                   struct tokmap_error *error)
{
    return chunk_ids(writer, TOKMAP_ID_U64, &id, 0, 1, &counted, largest, error);
}

static enum tokmap_status chunk_end(struct tokmap_writer *writer, uint64_t largest, struct tokmap_error *error)
{
    writer->ends[writer->end_count++] = writer->token_count;
    return writer->end_count == CHUNK_ENDS ? chunk_flush(writer, largest, error) : TOKMAP_OK;
}

static enum tokmap_status store_document(struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                         uint64_t document, uint64_t largest, struct tokmap_error *error)
{
    const uint64_t begin = begin_of(documents, document), end = end_of(documents, document);
    const uint8_t *counted = documents->counted;
    const uint8_t last = !counted ? 1 : begin < end ? counted[end - 1] : 0;
    enum tokmap_status status = TOKMAP_OK;
    if (writer->adds_bos)
        status = chunk_id(writer, writer->bos_id, !counted, largest, error);
    if (!status)
        status = chunk_ids(writer, documents->type, documents->ids, begin, end - begin, counted, largest, error);
    if (!status && writer->adds_eod)
        status = chunk_id(writer, writer->eod_id, last, largest, error);
    return status ? status : chunk_end(writer, largest, error);
}

static enum tokmap_status store_tokens(struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                       uint64_t largest, struct tokmap_error *error)
{
    const bool as_stored = id_type_bytes(documents->type) == writer->width;
    if (as_stored && !writer->adds_bos && !writer->adds_eod && !writer->mask)
        return shard_writer_add(writer->shard, documents->ids, documents->id_count,
                                documents->ends ? documents->ends : &documents->id_count, documents->document_count,
                                largest, error);
    if (writer->adds_eod)
        largest = max64(largest, writer->eod_id);
    if (writer->adds_bos)
        largest = max64(largest, writer->bos_id);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t d = 0; d < documents->document_count && !status; d++)
        status = store_document(writer, documents, d, largest, error);
    return status ? status : chunk_flush(writer, largest, error);
}

static enum tokmap_status store_values(struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                       struct tokmap_error *error)
{
    struct shard_value values[CHUNK_VALUES];
    const uint64_t columns = writer->columns, at_once = columns ? CHUNK_VALUES / columns : 1;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t d = 0; columns && d < documents->document_count && !status; d += at_once) {
        const uint64_t part = min64(at_once, documents->document_count - d);
        for (uint64_t i = 0; i < part * columns; i++) {
            const struct tokmap_value *value = documents->values ? &documents->values[d * columns + i] : NULL;
            values[i] = value ? (struct shard_value){value->json, value->bytes} : (struct shard_value){NULL, 0};
        }
        status = shard_writer_values(writer->shard, values, part, error);
    }
    return status;
}

enum tokmap_status tokmap_writer_add(struct tokmap_writer *writer, const struct tokmap_documents *documents,
                                     struct tokmap_error *error)
{
    static const struct tokmap_documents defaults = TOKMAP_DOCUMENTS_INIT;
    struct tokmap_documents chosen;
    uint64_t largest = 0;
    if (!writer || !documents)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the writer or what is to be added is NULL");
    if (writer->failed)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer->prefix, TOKMAP_NO_OFFSET,
                         "writing this shard failed before; give it up and begin again");
    enum tokmap_status status = struct_copy_in(&chosen, documents, &defaults, sizeof chosen, "tokmap_documents", error);
    if (!status && !chosen.document_count && !chosen.id_count)
        return TOKMAP_OK;
    if (!status)
        status = check_shape(writer, &chosen, error);
    if (!status)
        status = check_ids(writer, &chosen, &largest, error);
    if (!status)
        status = check_delimiters(writer, &chosen, error);
    if (!status)
        status = check_extras(writer, &chosen, error);
    if (!status && chosen.origin)
        status = shard_writer_origin(writer->shard, chosen.origin, chosen.origin_bytes, chosen.record, error);
    if (status)
        return status;
    assert(!writer->token_count && !writer->end_count);
    status = store_tokens(writer, &chosen, largest, error);
    if (!status)
        status = store_values(writer, &chosen, error);
    writer->failed = status != TOKMAP_OK;
    return status;
}

enum tokmap_status tokmap_writer_info(const struct tokmap_writer *writer, struct tokmap_writer_info *info)
{
    if (!writer || !info)
        return TOKMAP_ERROR_ARGUMENT;
    const struct tokmap_writer_info made = {.size = sizeof made,
                                            .tokens = shard_writer_tokens(writer->shard),
                                            .documents = shard_writer_documents(writer->shard),
                                            .width = writer->width};
    return struct_copy_out(info, &made, sizeof made, "tokmap_writer_info", NULL);
}

/* ---- the end ---- */

enum tokmap_status tokmap_writer_about(struct tokmap_writer *writer, const char *about, struct tokmap_error *error)
{
    if (!writer || !about || !about_is_valid(about))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, writer ? writer->prefix : NULL, TOKMAP_NO_OFFSET, "%s",
                         !writer  ? "the writer is NULL"
                         : !about ? "about is NULL"
                                  : "about is not the text of a JSON object in UTF-8");
    char *copy = strdup(about);
    if (!copy)
        return error_set_memory(error, "the text about a shard", strlen(about) + 1);
    free(writer->about);
    writer->about = copy;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_writer_commit(struct tokmap_writer *writer, uint8_t *content, struct tokmap_error *error)
{
    enum tokmap_status status;
    if (!writer)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the writer is NULL");
    if (writer->failed) {
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, writer->prefix, TOKMAP_NO_OFFSET,
                           "writing this shard failed before; nothing was committed");
        shard_writer_abort(writer->shard);
    } else {
        status = shard_writer_commit(writer->shard, writer->about, strlen(writer->about), content, error);
    }
    writer_free(writer);
    return status;
}

void tokmap_writer_abandon(struct tokmap_writer *writer)
{
    if (!writer)
        return;
    shard_writer_abort(writer->shard);
    writer_free(writer);
}
