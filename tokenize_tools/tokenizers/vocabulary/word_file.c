/* SPDX-License-Identifier: MIT */
/*
 * word_file.c - writes the tokenizer.json that stands for the file, in memory, and opens it. So whatever is true of a
 * tokenizer.json is true of a vocab.txt.
 *
 * As in the reference, the number of a line is the id of its token, without the white space at the line's end; of equal
 * lines the last one counts, and an empty line is a token without a text.
 */
#include "word_file.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "engine/growing.h"
#include "folder_config.h"
#include "text/utf8.h"
#include "text_table.h"
#include "unicode/code_sets.h"
#include "vocabulary/hf/hf_file.h"

#define WORD_LINES_MOST (1u << 20) /* more would take more memory than a vocabulary may */

/* ---- the lines ---- */

struct word_line {
    const uint8_t *text;
    uint32_t bytes;
    bool kept; /* no later line is equal */
};

struct word_lines {
    struct word_line *lines;
    uint32_t count;
    struct text_table table; /* by text: the number of the line */
};

bool word_file_is(const char *path, const char *text, uint64_t count)
{
    static const char name[] = "vocab.txt";
    const size_t bytes = strlen(path), wanted = sizeof name - 1;
    if (bytes >= wanted && !strcmp(path + bytes - wanted, name))
        return true;
    for (const char *end = text + count, *next; text < end; text = next) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        next = stop ? stop + 1 : end;
        if (next - text >= 5 && !memcmp(text, "[UNK]", 5) && (next - text == 5 || text[5] == '\n' || text[5] == '\r'))
            return true;
    }
    return false;
}

/* Finds the lines of a text, which is UTF-8. Frees of *lines what it has at a failure, too. */
static enum tokmap_status lines_find(struct word_lines *lines, const char *path, const char *text, uint64_t count,
                                     struct tokmap_error *error)
{
    const char *const end = text + count;
    uint64_t number = 0;
    for (const char *at = text; at && at < end; number++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (number > WORD_LINES_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the file has %llu lines, but tokmap can read vocabularies of at most %u tokens",
                         (unsigned long long)number, WORD_LINES_MOST);
    lines->lines = malloc(number * sizeof *lines->lines);
    if (!lines->lines || !text_table_reserve(&lines->table, number))
        return error_set_memory(error, "a vocabulary", number * sizeof *lines->lines);
    for (const char *at = text; at < end; lines->count++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t bytes = code_spaces_trimmed((const uint8_t *)at, (size_t)((stop ? stop : end) - at));
        if (bytes > UINT16_MAX)
            return error_set(error, TOKMAP_ERROR_LIMIT, path, (uint64_t)(at - text),
                             "line %u has %zu bytes, but a token may have at most %u; is this a list of tokens?",
                             lines->count + 1, bytes, UINT16_MAX);
        lines->lines[lines->count] = (struct word_line){(const uint8_t *)at, (uint32_t)bytes, false};
        at = stop ? stop + 1 : end;
    }
    for (uint32_t i = lines->count; i-- > 0;) {
        const enum text_added added = text_table_add(&lines->table, lines->lines[i].text, lines->lines[i].bytes, i);
        if (added == TEXT_NO_MEMORY)
            return error_set_memory(error, "a vocabulary", number * sizeof *lines->lines);
        lines->lines[i].kept = added == TEXT_ADDED;
    }
    return TOKMAP_OK;
}

/* ---- what tokenizer_config.json says ---- */

static const char *const usual_names[CONFIG_SPECIALS] = {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};

/* Tokenizers that do with a vocab.txt what BERT's does. Others have such a file, too. */
static const char known_classes[] = "BertTokenizer DistilBertTokenizer ElectraTokenizer MobileBertTokenizer "
                                    "ConvBertTokenizer FunnelTokenizer LayoutLMTokenizer LayoutLMv2Tokenizer "
                                    "LxmertTokenizer SqueezeBertTokenizer RetriBertTokenizer "
                                    "DPRContextEncoderTokenizer DPRQuestionEncoderTokenizer DPRReaderTokenizer "
                                    "RealmTokenizer PreTrainedTokenizer";
static const char known_types[] =
    "bert distilbert electra mobilebert convbert funnel layoutlm layoutlmv2 lxmert dpr "
    "squeezebert align bark blip bros chinese_clip ernie git grounding-dino megatron-bert "
    "mm-grounding-dino nezha qdqbert tvp vilt visual_bert retribert realm";

static enum tokmap_status class_check(const struct folder_config *config, struct tokmap_error *error)
{
    const struct config_text *name = &config->class_name;
    for (int i = SETTING_LOWER; i < SETTINGS; i++)
        if (config->settings[i] == VALUE_OTHER)
            return error_set(error, TOKMAP_ERROR_FORMAT, config->path, TOKMAP_NO_OFFSET,
                             "%s must be true, false, or null", config_setting_name((enum config_setting)i));
    if (config->settings[SETTING_BASIC] == VALUE_FALSE)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, config->path, TOKMAP_NO_OFFSET,
                         "do_basic_tokenize is false, with which the tokenizers of "
                         "transformers give other ids than each other; save this one as tokenizer.json with "
                         "transformers (save_pretrained)");
    if (name->text ? config_class_is(name, known_classes)
                   : !config->model_type.text || config_class_is(&config->model_type, known_types))
        return TOKMAP_OK;
    name = name->text ? name : &config->model_type;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, config->path, TOKMAP_NO_OFFSET,
                     "%s is '%.*s'; tokmap can read a vocab.txt of BERT's tokenizer and of those that "
                     "equal it; save this one as tokenizer.json with transformers, if it can be",
                     name == &config->class_name ? "tokenizer_class" : "model_type", shown(name->bytes),
                     (const char *)name->text);
}

