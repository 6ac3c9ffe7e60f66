/* SPDX-License-Identifier: MIT */
/*
 * sp_encode.c - cutting a text into chunks and pieces, for the caches of bpe_encode.c.
 *
 * A chunk of text is cut (sp_cut.h), and its pieces are encoded where they are in memory. The last piece of a chunk may
 * go on after it, so the next chunk begins with it. A piece that is longer than a chunk is merged straight to the
 * output.
 *
 * Text cannot be read unchanged where a space is put before it, or where it contains "▁" itself, which is the same as a
 * space to these vocabularies. Then it is copied first, a block at a time: a small block for the space, which grows
 * until a place to cut is found, and larger blocks for "▁".
 */
#include "sp_encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

/* ---- the spaces of a text as SentencePiece's models see them ---- */

bool sp_spaces_copy(struct bytes_buffer *block, const uint8_t *text, size_t count)
{
    if (!bytes_reserve(block, count + 8))
        return false;
    const uint8_t *end = text + count;
    while (text < end) {
        const uint8_t *mark = memchr(text, 0xE2, (size_t)(end - text));
        size_t plain = mark ? (size_t)(mark - text) : (size_t)(end - text);
        memcpy(block->bytes + block->count, text, plain);
        block->count += plain;
        text += plain;
        if (!mark)
            break;
        if (end - text >= 3 && text[1] == 0x96 && text[2] == 0x81) {
            block->bytes[block->count++] = ' ';
            text += 3;
        } else {
            block->bytes[block->count++] = *text++;
        }
    }
    return true;
}

/* Returns the high bits of the bytes that are spaces. */
static inline uint64_t space_bits(uint64_t eight)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7F, other = eight ^ 0x2020202020202020;
    return ~(((other & low) + low) | other | low);
}

/* Appends the text without the spaces that are removed. */
static void strip(struct bytes_buffer *into, bool escape, const uint8_t *text, uint64_t count)
{
    const uint8_t *at = text, *end = at + count;
    uint8_t *made = into->bytes + into->count; /* not in *into, which bytes that are stored could be */
    for (bool after_space = true; at < end; at++) {
        while (end - at >= 8) { /* eight bytes in which no space comes after another one */
            const uint64_t eight = load64(at), spaces = space_bits(eight);
            if (spaces & (spaces << 8 | (uint64_t)after_space << 7))
                break;
            memcpy(made, at, 8);
            made += 8;
            at += 8;
            after_space = spaces >> 63;
        }
        if (at == end)
            break;
        if (!after_space || *at != ' ')
            *made++ = *at;
        after_space = *at == ' ';
    }
    for (;;) {
        if (made > into->bytes && made[-1] == ' ')
            made--;
        else if (escape && made - into->bytes >= 3 && !memcmp(made - 3, SP_MARK, 3))
            made -= 3;
        else
            break;
    }
    into->count = (size_t)(made - into->bytes);
}

bool sp_spaces_arrange(struct bytes_buffer *into, const struct sp_model *model, const uint8_t **text, uint64_t *count)
{
    if (!model->remove_spaces && !model->suffix)
        return true;
    into->count = 0;
    if (!bytes_reserve(into, (size_t)*count + 1))
        return false;
    if (model->remove_spaces) {
        uint64_t spaces = 0;
        while (spaces < *count && (*text)[spaces] == ' ')
            spaces++;
        strip(into, model->escape, *text, *count);
        if (model->suffix && (spaces < *count || !*count))
            into->bytes[into->count++] = ' ';
    } else {
        (void)bytes_append(into, *text, (size_t)*count); /* there is room */
        into->bytes[into->count++] = ' ';
    }
    *text = into->bytes;
    *count = into->count;
    return true;
}

/* ---- encoding ---- */

#define BLOCK_FIRST 2048               /* bytes that are copied to put a space before them */
#define BLOCK_MARKED ((size_t)1 << 16) /* bytes that are copied because U+2581 is among them */
#define SCRATCH_KEPT ((size_t)1 << 20) /* a larger scratch is freed after the text */

