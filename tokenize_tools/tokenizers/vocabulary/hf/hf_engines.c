/* SPDX-License-Identifier: MIT */
#include "hf_engines.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "hf_join.h"
#include "platform/os.h"
#include "sentencepiece/sp_engine.h"
#include "sentencepiece/unigram_build.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/byte_level.h"
#include "words/wp_encode.h"

#define BYTES_AN_ENTRY 32 /* of a Unigram file, or more */
#define SCORE_MOST 1e288  /* sums of 2^64 of them are finite */

static const char mark[] = "\xE2\x96\x81";
#define MARK 0x2581

static const struct bpe_merge no_merges[1];

/* ---- what all models share ---- */

/* Joins the texts of all ids in the order of ids, with room for 16 bytes after the last; an id without a token has an
 * empty text. The caller frees *bytes and *offsets (vocabulary + 1), on failure too. Returns false if it refuses the
 * file. */
static bool texts_make(struct json_file *file, const struct hf_model *model, uint32_t vocabulary, uint8_t **bytes,
                       uint32_t **offsets)
{
    size_t total = 16;
    for (uint32_t i = 0; i < model->vocabulary.count; i++)
        total += model->vocabulary.entries[i].bytes;
    if (total > UINT32_MAX)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "the tokens of the vocabulary have %zu bytes, but tokmap can read at "
                                "most 4 GiB; use a smaller vocabulary",
                                total - 16);
    *bytes = os_memory_large(total);
    *offsets = os_memory_large(((size_t)vocabulary + 1) * sizeof **offsets);
    if (!*bytes || !*offsets)
        return json_file_memory(file, "a vocabulary", total);
    uint32_t used = 0;
    for (uint32_t id = 0; id < vocabulary; id++) {
        const struct text_entry *entry = text_table_by_id(&model->vocabulary, id);
        (*offsets)[id] = used;
        if (entry)
            memcpy(*bytes + used, entry->text, entry->bytes);
        used += entry ? entry->bytes : 0;
    }
    (*offsets)[vocabulary] = used;
    return true;
}

/* Leaves the texts to the decoder of the file, which needs them as the file spells them; frees them if the file has no
 * decoder or is refused. */
static void texts_end(struct pipeline_parts *parts, bool good, uint8_t *bytes, uint32_t *offsets)
{
    if (good && parts->decoder_given) {
        parts->decoder.texts = bytes;
        parts->decoder.offsets = offsets;
        parts->decoder.vocabulary = parts->vocabulary;
    } else {
        free(bytes);
        free(offsets);
    }
}

/* Adds a token without a text to parts->texts, if the vocabulary has one: it decodes to nothing, and the engine does
 * not know it. Returns false if memory is lacking. */
static bool texts_empty(struct json_file *file, const struct hf_model *model, struct pipeline_parts *parts)
{
    static const uint8_t empty[1];
    const uint32_t id = text_table_find(&model->vocabulary, empty, 0);
    if (id == TEXT_NONE)
        return true;
    parts->texts = malloc(sizeof *parts->texts);
    if (!parts->texts)
        return json_file_memory(file, "a vocabulary", sizeof *parts->texts);
    parts->texts[0] = (struct pipeline_text){.id = id, .bytes = 0, .text = empty};
    parts->text_count = 1;
    return true;
}

/* Makes the fingerprint of a model: of its settings, then of the texts of its tokens and of what else it has by id. */
static void model_hash(struct pipeline_parts *parts, const struct hash_part settings[4], const uint8_t *bytes,
                       const uint32_t *offsets, const void *others, size_t other_bytes)
{
    const struct hash_part all[] = {settings[0],
                                    settings[1],
                                    settings[2],
                                    settings[3],
                                    {offsets, ((size_t)parts->vocabulary + 1) * sizeof *offsets},
                                    {bytes, offsets[parts->vocabulary]},
                                    {others, other_bytes}};
    hash128_store(hash128_parts(all, sizeof all / sizeof all[0]), parts->fingerprint);
}

/* Ends the joining of a model: gives the texts to the decoder, or frees them, and completes the fingerprint. */
static bool join_end(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts, bool good,
                     uint8_t *bytes, uint32_t *offsets)
{
    texts_end(parts, good, bytes, offsets);
    if (good)
        file->status = hf_fingerprint(parts, splits, NULL, file->error);
    return good && !file->status;
}

