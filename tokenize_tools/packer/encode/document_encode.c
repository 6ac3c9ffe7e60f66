/* SPDX-License-Identifier: MIT */
/*
 * document_encode.c - see document_encode.h.
 *
 * The tokens of a document are written directly behind those of the documents before it. If the document is left out,
 * they are overwritten by the next one. Example, with an EOD of 9 and documents of at least 3 tokens: the ids [4, 5, 6]
 * become 4 5 6 9; of [7, 9], which ends with the EOD already, one token remains without it, and the document is left
 * out; [1, 2, 3, 9] is copied as it is.
 */
#include "document_encode.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_issue.h"
#include "corpus/document_make.h"

#define LARGE_BYTES ((size_t)16 << 20) /* memory for more bytes of tokens than this is not kept */
#define DETAIL_BYTES 192

/* One document while it is encoded. */
struct encoding {
    struct document_encoder *encoder;
    const struct document_rules *rules;
    struct document_tokens *tokens;
    const struct corpus_document *document;
    struct making making;
    uint64_t begin;      /* index of its first token */
    uint64_t count;      /* tokens so far */
    uint64_t borders;    /* of them, BOS and EOD at its ends */
    uint64_t text_bytes; /* of the document's text */
    struct fim_counts fim;
    bool bos, eod; /* each was added */
    bool bos_found, eod_found;
    bool used; /* no issue has been added */
};

bool document_is_masked(const struct corpus_options *corpus)
{
    return corpus->content == CORPUS_CONTENT_PROMPT || corpus->content == CORPUS_CONTENT_MESSAGES ||
           (corpus->content == CORPUS_CONTENT_IDS && corpus->second_field);
}

void document_encoder_free(struct document_encoder *encoder)
{
    chat_text_free(&encoder->chat);
    bytes_free(&encoder->counted);
    bytes_free(&encoder->scratch);
}

void document_tokens_free(struct document_tokens *tokens)
{
    bytes_free(&tokens->tokens);
    bytes_free(&tokens->ends);
    bytes_free(&tokens->text_bytes);
    bytes_free(&tokens->sets);
    bytes_free(&tokens->mask);
    memset(tokens, 0, sizeof *tokens);
}

void document_tokens_trim(struct document_tokens *tokens)
{
    if (tokens->tokens.capacity > LARGE_BYTES)
        document_tokens_free(tokens);
}

/* ---- memory ---- */

/* Makes room for `more` tokens of the document. */
static enum tokmap_status tokens_reserve(struct encoding *encoding, uint64_t more)
{
    uint64_t wanted;
    if (add_overflows(encoding->count, more, &wanted) || mul_overflows(wanted, encoding->rules->width, &wanted) ||
        !bytes_reserve(&encoding->tokens->tokens, wanted))
        return error_set_memory(encoding->making.error, "the tokens of a document", more);
    return TOKMAP_OK;
}

/* Makes room for whether each of the document's tokens counts. */
static enum tokmap_status counted_reserve(struct encoding *encoding, uint64_t count)
{
    return bytes_reserve(&encoding->encoder->counted, count)
               ? TOKMAP_OK
               : error_set_memory(encoding->making.error, "the mask of a document", count);
}

/* Returns where a token of the document is. */
static uint8_t *token_place(const struct encoding *encoding, uint64_t index)
{
    return encoding->tokens->tokens.bytes + (encoding->begin + index) * encoding->rules->width;
}

/* ---- tokens ---- */

static void token_add(struct encoding *encoding, uint64_t id, bool counted)
{
    struct document_tokens *tokens = encoding->tokens;
    uint8_t *at = token_place(encoding, encoding->count);
    assert((encoding->begin + encoding->count + 1) * encoding->rules->width <= tokens->tokens.capacity);
    if (encoding->rules->width == 2) {
        const uint16_t narrow = (uint16_t)id;
        memcpy(at, &narrow, sizeof narrow);
    } else {
        const uint32_t wide = (uint32_t)id;
        memcpy(at, &wide, sizeof wide);
    }
    if (encoding->encoder->counted.bytes)
        encoding->encoder->counted.bytes[encoding->count] = counted;
    encoding->count++;
    tokens->largest = max64(tokens->largest, id);
}