/* ---- the tokenizer.json ---- */

static void append_flag(struct growing *g, const char *name, bool value)
{
    append_text(g, name);
    append_text(g, value ? "true" : "false");
}

/* Sets *text to the name that the special token has in this vocabulary. Returns its id, or TEXT_NONE. */
static uint32_t special_find(const struct word_lines *lines, const struct folder_config *config,
                             enum config_special name, const uint8_t **text, size_t *bytes)
{
    const struct config_text *given = &config->specials[name];
    *text = given->text ? given->text : (const uint8_t *)usual_names[name];
    *bytes = given->text ? given->bytes : strlen(usual_names[name]);
    return *bytes ? text_table_find(&lines->table, *text, (uint32_t)*bytes) : TEXT_NONE;
}

static void append_specials(struct growing *g, const struct word_lines *lines, const struct folder_config *config)
{
    const char *before = ",\"added_tokens\":[{\"id\":";
    for (uint32_t i = 0; i < CONFIG_SPECIALS; i++) {
        const uint8_t *text;
        size_t bytes;
        const uint32_t id = special_find(lines, config, (enum config_special)i, &text, &bytes);
        if (id == TEXT_NONE)
            continue;
        append_text(g, before);
        append_number(g, id);
        append_text(g, ",\"content\":");
        append_string(g, text, bytes);
        append_text(g,
                    ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}");
        before = ",{\"id\":";
    }
    append_text(g, "]");
}

/* Writes the template [CLS] text [SEP], if the vocabulary has both. */
static void append_template(struct growing *g, const struct word_lines *lines, const struct folder_config *config)
{
    const uint8_t *sep, *cls;
    size_t sep_bytes, cls_bytes;
    const uint32_t sep_id = special_find(lines, config, CONFIG_SEP, &sep, &sep_bytes);
    const uint32_t cls_id = special_find(lines, config, CONFIG_CLS, &cls, &cls_bytes);
    if (sep_id == TEXT_NONE || cls_id == TEXT_NONE)
        return;
    append_text(g, ",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[");
    append_string(g, sep, sep_bytes);
    append_text(g, ",");
    append_number(g, sep_id);
    append_text(g, "],\"cls\":[");
    append_string(g, cls, cls_bytes);
    append_text(g, ",");
    append_number(g, cls_id);
    append_text(g, "]}");
}