/*
 * ---- BPE of characters ----
 *
 * The mark is U+2581, which such models use in place of a space. Example of a plain file (Llama 2): the normalizer
 * prepends the mark and replaces every space by it. "a b" becomes "(mark)a(mark)b". The engine does the same by itself
 * while it reads the text (sp_source: prefix and escape), which saves a pass and a copy. Files that do something else
 * keep their normalizer and pre-tokenizer, and the engine encodes each piece as it is.
 */

static bool is_text(const uint8_t *bytes, size_t count, const char *text)
{
    return count == strlen(text) && !memcmp(bytes, text, count);
}

/* Plain normalizers do nothing, or replace spaces by the mark and perhaps prepend the mark (or a space, if the
 * replacement comes after). */
static bool normalizer_plain(const struct normalizer *normalizer)
{
    bool prepends = false, escapes = false;
    for (uint32_t i = 0; i < normalizer->count; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        const bool marks = is_text(step->content, step->content_bytes, mark);
        if (step->kind == NORMALIZE_PREPEND && !prepends &&
            (marks || (!escapes && is_text(step->content, step->content_bytes, " "))))
            prepends = true;
        else if (step->kind == NORMALIZE_REPLACE && !step->regex && !escapes && marks &&
                 is_text(step->pattern, step->pattern_bytes, " "))
            escapes = true;
        else
            return false;
    }
    return escapes || !prepends;
}

/* Sets the prefix and the escape of the engine from a plain normalizer, before or after hf_characters_spaces. */
static void normalizer_read(const struct normalizer *normalizer, struct sp_source *source)
{
    source->prefix = SP_PREFIX_NEVER;
    for (uint32_t i = 0; i < normalizer->count; i++)
        if (normalizer->steps[i].kind == NORMALIZE_PREPEND)
            source->prefix = SP_PREFIX_ALWAYS;
        else
            source->escape = true;
}

/* If added tokens are searched for in normalized text, the normalizer must run before the engine, which reads text
 * with spaces faster than text with marks. A plain normalizer leaves no spaces, and its marks stand for spaces only.
 * So the normalizer can make spaces where the file says marks, in texts and in tokens alike. The exception are
 * tokens that strip spaces, because they do not strip marks. */
bool hf_characters_spaces(struct normalizer *normalizer, const struct added_token *added, uint32_t count)
{
    if (!normalizer->count)
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (added[i].normalized && (added[i].lstrip || added[i].rstrip))
            return true;
    for (uint32_t i = 0; i < normalizer->count; i++) {
        struct normalizer_step *step = &normalizer->steps[i];
        uint8_t *content = malloc(1), *pattern = malloc(3);
        if (!content || !pattern) {
            free(content);
            free(pattern);
            return false;
        }
        free(step->content);
        free(step->pattern);
        content[0] = ' ';
        memcpy(pattern, mark, 3);
        step->content = content;
        step->content_bytes = 1;
        step->pattern = pattern;
        step->pattern_bytes = 3;
    }
    return true;
}

/* Sets the fields of the engine that follow from the pre-tokenizer. Returns false if it is not plain. */
static bool splits_read(const struct hf_splits *splits, struct sp_source *source)
{
    for (uint32_t i = 0; i < splits->count; i++) {
        const struct hf_split *step = &splits->steps[i];
        /* Gemma splits at spaces after all of them were replaced: this step does nothing. */
        if (step->kind == HF_SPLIT && !step->is_regex && step->pattern_bytes == 1 && step->pattern[0] == ' ' &&
            source->escape && !(step->behavior == SPLIT_REMOVED && step->invert))
            continue;
        if (step->kind != HF_METASPACE || step->replacement != MARK || splits->count > 1 || source->escape ||
            source->prefix != SP_PREFIX_NEVER)
            return false;
        source->escape = true;
        source->split = step->split;
        source->prefix = step->prepend == HF_PREPEND_ALWAYS  ? SP_PREFIX_UNLESS
                         : step->prepend == HF_PREPEND_FIRST ? SP_PREFIX_FIRST
                                                             : SP_PREFIX_NEVER;
    }
    return true;
}

bool hf_characters_plain(const struct normalizer *normalizer, const struct hf_splits *splits)
{
    struct sp_source source = {.escape = false};
    if (!normalizer_plain(normalizer))
        return false;
    normalizer_read(normalizer, &source);
    return splits_read(splits, &source);
}

bool hf_characters_front(const struct normalizer *normalizer, const struct hf_splits *splits)
{
    for (uint32_t i = 0; i < normalizer->count; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        if (step->kind == NORMALIZE_PREPEND &&
            (is_text(step->content, step->content_bytes, mark) || is_text(step->content, step->content_bytes, " ")))
            return true;
    }
    for (uint32_t i = 0; i < splits->count; i++)
        if (splits->steps[i].kind == HF_METASPACE && splits->steps[i].prepend != HF_PREPEND_NEVER)
            return true;
    return false;
}