struct output {
    uint8_t *tokens;
    uint64_t made, room; /* in tokens */
    uint32_t width;      /* bytes of a token */
};

/* Encodes pieces from the start of the text on, up to a chunk. whole: the text ends with these bytes; otherwise the
 * last piece is left out, since it may go on. Returns how many bytes are done; 0: a U+2581 is among them, or (not
 * whole) all bytes may be one piece. */
static size_t encode_some(struct sp_state *state, const uint8_t *text, size_t count, bool whole, struct output *out)
{
    const struct sp_model *model = state->model;
    uint64_t *starts = state->pieces->chunk.starts;
    size_t bytes = min64(count, SCAN_BYTES);
    state->pieces->text_end = text + count;
    if (state->cut(&model->cuts, &model->head, text, bytes, count, starts))
        return 0;
    if (bytes < count || !whole) {
        size_t word = (bytes - 1) / 64;
        while (word && !starts[word])
            word--;
        const uint32_t last = 63 - (uint32_t)__builtin_clzll(starts[word]);
        const size_t end = 64 * word + last;
        if (!end) {
            bool marked = false;
            const size_t found =
                sp_cut_end(state->cut, &model->cuts, &model->head, text, bytes, count, starts, &marked);
            if (!found || (found == count && !whole))
                return 0;
            struct sp_ids ids = {.tokens = out->tokens + out->made * out->width, .wide = model->head.wide};
            if (!sp_merge_long(model, &state->pieces->scratch, text, found, &ids))
                state->pieces->lacks_memory = true;
            state->pieces->largest = max64(state->pieces->largest, ids.largest);
            out->made += ids.count;
            return found;
        }
        starts[word] &= ~((uint64_t)1 << last);
        bytes = end;
    }
    out->made +=
        bpe_encode_starts(state->pieces, text, bytes, out->tokens + out->made * out->width, out->room - out->made);
    return bytes;
}

/* Returns how many bytes of text became the first `done` bytes of its copy. */
static size_t bytes_before(const uint8_t *text, size_t count, size_t done)
{
    size_t at = 0;
    while (done) {
        const uint8_t *mark = memchr(text + at, 0xE2, min64(count - at, done));
        if (!mark)
            return at + done;
        done -= (size_t)(mark - (text + at));
        at = (size_t)(mark - text);
        if (!done)
            break;
        at += count - at >= 3 && text[at + 1] == 0x96 && text[at + 2] == 0x81 ? 3 : 1;
        done--;
    }
    return at;
}

/* Does the same for a copy of up to `size` bytes of the text, with a space before it if `prefix`. Returns how many
 * bytes of the text are done; 0: memory ran out. */
static size_t encode_copied(struct sp_state *state, const uint8_t *text, size_t count, bool prefix, size_t size,
                            struct output *out)
{
    for (;; size *= 2) {
        struct bytes_buffer *block = &state->block;
        size_t taken = min64(count, size), done = 0, some = 1;
        while (taken < count && taken > 1 && (text[taken] & 0xC0) == 0x80)
            taken--;
        block->count = 0;
        if ((prefix && !bytes_append(block, " ", 1)) ||
            (state->model->escape ? !sp_spaces_copy(block, text, taken) : !bytes_append(block, text, taken)))
            return 0;
        while (some && done < block->count) {
            some = encode_some(state, block->bytes + done, block->count - done, taken == count, out);
            done += some;
        }
        /* If only the space was encoded, nothing of the text is done; but it is known that the text is cut off the
         * space. */
        if (done > (size_t)prefix || (done && taken == count))
            return state->model->escape ? bytes_before(text, taken, done - prefix) : done - prefix;
        if (done)
            return encode_copied(state, text, count, false, size, out);
    }
}

/* Returns the token that the whole text is although merging does not give it, or BPE_NONE. */
static uint32_t whole_of(struct sp_state *state, const uint8_t *text, uint64_t count, bool prefix)
{
    if (!state->model->whole_longest || count > 3 * (uint64_t)state->model->whole_longest)
        return BPE_NONE;
    state->block.count = 0;
    if ((prefix && !bytes_append(&state->block, " ", 1)) || !sp_spaces_copy(&state->block, text, (size_t)count))
        return BPE_NONE;
    return sp_whole(state->model, state->block.bytes, state->block.count);
}

