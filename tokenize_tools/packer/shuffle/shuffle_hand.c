/* SPDX-License-Identifier: MIT */
#include "shuffle_hand.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "shuffle_merge.h"

#define SLAB_BYTES ((uint64_t)256 << 10) /* of a long document */
#define STOP_TOKENS ((uint64_t)1 << 16)  /* about how often options.stop and .progress are called */
#define STOP_DOCUMENTS 1024

struct shuffle_hand {
    struct shuffle_hand_options options;
    struct hash_state *hash;
    uint8_t *slab;
    struct bytes_buffer whole; /* the payload of a long document, or its values */
    struct corpus_value values[COLUMNS_MAX];
    uint64_t done, next_stop, since_stop;
};

enum tokmap_status shuffle_hand_new(struct shuffle_hand **hand, const struct shuffle_hand_options *options,
                                    uint64_t done, struct tokmap_error *error)
{
    struct shuffle_hand *made = *hand = calloc(1, sizeof *made);
    if (made) {
        made->options = *options;
        made->done = done;
        made->slab = malloc(SLAB_BYTES);
        made->hash = hash_state_new();
    }
    if (made && made->slab && made->hash)
        return TOKMAP_OK;
    shuffle_hand_free(made);
    *hand = NULL;
    return error_set_memory(error, "a long document to shuffle", SLAB_BYTES);
}

void shuffle_hand_free(struct shuffle_hand *hand)
{
    if (!hand)
        return;
    hash_state_free(hand->hash);
    bytes_free(&hand->whole);
    free(hand->slab);
    free(hand);
}

uint64_t shuffle_hand_done(const struct shuffle_hand *hand)
{
    return hand->done;
}

enum tokmap_status shuffle_hand_check(struct shuffle_hand *hand, bool *due, struct tokmap_error *error)
{
    const struct shuffle_hand_options *options = &hand->options;
    *due = hand->done >= hand->next_stop || ++hand->since_stop >= STOP_DOCUMENTS;
    if (!*due)
        return TOKMAP_OK;
    hand->next_stop = hand->done + STOP_TOKENS;
    hand->since_stop = 0;
    if (options->stop && options->stop(options->user))
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    if (options->progress)
        options->progress(options->user, hand->done, options->tokens);
    return TOKMAP_OK;
}

/* ---- documents ---- */

/* One document, or a part of one, for the shard set. */
struct handed {
    struct corpus_document document;
    struct document_run run;
    uint64_t end, text_bytes;
};

static void handed_make(struct handed *handed, const struct shuffle_hand *hand, const struct shuffle_source *source,
                        const struct shuffle_head *head)
{
    *handed = (struct handed){.document = {.record = source->records_before + head->record, .position = head->position},
                              .run = {.path = source->paths[head->input],
                                      .input = head->input,
                                      .largest = hand->options.largest,
                                      .documents = 1},
                              .text_bytes = head->text_bytes};
    handed->document.values = hand->values;
    handed->run.from = &handed->document;
    handed->run.text_bytes = &handed->text_bytes;
    handed->run.ends = &handed->end;
}

static void values_find(struct shuffle_hand *hand, const struct shuffle_payload *payload)
{
    const uint8_t *at = payload->values;
    for (uint32_t c = 0; c < hand->options.columns; c++) {
        const uint64_t bytes = load64(payload->lengths + (uint64_t)8 * c);
        hand->values[c] = (struct corpus_value){(const char *)at, bytes};
        at += bytes;
    }
}

/* Hands over a document whose payload is in memory; false if the payload has another length than its parts. */
static bool payload_hand(struct shuffle_hand *hand, struct shard_set *set, const struct shuffle_source *source,
                         const struct shuffle_head *head, const uint8_t *bytes, uint64_t count,
                         enum tokmap_status *status, struct tokmap_error *error)
{
    struct shuffle_payload payload;
    struct handed handed;
    if (!shuffle_payload_cut(bytes, count, head->tokens, hand->options.width, hand->options.mask, hand->options.columns,
                             &payload))
        return false;
    handed_make(&handed, hand, source, head);
    values_find(hand, &payload);
    handed.run.tokens = (const char *)payload.tokens;
    handed.run.count = handed.end = head->tokens;
    handed.run.mask = payload.mask;
    *status = shard_set_add(set, &handed.run, error);
    return true;
}

/* ---- long documents ---- */

static enum tokmap_status long_get(const struct shuffle_hand *hand, const struct shuffle_source *source, void *into,
                                   uint64_t bytes, uint64_t offset, struct tokmap_error *error)
{
    int fd = source->long_fd;
    const int system = fd < 0 ? os_open(source->long_path, OS_READ, &fd) : 0;
    if (system)
        return error_set_system(error, system, source->long_path, TOKMAP_NO_OFFSET,
                                "the long documents to shuffle cannot be read");
    const enum tokmap_status status = shuffle_file_read(hand->options.folder, fd, into, bytes, offset, error);
    if (source->long_fd < 0)
        os_close(fd);
    return status;
}

/* Reads the rest of a long document's payload into `whole`. */
static enum tokmap_status long_read(struct shuffle_hand *hand, const struct shuffle_source *source,
                                    const struct shuffle_long *where, uint64_t from, struct tokmap_error *error)
{
    const uint64_t bytes = where->bytes - from;
    hand->whole.count = 0;
    if (bytes > SIZE_MAX / 2 || !bytes_reserve(&hand->whole, (size_t)bytes + 8))
        return error_set_memory(error, "a long document to shuffle", bytes);
    const enum tokmap_status status = long_get(hand, source, hand->whole.bytes, bytes, where->offset + from, error);
    if (status)
        return status;
    hash_state_add(hand->hash, hand->whole.bytes, (size_t)bytes);
    hand->whole.count = (size_t)bytes;
    return TOKMAP_OK;
}

