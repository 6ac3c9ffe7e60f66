/* SPDX-License-Identifier: MIT */
/*
 * sp_file.c - parses a ModelProto and makes a tokenizer of it. Only fields that decide ids are read; unknown fields are
 * skipped, as the rules of protocol buffers ask. Every length is checked against the rest of the message that contains
 * it.
 *
 * The file is walked twice: first to count pieces and to read the settings, which may come after the pieces; then to
 * copy the pieces into arrays of the right size.
 */
#include "sp_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/text_places.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "piece_rules.h"
#include "sentencepiece/sp_engine.h"
#include "sentencepiece/sp_model.h"
#include "sentencepiece/unigram_build.h"
#include "text/utf8.h"
#include "vocabulary_file.h"

#define PIECE_BYTES_MOST 65535u
/* The same for pieces that merges make: each part of such a piece is looked up, so the work grows with the square of
 * its length. SentencePiece learns pieces of at most 16 characters, if its user asks for nothing else. */
#define MERGED_BYTES_MOST 2048u

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* The part of a message that has not been read yet. */
struct message {
    const uint8_t *at, *end;
};

struct sp_file {
    struct sp_source source; /* complete; points to the arrays of `pieces` */
    struct piece_set pieces;
    const struct piece_rule *rule; /* of the ids, or NULL */
    uint64_t model_type;
    bool dummy_prefix, suffix, has_denormalizer;
    struct message charsmap; /* within the bytes of the file; empty: none */
    const uint8_t
        *unk_surface; /* the text of the unknown token when decoded, within the bytes of the file; NULL: the default */
    uint32_t unk_surface_bytes;
    uint8_t fingerprint[16]; /* of all that decides ids */
    uint8_t found[16];       /* the same with what a rule adds that keeps ids */
};

struct field {
    uint32_t number;
    enum wire wire;
    uint64_t value;         /* of WIRE_VARINT, WIRE_32 and WIRE_64 */
    struct message content; /* of WIRE_BYTES */
};

