/*
 * tokenizer_library.c - the functions of include/tokmap/tokenizer.h, over the tokenizers of this room.
 *
 * Encoding needs working memory: caches of a megabyte or so, which are worth keeping. A caller need not know that. The
 * handle keeps the memory of the last calls in a few slots; a call takes what is in one of them, or makes its own, and
 * puts it back. So threads share the handle without waiting for each other.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "text/utf8.h"
#include "tokmap/tokenizer.h"
#include "vocabulary.h"

#define SLOTS 64
#define PART_BYTES ((uint64_t)64 << 10) /* of a long text that are encoded at a time, if it can be cut */
#define KEPT_BYTES ((uint64_t)8 << 20)  /* memory for ids that a slot keeps */
#define DECODED_IDS 1024                /* decoded at a time */

/* The working memory of one call. */
struct worker {
    struct tokenizer_state *state;
    void *ids;
    uint64_t capacity; /* in ids */
};

struct tokmap_tokenizer {
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    bool cuts; /* long texts are encoded in parts */
    _Atomic(struct worker *) slots[SLOTS];
};

static enum tokmap_status missing(struct tokmap_error *error, const char *name)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL", name);
}

/* ---- open and close ---- */

static enum tokmap_status options_read(struct tokenizer_options *into, const char *path,
                                       const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    static const struct tokmap_tokenizer_options defaults = TOKMAP_TOKENIZER_OPTIONS_INIT;
    struct tokmap_tokenizer_options given;
    const enum tokmap_status status =
        struct_copy_in(&given, options, &defaults, sizeof given, "tokmap_tokenizer_options", error);
    if (status)
        return status;
    *into = (struct tokenizer_options){TOKENIZER_SPECIAL_TEXT, given.pattern, given.pattern_regex,
                                       given.special_tokens};
    switch (given.special) {
    case TOKMAP_SPECIAL_TEXT:
        return TOKMAP_OK;
    case TOKMAP_SPECIAL_RECOGNIZE:
        into->special = TOKENIZER_SPECIAL_RECOGNIZE;
        break;
    case TOKMAP_SPECIAL_ERROR:
        into->special = TOKENIZER_SPECIAL_ERROR;
        break;
    default:
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.special is %d, but it must be a value of enum tokmap_special", (int)given.special);
    }
    return strcmp(path, "bytes") != 0
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                           "the tokenizer 'bytes' finds no special tokens in text; leave options.special out");
}

enum tokmap_status tokmap_tokenizer_open(struct tokmap_tokenizer **tokenizer, const char *path,
                                         const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct tokenizer_options chosen;
    if (tokenizer)
        *tokenizer = NULL;
    if (!tokenizer || !path)
        return missing(error, tokenizer ? "path" : "tokenizer");
    enum tokmap_status status = options_read(&chosen, path, options, error);
    if (status)
        return status;
    struct tokmap_tokenizer *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    status = vocabulary_open(&made->tokenizer, path, &chosen, error);
    if (status) {
        free(made);
        return status;
    }
    tokenizer_info(made->tokenizer, &made->info);
    /* The message about a special token names its place in the text, so the text is not cut then. */
    made->cuts = made->info.cuts && chosen.special != TOKENIZER_SPECIAL_ERROR;
    *tokenizer = made;
    return TOKMAP_OK;
}

static void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    tokenizer_state_free(worker->state);
    free(worker->ids);
    free(worker);
}

void tokmap_tokenizer_close(struct tokmap_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    for (int i = 0; i < SLOTS; i++)
        worker_free(atomic_load(&tokenizer->slots[i]));
    tokenizer_close(tokenizer->tokenizer);
    free(tokenizer);
}

enum tokmap_status tokmap_tokenizer_info(const struct tokmap_tokenizer *tokenizer, struct tokmap_tokenizer_info *info)
{
    if (!tokenizer || !info)
        return TOKMAP_ERROR_ARGUMENT;
    const struct tokenizer_info *own = &tokenizer->info;
    struct tokmap_tokenizer_info made = {.size = sizeof made,
                                         .name = own->name,
                                         .form = own->form,
                                         .scanner = own->scanner,
                                         .note = own->note,
                                         .vocabulary = own->vocabulary,
                                         .eod_id = own->eod_id,
                                         .bos_id = own->bos_id,
                                         .added = own->added,
                                         .specials = own->specials};
    memcpy(made.fingerprint, own->fingerprint, sizeof made.fingerprint);
    return struct_copy_out(info, &made, sizeof made, "tokmap_tokenizer_info", NULL);
}

/* ---- encoding ---- */

static enum tokmap_status worker_take(const struct tokmap_tokenizer *tokenizer, struct worker **worker,
                                      struct tokmap_error *error)
{
    struct tokmap_tokenizer *own = (struct tokmap_tokenizer *)(uintptr_t)tokenizer; /* only the slots change */
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load_explicit(&own->slots[i], memory_order_relaxed) &&
            (*worker = atomic_exchange(&own->slots[i], NULL)))
            return TOKMAP_OK;
    *worker = calloc(1, sizeof **worker);
    if (!*worker)
        return error_set_memory(error, "encoding", sizeof **worker);
    const enum tokmap_status status = tokenizer_state_new(&(*worker)->state, tokenizer->tokenizer, error);
    if (status) {
        worker_free(*worker);
        *worker = NULL;
    }
    return status;
}

