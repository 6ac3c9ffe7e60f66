/* SPDX-License-Identifier: MIT */
#include "wordpiece_train.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "train_words.h"

#define PREFIX "##"
static const struct train_text unknown = {(const uint8_t *)"[UNK]", 5};

/* ---- words ---- */

struct word_writer {
    const struct wp_characters *characters;
    struct train_counter *counter;
    struct bytes_buffer word; /* it has room for 4 more bytes */
    struct tokmap_error *error;
};

static enum tokmap_status word_end(struct word_writer *w)
{
    if (!w->word.count)
        return TOKMAP_OK;
    const enum tokmap_status status =
        train_counter_piece(w->counter, w->word.bytes, w->word.count, w->word.count, w->error);
    w->word.count = 0;
    return status;
}

static enum tokmap_status put(struct word_writer *w, uint32_t code)
{
    w->word.count += utf8_put((char *)w->word.bytes + w->word.count, code);
    return bytes_reserve(&w->word, 4) ? TOKMAP_OK : error_set_memory(w->error, "a word", w->word.count);
}

static enum tokmap_status put_alone(struct word_writer *w, uint32_t code)
{
    enum tokmap_status status = word_end(w);
    if (!status)
        status = put(w, code);
    return status ? status : word_end(w);
}

/* Does what an entry of the table says. */
static enum tokmap_status entry_do(struct word_writer *w, uint32_t entry, uint32_t code)
{
    const uint32_t rest = entry >> WP_ACTION_BITS;
    enum tokmap_status status = TOKMAP_OK;
    switch ((enum wp_action)(entry & ((1u << WP_ACTION_BITS) - 1))) {
    case WP_KEEP:
        return put(w, code);
    case WP_SPACE:
        return word_end(w);
    case WP_ALONE:
        return put_alone(w, code);
    case WP_PUT:
    case WP_MARK:
        return put(w, rest);
    case WP_PUT_ALONE:
        return put_alone(w, rest);
    case WP_SYLLABLE:
        code -= 0xAC00;
        status = put(w, 0x1100 + code / 588);
        if (!status)
            status = put(w, 0x1161 + code % 588 / 28);
        if (!status && code % 28)
            status = put(w, 0x11A7 + code % 28);
        return status;
    case WP_SEVERAL:
        for (uint32_t i = rest; !status && w->characters->lists[i] != WP_LIST_END; i++)
            status = entry_do(w, w->characters->lists[i], code);
        return status;
    case WP_DROP:
    default:
        return TOKMAP_OK;
    }
}

enum tokmap_status wordpiece_count(const struct wp_characters *characters, struct train_counter *counter,
                                   const uint8_t *text, uint64_t count, struct tokmap_error *error)
{
    struct word_writer w = {.characters = characters, .counter = counter, .error = error};
    enum tokmap_status status = bytes_reserve(&w.word, 64) ? TOKMAP_OK : error_set_memory(error, "a word", 64);
    train_counter_read(counter, count);
    size_t length;
    for (uint64_t at = 0; at < count && !status; at += length) {
        const uint32_t code = code_point_get(text + at, &length);
        status = entry_do(&w, wp_character(characters, code), code);
    }
    if (!status)
        status = word_end(&w);
    bytes_free(&w.word);
    return status;
}

/* ---- the alphabet ---- */

struct alphabet {
    const struct train_characters *characters;
    uint32_t *first, *inside; /* tokens of a character, by its number: at the beginning of a word, and elsewhere */
    bool *is_inside;          /* by the number of a character: it is somewhere inside a word */
};

static void inside_mark(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    const struct alphabet *alphabet = user;
    (void)times;
    size_t length;
    for (uint64_t at = 0; at < count; at += length) {
        const uint32_t code = code_point_get(bytes + at, &length);
        if (at)
            alphabet->is_inside[alphabet->characters->number_of[code]] = true;
    }
}

static uint32_t token_at(const void *user, const uint8_t *piece, uint64_t at, uint32_t *count)
{
    const struct alphabet *alphabet = user;
    size_t length;
    const uint32_t number = alphabet->characters->number_of[code_point_get(piece + at, &length)];
    *count = (uint32_t)length;
    return !number ? TRAIN_NO_TOKEN : at ? alphabet->inside[number] : alphabet->first[number];
}

static enum tokmap_status alphabet_make(struct alphabet *alphabet, const struct train_characters *characters,
                                        const struct train_pieces *pieces, struct wordpiece_vocabulary *v,
                                        struct train_alphabet *made, struct train_budget *budget,
                                        struct tokmap_error *error)
{
    const uint64_t numbers = (uint64_t)characters->count + 1;
    alphabet->characters = characters;
    enum tokmap_status status = train_take(budget, (void **)&alphabet->first, numbers, sizeof(uint32_t), error);
    if (!status)
        status = train_take(budget, (void **)&alphabet->inside, numbers, sizeof(uint32_t), error);
    if (!status)
        status = train_take(budget, (void **)&alphabet->is_inside, numbers, sizeof(bool), error);
    v->texts = calloc(2 * (size_t)numbers, sizeof *v->texts);
    v->bytes = malloc(8 * (size_t)numbers);
    if (!status && (!v->texts || !v->bytes))
        status = error_set_memory(error, "the alphabet", 8 * numbers);
    if (status)
        return status;
    train_pieces_each(pieces, inside_mark, alphabet);
    uint8_t *into = v->bytes;
    uint32_t tokens = 0;
    for (int inside = 0; inside < 2; inside++) {
        v->first_count = inside ? tokens : 0;
        for (uint32_t code = 0; code < 0x110000; code++) {
            const uint32_t number = characters->number_of[code];
            if (!number || (inside && !alphabet->is_inside[number]))
                continue;
            const size_t bytes = utf8_put((char *)into, code);
            *(inside ? &alphabet->inside[number] : &alphabet->first[number]) = tokens;
            v->texts[tokens++] = (struct train_text){into, bytes};
            into += bytes;
        }
    }
    *made = (struct train_alphabet){tokens, v->texts, token_at, alphabet};
    return TOKMAP_OK;
}