/* Returns whether the normalizer must run before the engine, because added tokens are searched for in its result. */
static bool normalized_first(const struct pipeline_parts *parts)
{
    return parts->normalizer.count && added_tokens_any(parts->added, ADDED_NORMALIZED, true);
}

/* Sets what the engine must know about the normalizer and the pre-tokenizer, and adds the steps that it does not
 * perform to the pretokenizer. Returns false if a step is refused. */
static bool source_fill(struct json_file *file, const struct hf_splits *splits, bool plain, struct sp_source *source,
                        struct pipeline_parts *parts)
{
    if (!plain) {
        source->prefix = SP_PREFIX_NEVER;
        source->front = hf_characters_front(&parts->normalizer, splits);
        (void)snprintf(parts->scanner, sizeof parts->scanner, "%sbetween characters that no token joins",
                       splits->count ? "step by step, then " : "");
        return hf_pretokenizer_steps(file, splits, parts);
    }
    normalizer_read(&parts->normalizer, source);
    (void)splits_read(splits, source);
    source->front = source->prefix != SP_PREFIX_NEVER;
    (void)snprintf(parts->scanner, sizeof parts->scanner, "between characters that no token joins");
    return true;
}

bool hf_characters_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool plain,
                        struct pipeline_parts *parts)
{
    struct sp_source source = {.path = file->path,
                               .vocabulary = parts->vocabulary,
                               .merge_count = model->merge_count,
                               .merges_checked = true,
                               .fuse_unk = model->fuse_unk,
                               .byte_fallback = model->byte_fallback,
                               .ignore_merges = model->ignore_merges};
    uint8_t *bytes = NULL;
    uint32_t *offsets = NULL;
    assert(!parts->engine && parts->vocabulary >= model->vocabulary.ids);
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    source.merges = model->merges ? model->merges : no_merges;
    source.unk = model->unk ? text_table_find(&model->vocabulary, model->unk, (uint32_t)model->unk_bytes) : BPE_NONE;
    if (!source_fill(file, splits, plain, &source, parts))
        return false;
    if (texts_make(file, model, parts->vocabulary, &bytes, &offsets) && texts_empty(file, model, parts)) {
        source.bytes = bytes;
        source.offsets = offsets;
        const uint32_t fields[] = {source.vocabulary,    source.merge_count, source.unk,
                                   source.byte_fallback, source.fuse_unk,    source.ignore_merges,
                                   source.escape,        source.split,       (uint32_t)source.prefix};
        static const char what[] = "tokmap characters bpe 1";
        model_hash(parts, (struct hash_part[4]){{what, sizeof what}, {fields, sizeof fields}}, bytes, offsets,
                   source.merges, (size_t)source.merge_count * sizeof *source.merges);
        text_table_free(&model->vocabulary); /* its texts have been copied, and a large one takes much memory */
        if (plain && normalized_first(parts))
            source.prefix = source.prefix == SP_PREFIX_ALWAYS ? SP_PREFIX_NEVER : source.prefix;
        else if (plain)
            normalizer_free(&parts->normalizer);
        file->status = sp_engine_new(&parts->engine, &source, file->error);
        parts->ids_per_byte_most = 2;
        parts->engine_cuts = true;
    }
    return join_end(file, splits, parts, !file->status, bytes, offsets);
}

/*
 * ---- Unigram ----
 *
 * The scores are those that the reference reads: it uses serde_json, which rounds a number of many digits twice. Sums
 * of such scores decide ids, so the same is done here.
 */

void hf_unigram_free(struct hf_unigram *unigram)
{
    free(unigram->scores);
    memset(unigram, 0, sizeof *unigram);
}

/* Returns 10 to the power of n, up to 308. */
static double power_of_ten(uint32_t n)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[16];
    if (n < sizeof exact / sizeof exact[0])
        return exact[n];
    (void)snprintf(text, sizeof text, "1e%" PRIu32, n);
    return strtod(text, NULL);
}

/* Reads digits into *number until it is full, and returns how many are left out. *at moves behind the digits. */
static int64_t digits_read(const char **at, const char *end, uint64_t *number, int64_t *taken)
{
    int64_t left_out = 0;
    *taken = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *number < UINT64_MAX / 100) { /* what cannot overflow */
        *number = 10 * *number + (uint64_t)(*(*at)++ - '0');
        ++*taken;
    }
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        uint64_t next;
        if (left_out || __builtin_mul_overflow(*number, (uint64_t)10, &next) ||
            __builtin_add_overflow(next, (uint64_t)(**at - '0'), &next)) {
            left_out++;
        } else {
            *number = next;
            ++*taken;
        }
    }
    return left_out;
}

