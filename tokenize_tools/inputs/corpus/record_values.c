/* SPDX-License-Identifier: MIT */
/* record_values.c - see record_values.h. */
#include "record_values.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "json_field.h"
#include "text/utf8.h"

#define ALL_IDS ((uint64_t)UINT32_MAX + 1)
#define HIVE_NULL "__HIVE_DEFAULT_PARTITION__"

/* A document in the making. */
struct drafting {
    struct making *making;
    const struct source_record *source;
    struct corpus_document made;
    uint64_t replaced;
    bool used;       /* no issue has been added */
    bool unchecked;  /* lists may be invalid JSON */
    bool wrong_list; /* an unchecked list is not one of numbers */
};

/* Adds an issue about a field that is of another type than expected, or is missing. */
static enum tokmap_status value_wrong(struct drafting *drafting, const struct record_value *value,
                                      enum corpus_reason left_out, const char *reason, const char *field)
{
    drafting->used = false;
    return making_issue(drafting->making, drafting->source, CORPUS_ISSUE_RECORD, left_out, value->line, value->offset,
                        reason, field)
               ? TOKMAP_OK
               : making_no_memory(drafting->making);
}

/* Decodes a string of the record. */
static enum tokmap_status string_decode(struct drafting *drafting, const struct record_value *value, const char **text,
                                        uint64_t *bytes)
{
    const struct source_text from = {value->text, value->bytes, value->offset, value->escaped, value->doubled};
    drafting->made.source_bytes += value->bytes;
    return making_text(drafting->making, drafting->source, &from, text, bytes, &drafting->replaced, &drafting->used);
}

static enum tokmap_status text_make(struct drafting *drafting, const struct record_value *value, const char *field,
                                    const char **text, uint64_t *bytes)
{
    if (value->kind != JSON_STRING)
        return value_wrong(drafting, value, CORPUS_REASON_FIELD,
                           value->kind == JSON_NULL ? JSON_FIELD_NULL : JSON_FIELD_NOT_STRING, field);
    return string_decode(drafting, value, text, bytes);
}

/* Finds the text of a list: that of an array, or of a string that contains one. */
static enum tokmap_status list_text(struct drafting *drafting, const struct record_value *value, const char *field,
                                    const char **text, uint64_t *bytes)
{
    if (value->kind == JSON_ARRAY) {
        *text = value->text;
        *bytes = value->bytes;
        drafting->made.source_bytes += value->bytes;
        return TOKMAP_OK;
    }
    if (value->kind != JSON_STRING)
        return value_wrong(drafting, value, CORPUS_REASON_FIELD, JSON_FIELD_NOT_LIST, field);
    const enum tokmap_status status = string_decode(drafting, value, text, bytes);
    if (status || !drafting->used)
        return status;
    const char *begin = *text, *end = begin + *bytes;
    while (begin < end && strchr(" \t\r\n", *begin) && *begin)
        begin++;
    while (end > begin && strchr(" \t\r\n", end[-1]) && end[-1])
        end--;
    *text = begin;
    *bytes = (uint64_t)(end - begin);
    if (begin == end || *begin != '[' || !json_is_valid(begin, (size_t)*bytes, JSON_DEPTH))
        return value_wrong(drafting, value, CORPUS_REASON_FIELD, JSON_FIELD_NOT_LIST, field);
    return TOKMAP_OK;
}

/* Adds an issue about an element of a list that is valid JSON, or asks for a check of one that may not be. */
static enum tokmap_status list_wrong(struct drafting *drafting, const struct record_value *value, bool is_mask,
                                     const char *text, uint64_t bytes, uint64_t vocabulary, const char *field)
{
    const bool inside = value->kind == JSON_STRING; /* a string has other offsets than its decoded text */
    drafting->used = false;
    if (drafting->unchecked && !inside) {
        drafting->wrong_list = true;
        return TOKMAP_OK;
    }
    struct list_fault fault = !is_mask ? id_list_fault(text, bytes, vocabulary)
                              : drafting->making->options->labels
                                  ? label_list_fault(text, bytes, drafting->made.ids, drafting->made.id_count)
                                  : mask_list_fault(text, bytes);
    assert(fault.reason);
    const uint64_t line = value->line + (inside ? 0 : record_scan_lines(text, fault.offset));
    return making_list_fault(drafting->making, drafting->source, is_mask, text, &fault, line,
                             inside ? TOKMAP_NO_OFFSET : value->offset, field);
}

