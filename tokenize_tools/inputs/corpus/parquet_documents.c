/* SPDX-License-Identifier: MIT */
/*
 * parquet_documents.c - see parquet_documents.h.
 *
 * Each column has a cursor over its slices, and the cursors advance together, row by row. Texts are not copied: a
 * document points into the page that its text was decompressed to, which the rows of the part keep.
 */
#include "parquet_documents.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format_choice.h"
#include "json_field.h"
#include "record_values.h"
#include "remote/remote_url.h"

#define ALL_IDS ((uint64_t)UINT32_MAX + 1)
#define NAN_TEXT "null" /* JSON has neither NaN nor infinity */

/* Place of a column in its slices. */
struct cursor {
    const struct parquet_column *column;
    const struct parquet_slice *slices;
    uint64_t count, slice;
    uint64_t fragment; /* of the slice, from its first one */
};

/* The rows of a part in the making. */
struct row_reading {
    struct making *making;
    const struct parquet_rows *rows;
    uint32_t part;
    struct cursor cursors[PARQUET_LEAVES_MOST];
    uint32_t column_count;
    /* The columns of each field: the first one, and how many. */
    uint32_t field_first[RECORD_FIELDS_MOST], field_columns[RECORD_FIELDS_MOST];
    const char *names[RECORD_FIELDS_MOST];
    size_t fields;
    struct source_record source; /* of the current row */
    bool used;                   /* it has no issue */
};

/* The list that one column has in one row. */
struct row_list {
    struct cursor from; /* beginning of the row */
    uint64_t fragments;
    uint64_t elements;     /* 0 if the list is null or empty */
    uint64_t null_element; /* the first one that is null; UINT64_MAX: none */
    uint64_t text_bytes;   /* of all elements, if they are texts */
    bool is_null;
};

/* ---- cursors ---- */

/* Returns the page of the current fragment. */
static const struct parquet_page *cursor_page(const struct cursor *cursor)
{
    assert(cursor->slice < cursor->count);
    return cursor->slices[cursor->slice].page;
}

/* Moves to the next fragment, and returns true if it continues the row. */
static bool cursor_next(struct cursor *cursor)
{
    if (++cursor->fragment < cursor->slices[cursor->slice].count)
        return false;
    cursor->fragment = 0;
    if (++cursor->slice == cursor->count)
        return false;
    const struct parquet_slice *slice = &cursor->slices[cursor->slice];
    return !slice->first && slice->page->continues;
}

/* Sets the entries [*begin, *end) of the current fragment. */
static void fragment_entries(const struct cursor *cursor, uint64_t *begin, uint64_t *end)
{
    const struct parquet_page *page = cursor_page(cursor);
    const uint64_t fragment = cursor->slices[cursor->slice].first + cursor->fragment;
    assert(fragment < page->fragment_count);
    *begin = page->fragments ? page->fragments[fragment] : fragment;
    *end = page->fragments ? page->fragments[fragment + 1] : fragment + 1;
}

/* Kinds of entries: with a value; an element of a list without a value; an empty list. */
enum entry_kind { ENTRY_VALUE, ENTRY_NULL, ENTRY_NULL_ELEMENT, ENTRY_EMPTY_LIST };

static enum entry_kind entry_kind(const struct cursor *cursor, uint64_t entry)
{
    const struct parquet_page *page = cursor_page(cursor);
    const struct parquet_column *column = cursor->column;
    if (!page->definitions || page->definitions[entry] == column->max_definition)
        return ENTRY_VALUE;
    const uint8_t definition = page->definitions[entry];
    if (!column->max_repetition || definition + 1 < column->repeated_definition)
        return ENTRY_NULL;
    return definition < column->repeated_definition ? ENTRY_EMPTY_LIST : ENTRY_NULL_ELEMENT;
}

/* ---- issues ---- */

