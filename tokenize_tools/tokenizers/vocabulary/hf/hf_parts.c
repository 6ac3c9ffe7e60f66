/* SPDX-License-Identifier: MIT */
/*
 * hf_parts.c - each part is an object with a "type". Its fields are parsed in any order, then the part is checked and
 * made. Unknown fields are skipped: the reference ignores them, too.
 */
#include "hf_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Parses a text. lax: a value of another kind is skipped and not given, as if the field were missing. */
static bool text_parse(struct json_file *file, struct text *text, bool lax)
{
    if (lax && json_kind(&file->scan) != JSON_STRING)
        return json_skip(&file->scan);
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
        if (!(json_name_is(&name, "type") ? text_parse(file, type, false) : json_skip(&file->scan)))
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

/* ---- fields ---- */

struct flag {
    bool value, given;
};
struct number {
    uint64_t value;
    bool given;
};

/* The fields of all parts together. */
struct fields {
    struct text type, pattern, content, prepend, map, behavior, replacement, scheme, suffix, prefix, pad_token,
        delimiter;
    struct flag left, right, clean, chinese, lower, strip, invert, individual, use_regex, prefix_space, split, cleanup;
    struct flag decoders; /* only `given` is used: it is a list */
    struct number length, start, stop;
    bool is_regex; /* the pattern */
};

/* Kinds of parts, of which each knows other fields. A decoder is lax: see text_parse(). */
enum { NORMALIZER = 1, BERT = 2, SPLIT = 4, FIXED = 8, DECODER = 16 };

/* Parses {"String": ...} or {"Regex": ...}. */
static bool pattern_parse(struct json_file *file, unsigned part, struct fields *fields)
{
    const char *field = part == NORMALIZER ? "normalizer.Replace" : "pre_tokenizer.Split";
    const bool lax = part == DECODER;
    struct json_string name;
    bool good = json_kind(&file->scan) == JSON_OBJECT;
    if (!good && lax)
        return json_skip(&file->scan);
    for (good = good && json_enter_object(&file->scan); good && json_member(&file->scan, &name);) {
        fields->is_regex = json_name_is(&name, "Regex");
        const bool known = fields->is_regex || json_name_is(&name, "String");
        good = lax || (known && !fields->pattern.given);
        if (good && !(known ? text_parse(file, &fields->pattern, lax) : json_skip(&file->scan)))
            return false;
    }
    if (file->scan.fault.reason)
        return false;
    if (!good)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s.pattern must be {\"String\": ...} or {\"Regex\": ...}",
                                field);
    return lax || fields->pattern.given ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s.pattern is empty; the file is damaged", field);
}

static bool field_parse(struct json_file *file, const struct json_string *name, unsigned part, struct fields *fields)
{
#define AT(member) offsetof(struct fields, member)
    static const struct {
        const char *name;
        unsigned parts; /* that know it */
        enum { A_TEXT, A_PATTERN, A_FLAG, A_FLAG_OR_NULL, A_NUMBER, A_LIST } kind;
        size_t at;
    } known[] = {{"type", DECODER, A_TEXT, AT(type)},
                 {"pattern", NORMALIZER | SPLIT | DECODER, A_PATTERN, AT(pattern)},
                 {"content", NORMALIZER | DECODER, A_TEXT, AT(content)},
                 {"prepend", NORMALIZER, A_TEXT, AT(prepend)},
                 {"precompiled_charsmap", NORMALIZER, A_TEXT, AT(map)},
                 {"strip_left", NORMALIZER, A_FLAG, AT(left)},
                 {"strip_right", NORMALIZER, A_FLAG, AT(right)},
                 {"clean_text", BERT, A_FLAG, AT(clean)},
                 {"handle_chinese_chars", BERT, A_FLAG, AT(chinese)},
                 {"lowercase", BERT, A_FLAG, AT(lower)},
                 {"strip_accents", BERT, A_FLAG_OR_NULL, AT(strip)},
                 {"behavior", SPLIT, A_TEXT, AT(behavior)},
                 {"invert", SPLIT, A_FLAG, AT(invert)},
                 {"individual_digits", SPLIT, A_FLAG, AT(individual)},
                 {"use_regex", SPLIT, A_FLAG, AT(use_regex)},
                 {"add_prefix_space", SPLIT | DECODER, A_FLAG_OR_NULL, AT(prefix_space)},
                 {"replacement", SPLIT | DECODER, A_TEXT, AT(replacement)},
                 {"delimiter", SPLIT, A_TEXT, AT(replacement)},
                 {"prepend_scheme", SPLIT | DECODER, A_TEXT, AT(scheme)},
                 {"length", FIXED, A_NUMBER, AT(length)},
                 {"split", SPLIT, A_FLAG_OR_NULL, AT(split)},
                 {"suffix", DECODER, A_TEXT, AT(suffix)},
                 {"prefix", DECODER, A_TEXT, AT(prefix)},
                 {"pad_token", DECODER, A_TEXT, AT(pad_token)},
                 {"word_delimiter_token", DECODER, A_TEXT, AT(delimiter)},
                 {"start", DECODER, A_NUMBER, AT(start)},
                 {"stop", DECODER, A_NUMBER, AT(stop)},
                 {"cleanup", DECODER, A_FLAG, AT(cleanup)},
                 {"decoders", DECODER, A_LIST, AT(decoders)}};
#undef AT
    const enum json_kind kind = json_kind(&file->scan);
    const bool lax = part == DECODER;
    size_t i = 0;
    while (i < sizeof known / sizeof known[0] && (!(known[i].parts & part) || !json_name_is(name, known[i].name)))
        i++;
    if (i == sizeof known / sizeof known[0])
        return json_skip(&file->scan);
    void *at = (char *)fields + known[i].at;
    struct flag *flag = at;
    struct number *number = at;
    switch (known[i].kind) {
    case A_TEXT:
        return text_parse(file, at, lax);
    case A_PATTERN:
        return pattern_parse(file, part, fields);
    case A_LIST:
        flag->given = kind == JSON_ARRAY;
        return json_skip(&file->scan);
    case A_NUMBER:
        if (lax && kind != JSON_NUMBER)
            return json_skip(&file->scan);
        number->given = true;
        return json_unsigned(&file->scan, &number->value);
    case A_FLAG:
    case A_FLAG_OR_NULL:
    default:
        if (lax ? kind != JSON_TRUE && kind != JSON_FALSE : known[i].kind == A_FLAG_OR_NULL && kind == JSON_NULL)
            return json_skip(&file->scan);
        flag->given = true;
        return json_bool(&file->scan, &flag->value);
    }
}

/* Parses all fields of the object that begins at the current position. */
static bool fields_parse(struct json_file *file, unsigned part, struct fields *fields)
{
    struct json_string name;
    memset(fields, 0, sizeof *fields);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!field_parse(file, &name, part, fields))
            return false;
    return !file->scan.fault.reason;
}