/* Returns what serde_json makes of a number, which is valid JSON; infinity: it refuses the number. */
static double number_of(const char *at, const char *end)
{
    const bool negative = *at == '-';
    uint64_t significand = 0, exponent = 0;
    int64_t taken, power;
    at += negative;
    power = digits_read(&at, end, &significand, &taken);
    if (at < end && *at == '.') {
        at++;
        if (power) { /* the number is full */
            while (at < end && *at >= '0' && *at <= '9')
                at++;
        } else {
            (void)digits_read(&at, end, &significand, &taken);
            power = -taken;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        const bool minus = *++at == '-';
        at += *at == '-' || *at == '+';
        for (; at < end; at++) /* more than enough to be 0 or infinite */
            exponent = exponent > 100000 ? exponent : 10 * exponent + (uint64_t)(*at - '0');
        power += minus ? -(int64_t)exponent : (int64_t)exponent;
    }
    double value = (double)significand;
    while (power < -308 && value != 0) {
        value /= 1e308;
        power += 308;
    }
    if (value != 0) {
        if (power > 308)
            value = __builtin_inf();
        else
            value = power >= 0 ? value * power_of_ten((uint32_t)power) : value / power_of_ten((uint32_t)-power);
    }
    return negative ? -value : value;
}

static bool score_parse(struct json_file *file, double *score)
{
    const char *text;
    size_t count;
    if (json_kind(&file->scan) != JSON_NUMBER)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab: the score of a token is not a number");
    if (!json_value(&file->scan, &text, &count))
        return false;
    *score = number_of(text, text + count);
    return (*score >= -SCORE_MOST && *score <= SCORE_MOST) ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                            "model.vocab: a score is out of range: it is %.*s, but must be from -1e288 to 1e288, so "
                            "that the sums of scores are finite",
                            shown(count), text);
}

static bool score_add(struct json_file *file, struct hf_unigram *unigram, uint32_t id, double score)
{
    if (id == unigram->room) {
        const uint32_t room = unigram->room + unigram->room / 2 + 4096;
        double *grown = realloc(unigram->scores, room * sizeof *grown);
        if (!grown)
            return json_file_memory(file, "a vocabulary", room * sizeof *grown);
        unigram->scores = grown;
        unigram->room = room;
    }
    unigram->scores[id] = score;
    return true;
}

#define WAITING 32

/* Tokens that have been parsed, and whose slots in the table are prefetched. */
struct waiting {
    struct text_entry tokens[WAITING];
    uint64_t hashes[WAITING];
    uint32_t count;
};

/* Parses an entry, an array of a text and a score, which then waits. */
static bool entry_parse(struct json_file *file, struct hf_model *model, struct hf_unigram *unigram,
                        struct waiting *waiting)
{
    const uint32_t id = model->vocabulary.count + waiting->count;
    const uint8_t *text;
    size_t bytes;
    double score = 0;
    if (!json_enter_array(&file->scan))
        return false;
    if (!json_element(&file->scan) || !json_file_text(file, &text, &bytes) || !json_element(&file->scan) ||
        !score_parse(file, &score) || json_element(&file->scan))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "model.vocab: entry %" PRIu32 " is not an array of a text and a score", id);
    if (file->scan.fault.reason)
        return false;
    if (bytes > UINT16_MAX)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "model.vocab: a token of %zu bytes is too long; the limit is %u bytes", bytes,
                                UINT16_MAX);
    const uint64_t hash = text_table_hash(&model->vocabulary, text, (uint32_t)bytes);
    text_table_prefetch(&model->vocabulary, hash);
    waiting->tokens[waiting->count] = (struct text_entry){text, (uint32_t)bytes, id};
    waiting->hashes[waiting->count++] = hash;
    return score_add(file, unigram, id, score);
}

/* Adds the tokens that wait. */
static bool waiting_add(struct json_file *file, struct text_table *vocabulary, struct waiting *waiting)
{
    for (uint32_t i = 0; i < waiting->count; i++) {
        const struct text_entry *token = &waiting->tokens[i];
        const enum text_added added = text_table_add_hashed(vocabulary, token, waiting->hashes[i]);
        if (added == TEXT_DUPLICATE)
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.vocab has '%.*s' twice", shown(token->bytes),
                                    (const char *)token->text);
        if (added != TEXT_ADDED)
            return hf_token_refuse(file, vocabulary, token, "model.vocab", added);
    }
    waiting->count = 0;
    return true;
}