/* Adds an issue of the current row, unless it has one. detail: NULL, or a text that is copied. */
static enum tokmap_status row_issue(struct row_reading *reading, enum corpus_reason left_out, const char *reason,
                                    const char *field, const char *detail)
{
    if (!reading->used)
        return TOKMAP_OK;
    reading->used = false;
    struct corpus_issue *issue = making_issue(reading->making, &reading->source, CORPUS_ISSUE_RECORD, left_out, 0,
                                              TOKMAP_NO_OFFSET, reason, field);
    if (!issue)
        return making_no_memory(reading->making);
    issue->row_group = reading->rows->group;
    if (!detail)
        return TOKMAP_OK;
    issue->detail = strdup(detail);
    return issue->detail ? TOKMAP_OK : making_no_memory(reading->making);
}

/* Adds the issue that the current row is longer than a record may be. */
static enum tokmap_status row_too_long(struct row_reading *reading)
{
    struct making *making = reading->making;
    struct corpus_issue *issue = making_issue(making, &reading->source, CORPUS_ISSUE_LIMIT, CORPUS_REASON_TOO_LONG, 0,
                                              TOKMAP_NO_OFFSET, NULL, NULL);
    reading->used = false;
    if (!issue)
        return making_no_memory(making);
    issue->row_group = reading->rows->group;
    return TOKMAP_OK;
}

static enum tokmap_status element_issue(struct row_reading *reading, bool is_mask, const char *field, uint64_t index,
                                        const char *number, const char *fault)
{
    char detail[160];
    (void)snprintf(detail, sizeof detail, "number %" PRIu64 " of the list%s%s%s %s", index + 1, *number ? ", " : "",
                   number, *number ? "," : "", fault);
    return row_issue(reading, is_mask ? CORPUS_REASON_MASK : CORPUS_REASON_TOKEN, fault, field, detail);
}

/* ---- lists ---- */

/* Finds the list of the current row, and moves the cursor behind it. A list that is null or empty has one entry, which
 * says so; with others beside it, it is an issue. */
static enum tokmap_status list_find(struct row_reading *reading, struct cursor *cursor, const char *field,
                                    struct row_list *list)
{
    bool more, hole = false;
    *list = (struct row_list){.from = *cursor, .null_element = UINT64_MAX};
    do {
        const struct parquet_page *page = cursor_page(cursor);
        uint64_t begin, end;
        fragment_entries(cursor, &begin, &end);
        for (uint64_t i = begin; i < end && (page->definitions || page->values.spans); i++) {
            const enum entry_kind kind = entry_kind(cursor, i);
            list->is_null |= kind == ENTRY_NULL;
            hole |= kind == ENTRY_NULL || kind == ENTRY_EMPTY_LIST;
            if (kind == ENTRY_NULL_ELEMENT)
                list->null_element = min64(list->null_element, list->elements + i - begin);
            if (kind == ENTRY_VALUE && page->values.spans)
                list->text_bytes += page->values.spans[i].bytes;
        }
        list->elements += end - begin;
        list->fragments++;
        more = cursor_next(cursor);
    } while (more);
    if (hole && list->elements > 1)
        return row_issue(reading, CORPUS_REASON_DAMAGED, "its list is null or empty and has elements", field, NULL);
    list->elements -= hole;
    return TOKMAP_OK;
}

/* Writes an integer of a column as text. */
static void integer_text(char *text, const struct parquet_column *column, uint64_t number)
{
    if (column->kind.is_unsigned)
        (void)snprintf(text, PARQUET_VALUE_TEXT, "%" PRIu64, number);
    else
        (void)snprintf(text, PARQUET_VALUE_TEXT, "%" PRId64, (int64_t)number);
}