static void alphabet_free(struct alphabet *alphabet, struct train_budget *budget)
{
    const uint64_t numbers = alphabet->characters ? (uint64_t)alphabet->characters->count + 1 : 0;
    train_give(budget, alphabet->first, numbers, sizeof(uint32_t));
    train_give(budget, alphabet->inside, numbers, sizeof(uint32_t));
    train_give(budget, alphabet->is_inside, numbers, sizeof(bool));
}

/* ---- training ---- */

/* Special tokens, and what they are without "##", must not be made. */
static struct train_text *forbidden_make(const struct train_settings *settings, uint32_t *count)
{
    struct train_text *forbidden = calloc(2 * (size_t)settings->special_count + 1, sizeof *forbidden);
    *count = 0;
    for (uint32_t i = 0; i < settings->special_count && forbidden; i++) {
        const struct train_text *special = &settings->specials[i];
        forbidden[(*count)++] = *special;
        if (special->count > 2 && !memcmp(special->bytes, PREFIX, 2))
            forbidden[(*count)++] = (struct train_text){special->bytes + 2, special->count - 2};
    }
    return forbidden;
}

static enum tokmap_status continues_make(struct wordpiece_vocabulary *v, struct tokmap_error *error)
{
    const struct train_vocabulary *merged = &v->merged;
    v->continues = calloc((size_t)merged->count + 1, 1);
    if (!v->continues)
        return error_set_memory(error, "the vocabulary", merged->count);
    for (uint32_t i = v->first_count; i < merged->initial; i++)
        v->continues[i] = 1;
    for (uint32_t i = merged->initial; i < merged->count; i++)
        v->continues[i] = v->continues[merged->merges[i - merged->initial].left];
    return TOKMAP_OK;
}

enum tokmap_status wordpiece_train(struct wordpiece_vocabulary *v, struct train_pieces *pieces,
                                   const struct train_characters *characters, const struct train_settings *settings,
                                   struct train_budget *budget, const struct train_options *options,
                                   struct tokmap_error *error)
{
    struct alphabet alphabet = {NULL, NULL, NULL, NULL};
    struct train_alphabet made;
    struct train_options merging = *options;
    struct train_text *forbidden = forbidden_make(settings, &merging.forbidden_count);
    memset(v, 0, sizeof *v);
    enum tokmap_status status =
        forbidden ? alphabet_make(&alphabet, characters, pieces, v, &made, budget, error)
                  : error_set_memory(error, "the special tokens", settings->special_count * sizeof *forbidden);
    merging.forbidden = forbidden;
    merging.alphabet = &made;
    merging.tokens--; /* [UNK] */
    if (!status && made.count > merging.tokens)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                           "the vocabulary is too small: characters of the text have %" PRIu32
                           " ids; raise --vocab-size to %" PRIu64 " or more, or lower --character-coverage",
                           made.count, (uint64_t)made.count + 1 + settings->special_count);
    if (!status)
        status = train_merges(&v->merged, pieces, budget, &merging, error);
    if (!status)
        status = continues_make(v, error);
    alphabet_free(&alphabet, budget);
    free(forbidden);
    return status;
}

void wordpiece_vocabulary_free(struct wordpiece_vocabulary *v)
{
    train_vocabulary_free(&v->merged);
    free(v->continues);
    free(v->texts);
    free(v->bytes);
    memset(v, 0, sizeof *v);
}

/* ---- files ---- */

/* Appends the text of an id, with what is before and after it. */
static void text_append(struct growing *g, const struct wordpiece_vocabulary *v, const struct train_settings *settings,
                        uint32_t id, bool json)
{
    const bool learned = id && id - 1 < v->merged.count;
    const struct train_text *text = !id       ? &unknown
                                    : learned ? &v->merged.tokens[id - 1]
                                              : &settings->specials[id - 1 - v->merged.count];
    if (learned && v->continues[id - 1])
        append_text(g, PREFIX);
    if (json)
        append_escaped(g, text->bytes, text->count);
    else
        append(g, text->bytes, (size_t)text->count);
}

void wordpiece_write(struct growing *contents, const struct wordpiece_vocabulary *v,
                     const struct wordpiece_settings *wordpiece, const struct train_settings *settings)
{
    const uint32_t count = 1 + v->merged.count + settings->special_count;
    struct growing *g = &contents[0];
    for (uint32_t id = 0; id < count; id++) {
        text_append(g, v, settings, id, false);
        append(g, "\n", 1);
    }
    g = &contents[1];
    train_write_head(g, &unknown, 1 + v->merged.count, settings);
    append_text(g, "  \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
                   "\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": ");
    append_text(g, wordpiece->lower ? "true" : "false");
    append_text(g, "},\n  \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},\n  \"post_processor\": null,\n"
                   "  \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"" PREFIX "\", \"cleanup\": true},\n"
                   "  \"model\": {\n    \"type\": \"WordPiece\",\n    \"unk_token\": \"[UNK]\",\n"
                   "    \"continuing_subword_prefix\": \"" PREFIX "\",\n    \"max_input_chars_per_word\": 100,\n"
                   "    \"vocab\": {");
    for (uint32_t id = 0; id < count; id++) {
        append_text(g, id ? ",\n      \"" : "\n      \"");
        text_append(g, v, settings, id, true);
        append_text(g, "\": ");
        append_number(g, id);
    }
    append_text(g, "\n    }\n  }\n}\n");
}