/* Parses a Sequence: the parts in a list of the object that begins at the current position. */
static bool sequence_parse(struct json_file *file, const char *list,
                           bool (*part_parse)(struct json_file *file, void *into, uint32_t depth), void *into,
                           uint32_t depth)
{
    struct json_string name;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        if (!json_name_is(&name, list)) {
            json_skip(&file->scan);
            continue;
        }
        for (json_enter_array(&file->scan); json_element(&file->scan);)
            if (!part_parse(file, into, depth + 1))
                return false;
    }
    return !file->scan.fault.reason;
}

static bool missing(struct json_file *file, const char *field)
{
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the field %s is missing; the file is incomplete", field);
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

static bool replacement_finish(struct json_file *file, const struct fields *fields, struct normalizer_step *step)
{
    if (!fields->pattern.given)
        return missing(file, "normalizer.Replace.pattern");
    if (!fields->content.given)
        return missing(file, "normalizer.Replace.content");
    if (!copy_text(file, "a normalizer", &fields->content, &step->content, &step->content_bytes))
        return false;
    if (!copy_text(file, "a normalizer", &fields->pattern, &step->pattern, &step->pattern_bytes))
        return false;
    /* The reference makes a pattern of the text, too: an empty one matches between all characters. */
    if (fields->is_regex || !fields->pattern.count)
        file->status = regex_new(&step->regex, (const char *)fields->pattern.bytes, fields->pattern.count,
                                 REGEX_ONIGURUMA, file->path, "normalizer.Replace.pattern", file->error);
    return !file->status;
}

static bool prepend_finish(struct json_file *file, const struct fields *fields, struct normalizer_step *step)
{
    return fields->prepend.given
               ? copy_text(file, "a normalizer", &fields->prepend, &step->content, &step->content_bytes)
               : missing(file, "normalizer.Prepend.prepend");
}

static bool stripping_finish(struct json_file *file, const struct fields *fields, struct normalizer_step *step)
{
    step->strip_left = fields->left.value;
    step->strip_right = fields->right.value;
    return (fields->left.given || missing(file, "normalizer.Strip.strip_left")) &&
           (fields->right.given || missing(file, "normalizer.Strip.strip_right"));
}

static bool precompiled_finish(struct json_file *file, const struct fields *fields, struct normalizer_step *step)
{
    if (!fields->map.given)
        return missing(file, "normalizer.Precompiled.precompiled_charsmap");
    uint8_t *bytes = malloc(fields->map.count / 4 * 3 + 1);
    if (!bytes)
        return json_file_memory(file, "a normalizer", fields->map.count);
    const uint32_t count = base64_decode(bytes, fields->map.bytes, fields->map.count);
    if (count)
        file->status = charsmap_new(&step->map, bytes, count, file->path, "normalizer.Precompiled.precompiled_charsmap",
                                    file->error);
    else
        json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                         "normalizer.Precompiled.precompiled_charsmap is not base64; the file is damaged");
    free(bytes);
    return !file->status;
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

/* Parses a BertNormalizer, and adds its steps in the order in which the reference takes them. */
static bool parse_bert(struct json_file *file, struct normalizer *normalizer)
{
    struct fields bert;
    if (!fields_parse(file, BERT, &bert))
        return false;
    const bool strip = bert.strip.given ? bert.strip.value : bert.lower.value;
    return (bert.clean.given || missing(file, "normalizer.BertNormalizer.clean_text")) &&
           (bert.chinese.given || missing(file, "normalizer.BertNormalizer.handle_chinese_chars")) &&
           (bert.lower.given || missing(file, "normalizer.BertNormalizer.lowercase")) &&
           (!bert.clean.value || step_add(file, normalizer, NORMALIZE_BERT_CLEAN)) &&
           (!bert.chinese.value || step_add(file, normalizer, NORMALIZE_BERT_CHINESE)) &&
           (!strip ||
            (step_add(file, normalizer, NORMALIZE_NFD) && step_add(file, normalizer, NORMALIZE_BERT_MARKS))) &&
           (!bert.lower.value || step_add(file, normalizer, NORMALIZE_LOWER));
}

static bool normalizer_nested(struct json_file *file, void *into, uint32_t depth)
{
    struct normalizer *normalizer = into;
    static const struct {
        const char *name;
        enum normalizer_kind kind;
        /* NULL: the type has no fields. */
        bool (*finish)(struct json_file *file, const struct fields *fields, struct normalizer_step *step);
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
    if (is_word(&type, "Sequence"))
        return sequence_parse(file, "normalizers", normalizer_nested, into, depth);
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
    struct fields fields;
    return kinds[kind].finish ? fields_parse(file, NORMALIZER, &fields) && kinds[kind].finish(file, &fields, step)
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

static bool metaspace_finish(struct json_file *file, const struct fields *fields, struct hf_split *step)
{
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
    if (fields->prefix_space.given && !fields->prefix_space.value) {
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

static bool split_finish(struct json_file *file, const struct fields *fields, struct hf_split *step)
{
    step->pattern = fields->pattern.bytes;
    step->pattern_bytes = fields->pattern.count;
    if (!fields->pattern.given)
        return missing(file, "pre_tokenizer.Split.pattern");
    if (!fields->invert.given)
        return missing(file, "pre_tokenizer.Split.invert");
    if (!behavior_of(&fields->behavior, &step->behavior))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.Split.behavior is missing or unknown; the file is damaged");
    if (!step->is_regex && !step->pattern_bytes)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "pre_tokenizer.Split.pattern is empty; tokmap cannot read such a file");
    return true;
}

static bool step_finish(struct json_file *file, const struct text *type, const struct fields *fields,
                        struct hf_split *step)
{
    const enum hf_split_kind kind = step->kind;
    uint32_t ignored;
    step->is_regex = fields->is_regex;
    step->prefix_space = fields->prefix_space.value;
    step->use_regex = !fields->use_regex.given || fields->use_regex.value;
    step->split = !fields->split.given || fields->split.value;
    step->length = fields->length.given ? fields->length.value : 5; /* the default of the reference */
    step->behavior = kind == HF_PUNCTUATION || kind == HF_SCRIPTS || kind == HF_FIXED ? SPLIT_ISOLATED : SPLIT_REMOVED;
    step->invert = fields->invert.value || kind == HF_WHITESPACE;
    if (kind == HF_BYTE_LEVEL)
        return fields->prefix_space.given || missing(file, "pre_tokenizer.ByteLevel.add_prefix_space");
    if (kind == HF_SPLIT && is_word(type, "Split"))
        return split_finish(file, fields, step);
    if (kind == HF_SPLIT) { /* CharDelimiterSplit */
        step->pattern = fields->replacement.bytes;
        step->pattern_bytes = fields->replacement.count;
        return one_character(&fields->replacement, &ignored) ||
               json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.CharDelimiterSplit.delimiter must be one character");
    }
    if (kind == HF_DIGITS) {
        step->behavior = fields->individual.value ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
        return fields->individual.given || missing(file, "pre_tokenizer.Digits.individual_digits");
    }
    if (kind == HF_PUNCTUATION)
        return !fields->behavior.given || behavior_of(&fields->behavior, &step->behavior) ||
               json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "pre_tokenizer.Punctuation.behavior is unknown; the file is damaged");
    if (kind == HF_METASPACE)
        return metaspace_finish(file, fields, step);
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
    if (is_word(&type, "Sequence"))
        return sequence_parse(file, "pretokenizers", splits_nested, into, depth);
    if (is_word(&type, "BertPreTokenizer"))
        return splits_add(file, splits, (struct hf_split){.kind = HF_WHITESPACE_SPLIT, .behavior = SPLIT_REMOVED}) &&
               splits_add(file, splits, (struct hf_split){.kind = HF_PUNCTUATION, .behavior = SPLIT_ISOLATED}) &&
               json_skip(&file->scan);
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof kinds[0] && !is_word(&type, kinds[kind].name))
        kind++;
    if (kind == sizeof kinds / sizeof kinds[0])
        return refuse_type(file, &type, "pre_tokenizer");
    if (!splits_add(file, splits, (struct hf_split){.kind = kinds[kind].kind}))
        return false;
    struct fields fields;
    return fields_parse(file, kinds[kind].kind == HF_FIXED ? SPLIT | FIXED : SPLIT, &fields) &&
           step_finish(file, &type, &fields, &splits->steps[splits->count - 1]);
}

bool hf_splits_parse(struct json_file *file, struct hf_splits *splits)
{
    assert(!file->status && splits->count <= PRETOKENIZER_STEPS_MOST);
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan) : splits_nested(file, splits, 0);
}

/* ---- decoder ----
 *
 * A step that is refused ends the parsing of the decoder. What the file has after the decoder is parsed as usual. */

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

static bool lacks(struct decoder_parsing *parsing, const char *field)
{
    return refuse(parsing, "the file's field decoder.%s is missing or of a wrong kind", field);
}

static bool replace_make(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step)
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

static bool strip_make(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    step->start = fields->start.value;
    step->stop = fields->stop.value;
    if (!fields->start.given)
        return lacks(parsing, "Strip.start");
    if (!fields->stop.given)
        return lacks(parsing, "Strip.stop");
    return one_character(&fields->content, &step->character) || lacks(parsing, "Strip.content");
}

static bool metaspace_make(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    const bool never = is_word(&fields->scheme, "never");
    step->prepends = !never;
    if (fields->scheme.given && !never && !is_word(&fields->scheme, "first") && !is_word(&fields->scheme, "always"))
        return lacks(parsing, "Metaspace.prepend_scheme");
    if (fields->prefix_space.given && !fields->prefix_space.value && step->prepends)
        return refuse(parsing, "the file's field decoder.Metaspace.add_prefix_space is false, but prepend_scheme is "
                               "not 'never'; the reference refuses that, too");
    return one_character(&fields->replacement, &step->character) || lacks(parsing, "Metaspace.replacement");
}

static bool wordpiece_make(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    step->cleanup = fields->cleanup.value;
    if (!fields->prefix.given)
        return lacks(parsing, "WordPiece.prefix");
    return fields->cleanup.given
               ? copy_text(parsing->file, "a decoder", &fields->prefix, &step->pattern, &step->pattern_bytes)
               : lacks(parsing, "WordPiece.cleanup");
}

static bool ctc_make(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    step->cleanup = fields->cleanup.value;
    if (!fields->pad_token.given)
        return lacks(parsing, "CTC.pad_token");
    if (!fields->delimiter.given)
        return lacks(parsing, "CTC.word_delimiter_token");
    if (!fields->cleanup.given)
        return lacks(parsing, "CTC.cleanup");
    return copy_text(parsing->file, "a decoder", &fields->pad_token, &step->pattern, &step->pattern_bytes) &&
           copy_text(parsing->file, "a decoder", &fields->delimiter, &step->content, &step->content_bytes);
}

static bool bpe_make(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    return fields->suffix.given
               ? copy_text(parsing->file, "a decoder", &fields->suffix, &step->pattern, &step->pattern_bytes)
               : lacks(parsing, "BPEDecoder.suffix");
}

static bool decoder_step_add(struct decoder_parsing *parsing, const struct fields *fields)
{
    static const struct {
        const char *name;
        enum decode_kind kind;
        /* NULL: the type has no fields. */
        bool (*make)(struct decoder_parsing *parsing, const struct fields *fields, struct decode_step *step);
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

/* Parses one decoder and appends its steps. Returns false if it is refused, or if the JSON is wrong. */
static bool decoder_nested(struct json_file *file, void *into, uint32_t depth)
{
    struct decoder_parsing *parsing = into;
    struct fields fields;
    if (depth > NESTED_MOST)
        return refuse(parsing, "the file's decoder has more than %d nested sequences", NESTED_MOST);
    if (json_kind(&file->scan) != JSON_OBJECT)
        return refuse(parsing, "a step of the file's decoder is not an object");
    const struct json_scan start = file->scan;
    if (!fields_parse(file, DECODER, &fields))
        return false;
    if (!is_word(&fields.type, "Sequence"))
        return decoder_step_add(parsing, &fields);
    if (!fields.decoders.given)
        return lacks(parsing, "Sequence.decoders");
    file->scan = start;
    return sequence_parse(file, "decoders", decoder_nested, parsing, depth);
}

bool hf_decoder_parse(struct json_file *file, struct pipeline_parts *parts)
{
    struct decoder_parsing parsing = {file, parts};
    assert(!file->status && !parts->decoder.count);
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    const struct json_scan start = file->scan;
    parts->decoder_given = true;
    if (!decoder_nested(file, &parsing, 0) && !parts->decoder.refused[0])
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
