/* SPDX-License-Identifier: MIT */
/*
 * hf_parts.c - each part is an object with a "type". Its fields are parsed in any order, then the part is checked and
 * made. Unknown fields are skipped: the reference ignores them, too.
 */
#include "hf_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/code_point.h"
#include "vocabulary/vocabulary_file.h"

#define NESTED_MOST 8 /* sequences within sequences */

struct text {
    const uint8_t *bytes;
    size_t count;
    bool given;
};

static bool is_word(const struct text *text, const char *word)
{
    return text->given && text->count == strlen(word) && !memcmp(text->bytes, word, text->count);
}

static bool parse_text(struct json_file *file, struct text *text)
{
    text->given = true;
    return json_file_text(file, &text->bytes, &text->count);
}

/* Finds the "type" of the object that begins at the current position, and returns to this position. */
static bool peek_type(struct json_file *file, struct text *type, const char *field)
{
    const struct json_scan start = file->scan;
    struct json_string name;
    type->given = false;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!(json_name_is(&name, "type") ? parse_text(file, type) : json_skip(&file->scan)))
            return false;
    if (file->scan.fault.reason)
        return false;
    if (!type->given)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "a part of %s has no \"type\"; the file is damaged",
                                field);
    file->scan = start;
    return true;
}

/* Does the same for a part that may be a Sequence, which `depth` others contain. */
static bool peek_nested(struct json_file *file, struct text *type, const char *field, uint32_t depth)
{
    if (depth > NESTED_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "%s: more than %d sequences are nested", field,
                                NESTED_MOST);
    return peek_type(file, type, field);
}

static bool refuse_type(struct json_file *file, const struct text *type, const char *field)
{
    return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "%s.type is '%.*s', which tokmap cannot read", field,
                            shown(type->count), (const char *)type->bytes);
}

/* Parses {"String": ...} or {"Regex": ...}. */
static bool parse_pattern(struct json_file *file, struct text *pattern, bool *is_regex, const char *field)
{
    struct json_string name;
    if (json_kind(&file->scan) != JSON_OBJECT)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s.pattern must be {\"String\": ...} or {\"Regex\": ...}",
                                field);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        *is_regex = json_name_is(&name, "Regex");
        if (pattern->given || (!*is_regex && !json_name_is(&name, "String")))
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "%s.pattern must be {\"String\": ...} or {\"Regex\": ...}", field);
        if (!parse_text(file, pattern))
            return false;
    }
    return !file->scan.fault.reason &&
           (pattern->given ||
            json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s.pattern is empty; the file is damaged", field));
}

/* Parses an object by calling a function for each member, which parses the value or skips it. */
typedef bool member_function(struct json_file *file, const struct json_string *name, void *into);

static bool parse_members(struct json_file *file, member_function *member, void *into)
{
    struct json_string name;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!member(file, &name, into))
            return false;
    return !file->scan.fault.reason;
}

static bool missing(struct json_file *file, const char *field)
{
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the field %s is missing; the file is incomplete", field);
}

static bool flag(struct json_file *file, bool *value, bool *given)
{
    *given = true;
    return json_bool(&file->scan, value);
}

static bool copy_text(struct json_file *file, const char *what, const struct text *text, uint8_t **bytes, size_t *count)
{
    *bytes = malloc(text->count + 1);
    if (!*bytes)
        return json_file_memory(file, what, text->count + 1);
    memcpy(*bytes, text->bytes, text->count);
    *count = text->count;
    return true;
}

static bool one_character(const struct text *text, uint32_t *code)
{
    size_t bytes;
    if (!text->given || !text->count)
        return false;
    *code = code_point_get(text->bytes, &bytes);
    return bytes == text->count;
}

/* ---- normalizer ---- */

/* The fields of every kind of normalizer together. */
struct replacing {
    struct text pattern, content, prepend, map;
    bool is_regex, left, right, left_given, right_given;
};

