/* SPDX-License-Identifier: MIT */
/* format_choice.c - see format_choice.h. */
#include "format_choice.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "csv_field.h"
#include "name_kind.h"
#include "remote/remote_url.h"
#include "sniff.h"
#include "stream.h"
#include "text/name_list.h"
#include "text/stand_in.h"

#define BOM "\xef\xbb\xbf"

/* Returns the index of the first byte from `at` on that is not blank; a byte order mark begins the bytes. */
static uint64_t blank_skip(const char *bytes, uint64_t at, uint64_t count)
{
    if (!at && !memcmp(bytes, BOM, min64(count, 3)))
        at = min64(count, 3);
    while (at < count && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r' || bytes[at] == '\n'))
        at++;
    return at;
}

/* Returns true if these bytes are the beginning of a line that can still turn out to be a JSON object, after blank
 * lines. */
static bool may_be_jsonl(const struct first_bytes *first)
{
    struct first_line none = {0}, *line = first->line ? first->line : &none;
    const char *bytes = first->bytes;
    const uint64_t count = first->count, at = blank_skip(bytes, line->blank, count);
    line->blank = at < 3 ? 0 : at; /* fewer bytes may be a part of the mark */
    if (at == count)
        return true;
    const uint64_t from = max64(at, line->searched);
    line->searched = count;
    return bytes[at] == '{' && !memchr(bytes + from, '\n', count - from);
}

/* Returns true if more bytes have to be seen to tell whether these begin with a record. They are judged again only
 * when they have doubled. */
static bool may_be_records(const struct first_bytes *first)
{
    struct first_line none = {0}, *line = first->line ? first->line : &none;
    if (line->open > SNIFF_BYTES && first->count / 2 < line->open)
        return true;
    line->open = sniff_needs_more(first->bytes, first->count) ? first->count : 0;
    return line->open > 0;
}

/* Returns true if the first line that is not blank is a JSON object; otherwise *fault says why it is not. */
static bool is_jsonl(const struct first_bytes *first, struct json_fault *fault)
{
    const uint64_t begin = blank_skip(first->bytes, 0, first->count), left = first->count - begin;
    const char *line = first->bytes + begin, *newline = memchr(line, '\n', left);
    struct json_scan scan;
    json_begin(&scan, line, newline ? (uint64_t)(newline - line) : left);
    scan.not_finite_allowed = true;
    const bool object = json_kind(&scan) == JSON_OBJECT && json_skip(&scan) && json_end(&scan);
    *fault = scan.fault;
    fault->offset += begin;
    return object;
}

static enum judged judged_wrong(struct judgment *judgment, enum corpus_reason reason)
{
    judgment->reason = reason;
    return JUDGED_WRONG;
}

/* Refuses a file that looks like records of a format, when nothing says that it is. */
static enum judged ambiguous(const struct first_bytes *first, struct judgment *judgment, const char *looks,
                             const char *format)
{
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    "%s, and would be read as one text; use --input-format %s if it contains records, or "
                    "--input-format text if it is text",
                    looks, format);
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Refuses a file whose first line would be JSONL, but is not valid. */
static enum judged wrong_line(const struct first_bytes *first, const struct json_fault *fault,
                              struct judgment *judgment)
{
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), fault->offset,
                    "the first line begins with a JSON object, as in JSONL, but is not valid JSON: %s; use "
                    "--input-format jsonl if it contains records, or --input-format text if it is text",
                    fault->reason);
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Refuses a list of strings: each is probably a document, but records are objects. */
static enum judged strings(const struct first_bytes *first, struct judgment *judgment)
{
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    "the file is a JSON array of strings, and would be read as one text; if each string is a document, "
                    "make it an object, such as {\"%s\": ...}; if the file is one text, use --input-format text",
                    first->options->field);
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Git LFS has not fetched the file. */
static enum judged pointer(const struct first_bytes *first, struct judgment *judgment)
{
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    STAND_IN_POINTER_MESSAGE);
    return judged_wrong(judgment, CORPUS_REASON_FORMAT);
}