/* Adds an issue about the first of the numbers that is not below `limit`. */
static enum tokmap_status number_wrong(struct row_reading *reading, const struct parquet_column *column, bool is_mask,
                                       const char *field, const uint64_t *numbers, uint64_t index, uint64_t limit)
{
    char text[PARQUET_VALUE_TEXT], fault[64];
    uint64_t i = 0;
    while (numbers[i] < limit)
        i++;
    integer_text(text, column, numbers[i]);
    if (is_mask)
        (void)snprintf(fault, sizeof fault, "is neither 0 nor 1");
    else if (*text == '-')
        (void)snprintf(fault, sizeof fault, "is negative");
    else if (limit < ALL_IDS)
        (void)snprintf(fault, sizeof fault, "is not below the vocabulary's %" PRIu64, limit);
    else
        (void)snprintf(fault, sizeof fault, "is not below 2^32");
    return element_issue(reading, is_mask, field, index + i, text, fault);
}

static enum tokmap_status label_wrong(struct row_reading *reading, const struct parquet_column *column,
                                      const char *field, uint64_t number, uint64_t index)
{
    char text[PARQUET_VALUE_TEXT];
    integer_text(text, column, number);
    return element_issue(reading, true, field, index, text,
                         "is neither -100 nor the id in its place, so the labels are shifted or changed");
}

/* Takes labels of the ids from number `done` on, as bytes of a mask. Returns how many are labels. */
static uint64_t labels_take(uint8_t *taken, const uint64_t *numbers, uint64_t count, const struct record_value *ids,
                            uint64_t done)
{
    uint64_t i = 0;
    for (; i < count; i++) {
        taken[i] = numbers[i] != (uint64_t)CORPUS_IGNORED;
        if (taken[i] && done + i < ids->number_count && ((const uint32_t *)ids->numbers)[done + i] != numbers[i])
            break;
    }
    return i;
}

/* Takes the list of the current row: token ids, or, with the ids, a mask of them or their labels. */
static enum tokmap_status list_take(struct row_reading *reading, size_t field, const struct record_value *ids,
                                    struct record_value *value)
{
    const bool is_mask = ids != NULL;
    const struct corpus_options *options = reading->making->options;
    const uint64_t vocabulary = options->vocabulary ? options->vocabulary : ALL_IDS, limit = is_mask ? 2 : vocabulary;
    struct cursor *cursor = &reading->cursors[reading->field_first[field]];
    const char *name = reading->names[field];
    struct row_list list;
    uint64_t done = 0;
    if (is_mask && options->labels && !ids->numbers)
        return row_issue(reading, CORPUS_REASON_MASK, "", name, "it is a list and the ids are JSON; write both alike");
    enum tokmap_status status = list_find(reading, cursor, name, &list);
    if (!status && list.is_null)
        status = row_issue(reading, CORPUS_REASON_FIELD, JSON_FIELD_MISSING, name, NULL);
    else if (!status && list.null_element < UINT64_MAX)
        status = element_issue(reading, is_mask, name, list.null_element, "", PARQUET_ELEMENT_NULL);
    if (status || !reading->used)
        return status;
    void *taken = corpus_batch_take(reading->making->batch, (list.elements + 1) * (is_mask ? 1 : sizeof(uint32_t)));
    if (!taken)
        return making_no_memory(reading->making);
    for (uint64_t p = 0; p < list.fragments && done < list.elements; p++) {
        uint64_t begin, end, largest = 0;
        fragment_entries(&list.from, &begin, &end);
        const uint64_t *numbers = cursor_page(&list.from)->values.numbers + begin;
        const uint64_t count = end - begin;
        const bool labels = is_mask && options->labels;
        const uint64_t good = labels ? labels_take((uint8_t *)taken + done, numbers, count, ids, done) : count;
        if (good < count)
            return label_wrong(reading, cursor->column, name, numbers[good], done + good);
        for (uint64_t i = 0; i < count && !labels; i++) {
            largest = max64(largest, numbers[i]);
            if (is_mask)
                ((uint8_t *)taken)[done + i] = (uint8_t)numbers[i];
            else
                ((uint32_t *)taken)[done + i] = (uint32_t)numbers[i];
        }
        if (largest >= limit)
            return number_wrong(reading, cursor->column, is_mask, name, numbers, done, limit);
        done += count;
        (void)cursor_next(&list.from);
    }
    *value = (struct record_value){
        .kind = JSON_ARRAY, .offset = TOKMAP_NO_OFFSET, .numbers = taken, .number_count = list.elements};
    return TOKMAP_OK;
}