static bool scored_parse(struct json_file *file, struct hf_model *model, struct hf_unigram *unigram)
{
    struct waiting waiting;
    uint32_t duplicate;
    waiting.count = 0;
    if (model->vocabulary.indexed)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has model.vocab twice; it is damaged");
    if (!json_enter_array(&file->scan))
        return false;
    if (!text_table_reserve(&model->vocabulary, (uint64_t)(file->scan.end - file->scan.at) / BYTES_AN_ENTRY + 16))
        return json_file_memory(file, "a vocabulary", (uint64_t)(file->scan.end - file->scan.at));
    while (json_element(&file->scan) && entry_parse(file, model, unigram, &waiting))
        if (waiting.count == WAITING && !waiting_add(file, &model->vocabulary, &waiting))
            return false;
    /* What is wrong with a token that waits comes before a fault that has ended parsing. */
    const enum tokmap_status status = file->status;
    file->status = TOKMAP_OK;
    if (!waiting_add(file, &model->vocabulary, &waiting))
        return false;
    file->status = status;
    if (status || file->scan.fault.reason)
        return false;
    return text_table_index(&model->vocabulary, &duplicate) ||
           json_file_memory(file, "a vocabulary", (uint64_t)model->vocabulary.count * 4);
}

static bool unk_parse(struct json_file *file, struct hf_unigram *unigram)
{
    unigram->unk = UINT64_MAX;
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan) : json_unsigned(&file->scan, &unigram->unk);
}

/* Refuses a field of sampling, which the format does not have. */
static bool sampling_parse(struct json_file *file, const char *field)
{
    return json_kind(&file->scan) == JSON_NULL
               ? json_null(&file->scan)
               : json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                  "model.%s asks for sampling, which tokmap does not do; set it to null", field);
}

bool hf_unigram_parse(struct json_file *file, struct hf_model *model, struct hf_unigram *unigram)
{
    struct json_string name;
    unigram->unk = UINT64_MAX;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        const bool good = json_name_is(&name, "vocab")           ? scored_parse(file, model, unigram)
                          : json_name_is(&name, "unk_id")        ? unk_parse(file, unigram)
                          : json_name_is(&name, "byte_fallback") ? json_bool(&file->scan, &model->byte_fallback)
                          : json_name_is(&name, "alpha")         ? sampling_parse(file, "alpha")
                          : json_name_is(&name, "nbest_size")    ? sampling_parse(file, "nbest_size")
                                                                 : json_skip(&file->scan);
        if (!good)
            return false;
    }
    if (file->scan.fault.reason)
        return false;
    if (!model->vocabulary.count)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab is missing or empty; the file is incomplete");
    return unigram->unk == UINT64_MAX || unigram->unk < model->vocabulary.count ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                            "model.unk_id is %" PRIu64 ", but the vocabulary has only %" PRIu32 " tokens", unigram->unk,
                            model->vocabulary.count);
}

/* Makes the engine. scores: one for each id, also for those of added tokens. */
static bool unigram_make(struct json_file *file, const struct sp_source *texts, const double *scores,
                         struct pipeline_parts *parts)
{
    const struct unigram_source source = {.texts = *texts, .scores = scores};
    const uint32_t fields[] = {texts->vocabulary, texts->unk, texts->byte_fallback};
    static const char what[] = "tokmap unigram 1";
    model_hash(parts, (struct hash_part[4]){{what, sizeof what}, {fields, sizeof fields}}, texts->bytes, texts->offsets,
               scores, texts->vocabulary * sizeof *scores);
    file->status = unigram_engine_new(&parts->engine, &source, file->error);
    return !file->status;
}

/* Returns a score for each id. Ids that the model does not have get that of another one, which changes nothing. */
static double *scores_make(struct json_file *file, const struct hf_model *model, const struct hf_unigram *unigram,
                           uint32_t vocabulary)
{
    double *scores = malloc(vocabulary * sizeof *scores);
    if (!scores)
        (void)json_file_memory(file, "a vocabulary", vocabulary * sizeof *scores);
    for (uint32_t id = 0; scores && id < vocabulary; id++)
        scores[id] = unigram->scores[id < model->vocabulary.count ? id : 0];
    return scores;
}

