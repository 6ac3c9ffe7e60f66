/* SPDX-License-Identifier: MIT */
#include "format_choice.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "csv_field.h"
#include "name_kind.h"
#include "record_scan.h"
#include "remote/remote_url.h"
#include "stream.h"
#include "text/name_list.h"
#include "text/stand_in.h"

#define BOM "\xef\xbb\xbf"
#define NAMES_MOST 256 /* a header with more names is not recognized */
#define NAME_BYTES_MOST 64
#define ROWS_ENOUGH 3
#define ROWS_ENOUGH_OF_TWO 10 /* a pair with a comma is frequent in ordinary text */

/* ---- what text looks like: JSON ---- */

/* Bytes that are passed over: blanks and byte order marks; also comments with slashes; also those with #. */
enum blank { BLANK_ONLY, BLANK_SLASHES, BLANK_ALL };

/* Returns the index of the first byte from `at` on that is not blank. A comment that has no end in the bytes ends with
 * them. */
static uint64_t blank_skip(const char *bytes, uint64_t at, uint64_t count, enum blank blank)
{
    for (;;) {
        const uint64_t left = count - at;
        if (left && (uint8_t)bytes[at] <= ' ') {
            at++;
        } else if (left && !memcmp(bytes + at, BOM, min64(left, 3))) {
            at += min64(left, 3);
        } else if (blank == BLANK_ONLY) {
            return at;
        } else if (left == 1 && bytes[at] == '/') { /* half of what begins a comment */
            at++;
        } else if (left && ((blank == BLANK_ALL && bytes[at] == '#') || (left > 1 && !memcmp(bytes + at, "//", 2)))) {
            const char *end = memchr(bytes + at, '\n', left);
            at = end ? (uint64_t)(end - bytes) + 1 : count;
        } else if (left > 1 && !memcmp(bytes + at, "/*", 2)) {
            const char *end = memmem(bytes + at + 2, left - 2, "*/", 2);
            at = end ? (uint64_t)(end - bytes) + 2 : count;
        } else {
            return at;
        }
    }
}

enum seen { SEEN_NO, SEEN_YES, SEEN_OPEN }; /* OPEN: the bytes end before it can be said */

/* Looks at what comes after a name that is not in quotes, and after its colon. */
static enum seen bare_name_see(const char *bytes, uint64_t at, uint64_t count)
{
    const uint64_t begin = at;
    while (at < count && (isalnum((uint8_t)bytes[at]) || bytes[at] == '_' || bytes[at] == '$'))
        at++;
    const uint64_t colon = blank_skip(bytes, at, count, BLANK_SLASHES);
    if (at == begin || (colon < count && bytes[colon] != ':'))
        return SEEN_NO;
    at = colon < count ? blank_skip(bytes, colon + 1, count, BLANK_SLASHES) : count;
    return at == count ? SEEN_OPEN : isdigit((uint8_t)bytes[at]) || strchr("\"'[{-", bytes[at]) ? SEEN_YES : SEEN_NO;
}

/* At a quote, single or double: sets *at to the first byte after the string and blanks. A string that has no end in its
 * line, but ends with the bytes, is cut off. */
static enum seen string_see(const char *bytes, uint64_t *at, uint64_t count)
{
    const char quote = bytes[(*at)++];
    for (; *at < count && bytes[*at] != quote; ++*at) {
        if ((uint8_t)bytes[*at] < ' ')
            return blank_skip(bytes, *at, count, BLANK_ONLY) == count ? SEEN_OPEN : SEEN_NO;
        *at += bytes[*at] == '\\';
    }
    *at = *at < count ? blank_skip(bytes, *at + 1, count, BLANK_SLASHES) : count;
    return *at == count ? SEEN_OPEN : SEEN_YES;
}