static enum tokmap_status ids_make(struct drafting *drafting, const struct record_value *value, const char *field)
{
    const struct corpus_options *options = drafting->making->options;
    const uint64_t vocabulary = options->vocabulary ? options->vocabulary : ALL_IDS;
    const char *text;
    uint64_t bytes;
    size_t length = 0;
    uint32_t largest = 0;
    if (value->numbers) {
        drafting->made.ids = value->numbers;
        drafting->made.id_count = value->number_count;
        return TOKMAP_OK;
    }
    enum tokmap_status status = list_text(drafting, value, field, &text, &bytes);
    if (status || !drafting->used)
        return status;
    const uint64_t room = id_list_room(text, bytes, &length);
    uint32_t *ids = room ? corpus_batch_take(drafting->making->batch, room * sizeof *ids) : NULL;
    if (room && !ids)
        return making_no_memory(drafting->making);
    if (!room || length != bytes || !id_list_read(text, bytes, ids, &drafting->made.id_count, &largest) ||
        largest >= vocabulary)
        return list_wrong(drafting, value, false, text, bytes, vocabulary, field);
    drafting->made.ids = ids;
    return TOKMAP_OK;
}

/* Reads the list of a mask. Sets *count to its number of values. */
static enum tokmap_status mask_read(struct drafting *drafting, const struct record_value *value, const char *field,
                                    uint64_t *count)
{
    const char *text;
    uint64_t bytes;
    size_t length = 0;
    *count = value->number_count;
    drafting->made.counted = value->numbers;
    if (value->numbers)
        return TOKMAP_OK;
    enum tokmap_status status = list_text(drafting, value, field, &text, &bytes);
    if (status || !drafting->used)
        return status;
    const uint64_t room = id_list_room(text, bytes, &length);
    uint8_t *counted = room ? corpus_batch_take(drafting->making->batch, room) : NULL;
    if (room && !counted)
        return making_no_memory(drafting->making);
    if (!room || length != bytes ||
        !(drafting->making->options->labels
              ? label_list_read(text, bytes, drafting->made.ids, drafting->made.id_count, counted, count)
              : mask_list_read(text, bytes, counted, count)))
        return list_wrong(drafting, value, true, text, bytes, 0, field);
    drafting->made.counted = counted;
    return TOKMAP_OK;
}

static enum tokmap_status mask_make(struct drafting *drafting, const struct record_value *value, const char *field)
{
    uint64_t count = 0;
    const enum tokmap_status status = mask_read(drafting, value, field, &count);
    if (status || !drafting->used)
        return status;
    if (count == drafting->made.id_count)
        return TOKMAP_OK;
    drafting->used = false;
    return making_mask_length(drafting->making, drafting->source, count, drafting->made.id_count, value->line,
                              value->offset);
}

/* Makes the messages of the text of the record; their reader decodes its strings. */
static enum tokmap_status messages_make(struct drafting *drafting, const struct record_value *value, const char *field)
{
    const struct source_text from = {value->text, value->bytes, value->offset, false, false};
    if (value->kind != JSON_ARRAY)
        return list_text(drafting, value, field, &drafting->made.text, &drafting->made.bytes);
    drafting->made.source_bytes += value->bytes;
    return making_text(drafting->making, drafting->source, &from, &drafting->made.text, &drafting->made.bytes,
                       &drafting->replaced, &drafting->used);
}

/* ---- columns ---- */

uint64_t json_string_write(char *into, const char *text, uint64_t count)
{
    static const char digits[] = "0123456789abcdef";
    char *at = into;
    *at++ = '"';
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)text[i];
        const char *named = byte ? strchr("\"\"\\\\\nn\rr\tt\bb\ff", byte) : NULL;
        if (named && (byte < 0x20 || byte == '"' || byte == '\\')) {
            *at++ = '\\';
            *at++ = named[1];
        } else if (byte < 0x20) {
            memcpy(at, "\\u00", 4);
            at[4] = digits[byte >> 4];
            at[5] = digits[byte & 15];
            at += 6;
        } else {
            *at++ = (char)byte;
        }
    }
    *at++ = '"';
    return (uint64_t)(at - into);
}

