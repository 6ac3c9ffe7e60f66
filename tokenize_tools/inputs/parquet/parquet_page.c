/* SPDX-License-Identifier: MIT */
#include "parquet_page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "parquet_codec.h"
#include "parquet_thrift.h"
#include "parquet_values.h"
#include "platform/os.h"

#define LEVELS_SHORT "its levels are longer than the page"
#define HAS_MORE "it says that it has no values, and has some"
#define CRC_WRONG "its checksum does not match its bytes"

#define KEPT_MOST 64 /* decompressors, and buffers */

struct parquet_pool {
    uint32_t references;
    struct os_mutex *mutex; /* guards all fields below */
    struct parquet_codec *codecs[KEPT_MOST];
    uint32_t codec_count;
    struct bytes_buffer buffers[KEPT_MOST];
    uint32_t buffer_count;
    uint64_t buffer_bytes; /* capacity of all buffers */
};

enum tokmap_status parquet_pool_new(struct parquet_pool **pool, struct tokmap_error *error)
{
    *pool = calloc(1, sizeof **pool);
    if (!*pool || os_mutex_new(&(*pool)->mutex)) {
        free(*pool);
        *pool = NULL;
        return error_set_memory(error, "the reader of Parquet files", sizeof **pool);
    }
    (*pool)->references = 1;
    return TOKMAP_OK;
}

void parquet_pool_hold(struct parquet_pool *pool)
{
    __atomic_fetch_add(&pool->references, 1, __ATOMIC_RELAXED);
}

void parquet_pool_release(struct parquet_pool *pool)
{
    if (!pool || __atomic_sub_fetch(&pool->references, 1, __ATOMIC_ACQ_REL))
        return;
    for (uint32_t i = 0; i < pool->codec_count; i++)
        parquet_codec_free(pool->codecs[i]);
    for (uint32_t i = 0; i < pool->buffer_count; i++)
        bytes_free(&pool->buffers[i]);
    os_mutex_free(pool->mutex);
    free(pool);
}

static enum tokmap_status parquet_pool_codec(struct parquet_pool *pool, struct parquet_codec **codec,
                                             struct tokmap_error *error)
{
    *codec = NULL;
    os_mutex_lock(pool->mutex);
    if (pool->codec_count)
        *codec = pool->codecs[--pool->codec_count];
    os_mutex_unlock(pool->mutex);
    return *codec ? TOKMAP_OK : parquet_codec_new(codec, error);
}

/* Borrows a decompressor. */
static void parquet_pool_codec_back(struct parquet_pool *pool, struct parquet_codec *codec)
{
    if (!codec)
        return;
    os_mutex_lock(pool->mutex);
    if (pool->codec_count < KEPT_MOST) {
        pool->codecs[pool->codec_count++] = codec;
        codec = NULL;
    }
    os_mutex_unlock(pool->mutex);
    parquet_codec_free(codec);
}

struct bytes_buffer parquet_pool_buffer(struct parquet_pool *pool, uint64_t capacity)
{
    struct bytes_buffer buffer = {NULL, 0, 0};
    os_mutex_lock(pool->mutex);
    if (pool->buffer_count) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < pool->buffer_count; i++) {
            const uint64_t have = pool->buffers[best].capacity, other = pool->buffers[i].capacity;
            if (have < capacity ? other > have : other >= capacity && other < have)
                best = i;
        }
        buffer = pool->buffers[best];
        pool->buffers[best] = pool->buffers[--pool->buffer_count];
        pool->buffer_bytes -= buffer.capacity;
    }
    os_mutex_unlock(pool->mutex);
    buffer.count = 0;
    return buffer;
}

