/* SPDX-License-Identifier: MIT */
#include "train_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pipeline_parts.h"
#include "text/code_point.h"
#include "train_unigram.h"
#include "unicode/byte_alphabet.h"

/* ---- the byte alphabet ---- */

static void append_spelling(struct growing *g, const struct train_text *token)
{
    uint8_t text[4];
    for (uint64_t i = 0; i < token->count; i++)
        append_escaped(g, text, code_point_put(text, byte_character(token->bytes[i])));
}

bool train_decode_spelling(const struct train_text *special, uint8_t *into, uint64_t *count)
{
    size_t bytes;
    *count = 0;
    for (uint64_t at = 0; at < special->count; at += bytes) {
        const int byte = character_byte(code_point_get(special->bytes + at, &bytes));
        if (byte < 0)
            return false;
        into[(*count)++] = (uint8_t)byte;
    }
    return *count > 0;
}

/* ---- content of the files ---- */

static void append_rank_file(struct growing *g, const struct train_vocabulary *vocabulary)
{
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        append_base64(g, vocabulary->tokens[id].bytes, vocabulary->tokens[id].count);
        append(g, " ", 1);
        append_number(g, id);
        append(g, "\n", 1);
    }
}

static void append_specials(struct growing *g, uint64_t first, const struct train_settings *settings)
{
    append(g, "{", 1);
    for (uint32_t i = 0; i < settings->special_count; i++) {
        append_text(g, i ? ",\n  " : "\n  ");
        append_string(g, settings->specials[i].bytes, settings->specials[i].count);
        append(g, ": ", 2);
        append_number(g, first + i);
    }
    append_text(g, "\n}\n");
}

