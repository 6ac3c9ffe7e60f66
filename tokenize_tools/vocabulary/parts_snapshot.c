/*
 * parts_snapshot.c - puts and gets the parts of a pipeline: the small ones as fields, from which the usual functions
 * make them again with all their checks, and the tables of the decoder as arrays.
 */
#include "parts_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_engine.h"
#include "common/bytes.h"
#include "sentencepiece/sp_engine.h"
#include "text/utf8.h"
#include "vocabulary_name.h"

#define TEXT_MOST UINT32_MAX /* bytes of a text of the file */

/* The forms, whose texts are static, in any order. */
static const char *const forms[] = {"rank file", "tokenizer.json", "tekken.json", "vocab.bpe and encoder.json",
                                    "SentencePiece model"};
#define FORMS (sizeof forms / sizeof forms[0])

enum engine_number { ENGINE_BPE, ENGINE_SENTENCEPIECE, ENGINES };

/* Requires a text that was got to be UTF-8, which loops over characters rely on. */
static void require_utf8(struct snapshot_reader *reader, const void *text, uint64_t bytes)
{
    if (!reader->failed)
        (void)snapshot_require(reader, utf8_valid_prefix(text, (size_t)bytes) == bytes);
}

/* ---- added tokens ---- */

static void added_put(const struct added_tokens *added, struct snapshot_writer *writer)
{
    const size_t count = added_tokens_count(added);
    snapshot_put(writer, count);
    for (size_t i = 0; i < count; i++) {
        const struct added_token *token = added_tokens_at(added, i);
        snapshot_put(writer, token->id);
        snapshot_put(writer, (uint64_t)token->single_word | (uint64_t)token->lstrip << 1 |
                                 (uint64_t)token->rstrip << 2 | (uint64_t)token->normalized << 3 |
                                 (uint64_t)token->special << 4 | (uint64_t)token->hidden << 5);
        snapshot_put_text(writer, token->text, token->bytes);
        snapshot_put_text(writer, token->match, token->match_bytes);
        snapshot_put_text(writer, token->decoded, token->decoded_bytes);
    }
}

static void token_get(struct added_token *token, struct snapshot_reader *reader, uint32_t vocabulary)
{
    uint64_t bytes, match_bytes, decoded_bytes;
    token->id = (uint32_t)snapshot_get(reader, vocabulary - 1);
    const uint64_t flags = snapshot_get(reader, 63);
    token->text = snapshot_get_text(reader, TEXT_MOST, &bytes);
    token->match = snapshot_get_text(reader, TEXT_MOST, &match_bytes);
    token->decoded = snapshot_get_text(reader, TEXT_MOST, &decoded_bytes);
    require_utf8(reader, token->text, bytes);
    require_utf8(reader, token->match, match_bytes);
    require_utf8(reader, token->decoded, decoded_bytes);
    token->bytes = (uint32_t)bytes;
    token->match_bytes = (uint32_t)match_bytes;
    token->decoded_bytes = (uint32_t)decoded_bytes;
    token->single_word = flags & 1;
    token->lstrip = flags >> 1 & 1;
    token->rstrip = flags >> 2 & 1;
    token->normalized = flags >> 3 & 1;
    token->special = flags >> 4 & 1;
    token->hidden = flags >> 5 & 1;
}

static void added_get(struct pipeline_parts *parts, struct snapshot_reader *reader)
{
    const uint64_t count = snapshot_get(reader, min64(parts->vocabulary, SNAPSHOT_MOST / 40));
    /* A token takes 40 bytes or more, so a wrong count cannot ask for much memory. */
    if (!snapshot_require(reader, count <= (uint64_t)(reader->end - reader->at) / 40))
        return;
    struct added_token *tokens = calloc((size_t)count + 1, sizeof *tokens);
    if (!snapshot_require(reader, tokens != NULL))
        return;
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        token_get(&tokens[i], reader, parts->vocabulary);
        (void)snapshot_require(reader, tokens[i].bytes && (!i || tokens[i].id > tokens[i - 1].id));
    }
    (void)snapshot_require(reader,
                           reader->failed || !added_tokens_new(&parts->added, tokens, (size_t)count, NULL, NULL));
    free(tokens);
}

/* ---- normalizer and pre-tokenizer ---- */

static void normalizer_put(const struct normalizer *normalizer, struct snapshot_writer *writer)
{
    snapshot_put(writer, normalizer->count);
    for (uint32_t i = 0; i < normalizer->count; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        writer->failed |= step->regex != NULL;
        snapshot_put(writer, step->kind);
        snapshot_put_text(writer, step->pattern, step->pattern ? step->pattern_bytes : 0);
        snapshot_put_text(writer, step->content, step->content ? step->content_bytes : 0);
    }
}

