/* SPDX-License-Identifier: MIT */
/*
 * hf_decoder.c - each step is an object with a "type". Its fields are parsed in any order, then the step is checked and
 * made. Unknown fields are skipped: the reference ignores them, too.
 *
 * A step that is refused ends the parsing of the decoder. What the file has after the decoder is parsed as usual.
 */
#include "hf_decoder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/code_point.h"

#define NESTED_MOST 8 /* sequences within sequences */
#define TYPE_BYTES_MOST 64

struct text {
    const uint8_t *bytes;
    size_t count;
    bool given;
};

/* The fields of every kind of step together. */
struct fields {
    struct text type, pattern, content, suffix, prefix, pad_token, delimiter, replacement, scheme;
    struct text decoders; /* only `given` is used */
    uint64_t start, stop;
    bool is_regex, start_given, stop_given, cleanup, cleanup_given, prefix_space, prefix_space_given;
};

struct parsing {
    struct json_file *file;
    struct pipeline_parts *parts;
};

/* Notes why the decoder cannot be reproduced. Always returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(struct parsing *parsing, const char *format, ...)
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

static bool is_word(const struct text *text, const char *word)
{
    return text->given && text->count == strlen(word) && !memcmp(text->bytes, word, text->count);
}

/* Parses a text. A value of another kind is skipped and not given, as if the field were missing. */
static bool text_parse(struct json_file *file, struct text *text)
{
    if (json_kind(&file->scan) != JSON_STRING)
        return json_skip(&file->scan);
    text->given = true;
    return json_file_text(file, &text->bytes, &text->count);
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
static bool pattern_parse(struct json_file *file, struct fields *fields)
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

static bool field_parse(struct json_file *file, const struct json_string *name, struct fields *fields)
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
static bool fields_parse(struct json_file *file, struct fields *fields)
{
    struct json_string name;
    memset(fields, 0, sizeof *fields);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!field_parse(file, &name, fields))
            return false;
    return !file->scan.fault.reason;
}

static bool one_character(const struct text *text, uint32_t *code)
{
    size_t bytes;
    if (!text->given || !text->count)
        return false;
    *code = code_point_get(text->bytes, &bytes);
    return bytes == text->count;
}

/* ---- steps ---- */

static bool lacks(struct parsing *parsing, const char *field)
{
    return refuse(parsing, "the file's field decoder.%s is missing or of a wrong kind", field);
}

static bool copy(struct parsing *parsing, const struct text *text, uint8_t **bytes, size_t *count)
{
    *bytes = malloc(text->count + 1);
    if (!*bytes) {
        parsing->file->status = error_set_memory(parsing->file->error, "a decoder", text->count + 1);
        return false;
    }
    if (text->count)
        memcpy(*bytes, text->bytes, text->count);
    *count = text->count;
    return true;
}

static bool replace_make(struct parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    struct json_file *file = parsing->file;
    struct tokmap_error error;
    if (!fields->pattern.given)
        return lacks(parsing, "Replace.pattern");
    if (!fields->content.given)
        return lacks(parsing, "Replace.content");
    if (!copy(parsing, &fields->content, &step->content, &step->content_bytes) ||
        !copy(parsing, &fields->pattern, &step->pattern, &step->pattern_bytes))
        return false;
    if (!fields->is_regex)
        return fields->pattern.count ||
               refuse(parsing, "the file's field decoder.Replace.pattern is empty, which tokmap cannot reproduce");
    const enum tokmap_status status =
        regex_new(&step->regex, (const char *)fields->pattern.bytes, fields->pattern.count, REGEX_ONIGURUMA, NULL,
                  "decoder.Replace.pattern", &error);
    if (status == TOKMAP_ERROR_MEMORY) {
        file->status = error_set_memory(file->error, "a decoder", fields->pattern.count);
        return false;
    }
    return !status || refuse(parsing, "%.160s", error.message);
}

static bool strip_make(struct parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    step->start = fields->start;
    step->stop = fields->stop;
    if (!fields->start_given)
        return lacks(parsing, "Strip.start");
    if (!fields->stop_given)
        return lacks(parsing, "Strip.stop");
    return one_character(&fields->content, &step->character) || lacks(parsing, "Strip.content");
}

static bool metaspace_make(struct parsing *parsing, const struct fields *fields, struct decode_step *step)
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

static bool wordpiece_make(struct parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    step->cleanup = fields->cleanup;
    if (!fields->prefix.given)
        return lacks(parsing, "WordPiece.prefix");
    return fields->cleanup_given ? copy(parsing, &fields->prefix, &step->pattern, &step->pattern_bytes)
                                 : lacks(parsing, "WordPiece.cleanup");
}

