/* SPDX-License-Identifier: MIT */
/*
 * bpe_words.c - the symbols of a word, their merges, how a model of words is built, and the engine over it
 * (text_engine.h).
 *
 * Words of many symbols are merged in windows. bpe_merge.c explains why that is exact: its two facts hold for symbols
 * of any kind. So the time grows with the length of a word, not with its square, and a word needs 12 bytes of memory
 * for each of its bytes.
 */
#include "bpe_words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_engine.h"
#include "bpe_merge.h"
#include "bpe_merge_parts.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"

#define WINDOW 128                     /* symbols of the first window */
#define SCRATCH_KEPT ((size_t)1 << 20) /* a larger scratch is freed after the text */
#define WORD_BYTES_MOST ((uint64_t)1 << 31)

/* The places of a character in its word: bits of the number of a row's column. */
#define BPE_WORD_INNER 1u /* not the first */
#define BPE_WORD_LAST 2u

struct bpe_words {
    struct bpe_model head;          /* must be first. Pairs are of ids; texts are those of words */
    struct bpe_words_source source; /* names: the texts of head if they are the same; other pointers: invalid */
    uint32_t *atoms;     /* by code point (or byte, if `mapped`): number of its row + 1; 0: no token has it */
    uint32_t (*rows)[4]; /* by place: the token of the character there, or BPE_NONE */
    uint64_t row_room;
    uint32_t row_count;
    uint8_t *affixes;         /* the prefix, then the suffix */
    uint32_t fallback_places; /* bit i: a character at place i may become the tokens of its bytes */
};
_Static_assert(offsetof(struct bpe_words, head) == 0, "bpe_words_merge() casts the head to the model");

/* What merging begins with. */
struct bpe_word_symbol {
    uint32_t id;
    size_t begin, end; /* its bytes of the word */
};

/* A place in a word. Initialize bytes and count, and the rest with zeros. */
struct bpe_word_reader {
    const uint8_t *bytes;
    size_t count, at;
    size_t unknown_begin, unknown_end; /* characters that become the next unknown token; empty: none */
    size_t fallback_at, fallback_end;  /* bytes that become the next tokens */
};

/* ---- symbols ---- */

/* Finds the token of the character at the reader's place, or BPE_NONE, and its length. */
static uint32_t character_token(const struct bpe_words *words, const struct bpe_word_reader *reader, size_t *length,
                                uint32_t *place)
{
    const uint8_t *at = reader->bytes + reader->at;
    uint32_t code = *at;
    *length = 1;
    if (code >= 0x80 && !words->source.mapped)
        code = code_point_get(at, length);
    *place = (reader->at ? BPE_WORD_INNER : 0) | (reader->at + *length == reader->count ? BPE_WORD_LAST : 0);
    const uint32_t row = words->atoms[code];
    return row ? words->rows[row - 1][*place] : BPE_NONE;
}

/* Returns whether each byte of a character has a token. */
static bool falls_back(const struct bpe_words *words, const uint8_t *bytes, size_t count, uint32_t place)
{
    if (!(words->fallback_places >> place & 1))
        return false;
    for (size_t i = 0; i < count; i++)
        if (words->head.byte_ids[bytes[i]] == BPE_NONE)
            return false;
    return true;
}

static bool give_unknown(const struct bpe_words *words, struct bpe_word_reader *reader, struct bpe_word_symbol *symbol)
{
    *symbol = (struct bpe_word_symbol){words->source.unk, reader->unknown_begin, reader->unknown_end};
    reader->unknown_begin = reader->unknown_end = 0;
    return true;
}

/* Lets the unknown token wait until the next character shows whether it is fused. Tokens of bytes do not end the
 * waiting, so they come before an unknown token whose characters were before theirs, as in the reference. */