static bool replacing_member(struct json_file *file, const struct json_string *name, void *into)
{
    struct replacing *replacing = into;
    if (json_name_is(name, "pattern"))
        return parse_pattern(file, &replacing->pattern, &replacing->is_regex, "normalizer.Replace");
    if (json_name_is(name, "content"))
        return parse_text(file, &replacing->content);
    if (json_name_is(name, "prepend"))
        return parse_text(file, &replacing->prepend);
    if (json_name_is(name, "precompiled_charsmap"))
        return parse_text(file, &replacing->map);
    if (json_name_is(name, "strip_left"))
        return flag(file, &replacing->left, &replacing->left_given);
    if (json_name_is(name, "strip_right"))
        return flag(file, &replacing->right, &replacing->right_given);
    return json_skip(&file->scan);
}

static bool replacement_finish(struct json_file *file, const struct replacing *replacing, struct normalizer_step *step)
{
    if (!replacing->pattern.given)
        return missing(file, "normalizer.Replace.pattern");
    if (!replacing->content.given)
        return missing(file, "normalizer.Replace.content");
    if (!copy_text(file, "a normalizer", &replacing->content, &step->content, &step->content_bytes))
        return false;
    if (!copy_text(file, "a normalizer", &replacing->pattern, &step->pattern, &step->pattern_bytes))
        return false;
    /* The reference makes a pattern of the text, too: an empty one matches between all characters. */
    if (replacing->is_regex || !replacing->pattern.count)
        file->status = regex_new(&step->regex, (const char *)replacing->pattern.bytes, replacing->pattern.count,
                                 REGEX_ONIGURUMA, file->path, "normalizer.Replace.pattern", file->error);
    return !file->status;
}

static bool prepend_finish(struct json_file *file, const struct replacing *replacing, struct normalizer_step *step)
{
    return replacing->prepend.given
               ? copy_text(file, "a normalizer", &replacing->prepend, &step->content, &step->content_bytes)
               : missing(file, "normalizer.Prepend.prepend");
}

static bool stripping_finish(struct json_file *file, const struct replacing *replacing, struct normalizer_step *step)
{
    step->strip_left = replacing->left;
    step->strip_right = replacing->right;
    return (replacing->left_given || missing(file, "normalizer.Strip.strip_left")) &&
           (replacing->right_given || missing(file, "normalizer.Strip.strip_right"));
}

static bool precompiled_finish(struct json_file *file, const struct replacing *replacing, struct normalizer_step *step)
{
    if (!replacing->map.given)
        return missing(file, "normalizer.Precompiled.precompiled_charsmap");
    uint8_t *bytes = malloc(replacing->map.count / 4 * 3 + 1);
    if (!bytes)
        return json_file_memory(file, "a normalizer", replacing->map.count);
    const uint32_t count = base64_decode(bytes, replacing->map.bytes, replacing->map.count);
    if (count)
        file->status = charsmap_new(&step->map, bytes, count, file->path, "normalizer.Precompiled.precompiled_charsmap",
                                    file->error);
    else
        json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                         "normalizer.Precompiled.precompiled_charsmap is not base64; the file is damaged");
    free(bytes);
    return !file->status;
}

/* A Sequence, which is an object with a list of parts. */
struct nesting {
    const char *list;
    bool (*part_parse)(struct json_file *file, void *into, uint32_t depth);
    void *into;
    uint32_t depth;
};

static bool nesting_member(struct json_file *file, const struct json_string *name, void *into)
{
    const struct nesting *nesting = into;
    if (!json_name_is(name, nesting->list))
        return json_skip(&file->scan);
    for (json_enter_array(&file->scan); json_element(&file->scan);)
        if (!nesting->part_parse(file, nesting->into, nesting->depth + 1))
            return false;
    return !file->scan.fault.reason;
}

/* Adds a step of zeros but for its kind. Returns NULL if it refuses the file. */
static struct normalizer_step *step_add(struct json_file *file, struct normalizer *normalizer,
                                        enum normalizer_kind kind)
{
    if (normalizer->count == NORMALIZER_STEPS_MOST) {
        (void)json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                               "normalizer has more than %d steps, which is the most that tokmap can read",
                               NORMALIZER_STEPS_MOST);
        return NULL;
    }
    struct normalizer_step *step = &normalizer->steps[normalizer->count++];
    *step = (struct normalizer_step){.kind = kind};
    return step;
}

struct bert {
    bool clean, clean_given, chinese, chinese_given, lower, lower_given, strip, strip_given;
};