static uint64_t token_at(const struct encoding *encoding, uint64_t index)
{
    const uint8_t *at = token_place(encoding, index);
    return encoding->rules->width == 2 ? load16(at) : load32(at);
}

/* Returns where the tokenizer writes the next tokens. ends: for each text. */
static struct tokenizer_out out_here(const struct encoding *encoding, uint64_t *ends)
{
    return (struct tokenizer_out){.tokens = (char *)token_place(encoding, encoding->count),
                                  .capacity = encoding->tokens->tokens.capacity / encoding->rules->width -
                                              encoding->begin - encoding->count,
                                  .ends = ends};
}

static enum tokmap_status bos_add(struct encoding *encoding)
{
    const enum tokmap_status status = tokens_reserve(encoding, 2);
    if (status || encoding->rules->bos_id == TOKMAP_NO_ID)
        return status;
    token_add(encoding, encoding->rules->bos_id, false);
    encoding->bos = true;
    return TOKMAP_OK;
}

/* Encodes texts, and leaves room for two more tokens. resumed: the first one continues a text. */
static enum tokmap_status texts_encode(struct encoding *encoding, const struct tokmap_text *texts, uint64_t count,
                                       bool resumed, uint64_t *ends)
{
    const struct document_rules *rules = encoding->rules;
    const struct tokenizer_batch batch = {texts, count, resumed, false};
    uint64_t bytes = 0, ids;
    for (uint64_t i = 0; i < count; i++)
        bytes += texts[i].count;
    if (mul_overflows(bytes, rules->ids_per_byte_most, &ids))
        ids = UINT64_MAX;
    enum tokmap_status status = tokens_reserve(encoding, add_overflows(ids, 2, &ids) ? UINT64_MAX : ids);
    if (status)
        return status;
    struct tokenizer_out out = out_here(encoding, ends);
    status = tokenizer_encode(encoding->encoder->state, &batch, &out, encoding->making.error);
    encoding->count += out.count;
    encoding->tokens->largest = max64(encoding->tokens->largest, out.largest);
    return status;
}

static enum tokmap_status text_encode(struct encoding *encoding)
{
    const struct tokmap_text text = {encoding->document->text, encoding->document->bytes};
    uint64_t end;
    return texts_encode(encoding, &text, 1, false, &end);
}

/* ---- fill in the middle ---- */

static enum tokmap_status fim_token_add(struct encoding *encoding, uint64_t id)
{
    const enum tokmap_status status = tokens_reserve(encoding, 2);
    if (status)
        return status;
    token_add(encoding, id, true);
    encoding->fim.tokens++;
    return TOKMAP_OK;
}

/* Encodes a part of a text, which continues the text unless it begins the document. */
static enum tokmap_status fim_part_encode(struct encoding *encoding, uint64_t from, uint64_t to)
{
    const struct tokmap_text text = {encoding->document->text + from, to - from};
    uint64_t end;
    if (from == to)
        return TOKMAP_OK;
    return texts_encode(encoding, &text, 1, from != 0, &end);
}

static enum tokmap_status stretch_encode(struct encoding *encoding, const struct fim_stretch *stretch)
{
    const struct fim *fim = encoding->rules->fim;
    const uint64_t *place = stretch->place;
    enum tokmap_status status = TOKMAP_OK;
    for (const char *at = stretch->form; *at && !status; at++)
        switch (*at) {
        case 'P':
            status = fim_token_add(encoding, fim->prefix_id);
            break;
        case 'S':
            status = fim_token_add(encoding, fim->suffix_id);
            break;
        case 'M':
            status = fim_token_add(encoding, fim->middle_id);
            break;
        case 'p':
            status = fim_part_encode(encoding, place[0], place[1]);
            break;
        case 'm':
            status = fim_part_encode(encoding, place[1], place[2]);
            break;
        case 's':
            status = fim_part_encode(encoding, place[2], place[3]);
            break;
        default:
            return fim_part_encode(encoding, place[0], place[3]);
        }
    const bool suffix_first = stretch->form == fim->spm_form;
    encoding->fim.spm += suffix_first;
    encoding->fim.psm += !suffix_first;
    if (!status && fim->end_id != TOKMAP_NO_ID && (fim->end_always || place[3] < encoding->document->bytes))
        status = fim_token_add(encoding, fim->end_id);
    return status;
}