static void normalizer_get(struct normalizer *normalizer, struct snapshot_reader *reader)
{
    const uint64_t count = snapshot_get(reader, NORMALIZER_STEPS_MOST);
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        struct normalizer_step *step = &normalizer->steps[normalizer->count++];
        step->kind = (enum normalizer_kind)snapshot_get(reader, NORMALIZE_REPLACE);
        step->pattern = snapshot_get_copy(reader, TEXT_MOST, &step->pattern_bytes);
        step->content = snapshot_get_copy(reader, TEXT_MOST, &step->content_bytes);
        require_utf8(reader, step->pattern, step->pattern_bytes);
        require_utf8(reader, step->content, step->content_bytes);
        (void)snapshot_require(reader, step->kind != NORMALIZE_REPLACE || step->pattern_bytes);
    }
}

static void pretokenizer_put(const struct pretokenizer *pretokenizer, struct snapshot_writer *writer)
{
    snapshot_put(writer, pretokenizer->count);
    for (uint32_t i = 0; i < pretokenizer->count; i++) {
        const struct pretokenizer_step *step = &pretokenizer->steps[i];
        writer->failed |= step->regex != NULL;
        snapshot_put(writer, step->kind);
        snapshot_put(writer, step->behavior);
        snapshot_put(writer, step->invert);
        snapshot_put(writer, step->prefix_space);
        snapshot_put(writer, step->mapped);
        snapshot_put(writer, step->splits);
        snapshot_put(writer, step->prepend);
        snapshot_put_text(writer, step->literal, step->literal ? step->literal_bytes : 0);
        if (step->kind == STEP_RULES)
            snapshot_put_rules(writer, &step->rules);
    }
}

static void step_get(struct pretokenizer_step *step, struct snapshot_reader *reader)
{
    step->kind = (enum step_kind)snapshot_get(reader, STEP_NOTHING);
    step->behavior = (enum split_behavior)snapshot_get(reader, SPLIT_CONTIGUOUS);
    step->invert = snapshot_get_flag(reader);
    step->prefix_space = snapshot_get_flag(reader);
    step->mapped = snapshot_get_flag(reader);
    step->splits = snapshot_get_flag(reader);
    step->prepend = (enum step_prepend)snapshot_get(reader, PREPEND_ALWAYS);
    step->literal = snapshot_get_copy(reader, TEXT_MOST, &step->literal_bytes);
    require_utf8(reader, step->literal, step->literal_bytes);
    const bool literal = step->kind == STEP_LITERAL || step->kind == STEP_METASPACE;
    (void)snapshot_require(reader, step->kind != STEP_REGEX && (!literal || step->literal_bytes));
    if (step->kind == STEP_RULES)
        snapshot_get_rules(reader, &step->rules);
    if (!literal) {
        free(step->literal);
        step->literal = NULL;
        step->literal_bytes = 0;
    }
}

static void pretokenizer_get(struct pretokenizer *pretokenizer, struct snapshot_reader *reader)
{
    const uint64_t count = snapshot_get(reader, PRETOKENIZER_STEPS_MOST);
    for (uint64_t i = 0; i < count && !reader->failed; i++)
        step_get(&pretokenizer->steps[pretokenizer->count++], reader);
}

/* ---- the decoder ---- */

static void decoder_put(const struct text_decoder *decoder, struct snapshot_writer *writer)
{
    snapshot_put(writer, decoder->count);
    for (uint32_t i = 0; i < decoder->count; i++) {
        const struct decode_step *step = &decoder->steps[i];
        writer->failed |= step->regex != NULL;
        snapshot_put(writer, step->kind);
        snapshot_put_text(writer, step->pattern, step->pattern ? step->pattern_bytes : 0);
        snapshot_put_text(writer, step->content, step->content ? step->content_bytes : 0);
        snapshot_put(writer, step->character);
        snapshot_put(writer, step->start);
        snapshot_put(writer, step->stop);
        snapshot_put(writer, step->prepends);
        snapshot_put(writer, step->cleanup);
        snapshot_put(writer, step->trims_front);
        snapshot_put(writer, step->trims_spaces);
    }
    const uint32_t vocabulary = decoder->texts || decoder->kinds ? decoder->vocabulary : 0;
    const uint32_t texts = decoder->texts ? decoder->offsets[vocabulary] : 0;
    snapshot_put(writer, decoder->mapped);
    snapshot_put(writer, decoder->spelled_bytes);
    snapshot_put_text(writer, decoder->refused, strlen(decoder->refused));
    snapshot_put(writer, vocabulary);
    snapshot_put(writer, decoder->texts != NULL);
    snapshot_put(writer, decoder->kinds != NULL);
    snapshot_put(writer, texts);
    if (decoder->texts) {
        snapshot_put_array(writer, decoder->texts, texts);
        snapshot_put_array(writer, decoder->offsets, ((uint64_t)vocabulary + 1) * sizeof *decoder->offsets);
    }
    if (decoder->kinds)
        snapshot_put_array(writer, decoder->kinds, vocabulary);
}

