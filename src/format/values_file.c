/* SPDX-License-Identifier: MIT */
/* values_file.c - see values_file.h. */
#include "values_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "layout.h"
#include "platform/os.h"
#include "shard_file.h"
#include "text/path.h"

#define REMEDY "restore it from a good copy, or remove it and make the values again"
#define FIELD "arrays"

static const struct {
    const char *name;
    uint32_t bytes;
} elements[] = {[VALUES_U8] = {"u8", 1},   [VALUES_U16] = {"u16", 2},   [VALUES_U32] = {"u32", 4},
                [VALUES_F16] = {"f16", 2}, [VALUES_BF16] = {"bf16", 2}, [VALUES_F32] = {"f32", 4}};
#define ELEMENTS (sizeof elements / sizeof elements[0])

uint32_t values_element_bytes(enum values_element element)
{
    return elements[element].bytes;
}

const char *values_element_name(enum values_element element)
{
    return elements[element].name;
}

/* ---- arrays as a text ---- */

enum tokmap_status values_file_name_check(const char *what, struct tokmap_error *error)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    static const char *const taken[] = {"bin",   "tmx",     "mask", "work", "partial",
                                        "ready", "dropped", "docs", "unit", "values"};
    const size_t bytes = strlen(what);
    if (!bytes || bytes > VALUES_NAME_MOST || strspn(what, good) < bytes || *what < 'a' || *what > 'z')
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, FIELD,
                               " has the name '%.40s'; a name of values has 1 to %d lower-case letters, digits, and "
                               "underscores, and begins with a letter",
                               what, VALUES_NAME_MOST);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (!strcmp(what, taken[i]))
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, FIELD,
                                   " has the name '%s', which other files of a shard have; choose another one", what);
    return TOKMAP_OK;
}

/* Returns the bytes of a token's values, or 0 if the shape is not one. */
static uint32_t value_bytes(const struct values_array *array)
{
    uint64_t bytes = values_element_bytes(array->element);
    for (uint32_t i = 0; i < array->dimensions; i++)
        if (mul_overflows(bytes, array->shape[i], &bytes))
            return 0;
    return bytes <= VALUES_TOKEN_MOST ? (uint32_t)bytes : 0;
}

/* Reads "f16[32]". Returns false if it is not an element with a shape. */
static bool type_parse(char *text, struct values_array *array)
{
    char *shape = strchr(text, '['), *at = shape;
    if (shape)
        *shape = '\0';
    for (size_t i = 1; i < ELEMENTS; i++)
        if (!strcmp(text, elements[i].name))
            array->element = (enum values_element)i;
    while (at) {
        uint64_t *number = &array->shape[array->dimensions];
        const size_t digits = strspn(at + 1, "0123456789");
        if (array->dimensions++ == VALUES_DIMENSIONS_MOST || !digits || digits > 5)
            return false;
        *number = strtoull(at + 1, NULL, 10);
        at += 1 + digits;
        if (!strcmp(at, "]"))
            break;
        if (*at != ',')
            return false;
    }
    array->value_bytes = array->element ? value_bytes(array) : 0;
    return array->value_bytes;
}

enum tokmap_status values_arrays_parse(const char *text, struct values_array arrays[VALUES_ARRAYS_MOST],
                                       uint32_t *count, struct tokmap_error *error)
{
    enum { WORD_MOST = 128 };
    *count = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        char word[WORD_MOST] = "";
        const size_t bytes = strcspn(text, " ");
        struct values_array array = {0};
        (void)snprintf(word, sizeof word, "%.*s", (int)min64(bytes, WORD_MOST), text);
        text += bytes;
        char *type = strchr(word, ':');
        if (type)
            *type++ = '\0';
        const enum tokmap_status status = values_file_name_check(word, error);
        if (status)
            return status;
        memcpy(array.name, word, strlen(word) + 1);
        for (uint32_t i = 0; i < *count; i++)
            if (!strcmp(arrays[i].name, word))
                return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, FIELD, " has the name '%s' twice", word);
        if (!type || bytes >= WORD_MOST || !type_parse(type, &array))
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, FIELD,
                                   " needs an element and a shape for '%s', such as %s:f16[32]: u8, u16, u32, f16, "
                                   "bf16, or f32, then up to %d numbers in brackets; 1 to %" PRIu64 " bytes in all",
                                   word, word, VALUES_DIMENSIONS_MOST, VALUES_TOKEN_MOST);
        if (*count == VALUES_ARRAYS_MOST)
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, FIELD, " has more than %d arrays",
                                   VALUES_ARRAYS_MOST);
        arrays[(*count)++] = array;
    }
    return *count ? TOKMAP_OK : error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, FIELD, " is empty");
}