/* Refuses a page of a web server in place of a file: a list of files, a login, or the page that shows the file. The
 * texts of a corpus are never meant. */
static enum judged page(const struct first_bytes *first, struct judgment *judgment)
{
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    "the server sends an HTML page, and it would be read as one text; name the file itself (on "
                    "huggingface.co its URL has /resolve/, not /blob/), or use --input-format text if the page is "
                    "wanted");
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Text has no fields, and the content that is wanted is in one. */
static enum judged no_fields(const struct first_bytes *first, struct judgment *judgment)
{
    const char *field = first->options->field;
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    "the file is text without records, so it has no field '%s' (%s); leave it out, or name the format "
                    "of its records with --input-format",
                    field, field_option(first->options, field));
    return judged_wrong(judgment, CORPUS_REASON_FIELD);
}

/* Refuses a file whose name says that it is not text, and whose content is not what the name says. */
static enum judged not_as_named(const struct first_bytes *first, struct judgment *judgment, const char *named)
{
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    "the name is that of %s, and the content is not; get the file again, or use --input-format text if "
                    "it is text",
                    named);
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Takes a file as text, if its name allows that. An empty file has no records. */
static enum judged text(const struct first_bytes *first, enum name_kind name, enum corpus_format *format,
                        struct judgment *judgment)
{
    const bool table = name == NAME_CSV || name == NAME_TSV;
    if (table && first->count)
        return ambiguous(first, judgment, "the name is that of a table", name == NAME_CSV ? "csv" : "tsv");
    if (name == NAME_JSON && blank_skip(first->bytes, 0, first->count) < first->count)
        return ambiguous(first, judgment,
                         "the name is that of JSON, but the file does not begin with an object or an array of "
                         "objects",
                         "json");
    if (name == NAME_BINARY || (name == NAME_WARC && first->count))
        return not_as_named(first, judgment, name == NAME_WARC ? "a WARC file" : "a binary file");
    if (table || name == NAME_JSON || name == NAME_WARC) {
        *format = name == NAME_JSON   ? CORPUS_JSON
                  : name == NAME_WARC ? CORPUS_WARC
                  : name == NAME_CSV  ? CORPUS_CSV
                                      : CORPUS_TSV;
        return JUDGED;
    }
    return first->options->content == CORPUS_CONTENT_TEXT ? JUDGED : no_fields(first, judgment);
}

enum judged warc_has_no_fields(const struct first_bytes *first, struct judgment *judgment)
{
    const char *field = first->options->field;
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET,
                    "the records of a WARC file are texts, so they have no field '%s' (%s); leave the file out, or "
                    "convert its records to JSONL",
                    field, field_option(first->options, field));
    return judged_wrong(judgment, CORPUS_REASON_FIELD);
}

enum judged warc_end_judge(const char *path, const struct warc_scan *scan, struct judgment *judgment)
{
    if (scan->state == WARC_OTHERS) {
        (void)error_set(&judgment->why, TOKMAP_ERROR_TRUNCATED, stream_name(path), TOKMAP_NO_OFFSET,
                        "the file ends inside a record, %" PRIu64
                        " bytes before its end, or the record's Content-Length is wrong; get the file again",
                        scan->left);
        return judged_wrong(judgment, CORPUS_REASON_DAMAGED);
    }
    if (scan->texts || !scan->others)
        return JUDGED;
    (void)error_set(&judgment->why, TOKMAP_ERROR_UNSUPPORTED, stream_name(path), TOKMAP_NO_OFFSET,
                    "none of the %" PRIu64 " records of the WARC file has extracted text (WARC-Type conversion, "
                    "Content-Type text/plain); extract the texts first, or use the .wet files of the crawl",
                    scan->others);
    return judged_wrong(judgment, CORPUS_REASON_FORMAT);
}