void parquet_pool_buffer_back(struct parquet_pool *pool, struct bytes_buffer *buffer)
{
    if (!buffer->bytes)
        return;
    os_mutex_lock(pool->mutex);
    if (pool->buffer_count < KEPT_MOST && buffer->capacity <= POOL_KEPT_BYTES - pool->buffer_bytes) {
        pool->buffer_bytes += buffer->capacity;
        pool->buffers[pool->buffer_count++] = *buffer;
        *buffer = (struct bytes_buffer){NULL, 0, 0};
    }
    os_mutex_unlock(pool->mutex);
    bytes_free(buffer);
}

void parquet_file_hold(struct parquet_file *file)
{
    __atomic_fetch_add(&file->references, 1, __ATOMIC_RELAXED);
}

void parquet_file_release(struct parquet_file *file)
{
    if (!file || __atomic_sub_fetch(&file->references, 1, __ATOMIC_ACQ_REL))
        return;
    parquet_footer_free(&file->footer);
    parquet_pool_release(file->pool);
    free(file->path);
    free(file);
}

/* ---- headers ---- */

/* Returns a count or a size of the header. */
static uint64_t count_take(struct thrift *thrift, const struct thrift_field *field)
{
    const int64_t value = thrift_integer(thrift, field);
    if (value < 0 && !thrift->fault) {
        thrift->fault = "its header has a negative count or size";
        return 0;
    }
    return (uint64_t)value;
}

/* Reads the header of a data page of version 1, or of a dictionary page, whose first fields are the same. */
static void header_data(struct thrift *thrift, struct parquet_page_header *header)
{
    struct thrift_field field = {0};
    while (thrift_field_next(thrift, &field)) {
        if (field.id == 1)
            header->entries = count_take(thrift, &field);
        else if (field.id == 2)
            header->encoding = thrift_integer(thrift, &field);
        else if (field.id == 3 && header->kind == PARQUET_PAGE_DATA)
            header->definition_encoding = thrift_integer(thrift, &field);
        else if (field.id == 4 && header->kind == PARQUET_PAGE_DATA)
            header->repetition_encoding = thrift_integer(thrift, &field);
        else
            thrift_skip(thrift, &field);
    }
}

static void header_data_2(struct thrift *thrift, struct parquet_page_header *header)
{
    struct thrift_field field = {0};
    while (thrift_field_next(thrift, &field)) {
        if (field.id == 1)
            header->entries = count_take(thrift, &field);
        else if (field.id == 3)
            header->rows = count_take(thrift, &field);
        else if (field.id == 4)
            header->encoding = thrift_integer(thrift, &field);
        else if (field.id == 5)
            header->definition_bytes = count_take(thrift, &field);
        else if (field.id == 6)
            header->repetition_bytes = count_take(thrift, &field);
        else if (field.id == 7)
            header->is_compressed = thrift_bool(thrift, &field);
        else
            thrift_skip(thrift, &field);
    }
}