static void write_file(struct growing *g, const struct word_lines *lines, const struct folder_config *config)
{
    const uint8_t *unknown;
    size_t bytes;
    append_text(g, "{\"version\":\"1.0\"");
    append_specials(g, lines, config); /* with the unknown token */
    append_flag(g, ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":",
                config->settings[SETTING_CHINESE] != VALUE_FALSE);
    append_flag(g, ",\"lowercase\":", config->settings[SETTING_LOWER] != VALUE_FALSE);
    if (config->settings[SETTING_STRIP])
        append_flag(g, ",\"strip_accents\":", config->settings[SETTING_STRIP] == VALUE_TRUE);
    append_text(g, "},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}");
    append_template(g, lines, config);
    append_text(g, ",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
                   "\"model\":{\"type\":\"WordPiece\",\"unk_token\":");
    (void)special_find(lines, config, CONFIG_UNK, &unknown, &bytes);
    append_string(g, unknown, bytes);
    append_text(g, ",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100");
    const char *before = ",\"vocab\":{";
    for (uint32_t i = 0; i < lines->count; i++) {
        if (!lines->lines[i].kept)
            continue;
        append_text(g, before);
        append_string(g, lines->lines[i].text, lines->lines[i].bytes);
        append_text(g, ":");
        append_number(g, i);
        before = ",";
    }
    append_text(g, "}}}");
}

/* Takes from the options whether text is made lower case, if no file says it: both are usual, and ids differ. */
static enum tokmap_status case_choose(struct folder_config *config, const char *path, const char *asked,
                                      struct tokmap_error *error)
{
    if (config->files[FOLDER_TOKENIZER_CONFIG].there)
        return !asked ? TOKMAP_OK
                      : error_set_field(error, TOKMAP_ERROR_ARGUMENT, path, "lower_case",
                                        " is given, but the tokenizer_config.json beside the file decides it; leave "
                                        "the option out, or change do_lower_case there");
    if (!asked || (strcmp(asked, "yes") != 0 && strcmp(asked, "no") != 0))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, path, "lower_case",
                               " must be 'yes' or 'no': the file does not say whether text is made lower case and "
                               "loses its accents, and no tokenizer_config.json is beside it");
    config->settings[SETTING_LOWER] = *asked == 'y' ? VALUE_TRUE : VALUE_FALSE;
    return TOKMAP_OK;
}

static void lines_free(struct word_lines *lines)
{
    text_table_free(&lines->table);
    free(lines->lines);
    lines->lines = NULL;
}

/* Opens the vocabulary, and frees its lines before, since a large one takes much memory. */
static enum tokmap_status lines_open(struct tokenizer **tokenizer, const char *path, struct word_lines *lines,
                                     struct folder_config *config, const struct tokmap_tokenizer_options *options,
                                     struct tokmap_error *error)
{
    struct growing made = {.failed = false};
    const uint8_t *unknown;
    size_t bytes;
    if (special_find(lines, config, CONFIG_UNK, &unknown, &bytes) == TEXT_NONE)
        return error_set(
            error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET, "no line is the unknown token '%.*s'%s",
            shown(bytes), (const char *)unknown,
            config->specials[CONFIG_UNK].text
                ? ", which tokenizer_config.json beside the file names as unk_token; one of the two files is wrong"
                : "; name it as unk_token in a tokenizer_config.json beside the file, or add it");
    enum tokmap_status status = case_choose(config, path, options->lower_case, error);
    if (status)
        return status;
    write_file(&made, lines, config);
    lines_free(lines);
    const struct hf_text text = {path, made.bytes, made.count, "vocab.txt", 0};
    status = made.failed ? error_set_memory(error, "a vocabulary", made.count)
                         : hf_text_open(tokenizer, &text, options, error);
    free(made.bytes);
    return status;
}

enum tokmap_status word_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct word_lines lines = {0};
    struct folder_config config = {0};
    const size_t valid = utf8_valid_prefix(text, (size_t)count);
    *tokenizer = NULL;
    enum tokmap_status status = TOKMAP_OK;
    if (valid < count)
        status =
            error_set(error, TOKMAP_ERROR_FORMAT, path, valid, "the file is not UTF-8, so it is not a list of tokens");
    if (!status)
        status = lines_find(&lines, path, text, count, error);
    if (!status)
        status = folder_config_beside(&config, path, error);
    if (!status)
        status = class_check(&config, error);
    if (!status)
        status = lines_open(tokenizer, path, &lines, &config, options, error);
    folder_config_free(&config);
    lines_free(&lines);
    return status;
}
