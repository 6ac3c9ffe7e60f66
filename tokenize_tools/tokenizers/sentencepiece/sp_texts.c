/* SPDX-License-Identifier: MIT */
/* sp_texts.c - what a vocabulary file says of texts and characters, checked; see sp_texts.h. */
#include "sp_texts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"

enum tokmap_status sp_no_memory(const struct sp_builder *builder)
{
    return error_set_memory(builder->error, "a vocabulary", (uint64_t)builder->source->vocabulary * 64);
}

/* ---- texts ---- */

/* Copies a text with spaces for "▁". Returns the bytes written. */
static uint32_t without_marks(const uint8_t *text, uint32_t count, uint8_t *into)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < count;) {
        const bool mark = text[i] == (uint8_t)SP_MARK[0] && count - i >= 3 && !memcmp(text + i, SP_MARK, 3);
        into[made++] = mark ? ' ' : text[i];
        i += mark ? 3 : 1;
    }
    return made;
}

enum tokmap_status sp_texts_read(struct sp_builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    const uint32_t total = source->offsets[source->vocabulary];
    model->head.bytes = os_memory_large((size_t)total + 16);
    model->head.offsets = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *model->head.offsets);
    builder->bytes = os_memory_large((size_t)total + 16);
    builder->offsets = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *builder->offsets);
    if (!model->head.bytes || !model->head.offsets || !builder->bytes || !builder->offsets)
        return sp_no_memory(builder);
    memset(model->head.byte_ids, 0xFF, sizeof model->head.byte_ids);
    uint32_t decoded = 0, matched = 0, bytes_found = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint8_t *text = source->bytes + source->offsets[id];
        const uint32_t count = source->offsets[id + 1] - source->offsets[id];
        const enum sp_kind kind = sp_kind_of(source, id);
        const int byte = source->byte_fallback && (source->merges || kind == SP_BYTE) ? byte_named(text, count) : -1;
        if (kind == SP_BYTE && byte < 0)
            return error_set(builder->error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "pieces: piece %" PRIu32 " has the type BYTE, but %s; the file is damaged", id,
                             source->byte_fallback ? "its text does not name a byte, as <0x0A> does"
                                                   : "trainer_spec.byte_fallback is false");
        model->head.offsets[id] = decoded;
        builder->offsets[id] = matched;
        if (byte >= 0) {
            bytes_found += model->head.byte_ids[byte] == BPE_NONE;
            model->head.byte_ids[byte] = id;
            model->head.bytes[decoded++] = (uint8_t)byte;
            continue;
        }
        if (kind == SP_CONTROL || kind == SP_UNKNOWN || (source->unk == id && !source->merges))
            continue;
        const uint32_t bytes = without_marks(text, count, model->head.bytes + decoded);
        decoded += bytes;
        if (!source->escape) {
            memcpy(builder->bytes + matched, text, count);
            matched += count;
        } else if (!memchr(text, ' ', count)) { /* with `escape` no text becomes a token that has a space */
            memcpy(builder->bytes + matched, model->head.bytes + decoded - bytes, bytes);
            matched += bytes;
        }
    }
    model->head.offsets[source->vocabulary] = decoded;
    builder->offsets[source->vocabulary] = matched;
    memset(model->head.bytes + decoded, 0, 16);
    memset(builder->bytes + matched, 0, 16);
    model->byte_fallback = bytes_found != 0;
    if (bytes_found < 256 && source->scores && source->byte_fallback)
        return error_set(builder->error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                         "trainer_spec.byte_fallback is true, but the vocabulary has only %" PRIu32
                         " of the 256 pieces for "
                         "bytes; the file is damaged",
                         bytes_found);
    return TOKMAP_OK;
}

/* ---- symbols ---- */

/* Checks that each character without a token has ids that do not depend on its neighbors. A byte needs no token if no
 * such character has it: bytes of ASCII whose character is a token (Gemma has "\t" but not <0x09>), and bytes that are
 * not part of any character. */
