/* SPDX-License-Identifier: MIT */
/*
 * npy.c - see npy.h.
 *
 * The header is the literal of a Python dictionary with exactly three keys, in any order:
 *     {'descr': '<u2', 'fortran_order': False, 'shape': (1000,), }
 * Strings have no escapes, and shape is a tuple of decimal numbers: a tuple of one number has a comma after it, and
 * only Python 2, which wrote no version above 2.0, wrote numbers with an L. Whatever else is there is refused, by its
 * byte.
 */
#include "npy.h"

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/decimal.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6

struct reading {
    const char *at, *end; /* the rest of the header */
    const uint8_t *head;  /* the file's first byte */
    const char *path;
    struct npy_header *header;
    bool descr_given, order_given, shape_given;
    struct tokmap_error *error;
};

static uint64_t offset_of(const struct reading *reading)
{
    return (uint64_t)((const uint8_t *)reading->at - reading->head);
}

static enum tokmap_status malformed(const struct reading *reading, const char *expected)
{
    return error_set(reading->error, TOKMAP_ERROR_CORRUPT, reading->path, offset_of(reading),
                     "the header of this .npy file is damaged: here should be %s; write the array again with "
                     "numpy.save()",
                     expected);
}

static void skip_blanks(struct reading *reading)
{
    while (reading->at < reading->end && strchr(" \t\r\n", *reading->at) && *reading->at)
        reading->at++;
}

/* Takes one character after blanks. */
static bool take(struct reading *reading, char wanted)
{
    skip_blanks(reading);
    if (reading->at == reading->end || *reading->at != wanted)
        return false;
    reading->at++;
    return true;
}

/* Takes a string in single or double quotes; *text is not terminated. */
static bool take_string(struct reading *reading, const char **text, size_t *bytes)
{
    skip_blanks(reading);
    if (reading->at == reading->end || (*reading->at != '\'' && *reading->at != '"'))
        return false;
    const char *from = reading->at + 1;
    const char *stop = memchr(from, *reading->at, (size_t)(reading->end - from));
    if (!stop)
        return false;
    *text = from;
    *bytes = (size_t)(stop - from);
    reading->at = stop + 1;
    return true;
}

static bool take_word(struct reading *reading, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(reading);
    if ((size_t)(reading->end - reading->at) < length || memcmp(reading->at, word, length) != 0)
        return false;
    reading->at += length;
    return true;
}

static enum tokmap_status take_descr(struct reading *reading)
{
    const char *text;
    size_t bytes;
    if (!take_string(reading, &text, &bytes)) {
        if (reading->at < reading->end && *reading->at == '[')
            return error_set(reading->error, TOKMAP_ERROR_UNSUPPORTED, reading->path, offset_of(reading),
                             "the array consists of records, not of token ids; save the field with the ids as an array "
                             "of integers");
        return malformed(reading, "the type of the elements in quotes");
    }
    if (bytes >= sizeof reading->header->descr)
        bytes = sizeof reading->header->descr - 1;
    memcpy(reading->header->descr, text, bytes);
    reading->header->descr[bytes] = '\0';
    reading->descr_given = true;
    return TOKMAP_OK;
}

static enum tokmap_status take_order(struct reading *reading)
{
    reading->header->fortran = take_word(reading, "True");
    if (!reading->header->fortran && !take_word(reading, "False"))
        return malformed(reading, "True or False");
    reading->order_given = true;
    return TOKMAP_OK;
}

static enum tokmap_status take_shape(struct reading *reading)
{
    if (!take(reading, '('))
        return malformed(reading, "the shape in parentheses");
    struct npy_header *header = reading->header;
    header->shape_at = offset_of(reading) - 1;
    bool comma = true;
    while (!take(reading, ')')) {
        uint64_t number;
        skip_blanks(reading);
        const char *digits = reading->at;
        if (!comma || !decimal_read(&reading->at, reading->end, &number) ||
            (*digits == '0' && reading->at - digits > 1)) {
            reading->at = digits;
            return malformed(reading, comma ? "a number of elements below 2^64" : "a comma or the end of the shape");
        }
        if (reading->head[MAGIC_BYTES] < 3)
            (void)take(reading, 'L');
        if (header->dimensions < NPY_DIMENSIONS_MOST)
            header->shape[header->dimensions] = number;
        header->dimensions++;
        comma = take(reading, ',');
        if (!comma && header->dimensions == 1)
            return malformed(reading, "a comma after the only number of the shape");
    }
    reading->shape_given = true;
    return TOKMAP_OK;
}

static enum tokmap_status take_dictionary(struct reading *reading)
{
    if (!take(reading, '{'))
        return malformed(reading, "a dictionary in braces");
    while (!take(reading, '}')) {
        const char *key;
        size_t bytes;
        if (!take_string(reading, &key, &bytes) || !take(reading, ':'))
            return malformed(reading, "a key in quotes, and a colon");
        enum tokmap_status status;
        if (bytes == 5 && !memcmp(key, "descr", 5) && !reading->descr_given)
            status = take_descr(reading);
        else if (bytes == 13 && !memcmp(key, "fortran_order", 13) && !reading->order_given)
            status = take_order(reading);
        else if (bytes == 5 && !memcmp(key, "shape", 5) && !reading->shape_given)
            status = take_shape(reading);
        else
            status = malformed(reading, "the keys descr, fortran_order, and shape, each once");
        if (status)
            return status;
        skip_blanks(reading);
        if (!take(reading, ',') && (reading->at == reading->end || *reading->at != '}'))
            return malformed(reading, "a comma or the end of the dictionary");
    }
    if (!reading->descr_given || !reading->order_given || !reading->shape_given)
        return malformed(reading, "the keys descr, fortran_order, and shape, each once");
    return TOKMAP_OK;
}