/* Returns how many of the document's tokens, from `from` on, are those that fill in the middle. */
static uint64_t fim_tokens_count(const struct encoding *encoding, uint64_t from)
{
    const struct fim *fim = encoding->rules->fim;
    const uint32_t width = encoding->rules->width;
    const uint8_t *tokens = token_place(encoding, from);
    const uint32_t ids[] = {(uint32_t)fim->prefix_id, (uint32_t)fim->middle_id, (uint32_t)fim->suffix_id,
                            (uint32_t)(fim->end_id == TOKMAP_NO_ID ? fim->prefix_id : fim->end_id)};
    uint32_t least = ids[0], most = ids[0];
    uint64_t count = 0;
    for (size_t i = 1; i < 4; i++) {
        least = ids[i] < least ? ids[i] : least;
        most = ids[i] > most ? ids[i] : most;
    }
    for (uint64_t i = 0; i < encoding->count - from; i++) {
        const uint32_t id = width == 2 ? load16(tokens + 2 * i) : load32(tokens + 4 * i);
        if (id - least <= most - least) /* rarely, since they are usually neighbors */
            count += id == ids[0] || id == ids[1] || id == ids[2] || id == ids[3];
    }
    return count;
}

/* Encodes a text, and rearranges it or pieces of it. A text that has one of the tokens already remains as it is, since
 * nobody could tell which of them mean what. So does one that cannot be encoded, for the message about it. */
static enum tokmap_status fim_encode(struct encoding *encoding)
{
    const struct corpus_document *document = encoding->document;
    const uint64_t begin = encoding->count, largest = encoding->tokens->largest;
    struct fim_walk walk;
    struct fim_stretch stretch;
    enum tokmap_status status = TOKMAP_OK;
    fim_begin(&walk, encoding->rules->fim, document->text, document->bytes);
    while (!status && fim_next(&walk, &stretch))
        status = stretch_encode(encoding, &stretch);
    const bool own = !status && encoding->fim.tokens && fim_tokens_count(encoding, begin) != encoding->fim.tokens;
    if (!own && status != TOKMAP_ERROR_INPUT)
        return status;
    encoding->count = begin;
    encoding->tokens->largest = largest;
    encoding->fim = (struct fim_counts){.left = own};
    return text_encode(encoding);
}

static enum tokmap_status prompt_encode(struct encoding *encoding)
{
    const struct corpus_document *document = encoding->document;
    const struct tokmap_text texts[] = {{document->text, document->bytes}, {document->second, document->second_bytes}};
    uint64_t ends[2];
    enum tokmap_status status = bos_add(encoding);
    if (!status)
        status = texts_encode(encoding, texts, 2, false, ends);
    if (!status)
        status = counted_reserve(encoding, encoding->count + 1);
    if (status)
        return status;
    const uint64_t prompt = encoding->bos + ends[0];
    memset(encoding->encoder->counted.bytes, 0, prompt);
    memset(encoding->encoder->counted.bytes + prompt, 1, encoding->count - prompt);
    return TOKMAP_OK;
}

static enum tokmap_status ids_encode(struct encoding *encoding)
{
    const struct document_rules *rules = encoding->rules;
    const struct corpus_document *document = encoding->document;
    const uint64_t count = document->id_count;
    enum tokmap_status status = tokens_reserve(encoding, count + 2);
    if (!status && document_is_masked(rules->corpus))
        status = counted_reserve(encoding, count + 2);
    if (status)
        return status;
    encoding->eod_found = count && rules->eod_id == document->ids[count - 1];
    encoding->bos_found = count > encoding->eod_found && rules->bos_id == document->ids[0];
    encoding->borders = (uint64_t)encoding->eod_found + encoding->bos_found;
    if (rules->bos_id != TOKMAP_NO_ID && !encoding->bos_found) {
        token_add(encoding, rules->bos_id, false);
        encoding->bos = true;
    }
    struct document_tokens *tokens = encoding->tokens;
    uint8_t *into = token_place(encoding, encoding->count);
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = document->ids[i] > largest ? document->ids[i] : largest;
    if (rules->width == 4 && count)
        memcpy(into, document->ids, count * sizeof *document->ids);
    for (uint64_t i = 0; rules->width == 2 && i < count; i++) {
        const uint16_t narrow = (uint16_t)document->ids[i];
        memcpy(into + 2 * i, &narrow, sizeof narrow);
    }
    if (document->counted)
        memcpy(encoding->encoder->counted.bytes + encoding->count, document->counted, count);
    encoding->count += count;
    tokens->largest = max64(tokens->largest, largest);
    return TOKMAP_OK;
}

