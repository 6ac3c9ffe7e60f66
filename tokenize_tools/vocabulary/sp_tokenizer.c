/* sp_tokenizer.c - makes a tokenizer of a SentencePiece model. */
#include "sp_tokenizer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "sentencepiece/sp_engine.h"
#include "sp_file.h"
#include "tokenizer/pipeline.h"
#include "vocabulary_name.h"

/* Makes a special token of each control piece. They are found in text only if the caller asks for that;
 * SentencePiece itself never finds them. The text between two of them is encoded as a text of its own. */
static enum tokmap_status add_controls(struct pipeline_parts *parts, const struct sp_file *file,
                                       struct tokmap_error *error)
{
    const struct sp_source *source = &file->source;
    struct added_token *tokens = calloc((size_t)file->control_count + 1, sizeof *tokens);
    if (!tokens)
        return error_set_memory(error, "special tokens", file->control_count * sizeof *tokens);
    uint32_t count = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        if (source->kinds[id] != SP_CONTROL)
            continue;
        const uint8_t *text = source->bytes + source->offsets[id];
        const uint32_t bytes = source->offsets[id + 1] - source->offsets[id];
        assert(count < file->control_count);
        tokens[count++] = (struct added_token){.text = text, .bytes = bytes, .id = id, .match = text,
                                               .match_bytes = bytes, .special = true};
    }
    const enum tokmap_status status = added_tokens_new(&parts->added, tokens, count, source->path, error);
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
    decoder->steps[decoder->count++] = (struct decode_step){.kind = DECODE_SENTENCEPIECE,
                                                            .trims_front = file->source.prefix != SP_PREFIX_NEVER,
                                                            .trims_spaces = file->source.remove_spaces};
    decoder->vocabulary = file->source.vocabulary;
    decoder->texts = file->bytes;
    decoder->offsets = file->offsets;
    decoder->kinds = file->kinds;
    for (uint32_t id = 0; id < decoder->vocabulary; id++)
        decoder->kinds[id] = decoder->kinds[id] == SP_BYTE ? DECODE_BYTE : DECODE_TEXT;
    parts->decoder_given = true;
    file->bytes = NULL;
    file->offsets = NULL;
    file->kinds = NULL;
}

enum tokmap_status sp_tokenizer_new(struct tokenizer **tokenizer, const char *path, const uint8_t *bytes,
                                    uint64_t count, const struct tokmap_tokenizer_options *options,
                                    struct tokmap_error *error)
{
    struct pipeline_parts parts = {.form = "SentencePiece model", .ids_per_byte_most = 2, .engine_cuts = true};
    struct sp_file file;
    assert(path && bytes && options);
    *tokenizer = NULL;
    enum tokmap_status status = sp_file_read(&file, path, bytes, count, error);
    if (!status)
        status = sp_engine_new(&parts.engine, &file.source, error);
    if (!status)
        status = add_controls(&parts, &file, error);
    if (!status)
        status = add_unknown(&parts, &file, error);
    if (!status) {
        (void)snprintf(parts.scanner, sizeof parts.scanner, "between characters that no token joins");
        add_decoder(&parts, &file);
        parts.vocabulary = file.source.vocabulary;
        parts.eod = pipeline_usual_eod(parts.added);
        parts.bos = pipeline_usual_bos(parts.added);
        memcpy(parts.fingerprint, file.fingerprint, sizeof parts.fingerprint);
        vocabulary_name(&parts, path);
        status = pipeline_new(tokenizer, &parts, options->special, path, error);
    }
    pipeline_parts_free(&parts);
    sp_file_free(&file);
    return status;
}
