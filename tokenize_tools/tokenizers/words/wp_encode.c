/* SPDX-License-Identifier: MIT */
/*
 * wp_encode.c - words are written one after the other to a block, and when it is full, they are looked up together in
 * the caches of bpe/.
 *
 * Example: of "The cat, it's" the block receives "thecat,it's", and the starts of words are 0, 3, 6, 7, 9 and 10. So
 * text is read once, and the caches see neither spaces nor capital letters: "The", "the", and "THE" are one entry.
 *
 * The last word of a block may continue after it and is moved to the next block. A word that is longer than a block is
 * put together elsewhere. Below is the engine over all this (text_engine.h).
 */
#include "wp_encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_engine.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "text/code_point.h"
#include "unicode/nfc_tables.h"

#define BLOCK_FULL (SCAN_BYTES - 64) /* a step adds at most 64 bytes */

/* ---- words to ids ---- */

/* Returns the status after pieces were encoded, and raises the largest id. */
static enum tokmap_status pieces_check(struct wp_state *state, uint64_t count, struct ids_out *out,
                                       struct tokmap_error *error)
{
    const enum tokmap_status status = bpe_state_check(state->pieces, count, error);
    const uint64_t largest = state->pieces->largest;
    if (status)
        return status;
    if (largest >= state->model->head.vocabulary)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the text has a word that is not in the vocabulary, and the vocabulary has no unknown token; "
                         "add the token that model.unk_token names to the vocabulary, or leave the text out");
    out->largest = max64(out->largest, largest);
    return TOKMAP_OK;
}

enum tokmap_status wp_encode_word(struct wp_state *state, const uint8_t *word, uint64_t count, struct ids_out *out,
                                  struct tokmap_error *error)
{
    uint64_t written = 0;
    state->pieces->largest = 0;
    enum tokmap_status status = bpe_encode_piece(state->pieces, word, count, ids_end(out), &written, error);
    if (!status)
        status = pieces_check(state, count, out, error);
    out->count += written;
    return status;
}

/* Encodes the words in the first bytes of the block, whose starts are set. */
static void words_encode(struct wp_state *state, uint32_t count)
{
    struct ids_out *out = state->out;
    const size_t width = out->wide ? 4 : 2;
    if (!count)
        return;
    state->pieces->text_end = state->block + sizeof state->block;
    if (out->room - out->count >= count) {
        out->count += bpe_encode_starts(state->pieces, state->block, count, ids_end(out), out->room - out->count);
        return;
    }
    const size_t made = bpe_encode_starts(state->pieces, state->block, count, state->spill, SCAN_BYTES);
    assert(made <= out->room - out->count); /* no more ids than characters of the text */
    memcpy(ids_end(out), state->spill, made * width);
    out->count += made;
}

/* Returns the first byte of the block, below `made`, at which a word begins, or `made`. */
static uint32_t first_start(const struct wp_state *state)
{
    const uint64_t *starts = state->pieces->chunk.starts;
    for (uint32_t word = 0; word <= state->made / 64; word++)
        if (starts[word])
            return 64 * word + (uint32_t)__builtin_ctzll(starts[word]);
    return state->made;
}

/* Returns the last byte of the block at which a word begins, or 0. */
static uint32_t last_start(const struct wp_state *state)
{
    const uint64_t *starts = state->pieces->chunk.starts;
    for (uint32_t word = state->made / 64 + 1; word-- > 0;)
        if (starts[word])
            return 64 * word + 63 - (uint32_t)__builtin_clzll(starts[word]);
    return 0;
}

/* Moves the end of the last mark with the block, out of which the first bytes are taken. */
static void mark_shift(struct wp_state *state, uint32_t taken)
{
    state->mark_end = state->mark_end > taken ? state->mark_end - taken : 0;
}