/* ---- single values ---- */

/* Writes a floating-point number with the fewest digits that give the same number again. */
static void float_text(char *text, const struct parquet_column *column, double number)
{
    if (!isfinite(number)) {
        (void)snprintf(text, PARQUET_VALUE_TEXT, "%s", NAN_TEXT);
        return;
    }
    const bool single = column->kind.type == PARQUET_FLOAT;
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        (void)snprintf(text, PARQUET_VALUE_TEXT, "%.*g", digits, number);
        if (single ? strtof(text, NULL) == (float)number : strtod(text, NULL) == number)
            break;
    }
}

/* Sets the value of a text. Nobody writes to it: it has no escapes, which would be decoded in place. */
static void text_value(struct record_value *value, const char *text, uint64_t bytes)
{
    *value = (struct record_value){
        .kind = JSON_STRING, .text = (char *)(uintptr_t)text, .bytes = bytes, .offset = TOKMAP_NO_OFFSET};
}

/* Writes a value that is a number or a bool. */
static void number_text(char *text, const struct parquet_column *column, uint64_t number)
{
    double real;
    uint8_t bytes[8];
    memcpy(&real, &number, sizeof real);
    if (column->meaning == PARQUET_IS_BOOL)
        (void)snprintf(text, PARQUET_VALUE_TEXT, "%s", number ? "true" : "false");
    else if (column->meaning == PARQUET_IS_FLOAT)
        float_text(text, column, real);
    else if (column->meaning == PARQUET_IS_INTEGER)
        integer_text(text, column, number);
    else {
        for (unsigned i = 0; i < 8; i++)
            bytes[i] = (uint8_t)(number >> 8 * (7 - i));
        (void)parquet_decimal_text(text, bytes, sizeof bytes, column->kind.scale);
    }
}

/* Writes a value that is stored as bytes and is not a text. Returns false if it is not what its column says. */
static bool bytes_text(char *text, const struct parquet_column *column, const char *value, uint64_t count)
{
    const uint8_t *bytes = (const uint8_t *)value;
    if (column->meaning == PARQUET_IS_DECIMAL)
        return parquet_decimal_text(text, bytes, count, column->kind.scale);
    if (column->meaning == PARQUET_IS_UUID)
        parquet_uuid_text(text, bytes);
    else
        float_text(text, column, parquet_float16(bytes));
    return true;
}

/* Takes the value of a flat column in the current row. A null is JSON_NOTHING. */
static enum tokmap_status value_take(struct row_reading *reading, size_t field, struct cursor *cursor,
                                     struct record_value *value)
{
    const struct parquet_page *page = cursor_page(cursor);
    const struct parquet_column *column = cursor->column;
    const char *bytes = "";
    uint64_t entry, end, count = 0;
    fragment_entries(cursor, &entry, &end);
    const enum entry_kind kind = entry_kind(cursor, entry);
    (void)cursor_next(cursor);
    *value = (struct record_value){.kind = JSON_NOTHING};
    if (kind != ENTRY_VALUE || column->meaning == PARQUET_IS_NULL)
        return TOKMAP_OK;
    if (page->values.spans && page->values.text) {
        bytes = page->values.text + page->values.spans[entry].offset;
        count = page->values.spans[entry].bytes;
    }
    if (column->meaning == PARQUET_IS_TEXT) {
        text_value(value, bytes, count);
        return TOKMAP_OK;
    }
    char *text = corpus_batch_take(reading->making->batch, PARQUET_VALUE_TEXT);
    if (!text)
        return making_no_memory(reading->making);
    bool right = true;
    if (page->values.spans)
        right = bytes_text(text, column, bytes, count);
    else
        number_text(text, column, page->values.numbers[entry]);
    if (!right)
        return row_issue(reading, CORPUS_REASON_DAMAGED, "a decimal has no bytes, or more than 32",
                         reading->names[field], NULL);
    *value = (struct record_value){.kind = column->meaning == PARQUET_IS_UUID ? JSON_STRING : JSON_NUMBER,
                                   .text = text,
                                   .bytes = strlen(text),
                                   .offset = TOKMAP_NO_OFFSET};
    corpus_batch_shorten(reading->making->batch, text, value->bytes + 1);
    return TOKMAP_OK;
}