static void decode_step_get(struct decode_step *step, struct snapshot_reader *reader)
{
    step->kind = (enum decode_kind)snapshot_get(reader, DECODE_BPE);
    step->pattern = snapshot_get_copy(reader, TEXT_MOST, &step->pattern_bytes);
    step->content = snapshot_get_copy(reader, TEXT_MOST, &step->content_bytes);
    require_utf8(reader, step->pattern, step->pattern_bytes);
    require_utf8(reader, step->content, step->content_bytes);
    step->character = (uint32_t)snapshot_get(reader, 0x10FFFF);
    step->start = snapshot_get(reader, UINT64_MAX);
    step->stop = snapshot_get(reader, UINT64_MAX);
    step->prepends = snapshot_get_flag(reader);
    step->cleanup = snapshot_get_flag(reader);
    step->trims_front = snapshot_get_flag(reader);
    step->trims_spaces = snapshot_get_flag(reader);
    (void)snapshot_require(reader, step->kind != DECODE_REPLACE || step->pattern_bytes);
}

/* Returns whether the text of each token is UTF-8: all of them together are, and none begins inside a character. */
static bool texts_are_utf8(const struct text_decoder *decoder)
{
    const uint32_t total = decoder->offsets[decoder->vocabulary];
    uint32_t wrong = 0;
    for (uint32_t id = 0; id < decoder->vocabulary && decoder->offsets[id] < total; id++)
        wrong |= (decoder->texts[decoder->offsets[id]] & 0xC0) == 0x80;
    return !wrong && utf8_valid_prefix((const char *)decoder->texts, total) == total;
}

static void decoder_tables_get(struct pipeline_parts *parts, struct snapshot_reader *reader)
{
    struct text_decoder *decoder = &parts->decoder;
    decoder->borrowed = true;
    decoder->vocabulary = (uint32_t)snapshot_get(reader, BPE_IDS);
    const bool has_texts = snapshot_get_flag(reader), has_kinds = snapshot_get_flag(reader);
    const uint64_t texts = snapshot_get(reader, UINT32_MAX);
    (void)snapshot_require(reader, decoder->vocabulary == (has_texts || has_kinds ? parts->vocabulary : 0));
    if (has_texts) {
        decoder->texts = snapshot_get_array(reader, texts, 1);
        decoder->offsets = snapshot_get_array(reader, (uint64_t)decoder->vocabulary + 1, sizeof *decoder->offsets);
        if (!reader->failed)
            (void)snapshot_require(reader, snapshot_offsets_rise(decoder->offsets, decoder->vocabulary, texts) &&
                                               texts_are_utf8(decoder));
    }
    if (has_kinds)
        decoder->kinds = snapshot_get_array(reader, decoder->vocabulary, 1);
    for (uint32_t id = 0; has_kinds && !reader->failed && id < decoder->vocabulary; id++)
        (void)snapshot_require(reader, decoder->kinds[id] <= DECODE_CONTROL);
}

static void decoder_get(struct pipeline_parts *parts, struct snapshot_reader *reader)
{
    struct text_decoder *decoder = &parts->decoder;
    uint64_t refused;
    const uint64_t count = snapshot_get(reader, DECODER_STEPS_MOST);
    for (uint64_t i = 0; i < count && !reader->failed; i++)
        decode_step_get(&decoder->steps[decoder->count++], reader);
    decoder->mapped = snapshot_get_flag(reader);
    decoder->spelled_bytes = snapshot_get_flag(reader);
    const uint8_t *text = snapshot_get_text(reader, sizeof decoder->refused - 1, &refused);
    memcpy(decoder->refused, text, (size_t)refused);
    decoder_tables_get(parts, reader);
    if (!reader->failed && !*decoder->refused)
        (void)snapshot_require(reader, text_decoder_growth(decoder) <= DECODER_GROWTH_MOST);
    parts->decoder_given = true; /* also one that pipeline_new() has made */
}

/* ---- texts of other ids ---- */

static void texts_put(const struct pipeline_parts *parts, struct snapshot_writer *writer)
{
    snapshot_put(writer, parts->text_count);
    for (uint32_t i = 0; i < parts->text_count; i++) {
        snapshot_put(writer, parts->texts[i].id);
        snapshot_put_text(writer, parts->texts[i].text, parts->texts[i].bytes);
    }
}