static bool read_varint(struct message *message, uint64_t *value)
{
    assert(message->at <= message->end);
    *value = 0;
    for (uint32_t shift = 0; shift < 70 && message->at < message->end; shift += 7) {
        const uint64_t byte = *message->at++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* Reads the next field of a message that is not at its end. Returns false if the message is damaged. */
static bool read_field(struct message *message, struct field *field)
{
    uint64_t key;
    if (!read_varint(message, &key) || key >> 3 == 0 || key >> 3 > 0x1FFFFFFF)
        return false;
    const uint64_t left = (uint64_t)(message->end - message->at);
    *field = (struct field){.number = (uint32_t)(key >> 3), .wire = (enum wire)(key & 7)};
    switch (key & 7) {
    case WIRE_VARINT:
        return read_varint(message, &field->value);
    case WIRE_64:
        if (left < 8)
            return false;
        field->value = load64(message->at);
        message->at += 8;
        return true;
    case WIRE_32:
        if (left < 4)
            return false;
        field->value = load32(message->at);
        message->at += 4;
        return true;
    case WIRE_BYTES:
        if (!read_varint(message, &key) || key > (uint64_t)(message->end - message->at))
            return false;
        field->content = (struct message){message->at, message->at + key};
        message->at += key;
        return true;
    default: /* groups; no version of SentencePiece writes them */
        return false;
    }
}

/* Returns whether a field has this number and this wire type. */
static bool is(const struct field *field, uint32_t number, enum wire wire)
{
    return field->number == number && field->wire == wire;
}

/* ---- messages of a model; the numbers of fields are those of sentencepiece_model.proto ---- */

struct piece {
    struct message text;
    float score;
    uint64_t kind;
};

struct reader {
    struct sp_file *file;
    const uint8_t *start;
    struct tokmap_error *error;
};

/* A model of characters is BPE without merges. */
enum model_type { TYPE_UNIGRAM = 1, TYPE_BPE = 2, TYPE_CHAR = 4, TYPES = 5 };

static bool read_piece(struct message message, struct piece *piece)
{
    struct field field;
    *piece = (struct piece){.text = {message.at, message.at}, .kind = SP_NORMAL};
    while (message.at < message.end) {
        if (!read_field(&message, &field))
            return false;
        if (is(&field, 1, WIRE_BYTES)) {
            piece->text = field.content;
        } else if (is(&field, 2, WIRE_32)) {
            const uint32_t bits = (uint32_t)field.value;
            memcpy(&piece->score, &bits, sizeof bits);
        } else if (is(&field, 3, WIRE_VARINT)) {
            piece->kind = field.value;
        }
    }
    return true;
}

static bool read_trainer(struct reader *reader, struct message message)
{
    struct field field;
    while (message.at < message.end) {
        if (!read_field(&message, &field))
            return false;
        if (is(&field, 3, WIRE_VARINT)) {
            reader->file->model_type = field.value;
        } else if (is(&field, 24, WIRE_VARINT)) {
            reader->file->suffix = field.value != 0;
        } else if (is(&field, 44, WIRE_BYTES)) {
            reader->file->unk_surface = field.content.at;
            reader->file->unk_surface_bytes = (uint32_t)(field.content.end - field.content.at);
        } else if (is(&field, 35, WIRE_VARINT)) {
            reader->file->source.byte_fallback = field.value != 0;
        }
    }
    return true;
}

static bool read_normalizer(struct reader *reader, struct message message, bool denormalizer)
{
    struct field field;
    while (message.at < message.end) {
        if (!read_field(&message, &field))
            return false;
        if (is(&field, 2, WIRE_BYTES)) {
            if (denormalizer)
                reader->file->has_denormalizer = field.content.at != field.content.end;
            else
                reader->file->charsmap = field.content;
        } else if (denormalizer) {
            continue;
        } else if (is(&field, 3, WIRE_VARINT)) {
            reader->file->dummy_prefix = field.value != 0;
        } else if (is(&field, 4, WIRE_VARINT)) {
            reader->file->source.remove_spaces = field.value != 0;
        } else if (is(&field, 5, WIRE_VARINT)) {
            reader->file->source.escape = field.value != 0;
        }
    }
    return true;
}

static enum tokmap_status damaged(const struct reader *reader, const uint8_t *at)
{
    return error_set(reader->error, TOKMAP_ERROR_FORMAT, reader->file->source.path, (uint64_t)(at - reader->start),
                     "a field does not fit into its message; the file is damaged, or not a SentencePiece model");
}

static enum tokmap_status refused(const struct reader *reader, const char *what)
{
    return error_set(reader->error, TOKMAP_ERROR_UNSUPPORTED, reader->file->source.path, TOKMAP_NO_OFFSET,
                     "the model has %s, for which tokmap cannot reproduce ids exactly", what);
}

static enum tokmap_status count_pieces(struct reader *reader, struct message message, uint64_t *pieces, uint64_t *bytes)
{
    struct field field;
    *pieces = *bytes = 0;
    while (message.at < message.end) {
        const uint8_t *at = message.at;
        struct piece piece;
        bool good = read_field(&message, &field);
        if (good && is(&field, 1, WIRE_BYTES)) {
            good = read_piece(field.content, &piece);
            *pieces += 1;
            *bytes += good ? (uint64_t)(piece.text.end - piece.text.at) : 0;
        } else if (good && is(&field, 2, WIRE_BYTES)) {
            good = read_trainer(reader, field.content);
        } else if (good && (is(&field, 3, WIRE_BYTES) || is(&field, 5, WIRE_BYTES))) {
            good = read_normalizer(reader, field.content, field.number == 5);
        }
        if (!good)
            return damaged(reader, at);
    }
    return TOKMAP_OK;
}

static enum tokmap_status check_settings(const struct reader *reader)
{
    static const char *const types[TYPES] = {"0", "UNIGRAM", "BPE", "WORD", "CHAR"};
    const uint64_t type = reader->file->model_type;
    char what[96];
    if (type != TYPE_UNIGRAM && type != TYPE_BPE && type != TYPE_CHAR) {
        if (type < TYPES)
            snprintf(what, sizeof what, "trainer_spec.model_type %s instead of UNIGRAM, BPE, or CHAR", types[type]);
        else
            snprintf(what, sizeof what, "trainer_spec.model_type %" PRIu64, type);
        return refused(reader, what);
    }
    return TOKMAP_OK;
}

static enum tokmap_status check_piece(const struct reader *reader, const struct piece *piece, uint64_t id)
{
    const size_t count = (size_t)(piece->text.end - piece->text.at);
    uint32_t length = 0;
    if (!count || utf8_valid_prefix((const char *)piece->text.at, count) != count)
        return error_set(reader->error, TOKMAP_ERROR_FORMAT, reader->file->source.path,
                         (uint64_t)(piece->text.at - reader->start),
                         "the text of piece %" PRIu64 " is %s; the file is damaged", id, count ? "not UTF-8" : "empty");
    const bool merged = piece->kind == SP_NORMAL || piece->kind == SP_UNUSED;
    const uint32_t most = merged ? MERGED_BYTES_MOST : PIECE_BYTES_MOST;
    if (count > most)
        return error_set(
            reader->error, TOKMAP_ERROR_LIMIT, reader->file->source.path, (uint64_t)(piece->text.at - reader->start),
            "piece %" PRIu64 " has %zu bytes; the longest piece of its type that tokmap can read has %" PRIu32, id,
            count, most);
    if (piece->kind < SP_NORMAL || piece->kind > SP_BYTE)
        return refused(reader, "a piece of an unknown type");
    (void)sp_character(piece->text.at, count, &length);
    const bool reserved = piece->kind == SP_CONTROL || piece->kind == SP_UNKNOWN;
    const uint64_t type = reader->file->model_type;
    if (memchr(piece->text.at, 0, count))
        return refused(reader, "a piece that contains U+0000");
    if (type != TYPE_UNIGRAM && reserved && length == count)
        return refused(reader, "a control piece or an unknown piece that is a single character");
    if (type == TYPE_CHAR && merged && length != count)
        return refused(reader, "trainer_spec.model_type CHAR and a piece of several characters");
    if (piece->kind == SP_USER_DEFINED && reader->file->source.remove_spaces && memchr(piece->text.at, ' ', count))
        return refused(reader,
                       "a user-defined piece that contains a space, and normalizer_spec.remove_extra_whitespaces");
    if (piece->kind == SP_UNKNOWN && reader->file->source.unk != BPE_NONE)
        return error_set(reader->error, TOKMAP_ERROR_FORMAT, reader->file->source.path, TOKMAP_NO_OFFSET,
                         "pieces %" PRIu32 " and %" PRIu64 " both have the type UNKNOWN; the file is damaged",
                         reader->file->source.unk, id);
    return TOKMAP_OK;
}

static enum tokmap_status copy_pieces(struct reader *reader, struct message message)
{
    struct sp_file *file = reader->file;
    uint32_t id = 0, at = 0;
    struct field field;
    struct piece piece;
    while (message.at < message.end && read_field(&message, &field)) {
        if (!is(&field, 1, WIRE_BYTES) || !read_piece(field.content, &piece))
            continue;
        const enum tokmap_status status = check_piece(reader, &piece, id);
        if (status)
            return status;
        const size_t count = (size_t)(piece.text.end - piece.text.at);
        assert(id < file->source.vocabulary); /* both walks see the same pieces */
        memcpy(file->pieces.bytes + at, piece.text.at, count);
        file->pieces.offsets[id] = at;
        file->pieces.scores[id] = piece.score;
        file->pieces.kinds[id] = (uint8_t)piece.kind;
        if (piece.kind == SP_UNKNOWN)
            file->source.unk = id;
        at += (uint32_t)count;
        id++;
    }
    file->pieces.offsets[id] = at;
    return TOKMAP_OK;
}

/* Refuses two pieces with the same text, as SentencePiece does. */
static enum tokmap_status check_duplicates(const struct reader *reader)
{
    const struct sp_source *source = &reader->file->source;
    uint32_t duplicate;
    if (!text_places_duplicate(source->bytes, source->offsets, source->vocabulary, &duplicate))
        return error_set_memory(reader->error, "a vocabulary", source->vocabulary);
    return duplicate != BPE_NONE
               ? error_set(reader->error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                           "piece %" PRIu32 " has the same text as an earlier piece; the file is damaged", duplicate)
               : TOKMAP_OK;
}

static void fingerprint(const struct reader *reader, bool ruled, uint8_t into[16])
{
    struct sp_file *file = reader->file;
    const struct sp_source *source = &file->source;
    const uint8_t flags[] = {
        's', 'p', source->byte_fallback, source->escape, source->remove_spaces, (uint8_t)source->prefix};
    const uint8_t more[] = {(uint8_t)file->model_type, file->suffix};
    const struct hash_part parts[] = {
        {flags, sizeof flags},
        {file->pieces.offsets, ((size_t)source->vocabulary + 1) * sizeof *file->pieces.offsets},
        {file->pieces.bytes, file->pieces.offsets[source->vocabulary]},
        {file->pieces.scores, source->vocabulary * sizeof *file->pieces.scores},
        {file->pieces.kinds, source->vocabulary},
        {more, sizeof more},
        {file->charsmap.at, (size_t)(file->charsmap.end - file->charsmap.at)},
        {&file->pieces.known, sizeof file->pieces.known}};
    const bool has_more = file->model_type != TYPE_BPE || file->suffix || file->charsmap.at != file->charsmap.end;
    hash128_store(hash128_parts(parts, ruled ? 8 : has_more ? 7 : 5), into);
}

static void pieces_free(struct piece_set *pieces)
{
    free(pieces->bytes);
    free(pieces->offsets);
    free(pieces->scores);
    free(pieces->kinds);
}

static void point_to_pieces(struct sp_file *file)
{
    file->source.vocabulary = file->pieces.count;
    file->source.bytes = file->pieces.bytes;
    file->source.offsets = file->pieces.offsets;
    file->source.scores = file->pieces.scores;
    file->source.kinds = file->pieces.kinds;
}

static enum tokmap_status allocate(struct reader *reader, uint64_t pieces, uint64_t bytes)
{
    struct sp_file *file = reader->file;
    if (pieces > BPE_IDS - 2 || bytes > UINT32_MAX / 2)
        return error_set(reader->error, TOKMAP_ERROR_LIMIT, file->source.path, TOKMAP_NO_OFFSET,
                         "the model has %" PRIu64 " pieces of %" PRIu64
                         " bytes in total; tokmap can read at most %u pieces of 2 GiB",
                         pieces, bytes, BPE_IDS - 2);
    if (!pieces)
        return error_set(reader->error, TOKMAP_ERROR_FORMAT, file->source.path, TOKMAP_NO_OFFSET,
                         "the model has no pieces; the file is incomplete");
    file->pieces.bytes = malloc((size_t)bytes + 1);
    file->pieces.offsets = malloc(((size_t)pieces + 1) * sizeof *file->pieces.offsets);
    file->pieces.scores = malloc((size_t)pieces * sizeof *file->pieces.scores);
    file->pieces.kinds = malloc((size_t)pieces);
    if (!file->pieces.bytes || !file->pieces.offsets || !file->pieces.scores || !file->pieces.kinds)
        return error_set_memory(reader->error, "a vocabulary", bytes + pieces * 9);
    file->pieces.known = file->pieces.count = (uint32_t)pieces;
    point_to_pieces(file);
    return TOKMAP_OK;
}

/* Gives the pieces the ids of the rule. */
static enum tokmap_status renumber(struct sp_file *file, struct tokmap_error *error)
{
    struct piece_set made;
    file->pieces.unk = file->source.unk;
    const enum tokmap_status status =
        piece_rule_apply(file->rule, &made, &file->pieces, file->model_type == TYPE_BPE, file->source.path, error);
    pieces_free(&file->pieces);
    file->pieces = made;
    file->source.unk = made.unk;
    point_to_pieces(file);
    return status;
}

/* Reads a model, which must outlive *file, as must path. The caller calls sp_file_free() after success and after
 * failure. */
static enum tokmap_status sp_file_read(struct sp_file *file, const char *path, const uint8_t *bytes, uint64_t count,
                                       const struct piece_rule *rule, struct tokmap_error *error)
{
    const struct message all = {bytes, bytes + count};
    uint64_t pieces, text;
    memset(file, 0, sizeof *file);
    file->source.path = path;
    file->rule = rule;
    file->source.escape = true;
    file->source.fuse_unk = true;
    file->source.unk = BPE_NONE;
    file->source.remove_spaces = true;
    file->model_type = TYPE_UNIGRAM;
    file->dummy_prefix = true;
    file->charsmap = (struct message){bytes, bytes};
    struct reader reader = {.file = file, .start = bytes, .error = error};
    enum tokmap_status status = count_pieces(&reader, all, &pieces, &text);
    if (!status)
        status = check_settings(&reader);
    if (!status)
        status = allocate(&reader, pieces, text);
    if (!status)
        status = copy_pieces(&reader, all);
    if (!status)
        status = check_duplicates(&reader);
    if (!status && file->source.unk == BPE_NONE)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                           "no piece has the type UNKNOWN; the file is incomplete");
    file->source.prefix = file->dummy_prefix && !file->suffix ? SP_PREFIX_ALWAYS : SP_PREFIX_NEVER;
    file->source.suffix = file->dummy_prefix && file->suffix;
    const bool kept = piece_rule_keeps_ids(rule);
    if (!status && kept)
        fingerprint(&reader, false, file->fingerprint);
    if (!status && rule)
        status = renumber(file, error);
    if (!status)
        fingerprint(&reader, rule, kept ? file->found : file->fingerprint);
    return status;
}

static void sp_file_free(struct sp_file *file)
{
    pieces_free(&file->pieces);
    memset(file, 0, sizeof *file);
}

bool sp_file_is(const uint8_t *bytes, uint64_t count)
{
    struct message all = {bytes, bytes + count};
    struct field field;
    struct piece piece;
    return count && read_field(&all, &field) && is(&field, 1, WIRE_BYTES) && field.content.at != field.content.end &&
           *field.content.at == 0x0A && read_piece(field.content, &piece) && piece.text.at != piece.text.end;
}

/* ---- the tokenizer ---- */

/* Makes a special token of each control piece; with a rule, the unknown token is one. They are found in text only if
 * the caller asks for that; SentencePiece itself never finds them. The text between two of them is encoded as a text of
 * its own. */
static enum tokmap_status add_controls(struct pipeline_parts *parts, const struct sp_file *file,
                                       struct tokmap_error *error)
{
    const struct piece_set *pieces = &file->pieces;
    uint32_t count = 0;
    for (uint32_t id = 0; id < pieces->count; id++)
        count += pieces->kinds[id] == SP_CONTROL;
    struct added_token *tokens = calloc((size_t)count + 1, sizeof *tokens);
    if (!tokens)
        return error_set_memory(error, "special tokens", count * sizeof *tokens);
    count = 0;
    for (uint32_t id = 0; id < pieces->count; id++) {
        if (pieces->kinds[id] != SP_CONTROL)
            continue;
        const uint8_t *text = pieces->bytes + pieces->offsets[id];
        const uint32_t bytes = pieces->offsets[id + 1] - pieces->offsets[id];
        bool right;
        tokens[count++] = (struct added_token){.text = text,
                                               .bytes = bytes,
                                               .id = id,
                                               .match = text,
                                               .match_bytes = bytes,
                                               .lstrip = piece_rule_strips(file->rule, text, bytes, &right),
                                               .special = true};
        tokens[count - 1].rstrip = right;
    }
    const enum tokmap_status status = added_tokens_new(&parts->added, tokens, count, file->source.path, error);
    free(tokens);
    return status;
}

/* Sets the text that the unknown token is decoded to: that of the model, else SentencePiece's default. */
static enum tokmap_status add_unknown(struct pipeline_parts *parts, const struct sp_file *file,
                                      struct tokmap_error *error)
{
    static const uint8_t usual[] = " \xE2\x81\x87 ";
    const uint8_t *surface = file->unk_surface ? file->unk_surface : usual;
    const uint32_t bytes = file->unk_surface ? file->unk_surface_bytes : (uint32_t)sizeof usual - 1;
    parts->texts = malloc(sizeof *parts->texts);
    parts->text_bytes = malloc((size_t)bytes + 1);
    if (!parts->texts || !parts->text_bytes)
        return error_set_memory(error, "the text of the unknown token", bytes);
    memcpy(parts->text_bytes, surface, bytes);
    parts->texts[0] = (struct pipeline_text){.id = file->source.unk, .bytes = bytes, .text = parts->text_bytes};
    parts->text_count = 1;
    return TOKMAP_OK;
}

/* Makes SentencePiece's decoder. It takes over the texts and the kinds of the file's pieces. */
static void add_decoder(struct pipeline_parts *parts, struct sp_file *file)
{
    struct text_decoder *decoder = &parts->decoder;
    decoder->steps[decoder->count++] = (struct decode_step){
        .kind = DECODE_SENTENCEPIECE, .trims_front = file->dummy_prefix, .trims_spaces = file->source.remove_spaces};
    if (file->has_denormalizer)
        (void)snprintf(decoder->refused, sizeof decoder->refused,
                       "the model has denormalizer_spec.precompiled_charsmap, which decoding does not support");
    decoder->vocabulary = file->pieces.known;
    decoder->texts = file->pieces.bytes;
    decoder->offsets = file->pieces.offsets;
    decoder->kinds = file->pieces.kinds;
    for (uint32_t id = 0; id < decoder->vocabulary; id++)
        decoder->kinds[id] = decoder->kinds[id] == SP_BYTE ? DECODE_BYTE : DECODE_TEXT;
    parts->decoder_given = true;
    file->pieces.bytes = NULL;
    file->pieces.offsets = NULL;
    file->pieces.kinds = NULL;
}

static int by_text(const void *a, const void *b)
{
    return match_text_compare(a, b);
}

/* Makes a table of the user-defined pieces, which a charsmap leaves as they are. Their texts are those of the
 * decoder. */
static enum tokmap_status add_symbols(struct pipeline_parts *parts, const struct sp_file *file,
                                      struct tokmap_error *error)
{
    const struct sp_source *source = &file->source;
    size_t count = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        count += source->kinds[id] == SP_USER_DEFINED;
    if (!count)
        return TOKMAP_OK;
    parts->symbol_texts = malloc(count * sizeof *parts->symbol_texts);
    if (!parts->symbol_texts)
        return error_set_memory(error, "user-defined pieces", count * sizeof *parts->symbol_texts);
    count = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        if (source->kinds[id] == SP_USER_DEFINED)
            parts->symbol_texts[count++] = (struct match_text){file->pieces.bytes + source->offsets[id],
                                                               source->offsets[id + 1] - source->offsets[id]};
    qsort(parts->symbol_texts, count, sizeof *parts->symbol_texts, by_text);
    return match_table_new(&parts->symbols, parts->symbol_texts, count, source->path, error);
}

/* Makes the step that applies the charsmap. What SentencePiece does to spaces after it is the engine's. */
static enum tokmap_status add_normalizer(struct pipeline_parts *parts, const struct sp_file *file,
                                         struct tokmap_error *error)
{
    static const char field[] = "normalizer_spec.precompiled_charsmap";
    struct normalizer_step step = {.kind = NORMALIZE_CHARSMAP};
    if (file->charsmap.at == file->charsmap.end)
        return TOKMAP_OK;
    enum tokmap_status status =
        charsmap_new(&step.map, file->charsmap.at, (size_t)(file->charsmap.end - file->charsmap.at), file->source.path,
                     field, error);
    if (!status && file->source.remove_spaces && charsmap_makes_spaces(step.map))
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, file->source.path, TOKMAP_NO_OFFSET,
                           "%s makes several spaces of one character, and normalizer_spec.remove_extra_whitespaces is "
                           "true; tokmap cannot reproduce the ids exactly",
                           field);
    if (!status)
        status = add_symbols(parts, file, error);
    if (status) {
        charsmap_free(step.map);
        return status;
    }
    step.symbols = parts->symbols;
    step.marks_blank = file->source.suffix && file->source.remove_spaces;
    parts->normalizer.steps[parts->normalizer.count++] = step;
    return TOKMAP_OK;
}