static bool bert_member(struct json_file *file, const struct json_string *name, void *into)
{
    struct bert *bert = into;
    if (json_name_is(name, "clean_text"))
        return flag(file, &bert->clean, &bert->clean_given);
    if (json_name_is(name, "handle_chinese_chars"))
        return flag(file, &bert->chinese, &bert->chinese_given);
    if (json_name_is(name, "lowercase"))
        return flag(file, &bert->lower, &bert->lower_given);
    if (!json_name_is(name, "strip_accents"))
        return json_skip(&file->scan);
    bert->strip_given = json_kind(&file->scan) != JSON_NULL;
    return json_file_flag(file, false, &bert->strip);
}

/* Parses a BertNormalizer, and adds its steps in the order in which the reference takes them. */
static bool parse_bert(struct json_file *file, struct normalizer *normalizer)
{
    struct bert bert = {0};
    if (!parse_members(file, bert_member, &bert))
        return false;
    const bool strip = bert.strip_given ? bert.strip : bert.lower;
    return (bert.clean_given || missing(file, "normalizer.BertNormalizer.clean_text")) &&
           (bert.chinese_given || missing(file, "normalizer.BertNormalizer.handle_chinese_chars")) &&
           (bert.lower_given || missing(file, "normalizer.BertNormalizer.lowercase")) &&
           (!bert.clean || step_add(file, normalizer, NORMALIZE_BERT_CLEAN)) &&
           (!bert.chinese || step_add(file, normalizer, NORMALIZE_BERT_CHINESE)) &&
           (!strip ||
            (step_add(file, normalizer, NORMALIZE_NFD) && step_add(file, normalizer, NORMALIZE_BERT_MARKS))) &&
           (!bert.lower || step_add(file, normalizer, NORMALIZE_LOWER));
}

static bool normalizer_nested(struct json_file *file, void *into, uint32_t depth)
{
    struct normalizer *normalizer = into;
    static const struct {
        const char *name;
        enum normalizer_kind kind;
        /* NULL: the type has no fields. */
        bool (*finish)(struct json_file *file, const struct replacing *replacing, struct normalizer_step *step);
    } kinds[] = {{"NFC", NORMALIZE_NFC, NULL},
                 {"NFD", NORMALIZE_NFD, NULL},
                 {"NFKC", NORMALIZE_NFKC, NULL},
                 {"NFKD", NORMALIZE_NFKD, NULL},
                 {"Lowercase", NORMALIZE_LOWER, NULL},
                 {"StripAccents", NORMALIZE_MARKS, NULL},
                 {"Nmt", NORMALIZE_NMT, NULL},
                 {"ByteLevel", NORMALIZE_BYTES, NULL},
                 {"Prepend", NORMALIZE_PREPEND, prepend_finish},
                 {"Replace", NORMALIZE_REPLACE, replacement_finish},
                 {"Strip", NORMALIZE_STRIP, stripping_finish},
                 {"Precompiled", NORMALIZE_PRECOMPILED, precompiled_finish}};
    struct text type;
    if (!peek_nested(file, &type, "normalizer", depth))
        return false;
    if (is_word(&type, "Sequence")) {
        struct nesting nesting = {"normalizers", normalizer_nested, into, depth};
        return parse_members(file, nesting_member, &nesting);
    }
    if (is_word(&type, "BertNormalizer"))
        return parse_bert(file, normalizer);
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof kinds[0] && !is_word(&type, kinds[kind].name))
        kind++;
    if (kind == sizeof kinds / sizeof kinds[0])
        return refuse_type(file, &type, "normalizer");
    struct normalizer_step *step = step_add(file, normalizer, kinds[kind].kind);
    if (!step)
        return false;
    struct replacing replacing = {0};
    return kinds[kind].finish
               ? parse_members(file, replacing_member, &replacing) && kinds[kind].finish(file, &replacing, step)
               : json_skip(&file->scan);
}

bool hf_normalizer_parse(struct json_file *file, struct normalizer *normalizer)
{
    assert(!file->status && normalizer->count <= NORMALIZER_STEPS_MOST);
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan) : normalizer_nested(file, normalizer, 0);
}