bool values_type_equals(const struct values_array *one, const struct values_array *other)
{
    return one->element == other->element && one->dimensions == other->dimensions &&
           !memcmp(one->shape, other->shape, sizeof one->shape);
}

const char *values_type_print(const struct values_array *array, char text[VALUES_TYPE_TEXT])
{
    size_t at = (size_t)snprintf(text, VALUES_TYPE_TEXT, "%s", values_element_name(array->element));
    for (uint32_t i = 0; i < array->dimensions; i++)
        at += (size_t)snprintf(text + at, VALUES_TYPE_TEXT - at, "%s%" PRIu64 "%s", i ? "," : "[", array->shape[i],
                               i + 1 < array->dimensions ? "" : "]");
    return text;
}

/* ---- the header ---- */

char *values_file_path(const char *index_path, const char *what, enum values_state state)
{
    char ending[VALUES_NAME_MOST + sizeof "..values.partial"];
    struct shard_name found;
    const size_t bytes = strlen(index_path);
    (void)snprintf(ending, sizeof ending, ".%.*s.values%s", VALUES_NAME_MOST, what,
                   state == VALUES_PARTIAL ? ".partial" : "");
    return path_join("", 0, index_path, shard_file_find(index_path, bytes, &found) ? found.stem : bytes, ending);
}

bool values_file_is(const char *name)
{
    return path_ends_in(name, strlen(name), ".values");
}

/* Finds where the parts of the file are. Returns false if they are beyond what a file can have. */
static bool places_find(struct values_file *values)
{
    uint64_t end;
    if (values->tokens >= UINT64_MAX / 16 || mul_overflows(values->tokens, values->array.value_bytes, &end) ||
        end >= (uint64_t)1 << 61)
        return false;
    values->bitmap_at = round_up(VALUES_AT + end, VALUES_AT);
    const uint64_t hashed_end = values_hashed_end(values);
    values->hashes_at = round_up(hashed_end, 8);
    values->bytes = values->hashes_at + 8 * div_ceil(hashed_end - VALUES_AT, BLOCK_BYTES);
    return true;
}

void values_header_seal(struct values_header *header)
{
    header->header_hash = hash64(header, offsetof(struct values_header, header_hash));
}

enum tokmap_status values_header_make(struct values_header *header, const struct values_array *array,
                                      const struct index *index, struct tokmap_error *error)
{
    struct values_file places = {.array = *array, .tokens = index->shard.tokens};
    if (!places_find(&places))
        return error_set(error, TOKMAP_ERROR_LIMIT, index->path, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " tokens with %" PRIu32 " bytes of values each are more than a file can hold",
                         places.tokens, array->value_bytes);
    memset(header, 0, sizeof *header);
    memcpy(header->magic, VALUES_MAGIC, sizeof header->magic);
    header->version = VALUES_VERSION;
    header->element = array->element;
    header->dimensions = array->dimensions;
    header->value_bytes = array->value_bytes;
    memcpy(header->shape, array->shape, sizeof header->shape);
    header->tokens = places.tokens;
    memcpy(header->content, index->shard.content, sizeof header->content);
    header->bitmap_at = places.bitmap_at;
    header->file_bytes = places.bytes;
    values_header_seal(header);
    return TOKMAP_OK;
}

/* Checks the element and the shape of a header whose hash is right, and keeps them. */
static bool array_load(const struct values_header *header, struct values_array *array)
{
    bool good = header->element && header->element < ELEMENTS && header->dimensions <= VALUES_DIMENSIONS_MOST;
    if (!good)
        return false;
    array->element = (enum values_element)header->element;
    array->dimensions = header->dimensions;
    memcpy(array->shape, header->shape, sizeof array->shape);
    array->value_bytes = value_bytes(array);
    for (uint32_t i = header->dimensions; i < VALUES_DIMENSIONS_MOST; i++)
        good = good && !header->shape[i];
    return good && array->value_bytes && array->value_bytes == header->value_bytes;
}