/* Returns whether an object begins at `at`. */
static enum seen object_see(const char *bytes, uint64_t at, uint64_t count)
{
    if (at == count || bytes[at] != '{')
        return at == count ? SEEN_OPEN : SEEN_NO;
    at = blank_skip(bytes, at + 1, count, BLANK_SLASHES);
    if (at == count)
        return SEEN_OPEN;
    const char first = bytes[at];
    if (first == '}') {
        at = blank_skip(bytes, at + 1, count, BLANK_ONLY);
        return at == count ? SEEN_OPEN : strchr(",]{", bytes[at]) ? SEEN_YES : SEEN_NO;
    }
    if (first != '"' && first != '\'')
        return bare_name_see(bytes, at, count);
    const enum seen seen = string_see(bytes, &at, count);
    return seen == SEEN_YES && bytes[at] != ':' ? SEEN_NO : seen;
}

/* Returns whether an object or an array of objects begins the bytes, from *begin on. *array: the first byte is that of
 * an array. */
static enum seen records_see(const char *bytes, uint64_t count, uint64_t *begin, bool *array)
{
    const uint64_t filled = blank_skip(bytes, 0, count, BLANK_ONLY);
    const uint64_t judged = min64(count, filled + SNIFF_BYTES); /* comments before it are not longer */
    uint64_t at = *begin = blank_skip(bytes, filled, judged, BLANK_ALL);
    *array = at < judged && bytes[at] == '[';
    if (at == judged)
        return judged < count ? SEEN_NO : SEEN_OPEN;
    while (at < count && bytes[at] == '[')
        at = blank_skip(bytes, at + 1, count, BLANK_SLASHES);
    if (at == count || bytes[at] != ']' || !*array)
        return object_see(bytes, at, count);
    /* An empty array is the whole file. */
    return blank_skip(bytes, at + 1, count, BLANK_SLASHES) == count ? SEEN_OPEN : SEEN_NO;
}

bool sniff_needs_more(const char *bytes, uint64_t count)
{
    uint64_t begin;
    bool array;
    return records_see(bytes, count, &begin, &array) == SEEN_OPEN;
}

/* Scans the value that begins here. Returns false if it is not valid JSON, NaN and Infinity apart; *offset is then
 * where it is not, otherwise how many bytes it takes. */
static bool value_scan(const char *bytes, uint64_t count, uint64_t *offset)
{
    struct json_scan scan;
    json_begin(&scan, bytes, count);
    scan.not_finite_allowed = true;
    const bool valid = json_skip(&scan);
    *offset = valid ? (uint64_t)(scan.at - bytes) : scan.fault.offset;
    return valid;
}

/* Returns true if the bytes are an array that begins with a string, several of them in a row, or the beginning of one
 * that is cut off; or if they begin with two strings of Python in a list. */
static bool strings_see(const char *bytes, uint64_t count, bool whole)
{
    uint64_t at = blank_skip(bytes, 1, count, BLANK_SLASHES), end;
    const char quote = at < count ? bytes[at] : '\0';
    if ((quote != '"' && quote != '\'') || string_see(bytes, &at, count) == SEEN_NO)
        return false;
    const bool more = at < count && bytes[at] == ',';
    if (quote == '\'') {
        at = more ? blank_skip(bytes, at + 1, count, BLANK_SLASHES) : count;
        return at < count && bytes[at] == quote;
    }
    if (!value_scan(bytes, count, &end)) /* a number or a word that is cut off is a fault at its first byte */
        return (more || !whole) && end + sizeof "false" > count;
    end = blank_skip(bytes, end, count, BLANK_SLASHES);
    return end == count || bytes[end] == '[';
}

static enum sniff_kind json_sniff(const char *bytes, uint64_t count, bool whole)
{
    uint64_t begin, end;
    bool array;
    const enum seen seen = records_see(bytes, count, &begin, &array);
    if (begin == count) /* blank, or a comment */
        return SNIFF_TEXT;
    if (array && seen == SEEN_NO) {
        const uint64_t judged = min64(count - begin, SNIFF_BYTES);
        whole = whole && begin + judged == count;
        return strings_see(bytes + begin, judged, whole) ? SNIFF_STRINGS : SNIFF_TEXT;
    }
    if (array || seen == SEEN_NO)
        return array ? SNIFF_ARRAY : SNIFF_TEXT;
    const char *newline = memchr(bytes + begin, '\n', count - begin);
    const uint64_t line = newline ? (uint64_t)(newline - (bytes + begin)) : count - begin;
    const bool valid = value_scan(bytes + begin, count - begin, &end);
    if (valid && end < line)
        end = blank_skip(bytes + begin, end, line, BLANK_ONLY);
    const bool other = begin + end < count && bytes[begin + end] == '{'; /* another object begins where it ends */
    if (other && !valid && blank_skip(bytes + begin, min64(line, end), end, BLANK_ONLY) == end)
        return SNIFF_JSONL;
    return end > line || (end < line && other) ? SNIFF_OBJECT : SNIFF_JSONL;
}