/* ---- pre-tokenizer ---- */

static bool behavior_of(const struct text *text, enum split_behavior *behavior)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    static const enum split_behavior values[] = {SPLIT_REMOVED, SPLIT_ISOLATED, SPLIT_MERGED_PREVIOUS,
                                                 SPLIT_MERGED_NEXT, SPLIT_CONTIGUOUS};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_word(text, names[i])) {
            *behavior = values[i];
            return true;
        }
    return false;
}

/* The fields of every kind of pre-tokenizer together. */
struct split_fields {
    struct hf_split *step;
    struct text pattern, behavior, replacement, scheme;
    bool invert_given, individual_given, prefix_given, prefix_false, individual;
};

static bool split_member(struct json_file *file, const struct json_string *name, void *into)
{
    struct split_fields *fields = into;
    bool ignored;
    if (json_name_is(name, "pattern"))
        return parse_pattern(file, &fields->pattern, &fields->step->is_regex, "pre_tokenizer.Split");
    if (json_name_is(name, "behavior"))
        return parse_text(file, &fields->behavior);
    if (json_name_is(name, "invert"))
        return flag(file, &fields->step->invert, &fields->invert_given);
    if (json_name_is(name, "individual_digits"))
        return flag(file, &fields->individual, &fields->individual_given);
    if (json_name_is(name, "use_regex"))
        return flag(file, &fields->step->use_regex, &ignored);
    if (json_name_is(name, "add_prefix_space")) {
        if (json_kind(&file->scan) == JSON_NULL)
            return json_null(&file->scan);
        if (!flag(file, &fields->step->prefix_space, &fields->prefix_given))
            return false;
        fields->prefix_false = !fields->step->prefix_space;
        return true;
    }
    if (json_name_is(name, "replacement") || json_name_is(name, "delimiter"))
        return parse_text(file, &fields->replacement);
    if (json_name_is(name, "prepend_scheme"))
        return parse_text(file, &fields->scheme);
    if (json_name_is(name, "length") && fields->step->kind == HF_FIXED)
        return json_unsigned(&file->scan, &fields->step->length);
    if (json_name_is(name, "split"))
        return json_file_flag(file, true, &fields->step->split);
    return json_skip(&file->scan);
}

static bool metaspace_finish(struct json_file *file, const struct split_fields *fields)
{
    struct hf_split *step = fields->step;
    if (!one_character(&fields->replacement, &step->replacement))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "pre_tokenizer.Metaspace.replacement must be one character");
    step->prepend = HF_PREPEND_ALWAYS;
    if (is_word(&fields->scheme, "never"))
        step->prepend = HF_PREPEND_NEVER;
    else if (is_word(&fields->scheme, "first"))
        step->prepend = HF_PREPEND_FIRST;
    else if (fields->scheme.given && !is_word(&fields->scheme, "always"))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.Metaspace.prepend_scheme must be never, first, or always");
    if (fields->prefix_false) {
        if (step->prepend != HF_PREPEND_NEVER && fields->scheme.given)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "pre_tokenizer.Metaspace.add_prefix_space is false, but "
                                    "prepend_scheme is not 'never'");
        if (!fields->scheme.given)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "pre_tokenizer.Metaspace.add_prefix_space is false, but "
                                    "prepend_scheme is missing; the reference refuses that, too");
    }
    return true;
}

static bool split_finish(struct json_file *file, struct split_fields *fields)
{
    struct hf_split *step = fields->step;
    step->pattern = fields->pattern.bytes;
    step->pattern_bytes = fields->pattern.count;
    if (!fields->pattern.given)
        return missing(file, "pre_tokenizer.Split.pattern");
    if (!fields->invert_given)
        return missing(file, "pre_tokenizer.Split.invert");
    if (!behavior_of(&fields->behavior, &step->behavior))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.Split.behavior is missing or unknown; the file is damaged");
    if (!step->is_regex && !step->pattern_bytes)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "pre_tokenizer.Split.pattern is empty; tokmap cannot read such a file");
    return true;
}