static enum tokmap_status header_check(struct values_file *values, const struct values_header *header,
                                       const struct index *index, struct tokmap_error *error)
{
    const char *path = values->path;
    if (header->version > VALUES_VERSION)
        return error_set(error, TOKMAP_ERROR_VERSION, path, 8,
                         "the values have version %" PRIu32 ", but this tokmap reads version %d; use a newer tokmap",
                         header->version, VALUES_VERSION);
    if (hash64(header, offsetof(struct values_header, header_hash)) != header->header_hash)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, 0,
                         "the hash of the values' header does not match its bytes; " REMEDY);
    if (memcmp(header->content, index->shard.content, sizeof header->content) != 0)
        return error_set(error, TOKMAP_ERROR_MISMATCH, path, offsetof(struct values_header, content),
                         "these values belong to the tokens with content id %s, but the shard's is %s: it was packed "
                         "again or exchanged since then; restore the shard, or remove this file and make the values "
                         "again",
                         HASH128_HEX(header->content), HASH128_HEX(index->shard.content));
    values->tokens = header->tokens;
    values->present = header->present;
    values->table_hash = header->table_hash;
    values->work = header->work;
    bool good = header->version && array_load(header, &values->array) && header->tokens == index->shard.tokens &&
                header->present <= header->tokens && places_find(values) && header->bitmap_at == values->bitmap_at &&
                header->file_bytes == values->bytes;
    for (size_t i = 0; i < sizeof header->zeros; i++)
        good = good && !header->zeros[i];
    return good
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_CORRUPT, path, 8,
                           "the fields of the values' header contradict each other or the index of the shard; " REMEDY);
}

/* Reads and checks the header of the open file. */
static enum tokmap_status values_header_read(struct values_file *values, bool partial, const struct index *index,
                                             struct tokmap_error *error)
{
    struct values_header header = {0};
    struct os_stat found;
    size_t got = 0;
    int system = os_fstat(values->fd, &found);
    if (!system && found.kind == OS_KIND_FILE)
        system = os_pread(values->fd, &header, sizeof header, 0, &got);
    if (system)
        return error_set_system(error, system, values->path, 0, "the values cannot be read");
    if (!got || memcmp(header.magic, VALUES_MAGIC, min64(got, sizeof header.magic)) != 0)
        return error_set(error, TOKMAP_ERROR_FORMAT, values->path, 0,
                         "this is not a file of values (it does not begin with the bytes of one); remove it or give it "
                         "another name");
    if (got < sizeof header)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, values->path, got,
                         "the file is %zu bytes long, but the header of values alone needs %zu; " REMEDY, got,
                         sizeof header);
    if (partial) /* a power failure may have cut the write of its last header, and each field is checked */
        values_header_seal(&header);
    const enum tokmap_status status = header_check(values, &header, index, error);
    if (!status && !partial && found.bytes != values->bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, values->path, min64(found.bytes, values->bytes),
                         "the values are %" PRIu64 " bytes long, but their header says %" PRIu64 "; " REMEDY,
                         found.bytes, values->bytes);
    return status;
}

static enum tokmap_status open_as(struct values_file *values, enum values_state state, const char *index_path,
                                  const struct index *index, const char *what, struct tokmap_error *error)
{
    *values = (struct values_file){.fd = -1};
    enum tokmap_status status = values_file_name_check(what, error);
    if (status)
        return status;
    memcpy(values->array.name, what, strlen(what) + 1);
    values->path = values_file_path(index_path, what, state);
    if (!values->path)
        return error_set_memory(error, "the path of values", strlen(index_path));
    const int system = os_open(values->path, state == VALUES_PARTIAL ? OS_WRITE_OLD : OS_READ_NOW, &values->fd);
    if (system) {
        struct os_stat found;
        char *partial = state == VALUES_FINAL ? values_file_path(index_path, what, VALUES_PARTIAL) : NULL;
        const bool unfinished = system == ENOENT && partial && !os_lstat(partial, &found);
        free(partial);
        values->fd = -1;
        status =
            error_set_system(error, system, values->path, TOKMAP_NO_OFFSET, "the values '%s' of the shard %s", what,
                             unfinished ? "are not finished; open a writer of the same arrays, and finish them"
                                        : "cannot be opened; correct the name (`tokmap info` lists them), or make "
                                          "them with a writer of values or `tokmap index --values`");
    } else {
        status = values_header_read(values, state == VALUES_PARTIAL, index, error);
    }
    if (status)
        values_file_close(values);
    return status;
}