/* ---- CSV ---- */

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' || (uint8_t)byte >= 0x80;
}

/* Returns true if a field of the first line can be the name of a column. */
static bool is_name(const char *text, uint64_t count)
{
    if (!count || count > NAME_BYTES_MOST || !is_letter(text[0]) || text[count - 1] == ' ')
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!is_letter(text[i]) && !(text[i] >= '0' && text[i] <= '9') && !strchr(" _-.:/()#%", text[i]))
            return false;
    return true;
}

/* Counts the names of the first line. Returns 0 if it is not a list of at least two distinct names. *wanted: the field
 * is one of them, and the others may be anything. */
static uint64_t header_names(const char *line, uint64_t count, char separator, const char *field, bool *wanted)
{
    struct csv_record record = {.bytes = line, .count = csv_record_length(line, count), .separator = separator};
    struct csv_field names[NAMES_MOST];
    uint64_t found = 0;
    bool plain = true;
    *wanted = false;
    for (struct csv_field name; csv_field_next(&record, &name); found++) {
        const char *text = line + name.offset;
        plain = plain && found < NAMES_MOST && is_name(text, name.count);
        for (uint64_t i = 0; i < found && plain; i++)
            plain = names[i].count != name.count || memcmp(line + names[i].offset, text, name.count) != 0;
        if (plain)
            names[found] = name;
        *wanted |= strlen(field) == name.count && !memcmp(text, field, name.count);
    }
    return (plain || *wanted) && !record.fault.reason && found > 1 ? found : 0;
}

/* Counts the fields of a row; 0 if it is not valid. */
static uint64_t row_fields(const char *row, uint64_t count, char separator)
{
    struct csv_record record = {.bytes = row, .count = csv_record_length(row, count), .separator = separator};
    struct csv_field field;
    uint64_t found = 0;
    while (csv_field_next(&record, &field))
        found++;
    return record.fault.reason ? 0 : found;
}

static bool table_sniff(const char *bytes, uint64_t count, bool whole, const char *field, enum corpus_format format)
{
    const char separator = record_scan_separator(format);
    while (count && (*bytes == '\n' || (count > 1 && !memcmp(bytes, "\r\n", 2)))) { /* blank lines */
        const uint64_t line = 1 + (*bytes == '\r');
        bytes += line;
        count -= line;
    }
    const char *newline = memchr(bytes, '\n', count);
    /* Most texts are decided here: their first line has no separator. */
    if (!newline || !memchr(bytes, separator, (size_t)(newline - bytes)))
        return false;
    bool wanted;
    const uint64_t names = header_names(bytes, (uint64_t)(newline - bytes) + 1, separator, field, &wanted);
    if (!names)
        return false;
    struct record_scan scan;
    enum record_kind kind;
    uint64_t rows = 0, others = 0;
    record_scan_begin(&scan, format);
    for (uint64_t at = (uint64_t)(newline - bytes) + 1; at < count;) {
        const uint64_t taken = record_scan_take(&scan, bytes + at, count - at, &kind);
        if (kind == RECORD_UNFINISHED && !whole)
            break; /* the row is longer than the bytes */
        const bool row = kind != RECORD_BLANK && row_fields(bytes + at, taken, separator) == names;
        rows += row;
        others += kind != RECORD_BLANK && !row;
        at += taken;
    }
    if (wanted)
        return rows || (!whole && !others);
    if (others)
        return false;
    const uint64_t enough = names == 2 && format == CORPUS_CSV ? ROWS_ENOUGH_OF_TWO : ROWS_ENOUGH;
    return rows >= enough;
}

