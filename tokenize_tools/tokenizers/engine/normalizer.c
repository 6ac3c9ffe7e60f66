/* SPDX-License-Identifier: MIT */
/*
 * normalizer.c - runs the steps of a normalizer. A step that changes nothing copies nothing; a step that changes the
 * text writes it to the buffer that does not hold its input.
 */
#include "normalizer.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"

/* ---- edits ---- */

/* Removes all edits, but keeps their memory. */
static void text_edits_clear(struct text_edits *edits)
{
    edits->count = 0;
    edits->cursor = 0;
}

void text_edits_free(struct text_edits *edits)
{
    free(edits->edits);
    *edits = (struct text_edits){NULL, 0, 0, 0};
}

/* Adds an edit after all others. Returns false if memory is lacking. */
static bool text_edits_add(struct text_edits *edits, struct text_edit edit)
{
    assert(edit.from <= edit.to && edit.old_from <= edit.old_to);
    assert(!edits->count || edit.from >= edits->edits[edits->count - 1].to);
    if (!list_room(&edits->edits, edits->count, &edits->capacity, sizeof *edits->edits))
        return false;
    edits->edits[edits->count++] = edit;
    return true;
}

/* Returns the old offset of a border of the new text. edit: the last one that begins before it, or at it; NULL:
 * none. */
static uint64_t border(const struct text_edit *edit, uint64_t at, bool end)
{
    if (!edit)
        return at;
    if (end ? at > edit->from && at <= edit->to : at < edit->to)
        return end ? edit->old_to : edit->old_from;
    return edit->old_to + (at - edit->to);
}

void text_edits_map(struct text_edits *edits, uint64_t *begin, uint64_t *end)
{
    const struct text_edit *list = edits->edits;
    uint64_t at = edits->cursor;
    assert(*begin <= *end);
    if (!edits->count)
        return;
    while (at + 1 < edits->count && list[at + 1].from <= *begin)
        at++;
    edits->cursor = at;
    if (*begin == *end) {
        /* The border between two bytes: what was put in at it counts as before it. One inside an edit gets all of the
         * edit, as the parts beside it do. */
        const struct text_edit *edit = list[at].from <= *begin ? &list[at] : NULL;
        const bool inside = edit && *begin > edit->from && *begin < edit->to;
        *end = border(edit, *begin, !edit || *begin > edit->from || edit->from == edit->to);
        *begin = inside ? edit->old_from : *end;
        return;
    }
    *begin = border(list[at].from <= *begin ? &list[at] : NULL, *begin, false);
    while (at + 1 < edits->count && list[at + 1].from < *end)
        at++;
    *end = border(list[at].from < *end ? &list[at] : NULL, *end, true);
}

void normalizer_free(struct normalizer *normalizer)
{
    for (uint32_t i = 0; i < normalizer->count; i++) {
        free(normalizer->steps[i].pattern);
        free(normalizer->steps[i].content);
        regex_free(normalizer->steps[i].regex);
        charsmap_free(normalizer->steps[i].map);
    }
    normalizer->count = 0;
}

/* Returns the map that a step is, or CHAR_MAPS. */
static enum char_map map_of(enum normalizer_kind kind)
{
    return kind >= NORMALIZE_BERT_CLEAN                       ? CHAR_MAP_BERT_CLEAN + (kind - NORMALIZE_BERT_CLEAN)
           : kind >= NORMALIZE_LOWER && kind <= NORMALIZE_NMT ? CHAR_MAP_LOWER + (kind - NORMALIZE_LOWER)
                                                              : CHAR_MAPS;
}

/* Returns the largest factor by which a step can multiply the number of bytes. */
static uint64_t step_growth(const struct normalizer_step *step)
{
    static const uint8_t growths[] = {
        [NORMALIZE_NFC] = 3,                                     /* U+1D160: four bytes become twelve */
        [NORMALIZE_NFD] = 3,       [NORMALIZE_NFKC] = 11,        /* U+FDFA: three bytes become 33 */
        [NORMALIZE_NFKD] = 11,     [NORMALIZE_LOWER] = 2,        /* U+023A: two bytes become three */
        [NORMALIZE_BYTES] = 2,     [NORMALIZE_BERT_CHINESE] = 2, /* three bytes become five */
        [NORMALIZE_BERT_MARKS] = 1};
    if (step->map)
        return max64(charsmap_growth(step->map), step->marks_blank ? 3 : 1);
    if (step->kind == NORMALIZE_PREPEND)
        return 1 + step->content_bytes;
    if (step->kind != NORMALIZE_REPLACE)
        return max64(1, growths[step->kind]);
    if (!step->regex)
        return max64(1, div_ceil(step->content_bytes, step->pattern_bytes));
    /* A pattern that has empty matches has them before each byte and at the end. */
    return regex_may_be_empty(step->regex) ? 1 + 2 * (uint64_t)step->content_bytes : max64(1, step->content_bytes);
}

