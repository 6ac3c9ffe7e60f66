/* SPDX-License-Identifier: MIT */
/*
 * index_columns.c - see index_columns.h.
 *
 * The ends of values are stored like those of documents: the high half of an end is the number of carries that are at
 * most the number of the value. An answer is compared with its neighbor and with the size of all values, as in
 * index_documents.c.
 */
#include "index_columns.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/utf8.h"

#define REMEDY "run `tokmap verify` on it, and restore the index or pack the shard again"

static const uint8_t *section_of(const struct index *index)
{
    return index->bytes + index->columns.offset;
}

/* Makes a part of the section usable, before it is read. */
static enum tokmap_status need(const struct index *index, uint64_t at, uint64_t bytes, struct tokmap_error *error)
{
    return index_need(index, index->columns.offset + at, bytes, error);
}

#define CORRUPT(index, at, ...)                                                                                        \
    error_set(error, TOKMAP_ERROR_CORRUPT, (index)->path, (index)->columns.offset + (at), __VA_ARGS__)

/* Returns whether the counts of a column can belong to so many documents. */
static bool head_is_sound(const struct column_head *head, uint64_t documents)
{
    if (!head->name_bytes || head->name_bytes > COLUMN_NAME_MAX)
        return false;
    if (!head->code_bytes)
        return head->values == documents;
    return head->values <= COLUMN_VALUES_MAX && head->values <= documents && (head->values || !documents) &&
           head->value_bytes <= COLUMN_DICTIONARY_BYTES && head->code_bytes == (head->values <= 256 ? 1 : 2);
}

static enum tokmap_status read_column(const struct index *index, uint64_t number, uint64_t expected,
                                      struct index_column *column, struct tokmap_error *error)
{
    const uint64_t at = sizeof(uint64_t) + number * sizeof column->head;
    enum tokmap_status status = need(index, at, sizeof column->head, error);
    if (status)
        return status;
    memcpy(&column->head, section_of(index) + at, sizeof column->head);
    if (!head_is_sound(&column->head, index->shard.documents) || column->head.offset != expected ||
        !column_layout_of(&column->head, index->shard.documents, &column->layout) ||
        column->layout.end > index->columns.bytes)
        return CORRUPT(index, at,
                       "the sizes of column %" PRIu64 " contradict each other, the size of the section, or the number "
                       "of documents; " REMEDY,
                       number);
    if ((status = need(index, column->layout.name_at, (uint64_t)column->head.name_bytes + 1, error)))
        return status;
    column->name = (const char *)section_of(index) + column->layout.name_at;
    if (strnlen(column->name, (size_t)column->head.name_bytes + 1) != column->head.name_bytes ||
        utf8_valid_prefix(column->name, (size_t)column->head.name_bytes) != column->head.name_bytes)
        return CORRUPT(index, column->layout.name_at,
                       "the name of column %" PRIu64 " is not UTF-8, or does not end where it should; " REMEDY, number);
    return TOKMAP_OK;
}

enum tokmap_status index_columns(const struct index *index, struct index_column columns[COLUMNS_MAX], uint32_t *count,
                                 struct tokmap_error *error)
{
    const uint64_t bytes = index->columns.bytes;
    *count = 0;
    if (!index->bytes || !index->columns.offset)
        return TOKMAP_OK;
    enum tokmap_status status = need(index, 0, min64(bytes, sizeof(uint64_t)), error);
    if (status)
        return status;
    const uint64_t columns_stored = bytes < sizeof(uint64_t) ? 0 : load64(section_of(index));
    if (!columns_stored || columns_stored > COLUMNS_MAX ||
        columns_stored > (bytes - sizeof(uint64_t)) / sizeof columns->head)
        return CORRUPT(index, 0, "the section columns counts %" PRIu64 " columns, but may have 1 to %d; " REMEDY,
                       columns_stored, COLUMNS_MAX);
    uint64_t end = sizeof(uint64_t) + columns_stored * sizeof columns->head;
    for (uint64_t c = 0; c < columns_stored; c++) {
        status = read_column(index, c, end, &columns[c], error);
        if (status)
            return status;
        end = columns[c].layout.end;
    }
    if (end != bytes)
        return CORRUPT(index, 0, "the columns end at byte %" PRIu64 " of a section of %" PRIu64 " bytes; " REMEDY, end,
                       bytes);
    *count = (uint32_t)columns_stored;
    return TOKMAP_OK;
}

/* ---- values ---- */

static uint64_t carry_of(const uint8_t *section, const struct index_column *column, uint64_t k)
{
    return load64(section + column->layout.carries_at + 8 * k);
}