/* ---- documents that are left out ---- */

/* Adds an issue about the document, which is left out, with a detail of which the issue takes a copy. asked: the
 * options ask for this. */
static enum tokmap_status document_issue(struct encoding *encoding, enum corpus_issue_kind kind,
                                         enum corpus_reason left_out, const char *reason, const char *detail,
                                         bool asked)
{
    const struct corpus_document *document = encoding->document;
    const struct source_record source = {
        .part = document->part, .record = document->record, .line = document->line, .whole = document->source_bytes};
    const bool stopped = encoding->making.stopped;
    struct corpus_issue *issue = making_issue(&encoding->making, &source, kind, left_out, document->line,
                                              TOKMAP_NO_OFFSET, reason, encoding->rules->corpus->field);
    encoding->used = false;
    if (issue && detail)
        issue->detail = strdup(detail);
    if (!issue || (detail && !issue->detail))
        return making_no_memory(&encoding->making);
    if (asked) {
        issue->asked = true;
        encoding->making.stopped = stopped;
    }
    return TOKMAP_OK;
}

static enum tokmap_status length_check(struct encoding *encoding)
{
    const struct document_rules *rules = encoding->rules;
    const uint64_t length = encoding->count - encoding->borders;
    char detail[DETAIL_BYTES];
    if (length >= rules->min_tokens && length <= rules->max_tokens)
        return TOKMAP_OK;
    const bool is_short = length < rules->min_tokens;
    (void)snprintf(detail, sizeof detail, "%" PRIu64 " tokens, and --%s-tokens is %" PRIu64, length,
                   is_short ? "min" : "max", is_short ? rules->min_tokens : rules->max_tokens);
    return document_issue(encoding, CORPUS_ISSUE_RECORD, CORPUS_REASON_LENGTH,
                          is_short ? DOCUMENT_SHORT : DOCUMENT_LONG, detail, true);
}

/* Takes a document out of the counts of the batch. */
static void counts_correct(struct corpus_counts *counts, const struct corpus_document *document, uint64_t text_bytes)
{
    counts->documents--;
    counts->document_bytes -= document->source_bytes;
    counts->text_bytes -= text_bytes;
    counts->empty_documents -= !document->bytes && !document->second_bytes && !document->id_count;
}

/* ---- conversations ---- */

/* Leaves the conversation out because of what chat_render_record() has found. */
static enum tokmap_status conversation_wrong(struct encoding *encoding)
{
    const struct chat_text *chat = &encoding->encoder->chat;
    char detail[DETAIL_BYTES], place[48] = "";
    if (chat->message != UINT64_MAX)
        (void)snprintf(place, sizeof place, "message %" PRIu64 ": ", chat->message + 1);
    (void)snprintf(detail, sizeof detail, "%s%s%s%s", place, chat->reason, *chat->detail ? ": " : "", chat->detail);
    return document_issue(encoding, CORPUS_ISSUE_RECORD, CORPUS_REASON_CHAT, chat->reason, detail, false);
}

/* Puts the BOS before the tokens of the document, unless they begin with it. */
static void bos_insert(struct encoding *encoding)
{
    const struct document_rules *rules = encoding->rules;
    const uint64_t count = encoding->count;
    uint8_t *first = token_place(encoding, 0), *counted = encoding->encoder->counted.bytes;
    if (rules->bos_id == TOKMAP_NO_ID)
        return;
    encoding->bos_found = count && token_at(encoding, 0) == rules->bos_id;
    if (encoding->bos_found)
        return;
    memmove(first + rules->width, first, count * rules->width);
    memmove(counted + 1, counted, count);
    encoding->count = 0;
    token_add(encoding, rules->bos_id, false);
    encoding->count += count;
    encoding->bos = true;
}