static bool bpe_word_next(const struct bpe_words *words, struct bpe_word_reader *reader, struct bpe_word_symbol *symbol)
{
    for (;;) {
        const size_t at = reader->at;
        const bool waits = reader->unknown_end > reader->unknown_begin;
        if (reader->fallback_at < reader->fallback_end) {
            const size_t byte = reader->fallback_at++;
            *symbol = (struct bpe_word_symbol){words->head.byte_ids[reader->bytes[byte]], byte, byte + 1};
            return true;
        }
        if (at == reader->count)
            return waits && give_unknown(words, reader, symbol);
        size_t length;
        uint32_t place;
        const uint32_t id = character_token(words, reader, &length, &place);
        if (id != BPE_NONE && waits)
            return give_unknown(words, reader, symbol);
        reader->at += length;
        if (id != BPE_NONE) {
            *symbol = (struct bpe_word_symbol){id, at, at + length};
            return true;
        }
        if (falls_back(words, reader->bytes + at, length, place)) {
            reader->fallback_at = at;
            reader->fallback_end = at + length;
        } else if (words->source.unk != BPE_NONE && waits && !words->source.fuse_unk) {
            (void)give_unknown(words, reader, symbol);
            reader->unknown_begin = at;
            reader->unknown_end = at + length;
            return true;
        } else if (words->source.unk != BPE_NONE) {
            reader->unknown_begin = waits ? reader->unknown_begin : at;
            reader->unknown_end = at + length;
        }
    }
}

/* ---- merging ---- */

/* scratch: its memory is for merge_heap(), if there are more than MERGE_ROUNDS symbols. Returns the number of parts
 * that are left; `start` of each counts symbols. */
static size_t merge_window(const struct bpe_model *model, const struct bpe_scratch *scratch, const uint32_t *symbols,
                           size_t count, struct merge_part *parts)
{
    for (size_t i = 0; i < count; i++)
        parts[i] = (struct merge_part){symbols[i], (uint32_t)i};
    if (count > MERGE_ROUNDS)
        return merge_heap(model, scratch->memory, parts, count, bpe_pair_rank, rank_itself);
    int32_t ranks[MERGE_ROUNDS];
    for (size_t i = 0; i < count; i++)
        ranks[i] = i + 1 < count ? merge_pair_priority(model, symbols[i], symbols[i + 1], bpe_pair_rank, rank_itself)
                                 : MERGE_NONE;
    return merge_rounds(model, parts, ranks, count, bpe_pair_rank, rank_itself, result_of_rank);
}

/* Merges `count` symbols into ids. starts: for each id, the number of its first symbol. Returns the number of ids, or 0
 * if memory ran out. */
static size_t merge_windows(const struct bpe_model *model, struct bpe_scratch *scratch, const uint32_t *symbols,
                            size_t count, uint32_t *ids, uint32_t *starts)
{
    struct merge_part near[MERGE_ROUNDS];
    size_t accepted = 0, window = WINDOW, back = 1, successes = 0;
    for (size_t looks = 1;; looks++) {
        const size_t from = accepted ? starts[accepted - 1] : 0;
        const bool last = window >= count - from;
        const size_t size = last ? count - from : window;
        if ((looks % WINDOWS_A_LOOK == 0 && bpe_scratch_stops(scratch)) ||
            (size > MERGE_ROUNDS && !window_grow(scratch, size)))
            return 0;
        struct merge_part *parts = size > MERGE_ROUNDS ? window_parts(scratch, size) : near;
        size_t made = merge_window(model, scratch, symbols + from, size, parts);
        if (accepted && ids[accepted - 1] != parts[0].symbol) {
            accepted -= min64(back, accepted);
            back *= 2;
            window = 2 * window + (from - (accepted ? starts[accepted - 1] : 0));
            successes = 0;
            continue;
        }
        if (!last)
            made = parts_to_accept(parts, made, size);
        if (made < 1 + (size_t)(accepted != 0) && !last) { /* nothing new */
            window *= 2;
            continue;
        }
        accepted -= accepted != 0; /* the window begins with it */
        for (size_t i = 0; i < made; i++) {
            ids[accepted] = parts[i].symbol;
            starts[accepted++] = (uint32_t)from + parts[i].start;
        }
        if (last)
            return accepted;
        back = 1;
        if (++successes % 16 == 0 && window > WINDOW)
            window = max64(window / 2, WINDOW);
    }
}

