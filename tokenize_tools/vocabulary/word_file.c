/* SPDX-License-Identifier: MIT */
/*
 * word_file.c - writes the tokenizer.json that stands for the file, in memory, and opens it. So whatever is true of a
 * tokenizer.json is true of a vocab.txt.
 *
 * As in the reference, the number of a line is the id of its token, without the white space at the line's end; of equal
 * lines the last one counts, and an empty line is a token without a text.
 */
#include "word_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "hf_file.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "text_table.h"
#include "tokenizer/growing.h"
#include "tokenizer_config.h"
#include "unicode/code_sets.h"
#include "unicode/lower_case.h"

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

/* Returns how many bytes a line has without white space at its end. */
static size_t trimmed(const char *text, size_t bytes)
{
    while (bytes) {
        size_t at = bytes - 1, length;
        while (at && (text[at] & 0xC0) == 0x80)
            at--;
        if (!code_is_space(code_point_get((const uint8_t *)text + at, &length)))
            break;
        bytes = at;
    }
    return bytes;
}

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
        const size_t bytes = trimmed(at, (size_t)((stop ? stop : end) - at));
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

/* Returns whether a token has a capital letter; those of names such as [CLS] do not count. */
static bool has_capital(const struct word_line *line)
{
    size_t length;
    if (line->bytes >= 2 && line->text[0] == '[' && line->text[line->bytes - 1] == ']')
        return false;
    for (size_t at = 0; at < line->bytes; at += length) {
        const uint32_t code = code_point_get(line->text + at, &length);
        if (lower_case(code) != code)
            return true;
    }
    return false;
}

/* ---- what tokenizer_config.json says ---- */

static const char *const usual_names[CONFIG_SPECIALS] = {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};

/* Tokenizers that do with a vocab.txt what BERT's does. Others have such a file, too. */
static const char known_classes[] = "BertTokenizer DistilBertTokenizer ElectraTokenizer MobileBertTokenizer "
                                    "ConvBertTokenizer FunnelTokenizer LayoutLMTokenizer LayoutLMv2Tokenizer "
                                    "LxmertTokenizer SqueezeBertTokenizer RetriBertTokenizer "
                                    "DPRContextEncoderTokenizer DPRQuestionEncoderTokenizer DPRReaderTokenizer "
                                    "RealmTokenizer PreTrainedTokenizer";

static enum tokmap_status class_check(const struct tokenizer_config *config, struct tokmap_error *error)
{
    const struct config_text *name = &config->class_name;
    if (!name->text || config_class_is(name, known_classes))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, config->path, TOKMAP_NO_OFFSET,
                     "tokenizer_class is '%.*s'; tokmap can read a vocab.txt of BERT's tokenizer and of those that "
                     "equal it; save this one as tokenizer.json with transformers, if it can be",
                     shown(name->bytes), (const char *)name->text);
}

/* ---- the tokenizer.json ---- */

static void append_flag(struct growing *g, const char *name, bool value)
{
    append_text(g, name);
    append_text(g, value ? "true" : "false");
}

/* Sets *text to the name that the special token has in this vocabulary. Returns its id, or TEXT_NONE. */
static uint32_t special_find(const struct word_lines *lines, const struct tokenizer_config *config,
                             enum config_special name, const uint8_t **text, size_t *bytes)
{
    const struct config_text *given = &config->specials[name];
    *text = given->text ? given->text : (const uint8_t *)usual_names[name];
    *bytes = given->text ? given->bytes : strlen(usual_names[name]);
    return *bytes ? text_table_find(&lines->table, *text, (uint32_t)*bytes) : TEXT_NONE;
}

static void append_specials(struct growing *g, const struct word_lines *lines, const struct tokenizer_config *config)
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
static void append_template(struct growing *g, const struct word_lines *lines, const struct tokenizer_config *config)
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

static void write_file(struct growing *g, const struct word_lines *lines, const struct tokenizer_config *config)
{
    const uint8_t *unknown;
    size_t bytes;
    append_text(g, "{\"version\":\"1.0\"");
    append_specials(g, lines, config); /* with the unknown token */
    append_flag(g, ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":",
                config->chinese);
    append_flag(g, ",\"lowercase\":", config->lower);
    if (config->strip_given)
        append_flag(g, ",\"strip_accents\":", config->strip);
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

/* Decides what no file says: whether text is made lower case. Returns a note about it, or NULL. */
static const char *case_choose(struct tokenizer_config *config, const struct word_lines *lines)
{
    if (!config->basic) { /* as transformers does it */
        config->chinese = config->lower = config->strip = false;
        config->strip_given = true;
    }
    if (config->there)
        return NULL;
    config->lower = true;
    for (uint32_t i = 0; i < lines->count && config->lower; i++)
        config->lower = !has_capital(&lines->lines[i]);
    return config->lower ? "no tokenizer_config.json beside the file says whether text is made lower case; it is, and "
                           "loses its accents, because no token has a capital letter"
                         : "no tokenizer_config.json beside the file says whether text is made lower case; it is not, "
                           "because tokens have capital letters";
}

static void lines_free(struct word_lines *lines)
{
    text_table_free(&lines->table);
    free(lines->lines);
    lines->lines = NULL;
}

/* Opens the vocabulary, and frees its lines before, since a large one takes much memory. */
static enum tokmap_status lines_open(struct tokenizer **tokenizer, const char *path, struct word_lines *lines,
                                     struct tokenizer_config *config, const struct tokmap_tokenizer_options *options,
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
    const char *note = case_choose(config, lines);
    write_file(&made, lines, config);
    lines_free(lines);
    const struct hf_text text = {path, made.bytes, made.count, "vocab.txt", note};
    const enum tokmap_status status = made.failed ? error_set_memory(error, "a vocabulary", made.count)
                                                  : hf_text_open(tokenizer, &text, options, error);
    free(made.bytes);
    return status;
}

enum tokmap_status word_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct word_lines lines = {0};
    struct tokenizer_config config = {.lower = true, .chinese = true, .basic = true}; /* as transformers has them */
    const size_t valid = utf8_valid_prefix(text, (size_t)count);
    *tokenizer = NULL;
    enum tokmap_status status = TOKMAP_OK;
    if (valid < count)
        status =
            error_set(error, TOKMAP_ERROR_FORMAT, path, valid, "the file is not UTF-8, so it is not a list of tokens");
    if (!status)
        status = lines_find(&lines, path, text, count, error);
    if (!status)
        status = tokenizer_config_read(&config, path, error);
    if (!status)
        status = class_check(&config, error);
    if (!status)
        status = lines_open(tokenizer, path, &lines, &config, options, error);
    tokenizer_config_free(&config);
    lines_free(&lines);
    return status;
}
