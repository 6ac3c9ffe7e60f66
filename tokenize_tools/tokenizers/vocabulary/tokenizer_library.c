/* SPDX-License-Identifier: MIT */
/*
 * tokenizer_library.c - the functions of include/tokmap/tokenizer.h, over the tokenizers of this room.
 *
 * Encoding needs working memory: caches of a megabyte or so, which are worth keeping. A caller need not know that. The
 * handle keeps the memory of the last calls in a few slots; a call takes what is in one of them, or makes its own, and
 * puts it back. So threads share the handle without waiting for each other.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/id_type.h"
#include "common/struct_copy.h"
#include "folder.h"
#include "text/utf8.h"
#include "tokenizer_library.h"
#include "vocabulary.h"

#define PART_BYTES ((uint64_t)64 << 10) /* of a long text that are encoded at a time, if it can be cut */
#define KEPT_BYTES ((uint64_t)8 << 20)  /* memory for ids that a slot keeps */

enum tokmap_status library_missing(struct tokmap_error *error, const char *name)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL", name);
}

/* ---- open and close ---- */

static enum tokmap_status special_check(enum tokmap_special special, struct tokmap_error *error)
{
    if ((unsigned)special <= TOKMAP_SPECIAL_ERROR)
        return TOKMAP_OK;
    return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "special", " is %d, but must be 0 to 2", (int)special);
}

static enum tokmap_status options_read(struct tokmap_tokenizer_options *into, const char *path,
                                       const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    static const struct tokmap_tokenizer_options defaults = TOKMAP_TOKENIZER_OPTIONS_INIT;
    enum tokmap_status status =
        struct_copy_in(into, options, &defaults, sizeof *into, "tokmap_tokenizer_options", error);
    if (!status)
        status = special_check(into->special, error);
    if (status || into->special == TOKMAP_SPECIAL_TEXT || strcmp(path, "bytes") != 0)
        return status;
    return error_set_field(
        error, TOKMAP_ERROR_ARGUMENT, NULL, "special",
        " cannot be chosen, because the tokenizer 'bytes' finds no special tokens in text; leave it out");
}

/* Fills what all handles have. */
static void handle_fill(struct tokmap_tokenizer *made, struct tokmap_tokenizer *shares, enum tokmap_special special)
{
    made->info = info_of_tokenizer(made->tokenizer);
    /* The message about a special token names its place in the text, so the text is not cut then. */
    made->cuts = made->info.cuts && special != TOKMAP_SPECIAL_ERROR;
    made->shares = shares;
    atomic_init(&made->users, 1);
}