static enum tokmap_status conversation_encode(struct encoding *encoding)
{
    const struct document_rules *rules = encoding->rules;
    const struct corpus_document *document = encoding->document;
    struct chat_text *chat = &encoding->encoder->chat;
    uint64_t end;
    enum tokmap_status status = chat_render_record(rules->chat, document->text, document->bytes, document->second,
                                                   document->second_bytes, chat, encoding->making.error);
    if (status)
        return status;
    if (chat->reason)
        return conversation_wrong(encoding);
    if (chat->lone && rules->corpus->invalid != CORPUS_INVALID_REPLACE)
        return document_issue(encoding, CORPUS_ISSUE_ENCODING, CORPUS_REASON_ENCODING,
                              "a surrogate escape has no second half", NULL, false);
    const uint64_t most = chat_ids_most(rules->tokenizer, chat);
    status = tokens_reserve(encoding, most > UINT64_MAX - 2 ? most : most + 2);
    if (!status)
        status = counted_reserve(encoding, most + 2);
    if (status)
        return status;
    struct tokenizer_out out = out_here(encoding, &end);
    out.capacity = most;
    status =
        chat_encode(encoding->encoder->state, chat, &out, encoding->encoder->counted.bytes, encoding->making.error);
    if (status)
        return status;
    encoding->making.batch->counts.replaced += chat->lone;
    encoding->text_bytes = chat->text.count;
    encoding->count = out.count;
    encoding->tokens->largest = max64(encoding->tokens->largest, out.largest);
    bos_insert(encoding);
    encoding->eod_found = encoding->count > encoding->bos + (uint64_t)encoding->bos_found &&
                          token_at(encoding, encoding->count - 1) == rules->eod_id;
    encoding->borders = (uint64_t)encoding->bos_found + encoding->eod_found;
    return TOKMAP_OK;
}

/* ---- documents ---- */

/* Counts the messages and the tokens of each role, of a conversation with `ones` tokens that count. */
static void roles_add(const struct encoding *encoding, uint64_t ones)
{
    const struct document_encoder *encoder = encoding->encoder;
    struct chat_counts *roles = encoding->tokens->roles;
    encoding->tokens->untaught += !ones;
    for (unsigned role = 0; role < CHAT_ROLES; role++)
        roles[role].messages += encoder->chat.messages_of[role];
    if (!chat_template_learned(encoding->rules->chat)->given) { /* all is the assistant's */
        roles[CHAT_ROLE_ASSISTANT].counted += ones;
        return;
    }
    for (uint64_t i = 0; i < encoding->count; i++)
        roles[CHAT_COUNTED_ROLE(encoder->counted.bytes[i])].counted += encoder->counted.bytes[i] & 1U;
}

/* Sets the bits of the document's tokens. */
static enum tokmap_status mask_add(struct encoding *encoding)
{
    struct document_tokens *tokens = encoding->tokens;
    const uint8_t *counted = encoding->encoder->counted.bytes;
    uint64_t ones = 0;
    if (!bytes_reserve(&tokens->mask, (encoding->begin + encoding->count) / 8 + 1))
        return error_set_memory(encoding->making.error, "the mask of a document", encoding->count);
    for (uint64_t i = 0, at = encoding->begin; i < encoding->count; i++, at++) {
        uint8_t *bits = &tokens->mask.bytes[at / 8];
        if (at % 8 == 0)
            *bits = 0;
        *bits = (uint8_t)(*bits & ~(1U << at % 8)) | (uint8_t)((counted[i] & 1U) << at % 8);
        ones += counted[i] & 1U;
    }
    tokens->counted += ones;
    if (encoding->rules->corpus->content == CORPUS_CONTENT_MESSAGES)
        roles_add(encoding, ones);
    return TOKMAP_OK;
}

/* Decides to which set the document belongs. */
static enum tokmap_status set_add(struct encoding *encoding)
{
    struct bytes_buffer *sets = &encoding->tokens->sets;
    uint32_t set;
    uint8_t narrow;
    if (!split_choose(encoding->rules->split, encoding->document, &encoding->encoder->scratch, &set))
        return error_set_memory(encoding->making.error, "the sets of documents", sets->count);
    narrow = (uint8_t)set;
    return bytes_append(sets, &narrow, 1)
               ? TOKMAP_OK
               : error_set_memory(encoding->making.error, "the sets of documents", sets->count);
}

