/* SPDX-License-Identifier: MIT */
/*
 * normalizer.c - runs the steps of a normalizer. A step that changes nothing copies nothing; a step that changes the
 * text writes it to the buffer that does not hold its input.
 */
#include "normalizer.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"
#include "bert_steps.h"

void normalizer_free(struct normalizer *normalizer)
{
    for (uint32_t i = 0; i < normalizer->count; i++) {
        free(normalizer->steps[i].pattern);
        free(normalizer->steps[i].content);
        regex_free(normalizer->steps[i].regex);
    }
    normalizer->count = 0;
}

/* Returns the largest factor by which a step can multiply the number of bytes. */
static uint64_t step_growth(const struct normalizer_step *step)
{
    switch (step->kind) {
    case NORMALIZE_NFD:
    case NORMALIZE_LOWER:
    case NORMALIZE_NFC:
        return 3; /* U+1D160: four bytes become twelve */
    case NORMALIZE_BERT_CLEAN:
    case NORMALIZE_BERT_MARKS:
        return 1;
    case NORMALIZE_BERT_CHINESE:
        return 2; /* three bytes become five */
    case NORMALIZE_PREPEND:
        return 1 + step->content_bytes;
    case NORMALIZE_REPLACE:
    default:
        /* A pattern can have empty matches, before each byte and at the end. */
        return step->regex ? 1 + 2 * (uint64_t)step->content_bytes
                           : max64(1, div_ceil(step->content_bytes, step->pattern_bytes));
    }
}

uint64_t normalizer_growth(const struct normalizer *normalizer)
{
    uint64_t growth = 1;
    for (uint32_t i = 0; i < normalizer->count; i++)
        if (mul_overflows(growth, step_growth(&normalizer->steps[i]), &growth) || growth > UINT32_MAX)
            return UINT64_MAX;
    return growth;
}

enum tokmap_status normalizer_state_init(struct normalizer_state *state, const struct normalizer *normalizer,
                                         struct tokmap_error *error)
{
    assert(normalizer->count <= NORMALIZER_STEPS_MOST);
    memset(state, 0, sizeof *state);
    state->normalizer = normalizer;
    state->room = UINT64_MAX;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < normalizer->count && !status; i++)
        if (normalizer->steps[i].regex)
            status = regex_state_new(&state->regexes[i], normalizer->steps[i].regex, error);
    return status;
}

void normalizer_state_free(struct normalizer_state *state)
{
    nfc_scratch_free(&state->nfc);
    bytes_free(&state->made[0]);
    bytes_free(&state->made[1]);
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        regex_state_free(state->regexes[i]);
}

void normalizer_document(struct normalizer_state *state)
{
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        if (state->regexes[i])
            regex_document(state->regexes[i]);
}

void normalizer_state_stop(struct normalizer_state *state, bool (*stop)(void *user), void *user)
{
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        if (state->regexes[i])
            regex_state_stop(state->regexes[i], stop, user);
}

void normalizer_trim(struct normalizer_state *state)
{
    nfc_scratch_trim(&state->nfc);
    bytes_trim(&state->made[0]);
    bytes_trim(&state->made[1]);
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        if (state->regexes[i])
            regex_trim(state->regexes[i]);
}

struct text {
    const uint8_t *bytes;
    size_t count;
};

/* Notes that old text[from..to) becomes the next `made` bytes of `into`. Returns false if memory is lacking. */
static bool note(struct text_edits *trace, const struct bytes_buffer *into, size_t made, size_t from, size_t to)
{
    return !trace || text_edits_add(trace, (struct text_edit){into->count, into->count + made, from, to});
}

/* Returns whether a buffer may grow by `more` bytes. Where it may not, the state has no room any more. */
static bool has_room(struct normalizer_state *state, const struct bytes_buffer *into, size_t more)
{
    if (into->count <= state->room && more <= state->room - into->count)
        return true;
    state->room = 0;
    return false;
}

/* Replaces the step's literal pattern. Returns false if memory or room is lacking. */
static bool replace_literal(struct normalizer_state *state, const struct normalizer_step *step,
                            struct bytes_buffer *into, struct text_edits *trace, struct text *text)
{
    const uint8_t *at = text->bytes, *end = at + text->count;
    const uint8_t *found = memmem(at, text->count, step->pattern, step->pattern_bytes);
    if (!found)
        return true;
    for (; found; found = memmem(at, (size_t)(end - at), step->pattern, step->pattern_bytes)) {
        const size_t from = (size_t)(found - text->bytes);
        if (!has_room(state, into, (size_t)(found - at) + step->content_bytes) ||
            !bytes_append(into, at, (size_t)(found - at)) ||
            !note(trace, into, step->content_bytes, from, from + step->pattern_bytes) ||
            !bytes_append(into, step->content, step->content_bytes))
            return false;
        at = found + step->pattern_bytes;
    }
    if (!bytes_append(into, at, (size_t)(end - at)))
        return false;
    *text = (struct text){into->bytes, into->count};
    return true;
}

static enum tokmap_status no_room(const struct normalizer_state *state, size_t count, struct tokmap_error *error)
{
    return state->room ? error_set_memory(error, "normalized text", count)
                       : error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                                   "the normalizer makes too many bytes of its input");
}