bool hf_unigram_join(struct json_file *file, struct hf_model *model, const struct hf_unigram *unigram,
                     const struct hf_splits *splits, struct pipeline_parts *parts)
{
    struct sp_source texts = {.path = file->path,
                              .vocabulary = parts->vocabulary,
                              .merges = no_merges,
                              .unk = unigram->unk == UINT64_MAX ? BPE_NONE : (uint32_t)unigram->unk,
                              .byte_fallback = model->byte_fallback,
                              .front = hf_characters_front(&parts->normalizer, splits)};
    uint8_t *bytes = NULL;
    uint32_t *offsets = NULL;
    double *scores = NULL;
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    (void)snprintf(parts->scanner, sizeof parts->scanner, "%sbetween characters that no token joins",
                   splits->count ? "step by step, then " : "");
    bool good = hf_pretokenizer_steps(file, splits, parts) &&
                (scores = scores_make(file, model, unigram, parts->vocabulary)) != NULL &&
                texts_make(file, model, parts->vocabulary, &bytes, &offsets) && texts_empty(file, model, parts);
    texts.bytes = bytes;
    texts.offsets = offsets;
    good = good && unigram_make(file, &texts, scores, parts);
    parts->ids_per_byte_most = 1;
    parts->engine_cuts = true;
    free(scores);
    return join_end(file, splits, parts, good, bytes, offsets);
}

/*
 * ---- WordPiece and WordLevel ----
 *
 * Nearly all such files have a BertNormalizer and a BertPreTokenizer, which the engine does in one pass over the text
 * (wp_characters.h). Files with other parts keep them, and the engine encodes each piece.
 */

enum { FIELD_UNKNOWN = 1, FIELD_PREFIX = 2, FIELD_MOST = 4, FIELD_VOCABULARY = 8 };

static bool most_parse(struct json_file *file, uint64_t *most)
{
    const struct json_scan start = file->scan;
    if (json_unsigned(&file->scan, most))
        return true;
    file->scan = start;
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                            "model.max_input_chars_per_word must be a whole number from 0 to %" PRIu64, UINT64_MAX);
}

static bool words_member(struct json_file *file, const struct json_string *name, struct hf_model *model,
                         struct hf_words *words, uint32_t *seen)
{
    static const char *const names[] = {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"};
    uint32_t field = 0;
    while (field < 4 && !json_name_is(name, names[field]))
        field++;
    if (field == 4)
        return json_skip(&file->scan);
    if (*seen >> field & 1)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has model.%s twice; it is damaged", names[field]);
    *seen |= 1u << field;
    switch (1u << field) {
    case FIELD_UNKNOWN:
        return json_file_text(file, &model->unk, &model->unk_bytes);
    case FIELD_PREFIX:
        return json_file_text(file, &words->prefix, &words->prefix_bytes);
    case FIELD_MOST:
        return most_parse(file, &words->characters_most);
    case FIELD_VOCABULARY:
    default:
        return hf_vocabulary_parse(file, &model->vocabulary, "model.vocab");
    }
}

bool hf_words_parse(struct json_file *file, enum hf_model_kind kind, struct hf_model *model, struct hf_words *words)
{
    const uint32_t wanted = kind == HF_WORDPIECE ? FIELD_UNKNOWN | FIELD_PREFIX | FIELD_MOST | FIELD_VOCABULARY
                                                 : FIELD_UNKNOWN | FIELD_VOCABULARY;
    struct json_string name;
    uint32_t seen = 0;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!words_member(file, &name, model, words, &seen))
            return false;
    if (file->scan.fault.reason)
        return false;
    const uint32_t lacks = wanted & ~seen;
    if (lacks)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.%s is missing; the file is incomplete",
                                lacks & FIELD_UNKNOWN  ? "unk_token"
                                : lacks & FIELD_PREFIX ? "continuing_subword_prefix"
                                : lacks & FIELD_MOST   ? "max_input_chars_per_word"
                                                       : "vocab");
    if (kind == HF_WORD_LEVEL)
        *words = (struct hf_words){.characters_most = UINT64_MAX};
    return model->vocabulary.count ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab is empty, so the model has no tokens");
}

/* Returns whether a normalizer is a BertNormalizer, and sets its switches: its steps are some of those that one has, in
 * their order. */
static bool rules_find(const struct normalizer *normalizer, struct wp_rules *rules)
{
    const struct normalizer_step *step = normalizer->steps, *end = step + normalizer->count;
    *rules = (struct wp_rules){false};
    if (step < end && step->kind == NORMALIZE_BERT_CLEAN)
        rules->clean = ++step;
    if (step < end && step->kind == NORMALIZE_BERT_CHINESE)
        rules->chinese = ++step;
    if (end - step >= 2 && step[0].kind == NORMALIZE_NFD && step[1].kind == NORMALIZE_BERT_MARKS)
        rules->strip = step += 2;
    if (step < end && step->kind == NORMALIZE_LOWER)
        rules->lower = ++step;
    return step == end;
}

