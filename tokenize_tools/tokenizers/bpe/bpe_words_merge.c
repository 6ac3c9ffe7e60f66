/* SPDX-License-Identifier: MIT */
/*
 * bpe_words_merge.c - the symbols of a word, and their merges.
 *
 * Words of many symbols are merged in windows. bpe_merge.c explains why that is exact: its two facts hold for symbols
 * of any kind. So the time grows with the length of a word, not with its square, and a word needs 12 bytes of memory
 * for each of its bytes.
 */
#include "bpe_words_merge.h"

#include <assert.h>
#include <stdlib.h>

#include "bpe_merge.h"
#include "bpe_merge_parts.h"
#include "common/bytes.h"
#include "text/code_point.h"

#define WINDOW 128          /* symbols of the first window */
#define WINDOWS_A_LOOK 1024 /* between two looks at whether to stop */

/* ---- symbols ---- */

/* Finds the token of the character at the reader's place, or BPE_NONE, and its length. */
static uint32_t character_token(const struct bpe_words *words, const struct bpe_word_reader *reader, size_t *length,
                                uint32_t *place)
{
    const uint8_t *at = reader->bytes + reader->at;
    uint32_t code = *at;
    *length = 1;
    if (code >= 0x80 && !words->mapped)
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
    *symbol = (struct bpe_word_symbol){words->unk, reader->unknown_begin, reader->unknown_end};
    reader->unknown_begin = reader->unknown_end = 0;
    return true;
}

/* Lets the unknown token wait until the next character shows whether it is fused. Tokens of bytes do not end the
 * waiting, so they come before an unknown token whose characters were before theirs, as in the reference. */
bool bpe_word_next(const struct bpe_words *words, struct bpe_word_reader *reader, struct bpe_word_symbol *symbol)
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
        } else if (words->unk != BPE_NONE && waits && !words->fuse_unk) {
            (void)give_unknown(words, reader, symbol);
            reader->unknown_begin = at;
            reader->unknown_end = at + length;
            return true;
        } else if (words->unk != BPE_NONE) {
            reader->unknown_begin = waits ? reader->unknown_begin : at;
            reader->unknown_end = at + length;
        }
    }
}

/* ---- merging ---- */

static inline uint32_t rank_itself(const struct bpe_model *model, uint32_t rank)
{
    return rank;
}

static inline uint32_t result_of_rank(const struct bpe_model *model, uint32_t rank, uint32_t left, uint32_t right)
{
    return bpe_result(model, rank);
}

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

/* Returns how many of a window's parts end before its last quarter, so that what comes after the window hardly ever
 * changes them. */
static size_t parts_to_accept(const struct merge_part *parts, size_t count, size_t symbols)
{
    size_t end = symbols;
    for (; count && symbols - end < symbols / 4; count--)
        end = parts[count - 1].start;
    return count;
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

size_t bpe_words_merge(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                       uint32_t *ids)
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