/* Makes what end_of() loads for a value usable: its low half, and, among the carries, those that the search meets. */
static enum tokmap_status need_end(const struct index *index, const struct index_column *column, uint64_t value,
                                   struct tokmap_error *error)
{
    uint64_t first = 0, last = column->head.value_bytes >> 32;
    enum tokmap_status status = need(index, column->layout.lows_at + 4 * value, 4, error);
    while (index->pages && !status && first < last) {
        const uint64_t middle = first + (last - first) / 2;
        status = need(index, column->layout.carries_at + 8 * middle, 8, error);
        if (!status && carry_of(section_of(index), column, middle) <= value)
            first = middle + 1;
        else
            last = middle;
    }
    return status;
}

/* Returns the end of value number `value`. */
static uint64_t end_of(const uint8_t *section, const struct index_column *column, uint64_t value)
{
    uint64_t first = 0, last = column->head.value_bytes >> 32;
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        if (carry_of(section, column, middle) <= value)
            first = middle + 1;
        else
            last = middle;
    }
    return first << 32 | load32(section + column->layout.lows_at + 4 * value);
}

/* Returns the code of a document; of a plain column, the document itself. */
static uint64_t code_of(const uint8_t *section, const struct index_column *column, uint64_t document)
{
    const uint8_t *codes = section + column->layout.codes_at;
    if (!column->head.code_bytes)
        return document;
    return column->head.code_bytes == 1 ? codes[document] : load16(codes + 2 * document);
}

enum tokmap_status index_value(const struct index *index, const struct index_column *column, uint64_t document,
                               const char **json, uint64_t *bytes, struct tokmap_error *error)
{
    const uint8_t *section = section_of(index);
    assert(document < index->shard.documents);
    const uint64_t code_bytes = column->head.code_bytes;
    enum tokmap_status status = need(index, column->layout.codes_at + document * code_bytes, code_bytes, error);
    if (status)
        return status;
    const uint64_t value = code_of(section, column, document);
    if (value >= column->head.values)
        return CORRUPT(index, column->layout.codes_at + document * column->head.code_bytes,
                       "column '%.100s' has code %" PRIu64 " for document %" PRIu64 ", but only %" PRIu64
                       " values; " REMEDY,
                       column->name, value, document, column->head.values);
    if ((value && (status = need_end(index, column, value - 1, error))) ||
        (status = need_end(index, column, value, error)))
        return status;
    const uint64_t begin = value ? end_of(section, column, value - 1) : 0, end = end_of(section, column, value);
    if (begin > end || end > column->head.value_bytes ||
        (value + 1 == column->head.values && end != column->head.value_bytes))
        return CORRUPT(index, column->layout.lows_at + 4 * value,
                       "the ends of values near value %" PRIu64 " of column '%.100s' contradict each other; " REMEDY,
                       value, column->name);
    *json = (const char *)section + column->layout.values_at + begin;
    *bytes = end - begin;
    return need(index, column->layout.values_at + begin, end - begin, error);
}

/* ---- verify ---- */

static enum tokmap_status check_zeros(const struct index *index, uint64_t from, uint64_t to, struct tokmap_error *error)
{
    for (uint64_t at = from; at < to; at++)
        if (section_of(index)[at])
            return CORRUPT(index, at, "the padding of the section columns is not zero; " REMEDY);
    return TOKMAP_OK;
}

static enum tokmap_status check_padding(const struct index *index, const struct index_column *column,
                                        struct tokmap_error *error)
{
    const struct column_head *head = &column->head;
    const struct column_layout *layout = &column->layout;
    enum tokmap_status status = check_zeros(index, layout->name_at + head->name_bytes, layout->codes_at, error);
    if (!status)
        status =
            check_zeros(index, layout->codes_at + head->code_bytes * index->shard.documents, layout->lows_at, error);
    if (!status)
        status = check_zeros(index, layout->lows_at + 4 * head->values, layout->carries_at, error);
    return status ? status : check_zeros(index, layout->values_at + head->value_bytes, layout->end, error);
}

/* Checks that values are JSON texts that follow one another up to the last byte. The carries are right if the ends
 * never decrease and the last one is value_bytes, and if each carry names a value: see check_documents() in
 * index_verify.c. */