static size_t read_symbols(const struct bpe_words *words, const uint8_t *bytes, size_t count, uint32_t *symbols)
{
    struct bpe_word_reader reader = {.bytes = bytes, .count = count};
    struct bpe_word_symbol symbol;
    size_t made = 0;
    while (bpe_word_next(words, &reader, &symbol))
        symbols[made++] = symbol.id;
    assert(made && made <= count);
    return made;
}

/* Merges a word, as a bpe_merge_function; `model` must be the head of a struct bpe_words, and the word must have a
 * symbol. */
static size_t bpe_words_merge(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes,
                              size_t count, uint32_t *ids)
{
    const struct bpe_words *words = (const struct bpe_words *)model;
    uint32_t near[WINDOW];
    if (count <= WINDOW) {
        struct merge_part parts[WINDOW];
        const size_t made = merge_window(model, scratch, near, read_symbols(words, bytes, count, near), parts);
        for (size_t i = 0; i < made; i++)
            ids[i] = parts[i].symbol;
        return made;
    }
    uint32_t *symbols = malloc(2 * count * sizeof *symbols);
    const size_t made = symbols ? merge_windows(model, scratch, symbols, read_symbols(words, bytes, count, symbols),
                                                ids, symbols + count)
                                : 0;
    free(symbols);
    return made;
}

struct words_engine {
    struct pieces_engine base;
    struct bpe_words *words;
};

struct words_state {
    struct bpe_state *state;
    const struct bpe_words *words;
};

static const uint8_t *name_of(const struct bpe_words *words, uint32_t id, uint32_t *bytes)
{
    *bytes = words->source.name_offsets[id + 1] - words->source.name_offsets[id];
    return words->source.names + words->source.name_offsets[id];
}

static void words_free(struct bpe_words *words)
{
    if (!words)
        return;
    if (words->source.names != words->head.bytes) {
        free(words->source.names);
        free(words->source.name_offsets);
    }
    os_memory_free(words->atoms, CODES * sizeof *words->atoms);
    free(words->rows);
    free(words->affixes);
    bpe_model_clear(&words->head);
    free(words);
}

/* ---- building ---- */

static uint32_t atom_codes(const struct bpe_words *words)
{
    return words->source.mapped ? 256 : CODES;
}

/* Sets the token of a character at a place. Returns false if memory ran out. */
static bool atom_set(struct bpe_words *words, uint32_t code, uint32_t place, uint32_t id)
{
    if (!words->atoms[code]) {
        if (!list_room(&words->rows, words->row_count, &words->row_room, sizeof *words->rows))
            return false;
        memset(words->rows[words->row_count], 0xFF, sizeof *words->rows);
        words->atoms[code] = ++words->row_count;
    }
    words->rows[words->atoms[code] - 1][place] = id;
    return true;
}

/* Returns the character that a token is at a place. BPE_NONE: it has more than one, or another place. */
static uint32_t character_at(const struct bpe_words *words, uint32_t id, uint32_t place)
{
    uint32_t count;
    size_t length;
    const uint8_t *text = name_of(words, id, &count);
    const uint32_t prefix = place & BPE_WORD_INNER ? words->source.prefix.bytes : 0;
    const uint32_t suffix = place & BPE_WORD_LAST ? words->source.suffix.bytes : 0;
    if (count <= prefix + suffix || count > prefix + suffix + 4 || memcmp(text, words->affixes, prefix) != 0 ||
        memcmp(text + count - suffix, words->affixes + words->source.prefix.bytes, suffix) != 0)
        return BPE_NONE;
    const uint32_t code = code_point_get(text + prefix, &length);
    if (length != count - prefix - suffix || code >= CODES)
        return BPE_NONE;
    return words->source.mapped ? (uint32_t)character_byte(code) : code; /* -1: BPE_NONE */
}