const char *parquet_page_header_read(struct parquet_page_header *header, const uint8_t *bytes, uint64_t count)
{
    struct thrift thrift = {.bytes = bytes, .count = count};
    struct thrift_field field = {0};
    bool described = false, other_described = false;
    *header = (struct parquet_page_header){
        .kind = -1, .is_compressed = true, .definition_encoding = PARQUET_RLE, .repetition_encoding = PARQUET_RLE};
    while (thrift_field_next(&thrift, &field)) {
        const bool data = field.id == 5 && header->kind == PARQUET_PAGE_DATA;
        const bool dictionary = field.id == 7 && header->kind == PARQUET_PAGE_DICTIONARY;
        const bool data_2 = field.id == 8 && header->kind == PARQUET_PAGE_DATA_2;
        described |= data || dictionary || data_2;
        other_described |= field.id == 5 || field.id == 7 || field.id == 8;
        if (field.id == 1)
            header->kind = thrift_integer(&thrift, &field);
        else if (field.id == 2)
            header->bytes = count_take(&thrift, &field);
        else if (field.id == 3)
            header->stored = count_take(&thrift, &field);
        else if (field.id == 4) {
            header->crc = (uint32_t)thrift_integer(&thrift, &field);
            header->has_crc = true;
        } else if ((data || dictionary) && thrift_struct(&thrift, &field))
            header_data(&thrift, header);
        else if (data_2 && thrift_struct(&thrift, &field))
            header_data_2(&thrift, header);
        else
            thrift_skip(&thrift, &field);
    }
    header->header_bytes = thrift.at;
    if (thrift.fault)
        return thrift.fault;
    const bool is_index = header->kind == PARQUET_PAGE_INDEX;
    if (header->kind > PARQUET_PAGE_DATA_2)
        return "it is of a kind that is not known to this tokmap" PARQUET_REWRITE " with pages of version 1 or 2";
    if (is_index ? other_described : !described)
        return "its header lacks the kind of the page or its description, or the two differ";
    if (header->bytes > INT32_MAX || header->stored > INT32_MAX)
        return "its header has a size above 2 GiB";
    if (header->entries > PARQUET_ENTRIES_MOST)
        return "it has more than 2^26 values" PARQUET_REWRITE " with smaller pages";
    if (header->kind == PARQUET_PAGE_DATA_2 &&
        (header->definition_bytes > header->stored || header->definition_bytes > header->bytes ||
         header->repetition_bytes > header->stored - header->definition_bytes ||
         header->repetition_bytes > header->bytes - header->definition_bytes))
        return LEVELS_SHORT;
    return NULL;
}

/* ---- pages ---- */

static int chunk_codec(const struct parquet_file *file, uint64_t group, uint32_t column)
{
    return file->footer.chunks[group * file->footer.column_count + column].codec;
}

uint64_t parquet_page_weight(const struct parquet_file *file, uint64_t group, uint32_t column,
                             const struct parquet_page_header *header)
{
    /* Without compression, a page that says to have other bytes than are stored is refused. */
    const bool plain = chunk_codec(file, group, column) == PARQUET_CODEC_NONE;
    return (plain ? 0 : header->bytes) + header->stored + 8 * header->entries;
}

enum tokmap_status parquet_page_new(struct parquet_page **page, struct parquet_file *file, uint64_t group,
                                    uint32_t column, uint64_t offset, const struct parquet_page_header *header,
                                    struct bytes_buffer *stored, struct parquet_page *dictionary,
                                    struct tokmap_error *error)
{
    struct parquet_page *made = *page = calloc(1, sizeof *made);
    if (!made || os_mutex_new(&made->mutex)) {
        free(made);
        *page = NULL;
        return error_set_memory(error, "a page of a Parquet file", sizeof *made);
    }
    made->references = 1;
    made->file = file;
    parquet_file_hold(file);
    made->header = *header;
    made->group = group;
    made->column = column;
    made->offset = offset;
    made->dictionary = dictionary;
    if (dictionary)
        parquet_page_hold(dictionary);
    made->stored = *stored;
    *stored = (struct bytes_buffer){NULL, 0, 0};
    made->fragment_count = header->entries;
    return TOKMAP_OK;
}

void parquet_page_hold(struct parquet_page *page)
{
    __atomic_fetch_add(&page->references, 1, __ATOMIC_RELAXED);
}

void parquet_page_release(struct parquet_page *page)
{
    if (!page || __atomic_sub_fetch(&page->references, 1, __ATOMIC_ACQ_REL))
        return;
    parquet_page_release(page->dictionary);
    parquet_pool_buffer_back(page->file->pool, &page->stored);
    parquet_pool_buffer_back(page->file->pool, &page->data);
    parquet_values_free(&page->values);
    free(page->definitions);
    free(page->fragments);
    free(page->failure);
    os_mutex_free(page->mutex);
    parquet_file_release(page->file);
    free(page);
}