/* Returns whether a text without characters that can be decomposed stays one: the step takes characters away, puts
 * ASCII in, or makes letters small, which cannot make such characters of others. */
static bool keeps_decomposed(const struct normalizer_step *step)
{
    size_t ascii = 0;
    while (ascii < step->content_bytes && step->content[ascii] < 0x80)
        ascii++;
    return step->kind == NORMALIZE_NFD || step->kind == NORMALIZE_MARKS || step->kind == NORMALIZE_LOWER ||
           step->kind == NORMALIZE_STRIP || (step->kind == NORMALIZE_REPLACE && ascii == step->content_bytes);
}

uint64_t normalizer_growth(const struct normalizer *normalizer)
{
    uint64_t growth = 1;
    bool decomposed = false; /* by NFKD, so nothing is left for another decomposition */
    for (uint32_t i = 0; i < normalizer->count; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        const bool decomposes = step->kind == NORMALIZE_NFKD || step->kind == NORMALIZE_NFD;
        if (!(decomposed && decomposes) && (mul_overflows(growth, step_growth(step), &growth) || growth > UINT32_MAX))
            return UINT64_MAX;
        decomposed = step->kind == NORMALIZE_NFKD || (decomposed && keeps_decomposed(step));
    }
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
    for (uint32_t i = 0; i < NORMAL_FORMS; i++)
        state->forms[i].form = (enum normal_form)i;
    for (uint32_t i = 0; i < normalizer->count && !status; i++) {
        const enum char_map map = map_of(normalizer->steps[i].kind);
        if (map != CHAR_MAPS)
            code_search_init(&state->maps[map], char_map_set(map), cpu_variant_best());
        if (normalizer->steps[i].regex)
            status = regex_state_new(&state->regexes[i], normalizer->steps[i].regex, error);
    }
    return status;
}

void normalizer_state_free(struct normalizer_state *state)
{
    for (uint32_t i = 0; i < NORMAL_FORMS; i++)
        nfc_scratch_free(&state->forms[i]);
    bytes_free(&state->made[0]);
    bytes_free(&state->made[1]);
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        regex_state_free(state->regexes[i]);
}