static void worker_put(const struct tokmap_tokenizer *tokenizer, struct worker *worker)
{
    struct tokmap_tokenizer *own = (struct tokmap_tokenizer *)(uintptr_t)tokenizer;
    if (worker->capacity * own->info.width > KEPT_BYTES) {
        free(worker->ids);
        worker->ids = NULL;
        worker->capacity = 0;
    }
    for (int i = 0; i < SLOTS; i++) {
        struct worker *expected = NULL;
        if (atomic_compare_exchange_strong(&own->slots[i], &expected, worker))
            return;
    }
    worker_free(worker);
}

static enum tokmap_status worker_reserve(struct worker *worker, const struct tokenizer_info *info, uint64_t bytes,
                                         struct tokmap_error *error)
{
    uint64_t ids, memory;
    if (mul_overflows(bytes, info->ids_per_byte_most, &ids) || mul_overflows(ids, info->width, &memory) ||
        memory > SIZE_MAX / 2)
        return error_set_memory(error, "token ids", bytes);
    if (worker->capacity >= ids)
        return TOKMAP_OK;
    free(worker->ids);
    worker->ids = malloc((size_t)memory);
    worker->capacity = worker->ids ? ids : 0;
    return worker->ids ? TOKMAP_OK : error_set_memory(error, "token ids", memory);
}

/* Copies ids to the caller, as far as there is room, and counts them. */
static void ids_deliver(struct tokmap_encoded *into, const void *ids, uint64_t count, uint32_t width)
{
    const uint64_t fit = into->ids && into->count < into->room ? min64(count, into->room - into->count) : 0;
    const uint8_t *from = ids;
    for (uint64_t i = 0; i < fit; i++)
        into->ids[into->count + i] = width == 2 ? load16(from + 2 * i) : load32(from + 4 * i);
    into->count += count;
}

static enum tokmap_status text_encode(const struct tokmap_tokenizer *tokenizer, struct worker *worker,
                                      const char *text, uint64_t bytes, struct tokmap_encoded *into,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0, part; at < bytes && !status; at += part) {
        part = bytes - at;
        for (uint64_t seen = PART_BYTES; tokenizer->cuts && seen < bytes - at; seen *= 2) {
            const uint64_t cut = tokenizer_cut(tokenizer->tokenizer, text + at, seen);
            if (!cut)
                continue;
            part = cut;
            break;
        }
        uint64_t end;
        const struct tokenizer_text document = {text + at, part};
        const struct tokenizer_batch batch = {&document, 1, at != 0, at + part < bytes};
        status = worker_reserve(worker, &tokenizer->info, part, error);
        struct tokenizer_out out = {.tokens = worker->ids, .capacity = worker->capacity, .ends = &end};
        if (!status)
            status = tokenizer_encode(worker->state, &batch, &out, error);
        if (!status)
            ids_deliver(into, worker->ids, out.count, tokenizer->info.width);
    }
    return status;
}

enum tokmap_status tokmap_tokenizer_encode(const struct tokmap_tokenizer *tokenizer, const char *text, uint64_t bytes,
                                           struct tokmap_encoded *encoded, struct tokmap_error *error)
{
    static const struct tokmap_encoded none = TOKMAP_ENCODED_INIT;
    struct tokmap_encoded own;
    struct worker *worker;
    if (!tokenizer || !encoded || (!text && bytes))
        return missing(error, !tokenizer ? "tokenizer" : !encoded ? "encoded" : "text");
    enum tokmap_status status = struct_copy_in(&own, encoded, &none, sizeof own, "tokmap_encoded", error);
    if (status)
        return status;
    const uint64_t valid = bytes ? utf8_valid_prefix(text, (size_t)bytes) : 0;
    if (valid != bytes)
        return error_set(error, TOKMAP_ERROR_ENCODING, NULL, valid, "the text is not UTF-8");
    status = worker_take(tokenizer, &worker, error);
    if (status)
        return status;
    own.count = 0;
    status = text_encode(tokenizer, worker, text, bytes, &own, error);
    worker_put(tokenizer, worker);
    if (status)
        return status;
    status = struct_copy_out(encoded, &own, sizeof own, "tokmap_encoded", error);
    if (status || !own.ids || own.count <= own.room)
        return status;
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "the text has %" PRIu64 " ids, but there is room for %" PRIu64 "; encoded.count is the room that "
                     "it needs",
                     own.count, own.room);
}

/* ---- decoding ---- */

static void text_deliver(struct tokmap_decoded *into, struct text_buffer *text)
{
    const uint64_t fit = into->text && into->bytes < into->room ? min64(text->count, into->room - into->bytes) : 0;
    if (fit)
        memcpy(into->text + into->bytes, text->bytes, (size_t)fit);
    into->bytes += text->count;
    text->count = 0;
}