enum tokmap_status parquet_page_fault(const struct parquet_file *file, uint64_t group, uint32_t column, uint64_t offset,
                                      enum tokmap_status status, const char *reason, struct tokmap_error *error)
{
    const bool damaged = status == TOKMAP_ERROR_CORRUPT && !strstr(reason, PARQUET_REWRITE);
    status = status == TOKMAP_ERROR_CORRUPT && !damaged ? TOKMAP_ERROR_UNSUPPORTED : status;
    return error_set(error, status, file->path, offset,
                     "row group %" PRIu64 ", column '%s', page at byte %" PRIu64 ": %s%s", group,
                     file->footer.columns[column].name, offset, reason,
                     damaged ? "; the file is damaged: copy it again from its source" : "");
}

/* ---- decoding ---- */

struct page_bytes {
    const uint8_t *levels; /* levels that are not taken yet begin here */
    uint64_t levels_left;
    const uint8_t *values;
    uint64_t values_left;
};

/* Compares the checksum, once. */
static bool crc_is_right(struct parquet_page *page)
{
    const struct parquet_page_header *header = &page->header;
    if (header->has_crc && !page->checked && parquet_crc(page->stored.bytes, header->stored) != header->crc)
        return false;
    page->checked = true;
    return true;
}

/* Decompresses the page. Sets where its levels and values are; those of version 1 are together. */
static enum tokmap_status decompress(struct parquet_page *page, struct page_bytes *bytes, struct tokmap_error *error)
{
    const struct parquet_page_header *header = &page->header;
    struct parquet_file *file = page->file;
    const int codec = chunk_codec(file, page->group, page->column);
    const bool second = header->kind == PARQUET_PAGE_DATA_2;
    const uint64_t levels = second ? header->definition_bytes + header->repetition_bytes : 0;
    const uint8_t *stored = page->stored.bytes;
    const uint64_t stored_bytes = header->stored - levels, wanted = header->bytes - levels;
    struct tokmap_error why;
    *bytes = (struct page_bytes){.levels = stored, .levels_left = levels};
    if (!crc_is_right(page))
        return parquet_page_fault(file, page->group, page->column, page->offset, TOKMAP_ERROR_CORRUPT, CRC_WRONG,
                                  error);
    if (codec == PARQUET_CODEC_NONE || (second && !header->is_compressed && !file->footer.is_compressed_anyway)) {
        if (stored_bytes != wanted)
            return parquet_page_fault(file, page->group, page->column, page->offset, TOKMAP_ERROR_CORRUPT,
                                      "it is not compressed, and has another size than its header says", error);
        bytes->values = stored + levels;
        bytes->values_left = wanted;
    } else {
        struct parquet_codec *codecs = NULL;
        enum tokmap_status status = parquet_codec_check(codec, &why);
        if (!status)
            status = parquet_pool_codec(file->pool, &codecs, &why);
        page->data = parquet_pool_buffer(file->pool, wanted + PARQUET_CODEC_SLACK);
        if (!status && (wanted || stored_bytes))
            status = parquet_codec_decode(codecs, codec, stored + levels, stored_bytes, &page->data, wanted, &why);
        parquet_pool_codec_back(file->pool, codecs);
        if (status)
            return parquet_page_fault(file, page->group, page->column, page->offset, status, why.message, error);
        bytes->values = page->data.bytes;
        bytes->values_left = wanted;
    }
    if (!second) {
        bytes->levels = bytes->values;
        bytes->levels_left = bytes->values_left;
    }
    return TOKMAP_OK;
}

/* Takes the levels of one kind. *levels is set to memory with a level for each entry, or to NULL if all are `most` and
 * `optional`. */