static enum tokmap_status check_values(const struct index *index, const struct index_column *column,
                                       struct tokmap_error *error)
{
    const uint8_t *section = section_of(index);
    const uint64_t carries = column->head.value_bytes >> 32;
    uint64_t high = 0, begin = 0;
    for (uint64_t k = 0; k < carries; k++)
        if (carry_of(section, column, k) >= column->head.values ||
            (k && carry_of(section, column, k) < carry_of(section, column, k - 1)))
            return CORRUPT(index, column->layout.carries_at + 8 * k,
                           "carry %" PRIu64 " of column '%.100s' is out of order, or its value does not exist; " REMEDY,
                           k, column->name);
    for (uint64_t v = 0; v < column->head.values; v++) {
        while (high < carries && carry_of(section, column, high) <= v)
            high++;
        const uint64_t end = high << 32 | load32(section + column->layout.lows_at + 4 * v);
        if (end < begin || end > column->head.value_bytes)
            return CORRUPT(index, column->layout.lows_at + 4 * v,
                           "value %" PRIu64 " of column '%.100s' ends at byte %" PRIu64
                           ", before it begins or after the last one; " REMEDY,
                           v, column->name, end);
        const struct shard_value value = {(const char *)section + column->layout.values_at + begin, end - begin};
        if (!shard_value_is_sound(&value))
            return CORRUPT(index, column->layout.values_at + begin,
                           "value %" PRIu64 " of column '%.100s' is not JSON text in UTF-8; " REMEDY, v, column->name);
        begin = end;
    }
    return begin == column->head.value_bytes
               ? TOKMAP_OK
               : CORRUPT(index, column->layout.lows_at,
                         "the values of column '%.100s' end at byte %" PRIu64 " of %" PRIu64 "; " REMEDY, column->name,
                         begin, column->head.value_bytes);
}

/* Checks that codes have values, and that documents have the values of a dictionary in their order: the code of a
 * document is one that was there before, or the next one. */
static enum tokmap_status check_codes(const struct index *index, const struct index_column *column,
                                      struct tokmap_error *error)
{
    const uint64_t code_bytes = column->head.code_bytes, values = column->head.values;
    uint64_t next = 0;
    for (uint64_t d = 0; d < index->shard.documents; d++) {
        const uint64_t code = code_of(section_of(index), column, d), at = column->layout.codes_at + d * code_bytes;
        if (code >= values)
            return CORRUPT(index, at, "the code of document %" PRIu64 " in column '%.100s' has no value; " REMEDY, d,
                           column->name);
        if (code > next)
            return CORRUPT(index, at,
                           "document %" PRIu64 " has value %" PRIu64 " of column '%.100s', but no document before it "
                           "has value %" PRIu64 ": the values are not in the order of their first use; " REMEDY,
                           d, code, column->name, next);
        next += code == next;
    }
    return next == values
               ? TOKMAP_OK
               : CORRUPT(index, column->layout.codes_at,
                         "no document has value %" PRIu64 " of column '%.100s'; " REMEDY, next, column->name);
}

/* Checks that the values of a dictionary differ, and that those of a plain column, which have been checked, would not
 * fit into one. */
static enum tokmap_status check_kind(const struct index *index, const struct index_column *column,
                                     struct tokmap_error *error)
{
    struct column_writer dictionary = {.key = table_key_new()};
    const uint8_t *section = section_of(index);
    enum tokmap_status status = TOKMAP_OK;
    uint64_t high = 0, begin = 0;
    bool fits = true;
    for (uint64_t v = 0; v < column->head.values && fits && !status; v++) {
        while (high < column->head.value_bytes >> 32 && carry_of(section, column, high) <= v)
            high++;
        const uint64_t end = high << 32 | load32(section + column->layout.lows_at + 4 * v);
        const struct shard_value value = {(const char *)section + column->layout.values_at + begin, end - begin};
        uint16_t code;
        if (column_dictionary_find(&dictionary, &value, &code, &fits))
            status = error_set_memory(error, "the values of a column", COLUMN_DICTIONARY_BYTES);
        else if (fits && column->head.code_bytes && code != v)
            status = CORRUPT(index, column->layout.values_at + begin,
                             "value %" PRIu64 " of column '%.100s' is value %u, too; " REMEDY, v, column->name, code);
        begin = end;
    }
    if (!status && fits && !column->head.code_bytes)
        status = CORRUPT(index, column->layout.name_at,
                         "column '%.100s' has a value for each document, although its %" PRIu64
                         " different values fit into a dictionary; " REMEDY,
                         column->name, dictionary.values);
    column_dictionary_free(&dictionary);
    return status;
}

enum tokmap_status index_columns_check(const struct index *index, struct tokmap_error *error)
{
    struct index_column columns[COLUMNS_MAX];
    uint32_t count;
    enum tokmap_status status = index_columns(index, columns, &count, error);
    for (uint32_t c = 0; c < count && !status; c++) {
        for (uint32_t before = 0; before < c; before++)
            if (!strcmp(columns[before].name, columns[c].name))
                return CORRUPT(index, columns[c].layout.name_at, "two columns have the name '%.100s'; " REMEDY,
                               columns[c].name);
        status = check_padding(index, &columns[c], error);
        if (!status && columns[c].head.code_bytes)
            status = check_codes(index, &columns[c], error);
        if (!status)
            status = check_values(index, &columns[c], error);
        if (!status)
            status = check_kind(index, &columns[c], error);
    }
    return status;
}
