/* SPDX-License-Identifier: MIT */
/*
 * hf_unigram.c - the numbers of a file are those that the reference reads: it uses serde_json, which rounds a number
 * of many digits twice. Sums of such scores decide ids, so the same is done here.
 */
#include "hf_unigram.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "hf_characters.h"
#include "hf_join.h"
#include "sentencepiece/unigram_build.h"

#define BYTES_AN_ENTRY 32 /* of the file, or more */
#define SCORE_MOST 1e288  /* sums of 2^64 of them are finite */

void hf_unigram_free(struct hf_unigram *unigram)
{
    free(unigram->scores);
    memset(unigram, 0, sizeof *unigram);
}

/* ---- scores ---- */

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

/* ---- the model ---- */

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

static bool vocabulary_parse(struct json_file *file, struct hf_model *model, struct hf_unigram *unigram)
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
        const bool good = json_name_is(&name, "vocab")           ? vocabulary_parse(file, model, unigram)
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

/* ---- joining ---- */

/* Makes the engine. scores: one for each id, also for those of added tokens. */
static bool engine_make(struct json_file *file, const struct sp_source *texts, const double *scores,
                        struct pipeline_parts *parts)
{
    const struct unigram_source source = {.texts = *texts, .scores = scores};
    const uint32_t fields[] = {texts->vocabulary, texts->unk, texts->byte_fallback};
    static const char what[] = "tokmap unigram 1";
    const struct hash_part hashed[] = {{what, sizeof what},
                                       {fields, sizeof fields},
                                       {texts->offsets, ((size_t)texts->vocabulary + 1) * sizeof *texts->offsets},
                                       {texts->bytes, texts->offsets[texts->vocabulary]},
                                       {scores, texts->vocabulary * sizeof *scores}};
    hash128_store(hash128_parts(hashed, sizeof hashed / sizeof hashed[0]), parts->fingerprint);
    file->status = unigram_engine_new(&parts->engine, &source, file->error);
    return !file->status;
}

/* Returns a score for each id. Ids that the model does not have get that of another one, which changes nothing. */
static double *scores_make(struct json_file *file, const struct hf_model *model, const struct hf_unigram *unigram,
                           uint32_t vocabulary)
{
    double *scores = malloc(vocabulary * sizeof *scores);
    if (!scores) {
        file->status = error_set_memory(file->error, "a vocabulary", vocabulary * sizeof *scores);
        return NULL;
    }
    for (uint32_t id = 0; id < vocabulary; id++)
        scores[id] = unigram->scores[id < model->vocabulary.count ? id : 0];
    return scores;
}

bool hf_unigram_join(struct json_file *file, struct hf_model *model, const struct hf_unigram *unigram,
                     const struct hf_splits *splits, struct pipeline_parts *parts)
{
    static const struct bpe_merge no_merges[1];
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
                hf_texts_make(file, model, parts->vocabulary, &bytes, &offsets) && hf_texts_empty(file, model, parts);
    texts.bytes = bytes;
    texts.offsets = offsets;
    good = good && engine_make(file, &texts, scores, parts);
    parts->ids_per_byte_most = 1;
    parts->engine_cuts = true;
    free(scores);
    hf_texts_end(parts, good, bytes, offsets);
    if (good)
        file->status = hf_fingerprint(parts, splits, NULL, file->error);
    return good && !file->status;
}