static const char *levels_take(struct parquet_page *page, struct page_bytes *bytes, uint8_t most, bool repetition,
                               uint8_t **levels)
{
    const struct parquet_page_header *header = &page->header;
    const bool second = header->kind == PARQUET_PAGE_DATA_2;
    const int64_t encoding = repetition ? header->repetition_encoding : header->definition_encoding;
    const uint64_t entries = header->entries;
    struct parquet_hybrid hybrid;
    const char *fault = NULL;
    uint64_t used = 0;
    *levels = NULL;
    if (!most)
        return NULL;
    if (second) {
        used = repetition ? header->repetition_bytes : header->definition_bytes;
    } else {
        /* Readers do not agree about the order of bits in the other one, BIT_PACKED, which is deprecated. */
        if (encoding != PARQUET_RLE)
            return "the encoding of its levels is not RLE, the only one that is read";
        if (bytes->levels_left < 4 || load32(bytes->levels) > bytes->levels_left - 4)
            return LEVELS_SHORT;
        used = load32(bytes->levels);
        bytes->levels += 4;
        bytes->levels_left -= 4;
    }
    if (!entries && used)
        return HAS_MORE;
    parquet_hybrid_begin(&hybrid, bytes->levels, used, parquet_levels_width(most));
    if (repetition || !parquet_hybrid_is_run(&hybrid, most, entries)) {
        *levels = malloc(entries + 1);
        if (!*levels)
            return PARQUET_NO_MEMORY;
        fault = parquet_levels_take(&hybrid, *levels, entries, most);
    }
    if (fault)
        return fault;
    bytes->levels += used;
    bytes->levels_left -= used;
    return NULL;
}

/* Finds the fragments of a list. Only the levels tell: what the header of a page of version 2 calls its rows are its
 * entries in files of Arrow before 12, and though such a page must not continue a row, some programs write such. */
static const char *fragments_find(struct parquet_page *page, const uint8_t *repetitions)
{
    const uint64_t entries = page->header.entries;
    uint64_t count = 0, fragment = 0;
    for (uint64_t i = 0; i < entries; i++)
        count += !i || !repetitions[i];
    page->continues = entries && repetitions[0];
    page->fragment_count = count;
    page->fragments = malloc((count + 1) * sizeof *page->fragments);
    if (!page->fragments)
        return PARQUET_NO_MEMORY;
    for (uint64_t i = 0; i < entries; i++)
        if (!i || !repetitions[i])
            page->fragments[fragment++] = (uint32_t)i;
    assert(fragment == count);
    page->fragments[count] = (uint32_t)entries;
    return NULL;
}

/* Takes the repetition levels of a list, and finds its fragments. */
static const char *lists_take(struct parquet_page *page, struct page_bytes *bytes)
{
    const struct parquet_column *column = &page->file->footer.columns[page->column];
    uint8_t *repetitions;
    const char *fault = levels_take(page, bytes, column->max_repetition, true, &repetitions);
    if (!fault)
        fault = fragments_find(page, repetitions);
    free(repetitions);
    return fault;
}

/* Moves the values, which are together, to the entries that have one. */
static void values_spread(struct parquet_page *page, uint64_t present)
{
    const uint8_t most = page->file->footer.columns[page->column].max_definition;
    for (uint64_t i = page->header.entries, k = present; i-- > 0 && k <= i;) {
        const bool has = page->definitions[i] == most;
        k -= has;
        if (page->values.spans)
            page->values.spans[i] = has ? page->values.spans[k] : (struct parquet_span){0, 0};
        else
            page->values.numbers[i] = has ? page->values.numbers[k] : 0;
    }
    page->values.count = page->header.entries;
}

/* Most bytes of texts that are put together from shared beginnings, since few bytes of a file can make many. */
static uint64_t shared_most(const struct parquet_page *page)
{
    const uint64_t most = page->file->page_most;
    return min64(PARQUET_SHARED_MOST, max64(most ? most : UINT64_MAX, page->header.stored * PARQUET_USUAL_RATIO));
}