/* Makes the note of a handle from that of its file and the warnings about its folder, a sentence each. */
static enum tokmap_status note_make(struct tokmap_tokenizer *made, const struct folder *folder,
                                    struct tokmap_error *error)
{
    const char *note = made->info.note;
    size_t room = note ? strlen(note) + 1 : 0;
    for (uint32_t i = 0; i < folder->warning_count; i++)
        room += strlen(folder->warnings[i]) + 2;
    if (!folder->warning_count)
        return TOKMAP_OK;
    made->note = malloc(room);
    if (!made->note)
        return error_set_memory(error, "a tokenizer", room);
    int used = snprintf(made->note, room, "%s", note ? note : "");
    for (uint32_t i = 0; i < folder->warning_count; i++)
        used += snprintf(made->note + used, room - (size_t)used, "%s%s", used ? "; " : "", folder->warnings[i]);
    made->info.note = made->note;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_tokenizer_open(struct tokmap_tokenizer **tokenizer, const char *path,
                                         const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct tokmap_tokenizer_options chosen;
    if (tokenizer)
        *tokenizer = NULL;
    if (!tokenizer || !path)
        return library_missing(error, tokenizer ? "path" : "tokenizer");
    enum tokmap_status status = options_read(&chosen, path, options, error);
    if (status)
        return status;
    struct tokmap_tokenizer *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    struct folder *folder = calloc(1, sizeof *folder);
    status = folder ? vocabulary_open_reported(&made->tokenizer, path, &chosen, folder, error)
                    : error_set_memory(error, "a tokenizer", sizeof *folder);
    if (!status) {
        handle_fill(made, NULL, chosen.special);
        folder_compare(folder, made->tokenizer);
        status = note_make(made, folder, error);
    }
    if (folder)
        folder_free(folder);
    free(folder);
    if (status) {
        tokenizer_close(made->tokenizer);
        free(made);
        return status;
    }
    *tokenizer = made;
    return TOKMAP_OK;
}

static void worker_free(struct library_worker *worker)
{
    if (!worker)
        return;
    tokenizer_state_free(worker->state);
    free(worker->ids);
    free(worker);
}

enum tokmap_status tokmap_tokenizer_share(struct tokmap_tokenizer **shared, struct tokmap_tokenizer *tokenizer,
                                          enum tokmap_special special, struct tokmap_error *error)
{
    if (shared)
        *shared = NULL;
    if (!shared || !tokenizer)
        return library_missing(error, shared ? "tokenizer" : "shared");
    enum tokmap_status status = special_check(special, error);
    if (status)
        return status;
    struct tokmap_tokenizer *owner = tokenizer->shares ? tokenizer->shares : tokenizer;
    struct tokmap_tokenizer *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    status = tokenizer_share(&made->tokenizer, owner->tokenizer, special, error);
    if (status) {
        free(made);
        return status;
    }
    handle_fill(made, owner, special);
    made->info.note = owner->info.note;
    atomic_fetch_add(&owner->users, 1);
    *shared = made;
    return TOKMAP_OK;
}

/* Ends a use of the vocabulary that a handle owns. */
static void owner_release(struct tokmap_tokenizer *owner)
{
    if (atomic_fetch_sub(&owner->users, 1) > 1)
        return;
    tokenizer_close(owner->tokenizer);
    free(owner->note);
    free(owner);
}

void tokmap_tokenizer_close(struct tokmap_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    for (int i = 0; i < LIBRARY_SLOTS; i++)
        worker_free(atomic_exchange(&tokenizer->slots[i], NULL));
    struct tokmap_tokenizer *owner = tokenizer->shares;
    if (owner) {
        tokenizer_close(tokenizer->tokenizer);
        free(tokenizer);
    }
    owner_release(owner ? owner : tokenizer);
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

enum tokmap_status library_worker_take(const struct tokmap_tokenizer *tokenizer, struct library_worker **worker,
                                       struct tokmap_error *error)
{
    struct tokmap_tokenizer *own = (struct tokmap_tokenizer *)(uintptr_t)tokenizer; /* only the slots change */
    for (int i = 0; i < LIBRARY_SLOTS; i++)
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

void library_worker_put(const struct tokmap_tokenizer *tokenizer, struct library_worker *worker)
{
    struct tokmap_tokenizer *own = (struct tokmap_tokenizer *)(uintptr_t)tokenizer;
    if (worker->capacity * own->info.width > KEPT_BYTES) {
        free(worker->ids);
        worker->ids = NULL;
        worker->capacity = 0;
    }
    for (int i = 0; i < LIBRARY_SLOTS; i++) {
        struct library_worker *expected = NULL;
        if (atomic_compare_exchange_strong(&own->slots[i], &expected, worker))
            return;
    }
    worker_free(worker);
}

static enum tokmap_status worker_reserve(struct library_worker *worker, const struct tokenizer_info *info,
                                         uint64_t bytes, struct tokmap_error *error)
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

enum tokmap_status library_part_encode(const struct tokmap_tokenizer *tokenizer, struct library_worker *worker,
                                       const struct tokmap_text *part, bool resumed, bool unfinished, uint64_t *count,
                                       struct tokmap_error *error)
{
    uint64_t end;
    const struct tokenizer_batch batch = {part, 1, resumed, unfinished};
    enum tokmap_status status = worker_reserve(worker, &tokenizer->info, part->count, error);
    struct tokenizer_out out = {.tokens = worker->ids, .capacity = worker->capacity, .ends = &end};
    if (!status)
        status = tokenizer_encode(worker->state, &batch, &out, error);
    *count = out.count;
    return status;
}

uint64_t library_part_bytes(const struct tokmap_tokenizer *tokenizer, const char *text, uint64_t left, uint64_t wanted)
{
    for (uint64_t seen = wanted; tokenizer->cuts && seen < left; seen *= 2) {
        const uint64_t cut = tokenizer_cut(tokenizer->tokenizer, text, seen);
        if (cut)
            return cut;
    }
    return left;
}

enum tokmap_status library_type_check(enum tokmap_id_type type, uint64_t largest, struct tokmap_error *error)
{
    if (!id_type_is_known(type))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "type", " is %d, which is not a type of ids",
                               (int)type);
    if (largest >= id_type_limit(type))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "type",
                               " is %s, but there can be ids up to %" PRIu64 ", which need %s", id_type_name(type),
                               largest, largest > UINT16_MAX ? "U32" : "U16");
    return TOKMAP_OK;
}

/* Delivers the offsets of the ids of a part that begins at byte `at`, as far as there is room for them. */
static enum tokmap_status offsets_deliver(struct library_worker *worker, const struct tokmap_text *part, uint64_t at,
                                          uint64_t count, struct tokmap_encoded *into, struct tokmap_error *error)
{
    const uint64_t fit = min64(count, into->room - min64(into->room, into->count));
    uint64_t *begins = into->begins, *ends = into->ends, *own = NULL;
    if (!fit || (!begins && !ends))
        return TOKMAP_OK;
    if (fit < count) { /* all are found, and then as many are copied as there is room for */
        own = calloc((size_t)count, 2 * sizeof *own);
        if (!own)
            return error_set_memory(error, "offsets of tokens", count * 2 * sizeof *own);
    }
    begins = own ? own : begins ? begins + into->count : NULL;
    ends = own ? own + count : ends ? ends + into->count : NULL;
    const enum tokmap_status status = tokenizer_offsets(worker->state, part, at ? TOKENIZER_RESUMES : TOKENIZER_STARTS,
                                                        worker->ids, count, begins, ends, error);
    for (uint64_t i = 0; !status && i < fit; i++) {
        if (into->begins)
            into->begins[into->count + i] = begins[i] + at;
        if (into->ends)
            into->ends[into->count + i] = ends[i] + at;
    }
    free(own);
    return status;
}

static enum tokmap_status text_encode(const struct tokmap_tokenizer *tokenizer, struct library_worker *worker,
                                      const char *text, uint64_t bytes, struct tokmap_encoded *into,
                                      struct tokmap_error *error)
{
    const uint32_t width = tokenizer->info.width;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0, count; at < bytes && !status; at += count) {
        uint64_t ids;
        count = library_part_bytes(tokenizer, text + at, bytes - at, PART_BYTES);
        const struct tokmap_text part = {text + at, count};
        status = library_part_encode(tokenizer, worker, &part, at != 0, at + count < bytes, &ids, error);
        if (!status)
            status = offsets_deliver(worker, &part, at, ids, into, error);
        if (status)
            break;
        if (into->ids && into->count < into->room)
            id_type_store(width == 2 ? TOKMAP_ID_U16 : TOKMAP_ID_U32, worker->ids, 0,
                          min64(ids, into->room - into->count), id_type_bytes(into->type),
                          (uint8_t *)into->ids + into->count * id_type_bytes(into->type));
        into->count += ids;
    }
    return status;
}