static enum tokmap_status ids_decode(const struct tokmap_tokenizer *tokenizer, struct tokenizer_decoder *decoder,
                                     const uint32_t *ids, uint64_t count, struct tokmap_decoded *into,
                                     struct tokmap_error *error)
{
    const struct tokenizer_info *info = &tokenizer->info;
    struct text_buffer text = {NULL, 0, 0};
    uint8_t some[4 * DECODED_IDS];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0, part; at < count && !status; at += part) {
        part = min64(count - at, DECODED_IDS);
        for (uint64_t i = 0; i < part && !status; i++) {
            const uint8_t *bytes;
            uint32_t length;
            if (!tokenizer_token(tokenizer->tokenizer, ids[at + i], &bytes, &length))
                status = error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                                   "ids[%" PRIu64 "] is %" PRIu32 ", which is not in the vocabulary of the tokenizer "
                                   "'%s'; decode ids with the tokenizer that made them",
                                   at + i, ids[at + i], info->name);
            else if (info->width == 2)
                store16(some + 2 * i, (uint16_t)ids[at + i]);
            else
                store32(some + 4 * i, ids[at + i]);
        }
        if (!status)
            status = tokenizer_decoder_add(decoder, some, part, &text, error);
        text_deliver(into, &text);
    }
    if (!status)
        status = tokenizer_decoder_end(decoder, &text, error);
    text_deliver(into, &text);
    free(text.bytes);
    return status;
}

enum tokmap_status tokmap_tokenizer_decode(const struct tokmap_tokenizer *tokenizer, const uint32_t *ids,
                                           uint64_t count, struct tokmap_decoded *decoded, struct tokmap_error *error)
{
    static const struct tokmap_decoded none = TOKMAP_DECODED_INIT;
    struct tokmap_decoded own;
    struct tokenizer_decoder *decoder;
    if (!tokenizer || !decoded || (!ids && count))
        return missing(error, !tokenizer ? "tokenizer" : !decoded ? "decoded" : "ids");
    enum tokmap_status status = struct_copy_in(&own, decoded, &none, sizeof own, "tokmap_decoded", error);
    if (!status)
        status = tokenizer_decoder_new(&decoder, tokenizer->tokenizer, own.specials != 0, error);
    if (status)
        return status;
    own.bytes = 0;
    tokenizer_decoder_begin(decoder, own.resumed != 0);
    status = ids_decode(tokenizer, decoder, ids, count, &own, error);
    tokenizer_decoder_free(decoder);
    if (!status)
        status = struct_copy_out(decoded, &own, sizeof own, "tokmap_decoded", error);
    if (status || !own.text || own.bytes <= own.room)
        return status;
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "the text has %" PRIu64 " bytes, but there is room for %" PRIu64 "; decoded.bytes is the room that "
                     "it needs",
                     own.bytes, own.room);
}

/* ---- tokens ---- */

enum tokmap_status tokmap_tokenizer_token(const struct tokmap_tokenizer *tokenizer, uint64_t id, const char **bytes,
                                          uint64_t *count, struct tokmap_error *error)
{
    const uint8_t *found;
    uint32_t length;
    if (!tokenizer || !bytes || !count)
        return missing(error, !tokenizer ? "tokenizer" : !bytes ? "bytes" : "count");
    if (!tokenizer_token(tokenizer->tokenizer, id, &found, &length))
        return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                         "the id %" PRIu64 " is not in the vocabulary of the tokenizer '%s', whose ids end at %" PRIu64,
                         id, tokenizer->info.name, tokenizer->info.vocabulary - 1);
    *bytes = (const char *)found;
    *count = length;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_tokenizer_find(const struct tokmap_tokenizer *tokenizer, const char *bytes, uint64_t count,
                                         uint64_t *id, struct tokmap_error *error)
{
    if (!tokenizer || !id || (!bytes && count))
        return missing(error, !tokenizer ? "tokenizer" : !id ? "id" : "bytes");
    for (uint64_t i = 0; i < tokenizer->info.added; i++) {
        struct tokenizer_added added;
        tokenizer_added_at(tokenizer->tokenizer, i, &added);
        if (added.bytes == count && (!count || !memcmp(added.text, bytes, (size_t)count))) {
            *id = added.id;
            return TOKMAP_OK;
        }
    }
    for (uint64_t i = tokenizer->info.vocabulary; i-- > 0;) {
        const uint8_t *found;
        uint32_t length;
        if (tokenizer_token(tokenizer->tokenizer, i, &found, &length) && length == count &&
            (!count || !memcmp(found, bytes, (size_t)count))) {
            *id = i;
            return TOKMAP_OK;
        }
    }
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                     "no token of the tokenizer '%s' is '%.*s'", tokenizer->info.name, (int)min64(count, 64),
                     count ? bytes : "");
}

const char *tokmap_tokenizer_version(void)
{
    return TOKMAP_VERSION_STRING;
}