static bool ctc_make(struct parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    step->cleanup = fields->cleanup;
    if (!fields->pad_token.given)
        return lacks(parsing, "CTC.pad_token");
    if (!fields->delimiter.given)
        return lacks(parsing, "CTC.word_delimiter_token");
    if (!fields->cleanup_given)
        return lacks(parsing, "CTC.cleanup");
    return copy(parsing, &fields->pad_token, &step->pattern, &step->pattern_bytes) &&
           copy(parsing, &fields->delimiter, &step->content, &step->content_bytes);
}

static bool step_make(struct parsing *parsing, const struct fields *fields, struct decode_step *step)
{
    switch (step->kind) {
    case DECODE_REPLACE:
        return replace_make(parsing, fields, step);
    case DECODE_STRIP:
        return strip_make(parsing, fields, step);
    case DECODE_METASPACE:
        return metaspace_make(parsing, fields, step);
    case DECODE_WORDPIECE:
        return wordpiece_make(parsing, fields, step);
    case DECODE_CTC:
        return ctc_make(parsing, fields, step);
    case DECODE_BPE:
        return fields->suffix.given ? copy(parsing, &fields->suffix, &step->pattern, &step->pattern_bytes)
                                    : lacks(parsing, "BPEDecoder.suffix");
    case DECODE_LOSSY:
    case DECODE_SENTENCEPIECE:
    case DECODE_BYTE_LEVEL:
    case DECODE_BYTE_FALLBACK:
    case DECODE_FUSE:
    default:
        return true;
    }
}

static bool step_add(struct parsing *parsing, const struct fields *fields)
{
    /* clang-format off */
    static const struct {
        const char *name;
        enum decode_kind kind;
    } kinds[] = {{"ByteLevel", DECODE_BYTE_LEVEL}, {"ByteFallback", DECODE_BYTE_FALLBACK}, {"Fuse", DECODE_FUSE},
                 {"Replace", DECODE_REPLACE},      {"Strip", DECODE_STRIP},                {"CTC", DECODE_CTC},
                 {"Metaspace", DECODE_METASPACE},  {"WordPiece", DECODE_WORDPIECE},        {"BPEDecoder", DECODE_BPE}};
    /* clang-format on */
    struct text_decoder *decoder = &parsing->parts->decoder;
    const struct text *type = &fields->type;
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof kinds[0] && !is_word(type, kinds[kind].name))
        kind++;
    if (!type->given)
        return refuse(parsing, "a step of the file's decoder has no \"type\"");
    if (kind == sizeof kinds / sizeof kinds[0])
        return refuse(parsing, "the file's decoder.type is '%.*s', which tokmap cannot reproduce",
                      type->count < TYPE_BYTES_MOST ? (int)type->count : TYPE_BYTES_MOST, (const char *)type->bytes);
    if (decoder->count == DECODER_STEPS_MOST)
        return refuse(parsing, "the file's decoder has more than %d steps, which is the most that tokmap can reproduce",
                      DECODER_STEPS_MOST);
    struct decode_step *step = &decoder->steps[decoder->count++];
    memset(step, 0, sizeof *step);
    step->kind = kinds[kind].kind;
    return step_make(parsing, fields, step);
}

/* ---- the decoder ---- */

static bool nested_parse(struct parsing *parsing, uint32_t depth);

/* Parses the decoders of a Sequence, which are somewhere in the object that begins at the current position. */
static bool sequence_parse(struct parsing *parsing, uint32_t depth)
{
    struct json_file *file = parsing->file;
    struct json_string name;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        if (!json_name_is(&name, "decoders")) {
            json_skip(&file->scan);
            continue;
        }
        for (json_enter_array(&file->scan); json_element(&file->scan);)
            if (!nested_parse(parsing, depth + 1))
                return false;
    }
    return !file->scan.fault.reason;
}

/* Parses one decoder and appends its steps. Returns false if it is refused, or if the JSON is wrong. */
static bool nested_parse(struct parsing *parsing, uint32_t depth)
{
    struct json_file *file = parsing->file;
    struct fields fields;
    if (depth > NESTED_MOST)
        return refuse(parsing, "the file's decoder has more than %d nested sequences", NESTED_MOST);
    if (json_kind(&file->scan) != JSON_OBJECT)
        return refuse(parsing, "a step of the file's decoder is not an object");
    const struct json_scan start = file->scan;
    if (!fields_parse(file, &fields))
        return false;
    if (!is_word(&fields.type, "Sequence"))
        return step_add(parsing, &fields);
    if (!fields.decoders.given)
        return lacks(parsing, "Sequence.decoders");
    file->scan = start;
    return sequence_parse(parsing, depth);
}

bool hf_decoder_parse(struct json_file *file, struct pipeline_parts *parts)
{
    struct parsing parsing = {file, parts};
    assert(!file->status && !parts->decoder.count);
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    const struct json_scan start = file->scan;
    parts->decoder_given = true;
    if (!nested_parse(&parsing, 0) && !parts->decoder.refused[0])
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