enum tokmap_status tokmap_tokenizer_encode(const struct tokmap_tokenizer *tokenizer, const char *text, uint64_t bytes,
                                           struct tokmap_encoded *encoded, struct tokmap_error *error)
{
    static const struct tokmap_encoded none = TOKMAP_ENCODED_INIT;
    struct tokmap_encoded own;
    struct library_worker *worker;
    if (!tokenizer || !encoded || (!text && bytes))
        return library_missing(error, !tokenizer ? "tokenizer" : !encoded ? "encoded" : "text");
    enum tokmap_status status = struct_copy_in(&own, encoded, &none, sizeof own, "tokmap_encoded", error);
    if (!status)
        status = library_type_check(own.type, tokenizer->info.vocabulary - 1, error);
    if (status)
        return status;
    const uint64_t valid = bytes ? utf8_valid_prefix(text, (size_t)bytes) : 0;
    if (valid != bytes)
        return error_set(error, TOKMAP_ERROR_ENCODING, NULL, valid, "the text is not UTF-8");
    status = library_worker_take(tokenizer, &worker, error);
    if (status)
        return status;
    own.count = 0;
    status = text_encode(tokenizer, worker, text, bytes, &own, error);
    library_worker_put(tokenizer, worker);
    if (status)
        return status;
    status = struct_copy_out(encoded, &own, sizeof own, "tokmap_encoded", error);
    if (status || !(own.ids || own.begins || own.ends) || own.count <= own.room)
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

enum tokmap_status library_ids_decode(const struct tokmap_tokenizer *tokenizer, struct tokenizer_decoder *decoder,
                                      const void *ids, enum tokmap_id_type type, uint64_t count, uint64_t first,
                                      struct text_buffer *text, struct tokmap_error *error)
{
    const struct tokenizer_info *info = &tokenizer->info;
    const uint64_t limit = id_type_limit(type);
    uint8_t some[4 * LIBRARY_DECODED];
    assert(count <= LIBRARY_DECODED);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t id = id_type_get(type, ids, first + i);
        const uint8_t *bytes;
        uint32_t length;
        if (id >= limit)
            return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                             "ids[%" PRIu64 "] is %" PRId64 ", but an id is never negative", first + i,
                             id_type_signed(type, id));
        if (!tokenizer_token(tokenizer->tokenizer, id, &bytes, &length))
            return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                             "ids[%" PRIu64 "] is %" PRIu64 ", which is not in the vocabulary of the tokenizer '%s'; "
                             "decode ids with the tokenizer that made them",
                             first + i, id, info->name);
        if (info->width == 2)
            store16(some + 2 * i, (uint16_t)id);
        else
            store32(some + 4 * i, (uint32_t)id);
    }
    return tokenizer_decoder_add(decoder, some, count, text, error);
}

