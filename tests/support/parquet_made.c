/* SPDX-License-Identifier: MIT */
/* parquet_made.c - see parquet_made.h. */
#include "support/parquet_made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <zstd.h>

#include "support/scratch.h"

enum { TRUE_ = 1, I32 = 5, I64 = 6, BINARY = 8, LIST = 9, STRUCT = 12 };

static void byte_put(struct bytes_buffer *into, unsigned value)
{
    const uint8_t byte = (uint8_t)value;
    assert_true(bytes_append(into, &byte, 1));
}

void made_varint(struct bytes_buffer *into, uint64_t value)
{
    for (; value > 127; value >>= 7)
        byte_put(into, 128 | (value & 127));
    byte_put(into, (unsigned)value);
}

void made_zigzag(struct bytes_buffer *into, int64_t value)
{
    made_varint(into, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void u32_put(struct bytes_buffer *into, uint64_t value)
{
    for (int i = 0; i < 4; i++)
        byte_put(into, value >> 8 * i & 255);
}

void made_plain_text(struct bytes_buffer *into, const char *text, uint32_t count)
{
    u32_put(into, count);
    assert_true(bytes_append(into, text, count));
}

/* Packs values from the low bits on. */
static void bits_put(struct bytes_buffer *into, const uint64_t *values, uint64_t count, unsigned width)
{
    uint8_t byte = 0;
    unsigned used = 0;
    for (uint64_t i = 0; i < count; i++)
        for (unsigned bit = 0; bit < width; bit++) {
            byte |= (uint8_t)((values[i] >> bit & 1) << used);
            if (++used == 8) {
                byte_put(into, byte);
                byte = used = 0;
            }
        }
    if (used)
        byte_put(into, byte);
}

void made_hybrid(struct bytes_buffer *into, const uint32_t *values, uint64_t count, unsigned width, bool packed)
{
    if (packed) {
        uint64_t group[8];
        made_varint(into, (count + 7) / 8 << 1 | 1);
        for (uint64_t i = 0; i < count; i += 8) {
            for (uint64_t k = 0; k < 8; k++)
                group[k] = i + k < count ? values[i + k] : 0;
            bits_put(into, group, 8, width);
        }
        return;
    }
    for (uint64_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && values[next] == values[i];)
            next++;
        made_varint(into, (next - i) << 1);
        for (unsigned k = 0; k < (width + 7) / 8; k++)
            byte_put(into, values[i] >> 8 * k & 255);
    }
}

void made_delta(struct bytes_buffer *into, const int64_t *values, uint64_t count)
{
    made_varint(into, 128);
    made_varint(into, 4);
    made_varint(into, count);
    made_zigzag(into, count ? values[0] : 0);
    for (uint64_t begin = 1; begin < count; begin += 128) {
        uint64_t differences[128] = {0}, in_block = count - begin < 128 ? count - begin : 128;
        int64_t smallest = INT64_MAX;
        unsigned widths[4] = {0};
        for (uint64_t i = 0; i < in_block; i++) {
            differences[i] = (uint64_t)values[begin + i] - (uint64_t)values[begin + i - 1];
            smallest = (int64_t)differences[i] < smallest ? (int64_t)differences[i] : smallest;
        }
        for (uint64_t i = 0; i < in_block; i++) {
            differences[i] -= (uint64_t)smallest;
            while (widths[i / 32] < 64 && differences[i] >> widths[i / 32])
                widths[i / 32]++;
        }
        made_zigzag(into, smallest);
        for (int k = 0; k < 4; k++)
            byte_put(into, widths[k]);
        for (uint64_t k = 0; k * 32 < in_block; k++)
            bits_put(into, differences + 32 * k, 32, widths[k]);
    }
}

/* ---- Thrift ---- */

/* Writes the head of a field with its full number, which is always allowed. */
static void field_put(struct bytes_buffer *into, int type, int id)
{
    byte_put(into, (unsigned)type);
    made_zigzag(into, id);
}

static void integer_put(struct bytes_buffer *into, int type, int id, int64_t value)
{
    field_put(into, type, id);
    made_zigzag(into, value);
}

static void text_put(struct bytes_buffer *into, int id, const char *text)
{
    field_put(into, BINARY, id);
    made_varint(into, strlen(text));
    assert_true(bytes_append(into, text, strlen(text)));
}

static void list_put(struct bytes_buffer *into, int id, uint64_t count, int element)
{
    field_put(into, LIST, id);
    byte_put(into, 0xf0u | (unsigned)element);
    made_varint(into, count);
}

/* ---- pages ---- */

static uint32_t crc_of(const uint8_t *bytes, uint64_t count)
{
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

void made_begin(struct made_file *file)
{
    memset(file, 0, sizeof *file);
    assert_true(bytes_append(&file->bytes, "PAR1", 4));
}

void made_element(struct made_file *file, const char *name, int type, int repetition, int children)
{
    assert_true(file->element_count < MADE_ELEMENTS);
    file->elements[file->element_count++] = (struct made_element){name, type, repetition, children, -1, 0, 0, 0, 0};
    file->leaves += type >= 0;
}

static void compressed_append(struct bytes_buffer *into, const void *bytes, size_t count, int codec)
{
    if (!codec) {
        assert_true(bytes_append(into, bytes, count));
        return;
    }
    assert_int_equal(codec, 6);
    assert_true(bytes_reserve(into, ZSTD_compressBound(count)));
    const size_t made = ZSTD_compress(into->bytes + into->count, into->capacity - into->count, bytes, count, 3);
    assert_false(ZSTD_isError(made));
    into->count += made;
}

/* Appends a header and its bytes, and counts them. */
static void page_append(struct made_file *file, uint32_t column, const struct bytes_buffer *header,
                        const struct bytes_buffer *body)
{
    struct made_chunk *chunk = &file->chunks[file->groups][column];
    if (!chunk->data_page)
        chunk->data_page = (int64_t)file->bytes.count;
    assert_true(bytes_append(&file->bytes, header->bytes, header->count));
    assert_true(bytes_append(&file->bytes, body->bytes, body->count));
    chunk->bytes += (int64_t)(header->count + body->count);
}

static void levels_append(struct bytes_buffer *into, const struct made_page *page, const uint8_t *levels, int most)
{
    uint32_t wide[4096];
    struct bytes_buffer made = {NULL, 0, 0};
    unsigned width = 0;
    while (most >> width)
        width++;
    assert_true(page->entries <= 4096);
    for (int64_t i = 0; i < page->entries; i++)
        wide[i] = levels[i];
    made_hybrid(&made, wide, (uint64_t)page->entries, width, page->entries % 3 == 0);
    if (page->version == 1)
        u32_put(into, made.count);
    assert_true(bytes_append(into, made.bytes, made.count));
    bytes_free(&made);
}

void made_data(struct made_file *file, uint32_t column, struct made_page *page)
{
    struct bytes_buffer levels = {NULL, 0, 0}, body = {NULL, 0, 0}, header = {NULL, 0, 0};
    size_t repetition_bytes = 0;
    if (page->repetitions)
        levels_append(&levels, page, page->repetitions, page->repetition_most);
    repetition_bytes = levels.count;
    if (page->definitions)
        levels_append(&levels, page, page->definitions, page->definition_most);
    const int64_t bytes = (int64_t)(levels.count + page->values.count);
    if (page->version == 2) {
        assert_true(bytes_append(&body, levels.bytes, levels.count));
        compressed_append(&body, page->values.bytes, page->values.count, page->plain_values ? 0 : page->codec);
    } else {
        struct bytes_buffer all = {NULL, 0, 0};
        assert_true(bytes_append(&all, levels.bytes, levels.count));
        assert_true(bytes_append(&all, page->values.bytes, page->values.count));
        compressed_append(&body, all.bytes, all.count, page->codec);
        bytes_free(&all);
    }
    integer_put(&header, I32, 1, page->kind ? page->kind : page->version == 2 ? 3 : 0);
    integer_put(&header, I32, 2, page->bytes ? page->bytes : bytes);
    integer_put(&header, I32, 3, page->stored ? page->stored : (int64_t)body.count);
    if (page->crc)
        integer_put(&header, I32, 4, (int32_t)(crc_of(body.bytes, body.count) ^ (page->crc_wrong ? 1 : 0)));
    field_put(&header, STRUCT, page->version == 2 ? 8 : 5);
    integer_put(&header, I32, 1, page->entries);
    if (page->version == 2) {
        integer_put(&header, I32, 2, 0);
        integer_put(&header, I32, 3, page->rows);
        integer_put(&header, I32, 4, page->encoding);
        integer_put(&header, I32, 5, (int64_t)(levels.count - repetition_bytes));
        integer_put(&header, I32, 6, (int64_t)repetition_bytes);
        if (page->plain_values || page->says_plain)
            field_put(&header, 2, 7);
    } else {
        integer_put(&header, I32, 2, page->encoding);
        integer_put(&header, I32, 3, page->level_encoding ? page->level_encoding : 3);
        integer_put(&header, I32, 4, page->level_encoding ? page->level_encoding : 3);
        /* Statistics, which readers skip: a struct with a text. */
        field_put(&header, STRUCT, 5);
        text_put(&header, 5, "largest");
        byte_put(&header, 0);
    }
    byte_put(&header, 0);
    byte_put(&header, 0);
    struct made_chunk *chunk = &file->chunks[file->groups][column];
    chunk->codec = page->codec;
    chunk->values += page->entries;
    page_append(file, column, &header, &body);
    bytes_free(&levels);
    bytes_free(&body);
    bytes_free(&header);
    bytes_free(&page->values);
}

void made_dictionary(struct made_file *file, uint32_t column, struct bytes_buffer *values, int64_t entries, int codec)
{
    struct bytes_buffer header = {NULL, 0, 0}, body = {NULL, 0, 0};
    struct made_chunk *chunk = &file->chunks[file->groups][column];
    compressed_append(&body, values->bytes, values->count, codec);
    integer_put(&header, I32, 1, 2);
    integer_put(&header, I32, 2, (int64_t)values->count);
    integer_put(&header, I32, 3, (int64_t)body.count);
    field_put(&header, STRUCT, 7);
    integer_put(&header, I32, 1, entries);
    integer_put(&header, I32, 2, 2);
    byte_put(&header, 0);
    byte_put(&header, 0);
    chunk->dictionary_page = (int64_t)file->bytes.count;
    page_append(file, column, &header, &body);
    if (chunk->data_page == chunk->dictionary_page)
        chunk->data_page = (int64_t)file->bytes.count;
    bytes_free(&header);
    bytes_free(&body);
    bytes_free(values);
}

void made_index_page(struct made_file *file, uint32_t column)
{
    struct bytes_buffer header = {NULL, 0, 0}, body = {NULL, 0, 0};
    integer_put(&header, I32, 1, 1);
    integer_put(&header, I32, 2, 3);
    integer_put(&header, I32, 3, 3);
    field_put(&header, STRUCT, 6);
    byte_put(&header, 0);
    byte_put(&header, 0);
    assert_true(bytes_append(&body, "xyz", 3));
    page_append(file, column, &header, &body);
    bytes_free(&header);
    bytes_free(&body);
}

void made_group_end(struct made_file *file, int64_t rows)
{
    assert_true(file->groups < MADE_GROUPS);
    file->rows[file->groups++] = rows;
}

/* ---- the footer ---- */

static void chunk_put(struct bytes_buffer *into, const struct made_chunk *chunk)
{
    if (chunk->file_path)
        text_put(into, 1, chunk->file_path);
    integer_put(into, I64, 2, 0);
    field_put(into, STRUCT, 3);
    integer_put(into, I32, 1, 6);
    integer_put(into, I32, 4, chunk->codec);
    integer_put(into, I64, 5, chunk->values);
    integer_put(into, I64, 7, chunk->bytes);
    integer_put(into, I64, 9, chunk->data_page);
    if (chunk->dictionary_page)
        integer_put(into, I64, 11, chunk->dictionary_page);
    byte_put(into, 0);
    if (chunk->encrypted)
        text_put(into, 9, "secret");
    byte_put(into, 0);
}

/* The element that follows an element and all that is in it. */
static uint32_t element_end(const struct made_file *file, uint32_t element)
{
    uint32_t end = element + 1;
    for (int i = 0; i < file->elements[element].children && end < file->element_count; i++)
        end = element_end(file, end);
    return end;
}

static void logical_put(struct bytes_buffer *into, const struct made_element *element)
{
    field_put(into, STRUCT, 10);
    field_put(into, STRUCT, element->logical);
    if (element->logical == 5) {
        integer_put(into, I32, 1, element->scale);
        integer_put(into, I32, 2, element->precision);
    }
    byte_put(into, 0);
    byte_put(into, 0);
}

void made_file_end(struct made_file *file, const char *path)
{
    struct bytes_buffer footer = {NULL, 0, 0};
    integer_put(&footer, I32, 1, 1);
    list_put(&footer, 2, file->element_count + 1, STRUCT);
    uint32_t top = 0;
    for (uint32_t i = 0; i < file->element_count; i = element_end(file, i))
        top++;
    if (file->root_typed) {
        integer_put(&footer, I32, 1, 0);
        integer_put(&footer, I32, 3, 2);
    }
    text_put(&footer, 4, "schema");
    integer_put(&footer, I32, 5, file->root_children ? file->root_children : top);
    byte_put(&footer, 0);
    for (uint32_t i = 0; i < file->element_count; i++) {
        const struct made_element *element = &file->elements[i];
        if (element->type >= 0)
            integer_put(&footer, I32, 1, element->type);
        if (element->type_bytes)
            integer_put(&footer, I32, 2, element->type_bytes);
        integer_put(&footer, I32, 3, element->repetition);
        text_put(&footer, 4, element->name);
        if (element->children)
            integer_put(&footer, I32, 5, element->children);
        if (element->converted >= 0)
            integer_put(&footer, I32, 6, element->converted);
        if (element->converted == 5) {
            integer_put(&footer, I32, 7, element->scale);
            integer_put(&footer, I32, 8, element->precision);
        }
        if (element->logical)
            logical_put(&footer, element);
        byte_put(&footer, 0);
    }
    int64_t rows = 0;
    for (uint32_t g = 0; g < file->groups; g++)
        rows = (int64_t)((uint64_t)rows + (uint64_t)file->rows[g]);
    integer_put(&footer, I64, 3, rows);
    list_put(&footer, 4, file->groups + (uint64_t)file->extra_groups, STRUCT);
    for (uint32_t g = 0; g < file->groups; g++) {
        list_put(&footer, 1, file->leaves, STRUCT);
        for (uint32_t c = 0; c < file->leaves; c++)
            chunk_put(&footer, &file->chunks[g][c]);
        integer_put(&footer, I64, 2, 0);
        integer_put(&footer, I64, 3, file->rows[g]);
        byte_put(&footer, 0);
    }
    text_put(&footer, 6, file->created_by ? file->created_by : "a test");
    byte_put(&footer, 0);
    assert_true(bytes_append(&file->bytes, footer.bytes, footer.count));
    u32_put(&file->bytes, footer.count);
    assert_true(bytes_append(&file->bytes, "PAR1", 4));
    file_write(path, file->bytes.bytes, file->bytes.count);
    bytes_free(&footer);
    bytes_free(&file->bytes);
}
