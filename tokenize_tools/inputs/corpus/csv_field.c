/* SPDX-License-Identifier: MIT */
#include "csv_field.h"

#include <string.h>

size_t csv_record_length(const char *record, size_t count)
{
    if (count && record[count - 1] == '\n')
        count--;
    return count && record[count - 1] == '\r' ? count - 1 : count;
}

static bool fault_at(struct csv_record *record, size_t offset, const char *reason)
{
    record->fault = (struct json_fault){offset, reason};
    record->ended = true;
    return false;
}

/* Takes a field that begins with a quote at record->at. */
static bool quoted_next(struct csv_record *record, struct csv_field *field)
{
    const size_t begin = record->at + 1;
    size_t at = begin;
    field->quoted = true;
    field->doubled = false;
    for (;;) {
        const char *quote = at < record->count ? memchr(record->bytes + at, '"', record->count - at) : NULL;
        if (!quote)
            return fault_at(record, record->at, "a quoted field has no closing quote");
        at = (size_t)(quote - record->bytes) + 1;
        if (at == record->count || record->bytes[at] != '"')
            break;
        field->doubled = true;
        at++;
    }
    if (at < record->count && record->bytes[at] != record->separator)
        return fault_at(record, at, "the closing quote of a field is followed by more text");
    field->offset = begin;
    field->count = at - 1 - begin;
    record->ended = at == record->count;
    record->at = at + 1;
    return true;
}

bool csv_field_next(struct csv_record *record, struct csv_field *field)
{
    if (record->ended)
        return false;
    if (record->at < record->count && record->bytes[record->at] == '"')
        return quoted_next(record, field);
    const char *begin = record->bytes + record->at;
    const size_t left = record->count - record->at;
    const char *separator = left ? memchr(begin, record->separator, left) : NULL;
    const size_t count = separator ? (size_t)(separator - begin) : left;
    const char *carriage = count ? memchr(begin, '\r', count) : NULL;
    if (carriage)
        return fault_at(record, record->at + (size_t)(carriage - begin),
                        "a carriage return is neither inside quotes nor followed by a newline");
    *field = (struct csv_field){record->at, count, false, false};
    record->ended = !separator;
    record->at += count + 1;
    return true;
}

bool csv_field_equals(const struct csv_record *record, const struct csv_field *field, const char *text)
{
    const char *bytes = record->bytes + field->offset;
    for (size_t i = 0; i < field->count; i++, text++) {
        if (*text != bytes[i] || !*text)
            return false;
        i += field->quoted && bytes[i] == '"'; /* the second one of two */
    }
    return !*text;
}

size_t csv_field_decode(char *text, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        text[kept++] = text[i];
        i += text[i] == '"'; /* the second one of two */
    }
    return kept;
}