static enum tokmap_status content_encode(struct encoding *encoding)
{
    enum tokmap_status status;
    switch (encoding->rules->corpus->content) {
    case CORPUS_CONTENT_TEXT:
        break;
    case CORPUS_CONTENT_IDS:
        return ids_encode(encoding);
    case CORPUS_CONTENT_PROMPT:
        return prompt_encode(encoding);
    case CORPUS_CONTENT_MESSAGES:
        return conversation_encode(encoding);
    }
    status = bos_add(encoding);
    return status ? status : encoding->rules->fim ? fim_encode(encoding) : text_encode(encoding);
}

/* Encodes a document, and adds its tokens to those of the batch unless it is left out. */
static enum tokmap_status document_encode(struct encoding *encoding)
{
    const struct document_rules *rules = encoding->rules;
    struct document_tokens *tokens = encoding->tokens;
    const uint64_t largest = tokens->largest;
    enum tokmap_status status = content_encode(encoding);
    if (status || !encoding->used)
        return status;
    encoding->borders += encoding->bos;
    status = length_check(encoding);
    if (status || !encoding->used) {
        tokens->largest = largest;
        return status;
    }
    if (rules->eod_id != TOKMAP_NO_ID && !encoding->eod_found) {
        token_add(encoding, rules->eod_id, rules->corpus->content != CORPUS_CONTENT_MESSAGES);
        encoding->eod = true;
    }
    if (document_is_masked(rules->corpus))
        status = mask_add(encoding);
    if (!status && rules->split)
        status = set_add(encoding);
    const uint64_t end = tokens->count + encoding->count;
    if (!status && !(bytes_append(&tokens->ends, &end, sizeof end) &&
                     bytes_append(&tokens->text_bytes, &encoding->text_bytes, sizeof encoding->text_bytes)))
        status = error_set_memory(encoding->making.error, "the documents of a batch", tokens->ends.count);
    if (status)
        return status;
    tokens->count = end;
    tokens->tokens.count = (size_t)end * rules->width;
    fim_counts_add(&tokens->fim, &encoding->fim);
    tokens->bos_added += encoding->bos;
    tokens->eod_added += encoding->eod;
    tokens->bos_present += encoding->bos_found;
    tokens->eod_present += encoding->eod_found;
    if (encoding->encoder->lengths)
        histogram_add(encoding->encoder->lengths, encoding->count, 1);
    return TOKMAP_OK;
}

enum tokmap_status documents_encode(struct document_encoder *encoder, struct corpus_batch *batch,
                                    struct document_tokens *tokens, struct tokmap_error *error)
{
    const uint64_t issues = batch->issue_count;
    const struct making making = {.options = encoder->rules->corpus, .batch = batch, .error = error};
    uint64_t kept = 0;
    enum tokmap_status status = TOKMAP_OK;
    bool stopped = false;
    tokens->tokens.count = tokens->ends.count = tokens->text_bytes.count = tokens->sets.count = 0;
    tokens->count = tokens->largest = tokens->counted = tokens->untaught = 0;
    tokens->eod_added = tokens->bos_added = tokens->eod_present = tokens->bos_present = 0;
    tokens->fim = (struct fim_counts){.psm = 0};
    memset(tokens->roles, 0, sizeof tokens->roles);
    for (uint64_t i = 0; i < batch->document_count && !status && !stopped; i++) {
        const struct corpus_document document = batch->documents[i];
        struct encoding encoding = {.encoder = encoder,
                                    .rules = encoder->rules,
                                    .tokens = tokens,
                                    .document = &document,
                                    .making = making,
                                    .begin = tokens->count,
                                    .text_bytes = document.bytes + document.second_bytes,
                                    .used = true};
        assert(!document.resumed && !document.unfinished);
        status = document_encode(&encoding);
        stopped = encoding.making.stopped;
        if (status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT)
            corpus_error_add_place(batch, i, error);
        else if (encoding.used)
            batch->documents[kept++] = document;
        batch->counts.text_bytes += encoding.text_bytes - document.bytes - document.second_bytes;
        if (!encoding.used)
            counts_correct(&batch->counts, &document, encoding.text_bytes);
    }
    if (!status)
        batch->document_count = kept;
    return status || corpus_batch_merge_issues(batch, issues)
               ? status
               : error_set_memory(error, "what is left out of a batch", 0);
}