static bool atoms_read(struct bpe_words *words)
{
    void *atoms = NULL;
    if (os_memory_new(CODES * sizeof *words->atoms, false, &atoms))
        return false;
    words->atoms = atoms;
    for (uint32_t id = 0; id < words->head.vocabulary; id++)
        for (uint32_t place = 0; place < 4; place++) {
            const uint32_t code = character_at(words, id, place);
            if (code < atom_codes(words) && !atom_set(words, code, place, id))
                return false;
        }
    return true;
}

/* Returns whether each byte of a text has a token. */
static bool all_bytes(const struct bpe_words *words, const uint8_t *text, uint32_t count)
{
    while (count && words->head.byte_ids[text[count - 1]] != BPE_NONE)
        count--;
    return !count;
}

/* Reads the tokens of bytes. What a character becomes at a place where it has a prefix or a suffix are the bytes of
 * both, which are more than the word has; but where one of them has no token, it becomes none of these. */
static enum tokmap_status bytes_read(struct bpe_words *words, const struct bpe_words_source *source,
                                     struct tokmap_error *error)
{
    const bool prefix = words->source.prefix.bytes != 0, suffix = words->source.suffix.bytes != 0;
    memset(words->head.byte_ids, 0xFF, sizeof words->head.byte_ids);
    if (!source->byte_fallback)
        return TOKMAP_OK;
    for (uint32_t id = 0; id < words->head.vocabulary; id++) {
        uint32_t count;
        const uint8_t *text = name_of(words, id, &count);
        const int byte = byte_named(text, count);
        if (byte >= 0)
            words->head.byte_ids[byte] = id;
    }
    for (uint32_t place = 0; place < 4; place++)
        if (!(prefix && place & BPE_WORD_INNER) && !(suffix && place & BPE_WORD_LAST))
            words->fallback_places |= 1u << place;
    if ((prefix && all_bytes(words, words->affixes, words->source.prefix.bytes)) ||
        (suffix && all_bytes(words, words->affixes + words->source.prefix.bytes, words->source.suffix.bytes)))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
                         "model.byte_fallback is true, and the bytes of %s have tokens, so unknown characters would "
                         "become these, too; tokmap cannot read such a vocabulary",
                         suffix ? "end_of_word_suffix" : "continuing_subword_prefix");
    return TOKMAP_OK;
}

static bool merges_read(struct bpe_words *words, const struct bpe_words_source *source)
{
    bool twice;
    words->head.results = os_memory_large(((size_t)source->merge_count + 1) * sizeof *words->head.results);
    if (!words->head.results)
        return false;
    for (uint32_t i = 0; i < source->merge_count; i++)
        words->head.results[i] = source->merges[i].result;
    return bpe_pairs_new_list(&words->head, 2 * (uint64_t)source->merge_count + 1, source->merges, source->merge_count,
                              false, &twice);
}

/* Finds the tokens that a word which equals them becomes, although merging gives something else. */
static bool wholes_read(struct bpe_words *words)
{
    struct bpe_scratch scratch = {.memory = NULL};
    uint32_t longest = 1, count = 0;
    for (uint32_t id = 0; id < words->head.vocabulary; id++)
        longest = (uint32_t)max64(longest, bpe_token_bytes(&words->head, id));
    uint32_t *ids = malloc(((size_t)longest + 1) * sizeof *ids);
    uint32_t *wholes = os_memory_large(((size_t)words->head.vocabulary + 1) * sizeof *wholes);
    bool good = ids && wholes;
    for (uint32_t id = 0; id < words->head.vocabulary && good; id++) {
        const uint8_t *text = words->head.bytes + words->head.offsets[id];
        const uint32_t bytes = bpe_token_bytes(&words->head, id);
        struct bpe_word_reader reader = {.bytes = text, .count = bytes};
        struct bpe_word_symbol symbol;
        if (!bytes)
            continue;
        size_t made = 2;
        if (bpe_word_next(words, &reader, &symbol))
            good = (made = bpe_words_merge(&words->head, &scratch, text, bytes, ids)) != 0;
        if (made != 1 || ids[0] != id)
            wholes[count++] = id;
    }
    good = good && bpe_unreached_new(&words->head, wholes, count);
    free(scratch.memory);
    free(wholes);
    free(ids);
    return good;
}

