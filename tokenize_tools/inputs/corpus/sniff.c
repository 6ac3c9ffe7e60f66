/* SPDX-License-Identifier: MIT */
/* sniff.c - see sniff.h. */
#include "sniff.h"

#include <ctype.h>
#include <string.h>

#include "common/bytes.h"
#include "csv_field.h"
#include "record_scan.h"
#include "text/stand_in.h"

#define BOM "\xef\xbb\xbf"
#define NAMES_MOST 256 /* a header with more names is not recognized */
#define NAME_BYTES_MOST 64
#define ROWS_ENOUGH 3
#define ROWS_ENOUGH_OF_TWO 10 /* a pair with a comma is frequent in ordinary text */

/* ---- JSON ---- */

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