static bool step_finish(struct json_file *file, const struct text *type, struct split_fields *fields)
{
    struct hf_split *step = fields->step;
    const enum hf_split_kind kind = step->kind;
    uint32_t ignored;
    step->behavior = kind == HF_PUNCTUATION || kind == HF_SCRIPTS || kind == HF_FIXED ? SPLIT_ISOLATED : SPLIT_REMOVED;
    step->invert |= kind == HF_WHITESPACE;
    if (kind == HF_BYTE_LEVEL)
        return fields->prefix_given || missing(file, "pre_tokenizer.ByteLevel.add_prefix_space");
    if (kind == HF_SPLIT && is_word(type, "Split"))
        return split_finish(file, fields);
    if (kind == HF_SPLIT) { /* CharDelimiterSplit */
        step->pattern = fields->replacement.bytes;
        step->pattern_bytes = fields->replacement.count;
        return one_character(&fields->replacement, &ignored) ||
               json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.CharDelimiterSplit.delimiter must be one character");
    }
    if (kind == HF_DIGITS) {
        step->behavior = fields->individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
        return fields->individual_given || missing(file, "pre_tokenizer.Digits.individual_digits");
    }
    if (kind == HF_PUNCTUATION)
        return !fields->behavior.given || behavior_of(&fields->behavior, &step->behavior) ||
               json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.Punctuation.behavior is unknown; the file is damaged");
    if (kind == HF_METASPACE)
        return metaspace_finish(file, fields);
    return kind != HF_FIXED || step->length ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT, "pre_tokenizer.FixedLength.length must be at least 1");
}

static bool splits_add(struct json_file *file, struct hf_splits *splits, struct hf_split step)
{
    if (splits->count == PRETOKENIZER_STEPS_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "pre_tokenizer has more than %d steps, which is the most that tokmap can read",
                                PRETOKENIZER_STEPS_MOST);
    splits->steps[splits->count++] = step;
    return true;
}

static bool splits_nested(struct json_file *file, void *into, uint32_t depth)
{
    struct hf_splits *splits = into;
    static const struct {
        const char *name;
        enum hf_split_kind kind;
    } kinds[] = {{"ByteLevel", HF_BYTE_LEVEL},     {"Split", HF_SPLIT},
                 {"CharDelimiterSplit", HF_SPLIT}, {"Digits", HF_DIGITS},
                 {"Punctuation", HF_PUNCTUATION},  {"Whitespace", HF_WHITESPACE},
                 {"Metaspace", HF_METASPACE},      {"WhitespaceSplit", HF_WHITESPACE_SPLIT},
                 {"UnicodeScripts", HF_SCRIPTS},   {"FixedLength", HF_FIXED}};
    struct text type;
    if (!peek_nested(file, &type, "pre_tokenizer", depth))
        return false;
    if (is_word(&type, "Sequence")) {
        struct nesting nesting = {"pretokenizers", splits_nested, into, depth};
        return parse_members(file, nesting_member, &nesting);
    }
    if (is_word(&type, "BertPreTokenizer"))
        return splits_add(file, splits, (struct hf_split){.kind = HF_WHITESPACE_SPLIT, .behavior = SPLIT_REMOVED}) &&
               splits_add(file, splits, (struct hf_split){.kind = HF_PUNCTUATION, .behavior = SPLIT_ISOLATED}) &&
               json_skip(&file->scan);
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof kinds[0] && !is_word(&type, kinds[kind].name))
        kind++;
    if (kind == sizeof kinds / sizeof kinds[0])
        return refuse_type(file, &type, "pre_tokenizer");
    /* 5 is the default of the reference. */
    if (!splits_add(file, splits,
                    (struct hf_split){.kind = kinds[kind].kind, .use_regex = true, .split = true, .length = 5}))
        return false;
    struct split_fields fields = {.step = &splits->steps[splits->count - 1]};
    return parse_members(file, split_member, &fields) && step_finish(file, &type, &fields);
}

bool hf_splits_parse(struct json_file *file, struct hf_splits *splits)
{
    assert(!file->status && splits->count <= PRETOKENIZER_STEPS_MOST);
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan) : splits_nested(file, splits, 0);
}

/* ---- decoder ----
 *
 * A step that is refused ends the parsing of the decoder. What the file has after the decoder is parsed as usual. */