static enum tokmap_status element_find(const char *path, const char *descr, enum element *element,
                                       struct tokmap_error *error)
{
    static const struct {
        char name[4];
        enum element element;
    } known[] = {
        {"u1", ELEMENT_U8},  {"i1", ELEMENT_I8},  {"u2", ELEMENT_U16}, {"i2", ELEMENT_I16},
        {"u4", ELEMENT_U32}, {"i4", ELEMENT_I32}, {"u8", ELEMENT_I64}, {"i8", ELEMENT_I64},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!*descr || strcmp(descr + 1, known[i].name) != 0)
            continue;
        if (*descr == '<' || (descr[2] == '1' && (*descr == '|' || *descr == '>' || *descr == '=')) || *descr == '=') {
            *element = known[i].element;
            return TOKMAP_OK;
        }
        if (*descr == '>')
            return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                             "the array is big-endian ('%s'); save it again as little-endian integers", descr);
    }
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                     "the elements of the array have type '%s', but token ids are integers of 1, 2, 4, or 8 bytes "
                     "('<u2', '<i4')",
                     descr);
}

/* Finds the header. *header_at and *header_bytes are inside the `bytes` bytes. */
static enum tokmap_status frame_check(const char *path, const uint8_t *head, size_t bytes, uint64_t file_bytes,
                                      uint64_t *header_at, uint64_t *header_bytes, struct tokmap_error *error)
{
    if (!npy_is(head, bytes))
        return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                         "this is not a NumPy file (it does not begin with the bytes \\x93NUMPY); the .npy files of "
                         "OLMo and Dolma have no header: name them olmo:PATH,width=2,eod=ID");
    if (bytes < 8)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, bytes, "the file ends before its version");
    const uint8_t major = head[6];
    if (major < 1 || major > 3 || head[7])
        return error_set(error, TOKMAP_ERROR_VERSION, path, 6,
                         "the file has version %u.%u, but tokmap reads the versions 1.0, 2.0, and 3.0; write the array "
                         "again with numpy.save()",
                         major, head[7]);
    *header_at = major == 1 ? 10 : 12;
    if (bytes < *header_at)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, bytes, "the file ends before the length of its header");
    *header_bytes = major == 1 ? load16(head + 8) : load32(head + 8);
    if (*header_bytes > file_bytes || file_bytes - *header_bytes < *header_at)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, file_bytes,
                         "the file ends here, inside its header of %" PRIu64 " bytes; copy or make the file again",
                         *header_bytes);
    if (*header_bytes > bytes - *header_at)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, 8,
                         "the header has %" PRIu64 " bytes, but that of an array of integers has about 100; write the "
                         "array again with numpy.save()",
                         *header_bytes);
    return TOKMAP_OK;
}

bool npy_is(const uint8_t *head, size_t bytes)
{
    return bytes >= MAGIC_BYTES && !memcmp(head, MAGIC, MAGIC_BYTES);
}

enum tokmap_status npy_header_read(struct npy_header *header, const char *path, const uint8_t *head, size_t bytes,
                                   uint64_t file_bytes, struct tokmap_error *error)
{
    uint64_t at = 0, length = 0;
    *header = (struct npy_header){.dimensions = 0};
    const enum tokmap_status status = frame_check(path, head, bytes, file_bytes, &at, &length, error);
    if (status)
        return status;
    struct reading reading = {.path = path, .head = head, .header = header, .error = error};
    reading.at = (const char *)head + at;
    reading.end = reading.at + length;
    header->data_at = at + length;
    return take_dictionary(&reading);
}

enum tokmap_status npy_parse(struct foreign_layout *layout, const char *path, const uint8_t *head, size_t bytes,
                             uint64_t file_bytes, struct tokmap_error *error)
{
    struct npy_header header;
    uint64_t token_bytes;
    enum tokmap_status status = npy_header_read(&header, path, head, bytes, file_bytes, error);
    enum element element = ELEMENT_U16;
    if (!status)
        status = element_find(path, header.descr, &element, error);
    if (status)
        return status;
    if (header.dimensions != 1)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, header.shape_at,
                         "the array has %" PRIu64 " dimensions, but a stream of tokens has one; save array.reshape(-1)",
                         header.dimensions);
    const uint64_t data = header.data_at, count = header.shape[0];
    if (mul_overflows(count, element_bytes(element), &token_bytes) || token_bytes > FOREIGN_BYTES_MAX ||
        token_bytes + data != file_bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, header.shape_at,
                         "the shape counts %" PRIu64 " elements of %u bytes from byte %" PRIu64
                         " on, but the file is %" PRIu64 " bytes long; copy or make the file again",
                         count, element_bytes(element), data, file_bytes);
    *layout = (struct foreign_layout){element, data, count, file_bytes, TOKMAP_NO_ID, TOKMAP_NO_ID};
    return TOKMAP_OK;
}