static void texts_get(struct pipeline_parts *parts, struct snapshot_reader *reader)
{
    const uint64_t count = snapshot_get(reader, parts->vocabulary);
    if (!snapshot_require(reader, count <= (uint64_t)(reader->end - reader->at) / 16) || !count)
        return;
    parts->texts = calloc((size_t)count, sizeof *parts->texts);
    if (!snapshot_require(reader, parts->texts != NULL))
        return;
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        struct pipeline_text *text = &parts->texts[parts->text_count++];
        uint64_t bytes;
        text->id = (uint32_t)snapshot_get(reader, parts->vocabulary - 1);
        text->text = snapshot_get_text(reader, TEXT_MOST, &bytes);
        text->bytes = (uint32_t)bytes;
        require_utf8(reader, text->text, bytes);
        (void)snapshot_require(reader, !i || text->id > text[-1].id);
    }
}

/* ---- all ---- */

/* Gets a text that ends with a zero byte; NULL if it is empty. */
static const char *words_get(struct snapshot_reader *reader, uint64_t most)
{
    uint64_t count;
    const char *text = (const char *)snapshot_get_text(reader, most, &count);
    return count && snapshot_require(reader, strnlen(text, (size_t)count) == count - 1) ? text : NULL;
}

static void words_put(const char *text, struct snapshot_writer *writer)
{
    snapshot_put_text(writer, text, text ? strlen(text) + 1 : 0);
}

void parts_put(const struct pipeline_parts *parts, struct snapshot_writer *writer)
{
    uint64_t form = 0;
    while (form < FORMS && strcmp(forms[form], parts->form) != 0)
        form++;
    writer->failed |= form == FORMS;
    snapshot_put(writer, form);
    words_put(parts->note, writer);
    snapshot_put(writer, parts->name_given);
    words_put(parts->name, writer);
    words_put(parts->scanner, writer);
    snapshot_put(writer, parts->vocabulary);
    snapshot_put(writer, parts->engine_cuts);
    snapshot_put(writer, parts->eod);
    snapshot_put(writer, parts->bos);
    snapshot_put_text(writer, parts->fingerprint, sizeof parts->fingerprint);
    snapshot_put(writer, parts->engine->kind->puts_space ? ENGINE_SENTENCEPIECE : ENGINE_BPE);
    added_put(parts->added, writer);
    normalizer_put(&parts->normalizer, writer);
    pretokenizer_put(&parts->pretokenizer, writer);
    decoder_put(&parts->decoder, writer);
    texts_put(parts, writer);
    parts->engine->kind->put(parts->engine, writer);
}

/* Whether an id is PIPELINE_NO_ID or one of the vocabulary's. */
static bool id_fits(const struct pipeline_parts *parts, uint32_t id)
{
    return id == PIPELINE_NO_ID || id < parts->vocabulary;
}

void parts_get(struct pipeline_parts *parts, struct snapshot_reader *reader, const char *path)
{
    parts->snapshot = reader->bytes;
    parts->form = forms[snapshot_get(reader, FORMS - 1)];
    parts->note = words_get(reader, 4096);
    parts->name_given = snapshot_get_flag(reader);
    const char *name = words_get(reader, sizeof parts->name);
    memcpy(parts->name, name ? name : "", name ? strlen(name) + 1 : 1);
    const char *scanner = words_get(reader, sizeof parts->scanner);
    memcpy(parts->scanner, scanner ? scanner : "", scanner ? strlen(scanner) + 1 : 1);
    parts->vocabulary = (uint32_t)snapshot_get(reader, BPE_IDS);
    parts->engine_cuts = snapshot_get_flag(reader);
    parts->eod = (uint32_t)snapshot_get(reader, UINT32_MAX);
    parts->bos = (uint32_t)snapshot_get(reader, UINT32_MAX);
    snapshot_get_exactly(reader, parts->fingerprint, sizeof parts->fingerprint);
    const uint64_t engine = snapshot_get(reader, ENGINES - 1);
    if (!snapshot_require(reader, parts->vocabulary && id_fits(parts, parts->eod) && id_fits(parts, parts->bos)))
        return;
    added_get(parts, reader);
    normalizer_get(&parts->normalizer, reader);
    pretokenizer_get(&parts->pretokenizer, reader);
    decoder_get(parts, reader);
    texts_get(parts, reader);
    if (reader->failed)
        return;
    parts->engine =
        engine == ENGINE_BPE ? bpe_engine_get(reader, parts->vocabulary) : sp_engine_get(reader, parts->vocabulary);
    parts->ids_per_byte_most = engine == ENGINE_BPE ? 1 : 2;
    snapshot_get_end(reader);
    /* An engine that is given pieces must take them. */
    if (snapshot_require(reader, parts->engine && (parts->engine_cuts || parts->engine->kind->encode_piece)) &&
        !parts->name_given)
        vocabulary_name(parts, path);
}