/* Copies a value as it is in the record, because the text of the document may be decoded there in place. */
static enum tokmap_status value_copy(struct drafting *drafting, const struct record_value *value,
                                     struct corpus_value *kept)
{
    struct making *making = drafting->making;
    const uint64_t bytes = value->bytes + 2 * (uint64_t)value->quotes;
    char *copy = corpus_batch_take(making->batch, bytes);
    if (!copy)
        return making_no_memory(making);
    memcpy(copy, value->text - value->quotes, bytes);
    const struct source_text from = {copy, bytes, value->offset - value->quotes, false, value->doubled};
    const enum tokmap_status status =
        making_text(making, drafting->source, &from, &kept->json, &kept->bytes, &drafting->replaced, &drafting->used);
    if (status || !drafting->used || value->kind != JSON_STRING || value->quotes)
        return status;
    char *string = corpus_batch_take(making->batch, 6 * kept->bytes + 2);
    if (!string)
        return making_no_memory(making);
    kept->bytes = json_string_write(string, kept->json, kept->bytes);
    kept->json = string;
    corpus_batch_shorten(making->batch, string, kept->bytes);
    return TOKMAP_OK;
}

/* Takes a column from the folders of the path, which Hive and others call NAME=VALUE, with escapes as in URLs. The
 * first one counts. *value stays if there is none, or if it is what stands for null. */
static enum tokmap_status partition_take(struct drafting *drafting, const char *column, struct record_value *value)
{
    const char *at = drafting->making->batch->parts[drafting->source->part].path;
    const size_t name = strlen(column);
    for (const char *end; (end = strchr(at, '/')); at = end + 1) {
        if (strncmp(at, column, name) != 0 || at[name] != '=')
            continue;
        char *text = corpus_batch_take(drafting->making->batch, (uint64_t)(end - at));
        if (!text)
            return making_no_memory(drafting->making);
        *value = (struct record_value){.kind = JSON_STRING, .text = text, .offset = TOKMAP_NO_OFFSET};
        for (at += name + 1; at < end; at++) {
            const bool escape = *at == '%' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0;
            text[value->bytes++] = escape ? (char)(hex_digit(at[1]) * 16 + hex_digit(at[2])) : *at;
            at += escape ? 2 : 0;
        }
        if (value->bytes == sizeof HIVE_NULL - 1 && !memcmp(text, HIVE_NULL, value->bytes))
            value->kind = JSON_NOTHING;
        break;
    }
    return TOKMAP_OK;
}

static enum tokmap_status columns_make(struct drafting *drafting, const struct record_value *values)
{
    const struct corpus_options *options = drafting->making->options;
    struct corpus_value *kept =
        corpus_batch_take(drafting->making->batch, options->column_count * sizeof(struct corpus_value));
    enum tokmap_status status = kept ? TOKMAP_OK : making_no_memory(drafting->making);
    for (size_t i = 0; i < options->column_count && !status && drafting->used; i++) {
        struct record_value value = values[i];
        const bool deep = value.kind == JSON_ARRAY || value.kind == JSON_OBJECT;
        kept[i] = (struct corpus_value){NULL, 0};
        if (value.kind == JSON_NOTHING)
            status = partition_take(drafting, options->columns[i], &value);
        if (deep && value.bytes > CORPUS_VALUE_DEPTH && !json_is_valid(value.text, value.bytes, CORPUS_VALUE_DEPTH))
            status = value_wrong(drafting, &value, CORPUS_REASON_FIELD, CORPUS_VALUE_DEEP, options->columns[i]);
        else if (!status && value.kind != JSON_NOTHING)
            status = value_copy(drafting, &value, &kept[i]);
    }
    drafting->made.values = kept;
    return status;
}

/* ---- beside the messages ---- */

/* Returns true if the value of a field says nothing; the field `empty` does only if it is null. */
static bool is_nothing(const struct corpus_value *value, const char *name, const char *empty)
{
    const char *dot = strrchr(name, '.');
    return json_says_nothing(value->json, value->bytes) &&
           (*value->json == 'n' || !empty || strcmp(dot ? dot + 1 : name, empty) != 0);
}