/* The fields of every kind of step together. */
struct decoder_fields {
    struct text type, pattern, content, suffix, prefix, pad_token, delimiter, replacement, scheme;
    struct text decoders; /* only `given` is used */
    uint64_t start, stop;
    bool is_regex, start_given, stop_given, cleanup, cleanup_given, prefix_space, prefix_space_given;
};

struct decoder_parsing {
    struct json_file *file;
    struct pipeline_parts *parts;
};

/* Notes why the decoder cannot be reproduced. Always returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(struct decoder_parsing *parsing, const char *format, ...)
{
    char *into = parsing->parts->decoder.refused;
    const size_t room = sizeof parsing->parts->decoder.refused;
    if (into[0])
        return false;
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(into, room, format, arguments);
    va_end(arguments);
    if (written >= 0 && (size_t)written < room)
        (void)snprintf(into + written, room - (size_t)written, "; print ids instead of text");
    return false;
}

/* Parses a text. A value of another kind is skipped and not given, as if the field were missing. */
static bool text_parse(struct json_file *file, struct text *text)
{
    return json_kind(&file->scan) == JSON_STRING ? parse_text(file, text) : json_skip(&file->scan);
}

static bool number_parse(struct json_file *file, uint64_t *number, bool *given)
{
    if (json_kind(&file->scan) != JSON_NUMBER)
        return json_skip(&file->scan);
    *given = true;
    return json_unsigned(&file->scan, number);
}

static bool flag_parse(struct json_file *file, bool *value, bool *given)
{
    if (json_kind(&file->scan) != JSON_TRUE && json_kind(&file->scan) != JSON_FALSE)
        return json_skip(&file->scan);
    *given = true;
    return json_bool(&file->scan, value);
}

/* Parses {"String": ...} or {"Regex": ...}. */
static bool pattern_parse(struct json_file *file, struct decoder_fields *fields)
{
    struct json_string name;
    if (json_kind(&file->scan) != JSON_OBJECT)
        return json_skip(&file->scan);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        fields->is_regex = json_name_is(&name, "Regex");
        const bool known = fields->is_regex || json_name_is(&name, "String");
        if (!(known ? text_parse(file, &fields->pattern) : json_skip(&file->scan)))
            return false;
    }
    return !file->scan.fault.reason;
}

static bool decoder_field_parse(struct json_file *file, const struct json_string *name, struct decoder_fields *fields)
{
    static const char *const names[] = {
        "type", "content", "suffix", "prefix", "pad_token", "word_delimiter_token", "replacement", "prepend_scheme"};
    struct text *const texts[] = {&fields->type,      &fields->content,   &fields->suffix,      &fields->prefix,
                                  &fields->pad_token, &fields->delimiter, &fields->replacement, &fields->scheme};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_name_is(name, names[i]))
            return text_parse(file, texts[i]);
    if (json_name_is(name, "pattern"))
        return pattern_parse(file, fields);
    if (json_name_is(name, "start"))
        return number_parse(file, &fields->start, &fields->start_given);
    if (json_name_is(name, "stop"))
        return number_parse(file, &fields->stop, &fields->stop_given);
    if (json_name_is(name, "cleanup"))
        return flag_parse(file, &fields->cleanup, &fields->cleanup_given);
    if (json_name_is(name, "add_prefix_space"))
        return flag_parse(file, &fields->prefix_space, &fields->prefix_space_given);
    if (json_name_is(name, "decoders"))
        fields->decoders.given = json_kind(&file->scan) == JSON_ARRAY;
    return json_skip(&file->scan);
}

/* Parses all fields of the object that begins at the current position. */
static bool decoder_fields_parse(struct json_file *file, struct decoder_fields *fields)
{
    struct json_string name;
    memset(fields, 0, sizeof *fields);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!decoder_field_parse(file, &name, fields))
            return false;
    return !file->scan.fault.reason;
}

static bool lacks(struct decoder_parsing *parsing, const char *field)
{
    return refuse(parsing, "the file's field decoder.%s is missing or of a wrong kind", field);
}