static enum tokmap_status ids_decode(const struct tokmap_tokenizer *tokenizer, struct tokenizer_decoder *decoder,
                                     const uint32_t *ids, uint64_t count, struct tokmap_decoded *into,
                                     struct tokmap_error *error)
{
    struct text_buffer text = {NULL, 0, 0};
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0, part; at < count && !status; at += part) {
        part = min64(count - at, LIBRARY_DECODED);
        status = library_ids_decode(tokenizer, decoder, ids, TOKMAP_ID_U32, part, at, &text, error);
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
        return library_missing(error, !tokenizer ? "tokenizer" : !decoded ? "decoded" : "ids");
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
                     "the text has %" PRIu64 " bytes, but there is room for %" PRIu64
                     "; decoded.bytes is the room that "
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
        return library_missing(error, !tokenizer ? "tokenizer" : !bytes ? "bytes" : "count");
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
        return library_missing(error, !tokenizer ? "tokenizer" : !id ? "id" : "bytes");
    const uint64_t found = tokenizer_find(tokenizer->tokenizer, bytes, count);
    if (found != TOKMAP_NO_ID) {
        *id = found;
        return TOKMAP_OK;
    }
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET, "no token of the tokenizer '%s' is '%.*s'",
                     tokenizer->info.name, (int)min64(count, 64), count ? bytes : "");
}

enum tokmap_status tokmap_tokenizer_added(const struct tokmap_tokenizer *tokenizer, uint64_t index,
                                          struct tokmap_added_token *token, struct tokmap_error *error)
{
    struct tokmap_added_token found;
    if (!tokenizer || !token)
        return library_missing(error, tokenizer ? "token" : "tokenizer");
    if (index >= tokenizer->info.added)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "added token %" PRIu64 " is requested, but the tokenizer '%s' has %" PRIu64, index,
                         tokenizer->info.name, tokenizer->info.added);
    tokenizer_added_at(tokenizer->tokenizer, index, &found);
    return struct_copy_out(token, &found, sizeof found, "tokmap_added_token", error);
}

const char *tokmap_tokenizer_version(void)
{
    return TOKMAP_VERSION_STRING;
}