static enum tokmap_status replace_matches(struct normalizer_state *state, const struct normalizer_step *step,
                                          struct regex_state *regex, struct bytes_buffer *into,
                                          struct text_edits *trace, struct text *text, struct tokmap_error *error)
{
    size_t done = 0, from, to;
    enum regex_found found = REGEX_END;
    if (text->count == 0) /* the reference does not search an empty text */
        return TOKMAP_OK;
    bool good = regex_begin(regex, text->bytes, text->count, false);
    while (good && (found = regex_next(regex, &from, &to)) == REGEX_MATCH) {
        good = has_room(state, into, from - done + step->content_bytes) &&
               bytes_append(into, text->bytes + done, from - done) &&
               note(trace, into, step->content_bytes, from, to) &&
               bytes_append(into, step->content, step->content_bytes);
        done = to;
    }
    if (found == REGEX_STOPPED)
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    if (found == REGEX_FAILED)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a pattern of the tokenizer's normalizer needs too many steps or too much memory for a text "
                         "of %zu bytes; shorten the document or skip it",
                         text->count);
    if (!good || !bytes_append(into, text->bytes + done, text->count - done))
        return no_room(state, text->count, error);
    *text = (struct text){into->bytes, into->count};
    return TOKMAP_OK;
}

static bool compose(struct nfc_scratch *scratch, struct bytes_buffer *into, struct text *text)
{
    size_t end;
    const size_t first = nfc_find(scratch, text->bytes, 0, text->count, &end);
    if (scratch->lacks_memory)
        return false;
    if (first == text->count)
        return true;
    if (!bytes_append(into, text->bytes, first) || !bytes_append(into, scratch->made.bytes, scratch->made.count) ||
        !nfc_append(scratch, into, text->bytes + end, text->count - end))
        return false;
    *text = (struct text){into->bytes, into->count};
    return true;
}

/* Returns whether a character begins there, or the text ends. */
static bool is_border(const uint8_t *text, size_t at, size_t count)
{
    return at == count || (text[at] & 0xC0) != 0x80;
}

/* Notes that a part of the old text becomes the next bytes of `into`, without the characters that are the same at both
 * ends: what nfc_find finds begins with the character before the one that changes. */
static bool note_change(struct text_edits *trace, const struct bytes_buffer *into, const struct bytes_buffer *made,
                        const uint8_t *text, size_t from, size_t to)
{
    const uint8_t *old = text + from;
    const size_t count = to - from, shorter = min64(count, made->count);
    size_t front = 0, back = 0;
    while (front < shorter && old[front] == made->bytes[front])
        front++;
    while (!is_border(old, front, count) || !is_border(made->bytes, front, made->count))
        front--;
    while (back < shorter - front && old[count - back - 1] == made->bytes[made->count - back - 1])
        back++;
    while (!is_border(old, count - back, count))
        back--;
    return text_edits_add(
        trace, (struct text_edit){into->count + front, into->count + made->count - back, from + front, to - back});
}

/* Does the same, with a note of each part that is not in NFC. */
static bool compose_traced(struct nfc_scratch *scratch, struct bytes_buffer *into, struct text_edits *trace,
                           struct text *text)
{
    for (size_t at = 0, end; at < text->count; at = end) {
        const size_t first = nfc_find(scratch, text->bytes, at, text->count, &end);
        if (scratch->lacks_memory || !bytes_append(into, text->bytes + at, first - at))
            return false;
        if (first == text->count)
            break;
        if (!note_change(trace, into, &scratch->made, text->bytes, first, end) ||
            !bytes_append(into, scratch->made.bytes, scratch->made.count))
            return false;
    }
    *text = (struct text){into->bytes, into->count};
    return true;
}

enum tokmap_status normalizer_run(struct normalizer_state *state, const uint8_t *text, size_t count,
                                  const uint8_t **made, size_t *made_count, struct tokmap_error *error)
{
    struct text now = {text, count};
    assert(text || !count);
    for (uint32_t i = 0; i < state->normalizer->count; i++) {
        const struct normalizer_step *step = &state->normalizer->steps[i];
        struct bytes_buffer *into = &state->made[now.bytes == state->made[0].bytes && state->made[0].bytes != NULL];
        struct text_edits *trace = state->trace ? &state->trace[i] : NULL;
        bool good = true;
        into->count = 0;
        if (trace)
            text_edits_clear(trace);
        switch (step->kind) {
        case NORMALIZE_NFC:
            good = trace ? compose_traced(&state->nfc, into, trace, &now) : compose(&state->nfc, into, &now);
            state->nfc.lacks_memory = false;
            break;
        case NORMALIZE_PREPEND:
            if (now.count && !state->continues) {
                good = has_room(state, into, step->content_bytes + now.count) &&
                       note(trace, into, step->content_bytes, 0, 0) &&
                       bytes_append(into, step->content, step->content_bytes) &&
                       bytes_append(into, now.bytes, now.count);
                now = (struct text){into->bytes, into->count};
            }
            break;
        case NORMALIZE_BERT_CLEAN:
        case NORMALIZE_BERT_CHINESE:
        case NORMALIZE_BERT_MARKS:
            good = bert_step(step->kind, into, trace, &now.bytes, &now.count);
            break;
        case NORMALIZE_NFD:
        case NORMALIZE_LOWER:
            break;
        case NORMALIZE_REPLACE:
        default:
            if (step->regex) {
                const enum tokmap_status status =
                    replace_matches(state, step, state->regexes[i], into, trace, &now, error);
                if (status)
                    return status;
            } else {
                good = replace_literal(state, step, into, trace, &now);
            }
        }
        if (!good || !has_room(state, into, 0))
            return no_room(state, now.count, error);
        state->room -= state->room == UINT64_MAX ? 0 : into->count;
    }
    *made = now.bytes;
    *made_count = now.count;
    return TOKMAP_OK;
}