/* ---- messages ---- */

/* Writes the struct of one message: the fields that are not null. The fields of a struct in it follow one another. */
static uint64_t message_write(const struct row_reading *reading, size_t field, const uint64_t *entries,
                              const struct cursor *cursors, char *into)
{
    char *at = into;
    const char *group = NULL; /* of which an object is open */
    bool first = true;
    *at++ = '{';
    for (uint32_t c = 0; c < reading->field_columns[field]; c++) {
        const struct parquet_page *page = cursor_page(&cursors[c]);
        if (entry_kind(&cursors[c], entries[c]) != ENTRY_VALUE)
            continue;
        const struct parquet_span span = page->values.spans[entries[c]];
        const char *name = cursors[c].column->last;
        const char *in = cursors[c].column->in_group ? cursors[c].column->group : NULL;
        const bool same = group && in && !strcmp(group, in);
        if (group && !same)
            *at++ = '}';
        if (!first)
            *at++ = ',';
        first = false;
        if (in && !same) {
            at += json_string_write(at, in, strlen(in));
            *at++ = ':';
            *at++ = '{';
        }
        group = in;
        at += json_string_write(at, name, strlen(name));
        *at++ = ':';
        at += json_string_write(at, page->values.text + span.offset, span.bytes);
    }
    if (group)
        *at++ = '}';
    *at++ = '}';
    return (uint64_t)(at - into);
}

/* Takes the messages of the current row: a list of structs of texts, which becomes a JSON text. The columns of its
 * fields have the same number of entries in each row. */
static enum tokmap_status messages_take(struct row_reading *reading, size_t field, struct record_value *value)
{
    const uint32_t columns = reading->field_columns[field];
    const char *name = reading->names[field];
    struct cursor *cursors = &reading->cursors[reading->field_first[field]];
    struct cursor at[PARQUET_LEAVES_MOST];
    uint64_t entries[PARQUET_LEAVES_MOST], ends[PARQUET_LEAVES_MOST];
    uint64_t elements = 0, names = 0, texts = 0; /* bytes of a message without its texts, and of all texts */
    for (uint32_t c = 0; c < columns; c++) {
        const struct parquet_column *column = cursors[c].column;
        struct row_list list;
        enum tokmap_status status = list_find(reading, &cursors[c], name, &list);
        if (!status && list.is_null && !c)
            status = row_issue(reading, CORPUS_REASON_FIELD, JSON_FIELD_MISSING, name, NULL);
        if (!status && c && list.elements != elements)
            status =
                row_issue(reading, CORPUS_REASON_DAMAGED, "its fields have lists of different lengths", name, NULL);
        if (status)
            return status;
        at[c] = list.from;
        fragment_entries(&at[c], &entries[c], &ends[c]);
        elements = list.elements;
        texts += list.text_bytes;
        names += 6 * strlen(column->last) + 8 + (column->in_group ? 6 * strlen(column->group) + 5 : 0);
    }
    if (!reading->used)
        return TOKMAP_OK;
    /* A dictionary makes few bytes of a file any number here, so they are counted before there is memory for them. */
    if (texts > reading->making->options->record_limit)
        return row_too_long(reading);
    char *text = corpus_batch_take(reading->making->batch, elements * (names + 3) + 6 * texts + 4);
    if (!text)
        return making_no_memory(reading->making);
    uint64_t bytes = 0;
    text[bytes++] = '[';
    for (uint64_t i = 0; i < elements; i++) {
        for (uint32_t c = 0; c < columns; c++)
            if (entries[c] == ends[c]) {
                (void)cursor_next(&at[c]);
                fragment_entries(&at[c], &entries[c], &ends[c]);
            }
        if (i)
            text[bytes++] = ',';
        bytes += message_write(reading, field, entries, at, text + bytes);
        for (uint32_t c = 0; c < columns; c++)
            entries[c]++;
    }
    text[bytes++] = ']';
    corpus_batch_shorten(reading->making->batch, text, bytes);
    *value = (struct record_value){.kind = JSON_ARRAY, .text = text, .bytes = bytes, .offset = TOKMAP_NO_OFFSET};
    return TOKMAP_OK;
}