enum sniff_kind sniff(const char *bytes, uint64_t count, bool whole, const char *field)
{
    if (count && memchr(bytes, '\0', min64(count, SNIFF_BYTES)))
        return SNIFF_BINARY;
    const enum stand_in stand_in = stand_in_of(bytes, min64(count, SNIFF_BYTES));
    if (stand_in)
        return stand_in == STAND_IN_POINTER ? SNIFF_POINTER : SNIFF_PAGE;
    const enum sniff_kind json = json_sniff(bytes, count, whole);
    if (json != SNIFF_TEXT)
        return json;
    whole = whole && count <= SNIFF_BYTES;
    count = min64(count, SNIFF_BYTES);
    if (count >= 3 && !memcmp(bytes, BOM, 3)) {
        bytes += 3;
        count -= 3;
    }
    if (table_sniff(bytes, count, whole, field, CORPUS_CSV))
        return SNIFF_CSV;
    return table_sniff(bytes, count, whole, field, CORPUS_TSV) ? SNIFF_TSV : SNIFF_TEXT;
}

/* ---- the choice ---- */

/* Returns the index of the first byte from `at` on that is not blank; a byte order mark begins the bytes. */
static uint64_t start_skip(const char *bytes, uint64_t at, uint64_t count)
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
    const uint64_t count = first->count, at = start_skip(bytes, line->blank, count);
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
    const uint64_t begin = start_skip(first->bytes, 0, first->count), left = first->count - begin;
    const char *line = first->bytes + begin, *newline = memchr(line, '\n', left);
    struct json_scan scan;
    json_begin(&scan, line, newline ? (uint64_t)(newline - line) : left);
    scan.not_finite_allowed = true;
    const bool object = json_kind(&scan) == JSON_OBJECT && json_skip(&scan) && json_end(&scan);
    *fault = scan.fault;
    fault->offset += begin;
    return object;
}

#define SAY(...)                                                                                                       \
    (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(first->path), TOKMAP_NO_OFFSET, __VA_ARGS__)

static enum judged judged_wrong(struct judgment *judgment, enum corpus_reason reason)
{
    judgment->reason = reason;
    return JUDGED_WRONG;
}

/* Refuses a file that looks like records of a format, when nothing says that it is. */
static enum judged ambiguous(const struct first_bytes *first, struct judgment *judgment, const char *looks,
                             const char *format)
{
    SAY("%s, and would be read as one text; use --input-format %s if it contains records, or "
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
    SAY("the file is a JSON array of strings, and would be read as one text; if each string is a document, "
        "make it an object, such as {\"%s\": ...}; if the file is one text, use --input-format text",
        first->options->field);
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Git LFS has not fetched the file. */
static enum judged pointer(const struct first_bytes *first, struct judgment *judgment)
{
    SAY(STAND_IN_POINTER_MESSAGE);
    return judged_wrong(judgment, CORPUS_REASON_FORMAT);
}

/* Refuses a page of a web server in place of a file: a list of files, a login, or the page that shows the file. The
 * texts of a corpus are never meant. */
static enum judged page(const struct first_bytes *first, struct judgment *judgment)
{
    SAY("the server sends an HTML page, and it would be read as one text; name the file itself (on "
        "huggingface.co its URL has /resolve/, not /blob/), or use --input-format text if the page is "
        "wanted");
    return judged_wrong(judgment, CORPUS_REASON_AMBIGUOUS);
}

/* Text has no fields, and the content that is wanted is in one. */
static enum judged no_fields(const struct first_bytes *first, struct judgment *judgment)
{
    const char *field = first->options->field;
    SAY("the file is text without records, so it has no field '%s' (%s); leave it out, or name the format "
        "of its records with --input-format",
        field, field_option(first->options, field));
    return judged_wrong(judgment, CORPUS_REASON_FIELD);
}

/* Refuses a file whose name says that it is not text, and whose content is not what the name says. */
static enum judged not_as_named(const struct first_bytes *first, struct judgment *judgment, const char *named)
{
    SAY("the name is that of %s, and the content is not; get the file again, or use --input-format text if "
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
    if (name == NAME_JSON && start_skip(first->bytes, 0, first->count) < first->count)
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
    SAY("the records of a WARC file are texts, so they have no field '%s' (%s); leave the file out, or "
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
