/* SPDX-License-Identifier: MIT */
#include "train_write.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pipeline_parts.h"
#include "text/code_point.h"
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

/* Appends the special tokens. first: the id of the first one. */
static void append_added(struct growing *g, uint64_t first, const struct train_settings *settings)
{
    append_text(g, "  \"added_tokens\": [");
    for (uint32_t i = 0; i < settings->special_count; i++) {
        append_text(g, i ? ",\n    {\"id\": " : "\n    {\"id\": ");
        append_number(g, first + i);
        append_text(g, ", \"content\": ");
        append_string(g, settings->specials[i].bytes, settings->specials[i].count);
        append_text(g, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                       "\"special\": true}");
    }
    append_text(g, settings->special_count ? "\n  ],\n" : "],\n");
}

static void append_tokenizer_json(struct growing *g, const struct train_vocabulary *vocabulary,
                                  const struct train_settings *settings)
{
    append_text(g, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n");
    append_added(g, vocabulary->count, settings);
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

/* Returns whether there is a special token with this text. */
static bool is_special(const struct train_settings *settings, const char *text)
{
    for (uint32_t i = 0; i < settings->special_count; i++)
        if (settings->specials[i].count == strlen(text) && !memcmp(settings->specials[i].bytes, text, strlen(text)))
            return true;
    return false;
}

void train_write_config(struct growing *g, const struct train_settings *settings)
{
    static const char *const pads[] = {"<pad>", "<|pad|>", "[PAD]", NULL}, *const masks[] = {"<mask>", "[MASK]", NULL},
                             *const classes[] = {"[CLS]", NULL}, *const separators[] = {"[SEP]", NULL};
    static const struct {
        const char *key, *const *names;
    } kinds[] = {{"eos_token", pipeline_eod_names},
                 {"bos_token", pipeline_bos_names},
                 {"pad_token", pads},
                 {"mask_token", masks},
                 {"cls_token", classes},
                 {"sep_token", separators}};
    append_text(g, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"clean_up_tokenization_spaces\": false");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *const *name = kinds[i].names;
        while (*name && !is_special(settings, *name))
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
