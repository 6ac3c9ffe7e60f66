/* sniff.c - see sniff.h. */
#include "sniff.h"

#include <string.h>

#include "common/bytes.h"
#include "csv_field.h"
#include "record_scan.h"
#include "text/stand_in.h"

#define NAMES_MOST 256 /* a header with more names is not recognized */
#define NAME_BYTES_MOST 64
#define ROWS_ENOUGH 3
#define ROWS_ENOUGH_OF_TWO 10 /* a pair with a comma is frequent in ordinary text */

/* ---- JSON ---- */

static uint64_t spaces_skip(const char *bytes, uint64_t at, uint64_t count)
{
    while (at < count && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\n' || bytes[at] == '\r'))
        at++;
    return at;
}

/* Returns true if an object with at least one member begins at `at`: { "NAME": */
static bool object_begins(const char *bytes, uint64_t at, uint64_t count)
{
    if (at == count || bytes[at] != '{')
        return false;
    at = spaces_skip(bytes, at + 1, count);
    if (at == count || bytes[at] != '"')
        return false;
    for (at++; at < count && bytes[at] != '"'; at++) {
        if ((uint8_t)bytes[at] < 0x20)
            return false;
        at += bytes[at] == '\\';
    }
    at = at < count ? spaces_skip(bytes, at + 1, count) : count;
    return at < count && bytes[at] == ':';
}

/* Returns how many bytes the JSON value takes that begins here; `count` if it is valid as far as it can be seen and
 * the file continues; 0 if it is not JSON. */
static uint64_t value_bytes(const char *bytes, uint64_t count, bool whole)
{
    struct json_scan scan;
    json_begin(&scan, bytes, count);
    if (json_skip(&scan))
        return (uint64_t)(scan.at - bytes);
    /* A number or a word that is cut off is a fault at its first byte. */
    return !whole && scan.fault.offset + sizeof "false" > count ? count : 0;
}

static enum sniff_kind json_sniff(const char *bytes, uint64_t count, bool whole)
{
    const uint64_t begin = spaces_skip(bytes, 0, count);
    const bool array = begin < count && bytes[begin] == '[';
    const uint64_t first = array ? spaces_skip(bytes, begin + 1, count) : begin;
    const bool strings = array && first < count && bytes[first] == '"';
    if (!strings && !object_begins(bytes, first, count))
        return SNIFF_TEXT;
    const uint64_t value = value_bytes(bytes + begin, count - begin, whole);
    const uint64_t next = spaces_skip(bytes, begin + value, count);
    /* After an object, only another object may follow: JSON before a text is part of the text. */
    if (!value || (next < count && (array || bytes[next] != '{')))
        return SNIFF_TEXT;
    if (array)
        return strings ? SNIFF_STRINGS : SNIFF_ARRAY;
    return memchr(bytes + begin, '\n', value) ? SNIFF_OBJECT : SNIFF_JSONL;
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
 * is one of them. */
static uint64_t header_names(const char *line, uint64_t count, char separator, const char *field, bool *wanted)
{
    struct csv_record record = {.bytes = line, .count = csv_record_length(line, count), .separator = separator};
    struct csv_field names[NAMES_MOST];
    uint64_t found = 0;
    *wanted = false;
    while (found < NAMES_MOST && csv_field_next(&record, &names[found])) {
        const struct csv_field *name = &names[found++];
        if (!is_name(line + name->offset, name->count))
            return 0;
        for (uint64_t i = 0; i + 1 < found; i++)
            if (names[i].count == name->count && !memcmp(line + names[i].offset, line + name->offset, name->count))
                return 0;
        *wanted |= strlen(field) == name->count && !memcmp(line + name->offset, field, name->count);
    }
    return record.ended && !record.fault.reason && found > 1 ? found : 0;
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
    uint64_t rows = 0;
    record_scan_begin(&scan, format);
    for (uint64_t at = (uint64_t)(newline - bytes) + 1; at < count;) {
        const uint64_t taken = record_scan_take(&scan, bytes + at, count - at, &kind);
        if (kind == RECORD_UNFINISHED && !whole)
            break; /* the row is longer than the bytes */
        if (kind != RECORD_BLANK) {
            if (row_fields(bytes + at, taken, separator) != names)
                return false;
            rows++;
        }
        at += taken;
    }
    if (wanted)
        return rows || !whole;
    const uint64_t enough = names == 2 && format == CORPUS_CSV ? ROWS_ENOUGH_OF_TWO : ROWS_ENOUGH;
    return rows >= enough;
}

enum sniff_kind sniff(const char *bytes, uint64_t count, bool whole, const char *field)
{
    whole = whole && count <= SNIFF_BYTES;
    count = min64(count, SNIFF_BYTES);
    if (count && memchr(bytes, '\0', count))
        return SNIFF_BINARY;
    if (count >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) {
        bytes += 3;
        count -= 3;
    }
    const enum stand_in stand_in = stand_in_of(bytes, count);
    if (stand_in)
        return stand_in == STAND_IN_POINTER ? SNIFF_POINTER : SNIFF_PAGE;
    const enum sniff_kind json = json_sniff(bytes, count, whole);
    if (json != SNIFF_TEXT)
        return json;
    if (table_sniff(bytes, count, whole, field, CORPUS_CSV))
        return SNIFF_CSV;
    return table_sniff(bytes, count, whole, field, CORPUS_TSV) ? SNIFF_TSV : SNIFF_TEXT;
}