/* Returns true if the bytes begin with the line "WARC/1.0", or as any version, after blank lines as they are between
 * records. */
static bool is_warc(const struct first_bytes *first)
{
    const char *bytes = first->bytes, *end = bytes + first->count;
    while (bytes < end && (*bytes == '\r' || *bytes == '\n'))
        bytes++;
    if (end - bytes < 9 || memcmp(bytes, "WARC/", 5) != 0)
        return false;
    bytes += 5;
    while (bytes < end && ((*bytes >= '0' && *bytes <= '9') || *bytes == '.'))
        bytes++;
    return bytes < end && bytes[-1] != '/' && (*bytes == '\r' || *bytes == '\n');
}

static enum judged binary(const struct first_bytes *first, struct judgment *judgment)
{
    const char *bytes = first->bytes, *zero = memchr(bytes, '\0', min64(first->count, SNIFF_BYTES));
    assert(zero);
    (void)error_set(
        &judgment->why, TOKMAP_ERROR_UNSUPPORTED, stream_name(first->path), (uint64_t)(zero - bytes),
        "the file contains a zero byte, so it is not text; leave it out, or use --input-format text if it is "
        "text (convert UTF-16 with 'iconv -t UTF-8')");
    return judged_wrong(judgment, CORPUS_REASON_FORMAT);
}

enum corpus_format format_of_name(const char *path)
{
    const enum name_kind kind = name_kind_of(path);
    return kind == NAME_JSONL ? CORPUS_JSONL : kind == NAME_PARQUET ? CORPUS_PARQUET : CORPUS_AUTO;
}

enum judged format_choose(const struct first_bytes *first, enum corpus_format *format, struct judgment *judgment)
{
    const enum name_kind name = name_kind_of(first->path);
    const bool mixed = name == NAME_MIXED || name == NAME_JSON, more = !first->end;
    const bool within = first->count <= first->options->record_limit;
    struct json_fault fault = {0, NULL};
    /* If the name leaves it open, the whole first line is needed, however long it is. */
    if (mixed) {
        if (more && within && may_be_jsonl(first))
            return JUDGED_MORE;
        if (is_jsonl(first, &fault)) {
            *format = CORPUS_JSONL;
            return JUDGED;
        }
    }
    if (is_warc(first)) {
        *format = CORPUS_WARC;
        return JUDGED;
    }
    if (more && (first->count < SNIFF_BYTES || (within && may_be_records(first))))
        return JUDGED_MORE;
    *format = CORPUS_TEXT;
    const enum sniff_kind kind = sniff(first->bytes, first->count, first->end, first->options->field);
    switch (kind) {
    case SNIFF_POINTER:
        return pointer(first, judgment);
    case SNIFF_PAGE:
        if (remote_kind(first->path) == REMOTE_WEB && strncmp(name_ending(first->path), ".htm", 4) != 0)
            return page(first, judgment);
        return text(first, name, format, judgment);
    case SNIFF_TEXT:
        return text(first, name, format, judgment);
    case SNIFF_ARRAY:
        if (!mixed)
            return ambiguous(first, judgment, "the file begins with a JSON array of objects", "json");
        *format = CORPUS_JSON;
        return JUDGED;
    case SNIFF_STRINGS:
        return strings(first, judgment);
    case SNIFF_JSONL:
        if (fault.reason)
            return wrong_line(first, &fault, judgment);
        return ambiguous(first, judgment, "the first line begins with a JSON object, as in JSONL", "jsonl");
    case SNIFF_OBJECT:
        return ambiguous(first, judgment, "the file begins with a JSON object", "json");
    case SNIFF_CSV:
    case SNIFF_TSV:
        if (name == NAME_CSV || name == NAME_TSV)
            return text(first, name, format, judgment);
        return ambiguous(first, judgment,
                         kind == SNIFF_CSV ? "the first lines look like a CSV table"
                                           : "the first lines look like a table of tab-separated values",
                         kind == SNIFF_CSV ? "csv" : "tsv");
    case SNIFF_BINARY:
        break;
    }
    return binary(first, judgment);
}