/* Returns whether the pieces are those of a BertPreTokenizer, which hf_splits_parse() has made two steps. */
static bool is_bert(const struct hf_splits *splits)
{
    return splits->count == 2 && splits->steps[0].kind == HF_WHITESPACE_SPLIT &&
           splits->steps[1].kind == HF_PUNCTUATION && splits->steps[1].behavior == SPLIT_ISOLATED;
}

bool hf_words_join(struct json_file *file, struct hf_model *model, const struct hf_words *words,
                   const struct hf_splits *splits, struct pipeline_parts *parts)
{
    struct wp_rules rules;
    struct wp_source source = {.path = file->path,
                               .vocabulary = parts->vocabulary,
                               .prefix = words->prefix,
                               .prefix_bytes = words->prefix_bytes,
                               .characters_most = words->characters_most};
    uint8_t *bytes = NULL;
    uint32_t *offsets = NULL;
    assert(!parts->engine && parts->vocabulary >= model->vocabulary.ids);
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    source.unknown = text_table_find(&model->vocabulary, model->unk, (uint32_t)model->unk_bytes);
    if (source.unknown == TEXT_NONE && (source.vocabulary == 65536 || source.vocabulary > BPE_IDS - 2))
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "model.unk_token is '%.*s', which model.vocab lacks; add it to the vocabulary",
                                shown(model->unk_bytes), (const char *)model->unk);
    parts->engine_raw = is_bert(splits) && rules_find(&parts->normalizer, &rules);
    (void)snprintf(parts->scanner, sizeof parts->scanner, "%s",
                   parts->engine_raw ? "words and punctuation as in BERT" : "step by step");
    if (hf_pretokenizer_steps(file, splits, parts) && texts_make(file, model, parts->vocabulary, &bytes, &offsets) &&
        texts_empty(file, model, parts)) {
        const uint64_t fields[] = {source.vocabulary, source.unknown, source.prefix != NULL, source.prefix_bytes,
                                   source.characters_most};
        static const char what[] = "tokmap words 1";
        source.bytes = bytes;
        source.offsets = offsets;
        text_table_free(&model->vocabulary); /* its texts have been copied, and a large one takes much memory */
        model_hash(
            parts,
            (struct hash_part[4]){{what, sizeof what}, {fields, sizeof fields}, {source.prefix, source.prefix_bytes}},
            bytes, offsets, NULL, 0);
        file->status = wp_engine_new(&parts->engine, &source, parts->engine_raw ? &rules : NULL, file->error);
    }
    return join_end(file, splits, parts, !file->status, bytes, offsets);
}

/* ---- BPE of words ---- */

int hf_byte_lacking(const struct text_table *vocabulary, struct bpe_affix prefix, struct bpe_affix suffix)
{
    uint8_t text[1024];
    for (int byte = 0; byte < 256; byte++)
        for (int place = 0; place < 4; place++) {
            size_t used = place & 1 ? prefix.bytes : 0;
            if (used)
                memcpy(text, prefix.text, used);
            used += code_point_put(text + used, byte_character((uint8_t)byte));
            if (place & 2 && suffix.bytes) {
                memcpy(text + used, suffix.text, suffix.bytes);
                used += suffix.bytes;
            }
            if (text_table_find(vocabulary, text, (uint32_t)used) == TEXT_NONE)
                return byte;
        }
    return -1;
}

/* Returns whether some characters without a token become the tokens of their bytes, and others do not. *any: whether
 * some byte has a token. */
static bool bytes_depend(const struct hf_model *model, bool *any)
{
    bool lacks = false;
    *any = false;
    for (unsigned byte = 0; byte < 0xF5; byte++) { /* in UTF-8, no byte is higher */
        char name[8];
        const uint8_t text = (uint8_t)byte;
        (void)snprintf(name, sizeof name, "<0x%02X>", byte);
        if (text_table_find(&model->vocabulary, (const uint8_t *)name, 6) != TEXT_NONE)
            *any = true;
        else if (byte < 0x80 ? text_table_find(&model->vocabulary, &text, 1) == TEXT_NONE
                             : byte != 0xC0 && byte != 0xC1)
            lacks = true;
    }
    return lacks;
}