/* ---- rows ---- */

/* Takes the values of a field in the current row. */
static enum tokmap_status field_take(struct row_reading *reading, size_t field, struct record_value *value)
{
    const struct corpus_options *options = reading->making->options;
    const bool content = field <= (size_t)(options->second_field != NULL);
    *value = (struct record_value){.kind = JSON_NOTHING};
    if (!reading->field_columns[field])
        return TOKMAP_OK;
    struct cursor *cursor = &reading->cursors[reading->field_first[field]];
    if (content && options->content == CORPUS_CONTENT_IDS && cursor->column->max_repetition)
        return list_take(reading, field, field ? value - field : NULL, value);
    if (cursor->column->max_repetition)
        return messages_take(reading, field, value);
    const enum tokmap_status status = value_take(reading, field, cursor, value);
    if (status || !reading->used || !content)
        return status;
    if (value->kind == JSON_NOTHING)
        return row_issue(reading, CORPUS_REASON_FIELD, JSON_FIELD_MISSING, reading->names[field], NULL);
    return TOKMAP_OK;
}

/* Returns the bytes of the file that belong to the current row (parquet.h). */
static uint64_t row_bytes(const struct cursor *first)
{
    struct cursor cursor = *first;
    uint64_t bytes = 0;
    bool more;
    do {
        bytes += parquet_fragment_bytes(cursor_page(&cursor), cursor.slices[cursor.slice].first + cursor.fragment);
        more = cursor_next(&cursor);
    } while (more);
    return bytes;
}

/* Makes the document of the current row, or an issue, and moves to the next row. */
static enum tokmap_status row_make(struct row_reading *reading)
{
    struct making *making = reading->making;
    struct record_value values[RECORD_FIELDS_MOST];
    const uint64_t issues = making->batch->issue_count;
    enum tokmap_status status = TOKMAP_OK;
    reading->used = true;
    reading->source.whole = row_bytes(&reading->cursors[0]);
    for (size_t i = 0; i < reading->fields && !status; i++)
        status = field_take(reading, i, &values[i]);
    if (status || !reading->used)
        return status;
    for (size_t i = 0; i < reading->fields; i++)
        if (values[i].bytes > making->options->record_limit)
            return row_too_long(reading);
    bool wrong_list;
    status = record_document(making, &reading->source, values, false, &wrong_list);
    for (uint64_t i = issues; i < making->batch->issue_count; i++)
        making->batch->issues[i].row_group = reading->rows->group;
    return status;
}

/* Returns a page that the current row needs and that could not be decoded, or NULL. */
static const struct parquet_page *row_failed(const struct row_reading *reading)
{
    for (uint32_t c = 0; c < reading->column_count; c++) {
        struct cursor cursor = reading->cursors[c];
        do {
            if (cursor_page(&cursor)->failure)
                return cursor_page(&cursor);
        } while (cursor_next(&cursor));
    }
    return NULL;
}

/* If a page that the current row needs could not be decoded, adds an issue for the rows that need it, skips them, and
 * sets *skipped to their number. A list that is only partly in the page is left out whole. */