static enum tokmap_status check_unknown(const struct sp_builder *builder)
{
    const struct sp_model *model = builder->model;
    for (uint32_t byte = 0; byte < 0xF5 && model->byte_fallback; byte++)
        if (model->head.byte_ids[byte] == BPE_NONE &&
            (byte < 0x80 ? !model->atoms[byte] : byte != 0xC0 && byte != 0xC1))
            return error_set(
                builder->error, TOKMAP_ERROR_UNSUPPORTED, builder->source->path, TOKMAP_NO_OFFSET,
                "byte_fallback: the vocabulary has tokens for some bytes but not <0x%02X>, so the ids of characters "
                "with this byte would depend on their neighbors, which is not supported",
                byte);
    if (!model->byte_fallback && model->unk >= builder->source->vocabulary)
        return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, builder->source->path, TOKMAP_NO_OFFSET,
                         "unk_token: the vocabulary has neither tokens for bytes nor an unknown token, so characters "
                         "without a token would be lost, which is not supported");
    return TOKMAP_OK;
}

enum tokmap_status sp_atoms_read(struct sp_builder *builder)
{
    struct sp_model *model = builder->model;
    const uint32_t vocabulary = builder->source->vocabulary;
    void *atoms = NULL;
    assert(builder->offsets && !model->atoms);
    uint32_t length;
    if (os_memory_new(SP_CODES * sizeof *model->atoms, false, &atoms))
        return sp_no_memory(builder);
    model->atoms = atoms;
    model->symbols = vocabulary;
    for (uint32_t id = 0; id < vocabulary; id++) {
        const uint8_t *text = sp_text(builder, id);
        const uint32_t count = sp_text_bytes(builder, id);
        /* SentencePiece takes a character whose piece is UNUSED as one that has no piece. */
        if (count && count <= 4 && sp_kind_of(builder->source, id) != SP_UNUSED && sp_is_character(text, count))
            sp_atom_set(builder, sp_character(text, count, &length), id);
    }
    if (builder->source->escape && !model->atoms[' '])
        return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, builder->source->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has no token for the space ('\xE2\x96\x81'), which is not supported");
    const enum tokmap_status status = check_unknown(builder);
    if (status || builder->source->merges)
        return status;
    /* With scores, characters that are not pieces take part in merges too: they become symbols. */
    for (uint32_t id = 0; id < vocabulary; id++)
        for (uint32_t at = builder->offsets[id]; at < builder->offsets[id + 1]; at += length) {
            const uint32_t code = sp_character(builder->bytes + at, builder->offsets[id + 1] - at, &length);
            if (!model->atoms[code]) {
                if (model->symbols + 2 >= BPE_IDS)
                    return error_set(builder->error, TOKMAP_ERROR_LIMIT, builder->source->path, TOKMAP_NO_OFFSET,
                                     "the vocabulary has more pieces and characters than the %u that are supported",
                                     BPE_IDS);
                sp_atom_set(builder, code, model->symbols++);
            }
        }
    return TOKMAP_OK;
}

/* ---- borders ---- */

void sp_border_note(struct sp_builder *builder, const uint8_t *text, uint32_t at, uint32_t count)
{
    struct sp_model *model = builder->model;
    assert(at && at < count);
    const uint32_t before = (uint32_t)code_point_before(text, at);
    const uint8_t left = text[before], right = text[at];
    if (builder->source->split && right == ' ')
        return;
    builder->relation.bits[left][right / 64] |= (uint64_t)1 << (right % 64);
    if (left < 0xE0 || at - before != 3 || right < 0xE0 || count - at < 3)
        return;
    uint64_t six = 0;
    memcpy(&six, text + before, 6);
    const uint32_t bit = bpe_join_hash(six);
    model->head.joins[bit / 64] |= (uint64_t)1 << (bit % 64);
    model->cuts.tall = true;
}