bool hf_bpe_words_wanted(const struct hf_model *model, const struct hf_splits *splits, bool mapped, bool marks)
{
    bool any = false, depend;
    if (model->prefix.bytes || model->suffix.bytes)
        return true;
    if (mapped)
        return (model->unk || model->ignore_merges) && !model->byte_fallback &&
               hf_byte_lacking(&model->vocabulary, model->prefix, model->suffix) >= 0;
    for (uint32_t i = 0; i < splits->count; i++)
        marks = marks && !(splits->steps[i].kind == HF_METASPACE && splits->steps[i].split);
    depend = model->byte_fallback && bytes_depend(model, &any);
    return (depend && any) || (!any && !model->unk) || (model->ignore_merges && !marks);
}

/* Gives the file's decoder a copy of the texts as the file spells them. */
static bool decoder_texts(struct json_file *file, const struct hf_model *model, struct pipeline_parts *parts)
{
    struct text_decoder *decoder = &parts->decoder;
    if (!parts->decoder_given)
        return true;
    decoder->vocabulary = parts->vocabulary;
    return texts_make(file, model, parts->vocabulary, &decoder->texts, &decoder->offsets);
}

/* Refuses what the engine cannot reproduce, and finds the unknown token. */
static bool unknown_find(struct json_file *file, const struct hf_model *model, bool mapped, uint32_t *unk)
{
    const int lacking = mapped ? hf_byte_lacking(&model->vocabulary, model->prefix, model->suffix) : 0;
    *unk = BPE_NONE;
    if (mapped && model->byte_fallback && lacking >= 0)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, BYTE_LEVEL_FALLBACK, (unsigned)lacking);
    if (!model->unk)
        return true;
    *unk = text_table_find(&model->vocabulary, model->unk, (uint32_t)model->unk_bytes);
    return *unk != BPE_NONE || lacking < 0 ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                            "model.unk_token is '%.*s', which the vocabulary lacks, so the reference fails on texts "
                            "with a character that has no token; add the token, or set the field to null",
                            shown(model->unk_bytes), (const char *)model->unk);
}

bool hf_bpe_words_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool mapped,
                       struct pipeline_parts *parts)
{
    struct bpe_words_source source = {.path = file->path,
                                      .vocabulary = parts->vocabulary,
                                      .merges = model->merges ? model->merges : no_merges,
                                      .merge_count = model->merge_count,
                                      .prefix = model->prefix,
                                      .suffix = model->suffix,
                                      .fuse_unk = model->fuse_unk,
                                      .byte_fallback = model->byte_fallback && !mapped,
                                      .whole = model->ignore_merges,
                                      .mapped = mapped,
                                      .front = !mapped && hf_characters_front(&parts->normalizer, splits)};
    assert(!parts->engine && parts->vocabulary >= model->vocabulary.ids);
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    if (!unknown_find(file, model, mapped, &source.unk) ||
        !(mapped ? hf_pretokenizer_build(file, splits, parts, NULL) : hf_pretokenizer_steps(file, splits, parts)))
        return false;
    if (!mapped)
        (void)snprintf(parts->scanner, sizeof parts->scanner, "%s", splits->count ? "step by step" : "not split");
    bool good = true;
    if (mapped) {
        file->status = byte_level_texts(parts, model, file->path, &source.bytes, &source.offsets, file->error);
        good = !file->status && texts_make(file, model, parts->vocabulary, &source.names, &source.name_offsets);
        hf_decoder_of_bytes(parts);
    } else {
        good = texts_make(file, model, parts->vocabulary, &source.bytes, &source.offsets) &&
               decoder_texts(file, model, parts) && texts_empty(file, model, parts);
    }
    if (!good) {
        free(source.bytes);
        free(source.offsets);
        free(source.names);
        free(source.name_offsets);
        return false;
    }
    const uint32_t fields[] = {source.vocabulary,   source.merge_count,  source.unk,
                               source.prefix.bytes, source.fuse_unk,     source.byte_fallback,
                               source.whole,        source.suffix.bytes, source.mapped};
    static const char what[] = "tokmap words bpe 1";
    model_hash(parts,
               (struct hash_part[4]){{what, sizeof what},
                                     {fields, sizeof fields},
                                     {source.prefix.text, source.prefix.bytes},
                                     {source.suffix.text, source.suffix.bytes}},
               source.names ? source.names : source.bytes, source.names ? source.name_offsets : source.offsets,
               source.merges, (size_t)source.merge_count * sizeof *source.merges);
    text_table_free(&model->vocabulary); /* its texts have been copied, and a large one takes much memory */
    file->status = bpe_words_new(&parts->engine, &source, file->error);
    parts->ids_per_byte_most = 1;
    if (!file->status)
        file->status = hf_fingerprint(parts, splits, NULL, file->error);
    return !file->status;
}