static void append_split(struct growing *g, const char *regex)
{
    append_text(g, "      {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
    append_string(g, (const uint8_t *)regex, strlen(regex));
    append_text(g, "}, \"behavior\": \"Isolated\", \"invert\": false},\n");
}

static void append_pre_tokenizer(struct growing *g, const char *pattern)
{
    static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
                                     "\"use_regex\": ";
    const struct split_rules *rules = split_rules_named(pattern);
    append_text(g, "  \"pre_tokenizer\": ");
    if (rules == split_rules_named("gpt2")) { /* the pattern that is built into ByteLevel */
        append_text(g, byte_level);
        append_text(g, "true},\n");
        return;
    }
    append_text(g, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n");
    if (rules->deepseek)
        for (int i = 0; i < SPLIT_STEPS; i++)
            append_split(g, split_deepseek_steps[i]);
    else
        append_split(g, split_rules_regex(rules));
    append_text(g, "      ");
    append_text(g, byte_level);
    append_text(g, "false}\n    ]\n  },\n");
}

static void append_added(struct growing *g, const char *before, uint64_t id, const struct train_text *text)
{
    append_text(g, before);
    append_number(g, id);
    append_text(g, ", \"content\": ");
    append_string(g, text->bytes, text->count);
    append_text(g, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                   "\"special\": true}");
}

void train_write_head(struct growing *g, const struct train_text *zero, uint64_t first,
                      const struct train_settings *settings)
{
    const char *before = "\n    {\"id\": ";
    append_text(g, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (uint32_t i = zero ? 0 : 1; i <= settings->special_count; i++) {
        append_added(g, before, i ? first + i - 1 : 0, i ? &settings->specials[i - 1] : zero);
        before = ",\n    {\"id\": ";
    }
    append_text(g, zero || settings->special_count ? "\n  ],\n" : "],\n");
}

static void append_tokenizer_json(struct growing *g, const struct train_vocabulary *vocabulary,
                                  const struct train_settings *settings)
{
    train_write_head(g, NULL, vocabulary->count, settings);
    append_text(g, "  \"normalizer\": null,\n");
    append_pre_tokenizer(g, settings->pattern);
    append_text(
        g, "  \"post_processor\": null,\n  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
           "\"trim_offsets\": true, \"use_regex\": true},\n"
           "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
           "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
           "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {");
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        append_text(g, id ? ",\n      \"" : "\n      \"");
        append_spelling(g, &vocabulary->tokens[id]);
        append_text(g, "\": ");
        append_number(g, id);
    }
    append_text(g, "\n    },\n    \"merges\": [");
    for (uint32_t i = 0; i + 256 < vocabulary->count; i++) {
        append_text(g, i ? ",\n      \"" : "\n      \"");
        append_spelling(g, &vocabulary->tokens[vocabulary->merges[i].left]);
        append(g, " ", 1);
        append_spelling(g, &vocabulary->tokens[vocabulary->merges[i].right]);
        append(g, "\"", 1);
    }
    append_text(g, vocabulary->count > 256 ? "\n    ]\n  }\n}\n" : "]\n  }\n}\n");
}

/* Returns the id of the special token with this text, or -1. first: the id of the first one. */
static int64_t train_special(const struct train_settings *settings, uint64_t first, const char *text)
{
    for (uint32_t i = 0; i < settings->special_count; i++)
        if (settings->specials[i].count == strlen(text) && !memcmp(settings->specials[i].bytes, text, strlen(text)))
            return (int64_t)(first + i);
    return -1;
}

void train_write_config(struct growing *g, const char *unknown, const struct train_settings *settings)
{
    static const char *const pads[] = {"<pad>", "<|pad|>", "[PAD]", NULL}, *const masks[] = {"<mask>", "[MASK]", NULL},
                             *const classes[] = {"[CLS]", NULL}, *const separators[] = {"[SEP]", NULL};
    const char *const unknowns[] = {unknown, NULL};
    const struct {
        const char *key, *const *names;
    } kinds[] = {{"eos_token", pipeline_eod_names},
                 {"bos_token", pipeline_bos_names},
                 {"pad_token", pads},
                 {"mask_token", masks},
                 {"cls_token", classes},
                 {"sep_token", separators},
                 {"unk_token", unknowns}};
    append_text(g, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"clean_up_tokenization_spaces\": false");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *const *name = kinds[i].names;
        while (*name && *name != unknown && train_special(settings, 0, *name) < 0)
            name++;
        if (!*name)
            continue;
        append_text(g, ",\n  \"");
        append_text(g, kinds[i].key);
        append_text(g, "\": ");
        append_string(g, (const uint8_t *)*name, strlen(*name));
    }
    append_text(g, ",\n  \"additional_special_tokens\": [");
    for (uint32_t i = 0; i < settings->special_count; i++) {
        append_text(g, i ? ", " : "");
        append_string(g, settings->specials[i].bytes, settings->specials[i].count);
    }
    append_text(g, "]\n}\n");
}

void train_write(struct growing *contents, const struct train_vocabulary *vocabulary,
                 const struct train_settings *settings)
{
    assert(vocabulary->count >= 256);
    append_specials(&contents[0], vocabulary->count, settings);
    append_rank_file(&contents[1], vocabulary);
    append_tokenizer_json(&contents[2], vocabulary, settings);
}

/* ---- Unigram ---- */

static const char unknown[] = "<unk>";

uint32_t unigram_write_others(const struct unigram_settings *unigram, const struct train_settings *settings)
{
    return 1 + (unigram->bytes ? 256 : 0) + settings->special_count;
}

static size_t byte_name(char *into, uint32_t byte)
{
    return (size_t)snprintf(into, 8, "<0x%02X>", (unsigned)byte & 255);
}

struct train_text *unigram_write_forbidden(const struct train_settings *settings, uint32_t *count)
{
    enum { NAME = 6, NAMES = 256 };
    const uint32_t others = settings->special_count + 1;
    struct train_text *texts = malloc((others + NAMES) * sizeof *texts + NAMES * (NAME + 2));
    if (!texts)
        return NULL;
    uint8_t *names = (uint8_t *)(texts + others + NAMES);
    for (uint32_t i = 0; i < settings->special_count; i++)
        texts[i] = settings->specials[i];
    texts[others - 1] = (struct train_text){(const uint8_t *)unknown, sizeof unknown - 1};
    for (uint32_t b = 0; b < NAMES; b++, names += NAME + 2)
        texts[others + b] = (struct train_text){names, byte_name((char *)names, b)};
    *count = others + NAMES;
    return texts;
}

/* ---- a model of SentencePiece, which is a message of Protocol Buffers ---- */

enum { WIRE_NUMBER, WIRE_BYTES = 2, WIRE_FLOAT = 5 };
enum { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_BYTE = 6 };

static void append_varint(struct growing *g, uint64_t number)
{
    uint8_t bytes[10];
    size_t count = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[count++] = (uint8_t)(number | 0x80);
    bytes[count++] = (uint8_t)number;
    append(g, bytes, count);
}

static void append_field(struct growing *g, uint32_t field, uint64_t number)
{
    append_varint(g, field << 3 | WIRE_NUMBER);
    append_varint(g, number);
}

static void append_bytes(struct growing *g, uint32_t field, const void *bytes, uint64_t count)
{
    append_varint(g, field << 3 | WIRE_BYTES);
    append_varint(g, count);
    append(g, bytes, (size_t)count);
}

static void append_float(struct growing *g, uint32_t field, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
    append_varint(g, field << 3 | WIRE_FLOAT);
    append(g, bytes, sizeof bytes);
}

static void append_message(struct growing *g, uint32_t field, struct growing *message)
{
    append_bytes(g, field, message->bytes, message->count);
    g->failed |= message->failed;
    message->count = 0;
}

static void append_piece(struct growing *g, struct growing *scratch, const void *bytes, uint64_t count, float score,
                         uint32_t type)
{
    append_bytes(scratch, 1, bytes, count);
    append_float(scratch, 2, score);
    if (type != PIECE_NORMAL)
        append_field(scratch, 3, type);
    append_message(g, 1, scratch);
}

static void append_model(struct growing *g, const struct unigram_vocabulary *v, const struct unigram_settings *unigram,
                         const struct train_settings *settings)
{
    struct growing scratch = {NULL, 0, 0, false};
    const uint64_t first = (uint64_t)v->count + (unigram->bytes ? 257 : 1);
    append_piece(g, &scratch, unknown, sizeof unknown - 1, 0, PIECE_UNKNOWN);
    for (uint32_t b = 0; b < 256 && unigram->bytes; b++) {
        char name[8];
        const size_t count = byte_name(name, b);
        append_piece(g, &scratch, name, count, 0, PIECE_BYTE);
    }
    for (uint32_t i = 0; i < v->count; i++)
        append_piece(g, &scratch, v->pieces[i].bytes, v->pieces[i].count, v->scores[i], PIECE_NORMAL);
    for (uint32_t i = 0; i < settings->special_count; i++)
        append_piece(g, &scratch, settings->specials[i].bytes, settings->specials[i].count, 0, PIECE_CONTROL);
    append_field(&scratch, 3, 1); /* Unigram */
    append_field(&scratch, 4, first + settings->special_count);
    append_float(&scratch, 10, (float)unigram->coverage);
    append_field(&scratch, 20, unigram->longest);
    append_field(&scratch, 21, unigram->rules.scripts);
    append_field(&scratch, 23, unigram->rules.numbers);
    append_field(&scratch, 25, unigram->rules.digits);
    append_field(&scratch, 35, unigram->bytes);
    append_field(&scratch, 40, 0);
    append_field(&scratch, 41, (uint64_t)train_special(settings, first, "<s>"));
    append_field(&scratch, 42, (uint64_t)train_special(settings, first, "</s>"));
    append_field(&scratch, 43, (uint64_t)train_special(settings, first, "<pad>"));
    append_message(g, 2, &scratch);
    append_bytes(&scratch, 1, "identity", 8);
    append_field(&scratch, 3, unigram->rules.dummy_prefix);
    append_field(&scratch, 4, 0); /* spaces are not removed */
    append_field(&scratch, 5, 1); /* they are written as U+2581 */
    append_message(g, 3, &scratch);
    free(scratch.bytes);
}

/* ---- a tokenizer.json ---- */

#define SPACE "\xe2\x96\x81"

/* A score that no way of writing a text with characters has, so that the model does not take "<unk>" and names of bytes
 * in a text for these tokens, which SentencePiece does not do either. */
#define SCORE_NEVER "-10000.0"

static void append_item(struct growing *g, const void *bytes, uint64_t count, const char *score, bool first)
{
    append_text(g, first ? "\n      [" : ",\n      [");
    append_string(g, bytes, count);
    append_text(g, ", ");
    append_text(g, score);
    append_text(g, "]");
}

static void append_json(struct growing *g, const struct unigram_vocabulary *v, const struct unigram_settings *unigram,
                        const struct train_settings *settings)
{
    const uint64_t first = (uint64_t)v->count + (unigram->bytes ? 257 : 1);
    char text[40];
    train_write_head(g, NULL, first, settings);
    append_text(g, "  \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [");
    if (unigram->rules.dummy_prefix)
        append_text(g, "\n    {\"type\": \"Prepend\", \"prepend\": \"" SPACE "\"},");
    append_text(g,
                "\n    {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"" SPACE "\"}\n  ]},\n");
    append_text(g, "  \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"" SPACE
                   "\", \"prepend_scheme\": \"never\", \"split\": true},\n  \"post_processor\": null,\n");
    append_text(g, "  \"decoder\": {\"type\": \"Sequence\", \"decoders\": [\n    {\"type\": \"Replace\", \"pattern\": "
                   "{\"String\": \"" SPACE "\"}, \"content\": \" \"},\n    {\"type\": \"ByteFallback\"},\n"
                   "    {\"type\": \"Fuse\"}");
    if (unigram->rules.dummy_prefix)
        append_text(g, ",\n    {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}");
    append_text(g, "\n  ]},\n  \"model\": {\n    \"type\": \"Unigram\",\n    \"unk_id\": 0,\n    \"byte_fallback\": ");
    append_text(g, unigram->bytes ? "true,\n    \"vocab\": [" : "false,\n    \"vocab\": [");
    append_item(g, unknown, sizeof unknown - 1, SCORE_NEVER, true);
    for (uint32_t b = 0; b < 256 && unigram->bytes; b++) {
        const size_t count = byte_name(text, b);
        append_item(g, text, count, SCORE_NEVER, false);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        (void)snprintf(text, sizeof text, "%.17g", (double)v->scores[i]); /* exactly the number of the other file */
        append_item(g, v->pieces[i].bytes, v->pieces[i].count, text, false);
    }
    append_text(g, "\n    ]\n  }\n}\n");
}

void unigram_write(struct growing *contents, const struct unigram_vocabulary *vocabulary,
                   const struct unigram_settings *unigram, const struct train_settings *settings)
{
    append_model(&contents[0], vocabulary, unigram, settings);
    append_json(&contents[1], vocabulary, unigram, settings);
}