void normalizer_trim(struct normalizer_state *state)
{
    for (uint32_t i = 0; i < NORMAL_FORMS; i++)
        nfc_scratch_trim(&state->forms[i]);
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

/* Appends the text from `done` on, of which nothing changes, and makes the buffer the text. Returns false if memory is
 * lacking. */
static bool finish(struct bytes_buffer *into, size_t done, struct text *text)
{
    if (!bytes_append(into, text->bytes + done, text->count - done))
        return false;
    *text = (struct text){into->bytes, into->count};
    return true;
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
    return finish(into, (size_t)(at - text->bytes), text);
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
    return good && finish(into, done, text) ? TOKMAP_OK : no_room(state, text->count, error);
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

/* Does the same, with a note of each part that is not in the normal form. */
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

static bool form_run(struct normalizer_state *state, const struct normalizer_step *step, struct bytes_buffer *into,
                     struct text_edits *trace, struct text *text)
{
    static const enum normal_form forms[] = {[NORMALIZE_NFC] = FORM_NFC,
                                             [NORMALIZE_NFD] = FORM_NFD,
                                             [NORMALIZE_NFKC] = FORM_NFKC,
                                             [NORMALIZE_NFKD] = FORM_NFKD};
    struct nfc_scratch *scratch = &state->forms[forms[step->kind]];
    scratch->fine = trace != NULL;
    const bool good = trace ? compose_traced(scratch, into, trace, text) : compose(scratch, into, text);
    scratch->lacks_memory = false;
    return good;
}

/* ---- steps that look at single characters ---- */

/* Returns whether a part is one character that becomes one of as many bytes. */
static bool is_even(const uint8_t *text, const struct charsmap_part *part)
{
    size_t old = 0, made = 0;
    if (part->made_count == part->to - part->from) {
        (void)code_point_get(text + part->from, &old);
        (void)code_point_get(part->made, &made);
    }
    return made && made == old && made == part->made_count;
}

/* Appends what is before a character that changes, and what becomes of it. Even changes are not noted. */
static bool replace_part(struct normalizer_state *state, struct bytes_buffer *into, struct text_edits *trace,
                         const uint8_t *text, size_t done, const struct charsmap_part *part)
{
    return has_room(state, into, part->from - done + part->made_count) &&
           bytes_append(into, text + done, part->from - done) &&
           (!trace || is_even(text, part) || note(trace, into, part->made_count, part->from, part->to)) &&
           bytes_append(into, part->made, part->made_count);
}

/* Appends the lower case of the ASCII characters that the text begins with, and returns their number. */
static size_t lower_ascii(struct bytes_buffer *into, const uint8_t *text, size_t count)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = UINT64_C(0x80) * ones;
    size_t at = 0;
    if (!bytes_reserve(into, count))
        return SIZE_MAX;
    uint8_t *made = into->bytes + into->count;
    for (; count - at >= 8; at += 8) {
        const uint64_t eight = load64(text + at);
        if (eight & high)
            break;
        /* bit 7 of each byte from 'A' on, but not after 'Z' */
        const uint64_t upper = (eight + (0x80 - 'A') * ones) & ~(eight + (0x7F - 'Z') * ones) & high;
        store64(made + at, eight | upper >> 2);
    }
    for (; at < count && text[at] < 0x80; at++)
        made[at] = (uint8_t)(text[at] | (text[at] >= 'A' && text[at] <= 'Z' ? 0x20 : 0));
    into->count += at;
    return at;
}

static bool map_characters(struct normalizer_state *state, const struct normalizer_step *step,
                           struct bytes_buffer *into, struct text_edits *trace, struct text *text)
{
    const enum char_map map = map_of(step->kind);
    struct code_block block = CODE_BLOCK_NONE;
    size_t done = 0, bytes;
    for (;;) {
        const size_t found = code_search_next(&state->maps[map], text->bytes, done, text->count, &block);
        if (found == text->count)
            break;
        if (map == CHAR_MAP_LOWER && text->bytes[found] < 0x80) {
            if (!has_room(state, into, text->count - done) || !bytes_append(into, text->bytes + done, found - done))
                return false;
            bytes = lower_ascii(into, text->bytes + found, text->count - found);
            if (bytes == SIZE_MAX)
                return false;
            done = found + bytes;
            continue;
        }
        uint8_t made[CHAR_MAP_BYTES];
        const uint32_t code = code_point_get(text->bytes + found, &bytes);
        const struct charsmap_part part = {found, found + bytes, made, char_map_put(map, made, code)};
        if (!replace_part(state, into, trace, text->bytes, done, &part))
            return false;
        done = part.to;
    }
    return !done || finish(into, done, text);
}

static bool map_bytes(struct normalizer_state *state, const struct normalizer_step *step, struct bytes_buffer *into,
                      struct text_edits *trace, struct text *text)
{
    size_t bytes;
    for (size_t at = 0; at < text->count; at += bytes) {
        uint8_t made[8];
        size_t count = 0;
        (void)code_point_get(text->bytes + at, &bytes);
        for (size_t i = 0; i < bytes; i++)
            count += code_point_put(made + count, byte_character(text->bytes[at + i]));
        const struct charsmap_part part = {at, at + bytes, made, count};
        if (!replace_part(state, into, trace, text->bytes, at, &part))
            return false;
    }
    *text = (struct text){into->bytes, into->count};
    return true;
}

static bool strip(struct normalizer_state *state, const struct normalizer_step *step, struct bytes_buffer *into,
                  struct text_edits *trace, struct text *text)
{
    size_t from = 0, to = text->count, bytes;
    while (step->strip_left && from < to && code_is_space(code_point_get(text->bytes + from, &bytes)))
        from += bytes;
    if (step->strip_right)
        to = from + code_spaces_trimmed(text->bytes + from, to - from);
    const size_t made = to - from;
    if (trace && ((from && !text_edits_add(trace, (struct text_edit){0, 0, 0, from})) ||
                  (to < text->count && !text_edits_add(trace, (struct text_edit){made, made, to, text->count}))))
        return false;
    *text = (struct text){made ? text->bytes + from : text->bytes, made};
    return true;
}

/* ---- charsmaps ---- */

/* Makes a text of spaces U+2581, which is in the place of all of the old text. Returns false if memory is lacking. */
static bool mark_blank(struct bytes_buffer *into, struct text_edits *trace, size_t old_count, struct text *text)
{
    for (size_t i = 0; i < into->count; i++)
        if (into->bytes[i] != ' ')
            return true;
    into->count = 0;
    if (trace)
        text_edits_clear(trace);
    if ((trace && !text_edits_add(trace, (struct text_edit){0, 3, 0, old_count})) ||
        !bytes_append(into, "\xE2\x96\x81", 3))
        return false;
    *text = (struct text){into->bytes, into->count};
    return true;
}

static bool map_keys(struct normalizer_state *state, const struct normalizer_step *step, struct bytes_buffer *into,
                     struct text_edits *trace, struct text *text)
{
    struct code_block block = CODE_BLOCK_NONE;
    struct charsmap_part part;
    struct match_search search;
    size_t done = 0, at = 0, symbol = text->count, index = MATCH_NONE;
    bool good = true, taken_out = false;
    if (step->symbols) {
        match_search_begin(&search, step->symbols, text->bytes, text->count);
        symbol = 0;
        index = match_search_next(&search, &symbol);
        symbol = index == MATCH_NONE ? text->count : symbol;
    }
    for (;;) {
        if (charsmap_find(step->map, text->bytes, at, symbol, text->count, &block, &part)) {
            good = replace_part(state, into, trace, text->bytes, done, &part);
            done = at = part.to;
            taken_out |= !part.made_count;
        } else if (symbol < text->count) {
            at = symbol + match_table_text(step->symbols, index)->count;
        } else {
            break;
        }
        if (!good)
            break;
        if (symbol < at) {
            symbol = at;
            index = match_search_next(&search, &symbol);
            symbol = index == MATCH_NONE ? text->count : symbol;
        }
    }
    if (step->symbols) {
        good = good && !search.lacks_memory;
        match_search_end(&search);
    }
    if (!good || !done)
        return good;
    const size_t old_count = text->count;
    if (!finish(into, done, text))
        return false;
    return !(taken_out && step->marks_blank) || mark_blank(into, trace, old_count, text);
}

static bool map_clusters(struct normalizer_state *state, const struct normalizer_step *step, struct bytes_buffer *into,
                         struct text_edits *trace, struct text *text)
{
    struct charsmap_clusters place = CHARSMAP_CLUSTERS;
    struct charsmap_part part;
    size_t done = 0;
    while (charsmap_find_cluster(step->map, text->bytes, text->count, &place, &part)) {
        if (!replace_part(state, into, trace, text->bytes, done, &part))
            return false;
        done = part.to;
    }
    return !done || finish(into, done, text);
}

static bool prepend(struct normalizer_state *state, const struct normalizer_step *step, struct bytes_buffer *into,
                    struct text_edits *trace, struct text *text)
{
    if (!text->count || state->continues)
        return true;
    if (!has_room(state, into, step->content_bytes + text->count) || !note(trace, into, step->content_bytes, 0, 0) ||
        !bytes_append(into, step->content, step->content_bytes))
        return false;
    return finish(into, 0, text);
}

/* Run a step that has no regular expression. Return false if memory or room is lacking. */
static bool (*const step_functions[])(struct normalizer_state *state, const struct normalizer_step *step,
                                      struct bytes_buffer *into, struct text_edits *trace,
                                      struct text *text) = {[NORMALIZE_NFC] = form_run,
                                                            [NORMALIZE_NFD] = form_run,
                                                            [NORMALIZE_NFKC] = form_run,
                                                            [NORMALIZE_NFKD] = form_run,
                                                            [NORMALIZE_PREPEND] = prepend,
                                                            [NORMALIZE_REPLACE] = replace_literal,
                                                            [NORMALIZE_LOWER] = map_characters,
                                                            [NORMALIZE_MARKS] = map_characters,
                                                            [NORMALIZE_NMT] = map_characters,
                                                            [NORMALIZE_STRIP] = strip,
                                                            [NORMALIZE_BYTES] = map_bytes,
                                                            [NORMALIZE_CHARSMAP] = map_keys,
                                                            [NORMALIZE_PRECOMPILED] = map_clusters,
                                                            [NORMALIZE_BERT_CLEAN] = map_characters,
                                                            [NORMALIZE_BERT_CHINESE] = map_characters,
                                                            [NORMALIZE_BERT_MARKS] = map_characters};

enum tokmap_status normalizer_run(struct normalizer_state *state, const uint8_t *text, size_t count,
                                  const uint8_t **made, size_t *made_count, struct tokmap_error *error)
{
    struct text now = {text, count};
    uint32_t holder = 1; /* the buffer that may have the text */
    assert(text || !count);
    for (uint32_t i = 0; i < state->normalizer->count; i++) {
        const struct normalizer_step *step = &state->normalizer->steps[i];
        struct bytes_buffer *into = &state->made[!holder];
        struct text_edits *trace = state->trace ? &state->trace[i] : NULL;
        into->count = 0;
        if (trace)
            text_edits_clear(trace);
        if (step->regex) {
            const enum tokmap_status status = replace_matches(state, step, state->regexes[i], into, trace, &now, error);
            if (status)
                return status;
        } else if (!step_functions[step->kind](state, step, into, trace, &now)) {
            return no_room(state, now.count, error);
        }
        if (!has_room(state, into, 0))
            return no_room(state, now.count, error);
        state->room -= state->room == UINT64_MAX ? 0 : into->count;
        if (into->count && now.bytes == into->bytes)
            holder = !holder;
    }
    *made = now.bytes;
    *made_count = now.count;
    return TOKMAP_OK;
}