static bool replace_make(struct decoder_parsing *parsing, const struct decoder_fields *fields, struct decode_step *step)
{
    struct tokmap_error error;
    if (!fields->pattern.given)
        return lacks(parsing, "Replace.pattern");
    if (!fields->content.given)
        return lacks(parsing, "Replace.content");
    if (!copy_text(parsing->file, "a decoder", &fields->content, &step->content, &step->content_bytes) ||
        !copy_text(parsing->file, "a decoder", &fields->pattern, &step->pattern, &step->pattern_bytes))
        return false;
    if (!fields->is_regex)
        return fields->pattern.count ||
               refuse(parsing, "the file's field decoder.Replace.pattern is empty, which tokmap cannot reproduce");
    const enum tokmap_status status =
        regex_new(&step->regex, (const char *)fields->pattern.bytes, fields->pattern.count, REGEX_ONIGURUMA, NULL,
                  "decoder.Replace.pattern", &error);
    if (status == TOKMAP_ERROR_MEMORY)
        return json_file_memory(parsing->file, "a decoder", fields->pattern.count);
    return !status || refuse(parsing, "%.160s", error.message);
}

static bool strip_make(struct decoder_parsing *parsing, const struct decoder_fields *fields, struct decode_step *step)
{
    step->start = fields->start;
    step->stop = fields->stop;
    if (!fields->start_given)
        return lacks(parsing, "Strip.start");
    if (!fields->stop_given)
        return lacks(parsing, "Strip.stop");
    return one_character(&fields->content, &step->character) || lacks(parsing, "Strip.content");
}

static bool metaspace_make(struct decoder_parsing *parsing, const struct decoder_fields *fields,
                           struct decode_step *step)
{
    const bool never = is_word(&fields->scheme, "never");
    step->prepends = !never;
    if (fields->scheme.given && !never && !is_word(&fields->scheme, "first") && !is_word(&fields->scheme, "always"))
        return lacks(parsing, "Metaspace.prepend_scheme");
    if (fields->prefix_space_given && !fields->prefix_space && step->prepends)
        return refuse(parsing, "the file's field decoder.Metaspace.add_prefix_space is false, but prepend_scheme is "
                               "not 'never'; the reference refuses that, too");
    return one_character(&fields->replacement, &step->character) || lacks(parsing, "Metaspace.replacement");
}

static bool wordpiece_make(struct decoder_parsing *parsing, const struct decoder_fields *fields,
                           struct decode_step *step)
{
    step->cleanup = fields->cleanup;
    if (!fields->prefix.given)
        return lacks(parsing, "WordPiece.prefix");
    return fields->cleanup_given
               ? copy_text(parsing->file, "a decoder", &fields->prefix, &step->pattern, &step->pattern_bytes)
               : lacks(parsing, "WordPiece.cleanup");
}

static bool ctc_make(struct decoder_parsing *parsing, const struct decoder_fields *fields, struct decode_step *step)
{
    step->cleanup = fields->cleanup;
    if (!fields->pad_token.given)
        return lacks(parsing, "CTC.pad_token");
    if (!fields->delimiter.given)
        return lacks(parsing, "CTC.word_delimiter_token");
    if (!fields->cleanup_given)
        return lacks(parsing, "CTC.cleanup");
    return copy_text(parsing->file, "a decoder", &fields->pad_token, &step->pattern, &step->pattern_bytes) &&
           copy_text(parsing->file, "a decoder", &fields->delimiter, &step->content, &step->content_bytes);
}

static bool bpe_make(struct decoder_parsing *parsing, const struct decoder_fields *fields, struct decode_step *step)
{
    return fields->suffix.given
               ? copy_text(parsing->file, "a decoder", &fields->suffix, &step->pattern, &step->pattern_bytes)
               : lacks(parsing, "BPEDecoder.suffix");
}