/* Takes the first bytes out of the block. */
static void block_shift(struct wp_state *state, uint32_t taken)
{
    uint64_t *starts = state->pieces->chunk.starts;
    const uint32_t words = state->made / 64 + 1, skip = taken / 64, bits = taken % 64;
    memmove(state->block, state->block + taken, state->made - taken);
    for (uint32_t i = 0; i < words; i++) {
        const uint64_t low = i + skip < words ? starts[i + skip] : 0,
                       high = i + skip + 1 < words ? starts[i + skip + 1] : 0;
        starts[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
    mark_shift(state, taken);
    state->made -= taken;
}

/* Continues the word that is longer than a block. Returns false if the block ends before it does, or memory is
 * lacking. */
static bool word_continue(struct wp_state *state, bool last)
{
    const uint32_t end = first_start(state);
    if (!bytes_append(&state->word, state->block, end)) {
        state->pieces->lacks_memory = true;
        return false;
    }
    const bool ends = end < state->made || !state->open || last;
    block_shift(state, end);
    if (!ends)
        return false;
    uint64_t written = 0;
    struct tokmap_error unused; /* pieces_check() reports it again */
    if (bpe_encode_piece(state->pieces, state->word.bytes, state->word.count, ids_end(state->out), &written, &unused))
        state->pieces->lacks_memory = true;
    state->out->count += written;
    state->word.count = 0;
    return true;
}

/* Encodes the words of the block that are complete; all of them if the text ends here. */
static void block_encode(struct wp_state *state, bool last)
{
    uint64_t *starts = state->pieces->chunk.starts;
    if (state->word.count && !word_continue(state, last))
        return;
    const uint32_t end = last || !state->open ? state->made : last_start(state);
    if (!end && state->made) { /* one word, which continues */
        starts[0] = 0;
        (void)word_continue(state, false);
        return;
    }
    if (end < state->made)
        starts[end / 64] &= ~((uint64_t)1 << (end % 64));
    words_encode(state, end);
    memset(starts, 0, (state->made / 64 + 1) * sizeof *starts);
    memmove(state->block, state->block + end, state->made - end);
    mark_shift(state, end);
    state->made -= end;
    starts[0] = state->made != 0;
}

/* ---- text to words ---- */

size_t wp_ascii_scalar(const struct wp_characters *characters, const uint8_t *text, size_t count,
                       struct wp_words *words)
{
    uint32_t made = 0, open = words->open;
    uint64_t starts = 0;
    size_t at = 0;
    for (count = min64(count, 64); at < count && text[at] < 0x80; at++) {
        const uint32_t is = characters->ascii_is[text[at]], kept = is & 1, alone = is >> 1 & 1, dropped = is >> 2;
        words->into[made] = characters->ascii_put[text[at]];
        starts |= (uint64_t)(kept & (alone | (open ^ 1))) << (made & 63);
        made += kept;
        open = (open & dropped) | (kept & (alone ^ 1));
    }
    words->made = made;
    words->starts = starts;
    words->open = open;
    return at;
}

/* Appends a character to the block. alone: as a word of its own. */
static inline void put(struct wp_state *state, uint32_t code, bool alone)
{
    const uint32_t at = state->made;
    state->pieces->chunk.starts[at / 64] |= (uint64_t)(alone || !state->open) << (at % 64);
    state->made += (uint32_t)code_point_put(state->block + at, code);
    state->open = !alone;
}

static void put_mark(struct wp_state *state, uint32_t code)
{
    const uint8_t class = nfc_kinds[nfc_blocks[nfc_first[code / 64]][code % 64]].combining_class;
    state->unsorted |= state->mark_end == state->made + 1 && state->mark_class > class;
    put(state, code, false);
    state->mark_end = state->made + 1;
    state->mark_class = class;
}

static void put_syllable(struct wp_state *state, uint32_t code)
{
    const uint32_t index = code - 0xAC00;
    put(state, 0x1100 + index / (21 * 28), false);
    put(state, 0x1161 + index / 28 % 21, false);
    if (index % 28)
        put(state, 0x11A7 + index % 28, false);
}

/* Appends what becomes of a character. */
static void put_entry(struct wp_state *state, uint32_t entry, uint32_t code)
{
    const uint32_t rest = entry >> WP_ACTION_BITS;
    switch (entry & ((1u << WP_ACTION_BITS) - 1)) {
    case WP_KEEP:
        put(state, code, false);
        break;
    case WP_DROP:
        break;
    case WP_SPACE:
        state->open = false;
        break;
    case WP_ALONE:
        put(state, code, true);
        break;
    case WP_PUT:
        put(state, rest, false);
        break;
    case WP_PUT_ALONE:
        put(state, rest, true);
        break;
    case WP_MARK:
        put_mark(state, rest);
        break;
    case WP_SYLLABLE:
        put_syllable(state, code);
        break;
    case WP_SEVERAL:
    default:
        for (const uint32_t *list = state->characters->lists + rest; *list != WP_LIST_END; list++)
            put_entry(state, *list, 0);
    }
}

/* Appends ASCII characters to the block. Returns how many. */
static inline size_t put_ascii(struct wp_state *state, const uint8_t *text, size_t count)
{
    uint64_t *starts = state->pieces->chunk.starts + state->made / 64;
    const uint32_t bit = state->made % 64;
    struct wp_words words = {.into = state->block + state->made, .open = state->open};
    const size_t read = state->ascii(state->characters, text, count, &words);
    starts[0] |= words.starts << bit;
    starts[1] |= words.starts >> 1 >> (63 - bit);
    state->made += words.made;
    state->open = words.open;
    return read;
}

/* Appends characters of several bytes to the block, up to one of ASCII that others of ASCII follow. Returns how many
 * bytes have been read. */
static inline size_t put_wide(struct wp_state *state, const uint8_t *text, size_t count)
{
    size_t at = 0, bytes;
    while (at < count && state->made < BLOCK_FULL) {
        if (text[at] < 0x80 && (at + 1 == count || text[at + 1] < 0x80))
            break;
        const uint32_t code = code_point_get(text + at, &bytes);
        const uint32_t entry = wp_character(state->characters, code);
        if (entry == WP_KEEP || entry == WP_ALONE) {
            const uint32_t to = state->made;
            for (size_t i = 0; i < bytes; i++)
                state->block[to + i] = text[at + i];
            state->pieces->chunk.starts[to / 64] |= (uint64_t)(entry == WP_ALONE || !state->open) << (to % 64);
            state->made = to + (uint32_t)bytes;
            state->open = entry == WP_KEEP;
        } else {
            put_entry(state, entry, code);
        }
        at += bytes;
    }
    return at;
}

enum tokmap_status wp_encode_text(struct wp_state *state, const uint8_t *text, uint64_t count, struct ids_out *out,
                                  bool *done, struct tokmap_error *error)
{
    const uint64_t before = out->count;
    state->out = out;
    state->made = state->mark_end = 0;
    state->open = state->unsorted = false;
    state->word.count = 0;
    state->pieces->largest = 0;
    memset(state->pieces->chunk.starts, 0, sizeof state->pieces->chunk.starts);
    for (uint64_t at = 0; at < count && !state->unsorted && !state->pieces->lacks_memory;) {
        if (state->made >= BLOCK_FULL) {
            block_encode(state, false);
            if (bpe_scratch_stops(&state->pieces->scratch))
                break;
        }
        const size_t left = (size_t)(count - at);
        const bool ascii = text[at] < 0x80 && (left == 1 || text[at + 1] < 0x80);
        at += ascii ? put_ascii(state, text + at, left) : put_wide(state, text + at, left);
    }
    *done = !state->unsorted;
    if (!*done) {
        out->count = before;
        bytes_trim(&state->word);
        return TOKMAP_OK;
    }
    block_encode(state, true);
    bytes_trim(&state->word);
    return pieces_check(state, count, out, error);
}

/* ---- the state ---- */

enum tokmap_status wp_state_new(struct wp_state **out, const struct wp_model *model,
                                const struct wp_characters *characters, enum cpu_variant variant,
                                struct tokmap_error *error)
{
    struct wp_state *state = calloc(1, sizeof *state);
    *out = NULL;
    if (!state)
        return error_set_memory(error, "the state of a tokenizer", sizeof *state);
    state->model = model;
    state->characters = characters;
    state->ascii = wp_ascii_scalar;
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        state->ascii = wp_ascii_vbmi;
#endif
    const enum tokmap_status status = bpe_state_new(&state->pieces, &model->head, variant, error);
    if (status)
        free(state);
    else
        *out = state;
    return status;
}

void wp_state_free(struct wp_state *state)
{
    if (!state)
        return;
    bpe_state_free(state->pieces);
    bytes_free(&state->word);
    free(state);
}

/* ---- the engine ---- */

struct wp_engine {
    struct pieces_engine base;
    struct wp_model *model;
    struct wp_characters *characters; /* or NULL */
};

static void engine_free(struct text_engine *engine)
{
    struct wp_engine *own = (struct wp_engine *)engine;
    wp_model_free(own->model);
    wp_characters_free(own->characters);
    free(own);
}

static void engine_state_free(struct text_engine_state *state)
{
    wp_state_free((struct wp_state *)state);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    const struct wp_engine *own = (const struct wp_engine *)engine;
    return wp_state_new((struct wp_state **)state, own->model, own->characters, cpu_variant_best(), error);
}

static enum tokmap_status engine_piece(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                       struct ids_out *out, struct tokmap_error *error)
{
    return count ? wp_encode_word((struct wp_state *)state, bytes, count, out, error) : TOKMAP_OK;
}

static enum tokmap_status engine_raw(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                     struct ids_out *out, bool *done, struct tokmap_error *error)
{
    return wp_encode_text((struct wp_state *)state, text, count, out, done, error);
}

/* Walks along a word. The unknown token stands for all of it, and any other for its text, without the prefix where it
 * continues the word. */
static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    const struct wp_model *model = ((const struct wp_engine *)engine)->model;
    if (count && walk->at < walk->count && id_walk_next(walk) == model->unknown &&
        wp_is_unknown(model, text, (size_t)count)) {
        walk->found(walk->user, walk->at++, 0, count);
        return true;
    }
    for (uint64_t at = 0; at < count; walk->at++) {
        const uint8_t *bytes;
        uint32_t length;
        if (walk->at == walk->count || !pieces_id_bytes(engine, id_walk_next(walk), &bytes, &length))
            return false;
        const uint32_t skip = at ? model->prefix_bytes : 0;
        if (length <= skip || length - skip > count - at || memcmp(text + at, bytes + skip, length - skip) != 0)
            return false;
        walk->found(walk->user, walk->at, at, at + length - skip);
        at += length - skip;
    }
    return true;
}

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_piece = engine_piece,
                                                    .encode_raw = engine_raw,
                                                    .id_bytes = pieces_id_bytes,
                                                    .walk = engine_walk};

enum tokmap_status wp_engine_new(struct text_engine **engine, const struct wp_source *source,
                                 const struct wp_rules *rules, struct tokmap_error *error)
{
    struct wp_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    enum tokmap_status status = wp_model_new(&made->model, source, error);
    made->base = (struct pieces_engine){{&engine_kind}, &made->model->head};
    if (!status && rules)
        status = wp_characters_new(&made->characters, *rules, error);
    if (status)
        engine_free(&made->base.head);
    else
        *engine = &made->base.head;
    return status;
}