static const char *data_decode(struct parquet_page *page, struct page_bytes *bytes)
{
    const struct parquet_column *column = &page->file->footer.columns[page->column];
    const struct parquet_page_header *header = &page->header;
    const char *fault = NULL;
    if (page->fragments) {
        bytes->levels += header->repetition_bytes;
        bytes->levels_left -= header->repetition_bytes;
    } else if (column->max_repetition) {
        fault = lists_take(page, bytes);
    }
    if (!fault)
        fault = levels_take(page, bytes, column->max_definition, false, &page->definitions);
    if (fault)
        return fault;
    uint64_t present = header->entries;
    if (page->definitions) {
        present = 0;
        for (uint64_t i = 0; i < header->entries; i++)
            present += page->definitions[i] == column->max_definition;
        if (present == header->entries) {
            free(page->definitions);
            page->definitions = NULL;
        }
    }
    if (header->kind == PARQUET_PAGE_DATA) {
        bytes->values = bytes->levels;
        bytes->values_left = bytes->levels_left;
    }
    /* Without values, an encoding may still have a head; PLAIN has none. */
    if (!header->entries && header->encoding == PARQUET_PLAIN && bytes->values_left)
        return HAS_MORE;
    fault =
        parquet_values_decode(&page->values, column, (int)header->encoding, bytes->values, bytes->values_left, present,
                              header->entries, page->dictionary ? &page->dictionary->values : NULL, shared_most(page));
    if (!fault && present < header->entries)
        values_spread(page, present);
    return fault;
}

static enum tokmap_status decode_fault(const struct parquet_page *page, const char *fault, struct tokmap_error *error)
{
    if (!strcmp(fault, PARQUET_NO_MEMORY))
        return error_set_memory(error, "the values of a Parquet page", page->header.entries);
    return parquet_page_fault(page->file, page->group, page->column, page->offset, TOKMAP_ERROR_CORRUPT, fault, error);
}

static enum tokmap_status decode(struct parquet_page *page, struct tokmap_error *error)
{
    const struct parquet_column *column = &page->file->footer.columns[page->column];
    const struct parquet_page_header *header = &page->header;
    struct page_bytes bytes;
    enum tokmap_status status = page->dictionary ? parquet_page_decode(page->dictionary, error) : TOKMAP_OK;
    if (!status)
        status = decompress(page, &bytes, error);
    if (status)
        return status;
    const char *fault;
    if (header->kind != PARQUET_PAGE_DICTIONARY)
        fault = data_decode(page, &bytes);
    else if (header->encoding != PARQUET_PLAIN && header->encoding != PARQUET_PLAIN_DICTIONARY)
        fault = "the encoding of the dictionary is not PLAIN";
    else
        fault = parquet_values_decode(&page->values, column, PARQUET_PLAIN, bytes.values, bytes.values_left,
                                      header->entries, header->entries, NULL, 0);
    /* The compressed bytes are not needed any more. */
    if (page->data.bytes)
        parquet_pool_buffer_back(page->file->pool, &page->stored);
    return fault ? decode_fault(page, fault, error) : TOKMAP_OK;
}

enum tokmap_status parquet_page_divide(struct parquet_page *page, struct tokmap_error *error)
{
    const struct parquet_page_header *header = &page->header;
    struct page_bytes bytes = {.levels = page->stored.bytes,
                               .levels_left = header->definition_bytes + header->repetition_bytes};
    if (header->kind == PARQUET_PAGE_DATA)
        return parquet_page_decode(page, error);
    const char *fault = crc_is_right(page) ? lists_take(page, &bytes) : CRC_WRONG;
    return fault ? decode_fault(page, fault, error) : TOKMAP_OK;
}

enum tokmap_status parquet_page_decode(struct parquet_page *page, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    os_mutex_lock(page->mutex);
    if (!page->decoded) {
        struct tokmap_error why;
        status = decode(page, &why);
        page->decoded = true;
        if (status) {
            page->failure = malloc(sizeof *page->failure);
            if (page->failure)
                *page->failure = why;
        }
    }
    if (page->failure) {
        status = page->failure->status;
        if (error)
            *error = *page->failure;
    } else if (status) {
        status = error_set_memory(error, "a page of a Parquet file", 0);
    }
    os_mutex_unlock(page->mutex);
    return status;
}