static bool decoder_step_add(struct decoder_parsing *parsing, const struct decoder_fields *fields)
{
    static const struct {
        const char *name;
        enum decode_kind kind;
        /* NULL: the type has no fields. */
        bool (*make)(struct decoder_parsing *parsing, const struct decoder_fields *fields, struct decode_step *step);
    } kinds[] = {{"ByteLevel", DECODE_BYTE_LEVEL, NULL},
                 {"ByteFallback", DECODE_BYTE_FALLBACK, NULL},
                 {"Fuse", DECODE_FUSE, NULL},
                 {"Replace", DECODE_REPLACE, replace_make},
                 {"Strip", DECODE_STRIP, strip_make},
                 {"CTC", DECODE_CTC, ctc_make},
                 {"Metaspace", DECODE_METASPACE, metaspace_make},
                 {"WordPiece", DECODE_WORDPIECE, wordpiece_make},
                 {"BPEDecoder", DECODE_BPE, bpe_make}};
    struct text_decoder *decoder = &parsing->parts->decoder;
    const struct text *type = &fields->type;
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof kinds[0] && !is_word(type, kinds[kind].name))
        kind++;
    if (!type->given)
        return refuse(parsing, "a step of the file's decoder has no \"type\"");
    if (kind == sizeof kinds / sizeof kinds[0])
        return refuse(parsing, "the file's decoder.type is '%.*s', which tokmap cannot reproduce", shown(type->count),
                      (const char *)type->bytes);
    if (decoder->count == DECODER_STEPS_MOST)
        return refuse(parsing, "the file's decoder has more than %d steps, which is the most that tokmap can reproduce",
                      DECODER_STEPS_MOST);
    struct decode_step *step = &decoder->steps[decoder->count++];
    memset(step, 0, sizeof *step);
    step->kind = kinds[kind].kind;
    return !kinds[kind].make || kinds[kind].make(parsing, fields, step);
}

static bool decoder_nested(struct decoder_parsing *parsing, uint32_t depth);

/* Parses the decoders of a Sequence, which are somewhere in the object that begins at the current position. */
static bool decoder_sequence(struct decoder_parsing *parsing, uint32_t depth)
{
    struct json_file *file = parsing->file;
    struct json_string name;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        if (!json_name_is(&name, "decoders")) {
            json_skip(&file->scan);
            continue;
        }
        for (json_enter_array(&file->scan); json_element(&file->scan);)
            if (!decoder_nested(parsing, depth + 1))
                return false;
    }
    return !file->scan.fault.reason;
}

/* Parses one decoder and appends its steps. Returns false if it is refused, or if the JSON is wrong. */
static bool decoder_nested(struct decoder_parsing *parsing, uint32_t depth)
{
    struct json_file *file = parsing->file;
    struct decoder_fields fields;
    if (depth > NESTED_MOST)
        return refuse(parsing, "the file's decoder has more than %d nested sequences", NESTED_MOST);
    if (json_kind(&file->scan) != JSON_OBJECT)
        return refuse(parsing, "a step of the file's decoder is not an object");
    const struct json_scan start = file->scan;
    if (!decoder_fields_parse(file, &fields))
        return false;
    if (!is_word(&fields.type, "Sequence"))
        return decoder_step_add(parsing, &fields);
    if (!fields.decoders.given)
        return lacks(parsing, "Sequence.decoders");
    file->scan = start;
    return decoder_sequence(parsing, depth);
}

bool hf_decoder_parse(struct json_file *file, struct pipeline_parts *parts)
{
    struct decoder_parsing parsing = {file, parts};
    assert(!file->status && !parts->decoder.count);
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    const struct json_scan start = file->scan;
    parts->decoder_given = true;
    if (!decoder_nested(&parsing, 0) && !parts->decoder.refused[0])
        return false;
    /* A decoder that was refused may have a step that is not complete. */
    if (!parts->decoder.refused[0] && text_decoder_growth(&parts->decoder) > DECODER_GROWTH_MOST)
        (void)refuse(&parsing, "the file's decoder can turn one byte of a token into more than %d bytes of text",
                     DECODER_GROWTH_MOST);
    if (!parts->decoder.refused[0])
        return true;
    file->scan = start; /* the parser may have stopped in the middle */
    return json_skip(&file->scan);
}

void hf_decoder_of_bytes(struct pipeline_parts *parts)
{
    struct text_decoder *decoder = &parts->decoder;
    if (!parts->decoder_given)
        return;
    decoder->mapped = decoder->count && decoder->steps[0].kind == DECODE_BYTE_LEVEL;
    decoder->spelled_bytes = !decoder->mapped;
    if (decoder->mapped)
        decoder->steps[0].kind = DECODE_LOSSY;
}