const char *field_option(const struct corpus_options *options, const char *field)
{
    static const char *const first[] = {"--field", "--ids-field", "--prompt-field", "--messages-field"};
    if (field == options->field)
        return first[options->content];
    if (field == options->second_field)
        return options->content != CORPUS_CONTENT_IDS ? "--completion-field"
               : options->labels                      ? "--labels-field"
                                                      : "--mask-field";
    for (size_t i = 0; i < options->beside_count; i++)
        if (field == options->beside[i])
            return "--ignore-fields";
    return "--columns";
}

/* Describes a header that lacks a wanted column, has it twice, or is not valid. */
static enum judged header_wrong(const struct first_bytes *first, const struct csv_record *record, const char *field,
                                bool twice, const char *names, uint64_t line, uint64_t offset,
                                struct judgment *judgment)
{
    struct tokmap_error *why = &judgment->why;
    const char *path = stream_name(first->path);
    if (record->fault.reason)
        (void)error_set(why, TOKMAP_ERROR_INPUT, path, offset + record->fault.offset,
                        "the header is not valid: %s; correct the line", record->fault.reason);
    else if (twice)
        (void)error_set(why, TOKMAP_ERROR_INPUT, path, offset,
                        "the header names the column '%s' twice; name another column with %s", field,
                        field_option(first->options, field));
    else
        (void)error_set(why, TOKMAP_ERROR_INPUT, path, offset,
                        "the header has no column '%s'; it has: %s; name another column with %s", field, names,
                        field_option(first->options, field));
    why->line = (uint32_t)min64(line, UINT32_MAX);
    return judged_wrong(judgment, record->fault.reason ? CORPUS_REASON_SYNTAX : CORPUS_REASON_FIELD);
}

enum judged header_read(const struct first_bytes *first, enum corpus_format format, uint64_t line, uint64_t offset,
                        uint64_t *columns, uint64_t *places, struct judgment *judgment)
{
    struct csv_record record = {.bytes = first->bytes,
                                .count = csv_record_length(first->bytes, first->count),
                                .separator = record_scan_separator(format)};
    const char other = format == CORPUS_CSV ? '\t' : ',';
    const char *wanted[RECORD_FIELDS_MOST], *twice = NULL, *missing = NULL;
    const size_t fields = record_fields(first->options, wanted);
    struct csv_field name;
    struct name_list names = {0};
    *columns = 0;
    for (size_t i = 0; i < fields; i++)
        places[i] = UINT64_MAX;
    while (csv_field_next(&record, &name)) {
        name_list_add(&names, first->bytes + name.offset, name.count);
        for (size_t i = 0; i < fields; i++) {
            if (!csv_field_equals(&record, &name, wanted[i]))
                continue;
            twice = places[i] != UINT64_MAX && !twice ? wanted[i] : twice;
            places[i] = *columns;
        }
        ++*columns;
    }
    for (size_t i = fields - first->options->column_count - first->options->beside_count; i > 0; i--)
        missing = places[i - 1] == UINT64_MAX ? wanted[i - 1] : missing;
    if (missing == first->options->field && *columns == 1 && memchr(first->bytes, other, record.count)) {
        (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), offset,
                        "the header has only one column, with %s in it; use --input-format %s, or name the column with "
                        "%s",
                        format == CORPUS_CSV ? "tabs" : "commas", format == CORPUS_CSV ? "tsv" : "csv",
                        field_option(first->options, missing));
        judgment->why.line = (uint32_t)min64(line, UINT32_MAX);
        return judged_wrong(judgment, CORPUS_REASON_FIELD);
    }
    if (record.fault.reason || missing || twice)
        return header_wrong(first, &record, twice ? twice : missing, twice != NULL, names.text, line, offset, judgment);
    return JUDGED;
}