static enum tokmap_status words_build(struct bpe_words *words, const struct bpe_words_source *source,
                                      struct tokmap_error *error)
{
    const size_t affixes = (size_t)source->prefix.bytes + source->suffix.bytes;
    if (source->vocabulary >= BPE_IDS || source->merge_count > BPE_MERGES)
        return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has %" PRIu32 " ids and %" PRIu32
                         " merges, but at most %u ids and %u merges are supported",
                         source->vocabulary, source->merge_count, BPE_IDS - 1, BPE_MERGES);
    words->affixes = malloc(affixes + 1);
    enum tokmap_status status = words->affixes ? TOKMAP_OK : error_set_memory(error, "a vocabulary", affixes);
    if (!status) {
        if (source->prefix.bytes)
            memcpy(words->affixes, source->prefix.text, source->prefix.bytes);
        if (source->suffix.bytes)
            memcpy(words->affixes + source->prefix.bytes, source->suffix.text, source->suffix.bytes);
        memset(words->head.bytes + words->head.offsets[source->vocabulary], 0, 16);
        status = bytes_read(words, source, error);
    }
    if (!status && (!merges_read(words, source) || !atoms_read(words) || (source->whole && !wholes_read(words))))
        status = error_set_memory(error, "a vocabulary", (uint64_t)source->vocabulary * sizeof(struct bpe_merge));
    return status;
}

/* ---- the engine ---- */

static void engine_free(struct text_engine *engine)
{
    words_free(((struct words_engine *)engine)->words);
    free(engine);
}

static void engine_state_free(struct text_engine_state *state)
{
    bpe_state_free(((struct words_state *)state)->state);
    free(state);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    const struct bpe_words *words = ((const struct words_engine *)engine)->words;
    const enum tokmap_status status = pieces_state_new(state, sizeof(struct words_state), &words->head, error);
    if (!status)
        ((struct words_state *)*state)->words = words;
    return status;
}

/* Returns whether nothing is left of a word, because no character has a token. */
static bool is_lost(const struct bpe_words *words, const uint8_t *bytes, uint64_t count)
{
    struct bpe_word_reader reader = {.bytes = bytes, .count = count};
    struct bpe_word_symbol symbol;
    return words->source.unk == BPE_NONE && !bpe_word_next(words, &reader, &symbol) &&
           bpe_unreached(&words->head, bytes, count) == BPE_NONE;
}

static enum tokmap_status engine_piece(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                       struct ids_out *out, struct tokmap_error *error)
{
    struct words_state *own = (struct words_state *)state;
    struct bpe_scratch *scratch = &own->state->scratch;
    uint64_t written = 0;
    if (count > WORD_BYTES_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the text has a word of %" PRIu64 " bytes; the longest that this tokenizer can encode has "
                         "%" PRIu64,
                         count, WORD_BYTES_MOST);
    if (!count || is_lost(own->words, bytes, count))
        return TOKMAP_OK;
    own->state->largest = 0;
    const enum tokmap_status status = bpe_encode_piece(
        own->state, bytes, count, (uint8_t *)out->tokens + out->count * (out->wide ? 4 : 2), &written, error);
    out->count += written;
    out->largest = max64(out->largest, own->state->largest);
    if (scratch->bytes > SCRATCH_KEPT) {
        free(scratch->memory);
        scratch->memory = NULL;
        scratch->bytes = 0;
    }
    return status;
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    return engine_piece(state, text, count, out, error);
}