/* Makes several unk in a row one. Returns the number of tokens that are left. */
static uint64_t fuse(const struct sp_model *model, void *tokens, uint64_t count)
{
    uint64_t kept = 0;
    uint32_t before = BPE_NONE;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t id = model->head.wide ? ((uint32_t *)tokens)[i] : ((uint16_t *)tokens)[i];
        if (id == model->unk && before == id)
            continue;
        before = id;
        if (model->head.wide)
            ((uint32_t *)tokens)[kept++] = id;
        else
            ((uint16_t *)tokens)[kept++] = (uint16_t)id;
    }
    return kept;
}

enum tokmap_status sp_encode(struct sp_state *state, const uint8_t *text, uint64_t count, bool prefix, void *tokens,
                             uint64_t room, uint64_t *written, struct tokmap_error *error)
{
    const struct sp_model *model = state->model;
    struct output out = {tokens, 0, room, model->head.wide ? 4 : 2};
    bool lacks_memory = false;
    assert(room >= count + prefix + model->suffix);
    *written = 0;
    state->pieces->largest = 0;
    if (!sp_spaces_arrange(&state->stripped, model, &text, &count))
        return error_set_memory(error, "the spaces of a text", count);
    if (!count)
        return TOKMAP_OK; /* an empty text gets no space before it either */
    const uint32_t whole = whole_of(state, text, count, prefix);
    if (whole != BPE_NONE) {
        if (model->head.wide)
            *(uint32_t *)tokens = whole;
        else
            *(uint16_t *)tokens = (uint16_t)whole;
        *written = 1;
        state->pieces->largest = whole;
        return TOKMAP_OK;
    }
    for (uint64_t at = 0; at < count && !lacks_memory && !bpe_scratch_stops(&state->pieces->scratch);) {
        size_t done = prefix ? 0 : encode_some(state, text + at, (size_t)(count - at), true, &out);
        if (!done) {
            done = encode_copied(state, text + at, (size_t)(count - at), prefix, prefix ? BLOCK_FIRST : BLOCK_MARKED,
                                 &out);
            lacks_memory = !done;
        }
        prefix = false;
        at += done;
    }
    bytes_trim(&state->block);
    bytes_trim(&state->stripped);
    if (state->pieces->scratch.bytes > SCRATCH_KEPT) {
        free(state->pieces->scratch.memory);
        state->pieces->scratch.memory = NULL;
        state->pieces->scratch.bytes = 0;
    }
    *written = model->fuse_unk && !model->byte_fallback ? fuse(model, tokens, out.made) : out.made;
    state->pieces->lacks_memory |= lacks_memory;
    return bpe_state_check(state->pieces, count, error);
}

enum tokmap_status sp_state_begin(struct sp_state **out, size_t bytes, const struct sp_model *model,
                                  enum cpu_variant variant, struct tokmap_error *error)
{
    struct sp_state *state = calloc(1, bytes);
    *out = NULL;
    if (!state)
        return error_set_memory(error, "the state of a tokenizer", bytes);
    state->model = model;
    state->cut = sp_cut_variant(variant);
    const enum tokmap_status status = bpe_state_new(&state->pieces, &model->head, variant, error);
    if (status)
        free(state);
    else
        *out = state;
    return status;
}

enum tokmap_status sp_state_new(struct sp_state **state, const struct sp_model *model, enum cpu_variant variant,
                                struct tokmap_error *error)
{
    const enum tokmap_status status = sp_state_begin(state, sizeof **state, model, variant, error);
#if defined(__x86_64__)
    if (!status && variant == CPU_VBMI && !model->defined_count && model->tied != BPE_NONE)
        (*state)->pieces->merge_many = sp_merge_many_vbmi;
#endif
    return status;
}

void sp_state_free(struct sp_state *state)
{
    if (!state)
        return;
    bpe_state_free(state->pieces);
    bytes_free(&state->block);
    bytes_free(&state->stripped);
    free(state);
}