/* Makes the object of JSON with what the record says beside its messages. */
static enum tokmap_status beside_make(struct drafting *drafting, const struct record_value *values)
{
    const struct corpus_options *options = drafting->making->options;
    struct corpus_value said[RECORD_BESIDE_MOST];
    enum tokmap_status status = TOKMAP_OK;
    uint64_t bytes = 2, used = 0;
    for (size_t i = 0; i < options->beside_count && !status && drafting->used; i++) {
        said[i] = (struct corpus_value){NULL, 0};
        if (values[i].kind != JSON_NOTHING)
            status = value_copy(drafting, &values[i], &said[i]);
        if (is_nothing(&said[i], options->beside[i], options->empty))
            said[i].bytes = 0;
        bytes += said[i].bytes ? said[i].bytes + 6 * strlen(options->beside[i]) + 4 : 0;
    }
    if (status || !drafting->used || bytes == 2)
        return status;
    char *text = corpus_batch_take(drafting->making->batch, bytes);
    if (!text)
        return making_no_memory(drafting->making);
    for (size_t i = 0; i < options->beside_count; i++) {
        if (!said[i].bytes)
            continue;
        text[used] = used ? ',' : '{';
        used += 1 + json_string_write(text + used + 1, options->beside[i], strlen(options->beside[i]));
        text[used++] = ':';
        memcpy(text + used, said[i].json, said[i].bytes);
        used += said[i].bytes;
    }
    text[used++] = '}';
    corpus_batch_shorten(drafting->making->batch, text, used);
    drafting->made.second = text;
    drafting->made.second_bytes = used;
    return TOKMAP_OK;
}

/* ---- records ---- */

static enum tokmap_status content_make(struct drafting *drafting, const struct record_value *values)
{
    const struct corpus_options *options = drafting->making->options;
    struct corpus_document *made = &drafting->made;
    enum tokmap_status status = TOKMAP_OK;
    switch (options->content) {
    case CORPUS_CONTENT_TEXT:
        return text_make(drafting, values, options->field, &made->text, &made->bytes);
    case CORPUS_CONTENT_IDS:
        status = ids_make(drafting, values, options->field);
        if (!status && drafting->used && options->second_field)
            status = mask_make(drafting, values + 1, options->second_field);
        return status;
    case CORPUS_CONTENT_PROMPT:
        status = text_make(drafting, values, options->field, &made->text, &made->bytes);
        if (!status && drafting->used)
            status = text_make(drafting, values + 1, options->second_field, &made->second, &made->second_bytes);
        return status;
    case CORPUS_CONTENT_MESSAGES:
        break;
    }
    return messages_make(drafting, values, options->field);
}

enum tokmap_status record_document(struct making *making, const struct source_record *source,
                                   const struct record_value *values, bool unchecked, bool *wrong_list)
{
    const struct corpus_options *options = making->options;
    struct drafting drafting = {.making = making, .source = source, .used = true, .unchecked = unchecked};
    enum tokmap_status status = TOKMAP_OK;
    /* Texts are decoded in place, so the columns, which may be the same fields, are copied before. But as long as lists
     * are unchecked, nothing else of the record is certain. */
    const bool lists = options->content == CORPUS_CONTENT_IDS && values[0].kind == JSON_ARRAY &&
                       (!options->second_field || values[1].kind == JSON_ARRAY);
    const struct record_value *columns = values + 1 + (options->second_field != NULL);
    if (lists)
        status = content_make(&drafting, values);
    if (!status && drafting.used && options->beside_count)
        status = beside_make(&drafting, columns + options->column_count);
    if (!status && drafting.used && options->column_count)
        status = columns_make(&drafting, columns);
    if (!lists && !status && drafting.used)
        status = content_make(&drafting, values);
    *wrong_list = drafting.wrong_list;
    if (making->batch->parts[source->part].format == CORPUS_PARQUET)
        drafting.made.source_bytes = source->whole; /* compressed texts have no bytes of their own in the file */
    return status || !drafting.used ? status : making_document(making, source, &drafting.made, drafting.replaced);
}