enum tokmap_status values_file_open(struct values_file *values, const char *index_path, const struct index *index,
                                    const char *what, struct tokmap_error *error)
{
    return open_as(values, VALUES_FINAL, index_path, index, what, error);
}

enum tokmap_status values_partial_open(struct values_file *values, const char *index_path, const struct index *index,
                                       const char *what, struct tokmap_error *error)
{
    return open_as(values, VALUES_PARTIAL, index_path, index, what, error);
}

void values_file_close(struct values_file *values)
{
    os_close(values->fd);
    free(values->path);
    values->fd = -1;
    values->path = NULL;
}

/* ---- the header and the table ---- */

enum tokmap_status values_file_describe(struct values_file *values, const struct values_header *header,
                                        const struct index *index, const char *what, const char *name,
                                        struct tokmap_error *error)
{
    *values = (struct values_file){.fd = -1, .path = (char *)(uintptr_t)name};
    memcpy(values->array.name, what, strlen(what) + 1);
    const enum tokmap_status status = header_check(values, header, index, error);
    values->path = NULL;
    return status;
}

uint64_t values_summary_bytes(const void *head, uint64_t *table_at)
{
    const struct values_header *header = head;
    struct values_file values = {.tokens = header->tokens};
    if (memcmp(header->magic, VALUES_MAGIC, sizeof header->magic) != 0 || header->version != VALUES_VERSION ||
        hash64(header, offsetof(struct values_header, header_hash)) != header->header_hash ||
        !array_load(header, &values.array) || !places_find(&values) || header->file_bytes != values.bytes)
        return 0;
    *table_at = values.hashes_at;
    return VALUES_AT + (values.bytes - values.hashes_at);
}

enum tokmap_status values_ranges_read(struct values_ranges **ranges, const char *name, uint64_t size,
                                      const struct values_reader *reader, struct tokmap_error *error)
{
    struct values_header header = {.version = 0};
    uint64_t table_at = 0;
    *ranges = NULL;
    enum tokmap_status status =
        size < sizeof header ? TOKMAP_OK : reader->read(reader->user, 0, sizeof header, &header, error);
    const uint64_t bytes = status ? 0 : values_summary_bytes(&header, &table_at);
    if (!status && (!bytes || (size != header.file_bytes && size != bytes)))
        status = error_set(error, TOKMAP_ERROR_FORMAT, name, 0,
                           "this is not a file of values with a sound header, or it has another length; " REMEDY);
    if (status)
        return status;
    const size_t table = (size_t)(bytes - VALUES_AT);
    struct values_ranges *made = malloc(sizeof *made + table + sizeof(uint64_t));
    if (!made)
        return error_set_memory(error, "the hashes of values", table);
    status = reader->read(reader->user, size == bytes ? VALUES_AT : table_at, table, made->hashes, error);
    if (!status && hash64(made->hashes, table) != header.table_hash)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, name, table_at,
                           "the hashes of these values do not match their own hash; " REMEDY);
    made->header = header;
    made->count = max64(table / sizeof(uint64_t), 1);
    made->end = header.bitmap_at + div_ceil(header.tokens, 8);
    made->table_at = table_at;
    if (status)
        free(made);
    else
        *ranges = made;
    return status;
}

struct opened {
    int fd;
    const char *path;
};

static enum tokmap_status opened_read(void *user, uint64_t at, size_t bytes, void *into, struct tokmap_error *error)
{
    const struct opened *opened = user;
    size_t got = 0;
    const int system = os_pread(opened->fd, into, bytes, at, &got);
    return system || got < bytes
               ? error_set_system(error, system ? system : EIO, opened->path, at, "the values cannot be read")
               : TOKMAP_OK;
}

enum tokmap_status values_ranges_load(struct values_ranges **ranges, const char *path, struct tokmap_error *error)
{
    struct opened opened = {-1, path};
    const struct values_reader reader = {opened_read, &opened};
    uint64_t bytes = 0;
    *ranges = NULL;
    int system = os_open(path, OS_READ_NOW, &opened.fd);
    if (!system)
        system = os_file_bytes(opened.fd, &bytes);
    const enum tokmap_status status =
        system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the values cannot be opened")
               : values_ranges_read(ranges, path, bytes, &reader, error);
    if (opened.fd >= 0)
        os_close(opened.fd);
    return status;
}