/* Hands over the tokens of a long document slab by slab; its last token and its values are the last run. */
static enum tokmap_status long_slabs(struct shuffle_hand *hand, struct shard_set *set,
                                     const struct shuffle_source *source, const struct shuffle_head *head,
                                     const struct shuffle_long *where, struct tokmap_error *error)
{
    const uint32_t width = hand->options.width;
    const uint64_t none = 0;
    enum tokmap_status status = TOKMAP_OK;
    struct handed handed;
    bool due;
    handed_make(&handed, hand, source, head);
    handed.run.documents = 0;
    handed.run.unfinished = true;
    handed.run.text_bytes = &none;
    for (uint64_t done = 0; done < head->tokens && !status;) {
        const uint64_t part = min64(head->tokens - done, SLAB_BYTES / width);
        status = long_get(hand, source, hand->slab, part * width, where->offset + done * width, error);
        if (status)
            break;
        hash_state_add(hand->hash, hand->slab, (size_t)(part * width));
        handed.run.tokens = (const char *)hand->slab;
        handed.run.count = part;
        status = shard_set_add(set, &handed.run, error);
        done += part;
        hand->done += part;
        if (!status)
            status = shuffle_hand_check(hand, &due, error);
    }
    if (status)
        return status;
    hand->done -= head->tokens; /* shuffle_hand_record() counts the document */
    hand->next_stop = 0;        /* the caller can save after this document, which the checks above took the turn of */
    status = long_read(hand, source, where, head->tokens * width, error);
    if (!status && hash_state_64(hand->hash) != where->hash)
        status = shuffle_file_damaged(hand->options.folder, where->offset, error);
    struct shuffle_payload payload;
    if (!status &&
        !shuffle_payload_cut(hand->whole.bytes, hand->whole.count, 0, width, false, hand->options.columns, &payload))
        return shuffle_file_damaged(hand->options.folder, where->offset, error);
    if (status)
        return status;
    values_find(hand, &payload);
    handed.run.tokens = "";
    handed.run.count = handed.end = 0;
    handed.run.documents = 1;
    handed.run.unfinished = false;
    handed.run.text_bytes = &handed.text_bytes;
    return shard_set_add(set, &handed.run, error);
}

static enum tokmap_status long_hand(struct shuffle_hand *hand, struct shard_set *set,
                                    const struct shuffle_source *source, const struct shuffle_head *head,
                                    const uint8_t *payload, struct tokmap_error *error)
{
    struct shuffle_long where;
    uint64_t least;
    const char *folder = hand->options.folder;
    if (head->bytes != sizeof *head + sizeof where)
        return shuffle_file_damaged(folder, 0, error);
    memcpy(&where, payload, sizeof where);
    if (where.offset > source->long_bytes || where.bytes > source->long_bytes - where.offset ||
        !shuffle_payload_bytes(head->tokens, hand->options.width, hand->options.mask, &least) || least > where.bytes)
        return shuffle_file_damaged(folder, 0, error);
    const uint64_t held = where.bytes - (hand->options.mask ? 0 : least);
    if ((!hand->options.columns && least != where.bytes) ||
        (hand->options.whole_most && held > hand->options.whole_most))
        return shuffle_file_damaged(folder, 0, error);
    hash_state_reset(hand->hash);
    enum tokmap_status status = TOKMAP_OK;
    if (!hand->options.mask) {
        status = long_slabs(hand, set, source, head, &where, error);
    } else {
        status = long_read(hand, source, &where, 0, error);
        if (!status && (hash_state_64(hand->hash) != where.hash ||
                        !payload_hand(hand, set, source, head, hand->whole.bytes, where.bytes, &status, error)))
            status = shuffle_file_damaged(folder, where.offset, error);
    }
    bytes_trim(&hand->whole);
    return status;
}

enum tokmap_status shuffle_hand_record(struct shuffle_hand *hand, struct shard_set *set,
                                       const struct shuffle_source *source, const struct shuffle_head *head,
                                       const uint8_t *record, struct tokmap_error *error)
{
    const uint8_t *payload = record + sizeof *head;
    const uint32_t columns = hand->options.columns;
    const uint64_t room = head->bytes - sizeof *head;
    enum tokmap_status status = TOKMAP_OK;
    if (head->input >= source->inputs)
        return shuffle_file_damaged(hand->options.folder, 0, error);
    if (head->set & SHUFFLE_LONG) {
        status = long_hand(hand, set, source, head, payload, error);
    } else {
        /* Without the zeros at the end, of which only the payload says how many there are. */
        uint64_t bytes, values = 0;
        if (!shuffle_payload_bytes(head->tokens, hand->options.width, hand->options.mask, &bytes) || bytes > room)
            return shuffle_file_damaged(hand->options.folder, 0, error);
        for (uint32_t c = 0; c < columns && bytes + 8 * (uint64_t)(c + 1) <= room; c++) {
            const uint64_t length = load64(payload + bytes + 8 * (uint64_t)c);
            if (length > room)
                return shuffle_file_damaged(hand->options.folder, 0, error);
            values += 8 + length;
        }
        if (bytes + values > room || !payload_hand(hand, set, source, head, payload, bytes + values, &status, error))
            return shuffle_file_damaged(hand->options.folder, 0, error);
    }
    hand->done += head->tokens;
    return status;
}