static enum tokmap_status rows_skip(struct row_reading *reading, uint64_t left, uint64_t *skipped)
{
    const struct parquet_page *failed = row_failed(reading);
    *skipped = 0;
    if (!failed)
        return TOKMAP_OK;
    struct source_record source = reading->source;
    source.whole = 0;
    do {
        source.whole += row_bytes(&reading->cursors[0]);
        for (uint32_t c = 0; c < reading->column_count; c++)
            while (cursor_next(&reading->cursors[c]))
                ;
        ++*skipped;
    } while (*skipped < left && row_failed(reading) == failed);
    struct tokmap_error *copy = malloc(sizeof *copy);
    if (!copy)
        return making_no_memory(reading->making);
    *copy = *failed->failure;
    struct corpus_issue *issue = corpus_batch_add_issue(reading->making->batch);
    if (!issue) {
        free(copy);
        return making_no_memory(reading->making);
    }
    issue->kind = CORPUS_ISSUE_FILE;
    issue->error = copy;
    issue->left_out = copy->status == TOKMAP_ERROR_UNSUPPORTED ? CORPUS_REASON_FORMAT : CORPUS_REASON_DAMAGED;
    issue->path = reading->making->batch->parts[reading->part].path;
    issue->part = reading->part;
    issue->format = CORPUS_PARQUET;
    issue->record = source.record;
    issue->records = *skipped;
    issue->row_group = reading->rows->group;
    issue->offset = copy->offset;
    issue->bytes = source.whole;
    corpus_batch_count_issue(reading->making->batch, issue);
    if (!reading->making->options->skip)
        reading->making->stopped = true;
    return TOKMAP_OK;
}

enum tokmap_status parquet_part_documents(struct making *making, uint32_t part)
{
    const struct parquet_rows *rows = making->batch->parts[part].rows;
    const struct parquet_footer *footer = &rows->file->footer;
    struct row_reading reading = {.making = making, .rows = rows, .part = part, .column_count = footer->column_count};
    enum tokmap_status status = TOKMAP_OK;
    reading.fields = record_fields(making->options, reading.names);
    for (uint32_t c = 0; c < footer->column_count; c++) {
        const uint32_t field = footer->columns[c].wanted;
        if (!reading.field_columns[field]++)
            reading.field_first[field] = c;
        reading.cursors[c] = (struct cursor){&footer->columns[c], rows->slices + rows->begins[c],
                                             rows->begins[c + 1] - rows->begins[c], 0, 0};
    }
    for (uint64_t i = 0; i < rows->slice_count; i++)
        if (parquet_page_decode(rows->slices[i].page, making->error) == TOKMAP_ERROR_MEMORY)
            return TOKMAP_ERROR_MEMORY;
    for (uint64_t i = 0; i < rows->count && !status && !making->stopped;) {
        uint64_t skipped;
        reading.source = (struct source_record){.part = part, .record = rows->first + i, .position = rows->first + i};
        status = rows_skip(&reading, rows->count - i, &skipped);
        if (!status && !skipped) {
            status = row_make(&reading);
            skipped = 1;
        }
        i += skipped;
    }
    return status;
}

/* ---- the file: rows to parts ---- */

static uint64_t parquet_at(const struct corpus *corpus)
{
    return parquet_source_at(corpus->parquet);
}

static uint64_t parquet_close(struct corpus *corpus)
{
    const uint64_t bytes = parquet_source_bytes(corpus->parquet);
    parquet_source_close(corpus->parquet);
    corpus->parquet = NULL;
    return bytes;
}

/* Leaves out the rest of a Parquet file, or all of it, because of an error. */
static enum tokmap_status parquet_failed(struct corpus *corpus, struct corpus_batch *batch, uint64_t skipped,
                                         enum tokmap_status status, const struct tokmap_error *why,
                                         struct tokmap_error *error)
{
    const bool field = status == TOKMAP_ERROR_INPUT && !corpus_own_groups(corpus);
    batch->counts.stream_bytes += skipped;
    return field ? corpus_file_left_out(corpus, batch, corpus->file.path, skipped, CORPUS_REASON_FIELD, why, error)
                 : corpus_file_failed(corpus, batch, corpus->file.path, skipped, status, why, error);
}