/* Makes the engine of the model's type. */
static enum tokmap_status add_engine(struct pipeline_parts *parts, const struct sp_file *file,
                                     struct tokmap_error *error)
{
    const struct sp_source *source = &file->source;
    if (file->model_type != TYPE_UNIGRAM)
        return sp_engine_new(&parts->engine, source, error);
    double *scores = malloc(source->vocabulary * sizeof *scores);
    if (!scores)
        return error_set_memory(error, "a vocabulary", source->vocabulary * sizeof *scores);
    for (uint32_t id = 0; id < source->vocabulary; id++)
        scores[id] = (double)source->scores[id];
    const enum tokmap_status status =
        unigram_engine_new(&parts->engine,
                           &(struct unigram_source){.texts = *source,
                                                    .scores = scores,
                                                    .lost = file->pieces.count - file->pieces.known,
                                                    .unknown_named = file->pieces.unknown_named},
                           error);
    free(scores);
    if (source->byte_fallback)
        parts->ids_per_byte_most = UNIGRAM_IDS_PER_BYTE;
    return status;
}

enum tokmap_status sp_file_open(struct tokenizer **tokenizer, const char *path, const uint8_t *bytes, uint64_t count,
                                const struct piece_rule *rule, const struct tokmap_tokenizer_options *options,
                                struct tokmap_error *error)
{
    struct pipeline_parts parts = {.form = "SentencePiece model", .ids_per_byte_most = 2, .engine_cuts = true};
    struct sp_file file;
    assert(path && bytes && options);
    *tokenizer = NULL;
    enum tokmap_status status = sp_file_read(&file, path, bytes, count, rule, error);
    if (!status)
        status = add_engine(&parts, &file, error);
    if (!status)
        status = add_controls(&parts, &file, error);
    if (!status)
        status = add_unknown(&parts, &file, error);
    if (!status)
        status = add_normalizer(&parts, &file, error);
    if (!status) {
        (void)snprintf(parts.scanner, sizeof parts.scanner, "between characters that no token joins");
        add_decoder(&parts, &file);
        parts.vocabulary = file.pieces.known;
        parts.eod = pipeline_usual_eod(parts.added);
        parts.bos = pipeline_usual_bos(parts.added);
        memcpy(parts.fingerprint, file.fingerprint, sizeof parts.fingerprint);
        memcpy(parts.found, file.found, sizeof parts.found);
    }
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    sp_file_free(&file);
    return status;
}