static bool engine_puts_space(const struct text_engine *engine)
{
    return ((const struct words_engine *)engine)->words->source.front;
}

/* Reads the symbols that a token is made of: their names together, without prefixes inside, are its name. Sets *begin
 * and *end to its bytes of the word. Returns false if the next symbols are others. */
static bool token_walk(const struct bpe_words *words, struct bpe_word_reader *reader, uint32_t id, size_t *begin,
                       size_t *end)
{
    struct bpe_word_symbol symbol;
    uint32_t left, bytes;
    if (id >= words->head.vocabulary)
        return false;
    const uint8_t *name = name_of(words, id, &left);
    for (bool first = true; left; first = false) {
        if (!bpe_word_next(words, reader, &symbol))
            return false;
        const uint8_t *part = name_of(words, symbol.id, &bytes);
        const uint32_t prefix = first ? 0 : words->source.prefix.bytes;
        if (bytes <= prefix || bytes - prefix > left || memcmp(part + prefix, name, bytes - prefix) != 0)
            return false;
        name += bytes - prefix;
        left -= bytes - prefix;
        *begin = first ? symbol.begin : *begin;
        *end = symbol.end;
    }
    return true;
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    const struct bpe_words *words = ((const struct words_engine *)engine)->words;
    struct bpe_word_reader reader = {.bytes = text, .count = count};
    struct bpe_word_symbol symbol;
    uint64_t least = 0; /* offsets ascend, although tokens of bytes may come before an unknown token */
    const uint32_t whole = bpe_unreached(&words->head, text, count);
    if (whole != BPE_NONE) {
        if (walk->at == walk->count || id_walk_next(walk) != whole)
            return false;
        walk->found(walk->user, walk->at++, 0, count);
        return true;
    }
    for (;; walk->at++) {
        struct bpe_word_reader ahead = reader;
        size_t begin = 0, end = 0;
        if (!bpe_word_next(words, &ahead, &symbol))
            return true;
        if (walk->at == walk->count || !token_walk(words, &reader, id_walk_next(walk), &begin, &end))
            return false;
        begin = max64(begin, least);
        least = max64(least, end);
        walk->found(walk->user, walk->at, begin, least);
    }
}

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_text = engine_text,
                                                    .encode_piece = engine_piece,
                                                    .id_bytes = pieces_id_bytes,
                                                    .puts_space = engine_puts_space,
                                                    .walk = engine_walk};

enum tokmap_status bpe_words_new(struct text_engine **engine, const struct bpe_words_source *source,
                                 struct tokmap_error *error)
{
    struct words_engine *made = calloc(1, sizeof *made);
    struct bpe_words *words = calloc(1, sizeof *words);
    assert(source->bytes && source->offsets && !source->names == !source->name_offsets);
    *engine = NULL;
    if (!made || !words) {
        free(made);
        free(words);
        free(source->bytes);
        free(source->offsets);
        free(source->names);
        free(source->name_offsets);
        return error_set_memory(error, "a tokenizer", sizeof *words);
    }
    made->base = (struct pieces_engine){{&engine_kind}, &words->head};
    made->words = words;
    words->head.merge = bpe_words_merge;
    words->head.vocabulary = source->vocabulary;
    words->head.wide = source->vocabulary > 65536;
    words->head.bytes = source->bytes;
    words->head.offsets = source->offsets;
    words->source = *source;
    words->source.names = source->names ? source->names : source->bytes;
    words->source.name_offsets = source->names ? source->name_offsets : source->offsets;
    const enum tokmap_status status = words_build(words, source, error);
    if (status)
        engine_free(&made->base.head);
    else
        *engine = &made->base.head;
    return status;
}