/* Adds the next rows of a Parquet file to the batch, as a part. */
static enum tokmap_status parquet_read(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                                       struct tokmap_error *error)
{
    struct tokmap_error why;
    struct parquet_rows *rows;
    const uint64_t rest = parquet_source_bytes(corpus->parquet) - corpus->file.taken;
    enum tokmap_status status = parquet_source_next(corpus->parquet, &rows, &why);
    if (status == TOKMAP_END) {
        corpus_batch_count_file(batch, corpus->file.format);
        batch->counts.stream_bytes += rest;
        batch->counts.structure_bytes += rest;
        corpus_file_end(corpus, batch);
        return TOKMAP_OK;
    }
    if (status) {
        status = parquet_failed(corpus, batch, rest, status, &why, error);
        corpus_file_end(corpus, batch);
        return status;
    }
    if (!corpus->file.batch_path)
        corpus->file.batch_path = corpus_batch_add_path(batch, corpus->file.path);
    struct corpus_part *part = corpus->file.batch_path ? corpus_batch_add_part(batch) : NULL;
    if (!part) {
        parquet_rows_free(rows);
        return corpus_no_memory(error);
    }
    part->rows = rows;
    part->path = corpus->file.batch_path;
    part->input = corpus->inputs_begun - 1;
    part->begin = part->end = batch->filled;
    part->format = CORPUS_PARQUET;
    if (rows->group != corpus->file.group.group)
        corpus->file.group = (struct parquet_place){rows->group, corpus->file.offset, corpus->file.taken};
    corpus->file.taken += rows->stored_bytes;
    corpus->file.offset++;
    batch->counts.stream_bytes += rows->stored_bytes;
    *full = true;
    return TOKMAP_OK;
}

static const struct corpus_reader parquet_reader = {parquet_read, parquet_at, parquet_close};

enum tokmap_status parquet_file_begin(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error)
{
    const char *path = corpus->file.named;
    const bool remote = remote_kind(path) != REMOTE_NONE, regular = remote || stream_is_regular(corpus->stream);
    uint64_t bytes = stream_source(corpus->stream)->stat.bytes;
    struct tokmap_error why;
    corpus->file.format = CORPUS_PARQUET;
    enum tokmap_status status = regular ? TOKMAP_OK : stream_parquet_refused(corpus->stream, &why);
    stream_close(corpus->stream);
    corpus->file.open = false;
    if (status)
        return corpus_file_failed(corpus, batch, corpus->file.path, 0, status, &why, error);
    const bool opened = next_input_opened(&corpus->next, path, &corpus->parquet, &status, &why);
    if (!opened)
        status = parquet_open(&corpus->parquet, path, &corpus->options, corpus_own_groups(corpus),
                              &corpus->parquet_shared, &why);
    if (!status && remote) {
        bytes = parquet_source_footer(corpus->parquet)->file_bytes;
        stream_stand_for(corpus->stream, parquet_source_version(corpus->parquet), bytes);
    } else if (remote) {
        bytes = 0;
    }
    if (!status && !opened && !parquet_source_begin(corpus->parquet, corpus->parquet_from.group)) {
        parquet_source_close(corpus->parquet);
        corpus->parquet = NULL;
        status = error_set(&why, TOKMAP_ERROR_MISMATCH, corpus->file.path, TOKMAP_NO_OFFSET,
                           "the input has changed since this work began; start over with --no-resume");
    }
    corpus->file.open = corpus->file.begun = !status;
    corpus->file.reader = &parquet_reader;
    corpus->file.group = corpus->parquet_from;
    corpus->file.offset = corpus->parquet_from.offset;
    corpus->file.taken = corpus->parquet_from.taken;
    if (!status && remote)
        return next_input_ask(&corpus->next, corpus->inputs, &corpus->options, &corpus->parquet_shared, error);
    if (!status)
        return TOKMAP_OK;
    batch->counts.stored_bytes += bytes;
    corpus->finished_stored += bytes;
    return parquet_failed(corpus, batch, bytes, status, &why, error);
}
